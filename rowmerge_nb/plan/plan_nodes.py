"""Plan nodes: one frozen dataclass per node of Trino's plan, and the few that Spark needs.

Expressions are typed trees over symbols. Beside them is the text for readers. ``meaning``
explains a node in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.base.next_steps import Refusal
from rowmerge_nb.spi.page import PRESENT
from rowmerge_nb.spi.page_source import Constraint
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.typed.expressions import TRUE, Apply, Column, Constant, replaced
from rowmerge_nb.sql.typed.readings import reads
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.plan.page_query import PagedQuery
    from rowmerge_nb.spi.handles import ColumnHandle
    from rowmerge_nb.spi.layout import ConnectorTableLayout
    from rowmerge_nb.spi.operations import Era, Operation, RowChangeParadigm
    from rowmerge_nb.spi.page import PageLayout
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.analysis import CheckConstraint, TableBinding
    from rowmerge_nb.sql.typed.expressions import Reads, Typed
    from rowmerge_nb.sql.typed.queries import Query


@dataclass(frozen=True)
class Symbol:
    """A column of a plan, with a unique name."""

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
        return type(self).__name__

    @property
    def sources(self) -> tuple[PlanNode, ...]:
        source = getattr(self, "source", None)
        return () if source is None else (source,)

    @property
    def expressions(self) -> tuple[Typed, ...]:
        return ()


@dataclass(frozen=True, kw_only=True)
class TableScan(PlanNode):
    """Reads columns of a table through the connector's splits and page sources.

    Args:
        columns: the connector's column of each output; the row id of a merge target is the last
            one.
        constraint: bounds of single columns; the connector may skip rows outside of them.
        carried_columns: data columns that no expression reads.
    """

    meaning: ClassVar[str] = (
        "Reads the table, part by part (its splits); a merge target also returns the"
        " row id of every row."
    )
    table: TableBinding
    columns: tuple[ColumnHandle, ...]
    row_id: Symbol | None = None
    alias: str = ""
    constraint: Constraint = field(default_factory=Constraint)
    carried_columns: frozenset[str] = frozenset()

    def narrowed(self, indexes: Sequence[int]) -> Self:
        return replace(
            self,
            outputs=tuple(self.outputs[i] for i in indexes),
            columns=tuple(self.columns[i] for i in indexes),
        )

    @property
    def data_columns(self) -> tuple[ColumnHandle, ...]:
        return self.columns[:-1] if self.row_id is not None else self.columns

    @property
    def row_id_columns(self) -> tuple[ColumnHandle, ...]:
        return self.columns[len(self.data_columns) :]

    @property
    def data_outputs(self) -> tuple[Symbol, ...]:
        return self.outputs[:-1] if self.row_id is not None else self.outputs


@dataclass(frozen=True)
class PageRows:
    """The rows of a query as tasks compute them on the pages of one table.

    Args:
        scan: reads the columns that the query needs.
        values: the query's columns over those of the table.
        refusals: per column, code and message of the error that refuses NULL, or None.
    """

    scan: TableScan
    where: Typed | None
    values: tuple[Typed, ...]
    refusals: tuple[Refusal | None, ...]


@dataclass(frozen=True, kw_only=True)
class Source(PlanNode):
    """A query as a source. One engine executes all of its nodes.

    Args:
        tree: the query; it can have more columns than the outputs.
        pages: the rows as tasks compute them; None if they do not.
        by_spark: Spark executes it, rather than DuckDB.
        refusal: why DuckDB left it to Spark; ``""`` if DuckDB was not asked.
        planned: the nodes that run; None for those of the tree.
    """

    meaning: ClassVar[str] = (
        "Runs the source query, whose nodes have Trino's names here; Spark executes it by itself."
    )
    tree: Query = field(compare=False, repr=False)
    text: str
    tables: tuple[TableBinding, ...] = ()
    partitions: int | None = None
    pages: PageRows | None = field(default=None, compare=False, repr=False)
    by_spark: bool = True
    refusal: str = ""
    planned: PlanNode | None = field(default=None, compare=False, repr=False)

    @cached_property
    def nodes(self) -> PlanNode:
        from rowmerge_nb.plan.query_planner import source_nodes

        return self.planned or source_nodes(self)

    @cached_property
    def reads(self) -> Reads:
        return reads(self.tree)

    @cached_property
    def spark(self) -> str:
        """The query as Spark SQL; its columns are the outputs."""
        from rowmerge_nb.sql.spark.query_printer import print_query

        return print_query(self.tree, [symbol.name for symbol in self.outputs])


@dataclass(frozen=True, kw_only=True)
class AnsweredQuery(TableScan):
    """A source query that DuckDB answers before Spark's job begins.

    Tasks read the answer like a frame.

    Args:
        pages: the rows as the tasks of an INSERT compute them; None if Spark's operators store
            them.
    """

    meaning: ClassVar[str] = (
        "Runs the source query, whose nodes have Trino's names here; DuckDB executes it on the"
        " pages of its tables, and tasks read the rows."
    )
    query: Source
    paged: PagedQuery = field(compare=False, repr=False)
    pages: PageRows | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.query.name


@dataclass(frozen=True, kw_only=True)
class AssignUniqueId(PlanNode):
    """Numbers the target rows (design documents, "Detecting duplicate matching target rows")."""

    meaning: ClassVar[str] = (
        "Numbers the target rows to distinguish two matches of one row from matches of two rows."
    )
    source: PlanNode
    symbol: Symbol


@dataclass(frozen=True)
class Assignment:
    symbol: Symbol
    value: Typed
    text: str


@dataclass(frozen=True)
class CaseBranch:
    """One branch of the searched CASE.

    Args:
        operation: ``Operation.NONE`` for ELSE and DO NOTHING.
        matched: whether the clause is WHEN MATCHED; None for ELSE.
        condition: as text: ``present AND s.address = 'Berkeley'``, ``ELSE``.
        values: the merge row's value of each table column as text (``NULL`` for null).
        by_source: the clause is WHEN NOT MATCHED BY SOURCE.
        test: the AND condition of the clause alone; None without one.
    """

    number: int
    operation: Operation
    matched: bool | None
    condition: str
    predicate: Typed | None
    values: tuple[str, ...]
    expressions: tuple[Typed, ...]
    by_source: bool = False
    assigned: tuple[str, ...] = ()
    test: Typed | None = None

    @property
    def present(self) -> str:
        """The merge row's field ``present`` as text: whether there is a target row."""
        if self.matched is None:
            return f"{PRESENT} IS NOT NULL"
        return "true" if self.matched or self.by_source else "false"

    @property
    def is_present(self) -> Typed:
        if self.matched is None:
            return Apply(BOOLEAN, "is null", (Column(BOOLEAN, PRESENT),), True)
        return Constant(BOOLEAN, self.present)


@dataclass(frozen=True)
class SearchedCase:
    """The CASE that builds the merge row, ELSE last.

    That of an UPDATE statement has one branch without a condition.
    """

    symbol: Symbol
    branches: tuple[CaseBranch, ...]

    @property
    def unconditional(self) -> bool:
        return len(self.branches) == 1


@dataclass(frozen=True, kw_only=True)
class Project(PlanNode):
    """Computes columns. Symbols that pass through are in ``outputs`` without an assignment.

    Args:
        case: the CASE that builds ``merge_row``, in one Project of a plan.
    """

    meaning: ClassVar[str] = "Computes columns for every row."
    source: PlanNode
    assignments: tuple[Assignment, ...] = ()
    case: SearchedCase | None = None

    @property
    def expressions(self) -> tuple[Typed, ...]:
        branches = self.case.branches if self.case is not None else ()
        parts = (
            part
            for branch in branches
            for part in (branch.predicate, *branch.expressions)
            if part is not None
        )
        return (*(assignment.value for assignment in self.assignments), *parts)


@dataclass(frozen=True, kw_only=True)
class Filter(PlanNode):
    """Keeps the rows for which the condition is true."""

    meaning: ClassVar[str] = (
        "Keeps the rows for which the condition is true; false and NULL drop a row."
    )
    source: PlanNode
    predicate: Typed
    text: str

    @property
    def expressions(self) -> tuple[Typed, ...]:
        return (self.predicate,)


@dataclass(frozen=True, kw_only=True)
class CheckConstraints(PlanNode):
    """The failing Filter of CHECK constraints.

    Args:
        row: these columns, computed from the node below.
        is_stored: whether a row is stored at all; None if every row is.
    """

    meaning: ClassVar[str] = (
        "Fails the statement if a new row breaks a CHECK constraint of the table, for which NULL is"
        " valid, or the check option of a view."
    )
    source: PlanNode
    checks: tuple[CheckConstraint, ...]
    row: tuple[tuple[Symbol, Typed], ...]
    is_stored: Typed | None = None

    @property
    def name(self) -> str:
        return "Filter"

    @property
    def expressions(self) -> tuple[Typed, ...]:
        pairs = [(Column(symbol.type, symbol.name), value) for symbol, value in self.row]
        values = [replaced(check.value, pairs) for check in self.checks]
        if self.is_stored is None:
            return tuple(values)
        return tuple(
            Apply(BOOLEAN, "case", (self.is_stored, value, TRUE), origin=value.origin)
            for value in values
        )


@dataclass(frozen=True, kw_only=True)
class DeleteProject(PlanNode):
    """Builds the page of a DELETE's writer, which needs no processor.

    Its outputs are those of a `MergeProcessor`: redistribution columns as read, other columns NULL,
    operation 2, the row id, ``insert_from_update`` 0.
    """

    meaning: ClassVar[str] = (
        "Passes to the writer what identifies a row to delete: its row id, and the"
        " columns that select its writer."
    )
    source: PlanNode
    layout: PageLayout
    columns: tuple[Symbol, ...]
    kept_columns: tuple[Symbol, ...]
    row_id: Symbol

    @property
    def redistribution_columns(self) -> tuple[str, ...]:
        """The names of the insert layout's columns, in table order."""
        return tuple(self.columns[index].name for index in self.layout.redistribution_columns)

    @property
    def expressions(self) -> tuple[Typed, ...]:
        return tuple(Column(symbol.type, symbol.name) for symbol in self.kept_columns)

    @property
    def name(self) -> str:
        return "Project"


@dataclass(frozen=True, kw_only=True)
class SemiJoin(PlanNode):
    """Keeps the target rows whose join keys occur in the source; a rule adds it.

    Args:
        keys: pairs of expressions (target, source).
        key_columns: pairs of key columns whose values compare by themselves. By them rows are
            skipped where they are read; without any, Spark joins.
    """

    meaning: ClassVar[str] = (
        "Filters out, before the join, target rows that no source row can match."
    )
    source: PlanNode
    filtering_source: PlanNode
    keys: tuple[tuple[Typed, Typed], ...]
    key_columns: tuple[tuple[str, str], ...] = ()

    @property
    def expressions(self) -> tuple[Typed, ...]:
        return tuple(side for pair in self.keys for side in pair)

    @property
    def sources(self) -> tuple[PlanNode, ...]:
        """The target side; the source is drawn at the join."""
        return (self.source,)


@dataclass(frozen=True, kw_only=True)
class Join(PlanNode):
    """A join. That of a MERGE has the target on its left and the source on its right: RIGHT, or
    FULL if a clause is BY SOURCE.

    Args:
        text: the ON condition as written; within a query as Trino prints it, ``""`` without one.
        equalities: pairs (left, right) that are equal if ON is true.
        key_columns: the pairs among them that are columns whose values compare by themselves.
        distribution: ``AUTOMATIC``: Spark decides. ``PARTITIONED``: the source is repartitioned by
            its keys, so all matches of a target row meet in one task. ``SINGLE``: the source is
            one partition. ``REPLICATED``: every task gets the source. ``""`` in a query.
    """

    meaning: ClassVar[str] = (
        "Pairs every source row with the target rows it matches; a source row without one stays,"
        " with NULLs."
    )
    left: PlanNode
    right: PlanNode
    predicate: Typed
    text: str
    equalities: tuple[tuple[Typed, Typed], ...] = ()
    key_columns: tuple[tuple[str, str], ...] = ()
    distribution: str = "AUTOMATIC"
    replicate_target: bool = False
    type: JoinType = JoinType.RIGHT

    @property
    def expressions(self) -> tuple[Typed, ...]:
        return (self.predicate,)

    @property
    def name(self) -> str:
        return self.type.join_label

    @property
    def sources(self) -> tuple[PlanNode, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, kw_only=True)
class MarkDistinct(PlanNode):
    """Adds ``is_distinct`` over (unique_id, case_number).

    Args:
        exchange: rows are first redistributed by unique_id, unless all matches of a target row are
            in one task anyway.
    """

    meaning: ClassVar[str] = (
        "Marks by is_distinct = 0 the rows of a pair (unique_id, case_number) that"
        " occurs more than once (in pages of era current, all but the first): one WHEN"
        " clause, or none, matched a target row twice. Rows without a target row have no"
        " unique_id and are exempt."
    )
    source: PlanNode
    keys: tuple[Symbol, ...]
    marker: Symbol
    exchange: bool = True


@dataclass(frozen=True, kw_only=True)
class DuplicateCheck(PlanNode):
    """The failing Filter of repeated matches.

    ``idle`` are the case numbers of DO NOTHING clauses.
    """

    meaning: ClassVar[str] = (
        "Fails the statement if a target row is matched more than once in a way that"
        " the rule forbids."
    )
    source: PlanNode
    rule: RepeatedMatches = RepeatedMatches.TRINO
    idle: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return "Filter"


@dataclass(frozen=True, kw_only=True)
class MergeProcessor(PlanNode):
    """``transform_page``: turns merge rows into rows to store, by the connector's paradigm."""

    meaning: ClassVar[str] = (
        "Filters out rows that change nothing, and converts each change to the connector's form."
    )
    source: PlanNode
    paradigm: RowChangeParadigm
    layout: PageLayout
    columns: tuple[Symbol, ...]
    row_id: Symbol
    table: str

    @property
    def redistribution_columns(self) -> tuple[str, ...]:
        return tuple(self.columns[index].name for index in self.layout.redistribution_columns)


@dataclass(frozen=True, kw_only=True)
class Exchange(PlanNode):
    """Sends every row to the writer of its partition or bucket (design documents, "MERGE
    redistribution").

    Args:
        insert_layout: the layout of inserted rows; None spreads them evenly.
        update_layout: the layout of deleted and updated rows, by row id; None falls back to the
            insert layout (documents) or spreads them evenly (current era).
        others: that of deleted and updated rows; ``""`` if it is the insert layout's.
    """

    meaning: ClassVar[str] = "Sends each row to the writer that the connector's layout assigns."
    source: PlanNode
    insert_layout: ConnectorTableLayout | None
    update_layout: ConnectorTableLayout | None
    era: Era
    inserts: str
    others: str = ""

    @property
    def text(self) -> str:
        """Both functions: ``insert = hash(address), update = ROUND_ROBIN``."""
        return f"insert = {self.inserts}" + (f", update = {self.others}" if self.others else "")


@dataclass(frozen=True)
class PhysicalForm:
    """What executes a query, or the nodes below a writer.

    Args:
        by_spark: why Spark's operators do; ``""`` for tasks.
        many_tasks: many tasks do, each with its splits of the target and all of a MERGE's source;
            else one does.
        paged: the one task of a MERGE goes through the target page by page; else it holds the whole
            target.
        partitioned: why rows of both sides go to tasks by their keys; ``""`` if they do not.
    """

    by_spark: str = ""
    many_tasks: bool = False
    paged: bool = False
    partitioned: str = ""

    @property
    def in_task(self) -> bool:
        return not self.by_spark


@dataclass(frozen=True, kw_only=True)
class MergeWriter(PlanNode):
    """Hands pages to the connector's merge sinks, and collects their fragments.

    Args:
        fused: processor and writer run in one pass, without an exchange between them.
        form: what executes the nodes below; None if undecided: Spark.
    """

    meaning: ClassVar[str] = (
        "Each writer passes its pages to a merge sink of the connector, which stores"
        " them invisibly to readers."
    )
    source: PlanNode
    table: TableBinding
    fused: bool = False
    form: PhysicalForm | None = None
    tables: tuple[TableBinding, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TableWriter(PlanNode):
    """Hands pages to the connector's page sinks: the writer of INSERT and CREATE TABLE AS."""

    meaning: ClassVar[str] = (
        "Each writer passes its pages to a page sink of the connector, which stores"
        " them invisibly to readers."
    )
    source: PlanNode
    table: str
    columns: tuple[Symbol, ...] = field(default=())
    layout: ConnectorTableLayout | None = None
    form: PhysicalForm | None = None


@dataclass(frozen=True, kw_only=True)
class TableDelete(PlanNode):
    """Lets the connector delete the rows of a condition; no task reads or writes any."""

    meaning: ClassVar[str] = (
        "The connector deletes the rows itself: it accepted the whole condition, so"
        " no row is read here, and no sink is created."
    )
    table: TableBinding
    text: str


@dataclass(frozen=True, kw_only=True)
class TableFinish(PlanNode):
    """Sums the row counts and hands all fragments to the connector in one call."""

    meaning: ClassVar[str] = (
        "Adds up the row counts and passes all fragments to {call}, which combines"
        " them into one change. Readers see nothing of it before the commit, and then all of"
        " it at once."
    )
    source: PlanNode
    table: str
    call: str = "finish_merge"
    added: tuple[Symbol, ...] = ()
    type_changes: tuple[tuple[str, str, str], ...] = ()

    @property
    def name(self) -> str:
        return "TableCommit"


@dataclass(frozen=True, kw_only=True)
class Output(PlanNode):
    """The statement's result: the number of changed rows, or the rows of a query.

    Args:
        form: what executes a query; None for other statements, or if undecided.
        pages: the query as DuckDB computes it; None if Spark executes it.
    """

    meaning: ClassVar[str] = "The answer: how many rows were changed."
    source: PlanNode
    names: tuple[str, ...] = ()
    form: PhysicalForm | None = None
    pages: PagedQuery | None = field(default=None, compare=False, repr=False)
