"""The physical types that Iceberg's specification requires of Parquet columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyarrow import parquet as pq
    from pyiceberg.schema import Schema

_PLAIN: Final[Mapping[str, str]] = {
    "boolean": "BOOLEAN",
    "int": "INT32",
    "long": "INT64",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "INT32",
    "time": "INT64",
    "timestamp": "INT64",
    "timestamptz": "INT64",
    "timestamp_ns": "INT64",
    "timestamptz_ns": "INT64",
    "string": "BYTE_ARRAY",
    "binary": "BYTE_ARRAY",
}
_FIXED: Final = "FIXED_LEN_BYTE_ARRAY"


def require_physical_types(
    footer: pq.FileMetaData, schema: Schema, ids: Mapping[str, int], location: str
) -> None:
    """Raise ICEBERG_WRITER_DATA_ERROR if other readers could not read a file, by its footer."""
    for index in range(footer.num_columns):
        column = footer.schema.column(index)
        physical = _described(column.physical_type, column.length)
        expected = (
            _expected(schema.find_type(ids[column.path])) if column.path in ids else "no column"
        )
        if physical != expected:
            raise ConnectorError(
                f"Column '{column.path}' of file '{location}' was written as"
                f" {physical}, but Iceberg has {expected} for it",
                code="ICEBERG_WRITER_DATA_ERROR",
                hint="The table is unchanged. Report this as a bug.",
            )


def _described(physical: str, length: int) -> str:
    return f"{physical}({length})" if physical == _FIXED else physical


def _expected(iceberg_type: Any) -> str:
    from pyiceberg.types import DecimalType, FixedType, UUIDType
    from pyiceberg.utils.decimal import decimal_required_bytes

    if isinstance(iceberg_type, DecimalType):
        if iceberg_type.precision <= 9:
            return "INT32"
        if iceberg_type.precision <= 18:
            return "INT64"
        return _described(_FIXED, decimal_required_bytes(iceberg_type.precision))
    if isinstance(iceberg_type, UUIDType):
        return _described(_FIXED, 16)
    if isinstance(iceberg_type, FixedType):
        return _described(_FIXED, len(iceberg_type))
    return _PLAIN[str(iceberg_type)]
