"""Delta tables in a transaction, and the beginning and end of statements that change them."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.words import plural
from rowmerge_nb.connectors.delta import log, notes
from rowmerge_nb.connectors.delta.delta_alterations import alter, check_alteration
from rowmerge_nb.connectors.delta.delta_evolution import SchemaEvolution, holds_columns
from rowmerge_nb.connectors.delta.delta_handles import (
    DataFile,
    DeltaInsertTableHandle,
    DeltaMergeTableHandle,
    DeltaPartitioningHandle,
    DeltaRowIdColumn,
    DeltaTableExecuteHandle,
    DeltaTableHandle,
    delta_table,
)
from rowmerge_nb.connectors.delta.delta_procedures import optimize, vacuum
from rowmerge_nb.connectors.delta.delta_types import columns_of, schema_json
from rowmerge_nb.connectors.delta.features import (
    check_writable,
    refuse_feature,
    stores_wider_types,
)
from rowmerge_nb.connectors.delta.log_entries import TYPE_WIDENING, FileChange, former_actions
from rowmerge_nb.connectors.delta.partitions import check_partition_columns
from rowmerge_nb.connectors.shared.copy_on_write import rewrite_of
from rowmerge_nb.connectors.shared.file_positions import ROW_ID_TYPE
from rowmerge_nb.connectors.shared.history import no_history, unsupported_version
from rowmerge_nb.connectors.shared.properties import (
    invalid_property,
    listed_names,
    require_known,
)
from rowmerge_nb.connectors.shared.retention import check_retention
from rowmerge_nb.spi import (
    AddColumn,
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
    PointerType,
    ProcedureOutcome,
    RowChangeParadigm,
    SaveMode,
    SchemaTableName,
    TableStatistics,
    Written,
    own,
)
from rowmerge_nb.spi.types import BIGINT, INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from deltalake import DeltaTable

    from rowmerge_nb.connectors.delta.folders import Folders
    from rowmerge_nb.connectors.shared.retention import Retention
    from rowmerge_nb.spi import Constraint
    from rowmerge_nb.spi.alterations import Alteration

TABLE_PROPERTIES: Final = {
    "partitioned_by": "columns whose values define the partitions, ARRAY['region']",
    "type_widening_enabled": "whether MERGE WITH SCHEMA EVOLUTION changes types of columns",
}
_ATTEMPTS: Final = 20
"""The number of attempts to commit an INSERT beside concurrent commits."""


@dataclass
class DeltaTransaction:
    """A transaction.

    Args:
        prefix: the beginning of the names of its files, if it writes.
        actions: the steps of the commit, in order; each returns the new version, or None.
    """

    prefix: str = ""
    handles: dict[SchemaTableName, DeltaTableHandle | None] = field(default_factory=dict)
    tables: dict[tuple[str, int], DeltaTable] = field(default_factory=dict)
    created: dict[str, log.NewTable] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    committed_files: set[str] = field(default_factory=set)
    actions: list[Callable[[], ConnectorTableVersion | None]] = field(default_factory=list)

    def table(self, handle: DeltaTableHandle) -> DeltaTable:
        return self.tables[handle.location, handle.version]

    def files(self, handle: DeltaTableHandle) -> tuple[DataFile, ...]:
        return log.files_of(self.table(handle), handle.name) if handle.version >= 0 else ()


class DeltaMetadata(ConnectorMetadata):
    keeps_versions = True
    stores_comments = True
    replaces_tables = True
    evolves_tables = True
    evolves_types = True

    def __init__(
        self, folders: Folders, transaction: DeltaTransaction, min_retention: Retention
    ) -> None:
        self._folders, self._transaction = folders, transaction
        self._min_retention = min_retention

    # -- tables

    def get_table_handle(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> DeltaTableHandle | None:
        handles = self._transaction.handles
        if name not in handles:
            handles[name] = self._open(name, None)
        return handles[name]

    def _open(
        self, name: SchemaTableName, version: int | None, *, pinned: bool = False
    ) -> DeltaTableHandle | None:
        folder = self._folders.table(name)
        if folder is None:
            return None
        table = log.open_table(folder, name, version)
        handle = log.handle_of(table, folder, name, pinned=pinned)
        self._transaction.tables[handle.location, handle.version] = table
        return handle

    def get_versioned_table_handle(
        self, session: ConnectorSession, name: SchemaTableName, version: ConnectorTableVersion
    ) -> DeltaTableHandle | None:
        folder = self._folders.table(name)
        if folder is None:
            return None
        newest = log.open_table(folder, name)
        number = _version_of(newest, name, version, session.time_zone)
        return self._open(name, number, pinned=True)

    def get_table_version(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableVersion | None:
        version = delta_table(table_handle).version
        return ConnectorTableVersion(version) if version >= 0 else None

    def get_version_time(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> dt.datetime | None:
        handle = delta_table(table_handle)
        if handle.version < 0:
            return None
        with log.log_errors(handle.name):
            newest = next(iter(self._transaction.table(handle).history(1)), {})
        return _instant(newest["timestamp"]) if "timestamp" in newest else None

    def restore_table(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        version: ConnectorTableVersion | None,
        dropped: Sequence[str] = (),
    ) -> None:
        handle = delta_table(table_handle)
        table = self._writable(handle, changes_rows=True)
        if version is None:
            self.truncate_table(session, handle)
            return
        number = _version_of(table, handle.name, version, session.time_zone)
        earlier = log.open_table(Path(handle.location), handle.name, number)
        columns = tuple(c for c in handle.columns if c.name not in dropped)
        earlier_columns = columns_of(earlier.schema().to_json(), handle.name)
        if not holds_columns(columns, earlier_columns):
            raise ConnectorError(
                f"Version {number} of table '{handle.name}' has other columns",
                hint=f"Read it: SELECT * FROM {handle.name} FOR VERSION AS OF {number}",
            )
        restore = (
            self._restore
            if earlier_columns == handle.columns and not stores_wider_types(table)
            else partial(self._restore_files, earlier, columns)
        )
        self._transaction.actions.append(lambda: restore(session, handle, number))

    def _restore_files(
        self,
        earlier: DeltaTable,
        columns: Sequence[ColumnMetadata],
        session: ConnectorSession,
        handle: DeltaTableHandle,
        number: int,
    ) -> ConnectorTableVersion | None:
        """Restore the files of a version under the present columns, except the dropped ones."""
        if number == handle.version:
            return None
        table = self._transaction.table(handle)
        old, current = log.files_of(earlier, handle.name), self._transaction.files(handle)
        missing = [file.path for file in old if not _exists(handle, file)]
        if missing:
            raise ConnectorError(
                f"File '{missing[0]}' of version {number} of Delta table '{handle.name}' does not"
                " exist",
                code="DELTA_LAKE_BAD_DATA",
                hint="Its files may have been removed by VACUUM; restore a later version.",
            )
        old_paths, current_paths = {file.path for file in old}, {file.path for file in current}
        returned = [file for file in old if file.path not in current_paths]
        change = FileChange(
            removed=[file for file in current if file.path not in old_paths],
            restored=former_actions(handle.location, number, returned),
        )
        schema = json.loads(table.schema().to_json())
        names = {column.name for column in columns}
        fields = [field for field in schema["fields"] if field["name"] in names]
        drops = len(fields) < len(schema["fields"])
        new_schema = json.dumps({**schema, "fields": fields}) if drops else None
        version = log.commit_entry(
            table, replace(handle, new_schema=new_schema), "RESTORE", _details(session, {}), change
        )
        return log.version_after(version, handle)

    def _restore(
        self, session: ConnectorSession, handle: DeltaTableHandle, number: int
    ) -> ConnectorTableVersion | None:
        if number == handle.version:
            return None
        table = log.open_current(handle)
        if table.version() != handle.version:
            raise log.conflict(handle.name)
        version = log.commit_by(
            table,
            handle,
            _details(session, {}),
            lambda properties: table.restore(number, commit_properties=properties),
        )
        return log.version_after(version, handle)

    def get_table_metadata(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableMetadata:
        handle = delta_table(table_handle)
        properties: dict[str, Any] = {}
        if handle.partition_columns:
            properties["partitioned_by"] = list(handle.partition_columns)
        if handle.widens:
            properties["type_widening_enabled"] = True
        return ConnectorTableMetadata(handle.name, handle.columns, properties, handle.comment)

    def list_tables(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        return self._folders.tables()

    def row_count(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> int | None:
        """Return the number of rows, or None if a file has no statistics."""
        counts = [file.rows for file in self._transaction.files(delta_table(table_handle))]
        sizes = [count for count in counts if count is not None]
        return sum(sizes) if len(sizes) == len(counts) else None

    def get_table_statistics(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> TableStatistics:
        files = self._transaction.files(delta_table(table_handle))
        rows = self.row_count(session, table_handle)
        return TableStatistics(rows, sum(file.size for file in files), len(files))

    def create_table(
        self,
        session: ConnectorSession,
        metadata: ConnectorTableMetadata,
        save_mode: SaveMode = SaveMode.FAIL,
    ) -> None:
        """Create a table at commit, or replace one, whose earlier versions are retained."""
        name, columns = metadata.name, metadata.columns
        require_known(metadata.properties, TABLE_PROPERTIES, "Catalog 'delta'")
        partitioned_by = listed_names(metadata.properties, "partitioned_by")
        names = {column.name.lower(): column.name for column in columns}
        for one in partitioned_by:
            if one.lower() not in names:
                raise invalid_property(
                    "partitioned_by",
                    f"Table '{name}' has no column '{one}' to partition by",
                    "Name columns of the table.",
                )
        partition_columns = tuple(names[one.lower()] for one in partitioned_by)
        if len(partition_columns) == len(columns):
            raise invalid_property(
                "partitioned_by",
                "A Delta table cannot be partitioned by all of its columns",
                "Omit one column, since the files need one.",
            )
        check_partition_columns(partition_columns, columns)
        schema = schema_json(columns)
        is_widening = _is_true(metadata.properties, "type_widening_enabled")
        replaced = self.get_table_handle(session, name) if save_mode is SaveMode.REPLACE else None
        if replaced is not None:
            table = self._writable(replaced, changes_rows=True)
            if is_widening or stores_wider_types(table):
                # delta-rs, which commits the table, does not support the feature.
                refuse_feature(name, TYPE_WIDENING, "replaced")
        handle = DeltaTableHandle(
            name,
            str(self._folders.new_table(name)) if replaced is None else replaced.location,
            "",
            -1,
            columns_of(schema, name),
            partition_columns,
            comment=metadata.comment,
            widens=is_widening,
        )
        self._transaction.handles[name] = handle
        self._transaction.created[handle.location] = log.NewTable(
            schema, metadata.comment, is_widening, replaced
        )
        self._begin_write(session, handle if replaced is None else replaced)
        self._transaction.actions.append(lambda: self._create(session, handle, ()))

    def _create(
        self,
        session: ConnectorSession,
        handle: DeltaTableHandle,
        adds: Sequence[Mapping[str, Any]],
    ) -> ConnectorTableVersion | None:
        details = _details(session, {"numOutputRows": sum(entry["rows"] for entry in adds)})
        new = self._transaction.created[handle.location]
        return log.create(handle, new, adds, details, self._transaction.prefix)

    def drop_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        handle = delta_table(table_handle)
        self._transaction.handles[handle.name] = None

        def drop() -> None:
            log.open_current(handle)
            self._folders.remove(Path(handle.location))

        self._transaction.actions.append(drop)

    def truncate_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        handle = delta_table(table_handle)
        table = self._writable(handle, changes_rows=True)
        change = FileChange(removed=self._transaction.files(handle))
        details = _details(session, {"numTargetFilesRemoved": len(change.removed)})
        if change.removed:
            self._commit_later(table, handle, change, details, "")

    def alter_table(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, alteration: Alteration
    ) -> None:
        handle = delta_table(table_handle)
        table = self._writable(handle, changes_rows=False)
        check_alteration(alteration)
        details = _details(session, {})
        if stores_wider_types(table):
            evolved_handle = self._altered(table, handle, alteration)
            self._transaction.actions.append(
                lambda: log.version_after(
                    log.commit_entry(table, evolved_handle, "ADD COLUMNS", details, FileChange()),
                    handle,
                )
            )
            return
        self._transaction.actions.append(
            lambda: log.version_after(
                log.commit_by(table, handle, details, partial(alter, table, alteration)), handle
            )
        )

    def _altered(
        self, table: DeltaTable, handle: DeltaTableHandle, alteration: Alteration
    ) -> DeltaTableHandle:
        if not isinstance(alteration, AddColumn):
            refuse_feature(handle.name, TYPE_WIDENING, "altered in this way")
        return self._evolved(table, handle, [alteration.column])

    def get_evolved_table_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnMetadata],
    ) -> DeltaTableHandle:
        """Return a handle with new columns and fields, and with wider types if the table has
        ``type_widening_enabled``.
        """
        handle = delta_table(table_handle)
        return self._evolved(self._writable(handle, changes_rows=True), handle, columns)

    @staticmethod
    def _evolved(
        table: DeltaTable, handle: DeltaTableHandle, columns: Sequence[ColumnMetadata]
    ) -> DeltaTableHandle:
        before = table.schema().to_json()
        evolution = SchemaEvolution(
            json.loads(before), handle.partition_columns, widens=handle.widens
        )
        evolution.take(columns)
        schema = evolution.schema
        return replace(
            handle,
            columns=columns_of(schema, handle.name),
            new_schema=None if json.loads(schema) == json.loads(before) else schema,
            narrow_columns=tuple(evolution.narrow_columns),
        )

    # -- procedures of tables

    def get_table_handle_for_execute(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        procedure: str,
        arguments: Mapping[str, Any],
        constraint: Constraint,
    ) -> DeltaTableExecuteHandle:
        handle = delta_table(table_handle)
        table = self._writable(handle, changes_rows=False)
        if procedure == "OPTIMIZE" and stores_wider_types(table):
            # delta-rs, which commits OPTIMIZE, does not support the feature.
            refuse_feature(handle.name, TYPE_WIDENING, "optimized")
        if procedure == "VACUUM":
            check_retention(
                procedure, arguments["retention_threshold"], self._min_retention, "delta"
            )
        return DeltaTableExecuteHandle(handle, procedure, arguments)

    def execute_table_execute(
        self, session: ConnectorSession, execute_handle: ConnectorTableExecuteHandle
    ) -> ProcedureOutcome:
        """Schedule a procedure; the outcome is complete after the commit."""
        execute = own(execute_handle, DeltaTableExecuteHandle)
        handle, arguments, outcome = execute.table_handle, execute.arguments, ProcedureOutcome()
        actions = self._transaction.actions
        if execute.procedure == "OPTIMIZE":
            target, details = arguments["file_size_threshold"], _details(session, {})
            actions.append(lambda: optimize(handle, target, details, outcome))
        else:
            retention = arguments["retention_threshold"]
            actions.append(lambda: vacuum(handle, retention, outcome))
        return outcome

    # -- schemas

    def schema_exists(self, session: ConnectorSession, schema: str) -> bool:
        return schema in self._folders.schemas()

    def list_schemas(self, session: ConnectorSession) -> Sequence[str]:
        return self._folders.schemas()

    def create_schema(self, session: ConnectorSession, schema: str) -> None:
        self._transaction.actions.append(lambda: self._folders.create_schema(schema))

    def drop_schema(self, session: ConnectorSession, schema: str) -> None:
        self._transaction.actions.append(lambda: self._folders.drop_schema(schema))

    # -- INSERT

    def begin_insert(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> DeltaInsertTableHandle:
        handle = delta_table(table_handle)
        self._writable(handle, changes_rows=False)
        return DeltaInsertTableHandle(handle, self._begin_write(session, handle))

    def finish_insert(
        self,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        handle = own(insert_handle, DeltaInsertTableHandle).table_handle
        adds = [json.loads(fragment) for fragment in fragments]
        actions = self._transaction.actions
        if handle.version < 0:
            # The table and its first rows are one commit, which replaces the action of
            # create_table.
            actions.pop()
            actions.append(lambda: self._create(session, handle, adds))
        elif adds:
            actions.append(lambda: self._append(session, handle, adds))
        return self._output(adds)

    def _append(
        self,
        session: ConnectorSession,
        handle: DeltaTableHandle,
        adds: Sequence[Mapping[str, Any]],
    ) -> ConnectorTableVersion:
        """Commit new files after the newest version, unless the table was altered."""
        details = _details(session, {"numOutputRows": sum(entry["rows"] for entry in adds)})
        change, prefix = FileChange(adds), self._transaction.prefix
        for attempt in range(_ATTEMPTS):
            table = log.open_table(Path(handle.location), handle.name)
            newest = log.handle_of(table, Path(handle.location), handle.name)
            check_writable(table, handle.name, changes_rows=False)
            if (newest.identity, newest.columns, newest.partition_columns) != (
                handle.identity,
                handle.columns,
                handle.partition_columns,
            ):
                raise log.conflict(handle.name)
            try:
                return log.version_after(log.commit(table, newest, change, details, prefix), newest)
            except ConnectorError as error:
                if error.code != "TRANSACTION_CONFLICT" or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    # -- MERGE

    def get_row_change_paradigm(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> RowChangeParadigm:
        return RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW

    def get_merge_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> DeltaRowIdColumn:
        """Return the row id: file index and position; NOT_SUPPORTED for a read-only table."""
        self._writable(delta_table(table_handle), changes_rows=True)
        return DeltaRowIdColumn("$row_id", ROW_ID_TYPE)

    def get_insert_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        names = set(delta_table(table_handle).partition_columns)
        if not names:
            return None
        columns = delta_table(table_handle).columns
        return ConnectorTableLayout(
            tuple(column.name for column in columns if column.name in names),
            DeltaPartitioningHandle(by_file=False),
            multiple_writers_per_partition_supported=True,
        )

    def get_update_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        return ConnectorTableLayout((), DeltaPartitioningHandle(by_file=True))

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> DeltaMergeTableHandle:
        handle = delta_table(table_handle)
        self._writable(handle, changes_rows=True)
        prefix = self._begin_write(session, handle)
        return DeltaMergeTableHandle(handle, self._transaction.files(handle), prefix)

    def finish_merge(
        self,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        merge_handle = own(merge_handle, DeltaMergeTableHandle)
        handle = delta_table(merge_handle.get_table_handle())
        rewrite = rewrite_of(fragments, f"Delta table '{handle.name}'")
        adds, removed = rewrite.added, [merge_handle.files[number] for number in rewrite.removed]
        metrics = {
            "numTargetRowsInserted": rewrite.inserted,
            "numTargetRowsUpdated": rewrite.updated,
            "numTargetRowsDeleted": rewrite.deleted,
            "numTargetRowsCopied": rewrite.copied,
            "numTargetFilesAdded": len(adds),
            "numTargetFilesRemoved": len(removed),
            "numTargetBytesAdded": sum(entry["bytes"] for entry in adds),
            "numTargetBytesRemoved": sum(file.size for file in removed),
        }
        if adds or removed or handle.new_schema is not None:
            table, change = self._transaction.table(handle), FileChange(adds, removed)
            details = _details(session, metrics)
            self._commit_later(table, handle, change, details, merge_handle.prefix)
        output = self._output(adds)
        if handle.narrow_columns:
            narrow = (
                f"{plural(len(handle.narrow_columns), 'column')} kept the type"
                f" ({', '.join(handle.narrow_columns)}): the Delta table lacks"
                " delta.enableTypeWidening."
            )
            output = replace(output, notices=(narrow,))
        if not removed:
            return output
        cost = (
            f"Copy-on-write: {plural(len(removed), 'file')} rewritten as {len(adds)},"
            f" {plural(rewrite.copied, 'unchanged row')} copied, {output.bytes or 0:,} bytes written."
        )
        return replace(output, notices=(cost, *output.notices))

    # -- shared

    def _commit_later(
        self,
        table: DeltaTable,
        handle: DeltaTableHandle,
        change: FileChange,
        details: Mapping[str, Any],
        prefix: str,
    ) -> None:
        self._transaction.actions.append(
            lambda: log.version_after(log.commit(table, handle, change, details, prefix), handle)
        )

    def _output(self, adds: Sequence[Mapping[str, Any]]) -> ConnectorOutputMetadata:
        self._transaction.committed_files.update(entry["path"] for entry in adds)
        return ConnectorOutputMetadata(
            tuple(
                Written("data file", entry["path"], entry["rows"], entry["bytes"]) for entry in adds
            )
        )

    def _writable(self, handle: DeltaTableHandle, *, changes_rows: bool) -> Any:
        """Return a table that can be written, or None for a new one."""
        if handle.version < 0:
            return None
        table = self._transaction.table(handle)
        with log.log_errors(handle.name):
            check_writable(table, handle.name, changes_rows=changes_rows)
        return table

    def _begin_write(self, session: ConnectorSession, handle: DeltaTableHandle) -> str:
        transaction, folder = self._transaction, Path(handle.location)
        if not transaction.prefix:
            transaction.prefix = f"rowmerge-{uuid.uuid4().hex}"
        if folder not in transaction.folders:
            transaction.folders.append(folder)
            notes.begin(folder, transaction.prefix, session.query_id, handle.version)
        return transaction.prefix


def _exists(handle: DeltaTableHandle, file: DataFile) -> bool:
    return (Path(handle.location) / unquote(file.path)).exists()


def _is_true(properties: Mapping[str, Any], name: str) -> bool:
    value = properties.get(name, False)
    if not isinstance(value, bool):
        raise invalid_property(
            name,
            f"Invalid value for table property '{name}': Cannot convert [{value}] to boolean",
            "Write true or false.",
        )
    return value


def _details(session: ConnectorSession, metrics: Mapping[str, int]) -> dict[str, Any]:
    return {
        "rowmerge-nb-query-id": session.query_id,
        "operationMetrics": {name: str(number) for name, number in metrics.items()},
    }


def _version_of(
    table: DeltaTable, name: SchemaTableName, version: ConnectorTableVersion, time_zone: str
) -> int:
    pointer = version.version
    if version.pointer_type is PointerType.TEMPORAL:
        instant = version.instant(time_zone)
        with log.log_errors(name):
            commits = table.history()
        versions = [c["version"] for c in commits if _instant(c["timestamp"]) <= instant]
        if not versions:
            raise no_history(name, instant, "Its history begins later, or was cleaned up.")
        return int(max(versions))
    if not isinstance(pointer, int) or version.version_type not in {None, BIGINT, INTEGER}:
        type_name = version.version_type or type(pointer).__name__
        raise unsupported_version(type_name, "Write the number of a version, which is a bigint.")
    if not 0 <= pointer <= table.version():
        raise ConnectorError.invalid(
            f"Delta Lake snapshot ID does not exists: {pointer}",
            hint=f"The newest version of '{name}' is {table.version()}.",
        )
    return pointer


def _instant(milliseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
