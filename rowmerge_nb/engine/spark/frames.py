"""DataFrames, recognized without importing their libraries."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_frame(value: object) -> bool:
    """Return whether a value can be used as a source.

    >>> import pyarrow as pa
    >>> is_frame(pa.table({"a": [1]})), is_frame({"a": [1]})
    (True, False)
    """
    names = (("pyarrow", "Table"), ("pyarrow", "RecordBatch"), ("pandas", "DataFrame"))
    frame_types = tuple(
        frame_type
        for module, name in names
        if (frame_type := getattr(sys.modules.get(module), name, None)) is not None
    )
    if isinstance(value, frame_types) or is_spark_frame(value):
        return True
    return hasattr(type(value), "__arrow_c_stream__") and hasattr(type(value), "columns")


def is_spark_frame(value: object) -> bool:
    """Return whether a value is a Spark DataFrame, classic or Connect.

    >>> is_spark_frame(3)
    False
    """
    return any(
        base.__name__ == "DataFrame" and base.__module__.startswith("pyspark.sql")
        for base in type(value).__mro__
    )


def frame_name(name_in_sql: str, frames: Iterable[str]) -> str | None:
    """Return the frame that a name in SQL refers to, or None.

    SQL ignores case; an exact match wins.
    """
    matching = [name for name in frames if name.lower() == name_in_sql.lower()]
    if name_in_sql in matching:
        return name_in_sql
    if len(matching) > 1:
        raise AnalysisError(
            f"'{name_in_sql}' is ambiguous: it means each of the DataFrames"
            f" {' and '.join(map(repr, matching))}",
            code="AMBIGUOUS_NAME",
            hint="Write the name with exactly the variable's letters, or rename one of the"
            " DataFrames.",
        )
    return matching[0] if matching else None
