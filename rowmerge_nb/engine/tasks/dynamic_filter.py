"""Leaving out, while a table is read, the rows whose join keys the other side does not have (Trino's dynamic filtering)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi.page_source import ColumnDomain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.spi.page import Page

__all__ = ["KeyFilter", "SourceKeys", "comparable"]

LISTED_KEYS = 1_000
"""Up to here a connector is told the keys themselves, above that their bounds."""
BITMAP_RANGE = 1 << 25
"""Up to here whole numbers are looked up in a table with a byte for each number between the smallest and the largest key."""
LOOKUP_PAGES = 16
"""So many pages are looked up together where each look-up has to build a hash table of the keys."""


@dataclass(frozen=True)
class SourceKeys:
    """The values of one join key.

    Args:
        values: without NULLs, which are equal to nothing; whole numbers as int64.

    >>> keys = SourceKeys.of(pa.array([7, 5, None, 7], pa.int32()))
    >>> keys.found(pa.chunked_array([pa.array([5, 6, None, 7], pa.int64())])).tolist()
    [True, False, False, True]
    >>> keys.domain
    ColumnDomain(values=(5, 7), low=5, high=7)
    """

    values: pa.Array

    @classmethod
    def of(cls, values: pa.Array | pa.ChunkedArray) -> SourceKeys:
        """Take a column of the source."""
        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        return cls(comparable(whole.drop_null()))

    @property
    def domain(self) -> ColumnDomain:
        """What a connector is told: no row outside of this matters."""
        if not len(self.values):
            return ColumnDomain(())
        try:
            return self._told()
        except OverflowError:
            # A date of a year that Python does not know: a connector is told nothing, and the filter has the last word anyway.
            return ColumnDomain()

    def _told(self) -> ColumnDomain:
        bounds = pc.min_max(self.values).as_py()
        # Only of a key that can be short is it worth finding out how many values it has.
        distinct = self.values.unique() if len(self.values) <= LISTED_KEYS * 100 else None
        listed = tuple(sorted(distinct.to_pylist())) if distinct is not None and len(distinct) <= LISTED_KEYS else None
        return ColumnDomain(listed, bounds["min"], bounds["max"])

    def matcher(self) -> _Bitmap | _HashTable:
        """Make what looks values up; it is made in the task that uses it."""
        if pa.types.is_int64(self.values.type) and len(self.values):
            numbers = self.values.to_numpy()
            low, high = int(numbers.min()), int(numbers.max())
            if high - low < BITMAP_RANGE:
                return _Bitmap(numbers, low, high)
        return _HashTable(self.values)

    def found(self, column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Tell of each value whether it is a key."""
        return self.matcher().found(column)


@dataclass(frozen=True)
class KeyFilter:
    """The join keys that rows of a table must have to matter.

    Args:
        channels: the keys' indexes among the channels of a page.
        keys: the keys, one for each channel. A row stays if each of its values occurs, so it may stay without a match of its own.
    """

    channels: tuple[int, ...]
    keys: tuple[SourceKeys, ...]

    def pages(self, pages: Iterable[Page]) -> Iterator[tuple[Page, npt.NDArray[np.int64]]]:
        """Give the rows that matter of pages, and their positions counted over all pages."""
        matchers = [keys.matcher() for keys in self.keys]
        together = 1 if all(isinstance(matcher, _Bitmap) for matcher in matchers) else LOOKUP_PAGES
        start = 0
        for group in _groups(pages, together):
            for page, positions in self._matching(group, matchers):
                if len(positions):
                    yield page.take(pa.array(positions)) if len(positions) < page.num_rows else page, positions + start
                start += page.num_rows

    def _matching(
        self, pages: Sequence[Page], matchers: Sequence[_Bitmap | _HashTable]
    ) -> Iterator[tuple[Page, npt.NDArray[np.int64]]]:
        wanted = np.ones(sum(page.num_rows for page in pages), bool)
        for channel, matcher in zip(self.channels, matchers, strict=True):
            wanted &= matcher.found(pa.chunked_array([page.column(channel) for page in pages]))
        first = 0
        for page in pages:
            yield page, np.flatnonzero(wanted[first : first + page.num_rows])
            first += page.num_rows


class _Bitmap:
    """Whole numbers that lie close together."""

    def __init__(self, numbers: npt.NDArray[np.int64], low: int, high: int) -> None:
        self.low, self.high = low, high
        self.flags = np.zeros(high - low + 1, bool)
        self.flags[numbers - low] = True

    def found(self, column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        masks = []
        for chunk in column.chunks:
            # NULL takes the place of a number that is no key, for there may be one that is.
            filled = chunk.fill_null(0) if chunk.null_count else chunk
            numbers = filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
            within = (numbers >= self.low) & (numbers <= self.high)
            mask = within & self.flags[np.where(within, numbers - self.low, 0)]
            if chunk.null_count:
                mask &= chunk.is_valid().to_numpy(zero_copy_only=False)
            masks.append(mask)
        return np.concatenate(masks) if masks else np.zeros(0, bool)


class _HashTable:
    """Values of any kind; the hash table is built anew by each look-up."""

    def __init__(self, values: pa.Array) -> None:
        self.values = values

    def found(self, column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        if not len(column):
            return np.zeros(0, bool)
        kind = self.values.type
        chunks = [comparable(chunk) for chunk in column.chunks]
        cast: Any = pa.chunked_array([chunk if chunk.type == kind else chunk.cast(kind) for chunk in chunks], kind)
        found = pc.is_in(cast, value_set=self.values, skip_nulls=True)
        return np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in found.chunks])


def comparable(values: pa.Array) -> pa.Array:
    """Bring values of one kind into one type: the width of integers, of decimals and of text's offsets does not matter."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return comparable(values.dictionary_decode())
    if pa.types.is_integer(kind):
        return values.cast(pa.int64())
    if pa.types.is_decimal(kind):
        return values.cast(pa.decimal128(38, kind.scale))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.string())
    return values


def _groups(pages: Iterable[Page], size: int) -> Iterator[list[Page]]:
    group: list[Page] = []
    for page in pages:
        group.append(page)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
