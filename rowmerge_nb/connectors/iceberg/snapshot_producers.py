"""Snapshots that pyiceberg 0.12 does not write: row deltas, truncations and merged manifests.

Only this file uses pyiceberg's internals: the producer of appends, and the hook that checks a
commit before a retry.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Self

from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriter,
    ManifestListWriterV2,
    ManifestWriter,
    ManifestWriterV1,
    ManifestWriterV2,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    update_snapshot_summaries,
)
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    SetSnapshotRefUpdate,
    UpdatesAndRequirements,
)
from pyiceberg.table.update.snapshot import (
    _FastAppendFiles,
    _MergeAppendFiles,
    _new_manifest_list_file_name,
    _SnapshotProducer,
)
from pyiceberg.types import NestedField, StructType

from rowmerge_nb.connectors.iceberg.commit_conflicts import Change, check, check_head
from rowmerge_nb.connectors.iceberg.planning import Content, content_of
from rowmerge_nb.connectors.iceberg.version_three import FIRST_ROW_ID, VERSION, key_of, vector_range

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyiceberg.io import OutputFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Transaction
    from pyiceberg.typedef import TableVersion

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle
    from rowmerge_nb.connectors.iceberg.notes import Writer


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
    pass


class _ManifestWriterV2(_OptionalPartitions, ManifestWriterV2):
    pass


class _ManifestWriterV3(_OptionalPartitions, ManifestWriterV2):
    version = VERSION


class _DeleteManifestWriter(_ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _DeleteManifestWriterV3(_DeleteManifestWriter):
    version = VERSION


class _ManifestListWriterV3(ManifestListWriterV2):
    """A manifest list that assigns row ids to the manifests without them, also to existing rows from
    before version 3.
    """

    def __init__(
        self,
        output: OutputFile,
        snapshot: int,
        parent: int | None,
        sequence_number: int,
        compression: Any,
        next_row_id: int,
    ) -> None:
        super().__init__(output, snapshot, parent, sequence_number, compression)
        meta = {**self._meta, "format-version": str(VERSION), "first-row-id": str(next_row_id)}
        ManifestListWriter.__init__(self, VERSION, output, meta)
        self.next_row_id = next_row_id

    def prepare_manifest(self, manifest_file: ManifestFile) -> ManifestFile:
        missing = FIRST_ROW_ID + 1 - len(manifest_file)
        prepared = ManifestFile(
            *(manifest_file[index] for index in range(len(manifest_file))), *[None] * missing
        )
        prepared = super().prepare_manifest(prepared)
        if prepared.content == ManifestContent.DATA and prepared[FIRST_ROW_ID] is None:
            prepared[FIRST_ROW_ID] = self.next_row_id
            counts = prepared.existing_rows_count, prepared.added_rows_count
            self.next_row_id += sum(count or 0 for count in counts)
        return prepared


_WRITERS: Final[dict[int, Any]] = {1: _ManifestWriterV1, 2: _ManifestWriterV2, 3: _ManifestWriterV3}


class SnapshotProducer(_SnapshotProducer[Any]):
    """Writes manifests for partitionings of dropped columns too."""

    _prefix = ""
    handle: IcebergTableHandle
    writer: Writer

    @property  # type: ignore[override]
    def commit_uuid(self) -> str:
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
        writer: Any = _WRITERS[self._transaction.table_metadata.format_version]
        output, schema = self.new_manifest_output(), self._schema_of(spec.spec_id)
        manifest: ManifestWriter = writer(spec, schema, output, self.snapshot_id, self._compression)
        return manifest

    def delete_manifest_writer(self, spec_id: int) -> ManifestWriter:
        version = self._transaction.table_metadata.format_version
        writer = _DeleteManifestWriter if version < VERSION else _DeleteManifestWriterV3
        return writer(
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

    def _commit(self) -> UpdatesAndRequirements:
        metadata = self._transaction.table_metadata
        if metadata.format_version < VERSION:
            return super()._commit()
        manifests, sequence_number = self._manifests(), metadata.next_sequence_number()
        name = _new_manifest_list_file_name(self._snapshot_id, 0, self.commit_uuid)  # type: ignore[arg-type]
        location = self._transaction._table.location_provider().new_metadata_location(name)  # noqa: SLF001
        self._written_manifest_lists.append(location)
        first_row_id = getattr(metadata, "next_row_id", None) or 0
        manifest_list = _ManifestListWriterV3(
            self._io.new_output(location),
            self._snapshot_id,
            self._parent_snapshot_id,
            sequence_number,
            self._compression,
            first_row_id,
        )
        with manifest_list:
            manifest_list.add_manifests(manifests)
        snapshot = {
            "snapshot-id": self._snapshot_id,
            "parent-snapshot-id": self._parent_snapshot_id,
            "manifest-list": location,
            "sequence-number": sequence_number,
            "summary": self._summary(self.snapshot_properties),
            "schema-id": metadata.current_schema_id,
            "first-row-id": first_row_id,
            "added-rows": manifest_list.next_row_id - first_row_id,
        }
        ref = {
            "snapshot-id": self._snapshot_id,
            "ref-name": self._target_branch,
            "type": SnapshotRefType.BRANCH,
        }
        head = metadata.refs.get(self._target_branch or MAIN_BRANCH)
        unchanged = {
            "ref": self._target_branch,
            "snapshot-id": None if head is None else head.snapshot_id,
        }
        return (
            AddSnapshotUpdate(snapshot=Snapshot.model_validate(snapshot)),
            SetSnapshotRefUpdate.model_validate(ref),
        ), (AssertRefSnapshotId.model_validate(unchanged),)

    def _changes(
        self, added: Iterable[DataFile], removed: Iterable[ManifestEntry], limit: int = 0
    ) -> dict[str, str]:
        """Return a summary's entries about files; up to `limit` partitions have entries of their
        own.
        """
        specs, collector = self._transaction.table_metadata.specs(), _Collector(limit)
        added_files, removed_files = list(added), [entry.data_file for entry in removed]
        for add, files in (
            (collector.add_file, added_files),
            (collector.remove_file, removed_files),
        ):
            for file in files:
                add(file, schema=self._schema_of(file.spec_id), partition_spec=specs[file.spec_id])
        entries: dict[str, str] = collector.build()
        _count_vectors(entries, "added", added_files)
        _count_vectors(entries, "removed", removed_files)
        return entries

    def _with_totals(
        self, entries: Mapping[str, str], properties: Mapping[str, str] | None
    ) -> Summary:
        """Add totals to a summary; pyiceberg has none for REPLACE, which is counted like
        OVERWRITE.
        """
        operation = self._operation
        counted_as = Operation.OVERWRITE if operation is Operation.REPLACE else operation
        parent = self._transaction.table_metadata.snapshot_by_id(self._parent_snapshot_id or 0)
        previous = parent.summary if parent is not None else None
        summary = Summary(operation=counted_as, **{**entries, **(properties or {})})
        totals = update_snapshot_summaries(summary, previous)
        if counted_as is operation:
            return totals
        return totals.model_copy(update={"operation": operation})

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


def _count_vectors(entries: dict[str, str], word: str, files: Iterable[DataFile]) -> None:
    """Count deletion vectors apart from position delete files, and with their own size."""
    vectors = [(file, vector) for file in files if (vector := vector_range(file)) is not None]
    if not vectors:
        return
    changes = {
        f"{word}-dvs": len(vectors),
        f"{word}-position-delete-files": -len(vectors),
        f"{word}-files-size": sum(size - file.file_size_in_bytes for file, (_, size) in vectors),
    }
    for name, change in changes.items():
        number = int(entries.pop(name, "0")) + change
        if number:
            entries[name] = str(number)


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


class RowDelta(SnapshotProducer, _MergeAppendFiles):
    """Adds and removes data files and delete files in one snapshot."""

    def __init__(
        self, change: Change, transaction: Transaction, properties: Mapping[str, str]
    ) -> None:
        table = transaction._table  # noqa: SLF001
        self._change = change
        super().__init__(
            change.operation,
            transaction,
            table.io,
            snapshot_properties=dict(properties),
            branch=change.handle.branch or MAIN_BRANCH,
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
        manifests, removed = super()._existing_manifests(), self._change.removed.keys
        return (
            [self._without(manifest, removed) for manifest in manifests] if removed else manifests
        )

    def _without(self, manifest: ManifestFile, removed: Collection[str]) -> ManifestFile:
        entries = manifest.fetch_manifest_entry(self._io, discard_deleted=True)
        if not any(key_of(entry.data_file) in removed for entry in entries):
            return manifest
        with self.writer_like(manifest) as writer:
            for entry in entries:
                is_removed = key_of(entry.data_file) in removed
                writer.add_entry(_carried_entry(entry, self.snapshot_id if is_removed else None))
        return writer.to_manifest_file()

    def _summary(self, snapshot_properties: Mapping[str, str] | None = None) -> Summary:
        properties, change = self._transaction.table_metadata.properties, self._change
        limit = int(properties.get("write.summary.partition-limit", "0"))
        removed = (*change.removed.data, *change.removed.deletes)
        entries = self._changes((*change.data, *change.deletes), removed, limit)
        return self._with_totals({"changed-partition-count": "0", **entries}, snapshot_properties)

    def _validate_concurrency(self) -> None:
        check(self._change, self._transaction._table)  # noqa: SLF001


class Truncation(SnapshotProducer, _FastAppendFiles):
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
        live = self._live()
        return self._with_totals(
            self._changes((), (*live.data, *live.deletes)), snapshot_properties
        )


class Emptying(Truncation):
    """Removes all files of a table that no other commit has changed."""

    def __init__(self, handle: IcebergTableHandle, transaction: Transaction) -> None:
        self._handle = handle
        super().__init__(transaction)

    def _validate_concurrency(self) -> None:
        check_head(self._handle, self._transaction._table)  # noqa: SLF001


class ManifestRewrite(SnapshotProducer, _FastAppendFiles):
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
        merged = []
        delete_manifests = [one for one in manifests if one.content == ManifestContent.DELETES]
        processed = 0
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
        return self._with_totals(self._counts, snapshot_properties)
