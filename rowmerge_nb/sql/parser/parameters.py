"""The values of ``?``: they stand in the statement's text before it is read, so that whoever sees the statement sees them."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.sql.constants import NoConstantError, constant
from rowmerge_nb.sql.parser.tokens import Kind, Runs, tokenize
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        raise AnalysisError(
            f"The parameter {shorten(repr(value), _MOST_SHOWN, placeholder='...')} has no type of SQL: {error}",
            code="INVALID_PARAMETER_USAGE",
            hint="docs/types.md says which values of Python are which of SQL.",
        ) from error
    # Behind another minus it would begin a comment.
    return f"({text})" if text.startswith("-") else text


@dataclass(frozen=True)
class Place:
    """A ``?`` of a statement.

    Args:
        span: where it stands.
        row_count: the clause whose number of rows it is: ``LIMIT``, ``OFFSET`` or ``FETCH FIRST``; ``""`` elsewhere.
        clause: where that begins, or the ``?`` itself.
    """

    span: Span
    row_count: str
    clause: Span


def parameter_places(text: str) -> list[Place]:
    """Return the places of a statement's parameters.

    >>> [place.row_count for place in parameter_places("SELECT ?, '?' FROM t OFFSET ? FETCH NEXT ? ROWS ONLY")]
    ['', 'OFFSET', 'FETCH FIRST']
    """
    tokens = tokenize(text, Runs.WHOLE)
    places = []
    for index, token in enumerate(tokens):
        if token.kind is Kind.SYMBOL and token.text == "?":
            before, last = tokens[max(index - 2, 0)], tokens[max(index - 1, 0)]
            if last.word in {"LIMIT", "OFFSET"}:
                places.append(Place(token.span, last.word, last.span))
            elif before.word == "FETCH" and last.word in {"FIRST", "NEXT"}:
                places.append(Place(token.span, "FETCH FIRST", before.span))
            else:
                places.append(Place(token.span, "", token.span))
    return places


@dataclass(frozen=True)
class Filled:
    """A statement with values in place of its ``?``.

    Args:
        text: the statement with its values.
        pieces: where each piece of it begins there, where in the statement, and which value it is, which stands for the ``?`` there; None for
            the statement's own text.
    """

    text: str
    pieces: tuple[tuple[int, int, int | None], ...]

    def origin(self, offset: int) -> tuple[int, int | None, int]:
        """Return where something of the text comes from.

        Returns:
            The offset in the statement; of something in a value that of its ``?``, the value's number and the offset in it.

        >>> with_parameters("SELECT ?, x", ["12345"]).origin(14)
        (10, None, 0)
        >>> with_parameters("SELECT ?, x", ["12345"]).origin(8)
        (7, 0, 1)
        """
        begin, at, value = next(piece for piece in reversed(self.pieces) if piece[0] <= offset)
        return (at + offset - begin, None, 0) if value is None else (at, value, offset - begin)


def with_parameters(text: str, values: Sequence[str]) -> Filled:
    """Put values into a statement.

    Args:
        text: the statement.
        values: an expression for every ``?``, as SQL.

    Raises:
        AnalysisError: INVALID_PARAMETER_USAGE if there are more or fewer values than places for them.

    >>> with_parameters("SELECT '?' LIMIT ?", ["5"]).text
    "SELECT '?' LIMIT 5"
    """
    places = [place.span for place in parameter_places(text)]
    if len(places) != len(values):
        raise AnalysisError(
            f"Incorrect number of parameters: expected {len(places)} but found {len(values)}",
            code="INVALID_PARAMETER_USAGE",
            hint="Give a value for every ? of the statement: run(sql, parameters=[...]), or EXECUTE ... USING.",
        ).at(Span.within(text, 0, len(text)))
    written: list[str] = []
    pieces: list[tuple[int, int, int | None]] = [(0, 0, None)]
    at = length = 0
    for number, (place, value) in enumerate(zip(places, values, strict=True)):
        written += [text[at : place.start], value]
        at, begin = place.end, length + place.start - at
        length = begin + len(value)
        pieces += [(begin, place.start, number), (length, at, None)]
    return Filled("".join([*written, text[at:]]), tuple(pieces))
