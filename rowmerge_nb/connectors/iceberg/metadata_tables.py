"""Trino's metadata tables: ``"t$snapshots"``, ``"t$history"``, ``"t$files"`` and so on."""

from __future__ import annotations

import base64
import datetime as dt
import itertools
import json
import uuid
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.connectors.iceberg.iceberg_handles import LINEAGE, PATH_ID, POSITION_ID
from rowmerge_nb.connectors.iceberg.iceberg_types import field_of, fields_of
from rowmerge_nb.connectors.iceberg.planning import content_of
from rowmerge_nb.connectors.iceberg.sorting import shown_keys
from rowmerge_nb.connectors.iceberg.version_three import (
    first_row_id_of,
    referenced_file,
    vector_range,
)
from rowmerge_nb.spi import ColumnMetadata, SystemTable, Type, parse_type
from rowmerge_nb.spi.types import DATE, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.partitioning import PartitionField
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import IcebergType, NestedField, PrimitiveType

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergField


Row = tuple[Any, ...]
Content = tuple[list[ColumnMetadata], Iterator[Row]]
"""The columns and rows of a metadata table."""

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp without a zone
_MOMENT: Final = "timestamp(3) with time zone"
_HISTORY: Final = (
    f"made_current_at {_MOMENT}, snapshot_id bigint, parent_id bigint, is_current_ancestor boolean"
)
_SNAPSHOTS: Final = (
    f"committed_at {_MOMENT}, snapshot_id bigint, parent_id bigint, operation varchar,"
    " manifest_list varchar, summary map(varchar,varchar)"
)
_REFS: Final = (
    "name varchar, type varchar, snapshot_id bigint, max_reference_age_in_ms bigint,"
    " min_snapshots_to_keep integer, max_snapshot_age_in_ms bigint"
)
_LOG: Final = (
    f"timestamp {_MOMENT}, file varchar, latest_snapshot_id bigint, latest_schema_id integer,"
    " latest_sequence_number bigint"
)
_MANIFEST: Final = "content integer, path varchar, length bigint, partition_spec_id integer, added_snapshot_id bigint"
_MANIFEST_COUNTS: Final = (
    "added_data_files_count integer, added_rows_count bigint, existing_data_files_count integer,"
    " existing_rows_count bigint, deleted_data_files_count integer, deleted_rows_count bigint"
)
_ALL_COUNTS: Final = ", ".join(
    f"{what}_{content}_files_count integer"
    for content in ("data", "delete")
    for what in ("added", "existing", "deleted")
)
_SUMMARIES: Final = (
    "partition_summaries array(row(contains_null boolean, contains_nan boolean, lower_bound"
    " varchar, upper_bound varchar))"
)
_ENTRY: Final = (
    "status integer, snapshot_id bigint, sequence_number bigint, file_sequence_number bigint"
)
_FILE: Final = "content integer, file_path varchar, file_format varchar, spec_id integer"
_FILE_COUNTS: Final = (
    "record_count bigint, file_size_in_bytes bigint, column_sizes map(integer,bigint), value_counts"
    " map(integer,bigint), null_value_counts map(integer,bigint), nan_value_counts"
    " map(integer,bigint)"
)
_FILE_BOUNDS: Final = "lower_bounds map(integer,varchar), upper_bounds map(integer,varchar)"
_FILE_REST: Final = (
    "key_metadata varbinary, split_offsets array(bigint), equality_ids array(integer),"
    " sort_order_id integer"
)
_FILE_ENTRY: Final = (
    "added_snapshot_id bigint, file_sequence_number bigint, data_sequence_number bigint,"
    " referenced_data_file varchar, pos bigint, manifest_location varchar, first_row_id bigint,"
    " content_offset bigint, content_size_in_bytes bigint"
)
_METRICS: Final = ColumnMetadata("readable_metrics", parse_type("json"))


def metadata_table(table: Table, suffix: str) -> SystemTable:
    columns, rows = METADATA_TABLES[suffix](table)
    records = list(rows)
    arrays = [
        pa.array([row[index] for row in records], column.type.arrow)
        for index, column in enumerate(columns)
    ]
    return SystemTable(
        tuple(columns), pa.Table.from_arrays(arrays, names=[column.name for column in columns])
    )


def _columns(text: str) -> list[ColumnMetadata]:
    row = parse_type(f"row({text})")
    return [
        ColumnMetadata(name or "", sql_type)
        for name, sql_type in zip(row.fields, row.parameters, strict=True)
    ]


def _moment(millis: int) -> int:
    return millis * 1000


# -- snapshots


def _snapshots(table: Table) -> Iterator[Row]:
    for one in table.metadata.snapshots:
        summary = one.summary
        properties = None if summary is None else sorted(summary.additional_properties.items())
        operation = None if summary is None else summary.operation.value
        yield (
            _moment(one.timestamp_ms),
            one.snapshot_id,
            one.parent_snapshot_id,
            operation,
            one.manifest_list,
            properties,
        )


def _history(table: Table) -> Iterator[Row]:
    from pyiceberg.table.snapshots import ancestors_of

    ancestors = {one.snapshot_id for one in ancestors_of(table.current_snapshot(), table.metadata)}

    for entry in table.metadata.snapshot_log:
        snapshot = table.metadata.snapshot_by_id(entry.snapshot_id)
        parent = None if snapshot is None else snapshot.parent_snapshot_id
        yield (
            _moment(entry.timestamp_ms),
            entry.snapshot_id,
            parent,
            entry.snapshot_id in ancestors,
        )


def _refs(table: Table) -> Iterator[Row]:
    for name, ref in table.metadata.refs.items():
        ref_type = ref.snapshot_ref_type.value.upper()
        yield (
            name,
            ref_type,
            ref.snapshot_id,
            ref.max_ref_age_ms,
            ref.min_snapshots_to_keep,
            ref.max_snapshot_age_ms,
        )


def _metadata_log(table: Table) -> Iterator[Row]:
    metadata = table.metadata

    entries = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    for millis, file in (*entries, (metadata.last_updated_ms, table.metadata_location)):
        latest = table.snapshot_as_of_timestamp(millis)
        latest_numbers = (
            (None, None, None)
            if latest is None
            else (latest.snapshot_id, latest.schema_id, latest.sequence_number)
        )
        yield _moment(millis), file, *latest_numbers


def _properties(table: Table) -> Iterator[Row]:
    format_ = table.properties.get("write.format.default", "parquet").upper()
    snapshot = table.current_snapshot()
    properties = {
        "format": f"iceberg/{format_}",
        "provider": "iceberg",
        "current-snapshot-id": "none" if snapshot is None else str(snapshot.snapshot_id),
        "location": table.location(),
        "format-version": str(table.format_version),
    }
    if keys := shown_keys(table):
        properties["sort-order"] = ", ".join(map(str, keys))
    yield from {**properties, **table.properties}.items()


# -- files


def _manifests(table: Table) -> Iterator[Row]:
    snapshot = table.current_snapshot()
    for one in () if snapshot is None else snapshot.manifests(table.io):
        counts = (
            *(
                one.added_files_count,
                one.added_rows_count,
                one.existing_files_count,
                one.existing_rows_count,
            ),
            *(one.deleted_files_count, one.deleted_rows_count),
        )
        yield *_manifest(one), *counts, _summaries(table, one)


def _all_manifests(table: Table) -> Iterator[Row]:
    from pyiceberg.manifest import ManifestContent

    none = (0, 0, 0)
    for snapshot in table.metadata.snapshots:
        for one in snapshot.manifests(table.io):
            counts = (one.added_files_count, one.existing_files_count, one.deleted_files_count)
            of_data = one.content == ManifestContent.DATA
            both = (*counts, *none) if of_data else (*none, *counts)
            yield *_manifest(one), *both, _summaries(table, one), snapshot.snapshot_id


def _manifest(one: ManifestFile) -> Row:
    return (
        int(one.content),
        one.manifest_path,
        one.manifest_length,
        one.partition_spec_id,
        one.added_snapshot_id,
    )


def _summaries(table: Table, manifest: ManifestFile) -> list[dict[str, Any]]:
    from pyiceberg.conversions import from_bytes

    schemas, summaries = (table.schema(), *reversed(table.metadata.schemas)), []
    for field, summary in zip(
        table.metadata.specs()[manifest.partition_spec_id].fields,
        manifest.partitions or (),
        strict=False,
    ):
        schema = next(
            (schema for schema in schemas if field.source_id in schema.field_ids), schemas[0]
        )
        source = schema.find_type(field.source_id)
        result: Any = field.transform.result_type(source)
        lower, upper = (
            (
                None
                if bound is None
                else field.transform.to_human_string(source, from_bytes(result, bound))
            )
            for bound in (summary.lower_bound, summary.upper_bound)
        )
        nulls, nans = summary.contains_null, bool(summary.contains_nan)
        summaries.append(
            {
                "contains_null": nulls,
                "contains_nan": nans,
                "lower_bound": lower,
                "upper_bound": upper,
            }
        )
    return summaries


def _live_files(table: Table) -> list[DataFile]:
    snapshot = table.current_snapshot()
    content = content_of(table, None if snapshot is None else snapshot.snapshot_id)
    return [entry.data_file for entry in (*content.data, *content.deletes)]


class _Partition:
    """All of a table's partition fields as one row type.

    Fields of one column and transform are merged; other fields of one name get their id as a suffix.
    """

    def __init__(self, table: Table) -> None:
        self._specs = table.metadata.specs()
        schemas = (table.schema(), *reversed(table.metadata.schemas))
        self._same: dict[int, int] = {}
        self._fields: dict[int, tuple[str, Type]] = {}
        first: dict[tuple[int, str], int] = {}
        for field in itertools.chain.from_iterable(spec.fields for spec in self._specs.values()):
            number = (
                field.field_id
                if _is_void(field)
                else first.setdefault((field.source_id, str(field.transform)), field.field_id)
            )
            number = self._same.setdefault(field.field_id, number)
            schema = next(
                (schema for schema in schemas if field.source_id in schema.field_ids), None
            )
            if schema is not None and not (_is_void(field) and number in self._fields):
                self._fields[number] = (
                    field.name,
                    _partition_type(field.transform, schema, field.source_id),
                )
        self._name(table)

    def _name(self, table: Table) -> None:
        names: dict[str, int] = {}
        present = [self._same[field.field_id] for field in table.spec().fields]
        for number in (*present, *reversed(self._fields)):
            if number in self._fields and number not in names.values():
                name, sql_type = self._fields[number]
                while name.lower() in names:
                    name = f"{name}_{number}"
                names[name.lower()] = number
                self._fields[number] = name, sql_type

    @property
    def columns(self) -> list[ColumnMetadata]:
        return [ColumnMetadata("partition", row_of(self._fields.values()))] if self._fields else []

    def of(self, file: DataFile) -> tuple[dict[str, Any], ...]:
        if not self._fields:
            return ()
        indexes = {
            self._same[field.field_id]: index
            for index, field in enumerate(self._specs[file.spec_id].fields)
        }
        return (
            {
                name: file.partition[indexes[number]] if number in indexes else None
                for number, (name, _) in self._fields.items()
            },
        )


def _is_void(field: PartitionField) -> bool:
    return str(field.transform) == "void"


def _partition_type(transform: Any, schema: Schema, source: int) -> Type:
    from pyiceberg.types import NestedField

    if str(transform) == "day":
        return DATE
    result = transform.result_type(schema.find_type(source))
    return field_of(
        NestedField(field_id=0, name="", field_type=result, required=False), "", ""
    ).type


def _files(table: Table) -> Content:
    from pyiceberg.manifest import ManifestEntryStatus

    bounds = _TypedBounds(table)
    builder, snapshot = _Files(table, bounds), table.current_snapshot()

    def rows() -> Iterator[Row]:
        for manifest in () if snapshot is None else snapshot.manifests(table.io):
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
            for position, entry in enumerate(entries):
                if entry.status != ManifestEntryStatus.DELETED:
                    metrics = _metrics(entry.data_file, table.schema())
                    location = position, manifest.manifest_path
                    yield *builder.of(entry.data_file), metrics, *_of_entry(entry, *location)

    return [*builder.columns, _METRICS, *_columns(_FILE_ENTRY)], rows()


def _of_entry(entry: ManifestEntry, position: int, manifest: str) -> Row:
    file = entry.data_file
    numbers = entry.snapshot_id, entry.file_sequence_number, entry.sequence_number
    is_data = int(file.content) == 0
    offset, size = vector_range(file) or (None, None)
    return (
        *numbers,
        None if is_data else referenced_file(file),
        position,
        manifest,
        first_row_id_of(file) if is_data else None,
        offset,
        size,
    )


class _TypedBounds:
    """The bounds of `"t$files"`: a row with a field for each primitive column, by its id."""

    def __init__(self, table: Table) -> None:
        self._schema = schema = table.schema()
        self._types = {
            field.id: field.type
            for column in fields_of(schema, table.name())
            for field in _primitives(column)
        }
        row = row_of((str(number), sql_type) for number, sql_type in self._types.items())
        names = ("lower_bounds", "upper_bounds") if self._types else ()
        self.columns = [ColumnMetadata(name, row) for name in names]

    def of(self, file: DataFile) -> Row:
        both_bounds = (file.lower_bounds, file.upper_bounds)
        return tuple(map(self._values, both_bounds)) if self._types else ()

    def _values(self, encoded: Mapping[int, bytes] | None) -> dict[str, Any] | None:
        if encoded is None:
            return None
        values = {number: _bound(self._schema, number, encoded) for number in self._types}
        return {str(number): value for number, value in values.items()}


def _bound(schema: Schema, number: int, encoded: Mapping[int, bytes]) -> Any:
    from pyiceberg.conversions import from_bytes

    if number not in encoded:
        return None
    iceberg_type: Any = schema.find_type(number)
    value: Any = from_bytes(iceberg_type, encoded[number])
    return str(_value(iceberg_type, value)) if str(iceberg_type) == "uuid" else value


def _primitives(field: IcebergField) -> Iterator[IcebergField]:
    if field.fields or field.type_name in {"struct", "list", "map"}:
        for part in field.fields:
            yield from _primitives(part)
    else:
        yield field


class _TextBounds:
    """The bounds of `"t$entries"`: texts by the id of the column."""

    def __init__(self, table: Table) -> None:
        self._schema = table.schema()
        self.columns = _columns(_FILE_BOUNDS)

    def of(self, file: DataFile) -> Row:
        return tuple(
            None
            if encoded is None
            else [
                (number, _format_bound(value))
                for number, value in _bounds(encoded, self._schema).items()
            ]
            for encoded in (file.lower_bounds, file.upper_bounds)
        )


class _Files:
    def __init__(self, table: Table, bounds: _TypedBounds | _TextBounds) -> None:
        self._partition, self._bounds = _Partition(table), bounds
        self.columns = [
            *_columns(_FILE),
            *self._partition.columns,
            *_columns(_FILE_COUNTS),
            *bounds.columns,
            *_columns(_FILE_REST),
        ]

    def of(self, file: DataFile) -> Row:
        return (
            *(int(file.content), file.file_path, file.file_format.value, file.spec_id),
            *self._partition.of(file),
            *(file.record_count, file.file_size_in_bytes),
            *(
                None if counts is None else sorted(counts.items())
                for counts in (
                    file.column_sizes,
                    file.value_counts,
                    file.null_value_counts,
                    file.nan_value_counts,
                )
            ),
            *self._bounds.of(file),
            *(file.key_metadata, file.split_offsets),
            *(list(file.equality_ids or ()) or None, file.sort_order_id),
        )


def _entries_of(table: Table, snapshots: Iterable[Snapshot]) -> Content:
    builder = _Files(table, _TextBounds(table))
    names = [column.name for column in builder.columns]
    file_column = ColumnMetadata(
        "data_file", row_of((column.name, column.type) for column in builder.columns)
    )

    def rows() -> Iterator[Row]:
        manifests = {
            one.manifest_path: one for snapshot in snapshots for one in snapshot.manifests(table.io)
        }
        for manifest in manifests.values():
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                record = dict(zip(names, builder.of(entry.data_file), strict=True))
                numbers = entry.snapshot_id, entry.sequence_number, entry.file_sequence_number
                yield (
                    entry.status.value,
                    *numbers,
                    record,
                    _metrics(entry.data_file, table.schema()),
                )

    return [*_columns(_ENTRY), file_column, _METRICS], rows()


def _bounds(encoded: Mapping[int, bytes] | None, schema: Schema) -> dict[int, Any]:
    from pyiceberg.conversions import from_bytes
    from pyiceberg.types import LongType, StringType

    reserved: dict[int, Any] = {
        PATH_ID: StringType(),
        POSITION_ID: LongType(),
        **{field.id: LongType() for field in LINEAGE},
    }
    values = {}
    for number, bound in sorted((encoded or {}).items()):
        iceberg_type: Any = reserved.get(number)
        if iceberg_type is None and number in schema.field_ids:
            iceberg_type = schema.find_type(number)
        if iceberg_type is not None:
            values[number] = _value(iceberg_type, from_bytes(iceberg_type, bound))
    return values


def _value(iceberg_type: IcebergType, number: Any) -> Any:
    try:
        match str(iceberg_type):
            case "date":
                return _EPOCH.date() + dt.timedelta(days=number)
            case "timestamp":
                return _EPOCH + dt.timedelta(microseconds=number)
            case "timestamptz":
                return (_EPOCH + dt.timedelta(microseconds=number)).replace(tzinfo=dt.UTC)
            case "time":
                return (_EPOCH + dt.timedelta(microseconds=number)).time()
    except OverflowError:
        return number
    return (
        uuid.UUID(bytes=number)
        if str(iceberg_type) == "uuid" and isinstance(number, bytes)
        else number
    )


def _format_bound(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.time):
        # Java prints milliseconds, microseconds or no fraction.
        return value.isoformat(_FINENESS[(value.microsecond % 1000 > 0) + (value.microsecond > 0)])
    return str(value).lower() if isinstance(value, bool) else str(_json_bound(value))


_FINENESS: Final = ("seconds", "milliseconds", "microseconds")


def _json_bound(value: Any) -> Any:
    if isinstance(value, dt.datetime | dt.time):
        # No zeros at the end of the fraction.
        text, plus, zone = value.isoformat().partition("+")
        return f"{text.rstrip('0') if '.' in text else text}{plus}{zone}"
    if isinstance(value, bytes):
        return value.hex().upper()
    return value if isinstance(value, bool | int | float) else str(value)


def _metrics(file: DataFile, schema: Schema) -> str:
    both_bounds = (_bounds(metrics, schema) for metrics in (file.lower_bounds, file.upper_bounds))
    lower, upper = (
        {number: _json_bound(value) for number, value in metrics.items()} for metrics in both_bounds
    )
    measures = (
        ("column_size", file.column_sizes),
        ("value_count", file.value_counts),
        ("null_value_count", file.null_value_counts),
        ("nan_value_count", file.nan_value_counts),
        ("lower_bound", lower),
        ("upper_bound", upper),
    )
    names = {
        schema.find_column_name(number) or "": number
        for number in schema.field_ids
        if schema.find_type(number).is_primitive
    }
    metrics = {
        name: {word: (counts or {}).get(names[name]) for word, counts in measures}
        for name in sorted(names)
    }
    return json.dumps(metrics, separators=(",", ":"), ensure_ascii=False)


# -- partitions


def _partitions(table: Table) -> Content:
    partition, schema = _Partition(table), table.schema()
    by_value = {
        field.source_id for field in table.spec().fields if str(field.transform) == "identity"
    }
    summarized = [
        (field, sql_field.type)
        for field, sql_field in zip(schema.fields, fields_of(schema, table.name()), strict=True)
        if field.field_type.is_primitive and field.field_id not in by_value
    ]
    columns = [
        *partition.columns,
        *_columns("record_count bigint, file_count bigint, total_size bigint"),
    ]
    if summarized:
        summaries = (
            (field.name, row_of(zip(_OF_COLUMN, (sql_type, sql_type, *_COUNTS), strict=True)))
            for field, sql_type in summarized
        )
        columns.append(ColumnMetadata("data", row_of(summaries)))

    def rows() -> Iterator[Row]:
        # As in Trino, delete files count too, and a table without partitions has one row.
        groups: dict[str, list[DataFile]] = defaultdict(list)
        if not partition.columns:
            groups[str(())] = []
        for file in _live_files(table):
            groups[str(partition.of(file))].append(file)
        for files in groups.values():
            data = {field.name: _of_column(files, field) for field, _ in summarized}
            sizes = (
                _total([file.record_count for file in files]),
                len(files),
                _total([file.file_size_in_bytes for file in files]),
            )
            values = partition.of(files[0]) if files else ()
            yield *values, *sizes, *([data] if summarized else [])

    return columns, rows()


_OF_COLUMN: Final = ("min", "max", "null_count", "nan_count")
_COUNTS: Final = (parse_type("bigint"), parse_type("bigint"))


def _of_column(files: Sequence[DataFile], field: NestedField) -> dict[str, Any] | None:
    iceberg_type: Any = field.field_type
    lower, upper = (
        _extreme([getattr(file, name) for file in files], field.field_id, iceberg_type, choose)
        for name, choose in (("lower_bounds", min), ("upper_bounds", max))
    )
    nulls, nans = (
        _total([(getattr(file, name) or {}).get(field.field_id) for file in files])
        for name in ("null_value_counts", "nan_value_counts")
    )
    if lower is upper is nulls is None:
        return None
    return dict(zip(_OF_COLUMN, (lower, upper, nulls, nans), strict=True))


def _extreme(
    file_bounds: Iterable[Mapping[int, bytes] | None],
    number: int,
    iceberg_type: PrimitiveType,
    choose: Callable[[list[Any]], Any],
) -> Any:
    from pyiceberg.conversions import from_bytes

    encoded = [bounds[number] for bounds in filter(None, file_bounds) if number in bounds]
    values = [from_bytes(iceberg_type, bound) for bound in encoded]
    extreme = choose(values) if values else None
    if isinstance(extreme, bytes) and str(iceberg_type) == "uuid":
        extreme = uuid.UUID(bytes=extreme)
    return (
        str(extreme)
        if isinstance(extreme, uuid.UUID)
        else Decimal(extreme)
        if isinstance(extreme, Decimal)
        else extreme
    )


def _total(counts: Sequence[int | None]) -> int | None:
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if numbers else None


def _of(columns: str, rows: Callable[[Table], Iterator[Row]]) -> Callable[[Table], Content]:
    return lambda table: (_columns(columns), rows(table))


METADATA_TABLES: Final[Mapping[str, Callable[[Table], Content]]] = {
    "snapshots": _of(_SNAPSHOTS, _snapshots),
    "history": _of(_HISTORY, _history),
    "files": _files,
    "entries": lambda table: _entries_of(table, filter(None, (table.current_snapshot(),))),
    "all_entries": lambda table: _entries_of(table, table.metadata.snapshots),
    "partitions": _partitions,
    "manifests": _of(f"{_MANIFEST}, {_MANIFEST_COUNTS}, {_SUMMARIES}", _manifests),
    "all_manifests": _of(
        f"{_MANIFEST}, {_ALL_COUNTS}, {_SUMMARIES}, reference_snapshot_id bigint", _all_manifests
    ),
    "refs": _of(_REFS, _refs),
    "metadata_log_entries": _of(_LOG, _metadata_log),
    "properties": _of("key varchar, value varchar", _properties),
}
"""The metadata tables by the suffix after ``$``."""
