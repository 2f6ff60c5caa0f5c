"""Tables as bags of rows: what one has more often than the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi.values import python_values


def differing(rows: pa.Table, wanted: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Compare two tables of the same columns, whatever the order of their rows; how often a row is there counts.

    Args:
        rows: the rows that are there.
        wanted: the rows that should be there, in the same types.

    Returns:
        The rows that are missing, and those that are there without being wanted.

    >>> missing, unexpected = differing(pa.table({"a": [1, 1, 2]}), pa.table({"a": [1, 3]}))
    >>> missing.to_pylist(), unexpected.to_pylist()
    ([{'a': 3}], [{'a': 1}, {'a': 2}])
    """
    both = pa.concat_tables([wanted, rows])
    # Arrow groups by values that are no lists and no rows; of those the text.
    keys = [pa.array(map(repr, python_values(one))) if pa.types.is_nested(one.type) else _equal(one) for one in both.columns]
    sides = np.repeat(np.array([-1, 1], np.int64), [wanted.num_rows, rows.num_rows])
    names = [str(at) for at in range(len(keys))]
    table = pa.table([*keys, np.arange(both.num_rows), sides], [*names, "at", "more"])
    groups = table.group_by(names, use_threads=False).aggregate([("at", "min"), ("more", "sum")])
    at, more = groups.column("at_min").to_numpy(), groups.column("more_sum").to_numpy()
    missing, unexpected = (both.take(np.repeat(at, np.maximum(times, 0))) for times in (-more, more))
    return missing, unexpected


def _equal(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values that Arrow groups as SQL compares them: there is one zero, and one NaN."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), pc.add(values, pa.scalar(0.0, values.type)))
