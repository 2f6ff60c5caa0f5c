"""Hints on names with blanks or signs, such as Part No. or Price (£), without their double quotes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import Edit, Hint
from rowmerge_nb.base.names import quoted
from rowmerge_nb.sql.functions.foreign_names import TYPES
from rowmerge_nb.sql.parser.foreign_forms import STRUCTURE
from rowmerge_nb.sql.parser.tokens import RESERVED, TokenKind, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.parser.tokens import Token

_BRACKETED: Final = re.compile(r"(?<![\w\"\])])(?<!(?i:ARRAY) )\[([^\W\d][^\[\]'\"\n]*)\]")
"""A name as SQL Server writes it: an index of an array has a value before the bracket."""
_LAST: Final = re.compile(
    r"\.(?=[\s=<>,)]|$)|[#?$]+(?!\w)|\s?\([^()\w]+\)|\s\((?:[A-Z]{3}|[kcm]?[gml]|h|s|min)\)"
)
"""What ends a name behind its last word: a full stop, a sign, or a unit such as (£) or (kg)."""
_HALVES: Final = frozenset(["ORDER", "GROUP"])
"""Reserved words that begin names such as Order Date, where no BY follows."""
_TYPES: Final = frozenset(
    [*TYPES, "bigint", "boolean", "date", "decimal", "double", "integer", "timestamp", "varchar"]
)
"""What follows a column's name in a definition."""


def bracketed_name_hint(text: str, token: Token) -> Edit | None:
    matches = list(_BRACKETED.finditer(text))
    for match in matches:
        if match.start() <= token.span.start < match.end():
            if match[1].lower() == "dbo" and text[match.end() : match.end() + 1] == ".":
                return Edit("", _without_brackets(text), f"Leave {match[0]}. out.")
            others = len({other[1] for other in matches}) > 1
            more = ", and other names in brackets likewise" if others else ""
            hint = f"Write {quoted(match[1])} instead of {match[0]}{more}."
            return Edit("", _without_brackets(text), hint)
    return None


def _without_brackets(text: str) -> str:
    """Return the text with all names in double quotes, and without dbo."""
    starts = {token.span.start for token in tokenize(text)}

    def name(match: re.Match[str]) -> str:
        if match.start() not in starts:
            return match[0]
        is_schema = (match[1] or "dbo").lower() == "dbo" and match[0].endswith(".")
        return "" if is_schema else f"{quoted(match[1])}{match[2]}"

    return re.sub(rf"(?i:\bdbo\.)|{_BRACKETED.pattern}(\.?)", name, text)


def split_name_hint(
    text: str, tokens: Sequence[Token], index: int, *, separable: bool
) -> Hint | None:
    """Return a hint if words before the token at an index, and it, may be one name.

    ``separable`` says that the words may be a list without its commas as well.
    """
    if index and tokens[index - 1].text == "(":
        index -= 1
    token, before = tokens[index], tokens[max(index - 1, 0)]
    if before.word in _HALVES and _is_part(token):
        name = quoted(f"{before.text} {token.text}")
        return Edit(
            before.word,
            f"{before.word} BY",
            f"Write {{new}}; a name such as {name} needs double quotes.",
        )
    first = index
    while first and _is_part(tokens[first - 1]):
        first -= 1
    last = index if _is_part(token) else index - 1
    while last >= index and _is_part(tokens[last + 1]):
        last += 1
    if last > first and tokens[last].text.lower() in _TYPES:
        last -= 1
        separable = last > first + 1
    if last < first:
        return None
    end = tokens[last].span.end
    ending = _LAST.match(text, end)
    if ending is not None:
        end = ending.end()
    elif first in {index, last} or not _is_part(token):
        return None
    name = re.sub(r"\s+", " ", text[tokens[first].span.start : end])
    commas = " Or is a comma missing?" if separable and ending is None else ""
    return f"Is this one name? Write it in double quotes: {quoted(name)}.{commas}"


def _is_part(token: Token) -> bool:
    return (
        token.kind is TokenKind.WORD and token.word not in RESERVED and token.word not in STRUCTURE
    )
