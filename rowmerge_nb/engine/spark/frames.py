"""Which values are DataFrames; told without loading what they are made of."""

from __future__ import annotations

import sys

__all__ = ["is_frame", "is_spark_frame"]


def is_frame(value: object) -> bool:
    """Tell whether a value can be named as a source.

    >>> import pyarrow as pa
    >>> is_frame(pa.table({"a": [1]})), is_frame({"a": [1]})
    (True, False)
    """
    kinds = (("pyarrow", "Table"), ("pyarrow", "RecordBatch"), ("pandas", "DataFrame"))
    known = tuple(kind for module, name in kinds if (kind := getattr(sys.modules.get(module), name, None)) is not None)
    if isinstance(value, known) or is_spark_frame(value):
        return True
    return hasattr(type(value), "__arrow_c_stream__") and hasattr(type(value), "columns")


def is_spark_frame(value: object) -> bool:
    """Tell whether a value is a DataFrame of Spark, classic or Connect; does not import Spark.

    >>> is_spark_frame(3)
    False
    """
    return any(base.__name__ == "DataFrame" and base.__module__.startswith("pyspark.sql") for base in type(value).__mro__)
