"""Difference of tables as multisets of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi.values import python_values


def differing(rows: pa.Table, expected: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the missing rows and the unexpected rows, counting duplicates and ignoring order.

    Both tables have the same types.

    >>> missing, unexpected = differing(pa.table({"a": [1, 1, 2]}), pa.table({"a": [1, 3]}))
    >>> missing.to_pylist(), unexpected.to_pylist()
    ([{'a': 3}], [{'a': 1}, {'a': 2}])
    """
    both = pa.concat_tables([expected, rows])
    # Arrow cannot group by nested values; use their text instead.
    keys = [
        pa.array(map(repr, python_values(one))) if pa.types.is_nested(one.type) else _equal(one)
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
