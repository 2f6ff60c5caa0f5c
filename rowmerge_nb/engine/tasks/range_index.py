"""The index of intervals: which rows of two sides can satisfy a range in ON.

The intervals are grouped by length and sorted by their low values. In a group, the intervals that
can overlap another one are neighbors, which two binary searches find.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.key_index import MOST_PAIRS
from rowmerge_nb.engine.tasks.page_program import AssignedColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.page_program import PageEvaluator
    from rowmerge_nb.spi.page import Page

    Numbers = npt.NDArray[np.int64]

_SMALLEST: Final = np.iinfo(np.int64).min
_LARGEST: Final = np.iinfo(np.int64).max
_WORD: Final = 64


@dataclass(frozen=True)
class Intervals:
    """An interval for each row of a page, in numbers of the same order as the values.

    Args:
        rows: the rows whose values are comparable. All others match nothing.
    """

    lows: Numbers
    highs: Numbers
    rows: Numbers

    @staticmethod
    def of(
        low: pa.Array | None,
        high: pa.Array | None,
        *,
        open_nulls: tuple[bool, bool] = (False, False),
    ) -> Intervals:
        """Build intervals; without values, or for a NULL in `open_nulls`, that end is open."""
        ends, valid = [], []
        count = next(len(values) for values in (low, high) if values is not None)
        for values, is_open, open_end in zip(
            (low, high), open_nulls, (_SMALLEST, _LARGEST), strict=True
        ):
            numbers = np.full(count, open_end, np.int64)
            if values is not None:
                numbers, has_order = _ordered(values)
                numbers = np.where(has_order, numbers, open_end)
                valid.append(has_order | values.is_null().to_numpy(zero_copy_only=False) & is_open)
            ends.append(numbers)
        rows = np.flatnonzero(np.logical_and.reduce(valid))
        return Intervals(ends[0], ends[1], rows)


@dataclass(frozen=True)
class RangeKeys:
    """The interval of one side's rows.

    Args:
        open_nulls: for both, whether NULL is an open end: the value could not be computed, and the
            condition itself reports that.
    """

    low: AssignedColumn | None
    high: AssignedColumn | None
    open_nulls: tuple[bool, bool]

    def values(self, page: Page, evaluator: PageEvaluator) -> Intervals:
        columns = [column for column in (self.low, self.high) if column is not None]
        computed = iter(evaluator.values_of(columns, page))
        low, high = (None if column is None else next(computed) for column in (self.low, self.high))
        return Intervals.of(low, high, open_nulls=self.open_nulls)


class RangeIndex:
    def __init__(self, intervals: Intervals) -> None:
        lows, highs = intervals.lows[intervals.rows], intervals.highs[intervals.rows]
        group = _groups(lows, highs)
        # Intervals with one open end are sorted by the other end.
        order = np.lexsort((highs, lows, group))
        self._rows, self._lows, self._highs = intervals.rows[order], lows[order], highs[order]
        self._cuts = [
            0,
            *(np.flatnonzero(np.diff(group[order])) + 1).tolist(),
            *([len(order)] if len(order) else []),
        ]
        self._most = np.empty_like(self._highs)
        for first, last in pairwise(self._cuts):
            np.maximum.accumulate(self._highs[first:last], out=self._most[first:last])

    def matches(
        self, intervals: Intervals, most: int = MOST_PAIRS
    ) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield the pairs of rows with overlapping intervals: page rows in order, repeated per
        match, and source rows.

        `most` limits a piece, as in `rowmerge_nb.engine.tasks.key_index.KeyIndex.matches`.
        """
        rows, starts, counts = self._runs(intervals)
        before = np.cumsum(counts) - counts
        is_new_row = np.diff(rows) != 0
        # A row is in the piece in which its first run begins.
        first_of_row = np.maximum.accumulate(
            np.where(np.append(True, is_new_row)[: len(rows)], np.arange(len(rows)), 0)
        )
        cuts = np.flatnonzero(np.diff(before[first_of_row] // most)) + 1
        for first, last in pairwise([0, *cuts.tolist(), len(rows)]):
            run_counts = counts[first:last]
            offsets = np.arange(run_counts.sum()) - np.repeat(
                np.cumsum(run_counts) - run_counts, run_counts
            )
            at = np.repeat(starts[first:last], run_counts) + offsets
            page_rows = np.repeat(rows[first:last], run_counts)
            overlaps = (self._lows[at] <= intervals.highs[page_rows]) & (
                self._highs[at] >= intervals.lows[page_rows]
            )
            yield page_rows[overlaps], self._rows[at[overlaps]]

    def _runs(self, intervals: Intervals) -> tuple[Numbers, Numbers, Numbers]:
        lows, highs = intervals.lows[intervals.rows], intervals.highs[intervals.rows]
        rows, starts, counts = ([np.zeros(0, np.int64)] for _ in range(3))
        for first, last in pairwise(self._cuts):
            start = np.searchsorted(self._most[first:last], lows, "left")
            end = np.searchsorted(self._lows[first:last], highs, "right")
            hits = np.flatnonzero(end > start)
            rows.append(intervals.rows[hits])
            starts.append(start[hits] + first)
            counts.append(end[hits] - start[hits])
        every, begin, length = (np.concatenate(parts) for parts in (rows, starts, counts))
        if len(self._cuts) > len((0, 1)):
            order = np.argsort(every, kind="stable")
            every, begin, length = every[order], begin[order], length[order]
        return every, begin, length


def _groups(lows: Numbers, highs: Numbers) -> npt.NDArray[np.int64]:
    """Return a group for each interval: one per power of two of their lengths.

    A long interval among short ones would make all that lie between candidates.
    """
    spans = np.where(highs > lows, highs - lows, 0).view(np.uint64)
    powers = np.frexp(spans.astype(np.float64))[1]
    counts = np.bincount(powers, minlength=_WORD + 2)
    group_of = np.zeros(len(counts), np.int64)
    group, room = -1, 0
    for power in np.flatnonzero(counts)[::-1].tolist():
        if counts[power] > room:
            group, room = group + 1, int(counts[power])
        else:
            room -= int(counts[power])
        group_of[power] = group
    return group_of[powers]


def _ordered(values: pa.Array) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Return numbers that are ordered as the values are, and which values are comparable.

    Long decimals may share a number.
    """
    if pa.types.is_dictionary(values.type):
        return _ordered(values.dictionary_decode())
    has_order = values.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(values.type):
        return _ordered_decimals(values), has_order
    if pa.types.is_floating(values.type):
        # -0.0 + 0.0 is 0.0.
        numbers = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0
        bits = numbers.view(np.int64)
        return np.where(bits < 0, bits ^ _LARGEST, bits), has_order & ~np.isnan(numbers)
    if pa.types.is_temporal(values.type):
        width = values.type.bit_width
        values = values.view(pa.int32() if width == pa.int32().bit_width else pa.int64())
    numbers = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return numbers, has_order


def _ordered_decimals(values: pa.Array) -> Numbers:
    precision = values.type.precision
    words = values.cast(pa.decimal128(precision, values.type.scale))
    pairs = np.frombuffer(words.buffers()[1] or b"", np.int64).reshape(-1, 2)
    low, high = pairs[words.offset : words.offset + len(words)].T
    shift = max((10**precision).bit_length() + 1 - _WORD, 0)
    if not shift:
        return np.ascontiguousarray(low)
    highest: Numbers = high << (_WORD - shift)
    highest |= (low.view(np.uint64) >> np.uint64(shift)).view(np.int64)
    return highest
