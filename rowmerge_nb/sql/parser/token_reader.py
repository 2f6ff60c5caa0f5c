"""The cursor over tokens that every reader of the grammar shares, and how it says what it had expected."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from rowmerge_nb.base.errors import ParseError, RowMergeError
from rowmerge_nb.base.names import nearest
from rowmerge_nb.sql.parser.tokens import RESERVED, Kind, Runs, Token, tokenize
from rowmerge_nb.sql.tree.depth import DEEPEST, too_deep
from rowmerge_nb.sql.tree.statements import Identifier, Span, TableName

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PRIMARY_KEY = "Write the key as a property behind the columns: WITH (primary_key = ARRAY['...'])."
_CHANGES = frozenset(["MERGE", "UPDATE", "DELETE", "INSERT"])
_BEGINS = frozenset(["INSERT", "MERGE", "CREATE", "SELECT", "DROP", "WITH", "EXPLAIN", "UPDATE", "DELETE", "VALUES"])
EXTENDED = 'The option --dialect extended accepts it (in a program: dialect="extended").'
_ELSEWHERE = {
    ("BY", "THEN"): "Trino's MERGE has no WHEN NOT MATCHED BY SOURCE or BY TARGET; plain WHEN NOT MATCHED means BY TARGET.",
    ("DO", "UPDATE"): "Trino's MERGE has no DO NOTHING; leave the clause out, or let its condition exclude the rows.",
    ("DO", "INSERT"): "Trino's MERGE has no DO NOTHING; leave the clause out, or let its condition exclude the rows.",
    ("*", "<identifier>"): "Trino's MERGE has no UPDATE SET *; write the columns.",
    ("*", "VALUES"): "Trino's MERGE has no INSERT *; write the columns and VALUES.",
    ("*", "SET"): "Trino's MERGE has no UPDATE *; write SET and the columns.",
    ("WITH", "INTO"): "Trino's MERGE has no WITH SCHEMA EVOLUTION; add the columns before it: ALTER TABLE ... ADD COLUMN.",
    ("MERGE", "SELECT"): "Trino refuses WITH before MERGE; write the WITH inside the parentheses of USING (...).",
}
"""(offending word, one of the expected ones): forms of other engines that Trino refuses and the extended dialect has."""
_REFUSED = {
    ("DEFAULT", "VALUES"): "Trino's MERGE has no INSERT DEFAULT VALUES; write the columns and VALUES.",
    ("ROW", "VALUES"): "Trino's MERGE has no INSERT ROW; write the columns and VALUES.",
    ("ELSE", "WHEN"): "Trino's MERGE has no ELSE; write one more WHEN clause.",
    ("WHERE", "WHEN"): "Trino's WHEN clauses have no WHERE; write the condition after WHEN MATCHED AND.",
    ("WHERE", "THEN"): "Trino's WHEN clauses have no WHERE; write the condition after AND.",
    ("UPDATE", "SELECT"): "Trino refuses WITH before UPDATE; write the WITH inside a subquery.",
    ("DELETE", "SELECT"): "Trino refuses WITH before DELETE; write the WITH inside a subquery.",
    ("INSERT", "SELECT"): "Trino refuses WITH before INSERT; write it after INSERT INTO table.",
    ("INSERT", "UPDATE"): "Only a WHEN NOT MATCHED clause can INSERT; one about rows of the target takes UPDATE or DELETE.",
    ("UPDATE", "INSERT"): "WHEN NOT MATCHED has no row of the target to change; UPDATE belongs under WHEN MATCHED.",
    ("DELETE", "INSERT"): "WHEN NOT MATCHED has no row of the target to change; DELETE belongs under WHEN MATCHED.",
}
"""(offending word, one of the expected ones): what to say about forms that are refused in every dialect."""


_NO_NAMES: dict[Kind | str, str] = {
    Kind.BACKQUOTED: "backquoted identifiers are not supported; use double quotes to quote identifiers",
    Kind.DIGITS_FIRST: "identifiers must not start with a digit; surround the identifier with double quotes",
    '""': "Zero-length delimited identifier not allowed",
}
"""What is said of names that are none."""


def is_mismatch(error: ParseError) -> bool:
    """Return whether it is about a token that nothing expects, and not about a literal, a name or a form that is refused."""
    return error.message.startswith("mismatched input")


class Reader:
    """A cursor over the tokens of one statement.

    What a reader asked for at the farthest token that it reached is what an error says was expected; that is Trino's rule
    too, and it makes trying one reading after another safe.

    Trino's parser looks ahead where one token does not decide between two readings. An error in what it looks at is reported
    where it stands (``undecided`` counts how many such choices are open). Elsewhere it gives up an optional part that it cannot
    read to its end, and reports the first token of that part (`give_up`).
    """

    def __init__(self, text: str, *, extended: bool = False, runs: Runs = Runs.TOKENS) -> None:
        """Begin at the first token of a text.

        Args:
            text: the text.
            extended: let in forms that Trino does not have.
            runs: what becomes of long runs of literals.
        """
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
        """One thing begins within another; who calls this takes one off ``depth`` at its end.

        Raises:
            ParseError: more stand within one another than can be read.
        """
        self.depth += 1
        if self.depth > DEEPEST:
            raise too_deep()

    # -- looking --------------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        """The token that is next."""
        return self.tokens[self.index]

    def ahead(self, count: int = 1) -> Token:
        """The token ``count`` places after the next one."""
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def note(self, *labels: str) -> None:
        """Remember that these could stand here."""
        if self.index > self._farthest:
            self._farthest, self._expected, self._looked = self.index, set(), set()
        if self.index == self._farthest:
            self._expected.update(labels)

    def note_looked(self, *labels: str) -> None:
        """Remember that these could stand here as long as it is not decided how this is to be read."""
        self.note(*labels)
        if self.index == self._farthest:
            self._looked.update(labels)

    def noted(self, label: str) -> bool:
        """Return whether this is one of what could stand here."""
        return self._farthest == self.index and label in self._expected

    def unnote(self, *labels: str) -> None:
        """Take back that these could stand here."""
        self._expected.difference_update(labels)

    def restart(self) -> None:
        """Forget what else could stand here: at a mandatory choice Trino names only the choice's own words."""
        self._farthest, self._expected, self._looked = self.index, set(), set()
        self._behind = -1

    def give_up(self, index: int) -> None:
        """Go back to the token where an optional part began: what stands there cannot be read, and nothing behind it counts."""
        self.index = index
        self._wrong_name = None
        self.restart()

    def at(self, *words: str) -> bool:
        """Return whether the next token is one of these words or symbols. If not, they are noted as possible."""
        if self.token.word in words:
            return True
        self.note(*_labels(words))
        return False

    def accept(self, *words: str) -> Token | None:
        """Take the next token if it is one of these words or symbols."""
        if not self.at(*words):
            return None
        return self.take()

    def accept_all(self, *words: str) -> bool:
        """Take a sequence of words, or nothing; the first decides, the others must follow."""
        if not self.accept(words[0]):
            return False
        for word in words[1:]:
            self.expect(word)
        return True

    def take(self) -> Token:
        """Take the next token, whatever it is."""
        token = self.token
        self.index = min(self.index + 1, len(self.tokens) - 1)
        return token

    def expect(self, *words: str) -> Token:
        """Take the next token, which must be one of these words or symbols."""
        return self.accept(*words) or self.fail()

    def close(self, word: str, *, chosen: bool = True) -> Token:
        """Take the word that must end a part which could have gone on.

        What cannot follow it is told as Trino tells it, by what could have stood in place of that word; of several in a row the first counts.

        Args:
            word: the word.
            chosen: it is clear by now which of several readings holds, and not by this word alone.
        """
        start, noted = self.index, self._expected - self._looked if self._farthest == self.index else set()
        token = self.accept(word) or self._fail(chosen=chosen and not self.undecided)
        if self._behind == start or noted:
            if self._behind != start:
                self._left_open = {*noted, *_labels((word,))}
            self._behind = self.index
        return token

    @property
    def is_behind_closed(self) -> bool:
        """Was the last token one that `close` has taken?"""
        return self._behind == self.index

    def expect_end(self) -> None:
        """The statement must end here."""
        if self.token.kind is not Kind.END:
            self.note("<EOF>")
            self._fail(chosen=True)

    def closing(self, index: int) -> int:
        """The index of the token that closes the parenthesis at this index; that of the end where nothing closes it."""
        return self._closing.get(index, len(self.tokens) - 1)

    # -- names ----------------------------------------------------------------------------------------------------

    def at_identifier(self, token: Token | None = None) -> bool:
        """Can the token (the next one if none is given) be a name?"""
        token = token or self.token
        if token.kind is Kind.WORD:
            return token.word not in RESERVED
        return token.kind in {Kind.QUOTED, Kind.BACKQUOTED, Kind.DIGITS_FIRST}

    def identifier(self) -> Identifier:
        """Take a name."""
        if not self.at_identifier():
            self.note("<identifier>")
            self.fail()
        token = self.take()
        said = _NO_NAMES.get(token.text if token.text == '""' else token.kind)
        if said is not None:
            self._wrong_name = self._wrong_name or ParseError(said).at(token.span)
            self.check_names()
        return Identifier(token.name, token.span)

    def check_names(self) -> None:
        """Refuse what is no name, once it is decided that it is read: what is looked at in advance has other errors first."""
        if self._wrong_name is not None and not self.undecided:
            raise self._wrong_name

    def at_alias(self) -> bool:
        """Return whether an alias begins here. LIMIT, OFFSET, FETCH and WINDOW could be names, unless they begin their clause."""
        word, following = self.token.word, self.ahead()
        if word == "RETURNING" and self._is_before_returning:
            return False
        if word == "WINDOW" and self.at_identifier(following) and self.ahead(2).word == "AS":
            return False
        if word in {"LIMIT", "OFFSET"} and (following.kind is Kind.INTEGER or following.word in {"ALL", "?"}):
            return False
        return self.at_identifier() and not (word == "FETCH" and following.word in {"FIRST", "NEXT"})

    @contextmanager
    def before_returning(self) -> Iterator[None]:
        """Read a query behind which RETURNING may stand, which is no alias then."""
        self._is_before_returning = self.extended
        try:
            yield
        finally:
            self._is_before_returning = False

    def accept_alias(self) -> Identifier | None:
        """Take an alias if there is one."""
        if self.at_alias():
            return self.identifier()
        self.note("<identifier>")
        return None

    def identifiers(self) -> tuple[Identifier, ...]:
        """Take names with commas between them."""
        names = [self.identifier()]
        while self.accept(","):
            names.append(self.identifier())
        return tuple(names)

    def accept_columns(self) -> tuple[Identifier, ...]:
        """Take ``(a, b)`` if it is there."""
        if not self.accept("("):
            return ()
        names = self.identifiers()
        self.expect(")")
        return names

    def table_name(self) -> TableName:
        """Take a table's name; Trino finds more than three parts only after the whole statement was read."""
        start = self.index
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        return TableName(tuple(parts), self.span_from(start))

    # -- places and errors ----------------------------------------------------------------------------------------

    def span_from(self, start: int) -> Span:
        """The span from the token with index ``start`` to the one just taken."""
        first, last = self.tokens[start].span, self.tokens[max(self.index - 1, start)].span
        return Span(first.start, last.end, first.line, first.column)

    def error(self, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        """Raise a ParseError; without a span it has no position."""
        if span is None:
            raise ParseError(message, hint=hint)
        raise ParseError(message, hint=hint).at(span)

    def wrong(self, message: str, span: Span, hint: str | None = None) -> None:
        """Remember what is wrong with a part that was read; what cannot be read at all is told before."""
        self._wrong = self._wrong or ParseError(message, hint=hint).at(span)

    def refused(self, error: RowMergeError) -> None:
        """Remember an error of a statement that can be read: what cannot be read is told before, and what this engine has not after all others."""
        if self._refused is None or (self._refused.code == "NOT_SUPPORTED" != error.code):
            self._refused = error

    @property
    def refuses(self) -> bool:
        """Return whether the text so far is refused, however it continues."""
        return self._refused is not None and self._refused.code == "NOT_SUPPORTED"

    def check(self) -> None:
        """Raise what was found while the statement was read."""
        for error in (self._wrong, self._refused):
            if error is not None:
                raise error

    def failed_at(self, index: int) -> bool:
        """Return whether this is token the one that nothing expects."""
        return self._farthest == index

    def fail(self) -> NoReturn:
        """Raise what Trino says at a token that nothing expects."""
        self._fail(chosen=False)

    def _fail(self, *, chosen: bool) -> NoReturn:
        token = self.tokens[self._farthest]
        shown = token.text or "<EOF>"
        expected = self._left_open if chosen and self._behind == self._farthest else self._expected
        message = f"mismatched input '{shown}'. Expecting: {', '.join(sorted(expected))}"
        self.error(message, token.span, self._hint(token))

    def _hint(self, token: Token) -> str | None:
        before = self.tokens[self._farthest - 1] if self._farthest else token
        if token.text == before.text == "=" and before.span.end == token.span.start:
            return "Use = for equality."
        if token.text == "." and self._expected in ({"'='"}, {"','", "')'"}):
            return "Write the column without the table's name."
        following = self.tokens[min(self._farthest + 1, len(self.tokens) - 1)]
        if (token.word, following.word) == ("PRIMARY", "KEY"):
            return PRIMARY_KEY
        if "<EOF>" in self._expected:
            if token.word in _BEGINS:
                return "Is a semicolon missing before it?"
            # These words may be aliases, and were taken for one.
            if before is not token and before.word in _BEGINS and before.word not in RESERVED:
                return f"Is a semicolon missing before {before.text}?"
        words = sorted(label.strip("'") for label in self._expected)
        if "<query>" in words:
            words += ["SELECT", "TABLE", "VALUES"]
        within_merge = any(read.word == "MERGE" for read in self.tokens[: self._farthest + 1])
        if token.word == "RETURNING" and self.tokens[0].word in _CHANGES and not self.extended:
            return f"Trino has no RETURNING; query the table after the statement. {EXTENDED}"
        if token.word == "DEFAULT" and self.tokens[0].word in {"CREATE", "ALTER"} and not self.extended:
            return f"Trino 476 has no defaults of columns, 477 has. {EXTENDED}"
        for word in words:
            if (token.word, word) in _REFUSED:
                return _REFUSED[token.word, word]
            if within_merge and not self.extended and (token.word, word) in _ELSEWHERE:
                return f"{_ELSEWHERE[token.word, word]} {EXTENDED}"
        if token.kind is Kind.UNKNOWN and token.text in "'\"":
            return "The quote is never closed." if token.text == "'" else "The double quote is never closed."
        if token.kind is Kind.WORD:
            near = nearest(token.word, (word for word in words if word.isalpha()))
            return f"Did you mean {near}?" if near else None
        return None


@cache
def _labels(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"'{word}'" for word in words)


def _closing(tokens: Sequence[Token]) -> dict[int, int]:
    open_places: list[int] = []
    found = {}
    for index, token in enumerate(tokens):
        if token.text == "(":
            open_places.append(index)
        elif token.text == ")" and open_places:
            found[open_places.pop()] = index
    return found
