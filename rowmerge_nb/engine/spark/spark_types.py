"""Conversion between Spark's types, Arrow types and SQL types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.engine.tasks.arrow import for_spark
from rowmerge_nb.spi.types import from_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowmerge_nb.spi.types import Type


def spark_type(arrow_type: pa.DataType) -> Any:
    """Return Spark's type of a channel, with positional names of struct fields."""
    from pyspark.sql.pandas.types import from_arrow_type

    if pa.types.is_timestamp(arrow_type) and arrow_type.tz is None:
        from pyspark.sql.types import TimestampNTZType

        return TimestampNTZType()
    return from_arrow_type(for_spark(arrow_type), prefer_timestamp_ntz=True)


def spark_schema(fields: Iterable[tuple[str, pa.DataType]]) -> Any:
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(name, spark_type(arrow_type), nullable=True) for name, arrow_type in fields]
    )


def from_spark_type(spark_type: Any) -> Type:
    from pyspark.sql.pandas.types import to_arrow_type

    return from_arrow(to_arrow_type(_arrow_ready(spark_type), timezone="UTC"))


_OPAQUE: Final = frozenset({"VariantType", "GeometryType", "GeographyType"})
"""Types that Arrow carries as bytes in Spark's own format."""


def _arrow_ready(spark_type: Any) -> Any:
    """Return a type that Arrow supports: with nullable parts, and texts without a length."""
    from pyspark.sql.types import (
        ArrayType,
        CharType,
        MapType,
        StringType,
        StructField,
        StructType,
        VarcharType,
    )

    if isinstance(spark_type, ArrayType):
        return ArrayType(_arrow_ready(spark_type.elementType))
    if isinstance(spark_type, MapType):
        return MapType(_arrow_ready(spark_type.keyType), _arrow_ready(spark_type.valueType))
    if isinstance(spark_type, StructType):
        return StructType(
            [StructField(field.name, _arrow_ready(field.dataType)) for field in spark_type.fields]
        )
    if type(spark_type).__name__ in _OPAQUE:
        raise TypeError(f"it is of Spark type {spark_type.simpleString()}")
    return StringType() if isinstance(spark_type, CharType | VarcharType) else spark_type
