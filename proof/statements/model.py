"""Statements as data, for generators, printers and the oracle.

The model is deliberately small and independent of the engine's front end: a statement reaches the
engine as text only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rowmerge_nb.spi.types import Type

__all__ = [
    "Aggregate",
    "Assignment",
    "Call",
    "Cast",
    "Clause",
    "Column",
    "ColumnDefinition",
    "DeleteAction",
    "DeleteStatement",
    "Expression",
    "GroupSource",
    "InSubquery",
    "InsertAction",
    "Literal",
    "MergeStatement",
    "QuerySource",
    "Row",
    "ScalarSubquery",
    "Scenario",
    "Settings",
    "Source",
    "Statement",
    "Table",
    "TableSource",
    "UpdateAction",
    "UpdateStatement",
    "Value",
    "ValuesSource",
    "kind_of",
]

Value: TypeAlias = object
"""A value of a row: bool, int, float, Decimal, str, date, datetime, or None for NULL."""

Row: TypeAlias = tuple[Value, ...]


def kind_of(sql_type: Type) -> str:
    """Return a type without its parameters.

    >>> from rowmerge_nb.spi.types import decimal_of
    >>> kind_of(decimal_of(9, 2))
    'decimal'
    """
    return sql_type.base


# -- expressions


@dataclass(frozen=True)
class Literal:
    """A constant; ``bare`` writes NULL without its type, where a column gives it one."""

    value: Value
    type: Type
    bare: bool = False


@dataclass(frozen=True)
class Column:
    """A column of a relation in scope."""

    relation: str
    name: str


@dataclass(frozen=True)
class Call:
    """An operator or function of `proof.statements.operations`, by its name there."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Cast:
    """``CAST(argument AS type)``."""

    argument: Expression
    type: Type


@dataclass(frozen=True)
class InSubquery:
    """``argument [NOT] IN (SELECT column FROM table)``."""

    argument: Expression
    table: str
    column: str
    negated: bool


@dataclass(frozen=True)
class ScalarSubquery:
    """``(SELECT function(column) FROM table [WHERE column of it = outer])``: one value, even for an
    empty table.

    Args:
        function: ``max``, ``min`` or ``count``.
        table: the table.
        column: the aggregated column.
        key: a column of the table, compared with ``outer``; ``""`` without a condition.
        outer: an expression over the statement's rows; None without a condition.
    """

    function: str
    table: str
    column: str
    key: str = ""
    outer: Expression | None = None


Expression: TypeAlias = Literal | Column | Call | Cast | InSubquery | ScalarSubquery


# -- tables


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of a table or of a source."""

    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """A table with its rows."""

    name: str
    columns: tuple[ColumnDefinition, ...]
    rows: tuple[Row, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> ColumnDefinition:
        """Return a column by its name."""
        return next(column for column in self.columns if column.name == name)


# -- sources


@dataclass(frozen=True)
class TableSource:
    """A table under an alias."""

    table: str
    alias: str
    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True)
class QuerySource:
    """``(SELECT expressions FROM table [WHERE condition] [UNION ALL the same again])`` under an
    alias.

    Args:
        table: the table, under its own name.
        alias: the name of the query.
        columns: the names and types of the query's columns.
        values: the expressions, over the table's columns.
        where: the condition, or None.
        doubled: the query's rows come twice, by UNION ALL.
    """

    table: str
    alias: str
    columns: tuple[ColumnDefinition, ...]
    values: tuple[Expression, ...]
    where: Expression | None
    doubled: bool = False


@dataclass(frozen=True)
class Aggregate:
    """``function(column)`` of a grouped query: ``max``, ``min`` or ``count``."""

    function: str
    column: str


@dataclass(frozen=True)
class GroupSource:
    """``(SELECT keys, aggregates FROM table GROUP BY keys)`` under an alias; the columns are the
    keys, then the aggregates.
    """

    table: str
    alias: str
    columns: tuple[ColumnDefinition, ...]
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True)
class ValuesSource:
    """``(VALUES ...)`` under an alias with column names."""

    alias: str
    columns: tuple[ColumnDefinition, ...]
    rows: tuple[Row, ...]


Source: TypeAlias = TableSource | QuerySource | GroupSource | ValuesSource


# -- statements


@dataclass(frozen=True)
class Assignment:
    """``column = value``."""

    column: str
    value: Expression


@dataclass(frozen=True)
class UpdateAction:
    """``UPDATE SET ...``."""

    assignments: tuple[Assignment, ...]


@dataclass(frozen=True)
class DeleteAction:
    """``DELETE``."""


@dataclass(frozen=True)
class InsertAction:
    """``INSERT [(columns)] VALUES (values)``; columns are None if omitted."""

    columns: tuple[str, ...] | None
    values: tuple[Expression, ...]


@dataclass(frozen=True)
class Clause:
    """A WHEN clause: for a matched row an update or delete, for an unmatched one an insert."""

    condition: Expression | None
    action: UpdateAction | DeleteAction | InsertAction

    @property
    def matched(self) -> bool:
        """Whether it is a WHEN MATCHED clause."""
        return not isinstance(self.action, InsertAction)


@dataclass(frozen=True)
class MergeStatement:
    """A MERGE."""

    target: str
    alias: str
    source: Source
    on: Expression
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class UpdateStatement:
    """An UPDATE; its expressions name the columns by the table."""

    target: str
    assignments: tuple[Assignment, ...]
    where: Expression | None


@dataclass(frozen=True)
class DeleteStatement:
    """A DELETE; its condition names the columns by the table."""

    target: str
    where: Expression | None


Statement: TypeAlias = MergeStatement | UpdateStatement | DeleteStatement


@dataclass(frozen=True)
class Settings:
    """How the engine under test runs a statement, and how it stores the target.

    Args:
        paradigm: name of the row change paradigm.
        era: ``documents`` or ``current``.
        duplicates: ``trino`` or ``standard``.
        trace: ``auto`` or ``off``.
        partitioned_by: the target's partition columns.
        bucketed_by: the target's bucket columns; it has three buckets.
        rules: whether the plan is optimized.
    """

    paradigm: str = "DELETE_ROW_AND_INSERT_ROW"
    era: str = "documents"
    duplicates: str = "trino"
    trace: str = "auto"
    partitioned_by: tuple[str, ...] = ()
    bucketed_by: tuple[str, ...] = ()
    rules: bool = True


@dataclass(frozen=True)
class Scenario:
    """A statement with its tables, the target first."""

    tables: tuple[Table, ...]
    statement: Statement
    settings: Settings = Settings()

    @property
    def target(self) -> Table:
        """The table that the statement changes."""
        return self.tables[0]

    def table(self, name: str) -> Table:
        """Return a table by its name."""
        return next(table for table in self.tables if table.name == name)

    @property
    def kind(self) -> str:
        """The statement's kind: ``MERGE``, ``UPDATE`` or ``DELETE``."""
        return type(self.statement).__name__.removesuffix("Statement").upper()
