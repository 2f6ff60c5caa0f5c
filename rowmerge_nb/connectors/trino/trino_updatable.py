"""The older flow of UPDATE and DELETE on a plugin: its page sources change what they have read.

Trino had this flow until the machinery of MERGE replaced it. A plugin has one of the two.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.front_end import either
from rowmerge_nb.connectors.trino.host_channel import pack_batch, unpack_fragments
from rowmerge_nb.connectors.trino.trino_handles import (
    TrinoColumnHandle,
    TrinoTableHandle,
    java_handle,
    wire_of,
)
from rowmerge_nb.connectors.trino.type_names import type_of
from rowmerge_nb.spi.handles import own
from rowmerge_nb.spi.metadata import ConnectorMetadata
from rowmerge_nb.spi.output import ConnectorOutputMetadata
from rowmerge_nb.spi.updatable import UpdatablePageSource

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rowmerge_nb.connectors.trino.trino_scans import TrinoPageSource
    from rowmerge_nb.connectors.trino.trino_transactions import TrinoTransaction
    from rowmerge_nb.spi.handles import ColumnHandle, ConnectorSession, ConnectorTableHandle
    from rowmerge_nb.spi.page import Page

ROW_ID: Final = "$row_id"
MERGE_SINCE: Final = 393
"""The first version of Trino with MERGE."""
_PARTITION_KEY: Final = "PARTITION_KEY"
"""The type of partition columns in the handles of Hive's plugin."""


@dataclass(frozen=True, repr=False)
class TrinoUpdatableTableHandle(TrinoTableHandle):
    """A table whose rows are changed by the page sources that read them."""

    updated: tuple[TrinoColumnHandle, ...] = ()
    original: TrinoTableHandle | None = None

    def is_omitted(self, column: TrinoColumnHandle) -> bool:
        """Return whether the pages of an UPDATE lack a requested column.

        Hive's plugin also reads the data columns that the UPDATE keeps, and then omits partition
        columns.
        """
        if not self.updated or column.java is None:
            return False
        content = json.loads(column.java.json)
        return isinstance(content, dict) and content.get("columnType") == _PARTITION_KEY


class UpdatableTrinoMetadata(ConnectorMetadata):
    _transaction: TrinoTransaction

    def get_delete_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ColumnHandle:
        if not self._transaction.has_flow(session, "updatable"):
            return super().get_delete_row_id_column_handle(session, table_handle)
        return self._row_id(session, "delete_row_id", table_handle)

    def begin_delete(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableHandle:
        if not self._transaction.has_flow(session, "updatable"):
            return super().begin_delete(session, table_handle)
        return self._begin(session, "begin_delete", table_handle)

    def finish_delete(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        return self._finish(session, "finish_delete", table_handle, fragments)

    def get_update_row_id_column_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> ColumnHandle:
        if not self._transaction.has_flow(session, "updatable"):
            return super().get_update_row_id_column_handle(session, table_handle, updated_columns)
        return self._row_id(session, "update_row_id", table_handle, updated_columns)

    def begin_update(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> ConnectorTableHandle:
        if not self._transaction.has_flow(session, "updatable"):
            return super().begin_update(session, table_handle, updated_columns)
        return self._begin(session, "begin_update", table_handle, updated_columns)

    def finish_update(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        return self._finish(session, "finish_update", table_handle, fragments)

    def _check_merge(self, session: ConnectorSession) -> None:
        if not self._transaction.has_flow(session, "merge"):
            flow = either("flow='updatable'", "%%merge --flow updatable")
            raise ConnectorError(
                f"The plugin is for Trino {self._transaction.trino_version}, but MERGE"
                f" came with Trino {MERGE_SINCE}",
                hint=f"Run UPDATE and DELETE with {flow}. For MERGE, use a later version of the plugin.",
            )

    def _row_id(
        self,
        session: ConnectorSession,
        call: str,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle] = (),
    ) -> TrinoColumnHandle:
        table = own(table_handle, TrinoTableHandle)
        answer = self._transaction.request(
            session, call, table=table.java.wire, **_updated(table, updated_columns)
        )
        return TrinoColumnHandle(
            ROW_ID,
            type_of(answer["type"], ROW_ID),
            java=java_handle(answer["handle"]),
            signature=answer["type"],
        )

    def _begin(
        self,
        session: ConnectorSession,
        call: str,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle] = (),
    ) -> TrinoUpdatableTableHandle:
        table = own(table_handle, TrinoTableHandle)
        answer = self._transaction.request(
            session, call, table=table.java.wire, **_updated(table, updated_columns)
        )
        java = java_handle(answer["table"])
        self._transaction.note_lost_fields(java)
        parts = {each.name: getattr(table, each.name) for each in fields(TrinoTableHandle)}
        updated = tuple(table.columns_of(updated_columns))
        return TrinoUpdatableTableHandle(**{**parts, "java": java}, updated=updated, original=table)

    def _finish(
        self,
        session: ConnectorSession,
        call: str,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        table = own(table_handle, TrinoUpdatableTableHandle)
        self._transaction.finish(session, call, fragments, table=table.java.wire)
        return ConnectorOutputMetadata(notices=tuple(self._transaction.notices))


class TrinoUpdatablePageSource(UpdatablePageSource):
    """An UpdatablePageSource of a plugin.

    Args:
        omitted: one row with the split's values of the columns that `source` lacks; None if the
            split has no rows.
    """

    def __init__(
        self,
        source: TrinoPageSource,
        table: TrinoUpdatableTableHandle,
        columns: Sequence[TrinoColumnHandle],
        omitted: Page | None = None,
    ) -> None:
        super().__init__(source)
        self._columns = columns
        self._omitted = omitted
        self._connection = source.connection
        self._row_id = next(column for column in columns if column.name == ROW_ID)
        self._updated_types = [column.signature for column in table.updated]

    def get_next_page(self) -> Page | None:
        page, omitted = self.source.get_next_page(), self._omitted
        if page is None or omitted is None:
            return page
        names = [column.name for column in self._columns]
        arrays = [
            pa.repeat(omitted[name][0], page.num_rows)
            if name in omitted.schema.names
            else page[name]
            for name in names
        ]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def delete_rows(self, row_ids: pa.Array) -> None:
        page = pa.RecordBatch.from_arrays([row_ids], names=[ROW_ID])
        self._connection.request("delete_rows", pack_batch(page), types=[self._row_id.signature])

    def update_rows(self, page: Page, column_value_and_row_id_channels: Sequence[int]) -> None:
        channels = list(column_value_and_row_id_channels)
        signatures = [*self._updated_types, self._row_id.signature]
        types = dict(zip(channels, signatures, strict=True))
        self._connection.request(
            "update_rows",
            pack_batch(page),
            types=[types[channel] for channel in range(page.num_columns)],
            channels=channels,
        )

    def finish(self) -> list[bytes]:
        result, payload = self._connection.request("finish_source")
        return unpack_fragments(result["lengths"], payload)

    def abort(self) -> None:
        self._connection.request("abort_source")


def _updated(table: TrinoTableHandle, columns: Sequence[ColumnHandle]) -> dict[str, Any]:
    if not columns:
        return {}
    return {"updated": [wire_of(column.java) for column in table.columns_of(columns)]}
