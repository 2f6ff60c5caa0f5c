"""What tasks have written, as entries for manifests: bounds and counts are taken from the files' footers by pyiceberg."""

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


def data_file(written: Mapping[str, Any], table: Table, schema: Schema) -> DataFile:
    """Return the entry of a data file.

    Args:
        written: what the sink says of it.
        table: the table that it was written for.
        schema: the schema that it was written by.
    """
    from pyiceberg.manifest import DataFileContent
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER_ID
    from pyiceberg.typedef import Record

    spec = table.spec()
    kinds = [field.field_type for field in spec.partition_type(schema).fields]
    partition = Record(*(_value(value, kind) for value, kind in zip(written["partition"], kinds, strict=True)))
    order = table.metadata.default_sort_order_id if shown_keys(table) else UNSORTED_SORT_ORDER_ID
    return _entry(written, DataFileContent.DATA, partition, spec.spec_id, schema, table.properties, order)


def delete_file(written: Mapping[str, Any], target: DataFile) -> DataFile:
    """Return the entry of a position delete file.

    Args:
        written: what the sink says of it.
        target: the data file whose rows it deletes.
    """
    from pyiceberg.manifest import DataFileContent
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, StringType

    # Not pyiceberg's own schema, which has positions of 32 bits.
    schema = Schema(
        NestedField(PATH_ID, "file_path", StringType(), required=True), NestedField(POSITION_ID, "pos", LongType(), required=True)
    )
    # Paths are never cut: equal bounds tell readers that the file is about this data file only.
    content = DataFileContent.POSITION_DELETES
    return _entry(written, content, target.partition, target.spec_id, schema, _FULL)


def _entry(
    written: Mapping[str, Any],
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

    footer, columns = footer_of(written), compute_statistics_plan(schema, dict(properties))
    mapping = parquet_path_to_id_mapping(schema)
    require_physical_types(footer, schema, mapping, written["path"])
    try:
        statistics = data_file_statistics_from_parquet_metadata(footer, columns, mapping)
    except OverflowError:
        statistics = data_file_statistics_from_parquet_metadata(footer, _without_far_bounds(columns), mapping)
    made = DataFile.from_args(
        content=content,
        file_path=written["path"],
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=written["bytes"],
        sort_order_id=order_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
    made.spec_id = spec_id
    return made


def _without_far_bounds(columns: Mapping[int, Any]) -> dict[int, Any]:
    """Let moments have no bounds: pyiceberg reads them as Python's, which has none before year 1 and behind year 9999."""
    from pyiceberg import types as t
    from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode

    moments = t.DateType | t.TimestampType | t.TimestamptzType
    counted = MetricsMode(MetricModeTypes.COUNTS)
    return {
        number: replace(column, mode=counted) if isinstance(column.iceberg_type, moments) else column
        for number, column in columns.items()
    }


def _value(value: Any, kind: Any) -> Any:
    """Return a partition value as pyiceberg has it."""
    from pyiceberg import types as t

    if value is None:
        return None
    if isinstance(kind, t.DecimalType):
        return Decimal(value)
    if isinstance(kind, t.UUIDType):
        return uuid.UUID(value)
    if isinstance(kind, t.BinaryType | t.FixedType):
        return bytes.fromhex(value)
    return value
