"""The meaning of a statement: names bound to tables and columns, expressions typed and coerced.

Queries are trees over *symbols*: column names that are unique within the statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from rowmerge_nb.spi.handles import ColumnHandle, PointerType
from rowmerge_nb.spi.metadata import ColumnMetadata, TableStatistics
from rowmerge_nb.sql.parser.column_names import name_in_sql
from rowmerge_nb.sql.typed.expressions import references

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rowmerge_nb.base.errors import AnalysisError
    from rowmerge_nb.spi.alterations import Alteration
    from rowmerge_nb.spi.handles import ConnectorTableHandle, ConnectorTableVersion
    from rowmerge_nb.spi.metadata import (
        ConnectorMetadata,
        ConnectorTableMetadata,
        ConnectorViewDefinition,
    )
    from rowmerge_nb.spi.operations import Operation
    from rowmerge_nb.spi.page_source import Constraint
    from rowmerge_nb.spi.procedures import Procedure, TableProcedure
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.rows.stored_rows import StoredRows
    from rowmerge_nb.sql.tree.statements import Explain, Span
    from rowmerge_nb.sql.typed.expressions import Origin, Typed
    from rowmerge_nb.sql.typed.queries import Query


class Rows(Protocol):
    def table(self) -> pa.Table:
        """Return the rows; ExecutionError for a value that its type cannot hold."""


def _by_none() -> bool:
    return False


@dataclass(frozen=True)
class TableBinding:
    """A table that the statement names: a catalog's, a DataFrame of the notebook, or rows of
    constants.

    Args:
        catalog: ``""`` for a DataFrame and for a table of ``information_schema``.
        view: the name in Spark text, unique within the engine; its columns are ``c0``, ``c1``, ...
        dataframe: a Spark DataFrame, an Arrow table, or the rows of a table of
            ``information_schema``.
        deterministic: reading it again within the statement returns the same rows.
        is_read_by_tasks: every task can read it, with the same rows in the same order.
        hidden_columns: columns that the statement may name, and ``*`` omits; they follow the
            others.
        refused_columns: errors of DataFrame columns without an SQL type, raised if the statement
            reads them.
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
    hidden_columns: tuple[ColumnHandle, ...] = ()
    checks_reads: bool = False
    refused_columns: Mapping[str, AnalysisError] = field(default_factory=dict, compare=False)

    @property
    def branch(self) -> str:
        """The branch that a statement changes; ``""`` for the table itself."""
        is_branch = self.version is not None and self.version.pointer_type is PointerType.BRANCH
        return str(self.version.version) if self.version is not None and is_branch else ""

    @property
    def has_rows_at_hand(self) -> bool:
        """Whether its rows are in this process: VALUES, or a DataFrame that is not Spark's."""
        return self.rows is not None or (self.dataframe is not None and self.deterministic)

    @property
    def readable(self) -> tuple[ColumnHandle, ...]:
        return (
            *(ColumnHandle(column.name, column.type) for column in self.columns),
            *self.hidden_columns,
        )

    @property
    def qualified(self) -> str:
        return name_in_sql(self.name)

    @property
    def kind(self) -> str:
        return (
            "a DataFrame of the notebook"
            if len(self.name) == 1
            else "a table of information_schema"
        )

    @property
    def remedy(self) -> str:
        """A hint for changing data that is in no store."""
        return (
            f"Create a table from it first: CREATE TABLE {self.display} AS SELECT *"
            f" FROM {self.display}."
            if len(self.name) == 1
            else "CREATE TABLE AS copies its rows into a table."
        )

    def shown(self, name: str) -> str:
        return name if self.version is None else f"{name} {self.version}"

    @property
    def estimated_rows(self) -> int | None:
        return self.statistics().row_count if self.row_count is None else self.row_count

    @property
    def data_size(self) -> int | None:
        return (
            int(self.dataframe.nbytes)
            if self.dataframe is not None and self.has_rows_at_hand
            else self.statistics().data_size
        )

    @property
    def file_count(self) -> int | None:
        """The files to open for a scan, if known."""
        return None if self.dataframe is not None else self.statistics().file_count


@dataclass(frozen=True)
class ViewBinding:
    name: tuple[str, str, str]
    definition: ConnectorViewDefinition

    @property
    def qualified(self) -> str:
        return name_in_sql(self.name)


class AnalyzerCatalogs(Protocol):
    """The catalogs as the analyzer sees them; the engine implements this."""

    def resolve(
        self, parts: Sequence[str], version: ConnectorTableVersion | None = None
    ) -> TableBinding | None:
        """Return a table by one to three name parts."""

    def evaluate(self, values: Sequence[Typed]) -> Sequence[Any]:
        """Compute expressions that read no columns at the same moment."""

    def qualify(self, parts: Sequence[str]) -> tuple[str, str, str]:
        """Complete a name by the default catalog and schema, if these exist."""

    def view(self, parts: Sequence[str]) -> ViewBinding | None:
        """Return a view by one to three name parts."""

    def catalogs(self) -> Sequence[str]: ...

    def default(self) -> tuple[str, str]: ...

    def user(self) -> str: ...

    def schemas(self, catalog: str) -> Sequence[str]: ...

    def has_schema(self, catalog: str, schema: str) -> bool: ...

    def store(self, catalog: str) -> ConnectorMetadata:
        """Return the metadata of a catalog, for what its store can do."""

    def settings(self) -> Mapping[str, str]:
        """Return the session properties that were set."""

    def branches(self, table: TableBinding) -> Sequence[str]:
        """Return the names of a table's branches, in order."""

    def evolved(self, table: TableBinding, columns: Sequence[ColumnMetadata]) -> TableBinding:
        """Return a table with new columns, and with new types of those that it has; RowMergeError
        if the store refuses them.
        """

    def relations(self, catalog: str, schema: str) -> Sequence[str]: ...

    def procedures(self, catalog: str) -> Sequence[Procedure]: ...

    def table_procedures(self, catalog: str) -> Sequence[TableProcedure]: ...

    def hidden(self, table: TableBinding) -> tuple[ColumnHandle, ...]:
        """Return the columns that ``*`` omits."""

    def candidates(self, parts: Sequence[str]) -> Sequence[str]:
        """Return the candidates of "did you mean" for a name: no DataFrames if it has a catalog."""

    def source_hint(self, name: str) -> str | None:
        """Return how a value of the notebook that is no DataFrame becomes a source."""

    def frame_hint(self, column: str) -> str | None:
        """Return how the index of a DataFrame that the statement reads becomes a column."""


@dataclass(frozen=True)
class Field:
    """A column that expressions can name; its symbol is unique within the plan."""

    symbol: str
    name: str | None
    type: Type
    relation: str | None = None


@dataclass(frozen=True)
class ConditionTerm:
    """A condition, or a part with its own truth value.

    Args:
        operator: ``AND``, ``OR``, ``NOT``, or ``""`` without parts.
    """

    tree: Typed
    text: str
    operator: str = ""
    terms: tuple[ConditionTerm, ...] = ()

    def walk(self) -> Iterator[ConditionTerm]:
        """Yield the condition and its parts, parents first."""
        yield self
        for term in self.terms:
            yield from term.walk()


@dataclass(frozen=True)
class TypedExpression:
    """A whole expression of a statement, its text, and the parts of a condition."""

    tree: Typed
    text: str
    condition: ConditionTerm | None = None

    @property
    def type(self) -> Type:
        return self.tree.type

    @property
    def origin(self) -> Origin:
        assert self.tree.origin is not None
        return self.tree.origin

    @property
    def span(self) -> Span:
        return self.origin.span

    @property
    def references(self) -> frozenset[str]:
        """The symbols that it reads, outer ones included."""
        return references(self.tree)


@dataclass(frozen=True)
class MergeSource:
    """The source of a MERGE: a table (``binding``) or any query, which can have further columns."""

    fields: tuple[Field, ...]
    text: str
    alias: str | None
    tree: Query = field(compare=False)
    binding: TableBinding | None = None


@dataclass(frozen=True)
class Notice:
    """A remark on a statement that runs."""

    message: str
    span: Span | None = None


@dataclass(frozen=True)
class ClauseAnalysis:
    """A resolved WHEN clause; UPDATE and DELETE have exactly one.

    Args:
        values: one per table column, coerced. None keeps the old value in an UPDATE, and is NULL or
            the default in an INSERT.
        assigned: indexes of the assigned columns, in the order of the clause.
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
        return self.origin.span


@dataclass(frozen=True)
class Returned:
    name: str
    expression: TypedExpression


@dataclass(frozen=True)
class Returning:
    """A resolved RETURNING, and the symbols that its expressions may read.

    Args:
        new: the values after the change; NULL for a deleted row.
        current: the same, but the old values for a deleted row: the meaning of the target's own
            name.
    """

    columns: tuple[Returned, ...]
    new: tuple[Field, ...]
    current: tuple[Field, ...]
    action: Field
    clause: Field
    text: str


@dataclass(frozen=True)
class CheckConstraint:
    """A CHECK constraint in Trino's notation; ``value`` is true for a valid row, fails for others,
    and reads columns by name.
    """

    text: str
    value: Typed


@dataclass(frozen=True)
class Analysis:
    text: str
    bindings: tuple[TableBinding, ...]
    notices: tuple[Notice, ...]
    origins: tuple[Origin, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class RowChangeAnalysis(Analysis):
    """A statement that changes rows: MERGE, UPDATE, DELETE.

    Args:
        target: read under ``target_fields``; only subqueries use its view.
    """

    target: TableBinding
    target_alias: str
    target_fields: tuple[Field, ...]
    clauses: tuple[ClauseAnalysis, ...]
    returning: Returning | None = field(default=None, kw_only=True)
    checks: tuple[CheckConstraint, ...] = field(default=(), kw_only=True)
    hidden_fields: tuple[Field, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class MergeAnalysis(RowChangeAnalysis):
    """A resolved MERGE.

    Args:
        equalities: pairs of expressions (target side, source side) of one type, implied by ON. Each
            reads only its own side.
        key_columns: the symbols of the pairs of plain columns whose types compare by value.
        added: new columns of the target, which has them already.
        type_changes: new types of columns and fields that the target had: path, former type, new
            type. New fields have no former type.
    """

    source: MergeSource
    on: TypedExpression
    equalities: tuple[tuple[Typed, Typed], ...]
    key_columns: tuple[tuple[str, str], ...] = ()
    added: tuple[ColumnMetadata, ...] = ()
    type_changes: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class UpdateAnalysis(RowChangeAnalysis):
    where: TypedExpression | None


@dataclass(frozen=True)
class DeleteAnalysis(RowChangeAnalysis):
    where: TypedExpression | None


@dataclass(frozen=True)
class QueryAnalysis(Analysis):
    fields: tuple[Field, ...]
    tree: Query = field(compare=False)


@dataclass(frozen=True)
class InsertAnalysis(Analysis):
    """A resolved INSERT.

    Args:
        returning: its symbols are the table's column names.
    """

    target: TableBinding
    tree: Query = field(compare=False)
    stored_rows: StoredRows | None = field(default=None, compare=False)
    returning: Returning | None = None
    checks: tuple[CheckConstraint, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateTableAnalysis(Analysis):
    """A CREATE TABLE [AS].

    Args:
        name: catalog, schema, table (lower case).
    """

    name: tuple[str, str, str]
    metadata: ConnectorTableMetadata
    exists: bool
    tree: Query | None = field(default=None, compare=False)
    property_spans: Mapping[str, Span] = field(default_factory=dict)
    replaced: TableBinding | None = None


@dataclass(frozen=True)
class DropTableAnalysis(Analysis):
    """A DROP TABLE; the target is None if IF EXISTS applies."""

    target: TableBinding | None


@dataclass(frozen=True)
class DefinitionAnalysis(Analysis):
    """A statement on a view, a schema, or a table as a whole.

    Args:
        kind: the statement's words, such as ``CREATE VIEW``.
        skipped: IF EXISTS or IF NOT EXISTS applies.
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
    target: TableBinding
    procedure: TableProcedure
    arguments: Mapping[str, Any]
    constraint: Constraint
    where: Span | None = None
    kind: str = "ALTER TABLE EXECUTE"


@dataclass(frozen=True)
class RestoreAnalysis(Analysis):
    """The restore of an earlier version, made by the engine.

    Args:
        version: None for the time before the first version.
        dropped: columns that the undone statement had added.
    """

    kind: str
    target: TableBinding
    version: ConnectorTableVersion | None
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallAnalysis(Analysis):
    """A CALL with its arguments, coerced to their types."""

    name: tuple[str, str, str]
    procedure: Procedure
    arguments: Mapping[str, TypedExpression]
    kind: str = "CALL"


@dataclass(frozen=True)
class ListingAnalysis(Analysis):
    """A SHOW or DESCRIBE, and its result."""

    kind: str
    columns: tuple[tuple[str, Type], ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class SettingAnalysis(ListingAnalysis):
    """A SET or RESET of a session property."""

    name: str
    value: str | None


@dataclass(frozen=True)
class ExplainAnalysis(Analysis):
    statement: Explain
    inner: Analysis
