"""The older flow of UPDATE and DELETE on databases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.jdbc.handles import JdbcTableHandle, Stage, table_handle_of
from rowmerge_nb.connectors.jdbc.stage_changes import Changes, computed_error
from rowmerge_nb.connectors.jdbc.staging import JdbcPageSink, read_fragments
from rowmerge_nb.spi.handles import own
from rowmerge_nb.spi.metadata import ConnectorMetadata
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.output import ConnectorOutputMetadata
from rowmerge_nb.spi.updatable import UpdatablePageSource, values_and_row_ids

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rowmerge_nb.connectors.jdbc.connector import JdbcTransaction
    from rowmerge_nb.connectors.jdbc.database import Store
    from rowmerge_nb.spi.handles import ColumnHandle, ConnectorSession, ConnectorTableHandle
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.page_source import ConnectorPageSource

_CASE = 0
"""The case number of an UPDATE statement, which has one clause."""


@dataclass(frozen=True)
class JdbcUpdatableTableHandle(JdbcTableHandle):
    """A table whose rows are changed; ``updated`` is None for a DELETE."""

    stage: Stage = field(default_factory=lambda: Stage(""))
    updated: tuple[str, ...] | None = None


class JdbcUpdatablePageSource(UpdatablePageSource):
    """Stages keys of changed rows, and new values of updated ones."""

    def __init__(
        self, source: ConnectorPageSource, store: Store, handle: JdbcUpdatableTableHandle
    ) -> None:
        super().__init__(source)
        self._handle = handle
        self._sink = JdbcPageSink(store, handle, store.stage_writer(handle.stage))

    def delete_rows(self, row_ids: pa.Array) -> None:
        """Stage keys."""
        self._stage({}, Operation.DELETE, row_ids)

    def update_rows(self, page: Page, column_value_and_row_id_channels: Sequence[int]) -> None:
        """Stage values and keys."""
        values, row_ids = values_and_row_ids(page, column_value_and_row_id_channels)
        self._stage(
            dict(zip(self._handle.updated or (), values, strict=True)), Operation.UPDATE, row_ids
        )

    def _stage(self, values: dict[str, pa.Array], operation: Operation, row_ids: pa.Array) -> None:
        rows, columns = len(row_ids), self._handle.columns
        arrays = [values.get(column.name, pa.nulls(rows, column.type.arrow)) for column in columns]
        page = pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])
        cases = pa.array(np.full(rows, _CASE, np.int32)) if operation is Operation.UPDATE else None
        self._sink.stage(page, pa.array(np.full(rows, operation, np.int16)), cases, row_ids)

    def finish(self) -> list[bytes]:
        """Complete the stage."""
        return self._sink.finish()

    def abort(self) -> None:
        """Discard staged rows."""
        self._sink.abort()


class UpdatableJdbcMetadata(ConnectorMetadata):
    """The calls of the older flow."""

    _store: Store
    _transaction: JdbcTransaction

    def get_delete_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ColumnHandle:
        """Return the primary key."""
        return self.get_merge_row_id_column_handle(session, table_handle)

    def begin_delete(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> JdbcUpdatableTableHandle:
        """Create a stage."""
        return self._updatable(session, table_handle, None)

    def finish_delete(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        """Delete the rows with staged keys."""
        return self._finish(table_handle, fragments, "finish_delete")

    def get_update_row_id_column_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> ColumnHandle:
        """Return the primary key."""
        return self.get_merge_row_id_column_handle(session, table_handle)

    def begin_update(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> JdbcUpdatableTableHandle:
        """Create a stage; NOT_SUPPORTED for a computed column."""
        handle = table_handle_of(table_handle)
        names = tuple(column.name for column in updated_columns)
        for column in (handle.column(name) for name in names):
            if column.generated or column.always:
                raise computed_error(self._store, handle, column)
        return self._updatable(session, table_handle, names)

    def finish_update(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        """Update the rows with staged keys."""
        return self._finish(table_handle, fragments, "finish_update")

    def _updatable(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated: tuple[str, ...] | None,
    ) -> JdbcUpdatableTableHandle:
        self.get_merge_row_id_column_handle(session, table_handle)
        handle = table_handle_of(table_handle)
        self._store.check_room(handle.name, len(handle.columns), len(handle.key))
        parts = {name: getattr(handle, name) for name in handle.__dataclass_fields__}
        return JdbcUpdatableTableHandle(
            **parts, stage=self._transaction.begin_stage(session, handle), updated=updated
        )

    def _finish(
        self, table_handle: ConnectorTableHandle, fragments: Collection[bytes], step: str
    ) -> ConnectorOutputMetadata:
        table_handle = own(table_handle, JdbcUpdatableTableHandle)
        attempts = read_fragments(fragments)
        if not attempts:
            return ConnectorOutputMetadata()
        writer = self._transaction.writer()
        self._transaction.check_unchanged()
        stage = self._transaction.collect(table_handle, table_handle.stage, attempts)
        updated = {_CASE: table_handle.updated or ()}
        return Changes(
            self._store, writer, table_handle, stage, updated, step, whole_rows=False
        ).apply()
