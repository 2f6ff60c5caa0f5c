"""Reading in tasks: one query per split, page by page."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.names import quoted_text
from rowmerge_nb.connectors.jdbc.database import SHOWN, DatabaseSession, Reading, Store
from rowmerge_nb.connectors.jdbc.jdbc_handles import (
    JdbcRowIdColumn,
    JdbcSplit,
    JdbcTableHandle,
    table_handle_of,
)
from rowmerge_nb.connectors.jdbc.updatable_source import (
    JdbcUpdatablePageSource,
    JdbcUpdatableTableHandle,
)
from rowmerge_nb.spi import (
    ColumnHandle,
    ConnectorPageSource,
    ConnectorPageSourceProvider,
    ConnectorSession,
    ConnectorSplit,
    ConnectorTableHandle,
    Page,
    own,
)
from rowmerge_nb.spi import ConnectorTransactionHandle as TransactionHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn


@dataclass(frozen=True)
class JdbcPageSourceProvider(ConnectorPageSourceProvider):
    store: Store

    def create_page_source(
        self,
        transaction_handle: TransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorPageSource:
        split = own(split, JdbcSplit)
        handle = table_handle_of(table_handle)
        source = JdbcPageSource(self.store, handle, split, columns)
        return (
            JdbcUpdatablePageSource(source, self.store, handle)
            if isinstance(handle, JdbcUpdatableTableHandle)
            else source
        )


class JdbcPageSource(ConnectorPageSource):
    def __init__(
        self,
        store: Store,
        handle: JdbcTableHandle,
        split: JdbcSplit,
        columns: Sequence[ColumnHandle],
    ) -> None:
        self._store = store
        self._handle = handle
        self._split = split
        self._columns = list(columns)
        self._session: DatabaseSession | None = None
        self._pages = self._read()

    def get_next_page(self) -> Page | None:
        return next(self._pages, None)

    def close(self) -> None:
        self._pages.close()
        if self._session is not None:
            self._session.close()

    def _parts(self) -> list[tuple[str, list[Reading]]]:
        parts = []
        for column in self._columns:
            if isinstance(column, JdbcRowIdColumn):
                parts.append(("the primary key", self._store.row_id_readings(self._handle)))
            elif not self._handle.column(column.name).added:
                reading = self._store.reading(self._handle.column(column.name))
                parts.append(
                    (column.name, [reading.without_misfits() if column.carried else reading])
                )
        return parts

    def _read(self) -> Generator[Page, None, None]:
        parts = self._parts()
        readings = [reading for _, group in parts for reading in group]
        misfits = [reading.misfit for reading in readings]
        cases = " ".join(
            f"WHEN {misfit} THEN {number}" for number, misfit in enumerate(misfits, 1) if misfit
        )
        check = Reading(f"CASE {cases} ELSE 0 END" if cases else "0", pa.int64())
        source = self._store.table(self._handle)
        conditions = [
            part for part in (self._store.range_of(self._split), self._split.predicate) if part
        ]
        filtered = f"{source} WHERE {' AND '.join(conditions)}" if conditions else source
        names = [f"v{number}" for number in range(len(readings))]
        sql = self._store.select([*readings, check], [*names, "misfit"], filtered)
        self._session = self._store.connect()
        self._store.begin_reading(self._session, self._split)
        leading = self._store.leading_rows
        for rows in self._session.stream(
            sql, self._store.batch_option, f"Reading table '{self._handle.name}'"
        ):
            batch = rows.slice(leading)
            leading = max(leading - rows.num_rows, 0)
            if not batch.num_rows:
                continue
            misfit_number = pc.max(batch.column(batch.num_columns - 1)).as_py()
            if misfit_number:
                self._refuse(parts, readings, int(misfit_number) - 1, source, conditions)
            yield self._page(batch)

    def _page(self, batch: pa.RecordBatch) -> Page:
        arrays, first = [], 0
        for column in self._columns:
            if isinstance(column, JdbcRowIdColumn):
                arrow_type = column.type.arrow
                is_struct = pa.types.is_struct(arrow_type)
                part_types = [field.type for field in arrow_type] if is_struct else [arrow_type]
                values = [
                    _plain(batch.column(first + number)).cast(part_type)
                    for number, part_type in enumerate(part_types)
                ]
                arrays.append(
                    pa.StructArray.from_arrays(values, fields=list(arrow_type))
                    if is_struct
                    else values[0]
                )
                first += len(part_types)
                continue
            table_column = self._handle.column(column.name)
            if table_column.added:
                arrays.append(pa.nulls(batch.num_rows, table_column.type.arrow))
                continue
            arrays.append(
                self._converted(
                    table_column, _plain(batch.column(first)), is_carried=column.carried
                )
            )
            first += 1
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in self._columns])

    def _converted(self, column: JdbcColumn, array: pa.Array, *, is_carried: bool) -> pa.Array:
        """Convert values to the column's Arrow type; misfits of a carried column become NULL."""

        def convert(values: pa.Array) -> pa.Array:
            # A text may have invalid UTF-8.
            values.validate(full=True)
            return self._store.converted(column, values)

        try:
            return convert(array)
        except pa.ArrowInvalid:
            misfits = _misfits(convert, array)
        if not is_carried or not misfits:
            value = array[misfits[0]] if misfits else pa.scalar("what cannot be read")
            raise self._misfit_error(column.name, *self._misfit_text(column, value))
        is_misfit = np.zeros(len(array), bool)
        is_misfit[misfits] = True
        return convert(pc.if_else(pa.array(is_misfit), pa.scalar(None, array.type), array))

    def _misfit_text(self, column: JdbcColumn, scalar: pa.Scalar) -> tuple[str, str]:
        if not pa.types.is_string(scalar.type):
            return str(scalar), ""
        value = scalar.as_buffer().to_pybytes()
        with closing(self._store.connect()) as session:
            self._store.begin_reading(session, self._split)
            address = self._store.address_of_text(session, self._handle, column, value)
        try:
            return f"{value.decode()[:SHOWN]!r} (text)", address
        except UnicodeDecodeError:
            return f"the bytes {value[:SHOWN].hex(' ')} (text that is no UTF-8)", address

    def _misfit_error(self, name: str, value: str, address: str) -> ConnectorError:
        declared = next((column for column in self._handle.columns if column.name == name), None)
        declaration = (
            f"is declared {declared.declared} and" if declared is not None else "of this kind"
        )
        return ConnectorError(
            f"Column '{name}' of {self._store.name} table '{self._handle.name}' {declaration} holds"
            f" {value}, which is no"
            f" {declared.type if declared is not None else 'usable value'}{address}",
            code="JDBC_ERROR",
            hint="Correct the value, or declare the column differently.",
        )

    def _refuse(
        self,
        parts: list[tuple[str, list[Reading]]],
        readings: list[Reading],
        index: int,
        source: str,
        conditions: list[str],
    ) -> None:
        names = [name for name, group in parts for _ in group]
        misfit, display_value = readings[index].misfit, self._store.shown_value(readings[index])
        address = self._store.address(self._handle)
        where = " AND ".join([*conditions, f"({misfit})"])
        with closing(self._store.connect()) as session:
            self._store.begin_reading(session, self._split)
            (row,) = session.query(
                f"SELECT {display_value} AS v, {address or quoted_text('')} AS a FROM {source} WHERE"
                f" {where} LIMIT 1"
            )
        raise self._misfit_error(
            names[index], row["v"], f", in the row with {row['a']}" if address else ""
        )


def _misfits(convert: Callable[[pa.Array], pa.Array], array: pa.Array) -> list[int]:
    if len(array) == 1:
        return [0]
    half = len(array) // 2
    indexes: list[int] = []
    for start, part in ((0, array.slice(0, half)), (half, array.slice(half))):
        try:
            convert(part)
        except pa.ArrowInvalid:
            indexes += [start + index for index in _misfits(convert, part)]
    return indexes


def _plain(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array
