"""Compares the result of an order of calls with those of serial orders."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

from rowmerge_nb.testing.interleaving.interleaved_statement import left_of
from rowmerge_nb.testing.interleaving.result import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.testing.contract.contract_statement import Row
    from rowmerge_nb.testing.interleaving.interleaved_statement import Asked
    from rowmerge_nb.testing.interleaving.result import Order


def judged(
    order: Order, rows: Sequence[Row], columns: Sequence[str], statements: tuple[Asked, Asked]
) -> Order:
    """Add to an order the serial orders with its result, or what is wrong with the result."""
    if order.kind:
        return order
    result = _Result(order, rows, columns, statements)
    same = [which for which, rows in result.serial.items() if rows == order.rows]
    if same:
        return replace(
            order,
            serial=tuple(tuple(NAMES[side] for side in which) for which in same),
            expected=order.rows,
        )
    label, about = (
        result.doubled_row()
        or result.lost_statement()
        or result.change_of_failed_statement()
        or result.differing_rows()
    )
    return replace(order, kind=label, about=about, expected=result.expected)


class _Result:
    """The rows of an order that no serial order leaves; a fault is its label and a sentence."""

    def __init__(
        self,
        order: Order,
        rows: Sequence[Row],
        columns: Sequence[str],
        statements: tuple[Asked, Asked],
    ) -> None:
        self._order, self._rows, self._columns = order, rows, columns
        self._statements = statements
        self._committed = [side for side in (0, 1) if order.committed[side]]
        self.serial = {which: self._left(which) for which in permutations(self._committed)}
        self.expected = next(iter(self.serial.values()))

    def _left(self, which: Iterable[int]) -> tuple[Row, ...]:
        """Return the rows after statements that run one after the other."""
        statements = (self._statements[side] for side in which)
        return tuple(sorted(left_of(self._rows, self._columns, *statements), key=repr))

    def doubled_row(self) -> tuple[str, str] | None:
        counts = _keys(self._order.rows)
        serial = [_keys(rows) for rows in self.serial.values()]
        for key, count in counts.items():
            if count > max(1, *(keys[key] for keys in serial)):
                return "doubled row", f"key {key!r} exists {count} times"
        return None

    def lost_statement(self) -> tuple[str, str] | None:
        if len(self._committed) < 2:
            return None
        for side in self._committed:
            if self._left([side]) == self._order.rows:
                about = f"both were committed, but the change of {NAMES[1 - side]} is lost"
                return "lost update", about
        return None

    def change_of_failed_statement(self) -> tuple[str, str] | None:
        if len(self._committed) == 2 or all(
            self._left(which) != self._order.rows for which in ((0,), (1,), (0, 1), (1, 0))
        ):
            return None
        return (
            "change of a statement that failed",
            "the change of a failed statement remains",
        )

    def differing_rows(self) -> tuple[str, str]:
        missing = Counter(self.expected) - Counter(self._order.rows)
        extra = Counter(self._order.rows) - Counter(self.expected)
        sentences = [
            *(f"row {row} is missing" for row in list(missing)[:1]),
            *(f"row {row} must not exist" for row in list(extra)[:1]),
        ]
        is_lost = missing and len(self._committed) == 2
        label = "lost update" if is_lost else "rows that no serial order would leave"
        return label, "; ".join(sentences)


def _keys(rows: Sequence[Row]) -> Counter[Any]:
    return Counter(row[0] for row in rows)
