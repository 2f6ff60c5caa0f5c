"""Pairs of rows of two pages: the result of a join within a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from rowmerge_nb.spi.page import Page

NO_ROW = -1
"""The index of a missing row."""


@dataclass(frozen=True)
class JoinedSide:
    """A page of one side, and its row for each joined row: ``NO_ROW`` if missing; None for all rows
    in order.
    """

    page: Page
    rows: npt.NDArray[np.int64] | None = None

    @property
    def is_there(self) -> npt.NDArray[np.bool_]:
        return np.ones(self.page.num_rows, bool) if self.rows is None else self.rows != NO_ROW

    def column(self, name: str) -> pa.Array:
        """Return a channel's values for the joined rows; NULL if this side has no row."""
        return self.taken(self.page.column(name))

    def taken(self, values: pa.Array) -> pa.Array:
        if self.rows is None:
            return values
        absent = self.rows == NO_ROW
        return values.take(pa.array(self.rows, mask=absent if absent.any() else None))

    def picked(self, positions: npt.NDArray[np.int64]) -> JoinedSide:
        return JoinedSide(self.page, positions if self.rows is None else self.rows[positions])


@dataclass(frozen=True)
class JoinedRows:
    """Joined rows, whose channels are gathered lazily; the sides have disjoint symbols."""

    count: int
    sides: tuple[JoinedSide, ...]
    _gathered: dict[str, pa.Array] = field(default_factory=dict, compare=False)

    @property
    def target(self) -> JoinedSide:
        return self.sides[0]

    @property
    def partners(self) -> npt.NDArray[np.int64]:
        rows = self.sides[1].rows
        return np.arange(self.count) if rows is None else rows[rows != NO_ROW]

    def column(self, name: str) -> pa.Array:
        if name not in self._gathered:
            side = next(side for side in self.sides if name in side.page.schema.names)
            self._gathered[name] = side.column(name)
        return self._gathered[name]

    def page(self, names: Iterable[str]) -> Page:
        channels = list(names)
        if not channels:
            # A page without channels would have no rows.
            return pa.RecordBatch.from_arrays([pa.nulls(self.count)], names=[""])
        return pa.RecordBatch.from_arrays([self.column(name) for name in channels], names=channels)

    def row(self, position: int, names: Iterable[str]) -> Page:
        existing = {name for side in self.sides for name in side.page.schema.names}
        return self.picked(np.array([position])).page(name for name in names if name in existing)

    def picked(self, positions: npt.NDArray[np.int64]) -> JoinedRows:
        if len(positions) == self.count and (positions == np.arange(self.count)).all():
            return self
        indexes = pa.array(positions)
        gathered = {name: values.take(indexes) for name, values in self._gathered.items()}
        return JoinedRows(
            len(positions), tuple(side.picked(positions) for side in self.sides), gathered
        )
