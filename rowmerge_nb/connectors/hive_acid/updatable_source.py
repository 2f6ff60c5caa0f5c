"""Files of Hive tables that the older flow of UPDATE and DELETE changes.

Hive updates a row by a delete event and a new row, so the row id for UPDATE carries the values that
are not updated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.hive_acid.delta_writer import HiveMergeSink
from rowmerge_nb.connectors.hive_acid.hive_handles import (
    ROW_ID_TYPE,
    HiveRowIdColumn,
    HiveSplit,
    HiveTableHandle,
    HiveWrite,
)
from rowmerge_nb.spi import (
    ColumnHandle,
    ColumnMetadata,
    ConnectorPageSource,
    Operation,
    Page,
    UpdatablePageSource,
    row_ids_of,
    values_and_row_ids,
)
from rowmerge_nb.spi.page import OPERATION, ROW_ID
from rowmerge_nb.spi.types import BIGINT, INTEGER, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable


@dataclass(frozen=True)
class HiveUpdateRowIdColumn(ColumnHandle):
    """The row id for UPDATE."""


@dataclass(frozen=True)
class HiveUpdatableTableHandle(HiveTableHandle):
    """A table whose rows are changed; ``updated`` is None for a DELETE."""

    write: HiveWrite
    updated: tuple[str, ...] | None = None


class HiveUpdatablePageSource(UpdatablePageSource):
    def __init__(
        self,
        open_source: Callable[[Sequence[ColumnHandle]], ConnectorPageSource],
        handle: HiveUpdatableTableHandle,
        split: HiveSplit,
        columns: Sequence[ColumnHandle],
        writer: int,
    ) -> None:
        table = handle.table
        self._table = table
        self._updated = handle.updated or ()
        self._columns = list(columns)
        self._unchanged = unchanged_columns(table, self._updated)
        self._partition = handles_of(table.partition_columns)
        plain = [
            column
            for column in columns
            if not isinstance(column, HiveUpdateRowIdColumn | HiveRowIdColumn)
        ]
        plain_names = {column.name for column in plain}
        more = [*(self._unchanged if handle.updated is not None else ()), *self._partition]
        self._read = [
            *plain,
            *(column for column in more if column.name not in plain_names),
            HiveRowIdColumn("$row_id", ROW_ID_TYPE),
        ]
        super().__init__(open_source(self._read))
        # Splits of one bucket are written in parallel: the split's number distinguishes the row ids
        # of their insertions.
        self._sink = HiveMergeSink(table, handle.write, writer, is_placed=False)
        self._values: dict[str, Any] = {}

    def get_next_page(self) -> Page | None:
        page = self.source.get_next_page()
        if page is None:
            return None
        indexes = {column.name: index for index, column in enumerate(self._read[:-1])}
        ids = row_ids_of(page)
        # All rows of a file are in one partition.
        self._values = (
            {c.name: page.column(indexes[c.name])[0] for c in self._partition}
            if page.num_rows
            else {}
        )
        channels = []
        for column in self._columns:
            if isinstance(column, HiveRowIdColumn):
                channels.append(ids)
            elif isinstance(column, HiveUpdateRowIdColumn):
                channels.append(
                    self._row_ids(
                        ids,
                        [page.column(indexes[unchanged.name]) for unchanged in self._unchanged],
                        column,
                    )
                )
            else:
                channels.append(page.column(indexes[column.name]))
        return pa.RecordBatch.from_arrays(channels, names=[column.name for column in self._columns])

    def _row_ids(
        self, ids: pa.StructArray, unchanged_arrays: list[pa.Array], column: ColumnHandle
    ) -> pa.StructArray:
        row_type = column.type.arrow
        parts = [ids.field(index).cast(row_type.field(index).type) for index in range(3)]
        if unchanged_arrays:
            fields = list(row_type.field(3).type)
            parts.append(pa.StructArray.from_arrays(unchanged_arrays, fields=fields))
        return pa.StructArray.from_arrays(parts, fields=list(row_type))

    def delete_rows(self, row_ids: pa.Array) -> None:
        self._sink.store_merged_rows(self._merge_page({}, Operation.DELETE, row_ids))

    def update_rows(self, page: Page, column_value_and_row_id_channels: Sequence[int]) -> None:
        values, row_ids = values_and_row_ids(page, column_value_and_row_id_channels)
        ids = pa.StructArray.from_arrays(
            [row_ids.field(i) for i in range(3)], fields=list(ROW_ID_TYPE.arrow)
        )
        data = dict(zip(self._updated, values, strict=True))
        if self._unchanged:
            row = row_ids.field(3)
            data |= {column.name: row.field(index) for index, column in enumerate(self._unchanged)}
        self._sink.store_merged_rows(self._merge_page({}, Operation.DELETE, ids))
        self._sink.store_merged_rows(self._merge_page(data, Operation.INSERT, ids))

    def _merge_page(
        self, data: dict[str, pa.Array], operation: Operation, row_ids: pa.Array
    ) -> Page:
        rows = len(row_ids)
        arrays = []
        for column in self._table.columns:
            if column.name in self._values:
                arrays.append(pa.repeat(self._values[column.name], rows))
            else:
                arrays.append(data.get(column.name, pa.nulls(rows, column.type.arrow)))
        arrays += [pa.array(np.full(rows, operation, np.int8)), row_ids]
        return pa.RecordBatch.from_arrays(
            arrays, names=[*(column.name for column in self._table.columns), OPERATION, ROW_ID]
        )

    def finish(self) -> list[bytes]:
        return self._sink.finish()

    def abort(self) -> None:
        self._sink.abort()


def unchanged_columns(table: HiveTable, updated: Collection[str]) -> tuple[ColumnHandle, ...]:
    return handles_of(column for column in table.data_columns if column.name not in updated)


def handles_of(columns: Iterable[ColumnMetadata]) -> tuple[ColumnHandle, ...]:
    return tuple(ColumnHandle(column.name, column.type) for column in columns)


def update_row_id(table: HiveTable, updated: Collection[str]) -> HiveUpdateRowIdColumn:
    unchanged = [(column.name, column.type) for column in unchanged_columns(table, updated)]
    identity = [("originalTransaction", BIGINT), ("bucket", INTEGER), ("rowId", BIGINT)]
    return HiveUpdateRowIdColumn(
        "$row_id", row_of([*identity, *([("row", row_of(unchanged))] if unchanged else [])])
    )
