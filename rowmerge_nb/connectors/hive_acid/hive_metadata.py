"""The metadata of Hive tables in a transaction."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.front_end import orphans_command
from rowmerge_nb.connectors.hive_acid.buckets import HivePartitioningHandle, HiveUpdateHandle
from rowmerge_nb.connectors.hive_acid.delta_writer import publish, staged_files
from rowmerge_nb.connectors.hive_acid.hive_handles import (
    ROW_ID_TYPE,
    HiveInsertTableHandle,
    HiveMergeTableHandle,
    HiveRowIdColumn,
    HiveTableHandle,
    HiveWrite,
    changeable_table,
    hive_table,
)
from rowmerge_nb.connectors.hive_acid.housekeeping import dropped_folder, note_creation
from rowmerge_nb.connectors.hive_acid.metastore.metastore import (
    HiveTable,
    MetastoreChanges,
    Snapshot,
)
from rowmerge_nb.connectors.hive_acid.orc.codecs import OrcCodec
from rowmerge_nb.connectors.hive_acid.placing import place
from rowmerge_nb.connectors.hive_acid.statistics import table_size
from rowmerge_nb.connectors.hive_acid.table_definition import defined_table
from rowmerge_nb.connectors.hive_acid.updatable_source import (
    HiveUpdatableTableHandle,
    update_row_id,
)
from rowmerge_nb.connectors.hive_acid.visible_deltas import ValidWriteIds, visible
from rowmerge_nb.connectors.shared.disk import refused
from rowmerge_nb.connectors.shared.folders import folder_name
from rowmerge_nb.connectors.shared.history import unsupported_version
from rowmerge_nb.connectors.shared.updatable_metadata import UpdatableMetadata
from rowmerge_nb.spi import (
    ColumnHandle,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorOutputMetadata,
    ConnectorSession,
    ConnectorTableHandle,
    ConnectorTableLayout,
    ConnectorTableMetadata,
    ConnectorTableVersion,
    PointerType,
    RowChangeParadigm,
    SaveMode,
    SchemaTableName,
    TableStatistics,
    Written,
    own,
)
from rowmerge_nb.spi.alterations import SetColumnComment, SetTableComment

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rowmerge_nb.connectors.hive_acid.metastore.metastore import Metastore
    from rowmerge_nb.connectors.hive_acid.placing import PlacedFolder
    from rowmerge_nb.spi.alterations import Alteration


@dataclass
class HiveTransaction:
    """A transaction of the connector.

    Args:
        number: the metastore's transaction, from the first write on.
        beginning: the query for which it is being begun.
        attempt_folders: the table's folder and its hidden subfolder, for each write.
        placed_folders: directories moved to where readers look.
    """

    number: int | None = None
    changes: MetastoreChanges = field(default_factory=MetastoreChanges)
    tables: dict[SchemaTableName, HiveTableHandle | None] = field(default_factory=dict)
    beginning: str = ""
    attempt_folders: list[tuple[Path, str]] = field(default_factory=list)
    placed_folders: list[PlacedFolder] = field(default_factory=list)
    partitions: list[Path] = field(default_factory=list)
    folders: list[PlacedFolder] = field(default_factory=list)
    removed: list[HiveTable] = field(default_factory=list)
    codec: OrcCodec = OrcCodec.GZIP


class HiveAcidMetadata(UpdatableMetadata):
    def __init__(self, metastore: Metastore, transaction: HiveTransaction) -> None:
        self._metastore = metastore
        self._transaction = transaction

    # -- tables

    def get_table_handle(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> HiveTableHandle | None:
        handles = self._transaction.tables
        if name not in handles:
            table = self._metastore.get_table(name)
            handles[name] = (
                None
                if table is None
                else HiveTableHandle(
                    table, self._metastore.snapshot(table, lambda: self._ensure_begun(session))
                )
            )
        return handles[name]

    def get_table_version(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableVersion | None:
        """Return the last visible write id; None while earlier ones are open."""
        write_ids = hive_table(table_handle).snapshot.write_ids
        if write_ids.open:
            return None
        return ConnectorTableVersion(
            next(
                number
                for number in range(write_ids.high_watermark, -1, -1)
                if number not in write_ids.aborted
            )
        )

    def get_former_table_handle(
        self, session: ConnectorSession, name: SchemaTableName, version: ConnectorTableVersion
    ) -> HiveTableHandle | None:
        """Return a table as of a write id, unless a compaction merged later rows into earlier ones."""
        handle = self.get_table_handle(session, name)
        if handle is None:
            return None
        write_ids, write_id = handle.snapshot.write_ids, version.version
        if not isinstance(write_id, int) or version.pointer_type is not PointerType.TARGET_ID:
            raise unsupported_version(
                type(write_id).__name__,
                "An earlier state of a Hive table is identified by a write id.",
            )
        if not 0 <= write_id <= write_ids.high_watermark:
            raise ConnectorError.invalid(
                f"Write id {write_id} of table '{name}' was not assigned; the last one"
                f" is {write_ids.high_watermark}",
                hint="The names of the table's delta folders have the write ids.",
            )
        if write_id in write_ids.open or write_id in write_ids.aborted:
            state = "open" if write_id in write_ids.open else "aborted"
            raise ConnectorError.invalid(
                f"The transaction of write id {write_id} of table '{name}' is {state}: it has"
                " committed nothing",
                hint="Name the write id of a transaction that was committed.",
            )
        return replace(
            handle,
            snapshot=replace(
                handle.snapshot, write_ids=replace(write_ids, high_watermark=write_id)
            ),
        )

    def get_table_metadata(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableMetadata:
        table = hive_table(table_handle).table
        return ConnectorTableMetadata(table.name, table.columns, table.properties, table.comment)

    def get_table_statistics(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> TableStatistics:
        """Return the rows in the files, including deleted ones, and bytes."""
        return table_size(hive_table(table_handle))

    def list_tables(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        return self._metastore.list_tables()

    @property
    def replaces_tables(self) -> bool:
        """Whether the metastore drops and creates a table in one transaction; Trino's Hive
        connector never does.
        """
        return not self._metastore.shared

    def create_table(
        self,
        session: ConnectorSession,
        metadata: ConnectorTableMetadata,
        save_mode: SaveMode = SaveMode.FAIL,
    ) -> None:
        """Create a table; a replaced table's files stay until the commit."""
        name, identity = metadata.name, uuid.uuid4().hex
        old_table = self.get_table_handle(session, name) if save_mode is SaveMode.REPLACE else None
        # Folders of schemas lie beside the default schema's tables and are recognized by their
        # suffix.
        folder = re.sub(r"\.db$", "%2Edb", folder_name(name.table))
        if old_table is not None:
            folder += f"-{identity[:12]}"
        location = self._metastore.schema_location(name.schema) / folder
        definition = (metadata.columns, metadata.properties, str(location))
        table = defined_table(identity, name, *definition, managed=True, comment=metadata.comment)
        try:
            self._make_table_folder(session, location, dropped_folder(location, table.id))
        except FileExistsError:
            raise ConnectorError(
                f"Target directory for table '{name}' already exists: {location}",
                code="HIVE_PATH_ALREADY_EXISTS",
                hint=(
                    f"{orphans_command()} lists it if a failed statement left it."
                    " Otherwise, move it away, or make it a table with register_table."
                ),
            ) from None
        except OSError as error:
            raise refused(
                error, f"Directory '{location}' of table '{name}'", "HIVE_FILESYSTEM_ERROR"
            ) from error
        if old_table is not None:
            self.drop_table(session, old_table)
            self._transaction.changes.replaced[old_table.table.id] = old_table.snapshot.write_ids
        self._transaction.changes.tables.append(table)
        partitions = () if table.partitioned_by else ("",)
        self._transaction.tables[name] = HiveTableHandle(
            table, Snapshot(ValidWriteIds(0), 0, partitions)
        )

    def _make_table_folder(self, session: ConnectorSession, location: Path, aside: Path) -> None:
        if os.path.lexists(location):
            raise FileExistsError(location)
        # An open transaction keeps the folder from being taken for an orphan.
        self._ensure_begun(session)
        try:
            aside.mkdir(parents=True)
            note_creation(aside)
            place(aside, location, self._transaction.folders)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise

    def drop_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        """Drop a table with the commit; registered files stay."""
        table = hive_table(table_handle).table
        self._transaction.tables[table.name] = None
        self._transaction.changes.dropped.append(table)
        self._transaction.removed.append(table)

    stores_comments = True

    def alter_table(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, alteration: Alteration
    ) -> None:
        """Set or remove a comment; NOT_SUPPORTED for other alterations."""
        handle = hive_table(table_handle)
        if not isinstance(alteration, SetTableComment | SetColumnComment):
            raise ConnectorError(
                "This connector does not support altering tables, except for their comments",
                hint="Create a table with other columns: CREATE TABLE ... AS SELECT.",
            )
        table = _commented(handle.table, alteration)
        self._transaction.changes.commented.append(table)
        self._transaction.tables[table.name] = replace(handle, table=table)

    # -- schemas

    def schema_exists(self, session: ConnectorSession, schema: str) -> bool:
        return self._transaction.changes.schemas.get(
            schema, schema in self._metastore.list_schemas()
        )

    def list_schemas(self, session: ConnectorSession) -> Sequence[str]:
        return self._metastore.list_schemas()

    def create_schema(self, session: ConnectorSession, schema: str) -> None:
        self._transaction.changes.schemas[schema] = True

    def drop_schema(self, session: ConnectorSession, schema: str) -> None:
        self._transaction.changes.schemas[schema] = False

    # -- INSERT

    def begin_insert(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> HiveInsertTableHandle:
        handle = hive_table(table_handle)
        if not handle.table.transactional:
            raise ConnectorError(
                f"Table '{handle.table.name}' is not transactional, and only"
                " transactional tables can be written",
                hint="CREATE TABLE ... WITH (transactional = true) AS SELECT * FROM it.",
            )
        return HiveInsertTableHandle(handle, self._begin_write(session, handle, updates=False))

    def finish_insert(
        self,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        insert_handle = own(insert_handle, HiveInsertTableHandle)
        return self._publish(
            insert_handle.table_handle, insert_handle.write, fragments, updates=False
        )

    # -- MERGE

    def get_row_change_paradigm(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> RowChangeParadigm:
        return RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW

    def get_merge_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> HiveRowIdColumn:
        changeable_table(table_handle)
        return HiveRowIdColumn("$row_id", ROW_ID_TYPE)

    def get_insert_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        table = hive_table(table_handle).table
        placing = {*table.bucketed_by, *table.partitioned_by}
        columns = [column for column in table.columns if column.name in placing]
        if not columns:
            return None
        names = tuple(column.name for column in columns)
        if table.bucket_count is None:
            return ConnectorTableLayout(names)
        arguments = tuple(names.index(name) for name in table.bucketed_by)
        types = tuple(columns[index].type for index in arguments)
        return ConnectorTableLayout(
            names,
            HivePartitioningHandle(table.bucket_count, table.bucketing_version, types, arguments),
        )

    def get_update_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        count = hive_table(table_handle).table.bucket_count
        return None if count is None else ConnectorTableLayout((), HiveUpdateHandle(count))

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> HiveMergeTableHandle:
        """Allocate a write id; NOT_SUPPORTED for a table that is not transactional."""
        handle = changeable_table(table_handle)
        return HiveMergeTableHandle(handle, self._begin_write(session, handle, updates=True))

    def finish_merge(
        self,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        """Publish the files; the commit makes them visible."""
        merge_handle = own(merge_handle, HiveMergeTableHandle)
        return self._publish(
            hive_table(merge_handle.get_table_handle()), merge_handle.write, fragments, updates=True
        )

    # -- the older flow of UPDATE and DELETE

    def get_update_row_id_column_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> ColumnHandle:
        table = changeable_table(table_handle).table
        return update_row_id(table, {column.name for column in updated_columns})

    def _begin_updatable(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle] | None,
    ) -> HiveUpdatableTableHandle:
        """Allocate a write id.

        Raises:
            ConnectorError: NOT_SUPPORTED if a partition or bucket column is updated, which would
                move the row to another split.
        """
        handle = changeable_table(table_handle)
        names = None if updated_columns is None else tuple(c.name for c in updated_columns)
        table = handle.table
        for role, placing in (("partition", table.partitioned_by), ("bucket", table.bucketed_by)):
            if moved := [name for name in names or () if name in placing]:
                raise ConnectorError(
                    f"Updating Hive table {role} columns is not supported",
                    hint=(
                        f"'{moved[0]}' decides where a row is stored. Omit the option"
                        " flow: the machinery of MERGE moves rows."
                    ),
                )
        write = self._begin_write(session, handle, updates=True)
        return HiveUpdatableTableHandle(table, handle.snapshot, write, names)

    def _finish_updatable(
        self, table_handle: ConnectorTableHandle, fragments: Collection[bytes], step: str
    ) -> ConnectorOutputMetadata:
        handle = own(table_handle, HiveUpdatableTableHandle)
        return self._publish(handle, handle.write, fragments, updates=True)

    # -- writing

    def _ensure_begun(self, session: ConnectorSession) -> int:
        transaction = self._transaction
        if transaction.number is None:
            transaction.beginning = session.query_id
            transaction.number = self._metastore.open_transaction(session.user, session.query_id)
        return transaction.number

    def _begin_write(
        self, session: ConnectorSession, handle: HiveTableHandle, *, updates: bool
    ) -> HiveWrite:
        transaction, number = self._transaction, self._ensure_begun(session)
        write = HiveWrite(
            self._metastore.allocate_write_id(number, handle.table, updates=updates),
            f"_tmp_{session.query_id}_{number}",
            transaction.codec,
        )
        location = Path(handle.table.location)
        transaction.attempt_folders.append((location, write.folder))
        try:
            (location / write.folder).mkdir(exist_ok=True)
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                visible(location)
            raise refused(
                error,
                f"Directory '{location}' of table '{handle.table.name}'",
                "HIVE_FILESYSTEM_ERROR",
            ) from error
        return write

    def _publish(
        self,
        handle: HiveTableHandle,
        write: HiveWrite,
        fragments: Collection[bytes],
        *,
        updates: bool,
    ) -> ConnectorOutputMetadata:
        transaction, table = self._transaction, handle.table
        files = staged_files(fragments)
        is_new = table in transaction.changes.tables
        if transaction.number is None:
            raise ValueError(f"No transaction was begun for table '{table.name}'")
        if not is_new:
            transaction.changes.sequences[table.id] = handle.snapshot.sequence
        partitions = {file.partition for file in files}
        if table not in transaction.changes.changed_tables:
            transaction.changes.changed_tables.append(table)
        if table.partitioned_by:
            transaction.changes.partitions.setdefault(table.id, set()).update(partitions)
        if updates:
            transaction.changes.updated.setdefault(table.id, set()).update(partitions)
        outputs: list[Written] = []
        self._metastore.while_open(
            transaction.number,
            table,
            lambda: outputs.extend(
                publish(handle, write, files, transaction.placed_folders, transaction.partitions)
            ),
            is_new=is_new,
        )
        return ConnectorOutputMetadata(tuple(outputs))


def _commented(table: HiveTable, alteration: SetTableComment | SetColumnComment) -> HiveTable:
    if isinstance(alteration, SetTableComment):
        return replace(table, comment=alteration.comment)
    columns = (
        replace(c, comment=alteration.comment) if c.name == alteration.column else c
        for c in table.columns
    )
    return replace(table, columns=tuple(columns))
