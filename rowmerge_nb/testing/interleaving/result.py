"""The result of `interleave`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.base.words import plural
from rowmerge_nb.testing.interleaving.orders import changes_of_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.testing.contract.contract_statement import Row
    from rowmerge_nb.testing.interleaving.interleaved_statement import LedgerRow

NAMES = ("first", "second")


@dataclass(frozen=True)
class Turn:
    """A step of statement 0 or 1; ``waited``: it returned only after a call of the other one."""

    side: int
    step: str
    waited: bool = False
    failed: bool = False


@dataclass(frozen=True)
class Order:
    """An order of the calls of two statements, and its result.

    Args:
        rows: the resulting rows, sorted.
        failures: the error of each statement, with its code, or ``""``.
        ledger: the rows that each changed, with their row ids.
        serial: the serial orders of the committed statements with the same result.
        kind: ``lost update``, ``doubled row``, ... for a wrong order, else ``""``.
        about: what is wrong, as a sentence.
        expected: the result of a serial order.
    """

    turns: tuple[Turn, ...]
    rows: tuple[Row, ...]
    committed: tuple[bool, ...]
    failures: tuple[str, ...]
    ledger: tuple[tuple[LedgerRow, ...], ...]
    serial: tuple[tuple[str, ...], ...] = ()
    kind: str = ""
    about: str = ""
    expected: tuple[Row, ...] = ()

    @property
    def length(self) -> tuple[int, int]:
        """The number of turn changes and of calls."""
        return changes_of_turn([turn.side for turn in self.turns]), len(self.turns)

    @property
    def text(self) -> str:
        """The calls in one line: prefixed by ``1`` or ``2``, with ``!`` after a failed and ``~``
        after a waiting one.
        """
        return " ".join(
            f"{turn.side + 1}.{turn.step}{'~' * turn.waited}{'!' * turn.failed}"
            for turn in self.turns
        )

    def lines(self) -> Iterator[str]:
        """Yield the calls, one column per statement, and the resulting rows."""
        for turn in self.turns:
            more = " waits" * turn.waited + " fails" * turn.failed
            what = ""
            if turn.step == "get_next_page":
                what = f": {_changes(self.ledger[turn.side])}"
            yield f"  {'' if turn.side == 0 else ' ' * 40}{turn.step}{what}{more}".rstrip()
        for name, failure in zip(NAMES, self.failures, strict=True):
            if failure:
                yield f"  {name} failed with {failure}"
        yield f"  left: {_listed(self.rows)}"
        if self.kind and self.expected:
            yield f"  must be: {_listed(self.expected)}"


@dataclass(frozen=True)
class Interleaving:
    """The result of `interleave`. ``str()`` of it is a text; a notebook displays it.

    Args:
        before: the initial rows of every order.
        possible: the number of orders.
        tried: how many of them were tried.
        orders: the distinct ones; orders that are equal after a failure run once.
    """

    connector: str
    columns: tuple[str, ...]
    before: tuple[Row, ...]
    possible: int
    tried: int
    orders: tuple[Order, ...]

    @property
    def wrong(self) -> tuple[Order, ...]:
        """The orders with a result of no serial order of the committed statements."""
        return tuple(order for order in self.orders if order.kind)

    @cached_property
    def shortest(self) -> dict[str, Order]:
        """The shortest wrong order of each kind."""
        by_kind: dict[str, Order] = {}
        for order in sorted(self.wrong, key=lambda order: order.length):
            by_kind.setdefault(order.kind, order)
        return by_kind

    @property
    def conflicts(self) -> dict[tuple[str, str], int]:
        """The number of orders per failed statement and code."""
        counts: dict[tuple[str, str], int] = {}
        for order in self.orders:
            for name, failure in zip(NAMES, order.failures, strict=True):
                if failure:
                    key = (name, failure.partition(":")[0])
                    counts[key] = counts.get(key, 0) + 1
        return counts

    @property
    def table(self) -> pa.Table:
        """All orders as a table: calls, outcome of each statement, resulting rows, verdict."""
        ends = [
            [
                failure.partition(":")[0] if failure else "committed" if committed else "open"
                for failure, committed in pairs
            ]
            for pairs in (
                zip(order.failures, order.committed, strict=True) for order in self.orders
            )
        ]
        return pa.table(
            {
                "order": [order.text for order in self.orders],
                "first": pa.array([end[0] for end in ends], pa.string()),
                "second": pa.array([end[1] for end in ends], pa.string()),
                "rows": [_listed(order.rows) for order in self.orders],
                "serial": pa.array(
                    [" or ".join(map(_serial, order.serial)) for order in self.orders], pa.string()
                ),
                "wrong": pa.array([order.kind for order in self.orders], pa.string()),
            }
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        run = len(self.orders)
        same = f", of which {run} differ" if run != self.tried else ""
        verdict = (
            "each leaves the result of a serial order"
            if not self.wrong
            else f"{len(self.wrong)} are wrong"
        )
        count_text = plural(self.tried, "order")
        if self.tried < self.possible:
            count_text = f"The {self.tried} shortest of {plural(self.possible, 'order')}"
        yield f"{count_text} of the calls of two statements on {self.connector}{same}: {verdict}."
        for (name, code), count in sorted(self.conflicts.items()):
            yield f"  {name} fails with {code} in {plural(count, 'order')}"
        if waits := sum(any(turn.waited for turn in order.turns) for order in self.orders):
            yield f"  one statement waits for the other in {plural(waits, 'order')}"
        for label, order in self.shortest.items():
            yield ""
            count = sum(each.kind == label for each in self.wrong)
            yield (
                f"{label[0].upper()}{label[1:]}, in {plural(count, 'order')}: {order.about}. The"
                " shortest:"
            )
            yield f"  {'first':<40}second"
            yield from order.lines()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _serial(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


def _listed(rows: tuple[Row, ...]) -> str:
    return ", ".join(f"({', '.join(map(_value, row))})" for row in rows) or "no rows"


def _value(value: Any) -> str:
    return "NULL" if value is None else repr(value)


def _changes(ledger: tuple[LedgerRow, ...]) -> str:
    words = [
        f"{row.operation[0]} {_value((row.before or row.after or ('?',))[0])}"
        + (f" id {row.row_id}" if row.before else "")
        for row in ledger
    ]
    return ", ".join(words) or "nothing"
