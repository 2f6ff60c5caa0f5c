"""From text to statements: the frame of every statement is read here, expressions and queries by `rowmerge_nb.sql.grammar`."""

# The table of methods at the end belongs to the class; Reader.fail never returns.
# ruff: noqa: SLF001, RET503

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql import statements as st
from rowmerge_nb.sql import syntax as s
from rowmerge_nb.sql.grammar.definitions import DefinitionReader, read_type
from rowmerge_nb.sql.tokens import Kind, tokenize

if TYPE_CHECKING:
    from rowmerge_nb.sql.tokens import Token

__all__ = ["parse", "parse_query", "read_type", "split_statements"]

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
_KINDS: Final = ("LOGICAL", "DISTRIBUTED", "VALIDATE", "IO")
_FORMATS: Final = ("TEXT", "GRAPHVIZ", "JSON")


def split_statements(text: str) -> tuple[tuple[str, int], ...]:
    r"""Split a cell at its semicolons: each statement with the offset where it starts.

    Semicolons in literals, quoted names and comments do not split; empty statements are left out, as are comments around a
    statement.

    >>> split_statements("SELECT ';';  -- one; two\n SELECT 2 ;")
    (("SELECT ';'", 0), ('SELECT 2', 26))
    """
    found: list[tuple[str, int]] = []
    run: list[Token] = []
    for token in tokenize(text):
        if token.kind is not Kind.END and token.text != ";":
            run.append(token)
        elif run:
            start, end = run[0].span.start, run[-1].span.end
            found.append((text[start:end], start))
            run = []
    return tuple(found)


def parse(text: str) -> st.Statement:
    """Read one statement.

    Raises:
        ParseError: SYNTAX_ERROR with Trino's message and position.

    >>> parse("DROP TABLE IF EXISTS accounts").if_exists
    True
    >>> parse("MERGE accounts USING x ON true WHEN MATCHED THEN DELETE")
    Traceback (most recent call last):
    rowmerge_nb.errors.ParseError: SYNTAX_ERROR: line 1:7: mismatched input 'accounts'. Expecting: 'INTO'
    """
    reader = _StatementReader(text)
    statement = reader.statement()
    reader.expect_end()
    return statement


def parse_query(text: str) -> s.QueryNode:
    """Read a query that stands alone, as views keep it.

    Raises:
        ParseError: as `parse` does.

    >>> parse_query("SELECT 1").limit is None
    True
    """
    reader = _StatementReader(text)
    tree = reader.query()
    reader.expect_end()
    return tree


class _StatementReader(DefinitionReader):
    """Reads a whole statement."""

    def statement(self) -> st.Statement:
        """Read the statement that the first word announces."""
        word = self.token.word
        reader = _READERS.get(word)
        if reader is not None and self.token.kind is Kind.WORD:
            return reader(self)
        if word in {"(", "SELECT", "TABLE", "VALUES", "WITH"}:
            return self._query_statement()
        if word in _STATEMENTS and self.token.kind is Kind.WORD:
            self._refuse_statement(f"The statement {word} is not supported by this engine")
        self.note("<query>", *(f"'{known}'" for known in _STATEMENTS))
        self.fail()

    def _query_statement(self) -> st.Query:
        tree = self.query()
        return st.Query(*self._whole(), tree)

    # -- MERGE ----------------------------------------------------------------------------------------------------

    def _merge(self) -> st.Merge:
        self.take()
        self.expect("INTO")
        target = self.table_name()
        self.restart()
        alias = self.identifier() if self.accept("AS") else self.accept_alias()
        self.expect("USING")
        source = self.relation()
        self.expect("ON")
        on = self.expression()
        self.restart()
        clauses = [self._clause(0)]
        while self.token.word == "WHEN":
            clauses.append(self._clause(len(clauses)))
        self.note("'WHEN'")
        return st.Merge(*self._whole(), target, alias, source, on, tuple(clauses))

    def _clause(self, number: int) -> st.MergeClause:
        start = self.index
        self.expect("WHEN")
        matched = self.accept("NOT") is None
        self.expect("MATCHED")
        condition = self.expression() if self.accept("AND") else None
        self.expect("THEN")
        operation, columns, values = self._matched_action() if matched else self._insert_action()
        return st.MergeClause(number, matched, operation, condition, columns, values, self.span_from(start))

    def _matched_action(self) -> tuple[Operation, tuple[st.Identifier, ...], tuple[s.Expression, ...]]:
        if self.expect("DELETE", "UPDATE").word == "DELETE":
            return Operation.DELETE, (), ()
        self.expect("SET")
        return Operation.UPDATE, *self._assignments()

    def _assignments(self) -> tuple[tuple[st.Identifier, ...], tuple[s.Expression, ...]]:
        columns, values = [], []
        while True:
            columns.append(self.identifier())
            self.expect("=")
            values.append(self.expression())
            if not self.accept(","):
                return tuple(columns), tuple(values)

    def _insert_action(self) -> tuple[Operation, tuple[st.Identifier, ...], tuple[s.Expression, ...]]:
        self.expect("INSERT")
        columns = self.accept_columns()
        self.expect("VALUES")
        self.expect("(")
        values = self.expressions()
        self.expect(")")
        self.restart()
        return Operation.INSERT, columns, values

    # -- the other statements that change rows --------------------------------------------------------------------

    def _update(self) -> st.Update:
        self.take()
        target = self.table_name()
        self.expect("SET")
        columns, values = self._assignments()
        where = self.expression() if self.accept("WHERE") else None
        return st.Update(*self._whole(), target, columns, values, where)

    def _delete(self) -> st.Delete:
        self.take()
        self.expect("FROM")
        target = self.table_name()
        where = self.expression() if self.accept("WHERE") else None
        return st.Delete(*self._whole(), target, where)

    def _insert(self) -> st.Insert:
        self.take()
        self.expect("INTO")
        target = self.table_name()
        columns = None
        if self.token.word == "(" and not self.query_follows():
            columns = self.accept_columns()
        else:
            self.note("'('")
        query = self.query()
        return st.Insert(*self._whole(), target, columns, st.Query(*self._whole(), query))

    # -- EXPLAIN --------------------------------------------------------------------------------------------------

    def _explain(self) -> st.Explain:
        if self.ahead().word in {"ANALYZE", "VERBOSE"}:
            self._refuse_statement(
                "EXPLAIN ANALYZE is not supported by this engine", "Run the statement: its report has the numbers."
            )
        self.take()
        kind, form = "DISTRIBUTED", "TEXT"
        if self.token.word == "(" and self.ahead().word in {"TYPE", "FORMAT"}:
            self.take()
            while True:
                if self.expect("FORMAT", "TYPE").word == "TYPE":
                    kind = self.expect(*_KINDS).word
                else:
                    form = self.expect(*_FORMATS).word
                if not self.accept(","):
                    break
            self.expect(")")
        inner = self._explained()
        return st.Explain(*self._whole(), inner, kind, form)

    def _explained(self) -> st.Statement:
        """The explained statement with the text and places of its own, as if it stood alone."""
        place = self.token.span.start
        end = next((t.span.start for t in self.tokens[self.index :] if t.text == ";"), len(self.text))
        self.statement()
        return parse(self.text[place:end].rstrip()) if self.token.kind is Kind.END else self.fail()


_READERS: Final = {
    "MERGE": _StatementReader._merge,
    "UPDATE": _StatementReader._update,
    "DELETE": _StatementReader._delete,
    "INSERT": _StatementReader._insert,
    "CREATE": _StatementReader._create,
    "DROP": _StatementReader._drop,
    "EXPLAIN": _StatementReader._explain,
    "TRUNCATE": _StatementReader._truncate,
    "SHOW": _StatementReader._show,
    "DESCRIBE": _StatementReader._describe,
    "DESC": _StatementReader._describe,
}
