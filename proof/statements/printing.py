"""Statements of the model as text, for Trino (our engine), PostgreSQL, DuckDB and Spark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from proof.statements.model import (
    Call,
    Cast,
    Column,
    DeleteAction,
    InSubquery,
    Literal,
    MergeStatement,
    QuerySource,
    TableSource,
    UpdateAction,
    UpdateStatement,
    ValuesSource,
)
from proof.statements.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from proof.statements.model import (
        Assignment,
        Clause,
        Expression,
        GroupSource,
        Row,
        Scenario,
        Source,
        Table,
    )
    from rowmerge_nb.spi.types import Type

__all__ = ["Printer", "script"]

_INTEGER: Final = 1 << 31
_TYPES: Final = {
    "postgresql": {"double": "double precision", "timestamp": "timestamp(6)"},
    "duckdb": {"timestamp": "timestamp"},
    "spark": {"varchar": "string", "timestamp": "timestamp_ntz"},
    "trino": {},
}


@dataclass(frozen=True)
class Printer:
    """Writes statements in one dialect.

    Args:
        dialect: ``trino``, ``postgresql``, ``duckdb`` or ``spark``.

    >>> from rowmerge_nb.spi.types import DOUBLE
    >>> [Printer(dialect).expression(Literal(-0.5, DOUBLE)) for dialect in ("trino", "postgresql")]
    ['(-0.5E0)', 'CAST((-0.5) AS double precision)']
    """

    dialect: str

    # -- expressions

    def type(self, sql_type: Type) -> str:
        """Return a type's name."""
        return _TYPES[self.dialect].get(sql_type.base, str(sql_type))

    def expression(self, expression: Expression) -> str:
        """Return an expression with the necessary parentheses."""
        if isinstance(expression, Literal):
            return self._literal(expression)
        if isinstance(expression, Column):
            return f"{expression.relation}.{expression.name}"
        if isinstance(expression, Call):
            return self._call(expression)
        if isinstance(expression, Cast):
            return f"CAST({self.expression(expression.argument)} AS {self.type(expression.type)})"
        if isinstance(expression, InSubquery):
            operator = "NOT IN" if expression.negated else "IN"
            argument = self.expression(expression.argument)
            return (
                f"({argument} {operator} (SELECT q.{expression.column} FROM {expression.table} q))"
            )
        where = (
            f" WHERE q.{expression.key} = {self.expression(expression.outer)}"
            if expression.outer is not None
            else ""
        )
        return (
            f"(SELECT {expression.function}(q.{expression.column}) FROM {expression.table}"
            f" q{where})"
        )

    def _call(self, call: Call) -> str:
        arguments = [self.expression(argument) for argument in call.arguments]
        branches = zip(arguments[:-1:2], arguments[1::2], strict=False)
        return (
            OPERATIONS[call.name]
            .texts[self.dialect]
            .format(
                *arguments,
                all=", ".join(arguments),
                rest=", ".join(arguments[1:]),
                branches="".join(
                    f" WHEN {condition} THEN {value}" for condition, value in branches
                ),
                last=arguments[-1],
            )
        )

    def _literal(self, literal: Literal) -> str:
        value, sql_type = literal.value, literal.type
        if value is None:
            return "NULL" if literal.bare else f"CAST(NULL AS {self.type(sql_type)})"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            text = "'" + value.replace("'", "''") + "'"
            # A bare text has an unknown type in PostgreSQL, which some functions reject.
            return f"CAST({text} AS varchar)" if self.dialect == "postgresql" else text
        if sql_type.base == "timestamp":
            assert isinstance(value, datetime)
            word = "TIMESTAMP_NTZ" if self.dialect == "spark" else "TIMESTAMP"
            return f"{word} '{value.isoformat(' ', 'microseconds')}'"
        if sql_type.base == "date":
            return f"DATE '{value}'"
        return self._number(str(value), sql_type)

    def _number(self, text: str, sql_type: Type) -> str:
        # Parentheses, since two minus signs begin a comment.
        number = f"({text})" if text.startswith("-") else text
        if sql_type.base == "integer":
            return number
        if self.dialect == "trino":
            if sql_type.base == "bigint":
                return number if abs(int(text)) >= _INTEGER else f"BIGINT '{text}'"
            return (
                f"({text}E0)"
                if sql_type.base == "double" and text.startswith("-")
                else f"{text}E0"
                if sql_type.base == "double"
                else number
            )
        return f"CAST({number} AS {self.type(sql_type)})"

    def row(self, row: Row, kinds: Iterable[Type]) -> str:
        """Return a row of literals."""
        return f"({', '.join(self._literal(Literal(value, sql_type)) for value, sql_type in zip(row, kinds, strict=True))})"

    # -- statements

    def statement(self, scenario: Scenario) -> str:
        """Return a scenario's statement."""
        statement = scenario.statement
        if isinstance(statement, MergeStatement):
            clauses = statement.clauses
            if self.dialect == "spark":
                # Spark requires the clauses of matched rows first. This does not change which
                # clause takes a row.
                clauses = tuple(sorted(clauses, key=lambda clause: not clause.matched))
            lines = [
                f"MERGE INTO {statement.target} AS {statement.alias}",
                f"USING {self._source(statement.source)}",
                f"ON {self.expression(statement.on)}",
                *(f"  {self._clause(clause, scenario.target)}" for clause in clauses),
            ]
            return "\n".join(lines)
        where = f" WHERE {self.expression(statement.where)}" if statement.where is not None else ""
        if isinstance(statement, UpdateStatement):
            return (
                f"UPDATE {statement.target} SET {self._assignments(statement.assignments)}{where}"
            )
        return f"DELETE FROM {statement.target}{where}"

    def _source(self, source: Source) -> str:
        if isinstance(source, TableSource):
            return f"{source.table} AS {source.alias}"
        if isinstance(source, ValuesSource):
            kinds = [column.type for column in source.columns]
            rows = ", ".join(self.row(row, kinds) for row in source.rows)
            names = f"{source.alias} ({', '.join(column.name for column in source.columns)})"
            # Spark does not support column aliases of a MERGE's source.
            return (
                f"(VALUES {rows} AS {names}) AS {source.alias}"
                if self.dialect == "spark"
                else f"(VALUES {rows}) AS {names}"
            )
        query = self._query(source) if isinstance(source, QuerySource) else self._grouped(source)
        return f"({query}) AS {source.alias}"

    def _query(self, source: QuerySource) -> str:
        pairs = zip(source.values, source.columns, strict=True)
        values = ", ".join(f"{self.expression(value)} AS {column.name}" for value, column in pairs)
        where = f" WHERE {self.expression(source.where)}" if source.where is not None else ""
        query = f"SELECT {values} FROM {source.table}{where}"
        return f"{query} UNION ALL {query}" if source.doubled else query

    def _grouped(self, source: GroupSource) -> str:
        values = [*source.keys, *(f"{a.function}({a.column})" for a in source.aggregates)]
        aliased = ", ".join(
            f"{value} AS {column.name}"
            for value, column in zip(values, source.columns, strict=True)
        )
        return f"SELECT {aliased} FROM {source.table} GROUP BY {', '.join(source.keys)}"

    def _clause(self, clause: Clause, target: Table) -> str:
        head = "WHEN MATCHED" if clause.matched else "WHEN NOT MATCHED"
        if clause.condition is not None:
            head += f" AND {self.expression(clause.condition)}"
        elif self.dialect == "spark":
            # Without a condition, it must be the last one of its kind.
            head += " AND TRUE"
        action = clause.action
        if isinstance(action, UpdateAction):
            return f"{head} THEN UPDATE SET {self._assignments(action.assignments)}"
        if isinstance(action, DeleteAction):
            return f"{head} THEN DELETE"
        listed_columns = (
            target.names if action.columns is None and self.dialect == "spark" else action.columns
        )
        columns = f" ({', '.join(listed_columns)})" if listed_columns is not None else ""
        return (
            f"{head} THEN INSERT{columns} VALUES"
            f" ({', '.join(self.expression(value) for value in action.values)})"
        )

    def _assignments(self, assignments: Iterable[Assignment]) -> str:
        return ", ".join(
            f"{assignment.column} = {self.expression(assignment.value)}"
            for assignment in assignments
        )

    # -- tables

    def create(self, table: Table, words: str = "CREATE TABLE") -> str:
        """Return a CREATE TABLE."""
        columns = ", ".join(
            f"{c.name} {self.type(c.type)}{'' if c.nullable else ' NOT NULL'}"
            for c in table.columns
        )
        return f"{words} {table.name} ({columns})"

    def insert(self, table: Table) -> str:
        """Return an INSERT of all rows of a nonempty table."""
        kinds = [column.type for column in table.columns]
        return (
            f"INSERT INTO {table.name} VALUES"
            f" {', '.join(self.row(row, kinds) for row in table.rows)}"
        )


def script(scenario: Scenario, dialect: str = "trino") -> str:
    """Return a scenario as a script: its tables, their rows, the statement."""
    printer = Printer(dialect)
    statements: list[str] = []
    for table in scenario.tables:
        create = printer.create(table)
        if dialect == "trino" and table is scenario.target:
            create += _properties(scenario)
        statements += [create, *([printer.insert(table)] if table.rows else [])]
    return "".join(f"{text};\n" for text in [*statements, printer.statement(scenario)])


def _properties(scenario: Scenario) -> str:
    settings = scenario.settings
    properties = [f"paradigm = '{settings.paradigm}'"]
    for name, columns in (
        ("partitioned_by", settings.partitioned_by),
        ("bucketed_by", settings.bucketed_by),
    ):
        if columns:
            listed = ", ".join(f"'{column}'" for column in columns)
            properties.append(f"{name} = ARRAY[{listed}]")
    if settings.bucketed_by:
        properties.append("bucket_count = 3")
    return f" WITH ({', '.join(properties)})"
