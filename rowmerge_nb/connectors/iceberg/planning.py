"""The files of a snapshot, the delete files that apply to them, and the splits of a scan."""

from __future__ import annotations

import itertools
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError, RowMergeError
from rowmerge_nb.connectors.iceberg.iceberg_handles import (
    PATH_ID,
    DataFileRef,
    DeleteFile,
    IcebergSplit,
)
from rowmerge_nb.connectors.iceberg.iceberg_types import field_of
from rowmerge_nb.connectors.iceberg.pruning import domains_by_id
from rowmerge_nb.connectors.iceberg.version_three import (
    first_row_id_of,
    key_of,
    referenced_file,
    vector_range,
)
from rowmerge_nb.spi import Constraint, ReadFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile, ManifestEntry
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergField, IcebergTableHandle

SPLIT_BYTES: Final = 64 * 1024 * 1024
SPLIT_ROWS: Final = 1_048_576
SMALL_BYTES: Final = 1 << 20
_HINT: Final = "Rewrite the table's files with another engine, or read it there."


@dataclass
class Content:
    """The live files of a snapshot, sorted by path."""

    data: list[ManifestEntry] = field(default_factory=list)
    deletes: list[ManifestEntry] = field(default_factory=list)

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(file_keys((*self.data, *self.deletes)))


def known_snapshot(metadata: TableMetadata, number: int | None) -> Snapshot | None:
    return None if number is None else metadata.snapshot_by_id(number)


def file_keys(entries: Iterable[ManifestEntry]) -> set[str]:
    """Return what identifies files; this is the path for all but deletion vectors."""
    return {key_of(entry.data_file) for entry in entries}


def content_of(
    table: Table, snapshot_id: int | None, filtered: BooleanExpression | None = None
) -> Content:
    """Return the live files of a snapshot that may satisfy a filter."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.manifest import DataFileContent

    from rowmerge_nb.connectors.iceberg.partition_pruning import PartitionPlanner

    content = Content()
    snapshot = known_snapshot(table.metadata, snapshot_id)
    if snapshot is None:
        return content
    try:
        planner = PartitionPlanner(
            table.metadata, table.io, filtered if filtered is not None else AlwaysTrue()
        )
        entries = list(
            itertools.chain.from_iterable(
                planner.plan_manifest_entries(snapshot.manifests(table.io))
            )
        )
    except Exception as error:
        raise _unreadable(table, snapshot, error) from error
    for entry in entries:
        (
            content.data if entry.data_file.content == DataFileContent.DATA else content.deletes
        ).append(entry)
    content.data.sort(key=lambda entry: entry.data_file.file_path)
    return content


def matching_content(
    table: Table, snapshot_id: int | None, content: Content, filtered: BooleanExpression
) -> Content:
    """Return the files of a snapshot's content that may satisfy a filter."""
    from pyiceberg.expressions import AlwaysTrue

    from rowmerge_nb.connectors.iceberg.partition_pruning import PartitionPlanner

    if isinstance(filtered, AlwaysTrue):
        return replace(content)
    snapshot = known_snapshot(table.metadata, snapshot_id)
    if snapshot is None:
        return Content()
    planner = PartitionPlanner(table.metadata, table.io, filtered)
    try:
        return Content(
            *(list(planner.matching(entries)) for entries in (content.data, content.deletes))
        )
    except Exception as error:
        raise _unreadable(table, snapshot, error) from error


def _unreadable(table: Table, snapshot: Snapshot, error: Exception) -> RowMergeError:
    """Return the error with the unreadable manifest, which pyiceberg does not report."""
    if isinstance(error, RowMergeError):
        return error
    twice = _named_twice(table)
    if isinstance(error, TypeError) and twice:
        return ConnectorError(
            f"Iceberg table '{'.'.join(table.name())}' is partitioned by"
            f" {' and '.join(twice)}, of one type. Manifests of other engines define such a"
            " type once and then refer to it by name, which pyiceberg does not read",
            hint="Partition it by one of them, or read it with the engine that wrote it.",
        )
    location = snapshot.manifest_list
    with suppress(Exception):
        for manifest in snapshot.manifests(table.io):
            location = manifest.manifest_path
            manifest.fetch_manifest_entry(table.io)
        location = "one of its manifests"
    name, words = ".".join(table.name()), " ".join(str(error).split())[:300]
    return ConnectorError(
        f"The manifests of snapshot {snapshot.snapshot_id} of Iceberg table '{name}' cannot be"
        f" read, for '{location}': {type(error).__name__}: {words}",
        code="ICEBERG_INVALID_METADATA",
        hint="Restore that file, or roll the table back to a snapshot whose manifests are intact.",
    )


def _named_twice(table: Table) -> list[str]:
    """Return partition columns whose types share a name in Avro."""
    from pyiceberg.types import DecimalType, FixedType, UUIDType

    for spec in table.metadata.specs().values():
        names = defaultdict(list)
        for part in spec.fields:
            with suppress(ValueError):  # the column of an old spec may be gone
                column = table.schema().find_field(part.source_id)
                result = part.transform.result_type(column.field_type)
                if isinstance(result, DecimalType | FixedType | UUIDType):
                    names[str(result)].append(f"'{column.name}'")
        for columns in names.values():
            if len(columns) > 1:
                return columns
    return []


def live_files(content: Content) -> tuple[DataFileRef, ...]:
    """Return the data files in the order of row ids."""
    return tuple(
        DataFileRef(entry.data_file.file_path, entry.data_file.spec_id) for entry in content.data
    )


def rows_of(table: Table, snapshot_id: int | None) -> tuple[int | None, bool]:
    """Return the number of rows in the data files, if known, and whether none are deleted."""
    from pyiceberg.manifest import ManifestContent

    if snapshot_id is None:
        return 0, True
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        return None, False
    total, whole = 0, True
    try:
        manifests = snapshot.manifests(table.io)
    except Exception as error:
        raise _unreadable(table, snapshot, error) from error
    for manifest in manifests:
        rows = (manifest.added_rows_count, manifest.existing_rows_count)
        files = (manifest.added_files_count, manifest.existing_files_count)
        if manifest.content == ManifestContent.DELETES and any(files):
            whole = False
        if manifest.content == ManifestContent.DATA:
            if None in rows:
                return None, False
            total += sum(number or 0 for number in rows)
    return total, whole


def total_of(table: Table, snapshot_id: int | None, *names: str) -> int | None:
    """Return a sum of totals of a snapshot's summary, if all are known."""
    snapshot = known_snapshot(table.metadata, snapshot_id)
    if snapshot is None or snapshot.summary is None:
        return None
    totals = [snapshot.summary.get(name) or "" for name in names]
    return sum(map(int, totals)) if all(total.isdigit() for total in totals) else None


# -- deletes


class DeleteIndex:
    """Finds the delete files of a data file, by path or partition."""

    def __init__(
        self, table: Table, handle: IcebergTableHandle, entries: Iterable[ManifestEntry]
    ) -> None:
        self._schemas = table.metadata.schemas
        self._handle = handle
        self._by_path: dict[str, list[ManifestEntry]] = defaultdict(list)
        self._by_partition: dict[Any, list[ManifestEntry]] = defaultdict(list)
        self._everywhere: list[ManifestEntry] = []
        specs = table.metadata.specs()
        for entry in entries:
            _check_format(entry.data_file, handle, ("PARQUET", "PUFFIN"))
            path = only_path(entry.data_file)
            if path is not None:
                self._by_path[path].append(entry)
            elif _is_equality(entry) and specs[entry.data_file.spec_id].is_unpartitioned():
                self._everywhere.append(entry)
            else:
                self._by_partition[partition_of(entry.data_file)].append(entry)

    def of(self, entry: ManifestEntry) -> tuple[DeleteFile, ...]:
        file = entry.data_file
        candidates = [
            *self._by_path[file.file_path],
            *self._by_partition[partition_of(file)],
            *self._everywhere,
        ]
        return tuple(self._described(delete) for delete in candidates if _applies(delete, entry))

    def _described(self, entry: ManifestEntry) -> DeleteFile:
        file = entry.data_file
        if _is_equality(entry):
            fields = tuple(
                self._field(number, file.file_path) for number in file.equality_ids or ()
            )
            if not fields:
                raise ConnectorError(
                    f"Equality delete file '{file.file_path}' of Iceberg table"
                    f" '{self._handle.name}' names no columns",
                    code="ICEBERG_BAD_DATA",
                    hint=_HINT,
                )
            return DeleteFile(file.file_path, "equality", fields=fields, file=_read_file(file))
        if _format(file) == "PUFFIN":
            return DeleteFile(
                file.file_path, "vector", vector=vector_range(file), file=_read_file(file)
            )
        return DeleteFile(
            file.file_path,
            "position",
            whole=only_path(file) is not None,
            file=_read_file(file),
        )

    def _field(self, number: int, path: str) -> IcebergField:
        for column in self._handle.fields:
            if column.id == number:
                return column
        # A dropped column still decides which rows were deleted.
        for schema in reversed(self._schemas):
            dropped = next((f for f in schema.fields if f.field_id == number), None)
            if dropped is not None:
                return field_of(dropped, dropped.name, self._handle.name)
        raise ConnectorError(
            f"Equality delete file '{path}' of Iceberg table '{self._handle.name}'"
            f" compares column {number}, which is not a top-level column",
            hint=_HINT,
        )


def _read_file(file: DataFile) -> ReadFile:
    from pyiceberg.manifest import DataFileContent

    return ReadFile(
        file.file_path,
        file.file_size_in_bytes,
        file.record_count,
        file.content != DataFileContent.DATA,
    )


def _is_equality(entry: ManifestEntry) -> bool:
    from pyiceberg.manifest import DataFileContent

    return bool(entry.data_file.content == DataFileContent.EQUALITY_DELETES)


def _applies(delete: ManifestEntry, data: ManifestEntry) -> bool:
    """Return whether a delete file may apply to a data file: equality deletes need an older file."""
    deleted, added = delete.sequence_number or 0, data.sequence_number or 0
    if _is_equality(delete):
        return deleted > added
    return deleted >= added and may_delete_from(delete.data_file, data.data_file.file_path)


def _path_bounds(delete: DataFile) -> list[bytes | None]:
    return [(bounds or {}).get(PATH_ID) for bounds in (delete.lower_bounds, delete.upper_bounds)]


def may_delete_from(delete: DataFile, path: str) -> bool:
    only = referenced_file(delete)
    if only is not None:
        return only == path
    lower, upper = _path_bounds(delete)
    text = path.encode()
    return not ((lower is not None and text < lower) or (upper is not None and text > upper))


def only_path(delete: DataFile) -> str | None:
    """Return the only data file of a delete file, by its entry, or by equal bounds; a damaged bound
    is ignored.
    """
    only = referenced_file(delete)
    if only is not None:
        return only
    lower, upper = _path_bounds(delete)
    try:
        return lower.decode() if lower is not None and lower == upper else None
    except UnicodeDecodeError:
        return None


def partition_of(file: DataFile) -> Any:
    return (file.spec_id, tuple(file.partition[i] for i in range(len(file.partition))))


def _format(file: DataFile) -> str:
    file_format = file.file_format
    return str(getattr(file_format, "value", file_format)).upper()


def _check_format(file: DataFile, handle: IcebergTableHandle, formats: Sequence[str]) -> None:
    if _format(file) not in formats:
        raise ConnectorError(
            f"File '{file.file_path}' of Iceberg table '{handle.name}' is of format"
            f" {_format(file)}, which is not supported",
            hint=_HINT,
        )


def rewritable(
    table: Table,
    handle: IcebergTableHandle,
    content: Content,
    requested_paths: Collection[str],
    most_bytes: int,
) -> Content:
    """Return the files that are worth compacting, and the delete files that become useless.

    Per partition these are small files, if there are several, and files with deleted rows. If any
    candidate has another partitioning, all candidates are compacted.
    """
    deleting = _deletes_by_file(table, handle, content)
    groups: dict[Any, list[ManifestEntry]] = defaultdict(list)
    for entry in content.data:
        file = entry.data_file
        if file.file_path in requested_paths and (
            deleting[file.file_path] or file.file_size_in_bytes <= most_bytes
        ):
            _check_format(file, handle, ("PARQUET",))
            groups[partition_of(file)].append(entry)
    # Rows of a file with another partitioning may go to any partition.
    all_of_them = any(
        entry.data_file.spec_id != handle.spec_id for group in groups.values() for entry in group
    )
    data = [
        entry
        for group in groups.values()
        for entry in group
        if all_of_them or len(group) > 1 or deleting[entry.data_file.file_path]
    ]
    return Content(data, useless_deletes(table, handle, content, file_keys(data)))


def useless_deletes(
    table: Table, handle: IcebergTableHandle, content: Content, removed: Collection[str]
) -> list[ManifestEntry]:
    """Return the delete files that can only refer to removed data files."""
    if not content.deletes:
        return []
    deleting = _deletes_by_file(table, handle, content)
    useless = set[str]().union(*(deleting[path] for path in removed))
    useless -= set[str]().union(*(paths for path, paths in deleting.items() if path not in removed))
    return [entry for entry in content.deletes if key_of(entry.data_file) in useless]


def _deletes_by_file(
    table: Table, handle: IcebergTableHandle, content: Content
) -> dict[str, set[str]]:
    index = DeleteIndex(table, handle, content.deletes)
    return {
        entry.data_file.file_path: {one.key for one in index.of(entry)} for entry in content.data
    }


# -- splits


def splits_of(
    table: Table,
    handle: IcebergTableHandle,
    content: Content,
    constraint: Constraint,
    numbers: Mapping[str, int],
    *,
    places: bool = False,
) -> list[IcebergSplit]:
    index = DeleteIndex(table, handle, content.deletes)
    domains = domains_by_id(constraint, handle.fields)
    specs = {
        number: _constants(spec, handle.fields) for number, spec in table.metadata.specs().items()
    }
    files = [entry.data_file for entry in (*content.data, *content.deletes)]
    small = sum(file.file_size_in_bytes for file in files) <= SMALL_BYTES
    splits = []
    for entry in content.data:
        file = entry.data_file
        _check_format(file, handle, ("PARQUET",))
        constants = {
            field_id: file.partition[index] for field_id, index in specs[file.spec_id].items()
        }
        deletes = index.of(entry)
        number, read_file = numbers[file.file_path], _read_file(file)
        partition = _partition_path(table, file) if places else ""
        for start, end in _ranges(file):
            splits.append(
                IcebergSplit(
                    file.file_path,
                    number,
                    start,
                    end,
                    deletes,
                    constants,
                    domains,
                    small,
                    partition,
                    read_file,
                    first_row_id_of(file),
                    entry.sequence_number,
                )
            )
    return splits


def whole_files(
    table: Table, handle: IcebergTableHandle, content: Content
) -> tuple[IcebergSplit, ...]:
    index = DeleteIndex(table, handle, content.deletes)
    specs = {
        number: _constants(spec, handle.fields) for number, spec in table.metadata.specs().items()
    }
    return tuple(
        IcebergSplit(
            entry.data_file.file_path,
            number,
            0,
            entry.data_file.file_size_in_bytes,
            index.of(entry),
            {
                field_id: entry.data_file.partition[index]
                for field_id, index in specs[entry.data_file.spec_id].items()
            },
            first_row_id=first_row_id_of(entry.data_file),
            sequence_number=entry.sequence_number,
        )
        for number, entry in enumerate(content.data)
    )


def _partition_path(table: Table, file: DataFile) -> str:
    spec = table.metadata.specs()[file.spec_id]
    sources = {part.source_id for part in spec.fields}
    schemas = (table.schema(), *reversed(table.metadata.schemas))
    schema = next((schema for schema in schemas if sources <= schema.field_ids), table.schema())
    return spec.partition_to_path(file.partition, schema)


def _constants(spec: Any, fields: Sequence[IcebergField]) -> dict[int, int]:
    field_ids = {field.id for field in fields}
    return {
        part.source_id: index
        for index, part in enumerate(spec.fields)
        if str(part.transform) == "identity" and part.source_id in field_ids
    }


def _ranges(file: DataFile) -> Iterator[tuple[int, int]]:
    size = file.file_size_in_bytes
    parts = max(-(-size // SPLIT_BYTES), -(-file.record_count // SPLIT_ROWS), 1)
    offsets = sorted({int(offset) for offset in file.split_offsets or ()})
    start = 0
    for number in range(1, parts):
        target = size * number // parts
        cut = min(offsets, key=lambda offset: abs(offset - target)) if offsets else target
        if start < cut < size:
            yield start, cut
            start = cut
    yield start, size
