"""The tokens of Trino's SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from rowmerge_nb.sql.tree.depth import DEEPEST, too_deep
from rowmerge_nb.sql.tree.literal_runs import find_run, run_ends
from rowmerge_nb.sql.tree.statements import Span


class TokenKind(Enum):
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
    LITERALS = "run of literals"
    UNKNOWN = "unknown"
    END = "end"


class Runs(Enum):
    """The treatment of long runs of literals behind VALUES and IN.

    One token per run is enough for parsing; errors need the separate tokens of its first and last
    part.
    """

    WHOLE = "one token"
    ENDS = "the tokens of the first and the last part"
    TOKENS = "all tokens"


RESERVED: Final = frozenset(
    [
        "ALTER",
        "AND",
        "AS",
        "AUTO",
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
        "OVERLAPS",
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
"""Words that are names only in double quotes."""

# Possessive quantifiers (*+) prevent backtracking through long rows of digits.
_PATTERN: Final = re.compile(
    r"""(?P<space>[ \r\n\t]+|--[^\r\n]*\r?\n?|/\*.*?\*/)
    |(?P<unicode_string>[uU]&'(?:[^']|'')*')
    |(?P<binary>[xX]'(?:[^']|'')*')
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*")
    |(?P<backquoted>`(?:[^`]|``)*`)
    |(?P<double>(?:[0-9](?:_?[0-9])*+\.?(?:[0-9](?:_?[0-9])*+)?+|\.[0-9](?:_?[0-9])*+)[eE][+-]?[0-9]++)
    |(?P<decimal>[0-9](?:_?[0-9])*+\.(?:[0-9](?:_?[0-9])*+)?|\.[0-9](?:_?[0-9])*+)
    |(?P<integer>0[xX](?:_?[0-9A-Fa-f])++|0[oO](?:_?[0-7])++|0[bB](?:_?[01])++|[0-9](?:_?[0-9])*+)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<symbol><>|!=|<=|>=|\|\||->|=>|::|[-+*/%=<>(),.;?:\[\]{}@])""",
    re.VERBOSE | re.DOTALL,
)
_OPENING: Final = frozenset("([")
_CLOSING: Final = frozenset(")]")
_DIGITS_FIRST: Final = re.compile(r"[0-9][A-Za-z0-9_]+")
_UNREADABLE: Final = re.compile(r"""[^A-Za-z0-9_ \r\n\t'"`<>!=|+\-*/%(),.;?:\[\]{}@]+""")
"""Characters that begin no token."""
_BLANKS: Final = " \r\n\t"
NUMBERS: Final = frozenset({"integer", "decimal", "double"})


@dataclass(frozen=True)
class Token:
    r"""A token and its position.

    >>> tokenize('t."Key"')[2].name
    'Key'
    """

    kind: TokenKind
    text: str
    span: Span

    @cached_property
    def word(self) -> str:
        """The text in upper case, if it can be a keyword."""
        return (
            self.text.upper()
            if self.kind is TokenKind.WORD
            else self.text
            if self.kind is TokenKind.SYMBOL
            else ""
        )

    @property
    def name(self) -> str:
        return self.text[1:-1].replace('""', '"') if self.kind is TokenKind.QUOTED else self.text

    @property
    def string(self) -> str:
        return self.text[self.text.index("'") + 1 : -1].replace("''", "'")


def tokenize(text: str, runs: Runs = Runs.TOKENS) -> tuple[Token, ...]:
    """Split a text into tokens and an END.

    Characters that begin no token form one of kind UNKNOWN. An unclosed comment becomes two
    symbols.
    """
    return _Tokenizer(text, runs).tokens()


class _Tokenizer:
    def __init__(self, text: str, runs: Runs) -> None:
        self.text = text
        self.runs = runs
        self.found: list[Token] = []
        self.line, self.line_start = 1, 0
        self.last_close = text.rfind("*/")
        self.depth = 0
        self.lists: list[tuple[int, bool]] = []
        """The open lists: their depth, and whether rows are allowed."""
        self.begins_part = False
        self.no_run_before = 0
        self.open = 0

    def tokens(self) -> tuple[Token, ...]:
        offset = 0
        while offset < len(self.text):
            offset = (
                self._run(offset)
                if self.begins_part and not self._is_blank(offset)
                else self._token(offset)
            )
        self._add(TokenKind.END, offset, offset)
        return tuple(self.found)

    def _token(self, offset: int) -> int:
        # Search an unclosed comment's end only once.
        unclosed = self.text.startswith("/*", offset) and self.last_close < offset + 2
        token_kind, end = (TokenKind.SYMBOL, offset + 1) if unclosed else _next(self.text, offset)
        if token_kind is None:
            self._pass(offset, end)
            return end
        token = self._add(token_kind, offset, end)
        if self.runs is not Runs.TOKENS:
            self._look(token)
        return end

    def _add(self, token_kind: TokenKind, offset: int, end: int) -> Token:
        shown_end = offset + 1 if token_kind is TokenKind.UNKNOWN else end
        token = Token(
            token_kind,
            self.text[offset:shown_end],
            Span(offset, end, self.line, offset - self.line_start + 1),
        )
        self.found.append(token)
        if token.text in _OPENING:
            self.open += 1
            if self.open > DEEPEST:
                raise too_deep()
        elif token.text in _CLOSING:
            self.open -= 1
        self._pass(offset, end)
        return token

    def _pass(self, offset: int, end: int) -> None:
        newlines = self.text.count("\n", offset, end)
        if newlines:
            self.line = self.line + newlines
            self.line_start = self.text.rindex("\n", offset, end) + 1

    def _is_blank(self, offset: int) -> bool:
        return self.text[offset] in _BLANKS or self.text.startswith(("--", "/*"), offset)

    # -- runs of literals

    def _look(self, token: Token) -> None:
        if token.text == "(":
            self.depth += 1
            if len(self.found) > 1 and self.found[-2].word == "IN":
                self.lists.append((self.depth, False))
                self.begins_part = True
        elif token.text == ")":
            self.depth -= 1
            while self.lists and self.lists[-1][0] > self.depth:
                self.lists.pop()
        elif token.word == "VALUES":
            self.lists.append((self.depth, True))
            self.begins_part = True
        elif token.text == "," and self.lists and self.lists[-1][0] == self.depth:
            self.begins_part = token.span.end >= self.no_run_before

    def _run(self, offset: int) -> int:
        self.begins_part = False
        end = find_run(self.text, offset, rows=self.lists[-1][1])
        if end <= offset:
            self.no_run_before = -end
            return offset
        if self.runs is Runs.WHOLE:
            self._add(TokenKind.LITERALS, offset, end)
            return end
        self.no_run_before = end
        first, last = run_ends(self.text, offset, end)
        while offset < first:
            offset = self._token(offset)
        if last > first:
            while self.found[-1].text != ",":
                offset = self._token(offset)
            self._pass(offset, last)
            offset = last
        while offset < end:
            offset = self._token(offset)
        return end


def _next(text: str, offset: int) -> tuple[TokenKind | None, int]:
    match = _PATTERN.match(text, offset)
    if match is None:
        unreadable = _UNREADABLE.match(text, offset)
        return TokenKind.UNKNOWN, offset + 1 if unreadable is None else unreadable.end()
    group = str(match.lastgroup)
    if group == "space":
        return None, match.end()
    if group in NUMBERS:
        # The longest token wins: 1s is an identifier that starts with a digit, 1E5 and 1.5 are
        # numbers.
        longer = _DIGITS_FIRST.match(text, offset)
        if longer is not None and longer.end() > match.end():
            return TokenKind.DIGITS_FIRST, longer.end()
    return TokenKind[group.upper()], match.end()
