"""The meaning of a statement: names bound to tables and columns, expressions typed and coerced.

Queries are trees over *symbols*: column names that are unique within the statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.spi.metadata import ColumnMetadata, TableStatistics
from rowmerge_nb.sql.typed.expressions import references

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rowmerge_nb.base.errors import AnalysisError
    from rowmerge_nb.spi.alterations import Alteration
    from rowmerge_nb.spi.handles import ConnectorTableHandle, ConnectorTableVersion
    from rowmerge_nb.spi.metadata import ConnectorTableMetadata, ConnectorViewDefinition
    from rowmerge_nb.spi.operations import Operation
    from rowmerge_nb.spi.page_source import Constraint
    from rowmerge_nb.spi.procedures import Procedure, TableProcedure
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.rows.stored_rows import StoredRows
    from rowmerge_nb.sql.tree.statements import Explain, Span
    from rowmerge_nb.sql.typed.expressions import Origin, Typed
    from rowmerge_nb.sql.typed.queries import Query


class Rows(Protocol):
    """Rows written in the statement itself."""

    def table(self) -> pa.Table:
        """Return the rows; raise ExecutionError for a value that its column's type cannot hold."""


def _by_none() -> bool:
    return False


@dataclass(frozen=True)
class TableBinding:
    """A table that the statement names: a catalog's, a DataFrame of the notebook, or rows of constants.

    Args:
        display: the name as written in the statement.
        catalog: ``""`` for a DataFrame and for a table of ``information_schema``.
        name: catalog, schema and table; for a DataFrame, its name alone.
        view: the name in Spark text, unique per binding within the engine; its columns are ``c0``, ``c1``, ...
        handle: None without a connector.
        metadata: None for a DataFrame.
        dataframe: a Spark DataFrame, an Arrow table, or the rows of a table of ``information_schema``.
        rows: the rows of VALUES; reading them may raise.
        row_count: the exact number of rows, if known without reading.
        deterministic: reading it twice within the statement returns the same rows.
        is_read_by_tasks: whether every task can read it by itself, with the same rows in the same order.
        version: the version that the statement names; None for the current one.
        hidden: further columns that the statement may name; they are read behind the others.
        checks_reads: whether the commit of a change checks what its scans have read (`ConnectorMetadata.checks_reads`).
        refused: errors of DataFrame columns that no SQL type holds, by name; raised if the statement reads the column.
    """

    display: str
    catalog: str
    name: tuple[str, ...]
    columns: tuple[ColumnMetadata, ...]
    view: str
    handle: ConnectorTableHandle | None = None
    metadata: ConnectorTableMetadata | None = None
    dataframe: Any = field(default=None, compare=False)
    rows: Rows | None = field(default=None, compare=False)
    row_count: int | None = None
    statistics: Callable[[], TableStatistics] = field(default=TableStatistics, compare=False)
    deterministic: bool = True
    is_read_by_tasks: Callable[[], bool] = field(default=_by_none, compare=False)
    version: ConnectorTableVersion | None = None
    hidden: tuple[ColumnHandle, ...] = ()
    checks_reads: bool = False
    refused: Mapping[str, AnalysisError] = field(default_factory=dict, compare=False)

    @property
    def has_rows_at_hand(self) -> bool:
        """Whether its rows are in this process: those of VALUES, or of a DataFrame that is not Spark's."""
        return self.rows is not None or (self.dataframe is not None and self.deterministic)

    @property
    def readable(self) -> tuple[ColumnHandle, ...]:
        """All columns that expressions can name, hidden ones included."""
        return (*(ColumnHandle(column.name, column.type) for column in self.columns), *self.hidden)

    @property
    def qualified(self) -> str:
        """The full name for display."""
        return ".".join(self.name)

    @property
    def kind(self) -> str:
        """What the table is, if it has no connector."""
        return "a DataFrame of the notebook" if len(self.name) == 1 else "a table that tells of its catalog"

    @property
    def remedy(self) -> str:
        """A hint that leads to a table that can be changed, if it has no connector."""
        return "Register it as a table first." if len(self.name) == 1 else "CREATE TABLE AS copies its rows into a table."

    def shown(self, name: str) -> str:
        """Return a name followed by the version, if the statement names one."""
        return name if self.version is None else f"{name} {self.version}"

    @property
    def estimated_rows(self) -> int | None:
        """The number of rows or an upper bound, if known."""
        return self.statistics().row_count if self.row_count is None else self.row_count

    @property
    def data_size(self) -> int | None:
        """The size of the rows in bytes, if known."""
        return int(self.dataframe.nbytes) if self.dataframe is not None and self.has_rows_at_hand else self.statistics().data_size


@dataclass(frozen=True)
class ViewBinding:
    """A view that the statement names; its name is catalog, schema and view."""

    name: tuple[str, str, str]
    definition: ConnectorViewDefinition

    @property
    def qualified(self) -> str:
        """The full name for display."""
        return ".".join(self.name)


class Tables(Protocol):
    """The catalogs as the analyzer sees them; the engine implements this."""

    def resolve(self, parts: Sequence[str], version: ConnectorTableVersion | None = None) -> TableBinding | None:
        """Return a table by one to three name parts, or None.

        Parts are in lower case except for DataFrames. Without a version the current one is meant.
        """

    def evaluate(self, values: Sequence[Typed]) -> Sequence[Any]:
        """Compute expressions that read no columns, all at the same moment; RowMergeError if that fails."""

    def qualify(self, parts: Sequence[str]) -> tuple[str, str, str]:
        """Complete a name by the default catalog and schema; RowMergeError CATALOG_NOT_FOUND or SCHEMA_NOT_FOUND."""

    def view(self, parts: Sequence[str]) -> ViewBinding | None:
        """Return a view by one to three name parts, or None."""

    def catalogs(self) -> Sequence[str]:
        """Return the names of all catalogs, sorted."""

    def default(self) -> tuple[str, str]:
        """Return the default catalog and schema."""

    def user(self) -> str:
        """Return the name of the user who runs the statement."""

    def schemas(self, catalog: str) -> Sequence[str]:
        """Return the names of a catalog's schemas, sorted."""

    def has_schema(self, catalog: str, schema: str) -> bool:
        """Return whether the schema exists."""

    def cascades(self, catalog: str) -> bool:
        """Return whether DROP SCHEMA ... CASCADE works in a catalog."""

    def settings(self) -> Mapping[str, str]:
        """Return the session properties that were set."""

    def stores_comments(self, catalog: str) -> bool:
        """Return whether tables and columns keep comments."""

    def replaces_tables(self, catalog: str) -> bool:
        """Return whether CREATE OR REPLACE TABLE works."""

    def keeps_sizes(self, catalog: str) -> bool:
        """Return whether CREATE TABLE AS keeps lengths and precisions."""

    def alters_fields(self, catalog: str) -> bool:
        """Return whether ALTER TABLE can add, drop and rename fields of rows."""

    def evolves_tables(self, catalog: str) -> bool:
        """Return whether a MERGE can add columns."""

    def evolved(self, table: TableBinding, columns: Sequence[ColumnMetadata]) -> TableBinding:
        """Return a table with new columns behind its own; RowMergeError if the store refuses them."""

    def stores_defaults(self, catalog: str) -> bool:
        """Return whether columns keep default values."""

    def relations(self, catalog: str, schema: str) -> Sequence[str]:
        """Return the names of a schema's tables and views, sorted."""

    def procedures(self, catalog: str) -> Sequence[Procedure]:
        """Return the procedures of a catalog."""

    def table_procedures(self, catalog: str) -> Sequence[TableProcedure]:
        """Return the procedures of a catalog's tables."""

    def hidden(self, table: TableBinding) -> tuple[ColumnHandle, ...]:
        """Return the table's columns that ``*`` omits."""

    def names(self) -> Sequence[str]:
        """Return all names that "did you mean" may suggest."""


@dataclass(frozen=True)
class Field:
    """A column that expressions can name.

    Args:
        symbol: its name within the plan and, in backquotes, in Spark text.
        name: the name as written; None for a column without a name.
        relation: the table name or alias that may qualify it.
    """

    symbol: str
    name: str | None
    type: Type
    relation: str | None = None


@dataclass(frozen=True)
class ConditionTerm:
    """A condition, or a part of one that is true, false or unknown by itself.

    Args:
        text: the part as written.
        operator: ``AND``, ``OR``, ``NOT``, or ``""`` without further parts.
        terms: the parts, in order.
    """

    tree: Typed
    text: str
    operator: str = ""
    terms: tuple[ConditionTerm, ...] = ()

    def walk(self) -> Iterator[ConditionTerm]:
        """Yield the condition and all its parts, parents first."""
        yield self
        for term in self.terms:
            yield from term.walk()


@dataclass(frozen=True)
class TypedExpression:
    """A whole expression of a statement.

    Args:
        tree: the typed and coerced tree, with its origin.
        text: the expression as written.
        condition: the parts of a condition; None for other expressions.
    """

    tree: Typed
    text: str
    condition: ConditionTerm | None = None

    @property
    def type(self) -> Type:
        """The SQL type."""
        return self.tree.type

    @property
    def origin(self) -> Origin:
        """The origin of the tree."""
        assert self.tree.origin is not None
        return self.tree.origin

    @property
    def span(self) -> Span:
        """The span in the text."""
        return self.origin.span

    @property
    def references(self) -> frozenset[str]:
        """The symbols that it reads, outer ones of its subqueries included."""
        return references(self.tree)


@dataclass(frozen=True)
class MergeSource:
    """The source of a MERGE: a table or any query.

    Args:
        text: the source as written, for display.
        tree: the query; it can have further columns.
        binding: the table, if the source is a plain one.
    """

    fields: tuple[Field, ...]
    text: str
    alias: str | None
    tree: Query = field(compare=False)
    binding: TableBinding | None = None


@dataclass(frozen=True)
class Notice:
    """A remark for the user on a statement that runs, and its place."""

    message: str
    span: Span | None = None


@dataclass(frozen=True)
class ClauseAnalysis:
    """A resolved WHEN clause; an UPDATE or DELETE statement has exactly one, number 0.

    Args:
        number: case number, from 0.
        operation: INSERT, UPDATE, DELETE; NONE for DO NOTHING.
        condition: the AND condition (boolean).
        values: one per table column, coerced to its type. None if nothing is assigned: an UPDATE keeps the old value,
            an INSERT writes NULL or the default.
        text: the clause as written.
        origin: the place of errors about columns without a value.
        by_source: WHEN NOT MATCHED BY SOURCE.
        assigned: indexes of the columns that get a value, in the order of the clause.
        head: the clause up to its operation: ``WHEN MATCHED AND s.a > 1 THEN UPDATE``.
    """

    number: int
    matched: bool
    operation: Operation
    condition: TypedExpression | None
    values: tuple[TypedExpression | None, ...]
    text: str
    origin: Origin
    by_source: bool = False
    assigned: tuple[int, ...] = ()
    head: str = ""

    @property
    def span(self) -> Span:
        """From WHEN to the end of the clause."""
        return self.origin.span


@dataclass(frozen=True)
class Returned:
    """A column of RETURNING."""

    name: str
    expression: TypedExpression


@dataclass(frozen=True)
class Returning:
    """A resolved RETURNING; its expressions may also read the symbols below.

    Args:
        new: per table column the symbol of its value after the change; NULL for a deleted row.
        current: the same, but the old value for a deleted row: what the target's own name means.
        action: the symbol of ``merge_action()``.
        clause: the symbol of ``merge_clause()``.
        text: the list as written.
    """

    columns: tuple[Returned, ...]
    new: tuple[Field, ...]
    current: tuple[Field, ...]
    action: Field
    clause: Field
    text: str


@dataclass(frozen=True)
class CheckConstraint:
    """A CHECK constraint of a table that a statement writes to.

    Args:
        text: the condition as Trino writes it.
        value: true for a row that may be stored; fails for any other. It reads the new row's columns by name.
    """

    text: str
    value: Typed


@dataclass(frozen=True)
class Analysis:
    """Base of all analyses.

    Args:
        bindings: every table that the statement reads, once; the engine creates their views before it runs Spark text.
        origins: the places of the expressions, by their numbers.
    """

    text: str
    bindings: tuple[TableBinding, ...]
    notices: tuple[Notice, ...]
    origins: tuple[Origin, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class RowChangeAnalysis(Analysis):
    """A statement that changes rows of a table: MERGE, UPDATE, DELETE.

    Args:
        target: its rows are read under ``target_fields``, not through its view (subqueries use the view).
        target_alias: its name in the statement, as written.
        target_fields: its columns in table order.
        clauses: the WHEN clauses in order; UPDATE and DELETE have one.
        checks: the target's CHECK constraints; empty if no row is written.
        hidden: the target's hidden columns that expressions may read.
    """

    target: TableBinding
    target_alias: str
    target_fields: tuple[Field, ...]
    clauses: tuple[ClauseAnalysis, ...]
    returning: Returning | None = field(default=None, kw_only=True)
    checks: tuple[CheckConstraint, ...] = field(default=(), kw_only=True)
    hidden: tuple[Field, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class MergeAnalysis(RowChangeAnalysis):
    """A resolved MERGE.

    Args:
        on: the ON condition (boolean).
        equalities: pairs of expressions (target side, source side) of the same type that must be equal for ON to be true.
            Each reads only its own side.
        key_columns: the symbols of the pairs that compare plain columns whose types compare by value (target, source).
        added: columns that the statement adds to the target, which has them already.
    """

    source: MergeSource
    on: TypedExpression
    equalities: tuple[tuple[Typed, Typed], ...]
    key_columns: tuple[tuple[str, str], ...] = ()
    added: tuple[ColumnMetadata, ...] = ()


@dataclass(frozen=True)
class UpdateAnalysis(RowChangeAnalysis):
    """A resolved UPDATE; its one clause has the assignments."""

    where: TypedExpression | None


@dataclass(frozen=True)
class DeleteAnalysis(RowChangeAnalysis):
    """A resolved DELETE."""

    where: TypedExpression | None


@dataclass(frozen=True)
class QueryAnalysis(Analysis):
    """A resolved query."""

    fields: tuple[Field, ...]
    tree: Query = field(compare=False)


@dataclass(frozen=True)
class InsertAnalysis(Analysis):
    """A resolved INSERT: omitted columns have their default or NULL.

    Args:
        tree: the query, with the table's columns in their order and under their names.
        stored: the rows, if they are constants; used to find the row that an error is about.
        returning: its symbols are the table's column names.
        checks: the table's CHECK constraints.
        columns: the names of the columns that the statement fills.
    """

    target: TableBinding
    tree: Query = field(compare=False)
    stored: StoredRows | None = field(default=None, compare=False)
    returning: Returning | None = None
    checks: tuple[CheckConstraint, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateTableAnalysis(Analysis):
    """A CREATE TABLE [AS].

    Args:
        name: catalog, schema, table (lower case).
        metadata: the new table; column names as written.
        exists: the table exists and the statement has IF NOT EXISTS.
        tree: the query of CREATE TABLE AS; its columns are those of ``metadata``.
        property_spans: the span of each property's name.
        replaced: the table that it replaces.
    """

    name: tuple[str, str, str]
    metadata: ConnectorTableMetadata
    exists: bool
    tree: Query | None = field(default=None, compare=False)
    property_spans: Mapping[str, Span] = field(default_factory=dict)
    replaced: TableBinding | None = None


@dataclass(frozen=True)
class DropTableAnalysis(Analysis):
    """A DROP TABLE; ``target`` is None if the table does not exist (IF EXISTS)."""

    target: TableBinding | None


@dataclass(frozen=True)
class DefinitionAnalysis(Analysis):
    """A statement on a view, a schema, or a table as a whole.

    Args:
        kind: the statement's words: ``CREATE VIEW``, ``DROP VIEW``, ``ALTER VIEW``, ``CREATE SCHEMA``, ``DROP SCHEMA``,
        ``TRUNCATE TABLE``,
            ``ALTER TABLE``, ``COMMENT``.
        name: catalog, schema, and the view or table; a schema has two parts.
        skipped: IF EXISTS or IF NOT EXISTS makes it a no-op.
        view: the new definition of the view.
        property_spans: the span of each property's name.
        cascades: the schema is dropped with its contents.
    """

    kind: str
    name: tuple[str, ...]
    skipped: bool = False
    view: ConnectorViewDefinition | None = None
    target: TableBinding | None = None
    alteration: Alteration | None = None
    property_spans: Mapping[str, Span] = field(default_factory=dict)
    cascades: bool = False


@dataclass(frozen=True)
class TableExecuteAnalysis(Analysis):
    """An ALTER TABLE EXECUTE.

    Args:
        arguments: the value of every argument.
        constraint: the part of WHERE on single columns.
        tree: the query of all rows, under the table's column names, for a procedure that rewrites them.
        where: the span of the condition.
    """

    target: TableBinding
    procedure: TableProcedure
    arguments: Mapping[str, Any]
    constraint: Constraint
    tree: Query = field(compare=False)
    where: Span | None = None
    kind: str = "ALTER TABLE EXECUTE"


@dataclass(frozen=True)
class RestoreAnalysis(Analysis):
    """The restore of an earlier version of a table; made by the engine, not by a statement.

    Args:
        kind: ``RESTORE`` or ``UNDO``.
        version: the version to restore; None for the time before the first one.
        dropped: columns that the undone statement had added.
    """

    kind: str
    target: TableBinding
    version: ConnectorTableVersion | None
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallAnalysis(Analysis):
    """A CALL.

    Args:
        name: catalog, schema and name of the procedure.
        given: the arguments of the call, by name, coerced to their types.
    """

    name: tuple[str, str, str]
    procedure: Procedure
    given: Mapping[str, TypedExpression]
    kind: str = "CALL"


@dataclass(frozen=True)
class ListingAnalysis(Analysis):
    """A SHOW or DESCRIBE: the catalogs alone have the answer.

    Args:
        kind: the statement's words: ``SHOW TABLES``, ...
    """

    kind: str
    columns: tuple[tuple[str, Type], ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class SettingAnalysis(ListingAnalysis):
    """A SET or RESET of a session property; its value is None after RESET."""

    name: str
    value: str | None


@dataclass(frozen=True)
class ExplainAnalysis(Analysis):
    """An EXPLAIN and the analysis of its statement."""

    statement: Explain
    inner: Analysis
