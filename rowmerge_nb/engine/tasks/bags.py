"""Multisets of rows, identified by their hashes; negative counts are removals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rowmerge_nb.engine.tasks.row_hashes import among

if TYPE_CHECKING:
    from rowmerge_nb.engine.tasks.row_hashes import Hashes


@dataclass(frozen=True)
class Bag:
    """Rows and their nonzero counts, by ascending, distinct hashes."""

    hashes: Hashes
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, hashes: Hashes, counts: npt.NDArray[np.int64] | int = 1) -> Bag:
        """Build a bag from hashes in any order, with a count for each or for all."""
        order = np.argsort(hashes)
        ordered = hashes[order]
        numbers = (
            np.full(len(hashes), counts, np.int64) if isinstance(counts, int) else counts[order]
        )
        starts = (
            np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
            if len(ordered)
            else order
        )
        total = np.add.reduceat(numbers, starts) if len(ordered) else numbers
        nonzero = total != 0
        return cls(ordered[starts][nonzero], total[nonzero])

    @classmethod
    def none(cls) -> Bag:
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def __add__(self, other: Bag) -> Bag:
        return Bag.of(
            np.concatenate([self.hashes, other.hashes]), np.concatenate([self.counts, other.counts])
        )

    def __neg__(self) -> Bag:
        return Bag(self.hashes, -self.counts)

    def __sub__(self, other: Bag) -> Bag:
        return self + -other

    @property
    def more(self) -> Bag:
        positive = self.counts > 0
        return Bag(self.hashes[positive], self.counts[positive])

    @property
    def less(self) -> Bag:
        """The rows with negative counts, negated."""
        return (-self).more

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def size(self) -> int:
        return int(np.abs(self.counts).sum())

    def first(self, rows: int) -> Hashes:
        return self.hashes[:rows]

    def count_of(self, row: int) -> int:
        at = int(np.searchsorted(self.hashes, np.uint64(row)))
        return int(self.counts[at]) if at < len(self.hashes) and int(self.hashes[at]) == row else 0

    def holds(self, rows: Hashes) -> npt.NDArray[np.bool_]:
        return among(rows, self.hashes)

    def to_bytes(self) -> bytes:
        """Serialize the bag.

        >>> Bag.from_bytes(Bag.of(np.array([3, 3], np.uint64)).to_bytes()).counts.tolist()
        [2]
        """
        return self.hashes.tobytes() + self.counts.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Bag:
        half = len(data) // 2
        return cls(np.frombuffer(data[:half], np.uint64), np.frombuffer(data[half:], np.int64))
