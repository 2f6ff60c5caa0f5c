"""The tokens of Trino's SQL, each with its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from rowmerge_nb.sql.statements import Span

__all__ = ["RESERVED", "Kind", "Token", "tokenize"]


class Kind(Enum):
    """What a token is; the grammar only ever asks for these."""

    WORD = "word"
    QUOTED = "quoted identifier"
    BACKQUOTED = "backquoted identifier"
    DIGITS_FIRST = "identifier that starts with a digit"
    STRING = "string"
    UNICODE_STRING = "unicode string"
    BINARY = "binary"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    SYMBOL = "symbol"
    UNKNOWN = "unknown"
    END = "end"


RESERVED: Final = frozenset(
    [
        "ALTER",
        "AND",
        "AS",
        "BETWEEN",
        "BY",
        "CASE",
        "CAST",
        "CONSTRAINT",
        "CREATE",
        "CROSS",
        "CUBE",
        "CURRENT_CATALOG",
        "CURRENT_DATE",
        "CURRENT_PATH",
        "CURRENT_ROLE",
        "CURRENT_SCHEMA",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "CURRENT_USER",
        "DEALLOCATE",
        "DELETE",
        "DESCRIBE",
        "DISTINCT",
        "DROP",
        "ELSE",
        "END",
        "ESCAPE",
        "EXCEPT",
        "EXECUTE",
        "EXISTS",
        "EXTRACT",
        "FALSE",
        "FOR",
        "FROM",
        "FULL",
        "GROUP",
        "GROUPING",
        "HAVING",
        "IN",
        "INNER",
        "INSERT",
        "INTERSECT",
        "INTO",
        "IS",
        "JOIN",
        "JSON_ARRAY",
        "JSON_EXISTS",
        "JSON_OBJECT",
        "JSON_QUERY",
        "JSON_TABLE",
        "JSON_VALUE",
        "LEFT",
        "LIKE",
        "LISTAGG",
        "LOCALTIME",
        "LOCALTIMESTAMP",
        "NATURAL",
        "NORMALIZE",
        "NOT",
        "NULL",
        "ON",
        "OR",
        "ORDER",
        "OUTER",
        "PREPARE",
        "RECURSIVE",
        "RIGHT",
        "ROLLUP",
        "SELECT",
        "SKIP",
        "TABLE",
        "THEN",
        "TRIM",
        "TRUE",
        "UESCAPE",
        "UNION",
        "UNNEST",
        "USING",
        "VALUES",
        "WHEN",
        "WHERE",
        "WITH",
    ]
)
"""Words that are never names unless they stand in double quotes."""

# Possessive quantifiers (*+) keep what they took: without them a long row of digits is tried in every division.
_PATTERN: Final = re.compile(
    r"""(?P<space>\s+|--[^\r\n]*\r?\n?|/\*.*?\*/)
    |(?P<unicode_string>[uU]&'(?:[^']|'')*')
    |(?P<binary>[xX]'(?:[^']|'')*')
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*")
    |(?P<backquoted>`(?:[^`]|``)*`)
    |(?P<double>(?:[0-9](?:_?[0-9])*+\.?(?:[0-9](?:_?[0-9])*+)?+|\.[0-9](?:_?[0-9])*+)[eE][+-]?[0-9]++)
    |(?P<decimal>[0-9](?:_?[0-9])*+\.(?:[0-9](?:_?[0-9])*+)?|\.[0-9](?:_?[0-9])*+)
    |(?P<integer>0[xX](?:_?[0-9A-Fa-f])++|0[oO](?:_?[0-7])++|0[bB](?:_?[01])++|[0-9](?:_?[0-9])*+)
    |(?P<word>[A-Za-z_][A-Za-z0-9_@:]*)
    |(?P<symbol><>|!=|<=|>=|\|\||->|=>|[-+*/%=<>(),.;?:\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_DIGITS_FIRST: Final = re.compile(r"[0-9][A-Za-z0-9_@:]+")
_NUMBERS: Final = frozenset({"integer", "decimal", "double"})


@dataclass(frozen=True)
class Token:
    r"""A token: its kind, its text as written, and where it stands.

    >>> tokenize('t."Key"')[2].name
    'Key'
    """

    kind: Kind
    text: str
    span: Span

    @cached_property
    def word(self) -> str:
        """The text as keywords are compared; ``""`` for what cannot be a keyword."""
        return self.text.upper() if self.kind is Kind.WORD else self.text if self.kind is Kind.SYMBOL else ""

    @property
    def name(self) -> str:
        """The identifier that the token spells, quotes taken off."""
        return self.text[1:-1].replace('""', '"') if self.kind is Kind.QUOTED else self.text

    @property
    def string(self) -> str:
        """The value of a string literal without escapes, quotes taken off."""
        return self.text[self.text.index("'") + 1 : -1].replace("''", "'")


def tokenize(text: str) -> tuple[Token, ...]:
    """Cut a text into tokens, spaces and comments left out; the last one is of kind END.

    A character that begins no token of the language becomes a token of kind UNKNOWN: the grammar refuses it where it stands.

    >>> [token.text for token in tokenize("a <> 'it''s' -- no more")]
    ['a', '<>', "'it''s'", '']
    """
    tokens = []
    place, line, line_start = 0, 1, 0
    last_close = text.rfind("*/")
    while place < len(text):
        # A comment that is never closed is not looked through to the end of the text again and again.
        unclosed = text.startswith("/*", place) and last_close < place + 2
        kind, end = (Kind.UNKNOWN, place + 1) if unclosed else _next(text, place)
        if kind is not None:
            tokens.append(Token(kind, text[place:end], Span(place, end, line, place - line_start + 1)))
        newlines = text.count("\n", place, end)
        if newlines:
            line, line_start = line + newlines, text.rindex("\n", place, end) + 1
        place = end
    tokens.append(Token(Kind.END, "", Span(place, place, line, place - line_start + 1)))
    return tuple(tokens)


def _next(text: str, place: int) -> tuple[Kind | None, int]:
    match = _PATTERN.match(text, place)
    if match is None:
        return Kind.UNKNOWN, place + 1
    group = str(match.lastgroup)
    if group == "space":
        return None, match.end()
    if group in _NUMBERS:
        # The longest token wins: 1s is an identifier that starts with a digit, 1E5 and 1.5 are numbers.
        longer = _DIGITS_FIRST.match(text, place)
        if longer is not None and longer.end() > match.end():
            return Kind.DIGITS_FIRST, longer.end()
    return Kind[group.upper()], match.end()
