"""DataFrames as tables: pandas, Arrow, Spark, and the Arrow stream interface."""

from __future__ import annotations

import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.engine.api.frames.frame_values import RefusedValueError, exact_values
from rowmerge_nb.engine.api.frames.object_columns import exact_objects
from rowmerge_nb.engine.spark.errors.translate import translate
from rowmerge_nb.engine.spark.frames import is_spark_frame
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.job import collect
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.types import UNKNOWN, Type

_Reader: TypeAlias = "Callable[[], tuple[Type, pa.ChunkedArray]]"
_Column: TypeAlias = "tuple[str, _Reader]"
"""The name of a column, and the reader of its values."""
_LONGEST_VALUE: Final = 80
_HINT: Final = "Cast or drop the column."
_FAILURES: Final = (pa.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError)


@dataclass(frozen=True)
class FrameTable:
    """A frame as a SQL table.

    Args:
        refused_columns: the errors of unsupported columns, raised when a statement uses them.
    """

    columns: tuple[ColumnMetadata, ...] = ()
    table: pa.Table | None = None
    refused_columns: Mapping[str, AnalysisError] = field(default_factory=dict)

    def whole(self) -> FrameTable:
        for error in self.refused_columns.values():
            raise error
        return self

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        assert self.table is not None
        return self.table.__arrow_c_stream__(requested_schema)


def collected(frame: Any) -> pa.Table:
    try:
        return collect(
            frame.sparkSession, frame, f"rowmerge-{uuid.uuid4().hex[:12]}", threading.Event()
        )
    except Exception as error:
        raise translate(error, "register") from error


def read_frame(name: str, frame: Any) -> FrameTable:
    """Return a frame, except one of Spark, as a SQL table."""
    if isinstance(frame, FrameTable):
        return frame
    try:
        sources, rows = _sources(frame)
    except _FAILURES as error:
        _refuse_frame(name, error)
    if not sources:
        raise AnalysisError.unsupported(
            f"DataFrame '{name}' has no columns",
            hint="Give it at least one column.",
        )
    return _table(
        name,
        [
            (column, partial(_with_step, name, column, read, frame, index))
            for index, (column, read) in enumerate(sources)
        ],
        rows,
    )


def whole_frame(name: str, frame: Any) -> FrameTable:
    """Return a frame, also one of Spark, as a table whose columns are all supported."""
    return read_frame(name, collected(frame) if is_spark_frame(frame) else frame).whole()


def spark_columns(name: str, frame: Any) -> FrameTable:
    from rowmerge_nb.engine.spark.spark_types import from_spark_type

    def column(label: str, spark_type: Any) -> tuple[Type, None] | AnalysisError:
        try:
            return from_spark_type(spark_type), None
        except _FAILURES as error:
            return _untyped(name, label, error)

    with interrupts_afterwards():
        fields = [(field.name, field.dataType) for field in frame.schema.fields]
    return _table(
        name, [(label, partial(column, label, spark_type)) for label, spark_type in fields], None
    )


def _table(name: str, columns: list[tuple[str, Callable[[], Any]]], rows: int | None) -> FrameTable:
    counts = Counter(column.lower() for column, _ in columns)
    metadata: dict[str, ColumnMetadata] = {}
    values: list[Any] = []
    errors: dict[str, AnalysisError] = {}
    for column, read in columns:
        if column.lower() in metadata:
            continue
        result = _repeated(name, column) if counts[column.lower()] > 1 else read()
        if isinstance(result, AnalysisError):
            errors[column], result = result, (UNKNOWN, pa.chunked_array([pa.nulls(rows or 0)]))
        sql_type, array = result
        comment = errors[column].message if column in errors else None
        metadata[column.lower()] = ColumnMetadata(column, sql_type, comment=comment)
        values.append(array)
    table = (
        None
        if rows is None
        else pa.table(values, names=[column.name for column in metadata.values()])
    )
    return FrameTable(tuple(metadata.values()), table, errors)


def _repeated(name: str, column: str) -> AnalysisError:
    return AnalysisError(
        f"DataFrame '{name}' has more than one column '{column}' (names are compared without case)",
        code="DUPLICATE_COLUMN_NAME",
        hint="Rename one of them.",
    )


def _column(name: str, column: str, read: _Reader) -> Any:
    try:
        return read()
    except RefusedValueError as error:
        display_value = repr(error.value)
        display_value = (
            display_value
            if len(display_value) <= _LONGEST_VALUE
            else f"{display_value[:_LONGEST_VALUE]}…"
        )
        return AnalysisError.unsupported(
            f"Row {error.row} of column '{column}' of DataFrame '{name}' has"
            f" {display_value}, which is not accepted: {error.reason}",
            hint="Rows are counted from 0. Change the value, or cast or drop the column.",
        )
    except _FAILURES as error:
        return _untyped(name, column, error)


def _with_step(name: str, column: str, read: _Reader, frame: Any, index: int) -> Any:
    """Read a column; the hint of an error has the line of Python that makes it readable."""
    result = _column(name, column, read)
    pandas = sys.modules.get("pandas")
    is_pandas = pandas is not None and isinstance(frame, pandas.DataFrame)
    if not isinstance(result, AnalysisError) or not is_pandas:
        return result
    dtype = frame.dtypes.iloc[index]
    step = {"M": '.dt.floor("us")', "m": ".dt.total_seconds()"}.get(dtype.kind, '.astype("string")')
    variable = f"{name}[{frame.columns[index]!r}]"
    result.hint = f"{result.hint} For instance: {variable} = {variable}{step}"
    return result


def _untyped(name: str, column: str, error: Exception) -> AnalysisError:
    return AnalysisError.unsupported(
        f"Column '{column}' of DataFrame '{name}' has no SQL type: {_reason(error)}",
        hint=_HINT,
    )


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, UnicodeError) else " ".join(map(str, error.args))


def _refuse_frame(name: str, error: Exception) -> NoReturn:
    raise AnalysisError.unsupported(
        f"DataFrame '{name}' cannot be read as a table: {_reason(error)}",
        hint=(
            "Give a pandas, Arrow, Spark or Polars DataFrame whose columns have values of one type"
            " each."
        ),
    ) from error


# -- frames of each kind


def _sources(frame: Any) -> tuple[list[_Column], int]:
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        labels = enumerate(frame.columns)
        return [
            (_text(label), partial(_pandas_values, frame.iloc[:, index])) for index, label in labels
        ], len(frame)
    if polars is not None and isinstance(frame, polars.DataFrame):
        return [
            (series.name, partial(_polars_values, series)) for series in frame.get_columns()
        ], len(frame)
    if isinstance(frame, Mapping):
        lengths = {len(values) for values in frame.values()}
        if len(lengths) > 1:
            raise ValueError(f"its columns have {' and '.join(map(str, sorted(lengths)))} values")
        return [
            (_text(label), partial(_listed_values, values)) for label, values in frame.items()
        ], next(iter(lengths), 0)
    table = frame if isinstance(frame, pa.Table) else pa.table(frame)
    return list(_arrow_columns(table)), table.num_rows


def _arrow_columns(table: pa.Table) -> Iterator[_Column]:
    for label, values in zip(table.column_names, table.columns, strict=True):
        yield label, partial(exact_values, values)


def _pandas_values(series: Any) -> tuple[Type, pa.ChunkedArray]:
    dtype = series.dtype
    if _is_object(dtype):
        return exact_objects(series.to_numpy(), pandas=True)
    if type(dtype).__name__ == "CategoricalDtype" and _is_object(dtype.categories.dtype):
        return _categories(dtype.categories.to_numpy(), series.cat.codes.to_numpy())
    if type(dtype).__name__ == "SparseDtype":
        return _pandas_values(series.sparse.to_dense())
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        series = series.astype(dtype.newbyteorder("="))
    try:
        return exact_values(_chunked(pa.array(series, from_pandas=True)))
    except UnicodeError:
        # A column of texts that are Python objects inside: one of them is to blame.
        return exact_objects(series.to_numpy(dtype=object), pandas=True)


def _categories(categories: Any, codes: Any) -> tuple[Type, pa.ChunkedArray]:
    try:
        dtype, values = exact_objects(categories, pandas=True)
    except RefusedValueError as error:
        places = np.flatnonzero(codes == error.row)
        raise RefusedValueError(
            int(places[0]) if len(places) else 0, error.value, error.reason
        ) from error
    return dtype, values.take(pa.array(codes, mask=codes < 0))


def _polars_values(series: Any) -> tuple[Type, pa.ChunkedArray]:
    if str(series.dtype) == "Object":
        # Polars would export the addresses of such values as bytes.
        raise TypeError("it is of Polars type Object")
    return exact_values(pa.chunked_array(series))


def _listed_values(values: Any) -> tuple[Type, pa.ChunkedArray]:
    if isinstance(values, list | tuple) or _is_object(getattr(values, "dtype", None)):
        return exact_objects(values, pandas=False)
    return exact_values(_chunked(pa.array(values)))


def _text(label: Any) -> str:
    return str(label).encode("utf-8", "backslashreplace").decode()


def _is_object(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _chunked(array: Any) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
