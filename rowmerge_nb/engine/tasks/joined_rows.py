"""Rows of two pages, paired: what a join within a task gives, and what conditions and values are computed of."""

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
"""Stands for the row of a side that has none."""


@dataclass(frozen=True)
class Side:
    """The rows of one side of a join.

    Args:
        page: the side's page; its channels have the names of the plan's symbols.
        rows: which row of the page stands in each joined row, ``NO_ROW`` where none does; None for all rows in their order.
    """

    page: Page
    rows: npt.NDArray[np.int64] | None = None

    @property
    def is_there(self) -> npt.NDArray[np.bool_]:
        """Of each joined row whether it has a row of this side."""
        return np.ones(self.page.num_rows, bool) if self.rows is None else self.rows != NO_ROW

    def column(self, name: str) -> pa.Array:
        """Return a channel's values for the joined rows; NULL where this side has no row."""
        return self.taken(self.page.column(name))

    def taken(self, values: pa.Array) -> pa.Array:
        """Return, of values for every row of the page, those of the joined rows."""
        if self.rows is None:
            return values
        absent = self.rows == NO_ROW
        return values.take(pa.array(self.rows, mask=absent if absent.any() else None))

    def picked(self, positions: npt.NDArray[np.int64]) -> Side:
        """Return this side of some of the joined rows."""
        return Side(self.page, positions if self.rows is None else self.rows[positions])


@dataclass(frozen=True)
class JoinedRows:
    """Joined rows; a channel's values are gathered when they are first asked for.

    Args:
        count: how many there are.
        sides: the target's side, and the source's where there is one. No symbol is on both.

    >>> target = pa.RecordBatch.from_pydict({"id": [7, 8]})
    >>> source = pa.RecordBatch.from_pydict({"new": ["a", "b"]})
    >>> rows = JoinedRows(2, (Side(target, np.array([1, NO_ROW])), Side(source, np.array([0, 1]))))
    >>> rows.page(["new", "id"]).to_pydict()
    {'new': ['a', 'b'], 'id': [8, None]}
    """

    count: int
    sides: tuple[Side, ...]
    _gathered: dict[str, pa.Array] = field(default_factory=dict, compare=False)

    @property
    def target(self) -> Side:
        """The target's side."""
        return self.sides[0]

    @property
    def partners(self) -> npt.NDArray[np.int64]:
        """Which rows of the source's page stand in these rows, each as often as it does."""
        rows = self.sides[1].rows
        return np.arange(self.count) if rows is None else rows[rows != NO_ROW]

    def column(self, name: str) -> pa.Array:
        """Return a channel's values."""
        if name not in self._gathered:
            side = next(side for side in self.sides if name in side.page.schema.names)
            self._gathered[name] = side.column(name)
        return self._gathered[name]

    def page(self, names: Iterable[str]) -> Page:
        """Return some channels as a page, which has a row for each joined row."""
        wanted = list(names)
        if not wanted:
            # A page without channels would have no rows.
            return pa.RecordBatch.from_arrays([pa.nulls(self.count)], names=[""])
        return pa.RecordBatch.from_arrays([self.column(name) for name in wanted], names=wanted)

    def row(self, position: int, names: Iterable[str]) -> Page:
        """Return one row with those of some channels that there are, for an error to name it."""
        there = {name for side in self.sides for name in side.page.schema.names}
        return self.picked(np.array([position])).page(name for name in names if name in there)

    def picked(self, positions: npt.NDArray[np.int64]) -> JoinedRows:
        """Return some of the rows, in the order of their positions."""
        if len(positions) == self.count and (positions == np.arange(self.count)).all():
            return self
        chosen = pa.array(positions)
        gathered = {name: values.take(chosen) for name, values in self._gathered.items()}
        return JoinedRows(len(positions), tuple(side.picked(positions) for side in self.sides), gathered)
