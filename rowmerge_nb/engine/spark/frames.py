"""Which values are DataFrames; told without loading what they are made of."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_frame(value: object) -> bool:
    """Return whether a value can be named as a source.

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
    """Return whether a value is a DataFrame of Spark, classic or Connect; does not import Spark.

    >>> is_spark_frame(3)
    False
    """
    return any(base.__name__ == "DataFrame" and base.__module__.startswith("pyspark.sql") for base in type(value).__mro__)


def frame_name(written: str, frames: Iterable[str]) -> str | None:
    """Return the name of the frame that a name in SQL means; None if it means none.

    SQL compares names without case, Python does not. A name written letter by letter as that of a frame means this frame.

    Args:
        written: the name in SQL.
        frames: the names of all frames.

    Raises:
        AnalysisError: AMBIGUOUS_NAME if it is the name of several frames, and written as none of them.

    >>> frame_name("News", ["news", "new"]), frame_name("old", ["news"])
    ('news', None)
    """
    matching = [name for name in frames if name.lower() == written.lower()]
    if written in matching:
        return written
    if len(matching) > 1:
        raise AnalysisError(
            f"'{written}' is ambiguous: it means each of the DataFrames {' and '.join(map(repr, matching))}",
            code="AMBIGUOUS_NAME",
            hint="Write the name letter by letter as that of the variable; rename one of them.",
        )
    return matching[0] if matching else None
