"""Iceberg tables in a transaction, and the beginning and end of statements that change them."""

from __future__ import annotations

import datetime as dt
import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, error_text
from rowmerge_nb.connectors.iceberg.added_files import add_files, add_vectors
from rowmerge_nb.connectors.iceberg.default_values import literal_of
from rowmerge_nb.connectors.iceberg.foreign_properties import check_properties
from rowmerge_nb.connectors.iceberg.iceberg_handles import (
    HIDDEN,
    IcebergColumn,
    IcebergInsertTableHandle,
    IcebergMergeTableHandle,
    IcebergPartitioningHandle,
    IcebergRowIdColumn,
    IcebergTableExecuteHandle,
    IcebergTableHandle,
    iceberg_table,
)
from rowmerge_nb.connectors.iceberg.iceberg_types import fields_of
from rowmerge_nb.connectors.iceberg.notes import Writer
from rowmerge_nb.connectors.iceberg.partitions import layout_of, partitioning_of
from rowmerge_nb.connectors.iceberg.planning import (
    Content,
    content_of,
    file_keys,
    known_snapshot,
    live_files,
    matching_content,
    rewritable,
    rows_of,
    total_of,
    useless_deletes,
    whole_files,
)
from rowmerge_nb.connectors.iceberg.pruning import expression_of
from rowmerge_nb.connectors.iceberg.snapshots_by_version import as_of, check_restorable, snapshot_of
from rowmerge_nb.connectors.iceberg.sorting import keys_of, shown_keys
from rowmerge_nb.connectors.iceberg.table_definition import (
    COMMENT,
    ISOLATION,
    PROPERTIES,
    check_changes,
    defined_table,
    shown_properties,
)
from rowmerge_nb.connectors.iceberg.table_procedures import (
    check_partitions,
    check_rollback,
    moment_before,
    refuse_disabled,
)
from rowmerge_nb.connectors.iceberg.write_modes import (
    Distribution,
    WriteMode,
    distribution,
    notices,
    write_mode,
)
from rowmerge_nb.connectors.iceberg.writer import target_bytes, vector_of
from rowmerge_nb.connectors.shared.copy_on_write import Rewrite, rewrite_of
from rowmerge_nb.connectors.shared.retention import check_retention
from rowmerge_nb.spi import (
    ColumnHandle,
    ColumnMetadata,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorMetadata,
    ConnectorOutputMetadata,
    ConnectorSession,
    ConnectorTableExecuteHandle,
    ConnectorTableHandle,
    ConnectorTableLayout,
    ConnectorTableMetadata,
    ConnectorTableVersion,
    Constraint,
    PointerType,
    ProcedureOutcome,
    RowChangeParadigm,
    SaveMode,
    SchemaTableName,
    SetProperties,
    SystemTable,
    TableExecution,
    TableStatistics,
    own,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from pyiceberg.table import CreateTableTransaction, Table, Transaction

    from rowmerge_nb.connectors.iceberg.commit_conflicts import Change
    from rowmerge_nb.connectors.iceberg.housekeeping import Removal
    from rowmerge_nb.connectors.iceberg.iceberg_catalog import Tables
    from rowmerge_nb.connectors.shared.retention import Retention
    from rowmerge_nb.spi.alterations import Alteration

_VERSIONS = {1, 2, 3}


@dataclass
class Loaded:
    """A table in a transaction.

    Args:
        read: its files, once its rows are to be changed.
        evolved: the schema with the columns and types that the statement adds.
        shows_places: whether splits include their partition.
    """

    table: Table
    handle: IcebergTableHandle
    creation: CreateTableTransaction | None = None
    folder: Path | None = None
    scans: list[BooleanExpression] = field(default_factory=list)
    read: Content | None = None
    evolved: Schema | None = None
    replacement: Transaction | None = None
    original: Loaded | None = None
    removed: Content = field(default_factory=Content)
    shows_places: bool = False

    @property
    def is_made(self) -> bool:
        """Whether the statement creates or replaces the table."""
        return self.creation is not None or self.replacement is not None

    @property
    def schema(self) -> Schema:
        return self.evolved or self.table.schema()


@dataclass
class IcebergTransaction(Writer):
    """A transaction, and the writer of its files.

    Args:
        actions: the steps of the commit, in order; each returns the new version, or None.
    """

    tables: dict[SchemaTableName, Loaded | None] = field(default_factory=dict)
    versioned: dict[tuple[SchemaTableName, int | None], Loaded] = field(default_factory=dict)
    branches: dict[tuple[SchemaTableName, str], Loaded] = field(default_factory=dict)
    written_tables: list[IcebergTableHandle] = field(default_factory=list)
    actions: list[Callable[[], ConnectorTableVersion | None]] = field(default_factory=list)
    committed_files: set[str] = field(default_factory=set)

    def loaded(self, handle: IcebergTableHandle) -> Loaded:
        if handle.branch is not None:
            return self.branches[handle.name, handle.branch]
        match = (
            self.versioned.get((handle.name, handle.snapshot))
            if handle.pinned
            else self.tables.get(handle.name)
        )
        if (
            match is not None
            and match.original is not None
            and handle.schema_id != match.handle.schema_id
        ):
            # The statement that replaces a table may read it.
            match = match.original
        if match is None:
            raise ValueError(f"Table '{handle.name}' was not looked up in this transaction")
        return match


@dataclass(frozen=True)
class Upkeep:
    """The connector's services for table procedures."""

    least: Retention
    remove_orphans: Callable[[IcebergTableHandle, dt.timedelta], Removal]


def handle_of(name: SchemaTableName, table: Table, *, pinned: bool = False) -> IcebergTableHandle:
    """Return the handle of a table, or raise NOT_SUPPORTED; a `pinned` past version has no
    partitioning.
    """
    if table.format_version not in _VERSIONS:
        raise ConnectorError(
            f"Iceberg table '{name}' is of format version {table.format_version}; only"
            " versions 1, 2 and 3 can be read",
            hint="Read it with another engine.",
        )
    fields = fields_of(table.schema(), name)
    metadata, location = table.metadata, table.location().rstrip("/")
    data_location = table.properties.get("write.data.path", f"{location}/data").rstrip("/")
    snapshot = table.current_snapshot()
    return IcebergTableHandle(
        name,
        str(metadata.table_uuid),
        location,
        data_location,
        dict(table.io.properties),
        snapshot.snapshot_id if snapshot is not None else None,
        table.format_version,
        metadata.current_schema_id,
        metadata.default_spec_id,
        fields,
        () if pinned else partitioning_of(table.spec(), fields, name),
        dict(table.properties),
        shown_properties(table),
        pinned,
        sorted_by=() if pinned else keys_of(shown_keys(table), fields),
    )


class IcebergMetadata(ConnectorMetadata):
    def __init__(self, tables: Tables, transaction: IcebergTransaction, upkeep: Upkeep) -> None:
        self._tables = tables
        self._transaction = transaction
        self._upkeep = upkeep

    # -- tables

    checks_reads = True
    keeps_versions = True
    stores_comments = True
    stores_defaults = True
    keeps_branches = True
    evolves_tables = True
    evolves_types = True
    alters_fields = True
    replaces_tables = True

    def get_table_handle(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> IcebergTableHandle | None:
        tables = self._transaction.tables
        if name not in tables:
            table = self._tables.load(name)
            tables[name] = None if table is None else Loaded(table, handle_of(name, table))
        loaded = tables[name]
        return None if loaded is None else loaded.handle

    def get_versioned_table_handle(
        self, session: ConnectorSession, name: SchemaTableName, version: ConnectorTableVersion
    ) -> IcebergTableHandle | None:
        table = self._tables.load(name)
        if table is None:
            return None
        if version.pointer_type is PointerType.BRANCH:
            from rowmerge_nb.connectors.iceberg.branches import BranchTable

            branch = str(version.version)
            head = BranchTable.of(table, branch, name)
            handle = replace(handle_of(name, head), branch=branch)
            self._transaction.branches[name, branch] = Loaded(head, handle)
            return handle
        then = as_of(table, snapshot_of(table, name, version, session.time_zone))
        handle = handle_of(name, then, pinned=True)
        self._transaction.versioned[name, handle.snapshot] = Loaded(then, handle)
        return handle

    def list_branches(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> Sequence[str]:
        from rowmerge_nb.connectors.iceberg.branches import branches_of

        return branches_of(self._transaction.loaded(iceberg_table(table_handle)).table.metadata)

    def get_system_table(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> SystemTable | None:
        from rowmerge_nb.connectors.iceberg.metadata_tables import METADATA_TABLES, metadata_table

        base, _, suffix = name.table.rpartition("$")
        if not base or suffix not in METADATA_TABLES:
            return None
        handle = self.get_table_handle(session, SchemaTableName(name.schema, base))
        if handle is None:
            return None
        try:
            return metadata_table(self._transaction.loaded(handle).table, suffix)
        except RowMergeError:
            raise
        except Exception as error:
            raise ConnectorError(
                f"The metadata of Iceberg table '{handle.name}' cannot be read:"
                f" {type(error).__name__}: {error_text(error)}",
                code="ICEBERG_INVALID_METADATA",
                hint=(
                    "Run the statement again if snapshots were expiring; else restore that file, or"
                    " roll the table back."
                ),
            ) from error

    def get_table_version(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableVersion | None:
        snapshot = iceberg_table(table_handle).snapshot
        return None if snapshot is None else ConnectorTableVersion(snapshot)

    def get_version_time(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> dt.datetime | None:
        handle = iceberg_table(table_handle)
        table = self._transaction.loaded(handle).table
        snapshot = known_snapshot(table.metadata, handle.snapshot)
        return (
            None
            if snapshot is None
            else dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC)
        )

    def restore_table(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        version: ConnectorTableVersion | None,
        dropped: Sequence[str] = (),
    ) -> None:
        """Make an earlier snapshot the current one at commit; see `commits.restore`."""
        handle = iceberg_table(table_handle)
        _check_writable(handle)
        table = self._transaction.loaded(handle).table
        snapshot = None
        if version is not None:
            target = snapshot_of(table, handle.name, version, session.time_zone)
            check_restorable(table, handle.name, target)
            snapshot = target.snapshot_id
        writer = self._writer(session)
        self._transaction.actions.append(
            lambda: self._tables.restore(handle, snapshot, dropped, writer)
        )

    def get_table_metadata(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableMetadata:
        handle = iceberg_table(table_handle)
        columns = tuple(
            ColumnMetadata(
                f.name,
                f.type,
                not f.required,
                literal_of(f.write_default, f.type_name),
                f.comment,
            )
            for f in handle.fields
        )
        return ConnectorTableMetadata(
            handle.name, columns, handle.sql_properties, handle.properties.get(COMMENT)
        )

    def get_column_handles(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> tuple[ColumnHandle, ...]:
        return tuple(IcebergColumn(f.name, f.type, f) for f in iceberg_table(table_handle).fields)

    def get_hidden_column_handles(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> tuple[ColumnHandle, ...]:
        """Return the columns about a row's file, and of row lineage; include them in splits."""
        handle = iceberg_table(table_handle)
        self._transaction.loaded(handle).shows_places = True
        lineage = (IcebergColumn(f"${f.name.removeprefix('_')}", f.type, f) for f in handle.lineage)
        return (*HIDDEN, *lineage)

    def list_tables(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        return self._tables.names()

    def row_count(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> int | None:
        """Return the number of rows, or None if there are deletes."""
        handle = iceberg_table(table_handle)
        rows, exact = rows_of(self._transaction.loaded(handle).table, handle.snapshot)
        return rows if exact else None

    def get_table_statistics(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> TableStatistics:
        """Return the rows in the data files, including deleted ones, and the files' size."""
        handle = iceberg_table(table_handle)
        table = self._transaction.loaded(handle).table
        return TableStatistics(
            rows_of(table, handle.snapshot)[0],
            total_of(table, handle.snapshot, "total-files-size"),
            total_of(table, handle.snapshot, "total-data-files", "total-delete-files"),
        )

    def create_table(
        self,
        session: ConnectorSession,
        metadata: ConnectorTableMetadata,
        save_mode: SaveMode = SaveMode.FAIL,
    ) -> None:
        """Create a table at commit, or replace one, whose earlier snapshots are retained."""
        if save_mode is SaveMode.REPLACE:
            old_table = self.get_table_handle(session, metadata.name)
            if old_table is not None:
                self._replace_table(session, iceberg_table(old_table), metadata)
                return
        name, definition = metadata.name, defined_table(metadata)
        self._tables.require_reachable(definition.properties.get(PROPERTIES["data_location"]))
        creation, folder = self._tables.create(name, definition)
        loaded = Loaded(creation._table, handle_of(name, creation._table), creation, folder)  # noqa: SLF001
        self._stage_creation(session, loaded)

    def _replace_table(
        self,
        session: ConnectorSession,
        handle: IcebergTableHandle,
        metadata: ConnectorTableMetadata,
    ) -> None:
        from pyiceberg.table import Table

        from rowmerge_nb.connectors.iceberg.replacing import begin_replacement

        _check_writable(handle)
        original = self._transaction.loaded(handle)
        table = original.table
        self._tables.require_own(handle.name, table)
        definition = defined_table(metadata)
        self._tables.require_reachable(definition.properties.get(PROPERTIES["data_location"]))
        replacement = begin_replacement(table, definition)
        new_table = Table(
            table.name(),
            replacement.table_metadata,
            table.metadata_location,
            table.io,
            table.catalog,
        )
        loaded = Loaded(
            new_table, handle_of(handle.name, new_table), replacement=replacement, original=original
        )
        self._stage_creation(session, loaded)

    def _stage_creation(self, session: ConnectorSession, loaded: Loaded) -> None:
        writer = self._writer(session)
        self._transaction.tables[loaded.handle.name] = loaded
        self._transaction.actions.append(
            lambda: self._tables.commit(self._change(loaded.handle), loaded, {}, writer)
        )

    def drop_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        handle = iceberg_table(table_handle)
        self._transaction.tables[handle.name] = None
        self._transaction.actions.append(lambda: self._tables.drop(handle))

    def truncate_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        handle, writer = iceberg_table(table_handle), self._writer(session)
        self._transaction.actions.append(lambda: self._tables.truncate(handle, writer))

    def alter_table(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, alteration: Alteration
    ) -> None:
        handle = iceberg_table(table_handle)
        if isinstance(alteration, SetProperties):
            check_changes(alteration.properties, self.get_table_metadata(session, handle))
            self._tables.require_reachable(alteration.properties.get("data_location"))
        writer = self._writer(session)
        self._transaction.actions.append(lambda: self._tables.alter(handle, alteration, writer))

    def get_evolved_table_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnMetadata],
    ) -> IcebergTableHandle:
        """Return a handle with new columns and types, and their future ids, or raise NOT_SUPPORTED."""
        from rowmerge_nb.connectors.iceberg.alter_table import stage_columns

        handle = iceberg_table(table_handle)
        _check_writable(handle)
        loaded = self._transaction.loaded(handle)
        # Never committed: the commit begins its own transaction on the table at that time.
        transaction = loaded.table.transaction()
        stage_columns(columns, transaction)
        loaded.evolved = transaction.table_metadata.schema()
        return replace(
            handle, fields=fields_of(loaded.evolved, handle.name), column_changes=tuple(columns)
        )

    # -- schemas

    def schema_exists(self, session: ConnectorSession, schema: str) -> bool:
        return schema in self._tables.schemas()

    def list_schemas(self, session: ConnectorSession) -> Sequence[str]:
        return self._tables.schemas()

    def create_schema(self, session: ConnectorSession, schema: str) -> None:
        self._transaction.actions.append(lambda: self._tables.create_schema(schema))

    def drop_schema(self, session: ConnectorSession, schema: str) -> None:
        self._transaction.actions.append(lambda: self._tables.drop_schema(schema))

    # -- procedures of tables

    def get_table_handle_for_execute(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        procedure: str,
        arguments: Mapping[str, Any],
        constraint: Constraint,
    ) -> IcebergTableExecuteHandle:
        handle = iceberg_table(table_handle)
        refuse_disabled(procedure)
        _check_writable(handle)
        table = self._transaction.loaded(handle).table
        if "retention_threshold" in arguments:
            check_retention(
                procedure, arguments["retention_threshold"], self._upkeep.least, "iceberg"
            )
            if handle.properties.get("gc.enabled", "true").lower() == "false":
                raise ConnectorError(
                    f"Files of Iceberg table '{handle.name}' may be another table's: its property"
                    " gc.enabled is false",
                    hint="Set that property to true, if no other table needs them.",
                )
        if procedure == "ROLLBACK_TO_SNAPSHOT":
            check_rollback(table, handle, arguments["snapshot_id"])
        check_partitions(handle, constraint, table)
        return IcebergTableExecuteHandle(handle, procedure, arguments, constraint)

    def execute_table_execute(
        self, session: ConnectorSession, execute_handle: ConnectorTableExecuteHandle
    ) -> ProcedureOutcome | None:
        """Schedule a procedure that rewrites no rows; the outcome reports the removed files."""
        execute = own(execute_handle, IcebergTableExecuteHandle)
        handle, arguments, writer = execute.table_handle, execute.arguments, self._writer(session)
        tables, actions = self._tables, self._transaction.actions
        tables.require_own(handle.name, self._transaction.loaded(handle).table)
        outcome = ProcedureOutcome()
        match execute.procedure:
            case "OPTIMIZE_MANIFESTS":
                actions.append(lambda: tables.gather_manifests(handle, writer))
            case "DROP_EXTENDED_STATS":
                actions.append(lambda: tables.drop_statistics(handle, writer))
            case "ROLLBACK_TO_SNAPSHOT":
                actions.append(lambda: tables.restore(handle, arguments["snapshot_id"], (), writer))
            case "EXPIRE_SNAPSHOTS":
                before = moment_before(arguments["retention_threshold"])
                actions.append(lambda: tables.expire(handle, before, writer).report(outcome))
                return outcome
            case "REMOVE_ORPHAN_FILES":
                age = arguments["retention_threshold"].time
                actions.append(lambda: self._upkeep.remove_orphans(handle, age).report(outcome))
                return outcome
        return None

    def begin_table_execute(
        self, session: ConnectorSession, execute_handle: ConnectorTableExecuteHandle
    ) -> TableExecution | None:
        """Choose the files to rewrite; None if there are none worth rewriting."""
        execute = own(execute_handle, IcebergTableExecuteHandle)
        handle = execute.table_handle
        loaded = self._transaction.loaded(handle)
        content = content_of(loaded.table, handle.snapshot)
        domains, paths = execute.constraint.domains, content.keys
        if domains:
            paths = matching_content(
                loaded.table,
                handle.snapshot,
                content,
                expression_of(execute.constraint, loaded.table.schema()),
            ).keys
        if "$path" in domains and domains["$path"].values is not None:
            paths = paths.intersection(domains["$path"].values)
        removed = rewritable(
            loaded.table, handle, content, paths, execute.arguments["file_size_threshold"]
        )
        if not removed.data:
            return None
        _, prefix = self._begin_write(session, handle)
        loaded.read, loaded.removed = content, removed
        rewritten = replace(handle, fields=(*handle.fields, *handle.lineage))
        source = replace(rewritten, only=frozenset(file_keys(removed.data)))
        size = sum(entry.data_file.file_size_in_bytes for entry in removed.data)
        return TableExecution(
            IcebergInsertTableHandle(rewritten, prefix),
            source,
            -(-size // target_bytes(handle.properties)),
        )

    def finish_table_execute(
        self,
        session: ConnectorSession,
        execute_handle: ConnectorTableExecuteHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        return self._finish(
            session, own(execute_handle, IcebergTableExecuteHandle).table_handle, (), fragments
        )

    # -- INSERT

    def begin_insert(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> IcebergInsertTableHandle:
        handle = iceberg_table(table_handle)
        _, prefix = self._begin_write(session, handle)
        return IcebergInsertTableHandle(handle, prefix)

    def finish_insert(
        self,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        insert_handle = own(insert_handle, IcebergInsertTableHandle)
        return self._finish(session, insert_handle.table_handle, (), fragments)

    # -- MERGE

    def get_row_change_paradigm(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> RowChangeParadigm:
        return RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW

    def get_merge_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> IcebergRowIdColumn:
        """Return the row id: file index, position, and the id of row lineage if there is one;
        NOT_SUPPORTED for a read-only table.
        """
        handle = iceberg_table(table_handle)
        if handle.format_version < 2:
            raise ConnectorError(
                f"Iceberg table updates require at least format version 2; table '{handle.name}' is"
                " of version 1",
                hint="CREATE TABLE ... WITH (format_version = 2) AS SELECT * FROM it.",
            )
        _check_writable(handle)
        return handle.row_id

    def get_insert_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        handle = iceberg_table(table_handle)
        if not handle.partitioning or distribution(handle, session) is Distribution.NONE:
            return None
        columns, partitioning = layout_of(handle.partitioning)
        return ConnectorTableLayout(
            tuple(handle.fields[index].name for index in columns),
            partitioning,
            multiple_writers_per_partition_supported=True,
        )

    def get_update_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        """Return the layout by the row id's file: one writer has to rewrite it, or fewer delete
        files result.
        """
        mode = write_mode(iceberg_table(table_handle), session)
        return ConnectorTableLayout(
            (),
            IcebergPartitioningHandle(),
            multiple_writers_per_partition_supported=mode is WriteMode.MERGE_ON_READ,
        )

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> IcebergMergeTableHandle:
        handle = iceberg_table(table_handle)
        loaded, prefix = self._begin_write(session, handle)
        loaded.read = content_of(loaded.table, handle.snapshot)
        files = (
            whole_files(loaded.table, handle, loaded.read)
            if write_mode(handle, session) is WriteMode.COPY_ON_WRITE
            else None
        )
        return IcebergMergeTableHandle(handle, live_files(loaded.read), prefix, files)

    def finish_merge(
        self,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        merge_handle = own(merge_handle, IcebergMergeTableHandle)
        handle = iceberg_table(merge_handle.get_table_handle())
        paths, rewrite = tuple(file.path for file in merge_handle.files), None
        if merge_handle.whole_files is not None:
            rewrite = rewrite_of(fragments, f"Iceberg table '{handle.name}'")
        output = self._finish(session, handle, paths, fragments, rewrite)
        return replace(output, notices=tuple(notices(handle, session, rewrite)))

    # -- both

    def _begin_write(
        self, session: ConnectorSession, handle: IcebergTableHandle
    ) -> tuple[Loaded, str]:
        _check_writable(handle)
        loaded = self._transaction.loaded(handle)
        if loaded.creation is None:
            self._tables.require_own(handle.name, loaded.table)
        writer = self._writer(session)
        writer.note(handle, data=True)
        self._transaction.written_tables.append(handle)
        return loaded, writer.prefix

    def _writer(self, session: ConnectorSession) -> Writer:
        self._transaction.name(session.query_id)
        return self._transaction

    def _change(self, handle: IcebergTableHandle) -> Change:
        from rowmerge_nb.connectors.iceberg.commit_conflicts import Change

        loaded = self._transaction.loaded(handle)
        level = next(
            (handle.properties[name] for name in ISOLATION if name in handle.properties),
            "serializable",
        )
        # Compaction changes no rows, so concurrent inserts are no conflict.
        compacts = bool(loaded.removed.data)
        return Change(
            handle,
            read=loaded.read,
            deleted_from=file_keys(loaded.removed.data),
            removed=loaded.removed,
            scans=tuple(loaded.scans),
            serializable=level.lower() == "serializable" and not compacts,
            compacts=compacts,
        )

    def _finish(
        self,
        session: ConnectorSession,
        handle: IcebergTableHandle,
        files: Sequence[str],
        fragments: Collection[bytes],
        rewrite: Rewrite | None = None,
    ) -> ConnectorOutputMetadata:
        loaded, transaction = self._transaction.loaded(handle), self._transaction
        change = self._change(handle)
        if rewrite is not None and loaded.read is not None:
            change.removed = _rewritten(loaded, handle, {files[n] for n in rewrite.removed})
            change.deleted_from = file_keys(change.removed.data)
        described = list(rewrite.added if rewrite is not None else map(json.loads, fragments))
        summaries = add_files(transaction, loaded, change, files, described)
        deleted: dict[str, list[Any]] = defaultdict(list)
        for fragment_data in described:
            if fragment_data["kind"] == "vector":
                deleted[files[fragment_data["file"]]].append(vector_of(fragment_data))
        if deleted:
            summaries.append(add_vectors(transaction, loaded, change, deleted))
        properties = {"engine-name": "rowmerge-nb", "rowmerge-nb-query-id": session.query_id}
        if loaded.is_made:
            # The table and its first rows are one commit, which replaces the action of
            # create_table.
            transaction.actions.pop()
        if (
            change.data
            or change.deletes
            or change.removed.data
            or handle.column_changes
            or loaded.is_made
        ):
            transaction.actions.append(
                lambda: self._tables.commit(change, loaded, properties, transaction)
            )
        return ConnectorOutputMetadata(tuple(summaries))


def _rewritten(loaded: Loaded, handle: IcebergTableHandle, paths: Collection[str]) -> Content:
    content = loaded.read or Content()
    return Content(
        [entry for entry in content.data if entry.data_file.file_path in paths],
        useless_deletes(loaded.table, handle, content, paths),
    )


def _check_writable(handle: IcebergTableHandle) -> None:
    if handle.properties.get("write.format.default", "parquet").lower() != "parquet":
        raise ConnectorError(
            f"Iceberg table '{handle.name}' must be written in format"
            f" {handle.properties['write.format.default']}, which is not supported",
            hint="Set its property write.format.default to parquet.",
        )
    if "encryption.key-id" in handle.properties:
        raise ConnectorError(
            f"Iceberg table '{handle.name}' is encrypted: pyiceberg would lose its keys",
            hint="Write it with the engine that encrypts it.",
        )
    check_properties(handle)
    for location in (handle.location, handle.data_location):
        if ":" in location and set("#?") & set(location):
            # All data would go into one file.
            raise ConnectorError(
                f"Iceberg table '{handle.name}' cannot be written: '#' and '?' end the path of its"
                f" address '{location}'",
                hint="CREATE TABLE ... AS SELECT * FROM it makes a table in another folder.",
            )
