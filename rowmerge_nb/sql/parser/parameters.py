"""The values of ``?``, which are inserted into the text before it is parsed."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.sql.constants import NoConstantError, constant
from rowmerge_nb.sql.parser.tokens import Runs, TokenKind, tokenize
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_SHOWN: Final = 60
"""Characters of a value that errors show."""


def parameter(value: object) -> str:
    """Format a Python value as SQL.

    >>> parameter("it's"), parameter(-5)
    ("'it''s'", '(-5)')
    """
    try:
        text = constant(value)
    except NoConstantError as error:
        raise AnalysisError(
            f"The parameter {shorten(repr(value), _MOST_SHOWN, placeholder='...')} has no type of"
            f" SQL: {error}",
            code="INVALID_PARAMETER_USAGE",
            hint="docs/types.md says which values of Python are which of SQL.",
        ) from error
    # A second minus would begin a comment.
    return f"({text})" if text.startswith("-") else text


@dataclass(frozen=True)
class ParameterPlace:
    span: Span
    row_count: str
    clause: Span


def parameter_places(text: str) -> list[ParameterPlace]:
    tokens = tokenize(text, Runs.WHOLE)
    places = []
    for index, token in enumerate(tokens):
        if token.kind is TokenKind.SYMBOL and token.text == "?":
            before, last = tokens[max(index - 2, 0)], tokens[max(index - 1, 0)]
            if last.word in {"LIMIT", "OFFSET"}:
                places.append(ParameterPlace(token.span, last.word, last.span))
            elif before.word == "FETCH" and last.word in {"FIRST", "NEXT"}:
                places.append(ParameterPlace(token.span, "FETCH FIRST", before.span))
            else:
                places.append(ParameterPlace(token.span, "", token.span))
    return places


@dataclass(frozen=True)
class Filled:
    """A statement with values instead of its ``?``."""

    text: str
    pieces: tuple[tuple[int, int, int | None], ...]

    def origin(self, offset: int) -> tuple[int, int | None, int]:
        """Return a character's offset in the statement, the number of its value, and the offset in
        the value.

        >>> with_parameters("SELECT ?, x", ["12345"]).origin(14)
        (10, None, 0)
        >>> with_parameters("SELECT ?, x", ["12345"]).origin(8)
        (7, 0, 1)
        """
        begin, at, value = next(piece for piece in reversed(self.pieces) if piece[0] <= offset)
        return (at + offset - begin, None, 0) if value is None else (at, value, offset - begin)


def with_parameters(text: str, values: Sequence[str]) -> Filled:
    """Insert values (SQL texts) into a statement.

    >>> with_parameters("SELECT '?' LIMIT ?", ["5"]).text
    "SELECT '?' LIMIT 5"
    """
    spans = [span.span for span in parameter_places(text)]
    if len(spans) != len(values):
        raise AnalysisError(
            f"Incorrect number of parameters: expected {len(spans)} but found {len(values)}",
            code="INVALID_PARAMETER_USAGE",
            hint=(
                "Give a value for every ? of the statement: run(sql, parameters=[...]), or EXECUTE"
                " ... USING."
            ),
        ).at(Span.within(text, 0, len(text)))
    pieces_of_text: list[str] = []
    pieces: list[tuple[int, int, int | None]] = [(0, 0, None)]
    at = length = 0
    for number, (span, value) in enumerate(zip(spans, values, strict=True)):
        pieces_of_text += [text[at : span.start], value]
        at, begin = span.end, length + span.start - at
        length = begin + len(value)
        pieces += [(begin, span.start, number), (length, at, None)]
    return Filled("".join([*pieces_of_text, text[at:]]), tuple(pieces))
