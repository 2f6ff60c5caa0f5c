"""Connectors with one bug each in stored values: each loses or changes values of some type.

``caught_by`` of each class lists the checks that must fail because of its bug; `test_broken_stores.py` runs them in a separate pytest.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import unicodedata
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.connectors.memory.writing import MemoryMergeSink
from rowmerge_nb.spi import Operation
from tests.contract.broken_tasks import Changed, sinks
from tests.contract.exchangeable_store import Kit

pytestmark = pytest.mark.filterwarnings("error")

WRITTEN = "values_of_every_type_come_back_as_they_were_written"
CHANGED = "values_of_every_type_are_inserted_and_updated"
NULL_KEY = "rows_with_null_in_the_first_column_are_changed_like_others"


class Damaging(MemoryMetadata):
    """Damages the rows of a statement before the commit."""

    def damage(self, data: pa.Table) -> pa.Table:
        raise NotImplementedError

    def finish_merge(self, session, merge_handle, fragments):
        super().finish_merge(session, merge_handle, fragments)
        self._damage()

    def finish_insert(self, session, insert_handle, fragments):
        super().finish_insert(session, insert_handle, fragments)
        self._damage()

    def _damage(self):
        for table in self._transaction.tables.values():
            table.versions[table.current] = self.damage(table.versions[table.current])


def by_value(arrow_type: Any, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the part of a store that changes the values of columns of an Arrow type one by one."""

    class Metadata(Damaging):
        def damage(self, data):
            columns = [
                pa.chunked_array(
                    [
                        pa.array(
                            [None if v is None else change(v) for v in column.to_pylist()],
                            column.type,
                        )
                    ]
                )
                if arrow_type(column.type)
                else column
                for column in data.columns
            ]
            return pa.table(columns, schema=data.schema)

    return {"metadata": Metadata}


class Values(Kit):
    """Only checks of types fail because of these bugs, on tables of one layout."""

    layouts = {"plain": {}}
    caught_by = {WRITTEN, CHANGED}


# -- texts and bytes


class TestCapitalsAreLost(Values):
    types = ("varchar",)
    parts = by_value(pa.types.is_string, str.lower)
    caught_by = {WRITTEN, CHANGED, "rows_come_back_as_they_were_written"}


class TestTrailingBlanksAreLost(Values):
    types = ("varchar",)
    parts = by_value(pa.types.is_string, str.rstrip)


class TestTextsAreTrimmedAtTheLeft(Values):
    types = ("varchar(20)",)
    parts = by_value(pa.types.is_string, str.lstrip)


class TestCharIsNotPadded(Values):
    types = ("char(4)",)
    parts = by_value(pa.types.is_string, str.rstrip)


class TestEmptyTextIsNull(Values):
    types = ("varchar",)
    parts = by_value(pa.types.is_string, lambda text: text or None)


class TestTheWordNullIsNull(Values):
    types = ("varchar",)
    parts = by_value(pa.types.is_string, lambda text: None if text == "NULL" else text)


class TestTextsAreDecomposed(Values):
    types = ("varchar",)
    parts = by_value(pa.types.is_string, lambda text: unicodedata.normalize("NFD", text))


class TestOnlyTheBasicPlaneIsKept(Values):
    types = ("varchar",)
    parts = by_value(
        pa.types.is_string, lambda text: "".join(c if ord(c) < 0x10000 else "?" for c in text)
    )


class TestLongTextsAreCut(Values):
    types = ("varchar",)
    parts = by_value(pa.types.is_string, lambda text: text[:255])


class TestEmptyBytesAreNull(Values):
    types = ("varbinary",)
    parts = by_value(pa.types.is_binary, lambda content: content or None)


class TestBytesEndAtAZero(Values):
    types = ("varbinary",)
    parts = by_value(pa.types.is_binary, lambda content: content.split(b"\0")[0])


class TestUuidsAreInCapitals(Values):
    types = ("uuid",)
    parts = by_value(pa.types.is_string, str.upper)


class TestJsonNullIsNull(Values):
    types = ("json",)
    parts = by_value(pa.types.is_string, lambda text: None if text == "null" else text)


# -- numbers


class TestFractionsAreRounded(Values):
    types = ("decimal(12,2)",)
    parts = by_value(pa.types.is_decimal, round)


class TestTheLastDigitOfAFractionIsCut(Values):
    types = ("decimal(12,2)",)
    parts = by_value(
        pa.types.is_decimal, lambda number: number.quantize(Decimal("0.1"), ROUND_DOWN)
    )


class TestLongDecimalsAreDoubles(Values):
    types = ("decimal(38,10)",)
    parts = by_value(
        pa.types.is_decimal, lambda number: Decimal(float(number)).quantize(Decimal(1).scaleb(-10))
    )


class TestLongIntegersAreDoubles(Values):
    types = ("bigint",)
    parts = by_value(pa.types.is_int64, lambda number: min(int(float(number)), 2**63 - 1))


class TestDoublesAreRounded(Values):
    types = ("double",)
    parts = by_value(pa.types.is_float64, lambda number: float(f"{number:.6g}"))
    caught_by = {WRITTEN, CHANGED, "rows_come_back_as_they_were_written"}


class TestNegativeZeroIsLost(Values):
    types = ("double",)
    parts = by_value(pa.types.is_float64, lambda number: number + 0.0)


class TestNanIsNull(Values):
    types = ("real",)
    parts = by_value(pa.types.is_float32, lambda number: None if number != number else number)  # noqa: PLR0124 - NaN


class TestInfinityIsTheGreatestNumber(Values):
    types = ("double",)
    parts = by_value(
        pa.types.is_float64,
        lambda number: max(min(number, 1.7e308), -1.7e308) if number == number else number,  # noqa: PLR0124
    )


class TestNegativeTinyIntegersAreBytes(Values):
    types = ("tinyint",)
    parts = by_value(pa.types.is_int8, lambda number: abs(number) % 128)


# -- moments


class TestTheTimeZoneIsLost(Values):
    types = ("timestamp(3) with time zone",)
    parts = by_value(
        pa.types.is_timestamp,
        lambda moment: moment + dt.timedelta(hours=1) if moment.tzinfo else moment,
    )


class TestFractionsOfSecondsAreLost(Values):
    types = ("time(6)",)
    parts = by_value(
        pa.types.is_time,
        lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000),
    )


class TestMomentsBefore1970AreRoundedToZero(Values):
    types = ("timestamp(6)",)
    parts = by_value(
        pa.types.is_timestamp,
        lambda moment: (
            moment.replace(microsecond=0) + dt.timedelta(seconds=1)
            if moment.year < 1970 and moment.microsecond
            else moment
        ),
    )


class TestDatesHaveAFirstYear(Values):
    types = ("date",)
    parts = by_value(pa.types.is_date, lambda day: max(day, dt.date(1900, 1, 1)))


# -- arrays, maps and rows


class TestNullsOfArraysAreLost(Values):
    types = ("array(integer)",)
    parts = by_value(
        pa.types.is_list, lambda elements: [element for element in elements if element is not None]
    )


class TestAnEmptyArrayIsNull(Values):
    types = ("array(varchar)",)
    parts = by_value(pa.types.is_list, lambda elements: elements or None)


class TestArraysAreSorted(Values):
    types = ("array(integer)",)
    parts = by_value(
        pa.types.is_list,
        lambda elements: sorted(elements, key=lambda element: (element is None, element)),
    )


class TestNullsOfMapsAreLost(Values):
    types = ("map(varchar, bigint)",)
    parts = by_value(
        pa.types.is_map, lambda entries: [entry for entry in entries if entry[1] is not None]
    )


class TestFieldsOfRowsAreExchanged(Values):
    types = ("row(a varchar, b varchar)",)
    parts = by_value(
        pa.types.is_struct, lambda row: dict(zip(row, reversed(row.values()), strict=True))
    )


class TestARowOfNullsIsNull(Values):
    types = ("row(a integer, b varchar)",)
    parts = by_value(
        pa.types.is_struct,
        lambda row: row if any(value is not None for value in row.values()) else None,
    )


class TestFractionsWithinRowsAreRounded(Values):
    types = ('row(a decimal(12,2), "B c" array(row(x date, y timestamp(6))))',)
    parts = by_value(
        pa.types.is_struct, lambda row: {**row, "a": None if row["a"] is None else round(row["a"])}
    )


# -- rows and columns


class NullKeysLost(Damaging):
    def damage(self, data):
        return data.filter(pc.is_valid(data.column(0)))


class TestRowsWithNullInTheFirstColumnAreLost(Values):
    types = ("varchar",)
    parts = {"metadata": NullKeysLost}
    caught_by = {WRITTEN, NULL_KEY}


class NullKeysJoined(Damaging):
    def damage(self, data):
        seen: list[int] = [i for i, value in enumerate(data.column(0).to_pylist()) if value is None]
        return data.take(
            pa.array([i for i in range(data.num_rows) if i not in seen[1:]], pa.int64())
        )


class TestRowsWithNullInTheFirstColumnAreOne(Values):
    types = ("varchar",)
    parts = {"metadata": NullKeysJoined}
    caught_by = {WRITTEN, NULL_KEY}


class Distinct(Damaging):
    def damage(self, data):
        first = {repr(row): i for i, row in reversed(list(enumerate(data.to_pylist())))}
        return data.take(pa.array(sorted(first.values()), pa.int64()))


class TestEqualRowsAreOne(Values):
    parts = {"metadata": Distinct}
    caught_by = {"of_two_equal_rows_only_the_named_one_is_deleted"}


class Exchanged(Changed):
    """Swaps two adjacent columns of one type when reading."""

    def page(self, page, columns):
        kinds = [(column.type, column.name) for column in columns]
        data = [
            i for i, (_, name) in enumerate(kinds) if name in {"value", "Other", "left", "right"}
        ]
        pair = data if len(data) == 2 else []
        order = [pair[1 - pair.index(i)] if i in pair else i for i in range(page.num_columns)]
        return pa.RecordBatch.from_arrays([page.column(i) for i in order], names=page.schema.names)


class TestTwoColumnsOfOneTypeAreExchanged(Values):
    columns = {"id": "bigint", "left": "varchar", "right": "varchar"}
    types = ("double",)
    parts = {"sources": Exchanged}
    caught_by = {
        WRITTEN,
        CHANGED,
        "rows_come_back_as_they_were_written",
        "a_merge_deletes_updates_and_inserts_the_right_rows",
    }


class TestTwoColumnsOfTruthValuesAreExchanged(Values):
    columns = {"id": "bigint", "left": "boolean", "right": "boolean"}
    types = ("boolean",)
    parts = {"sources": Exchanged}
    caught_by = {WRITTEN, CHANGED, "rows_come_back_as_they_were_written"}


class Untidy(MemoryMergeSink):
    """Sets a column that an update does not assign to NULL."""

    def store_merged_rows(self, page):
        operations = page.column(self._column_count)
        is_update = pc.is_in(
            operations, value_set=pa.array([Operation.UPDATE_INSERT, Operation.UPDATE], pa.int8())
        )
        first = page.column(1)
        super().store_merged_rows(
            page.set_column(
                1,
                page.schema.names[1],
                pc.if_else(is_update, pa.nulls(len(first), first.type), first),
            )
        )


class TestAnUpdateTouchesUnassignedColumns(Values):
    parts = sinks(Untidy)
    caught_by = {"an_update_changes_the_assigned_columns_and_no_other"}


# -- pages and fragments


class ReusesItsBuffer(Changed):
    """Hands over a page, and writes the next one into the same memory."""

    def create_page_source(self, *arguments):
        return Overwriting(super().create_page_source(*arguments))


class Overwriting:
    def __init__(self, source):
        self.source, self.numbers = source, None

    def get_next_page(self):
        page = self.source.get_next_page()
        if self.numbers is not None:
            for buffer in self.numbers:
                ctypes.memset(buffer.address, 0, buffer.size)
        if page is not None:
            copy = pa.ipc.read_record_batch(pa.py_buffer(bytearray(page.serialize())), page.schema)
            self.numbers = [c.buffers()[1] for c in copy.columns if pa.types.is_int64(c.type)]
            return copy
        return None

    def close(self):
        self.source.close()


class TestAPageSourceReusesItsBuffer(Values):
    parts = {"sources": ReusesItsBuffer}
    caught_by = {"rows_come_back_as_they_were_written", "pages_come_in_the_same_order_every_time"}


class WritesIntoPages(MemoryMergeSink):
    """Stores a page, and then writes into its memory."""

    def store_merged_rows(self, page):
        super().store_merged_rows(
            pa.ipc.read_record_batch(pa.py_buffer(page.serialize().to_pybytes()), page.schema)
        )
        operation = page.column(self._column_count).buffers()[1]
        ctypes.memset(operation.address, 0, operation.size)


class TestASinkWritesIntoThePagesThatItGets(Values):
    parts = sinks(WritesIntoPages)
    caught_by = {
        "a_merge_deletes_updates_and_inserts_the_right_rows",
        "an_insert_by_merge_adds_rows_and_keeps_all_others",
    }


class ClearsWhenFinished(MemoryMergeSink):
    """Clears its recorded pages when it is finished."""

    def __init__(self, column_count):
        super().__init__(column_count)
        self.taken: list[Any] = []

    def store_merged_rows(self, page):
        super().store_merged_rows(
            pa.ipc.read_record_batch(pa.py_buffer(page.serialize().to_pybytes()), page.schema)
        )
        self.taken.append(page.column(self._column_count).buffers()[1])

    def finish(self):
        for buffer in self.taken:
            ctypes.memset(buffer.address, 0, buffer.size)
        return super().finish()


class TestASinkClearsItsPagesWhenItIsFinished(Values):
    parts = sinks(ClearsWhenFinished)
    caught_by = {"a_merge_deletes_updates_and_inserts_the_right_rows"}


class NeighboursIds(Changed):
    """Returns rows in two pages, each with the row ids of the other."""

    def create_page_source(self, transaction_handle, session, split, table_handle, columns):
        self.named = [column.name for column in columns]
        return super().create_page_source(transaction_handle, session, split, table_handle, columns)

    def page(self, page, columns):
        at = page.schema.get_field_index("$row_id")
        if at < 0 or page.num_rows % 2:
            return page
        half = page.num_rows // 2
        ids = pa.concat_arrays([page.column(at).slice(half), page.column(at).slice(0, half)])
        return page.set_column(at, "$row_id", ids)


class TestRowIdsAreThoseOfAnotherPage(Values):
    parts = {"sources": NeighboursIds}
    caught_by = {
        "a_delete_removes_the_named_rows_and_no_other",
        "an_update_changes_the_assigned_columns_and_no_other",
    }


class DropsAFragment(MemoryMetadata):
    def finish_merge(self, session, merge_handle, fragments):
        super().finish_merge(session, merge_handle, list(fragments)[1:])


class TestAFragmentIsDropped(Values):
    parts = {"metadata": DropsAFragment}
    caught_by = {
        "a_delete_removes_the_named_rows_and_no_other",
        "a_merge_deletes_updates_and_inserts_the_right_rows",
    }


class FinishesTwice(MemoryMetadata):
    def finish_insert(self, session, insert_handle, fragments):
        super().finish_insert(session, insert_handle, fragments)
        super().finish_insert(session, insert_handle, [*fragments, *fragments])


class TestAnInsertIsFinishedTwice(Values):
    parts = {"metadata": FinishesTwice}
    caught_by = {"rows_come_back_as_they_were_written", "an_insert_statement_adds_rows", WRITTEN}
