"""Parses statements."""

# The table of methods belongs to the class; Reader.fail never returns.
# ruff: noqa: SLF001, RET503

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from rowmerge_nb.base.errors import AnalysisError, ParseError, RowMergeError
from rowmerge_nb.base.words import code
from rowmerge_nb.sql.parser.access import NO_USERS
from rowmerge_nb.sql.parser.hint_edits import follow_hint
from rowmerge_nb.sql.parser.literals import STRINGS
from rowmerge_nb.sql.parser.show_reader import ShowReader
from rowmerge_nb.sql.parser.token_reader import EXTENDED
from rowmerge_nb.sql.parser.tokens import Runs, TokenKind, tokenize
from rowmerge_nb.sql.session_properties import SESSION_HINT
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.depth import check_tree, room

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.parser.tokens import Token
    from rowmerge_nb.sql.tree.statements import Identifier

Read = TypeVar("Read")

_STATEMENTS: Final = [
    "ALTER",
    "ANALYZE",
    "CALL",
    "COMMENT",
    "COMMIT",
    "CREATE",
    "DEALLOCATE",
    "DELETE",
    "DENY",
    "DESC",
    "DESCRIBE",
    "DROP",
    "EXECUTE",
    "EXPLAIN",
    "GRANT",
    "INSERT",
    "MERGE",
    "PREPARE",
    "REFRESH",
    "RESET",
    "REVOKE",
    "ROLLBACK",
    "SET",
    "SHOW",
    "START",
    "TRUNCATE",
    "UPDATE",
    "USE",
    "WITH",
]
_PREPARED: Final = ("PREPARE", "EXECUTE", "DEALLOCATE")
_NOT_EXPLAINED: Final = (*_PREPARED, "START", "COMMIT", "ROLLBACK", "USE")
_KINDS: Final = ("LOGICAL", "DISTRIBUTED", "VALIDATE", "IO")
_FORMATS: Final = ("TEXT", "GRAPHVIZ", "JSON")
_LONGEST_OFFER: Final = 4_000
"""The characters of a statement that is offered whole."""
_MOST_EDITS: Final = 30


def split_statements(text: str) -> tuple[tuple[str, int], ...]:
    """Split a cell at its semicolons into statements with their offsets, without surrounding
    comments.
    """
    statements: list[tuple[str, int]] = []
    run: list[Token] = []
    for token in tokenize(text, Runs.WHOLE):
        if token.kind is not TokenKind.END and token.text != ";":
            run.append(token)
        elif run:
            start, end = run[0].span.start, run[-1].span.end
            statements.append((text[start:end], start))
            run = []
    return tuple(statements)


def parse(text: str, *, dialect: str = "trino") -> st.Statement:
    """Parse one statement.

    Raises:
        ParseError: SYNTAX_ERROR with Trino's message and position.
    """
    with room():
        try:
            statement = _read(text, StatementReader.statement, extended=dialect == "extended")
            error = _unknown_type(statement)
        except RowMergeError as failure:
            if dialect != "extended":
                _offer_extended(text, failure)
                _offer_whole(text, failure)
            raise
        if error is not None and dialect != "extended":
            _offer_whole(text, error)
        check_tree(statement)
    return statement


def _in_one_line(text: str) -> str:
    """Join the lines of a statement, unless a comment or a quoted text may end with its line."""
    is_plain = "--" not in text and not re.search(r"'[^'\n]*\n[^']*'", text)
    return re.sub(r"\s*\n\s*", " ", text) if is_plain else text


def _offer_extended(text: str, error: RowMergeError) -> None:
    if not isinstance(error, ParseError) or not error.is_mismatch:
        return
    try:
        statement = _read(text, StatementReader.statement, extended=True)
    except RowMergeError:
        return
    in_trino = _in_one_line(statement.in_trino)
    if error.edit is not None and not error.edit.old:
        # It has the statement in Trino's words, roughly.
        error.hint = f"{EXTENDED} {replace(error.edit, new=in_trino or error.edit.new)}"
        return
    hint = error.hint or ""
    if EXTENDED not in hint:
        hint = f"{hint} {EXTENDED}".strip()
    if in_trino:
        hint = f"{hint} In Trino's words: {code(in_trino)}"
    error.hint = hint


def _offer_whole(text: str, error: RowMergeError) -> None:
    """Offer the statement after all edits that its hints ask for, unless its own hint says it all."""
    whole, edits = text, 0
    while len(whole) <= _LONGEST_OFFER:
        mistake: RowMergeError | None
        try:
            statement = _read(whole, StatementReader.statement, extended=True)
            mistake = _unknown_type(statement)
        except RowMergeError as failure:
            mistake = failure
        if mistake is None:
            break
        edited = follow_hint(whole, mistake)
        if edited is None or edits == _MOST_EDITS:
            return
        whole, edits = edited, edits + 1
    else:
        return
    whole, introduction = statement.in_trino or whole, "In Trino's words"
    try:
        _read(whole, StatementReader.statement)
    except RowMergeError:
        introduction = "With the option --dialect extended"
    edit = error.edit
    if edits and (
        edits > 1
        or whole != edited
        or text.count("[") - whole.count("[") > 1
        or (edit is not None and edit.end and "{end}" not in edit.sentence)
    ):
        error.hint = f"{error.hint or ''} {introduction}: {code(_in_one_line(whole))}".strip()


def _unknown_type(statement: st.Statement) -> RowMergeError | None:
    """Return the error of the first column of CREATE TABLE with another engine's type."""
    columns = statement.columns if isinstance(statement, st.CreateTable) else ()
    types = (part.type for part in columns if isinstance(part, st.ColumnDefinition))
    return next((error for error in types if isinstance(error, RowMergeError)), None)


def _read(
    text: str,
    read: Callable[[StatementReader], Read],
    *,
    extended: bool = False,
    runs: Runs = Runs.WHOLE,
) -> Read:
    reader = StatementReader(text, extended=extended, runs=runs)
    try:
        result = read(reader)
        reader.expect_end()
    except ParseError as error:
        if not error.is_mismatch or not any(
            token.kind is TokenKind.LITERALS for token in reader.tokens
        ):
            raise
        # The ends of runs have the same error; without one, a run is where Trino does not allow it.
        _read(text, read, extended=extended, runs=Runs.ENDS)
        return _read(text, read, extended=extended, runs=Runs.TOKENS)
    reader.check()
    return result


def parse_query(text: str) -> s.QueryNode:
    return _read(text, StatementReader.query)


def parse_expression(text: str) -> s.Expression:
    with room():
        return _read(text, StatementReader.expression)


def name_parts(text: str) -> list[str]:
    """Return the parts of a table's name; without quotes, any characters but points are accepted.

    >>> name_parts('lake."rd.work".t'), name_parts("lake.rd-work.t")
    (['lake', 'rd.work', 't'], ['lake', 'rd-work', 't'])
    """
    if '"' not in text:
        return text.split(".")
    return [part.value for part in _read(text, StatementReader.table_name).parts]


class StatementReader(ShowReader):
    def statement(self) -> st.Statement:
        statement = self._statement()
        described = self.described(statement)
        return replace(statement, **described) if described else statement

    def _statement(self) -> st.Statement:
        word = self.token.word
        reader = READERS.get(word)
        if reader is not None and self.token.kind is TokenKind.WORD:
            return reader(self)
        if word in {"(", "SELECT", "TABLE", "VALUES", "WITH"}:
            return self._query_statement()
        if word == "REPLACE" and self.extended:
            return self.insert()
        self.note("<query>", *(f"'{word}'" for word in _STATEMENTS))
        self.fail()

    def _query_statement(self) -> st.Statement:
        start = self.index
        if (
            self.token.word == "WITH"
            and self.ahead().word == "SESSION"
            and self.ahead(2).word not in {"AS", "("}
        ):
            self.take()
            self.take()
            self._refuse_later(start, "WITH SESSION is not supported by this engine", SESSION_HINT)
            self._session_property()
            while self.accept(","):
                self._session_property()
            self.note("'WITH'")
            return st.Query(*self.whole(), self.query_of_statement())
        if self.at_functions():
            return st.Query(*self.whole(), self.query_of_statement())
        queries, recursive = self.accept_with(is_statement=True)
        if queries and self.extended and self.at("MERGE", "UPDATE", "DELETE", "INSERT", "REPLACE"):
            return self._change_behind((queries, recursive))
        return st.Query(*self.whole(), self.query_behind(start, queries, recursive=recursive))

    def _change_behind(self, queries: tuple[tuple[s.NamedQuery, ...], bool]) -> st.Statement:
        self.without_words()
        match self.token.word:
            case "MERGE":
                return self.merge(queries)
            case "UPDATE":
                return self.update(queries)
            case "DELETE":
                return self.delete(queries)
        return self.insert(queries)

    def _session_property(self) -> None:
        self.table_name()
        self.expect("=")
        self.expression()
        self.restart()

    # -- EXPLAIN

    def _explain(self) -> st.Explain:
        self.take()
        self.note("'('")
        explain_type, form = "DISTRIBUTED", "TEXT"
        if self._at_analyze():
            self.take()
            self.accept("VERBOSE")
            self.restart()
            explain_type = "ANALYZE"
        elif self.token.word == "(" and self.ahead().word in {"TYPE", "FORMAT"}:
            self.take()
            while True:
                if self.expect("FORMAT", "TYPE").word == "TYPE":
                    explain_type = self.expect(*_KINDS).word
                else:
                    form = self.expect(*_FORMATS).word
                if not self.accept(","):
                    break
            self.expect(")")
        elif self.token.word == "(":
            self.index += 1
            self.note("'FORMAT'", "'TYPE'")
            self.index -= 1
        elif self.token.word == "ANALYZE" and not self.at_identifier(self.ahead()):
            # Both alternatives are possible.
            self.take()
            self.note(
                "<identifier>", "'VERBOSE'", "<query>", *(f"'{word}'" for word in _STATEMENTS)
            )
            self.fail()
        inner = self._explained()
        return st.Explain(*self.whole(), inner, explain_type, form)

    def _at_analyze(self) -> bool:
        following = self.ahead()
        return self.token.word == "ANALYZE" and (
            following.word in {*READERS, *_STATEMENTS, "(", "SELECT", "TABLE", "VALUES", "VERBOSE"}
            or following.kind is TokenKind.END
        )

    def _explained(self) -> st.Statement:
        start = self.token.span.start
        end = next(
            (t.span.start for t in self.tokens[self.index :] if t.text == ";"), len(self.text)
        )
        if self.token.word == "EXPLAIN":
            self._refuse_statement(
                "EXPLAIN of EXPLAIN is not supported by this engine", "Write EXPLAIN once."
            )
        if self.token.word in _NOT_EXPLAINED or self.at_prepared_description():
            self._refuse_statement(
                f"EXPLAIN of {self.token.word} is not supported by this engine",
                "Explain the statement itself.",
            )
        self.statement()
        self.expect_end()
        self.check()
        return parse(
            self.text[start:end].rstrip(), dialect="extended" if self.extended else "trino"
        )

    # -- the session

    def _analyze_table(self) -> st.AnalyzeTable:
        self.take()
        name = self.table_name()
        return st.AnalyzeTable(*self.whole(), name, self._properties("analyze")[1])

    def _refresh(self) -> NoReturn:
        self._refuse_materialized(self.index)
        self.take()
        self.expect("MATERIALIZED")
        self.expect("VIEW")
        self.table_name()
        self._refuse_read()

    def _reset(self) -> st.SetSession:
        start = self.index
        self.take()
        self.expect("SESSION")
        if self.at("AUTHORIZATION") and self.ahead().kind is TokenKind.END:
            self.take()
            self._refuse_later(
                start, "RESET SESSION AUTHORIZATION not supported by client", NO_USERS
            )
            self._refuse_read()
        self.note("'AUTHORIZATION'")
        return st.SetSession(*self.whole(), self.table_name(), None)

    def _use(self) -> st.Use:
        self.take()
        first = self.identifier()
        if not self.accept("."):
            # One token of lookahead has decided.
            self.restart()
            return st.Use(*self.whole(), None, first)
        return st.Use(*self.whole(), first, self.identifier())

    def _set(self) -> st.Statement:
        start = self.index
        self.take()
        what = self.expect("PATH", "ROLE", "SESSION", "TIME").word
        if what == "SESSION" and not (
            self.at("AUTHORIZATION") and self.ahead().text not in {"=", "."}
        ):
            self.note("'AUTHORIZATION'")
            name = self.table_name()
            self.expect("=")
            return st.SetSession(*self.whole(), name, self.expression())
        if what == "TIME":
            self.expect("ZONE")
            return st.SetTimeZone(
                *self.whole(), None if self.accept("LOCAL") else self.expression()
            )
        if what == "ROLE":
            self._set_role(start)
        if what == "SESSION":
            self.take()
            self._refuse_later(start, "SET SESSION AUTHORIZATION not supported by client", NO_USERS)
        else:
            self._refuse_later(
                start,
                "SET PATH not supported by client",
                "Functions are found by their names alone: leave it out.",
            )
        if what == "SESSION" and self.token.kind in STRINGS:
            self.string()
        elif what == "PATH":
            self._path_element()
            while self.accept(","):
                self._path_element()
        else:
            self.identifier()
        self._refuse_read()

    def _path_element(self) -> None:
        self.identifier()
        if self.token.text == ".":
            # Trino's list of expected tokens omits it.
            self.take()
            self.identifier()

    # -- prepared statements

    def _prepare(self) -> st.Prepare:
        self.take()
        name = self.identifier()
        self.expect("FROM")
        start = self.token.span.start
        if self.token.word in _PREPARED:
            self._refuse_statement(
                f"Invalid statement type for prepared statement: {self.token.word.capitalize()}"
            )
        self.statement()
        return st.Prepare(*self.whole(), name, self.text[start:].rstrip())

    def _execute(self) -> st.Execute:
        self.take()
        name: Identifier | None = None
        inner: s.Literal | None = None
        if self.token.word == "IMMEDIATE" and self.ahead().kind in STRINGS:
            self.take()
            literal = self.primary()
            assert isinstance(literal, s.Literal)
            inner = literal
        else:
            self.note("'IMMEDIATE'")
            name = self.identifier()
        values = []
        if self.accept("USING"):
            values.append(self._written_value())
            while self.accept(","):
                values.append(self._written_value())
        return st.Execute(*self.whole(), name, inner, tuple(values))

    def _written_value(self) -> st.WrittenValue:
        start = self.index
        value = self.expression()
        parts = list(s.walk(value))
        name = next((part for part in parts if isinstance(part, s.Name)), None)
        if name is not None and not any(isinstance(part, s.Lambda) for part in parts):
            self.refused(
                AnalysisError(
                    "Constant expression cannot contain column references",
                    code="EXPRESSION_NOT_CONSTANT",
                    hint="Give a constant.",
                ).at(name.span)
            )
        span, is_literal = self.span_from(start), isinstance(value, s.Literal)
        text = span.of(self.text)
        return st.WrittenValue(text if is_literal else f"({text})", span, is_literal, value)

    def _deallocate(self) -> st.Deallocate:
        self.take()
        self.expect("PREPARE")
        return st.Deallocate(*self.whole(), self.identifier())

    # -- transactions

    def _start_transaction(self) -> st.StartTransaction:
        start = self.take().span
        self.expect("TRANSACTION")
        levels: list[str] = []
        accesses: list[str] = []
        if self.at("ISOLATION", "READ"):
            self._transaction_mode(levels, accesses)
            while self.accept(","):
                self._transaction_mode(levels, accesses)
        for option, values in (("isolation levels", levels), ("read modes", accesses)):
            if len(values) > 1:
                raise AnalysisError(
                    f"Multiple transaction {option} specified",
                    code="INVALID_TRANSACTION_MODE",
                    hint="Leave all but one out.",
                ).at(start)
        return st.StartTransaction(*self.whole(), accesses == ["ONLY"], "".join(levels))

    def _transaction_mode(self, levels: list[str], accesses: list[str]) -> None:
        if self.expect("ISOLATION", "READ").word == "READ":
            accesses.append(self.expect("ONLY", "WRITE").word)
            return
        self.expect("LEVEL")
        level = self.expect("READ", "REPEATABLE", "SERIALIZABLE").word
        if level != "SERIALIZABLE":
            behind = ("COMMITTED", "UNCOMMITTED") if level == "READ" else ("READ",)
            level = f"{level}_{self.expect(*behind).word}"
        levels.append(level)

    def _commit(self) -> st.Commit:
        self.take()
        self.accept("WORK")
        return st.Commit(*self.whole())

    def _rollback(self) -> st.Rollback:
        self.take()
        self.accept("WORK")
        return st.Rollback(*self.whole())


READERS: Final[dict[str, Callable[[StatementReader], st.Statement]]] = {
    "MERGE": StatementReader.merge,
    "UPDATE": StatementReader.update,
    "DELETE": StatementReader.delete,
    "INSERT": StatementReader.insert,
    "CREATE": StatementReader._create,
    "DROP": StatementReader._drop,
    "EXPLAIN": StatementReader._explain,
    "TRUNCATE": StatementReader._truncate,
    "ALTER": StatementReader._alter,
    "COMMENT": StatementReader._comment_on,
    "CALL": StatementReader._call_procedure,
    "SHOW": StatementReader._show,
    "DESCRIBE": StatementReader._describe,
    "DESC": StatementReader._describe,
    "PREPARE": StatementReader._prepare,
    "EXECUTE": StatementReader._execute,
    "DEALLOCATE": StatementReader._deallocate,
    "ANALYZE": StatementReader._analyze_table,
    "GRANT": StatementReader._grant,
    "REVOKE": StatementReader._revoke,
    "DENY": StatementReader._deny,
    "REFRESH": StatementReader._refresh,
    "RESET": StatementReader._reset,
    "SET": StatementReader._set,
    "USE": StatementReader._use,
    "START": StatementReader._start_transaction,
    "COMMIT": StatementReader._commit,
    "ROLLBACK": StatementReader._rollback,
}
