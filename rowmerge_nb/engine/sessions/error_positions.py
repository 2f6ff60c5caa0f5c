"""Conversion of error positions from a statement to the whole text that the user ran."""

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
    r"""Convert positions of errors in `statement`, which begins at `offset` of `text`.

    >>> with placed_in("-- a comment\nSELEC 1", "SELEC 1", 13):
    ...     raise RowMergeError("mismatched input", code="SYNTAX_ERROR", line=1, column=1)
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: SYNTAX_ERROR: line 2:1: mismatched input
    """
    try:
        yield
    except RowMergeError as error:
        if error.statement not in {None, statement}:
            # The position refers to another text.
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
    """Convert positions of errors for a text that was run after a prefix on its first line.

    >>> with behind("EXPLAIN ", "SELEC 1"):
    ...     raise RowMergeError("mismatched input", code="SYNTAX_ERROR", line=1, column=9)
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: SYNTAX_ERROR: line 1:1: mismatched input
    """
    try:
        yield
    except RowMergeError as error:
        if error.statement is not None and not error.statement.startswith(prefix):
            # The position refers to another text, such as a prepared statement.
            raise
        if error.line == 1 and error.column is not None:
            error.column = max(error.column - len(prefix), 1)
        if error.about is not None and error.about[0] == 1:
            error.about = (1, max(error.about[1] - len(prefix), 1), error.about[2])
        error.statement = text
        raise


@dataclass(frozen=True)
class Executed:
    """The expansion of an EXECUTE IMMEDIATE, in whose text Trino counts positions."""

    statement: Execute
    filled_statement: Filled
    text: str
    offset: int

    @contextmanager
    def placed(self, run: str) -> Iterator[None]:
        """Set the positions of errors to Trino's; the displayed position remains that in `run`, the
        expanded text.
        """
        try:
            yield
        except RowMergeError as error:
            if error.line is None or error.column is None or error.statement not in {None, run}:
                raise
            error.about = error.shown  # type: ignore[assignment]
            index = (
                sum(len(line) + 1 for line in run.split("\n")[: error.line - 1]) + error.column - 1
            )
            error.line, error.column = self._place(index - self.offset)
            raise

    def _place(self, offset: int) -> tuple[int, int]:
        at, number, inside = self.filled_statement.origin(offset)
        first = Span.within(self.text, self.offset, self.offset)
        inner = self.statement.inner
        assert inner is not None
        value = None if number is None else self.statement.values[number]
        if value is None or value.is_literal:
            # The literal is a text of its own, which begins after its quote.
            span = Span.within(inner.value, at, at)
            line, column = (
                inner.span.line + span.line - 1,
                span.column + (inner.span.column if span.line == 1 else 0),
            )
        else:
            # The expansion adds parentheses.
            start = value.span.start + max(inside - 1, 0)
            span = Span.within(self.statement.text, start, start)
            line, column = span.line, span.column
        return line + first.line - 1, column + (first.column - 1 if line == 1 else 0)


def _within(text: str, statement: str, offset: int, line: int, column: int) -> Span:
    index = sum(len(line) + 1 for line in statement.split("\n")[: line - 1]) + column - 1
    start = offset + index
    if index == len(statement):
        # An error at the end is reported after the blanks and comments that follow.
        behind = _BLANKS.match(text, start)
        assert behind is not None
        start = behind.end()
    return Span.within(text, start, start)
