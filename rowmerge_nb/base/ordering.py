"""Sorting of distinct numbers."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)


def ascending(numbers: npt.NDArray[T]) -> npt.NDArray[T]:
    """Return the distinct numbers in ascending order.

    NumPy's ``unique`` hashes since version 2.3 unless indices or counts are wanted, which takes
    seconds for some hundred thousand distinct numbers.

    >>> ascending(np.array([7, 3, 7])).tolist()
    [3, 7]
    """
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def other_rows(count: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the ascending numbers below `count` that are not in `rows`.

    >>> other_rows(4, np.array([2, 0, 2])).tolist()
    [1, 3]
    """
    others = np.ones(count, bool)
    others[rows] = False
    return np.flatnonzero(others)
