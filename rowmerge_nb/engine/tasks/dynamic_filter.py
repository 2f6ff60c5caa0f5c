"""Trino's dynamic filtering: reading a table skips rows whose join keys the other side lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.comparable import comparable
from rowmerge_nb.engine.tasks.key_index import KeyIndex
from rowmerge_nb.spi.page_source import ColumnDomain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from rowmerge_nb.spi.page import Page

LISTED_KEYS = 1_000
"""The maximum number of keys passed to a connector; beyond it, only their bounds are."""


@dataclass(frozen=True)
class SourceKeys:
    """The values of one join key, without NULLs; integers as int64."""

    values: pa.Array

    @classmethod
    def of(cls, values: pa.Array | pa.ChunkedArray) -> SourceKeys:
        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        return cls(comparable(whole.drop_null()))

    @property
    def domain(self) -> ColumnDomain:
        if not len(self.values):
            return ColumnDomain(())
        try:
            return self._bounded_domain()
        except OverflowError:
            # A date outside of Python's range: the connector gets no domain, and only the filter
            # applies.
            return ColumnDomain()

    def _bounded_domain(self) -> ColumnDomain:
        bounds = pc.min_max(self.values).as_py()
        # Counting distinct values pays only if there may be few.
        distinct = self.values.unique() if len(self.values) <= LISTED_KEYS * 100 else None
        listed = (
            tuple(sorted(distinct.to_pylist()))
            if distinct is not None and len(distinct) <= LISTED_KEYS
            else None
        )
        return ColumnDomain(listed, bounds["min"], bounds["max"])

    def matcher(self) -> KeyIndex:
        return KeyIndex([self.values.unique()])

    def contains(self, column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        matcher = self.matcher()
        return np.concatenate(
            [matcher.occurs(chunk) for chunk in column.chunks] or [np.zeros(0, bool)]
        )


@dataclass(frozen=True)
class KeyFilter:
    """The required keys per channel.

    A row passes if each value occurs, even if the combination does not.
    """

    channels: tuple[int, ...]
    keys: tuple[SourceKeys, ...]

    def pages(self, pages: Iterable[Page]) -> Iterator[tuple[Page, npt.NDArray[np.int64]]]:
        """Yield the rows that pass, and their positions counted over all pages."""
        matchers = [keys.matcher() for keys in self.keys]
        start = 0
        for page in pages:
            masks = [
                matcher.occurs(page.column(channel))
                for channel, matcher in zip(self.channels, matchers, strict=True)
            ]
            positions = np.flatnonzero(np.logical_and.reduce(masks))
            if len(positions):
                yield (
                    (page.take(pa.array(positions)) if len(positions) < page.num_rows else page),
                    positions + start,
                )
            start += page.num_rows
