"""The metadata of memory tables in a transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.memory.altering import altered, refuse_placing
from rowmerge_nb.connectors.memory.memory_handles import (
    MemoryInsertTableHandle,
    MemoryMergeTableHandle,
    MemoryPartitioningHandle,
    MemoryTableHandle,
    table_handle_of,
)
from rowmerge_nb.connectors.memory.partitioning import PARTITION_BUCKETS
from rowmerge_nb.connectors.memory.reading import MemoryRowIdColumn
from rowmerge_nb.connectors.memory.row_changes import appended_rows, apply_changes
from rowmerge_nb.connectors.memory.state import MemoryTable, MemoryTransaction, replaced_error
from rowmerge_nb.connectors.memory.table_properties import (
    check_content,
    checked_metadata,
    schema_of,
)
from rowmerge_nb.connectors.memory.updatable_pages import MemoryUpdatableTableHandle
from rowmerge_nb.connectors.shared.updatable_metadata import UpdatableMetadata
from rowmerge_nb.spi import (
    ColumnHandle,
    ColumnMetadata,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorOutputMetadata,
    ConnectorSession,
    ConnectorTableHandle,
    ConnectorTableLayout,
    ConnectorTableMetadata,
    ConnectorTableVersion,
    ConnectorViewDefinition,
    DropDefault,
    RowChangeParadigm,
    SaveMode,
    SchemaTableName,
    SetDefault,
    SetProperties,
    TableStatistics,
    own,
)
from rowmerge_nb.spi.alterations import SetColumnComment, SetTableComment
from rowmerge_nb.spi.types import BIGINT, INTEGER, row_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Mapping, Sequence

    from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
    from rowmerge_nb.spi.alterations import Alteration

_KEEPING_VERSIONS: Final = (
    SetTableComment,
    SetColumnComment,
    SetDefault,
    DropDefault,
    SetProperties,
)


class MemoryMetadata(UpdatableMetadata):
    def __init__(self, connector: MemoryConnector, transaction: MemoryTransaction) -> None:
        self._connector = connector
        self._transaction = transaction

    def get_table_handle(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> MemoryTableHandle | None:
        table = self._connector.table_of(self._transaction, name)
        if table is None:
            return None
        self._transaction.read.setdefault(name, table.current)
        self._transaction.pinned[name, table.current] = table.versions[table.current]
        return MemoryTableHandle(name, table.current, table.metadata)

    def wait_for_turn(
        self,
        session: ConnectorSession,
        name: SchemaTableName,
        seconds: float,
        *,
        appends: bool = False,
    ) -> bool:
        return self._connector.turns.wait(
            name, self._transaction.number, seconds, exclusive=not appends
        )

    def get_versioned_table_handle(
        self, session: ConnectorSession, name: SchemaTableName, version: ConnectorTableVersion
    ) -> MemoryTableHandle | None:
        table = self._connector.table_of(self._transaction, name)
        if table is None:
            return None
        number = table.version_of(version, session.time_zone)
        self._transaction.pinned[name, number] = table.versions[number]
        return MemoryTableHandle(name, number, table.metadata_of(number))

    def get_table_version(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableVersion:
        return ConnectorTableVersion(table_handle_of(table_handle).version)

    def get_version_time(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> dt.datetime | None:
        handle = table_handle_of(table_handle)
        table = self._connector.table_of(self._transaction, handle.name)
        return None if table is None else table.committed.get(handle.version)

    def restore_table(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        version: ConnectorTableVersion | None,
        dropped: Sequence[str] = (),
    ) -> None:
        handle = table_handle_of(table_handle)
        table = self._connector.table_of(self._transaction, handle.name)
        if table is None or version is None:
            raise ConnectorError.invalid(
                f"Table '{handle.name}' has no version without a number",
                hint="Give the number of a retained version.",
            )
        for name in dropped:
            refuse_placing(table.metadata, name, "dropped")
        columns = tuple(column for column in table.metadata.columns if column.name not in dropped)
        restored = table.with_columns(columns) if dropped else table
        self._replace(
            handle,
            restored.rows_of(table.version_of(version, session.time_zone)),
            metadata=restored.metadata,
        )

    def get_table_metadata(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableMetadata:
        return table_handle_of(table_handle).metadata

    def list_tables(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        return self._connector.names()

    def row_count(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> int | None:
        handle = table_handle_of(table_handle)
        table = self._connector.table_of(self._transaction, handle.name)
        return (
            table.versions[handle.version].num_rows
            if table is not None and handle.version in table.versions
            else None
        )

    def get_table_statistics(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> TableStatistics:
        handle = table_handle_of(table_handle)
        table = self._connector.table_of(self._transaction, handle.name)
        if table is None or handle.version not in table.versions:
            return TableStatistics()
        rows = table.versions[handle.version]
        return TableStatistics(rows.num_rows, rows.nbytes)

    def create_table(
        self,
        session: ConnectorSession,
        metadata: ConnectorTableMetadata,
        save_mode: SaveMode = SaveMode.FAIL,
    ) -> None:
        """Create a table; the table that it replaces is lost with all its versions."""
        checked = checked_metadata(metadata)
        if save_mode is SaveMode.REPLACE:
            # This notes the replaced version, which the commit compares.
            self.get_table_handle(session, checked.name)
            self._transaction.appended.pop(checked.name, None)
        self._transaction.read.setdefault(checked.name, 0)
        rows = schema_of(checked.columns).empty_table()
        self._transaction.tables[checked.name] = MemoryTable.of(
            checked, self._connector.next_version(), rows
        )

    def drop_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        name = table_handle_of(table_handle).name
        self._transaction.appended.pop(name, None)
        self._transaction.tables[name] = None

    def truncate_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        handle = table_handle_of(table_handle)
        self._replace(handle, schema_of(handle.metadata.columns).empty_table())

    def get_evolved_table_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnMetadata],
    ) -> MemoryTableHandle:
        handle = table_handle_of(table_handle)
        old = {column.name: column for column in handle.metadata.columns}
        # Columns that place rows keep their types, since their hashes depend on them.
        placing = {*handle.columns_of("bucketed_by"), *(t.column for t in handle.transforms)}
        changes = {column.name: column for column in columns if column.name not in placing}
        metadata = replace(handle.metadata, columns=tuple({**old, **changes}.values()))
        return replace(handle, metadata=metadata, column_changes=frozenset(changes))

    def alter_table(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, alteration: Alteration
    ) -> None:
        """Alter a table. Only comments, defaults and properties keep former versions."""
        handle = table_handle_of(table_handle)
        rows = self._transaction.pinned[handle.name, handle.version]
        metadata, altered_rows = altered(handle.metadata, rows, alteration)
        if isinstance(alteration, _KEEPING_VERSIONS):
            # A new version, so that concurrent alterations conflict.
            self._replace(handle, rows, metadata=metadata)
            return
        check_content(metadata, altered_rows)
        self._transaction.appended.pop(handle.name, None)
        self._transaction.tables[handle.name] = None
        self._transaction.read.setdefault(metadata.name, 0)
        self._transaction.tables[metadata.name] = MemoryTable.of(
            metadata, self._connector.next_version(), altered_rows
        )

    def schema_exists(self, session: ConnectorSession, schema: str) -> bool:
        return schema in self._connector.schemas_of(self._transaction)

    def list_schemas(self, session: ConnectorSession) -> Sequence[str]:
        return sorted(self._connector.schemas_of(self._transaction))

    def create_schema(self, session: ConnectorSession, schema: str) -> None:
        self._transaction.schemas[schema] = True

    def drop_schema(self, session: ConnectorSession, schema: str) -> None:
        self._transaction.schemas[schema] = False

    cascades_schemas = True
    stores_comments = True
    stores_defaults = True
    keeps_sizes = True
    stores_views = True
    replaces_tables = True
    evolves_tables = True
    evolves_types = True
    shows_own_changes = True
    keeps_versions = True

    def get_view(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> ConnectorViewDefinition | None:
        return self._connector.views_of(self._transaction).get(name)

    def list_views(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        return sorted(self._connector.views_of(self._transaction), key=str)

    def create_view(self, session: ConnectorSession, view: ConnectorViewDefinition) -> None:
        self._transaction.views[view.name] = view

    def drop_view(self, session: ConnectorSession, name: SchemaTableName) -> None:
        self._transaction.views[name] = None

    def begin_insert(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> MemoryInsertTableHandle:
        return MemoryInsertTableHandle(table_handle_of(table_handle))

    def finish_insert(
        self,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        handle = own(insert_handle, MemoryInsertTableHandle).table_handle
        transaction, name = self._transaction, handle.name
        if name in transaction.tables and name not in transaction.appended:
            # The transaction created the table or changed its rows.
            return self._apply(handle, fragments)
        earlier = [transaction.appended[name][1]] if name in transaction.appended else []
        self._connector.append(
            transaction,
            handle,
            pa.concat_tables(
                [*earlier, appended_rows(schema_of(handle.metadata.columns), fragments)]
            ),
        )
        return ConnectorOutputMetadata()

    def get_row_change_paradigm(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> RowChangeParadigm:
        paradigm = (
            session.properties.get("row_change_paradigm")
            or table_handle_of(table_handle).metadata.properties["paradigm"]
        )
        return RowChangeParadigm[paradigm]

    def get_merge_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ColumnHandle:
        bucketed = table_handle_of(table_handle).bucket_count is not None
        return MemoryRowIdColumn(
            "$row_id", row_of([("bucket", INTEGER), ("position", BIGINT)]) if bucketed else BIGINT
        )

    def get_insert_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        handle = table_handle_of(table_handle)
        bucketed_by, transforms = handle.columns_of("bucketed_by"), handle.transforms
        placing = {*(transform.column for transform in transforms), *bucketed_by}
        names = tuple(column.name for column in handle.metadata.columns if column.name in placing)
        if not names:
            return None
        if handle.bucket_count is not None:
            arguments = tuple(map(names.index, bucketed_by))
            partitioning = MemoryPartitioningHandle(handle.bucket_count, arguments)
            return ConnectorTableLayout(names, partitioning)
        if all(transform.name == "identity" for transform in transforms):
            return ConnectorTableLayout(names)
        arguments = tuple(names.index(transform.column) for transform in transforms)
        partitioning = MemoryPartitioningHandle(PARTITION_BUCKETS, arguments, transforms)
        return ConnectorTableLayout(names, partitioning)

    def get_update_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        count = table_handle_of(table_handle).bucket_count
        if count is None:
            return None
        return ConnectorTableLayout((), MemoryPartitioningHandle(count, None))

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> MemoryMergeTableHandle:
        return MemoryMergeTableHandle(table_handle_of(table_handle))

    def finish_merge(
        self,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        return self._apply(table_handle_of(merge_handle.get_table_handle()), fragments)

    def _begin_updatable(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle] | None,
    ) -> MemoryUpdatableTableHandle:
        handle = table_handle_of(table_handle)
        names = None if updated_columns is None else tuple(c.name for c in updated_columns)
        return MemoryUpdatableTableHandle(
            handle.name, handle.version, handle.metadata, updated=names
        )

    def _finish_updatable(
        self, table_handle: ConnectorTableHandle, fragments: Collection[bytes], step: str
    ) -> ConnectorOutputMetadata:
        return self._apply(table_handle_of(table_handle), fragments)

    def _apply(
        self, handle: MemoryTableHandle, fragments: Collection[bytes]
    ) -> ConnectorOutputMetadata:
        self._replace(
            handle, fragments=fragments, metadata=handle.metadata if handle.column_changes else None
        )
        return ConnectorOutputMetadata()

    def _replace(
        self,
        handle: MemoryTableHandle,
        data: pa.Table | None = None,
        fragments: Collection[bytes] = (),
        metadata: ConnectorTableMetadata | None = None,
    ) -> None:
        table = self._connector.table_of(self._transaction, handle.name)
        if table is None or not table.has_columns_of(handle.version):
            raise replaced_error(handle.name)
        definition = metadata or table.metadata
        if [(c.name, c.type) for c in definition.columns] != [
            (c.name, c.type) for c in table.metadata.columns
        ]:
            table = table.with_columns(definition.columns)
        changed = apply_changes(table.rows_of(handle.version), fragments) if data is None else data
        check_content(definition, changed)
        versions = {**table.versions, self._connector.next_version(): changed}
        self._transaction.appended.pop(handle.name, None)
        self._transaction.tables[handle.name] = replace(
            table, metadata=definition, versions=versions
        )
