"""What came of two statements: every order that was tried, what it left, and the shortest one of each kind that is wrong."""

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
    """A step of one of the statements.

    Args:
        side: whose: 0 or 1.
        step: the call that gives the step its name.
        waited: it came back only after a call of the other statement.
        failed: it raised an error, and the statement was rolled back.
    """

    side: int
    step: str
    waited: bool = False
    failed: bool = False


@dataclass(frozen=True)
class Order:
    """An order of the calls of two statements, and what it left.

    Args:
        turns: the calls that were made.
        rows: the rows that are left, sorted.
        committed: of both statements whether they were committed.
        failures: what ended them, with its code; ``""`` for nothing.
        ledger: the rows that each changes, with their row ids.
        serial: the orders in which the committed statements, one after the other, leave the same rows; none of a wrong one.
        kind: what is wrong: ``lost update``, ``doubled row``, ...; ``""`` for nothing.
        about: what is wrong, in a sentence.
        expected: the rows that a serial order leaves.
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
        """How long it is to read: how often the turn changes, and how many calls there are."""
        return changes_of_turn([turn.side for turn in self.turns]), len(self.turns)

    @property
    def text(self) -> str:
        """The calls in one line: ``1`` and ``2`` for whose they are, ``!`` behind one that failed, ``~`` behind one that waited."""
        return " ".join(f"{turn.side + 1}.{turn.step}{'~' * turn.waited}{'!' * turn.failed}" for turn in self.turns)

    def lines(self) -> Iterator[str]:
        """Return the calls one below the other, each statement in a column of its own, and the rows in the end."""
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
    """What `interleave` found. ``str()`` of it is a text; a notebook shows it.

    Args:
        connector: the connector's name.
        columns: the table's columns.
        before: the rows that every order began with.
        possible: how many orders there are.
        tried: how many of them were tried.
        orders: those that were run; orders that are one, since a statement has failed, are run once.
    """

    connector: str
    columns: tuple[str, ...]
    before: tuple[Row, ...]
    possible: int
    tried: int
    orders: tuple[Order, ...]

    @property
    def wrong(self) -> tuple[Order, ...]:
        """The orders that leave what no serial order of the committed statements leaves."""
        return tuple(order for order in self.orders if order.kind)

    @cached_property
    def shortest(self) -> dict[str, Order]:
        """The shortest wrong order of every kind."""
        found: dict[str, Order] = {}
        for order in sorted(self.wrong, key=lambda order: order.length):
            found.setdefault(order.kind, order)
        return found

    @property
    def conflicts(self) -> dict[tuple[str, str], int]:
        """In how many orders which statement failed with which code."""
        counts: dict[tuple[str, str], int] = {}
        for order in self.orders:
            for name, failure in zip(NAMES, order.failures, strict=True):
                if failure:
                    key = (name, failure.partition(":")[0])
                    counts[key] = counts.get(key, 0) + 1
        return counts

    @property
    def table(self) -> pa.Table:
        """All orders as a table: the calls, what became of each statement, the rows that are left, and the verdict."""
        ends = [
            [failure.partition(":")[0] if failure else "committed" if committed else "open" for failure, committed in pairs]
            for pairs in (zip(order.failures, order.committed, strict=True) for order in self.orders)
        ]
        return pa.table(
            {
                "order": [order.text for order in self.orders],
                "first": pa.array([end[0] for end in ends], pa.string()),
                "second": pa.array([end[1] for end in ends], pa.string()),
                "rows": [_listed(order.rows) for order in self.orders],
                "serial": pa.array([" or ".join(map(_serial, order.serial)) for order in self.orders], pa.string()),
                "wrong": pa.array([order.kind for order in self.orders], pa.string()),
            }
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        run = len(self.orders)
        same = f", of which {run} differ" if run != self.tried else ""
        verdict = "each leaves what one statement after the other leaves" if not self.wrong else f"{len(self.wrong)} are wrong"
        tried = plural(self.tried, "order")
        if self.tried < self.possible:
            tried = f"The {self.tried} shortest of {plural(self.possible, 'order')}"
        yield f"{tried} of the calls of two statements on {self.connector}{same}: {verdict}."
        for (name, code), count in sorted(self.conflicts.items()):
            yield f"  {name} fails with {code} in {plural(count, 'order')}"
        if waits := sum(any(turn.waited for turn in order.turns) for order in self.orders):
            yield f"  one statement waits for the other in {plural(waits, 'order')}"
        for kind, order in self.shortest.items():
            yield ""
            count = sum(each.kind == kind for each in self.wrong)
            yield f"{kind[0].upper()}{kind[1:]}, in {plural(count, 'order')}: {order.about}. The shortest:"
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
    """Return what a statement is about to change, by the row ids that it has read."""
    words = [
        f"{row.operation[0]} {_value((row.before or row.after or ('?',))[0])}" + (f" id {row.row_id}" if row.before else "")
        for row in ledger
    ]
    return ", ".join(words) or "nothing"
