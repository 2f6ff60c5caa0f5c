"""The index of source rows by key, which a task builds once and probes with each target page.

A bit table excludes most rows without a match, a directory of a sorted list yields the source rows
with equal hashes, and a comparison of the values decides. No step depends on the size of the
source.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.engine.tasks.comparable import comparable
from rowmerge_nb.engine.tasks.key_hashes import Hashes, equal_texts, equally_long_texts, key_hashes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]

MOST_PAIRS: Final = 1 << 18
"""Approximate maximum number of pairs in a piece of matches."""

_WORD: Final = 64
_FILTER_BITS: Final = 4
"""Log2 of the bits per directory entry in the bit table."""
_PART_ROWS: Final = 1 << 16
_EVEN: Final = 16
"""Integers are ordered by value if no directory entry has more distinct numbers than this."""


@dataclass(frozen=True)
class _Offsets:
    """Orders integers by their distance from the smallest, so that a sorted target reads the index
    sequentially.
    """

    low: int
    span: int

    @property
    def bits(self) -> int:
        return max(self.span.bit_length(), 1)

    def hashes(self, column: pa.Array) -> tuple[Hashes, npt.NDArray[np.bool_]]:
        """Return the distances, shifted to the highest bits, and which numbers lie within the span."""
        distances: Hashes = _whole_numbers(column).view(np.uint64) - np.uint64(
            self.low % (1 << _WORD)
        )
        inside = distances <= np.uint64(self.span)
        distances <<= np.uint64(_WORD - self.bits)
        return distances, inside


class _Table:
    """A sorted list of words: the first bits of the hash, then the row number.

    Args:
        hashes: overwritten with the words.
        rows: the row numbers; None for all.
    """

    def __init__(self, hashes: Hashes, rows: Rows | None, count: int) -> None:
        self.row_bits = max(count - 1, 1).bit_length()
        self._row_mask = np.uint64((1 << self.row_bits) - 1)
        self._words = hashes
        self._words &= ~self._row_mask
        self._words |= (np.arange(count) if rows is None else rows).view(np.uint64)
        self._words.sort()
        self._set_runs()
        self._set_directory(max(len(hashes) - 1, 1).bit_length())

    def _set_runs(self) -> None:
        keys = self._words & ~self._row_mask
        is_start = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=is_start[1:])
        self._starts = keys
        self._runs: npt.NDArray[np.int32] | None = None
        if not is_start.all():
            self._starts = keys[is_start]
            starts = np.flatnonzero(is_start)
            self._runs = np.zeros(len(keys), np.int32)
            self._runs[starts] = np.diff(starts, append=len(keys))

    def _set_directory(self, bits: int) -> None:
        self._shift = np.uint64(_WORD - bits)
        indexes = (self._starts >> self._shift).view(np.int64)
        self.longest = int(np.bincount(indexes).max(initial=0))
        if self._runs is not None:
            indexes = (self._words >> self._shift).view(np.int64)
        width = np.int32 if len(self._words) < 1 << 31 else np.int64
        self._directory: npt.NDArray[np.signedinteger] = np.zeros((1 << bits) + 1, width)
        np.cumsum(np.bincount(indexes, minlength=1 << bits), out=self._directory[1:])
        self._filter_shift = np.uint64(_WORD - bits - _FILTER_BITS)
        positions = self._starts >> self._filter_shift
        del self._starts
        self._filter = np.zeros(1 << (bits + _FILTER_BITS - 3), np.uint8)
        if len(positions):
            flags = np.left_shift(np.uint8(1), positions.astype(np.uint8) & np.uint8(7))
            positions >>= np.uint64(3)
            first = np.flatnonzero(np.append(True, positions[1:] != positions[:-1]))
            self._filter[positions[first].view(np.int64)] = np.bitwise_or.reduceat(flags, first)

    def passes(self, hashes: Hashes) -> npt.NDArray[np.uint8]:
        indexes = hashes >> self._filter_shift
        bits = indexes.astype(np.uint8) & np.uint8(7)
        indexes >>= np.uint64(3)
        flags = self._filter[indexes.view(np.int64)]
        flags >>= bits
        flags &= np.uint8(1)
        return flags

    def runs(self, hashes: Hashes) -> tuple[Rows, Rows, Rows | None]:
        """Return which hashes occur, the starts of their rows, and their counts; None if each has
        one row.
        """
        keys = hashes & ~self._row_mask
        indexes = (keys >> self._shift).view(np.int64)
        at = self._directory[indexes].astype(np.int64)
        ends = self._directory[indexes + 1].astype(np.int64)
        active = np.flatnonzero(at < ends)
        hits = np.zeros(len(keys), bool)
        while len(active):
            words = self._words[at[active]] & ~self._row_mask
            active_keys = keys[active]
            hits[active[words == active_keys]] = True
            active = active[words < active_keys]
            at[active] += 1 if self._runs is None else self._runs[at[active]]
            active = active[at[active] < ends[active]]
        occurring = np.flatnonzero(hits)
        starts = at[occurring]
        return (
            occurring,
            starts,
            None if self._runs is None else self._runs[starts].astype(np.int64),
        )

    def rows(self, at: Rows) -> Rows:
        rows: Rows = (self._words[at] & self._row_mask).view(np.int64)
        return rows

    @property
    def nbytes(self) -> int:
        runs = 0 if self._runs is None else self._runs.nbytes
        return self._words.nbytes + self._directory.nbytes + self._filter.nbytes + runs


class KeyIndex:
    """The rows of a source by key; a row with a NULL key matches nothing."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._columns = [comparable(column) for column in columns]
        self._texts = [equally_long_texts(column) for column in self._columns]
        count = len(columns[0])
        valid = _valid(self._columns)
        rows = None if valid is None else np.flatnonzero(valid)
        self._offsets = _offsets_of(self._columns)
        self._table = self._build_table(rows, count)
        if self._offsets is not None and self._table.longest > _EVEN:
            self._offsets = None
            self._table = self._build_table(rows, count)
        # The words of the table then contain each distance in full.
        self._exact = (
            self._offsets is not None and self._offsets.bits + self._table.row_bits <= _WORD
        )

    def _build_table(self, rows: Rows | None, count: int) -> _Table:
        hashes = np.empty(count, np.uint64)
        # A part and its intermediate results fit into the processor's cache.
        for start in range(0, count, _PART_ROWS):
            part = [column.slice(start, _PART_ROWS) for column in self._columns]
            hashes[start : start + _PART_ROWS] = self._hashes(part)[0]
        return _Table(hashes if rows is None else hashes[rows], rows, count)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    def matches(
        self, columns: Sequence[pa.Array], most: int = MOST_PAIRS
    ) -> Iterator[tuple[Rows, Rows]]:
        """Yield the pairs of rows with equal keys: page rows in order, repeated per match, and
        source rows.

        There is at least one piece, and each has about `most` pairs. All pairs of a page row are in
        one piece.
        """
        keys = self._conformed(columns)
        rows, starts, counts = self._candidates(keys)
        if counts is None:
            yield self._equal(keys, rows, self._table.rows(starts))
            return
        before = np.cumsum(counts) - counts
        cuts = np.flatnonzero(np.diff(before // most)) + 1
        for first, last in pairwise([0, *cuts.tolist(), len(rows)]):
            repeated = counts[first:last]
            offsets = np.arange(repeated.sum()) - np.repeat(
                np.cumsum(repeated) - repeated, repeated
            )
            partners = self._table.rows(np.repeat(starts[first:last], repeated) + offsets)
            yield self._equal(keys, np.repeat(rows[first:last], repeated), partners)

    def counts(self, columns: Sequence[pa.Array]) -> Rows:
        """Return for each row of a page the number of source rows with its hash."""
        rows, _, counts = self._candidates(self._conformed(columns))
        every = np.zeros(len(columns[0]), np.int64)
        every[rows] = 1 if counts is None else counts
        return every

    def occurs(self, column: pa.Array) -> npt.NDArray[np.bool_]:
        """Return which values of a page's only key column have a match."""
        mask = np.zeros(len(column), bool)
        for rows, _ in self.matches([column]):
            mask[rows] = True
        return mask

    def _conformed(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        pairs = zip(map(comparable, columns), self._columns, strict=True)
        return [
            column if column.type == own.type else column.cast(own.type) for column, own in pairs
        ]

    def _hashes(self, columns: Sequence[pa.Array]) -> tuple[Hashes, npt.NDArray[np.bool_] | None]:
        if self._offsets is None:
            return key_hashes(columns, len(columns[0])), _valid(columns)
        hashes, inside = self._offsets.hashes(columns[0])
        valid = _valid(columns)
        return hashes, inside if valid is None else inside & valid

    def _candidates(self, keys: Sequence[pa.Array]) -> tuple[Rows, Rows, Rows | None]:
        hashes, possible = self._hashes(keys)
        passes = self._table.passes(hashes).view(bool)
        rows = np.flatnonzero(passes if possible is None else passes & possible)
        hits, starts, counts = self._table.runs(hashes[rows])
        return rows[hits], starts, counts

    def _equal(self, keys: Sequence[pa.Array], rows: Rows, partners: Rows) -> tuple[Rows, Rows]:
        if self._exact:
            return rows, partners
        for column, own, own_texts in zip(keys, self._columns, self._texts, strict=True):
            texts = None if own_texts is None else equally_long_texts(column)
            if pa.types.is_int64(column.type):
                equal = _whole_numbers(column)[rows] == _whole_numbers(own)[partners]
            elif texts is not None and own_texts is not None and texts.dtype == own_texts.dtype:
                equal = equal_texts(texts.take(rows), own_texts.take(partners))
            else:
                equal = pc.equal(
                    column.take(pa.array(rows)), own.take(pa.array(partners))
                ).to_numpy(zero_copy_only=False)
            if not equal.all():
                rows, partners = rows[equal], partners[equal]
        return rows, partners


class SetsIndex:
    """An index by several sets of keys, of which one must be equal."""

    def __init__(self, sets: Sequence[Sequence[pa.Array]]) -> None:
        self._indexes = [KeyIndex(columns) for columns in sets]
        self._count = max(len(sets[0][0]), 1)

    def matches(
        self, sets: Sequence[Sequence[pa.Array]], most: int = MOST_PAIRS
    ) -> Iterator[tuple[Rows, Rows]]:
        """Yield each pair of rows once; see `KeyIndex.matches`."""
        if len(self._indexes) == 1:
            yield from self._indexes[0].matches(sets[0], most)
            return
        counts = sum(
            index.counts(columns) for index, columns in zip(self._indexes, sets, strict=True)
        )
        cuts = np.flatnonzero(np.diff((np.cumsum(counts) - counts) // most)) + 1
        for first, last in pairwise([0, *cuts.tolist(), len(sets[0][0])]):
            pieces = (
                piece
                for index, columns in zip(self._indexes, sets, strict=True)
                for piece in index.matches(
                    [column.slice(first, last - first) for column in columns]
                )
            )
            # One number per pair.
            pairs = [(rows + first) * self._count + partners for rows, partners in pieces]
            every = ascending(np.concatenate(pairs))
            yield every // self._count, every % self._count


def _whole_numbers(column: pa.Array) -> Rows:
    """Return the numbers without a copy; those of NULLs are arbitrary."""
    numbers: Rows = np.frombuffer(column.buffers()[1], np.int64)[
        column.offset : column.offset + len(column)
    ]
    return numbers


def _valid(columns: Sequence[pa.Array]) -> npt.NDArray[np.bool_] | None:
    masks = [
        column.is_valid().to_numpy(zero_copy_only=False) for column in columns if column.null_count
    ]
    return np.logical_and.reduce(masks) if masks else None


def _offsets_of(columns: Sequence[pa.Array]) -> _Offsets | None:
    if (
        len(columns) > 1
        or not pa.types.is_int64(columns[0].type)
        or columns[0].null_count == len(columns[0])
    ):
        return None
    bounds = pc.min_max(columns[0]).as_py()
    return _Offsets(bounds["min"], bounds["max"] - bounds["min"])
