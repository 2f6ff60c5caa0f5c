"""Finding the source rows that have the keys of a target row: what a task builds once of the whole source, and asks for every page."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.dynamic_filter import comparable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

__all__ = ["MOST_PAIRS", "KeyIndex"]

MOST_PAIRS: Final = 1 << 18
"""So many pairs of rows are made together, about."""

NO_CODE: Final = -1
DENSE: Final = 32
"""Whole numbers are looked up in a table as long as there are at most so many between the smallest and the largest for each key."""
DENSE_ANYWAY: Final = 1 << 20


class _Dense:
    """Codes of whole numbers that lie close together: what they are above the smallest."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.size = high - low + 1

    def codes(self, values: pa.Array) -> npt.NDArray[np.int64]:
        numbers = (pc.fill_null(values, 0) if values.null_count else values).to_numpy(zero_copy_only=False)
        # Before anything is subtracted, which could go beyond what a number holds.
        within = (numbers >= self.low) & (numbers <= self.high)
        if values.null_count:
            within &= values.is_valid().to_numpy(zero_copy_only=False)
        return np.where(within, numbers - self.low, NO_CODE)


class _Listed:
    """Codes of values of any type: their positions in a list of the distinct ones."""

    def __init__(self, distinct: pa.Array) -> None:
        self.distinct = distinct
        self.size = len(distinct)

    def codes(self, values: pa.Array) -> npt.NDArray[np.int64]:
        cast = values if values.type == self.distinct.type else values.cast(self.distinct.type)
        found = pc.fill_null(pc.index_in(cast, value_set=self.distinct, skip_nulls=True), NO_CODE)
        codes: npt.NDArray[np.int64] = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return codes


class _Occurring:
    """Numbers for the codes that occur, in their order: a bit for each code that there may be, and how many occur before each eight of them."""

    def __init__(self, codes: npt.NDArray[np.int64]) -> None:
        size = int(codes.max()) + 1 if len(codes) else 0
        there = np.zeros(size, bool)
        there[codes] = True
        # The last byte has no code: what occurs nowhere leads to it, as the index -1.
        self._bits = np.append(np.packbits(there, bitorder="little"), np.uint8(0))
        counts = _BITS_BELOW[self._bits, 8]
        self._before = np.cumsum(counts, dtype=np.int32) - counts
        self._size = size
        self.count = int(counts.sum(dtype=np.int64))

    def numbers(self, codes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Give the positions of the codes that occur, and their numbers."""
        places = np.where(codes < self._size, codes >> 3, NO_CODE)
        found = np.flatnonzero((self._bits[places] >> (codes & 7).astype(np.uint8)) & 1)
        codes, places = codes[found], places[found]
        return found, self._before[places] + _BITS_BELOW[self._bits[places], codes & 7]


_BITS_BELOW: Final = np.array([[(byte & ((1 << bit) - 1)).bit_count() for bit in range(9)] for byte in range(256)], np.uint8)
"""By a byte and a bit: how many of its bits below that one are set."""


class KeyIndex:
    """The rows of a source by their keys.

    Args:
        columns: the key columns, an array each; a row with a NULL among its keys is equal to nothing.

    >>> index = KeyIndex([pa.array([7, 5, None, 7]), pa.array(["a", "b", "c", "a"])])
    >>> [(rows.tolist(), partners.tolist()) for rows, partners in index.matches([pa.array([5, 7, 9]), pa.array(["b", "a", "a"])])]
    [([0, 1, 1], [1, 0, 3])]
    """

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._coders = [_coder(comparable(column)) for column in columns]
        self._steps: list[npt.NDArray[np.int64]] = []
        codes = self._codes(columns, building=True)
        rows = np.flatnonzero(codes != NO_CODE).astype(np.int32 if len(columns[0]) < 1 << 31 else np.int64)
        codes = codes[rows]
        self._occurring = _Occurring(codes)
        _, numbers = self._occurring.numbers(codes)
        self._unique = self._occurring.count == len(rows)
        if self._unique:
            self._rows = np.empty_like(rows)
            self._rows[numbers] = rows
        else:
            self._rows = rows[np.argsort(numbers, kind="stable")]
            self._starts = np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=self._occurring.count))])

    def matches(
        self, columns: Sequence[pa.Array], most: int = MOST_PAIRS
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Give the pairs of rows with equal keys, in pieces where they are many; a row of the page has all of its pairs in one.

        Args:
            columns: the key columns of a page.
            most: so many pairs a piece has about, unless a single row has more.

        Returns:
            Of each piece the rows of the page in their order, each as often as it has partners, and the partners. There is one at least.
        """
        rows, numbers = self._occurring.numbers(self._codes(columns, building=False))
        if self._unique:
            yield rows, self._rows[numbers].astype(np.int64)
            return
        starts = self._starts[numbers]
        counts = self._starts[numbers + 1] - starts
        before = np.cumsum(counts) - counts
        cuts = np.flatnonzero(np.diff(before // most)) + 1
        for first, last in pairwise([0, *cuts.tolist(), len(rows)]):
            yield self._pairs(rows[first:last], starts[first:last], counts[first:last])

    def _pairs(
        self, rows: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(rows, counts), self._rows[np.repeat(starts, counts) + offsets]

    def _codes(self, columns: Sequence[pa.Array], *, building: bool) -> npt.NDArray[np.int64]:
        """Give one number for the keys of each row, ``NO_CODE`` where no row of the source has them."""
        codes = self._coders[0].codes(comparable(columns[0]))
        size = self._coders[0].size
        for step, (coder, column) in enumerate(zip(self._coders[1:], columns[1:], strict=True)):
            more = coder.codes(comparable(column))
            both = np.where((codes != NO_CODE) & (more != NO_CODE), codes * coder.size + more, NO_CODE)
            # The pairs that occur get new numbers, so that there is room for the next column.
            if building:
                self._steps.append(np.unique(both[both != NO_CODE]))
            known = self._steps[step]
            size = len(known)
            found = np.searchsorted(known, both)
            hit = (both != NO_CODE) & (found < size)
            hit[hit] = known[found[hit]] == both[hit]
            codes = np.where(hit, found, NO_CODE)
        return codes


def _coder(values: pa.Array) -> _Dense | _Listed:
    known = values.drop_null()
    if pa.types.is_int64(known.type) and len(known):
        bounds = pc.min_max(known).as_py()
        if bounds["max"] - bounds["min"] < max(DENSE * len(known), DENSE_ANYWAY):
            return _Dense(bounds["min"], bounds["max"])
    return _Listed(known.unique())
