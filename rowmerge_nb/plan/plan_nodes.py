"""Plan nodes, one frozen dataclass per node of Trino's plan, plus the few that Spark needs.

A node has an ``id`` that is unique in its plan, its ``sources``, its ``outputs`` (symbols with types) and a ``meaning``: one sentence
for people who see the node for the first time. Expressions are typed trees over symbols, beside the text that a reader is shown; they become
text of an engine where they are given to one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.spi.page import PRESENT
from rowmerge_nb.spi.page_source import Constraint
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.typed.expressions import Apply, Column, Constant, replaced
from rowmerge_nb.sql.typed.readings import reads
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
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

    @property
    def expressions(self) -> tuple[Typed, ...]:
        """The expressions that the node evaluates."""
        return ()


@dataclass(frozen=True, kw_only=True)
class TableScan(PlanNode):
    """Reads columns of a table through the connector's splits and page sources.

    Args:
        table: the table.
        columns: the connector's column for each output symbol, in order; for a merge target the row id is the last one.
        row_id: the symbol of the row id, if it is read.
        alias: the name that the table goes by in the statement, if it has one of its own.
        constraint: what the statement wants of single columns; the connector may leave out rows that lie outside of it.
        carried: names of data columns that no expression reads.
    """

    meaning: ClassVar[str] = "Reads the table, part by part (its splits); a merge target also gives the row id of every row."
    table: TableBinding
    columns: tuple[ColumnHandle, ...]
    row_id: Symbol | None = None
    alias: str = ""
    constraint: Constraint = field(default_factory=Constraint)
    carried: frozenset[str] = frozenset()

    @property
    def data_columns(self) -> tuple[ColumnHandle, ...]:
        """The columns without the row id."""
        return self.columns[:-1] if self.row_id is not None else self.columns

    @property
    def row_id_columns(self) -> tuple[ColumnHandle, ...]:
        """The column of the row id, if it is read."""
        return self.columns[len(self.data_columns) :]

    @property
    def data_outputs(self) -> tuple[Symbol, ...]:
        """The outputs without the row id."""
        return self.outputs[:-1] if self.row_id is not None else self.outputs


@dataclass(frozen=True)
class PageRows:
    """The rows of a query as tasks compute them on the pages of one table.

    Args:
        scan: reads the columns of the table that the query needs.
        where: which rows are kept; None for all.
        values: the columns of the query over the columns of the table.
        refusals: for each column the code and the message of the error that refuses NULL; None for a column that takes NULL.
    """

    scan: TableScan
    where: Typed | None
    values: tuple[Typed, ...]
    refusals: tuple[tuple[str, str] | None, ...]


@dataclass(frozen=True, kw_only=True)
class Source(PlanNode):
    """Any query that serves as a source. One engine executes all of its nodes.

    Args:
        tree: the query; it can have more columns than come out here.
        text: the query as written.
        tables: the tables it reads.
        partitions: the largest number of partitions that Spark makes of it; None for as many as it likes.
        pages: the rows as tasks compute them on pages; None if Spark computes them.
        by_spark: Spark executes it; a query can also be answered by DuckDB.
        refusal: why DuckDB has left it to Spark; ``""`` if it was not asked.
        planned: the nodes that the engine executes; None for those of the tree.
    """

    meaning: ClassVar[str] = "Runs the source query, whose nodes have Trino's names here; Spark executes it by itself."
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
        """The last node of the query."""
        from rowmerge_nb.plan.query_planner import source_nodes

        return self.planned or source_nodes(self)

    @cached_property
    def reads(self) -> Reads:
        """What the query reads of the tables, and whatever else its rows are made of."""
        return reads(self.tree)

    @cached_property
    def spark(self) -> str:
        """The query as Spark SQL, whose columns are the outputs."""
        from rowmerge_nb.sql.spark.query_printer import print_query

        return print_query(self.tree, [symbol.name for symbol in self.outputs])


@dataclass(frozen=True, kw_only=True)
class AnsweredQuery(TableScan):
    """A source query that DuckDB answers before Spark's job begins; the tasks read its rows as those of a frame.

    Args:
        query: the query.
        paged: the query as DuckDB computes it.
        pages: the rows as the tasks of an INSERT compute them; None if Spark's operators store them.
    """

    meaning: ClassVar[str] = (
        "Runs the source query, whose nodes have Trino's names here; DuckDB executes it on the pages of its one table, and tasks read the rows."
    )
    query: Source
    paged: PagedQuery = field(compare=False, repr=False)
    pages: PageRows | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The node's name in a plan: that of a query."""
        return self.query.name


@dataclass(frozen=True, kw_only=True)
class AssignUniqueId(PlanNode):
    """Adds a number to every target row that no other row has (design documents, "Detecting duplicate matching target rows")."""

    meaning: ClassVar[str] = "Numbers the target rows, so that two matches of one row can be told from matches of two rows."
    source: PlanNode
    symbol: Symbol


@dataclass(frozen=True)
class Assignment:
    """A computed column: its symbol, its expression, and the text that a reader is shown."""

    symbol: Symbol
    value: Typed
    text: str


@dataclass(frozen=True)
class CaseBranch:
    """One branch of the searched CASE.

    Args:
        number: case number; -1 for ELSE.
        operation: what it asks for; ``Operation.NONE`` for ELSE and for DO NOTHING.
        matched: whether the clause is WHEN MATCHED; None for ELSE.
        condition: the branch's condition as text: ``present AND s.address = 'Berkeley'``, ``ELSE``.
        predicate: the same as an expression; None for ELSE.
        values: per table column the text of the value that goes into the merge row (``NULL`` for null).
        expressions: the same as expressions, in table order.
        by_source: the clause is WHEN NOT MATCHED BY SOURCE.
        assigned: the columns that an UPDATE sets or an INSERT fills, in the order in which the clause names them.
        test: of the predicate the AND condition alone, which asks for more than the rows of the right side; None without one.
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
        """What the merge row's field ``present`` says, as text: whether there is a target row."""
        if self.matched is None:
            return f"{PRESENT} IS NOT NULL"
        return "true" if self.matched or self.by_source else "false"

    @property
    def is_present(self) -> Typed:
        """The same as an expression."""
        if self.matched is None:
            return Apply(BOOLEAN, "is null", (Column(BOOLEAN, PRESENT),), True)
        return Constant(BOOLEAN, self.present)


@dataclass(frozen=True)
class SearchedCase:
    """The CASE that builds the merge row: its branches in order, the last one ELSE.

    An UPDATE statement has one branch without a condition: the row alone, no CASE.
    """

    symbol: Symbol
    branches: tuple[CaseBranch, ...]

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

    @property
    def expressions(self) -> tuple[Typed, ...]:
        """The values of the assignments, the conditions and values of the CASE."""
        branches = self.case.branches if self.case is not None else ()
        parts = (part for branch in branches for part in (branch.predicate, *branch.expressions) if part is not None)
        return (*(assignment.value for assignment in self.assignments), *parts)


@dataclass(frozen=True, kw_only=True)
class Filter(PlanNode):
    """Keeps the rows for which the WHERE condition is true.

    Args:
        predicate: the condition.
        text: the condition as written.
    """

    meaning: ClassVar[str] = "Keeps the rows for which the condition is true; false and NULL drop a row."
    source: PlanNode
    predicate: Typed
    text: str

    @property
    def expressions(self) -> tuple[Typed, ...]:
        """The condition."""
        return (self.predicate,)


@dataclass(frozen=True, kw_only=True)
class CheckConstraints(PlanNode):
    """The failing Filter of CHECK constraints: a row to store for which one is false ends the statement.

    Args:
        checks: the constraints, which read the columns of the new row by their names.
        row: these columns, and how they are got out of what the node below gives.
        stored: whether a row is stored at all; None where every row is.
    """

    meaning: ClassVar[str] = (
        "Fails the statement if a new row breaks a CHECK constraint of the table; one that is NULL lets it pass."
    )
    source: PlanNode
    checks: tuple[CheckConstraint, ...]
    row: tuple[tuple[Symbol, Typed], ...]
    stored: Typed | None = None

    @property
    def name(self) -> str:
        """The node's name as Trino prints it."""
        return "Filter"

    @property
    def expressions(self) -> tuple[Typed, ...]:
        """The constraints over what the node below gives: each is true, or it fails."""
        pairs = [(Column(symbol.type, symbol.name), value) for symbol, value in self.row]
        values = [replaced(check.value, pairs) for check in self.checks]
        if self.stored is None:
            return tuple(values)
        yes = Constant(BOOLEAN, "true")
        return tuple(Apply(BOOLEAN, "case", (self.stored, value, yes), origin=value.origin) for value in values)


@dataclass(frozen=True, kw_only=True)
class DeleteProject(PlanNode):
    """Makes the page of a DELETE statement's writer: there is no processor, since every row asks for the same.

    Its outputs are those that a `MergeProcessor` would have: redistribution columns as read, all other columns NULL, operation 2, the
    row id, ``insert_from_update`` 0.

    Args:
        layout: where the channels of the page lie.
        columns: the table's columns, in table order.
        kept: the symbols of the columns of the insert layout.
        row_id: the symbol of the row id.
    """

    meaning: ClassVar[str] = "Gives the writer what tells a row to delete: its row id, and the columns that decide on its writer."
    source: PlanNode
    layout: PageLayout
    columns: tuple[Symbol, ...]
    kept: tuple[Symbol, ...]
    row_id: Symbol

    @property
    def redistribution_columns(self) -> tuple[str, ...]:
        """The names of the columns of the insert layout, in table order."""
        return tuple(self.columns[index].name for index in self.layout.redistribution_columns)

    @property
    def expressions(self) -> tuple[Typed, ...]:
        """The columns that are kept."""
        return tuple(Column(symbol.type, symbol.name) for symbol in self.kept)

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
        keys: pairs of expressions (target side, source side).
        key_columns: the pairs among the keys that are columns whose values compare by themselves, as symbols (target side, source
            side): by them rows are left out where they are read, before Spark sees them. Without any, Spark joins.
    """

    meaning: ClassVar[str] = "Drops the target rows that no source row can match before they are joined."
    source: PlanNode
    filtering_source: PlanNode
    keys: tuple[tuple[Typed, Typed], ...]
    key_columns: tuple[tuple[str, str], ...] = ()

    @property
    def expressions(self) -> tuple[Typed, ...]:
        """The keys of both sides."""
        return tuple(side for pair in self.keys for side in pair)

    @property
    def sources(self) -> tuple[PlanNode, ...]:
        """The target side only: the keys come from the source that is drawn at the join."""
        return (self.source,)


@dataclass(frozen=True, kw_only=True)
class Join(PlanNode):
    """A join. That of a MERGE has the target on its left and the source on its right: RIGHT, or FULL if a clause is BY SOURCE.

    Args:
        left: the left side.
        right: the right side.
        predicate: the ON condition.
        text: the ON condition as written; within a query as Trino prints it, ``""`` without one.
        equalities: pairs of expressions (target, source) that must be equal wherever ON is true.
        key_columns: the pairs among them that are columns whose values compare by themselves, as symbols.
        distribution: ``AUTOMATIC`` (Spark decides), ``PARTITIONED`` (the source is repartitioned by its equality keys, so all
            matches of one target row meet in one task), ``SINGLE`` (the source is one partition), ``REPLICATED`` (every task gets
            all of the source), ``""`` within a query.
        replicate_target: the target is small, and every task gets all of it.
        type: RIGHT, or FULL where target rows without a source row stay too, with NULLs.
    """

    meaning: ClassVar[str] = "Pairs every source row with the target rows it matches; a source row without one stays, with NULLs."
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
        """The ON condition, of which the equalities are parts."""
        return (self.predicate,)

    @property
    def name(self) -> str:
        """The node's name as Trino prints it."""
        return self.type.join_label

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

    meaning: ClassVar[str] = (
        "Marks by is_distinct = 0 the rows of a pair (unique_id, case_number) that comes more than once (in pages of era current all "
        "but the first): one WHEN clause, or none, has a target row twice. Rows without a target row have no unique_id and are exempt."
    )
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

    meaning: ClassVar[str] = "Fails the statement where a target row is matched more than once in a way that the rule forbids."
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
        layout: where the channels of the pages lie.
        columns: the table's columns, in table order.
        row_id: the symbol of the row id.
        table: the target, as written.
    """

    meaning: ClassVar[str] = "Drops rows that do nothing, and gives each change the form that the connector wants."
    source: PlanNode
    paradigm: RowChangeParadigm
    layout: PageLayout
    columns: tuple[Symbol, ...]
    row_id: Symbol
    table: str

    @property
    def redistribution_columns(self) -> tuple[str, ...]:
        """The names of the columns of the insert layout, in table order."""
        return tuple(self.columns[index].name for index in self.layout.redistribution_columns)


@dataclass(frozen=True, kw_only=True)
class Exchange(PlanNode):
    """Sends every row to the writer of its partition or bucket (design documents, "MERGE redistribution").

    Args:
        insert_layout: the place of inserted rows; None spreads them evenly.
        update_layout: the place of deleted and updated rows, by row id; None falls back to the insert layout (documents) or
            spreads them evenly (current era).
        era: decides that fall-back.
        inserts: what places inserted rows, for readers: ``hash(address)``.
        others: what places deleted and updated rows; ``""`` where the insert layout does.
    """

    meaning: ClassVar[str] = "Sends each row to the writer that the connector's layout gives it."
    source: PlanNode
    insert_layout: ConnectorTableLayout | None
    update_layout: ConnectorTableLayout | None
    era: Era
    inserts: str
    others: str = ""

    @property
    def text(self) -> str:
        """Both in one text: ``insert = hash(address), update = ROUND_ROBIN``."""
        return f"insert = {self.inserts}" + (f", update = {self.others}" if self.others else "")


@dataclass(frozen=True)
class PhysicalForm:
    """What executes a query, or the nodes below a writer: from the scan of the target to the processor, or the query of an INSERT.

    Args:
        by_spark: why Spark's operators have to; ``""`` where tasks do it all on pages.
        many_tasks: there are many such tasks, each of which has its splits of the target and all of a MERGE's source; else there is one.
        paged: a MERGE that has one task goes through the target page by page; else it holds the target as a whole.
        partitioned: why the rows of both sides go to tasks by their keys; ``""`` where they do not.
    """

    by_spark: str = ""
    many_tasks: bool = False
    paged: bool = False
    partitioned: str = ""

    @property
    def in_task(self) -> bool:
        """Tasks do it all, on pages."""
        return not self.by_spark


@dataclass(frozen=True, kw_only=True)
class MergeWriter(PlanNode):
    """Hands pages to the connector's merge sinks, and collects their fragments.

    Args:
        table: the target.
        fused: processor and writer run in one pass, because no exchange lies between them.
        form: what executes the nodes below; None where the rule is off that decides it, and Spark does.
        tables: the tables that the statement names: what its subqueries read is among them.
    """

    meaning: ClassVar[str] = "Each writer hands its pages to a merge sink of the connector, which stores them out of sight."
    source: PlanNode
    table: TableBinding
    fused: bool = False
    form: PhysicalForm | None = None
    tables: tuple[TableBinding, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TableWriter(PlanNode):
    """Hands pages to the connector's page sinks: the writer of INSERT and CREATE TABLE AS.

    Args:
        table: the table, as written.
        columns: its columns.
        layout: the connector's layout of inserted rows, whether rows are sent for it or not.
        form: what executes the nodes below; None if the rule that decides it is off, or the query reads no table, and Spark does.
    """

    meaning: ClassVar[str] = "Each writer hands its pages to a page sink of the connector, which stores them out of sight."
    source: PlanNode
    table: str
    columns: tuple[Symbol, ...] = field(default=())
    layout: ConnectorTableLayout | None = None
    form: PhysicalForm | None = None


@dataclass(frozen=True, kw_only=True)
class TableFinish(PlanNode):
    """Sums the row counts and hands all fragments to the connector, which makes one change of them.

    Args:
        call: the connector's method that gets the fragments.
        added: the columns that come into the table along with the change.
    """

    meaning: ClassVar[str] = (
        "Adds up the row counts and gives all fragments to {call}, which makes one change of them. "
        "Readers see nothing of it before the commit, and then all of it at once."
    )
    source: PlanNode
    table: str
    call: str = "finish_merge"
    added: tuple[Symbol, ...] = ()

    @property
    def name(self) -> str:
        """The node's name as Trino prints it."""
        return "TableCommit"


@dataclass(frozen=True, kw_only=True)
class Output(PlanNode):
    """The statement's result: one row with the number of changed rows, or the rows of a query.

    Args:
        names: what the columns of a query's result are called; of other statements they are called as the symbols.
        form: what executes a query; None for other statements, and if the rule that decides it is off: then Spark does.
        pages: the query as DuckDB computes it over the pages of its table; None if Spark executes it.
    """

    meaning: ClassVar[str] = "The answer: how many rows were changed."
    source: PlanNode
    names: tuple[str, ...] = ()
    form: PhysicalForm | None = None
    pages: PagedQuery | None = field(default=None, compare=False, repr=False)
