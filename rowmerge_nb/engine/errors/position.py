"""Places of errors, counted in the whole text that a user ran: statements themselves begin at their first word."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["placed_in", "point_at"]


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
        if error.line is not None and error.column is not None:
            lines = statement.split("\n")
            index = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
            place = offset + index
            if index == len(statement):
                # What is missing at the end is missing behind the blanks that follow.
                place += len(text[place:]) - len(text[place:].lstrip())
            span = Span.within(text, place, place)
            error.line, error.column = span.line, span.column
        error.statement = text
        raise


def point_at(error: RowMergeError, span: Span | None) -> None:
    """Say in an error where in the statement it is; without a place the error stays as it is.

    >>> error = RowMergeError("Division by zero", code="DIVISION_BY_ZERO")
    >>> point_at(error, Span(7, 12, 1, 8))
    >>> error.line, error.column, error.length
    (1, 8, 5)
    """
    if span is not None:
        error.line, error.column, error.length = span.line, span.column, span.end - span.start
