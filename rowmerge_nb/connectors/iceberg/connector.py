"""The Iceberg connector: tables of any catalog that pyiceberg speaks to, by default of one in the warehouse directory."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError, checked, checked_path, error_text
from rowmerge_nb.connectors.iceberg.avro import guard_decoder
from rowmerge_nb.connectors.iceberg.files import file_io
from rowmerge_nb.connectors.iceberg.handles import iceberg_table
from rowmerge_nb.connectors.iceberg.housekeeping import (
    Removal,
    Search,
    folders_without_table,
    listing_of,
    remove_attempts,
    remove_folder,
)
from rowmerge_nb.connectors.iceberg.iceberg_catalog import Tables, embedded_catalog, is_in_memory, named_catalog, other_owner
from rowmerge_nb.connectors.iceberg.metadata import IcebergMetadata, IcebergTransaction, Upkeep
from rowmerge_nb.connectors.iceberg.notes import SUFFIX
from rowmerge_nb.connectors.iceberg.partitions import IcebergPartitioningProvider
from rowmerge_nb.connectors.iceberg.planning import content_of, splits_of
from rowmerge_nb.connectors.iceberg.pruning import expression_of
from rowmerge_nb.connectors.iceberg.reader import IcebergPageSourceProvider
from rowmerge_nb.connectors.iceberg.servers import local_path
from rowmerge_nb.connectors.iceberg.table_definition import TABLE_PROPERTIES
from rowmerge_nb.connectors.iceberg.table_procedures import TABLE_PROCEDURES, Retention, procedures_of
from rowmerge_nb.connectors.iceberg.writer import IcebergPageSinkProvider
from rowmerge_nb.connectors.shared.arguments import checked_table_name
from rowmerge_nb.spi.connector import Connector, Orphan, always
from rowmerge_nb.spi.handles import ConnectorTableVersion, SchemaTableName
from rowmerge_nb.spi.page_source import ConnectorSplitManager, Constraint
from rowmerge_nb.spi.transactions import NumberedTransactionHandle, Transactions

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from rowmerge_nb.connectors.iceberg.census import Census
    from rowmerge_nb.connectors.iceberg.handles import IcebergSplit, IcebergTableHandle
    from rowmerge_nb.connectors.iceberg.housekeeping import Listing
    from rowmerge_nb.spi.handles import ConnectorSession, ConnectorTableHandle, ConnectorTransactionHandle
    from rowmerge_nb.spi.procedures import Procedure

_REMEMBERED: Final = 1_000
"""Of so many ended statements the files are known by name; what older ones have left is told by its age."""


_LATE_SECONDS: Final = 5.0
"""After so long the tasks of a statement that was rolled back have ended."""


class IcebergConnector(Connector):
    """Iceberg tables.

    Args:
        warehouse: where tables are made; the catalog's file ``catalog.sqlite`` is in it.
        catalog: another catalog instead: one of pyiceberg's, or the name of one in its configuration (``.pyiceberg.yaml``).
        properties: what pyiceberg is to know of a catalog by name, for instance ``{"type": "rest", "uri": "https://..."}``;
            with a warehouse, connections to further places, for instance ``{"s3.endpoint": "https://..."}``. Tables' own properties are none.
        min_retention: what is younger than that ``ALTER TABLE ... EXECUTE expire_snapshots`` and ``remove_orphan_files`` leave alone,
            whatever they are asked for: statements that run may need it.

    Raises:
        SetupError: pyiceberg is not installed.
        ConnectorError: ICEBERG_CATALOG_ERROR if the catalog does not answer.
        RowMergeError: INVALID_ARGUMENTS, an argument is not of its form.

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
            raise ConnectorError(
                "An Iceberg connector has either a warehouse directory or a catalog",
                code="INVALID_ARGUMENTS",
                hint="Write IcebergConnector('warehouse/') or IcebergConnector(catalog='name').",
            )
        checked(min_retention, "min_retention", _is_retention, "a datetime.timedelta that is not negative")
        checked({} if properties is None else properties, "properties", _are_properties, "a mapping of names to values")
        directory = Path(checked_path(warehouse, "warehouse")).absolute() if warehouse is not None else None
        self.catalog: Catalog
        if directory is not None:
            self.catalog = embedded_catalog(directory, properties)
        else:
            from rowmerge_nb.connectors.iceberg.trust import guard

            made = (
                catalog if catalog is not None and not isinstance(catalog, str) else named_catalog(str(catalog), properties or {})
            )
            self.catalog = guard(made)
        guard_decoder()
        # A catalog in memory shows every thread a database of its own.
        self.commits_in_thread = not is_in_memory(self.catalog)
        self._directory = directory
        self._upkeep = Upkeep(Retention(min_retention / timedelta(days=1), "d"), self._remove_orphans_of)
        self._tables = Tables(self.catalog, directory)
        self._lock = threading.Lock()
        self._transactions = Transactions[IcebergTransaction](self.name)
        self._ended: deque[str] = deque(maxlen=_REMEMBERED)
        self._late: list[tuple[float, IcebergTransaction]] = []
        self._searched = threading.local()

    # -- contract -------------------------------------------------------------------------------------------------

    @property
    def shared_directory(self) -> Path | None:
        """The warehouse; None with a catalog of another kind, whose tables may be anywhere."""
        return self._directory

    def begin_transaction(self) -> NumberedTransactionHandle:
        """Begin a transaction."""
        if self._late:
            self._sweep(_LATE_SECONDS)
        with self._lock:
            return self._transactions.begin(lambda _: IcebergTransaction())

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> ConnectorTableVersion | None:
        """Make the transaction's changes visible: a table gets one snapshot, or none.

        Raises:
            ConnectorError: TRANSACTION_CONFLICT if another commit is in the way; ICEBERG_CATALOG_ERROR, ICEBERG_COMMIT_ERROR.
        """
        transaction, version = self._transactions.of(transaction_handle), None
        try:
            for action in transaction.actions:
                version = action()
        except ConnectorError as error:
            transaction.asked = error.changed is not False
            if transaction.asked:
                self._forget(transaction_handle)
            raise
        self._end(transaction_handle)
        # What other attempts of a task have left is beside what was committed. The change is there by now: nothing may fail any more.
        transaction.forget()
        with suppress(Exception):
            folders = {path.rsplit("/", 1)[0] for path in transaction.kept}
            for table in transaction.written[:1]:
                io = file_io(table.io, table.location)
                remove_attempts(io, folders, {transaction.prefix}, transaction.kept, deep=False)
        return version

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Undo the transaction: remove all files that its tasks have written, unless they may belong to a table by now."""
        transaction = self._transactions.get(self._transactions.number(transaction_handle))
        if transaction is None:
            return
        if transaction.asked:
            self._forget(transaction_handle)
            return
        self._end(transaction_handle)
        if transaction.written:
            with self._lock:
                self._late.append((time.monotonic(), transaction))
            self._remove_written(transaction)
        else:
            transaction.forget()
        for loaded in transaction.tables.values():
            if loaded is not None and loaded.folder is not None:
                remove_folder(loaded.folder)

    def _sweep(self, age: float) -> None:
        """Remove what tasks have written after their statement was rolled back: Spark does not wait until they have ended.

        Args:
            age: for so many seconds tasks may go on; a statement that was rolled back later is left for the next time.
        """
        now = time.monotonic()
        with self._lock:
            ready = [transaction for since, transaction in self._late if now - since >= age]
            self._late = [(since, transaction) for since, transaction in self._late if now - since < age]
        for transaction in ready:
            # What cannot be removed now is listed among the orphans.
            with suppress(Exception):
                self._remove_written(transaction)

    def _remove_written(self, transaction: IcebergTransaction) -> None:
        """Remove what the tasks of a statement that has failed have written, its manifests, and first of all its notes."""
        for table in transaction.written:
            io = file_io(table.io, table.location)
            metadata = table.properties.get("write.metadata.path", f"{table.location}/metadata").rstrip("/")
            folders = {table.data_location, f"{table.location}/data", metadata}
            remove_attempts(io, folders, {transaction.prefix}, (), deep=True)

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> IcebergMetadata:
        """Return the metadata of a transaction."""
        return IcebergMetadata(self._tables, self._transactions.of(transaction_handle), self._upkeep)

    def get_split_manager(self) -> IcebergSplitManager:
        """Return the split manager."""
        return IcebergSplitManager(self)

    def get_procedures(self) -> Sequence[Procedure]:
        """Return what CALL can do."""
        return procedures_of(self._rollback_to_snapshot)

    def close(self) -> None:
        """Close the catalog."""
        self._sweep(0)
        self.catalog.close()

    def splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> list[IcebergSplit]:
        """Cut what a scan reads into splits; record its condition for the check of the commit, unless it is an observation."""
        handle = iceberg_table(table_handle)
        loaded = self._transactions.of(transaction_handle).loaded(handle)
        filtered = expression_of(constraint, loaded.table.schema())
        if not session.is_observation:
            loaded.scans.append(filtered)
        content = content_of(loaded.table, handle.snapshot, filtered)
        # Row ids number all files of the snapshot, whether or not they are read.
        whole = loaded.read or (content_of(loaded.table, handle.snapshot) if constraint.domains else content)
        numbers = {entry.data_file.file_path: number for number, entry in enumerate(whole.data)}
        paths = constraint.domains["$path"].values if "$path" in constraint.domains and loaded.shows_places else None
        for kept in (handle.only, paths):
            if kept is not None:
                content.data = [entry for entry in content.data if entry.data_file.file_path in kept]
        return splits_of(loaded.table, handle, content, constraint, numbers, places=loaded.shows_places)

    # -- beyond the contract --------------------------------------------------------------------------------------

    def register_table(self, schema: str, name: str, metadata_location: str | Path) -> None:
        """Adopt a table that is in no catalog yet, by the location of its newest metadata file.

        Args:
            schema: schema of the new table.
            name: its name.
            metadata_location: the file, ``.../metadata/00003-....metadata.json``.

        Raises:
            ConnectorError: TABLE_ALREADY_EXISTS, in another warehouse too, SCHEMA_NOT_FOUND or ICEBERG_INVALID_METADATA.
            RowMergeError: INVALID_ARGUMENTS for a name or a location that is none.
        """
        table = checked_table_name(schema, name)
        form = "the location of a metadata file: a text such as '.../metadata/00003-....metadata.json'"
        location = checked_path(
            checked(metadata_location, "metadata_location", lambda given: given != "", form), "metadata_location"
        )
        owner = other_owner(self._directory, location)
        if owner is not None:
            raise ConnectorError(
                f"'{location}' is a file of table '{owner[1]}' in the warehouse '{owner[0]}'",
                code="TABLE_ALREADY_EXISTS",
                hint=f"A table is in one catalog only. IcebergConnector('{owner[0]}').catalog.drop_table('{owner[1]}') takes it out there, and leaves its files.",
            )
        self._tables.register(table, location)

    def orphans(self, age: timedelta = timedelta(days=1)) -> list[Orphan]:
        """List files of tables that no snapshot knows: leftovers of failed statements and commits, of this and other engines.

        In a warehouse the folder of a table that was never made, since the process that made it has died, is one of them. Tables outside the
        warehouse may be another catalog's too, and folders outside of a table's own anybody's: of the files there only those of this
        connector's statements and of dead processes are. A table that cannot be read is left out with all files that it names, and as long
        as there is one, so are folders without a table: `orphan_problems` says which, and why.

        Args:
            age: how old a file must be at least. Files of this connector's own ended statements are listed at once, as are those of
                processes of this machine that have died; those of running statements never. Of other machines and other programs nothing
                is known but the age of their files.
        """
        return [orphan for orphan, _ in self._orphans(age)]

    def _remove_orphans_of(self, handle: IcebergTableHandle, age: timedelta) -> Removal:
        """Remove the files below a table's folders that no table of the catalog knows, if they are older than an age."""
        from rowmerge_nb.connectors.iceberg.commits import conflict

        table = self._tables.load(handle.name)
        if table is None:
            conflict(handle.name, "it was dropped")
        removal = Removal(table.io)
        running, ended = self._prefixes()
        listing = _listing(table)
        census = self._tables.census()
        if handle.name in census.errors:
            raise census.errors[handle.name]
        removal.problems += census.sentences
        search = self._search(listing, census, running, ended, age)
        for orphan in search.orphans():
            if orphan.modified is not None and listing.at.timestamp() - orphan.modified > age.total_seconds():
                removal.remove(orphan.name)
        removal.left.update(search.left)
        return removal

    def _search(
        self, listing: Listing, census: Census, running: Collection[str], ended: Collection[str], age: timedelta
    ) -> Search:
        """Return the search for orphans of a table, once its files are listed."""
        table = listing.table
        owns = census.ownership(table).has
        return Search(listing, census.known, running, ended, age, owns, lambda folder: self._is_shared(table, folder))

    def _rollback_to_snapshot(
        self, session: ConnectorSession, schema: str | None, table: str | None, snapshot_id: int | None
    ) -> None:
        """Make a former snapshot of a table the current one: what CALL does, in a transaction of its own."""
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
                raise ConnectorError(f"Table '{name}' not found", code="NOT_FOUND", hint="SHOW TABLES lists what there is.")
            execute = metadata.get_table_handle_for_execute(
                session, handle, "ROLLBACK_TO_SNAPSHOT", {"snapshot_id": snapshot_id}, Constraint()
            )
            metadata.execute_table_execute(session, execute)
            self.commit(transaction)
        finally:
            self.rollback(transaction)

    def _prefixes(self) -> tuple[set[str], set[str]]:
        """Return how the names of files begin that are being written now, and that ended statements have written."""
        with self._lock:
            return {transaction.prefix for transaction in self._transactions.values()} - {""}, set(self._ended)

    def _orphans(self, age: timedelta) -> list[tuple[Orphan, Table | None]]:
        """Return leftovers, each with its table; None for the folder of a table that was never made, or was dropped."""
        # Folders are listed before the statements that run, and these before the tables: one that is made meanwhile is none without a table.
        folders = {path for path in self._directory.glob("*/*") if path.is_dir()} if self._directory is not None else set()
        running, ended = self._prefixes()
        listings, refused = self._listings()
        census = self._tables.census()
        for table, error in refused:
            census.refuse(table, error)
        found: list[tuple[Orphan, Table | None]] = []
        readable = {table.name() for table in census.tables}
        for listing in listings:
            table = listing.table
            if table.name() in readable:
                found += [(orphan, table) for orphan in self._search(listing, census, running, ended, age).orphans()]
        # The folders of a table that cannot be read are not known.
        if not census.errors:
            unmade = list(folders_without_table(_unused(folders, census.tables), running, age))
            # The process of a folder's note may have made the table before it ended, and after the tables were read.
            unused = _unused({Path(orphan.name) for orphan in unmade}, self._tables.all()) if unmade else set()
            found += [(orphan, None) for orphan in unmade if Path(orphan.name) in unused]
            found += [(orphan, None) for orphan in self._tables.dropped_folders(census.known, age)]
        self._searched.problems = census.sentences
        return sorted(found, key=lambda pair: pair[0].name)

    def _listings(self) -> tuple[list[Listing], list[tuple[Table, ConnectorError]]]:
        """List the files of all tables that can be read; return beside them the tables whose folders cannot be looked at."""
        listings, refused = [], []
        for table in self._tables.all():
            try:
                listings.append(_listing(table))
            except ConnectorError as error:
                refused.append((table, error))
        return listings, refused

    def orphan_problems(self) -> list[str]:
        """Return which tables the last `orphans` or `remove_orphans` of this thread has left out, and why."""
        return list(getattr(self._searched, "problems", ()))

    def _is_shared(self, table: Table, folder: str) -> bool:
        """Return whether files of unknown origin in a folder of a table may be another's.

        That is so outside of the table's own folder, where others may keep whatever they like, and outside of the warehouse, of which another
        catalog may know.
        """
        if not f"{folder}/".startswith(f"{table.location().rstrip('/')}/"):
            return True
        path = local_path(folder)
        if self._directory is None:
            return False
        return path is None or not Path(path).resolve().is_relative_to(self._directory.resolve())

    def remove_orphans(self, age: timedelta = timedelta(days=1)) -> list[Orphan]:
        """Remove what `orphans` lists; return what was removed. What cannot be removed now is listed again."""
        found, removed = self._orphans(age), []
        # Notes first: a statement that has lost its note does not commit.
        for orphan, table in sorted(found, key=lambda pair: not pair[0].name.endswith(SUFFIX)):
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
        """Forget a transaction; what it has written and no snapshot names can be removed from now on."""
        prefix = self._forget(handle).prefix
        if prefix:
            self._ended.append(prefix)

    def _forget(self, handle: ConnectorTransactionHandle) -> IcebergTransaction:
        with self._lock:
            transaction = self._transactions.pop(self._transactions.number(handle))
        transaction.stop()
        return transaction


class IcebergSplitManager(ConnectorSplitManager):
    """Cuts tables into ranges of data files."""

    def __init__(self, connector: IcebergConnector) -> None:
        self._connector = connector

    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[IcebergSplit]:
        """Return the splits of a table as its handle sees it; files that the constraint rules out have none."""
        return self._connector.splits(transaction_handle, session, table_handle, constraint)


def _unused(folders: Collection[Path], tables: Sequence[Table]) -> set[Path]:
    """Return the folders that no table writes into."""
    kinds = ("data", "metadata")
    locations = [
        one for table in tables for one in (table.location(), *(table.properties.get(f"write.{k}.path", "") for k in kinds))
    ]
    used = [Path(path) for path in map(local_path, locations) if path]
    return {folder for folder in folders if not any(path.is_relative_to(folder) for path in used)}


def _listing(table: Table) -> Listing:
    """List the files of a table's folders.

    Raises:
        ConnectorError: ICEBERG_FILESYSTEM_ERROR, a folder cannot be looked at.
    """
    try:
        return listing_of(table)
    except (OSError, ValueError, ImportError) as error:
        raise ConnectorError(
            f"The folders of Iceberg table '{'.'.join(table.name())}' cannot be looked at: {error_text(error)}",
            code="ICEBERG_FILESYSTEM_ERROR",
            hint="Correct the table's properties write.data.path and write.metadata.path, or see that its folders can be read from here.",
        ) from error


def _are_properties(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _is_retention(value: Any) -> bool:
    return isinstance(value, timedelta) and value >= timedelta(0)
