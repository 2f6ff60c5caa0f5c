"""Tables held as Arrow data by the driver: the store for trying, teaching and testing.

A table is a list of versions, each an immutable Arrow table. A statement reads the version that was current when it looked the
table up; its changes travel from the tasks in fragments, make the next version in ``finish_merge``, and become visible in ``commit``.
Row ids are positions within a version (of bucketed tables: bucket and position).
"""

from __future__ import annotations

import itertools
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.connectors.memory_changes import apply_changes
from rowmerge_nb.connectors.memory_handles import (
    MemoryInsertTableHandle,
    MemoryMergeTableHandle,
    MemoryPartitioningHandle,
    MemoryTableHandle,
    MemoryTransactionHandle,
    table_handle_of,
    transaction_number,
)
from rowmerge_nb.connectors.memory_io import (
    MemoryBucketFunction,
    MemoryPageSinkProvider,
    MemoryPageSourceProvider,
    MemoryRowIdBucketFunction,
    RowIdColumn,
    SplitStore,
)
from rowmerge_nb.connectors.memory_tables import TABLE_PROPERTIES, check_content, checked_metadata, schema_of
from rowmerge_nb.connectors.memory_updatable import UpdatableMemoryMetadata
from rowmerge_nb.errors import ConnectorError, ExecutionError
from rowmerge_nb.spi.connector import Connector
from rowmerge_nb.spi.handles import ColumnHandle, ConnectorTableVersion, SchemaTableName, own
from rowmerge_nb.spi.layout import ConnectorNodePartitioningProvider, ConnectorTableLayout
from rowmerge_nb.spi.metadata import ConnectorTableMetadata, ConnectorViewDefinition
from rowmerge_nb.spi.operations import RowChangeParadigm
from rowmerge_nb.spi.output import ConnectorOutputMetadata
from rowmerge_nb.spi.page_source import ConnectorSplitManager
from rowmerge_nb.spi.types import BIGINT, INTEGER, row_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rowmerge_nb.spi.handles import (
        ConnectorInsertTableHandle,
        ConnectorMergeTableHandle,
        ConnectorPartitioningHandle,
        ConnectorSession,
        ConnectorSplit,
        ConnectorTableHandle,
        ConnectorTransactionHandle,
    )
    from rowmerge_nb.spi.layout import BucketFunction
    from rowmerge_nb.spi.page_source import Constraint
    from rowmerge_nb.spi.types import Type

__all__ = ["MemoryConnector", "MemoryTableHandle"]

PARTITION_PLACES = 1 << 16
"""Partition values are hashed to this many places: far more than there are writers, so that these stay evenly loaded."""


@dataclass
class _Table:
    metadata: ConnectorTableMetadata
    versions: dict[int, pa.Table]

    @property
    def current(self) -> int:
        return max(self.versions)


@dataclass
class _Transaction:
    """What a transaction has read, and what it will make visible: per table its next state, None for a dropped one.

    Views likewise; of schemas whether they are there.
    """

    read: dict[SchemaTableName, int] = field(default_factory=dict)
    pinned: dict[tuple[SchemaTableName, int], pa.Table] = field(default_factory=dict)
    tables: dict[SchemaTableName, _Table | None] = field(default_factory=dict)
    views: dict[SchemaTableName, ConnectorViewDefinition | None] = field(default_factory=dict)
    schemas: dict[str, bool] = field(default_factory=dict)


class MemoryConnector(Connector):
    """Tables in the driver's memory.

    Args:
        keep_versions: how many former versions of each table are kept for looking back.
        schemas: the schemas that are there from the beginning.

    >>> connector = MemoryConnector()
    >>> connector.name, sorted(connector.get_table_properties())[0]
    ('memory', 'bucket_count')
    """

    name = "memory"
    commits_in_thread = True

    def __init__(self, keep_versions: int = 5, schemas: Iterable[str] = ("default",)) -> None:
        self.keep_versions = keep_versions
        self._schemas = set(schemas)
        self._views: dict[SchemaTableName, ConnectorViewDefinition] = {}
        self._lock = threading.RLock()
        self._tables: dict[SchemaTableName, _Table] = {}
        self._transactions: dict[int, _Transaction] = {}
        self._numbers = itertools.count(1)
        self._versions = itertools.count(1)
        self._splits = SplitStore()

    # -- contract -------------------------------------------------------------------------------------------------

    def begin_transaction(self) -> MemoryTransactionHandle:
        """Begin a transaction."""
        handle = MemoryTransactionHandle(next(self._numbers))
        self._transactions[handle.number] = _Transaction()
        return handle

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> ConnectorTableVersion | None:
        """Make the transaction's tables visible, all of them or none; give the version of the one that has changed.

        Raises:
            ExecutionError: TRANSACTION_CONFLICT if another transaction changed one of them since it was read.
        """
        with self._lock:
            transaction = self._transactions.pop(transaction_number(transaction_handle))
            for name, version in transaction.read.items():
                current = self._tables[name].current if name in self._tables else 0
                if name in transaction.tables and current != version:
                    msg = f"Table '{name}' was changed by another statement (version {version} was read, {current} is there now)"
                    raise ExecutionError(msg, code="TRANSACTION_CONFLICT", step="commit", hint="Run the statement again.")
            changed = {name: self._kept(table) for name, table in transaction.tables.items() if table is not None}
            others = {name: table for name, table in self._tables.items() if name not in transaction.tables}
            # All of it becomes visible by one assignment; the files of what is gone are nobody's afterwards.
            self._tables, self._views, self._schemas = (
                {**others, **changed},
                self.views_of(transaction),
                self.schemas_of(transaction),
            )
            with suppress(OSError):
                for name in transaction.tables:
                    versions = set(changed[name].versions) if name in changed else set()
                    self._splits.forget(name, versions, set(self._transactions))
                self._splits.sweep(set(self._transactions))
            return ConnectorTableVersion(next(iter(changed.values())).current) if len(changed) == 1 else None

    def _kept(self, table: _Table) -> _Table:
        """Give a table with the versions that are kept."""
        return replace(table, versions={version: table.versions[version] for version in sorted(table.versions)[-self.keep_versions - 1 :]})

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Forget the transaction; tasks have left nothing behind, since their changes travel in fragments."""
        with self._lock:
            self._transactions.pop(transaction_number(transaction_handle), None)
            self._splits.sweep(set(self._transactions))

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> MemoryMetadata:
        """Give the metadata of a transaction."""
        return MemoryMetadata(self, self._transactions[transaction_number(transaction_handle)])

    def get_split_manager(self) -> MemorySplitManager:
        """Give the split manager."""
        return MemorySplitManager(self)

    def get_page_source_provider(self) -> MemoryPageSourceProvider:
        """Give the provider of page sources."""
        return MemoryPageSourceProvider()

    def get_page_sink_provider(self) -> MemoryPageSinkProvider:
        """Give the provider of sinks."""
        return MemoryPageSinkProvider()

    def get_node_partitioning_provider(self) -> MemoryPartitioningProvider:
        """Give the provider of bucket functions."""
        return MemoryPartitioningProvider()

    def get_table_properties(self) -> Mapping[str, str]:
        """Give the table properties that CREATE TABLE accepts."""
        return TABLE_PROPERTIES

    def close(self) -> None:
        """Remove the files that large tables are read from."""
        self._splits.close()

    # -- beyond the contract --------------------------------------------------------------------------------------

    def put(self, metadata: ConnectorTableMetadata, data: pa.Table) -> None:
        """Make a table with content, or replace one, outside of any statement.

        Args:
            metadata: its name, columns and properties.
            data: its rows; column types are cast to those of the metadata.
        """
        checked = checked_metadata(metadata)
        data = data.cast(schema_of(checked.columns))
        check_content(checked, data)
        with self._lock:
            version = self.next_version()
            if checked.name in self._views:
                msg = f"View already exists: '{checked.name}'"
                raise ConnectorError(msg, code="TABLE_ALREADY_EXISTS", hint="Choose another name, or DROP VIEW before.")
            self._schemas.add(checked.name.schema)
            self._tables[checked.name] = _Table(checked, {version: data.combine_chunks()})
            self._splits.forget(checked.name, {version}, set(self._transactions))
            self._splits.sweep(set(self._transactions))

    def read(self, name: SchemaTableName, version: int | None = None) -> pa.Table:
        """Give the rows of a table's version; by default of the current one.

        Raises:
            ConnectorError: TABLE_NOT_FOUND, or NOT_FOUND for a version that is not kept; the message lists those that are.
        """
        with self._lock:
            table = self._tables.get(name)
            if table is None:
                msg = f"Table '{name}' does not exist"
                raise ConnectorError(msg, code="TABLE_NOT_FOUND")
            wanted = table.current if version is None else version
            if wanted not in table.versions:
                msg = f"Version {wanted} of table '{name}' is not kept; there are {sorted(table.versions)}"
                raise ConnectorError(msg, code="NOT_FOUND")
            return table.versions[wanted]

    def partitions(self, name: SchemaTableName, version: int | None = None) -> pa.Table:
        """Give the partitions of a table's version: their values, a column per transform, and how many rows each has.

        Raises:
            ConnectorError: as `read` does; NOT_FOUND for a table without partitions.
        """
        data = self.read(name, version)
        with self._lock:
            transforms = MemoryTableHandle(name, 0, self._tables[name].metadata).transforms
        if not transforms:
            msg = f"Table '{name}' has no partitions"
            raise ConnectorError(msg, code="NOT_FOUND", hint="CREATE TABLE ... WITH (partitioned_by = ARRAY['...']) makes some.")
        values = {str(t): t.apply(data.column(t.column).combine_chunks()) for t in transforms}
        counted = pa.table(values).group_by(list(values)).aggregate([([], "count_all")])
        return counted.rename_columns([*values, "row_count"]).sort_by([(column, "ascending") for column in values])

    def versions(self, name: SchemaTableName) -> tuple[int, ...]:
        """Give the numbers of the versions that are kept, oldest first."""
        with self._lock:
            return tuple(sorted(self._tables[name].versions))

    def table_of(self, transaction: _Transaction, name: SchemaTableName) -> _Table | None:
        """Give a table as a transaction sees it."""
        with self._lock:
            return transaction.tables[name] if name in transaction.tables else self._tables.get(name)

    def has_table(self, name: SchemaTableName) -> bool:
        """Tell whether there is a table of this name."""
        with self._lock:
            return name in self._tables

    def views_of(self, transaction: _Transaction) -> dict[SchemaTableName, ConnectorViewDefinition]:
        """Give all views as a transaction sees them."""
        with self._lock:
            return {name: view for name, view in {**self._views, **transaction.views}.items() if view is not None}

    def schemas_of(self, transaction: _Transaction) -> set[str]:
        """Give all schemas as a transaction sees them."""
        with self._lock:
            return {name for name, there in {**dict.fromkeys(self._schemas, True), **transaction.schemas}.items() if there}

    def names(self) -> tuple[SchemaTableName, ...]:
        """Give the names of all tables, sorted."""
        with self._lock:
            return tuple(sorted(self._tables, key=str))

    def splits_of(self, handle: MemoryTableHandle) -> Sequence[ConnectorSplit]:
        """Cut a table's version into splits."""
        with self._lock:
            return self._splits.splits(handle.name, handle.version, self._find(handle))

    def next_version(self) -> int:
        """Give a version number that no table has had: a table that is dropped and made again is another one."""
        return next(self._versions)

    def _find(self, handle: MemoryTableHandle) -> pa.Table:
        pending = [t.tables.get(handle.name) for t in self._transactions.values()]
        for transaction in self._transactions.values():
            if (handle.name, handle.version) in transaction.pinned:
                return transaction.pinned[handle.name, handle.version]
        for table in [self._tables.get(handle.name), *pending]:
            if table is not None and handle.version in table.versions:
                return table.versions[handle.version]
        msg = f"Version {handle.version} of table '{handle.name}' is gone; it was dropped or replaced meanwhile"
        raise ConnectorError(msg, code="TRANSACTION_CONFLICT", hint="Run the statement again.")


class MemoryMetadata(UpdatableMemoryMetadata):
    """Tables as one transaction sees them."""

    def __init__(self, connector: MemoryConnector, transaction: _Transaction) -> None:
        self._connector = connector
        self._transaction = transaction

    def get_table_handle(self, session: ConnectorSession, name: SchemaTableName) -> MemoryTableHandle | None:
        """Give a handle for the current version of a table."""
        table = self._connector.table_of(self._transaction, name)
        if table is None:
            return None
        self._transaction.read.setdefault(name, table.current)
        self._transaction.pinned[name, table.current] = table.versions[table.current]
        return MemoryTableHandle(name, table.current, table.metadata)

    def get_versioned_table_handle(
        self, session: ConnectorSession, name: SchemaTableName, version: ConnectorTableVersion
    ) -> MemoryTableHandle | None:
        """Give a handle for a version that is kept."""
        table, number = self._connector.table_of(self._transaction, name), version.version
        if table is None or not isinstance(number, int) or number not in table.versions:
            return None
        self._transaction.pinned[name, number] = table.versions[number]
        return MemoryTableHandle(name, number, table.metadata)

    def get_table_metadata(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ConnectorTableMetadata:
        """Give a table's columns and properties."""
        return table_handle_of(table_handle).metadata

    def list_tables(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        """Give the names of all tables."""
        return self._connector.names()

    def row_count(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> int | None:
        """Give the number of rows, which is always known."""
        handle = table_handle_of(table_handle)
        table = self._connector.table_of(self._transaction, handle.name)
        return table.versions[handle.version].num_rows if table is not None and handle.version in table.versions else None

    def create_table(self, session: ConnectorSession, metadata: ConnectorTableMetadata) -> None:
        """Make an empty table, visible with the commit."""
        checked = checked_metadata(metadata)
        self._transaction.read.setdefault(checked.name, 0)
        self._transaction.tables[checked.name] = _Table(
            checked, {self._connector.next_version(): schema_of(checked.columns).empty_table()}
        )

    def drop_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        """Remove a table with the commit."""
        self._transaction.tables[table_handle_of(table_handle).name] = None

    def truncate_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        """Make an empty version of a table."""
        handle = table_handle_of(table_handle)
        self._replace(handle, schema_of(handle.metadata.columns).empty_table())

    def schema_exists(self, session: ConnectorSession, schema: str) -> bool:
        """Tell whether there is a schema of this name."""
        return schema in self._connector.schemas_of(self._transaction)

    def list_schemas(self, session: ConnectorSession) -> Sequence[str]:
        """Give the names of all schemas."""
        return sorted(self._connector.schemas_of(self._transaction))

    def create_schema(self, session: ConnectorSession, schema: str) -> None:
        """Make a schema, visible with the commit."""
        self._transaction.schemas[schema] = True

    def drop_schema(self, session: ConnectorSession, schema: str) -> None:
        """Remove a schema with the commit."""
        self._transaction.schemas[schema] = False

    stores_views = True
    shows_own_changes = True

    def get_view(self, session: ConnectorSession, name: SchemaTableName) -> ConnectorViewDefinition | None:
        """Give a view."""
        return self._connector.views_of(self._transaction).get(name)

    def list_views(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        """Give the names of all views."""
        return sorted(self._connector.views_of(self._transaction), key=str)

    def create_view(self, session: ConnectorSession, view: ConnectorViewDefinition) -> None:
        """Store a view, visible with the commit."""
        self._transaction.views[view.name] = view

    def drop_view(self, session: ConnectorSession, name: SchemaTableName) -> None:
        """Remove a view with the commit."""
        self._transaction.views[name] = None

    def begin_insert(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, columns: Sequence[ColumnHandle]
    ) -> MemoryInsertTableHandle:
        """Begin an INSERT."""
        return MemoryInsertTableHandle(table_handle_of(table_handle))

    def finish_insert(
        self, session: ConnectorSession, insert_handle: ConnectorInsertTableHandle, fragments: Collection[bytes]
    ) -> ConnectorOutputMetadata:
        """Append the rows of the fragments."""
        insert_handle = own(insert_handle, MemoryInsertTableHandle)
        return self._apply(insert_handle.table_handle, fragments)

    def get_row_change_paradigm(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> RowChangeParadigm:
        """Give the paradigm of the statement if it asks for one, else the table's; this connector has both."""
        chosen = session.properties.get("row_change_paradigm") or table_handle_of(table_handle).metadata.properties["paradigm"]
        return RowChangeParadigm[chosen]

    def get_merge_row_id_column_handle(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ColumnHandle:
        """Give the row id: a position, or bucket and position."""
        bucketed = table_handle_of(table_handle).bucket_count is not None
        return RowIdColumn("$row_id", row_of([("bucket", INTEGER), ("position", BIGINT)]) if bucketed else BIGINT)

    def get_insert_layout(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ConnectorTableLayout | None:
        """Give the partition and bucket columns in table order.

        Bucketed tables, and those whose partitions are made by transforms, place rows by a function of their own.
        """
        handle = table_handle_of(table_handle)
        bucketed_by, transforms = handle.columns_of("bucketed_by"), handle.transforms
        placing = {*(transform.column for transform in transforms), *bucketed_by}
        names = tuple(column.name for column in handle.metadata.columns if column.name in placing)
        if not names:
            return None
        if handle.bucket_count is None and all(transform.name == "identity" for transform in transforms):
            return ConnectorTableLayout(names)
        if handle.bucket_count is None:
            arguments = tuple(names.index(transform.column) for transform in transforms)
            return ConnectorTableLayout(names, MemoryPartitioningHandle(PARTITION_PLACES, arguments, transforms))
        arguments = tuple(names.index(name) for name in bucketed_by)
        return ConnectorTableLayout(names, MemoryPartitioningHandle(handle.bucket_count, arguments))

    def get_update_layout(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ConnectorTableLayout | None:
        """Give the bucket of the row id for bucketed tables; others have none."""
        count = table_handle_of(table_handle).bucket_count
        return None if count is None else ConnectorTableLayout((), MemoryPartitioningHandle(count, None))

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> MemoryMergeTableHandle:
        """Begin a MERGE on the version that the handle names."""
        return MemoryMergeTableHandle(table_handle_of(table_handle))

    def finish_merge(
        self, session: ConnectorSession, merge_handle: ConnectorMergeTableHandle, fragments: Collection[bytes]
    ) -> ConnectorOutputMetadata:
        """Make the next version out of the fragments; it becomes visible with the commit."""
        return self._apply(table_handle_of(merge_handle.get_table_handle()), fragments)

    def _apply(self, handle: MemoryTableHandle, fragments: Collection[bytes]) -> ConnectorOutputMetadata:
        self._replace(handle, fragments=fragments)
        return ConnectorOutputMetadata()

    def _replace(self, handle: MemoryTableHandle, data: pa.Table | None = None, fragments: Collection[bytes] = ()) -> None:
        """Make the next version of a table: other data, or that of the handle's version with changes."""
        table = self._connector.table_of(self._transaction, handle.name)
        if table is None or handle.version not in table.versions:
            msg = f"Table '{handle.name}' was dropped or replaced while the statement ran"
            raise ConnectorError(msg, code="TRANSACTION_CONFLICT", hint="Run the statement again.")
        changed = apply_changes(table.versions[handle.version], fragments) if data is None else data
        check_content(table.metadata, changed)
        self._transaction.tables[handle.name] = _Table(
            table.metadata, {**table.versions, self._connector.next_version(): changed}
        )


class MemorySplitManager(ConnectorSplitManager):
    """Cuts tables into splits of some hundred thousand rows."""

    def __init__(self, connector: MemoryConnector) -> None:
        self._connector = connector

    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[ConnectorSplit]:
        """Give the splits of a table's version; one at least, if only to say that there are no rows."""
        return self._connector.splits_of(table_handle_of(table_handle))


class MemoryPartitioningProvider(ConnectorNodePartitioningProvider):
    """Bucket functions of bucketed and partitioned tables."""

    def get_bucket_function(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        partitioning_handle: ConnectorPartitioningHandle,
        partition_channel_types: tuple[Type, ...],
    ) -> BucketFunction:
        """Give the function of bucket columns or partition values, or that of the row id."""
        if not isinstance(partitioning_handle, MemoryPartitioningHandle):
            return super().get_bucket_function(transaction_handle, session, partitioning_handle, partition_channel_types)
        count, arguments = partitioning_handle.bucket_count, partitioning_handle.arguments
        if arguments is None:
            return MemoryRowIdBucketFunction(count)
        return MemoryBucketFunction(count, arguments, partitioning_handle.transforms)
