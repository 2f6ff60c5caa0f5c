"""Numbers that identify rows."""

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
    """Return a 64-bit hash per row. NULL equals NULL, NaN equals NaN, and minus zero equals zero.

    >>> first, second, third = row_keys([pa.array([1, None, 1]), pa.array([["a"], [], ["a"]])], 3).tolist()
    >>> first == third, first == second
    (True, False)
    """
    parts: list[pa.Array] = []
    for column in columns:
        # The hash skips NULL, so (NULL, 1) would equal (1, NULL): validity is hashed as well.
        parts += _parts(column)
    return xxhash64(parts, rows)


def _parts(column: pa.Array) -> list[pa.Array]:
    arrow_type = column.type
    if pa.types.is_struct(arrow_type):
        return [column.is_valid(), *(part for field in column.flatten() for part in _parts(field))]
    if pa.types.is_list(arrow_type) or pa.types.is_map(arrow_type):
        texts = [repr(value) for value in python_values(column)]
        return [column.is_valid(), pa.array(texts, pa.string())]
    return [column.is_valid(), column]
