"""The older flow of UPDATE and DELETE on memory tables."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.connectors.memory.handles import MemoryTableHandle, table_handle_of
from rowmerge_nb.connectors.memory.row_changes import encode, positions_of
from rowmerge_nb.spi.metadata import ConnectorMetadata
from rowmerge_nb.spi.updatable import UpdatablePageSource, values_and_row_ids

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rowmerge_nb.spi.handles import ColumnHandle, ConnectorSession, ConnectorTableHandle
    from rowmerge_nb.spi.output import ConnectorOutputMetadata
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.page_source import ConnectorPageSource


@dataclass(frozen=True)
class MemoryUpdatableTableHandle(MemoryTableHandle):
    """A version whose rows are changed; ``updated`` is None for a DELETE."""

    updated: tuple[str, ...] | None = None


class MemoryUpdatablePageSource(UpdatablePageSource):
    """Buffers positions of deleted rows, and positions and new values of updated rows."""

    def __init__(self, source: ConnectorPageSource, handle: MemoryUpdatableTableHandle) -> None:
        super().__init__(source)
        names = [column.name for column in handle.metadata.columns]
        self._columns = [str(names.index(name)) for name in handle.updated or ()]
        self._deleted: list[Page] = []
        self._updated: list[Page] = []

    def delete_rows(self, row_ids: pa.Array) -> None:
        """Buffer positions."""
        self._deleted.append(
            pa.RecordBatch.from_arrays([positions_of(row_ids)], names=["position"])
        )

    def update_rows(self, page: Page, column_value_and_row_id_channels: Sequence[int]) -> None:
        """Buffer positions, and values named by column index."""
        values, row_ids = values_and_row_ids(page, column_value_and_row_id_channels)
        arrays = [*values, positions_of(row_ids)]
        self._updated.append(pa.RecordBatch.from_arrays(arrays, names=[*self._columns, "position"]))

    def finish(self) -> list[bytes]:
        """Return the fragments."""
        return [*encode("delete", self._deleted), *encode("values", self._updated)]

    def abort(self) -> None:
        """Discard the changes."""
        self._deleted.clear()
        self._updated.clear()


class UpdatableMemoryMetadata(ConnectorMetadata):
    """The calls of the older flow."""

    @abstractmethod
    def _apply(
        self, handle: MemoryTableHandle, fragments: Collection[bytes]
    ) -> ConnectorOutputMetadata:
        """Build the next version of a table from fragments."""

    def get_delete_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ColumnHandle:
        """Return the row id of a MERGE."""
        return self.get_merge_row_id_column_handle(session, table_handle)

    def begin_delete(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> MemoryUpdatableTableHandle:
        """Begin a DELETE."""
        return _updatable(table_handle, None)

    def finish_delete(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        """Build the next version."""
        return self._apply(table_handle_of(table_handle), fragments)

    def get_update_row_id_column_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> ColumnHandle:
        """Return the row id of a MERGE."""
        return self.get_merge_row_id_column_handle(session, table_handle)

    def begin_update(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> MemoryUpdatableTableHandle:
        """Begin an UPDATE."""
        return _updatable(table_handle, tuple(column.name for column in updated_columns))

    def finish_update(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        """Build the next version."""
        return self._apply(table_handle_of(table_handle), fragments)


def _updatable(
    table_handle: ConnectorTableHandle, updated: tuple[str, ...] | None
) -> MemoryUpdatableTableHandle:
    handle = table_handle_of(table_handle)
    return MemoryUpdatableTableHandle(handle.name, handle.version, handle.metadata, updated=updated)
