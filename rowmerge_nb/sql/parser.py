"""From text to statements: the frame of every statement is read here, expressions and queries by `rowmerge_nb.sql.grammar`."""

# The table of methods at the end belongs to the class; Reader.fail never returns.
# ruff: noqa: SLF001, RET503

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.errors import AnalysisError, ParseError
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.types import Type, parse_type
from rowmerge_nb.sql import statements as st
from rowmerge_nb.sql import syntax as s
from rowmerge_nb.sql.depth import check_tree, room
from rowmerge_nb.sql.grammar.queries import QueryReader
from rowmerge_nb.sql.grammar.reader import PRIMARY_KEY
from rowmerge_nb.sql.tokens import Kind, tokenize

if TYPE_CHECKING:
    from rowmerge_nb.sql.tokens import Token

__all__ = ["parse", "read_type", "split_statements"]

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
_CREATED: Final = ("CATALOG", "FUNCTION", "MATERIALIZED", "ROLE", "SCHEMA", "VIEW")
"""What CREATE and DROP can be about besides tables."""
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
    with room():
        reader = _StatementReader(text)
        statement = reader.statement()
        reader.expect_end()
        check_tree(statement)
    return statement


def read_type(name: s.TypeName) -> Type:
    """Give the type that a type name means.

    Raises:
        AnalysisError: TYPE_MISMATCH "Unknown type: ..." at the name.
    """
    try:
        return parse_type(re.sub(r"(?is)^(time|timestamp)(.*?)\s+without\s+time\s+zone$", r"\1\2", name.text))
    except ValueError as error:
        message = str(error) if str(error).startswith("DECIMAL") else f"Unknown type: {name.text.lower()}"
        span = name.span
        length = span.end - span.start
        raise AnalysisError(message, code="TYPE_MISMATCH", line=span.line, column=span.column, length=length) from None


class _StatementReader(QueryReader):
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
            hint = "Use %merge tables in a notebook, or engine.tables()." if word in {"SHOW", "DESC", "DESCRIBE"} else None
            self._refuse_statement(f"The statement {word} is not supported by this engine", hint)
        self.note("<query>", *(f"'{known}'" for known in _STATEMENTS))
        self.fail()

    def _whole(self) -> tuple[str, st.Span]:
        return self.text, st.Span.within(self.text, 0, len(self.text))

    def _refuse_statement(self, message: str, hint: str | None = None) -> NoReturn:
        span = self.token.span
        raise ParseError(
            message, code="NOT_SUPPORTED", line=span.line, column=span.column, length=len(self.token.text), hint=hint
        )

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
        self.undecided += matched  # UPDATE or DELETE: only what follows the condition decides
        condition = self.expression() if self.accept("AND") else None
        self.expect("THEN")
        self.undecided -= matched
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
        values = self.listed()
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
            self.restart()
            self.note("'('")
        self.note("'WITH'")
        query = self.query()
        return st.Insert(*self._whole(), target, columns, st.Query(*self._whole(), query))

    # -- tables ---------------------------------------------------------------------------------------------------

    def _create(self) -> st.CreateTable:
        if self.ahead().word == "OR":
            self._refuse_statement("CREATE OR REPLACE is not supported by this engine", "Write DROP TABLE IF EXISTS before it.")
        if self.ahead().word not in {"TABLE", ""} and self.ahead().kind is Kind.WORD:
            what = self.ahead().word
            if what in _CREATED:
                self._refuse_statement(f"The statement CREATE {what} is not supported by this engine")
        self.take()
        self.note(*(f"'{word}'" for word in (*_CREATED, "OR")))
        self.expect("TABLE")
        if_not_exists = self.token.word == "IF" and self.ahead().word == "NOT"
        if if_not_exists:
            self.take()
            self.take()
            self.expect("EXISTS")
        else:
            self.note("'IF'")
        named_if = self.token.word == "IF"
        name = self.table_name()
        if named_if:
            self.note("'NOT'")
        aliases, columns = self._create_columns()
        self._refuse_comment()
        properties = self._properties()
        if columns or not (aliases or self.at("AS")):
            if not columns:
                self.fail()
            return st.CreateTable(*self._whole(), name, columns, (), properties, if_not_exists, None)
        self.expect("AS")
        return self._create_as(name, aliases, properties, if_not_exists)

    def _create_as(
        self, name: st.TableName, aliases: tuple[st.Identifier, ...], properties: dict[str, Any], if_not_exists: bool
    ) -> st.CreateTable:
        self.note("'('", "'WITH'")
        tree = self.query()
        with_data = True
        if self.accept("WITH"):
            with_data = self.accept("NO") is None
            self.expect("DATA")
        query = st.Query(*self._whole(), tree)
        return st.CreateTable(*self._whole(), name, (), aliases, properties, if_not_exists, query, with_data)

    def _create_columns(self) -> tuple[tuple[st.Identifier, ...], tuple[st.ColumnDefinition, ...]]:
        """Column names alone (CREATE TABLE AS) or columns with types; one look behind the first name decides."""
        if not self.accept("("):
            return (), ()
        if self.at_identifier() and self.ahead().word in {",", ")"}:
            aliases = self.identifiers()
            self.expect(")")
            return aliases, ()
        columns = [self._column()]
        self.restart()
        while self.accept(","):
            columns.append(self._column())
            self.restart()
        self.expect(")")
        return (), tuple(columns)

    def _column(self) -> st.ColumnDefinition:
        if self.at("LIKE"):
            self._refuse_statement(
                "LIKE in CREATE TABLE is not supported by this engine", "Write CREATE TABLE ... AS ... WITH NO DATA."
            )
        name = self.identifier()
        written = self.type_name()
        try:
            kind = read_type(written)
        except AnalysisError as error:
            if (name.text.upper(), written.text[:3].upper()) == ("PRIMARY", "KEY"):
                error.hint = PRIMARY_KEY
            raise
        nullable = True
        if self.accept("NOT"):
            self.expect("NULL")
            nullable = False
        self._refuse_comment()
        return st.ColumnDefinition(name, kind, nullable)

    def _refuse_comment(self) -> None:
        if self.at("COMMENT"):
            self._refuse_statement("Comments of tables and columns are not supported by this engine", "Leave the COMMENT out.")

    def _properties(self) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        if not self.accept("WITH"):
            return properties
        self.expect("(")
        while True:
            name = self.identifier()
            self.expect("=")
            if name.value in properties:
                self.error(f"Duplicate property: {name.value}", name.span)
            self.note("'DEFAULT'")
            properties[name.value] = self._property_value(self.expression())
            if not self.accept(","):
                self.expect(")")
                return properties

    def _property_value(self, value: s.Expression) -> Any:
        """A plain Python value: properties are constants, and a bare word (``paradigm = DELETE_ROW_...``) is its own text."""
        if isinstance(value, s.Name) and len(value.parts) == 1:
            return value.parts[0].text
        if isinstance(value, s.ArrayConstructor):
            return tuple(self._property_value(item) for item in value.items)
        if isinstance(value, s.Unary) and isinstance(value.operand, s.Literal):
            number = self._property_value(value.operand)
            return -number if value.operator == "-" else number
        if isinstance(value, s.Literal) and value.kind in _CONSTANTS:
            return _CONSTANTS[value.kind](value.value)
        span = value.span
        msg = f"A table property is a constant or an ARRAY of constants, not {span.of(self.text)!r}"
        raise AnalysisError(msg, code="INVALID_TABLE_PROPERTY", line=span.line, column=span.column, length=span.end - span.start)

    def _drop(self) -> st.DropTable:
        if self.ahead().kind is Kind.WORD and self.ahead().word in _CREATED:
            self._refuse_statement(f"The statement DROP {self.ahead().word} is not supported by this engine")
        self.take()
        self.note(*(f"'{word}'" for word in _CREATED))
        self.expect("TABLE")
        if_exists = self.token.word == "IF" and self.ahead().word == "EXISTS"
        if if_exists:
            self.take()
            self.take()
        else:
            self.note("'IF'")
        name = self.table_name()
        return st.DropTable(*self._whole(), name, if_exists)

    # -- EXPLAIN --------------------------------------------------------------------------------------------------

    def _explain(self) -> st.Explain:
        if self.ahead().word in {"ANALYZE", "VERBOSE"}:
            self._refuse_statement(
                "EXPLAIN ANALYZE is not supported by this engine", "Run the statement: its report has the numbers."
            )
        self.take()
        self.note("'('")
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
        if self.token.word == "EXPLAIN":
            self._refuse_statement("EXPLAIN of EXPLAIN is not supported by this engine", "Write EXPLAIN once.")
        self.statement()
        return parse(self.text[place:end].rstrip()) if self.token.kind is Kind.END else self.fail()


_CONSTANTS: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "decimal": float,
    "double": float,
    "boolean": lambda text: text == "true",
}

_READERS: Final = {
    "MERGE": _StatementReader._merge,
    "UPDATE": _StatementReader._update,
    "DELETE": _StatementReader._delete,
    "INSERT": _StatementReader._insert,
    "CREATE": _StatementReader._create,
    "DROP": _StatementReader._drop,
    "EXPLAIN": _StatementReader._explain,
}
