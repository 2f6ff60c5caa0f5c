"""The Hive connector: transactional tables (full ACID, ORC) in a directory, with a metastore of its own beside them."""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import ConnectorError, SetupError, StatementInterrupted, checked, checked_path
from rowmerge_nb.connectors.hive_acid.buckets import HivePartitioningProvider
from rowmerge_nb.connectors.hive_acid.compaction import obsolete, write_compaction
from rowmerge_nb.connectors.hive_acid.delta_writer import HivePageSinkProvider
from rowmerge_nb.connectors.hive_acid.hive_procedures import procedures_of
from rowmerge_nb.connectors.hive_acid.housekeeping import (
    adopted_partitions,
    adopted_write_ids,
    creation_notes,
    dropped_folder,
    folders_in,
    forget_creation,
    is_nobodys,
    is_orphan,
    note_creation,
    orphan_candidates,
    statement_of,
)
from rowmerge_nb.connectors.hive_acid.layout_names import highest_visibility
from rowmerge_nb.connectors.hive_acid.metadata import HiveAcidMetadata, HiveTransaction
from rowmerge_nb.connectors.hive_acid.metastore.embedded import EmbeddedMetastore, other_owner
from rowmerge_nb.connectors.hive_acid.metastore.metastore import Changes, is_abandoned, new_compaction
from rowmerge_nb.connectors.hive_acid.orc.codecs import orc_codec
from rowmerge_nb.connectors.hive_acid.placing import place, remove_aside, remove_placed
from rowmerge_nb.connectors.hive_acid.reader import HivePageSourceProvider, HiveSplitManager
from rowmerge_nb.connectors.hive_acid.table_definition import TABLE_PROPERTIES, defined_table, described_columns
from rowmerge_nb.connectors.hive_acid.visible_deltas import ValidTransactions, folder_errors, stated_write_ids
from rowmerge_nb.connectors.shared.arguments import checked_table_name, is_names, is_number
from rowmerge_nb.connectors.shared.disk import refused, writing
from rowmerge_nb.connectors.shared.orphans import orphaned_path, this_process
from rowmerge_nb.spi.connector import Connector, Orphan, always
from rowmerge_nb.spi.transactions import NumberedTransactionHandle, Transactions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable, Metastore, OpenTransaction
    from rowmerge_nb.connectors.hive_acid.placing import PlacedFolder
    from rowmerge_nb.spi.handles import ConnectorTransactionHandle
    from rowmerge_nb.spi.procedures import Procedure
    from rowmerge_nb.spi.types import Type


class HiveAcidConnector(Connector):
    """Hive's transactional tables.

    Args:
        directory: where tables are made; the metastore's file ``metastore.sqlite`` is in it, the tables in ``warehouse``. With a
            Hive Metastore, where schemas are made; None leaves that to the metastore.
        metastore: another metastore than the embedded one: the address ``thrift://host:port`` of a Hive Metastore.
        compression_codec: how files are compressed that are written from now on: ``"GZIP"``, ``"ZSTD"``, ``"SNAPPY"`` or ``"NONE"``, as
            Trino's ``hive.compression-codec``. Files of all of them are read.

    Raises:
        ConnectorError: INVALID_ARGUMENTS if there is no such codec, or neither a directory nor a metastore is named; HIVE_METASTORE_ERROR if the metastore does not answer, or its file cannot be used or is of another format.
        SetupError: what speaks to a Hive Metastore is not installed.

    >>> import tempfile
    >>> connector = HiveAcidConnector(tempfile.mkdtemp())
    >>> connector.name, connector.open_transactions()
    ('hive', [])
    """

    name = "hive"
    commits_in_thread = True
    checked_after_commit = False

    get_split_manager = always(HiveSplitManager())
    get_page_source_provider = always(HivePageSourceProvider())
    get_page_sink_provider = always(HivePageSinkProvider())
    get_node_partitioning_provider = always(HivePartitioningProvider())
    get_table_properties = always(TABLE_PROPERTIES)

    def __init__(
        self,
        directory: str | Path | None = None,
        metastore: Metastore | str | None = None,
        *,
        compression_codec: str = "GZIP",
    ) -> None:
        self._codec = orc_codec(compression_codec)
        self.metastore: Metastore
        if directory is not None:
            checked_path(directory, "directory")
        form = "the address of a Hive Metastore, 'thrift://host:port', or None for one of the directory's own"
        checked(
            metastore,
            "metastore",
            lambda given: given is None or isinstance(given, str) or hasattr(given, "schema_location"),
            form,
        )
        if isinstance(metastore, str):
            self.metastore = _thrift_metastore(metastore, None if directory is None else Path(directory).absolute())
        elif directory is not None:
            self.metastore = metastore or EmbeddedMetastore(_made(Path(directory).absolute()) / "metastore.sqlite")
        else:
            raise ConnectorError(
                "HiveAcidConnector needs a directory, or metastore='thrift://host:port'",
                code="INVALID_ARGUMENTS",
                hint="Write HiveAcidConnector('lake/').",
            )
        self.warehouse = self.metastore.schema_location("default")
        self._transactions = Transactions[HiveTransaction](self.name)
        self._unended: set[int] = set()

    # -- contract -------------------------------------------------------------------------------------------------

    @property
    def shared_directory(self) -> Path:
        """The warehouse, or the directory that the embedded metastore and the warehouse are in."""
        return self.warehouse if self.metastore.shared else self.warehouse.parent

    def begin_transaction(self) -> NumberedTransactionHandle:
        """Begin a transaction; the metastore hears of it when rows are written."""
        self._end_late()
        return self._transactions.begin(lambda _: HiveTransaction(codec=self._codec))

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Make the transaction's changes visible, all of them or none.

        Raises:
            ConnectorError: TRANSACTION_CONFLICT if another transaction changed rows of the same table, or of the same partition of
                a partitioned table, after this one began to read.
        """
        number = self._transactions.number(transaction_handle)
        transaction = self._transactions[number]
        # Asked before: once the change is visible, a metastore that does not answer must not make a failure of it.
        dropped = [table for table in transaction.removed if self._has_own_folder(table)]
        if transaction.number is not None or transaction.changes:
            for table in dropped:
                with suppress(OSError):
                    if not Path(table.location).is_symlink():
                        note_creation(Path(table.location))
            try:
                self.metastore.commit(transaction.number, transaction.changes)
            except ConnectorError as error:
                if error.changed is None:
                    # Its files may be a table's by now.
                    del self._transactions[number]
                raise
        del self._transactions[number]
        # The change is visible. What is left over belongs to no table, and is listed by `orphans` if it stays.
        for folder in transaction.folders:
            forget_creation(folder.path)
        for table in dropped:
            _remove_dropped(table)
        _remove_attempts(transaction)

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Hide for ever what the transaction has written, and remove it; nothing of one that was committed all the same."""
        transaction = self._transactions.pop(self._transactions.number(transaction_handle), None)
        if transaction is None:
            return
        if transaction.number is None and transaction.beginning:
            transaction.number = self._begun_for(transaction.beginning)
        if self._undone(transaction):
            _remove_files(transaction)
            for table in transaction.removed:
                forget_creation(Path(table.location))

    def _begun_for(self, query_id: str) -> int | None:
        """Return the transaction that was begun for a statement, which was interrupted before it got the number."""
        process = this_process()
        own = (opened for opened in self.metastore.open_transactions() if opened.process == process)
        return next((opened.number for opened in own if opened.query_id == query_id), None)

    def _has_own_folder(self, table: HiveTable) -> bool:
        """Return whether a table's folder goes with the table: it is managed, and lies in the folder of its schema.

        The metastore may name any folder; what lies elsewhere stays.
        """
        folder = Path(table.location)
        return table.managed and ".." not in folder.parts and self.metastore.schema_location(table.name.schema) in folder.parents

    def _undone(self, transaction: HiveTransaction) -> bool:
        """End a transaction in the metastore, and tell whether nothing of it counts."""
        if transaction.number is not None and transaction.written:
            return self._aborted(transaction.number, transaction)
        if transaction.number is not None:
            # Nothing is to be hidden of a transaction that has only read; one that has ended meanwhile needs no end.
            try:
                self.metastore.commit(transaction.number, Changes())
            except ConnectorError:
                self._unended.add(transaction.number)
        made = [(table.id, self.metastore.get_table(table.name)) for table in transaction.changes.tables]
        return not any(found is not None and found.id == identity for identity, found in made)

    def _aborted(self, number: int, transaction: HiveTransaction) -> bool:
        """Abort a transaction; where the disk is full its files make room for the record of that, since nothing open counts."""
        hidden = self._is_hidden(number)
        if number in self._unended:
            _remove_files(transaction)
            self._end_late()
        return hidden

    def _end_late(self) -> None:
        """Abort the transactions whose end the metastore could not record."""
        for number in tuple(self._unended):
            with suppress(ConnectorError):
                self.metastore.abort(number)
                self._unended.discard(number)

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> HiveAcidMetadata:
        """Return the metadata of a transaction."""
        return HiveAcidMetadata(self.metastore, self._transactions.of(transaction_handle))

    def get_procedures(self) -> Sequence[Procedure]:
        """Return what CALL can do: compact, register and unregister tables, clean up."""
        return procedures_of(self)

    def refused_in_transaction(self, catalog: str, kind: str) -> ConnectorError:
        """Return Trino's error for rows of transactional tables; of definitions that of all connectors."""
        doing = {"INSERT": "Inserting", "MERGE": "Merging", "UPDATE": "Merging", "DELETE": "Merging"}.get(kind)
        if doing is None:
            return super().refused_in_transaction(catalog, kind)
        return ConnectorError(
            f"{doing} into Hive transactional tables is not supported in explicit transactions (use autocommit mode)",
            code="NOT_SUPPORTED",
        )

    # -- beyond the contract --------------------------------------------------------------------------------------

    def register_table(
        self,
        schema: str,
        name: str,
        location: str | Path,
        *,
        columns: Mapping[str, str | Type] | Iterable[tuple[str, str | Type]],
        partitioned_by: Sequence[str] = (),
        bucketed_by: Sequence[str] = (),
        bucket_count: int | None = None,
        bucketing_version: int = 1,
        write_ids: Mapping[str, Any] | None = None,
        transactional: bool = True,
    ) -> None:
        """Adopt a directory that another engine wrote. DROP TABLE leaves its files where they are.

        Args:
            schema: schema of the new table.
            name: its name.
            location: the directory.
            columns: names and types in table order, partition columns last.
            partitioned_by: the partition columns.
            bucketed_by: the bucket columns.
            bucket_count: how many buckets there are.
            bucketing_version: which of Hive's bucket functions.
            write_ids: ``{"highWatermark": 6, "open": [5], "aborted": [2]}`` as its metastore says. Without them all write ids that the
                directory's names speak of count as committed.
            transactional: rows can be changed; if not, the table can only be read.

        Raises:
            ConnectorError: HIVE_FILE_NOT_FOUND, TABLE_ALREADY_EXISTS, SCHEMA_NOT_FOUND or HIVE_INVALID_PARTITION_VALUE;
                HIVE_PATH_ALREADY_EXISTS if the directory has files in common with another table.
            AnalysisError: columns and properties do not go together.
            RowMergeError: INVALID_ARGUMENTS for what is no name, path, columns or write ids.
        """
        full_name = checked_table_name(schema, name)
        folder = Path(checked_path(location, "location")).absolute()
        metadata = described_columns(columns)
        valid = None if write_ids is None else stated_write_ids(write_ids)
        with folder_errors(folder):
            exists = folder.is_dir()
        if not exists:
            raise ConnectorError(
                f"Directory '{folder}' does not exist, so it cannot be registered as table '{full_name}'",
                code="HIVE_FILE_NOT_FOUND",
                hint="Name the directory that holds the table's files.",
            )
        with folder_errors(folder):
            owner = other_owner(getattr(self.metastore, "file", None), folder)
        if owner is not None:
            raise ConnectorError(
                f"Directory '{folder}' has files of table '{owner[1]}' of the metastore '{owner[0]}'",
                code="HIVE_PATH_ALREADY_EXISTS",
                hint="A table is in one metastore only. unregister_table takes it out there, and leaves its files, or copy the directory.",
            )
        names = "a list of names of columns"
        properties = {
            "partitioned_by": tuple(checked(partitioned_by, "partitioned_by", is_names, names)),
            "bucketed_by": tuple(checked(bucketed_by, "bucketed_by", is_names, names)),
            "bucket_count": bucket_count,
            "bucketing_version": bucketing_version,
            "transactional": transactional,
        }
        table = defined_table(uuid.uuid4().hex, full_name, metadata, properties, str(folder), managed=False)
        partitions = adopted_partitions(table)
        adopted = adopted_write_ids(table, partitions) if valid is None else valid
        # All compactions that are there count, whatever transactions of another metastore they belong to.
        adopted = replace(adopted, transactions=ValidTransactions(highest_visibility(folder)))
        changes = Changes(tables=[table], adopted={table.id: adopted}, written=[table])
        if partitioned_by:
            changes.partitions[table.id] = set(partitions)
        forget_creation(folder)
        self.metastore.commit(None, changes)

    def unregister_table(self, schema: str, name: str) -> None:
        """Take a table out of the metastore; its files stay where they are.

        Raises:
            ConnectorError: TABLE_NOT_FOUND.
        """
        table = self._table(schema, name)
        # Before: with a note, a folder without a table is an orphan.
        forget_creation(Path(table.location))
        self.metastore.commit(None, Changes(dropped=[table]))

    def compact(self, schema: str, name: str, *, major: bool = True) -> list[Path]:
        """Compact a table: join its deltas (minor), or make bases of what is left of its rows (major).

        Statements that run meanwhile are not disturbed, and the rows keep their ids. The old directories stay; `remove_obsolete` removes
        them when nobody reads them any more.

        Args:
            schema: the table's schema.
            name: the table's name.
            major: make bases.

        Returns:
            The directories that were made.

        Raises:
            ConnectorError: TABLE_NOT_FOUND; NOT_SUPPORTED for a table that is not transactional; TRANSACTION_CONFLICT if another compaction
                of the table takes long, or the table is dropped meanwhile; the store's own code if the disk refuses.
            StatementInterrupted: an interrupt came.
        """
        table = self._table(schema, name, transactional=True)
        what = f"The compaction of table '{table.name}'"
        try:
            with new_compaction() as query_id, writing(what, "HIVE_FILESYSTEM_ERROR"):
                return self._compacted(table, self.metastore.open_compaction(query_id, table), major=major)
        except KeyboardInterrupt as interrupt:
            raise StatementInterrupted(
                f"{what} was interrupted. The table has the same rows, whether the compaction is finished or not",
                step="compact",
                changed=None,
                hint="Call compact again.",
            ) from interrupt

    def _compacted(self, table: HiveTable, number: int, *, major: bool) -> list[Path]:
        """Compact a table in a transaction, which ends here."""
        folder = Path(table.location) / f"_tmp_compaction_{number}_{uuid.uuid4().hex[:12]}"
        record: list[PlacedFolder] = []
        # Hive 3 and Trino do not read the suffix, so that in a Hive Metastore each directory counts by itself.
        suffix = "" if self.metastore.shared else f"_v{number:07d}"
        try:
            directories = write_compaction(table, self.metastore.snapshot(table), folder, suffix, self._codec, major=major)
            self.metastore.while_open(number, table, lambda: _place_all(directories, record), is_new=False)
            self.metastore.commit(number, Changes(sequences={table.id: 0}))
        except BaseException as error:
            if getattr(error, "changed", False) is not None and self._is_hidden(number) and suffix:
                remove_placed(record)
                self._end_late()
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return [directory.path for directory in record]

    def _is_hidden(self, number: int) -> bool:
        """Abort a transaction; return whether what it has written is hidden for ever, the end of the transaction noted or not."""
        try:
            return self.metastore.abort(number)
        except ConnectorError:
            # Added before the metastore is asked, which may not answer: aborting a transaction that has ended does nothing.
            self._unended.add(number)
            if all(opened.number != number for opened in self.metastore.open_transactions()):
                self._unended.discard(number)
                raise
        return True

    def remove_obsolete(self, schema: str, name: str) -> list[Path]:
        """Remove what compactions have replaced, and return what was removed; to be called when no statement reads the table."""
        table = self._table(schema, name, transactional=True)
        paths = sorted(obsolete(table, self.metastore.snapshot(table)))
        for path in paths:
            _remove(path)
        return [path for path in paths if not os.path.lexists(path)]

    def _table(self, schema: str, name: str, *, transactional: bool = False) -> HiveTable:
        full_name = checked_table_name(schema, name)
        table = self.metastore.get_table(full_name)
        if table is None:
            raise ConnectorError(
                f"Table '{full_name}' does not exist",
                code="TABLE_NOT_FOUND",
                hint=f'SHOW TABLES FROM "{full_name.schema}" lists those that are there.',
            )
        if transactional and not table.transactional:
            raise ConnectorError(
                f"Table '{full_name}' is not transactional, so it has nothing to compact",
                hint="Only tables with transactional = true have deltas.",
            )
        return table

    def open_transactions(self) -> list[OpenTransaction]:
        """Return the transactions that write, oldest first, those of other processes included."""
        return list(self.metastore.open_transactions())

    def abort_transaction(self, number: int) -> None:
        """End a transaction whose process is gone, so that `orphans` lists what it has left behind."""
        self.metastore.abort(
            checked(number, "number", is_number, "the number of a transaction, as open_transactions() lists them")
        )

    def orphans(self) -> list[Orphan]:
        """List directories that no reader will ever see: of aborted transactions, and of attempts whose statement has ended.

        Transactions whose process ran on this machine and is gone are aborted first. What other open transactions are writing is not
        listed; `abort_transaction` ends one whose process has died elsewhere. Of folders without a table those are listed that were to
        be one's, and are not, only while nobody writes, and not where a Hive Metastore is shared with other engines. A folder
        whose table was taken out of the metastore, or that was put there to be registered, is none of them. The note of a killed CREATE
        TABLE or DROP TABLE in the folder of a table is listed too, if no statement writes.
        """
        self._end_late()
        # What exists is listed before the metastore is asked: what a statement makes meanwhile is not among it.
        schemas = [] if self.metastore.shared else [self.warehouse]
        schemas += [folder for schema in schemas for folder in folders_in(schema) if folder.suffix == ".db"]
        beside = [entry for schema in schemas for entry in folders_in(schema)]
        tables = self._tables()
        candidates = {table: orphan_candidates(table) for table in tables if table.transactional}
        notes = [note for table in tables for note in creation_notes(Path(table.location))]
        processes = self._aborted_dead()
        running = {transaction.number for transaction in self.metastore.open_transactions()}
        known = {Path(table.location) for table in self._tables()}
        known |= {folder.path for transaction in tuple(self._transactions.values()) for folder in transaction.folders}
        orphans = [
            path
            for table, paths in candidates.items()
            for write_ids in [self.metastore.snapshot(table).write_ids]
            for path in paths
            if is_orphan(path, write_ids, running)
        ]
        if not running:
            orphans += [path for path in beside if path not in known and path not in schemas and is_nobodys(path)]
            orphans += [note for note in notes if note.parent in known]
        owners = {path: statement_of(path) for path in orphans}
        return [orphaned_path(path, owners[path][0], processes.get(owners[path][1], "")) for path in sorted(orphans)]

    def _aborted_dead(self) -> dict[int, str]:
        """Abort the transactions that nothing else will end; return their processes by their numbers."""
        processes = {}
        for transaction in self.metastore.open_transactions():
            if is_abandoned(transaction):
                processes[transaction.number] = transaction.process
                self.metastore.abort(transaction.number)
        return processes

    def remove_orphans(self) -> list[Orphan]:
        """Remove what `orphans` lists, and return what was removed."""
        orphans = self.orphans()
        for orphan in orphans:
            _remove(Path(orphan.name))
        return [orphan for orphan in orphans if not os.path.lexists(orphan.name)]

    def _tables(self) -> list[HiveTable]:
        found = []
        for name in self.metastore.list_tables():
            # A Hive Metastore has tables of other kinds too, which do not concern us.
            with suppress(ConnectorError):
                table = self.metastore.get_table(name)
                found += [table] if table is not None else []
        return found


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(error, f"Directory '{folder}'", "HIVE_FILESYSTEM_ERROR") from error
    return folder


def _thrift_metastore(uri: str, folder: Path | None) -> Metastore:
    try:
        from rowmerge_nb.connectors.hive_acid.metastore.thrift_metastore import ThriftMetastore
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in {"pymetastore", "thrift"}:
            raise
        raise SetupError(
            f"The Hive Metastore {uri} needs the package pymetastore, which is not installed",
            hint="Run: pip install 'rowmerge-nb[hive]'",
        ) from None
    return ThriftMetastore(uri, folder)


def _place_all(directories: Sequence[tuple[Path, Path]], record: list[PlacedFolder]) -> None:
    """Move finished directories; one that exists already was made by an earlier compaction, and has the same rows."""
    for source, path in directories:
        if not os.path.lexists(path):
            place(source, path, record)


def _remove(path: Path) -> None:
    """Remove a directory or file as far as that can be done; of a link only the link."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _remove_dropped(table: HiveTable) -> None:
    """Remove the files of a dropped table, at once out of the way of a table of the same name.

    Only now that the table is dropped: a folder that is moved before would be missing if the drop failed. Until then no other folder of
    this name can be made.
    """
    folder = Path(table.location)
    with suppress(OSError):
        _remove(folder if folder.is_symlink() else folder.rename(dropped_folder(folder, table.id)))


def _remove_files(transaction: HiveTransaction) -> None:
    """Remove all that a transaction has written. Its tasks may still be writing."""
    remove_placed(transaction.placed_folders)
    for partition in reversed(transaction.partitions):
        with suppress(OSError):
            # Only if it is empty: another statement may have rows there.
            partition.rmdir()
    _remove_attempts(transaction)
    for folder in transaction.folders:
        if folder.is_placed:
            remove_aside(folder.path, "_dropped_")
    remove_placed(transaction.folders)


def _remove_attempts(transaction: HiveTransaction) -> None:
    """Remove the folders that attempts of tasks write into."""
    for folder, name in transaction.written:
        remove_aside(folder / name, f"{name}_")
