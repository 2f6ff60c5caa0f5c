"""The Iceberg connector: tables of any pyiceberg catalog, by default one in the warehouse
directory.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.arguments import checked, checked_path
from rowmerge_nb.base.errors import ConnectorError, error_text
from rowmerge_nb.connectors.iceberg.avro import guard_decoder
from rowmerge_nb.connectors.iceberg.files import file_io
from rowmerge_nb.connectors.iceberg.housekeeping import (
    Removal,
    Search,
    folders_without_table,
    listing_of,
    remove_attempts,
    remove_folder,
)
from rowmerge_nb.connectors.iceberg.iceberg_catalog import Tables
from rowmerge_nb.connectors.iceberg.iceberg_handles import iceberg_table
from rowmerge_nb.connectors.iceberg.iceberg_metadata import (
    IcebergMetadata,
    IcebergTransaction,
    Upkeep,
)
from rowmerge_nb.connectors.iceberg.notes import SUFFIX
from rowmerge_nb.connectors.iceberg.opened_catalogs import (
    embedded_catalog,
    is_in_memory,
    named_catalog,
    other_owner,
)
from rowmerge_nb.connectors.iceberg.ownership import named_locations
from rowmerge_nb.connectors.iceberg.partitions import IcebergPartitioningProvider
from rowmerge_nb.connectors.iceberg.planning import content_of, matching_content, splits_of
from rowmerge_nb.connectors.iceberg.pruning import expression_of
from rowmerge_nb.connectors.iceberg.reader import IcebergPageSourceProvider
from rowmerge_nb.connectors.iceberg.servers import local_path
from rowmerge_nb.connectors.iceberg.table_definition import TABLE_PROPERTIES
from rowmerge_nb.connectors.iceberg.table_procedures import (
    TABLE_PROCEDURES,
    procedures_of,
)
from rowmerge_nb.connectors.iceberg.version_three import support_version_3
from rowmerge_nb.connectors.iceberg.writer import IcebergPageSinkProvider
from rowmerge_nb.connectors.shared.arguments import checked_table_name
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
    Procedure,
    SchemaTableName,
)
from rowmerge_nb.spi.connector import always
from rowmerge_nb.spi.transactions import NumberedTransactionHandle, Transactions

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from rowmerge_nb.connectors.iceberg.census import Census
    from rowmerge_nb.connectors.iceberg.housekeeping import Listing
    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergSplit, IcebergTableHandle

_MAX_ENDED: Final = 1_000
"""The number of ended statements whose files are recognized by prefix; leftovers of older
statements are recognized by age.
"""


_LATE_SECONDS: Final = 5.0
"""The time after a rollback until the statement's tasks have ended."""


class IcebergConnector(Connector):
    """Iceberg tables.

    Args:
        warehouse: the directory of the tables and of the catalog's file ``catalog.sqlite``.
        catalog: another catalog instead: an object of pyiceberg, or a name in its configuration
            (``.pyiceberg.yaml``).
        properties: pyiceberg's properties of a catalog by name, such as ``{"type": "rest", "uri":
            "https://..."}``; with a warehouse, connections to other storage, such as
            ``{"s3.endpoint": "https://..."}``.
        min_retention: the minimum age of what ``expire_snapshots`` and ``remove_orphan_files``
            remove; running statements may need newer files.

    Raises:
        SetupError: pyiceberg is not installed.
        ConnectorError: ICEBERG_CATALOG_ERROR if the catalog does not answer.
        RowMergeError: INVALID_ARGUMENTS.

    >>> import tempfile
    >>> connector = IcebergConnector(tempfile.mkdtemp())
    >>> connector.name, connector.catalog.list_namespaces()
    ('iceberg', [('default',)])
    >>> connector.close()
    """

    name = "iceberg"
    checked_after_commit = False

    get_page_source_provider = always(IcebergPageSourceProvider())
    get_page_sink_provider = always(IcebergPageSinkProvider())
    get_node_partitioning_provider = always(IcebergPartitioningProvider())
    get_table_properties = always(TABLE_PROPERTIES)
    get_table_procedures = always(TABLE_PROCEDURES)

    def __init__(
        self,
        warehouse: str | Path | None = None,
        *,
        catalog: str | Catalog | None = None,
        properties: Mapping[str, str] | None = None,
        min_retention: timedelta = timedelta(days=7),
    ) -> None:
        if (warehouse is None) == (catalog is None):
            raise ConnectorError.invalid(
                "An Iceberg connector has either a warehouse directory or a catalog",
                hint="Write IcebergConnector('warehouse/') or IcebergConnector(catalog='name').",
            )
        retention = Retention.of(min_retention)
        checked(
            {} if properties is None else properties,
            "properties",
            lambda value: isinstance(value, Mapping) and all(isinstance(n, str) for n in value),
            "a mapping of names to values",
        )
        directory = (
            Path(checked_path(warehouse, "warehouse")).absolute() if warehouse is not None else None
        )
        self.catalog: Catalog
        if directory is not None:
            self.catalog = embedded_catalog(directory, properties)
        else:
            from rowmerge_nb.connectors.iceberg.trust import guard

            configured = (
                catalog
                if catalog is not None and not isinstance(catalog, str)
                else named_catalog(str(catalog), properties or {})
            )
            self.catalog = guard(configured)
        guard_decoder()
        support_version_3()
        # A catalog in memory has a separate database for each thread.
        self.commits_in_thread = not is_in_memory(self.catalog)
        self._directory = directory
        self._upkeep = Upkeep(retention, self._remove_orphans_of)
        self._tables = Tables(self.catalog, directory)
        self._lock = threading.Lock()
        self._transactions = Transactions[IcebergTransaction](self.name)
        self._ended_prefixes: deque[str] = deque(maxlen=_MAX_ENDED)
        self._late: list[tuple[float, IcebergTransaction]] = []
        self._problems = threading.local()

    # -- contract

    @property
    def shared_directory(self) -> Path | None:
        """The warehouse; None with another catalog, whose tables may be anywhere."""
        return self._directory

    def begin_transaction(self) -> NumberedTransactionHandle:
        if self._late:
            self._sweep(_LATE_SECONDS)
        with self._lock:
            return self._transactions.begin(lambda _: IcebergTransaction())

    def commit(
        self, transaction_handle: ConnectorTransactionHandle
    ) -> ConnectorTableVersion | None:
        """Commit the transaction: each table gets at most one snapshot."""
        transaction, version = self._transactions.of(transaction_handle), None
        try:
            for action in transaction.actions:
                version = action()
        except ConnectorError as error:
            transaction.is_submitted = error.changed is not False
            if transaction.is_submitted:
                self._forget(transaction_handle)
            raise
        self._end(transaction_handle)
        # Remove the files of a task's other attempts. The change is committed, so errors are
        # ignored.
        transaction.forget()
        with suppress(Exception):
            folders = {path.rsplit("/", 1)[0] for path in transaction.committed_files}
            for table in transaction.written_tables[:1]:
                io = file_io(table.io, table.location)
                remove_attempts(
                    io, folders, {transaction.prefix}, transaction.committed_files, deep=False
                )
        return version

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Remove all files of the transaction's tasks, unless a table may reference them."""
        transaction = self._transactions.get(self._transactions.number(transaction_handle))
        if transaction is None:
            return
        if transaction.is_submitted:
            self._forget(transaction_handle)
            return
        self._end(transaction_handle)
        if transaction.written_tables:
            with self._lock:
                self._late.append((time.monotonic(), transaction))
            self._remove_written(transaction)
        else:
            transaction.forget()
        for loaded in transaction.tables.values():
            if loaded is not None and loaded.folder is not None:
                remove_folder(loaded.folder)

    def _sweep(self, age: float) -> None:
        now = time.monotonic()
        with self._lock:
            ready = [transaction for since, transaction in self._late if now - since >= age]
            self._late = [
                (since, transaction) for since, transaction in self._late if now - since < age
            ]
        for transaction in ready:
            # Files that cannot be removed are listed among the orphans.
            with suppress(Exception):
                self._remove_written(transaction)

    def _remove_written(self, transaction: IcebergTransaction) -> None:
        for table in transaction.written_tables:
            io = file_io(table.io, table.location)
            metadata = table.properties.get(
                "write.metadata.path", f"{table.location}/metadata"
            ).rstrip("/")
            folders = {table.data_location, f"{table.location}/data", metadata}
            remove_attempts(io, folders, {transaction.prefix}, (), deep=True)

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> IcebergMetadata:
        return IcebergMetadata(
            self._tables, self._transactions.of(transaction_handle), self._upkeep
        )

    def get_split_manager(self) -> IcebergSplitManager:
        return IcebergSplitManager(self)

    def get_procedures(self) -> Sequence[Procedure]:
        return procedures_of(self._rollback_to_snapshot)

    def close(self) -> None:
        self._sweep(0)
        self.catalog.close()

    def splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> list[IcebergSplit]:
        """Return the splits of a scan; record its predicate for the commit's check."""
        handle = iceberg_table(table_handle)
        loaded = self._transactions.of(transaction_handle).loaded(handle)
        filtered = expression_of(constraint, loaded.table.schema())
        if not session.is_observation:
            loaded.scans.append(filtered)
        # Row ids number all files of the snapshot, whether or not they are read.
        whole = loaded.read or content_of(loaded.table, handle.snapshot)
        content = matching_content(loaded.table, handle.snapshot, whole, filtered)
        numbers = {entry.data_file.file_path: number for number, entry in enumerate(whole.data)}
        paths = (
            constraint.domains["$path"].values
            if "$path" in constraint.domains and loaded.shows_places
            else None
        )
        for selected_paths in (handle.only, paths):
            if selected_paths is not None:
                content.data = [
                    entry for entry in content.data if entry.data_file.file_path in selected_paths
                ]
        return splits_of(
            loaded.table, handle, content, constraint, numbers, places=loaded.shows_places
        )

    # -- beyond the contract

    def register_table(self, schema: str, name: str, metadata_location: str | Path) -> None:
        """Register a table by the location of its newest metadata file,
        ``.../metadata/00003-....metadata.json``.

        Raises:
            ConnectorError: TABLE_ALREADY_EXISTS (in another warehouse too), SCHEMA_NOT_FOUND or
                ICEBERG_INVALID_METADATA.
        """
        table = checked_table_name(schema, name)
        form = (
            "the location of a metadata file: a text such as '.../metadata/00003-....metadata.json'"
        )
        location = checked_path(
            checked(metadata_location, "metadata_location", lambda path: path != "", form),
            "metadata_location",
        )
        owner = other_owner(self._directory, location)
        if owner is not None:
            raise ConnectorError(
                f"'{location}' is a file of table '{owner[1]}' in the warehouse '{owner[0]}'",
                code="TABLE_ALREADY_EXISTS",
                hint=(
                    "A table belongs to one catalog only."
                    f" IcebergConnector('{owner[0]}').catalog.drop_table('{owner[1]}')"
                    " unregisters it there and keeps its files."
                ),
            )
        self._tables.register(table, location)

    def orphans(self, age: timedelta = timedelta(days=1)) -> list[Orphan]:
        """List files that no snapshot references: leftovers of failed statements and commits, of
        this and other engines.

        In a warehouse that includes folders of tables that were never committed. Outside of the
        warehouse, and of a table's own folder, only leftovers of this connector's statements and of
        dead processes are listed. Unreadable tables are skipped with all files that they name;
        while there is one, so are folders without a table. See `orphan_problems`.

        Args:
            age: the minimum age of files of unknown origin. Leftovers of ended statements and of
                dead processes on this machine have none.
        """
        return [orphan for orphan, _ in self._orphans(age)]

    def _remove_orphans_of(self, handle: IcebergTableHandle, age: timedelta) -> Removal:
        from rowmerge_nb.connectors.iceberg.commit_conflicts import conflict

        table = self._tables.load(handle.name)
        if table is None:
            conflict(handle.name, "it was dropped")
        removal = Removal(table.io)
        running, ended_prefixes = self._prefixes()
        listing = _listing(table)
        census = self._tables.census()
        if handle.name in census.errors:
            raise census.errors[handle.name]
        removal.problems += census.sentences
        search = self._search(listing, census, running, ended_prefixes, age)
        for orphan in search.orphans():
            if (
                orphan.modified is not None
                and listing.at.timestamp() - orphan.modified > age.total_seconds()
            ):
                removal.remove(orphan.name)
        removal.reasons.update(search.reasons)
        return removal

    def _search(
        self,
        listing: Listing,
        census: Census,
        running: Collection[str],
        ended_prefixes: Collection[str],
        age: timedelta,
    ) -> Search:
        table = listing.table
        owns = census.ownership(table).has
        return Search(
            listing,
            census.known_paths,
            running,
            ended_prefixes,
            age,
            owns,
            lambda folder: self._is_shared(table, folder),
        )

    def _rollback_to_snapshot(
        self,
        session: ConnectorSession,
        schema: str | None,
        table: str | None,
        snapshot_id: int | None,
    ) -> None:
        for word, value in (("schema", schema), ("table", table), ("snapshot_id", snapshot_id)):
            if value is None:
                raise ConnectorError(
                    f"{word} cannot be null",
                    code="INVALID_PROCEDURE_ARGUMENT",
                    hint="Give the name of a table, and the id of a snapshot.",
                )
        name = SchemaTableName(str(schema), str(table))
        transaction = self.begin_transaction()
        try:
            metadata = self.get_metadata(transaction)
            handle = metadata.get_table_handle(session, name)
            if handle is None:
                raise ConnectorError(
                    f"Table '{name}' not found",
                    code="NOT_FOUND",
                    hint="SHOW TABLES lists what there is.",
                )
            execute = metadata.get_table_handle_for_execute(
                session, handle, "ROLLBACK_TO_SNAPSHOT", {"snapshot_id": snapshot_id}, Constraint()
            )
            metadata.execute_table_execute(session, execute)
            self.commit(transaction)
        finally:
            self.rollback(transaction)

    def _prefixes(self) -> tuple[set[str], set[str]]:
        with self._lock:
            return {transaction.prefix for transaction in self._transactions.values()} - {""}, set(
                self._ended_prefixes
            )

    def _orphans(self, age: timedelta) -> list[tuple[Orphan, Table | None]]:
        # Folders first, then running statements, then tables: a table created meanwhile is not
        # mistaken for an orphan.
        folders = (
            {path for path in self._directory.glob("*/*") if path.is_dir()}
            if self._directory is not None
            else set()
        )
        running, ended_prefixes = self._prefixes()
        listings, unlisted = self._listings()
        census = self._tables.census()
        for table, error in unlisted:
            census.refuse(table, error)
        leftovers: list[tuple[Orphan, Table | None]] = []
        readable = {table.name() for table in census.tables}
        for listing in listings:
            table = listing.table
            if table.name() in readable:
                leftovers += [
                    (orphan, table)
                    for orphan in self._search(
                        listing, census, running, ended_prefixes, age
                    ).orphans()
                ]
        # The folders of an unreadable table are unknown.
        if not census.errors:
            uncommitted = list(folders_without_table(_unused(folders, census.tables), running, age))
            # The process of a folder's note may have committed the table after the tables were
            # read.
            unused = (
                _unused({Path(orphan.name) for orphan in uncommitted}, self._tables.all())
                if uncommitted
                else set()
            )
            leftovers += [(orphan, None) for orphan in uncommitted if Path(orphan.name) in unused]
            leftovers += [
                (orphan, None) for orphan in self._tables.dropped_folders(census.known_paths, age)
            ]
        self._problems.problems = census.sentences
        return sorted(leftovers, key=lambda pair: pair[0].name)

    def _listings(self) -> tuple[list[Listing], list[tuple[Table, ConnectorError]]]:
        listings, unlisted = [], []
        for table in self._tables.all():
            try:
                listings.append(_listing(table))
            except ConnectorError as error:
                unlisted.append((table, error))
        return listings, unlisted

    def orphan_problems(self) -> list[str]:
        """Return which tables this thread's last `orphans` or `remove_orphans` skipped, and why."""
        return list(getattr(self._problems, "problems", ()))

    def _is_shared(self, table: Table, folder: str) -> bool:
        """Return whether a folder may contain unknown files of others."""
        if not f"{folder}/".startswith(f"{table.location().rstrip('/')}/"):
            return True
        path = local_path(folder)
        if self._directory is None:
            return False
        return path is None or not Path(path).resolve().is_relative_to(self._directory.resolve())

    def remove_orphans(self, age: timedelta = timedelta(days=1)) -> list[Orphan]:
        leftovers, removed = self._orphans(age), []
        # Notes first: a statement without its note does not commit.
        for orphan, table in sorted(leftovers, key=lambda pair: not pair[0].name.endswith(SUFFIX)):
            if table is None:
                remove_folder(Path(orphan.name))
                self._tables.release_folder(orphan.name)
                if not Path(orphan.name).exists():
                    removed.append(orphan)
                continue
            removal = Removal(table.io)
            removal.remove(orphan.name)
            if removal.removed:
                removed.append(orphan)
        return sorted(removed, key=lambda orphan: orphan.name)

    def _end(self, handle: ConnectorTransactionHandle) -> None:
        prefix = self._forget(handle).prefix
        if prefix:
            self._ended_prefixes.append(prefix)

    def _forget(self, handle: ConnectorTransactionHandle) -> IcebergTransaction:
        with self._lock:
            transaction = self._transactions.pop(self._transactions.number(handle))
        transaction.stop()
        return transaction


class IcebergSplitManager(ConnectorSplitManager):
    def __init__(self, connector: IcebergConnector) -> None:
        self._connector = connector

    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[IcebergSplit]:
        return self._connector.splits(transaction_handle, session, table_handle, constraint)


def _unused(folders: Collection[Path], tables: Sequence[Table]) -> set[Path]:
    locations = [location for table in tables for location in named_locations(table)]
    used = [Path(path) for path in map(local_path, locations) if path]
    return {folder for folder in folders if not any(path.is_relative_to(folder) for path in used)}


def _listing(table: Table) -> Listing:
    try:
        return listing_of(table)
    except (OSError, ValueError, ImportError) as error:
        raise ConnectorError(
            f"The folders of Iceberg table '{'.'.join(table.name())}' cannot be read:"
            f" {error_text(error)}",
            code="ICEBERG_FILESYSTEM_ERROR",
            hint=(
                "Correct the table's properties write.data.path and write.metadata.path, or check"
                " that its folders can be read from here."
            ),
        ) from error
