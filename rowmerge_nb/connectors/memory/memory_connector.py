"""The memory connector.

A table is a list of versions, each an immutable Arrow table. Tasks send changes in fragments,
``finish_merge`` builds the next version, and ``commit`` makes it visible. Row ids are positions
within a version (in bucketed tables: bucket and position).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError, ExecutionError
from rowmerge_nb.connectors.memory.memory_handles import (
    MemoryTableHandle,
    table_handle_of,
)
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.connectors.memory.partitioning import MemoryPartitioningProvider
from rowmerge_nb.connectors.memory.reading import MemoryPageSourceProvider, SplitStore
from rowmerge_nb.connectors.memory.state import (
    KEEPING,
    MemoryTable,
    MemoryTransaction,
    replaced_error,
)
from rowmerge_nb.connectors.memory.table_properties import (
    TABLE_PROPERTIES,
    check_content,
    checked_metadata,
    schema_of,
)
from rowmerge_nb.connectors.memory.turns import Turns
from rowmerge_nb.connectors.memory.writing import MemoryPageSinkProvider
from rowmerge_nb.spi import (
    Connector,
    ConnectorSession,
    ConnectorSplit,
    ConnectorSplitManager,
    ConnectorTableHandle,
    ConnectorTableMetadata,
    ConnectorTableVersion,
    ConnectorTransactionHandle,
    ConnectorViewDefinition,
    Constraint,
    SchemaTableName,
)
from rowmerge_nb.spi.connector import always
from rowmerge_nb.spi.transactions import NumberedTransactionHandle, Transactions


class MemoryConnector(Connector):
    """Tables in the driver's memory.

    Args:
        keep_versions: the number of former versions retained per table, for time travel and undo.
            Each holds all of its rows.

    >>> connector = MemoryConnector()
    >>> connector.name, sorted(connector.get_table_properties())[0]
    ('memory', 'bucket_count')
    """

    name = "memory"
    commits_in_thread = True
    checked_after_commit = False

    get_page_source_provider = always(MemoryPageSourceProvider())
    get_page_sink_provider = always(MemoryPageSinkProvider())
    get_node_partitioning_provider = always(MemoryPartitioningProvider())
    get_table_properties = always(TABLE_PROPERTIES)

    def __init__(self, keep_versions: int = 5, schemas: Iterable[str] = ("default",)) -> None:
        self.keep_versions = keep_versions
        self._schemas = set(schemas)
        self._views: dict[SchemaTableName, ConnectorViewDefinition] = {}
        self._lock = threading.RLock()
        self._tables: dict[SchemaTableName, MemoryTable] = {}
        self._transactions = Transactions[MemoryTransaction](self.name)
        self._versions = itertools.count(1)
        self._splits = SplitStore()
        self.turns = Turns()

    # -- contract

    def begin_transaction(self) -> NumberedTransactionHandle:
        # Another thread may be iterating over the transactions.
        with self._lock:
            return self._transactions.begin(MemoryTransaction)

    def commit(
        self, transaction_handle: ConnectorTransactionHandle
    ) -> ConnectorTableVersion | None:
        """Make all changes visible, or none; return the new version if one table has changed.

        Raises:
            ExecutionError: TRANSACTION_CONFLICT if another transaction changed a table since it was
                read, unless rows were only appended; CONSTRAINT_VIOLATION if these repeat a key.
        """
        number = self._transactions.number(transaction_handle)
        try:
            with self._lock:
                return self._commit(self._transactions.pop(number))
        finally:
            self.turns.leave(number)

    def _commit(self, transaction: MemoryTransaction) -> ConnectorTableVersion | None:
        for name, (handle, rows) in transaction.appended.items():
            table = self._tables.get(name)
            if table is not None and table.current != transaction.read.get(name):
                self.append(transaction, handle, rows)
        for name, version in transaction.read.items():
            current = self._tables[name].current if name in self._tables else 0
            if name in transaction.tables and current != version:
                raise ExecutionError(
                    f"Table '{name}' was changed by another statement (version"
                    f" {version} was read, {current} is current)",
                    code="TRANSACTION_CONFLICT",
                    step="commit",
                    hint="Run the statement again.",
                )
        changed = {
            name: table.pruned(self.keep_versions)
            for name, table in transaction.tables.items()
            if table is not None
        }
        others = {
            name: table for name, table in self._tables.items() if name not in transaction.tables
        }
        # One assignment makes everything visible; files of dropped versions are removed afterwards.
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
        if len(changed) != 1:
            return None
        ((name, new),) = changed.items()
        made_from = transaction.read.get(name)
        return ConnectorTableVersion(
            new.current, made_from=ConnectorTableVersion(made_from) if made_from else None
        )

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        number = self._transactions.number(transaction_handle)
        with self._lock:
            self._transactions.pop(number, None)
            self._splits.sweep(set(self._transactions))
        self.turns.leave(number)

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> MemoryMetadata:
        return MemoryMetadata(self, self._transactions.of(transaction_handle))

    def get_split_manager(self) -> MemorySplitManager:
        return MemorySplitManager(self)

    def close(self) -> None:
        self._splits.close()

    # -- beyond the contract

    def put(self, metadata: ConnectorTableMetadata, data: pa.Table) -> None:
        checked = checked_metadata(metadata)
        data = data.cast(schema_of(checked.columns))
        check_content(checked, data)
        with self._lock:
            version = self.next_version()
            if checked.name in self._views:
                raise ConnectorError(
                    f"View already exists: '{checked.name}'",
                    code="TABLE_ALREADY_EXISTS",
                    hint="Choose another name, or DROP VIEW first.",
                )
            self._schemas.add(checked.name.schema)
            table = MemoryTable.of(checked, version, data.combine_chunks())
            if checked.name in self._tables:
                table = table.following(self._tables[checked.name])
            table = self._tables[checked.name] = table.pruned(self.keep_versions)
            self._splits.forget(checked.name, set(table.versions), set(self._transactions))
            self._splits.sweep(set(self._transactions))

    def current_version(self, name: SchemaTableName) -> int | None:
        """Return the number of a table's version, or None if the table does not exist."""
        table = self._tables.get(name)
        return None if table is None else table.current

    def read(self, name: SchemaTableName, version: int | None = None) -> pa.Table:
        """Return the rows of a table's version, by default the current one."""
        with self._lock:
            table = self._tables.get(name)
            if table is None:
                raise ConnectorError(f"Table '{name}' does not exist", code="TABLE_NOT_FOUND")
            number = table.current if version is None else version
            if number not in table.versions:
                raise ConnectorError(table.missing(number), code="NOT_FOUND", hint=KEEPING)
            return table.versions[number]

    def partitions(self, name: SchemaTableName, version: int | None = None) -> pa.Table:
        """Return a column per transform, and the number of rows."""
        data = self.read(name, version)
        with self._lock:
            transforms = MemoryTableHandle(name, 0, self._tables[name].metadata).transforms
        if not transforms:
            raise ConnectorError(
                f"Table '{name}' has no partitions",
                code="NOT_FOUND",
                hint="CREATE TABLE ... WITH (partitioned_by = ARRAY['...']) makes some.",
            )
        values = {str(t): t.apply(data.column(t.column).combine_chunks()) for t in transforms}
        counts = pa.table(values).group_by(list(values)).aggregate([([], "count_all")])
        return counts.rename_columns([*values, "row_count"]).sort_by(
            [(column, "ascending") for column in values]
        )

    def versions(self, name: SchemaTableName) -> tuple[int, ...]:
        with self._lock:
            return tuple(sorted(self._tables[name].versions))

    def table_of(self, transaction: MemoryTransaction, name: SchemaTableName) -> MemoryTable | None:
        with self._lock:
            return (
                transaction.tables[name] if name in transaction.tables else self._tables.get(name)
            )

    def append(
        self, transaction: MemoryTransaction, handle: MemoryTableHandle, rows: pa.Table
    ) -> None:
        """Append rows to a table's current version, which may be newer than the handle's."""
        with self._lock:
            table = self._tables.get(handle.name)
            if table is None or not table.takes(handle.metadata, handle.version):
                raise replaced_error(handle.name)
            all_rows = pa.concat_tables([table.versions[table.current], rows]).combine_chunks()
            check_content(table.metadata, all_rows)
            transaction.read[handle.name] = table.current
            transaction.tables[handle.name] = replace(
                table, versions={**table.versions, self.next_version(): all_rows}
            )
            transaction.appended[handle.name] = (handle, rows)

    def has_table(self, name: SchemaTableName) -> bool:
        with self._lock:
            return name in self._tables

    def views_of(
        self, transaction: MemoryTransaction
    ) -> dict[SchemaTableName, ConnectorViewDefinition]:
        with self._lock:
            return {
                name: view
                for name, view in {**self._views, **transaction.views}.items()
                if view is not None
            }

    def schemas_of(self, transaction: MemoryTransaction) -> set[str]:
        with self._lock:
            return {
                name
                for name, exists in {
                    **dict.fromkeys(self._schemas, True),
                    **transaction.schemas,
                }.items()
                if exists
            }

    def names(self) -> tuple[SchemaTableName, ...]:
        with self._lock:
            return tuple(sorted(self._tables, key=str))

    def splits_of(self, handle: MemoryTableHandle) -> Sequence[ConnectorSplit]:
        with self._lock:
            return self._splits.splits(handle.name, handle.version, self._find(handle))

    def next_version(self) -> int:
        return next(self._versions)

    def _find(self, handle: MemoryTableHandle) -> pa.Table:
        pending = [t.tables.get(handle.name) for t in self._transactions.values()]
        for transaction in self._transactions.values():
            if (handle.name, handle.version) in transaction.pinned:
                return transaction.pinned[handle.name, handle.version]
        for table in [self._tables.get(handle.name), *pending]:
            if table is not None and handle.version in table.versions:
                return table.versions[handle.version]
        raise ConnectorError(
            f"Version {handle.version} of table '{handle.name}' no longer exists; it"
            " was dropped or replaced meanwhile",
            code="TRANSACTION_CONFLICT",
            hint="Run the statement again.",
        )


class MemorySplitManager(ConnectorSplitManager):
    def __init__(self, connector: MemoryConnector) -> None:
        self._connector = connector

    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[ConnectorSplit]:
        return self._connector.splits_of(table_handle_of(table_handle))
