"""The Hive connector: transactional tables (full ACID, ORC) with an embedded or a Hive Metastore."""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.arguments import checked, checked_path
from rowmerge_nb.base.errors import ConnectorError, SetupError, StatementInterrupted
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.hive_acid.buckets import HivePartitioningProvider
from rowmerge_nb.connectors.hive_acid.compaction import obsolete, write_compaction
from rowmerge_nb.connectors.hive_acid.delta_writer import HivePageSinkProvider
from rowmerge_nb.connectors.hive_acid.hive_metadata import HiveAcidMetadata, HiveTransaction
from rowmerge_nb.connectors.hive_acid.hive_procedures import procedures_of
from rowmerge_nb.connectors.hive_acid.housekeeping import (
    adopted_partitions,
    adopted_write_ids,
    creation_notes,
    dropped_folder,
    folders_in,
    forget_creation,
    is_orphan,
    is_uncommitted,
    note_creation,
    orphan_candidates,
    statement_of,
)
from rowmerge_nb.connectors.hive_acid.layout_names import highest_visibility
from rowmerge_nb.connectors.hive_acid.metastore.embedded import EmbeddedMetastore, other_owner
from rowmerge_nb.connectors.hive_acid.metastore.metastore import (
    MetastoreChanges,
    is_abandoned,
    new_compaction,
)
from rowmerge_nb.connectors.hive_acid.orc.codecs import orc_codec
from rowmerge_nb.connectors.hive_acid.placing import place, remove_aside, remove_placed
from rowmerge_nb.connectors.hive_acid.reader import HivePageSourceProvider, HiveSplitManager
from rowmerge_nb.connectors.hive_acid.table_definition import (
    TABLE_PROPERTIES,
    defined_table,
    described_columns,
)
from rowmerge_nb.connectors.hive_acid.visible_deltas import (
    ValidTransactions,
    folder_errors,
    stated_write_ids,
)
from rowmerge_nb.connectors.shared.arguments import checked_table_name, is_names, is_number
from rowmerge_nb.connectors.shared.disk import refused, writing
from rowmerge_nb.connectors.shared.orphans import orphaned_path, this_process
from rowmerge_nb.spi import (
    Connector,
    ConnectorTransactionHandle,
    Orphan,
    Procedure,
    SchemaTableName,
    Type,
)
from rowmerge_nb.spi.connector import always
from rowmerge_nb.spi.transactions import NumberedTransactionHandle, Transactions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rowmerge_nb.connectors.hive_acid.metastore.metastore import (
        HiveTable,
        Metastore,
        OpenTransaction,
    )
    from rowmerge_nb.connectors.hive_acid.placing import PlacedFolder


class HiveAcidConnector(Connector):
    """Hive's transactional tables.

    Args:
        directory: the folder of ``metastore.sqlite`` and ``warehouse``. With a Hive Metastore: the
            folder for new schemas, or None.
        metastore: the address ``thrift://host:port`` of a Hive Metastore; None for the embedded
            one.
        compression_codec: for new files, as Trino's ``hive.compression-codec``: ``"GZIP"``,
            ``"ZSTD"``, ``"SNAPPY"`` or ``"NONE"``.

    Raises:
        ConnectorError: INVALID_ARGUMENTS, or HIVE_METASTORE_ERROR if the metastore does not answer.
        SetupError: the client library of the Hive Metastore is not installed.

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
        form = (
            "the address of a Hive Metastore, 'thrift://host:port', or None for one of the"
            " directory's own"
        )
        checked(
            metastore,
            "metastore",
            lambda value: (
                value is None or isinstance(value, str) or hasattr(value, "schema_location")
            ),
            form,
        )
        if isinstance(metastore, str):
            self.metastore = _thrift_metastore(
                metastore, None if directory is None else Path(directory).absolute()
            )
        elif directory is not None:
            self.metastore = metastore or EmbeddedMetastore(
                _make_folder(Path(directory).absolute()) / "metastore.sqlite"
            )
        else:
            raise ConnectorError.invalid(
                "HiveAcidConnector needs a directory, or metastore='thrift://host:port'",
                hint="Write HiveAcidConnector('lake/').",
            )
        self.warehouse = self.metastore.schema_location("default")
        self._transactions = Transactions[HiveTransaction](self.name)
        self._unended: set[int] = set()

    # -- contract

    @property
    def shared_directory(self) -> Path:
        return self.warehouse if self.metastore.shared else self.warehouse.parent

    def begin_transaction(self) -> NumberedTransactionHandle:
        """Begin a transaction; the metastore's begins later."""
        self._end_late()
        return self._transactions.begin(lambda _: HiveTransaction(codec=self._codec))

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Make all changes visible, or none.

        Raises:
            ConnectorError: TRANSACTION_CONFLICT if the same table or partition changed since it was
                read.
        """
        number = self._transactions.number(transaction_handle)
        transaction = self._transactions[number]
        # Checked before the commit: after it, a metastore that does not answer must not turn
        # success into failure.
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
                    # The outcome is unknown, so the files may belong to a table by now.
                    del self._transactions[number]
                raise
        del self._transactions[number]
        # The change is visible. `orphans` lists the rest if removing it fails.
        for folder in transaction.folders:
            forget_creation(folder.path)
        for table in dropped:
            _remove_dropped(table)
        _remove_attempts(transaction)

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Hide and remove what the transaction wrote, unless it was committed."""
        transaction = self._transactions.pop(self._transactions.number(transaction_handle), None)
        if transaction is None:
            return
        if transaction.number is None and transaction.beginning:
            transaction.number = self._find_open_number(transaction.beginning)
        if self._is_undone(transaction):
            _remove_files(transaction)
            for table in transaction.removed:
                forget_creation(Path(table.location))

    def _find_open_number(self, query_id: str) -> int | None:
        process = this_process()
        own = (
            transaction
            for transaction in self.metastore.open_transactions()
            if transaction.process == process
        )
        return next(
            (transaction.number for transaction in own if transaction.query_id == query_id), None
        )

    def _has_own_folder(self, table: HiveTable) -> bool:
        folder = Path(table.location)
        return (
            table.managed
            and ".." not in folder.parts
            and self.metastore.schema_location(table.name.schema) in folder.parents
        )

    def _is_undone(self, transaction: HiveTransaction) -> bool:
        if transaction.number is not None and transaction.attempt_folders:
            return self._abort(transaction.number, transaction)
        if transaction.number is not None:
            # A transaction that only read has no rows to hide, and it may have ended already.
            try:
                self.metastore.commit(transaction.number, MetastoreChanges())
            except ConnectorError:
                self._unended.add(transaction.number)
        created = [
            (table.id, self.metastore.get_table(table.name)) for table in transaction.changes.tables
        ]
        return not any(table is not None and table.id == identity for identity, table in created)

    def _abort(self, number: int, transaction: HiveTransaction) -> bool:
        """Abort a transaction. If the disk is too full to record it, remove files and try again."""
        is_hidden = self._is_hidden(number)
        if number in self._unended:
            _remove_files(transaction)
            self._end_late()
        return is_hidden

    def _end_late(self) -> None:
        for number in tuple(self._unended):
            with suppress(ConnectorError):
                self.metastore.abort(number)
                self._unended.discard(number)

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> HiveAcidMetadata:
        return HiveAcidMetadata(self.metastore, self._transactions.of(transaction_handle))

    def get_procedures(self) -> Sequence[Procedure]:
        return procedures_of(self)

    def refused_in_transaction(self, catalog: str, kind: str) -> ConnectorError:
        """Return Trino's error for changing rows, otherwise the default."""
        verb = {
            "INSERT": "Inserting",
            "MERGE": "Merging",
            "UPDATE": "Merging",
            "DELETE": "Merging",
        }.get(kind)
        if verb is None:
            return super().refused_in_transaction(catalog, kind)
        return ConnectorError(
            f"{verb} into Hive transactional tables is not supported in explicit transactions (use"
            " autocommit mode)",
        )

    # -- beyond the contract

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
        """Adopt a directory that another engine wrote. DROP TABLE does not remove its files.

        Partition columns must be the last ones of ``columns``. ``write_ids`` are those of the
        previous metastore, as ``{"highWatermark": 6, "open": [5], "aborted": [2]}``; by default,
        all in names of directories are committed.

        Raises:
            ConnectorError: HIVE_FILE_NOT_FOUND, TABLE_ALREADY_EXISTS, SCHEMA_NOT_FOUND,
                HIVE_INVALID_PARTITION_VALUE, or HIVE_PATH_ALREADY_EXISTS if another table shares
                files.
            AnalysisError: columns and properties contradict each other.
            RowMergeError: INVALID_ARGUMENTS.
        """
        full_name = checked_table_name(schema, name)
        folder = Path(checked_path(location, "location")).absolute()
        metadata = described_columns(columns)
        valid = None if write_ids is None else stated_write_ids(write_ids)
        self._require_unowned(folder, full_name)
        names = "a list of names of columns"
        properties = {
            "partitioned_by": tuple(checked(partitioned_by, "partitioned_by", is_names, names)),
            "bucketed_by": tuple(checked(bucketed_by, "bucketed_by", is_names, names)),
            "bucket_count": bucket_count,
            "bucketing_version": bucketing_version,
            "transactional": transactional,
        }
        table = defined_table(
            uuid.uuid4().hex, full_name, metadata, properties, str(folder), managed=False
        )
        partitions = adopted_partitions(table)
        adopted = adopted_write_ids(table, partitions) if valid is None else valid
        # Compactions belong to transactions of another metastore, and all of them count.
        adopted = replace(adopted, transactions=ValidTransactions(highest_visibility(folder)))
        changes = MetastoreChanges(
            tables=[table], adopted={table.id: adopted}, changed_tables=[table]
        )
        if partitioned_by:
            changes.partitions[table.id] = set(partitions)
        forget_creation(folder)
        self.metastore.commit(None, changes)

    def _require_unowned(self, folder: Path, name: SchemaTableName) -> None:
        with folder_errors(folder):
            exists = folder.is_dir()
        if not exists:
            raise ConnectorError(
                f"Directory '{folder}' does not exist, so it cannot be registered as table"
                f" '{name}'",
                code="HIVE_FILE_NOT_FOUND",
                hint="Name the directory that holds the table's files.",
            )
        with folder_errors(folder):
            owner = other_owner(getattr(self.metastore, "file", None), folder)
        if owner is not None:
            raise ConnectorError(
                f"Directory '{folder}' has files of table '{owner[1]}' of the metastore"
                f" '{owner[0]}'",
                code="HIVE_PATH_ALREADY_EXISTS",
                hint=(
                    "A table belongs to one metastore only. Unregister it there with"
                    " unregister_table, which keeps its files, or copy the directory."
                ),
            )

    def unregister_table(self, schema: str, name: str) -> None:
        """Remove a table from the metastore; its files stay."""
        table = self._table(schema, name)
        # Before the commit: a folder that has a note and no table is an orphan.
        forget_creation(Path(table.location))
        self.metastore.commit(None, MetastoreChanges(dropped=[table]))

    def compact(self, schema: str, name: str, *, major: bool = True) -> list[Path]:
        """Compact a table: join its deltas (minor), or write bases of its current rows (major).

        Row ids and running statements are not affected. Return the new directories;
        `remove_obsolete` removes the old ones.

        Raises:
            ConnectorError: TABLE_NOT_FOUND, NOT_SUPPORTED for a table that is not transactional, or
                TRANSACTION_CONFLICT.
            StatementInterrupted: an interrupt came.
        """
        table = self._table(schema, name, transactional=True)
        subject = f"The compaction of table '{table.name}'"
        try:
            with new_compaction() as query_id, writing(subject, "HIVE_FILESYSTEM_ERROR"):
                return self._compact(
                    table, self.metastore.open_compaction(query_id, table), major=major
                )
        except KeyboardInterrupt as interrupt:
            raise StatementInterrupted(
                f"{subject} was interrupted. The table has the same rows whether or"
                " not the compaction finished",
                step="compact",
                changed=None,
                hint="Call compact again.",
            ) from interrupt

    def _compact(self, table: HiveTable, number: int, *, major: bool) -> list[Path]:
        folder = Path(table.location) / f"_tmp_compaction_{number}_{uuid.uuid4().hex[:12]}"
        record: list[PlacedFolder] = []
        # Hive 3 and Trino do not read the suffix, so a directory in a shared metastore has none and
        # counts by itself.
        suffix = "" if self.metastore.shared else f"_v{number:07d}"
        try:
            directories = write_compaction(
                table, self.metastore.snapshot(table), folder, suffix, self._codec, major=major
            )
            self.metastore.while_open(
                number, table, lambda: _place_all(directories, record), is_new=False
            )
            self.metastore.commit(number, MetastoreChanges(sequences={table.id: 0}))
        except BaseException as error:
            if getattr(error, "changed", False) is not None and self._is_hidden(number) and suffix:
                remove_placed(record)
                self._end_late()
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return [directory.path for directory in record]

    def _is_hidden(self, number: int) -> bool:
        """Abort a transaction; return whether its files are hidden for good."""
        try:
            return self.metastore.abort(number)
        except ConnectorError:
            # Added first, because the metastore may not answer. Aborting an ended transaction does
            # nothing.
            self._unended.add(number)
            if all(
                transaction.number != number for transaction in self.metastore.open_transactions()
            ):
                self._unended.discard(number)
                raise
        return True

    def remove_obsolete(self, schema: str, name: str) -> list[Path]:
        """Remove and return what compactions replaced. No statement may be reading the table."""
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
                hint=f'SHOW TABLES FROM "{full_name.schema}" lists those that exist.',
            )
        if transactional and not table.transactional:
            raise ConnectorError(
                f"Table '{full_name}' is not transactional, so it has nothing to compact",
                hint="Only tables with transactional = true have deltas.",
            )
        return table

    def open_transactions(self) -> list[OpenTransaction]:
        return list(self.metastore.open_transactions())

    def abort_transaction(self, number: int) -> None:
        self.metastore.abort(
            checked(
                number,
                "number",
                is_number,
                "the number of a transaction, as open_transactions() lists them",
            )
        )

    def orphans(self) -> list[Orphan]:
        """List directories that no reader will ever see, after aborting transactions of dead local
        processes.

        - Directories of aborted transactions, and of tasks whose statement has ended.
          `abort_transaction` ends one that died elsewhere.
        - If no statement is writing: notes of a killed CREATE TABLE or DROP TABLE, and with the
          embedded metastore folders of tables that were never committed.
        """
        self._end_late()
        # Folders are listed before the metastore is asked, so that a folder created meanwhile is
        # not an orphan.
        schemas = [] if self.metastore.shared else [self.warehouse]
        schemas += [
            folder for schema in schemas for folder in folders_in(schema) if folder.suffix == ".db"
        ]
        siblings = [entry for schema in schemas for entry in folders_in(schema)]
        tables = self._tables()
        candidates = {table: orphan_candidates(table) for table in tables if table.transactional}
        notes = [note for table in tables for note in creation_notes(Path(table.location))]
        processes = self._aborted_dead()
        running = {transaction.number for transaction in self.metastore.open_transactions()}
        owned_folders = {Path(table.location) for table in self._tables()}
        owned_folders |= {
            folder.path
            for transaction in tuple(self._transactions.values())
            for folder in transaction.folders
        }
        orphans = [
            path
            for table, paths in candidates.items()
            for write_ids in [self.metastore.snapshot(table).write_ids]
            for path in paths
            if is_orphan(path, write_ids, running)
        ]
        if not running:
            orphans += [
                path
                for path in siblings
                if path not in owned_folders and path not in schemas and is_uncommitted(path)
            ]
            orphans += [note for note in notes if note.parent in owned_folders]
        owners = {path: statement_of(path) for path in orphans}
        return [
            orphaned_path(path, owners[path][0], processes.get(owners[path][1], ""))
            for path in sorted(orphans)
        ]

    def _aborted_dead(self) -> dict[int, str]:
        processes = {}
        for transaction in self.metastore.open_transactions():
            if is_abandoned(transaction):
                processes[transaction.number] = transaction.process
                self.metastore.abort(transaction.number)
        return processes

    def remove_orphans(self) -> list[Orphan]:
        orphans = self.orphans()
        for orphan in orphans:
            _remove(Path(orphan.name))
        return [orphan for orphan in orphans if not os.path.lexists(orphan.name)]

    def _tables(self) -> list[HiveTable]:
        tables = []
        for name in self.metastore.list_tables():
            # A Hive Metastore also has tables that this connector cannot read.
            with suppress(ConnectorError):
                table = self.metastore.get_table(name)
                tables += [table] if table is not None else []
        return tables


def _make_folder(folder: Path) -> Path:
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
            hint=f"Run: {install_command('hive')}",
        ) from None
    return ThriftMetastore(uri, folder)


def _place_all(directories: Sequence[tuple[Path, Path]], record: list[PlacedFolder]) -> None:
    """Move finished directories; an existing target has the same rows."""
    for source, path in directories:
        if not os.path.lexists(path):
            place(source, path, record)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _remove_dropped(table: HiveTable) -> None:
    """Remove a dropped table's files after the commit, moving them first so that the name is free."""
    folder = Path(table.location)
    with suppress(OSError):
        _remove(folder if folder.is_symlink() else folder.rename(dropped_folder(folder, table.id)))


def _remove_files(transaction: HiveTransaction) -> None:
    remove_placed(transaction.placed_folders)
    for partition in reversed(transaction.partitions):
        with suppress(OSError):
            # Only if empty: another statement may have rows there.
            partition.rmdir()
    _remove_attempts(transaction)
    for folder in transaction.folders:
        if folder.is_placed:
            remove_aside(folder.path, "_dropped_")
    remove_placed(transaction.folders)


def _remove_attempts(transaction: HiveTransaction) -> None:
    for folder, name in transaction.attempt_folders:
        remove_aside(folder / name, f"{name}_")
