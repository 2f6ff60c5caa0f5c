"""Types and schemas on Spark's side of the edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.engine.tasks.arrow import for_spark
from rowmerge_nb.spi.types import from_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowmerge_nb.spi.types import Type


def spark_type(kind: pa.DataType) -> Any:
    """Return Spark's type for a channel, struct fields named ``f0``, ``f1``, ... so that no name can clash."""
    from pyspark.sql.pandas.types import from_arrow_type

    if pa.types.is_timestamp(kind) and kind.tz is None:
        from pyspark.sql.types import TimestampNTZType

        return TimestampNTZType()
    return from_arrow_type(for_spark(kind), prefer_timestamp_ntz=True)


def spark_schema(fields: Iterable[tuple[str, pa.DataType]]) -> Any:
    """Return a Spark schema of nullable columns for named channels."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(name, spark_type(kind), nullable=True) for name, kind in fields])


def from_spark_schema(schema: Any) -> list[tuple[str, Type]]:
    """Return names and SQL types of a Spark schema's columns."""
    return [(field.name, from_spark_type(field.dataType)) for field in schema.fields]


def from_spark_type(kind: Any) -> Type:
    """Return the SQL type of one of Spark's types.

    Raises:
        TypeError: no SQL type fits.
    """
    from pyspark.sql.pandas.types import to_arrow_type

    return from_arrow(to_arrow_type(_arrow_ready(kind), timezone="UTC"))


_OPAQUE: Final = frozenset({"VariantType", "GeometryType", "GeographyType"})
"""Types whose values Arrow carries as bytes that mean something to Spark alone."""


def _arrow_ready(kind: Any) -> Any:
    """Return a type for which Arrow has one: its parts may be NULL, since Arrow has no other parts without a type, and its texts have no length.

    Raises:
        TypeError: Arrow would carry values that mean nothing there.
    """
    from pyspark.sql.types import ArrayType, CharType, MapType, StringType, StructField, StructType, VarcharType

    if isinstance(kind, ArrayType):
        return ArrayType(_arrow_ready(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_arrow_ready(kind.keyType), _arrow_ready(kind.valueType))
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _arrow_ready(field.dataType)) for field in kind.fields])
    if type(kind).__name__ in _OPAQUE:
        raise TypeError(f"it is of Spark's type {kind.simpleString()}")
    return StringType() if isinstance(kind, CharType | VarcharType) else kind
