"""Sinks of memory tables, whose fragments carry the rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rowmerge_nb.connectors.memory.row_changes import encode, positions_of
from rowmerge_nb.spi import (
    ConnectorInsertTableHandle,
    ConnectorMergeSink,
    ConnectorMergeTableHandle,
    ConnectorPageSink,
    ConnectorPageSinkProvider,
    ConnectorSession,
    ConnectorTransactionHandle,
    Operation,
    Page,
    row_ids_of,
    rows_with,
    split_page,
)


class MemoryPageSink(ConnectorPageSink):
    def __init__(self) -> None:
        self._pages: list[Page] = []

    def append_page(self, page: Page) -> None:
        self._pages.append(page)

    def finish(self) -> list[bytes]:
        return list(encode("insert", self._pages))

    def abort(self) -> None:
        self._pages.clear()


class MemoryMergeSink(ConnectorMergeSink):
    """Separates rows by operation. Supports both paradigms and eras."""

    def __init__(self, column_count: int) -> None:
        self._column_count = column_count
        self._inserts = MemoryPageSink()
        self._deletes: list[Page] = []
        self._updates: list[Page] = []

    def store_merged_rows(self, page: Page) -> None:
        updates = rows_with(page, self._column_count, [Operation.UPDATE])
        if updates.num_rows:
            self._updates.append(self._with_position(updates))
            page = rows_with(page, self._column_count, set(Operation) - {Operation.UPDATE})
        parts = split_page(page, self._column_count)
        if parts.deletions is not None:
            positions = positions_of(row_ids_of(parts.deletions))
            self._deletes.append(pa.RecordBatch.from_arrays([positions], names=["position"]))
        if parts.insertions is not None:
            self._inserts.append_page(parts.insertions)

    def _with_position(self, page: Page) -> Page:
        data = page.select(list(range(self._column_count)))
        return data.append_column("position", positions_of(row_ids_of(page)))

    def finish(self) -> list[bytes]:
        return [
            *encode("delete", self._deletes),
            *encode("update", self._updates),
            *self._inserts.finish(),
        ]

    def abort(self) -> None:
        self._inserts.abort()
        self._deletes.clear()
        self._updates.clear()


class MemoryPageSinkProvider(ConnectorPageSinkProvider):
    def create_page_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
    ) -> MemoryPageSink:
        return MemoryPageSink()

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> MemoryMergeSink:
        handle: Any = merge_handle.get_table_handle()
        return MemoryMergeSink(len(handle.metadata.columns))
