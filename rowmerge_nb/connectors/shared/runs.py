"""Grouping of equal rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

_FEW: Final = 1 << 16
"""The maximum number of distinct rows for a counting sort."""


def runs_of(
    columns: Sequence[pa.Array], rows: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return a stable order that groups equal rows, and the start of each group in it; NULL equals
    NULL.

    >>> import pyarrow as pa
    >>> order, starts = runs_of([pa.array(["x", None, "x", None]), pa.array([1, 1, 1, 2])], 4)
    >>> order.tolist(), starts.tolist()
    ([0, 2, 1, 3], [0, 2, 3])
    """
    codes, size = np.zeros(rows, np.int64), 1
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
        size *= len(encoded.dictionary)
        if size > _FEW:
            distinct, codes = np.unique(codes, return_inverse=True)
            size = len(distinct)
    order = np.argsort(codes.astype(np.uint16) if size <= _FEW else codes, kind="stable")
    ordered = codes[order]
    return order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[:rows])
