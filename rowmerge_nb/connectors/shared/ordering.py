"""Sorting of distinct numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def ascending(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the distinct numbers in ascending order.

    NumPy's ``unique`` hashes since version 2.3, which takes seconds for some hundred thousand
    distinct numbers.

    >>> ascending(np.array([7, 3, 7])).tolist()
    [3, 7]
    """
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
