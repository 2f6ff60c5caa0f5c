"""Which rows are the same: a number for each, made of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.engine.tasks.xxhash import xxhash64
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt


def row_keys(columns: Sequence[pa.Array], rows: int) -> npt.NDArray[np.int64]:
    """Return a number for every row: rows with the same values have the same one, and others, but for an accident of 64 bits, another.

    NULL is the same as NULL here, NaN as NaN, and minus zero as zero.

    Args:
        columns: their columns, of any types.
        rows: how many rows there are.

    >>> first, second, third = row_keys([pa.array([1, None, 1]), pa.array([["a"], [], ["a"]])], 3).tolist()
    >>> first == third, first == second
    (True, False)
    """
    parts: list[pa.Array] = []
    for column in columns:
        # A hash passes over NULL, and takes (NULL, 1) for (1, NULL): what is NULL is told beside.
        parts += _parts(column)
    return xxhash64(parts, rows)


def _parts(column: pa.Array) -> list[pa.Array]:
    """Return plain columns that tell a column's values apart."""
    kind = column.type
    if pa.types.is_struct(kind):
        return [column.is_valid(), *(part for field in column.flatten() for part in _parts(field))]
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        texts = [repr(value) for value in python_values(column)]
        return [column.is_valid(), pa.array(texts, pa.string())]
    return [column.is_valid(), column]
