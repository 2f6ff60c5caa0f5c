"""Manifest entries of new files, with bounds and counts of their footers."""

from __future__ import annotations

import uuid
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.connectors.iceberg.iceberg_handles import LINEAGE, PATH_ID, POSITION_ID
from rowmerge_nb.connectors.iceberg.physical import require_physical_types
from rowmerge_nb.connectors.iceberg.sorting import shown_keys
from rowmerge_nb.connectors.iceberg.version_three import VERSION
from rowmerge_nb.connectors.iceberg.writer import footer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.typedef import Record

_LINEAGE_IDS: Final = {field.id for field in LINEAGE}
_FULL: Final = {"write.metadata.metrics.default": "full"}


class DataFileEntries:
    def __init__(self, table: Table, schema: Schema) -> None:
        from pyiceberg.manifest import DataFileContent
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER_ID

        spec = table.spec()
        self._types = [field.field_type for field in spec.partition_type(schema).fields]
        self._spec_id = spec.spec_id
        self._order_id = (
            table.metadata.default_sort_order_id if shown_keys(table) else UNSORTED_SORT_ORDER_ID
        )
        self._entries = _Entries(DataFileContent.DATA, _with_lineage(schema), table.properties)

    def entry(self, fragment: Mapping[str, Any]) -> DataFile:
        from pyiceberg.typedef import Record

        partition = Record(
            *(
                _value(value, iceberg_type)
                for value, iceberg_type in zip(fragment["partition"], self._types, strict=True)
            )
        )
        return self._entries.entry(fragment, partition, self._spec_id, self._order_id)


class DeleteFileEntries:
    def __init__(self) -> None:
        from pyiceberg.manifest import DataFileContent
        from pyiceberg.schema import Schema
        from pyiceberg.types import LongType, NestedField, StringType

        # pyiceberg's own schema has 32-bit positions.
        schema = Schema(
            NestedField(PATH_ID, "file_path", StringType(), required=True),
            NestedField(POSITION_ID, "pos", LongType(), required=True),
        )
        # Full paths: equal bounds mean that the file refers to one data file only.
        self._entries = _Entries(DataFileContent.POSITION_DELETES, schema, _FULL)

    def entry(self, fragment: Mapping[str, Any], target: DataFile) -> DataFile:
        return self._entries.entry(fragment, target.partition, target.spec_id)


def vector_entry(
    location: str, size: int, vector: tuple[int, int], cardinality: int, target: DataFile
) -> DataFile:
    """Return the entry of a data file's deletion vector: its offset and size in a Puffin file."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    entry = DataFile.from_args(
        VERSION,
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat.PUFFIN,
        partition=target.partition,
        record_count=cardinality,
        file_size_in_bytes=size,
        referenced_data_file=target.file_path,
        content_offset=vector[0],
        content_size_in_bytes=vector[1],
    )
    entry.spec_id = target.spec_id
    return entry


class _Entries:
    """Makes entries of files of one schema: what depends on the schema is computed once."""

    def __init__(self, content: Any, schema: Schema, properties: Mapping[str, str]) -> None:
        from pyiceberg.io.pyarrow import compute_statistics_plan, parquet_path_to_id_mapping

        self._content = content
        self._schema = schema
        self._columns = compute_statistics_plan(schema, dict(properties))
        self._mapping = parquet_path_to_id_mapping(schema)

    def entry(
        self,
        fragment: Mapping[str, Any],
        partition: Record,
        spec_id: int,
        order_id: int | None = None,
    ) -> DataFile:
        from pyiceberg.io.pyarrow import data_file_statistics_from_parquet_metadata
        from pyiceberg.manifest import DataFile, FileFormat

        footer, mapping = footer_of(fragment), self._mapping
        require_physical_types(footer, self._schema, mapping, fragment["path"])
        try:
            statistics = data_file_statistics_from_parquet_metadata(footer, self._columns, mapping)
        except OverflowError:
            statistics = data_file_statistics_from_parquet_metadata(
                footer, _without_far_bounds(self._columns), mapping
            )
        entry = DataFile.from_args(
            VERSION,
            content=self._content,
            file_path=fragment["path"],
            file_format=FileFormat.PARQUET,
            partition=partition,
            file_size_in_bytes=fragment["bytes"],
            sort_order_id=order_id,
            equality_ids=None,
            key_metadata=None,
            **_without_inherited_bounds(statistics.to_serialized_dict()),
        )
        entry.spec_id = spec_id
        return entry


def _without_inherited_bounds(statistics: dict[str, Any]) -> dict[str, Any]:
    """Omit bounds of row lineage in files with NULL there, which is another number when it is read."""
    nulls = statistics["null_value_counts"]
    for bounds in (statistics["lower_bounds"], statistics["upper_bounds"]):
        for number in _LINEAGE_IDS & bounds.keys():
            if nulls.get(number):
                del bounds[number]
    return statistics


def _without_far_bounds(columns: Mapping[int, Any]) -> dict[int, Any]:
    """Omit bounds of dates and timestamps: pyiceberg cannot read years before 1 or after 9999."""
    from pyiceberg import types as t

    time_types = t.DateType | t.TimestampType | t.TimestamptzType
    return _with_mode(
        columns, "counts", lambda _, column: isinstance(column.iceberg_type, time_types)
    )


def _with_mode(
    columns: Mapping[int, Any], mode: str, applies: Callable[[int, Any], bool]
) -> dict[int, Any]:
    from pyiceberg.io.pyarrow import match_metrics_mode

    return {
        number: replace(column, mode=match_metrics_mode(mode))
        if applies(number, column)
        else column
        for number, column in columns.items()
    }


def _with_lineage(schema: Schema) -> Schema:
    """Add the columns of row lineage, which files of any table may have, unless the names exist."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    names = {field.name.lower() for field in schema.fields}
    lineage = [
        NestedField(field.id, field.name, LongType(), required=False)
        for field in LINEAGE
        if field.name not in names
    ]
    return Schema(*schema.fields, *lineage, schema_id=schema.schema_id)


def _value(value: Any, iceberg_type: Any) -> Any:
    from pyiceberg import types as t

    if value is None:
        return None
    if isinstance(iceberg_type, t.DecimalType):
        return Decimal(value)
    if isinstance(iceberg_type, t.UUIDType):
        return uuid.UUID(value)
    if isinstance(iceberg_type, t.BinaryType | t.FixedType):
        return bytes.fromhex(value)
    return value
