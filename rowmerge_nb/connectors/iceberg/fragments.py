"""Manifest entries of new files, with bounds and counts of their footers."""

from __future__ import annotations

import uuid
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.connectors.iceberg.handles import PATH_ID, POSITION_ID
from rowmerge_nb.connectors.iceberg.physical import require_physical_types
from rowmerge_nb.connectors.iceberg.sorting import shown_keys
from rowmerge_nb.connectors.iceberg.writer import footer_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.typedef import Record

_FULL: Final = {"write.metadata.metrics.default": "full"}


def data_file(fragment: Mapping[str, Any], table: Table, schema: Schema) -> DataFile:
    """Return the entry of a data file."""
    from pyiceberg.manifest import DataFileContent
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER_ID
    from pyiceberg.typedef import Record

    spec = table.spec()
    types = [field.field_type for field in spec.partition_type(schema).fields]
    partition = Record(
        *(
            _value(value, iceberg_type)
            for value, iceberg_type in zip(fragment["partition"], types, strict=True)
        )
    )
    order = table.metadata.default_sort_order_id if shown_keys(table) else UNSORTED_SORT_ORDER_ID
    return _entry(
        fragment, DataFileContent.DATA, partition, spec.spec_id, schema, table.properties, order
    )


def delete_file(fragment: Mapping[str, Any], target: DataFile) -> DataFile:
    """Return the entry of a position delete file."""
    from pyiceberg.manifest import DataFileContent
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, StringType

    # pyiceberg's own schema has 32-bit positions.
    schema = Schema(
        NestedField(PATH_ID, "file_path", StringType(), required=True),
        NestedField(POSITION_ID, "pos", LongType(), required=True),
    )
    # Full paths: equal bounds mean that the file refers to this data file only.
    content = DataFileContent.POSITION_DELETES
    return _entry(fragment, content, target.partition, target.spec_id, schema, _FULL)


def _entry(
    fragment: Mapping[str, Any],
    content: Any,
    partition: Record,
    spec_id: int,
    schema: Schema,
    properties: Mapping[str, str],
    order_id: int | None = None,
) -> DataFile:
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )
    from pyiceberg.manifest import DataFile, FileFormat

    footer, columns = footer_of(fragment), compute_statistics_plan(schema, dict(properties))
    mapping = parquet_path_to_id_mapping(schema)
    require_physical_types(footer, schema, mapping, fragment["path"])
    try:
        statistics = data_file_statistics_from_parquet_metadata(footer, columns, mapping)
    except OverflowError:
        statistics = data_file_statistics_from_parquet_metadata(
            footer, _without_far_bounds(columns), mapping
        )
    entry = DataFile.from_args(
        content=content,
        file_path=fragment["path"],
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=fragment["bytes"],
        sort_order_id=order_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
    entry.spec_id = spec_id
    return entry


def _without_far_bounds(columns: Mapping[int, Any]) -> dict[int, Any]:
    """Omit bounds of dates and timestamps: pyiceberg cannot read years before 1 or after 9999."""
    from pyiceberg import types as t
    from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode

    time_types = t.DateType | t.TimestampType | t.TimestamptzType
    counts_only = MetricsMode(MetricModeTypes.COUNTS)
    return {
        number: (
            replace(column, mode=counts_only)
            if isinstance(column.iceberg_type, time_types)
            else column
        )
        for number, column in columns.items()
    }


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
