"""From analysis to plan (design documents, "Overview of MERGE processing").

The connector's facts come in as `TargetFacts`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.next_steps import null_refusal
from rowmerge_nb.plan.extended import (
    SOURCE_MARK,
    MergeRow,
    mark_source,
    passed_for,
    plan_inserted,
    plan_returning,
    returned_symbols,
    which_rows,
)
from rowmerge_nb.plan.plan_nodes import (
    Assignment,
    AssignUniqueId,
    CaseBranch,
    CheckConstraints,
    DuplicateCheck,
    Exchange,
    Join,
    MarkDistinct,
    MergeProcessor,
    MergeWriter,
    Output,
    Project,
    SearchedCase,
    Source,
    Symbol,
    TableFinish,
    TableScan,
    TableWriter,
)
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.spi.operations import STORING, Era, Operation
from rowmerge_nb.spi.page import (
    CASE_NUMBER,
    HASH,
    INSERT_FROM_UPDATE,
    IS_DISTINCT,
    MERGE_ROW,
    OPERATION,
    PRESENT,
    ROW_ID,
    PageLayout,
)
from rowmerge_nb.spi.page_source import Constraint
from rowmerge_nb.spi.types import BIGINT, BOOLEAN, INTEGER, TINYINT, UNKNOWN, VARBINARY, row_of
from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis
from rowmerge_nb.sql.tree.statements import excerpt
from rowmerge_nb.sql.typed.domains import constraint_of, domain_of_column, intersect
from rowmerge_nb.sql.typed.expressions import (
    TRUE,
    Apply,
    Column,
    Constant,
    has_subquery,
    is_deterministic,
)
from rowmerge_nb.sql.typed.readings import reads
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.plan.plan_nodes import DeleteProject, PlanNode
    from rowmerge_nb.spi.layout import ConnectorTableLayout
    from rowmerge_nb.spi.operations import RowChangeParadigm
    from rowmerge_nb.sql.analyzer.analysis import (
        CheckConstraint,
        ClauseAnalysis,
        QueryAnalysis,
        Returning,
        RowChangeAnalysis,
        TableBinding,
        TypedExpression,
    )
    from rowmerge_nb.sql.typed.expressions import Typed
    from rowmerge_nb.sql.typed.queries import Query

UNIQUE_ID = "unique_id"


@dataclass(frozen=True)
class TargetFacts:
    row_id: ColumnHandle
    paradigm: RowChangeParadigm
    insert_layout: ConnectorTableLayout | None
    update_layout: ConnectorTableLayout | None


def plan_query(analysis: QueryAnalysis) -> Output:
    ids = _ids()
    symbols = tuple(Symbol(field.symbol, field.type) for field in analysis.fields)
    source = Source(
        id=next(ids),
        outputs=symbols,
        tree=analysis.tree,
        text=excerpt(analysis.text),
        tables=analysis.bindings,
    )
    names = tuple(field.name or field.symbol for field in analysis.fields)
    return Output(id=next(ids), outputs=symbols, source=source, names=names)


def plan_insert(
    table: TableBinding,
    query: Query,
    text: str,
    tables: tuple[TableBinding, ...],
    layout: ConnectorTableLayout | None = None,
    returning: Returning | None = None,
    checks: tuple[CheckConstraint, ...] = (),
    partitions: int | None = None,
    call: str = "finish_insert",
) -> Output:
    """Plan an INSERT or the writing half of CREATE TABLE AS.

    Args:
        partitions: the largest number of Spark's partitions of the query; None for any.
    """
    ids = _ids()
    columns = tuple(Symbol(column.name, column.type) for column in table.columns)
    source: PlanNode = Source(
        id=next(ids),
        outputs=columns,
        tree=query,
        text=excerpt(text),
        tables=tables,
        partitions=partitions,
    )
    if checks:
        row = tuple((symbol, Column(symbol.type, symbol.name)) for symbol in columns)
        source = CheckConstraints(
            id=next(ids), outputs=columns, source=source, checks=checks, row=row
        )
    if returning is not None:
        source = plan_inserted(source, returning, ids)
    if layout is not None:
        source = Exchange(
            id=next(ids),
            outputs=source.outputs,
            source=source,
            insert_layout=layout,
            update_layout=None,
            era=Era.DOCUMENTS,
            inserts=_layout_text(layout),
        )
    writer = TableWriter(
        id=next(ids),
        outputs=_WRITER_OUTPUTS,
        source=source,
        table=table.display,
        columns=columns,
        layout=layout,
    )
    plan = _finish(writer, table, ids, call)
    return plan if returning is None else replace(plan, outputs=returned_symbols(returning))


def plan_merge(
    analysis: MergeAnalysis, facts: TargetFacts, *, era: Era, rule: RepeatedMatches
) -> Output:
    """Plan a MERGE as the documents describe it.

    Returns:
        Output ← TableFinish ← MergeWriter ← Exchange? ← MergeProcessor ← DuplicateCheck ←
        MarkDistinct ← Project(returning)? ← Project(case_number) ← CheckConstraints? ←
        Project(merge_row) ← Join(RIGHT or FULL) of target and source.
    """
    return _MergePlanner(analysis, facts, era, rule).plan()


class RowChangePlanner:
    """The shared part of MERGE, UPDATE and DELETE: target scan, merge row, exchange and writer."""

    null_code = "CONSTRAINT_VIOLATION"
    """What a NULL for a NOT NULL column is called; an UPDATE statement has another word for it."""

    def __init__(self, analysis: RowChangeAnalysis, facts: TargetFacts, era: Era) -> None:
        self.analysis = analysis
        self.facts = facts
        self.era = era
        self.ids = _ids()
        self.columns = analysis.target.columns
        self.fields = analysis.target_fields
        self.row_id = Symbol(ROW_ID, facts.row_id.type)
        self.unique_id = Symbol(UNIQUE_ID, BIGINT)
        self.redistribution = self._redistribution()
        self.layout = PageLayout(
            len(self.columns), self.redistribution, era, facts.row_id.identifies_new_rows
        )
        control = [(PRESENT, BOOLEAN), (OPERATION, TINYINT), (CASE_NUMBER, INTEGER)]
        self.merge_row = Symbol(
            MERGE_ROW, row_of([*((c.name, c.type) for c in self.columns), *control])
        )

    def _redistribution(self) -> tuple[int, ...]:
        partition_columns = (
            self.facts.insert_layout.partition_columns if self.facts.insert_layout else ()
        )
        names = [column.name for column in self.columns]
        for name in partition_columns:
            if name not in names:
                raise ConnectorError(
                    f"The insert layout of '{self.analysis.target.qualified}' names column"
                    f" '{name}', which the table does not have",
                    code="GENERIC_INTERNAL_ERROR",
                    hint=f"The connector names columns as in its metadata: {', '.join(names)}.",
                )
        return tuple(i for i, name in enumerate(names) if name in partition_columns)

    def scan(self, condition: TypedExpression | None) -> TableScan:
        fields, target = (*self.fields, *self.analysis.hidden_fields), self.analysis.target
        names = {
            field.symbol: column.name for field, column in zip(fields, target.readable, strict=True)
        }
        return TableScan(
            id=next(self.ids),
            outputs=(*(Symbol(field.symbol, field.type) for field in fields), self.row_id),
            table=target,
            columns=(*target.readable, self.facts.row_id),
            row_id=self.row_id,
            alias=self.analysis.target_alias,
            constraint=constraint_of(condition.tree if condition is not None else None, names),
        )

    def location(self) -> tuple[tuple[Symbol, ...], tuple[Assignment, ...]]:
        """Return the redistribution columns and ``hash``, and how ``hash`` is computed.

        The current era has no ``hash``.
        """
        layout = [self.fields[i] for i in self.redistribution]
        symbols = tuple(Symbol(field.symbol, field.type) for field in layout)
        if self.layout.before.hash is None:
            return symbols, ()
        keys = Apply(BIGINT, "hash", tuple(Column(field.type, field.symbol) for field in layout))
        text = f"hash({', '.join(f.name or f.symbol for f in layout)})"
        hashed = Assignment(Symbol(HASH, BIGINT), keys, text)
        return (*symbols, hashed.symbol), (hashed,)

    def old(self, index: int) -> tuple[str, Typed]:
        """Return a column's old value, as text and as an expression."""
        field = self.fields[index]
        text = f"{self.analysis.target_alias}.{field.name or field.symbol}"
        return text, Column(field.type, field.symbol)

    def value(self, clause: ClauseAnalysis, index: int) -> tuple[str, Typed]:
        column, value, old = self.columns[index], clause.values[index], self.old(index)
        if clause.operation is Operation.NONE:
            return old if index in self.redistribution else _NULL
        if clause.operation is Operation.DELETE:
            # The documents' DELETE row keeps only what decides the row's place; today's Trino keeps
            # all of it.
            return old if self.era is Era.CURRENT or index in self.redistribution else _NULL
        if value is not None:
            text, tree = value.text, value.tree
        elif clause.operation is Operation.UPDATE:
            return old
        else:
            text, tree = _NULL
        if not column.nullable:
            refusal = null_refusal(column.name, self.null_code)
            failure = Apply(tree.type, "fail", (), refusal)
            tree = Apply(
                tree.type, "coalesce", (tree, failure), origin=tree.origin or clause.origin
            )
            text = f"COALESCE({text}, fail('{refusal.message}'))"
        return text, tree

    def checked(self, source: PlanNode) -> PlanNode:
        """Check the target's CHECK constraints on every row to store."""
        checks = self.analysis.checks
        if not checks or not any(clause.operation in STORING for clause in self.analysis.clauses):
            return source
        merge_row = MergeRow(source.outputs)
        row = tuple(
            (symbol, merge_row.value(index)) for index, symbol in enumerate(self.table_columns())
        )
        is_stored = Apply(
            BOOLEAN,
            "in",
            (merge_row.operation, *(Constant(TINYINT, str(int(one))) for one in STORING)),
            False,
        )
        return CheckConstraints(
            id=next(self.ids),
            outputs=source.outputs,
            source=source,
            checks=checks,
            row=row,
            is_stored=is_stored,
        )

    def process(self, source: PlanNode) -> MergeProcessor:
        """Put ``transform_page`` above a source of merge rows."""
        return MergeProcessor(
            id=next(self.ids),
            outputs=self.changes(),
            source=source,
            paradigm=self.facts.paradigm,
            layout=self.layout,
            columns=self.table_columns(),
            table=self.analysis.target.display,
            row_id=self.row_id,
        )

    def table_columns(self) -> tuple[Symbol, ...]:
        """Return the table's columns as they leave ``transform_page``."""
        return tuple(Symbol(column.name, column.type) for column in self.columns)

    def changes(self) -> tuple[Symbol, ...]:
        number = (
            (Symbol(CASE_NUMBER, INTEGER),) if self.layout.after.case_number is not None else ()
        )
        control = (
            Symbol(OPERATION, TINYINT),
            *number,
            self.row_id,
            Symbol(INSERT_FROM_UPDATE, TINYINT),
        )
        return (*self.table_columns(), *control)

    def exchange(self, processor: MergeProcessor | DeleteProject) -> PlanNode:
        """Send every row to its writer, if the connector has a layout."""
        insert, update = self.facts.insert_layout, self.facts.update_layout
        if insert is None and update is None:
            return processor
        others = _layout_text(update) if update is not None or self.era is Era.CURRENT else ""
        return Exchange(
            id=next(self.ids),
            outputs=processor.outputs,
            source=processor,
            insert_layout=insert,
            update_layout=update,
            era=self.era,
            inserts=_layout_text(insert),
            others=others,
        )

    def write(self, source: PlanNode) -> MergeWriter:
        analysis = self.analysis
        return MergeWriter(
            id=next(self.ids),
            outputs=_WRITER_OUTPUTS,
            source=source,
            table=analysis.target,
            tables=tuple(analysis.bindings),
        )

    def finish(self, writer: PlanNode) -> Output:
        added = self.analysis.added if isinstance(self.analysis, MergeAnalysis) else ()
        changes = self.analysis.type_changes if isinstance(self.analysis, MergeAnalysis) else ()
        symbols = tuple(Symbol(column.name, column.type) for column in added)
        return _finish(writer, self.analysis.target, self.ids, added=symbols, type_changes=changes)


class _MergePlanner(RowChangePlanner):
    analysis: MergeAnalysis

    def __init__(
        self, analysis: MergeAnalysis, facts: TargetFacts, era: Era, rule: RepeatedMatches
    ) -> None:
        super().__init__(analysis, facts, era)
        self.rule = rule

    def plan(self) -> Output:
        on = self.analysis.on
        if not is_deterministic(on.tree) and not has_subquery(on.tree):
            raise ConnectorError(
                "The ON condition must return the same value each time it is evaluated",
                hint=(
                    "Compute such a value in the source: USING (SELECT ..., random() AS r FROM"
                    " ...) s."
                ),
            ).at(self.analysis.on.span)
        source = self._source()
        join_type = (
            JoinType.FULL
            if any(clause.by_source for clause in self.analysis.clauses)
            else JoinType.RIGHT
        )
        if join_type is JoinType.FULL:
            source = mark_source(source, next(self.ids))
        join = Join(
            id=next(self.ids),
            left=(target := self._target(join_type)),
            right=source,
            outputs=target.outputs + source.outputs,
            predicate=on.tree,
            text=on.text,
            equalities=self.analysis.equalities,
            key_columns=self.analysis.key_columns,
            type=join_type,
        )
        numbered = self._number(self.checked(self._case(join)))
        returning = self.analysis.returning
        if returning is not None:
            numbered = plan_returning(numbered, returning, self.fields, self.ids)
        marked = self._mark(numbered)
        idle = tuple(
            clause.number for clause in self.analysis.clauses if clause.operation is Operation.NONE
        )
        checked = DuplicateCheck(
            id=next(self.ids), outputs=marked.outputs, source=marked, rule=self.rule, idle=idle
        )
        plan = self.finish(self.write(self.exchange(self.process(checked))))
        return plan if returning is None else replace(plan, outputs=returned_symbols(returning))

    def _target(self, join: JoinType) -> Project:
        # A FULL join keeps the target rows that nothing matches.
        scan = self.scan(None if join is JoinType.FULL else self.analysis.on)
        if join is not JoinType.FULL and scan.table.checks_reads:
            scan = replace(scan, constraint=self._with_keys(scan))
        numbered = AssignUniqueId(
            id=next(self.ids),
            outputs=(*scan.outputs, self.unique_id),
            source=scan,
            symbol=self.unique_id,
        )
        present = Symbol(PRESENT, BOOLEAN)
        assignment = Assignment(present, TRUE, "true")
        return Project(
            id=next(self.ids),
            outputs=(*numbered.outputs, present),
            source=numbered,
            assignments=(assignment,),
        )

    def _with_keys(self, scan: TableScan) -> Constraint:
        """Add constant source keys to the constraint of the target's scan, because the commit
        checks what is read.
        """
        domains = dict(scan.constraint.domains)
        columns = {
            symbol.name: column for symbol, column in zip(scan.outputs, scan.columns, strict=True)
        }
        for target, source in self.analysis.key_columns:
            column = columns[target]
            domain = domain_of_column(self.analysis.source.tree, source, column.type)
            if domain is not None:
                domains[column.name] = (
                    intersect(domains[column.name], domain) if column.name in domains else domain
                )
        return Constraint(domains)

    def _source(self) -> PlanNode:
        source = self.analysis.source
        symbols = tuple(Symbol(field.symbol, field.type) for field in source.fields)
        if source.binding is not None:
            return TableScan(
                id=next(self.ids),
                outputs=symbols,
                table=source.binding,
                columns=tuple(
                    c
                    for c in source.binding.readable
                    if c.name not in source.binding.refused_columns
                ),
                alias=source.alias or "",
            )
        views = reads(source.tree).views
        return Source(
            id=next(self.ids),
            outputs=symbols,
            tree=source.tree,
            text=source.text,
            tables=tuple(table for table in self.analysis.bindings if table.view in views),
        )

    def _case(self, join: Join) -> Project:
        location, hashed = self.location()
        outputs = (
            *location,
            self.unique_id,
            self.row_id,
            self.merge_row,
            *([SOURCE_MARK] if join.type is JoinType.FULL else []),
        )
        return Project(
            id=next(self.ids),
            outputs=(*outputs, *passed_for(self.analysis.returning, join.outputs, outputs)),
            source=join,
            assignments=hashed,
            case=SearchedCase(
                self.merge_row,
                (
                    *(self._branch(clause, join.type) for clause in self.analysis.clauses),
                    self._else(),
                ),
            ),
        )

    def _branch(self, clause: ClauseAnalysis, join: JoinType) -> CaseBranch:
        condition, predicate = which_rows(clause, join)
        if clause.condition is not None:
            condition = f"{condition} AND {_within_and(clause.condition)}"
            predicate = Apply(BOOLEAN, "and", (predicate, clause.condition.tree))
        pairs = [self.value(clause, index) for index in range(len(self.columns))]
        return CaseBranch(
            number=clause.number,
            operation=clause.operation,
            matched=clause.matched,
            condition=condition,
            predicate=predicate,
            values=tuple(text for text, _ in pairs),
            expressions=tuple(tree for _, tree in pairs),
            by_source=clause.by_source,
            assigned=tuple(self.columns[index].name for index in clause.assigned),
            test=clause.condition.tree if clause.condition is not None else None,
        )

    def _else(self) -> CaseBranch:
        """Return the branch of rows without a clause: in the documents it keeps the row's location,
        in the current era it is NULL.
        """
        if self.era is Era.CURRENT:
            return CaseBranch(-1, Operation.NONE, None, "ELSE", None, (), ())
        pairs = [
            self.old(i) if i in self.redistribution else _NULL for i in range(len(self.columns))
        ]
        texts, trees = tuple(text for text, _ in pairs), tuple(tree for _, tree in pairs)
        return CaseBranch(-1, Operation.NONE, None, "ELSE", None, texts, trees)

    def _number(self, rows: PlanNode) -> Project:
        symbol = Symbol(CASE_NUMBER, INTEGER)
        field = MergeRow(rows.outputs).case_number
        assignment = Assignment(symbol, field, f"{MERGE_ROW}.{CASE_NUMBER}")
        return Project(
            id=next(self.ids),
            outputs=(*rows.outputs, symbol),
            source=rows,
            assignments=(assignment,),
        )

    def _mark(self, project: Project) -> MarkDistinct:
        marker = Symbol(IS_DISTINCT, TINYINT)
        return MarkDistinct(
            id=next(self.ids),
            outputs=(*project.outputs, marker),
            source=project,
            keys=(self.unique_id, Symbol(CASE_NUMBER, INTEGER)),
            marker=marker,
        )


def _finish(
    writer: PlanNode,
    table: TableBinding,
    ids: Iterator[str],
    call: str = "finish_merge",
    added: tuple[Symbol, ...] = (),
    type_changes: tuple[tuple[str, str, str], ...] = (),
) -> Output:
    rows = (Symbol("rows", BIGINT),)
    finish = TableFinish(
        id=next(ids),
        outputs=rows,
        source=writer,
        table=table.display,
        call=call,
        added=added,
        type_changes=type_changes,
    )
    return Output(id=next(ids), outputs=rows, source=finish)


def _within_and(condition: TypedExpression) -> str:
    either = isinstance(condition.tree, Apply) and condition.tree.name == "or"
    return f"({condition.text})" if either else condition.text


def _layout_text(layout: ConnectorTableLayout | None) -> str:
    if layout is None:
        return "ROUND_ROBIN"
    if layout.partitioning is not None and layout.partitioning.described:
        return layout.partitioning.described
    arguments = ", ".join(layout.partition_columns) or ROW_ID
    return f"{'hash' if layout.partitioning is None else 'bucket'}({arguments})"


def _ids() -> Iterator[str]:
    return (f"n{number}" for number in itertools.count(1))


_NULL = ("NULL", Constant(UNKNOWN, None))
_WRITER_OUTPUTS = (Symbol("partialrows", BIGINT), Symbol("fragment", VARBINARY))
