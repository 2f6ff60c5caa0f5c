"""DataFrames of the notebook as tables: pandas, Arrow, Spark, and whatever offers the Arrow stream interface."""

from __future__ import annotations

import sys
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.engine.errors.translate import translate
from rowmerge_nb.engine.spark.frames import is_spark_frame
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.job import collect
from rowmerge_nb.errors import AnalysisError
from rowmerge_nb.spi.types import from_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.types import Type

__all__ = ["as_arrow", "collected", "columns_of"]


def collected(frame: Any) -> pa.Table:
    """Compute the rows of one of Spark's frames.

    Raises:
        ExecutionError: what Spark raised, under Trino's name.
    """
    try:
        return collect(frame.sparkSession, frame, f"rowmerge-{uuid.uuid4().hex[:12]}", threading.Event())
    except Exception as error:
        raise translate(error, "register") from error


def as_arrow(name: str, frame: Any, *, exact: bool = False) -> pa.Table:
    """Give a frame (not one of Spark) as an Arrow table of types that SQL knows.

    Args:
        name: what the frame is called.
        frame: the frame.
        exact: nanoseconds that the microseconds of SQL do not hold are refused; otherwise they are cut.

    Raises:
        AnalysisError: NOT_SUPPORTED, naming the column, for values that no SQL type holds; DUPLICATE_COLUMN_NAME.

    >>> import pandas as pd
    >>> as_arrow("f", pd.DataFrame({"a": [1, 2], "b": ["x", None]})).schema.names
    ['a', 'b']
    """
    table = _to_table(name, frame)
    names = [str(column) for column in table.column_names]
    _check_names(name, names)
    if not names:
        msg = f"DataFrame '{name}' has no columns"
        raise AnalysisError(msg, code="NOT_SUPPORTED", hint="Give it one column at least.")
    arrays = [_column(name, column, values, exact=exact) for column, values in zip(names, table.columns, strict=True)]
    return pa.table(arrays, names=names)


def _check_names(name: str, names: Sequence[str]) -> None:
    """Refuse a name that is there twice."""
    seen: set[str] = set()
    for column in names:
        if column.lower() in seen:
            msg = f"DataFrame '{name}' has column '{column}' more than once (names are compared without case)"
            raise AnalysisError(msg, code="DUPLICATE_COLUMN_NAME", hint="Rename one of them.")
        seen.add(column.lower())


def _column(name: str, column: str, values: pa.ChunkedArray, *, exact: bool) -> pa.ChunkedArray:
    """Bring a column into the Arrow type of its SQL type."""
    try:
        kind = from_arrow(values.type)
        if _carries_unknown(values.type) or _repeats_names(values.type):
            msg = "what is inside of it has no type, or two fields of one name"
            raise TypeError(msg)  # noqa: TRY301 - told in the same words as the errors of Arrow
        if pa.types.is_decimal(values.type) and values.type.scale < 0:
            return values.cast(pa.decimal128(38, 0))
        wanted = pa.string() if kind.base == "unknown" else kind.arrow
        # Nanoseconds may be cut to the microseconds that SQL timestamps have here; anything else that does not fit is refused.
        nanoseconds = pa.types.is_temporal(values.type) and str(values.type).startswith(("timestamp[ns", "time64[ns"))
        return values.cast(wanted, safe=exact or not nanoseconds)
    except (TypeError, ValueError, pa.ArrowNotImplementedError) as error:
        msg = f"Column '{column}' of DataFrame '{name}' is of Arrow type {values.type}, which no SQL type holds: {error}"
        raise AnalysisError(msg, code="NOT_SUPPORTED", hint="Cast or drop the column.") from error


def _carries_unknown(kind: pa.DataType) -> bool:
    """Tell whether a nested type has values of no type inside of it."""
    return any(pa.types.is_null(inner) or _carries_unknown(inner) for inner in _inside(kind))


def _repeats_names(kind: pa.DataType) -> bool:
    names = [field.name.lower() for field in kind] if pa.types.is_struct(kind) else []
    return len(names) != len(set(names)) or any(_repeats_names(inner) for inner in _inside(kind))


def _inside(kind: pa.DataType) -> list[pa.DataType]:
    return [kind.field(i).type for i in range(kind.num_fields)]


def _to_table(name: str, frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    pandas = sys.modules.get("pandas")
    try:
        if pandas is not None and isinstance(frame, pandas.DataFrame):
            names = [str(column) for column in frame.columns]
            # Arrow refuses some of them too, in words of its own.
            _check_names(name, names)
            return pa.Table.from_pandas(frame.set_axis(names, axis=1), preserve_index=False)
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        # The arguments of an error of encoding are no sentence, and have the very characters that cannot be written.
        said = str(error) if isinstance(error, UnicodeError) else " ".join(map(str, error.args))
        msg = f"DataFrame '{name}' cannot be read as a table: {said}"
        raise AnalysisError(
            msg,
            code="NOT_SUPPORTED",
            hint="Give a pandas, Arrow, Spark or Polars DataFrame whose columns have values of one type each.",
        ) from error


def columns_of(name: str, frame: Any) -> list[tuple[str, Type]]:
    """Give the columns of a frame with their SQL types."""
    if is_spark_frame(frame):
        from rowmerge_nb.engine.spark.types import from_spark_schema

        with interrupts_afterwards():
            return from_spark_schema(frame.schema)
    return [(field.name, from_arrow(field.type)) for field in as_arrow(name, frame).schema]
