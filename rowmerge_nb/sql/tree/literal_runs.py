"""Long runs of literals, processed without a token per literal.

One regular expression matches a run, another splits it. Positions are computed only for errors.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from itertools import islice
from typing import Final

from rowmerge_nb.sql.tree.statements import Span

_SHORTEST: Final = 64
"""Runs with fewer commas are read token by token."""
_COMMENT: Final = r"--[^\r\n]*+\r?\n?|/\*(?:[^*]|\*(?!/)){0,1000}+\*/"
_BLANK: Final = rf"(?:[ \r\n\t]++|{_COMMENT})*+"
_DIGITS: Final = r"[0-9](?:_?[0-9])*+"
_TEXT: Final = r"'[^']*+(?:''[^']*+)*+'"
_NUMBER: Final = rf"[+-]?+(?:{_DIGITS}(?:\.(?:{_DIGITS})?+)?+|\.{_DIGITS})(?:[eE][+-]?+[0-9]++)?+"
_MOMENT: Final = (
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:["
    r" ][0-9]{1,2}:[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]{1,6})?+)?+)?+"
)
# Typed literals, except timestamps with a zone or with more than microseconds, which need further
# analysis.
_TYPED: Final = rf"(?:(?i:DATE|TIME|DECIMAL|BIGINT|INTEGER|VARCHAR|UUID)\s*+{_TEXT}|(?i:TIMESTAMP)\s*+'{_MOMENT}'|[xX]'(?:[0-9A-Fa-f]{{2}})*+')"
_LITERAL: Final = rf"(?:{_TEXT}|{_NUMBER}|(?i:NULL|TRUE|FALSE)|{_TYPED})(?![\w@:.'])"
_LIST: Final = rf"{_LITERAL}(?:{_BLANK},{_BLANK}{_LITERAL})*+"

_COMMA: Final = re.compile(rf"{_BLANK},{_BLANK}")
_ENDED: Final = re.compile(rf"{_BLANK}(?:[,);]|\Z)")
# Includes what follows a literal, so that text in a comment is not mistaken for a literal.
_CELL: Final = re.compile(rf"(?:[\s(),]++|{_COMMENT})*+({_LITERAL})(?:[\s(),]++|{_COMMENT})*+")
_ROW: Final = re.compile(rf"\({_BLANK}{_LIST}{_BLANK}\)")
_ITEMS: Final = re.compile(_LIST)
_PART: Final = re.compile(_LITERAL)
_LONG: Final = re.compile(r"[0-9_]{19}")
_LONG_INTEGER: Final = re.compile(r"[+-]?+[0-9_]{19,}+")


@cache
def _rows(width: int) -> re.Pattern[str]:
    row = rf"\({_BLANK}{_LITERAL}(?:{_BLANK},{_BLANK}{_LITERAL}){{{width - 1}}}+{_BLANK}\)"
    return re.compile(rf"{row}(?:{_BLANK},{_BLANK}{row})*+")


def find_run(text: str, start: int, *, rows: bool) -> int:
    """Find a long run of literals or, with ``rows``, of rows in parentheses, at ``start``, after
    blanks and comments.

    Returns:
        The offset after the run; or, without a long run, the negated offset up to which there is
        none.
    """
    pattern = _ITEMS
    if rows and text.startswith("(", start):
        first = _ROW.match(text, start)
        if first is None:
            return -start
        pattern = _rows(len(_CELL.findall(first[0])))
    match = pattern.match(text, start)
    if match is None:
        return -start
    end = match.end()
    if _ENDED.match(text, end) is None:
        # The last part belongs to a longer expression, such as (1, 2) = (3, 4), or has an alias.
        match = pattern.match(text, start, end - 1)
        if match is None or _COMMA.match(text, match.end()) is None:
            return -end
        end = match.end()
    return end if text.count(",", start, end) >= _SHORTEST else -end


def run_ends(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the end of a run's first part, and the start of its last.

    >>> run_ends("VALUES (1, 2), (3, 4), (5, 6)", 7, 29)
    (13, 23)
    """
    row = text[start] == "("
    part = _ROW if row else _PART
    first = part.match(text, start)
    assert first is not None
    pattern = _rows(len(_CELL.findall(first[0]))) if row else _ITEMS
    before = pattern.match(text, start, end - 1)
    comma = _COMMA.match(text, before.end()) if before is not None else None
    return first.end(), comma.end() if comma is not None else start


class LiteralRun:
    def __init__(self, text: str, span: Span) -> None:
        self._text = text
        self.span = span

    @cached_property
    def texts(self) -> list[str]:
        return _CELL.findall(self._text, self.span.start, self.span.end)

    @cached_property
    def width(self) -> int:
        if self._text[self.span.start] != "(":
            return 1
        first = _ROW.match(self._text, self.span.start)
        assert first is not None
        return len(_CELL.findall(first[0]))

    @property
    def count(self) -> int:
        return len(self.texts) // self.width

    def column(self, index: int) -> list[str]:
        return self.texts[index :: self.width]

    def long_integers(self) -> list[int]:
        if _LONG.search(self._text, self.span.start, self.span.end) is None:
            return []
        return [index for index, text in enumerate(self.texts) if _LONG_INTEGER.fullmatch(text)]

    def span_of(self, index: int) -> Span:
        match = next(
            islice(_CELL.finditer(self._text, self.span.start, self.span.end), index, None)
        )
        return Span.within(self._text, match.start(1), match.end(1))
