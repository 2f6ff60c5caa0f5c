"""The WHEN clauses of a statement, and their conditions, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rowmerge_nb.spi.operations import Operation


@dataclass(frozen=True)
class Term:
    """A condition, or a part of one with its own truth value.

    Args:
        operator: ``AND``, ``OR`` or ``NOT``; ``""`` for a leaf.
        reads: the columns it reads: ``source`` or ``target``, and the name within the witness.
        strict: NULL operands make it unknown, so an unknown result is due to a NULL.
        has_difference: it compares values by ``<>``, which is unknown beside NULL.
    """

    text: str
    operator: str = ""
    terms: tuple[Term, ...] = ()
    reads: tuple[tuple[str, str], ...] = ()
    strict: bool = False
    has_difference: bool = False

    def walk(self) -> Iterator[Term]:
        """Yield the condition and its parts in preorder, the order of `PageSample.truths`."""
        yield self
        for term in self.terms:
            yield from term.walk()


@dataclass(frozen=True)
class ClauseRecord:
    """A WHEN clause and its number of joined rows; record -1 counts rows for which no clause fired.

    ``matched`` is False for both kinds of NOT MATCHED; see ``by_source``. DO NOTHING has the
    operation NONE. ``condition`` is the AND condition, or WHERE of UPDATE and DELETE. ``values``
    pairs assigned columns with SQL.
    """

    number: int
    operation: Operation
    matched: bool | None
    text: str
    line: int
    rows: int | None
    conditional: bool = False
    by_source: bool = False
    head: str = ""
    condition: Term | None = None
    values: tuple[tuple[str, str], ...] = ()
