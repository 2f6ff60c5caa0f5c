"""Numbers in order, each of them once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def ascending(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return numbers in order, each of them once.

    NumPy's own ``unique`` hashes numbers since version 2.3, which takes seconds for some hundred thousand different ones.

    >>> ascending(np.array([7, 3, 7])).tolist()
    [3, 7]
    """
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
