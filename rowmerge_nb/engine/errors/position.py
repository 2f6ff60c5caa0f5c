"""Places of errors, counted in the whole text that a user ran: statements themselves begin at their first word."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.sql.parser.parameters import Filled
    from rowmerge_nb.sql.tree.statements import Execute

_BLANKS: Final = re.compile(r"(?s)(?:\s++|--[^\n]*+|/\*.*?\*/)*+")
"""Blanks and comments."""


@contextmanager
def placed_in(text: str, statement: str, offset: int) -> Iterator[None]:
    r"""Count the places of errors in a whole text instead of in one of its statements.

    Args:
        text: the whole text.
        statement: the statement.
        offset: where it begins in the text.

    >>> with placed_in("-- a comment\nSELEC 1", "SELEC 1", 13):
    ...     raise RowMergeError("mismatched input", code="SYNTAX_ERROR", line=1, column=1)
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: SYNTAX_ERROR: line 2:1: mismatched input
    """
    try:
        yield
    except RowMergeError as error:
        if error.statement not in {None, statement}:
            # It is about another text, and its place is one in that.
            raise
        about = error.about
        if error.line is not None and error.column is not None:
            error.at(_within(text, statement, offset, error.line, error.column), error.length)
        if about is not None:
            span = _within(text, statement, offset, *about[:2])
            error.about = (span.line, span.column, about[2])
        error.statement = text
        raise


@contextmanager
def behind(prefix: str, text: str) -> Iterator[None]:
    """Count the places of errors in the text that a user gave, where it was run behind a few words of ours.

    Args:
        prefix: the words, a part of a line.
        text: the text.

    >>> with behind("EXPLAIN ", "SELEC 1"):
    ...     raise RowMergeError("mismatched input", code="SYNTAX_ERROR", line=1, column=9)
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: SYNTAX_ERROR: line 1:1: mismatched input
    """
    try:
        yield
    except RowMergeError as error:
        if error.statement is not None and not error.statement.startswith(prefix):
            # It is about another text, as that of a prepared statement.
            raise
        if error.line == 1 and error.column is not None:
            error.column = max(error.column - len(prefix), 1)
        if error.about is not None and error.about[0] == 1:
            error.about = (1, max(error.about[1] - len(prefix), 1), error.about[2])
        error.statement = text
        raise


@dataclass(frozen=True)
class Executed:
    """What is run in place of an EXECUTE IMMEDIATE, whose places Trino counts in the text of that.

    Args:
        statement: the EXECUTE IMMEDIATE.
        filled: the statement within it, with its values.
        text: the whole text that the user ran.
        offset: where the EXECUTE IMMEDIATE begins in it.
    """

    statement: Execute
    filled: Filled
    text: str
    offset: int

    @contextmanager
    def placed(self, run: str) -> Iterator[None]:
        """Set the positions of errors to Trino's; the position that is displayed stays that in the text that runs.

        Args:
            run: the whole text with the statement in place of the EXECUTE IMMEDIATE.
        """
        try:
            yield
        except RowMergeError as error:
            if error.line is None or error.column is None or error.statement not in {None, run}:
                raise
            error.about = error.shown  # type: ignore[assignment]
            index = sum(len(line) + 1 for line in run.split("\n")[: error.line - 1]) + error.column - 1
            error.line, error.column = self._place(index - self.offset)
            raise

    def _place(self, offset: int) -> tuple[int, int]:
        """Return line and column in the whole text of what stands at an offset in the statement with its values."""
        at, number, inside = self.filled.origin(offset)
        first = Span.within(self.text, self.offset, self.offset)
        inner = self.statement.inner
        assert inner is not None
        value = None if number is None else self.statement.values[number]
        if value is None or value.is_literal:
            # The literal is read as a text of its own, which begins behind its quote.
            span = Span.within(inner.value, at, at)
            line, column = inner.span.line + span.line - 1, span.column + (inner.span.column if span.line == 1 else 0)
        else:
            # The statement has it in parentheses.
            start = value.span.start + max(inside - 1, 0)
            span = Span.within(self.statement.text, start, start)
            line, column = span.line, span.column
        return line + first.line - 1, column + (first.column - 1 if line == 1 else 0)


def _within(text: str, statement: str, offset: int, line: int, column: int) -> Span:
    """Return the place in the whole text that a line and a column of the statement are."""
    index = sum(len(line) + 1 for line in statement.split("\n")[: line - 1]) + column - 1
    start = offset + index
    if index == len(statement):
        # What is missing at the end is missing behind the blanks and comments that follow.
        behind = _BLANKS.match(text, start)
        assert behind is not None
        start = behind.end()
    return Span.within(text, start, start)
