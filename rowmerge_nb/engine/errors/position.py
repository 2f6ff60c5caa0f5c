"""Places of errors, counted in the whole text that a user ran: statements themselves begin at their first word."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["placed_in"]

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
    rowmerge_nb.errors.RowMergeError: SYNTAX_ERROR: line 2:1: mismatched input
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


def _within(text: str, statement: str, offset: int, line: int, column: int) -> Span:
    """Give the place in the whole text that a line and a column of the statement are."""
    index = sum(len(line) + 1 for line in statement.split("\n")[: line - 1]) + column - 1
    start = offset + index
    if index == len(statement):
        # What is missing at the end is missing behind the blanks and comments that follow.
        behind = _BLANKS.match(text, start)
        assert behind is not None
        start = behind.end()
    return Span.within(text, start, start)
