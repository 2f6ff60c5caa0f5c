"""The values of ``?``: they stand in the statement's text before it is read, so that whoever sees the statement sees them."""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Final

from rowmerge_nb.errors import AnalysisError
from rowmerge_nb.sql.constants import NoConstantError, constant
from rowmerge_nb.sql.parser.tokens import Kind, Runs, tokenize
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["parameter", "with_parameters"]

_MOST_SHOWN: Final = 60
"""So many characters of a value are shown in an error."""


def parameter(value: object) -> str:
    """Write a value of Python as it stands in place of a ``?``.

    Raises:
        AnalysisError: INVALID_PARAMETER_USAGE for a value that no type of SQL has.

    >>> parameter("it's"), parameter(-5)
    ("'it''s'", '(-5)')
    """
    try:
        text = constant(value)
    except NoConstantError as error:
        msg = f"The parameter {shorten(repr(value), _MOST_SHOWN, placeholder='...')} has no type of SQL: {error}"
        hint = "docs/types.md says which values of Python are which of SQL."
        raise AnalysisError(msg, code="INVALID_PARAMETER_USAGE", hint=hint) from error
    # Behind another minus it would begin a comment.
    return f"({text})" if text.startswith("-") else text


def with_parameters(text: str, values: Sequence[str]) -> str:
    """Put values into a statement.

    Args:
        text: the statement.
        values: an expression for every ``?``, as SQL.

    Raises:
        AnalysisError: INVALID_PARAMETER_USAGE if there are more or fewer values than places for them.

    >>> with_parameters("SELECT '?' LIMIT ?", ["5"])
    "SELECT '?' LIMIT 5"
    """
    places = [token.span for token in tokenize(text, Runs.WHOLE) if token.kind is Kind.SYMBOL and token.text == "?"]
    if len(places) != len(values):
        msg = f"Incorrect number of parameters: expected {len(places)} but found {len(values)}"
        hint = "Give a value for every ? of the statement: run(sql, parameters=[...]), or EXECUTE ... USING."
        raise AnalysisError(msg, code="INVALID_PARAMETER_USAGE", hint=hint).at(Span.within(text, 0, len(text)))
    pieces, at = [], 0
    for place, value in zip(places, values, strict=True):
        pieces += [text[at : place.start], value]
        at = place.end
    return "".join([*pieces, text[at:]])
