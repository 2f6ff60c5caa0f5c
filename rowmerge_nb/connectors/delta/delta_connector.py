"""The Delta connector: tables of a directory, by delta-rs."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.arguments import checked_path
from rowmerge_nb.connectors.delta import log, notes
from rowmerge_nb.connectors.delta.delta_handles import DeltaSplit, delta_table
from rowmerge_nb.connectors.delta.delta_metadata import (
    TABLE_PROPERTIES,
    DeltaMetadata,
    DeltaTransaction,
)
from rowmerge_nb.connectors.delta.delta_procedures import TABLE_PROCEDURES
from rowmerge_nb.connectors.delta.delta_pruning import may_matter
from rowmerge_nb.connectors.delta.delta_reader import DeltaPageSourceProvider
from rowmerge_nb.connectors.delta.delta_writer import DeltaPageSinkProvider
from rowmerge_nb.connectors.delta.folders import Folders
from rowmerge_nb.connectors.delta.partitions import DeltaPartitioningProvider
from rowmerge_nb.connectors.shared.orphans import orphaned_path
from rowmerge_nb.connectors.shared.retention import Retention
from rowmerge_nb.spi import (
    Connector,
    ConnectorSession,
    ConnectorSplitManager,
    ConnectorTableHandle,
    ConnectorTableVersion,
    ConnectorTransactionHandle,
    Constraint,
    Orphan,
)
from rowmerge_nb.spi.connector import always
from rowmerge_nb.spi.transactions import NumberedTransactionHandle, Transactions

if TYPE_CHECKING:
    from collections.abc import Sequence

SPLIT_BYTES: Final = 32 * 1024 * 1024


class DeltaConnector(Connector):
    """Delta Lake tables in a directory.

    Args:
        directory: the directory; each schema is a folder in it, and each table a folder in its
            schema's. Tables directly in it are tables of the schema ``default``. The first CREATE
            creates it.
        min_retention: the minimum age of what ``vacuum`` removes; running statements of other
            programs may need newer files.

    >>> import tempfile
    >>> connector = DeltaConnector(tempfile.mkdtemp())
    >>> connector.name, sorted(connector.get_table_properties())
    ('delta', ['partitioned_by', 'type_widening_enabled'])
    """

    name = "delta"
    checked_after_commit = False
    commits_in_thread = True

    get_page_source_provider = always(DeltaPageSourceProvider())
    get_page_sink_provider = always(DeltaPageSinkProvider())
    get_node_partitioning_provider = always(DeltaPartitioningProvider())
    get_table_properties = always(TABLE_PROPERTIES)
    get_table_procedures = always(TABLE_PROCEDURES)

    def __init__(
        self, directory: str | Path, *, min_retention: timedelta = timedelta(days=7)
    ) -> None:
        self._min_retention = Retention.of(min_retention)
        self._directory = Path(checked_path(directory, "directory")).absolute()
        log.require_library()
        self._folders = Folders(self._directory)
        self._lock = threading.Lock()
        self._transactions = Transactions[DeltaTransaction](self.name)

    @property
    def shared_directory(self) -> Path | None:
        return self._directory

    def begin_transaction(self) -> NumberedTransactionHandle:
        with self._lock:
            return self._transactions.begin(lambda _: DeltaTransaction())

    def commit(
        self, transaction_handle: ConnectorTransactionHandle
    ) -> ConnectorTableVersion | None:
        """Commit the transaction: a table gets at most one version."""
        transaction, version = self._transactions.of(transaction_handle), None
        for action in transaction.actions:
            version = action()
        self._end(transaction_handle, committed=True)
        return version

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        self._end(transaction_handle, committed=False)

    def _end(self, handle: ConnectorTransactionHandle, *, committed: bool) -> None:
        with self._lock:
            transaction = self._transactions.pop(self._transactions.number(handle), None)
        if transaction is not None:
            for folder in transaction.folders:
                notes.end(
                    folder, transaction.prefix, transaction.committed_files if committed else ()
                )

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> DeltaMetadata:
        return DeltaMetadata(
            self._folders, self._transactions.of(transaction_handle), self._min_retention
        )

    def get_split_manager(self) -> DeltaSplitManager:
        return DeltaSplitManager(self._transactions)

    def orphans(self) -> list[Orphan]:
        """List what statements of dead processes of this machine have left, folders without files,
        and the folders of dropped tables that could not be removed.
        """
        return [
            *(orphan for folder in self._folders.all_folders() for orphan in notes.orphans(folder)),
            *map(orphaned_path, self._folders.dropped()),
        ]

    def remove_orphans(self) -> list[Orphan]:
        leftovers = self.orphans()
        for orphan in leftovers:
            notes.remove_leftover(Path(orphan.name))
        for folder in self._folders.all_folders():
            notes.remove_empty(folder)
        return [orphan for orphan in leftovers if not Path(orphan.name).exists()]


class DeltaSplitManager(ConnectorSplitManager):
    def __init__(self, transactions: Transactions[DeltaTransaction]) -> None:
        self._transactions = transactions

    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[DeltaSplit]:
        handle = delta_table(table_handle)
        if handle.version < 0:
            return []
        transaction = self._transactions.of(transaction_handle)
        with log.log_errors(handle.name):
            relevant = may_matter(log.add_actions(transaction.table(handle)), constraint)
        return [
            DeltaSplit(file, number, start, start + SPLIT_BYTES)
            for number, file in enumerate(transaction.files(handle))
            if relevant[number]
            for start in range(0, max(file.size, 1), SPLIT_BYTES)
        ]
