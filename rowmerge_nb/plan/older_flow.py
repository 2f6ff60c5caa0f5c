"""The older flow of UPDATE and DELETE: the page source of a split changes the rows that it has
read.

One object reads and changes within one task, so nothing between them may move rows: only filters,
projections, a semi join with a list of values and a join with one row.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from rowmerge_nb.base.errors import MERGE_FLOW, AnalysisError, RowMergeError
from rowmerge_nb.plan.page_execution import without_refusal
from rowmerge_nb.plan.plan_nodes import (
    Assignment,
    CheckConstraints,
    Filter,
    Output,
    PlanNode,
    Project,
    Symbol,
    TableFinish,
    TableScan,
)
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.spi.page import ROW_ID
from rowmerge_nb.spi.types import BIGINT, VARBINARY
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.domains import constraint_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.plan.rules import RuleSettings
    from rowmerge_nb.sql.analyzer.analysis import (
        DeleteAnalysis,
        TableBinding,
        TypedExpression,
        UpdateAnalysis,
    )
    from rowmerge_nb.sql.tree.statements import Span


@dataclass(frozen=True, kw_only=True)
class UpdatablePageSourceScan(TableScan):
    """Reads a table by page sources that also change rows, one per split."""

    meaning: ClassVar[str] = (
        "Reads the table, part by part (its splits), by page sources that later"
        " change the rows that they read; the row id is the last column."
    )


@dataclass(frozen=True, kw_only=True)
class QueryJoin(PlanNode):
    """Adds the answer of an uncorrelated subquery to the rows: a list of values, or one row.

    Args:
        query: the query, without the value that IN looks for.
    """

    meaning: ClassVar[str] = (
        "Sends the result of a subquery to every task, so that no row has to move."
    )
    source: PlanNode
    query: e.Subquery
    symbol: Symbol

    @property
    def name(self) -> str:
        return "SemiJoin" if self.query.kind == "in" else "CrossJoin"

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return (self.query,)


@dataclass(frozen=True, kw_only=True)
class _ChangeRows(PlanNode):
    source: PlanNode
    table: TableBinding
    row_id: Symbol


@dataclass(frozen=True, kw_only=True)
class DeleteRows(_ChangeRows):
    """Hands the row ids of a page's remaining rows back to its page source."""

    meaning: ClassVar[str] = (
        "Passes the row ids of every filtered page back to the page source that read"
        " the page: delete_rows."
    )

    @property
    def name(self) -> str:
        return "Delete"


@dataclass(frozen=True, kw_only=True)
class UpdateRows(_ChangeRows):
    """Hands new values and row ids back to the page source of the rows.

    Args:
        channels: the page's channels of these columns and, last, of the row id.
        required: positions of updated columns that refuse NULL.
    """

    meaning: ClassVar[str] = (
        "Passes new values and row ids of every page back to the page source that"
        " read the page: update_rows."
    )
    columns: tuple[ColumnHandle, ...]
    channels: tuple[int, ...]
    required: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return "Update"


def updated_columns(analysis: UpdateAnalysis | DeleteAnalysis) -> tuple[ColumnHandle, ...]:
    pairs = zip(analysis.target.columns, analysis.clauses[0].values, strict=True)
    return tuple(
        ColumnHandle(column.name, column.type) for column, value in pairs if value is not None
    )


def plan_updatable(analysis: UpdateAnalysis | DeleteAnalysis, row_id: ColumnHandle) -> Output:
    """Plan an UPDATE or DELETE.

    Returns:
        Output ← TableFinish ← DeleteRows or UpdateRows ← CheckConstraints? ← Project? ← Filter? ←
        QueryJoin* ← UpdatablePageSourceScan.
    """
    return _Planner(analysis, row_id).plan()


class _Planner:
    def __init__(self, analysis: UpdateAnalysis | DeleteAnalysis, row_id: ColumnHandle) -> None:
        self.analysis = analysis
        self.handle = row_id
        self.row_id = Symbol(ROW_ID, row_id.type)
        self.ids: Iterator[str] = (f"n{number}" for number in itertools.count(1))
        self.printer = PagePrinter([field.symbol for field in analysis.target_fields])

    def plan(self) -> Output:
        target, where = self.analysis.target, self.analysis.where
        if where is not None:
            self._check(where, condition=True)
        assigned = self._assigned()
        node = self._joined(self._scan())
        if where is not None:
            node = Filter(
                id=next(self.ids),
                outputs=node.outputs,
                source=node,
                predicate=where.tree,
                text=where.text,
            )
        node = self._changed(node, assigned)
        rows = (Symbol("rows", BIGINT),)
        call = "finish_update" if assigned else "finish_delete"
        finish = TableFinish(
            id=next(self.ids), outputs=rows, source=node, table=target.display, call=call
        )
        return Output(id=next(self.ids), outputs=rows, source=finish)

    def _scan(self) -> UpdatablePageSourceScan:
        target, where = self.analysis.target, self.analysis.where
        names = {
            field.symbol: c.name
            for field, c in zip(self.analysis.target_fields, target.columns, strict=True)
        }
        return UpdatablePageSourceScan(
            id=next(self.ids),
            outputs=(
                *(Symbol(field.symbol, field.type) for field in self.analysis.target_fields),
                self.row_id,
            ),
            table=target,
            columns=(*(ColumnHandle(c.name, c.type) for c in target.columns), self.handle),
            row_id=self.row_id,
            alias="",
            constraint=constraint_of(where.tree if where is not None else None, names),
        )

    def _assigned(self) -> list[Assignment]:
        assignments: list[tuple[Span, Assignment]] = []
        for column, value in zip(
            self.analysis.target.columns, self.analysis.clauses[0].values, strict=True
        ):
            if value is not None:
                self._check(value, condition=False)
                symbol = Symbol(f"{column.name}_new", column.type)
                assignments.append((value.span, Assignment(symbol, value.tree, value.text)))
        return [
            assignment
            for _, assignment in sorted(
                assignments, key=lambda pair: (pair[0].line, pair[0].column)
            )
        ]

    def _changed(self, node: PlanNode, assigned: list[Assignment]) -> PlanNode:
        target = self.analysis.target
        outputs = (
            Symbol("partialrows", BIGINT),
            Symbol("fragment", VARBINARY),
        )
        if not assigned:
            return DeleteRows(
                id=next(self.ids), outputs=outputs, source=node, table=target, row_id=self.row_id
            )
        symbols = (self.row_id, *(assignment.symbol for assignment in assigned))
        project = self._checked(
            Project(id=next(self.ids), outputs=symbols, source=node, assignments=tuple(assigned))
        )
        columns, order = updated_columns(self.analysis), [symbol.name for symbol in symbols]
        channels = (*(order.index(f"{column.name}_new") for column in columns), 0)
        nullable = {column.name: column.nullable for column in target.columns}
        return UpdateRows(
            id=next(self.ids),
            outputs=outputs,
            source=project,
            table=target,
            row_id=self.row_id,
            columns=columns,
            channels=channels,
            required=tuple(
                index for index, column in enumerate(columns) if not nullable[column.name]
            ),
        )

    def _checked(self, project: Project) -> PlanNode:
        checks = self.analysis.checks
        pairs = zip(self.analysis.target.columns, self.analysis.target_fields, strict=True)
        for check in checks:
            self._check_printable(without_refusal(check.value)[0], condition=False)
        row = tuple(
            (Symbol(column.name, column.type), e.Column(field.type, field.symbol))
            for column, field in pairs
        )
        if not checks:
            return project
        return CheckConstraints(
            id=next(self.ids), outputs=project.outputs, source=project, checks=checks, row=row
        )

    def _joined(self, node: PlanNode) -> PlanNode:
        for index, query in enumerate(self.printer.subqueries):
            symbol = Symbol(self.printer.symbol(index), query.type)
            outputs = node.outputs if query.kind == "in" else (*node.outputs, symbol)
            node = QueryJoin(
                id=next(self.ids),
                outputs=outputs,
                source=node,
                query=query,
                symbol=symbol,
            )
        return node

    def _check(self, expression: TypedExpression, *, condition: bool) -> None:
        for part in e.walk(expression.tree):
            if isinstance(part, e.Subquery) and part.outer:
                raise _moving(part, expression)
        self._check_printable(expression.tree, condition=condition)

    def _check_printable(self, tree: e.Typed, *, condition: bool) -> None:
        try:
            self.printer.text(tree, condition=condition)
        except UnprintableError as error:
            refusal = AnalysisError.unsupported(
                f"The flow 'updatable' computes on pages, where {error} may not mean"
                " what it means in Trino",
                hint=MERGE_FLOW,
            )
            raise refusal.at(tree.origin.span) if tree.origin is not None else refusal from error


def _moving(query: e.Subquery, expression: TypedExpression) -> RowMergeError:
    """Refuse a correlated subquery with the message of that version of Trino.

    The message names the topmost node that moved rows.
    """
    node = "AggregationNode" if query.kind == "in" else "JoinNode"
    if query.kind == "scalar" and not query.aggregates:
        node = "MarkDistinctNode"
    return AnalysisError(
        f"Invalid descendant for DeleteNode or UpdateNode: io.trino.sql.planner.plan.{node}",
        code="GENERIC_INTERNAL_ERROR",
        hint=f"A correlated subquery moves rows between reading and writing. {MERGE_FLOW}",
    ).at(expression.span)


def prune_updatable_scan(plan: Output, settings: RuleSettings) -> Output:
    """Read only the columns that expressions use, and the row id.

    Small tables are read whole, because their old rows are shown.
    """
    chain: list[PlanNode] = [plan]
    while chain[-1].sources:
        chain.append(chain[-1].sources[0])
    scan = chain[-1]
    rows = scan.table.estimated_rows if isinstance(scan, UpdatablePageSourceScan) else None
    if not isinstance(scan, UpdatablePageSourceScan) or (
        rows is not None and rows <= settings.small_rows
    ):
        return plan
    read = {symbol for node in chain for part in node.expressions for symbol in e.references(part)}
    indexes = [
        i for i, symbol in enumerate(scan.outputs) if symbol == scan.row_id or symbol.name in read
    ]
    dropped = {symbol for i, symbol in enumerate(scan.outputs) if i not in indexes}
    node: PlanNode = scan.narrowed(indexes)
    for above in reversed(chain[:-1]):
        # Nodes further up have symbols of their own, and a column of the table may have the name of
        # one of them.
        passes = isinstance(above, Filter | QueryJoin)
        outputs = tuple(symbol for symbol in above.outputs if not passes or symbol not in dropped)
        node = replace(above, source=node, outputs=outputs)  # type: ignore[call-arg]
    assert isinstance(node, Output)
    return node
