"""Tables as multisets of rows: their difference, and numbers of equal rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.samples import value_codes

if TYPE_CHECKING:
    import numpy.typing as npt


def differing(rows: pa.Table, expected: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the missing rows and the unexpected rows, counting duplicates and ignoring order.

    Both tables have the same types.
    """
    both = pa.concat_tables([expected, rows])
    # Arrow cannot group by nested values.
    keys = [
        pa.array(cell_codes(one)) if pa.types.is_nested(one.type) else _equal(one)
        for one in both.columns
    ]
    sides = np.repeat(np.array([-1, 1], np.int64), [expected.num_rows, rows.num_rows])
    names = [str(at) for at in range(len(keys))]
    table = pa.table([*keys, np.arange(both.num_rows), sides], [*names, "at", "more"])
    groups = table.group_by(names, use_threads=False).aggregate([("at", "min"), ("more", "sum")])
    at, more = groups.column("at_min").to_numpy(), groups.column("more_sum").to_numpy()
    missing, unexpected = (
        both.take(np.repeat(at, np.maximum(times, 0))) for times in (-more, more)
    )
    return missing, unexpected


def row_codes(*tables: pa.Table) -> list[npt.NDArray[np.int64]]:
    """Return per table an array with a number per row: equal rows, in all tables, have one number.

    Columns are compared by position. Rows are compared as `differing` compares them.

    >>> [codes.tolist() for codes in row_codes(pa.table({"a": [1, None]}), pa.table({"b": [None, 2]}))]
    [[0, 1], [1, 2]]
    """
    sizes = [table.num_rows for table in tables]
    codes = np.zeros(sum(sizes), np.int64)
    for columns in zip(*(table.columns for table in tables), strict=True):
        parts = cell_codes(*columns)
        # Renumbered after each column to keep the product small.
        codes = np.unique(codes * (parts.max(initial=0) + 1) + parts, return_inverse=True)[1]
    return np.split(codes.astype(np.int64), np.cumsum(sizes)[:-1])


def cell_codes(*columns: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return one array with a number per cell of all columns: equal values have one number."""
    types = {column.type for column in columns}
    if len(types) > 1:
        texts = [repr(value) for column in columns for value in python_values(column)]
        return value_codes(pa.array(texts, pa.string()))
    values = _equal(pa.chunked_array([c for column in columns for c in column.chunks], *types))
    return value_codes(pa.concat_arrays([pa.array([], values.type), *values.chunks]))


def counted_rows(rows: pa.Table) -> list[tuple[tuple[Any, ...], int]]:
    """Return the distinct rows in the order of their first occurrences, and how often each occurs.

    >>> counted_rows(pa.table({"a": [2, 1, 2], "b": ["x", None, "x"]}))
    [((2, 'x'), 2), ((1, None), 1)]
    """
    [codes] = row_codes(rows)
    _, first, times = np.unique(codes, return_index=True, return_counts=True)
    order = np.argsort(first)
    columns = (python_values(column) for column in rows.take(first[order]).columns)
    return list(zip(zip(*columns, strict=True), times[order].tolist(), strict=True))


def of_one_type(rows: pa.Table, others: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return both tables with the same types: those of the second, or texts if values would be
    lost.
    """
    if rows.schema.types == others.schema.types:
        return rows, others
    columns = [
        _columns_of_one_type(*pair) for pair in zip(rows.columns, others.columns, strict=True)
    ]
    names = others.column_names
    first_columns, other_columns = zip(*columns, strict=True)
    return pa.table(list(first_columns), names), pa.table(list(other_columns), names)


def _columns_of_one_type(
    column: pa.ChunkedArray, other: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    if column.type == other.type:
        return column, other
    try:
        return column.cast(other.type), other
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        first, second = (
            pa.chunked_array(
                [pa.array([None if v is None else str(v) for v in python_values(c)], pa.string())]
            )
            for c in (column, other)
        )
        return first, second


def _equal(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace -0.0 by 0.0 and every NaN by one NaN, so that Arrow groups floats as SQL compares
    them.
    """
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(
        pc.is_nan(values),
        pa.scalar(float("nan"), values.type),
        pc.add(values, pa.scalar(0.0, values.type)),
    )
