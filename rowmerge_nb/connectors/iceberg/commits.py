"""The one snapshot of a statement: data files and delete files added together, and what of other commits it cannot go with.

pyiceberg 0.12 has no public commit of row deltas. What is used of its inside is used here and nowhere else: the producer of appends,
to which a manifest of delete files is added, and the hook by which it checks a commit against others before it tries again.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV1,
    ManifestWriterV2,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update import AssertRefSnapshotId
from pyiceberg.table.update.snapshot import (
    ExpireSnapshots,
    ManageSnapshots,
    _FastAppendFiles,
    _MergeAppendFiles,
    _SnapshotProducer,
)
from pyiceberg.table.update.statistics import UpdateStatistics
from pyiceberg.types import NestedField, StructType

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, error_text
from rowmerge_nb.connectors.iceberg.alter_table import stage_alteration, stage_columns, stage_drops
from rowmerge_nb.connectors.iceberg.iceberg_catalog import is_settled, writes_metadata
from rowmerge_nb.connectors.iceberg.iceberg_types import fields_of
from rowmerge_nb.connectors.iceberg.planning import Content, content_of, may_delete_from
from rowmerge_nb.connectors.iceberg.sorting import sort_fields
from rowmerge_nb.connectors.iceberg.table_definition import COMMENT, ISOLATION, PROPERTIES
from rowmerge_nb.connectors.shared.disk import refused
from rowmerge_nb.connectors.shared.sqlite_errors import is_full, said
from rowmerge_nb.spi.handles import ConnectorTableVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.typedef import TableVersion

    from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog
    from rowmerge_nb.connectors.iceberg.handles import IcebergTableHandle
    from rowmerge_nb.connectors.iceberg.notes import Writer
    from rowmerge_nb.spi.alterations import Alteration


@dataclass
class Change:
    """What a statement does to a table.

    Args:
        handle: the table, as the statement has seen it.
        data: data files to add.
        deletes: position delete files to add, one per data file.
        deleted_from: the data files that these delete rows of, or that are removed.
        removed: files to take out: their rows are in the new ones.
        read: the live files that the statement began with; None for an INSERT, which reads none.
        scans: what the rows that it looked at had to satisfy, one expression per scan.
        serializable: commits that it might have seen rows of are conflicts too.
    """

    handle: IcebergTableHandle
    data: list[DataFile] = field(default_factory=list)
    deletes: list[DataFile] = field(default_factory=list)
    deleted_from: set[str] = field(default_factory=set)
    removed: Content = field(default_factory=Content)
    read: Content | None = None
    scans: Sequence[BooleanExpression] = ()
    serializable: bool = True

    @property
    def operation(self) -> Operation:
        """What the snapshot's summary calls it."""
        if self.removed.data:
            return Operation.REPLACE
        if not self.deletes:
            return Operation.APPEND
        return Operation.OVERWRITE if self.data else Operation.DELETE


def conflict(name: object, what: str) -> NoReturn:
    """Refuse a commit because of another one."""
    raise ConnectorError(
        f"Iceberg table '{name}' was changed while the statement ran: {what}",
        code="TRANSACTION_CONFLICT",
        hint="Nothing was changed by this statement. Run it again.",
    )


def _again(entry: ManifestEntry, deleted_by: int | None = None) -> ManifestEntry:
    """Return an entry as it stands in a later manifest, where the snapshot is named that has taken its file out; None for a file that stays."""
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.EXISTING if deleted_by is None else ManifestEntryStatus.DELETED,
        snapshot_id=entry.snapshot_id if deleted_by is None else deleted_by,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


class _OptionalPartitions(ManifestWriter):
    """A manifest whose partition values may be NULL, as the specification has it: a required field of a row is so where the row is."""

    def _with_partition(self, format_version: TableVersion) -> Schema:
        fields = self._spec.partition_type(self._schema).fields
        optional = StructType(*(NestedField(field.field_id, field.name, field.field_type, required=False) for field in fields))
        file = data_file_with_partition(partition_type=optional, format_version=format_version)
        return manifest_entry_schema_with_data_file(format_version=format_version, data_file=file)


class _ManifestWriterV1(_OptionalPartitions, ManifestWriterV1):
    """A manifest of format version 1."""


class _ManifestWriterV2(_OptionalPartitions, ManifestWriterV2):
    """A manifest of format version 2."""


class _AnySchema(_SnapshotProducer[Any]):
    """Writes manifests of partitionings whose columns are gone by now, under names that say whose statement it is."""

    _prefix = ""
    handle: IcebergTableHandle
    writer: Writer

    @property  # type: ignore[override]
    def commit_uuid(self) -> str:
        """What tells the names of manifests apart. It begins as the statement's other files do: what is left of a commit shows whose it is."""
        return self._commit_uuid

    @commit_uuid.setter
    def commit_uuid(self, unique: uuid.UUID) -> None:
        self._commit_uuid = f"{self._prefix}-{unique}" if self._prefix else str(unique)

    def of_statement(self, handle: IcebergTableHandle, writer: Writer) -> Self:
        """Write the snapshot for a statement: the names of its manifests begin like those of its other files.

        Args:
            handle: the table, as the statement sees it.
            writer: the statement that writes.
        """
        self.handle, self.writer = handle, writer
        self._prefix = writer.prefix
        self.commit_uuid = uuid.uuid4()
        return self

    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        """Return a writer that knows the columns of the partitioning."""
        writer = _ManifestWriterV1 if self._transaction.table_metadata.format_version == 1 else _ManifestWriterV2
        output, schema = self.new_manifest_output(), self._schema_of(spec.spec_id)
        return writer(spec, schema, output, self.snapshot_id, self._compression)

    def delete_manifest_writer(self, spec_id: int) -> ManifestWriter:
        """Return a writer of a manifest whose files delete rows."""
        return _DeleteManifestWriter(
            self.spec(spec_id), self._schema_of(spec_id), self.new_manifest_output(), self.snapshot_id, self._compression
        )

    def writer_like(self, manifest: ManifestFile) -> ManifestWriter:
        """Return a writer of a manifest of the same kind and partitioning."""
        number = manifest.partition_spec_id
        deletes = manifest.content == ManifestContent.DELETES
        return self.delete_manifest_writer(number) if deletes else self.new_manifest_writer(self.spec(number))

    def _schema_of(self, spec_id: int) -> Schema:
        return self._schemas[spec_id]

    @cached_property
    def _schemas(self) -> dict[int, Schema]:
        """The newest schema that has all columns of a partitioning, for each: files may be older than the removal of a column."""
        metadata = self._transaction.table_metadata
        candidates = [metadata.schema(), *reversed(metadata.schemas)]
        found = {}
        for number, spec in metadata.specs().items():
            sources = {part.source_id for part in spec.fields}
            found[number] = next((schema for schema in candidates if sources <= set(schema.field_ids)), candidates[0])
        return found


def _summed(operation: Operation, told: Mapping[str, str], parent: Snapshot | None) -> Summary:
    """Return a snapshot's summary, with totals; pyiceberg counts none for REPLACE, whose files count as those of OVERWRITE do."""
    counted = Operation.OVERWRITE if operation is Operation.REPLACE else operation
    previous = parent.summary if parent is not None else None
    summary = update_snapshot_summaries(Summary(operation=counted, **told), previous)
    return summary if counted is operation else summary.model_copy(update={"operation": operation})


class _Collector(SnapshotSummaryCollector):
    """Counts files for a snapshot's summary, those of partitions beyond Python's years too: they are named by their numbers."""

    def update_partition_metrics(self, partition_spec: PartitionSpec, file: DataFile, is_add_file: bool, schema: Schema) -> None:
        try:
            super().update_partition_metrics(partition_spec, file, is_add_file, schema)
        except OverflowError:
            named = (f"{field.name}={file.partition[at]}" for at, field in enumerate(partition_spec.fields))
            metrics = self.partition_metrics["/".join(named)]
            (metrics.add_file if is_add_file else metrics.remove_file)(file)


class RowDelta(_AnySchema, _MergeAppendFiles):
    """Adds data files and delete files, and takes files out, in one snapshot, if no other commit is in the way.

    Args:
        change: what to add.
        transaction: pyiceberg's transaction on the table.
        properties: what else the summary is to say.
    """

    def __init__(self, change: Change, transaction: Transaction, properties: Mapping[str, str]) -> None:
        table = transaction._table  # noqa: SLF001
        self._change = change
        super().__init__(change.operation, transaction, table.io, snapshot_properties=dict(properties))
        for file in change.data:
            self.append_data_file(file)

    def _manifests(self) -> list[ManifestFile]:
        manifests: list[ManifestFile] = super()._manifests()
        groups: dict[int, list[DataFile]] = defaultdict(list)
        for file in self._change.deletes:
            groups[file.spec_id].append(file)
        for spec_id, files in groups.items():
            with self.delete_manifest_writer(spec_id) as writer:
                for file in files:
                    writer.add(
                        ManifestEntry.from_args(
                            status=ManifestEntryStatus.ADDED, snapshot_id=self.snapshot_id, sequence_number=None, data_file=file
                        )
                    )
            manifests.append(writer.to_manifest_file())
        return manifests

    def _existing_manifests(self) -> list[ManifestFile]:
        manifests, gone = super()._existing_manifests(), self._change.removed.paths
        return [self._without(manifest, gone) for manifest in manifests] if gone else manifests

    def _without(self, manifest: ManifestFile, gone: Collection[str]) -> ManifestFile:
        """Return a manifest in which files are marked as deleted; the same one where it has none of them."""
        entries = manifest.fetch_manifest_entry(self._io, discard_deleted=True)
        if not any(entry.data_file.file_path in gone for entry in entries):
            return manifest
        with self.writer_like(manifest) as writer:
            for entry in entries:
                writer.add_entry(_again(entry, self.snapshot_id if entry.data_file.file_path in gone else None))
        return writer.to_manifest_file()

    def _summary(self, snapshot_properties: Mapping[str, str] | None = None) -> Summary:
        metadata = self._transaction.table_metadata
        specs = metadata.specs()
        limit = int(metadata.properties.get("write.summary.partition-limit", "0"))
        collector = _Collector(partition_summary_limit=limit)
        for file in (*self._change.data, *self._change.deletes):
            collector.add_file(file, schema=self._schema_of(file.spec_id), partition_spec=specs[file.spec_id])
        for entry in (*self._change.removed.data, *self._change.removed.deletes):
            file = entry.data_file
            collector.remove_file(file, schema=self._schema_of(file.spec_id), partition_spec=specs[file.spec_id])
        parent = metadata.snapshot_by_id(self._parent_snapshot_id) if self._parent_snapshot_id is not None else None
        told = {"changed-partition-count": "0", **collector.build(), **(snapshot_properties or {})}
        return _summed(self._operation, told, parent)

    def _validate_concurrency(self) -> None:
        """Check the change against the table as it is now; pyiceberg asks before it tries a commit anew."""
        check(self._change, self._transaction._table)  # noqa: SLF001


class _DeleteManifestWriter(_ManifestWriterV2):
    """A manifest whose files delete rows."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class Truncation(_AnySchema, _FastAppendFiles):
    """Takes all files out of a table, delete files too."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(Operation.DELETE, transaction, transaction._table.io)  # noqa: SLF001

    def _live(self) -> Content:
        table = self._transaction._table  # noqa: SLF001
        return content_of(table, self._parent_snapshot_id)

    def _existing_manifests(self) -> list[ManifestFile]:
        return []

    def _deleted_entries(self) -> list[ManifestEntry]:
        return [_again(entry, self.snapshot_id) for entry in self._live().data]

    def _summary(self, snapshot_properties: Mapping[str, str] | None = None) -> Summary:
        metadata, live = self._transaction.table_metadata, self._live()
        collector, specs = _Collector(), metadata.specs()
        for entry in (*live.data, *live.deletes):
            file = entry.data_file
            collector.remove_file(file, schema=self._schema_of(file.spec_id), partition_spec=specs[file.spec_id])
        parent = metadata.snapshot_by_id(self._parent_snapshot_id) if self._parent_snapshot_id is not None else None
        return _summed(self._operation, {**collector.build(), **(snapshot_properties or {})}, parent)


class Emptying(Truncation):
    """Takes all files out of a table that nobody has changed since it was looked at.

    Args:
        handle: the table as it was looked at.
        transaction: pyiceberg's transaction on the table.
    """

    def __init__(self, handle: IcebergTableHandle, transaction: Transaction) -> None:
        self._handle = handle
        super().__init__(transaction)

    def _validate_concurrency(self) -> None:
        """Check that the table is as it was; pyiceberg asks before it tries a commit anew."""
        _check_head(self._handle, self._transaction._table)  # noqa: SLF001


class ManifestRewrite(_AnySchema, _FastAppendFiles):
    """Gathers the entries of all data files in one manifest for each partitioning."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(Operation.REPLACE, transaction, transaction._table.io)  # noqa: SLF001
        self._counts: dict[str, str] = {}

    def _existing_manifests(self) -> list[ManifestFile]:
        known = super()._existing_manifests()
        groups: dict[int, list[ManifestFile]] = defaultdict(list)
        for manifest in known:
            if manifest.content == ManifestContent.DATA:
                groups[manifest.partition_spec_id].append(manifest)
        made, kept, processed = [], [one for one in known if one.content == ManifestContent.DELETES], 0
        for manifests in groups.values():
            with self.writer_like(manifests[0]) as writer:
                for entry in chain.from_iterable(one.fetch_manifest_entry(self._io) for one in manifests):
                    writer.add_entry(_again(entry))
                    processed += 1
            made.append(writer.to_manifest_file())
        told = {"created": len(made), "kept": len(kept), "replaced": len(known) - len(kept)}
        self._counts = {f"manifests-{word}": str(number) for word, number in told.items()}
        self._counts["entries-processed"] = str(processed)
        return [*made, *kept]

    def _summary(self, snapshot_properties: Mapping[str, str] | None = None) -> Summary:
        parent = self._transaction.table_metadata.snapshot_by_id(self._parent_snapshot_id or 0)
        return _summed(self._operation, {**self._counts, **(snapshot_properties or {})}, parent)


# -- other commits ----------------------------------------------------------------------------------------------------


def check(change: Change, table: Table) -> None:
    """Check that a change goes with what others have committed since the statement began.

    Args:
        change: the change.
        table: the table as it is now.

    Raises:
        ConnectorError: TRANSACTION_CONFLICT; the message says what was in the way.
    """
    handle, metadata = change.handle, table.metadata
    if str(metadata.table_uuid) != handle.identity:
        conflict(handle.name, "it was dropped, and another one has its name")
    if metadata.current_schema_id != handle.schema_id:
        conflict(handle.name, "its columns were altered")
    if metadata.default_spec_id != handle.spec_id:
        conflict(handle.name, "its partitioning was altered")
    head = metadata.current_snapshot_id
    if change.read is None or head == handle.snapshot:
        return
    if _was_put_back(handle, table):
        conflict(handle.name, "it was put back to an earlier snapshot")
    now = content_of(table, head)
    live = {entry.data_file.file_path for entry in now.data}
    gone = sorted(change.deleted_from - live)
    if gone:
        conflict(handle.name, f"data file '{gone[0]}', rows of which were to be deleted, was removed by another commit")
    new_deletes = [entry for entry in now.deletes if entry.data_file.file_path not in change.read.paths]
    partitions = {_place(e.data_file) for e in now.data if e.data_file.file_path in change.deleted_from}
    for entry in new_deletes:
        path = _collision(entry, change, partitions)
        if path is not None:
            conflict(handle.name, f"another commit deleted rows of data file '{path}' too")
    if change.serializable:
        _check_serializable(change, table, live, {entry.data_file.file_path for entry in new_deletes})


def _check_head(handle: IcebergTableHandle, table: Table) -> None:
    """Check that no snapshot has come since a table was looked at."""
    if table.metadata.current_snapshot_id != handle.snapshot:
        conflict(handle.name, f"snapshot {handle.snapshot} was current, and {table.metadata.current_snapshot_id} is now")


def _was_put_back(handle: IcebergTableHandle, table: Table) -> bool:
    """Return whether the snapshot that a statement has seen is no ancestor of the present one any more.

    What such a snapshot had deleted may be there again, which its files do not tell. A story whose middle has expired tells nothing.
    """
    current = table.metadata.current_snapshot_id
    while current is not None and current != handle.snapshot:
        snapshot = table.metadata.snapshot_by_id(current)
        if snapshot is None:
            return False
        current = snapshot.parent_snapshot_id
    return current != handle.snapshot


def _place(file: DataFile) -> Any:
    return (file.spec_id, tuple(file.partition[i] for i in range(len(file.partition))))


def _collision(entry: ManifestEntry, change: Change, partitions: set[Any]) -> str | None:
    """Return a data file that this change and a new delete file of another commit delete rows of."""
    file = entry.data_file
    if file.content == DataFileContent.EQUALITY_DELETES:
        everywhere = not len(file.partition)
        return min(change.deleted_from, default=None) if everywhere or _place(file) in partitions else None
    if _place(file) not in partitions:
        return None
    return next((path for path in sorted(change.deleted_from) if may_delete_from(file, path)), None)


def _check_serializable(change: Change, table: Table, live: set[str], deletes: set[str]) -> None:
    """Look for rows that were added or deleted among those that the statement looked at."""
    from pyiceberg.expressions import AlwaysTrue

    handle, started = change.handle, change.handle.snapshot
    before = change.read.paths if change.read is not None else frozenset()
    removed = set() if _only_rewrites(change, table) else before - live
    for scan in change.scans or [AlwaysTrue()]:
        seen = content_of(table, table.metadata.current_snapshot_id, scan)
        for entry in seen.data:
            if entry.data_file.file_path not in before and not _rewritten(entry, table):
                conflict(handle.name, "another commit added rows that the statement would have looked at")
        for entry in seen.deletes:
            if entry.data_file.file_path in deletes and not _rewritten(entry, table):
                conflict(handle.name, "another commit deleted rows that the statement looked at")
        # Files of a snapshot that has expired meanwhile cannot be looked at any more: any of them counts.
        known = table.metadata.snapshot_by_id(started) is not None if started is not None else False
        read = content_of(table, started, scan).data if known else (change.read.data if change.read is not None else [])
        if any(entry.data_file.file_path in removed for entry in read):
            conflict(handle.name, "another commit removed data files that the statement looked at")


def _rewritten(entry: ManifestEntry, table: Table) -> bool:
    """Return whether a file came by a commit that changes no rows, as compaction is."""
    snapshot = table.metadata.snapshot_by_id(entry.snapshot_id) if entry.snapshot_id is not None else None
    return snapshot is not None and snapshot.summary is not None and snapshot.summary.operation == Operation.REPLACE


def _only_rewrites(change: Change, table: Table) -> bool:
    """Return whether no commit since the statement's snapshot took rows away; one whose story is not known any more might have."""
    snapshot = table.metadata.current_snapshot()
    while snapshot is not None and snapshot.snapshot_id != change.handle.snapshot:
        if snapshot.summary is None or snapshot.summary.operation not in {Operation.REPLACE, Operation.APPEND}:
            return False
        parent = snapshot.parent_snapshot_id
        snapshot = table.metadata.snapshot_by_id(parent) if parent is not None else None
    return snapshot is not None


# -- committing -------------------------------------------------------------------------------------------------------


def commit(
    change: Change,
    transaction: Transaction,
    properties: Mapping[str, str],
    writer: Writer,
    *,
    is_new: bool = False,
) -> ConnectorTableVersion | None:
    """Commit a change; commits that it goes with are no obstacle, pyiceberg tries again on top of them.

    Args:
        change: the change.
        transaction: pyiceberg's transaction on the table as it is now; a new table's creates it.
        properties: what else the summary is to say.
        writer: the statement that writes.
        is_new: the table is made by this transaction.

    Returns:
        The snapshot that was made, with the one below it; None where there was nothing to add.

    Raises:
        ConnectorError: TRANSACTION_CONFLICT, ICEBERG_CATALOG_ERROR if the catalog has failed, or ICEBERG_COMMIT_ERROR with
            ``changed=None`` if it is not known whether the commit went through.
    """
    producer, landed = None, _holds(None)
    if not is_new:
        check(change, transaction._table)  # noqa: SLF001
    if change.handle.added:
        landed = _add_columns(change.handle, transaction)
    # A table begins with a snapshot, as in Trino: it has a history from then on.
    if change.data or change.deletes or change.removed.data or is_new:
        producer = RowDelta(change, transaction, properties).of_statement(change.handle, writer)
        _stage(producer)
        landed = _holds(producer)
    _commit(change.handle, transaction, producer, writer, landed, is_new=is_new)
    return None if producer is None else _version_of(producer)


def _version_of(producer: _AnySchema) -> ConnectorTableVersion:
    """Return the snapshot that a commit made, with its parent: pyiceberg changes that when it tries again on top of another commit."""
    parent = producer._parent_snapshot_id  # noqa: SLF001
    below = None if parent is None else ConnectorTableVersion(parent)
    return ConnectorTableVersion(producer.snapshot_id, made_from=below)


def _add_columns(handle: IcebergTableHandle, transaction: Transaction) -> Callable[[TableMetadata], bool]:
    """Add the columns that the table does not have yet; give what tells whether a table has them.

    Raises:
        ConnectorError: TRANSACTION_CONFLICT if they get other ids than those under which their values were written: columns were added
            and dropped again meanwhile.
    """
    stage_columns(handle.added, transaction)
    schema = transaction.table_metadata.schema()
    if fields_of(schema, handle.name) != handle.fields:
        conflict(handle.name, "its columns were altered")
    return lambda now: now.schema().fields == schema.fields


def replace(
    change: Change,
    former: IcebergTableHandle,
    now: Table,
    transaction: Transaction,
    properties: Mapping[str, str],
    writer: Writer,
) -> ConnectorTableVersion:
    """Commit a table that is made anew, with its rows in a snapshot that has no parent; any commit since it was looked at is in the way.

    Args:
        change: its rows.
        former: the table as it was looked at.
        now: the table as it is now.
        transaction: what makes it anew, of `rowmerge_nb.connectors.iceberg.replacing`.
        properties: as of `commit`, as are the other argument, the result and the errors.
        writer: the statement that writes.
    """
    _check_head(former, now)
    if now.metadata.current_schema_id != former.schema_id:
        conflict(former.name, "its columns were altered")
    producer = RowDelta(change, transaction, properties).of_statement(former, writer)
    _stage(producer)
    # Nothing is tried again on top of another commit: it was the table as it was that was to be replaced.
    transaction._snapshot_producers.clear()  # noqa: SLF001
    _commit(former, transaction, producer, writer, _holds(producer))
    return _version_of(producer)


def alter(handle: IcebergTableHandle, alteration: Alteration, transaction: Transaction, writer: Writer) -> None:
    """Commit a change of a table's columns, properties or comments; arguments and errors as of `commit`, and those of `stage_alteration`."""
    seen = transaction.table_metadata.current_schema_id
    if tuple(field.field_id for field in transaction.table_metadata.schema().fields) != tuple(f.id for f in handle.fields):
        conflict(handle.name, "its columns were altered")
    stage_alteration(handle, alteration, transaction)
    made = transaction.table_metadata

    def landed(now: TableMetadata) -> bool:
        altered = now.current_schema_id != seen or made.current_schema_id == seen
        return altered and _altered_parts(now) == _altered_parts(made)

    _commit(handle, transaction, None, writer, landed)


def _altered_parts(metadata: TableMetadata) -> tuple[Any, ...]:
    """Return all of a table that ALTER TABLE and COMMENT change."""
    set_here = [metadata.properties.get(name) for name in (COMMENT, *ISOLATION, *PROPERTIES.values())]
    return metadata.schema(), metadata.spec().fields, metadata.format_version, sort_fields(metadata), set_here


def truncate(handle: IcebergTableHandle, transaction: Transaction, writer: Writer) -> ConnectorTableVersion:
    """Commit the removal of all rows, those included that other commits have added meanwhile; arguments and errors as of `commit`."""
    return _emptied(handle, Truncation(transaction), transaction, writer)


def restore(
    handle: IcebergTableHandle, snapshot: int | None, dropped: Sequence[str], transaction: Transaction, writer: Writer
) -> ConnectorTableVersion | None:
    """Make a former snapshot the current one, as Trino's ``rollback_to_snapshot`` does: no snapshot is lost, and the log tells of it.

    Any commit since the table was looked at is in the way, whatever it has done: the catalog is asked to look at that once more.

    Args:
        handle: the table as it was looked at.
        snapshot: the snapshot; None for the time before the first one, of which a snapshot without files is made.
        dropped: columns that go with it.
        transaction: pyiceberg's transaction on the table as it is now.
        writer: the statement that writes.

    Returns:
        The snapshot that is current then; None for a table that has none.

    Raises:
        ConnectorError: as of `commit`.
    """
    metadata = transaction.table_metadata
    _check_head(handle, transaction._table)  # noqa: SLF001
    if dropped:
        if metadata.current_schema_id != handle.schema_id:
            conflict(handle.name, "its columns were altered")
        stage_drops(handle, dropped, transaction)
    if snapshot == handle.snapshot:
        if dropped:
            # Of a statement that has added columns and changed no row.
            kept = transaction.table_metadata.schema().fields
            _commit(handle, transaction, None, writer, lambda now: now.schema().fields == kept)
        return None if snapshot is None else ConnectorTableVersion(snapshot)
    if snapshot is None:
        return _emptied(handle, Emptying(handle, transaction), transaction, writer)
    try:
        ManageSnapshots(transaction).set_current_snapshot(snapshot_id=snapshot)
    except ValueError as error:
        # It has expired meanwhile.
        conflict(handle.name, error_text(error))
    entries = len(metadata.snapshot_log)

    def landed(now: TableMetadata) -> bool:
        return any(entry.snapshot_id == snapshot for entry in now.snapshot_log[entries:])

    _commit(handle, transaction, None, writer, landed)
    return ConnectorTableVersion(snapshot)


def gather_manifests(handle: IcebergTableHandle, transaction: Transaction, writer: Writer) -> ConnectorTableVersion:
    """Commit a snapshot of the same files in fewer manifests; arguments and errors as of `commit`."""
    producer = ManifestRewrite(transaction).of_statement(handle, writer)
    _stage(producer)
    _commit(handle, transaction, producer, writer, _holds(producer))
    return _version_of(producer)


def expire(handle: IcebergTableHandle, expired: Sequence[int], transaction: Transaction, writer: Writer) -> None:
    """Commit a table without some snapshots; arguments and errors as of `commit`.

    The catalog is asked to look that branches and tags point at what they did: who has gone back to one of these snapshots meanwhile keeps it.
    """
    gone = set(expired)
    refs = transaction.table_metadata.refs.items()
    same = tuple(AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref.snapshot_id}) for name, ref in refs)
    transaction._apply((), same)  # noqa: SLF001
    try:
        ExpireSnapshots(transaction).by_ids(list(expired)).commit()
    except ValueError as error:
        conflict(handle.name, error_text(error))
    _commit(handle, transaction, None, writer, lambda now: gone.isdisjoint(one.snapshot_id for one in now.snapshots))


def drop_statistics(handle: IcebergTableHandle, transaction: Transaction, writer: Writer) -> None:
    """Commit a table without its statistics files; arguments and errors as of `commit`."""
    for known in transaction.table_metadata.statistics:
        # Each by itself: pyiceberg's update has room for one.
        UpdateStatistics(transaction).remove_statistics(known.snapshot_id).commit()
    _commit(handle, transaction, None, writer, lambda now: not now.statistics)


def _emptied(handle: IcebergTableHandle, producer: Truncation, transaction: Transaction, writer: Writer) -> ConnectorTableVersion:
    _stage(producer.of_statement(handle, writer))
    _commit(handle, transaction, producer, writer, _holds(producer))
    return _version_of(producer)


def _holds(producer: _FastAppendFiles | None) -> Callable[[TableMetadata], bool]:
    """Return what tells of a table whether it has a producer's snapshot; without one, the table itself is what was made."""
    return lambda now: producer is None or now.snapshot_by_id(producer.snapshot_id) is not None


def _stage(producer: _AnySchema) -> None:
    """Write the manifests of a snapshot that nobody knows yet; nothing is left of them after a failure."""
    handle = producer.handle
    producer.writer.note(handle)
    try:
        producer.commit()
    except BaseException as error:
        producer._clean_all_uncommitted()  # noqa: SLF001
        if isinstance(error, RowMergeError) or not isinstance(error, Exception):
            raise
        # What a service's connection raises has no number.
        if isinstance(error, OSError) and error.errno and not isinstance(error, FileNotFoundError):
            raise _refused(error, handle) from error
        raise ConnectorError(
            f"The snapshot of Iceberg table '{handle.name}' cannot be written: {type(error).__name__}: {error_text(error)}",
            code="ICEBERG_COMMIT_ERROR",
            hint="See that the table's folder can be reached, and its manifests are whole; else roll the table back to an earlier snapshot.",
        ) from error


def _refused(error: OSError, handle: IcebergTableHandle) -> ConnectorError:
    """Return the error of metadata that cannot be written."""
    folder = handle.properties.get("write.metadata.path", f"{handle.location}/metadata")
    what = f"The metadata of Iceberg table '{handle.name}' in '{folder}'"
    return refused(error, what, "ICEBERG_FILESYSTEM_ERROR")


def _commit(
    handle: IcebergTableHandle,
    transaction: Transaction,
    producer: _FastAppendFiles | None,
    writer: Writer,
    landed: Callable[[TableMetadata], bool],
    *,
    is_new: bool = False,
) -> None:
    """Ask the catalog; ``landed`` tells of the table as it is afterwards whether the commit has gone through."""
    if not writes_metadata(transaction._table.catalog):  # noqa: SLF001
        writer.note(handle)
    writer.require_notes(handle)
    embedded = _embedded(transaction._table)  # noqa: SLF001
    if embedded is not None:
        embedded.begin_commit(writer.prefix)
    writer.ask()
    try:
        transaction.commit_transaction()
    except (CommitFailedException, ConnectorError) as error:
        if producer is not None:
            producer._clean_all_uncommitted()  # noqa: SLF001
        if isinstance(error, ConnectorError):
            raise
        what = "another table of this name was made" if is_new else "other commits were faster, time and again"
        conflict(handle.name, what)
    except ValidationException as error:
        conflict(handle.name, str(error))
    except Exception as error:
        known = _has_landed(handle, transaction, landed, is_new=is_new)
        if known:
            return
        if known is None:
            raise ConnectorError(
                f"The outcome is unknown: Iceberg's catalog did not say whether table '{handle.name}' was changed: {said(error)}",
                code="ICEBERG_COMMIT_ERROR",
                hint="Look at the table before you run the statement again; its files are left where they are.",
                changed=None,
            ) from error
        if producer is not None:
            producer._clean_all_uncommitted()  # noqa: SLF001
        if embedded is not None:
            embedded.discard(transaction._table.io)  # noqa: SLF001
        if isinstance(error, OSError) and error.errno:
            raise _refused(error, handle) from error
        msg = f"Iceberg's catalog could not commit to table '{handle.name}': {said(error)}"
        if is_full(error):
            raise ConnectorError(
                msg,
                code="GENERIC_INSUFFICIENT_RESOURCES",
                hint="Make room on its disk, and run the statement again; the table is as it was.",
            ) from error
        raise ConnectorError(
            msg,
            code="ICEBERG_CATALOG_ERROR",
            hint="See that no other program holds the catalog for long, and run the statement again.",
        ) from error


def _embedded(table: Table) -> EmbeddedCatalog | None:
    """Return the catalog of a table, if it is one that says which metadata file it has written last."""
    from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog

    return table.catalog if isinstance(table.catalog, EmbeddedCatalog) else None


def _has_landed(
    handle: IcebergTableHandle, transaction: Transaction, landed: Callable[[TableMetadata], bool], *, is_new: bool
) -> bool | None:
    """Ask the catalog whether a commit has gone through whose answer did not arrive.

    Returns:
        None if that is not known.

    Raises:
        ConnectorError: TRANSACTION_CONFLICT if the table is not there any more, or is another one.
    """
    table = transaction._table  # noqa: SLF001
    settled = is_settled(table.catalog)
    try:
        latest = table.catalog.load_table(table.name())
    except NoSuchTableError:
        if is_new:
            return False if settled else None
        conflict(handle.name, "it was dropped")
    except Exception:  # noqa: BLE001 - the catalog does not answer now either
        return None
    now = latest.metadata
    if str(now.table_uuid) != handle.identity:
        conflict(handle.name, "it was dropped, and another one has its name")
    # Another commit may have come on top of this one, and changed the same things.
    files = {latest.metadata_location, *(entry.metadata_file for entry in now.metadata_log)}
    embedded = _embedded(table)
    is_there = embedded is not None and embedded.written in files
    return landed(now) or is_there or (False if settled else None)
