"""Plan nodes, one frozen dataclass per node of Trino's plan, plus the few that Spark needs.

A node has an ``id`` that is unique in its plan, its ``sources``, its ``outputs`` (symbols with types) and a ``meaning``: one sentence
for people who see the node for the first time. Expressions are Spark SQL text over symbols, beside the text a reader is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from rowmerge_nb.choices import RepeatedMatches
from rowmerge_nb.spi.page_source import Constraint

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import ColumnHandle
    from rowmerge_nb.spi.layout import ConnectorTableLayout
    from rowmerge_nb.spi.operations import Era, Operation, RowChangeParadigm
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.analysis import TableBinding

__all__ = [
    "AssignUniqueId",
    "Assignment",
    "CaseBranch",
    "DeleteProject",
    "DuplicateCheck",
    "Exchange",
    "Filter",
    "Join",
    "MarkDistinct",
    "MergeProcessor",
    "MergeWriter",
    "Output",
    "PlanNode",
    "Project",
    "SearchedCase",
    "SemiJoin",
    "Source",
    "Symbol",
    "TableFinish",
    "TableScan",
    "TableWriter",
]


@dataclass(frozen=True)
class Symbol:
    """A column of a plan: a name unique in the plan, and a type."""

    name: str
    type: Type


@dataclass(frozen=True, kw_only=True)
class PlanNode:
    """Base of all nodes."""

    id: str
    outputs: tuple[Symbol, ...]
    meaning: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """The node's name as Trino prints it."""
        return type(self).__name__

    @property
    def sources(self) -> tuple[PlanNode, ...]:
        """The nodes whose rows this node takes."""
        source = getattr(self, "source", None)
        return () if source is None else (source,)


@dataclass(frozen=True, kw_only=True)
class TableScan(PlanNode):
    """Reads columns of a table through the connector's splits and page sources.

    Args:
        table: the table.
        columns: the connector's column for each output symbol, in order; for a merge target the row id is the last one.
        row_id: the symbol of the row id, if it is read.
        row_count: rows of the table where the connector knows them.
        alias: the name that the table goes by in the statement, if it has one of its own.
        constraint: what the statement wants of single columns; the connector may leave out rows that lie outside of it.
    """

    meaning: ClassVar[str] = "Reads the table, split by split; a merge target also gives the row id of every row."
    table: TableBinding
    columns: tuple[ColumnHandle, ...]
    row_id: Symbol | None = None
    row_count: int | None = None
    alias: str = ""
    constraint: Constraint = field(default_factory=Constraint)


@dataclass(frozen=True, kw_only=True)
class Source(PlanNode):
    """Any query that serves as a source; Spark plans its inside.

    Args:
        spark: its Spark SQL text, output columns named by the symbols.
        text: the query as written.
        tables: the tables it reads.
        deterministic: running it twice gives the same rows.
    """

    meaning: ClassVar[str] = "Runs the source query; Spark plans what is inside of it."
    spark: str
    text: str
    tables: tuple[TableBinding, ...] = ()
    deterministic: bool = True


@dataclass(frozen=True, kw_only=True)
class AssignUniqueId(PlanNode):
    """Gives every target row a number that no other has (seed section "Detecting duplicate matching target rows")."""

    meaning: ClassVar[str] = "Numbers the target rows, so that two matches of one row can be told from matches of two rows."
    source: PlanNode
    symbol: Symbol


@dataclass(frozen=True)
class Assignment:
    """A computed column: its symbol, Spark text, the text a reader is shown, and whether a subquery is in it.

    ``page`` is its DuckDB text where it is computed on pages within a task.
    """

    symbol: Symbol
    spark: str
    text: str
    subquery: bool = False
    page: str = ""


@dataclass(frozen=True)
class CaseBranch:
    """One branch of the searched CASE.

    Args:
        number: case number; -1 for ELSE.
        operation: what it asks for; ``Operation.NONE`` for ELSE and for DO NOTHING.
        matched: whether the clause is WHEN MATCHED; None for ELSE.
        condition: the branch's condition as text: ``present AND s.address = 'Berkeley'``, ``ELSE``.
        spark_condition: the same as Spark text; ``""`` for ELSE.
        values: per table column the text of the value that goes into the merge row (``NULL`` for null).
        spark_values: the same as Spark text, in table order.
        clause: the WHEN clause as written; ``""`` for ELSE.
        line: the clause's line within the statement; 0 for ELSE.
        by_source: the clause is WHEN NOT MATCHED BY SOURCE.
    """

    number: int
    operation: Operation
    matched: bool | None
    condition: str
    spark_condition: str
    values: tuple[str, ...]
    spark_values: tuple[str, ...]
    clause: str
    line: int
    by_source: bool = False

    @property
    def present(self) -> str:
        """What the merge row's field ``present`` says, as Spark text: whether there is a target row."""
        if self.matched is None:
            return "present IS NOT NULL"
        return "true" if self.matched or self.by_source else "false"


@dataclass(frozen=True)
class SearchedCase:
    """The CASE that builds the merge row: its branches in order, the last one ELSE; whether a subquery is in one of them.

    An UPDATE statement has one branch without a condition: the row alone, no CASE.
    """

    symbol: Symbol
    branches: tuple[CaseBranch, ...]
    subquery: bool = False

    @property
    def unconditional(self) -> bool:
        """There is nothing to decide: every row takes the one branch."""
        return len(self.branches) == 1


@dataclass(frozen=True, kw_only=True)
class Project(PlanNode):
    """Computes columns; symbols that go through unchanged are in ``outputs`` without an assignment.

    Args:
        assignments: the computed columns.
        case: the searched CASE that makes ``merge_row``, in the one Project that has it.
    """

    meaning: ClassVar[str] = "Computes columns for every row."
    source: PlanNode
    assignments: tuple[Assignment, ...] = ()
    case: SearchedCase | None = None


@dataclass(frozen=True, kw_only=True)
class Filter(PlanNode):
    """Keeps the rows for which the WHERE condition is true.

    Args:
        spark: the condition as Spark text.
        text: the condition as written.
        subquery: the condition has a subquery.
        page: the condition as DuckDB text, where it is evaluated on pages within a task.
    """

    meaning: ClassVar[str] = "Keeps the rows for which the condition is true; false and NULL drop a row."
    source: PlanNode
    spark: str
    text: str
    subquery: bool = False
    page: str = ""


@dataclass(frozen=True, kw_only=True)
class DeleteProject(PlanNode):
    """Makes the page of a DELETE statement's writer: there is no processor, since every row asks for the same.

    Its outputs are those that a `MergeProcessor` would have: redistribution columns as read, all other columns NULL, operation 2, the
    row id, ``insert_from_update`` 0.

    Args:
        era: whose page layout.
        columns: the table's columns, in table order.
        redistribution_columns: names of the columns of the insert layout, in table order.
        kept: the symbols of those columns.
        row_id: the symbol of the row id.
    """

    meaning: ClassVar[str] = "Gives the writer what tells a row to delete: its row id, and the columns that decide its place."
    source: PlanNode
    era: Era
    columns: tuple[Symbol, ...]
    redistribution_columns: tuple[str, ...]
    kept: tuple[Symbol, ...]
    row_id: Symbol

    @property
    def name(self) -> str:
        """The node's name as Trino prints it."""
        return "Project"


@dataclass(frozen=True, kw_only=True)
class SemiJoin(PlanNode):
    """Keeps the target rows whose join keys occur in the source; put in by a rule, never by the planner.

    Args:
        source: the target side.
        filtering_source: the source side, read for its keys alone.
        keys: pairs of Spark text (target side, source side).
        text: the keys for readers.
        key_columns: the pairs among the keys that are columns whose values compare by themselves, as symbols (target side, source
            side): by them rows are left out where they are read, before Spark sees them. Without any, Spark joins.
    """

    meaning: ClassVar[str] = "Drops the target rows that no source row can match before they are joined."
    source: PlanNode
    filtering_source: PlanNode
    keys: tuple[tuple[str, str], ...]
    text: str
    key_columns: tuple[tuple[str, str], ...] = ()

    @property
    def sources(self) -> tuple[PlanNode, ...]:
        """The target side only: the keys come from the source that is drawn at the join."""
        return (self.source,)


@dataclass(frozen=True, kw_only=True)
class Join(PlanNode):
    """RIGHT JOIN of target (left) and source (right) on the MERGE criteria; FULL JOIN where a clause is about what the source lacks.

    Args:
        left: the target side.
        right: the source side.
        spark: the ON condition as Spark text.
        text: the ON condition as written.
        equalities: pairs of Spark text (target, source) that must be equal wherever ON is true.
        key_columns: the pairs among them that are columns whose values compare by themselves, as symbols.
        distribution: ``AUTOMATIC`` (Spark decides), ``PARTITIONED`` (the source is repartitioned by its equality keys, so all
            matches of one target row meet in one task), ``SINGLE`` (the source is one partition), ``REPLICATED`` (every task gets
            all of the source).
        replicate_target: the target is small, and every task gets all of it.
        subquery: the ON condition has a subquery.
        full: target rows without a source row stay too, with NULLs.
    """

    meaning: ClassVar[str] = "Pairs every source row with the target rows it matches; a source row without one stays, with NULLs."
    left: PlanNode
    right: PlanNode
    spark: str
    text: str
    equalities: tuple[tuple[str, str], ...] = ()
    key_columns: tuple[tuple[str, str], ...] = ()
    distribution: str = "AUTOMATIC"
    replicate_target: bool = False
    subquery: bool = False
    full: bool = False

    @property
    def name(self) -> str:
        """The node's name as Trino prints it."""
        return "FullJoin" if self.full else "RightJoin"

    @property
    def sources(self) -> tuple[PlanNode, ...]:
        """Target side, source side."""
        return (self.left, self.right)


@dataclass(frozen=True, kw_only=True)
class MarkDistinct(PlanNode):
    """Adds ``is_distinct`` over (unique_id, case_number).

    Args:
        keys: the symbols that make a key.
        marker: the symbol that is added.
        exchange: rows are first redistributed by unique_id; False where all matches of a target row are in one task anyway.
    """

    meaning: ClassVar[str] = "Marks rows whose target row and WHEN clause occur more than once."
    source: PlanNode
    keys: tuple[Symbol, ...]
    marker: Symbol
    exchange: bool = True


@dataclass(frozen=True, kw_only=True)
class DuplicateCheck(PlanNode):
    """The failing Filter: a row that is not distinct ends the statement.

    Args:
        rule: which repeated matches fail.
        idle: the case numbers of DO NOTHING clauses, which change no row.
    """

    meaning: ClassVar[str] = "Fails the statement if one target row was matched more than once."
    source: PlanNode
    rule: RepeatedMatches = RepeatedMatches.TRINO
    idle: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The node's name as Trino prints it."""
        return "Filter"


@dataclass(frozen=True, kw_only=True)
class MergeProcessor(PlanNode):
    """``transform_page``: turns merge rows into rows to store, by the connector's paradigm.

    Args:
        paradigm: the connector's paradigm.
        era: whose page layout.
        columns: the table's columns, in table order.
        redistribution_columns: names of the columns of the insert layout, in table order.
        has_hash: a ``hash`` channel is there.
        row_id: the symbol of the row id.
        table: the target, as written.
    """

    meaning: ClassVar[str] = (
        "transform_page: drops rows that do nothing, and gives each change the form that the connector wants."
    )
    source: PlanNode
    paradigm: RowChangeParadigm
    era: Era
    columns: tuple[Symbol, ...]
    redistribution_columns: tuple[str, ...]
    has_hash: bool
    row_id: Symbol
    table: str


@dataclass(frozen=True, kw_only=True)
class Exchange(PlanNode):
    """Sends every row to the writer of its partition or bucket (seed section "MERGE redistribution").

    Args:
        insert_layout: the place of inserted rows; None spreads them evenly.
        update_layout: the place of deleted and updated rows, by row id; None falls back to the insert layout (documents) or
            spreads them evenly (current era).
        era: decides that fall-back.
        text: the arguments for readers: ``insert = hash(address)``.
    """

    meaning: ClassVar[str] = "Sends each row to the writer that is responsible for its partition or bucket."
    source: PlanNode
    insert_layout: ConnectorTableLayout | None
    update_layout: ConnectorTableLayout | None
    era: Era
    text: str


@dataclass(frozen=True, kw_only=True)
class MergeWriter(PlanNode):
    """Hands pages to the connector's merge sinks, and collects their fragments.

    Args:
        table: the target.
        fused: processor and writer run in one pass, because no exchange lies between them.
    """

    meaning: ClassVar[str] = "Each writer hands its pages to a merge sink of the connector, which stores them out of sight."
    source: PlanNode
    table: TableBinding
    fused: bool = False


@dataclass(frozen=True, kw_only=True)
class TableWriter(PlanNode):
    """Hands pages to the connector's page sinks: the writer of INSERT and CREATE TABLE AS."""

    meaning: ClassVar[str] = "Each writer hands its pages to a page sink of the connector, which stores them out of sight."
    source: PlanNode
    table: str
    columns: tuple[Symbol, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class TableFinish(PlanNode):
    """Sums the row counts and hands all fragments to the connector, which makes the change visible at once.

    Args:
        call: the connector's method that gets the fragments.
    """

    meaning: ClassVar[str] = (
        "Adds up the row counts and gives all fragments to finish_merge: the change becomes visible, all of it at once."
    )
    source: PlanNode
    table: str
    call: str = "finish_merge"

    @property
    def name(self) -> str:
        """The node's name as Trino prints it."""
        return "TableCommit"


@dataclass(frozen=True, kw_only=True)
class Output(PlanNode):
    """The statement's result: one row with the number of changed rows, or the rows of a query."""

    meaning: ClassVar[str] = "The answer: how many rows were changed."
    source: PlanNode
