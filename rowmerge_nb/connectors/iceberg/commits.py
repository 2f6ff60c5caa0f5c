"""The snapshot of a statement, which is checked against concurrent commits.

pyiceberg 0.12 has no public commit of row deltas. Only this file uses its internals: the producer
of appends, and the hook that checks a commit before a retry.
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
from pyiceberg.table.snapshots import (
    Operation,
    SnapshotSummaryCollector,
    Summary,
    update_snapshot_summaries,
)
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
from rowmerge_nb.connectors.shared.sqlite_errors import is_full, sqlite_message
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
    """The changes of a statement to a table.

    Args:
        deletes: position delete files to add, one per data file.
        deleted_from: the data files of `deletes`, and those that are removed.
        read: the live files at the start of the statement; None for INSERT.
        scans: the predicates of the statement's scans.
        serializable: whether commits of rows that match `scans` are conflicts too.
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
        """The operation of the snapshot's summary."""
        if self.removed.data:
            return Operation.REPLACE
        if not self.deletes:
            return Operation.APPEND
        return Operation.OVERWRITE if self.data else Operation.DELETE


def conflict(name: object, what: str) -> NoReturn:
    """Raise TRANSACTION_CONFLICT."""
    raise ConnectorError(
        f"Iceberg table '{name}' was changed while the statement ran: {what}",
        code="TRANSACTION_CONFLICT",
        hint="Nothing was changed by this statement. Run it again.",
    )


def _carried_entry(entry: ManifestEntry, deleted_by: int | None = None) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.EXISTING if deleted_by is None else ManifestEntryStatus.DELETED,
        snapshot_id=entry.snapshot_id if deleted_by is None else deleted_by,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


class _OptionalPartitions(ManifestWriter):
    """A manifest with nullable partition values, as the specification requires."""

    def _with_partition(self, format_version: TableVersion) -> Schema:
        fields = self._spec.partition_type(self._schema).fields
        optional = StructType(
            *(
                NestedField(field.field_id, field.name, field.field_type, required=False)
                for field in fields
            )
        )
        file = data_file_with_partition(partition_type=optional, format_version=format_version)
        return manifest_entry_schema_with_data_file(format_version=format_version, data_file=file)


class _ManifestWriterV1(_OptionalPartitions, ManifestWriterV1):
    """A manifest of format version 1."""


class _ManifestWriterV2(_OptionalPartitions, ManifestWriterV2):
    """A manifest of format version 2."""


class _AnySchema(_SnapshotProducer[Any]):
    """Writes manifests for partitionings of dropped columns too."""

    _prefix = ""
    handle: IcebergTableHandle
    writer: Writer

    @property  # type: ignore[override]
    def commit_uuid(self) -> str:
        """The unique part of manifest names, with the statement's prefix."""
        return self._commit_uuid

    @commit_uuid.setter
    def commit_uuid(self, unique: uuid.UUID) -> None:
        self._commit_uuid = f"{self._prefix}-{unique}" if self._prefix else str(unique)

    def of_statement(self, handle: IcebergTableHandle, writer: Writer) -> Self:
        self.handle, self.writer = handle, writer
        self._prefix = writer.prefix
        self.commit_uuid = uuid.uuid4()
        return self

    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        writer = (
            _ManifestWriterV1
            if self._transaction.table_metadata.format_version == 1
            else _ManifestWriterV2
        )
        output, schema = self.new_manifest_output(), self._schema_of(spec.spec_id)
        return writer(spec, schema, output, self.snapshot_id, self._compression)

    def delete_manifest_writer(self, spec_id: int) -> ManifestWriter:
        return _DeleteManifestWriter(
            self.spec(spec_id),
            self._schema_of(spec_id),
            self.new_manifest_output(),
            self.snapshot_id,
            self._compression,
        )

    def writer_like(self, manifest: ManifestFile) -> ManifestWriter:
        number = manifest.partition_spec_id
        deletes = manifest.content == ManifestContent.DELETES
        return (
            self.delete_manifest_writer(number)
            if deletes
            else self.new_manifest_writer(self.spec(number))
        )

    def _schema_of(self, spec_id: int) -> Schema:
        return self._schemas[spec_id]

    @cached_property
    def _schemas(self) -> dict[int, Schema]:
        metadata = self._transaction.table_metadata
        candidates = [metadata.schema(), *reversed(metadata.schemas)]
        schemas = {}
        for number, spec in metadata.specs().items():
            sources = {part.source_id for part in spec.fields}
            schemas[number] = next(
                (candidate for candidate in candidates if sources <= set(candidate.field_ids)),
                candidates[0],
            )
        return schemas


def _summary_with_totals(
    operation: Operation, entries: Mapping[str, str], parent: Snapshot | None
) -> Summary:
    """Return a summary with totals; pyiceberg has none for REPLACE, which is counted like
    OVERWRITE.
    """
    counted_as = Operation.OVERWRITE if operation is Operation.REPLACE else operation
    previous = parent.summary if parent is not None else None
    summary = update_snapshot_summaries(Summary(operation=counted_as, **entries), previous)
    return (
        summary if counted_as is operation else summary.model_copy(update={"operation": operation})
    )


class _Collector(SnapshotSummaryCollector):
    """Names partitions by their numbers if they exceed Python's years."""

    def update_partition_metrics(
        self, partition_spec: PartitionSpec, file: DataFile, is_add_file: bool, schema: Schema
    ) -> None:
        try:
            super().update_partition_metrics(partition_spec, file, is_add_file, schema)
        except OverflowError:
            values = (
                f"{field.name}={file.partition[at]}"
                for at, field in enumerate(partition_spec.fields)
            )
            metrics = self.partition_metrics["/".join(values)]
            (metrics.add_file if is_add_file else metrics.remove_file)(file)


class RowDelta(_AnySchema, _MergeAppendFiles):
    """Adds and removes data files and delete files in one snapshot."""

    def __init__(
        self, change: Change, transaction: Transaction, properties: Mapping[str, str]
    ) -> None:
        table = transaction._table  # noqa: SLF001
        self._change = change
        super().__init__(
            change.operation, transaction, table.io, snapshot_properties=dict(properties)
        )
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
                            status=ManifestEntryStatus.ADDED,
                            snapshot_id=self.snapshot_id,
                            sequence_number=None,
                            data_file=file,
                        )
                    )
            manifests.append(writer.to_manifest_file())
        return manifests

    def _existing_manifests(self) -> list[ManifestFile]:
        manifests, removed = super()._existing_manifests(), self._change.removed.paths
        return (
            [self._without(manifest, removed) for manifest in manifests] if removed else manifests
        )

    def _without(self, manifest: ManifestFile, removed: Collection[str]) -> ManifestFile:
        entries = manifest.fetch_manifest_entry(self._io, discard_deleted=True)
        if not any(entry.data_file.file_path in removed for entry in entries):
            return manifest
        with self.writer_like(manifest) as writer:
            for entry in entries:
                writer.add_entry(
                    _carried_entry(
                        entry, self.snapshot_id if entry.data_file.file_path in removed else None
                    )
                )
        return writer.to_manifest_file()

    def _summary(self, snapshot_properties: Mapping[str, str] | None = None) -> Summary:
        metadata = self._transaction.table_metadata
        specs = metadata.specs()
        limit = int(metadata.properties.get("write.summary.partition-limit", "0"))
        collector = _Collector(partition_summary_limit=limit)
        for file in (*self._change.data, *self._change.deletes):
            collector.add_file(
                file, schema=self._schema_of(file.spec_id), partition_spec=specs[file.spec_id]
            )
        for entry in (*self._change.removed.data, *self._change.removed.deletes):
            file = entry.data_file
            collector.remove_file(
                file, schema=self._schema_of(file.spec_id), partition_spec=specs[file.spec_id]
            )
        parent = (
            metadata.snapshot_by_id(self._parent_snapshot_id)
            if self._parent_snapshot_id is not None
            else None
        )
        entries = {
            "changed-partition-count": "0",
            **collector.build(),
            **(snapshot_properties or {}),
        }
        return _summary_with_totals(self._operation, entries, parent)

    def _validate_concurrency(self) -> None:
        check(self._change, self._transaction._table)  # noqa: SLF001


class _DeleteManifestWriter(_ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class Truncation(_AnySchema, _FastAppendFiles):
    """Removes all data files and delete files of a table."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(Operation.DELETE, transaction, transaction._table.io)  # noqa: SLF001

    def _live(self) -> Content:
        table = self._transaction._table  # noqa: SLF001
        return content_of(table, self._parent_snapshot_id)

    def _existing_manifests(self) -> list[ManifestFile]:
        return []

    def _deleted_entries(self) -> list[ManifestEntry]:
        return [_carried_entry(entry, self.snapshot_id) for entry in self._live().data]

    def _summary(self, snapshot_properties: Mapping[str, str] | None = None) -> Summary:
        metadata, live = self._transaction.table_metadata, self._live()
        collector, specs = _Collector(), metadata.specs()
        for entry in (*live.data, *live.deletes):
            file = entry.data_file
            collector.remove_file(
                file, schema=self._schema_of(file.spec_id), partition_spec=specs[file.spec_id]
            )
        parent = (
            metadata.snapshot_by_id(self._parent_snapshot_id)
            if self._parent_snapshot_id is not None
            else None
        )
        return _summary_with_totals(
            self._operation, {**collector.build(), **(snapshot_properties or {})}, parent
        )


class Emptying(Truncation):
    """Removes all files of a table, unless another commit has changed it."""

    def __init__(self, handle: IcebergTableHandle, transaction: Transaction) -> None:
        self._handle = handle
        super().__init__(transaction)

    def _validate_concurrency(self) -> None:
        _check_head(self._handle, self._transaction._table)  # noqa: SLF001


class ManifestRewrite(_AnySchema, _FastAppendFiles):
    """Merges the entries of all data files into one manifest per partitioning."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(Operation.REPLACE, transaction, transaction._table.io)  # noqa: SLF001
        self._counts: dict[str, str] = {}

    def _existing_manifests(self) -> list[ManifestFile]:
        manifests = super()._existing_manifests()
        groups: dict[int, list[ManifestFile]] = defaultdict(list)
        for manifest in manifests:
            if manifest.content == ManifestContent.DATA:
                groups[manifest.partition_spec_id].append(manifest)
        merged, delete_manifests, processed = (
            [],
            [one for one in manifests if one.content == ManifestContent.DELETES],
            0,
        )
        for group in groups.values():
            with self.writer_like(group[0]) as writer:
                for entry in chain.from_iterable(
                    one.fetch_manifest_entry(self._io) for one in group
                ):
                    writer.add_entry(_carried_entry(entry))
                    processed += 1
            merged.append(writer.to_manifest_file())
        counts = {
            "created": len(merged),
            "kept": len(delete_manifests),
            "replaced": len(manifests) - len(delete_manifests),
        }
        self._counts = {f"manifests-{word}": str(number) for word, number in counts.items()}
        self._counts["entries-processed"] = str(processed)
        return [*merged, *delete_manifests]

    def _summary(self, snapshot_properties: Mapping[str, str] | None = None) -> Summary:
        parent = self._transaction.table_metadata.snapshot_by_id(self._parent_snapshot_id or 0)
        return _summary_with_totals(
            self._operation, {**self._counts, **(snapshot_properties or {})}, parent
        )


# -- other commits ----------------------------------------------------------------------------------------------------


def check(change: Change, table: Table) -> None:
    """Raise TRANSACTION_CONFLICT if commits since the statement began are incompatible with a
    change.
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
    missing = sorted(change.deleted_from - live)
    if missing:
        conflict(
            handle.name,
            f"data file '{missing[0]}', rows of which were to be deleted, was removed by another"
            " commit",
        )
    new_deletes = [
        entry for entry in now.deletes if entry.data_file.file_path not in change.read.paths
    ]
    partitions = {
        _partition_key(e.data_file)
        for e in now.data
        if e.data_file.file_path in change.deleted_from
    }
    for entry in new_deletes:
        path = _collision(entry, change, partitions)
        if path is not None:
            conflict(handle.name, f"another commit deleted rows of data file '{path}' too")
    if change.serializable:
        _check_serializable(
            change, table, live, {entry.data_file.file_path for entry in new_deletes}
        )


def _check_head(handle: IcebergTableHandle, table: Table) -> None:
    if table.metadata.current_snapshot_id != handle.snapshot:
        conflict(
            handle.name,
            f"snapshot {handle.snapshot} was current, and {table.metadata.current_snapshot_id}"
            " is now",
        )


def _was_put_back(handle: IcebergTableHandle, table: Table) -> bool:
    """Return whether the statement's snapshot is no longer an ancestor of the current one, so that
    deleted rows may be back.

    False if an ancestor has expired.
    """
    current = table.metadata.current_snapshot_id
    while current is not None and current != handle.snapshot:
        snapshot = table.metadata.snapshot_by_id(current)
        if snapshot is None:
            return False
        current = snapshot.parent_snapshot_id
    return current != handle.snapshot


def _partition_key(data_file: DataFile) -> Any:
    return (
        data_file.spec_id,
        tuple(data_file.partition[i] for i in range(len(data_file.partition))),
    )


def _collision(entry: ManifestEntry, change: Change, partitions: set[Any]) -> str | None:
    file = entry.data_file
    if file.content == DataFileContent.EQUALITY_DELETES:
        everywhere = not len(file.partition)
        return (
            min(change.deleted_from, default=None)
            if everywhere or _partition_key(file) in partitions
            else None
        )
    if _partition_key(file) not in partitions:
        return None
    return next((path for path in sorted(change.deleted_from) if may_delete_from(file, path)), None)


def _check_serializable(change: Change, table: Table, live: set[str], deletes: set[str]) -> None:
    from pyiceberg.expressions import AlwaysTrue

    handle, started = change.handle, change.handle.snapshot
    before = change.read.paths if change.read is not None else frozenset()
    removed = set() if _only_rewrites(change, table) else before - live
    for scan in change.scans or [AlwaysTrue()]:
        current = content_of(table, table.metadata.current_snapshot_id, scan)
        for entry in current.data:
            if entry.data_file.file_path not in before and not _is_rewrite(entry, table):
                conflict(
                    handle.name, "another commit added rows that the statement would have looked at"
                )
        for entry in current.deletes:
            if entry.data_file.file_path in deletes and not _is_rewrite(entry, table):
                conflict(handle.name, "another commit deleted rows that the statement looked at")
        # The files of an expired snapshot cannot be filtered: all of them count.
        is_retained = (
            table.metadata.snapshot_by_id(started) is not None if started is not None else False
        )
        files_read = (
            content_of(table, started, scan).data
            if is_retained
            else (change.read.data if change.read is not None else [])
        )
        if any(entry.data_file.file_path in removed for entry in files_read):
            conflict(handle.name, "another commit removed data files that the statement looked at")


def _is_rewrite(entry: ManifestEntry, table: Table) -> bool:
    """Return whether the commit of a file changes no rows, as compaction."""
    snapshot = (
        table.metadata.snapshot_by_id(entry.snapshot_id) if entry.snapshot_id is not None else None
    )
    return (
        snapshot is not None
        and snapshot.summary is not None
        and snapshot.summary.operation == Operation.REPLACE
    )


def _only_rewrites(change: Change, table: Table) -> bool:
    """Return whether no later commit removed rows; False for an incomplete history."""
    snapshot = table.metadata.current_snapshot()
    while snapshot is not None and snapshot.snapshot_id != change.handle.snapshot:
        if snapshot.summary is None or snapshot.summary.operation not in {
            Operation.REPLACE,
            Operation.APPEND,
        }:
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
    """Commit a change; pyiceberg retries on top of compatible commits.

    Return the new snapshot, if any.

    Raises:
        ConnectorError: TRANSACTION_CONFLICT, ICEBERG_CATALOG_ERROR or ICEBERG_COMMIT_ERROR;
            ``changed=None`` if the outcome is unknown.
    """
    producer, landed = None, _holds(None)
    if not is_new:
        check(change, transaction._table)  # noqa: SLF001
    if change.handle.added:
        landed = _add_columns(change.handle, transaction)
    # As in Trino, a new table has a snapshot even if it is empty.
    if change.data or change.deletes or change.removed.data or is_new:
        producer = RowDelta(change, transaction, properties).of_statement(change.handle, writer)
        _stage(producer)
        landed = _holds(producer)
    _commit(change.handle, transaction, producer, writer, landed, is_new=is_new)
    return None if producer is None else _version_of(producer)


def _version_of(producer: _AnySchema) -> ConnectorTableVersion:
    parent = producer._parent_snapshot_id  # noqa: SLF001
    below = None if parent is None else ConnectorTableVersion(parent)
    return ConnectorTableVersion(producer.snapshot_id, made_from=below)


def _add_columns(
    handle: IcebergTableHandle, transaction: Transaction
) -> Callable[[TableMetadata], bool]:
    """Add the handle's new columns, or raise TRANSACTION_CONFLICT if their ids differ from the new
    files'; return a predicate for tables with them.
    """
    stage_columns(handle.added, transaction)
    schema = transaction.table_metadata.schema()
    if fields_of(schema, handle.name) != handle.fields:
        conflict(handle.name, "its columns were altered")
    return lambda now: now.schema().fields == schema.fields


def replace(
    change: Change,
    original: IcebergTableHandle,
    now: Table,
    transaction: Transaction,
    properties: Mapping[str, str],
    writer: Writer,
) -> ConnectorTableVersion:
    """Commit a replaced table in a snapshot without a parent; any concurrent commit is a conflict."""
    _check_head(original, now)
    if now.metadata.current_schema_id != original.schema_id:
        conflict(original.name, "its columns were altered")
    producer = RowDelta(change, transaction, properties).of_statement(original, writer)
    _stage(producer)
    # No retry on top of another commit: the statement replaces the table that it has seen.
    transaction._snapshot_producers.clear()  # noqa: SLF001
    _commit(original, transaction, producer, writer, _holds(producer))
    return _version_of(producer)


def alter(
    handle: IcebergTableHandle, alteration: Alteration, transaction: Transaction, writer: Writer
) -> None:
    """Commit a change of a table's columns, properties or comments."""
    old_schema_id = transaction.table_metadata.current_schema_id
    if tuple(field.field_id for field in transaction.table_metadata.schema().fields) != tuple(
        f.id for f in handle.fields
    ):
        conflict(handle.name, "its columns were altered")
    stage_alteration(handle, alteration, transaction)
    staged = transaction.table_metadata

    def landed(now: TableMetadata) -> bool:
        altered = (
            now.current_schema_id != old_schema_id or staged.current_schema_id == old_schema_id
        )
        return altered and _altered_parts(now) == _altered_parts(staged)

    _commit(handle, transaction, None, writer, landed)


def _altered_parts(metadata: TableMetadata) -> tuple[Any, ...]:
    set_here = [
        metadata.properties.get(name) for name in (COMMENT, *ISOLATION, *PROPERTIES.values())
    ]
    return (
        metadata.schema(),
        metadata.spec().fields,
        metadata.format_version,
        sort_fields(metadata),
        set_here,
    )


def truncate(
    handle: IcebergTableHandle, transaction: Transaction, writer: Writer
) -> ConnectorTableVersion:
    """Commit the removal of all rows, including concurrent inserts; errors as of `commit`."""
    return _commit_empty(handle, Truncation(transaction), transaction, writer)


def restore(
    handle: IcebergTableHandle,
    snapshot: int | None,
    dropped: Sequence[str],
    transaction: Transaction,
    writer: Writer,
) -> ConnectorTableVersion | None:
    """Make an earlier snapshot the current one, as ``rollback_to_snapshot`` does; any concurrent
    commit is a conflict.

    None commits a snapshot without files. All snapshots and the log are retained.
    """
    metadata = transaction.table_metadata
    _check_head(handle, transaction._table)  # noqa: SLF001
    if dropped:
        if metadata.current_schema_id != handle.schema_id:
            conflict(handle.name, "its columns were altered")
        stage_drops(handle, dropped, transaction)
    if snapshot == handle.snapshot:
        if dropped:
            # The statement added columns and changed no rows.
            fields = transaction.table_metadata.schema().fields
            _commit(handle, transaction, None, writer, lambda now: now.schema().fields == fields)
        return None if snapshot is None else ConnectorTableVersion(snapshot)
    if snapshot is None:
        return _commit_empty(handle, Emptying(handle, transaction), transaction, writer)
    try:
        ManageSnapshots(transaction).set_current_snapshot(snapshot_id=snapshot)
    except ValueError as error:
        # The snapshot has expired.
        conflict(handle.name, error_text(error))
    entries = len(metadata.snapshot_log)

    def landed(now: TableMetadata) -> bool:
        return any(entry.snapshot_id == snapshot for entry in now.snapshot_log[entries:])

    _commit(handle, transaction, None, writer, landed)
    return ConnectorTableVersion(snapshot)


def gather_manifests(
    handle: IcebergTableHandle, transaction: Transaction, writer: Writer
) -> ConnectorTableVersion:
    """Commit a snapshot of the same files in fewer manifests."""
    producer = ManifestRewrite(transaction).of_statement(handle, writer)
    _stage(producer)
    _commit(handle, transaction, producer, writer, _holds(producer))
    return _version_of(producer)


def expire(
    handle: IcebergTableHandle, expired: Sequence[int], transaction: Transaction, writer: Writer
) -> None:
    """Commit the removal of snapshots, if branches and tags have not moved."""
    expired_ids = set(expired)
    refs = transaction.table_metadata.refs.items()
    same = tuple(
        AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref.snapshot_id})
        for name, ref in refs
    )
    transaction._apply((), same)  # noqa: SLF001
    try:
        ExpireSnapshots(transaction).by_ids(list(expired)).commit()
    except ValueError as error:
        conflict(handle.name, error_text(error))
    _commit(
        handle,
        transaction,
        None,
        writer,
        lambda now: expired_ids.isdisjoint(one.snapshot_id for one in now.snapshots),
    )


def drop_statistics(handle: IcebergTableHandle, transaction: Transaction, writer: Writer) -> None:
    """Commit the removal of a table's statistics files; errors as of `commit`."""
    for statistics in transaction.table_metadata.statistics:
        # pyiceberg's update removes one at a time.
        UpdateStatistics(transaction).remove_statistics(statistics.snapshot_id).commit()
    _commit(handle, transaction, None, writer, lambda now: not now.statistics)


def _commit_empty(
    handle: IcebergTableHandle, producer: Truncation, transaction: Transaction, writer: Writer
) -> ConnectorTableVersion:
    _stage(producer.of_statement(handle, writer))
    _commit(handle, transaction, producer, writer, _holds(producer))
    return _version_of(producer)


def _holds(producer: _FastAppendFiles | None) -> Callable[[TableMetadata], bool]:
    """Return a predicate for tables with the producer's snapshot, if any."""
    return lambda now: producer is None or now.snapshot_by_id(producer.snapshot_id) is not None


def _stage(producer: _AnySchema) -> None:
    """Write the manifests of a snapshot; remove them on failure."""
    handle = producer.handle
    producer.writer.note(handle)
    try:
        producer.commit()
    except BaseException as error:
        producer._clean_all_uncommitted()  # noqa: SLF001
        if isinstance(error, RowMergeError) or not isinstance(error, Exception):
            raise
        # Errors of network connections have no errno.
        if isinstance(error, OSError) and error.errno and not isinstance(error, FileNotFoundError):
            raise _metadata_error(error, handle) from error
        raise ConnectorError(
            f"The snapshot of Iceberg table '{handle.name}' cannot be written:"
            f" {type(error).__name__}: {error_text(error)}",
            code="ICEBERG_COMMIT_ERROR",
            hint=(
                "Check that the table's folder can be reached and that its manifests are intact;"
                " otherwise roll the table back to an earlier snapshot."
            ),
        ) from error


def _metadata_error(error: OSError, handle: IcebergTableHandle) -> ConnectorError:
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
    """Commit; after a failure, ``landed`` checks the reloaded table."""
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
        what = (
            "another table of this name was made"
            if is_new
            else "other commits were faster, time and again"
        )
        conflict(handle.name, what)
    except ValidationException as error:
        conflict(handle.name, str(error))
    except Exception as error:
        outcome = _has_landed(handle, transaction, landed, is_new=is_new)
        if outcome:
            return
        if outcome is None:
            raise ConnectorError(
                "The outcome is unknown: Iceberg's catalog did not say whether table"
                f" '{handle.name}' was changed: {sqlite_message(error)}",
                code="ICEBERG_COMMIT_ERROR",
                hint=(
                    "Look at the table before you run the statement again; its files are left where"
                    " they are."
                ),
                changed=None,
            ) from error
        if producer is not None:
            producer._clean_all_uncommitted()  # noqa: SLF001
        if embedded is not None:
            embedded.discard(transaction._table.io)  # noqa: SLF001
        if isinstance(error, OSError) and error.errno:
            raise _metadata_error(error, handle) from error
        msg = (
            f"Iceberg's catalog could not commit to table '{handle.name}': {sqlite_message(error)}"
        )
        if is_full(error):
            raise ConnectorError(
                msg,
                code="GENERIC_INSUFFICIENT_RESOURCES",
                hint="Make room on its disk, and run the statement again; the table is as it was.",
            ) from error
        raise ConnectorError(
            msg,
            code="ICEBERG_CATALOG_ERROR",
            hint="Check that no other program locks the catalog, and run the statement again.",
        ) from error


def _embedded(table: Table) -> EmbeddedCatalog | None:
    from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog

    return table.catalog if isinstance(table.catalog, EmbeddedCatalog) else None


def _has_landed(
    handle: IcebergTableHandle,
    transaction: Transaction,
    landed: Callable[[TableMetadata], bool],
    *,
    is_new: bool,
) -> bool | None:
    """Return whether a commit succeeded whose response was lost, or None if that is unknown."""
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
    # A later commit may have changed the same parts again.
    files = {latest.metadata_location, *(entry.metadata_file for entry in now.metadata_log)}
    embedded = _embedded(table)
    is_there = embedded is not None and embedded.written in files
    return landed(now) or is_there or (False if settled else None)
