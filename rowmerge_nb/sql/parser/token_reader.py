"""The cursor over tokens, and its errors."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from rowmerge_nb.base.errors import Edit, Hint, ParseError, RowMergeError
from rowmerge_nb.base.names import nearest
from rowmerge_nb.sql.parser.foreign_forms import foreign_form_hint, name_hint
from rowmerge_nb.sql.parser.foreign_patterns import pattern_hint
from rowmerge_nb.sql.parser.split_names import bracketed_name_hint, split_name_hint
from rowmerge_nb.sql.parser.tokens import RESERVED, Runs, Token, TokenKind, tokenize
from rowmerge_nb.sql.tree.depth import DEEPEST, too_deep
from rowmerge_nb.sql.tree.statements import Identifier, Span, TableName

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PRIMARY_KEY = "Write the key as a property behind the columns: WITH (primary_key = ARRAY['...'])."
_CHANGES = frozenset(["MERGE", "UPDATE", "DELETE", "INSERT"])
_BEGINS = frozenset(
    ["INSERT", "MERGE", "CREATE", "SELECT", "DROP", "WITH", "EXPLAIN", "UPDATE", "DELETE", "VALUES"]
)
_MISSPELLED = (
    *("FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "JOIN", "USING", "VALUES"),
    *("WHEN", "MATCHED", "THEN", "SET"),
)
"""Keywords behind which a misspelled one is noticed."""
_JOINTS = frozenset("-./$")
"""Signs of headers that are no signs of names in SQL."""
_COLUMN_ENDS = ({"'='"}, {"','", "')'"})
"""What the parser expects behind a column of SET or of a list."""
EXTENDED = 'The option --dialect extended accepts it (in a program: dialect="extended").'
_ELSEWHERE = {
    ("BY", "THEN"): (
        "Trino's MERGE has no WHEN NOT MATCHED BY SOURCE or BY TARGET; plain WHEN NOT MATCHED means"
        " BY TARGET."
    ),
    ("DO", "UPDATE"): (
        "Trino's MERGE has no DO NOTHING; leave the clause out, or let its condition exclude the"
        " rows."
    ),
    ("DO", "INSERT"): (
        "Trino's MERGE has no DO NOTHING; leave the clause out, or let its condition exclude the"
        " rows."
    ),
    ("*", "<identifier>"): "Trino's MERGE has no UPDATE SET *; write the columns.",
    ("*", "VALUES"): "Trino's MERGE has no INSERT *; write the columns and VALUES.",
    ("*", "SET"): "Trino's MERGE has no UPDATE *; write SET and the columns.",
    ("WITH", "INTO"): (
        "Trino's MERGE has no WITH SCHEMA EVOLUTION; add the columns before it: ALTER TABLE ... ADD"
        " COLUMN."
    ),
    (
        "MERGE",
        "SELECT",
    ): "Trino refuses WITH before MERGE; write the WITH inside the parentheses of USING (...).",
}
"""(offending word, an expected one): forms of other engines, refused by Trino and accepted by the
extended dialect.
"""
_REFUSED = {
    (
        "DEFAULT",
        "VALUES",
    ): "Trino's MERGE has no INSERT DEFAULT VALUES; write the columns and VALUES.",
    ("ROW", "VALUES"): "Trino's MERGE has no INSERT ROW; write the columns and VALUES.",
    ("ELSE", "WHEN"): "Trino's MERGE has no ELSE; write one more WHEN clause.",
    (
        "WHERE",
        "WHEN",
    ): "Trino's WHEN clauses have no WHERE; write the condition after WHEN MATCHED AND.",
    ("WHERE", "THEN"): "Trino's WHEN clauses have no WHERE; write the condition after AND.",
    ("UPDATE", "SELECT"): "Trino refuses WITH before UPDATE; write the WITH inside a subquery.",
    ("DELETE", "SELECT"): "Trino refuses WITH before DELETE; write the WITH inside a subquery.",
    ("INSERT", "SELECT"): "Trino refuses WITH before INSERT; write it after INSERT INTO table.",
    ("INSERT", "UPDATE"): (
        "Only a WHEN NOT MATCHED clause can INSERT; one about rows of the target takes UPDATE or"
        " DELETE."
    ),
    (
        "UPDATE",
        "INSERT",
    ): "WHEN NOT MATCHED has no row of the target to change; UPDATE belongs under WHEN MATCHED.",
    (
        "DELETE",
        "INSERT",
    ): "WHEN NOT MATCHED has no row of the target to change; DELETE belongs under WHEN MATCHED.",
}
"""(offending word, an expected one): hints on forms that every dialect refuses."""


_NO_NAMES: dict[TokenKind | str, str] = {
    TokenKind.BACKQUOTED: (
        "backquoted identifiers are not supported; use double quotes to quote identifiers"
    ),
    TokenKind.DIGITS_FIRST: (
        "identifiers must not start with a digit; surround the identifier with double quotes"
    ),
    '""': "Zero-length delimited identifier not allowed",
}
"""Errors of invalid names."""


class TokenReader:
    """A cursor over the tokens of one statement.

    As in Trino, errors list the tokens expected at the farthest position, so alternatives can be
    tried safely.

    Where Trino looks ahead (``undecided`` counts open choices), errors are reported there.
    Elsewhere an optional part with an error is given up, and its first token reported (`give_up`).
    """

    def __init__(self, text: str, *, extended: bool = False, runs: Runs = Runs.TOKENS) -> None:
        self.text = text
        self.extended = extended
        self.runs = runs
        self.tokens = tokenize(text, runs)
        self.index = 0
        self._is_before_returning = False
        self._closing = _closing(self.tokens)
        self._farthest = 0
        self._expected: set[str] = set()
        self._looked: set[str] = set()
        self._behind = -1
        self._left_open: set[str] = set()
        self.undecided = 0
        self.signed_number = -1
        self.undecided_primary = -1
        self.starred = -1
        self.depth = 0
        self._wrong_name: ParseError | None = None
        self._wrong: RowMergeError | None = None
        self._refused: RowMergeError | None = None

    def deeper(self) -> None:
        """Enter a nesting level, or raise ParseError; the caller decreases ``depth`` afterwards."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise too_deep()

    # -- looking

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def ahead(self, count: int = 1) -> Token:
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def note(self, *labels: str) -> None:
        if self.index > self._farthest:
            self._farthest, self._expected, self._looked = self.index, set(), set()
        if self.index == self._farthest:
            self._expected.update(labels)

    def note_looked(self, *labels: str) -> None:
        """Record expected tokens while the choice is open."""
        self.note(*labels)
        if self.index == self._farthest:
            self._looked.update(labels)

    def noted(self, label: str) -> bool:
        return self._farthest == self.index and label in self._expected

    def unnote(self, *labels: str) -> None:
        self._expected.difference_update(labels)

    def restart(self) -> None:
        """Forget expected tokens, as Trino does at a mandatory choice."""
        self._farthest, self._expected, self._looked = self.index, set(), set()
        self._behind = -1

    def give_up(self, index: int) -> None:
        self.index = index
        self._wrong_name = None
        self.restart()

    def at(self, *words: str) -> bool:
        """Return whether the next token is one of these, which become expected."""
        if self.token.word in words:
            return True
        self.note(*_labels(words))
        return False

    def accept(self, *words: str) -> Token | None:
        if not self.at(*words):
            return None
        return self.take()

    def accept_all(self, *words: str) -> bool:
        """Take a sequence of words, or nothing; the first one decides."""
        if not self.accept(words[0]):
            return False
        for word in words[1:]:
            self.expect(word)
        return True

    def take(self) -> Token:
        token = self.token
        self.index = min(self.index + 1, len(self.tokens) - 1)
        return token

    def expect(self, *words: str) -> Token:
        return self.accept(*words) or self.fail()

    def close(self, word: str, *, is_decided: bool = True) -> Token:
        """Take the word that ends a part.

        Errors list alternatives to this word; of consecutive calls the first counts.
        ``is_decided``: the choice is already made.
        """
        start = self.index
        labels = self._expected - self._looked if self._farthest == self.index else set()
        token = self.accept(word) or self._fail(is_decided=is_decided and not self.undecided)
        if self._behind == start or labels:
            if self._behind != start:
                self._left_open = {*labels, *_labels((word,))}
            self._behind = self.index
        return token

    @property
    def is_behind_closed(self) -> bool:
        return self._behind == self.index

    def expect_end(self) -> None:
        if self.token.kind is not TokenKind.END:
            self.note("<EOF>")
            self._fail(is_decided=True)

    def closing(self, index: int) -> int:
        """Return the index of the closing parenthesis, or of the end."""
        return self._closing.get(index, len(self.tokens) - 1)

    # -- names

    def at_identifier(self, token: Token | None = None) -> bool:
        token = token or self.token
        if token.kind is TokenKind.WORD:
            return token.word not in RESERVED
        return token.kind in {TokenKind.QUOTED, TokenKind.BACKQUOTED, TokenKind.DIGITS_FIRST}

    def identifier(self) -> Identifier:
        if not self.at_identifier():
            self.note("<identifier>")
            self.fail()
        token = self.take()
        message = _NO_NAMES.get(token.text if token.text == '""' else token.kind)
        if message is not None:
            error = ParseError(message, hint=name_hint(token)).at(token.span)
            self._wrong_name = self._wrong_name or error
            self.check_names()
        return Identifier(token.name, token.span)

    def check_names(self) -> None:
        """Raise errors of names, once the choice is made."""
        if self._wrong_name is not None and not self.undecided:
            raise self._wrong_name

    def at_alias(self) -> bool:
        """Return whether an alias begins here; LIMIT, OFFSET, FETCH and WINDOW can be names."""
        word, following = self.token.word, self.ahead()
        if word == "RETURNING" and self._is_before_returning:
            return False
        if word == "WINDOW" and self.at_identifier(following) and self.ahead(2).word == "AS":
            return False
        if word in {"LIMIT", "OFFSET"} and (
            following.kind is TokenKind.INTEGER or following.word in {"ALL", "?"}
        ):
            return False
        return self.at_identifier() and not (
            word == "FETCH" and following.word in {"FIRST", "NEXT"}
        )

    @contextmanager
    def before_returning(self) -> Iterator[None]:
        self._is_before_returning = self.extended
        try:
            yield
        finally:
            self._is_before_returning = False

    def accept_alias(self) -> Identifier | None:
        if self.at_alias():
            return self.identifier()
        self.note("<identifier>")
        return None

    def identifiers(self) -> tuple[Identifier, ...]:
        names = [self.identifier()]
        while self.accept(","):
            names.append(self.identifier())
        return tuple(names)

    def accept_columns(self) -> tuple[Identifier, ...]:
        if not self.accept("("):
            return ()
        names = self.identifiers()
        self.expect(")")
        return names

    def table_name(self) -> TableName:
        """Take a table's name; Trino reports too many parts after parsing."""
        start = self.index
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        return TableName(tuple(parts), self.span_from(start))

    # -- places and errors

    def span_from(self, start: int) -> Span:
        first, last = self.tokens[start].span, self.tokens[max(self.index - 1, start)].span
        return Span(first.start, last.end, first.line, first.column)

    def error(self, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        if span is None:
            raise ParseError(message, hint=hint)
        raise ParseError(message, hint=hint).at(span)

    def wrong(self, message: str, span: Span, hint: str | None = None) -> None:
        """Record an error; syntax errors come first."""
        self._wrong = self._wrong or ParseError(message, hint=hint).at(span)

    def refused(self, error: RowMergeError) -> None:
        """Record an error, to be raised after syntax errors; unsupported features come last."""
        if self._refused is None or (self._refused.code == "NOT_SUPPORTED" != error.code):
            self._refused = error

    @property
    def refuses(self) -> bool:
        return self._refused is not None and self._refused.code == "NOT_SUPPORTED"

    def check(self) -> None:
        for error in (self._wrong, self._refused):
            if error is not None:
                raise error

    def failed_at(self, index: int) -> bool:
        return self._farthest == index

    def fail(self) -> NoReturn:
        self._fail(is_decided=False)

    def _fail(self, *, is_decided: bool) -> NoReturn:
        token = self.tokens[self._farthest]
        token_text = token.text or "<EOF>"
        expected = (
            self._left_open if is_decided and self._behind == self._farthest else self._expected
        )
        self.mismatch(token_text, ", ".join(sorted(expected)), token.span, self._hint(token))

    @staticmethod
    def mismatch(token_text: str, expected: str, span: Span, hint: Hint | None) -> NoReturn:
        raise ParseError(
            f"mismatched input '{token_text}'. Expecting: {expected}", hint=hint, is_mismatch=True
        ).at(span)

    def _hint(self, token: Token) -> Hint | None:
        before = self.tokens[self._farthest - 1] if self._farthest else token
        following = self.tokens[min(self._farthest + 1, len(self.tokens) - 1)]
        if token.text == before.text == "=" and before.span.end == token.span.start:
            return Edit("==", "=", "Use = for equality.")
        split_name = split_name_hint(
            self.text, self.tokens, self._farthest, separable="','" in self._expected
        )
        words = sorted(label.strip("'") for label in self._expected)
        if "<query>" in words:
            words += ["SELECT", "TABLE", "VALUES"]
        return (
            bracketed_name_hint(self.text, token)
            or (split_name if token.kind is TokenKind.UNKNOWN else None)
            or self._name_hint(before, token, following)
            or self._position_hint(before, token, following)
            or self._dialect_hint(token, words)
            or self._spelling_hint(before, token, words, split_name)
        )

    def _name_hint(self, before: Token, token: Token, following: Token) -> Hint | None:
        pattern = pattern_hint(self.text, self.tokens, self._farthest)
        one_name = self._one_name(before, token, following)
        # A placeholder has a blank before it.
        if pattern is not None and (one_name is None or token.text != "$"):
            return pattern
        if token.text == "." and self._expected in _COLUMN_ENDS:
            tables = {read.word for read in self.tokens[: self._farthest - 1]}
            hint = one_name if before.word not in tables else None
            return f"Write the column without the table's name. {hint or ''}".rstrip()
        if token.text == "$" or self._expected in _COLUMN_ENDS:
            return one_name
        return None

    def _position_hint(self, before: Token, token: Token, following: Token) -> str | None:
        """Return a hint on a word that has its place elsewhere in the statement, or behind it."""
        if (token.word, following.word) == ("PRIMARY", "KEY"):
            return PRIMARY_KEY
        if "<EOF>" in self._expected:
            if token.word in _BEGINS:
                return "Is a semicolon missing before it?"
            # These words were taken for aliases.
            if before is not token and before.word in _BEGINS and before.word not in RESERVED:
                return f"Is a semicolon missing before {before.text}?"
        first_word = self.tokens[0].word
        if token.word == "RETURNING" and first_word in _CHANGES and not self.extended:
            return f"Trino has no RETURNING; query the table after the statement. {EXTENDED}"
        if first_word in {"CREATE", "ALTER"}:
            if token.word == "DEFAULT":
                return "DEFAULT stands between the type and NOT NULL: c bigint DEFAULT 1 NOT NULL."
            if "BINARY_LITERAL" in self._expected:
                return "The default of a column is a literal, such as 0, 'x' or DATE '2026-01-01'."
        return None

    def _dialect_hint(self, token: Token, words: Sequence[str]) -> Hint | None:
        """Return a hint on a form of another engine or of the extended dialect."""
        within_merge = any(read.word == "MERGE" for read in self.tokens[: self._farthest + 1])
        form = foreign_form_hint(self.text, self.tokens, self._farthest, self._expected)
        if form is not None and not within_merge:
            return form
        for word in words:
            if (token.word, word) in _REFUSED:
                return _REFUSED[token.word, word]
            if within_merge and not self.extended and (token.word, word) in _ELSEWHERE:
                return f"{_ELSEWHERE[token.word, word]} {EXTENDED}"
        if token.kind is TokenKind.UNKNOWN and token.text in "'\"":
            return (
                "The quote is never closed."
                if token.text == "'"
                else "The double quote is never closed."
            )
        return form

    def _spelling_hint(
        self, before: Token, token: Token, words: Sequence[str], split_name: Hint | None
    ) -> Hint | None:
        if token.kind is TokenKind.WORD:
            near = nearest(token.word, (word for word in words if word.isalpha()))
            if near:
                return Edit(token.text, near, "Did you mean {new}?")
        # A misspelled keyword was taken for an alias.
        if before is not token and self.at_identifier(before):
            near = nearest(before.word, _MISSPELLED, 0.7)
            if near:
                return (
                    None
                    if near == before.word
                    else Edit(before.text, near, "Did you mean {new} instead of {old}?")
                )
        return split_name

    def _one_name(self, before: Token, token: Token, following: Token) -> str | None:
        """Return a hint if a sign joins two words without blanks, as in ``E-Mail``."""
        joined = before.span.end == token.span.start and token.span.end == following.span.start
        if (
            token.text not in _JOINTS
            or not joined
            or not before.text
            or before.kind is not TokenKind.WORD
            or following.kind is not TokenKind.WORD
        ):
            return None
        name = f"{before.text}{token.text}{following.text}"
        return f'Is this one name? Write it in double quotes: "{name}".'


@cache
def _labels(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"'{word}'" for word in words)


def _closing(tokens: Sequence[Token]) -> dict[int, int]:
    open_places: list[int] = []
    pairs = {}
    for index, token in enumerate(tokens):
        if token.text == "(":
            open_places.append(index)
        elif token.text == ")" and open_places:
            pairs[open_places.pop()] = index
    return pairs
