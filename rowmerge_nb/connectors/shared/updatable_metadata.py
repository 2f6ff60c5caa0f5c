"""The older flow of UPDATE and DELETE, for stores that change rows as a MERGE does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence

from rowmerge_nb.spi import (
    ColumnHandle,
    ConnectorMetadata,
    ConnectorOutputMetadata,
    ConnectorSession,
    ConnectorTableHandle,
)


class UpdatableMetadata(ConnectorMetadata):
    """The calls of the older flow, by two methods of a store; a row has the row id of a MERGE."""

    @abstractmethod
    def _begin_updatable(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle] | None,
    ) -> ConnectorTableHandle:
        """Begin an UPDATE of these columns; None for a DELETE."""

    @abstractmethod
    def _finish_updatable(
        self, table_handle: ConnectorTableHandle, fragments: Collection[bytes], step: str
    ) -> ConnectorOutputMetadata:
        """Apply the fragments of all splits."""

    def get_delete_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ColumnHandle:
        return self.get_merge_row_id_column_handle(session, table_handle)

    def begin_delete(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableHandle:
        return self._begin_updatable(session, table_handle, None)

    def finish_delete(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        return self._finish_updatable(table_handle, fragments, "finish_delete")

    def get_update_row_id_column_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> ColumnHandle:
        return self.get_merge_row_id_column_handle(session, table_handle)

    def begin_update(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> ConnectorTableHandle:
        return self._begin_updatable(session, table_handle, updated_columns)

    def finish_update(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        return self._finish_updatable(table_handle, fragments, "finish_update")
