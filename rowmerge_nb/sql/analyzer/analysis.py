"""What a statement means: every name bound to a table or column, every expression typed and coerced.

This is what the planner gets; it knows neither Spark sessions nor connectors' insides. Queries are trees over *symbols*: names of columns
that are unique within the statement.
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
    """Rows that stand in the statement itself."""

    def table(self) -> pa.Table:
        """Return the rows; ExecutionError for a value that the type of its column cannot hold."""


def _by_none() -> bool:
    return False


@dataclass(frozen=True)
class TableBinding:
    """A table that the statement names, as the catalog knows it, or a DataFrame of the notebook, or rows of constants.

    Args:
        display: the name as written in the statement.
        catalog: catalog name; ``""`` for a DataFrame of the notebook, and for a table of ``information_schema``.
        name: catalog, schema and table; of a DataFrame its name alone.
        columns: the columns in table order.
        view: the name under which Spark text speaks of this table; unique per binding within the engine. Its columns are ``c0``, ``c1``, ...
        handle: the connector's handle; None for what no connector has.
        metadata: the connector's metadata; None for a DataFrame.
        dataframe: the DataFrame if it is one: Spark's own, or the rows of another one as Arrow has them; the rows of a table of ``information_schema``.
        rows: the rows, where they are those of VALUES, which stand in the statement; what gives them may raise.
        row_count: the exact number of rows where it is known without reading.
        statistics: asks the connector for the size of the table.
        deterministic: reading it twice within the statement gives the same rows.
        is_read_by_tasks: asks whether every task can read it by itself, and each has the same rows in the same order.
        version: the version of the table that the statement names; None for the table as it is.
        hidden: columns that the statement may name besides, which are read behind the others.
        checks_reads: whether the commit of a change checks what its scans have read (`ConnectorMetadata.checks_reads`).
        refused: the errors of a DataFrame's columns that no SQL type holds, by their names: raised if the statement names the column.
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
        """All columns that expressions can speak of, by name and type."""
        return (*(ColumnHandle(column.name, column.type) for column in self.columns), *self.hidden)

    @property
    def qualified(self) -> str:
        """The full name in one text, for people: a part of it may have dots of its own."""
        return ".".join(self.name)

    @property
    def kind(self) -> str:
        """What it is, in words, where no connector has it."""
        return "a DataFrame of the notebook" if len(self.name) == 1 else "a table that tells of its catalog"

    @property
    def remedy(self) -> str:
        """What makes a table of it that can be changed, where no connector has it."""
        return "Register it as a table first." if len(self.name) == 1 else "CREATE TABLE AS copies its rows into a table."

    def shown(self, name: str) -> str:
        """Write one of its names with the version that is read, where the statement names one."""
        return name if self.version is None else f"{name} {self.version}"

    @property
    def estimated_rows(self) -> int | None:
        """The number of rows, or an upper bound of it, as far as either is known."""
        return self.statistics().row_count if self.row_count is None else self.row_count

    @property
    def data_size(self) -> int | None:
        """The bytes of its rows, as far as they are known."""
        return int(self.dataframe.nbytes) if self.dataframe is not None and self.has_rows_at_hand else self.statistics().data_size


@dataclass(frozen=True)
class ViewBinding:
    """A view that the statement names.

    Args:
        name: catalog, schema and view.
        definition: what the catalog keeps of it.
    """

    name: tuple[str, str, str]
    definition: ConnectorViewDefinition

    @property
    def qualified(self) -> str:
        """The full name in one text, for people: a part of it may have dots of its own."""
        return ".".join(self.name)


class Tables(Protocol):
    """Where the analyzer looks tables up; the engine implements it over its catalogs and the notebook's names."""

    def resolve(self, parts: Sequence[str], version: ConnectorTableVersion | None = None) -> TableBinding | None:
        """Find a table by one to three name parts (lower case except for DataFrames); None if there is none.

        Args:
            parts: the name.
            version: which of its versions is meant; None for the table as it is.
        """

    def evaluate(self, values: Sequence[Typed]) -> Sequence[Any]:
        """Compute expressions that read no columns, all at the same moment; RowMergeError if that fails."""

    def qualify(self, parts: Sequence[str]) -> tuple[str, str, str]:
        """Complete a name by the default catalog and schema; RowMergeError CATALOG_NOT_FOUND or SCHEMA_NOT_FOUND if those are missing."""

    def view(self, parts: Sequence[str]) -> ViewBinding | None:
        """Find a view by one to three name parts; None if there is none."""

    def catalogs(self) -> Sequence[str]:
        """Return the names of all catalogs, sorted."""

    def default(self) -> tuple[str, str]:
        """Return the default catalog and schema."""

    def user(self) -> str:
        """Return the name of who runs the statement."""

    def schemas(self, catalog: str) -> Sequence[str]:
        """Return the names of a catalog's schemas, sorted."""

    def has_schema(self, catalog: str, schema: str) -> bool:
        """Return whether a catalog has a schema of this name."""

    def cascades(self, catalog: str) -> bool:
        """Return whether a schema of a catalog can be dropped with all that it holds."""

    def settings(self) -> Mapping[str, str]:
        """Return the values of session properties that were set, by their names."""

    def stores_comments(self, catalog: str) -> bool:
        """Return whether a catalog's tables and columns keep comments."""

    def replaces_tables(self, catalog: str) -> bool:
        """Return whether CREATE OR REPLACE TABLE works in a catalog."""

    def keeps_sizes(self, catalog: str) -> bool:
        """Return whether CREATE TABLE AS keeps lengths and precisions in a catalog."""

    def alters_fields(self, catalog: str) -> bool:
        """Return whether fields of rows can be added, dropped and renamed in a catalog's tables."""

    def evolves_tables(self, catalog: str) -> bool:
        """Return whether a MERGE can add columns to a catalog's tables."""

    def evolved(self, table: TableBinding, columns: Sequence[ColumnMetadata]) -> TableBinding:
        """Return a table as it will be with new columns behind its own; RowMergeError if the store cannot have them."""

    def stores_defaults(self, catalog: str) -> bool:
        """Return whether columns of a catalog's tables keep default values."""

    def relations(self, catalog: str, schema: str) -> Sequence[str]:
        """Return the names of a schema's tables and views, sorted."""

    def procedures(self, catalog: str) -> Sequence[Procedure]:
        """Return the procedures of a catalog."""

    def table_procedures(self, catalog: str) -> Sequence[TableProcedure]:
        """Return the procedures of a catalog's tables."""

    def hidden(self, table: TableBinding) -> tuple[ColumnHandle, ...]:
        """Return a table's columns that can be read by their names alone."""

    def names(self) -> Sequence[str]:
        """Return all names that could have been meant, for "did you mean"."""


@dataclass(frozen=True)
class Field:
    """A column that expressions can speak of.

    Args:
        symbol: its name within the plan, unique in the statement; also its name in Spark text (there in backquotes).
        name: its name as written where it was made; None for a column without a name.
        type: its type.
        relation: the name or alias by which it may be qualified.
    """

    symbol: str
    name: str | None
    type: Type
    relation: str | None = None


@dataclass(frozen=True)
class ConditionTerm:
    """A condition, or a part of one that is true, false or unknown by itself.

    Args:
        tree: the typed tree.
        text: the part as written.
        operator: ``AND``, ``OR`` or ``NOT`` of what is made of further parts; ``""`` of what is not.
        terms: those parts, in their order.
    """

    tree: Typed
    text: str
    operator: str = ""
    terms: tuple[ConditionTerm, ...] = ()

    def walk(self) -> Iterator[ConditionTerm]:
        """Yield the condition and all its parts, each before its own parts."""
        yield self
        for term in self.terms:
            yield from term.walk()


@dataclass(frozen=True)
class TypedExpression:
    """A whole expression of a statement.

    Args:
        tree: the typed tree, coerced where that was needed; its origin says where it stands.
        text: the expression as written.
        condition: of a condition its parts; None of other expressions.
    """

    tree: Typed
    text: str
    condition: ConditionTerm | None = None

    @property
    def type(self) -> Type:
        """Its SQL type."""
        return self.tree.type

    @property
    def origin(self) -> Origin:
        """Where it was written."""
        assert self.tree.origin is not None
        return self.tree.origin

    @property
    def span(self) -> Span:
        """Where it stands."""
        return self.origin.span

    @property
    def references(self) -> frozenset[str]:
        """The symbols it reads, outer ones of its subqueries included."""
        return references(self.tree)


@dataclass(frozen=True)
class MergeSource:
    """The source of a MERGE: a table, or any query, which Spark plans.

    Args:
        fields: its columns, in order.
        text: the source as written, for display.
        alias: its name in the statement, if it has one.
        tree: the query as a tree; it can have further columns.
        binding: the table, if it is a plain one.
    """

    fields: tuple[Field, ...]
    text: str
    alias: str | None
    tree: Query = field(compare=False)
    binding: TableBinding | None = None


@dataclass(frozen=True)
class Notice:
    """Something the user should know though the statement runs: a sentence, and the place it is about."""

    message: str
    span: Span | None = None


@dataclass(frozen=True)
class ClauseAnalysis:
    """A WHEN clause, resolved; an UPDATE or DELETE statement has exactly one, number 0.

    Args:
        number: case number, from 0.
        matched: WHEN MATCHED or WHEN NOT MATCHED.
        operation: INSERT, UPDATE, DELETE; NONE for DO NOTHING.
        condition: the AND condition (boolean), or None.
        values: per table column the assigned expression, coerced to the column's type; None where nothing is assigned
            (an UPDATE keeps the old value, an INSERT writes NULL or the default).
        text: the clause as written.
        origin: stands for the clause where a column that it gives no value refuses NULL.
        by_source: WHEN NOT MATCHED BY SOURCE: about target rows that no source row matches.
        assigned: the table's columns that get a value, by their positions, in the order in which the clause names them.
        head: the clause as written up to its operation: ``WHEN MATCHED AND s.a > 1 THEN UPDATE``.
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
    """A column that RETURNING gives: its name and its expression."""

    name: str
    expression: TypedExpression


@dataclass(frozen=True)
class Returning:
    """RETURNING, resolved. Beside the columns of both sides its expressions may read symbols that stand for what became of a row.

    Args:
        columns: the columns that it gives.
        new: per table column the symbol of its value after the change; NULL of a deleted row.
        current: per table column the symbol of its value as the target's own name means it: the new value, of a deleted row the old one.
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
    """A CHECK constraint of a table into which a statement puts rows.

    Args:
        text: the condition as Trino writes it.
        value: true for a row that may be stored; for one that may not it fails. It reads the new row's columns by their names.
    """

    text: str
    value: Typed


@dataclass(frozen=True)
class Analysis:
    """Base of all analyses.

    Args:
        text: the statement's text.
        bindings: every table the statement reads, each once; the engine makes their views before it runs Spark text.
        notices: what the user should know though the statement runs.
        origins: where the expressions of the statement and its queries were written, by their numbers.
    """

    text: str
    bindings: tuple[TableBinding, ...]
    notices: tuple[Notice, ...]
    origins: tuple[Origin, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class RowChangeAnalysis(Analysis):
    """A statement that changes rows of a table: MERGE, UPDATE, DELETE.

    Args:
        target: the target table; its rows are read under ``target_fields``, not through its view (subqueries use the view).
        target_alias: the name it goes by in the statement, as written.
        target_fields: its columns in table order.
        clauses: what is done to which rows: the WHEN clauses in order, or the one thing that UPDATE or DELETE does.
        returning: what RETURNING gives; None without it.
        checks: the target's CHECK constraints; none where no row is put into it.
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
    """A MERGE, resolved.

    Args:
        source: the source.
        on: the ON condition (boolean).
        equalities: pairs of expressions (target side, source side) such that ON is true only where all pairs are equal,
            each side of the same type and reading only its own side; what else ON says is not in here.
        key_columns: of those pairs that compare a column with a column, in types whose values compare by themselves: the two columns'
            symbols (target side, source side).
        added: columns that the statement adds to the target, which has them behind its own already.
    """

    source: MergeSource
    on: TypedExpression
    equalities: tuple[tuple[Typed, Typed], ...]
    key_columns: tuple[tuple[str, str], ...] = ()
    added: tuple[ColumnMetadata, ...] = ()


@dataclass(frozen=True)
class UpdateAnalysis(RowChangeAnalysis):
    """An UPDATE, resolved; its one clause has the assignments, ``where`` is the condition or None."""

    where: TypedExpression | None


@dataclass(frozen=True)
class DeleteAnalysis(RowChangeAnalysis):
    """A DELETE, resolved; ``where`` is the condition or None."""

    where: TypedExpression | None


@dataclass(frozen=True)
class QueryAnalysis(Analysis):
    """A query, resolved.

    Args:
        fields: its columns.
        tree: the query as a tree.
    """

    fields: tuple[Field, ...]
    tree: Query = field(compare=False)


@dataclass(frozen=True)
class InsertAnalysis(Analysis):
    """An INSERT: the query's columns coerced to the table's; omitted columns have their default, or NULL.

    Args:
        target: the table.
        tree: the query as a tree. Its columns are those of the table, in their order and under their names.
        stored: the rows, if they are constants; they find the one that an error is about.
        returning: what RETURNING gives; its symbols are the table's column names. None without it.
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
        metadata: the table to make; column names as written.
        exists: a table of that name is there already and IF NOT EXISTS was said.
        tree: of CREATE TABLE AS the query, whose columns are those of ``metadata``; None without a query.
        property_spans: the place of the name of each property.
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
    """A DROP TABLE; ``target`` is None where IF EXISTS found nothing."""

    target: TableBinding | None


@dataclass(frozen=True)
class DefinitionAnalysis(Analysis):
    """What makes or removes a view or a schema, or empties a table.

    Args:
        kind: the statement's words: ``CREATE VIEW``, ``DROP VIEW``, ``ALTER VIEW``, ``CREATE SCHEMA``, ``DROP SCHEMA``, ``TRUNCATE TABLE``,
            ``ALTER TABLE``, ``COMMENT``.
        name: catalog, schema, and the view or table; a schema has two parts.
        skipped: IF EXISTS or IF NOT EXISTS leaves everything as it is.
        view: the view to make, to rename or to comment on, as it is to be.
        target: the table to empty, to alter or to comment on.
        alteration: what is altered.
        property_spans: where the name of each property stands that is set.
        cascades: a schema is dropped with all that it holds.
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
        target: the table.
        procedure: its procedure.
        arguments: the value of every argument.
        constraint: what WHERE says of columns.
        tree: the query of all of the table's rows, under its column names, for a procedure that rewrites them.
        where: where the condition stands.
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
    """What puts back a former version of a table; no statement says it, the engine makes it.

    Args:
        kind: ``RESTORE`` or ``UNDO``.
        target: the table as it is now.
        version: the version whose rows it is to have; None for the time before the first one.
        dropped: the columns that go with it: a statement that is undone had added them.
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
        procedure: the procedure.
        given: per name of an argument that was given its value, coerced to the argument's type.
    """

    name: tuple[str, str, str]
    procedure: Procedure
    given: Mapping[str, TypedExpression]
    kind: str = "CALL"


@dataclass(frozen=True)
class ListingAnalysis(Analysis):
    """A SHOW or DESCRIBE: what it answers is known from the catalogs alone.

    Args:
        kind: the statement's words: ``SHOW TABLES``, ...
        columns: the names of the answer's columns, with their types.
        rows: the answer.
    """

    kind: str
    columns: tuple[tuple[str, Type], ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class SettingAnalysis(ListingAnalysis):
    """A SET or RESET of what holds for all statements from now on.

    Args:
        name: the session property.
        value: what it is from now on; None for what it is where nobody sets it.
    """

    name: str
    value: str | None


@dataclass(frozen=True)
class ExplainAnalysis(Analysis):
    """An EXPLAIN and the analysis of what it explains."""

    statement: Explain
    inner: Analysis
