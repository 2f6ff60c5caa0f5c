"""Requested rows: joined rows for which a condition is true, with what became of each, however few
rows the trace keeps.

They are recomputed in one job, by the statement's own plan up to the processor: while the statement
runs in its own transaction, afterwards from the version of the target that it was made from. A
failure does not end the statement.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import StatementInterrupted, message_of
from rowmerge_nb.base.names import backquoted
from rowmerge_nb.engine.observers.row_reasons import with_truths
from rowmerge_nb.engine.observers.untouched_rows import whole_scan
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.lowering import input_rows, lower
from rowmerge_nb.engine.spark.passes import merge_pass
from rowmerge_nb.engine.statements.account import sum_up
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.engine.tasks.recorder import TaskRecord
from rowmerge_nb.plan.extended import SOURCE_PRESENT
from rowmerge_nb.plan.page_execution import without_mark
from rowmerge_nb.plan.plan_nodes import (
    AnsweredQuery,
    DeleteProject,
    Filter,
    Join,
    MarkDistinct,
    MergeProcessor,
    Symbol,
    TableScan,
)
from rowmerge_nb.plan.rules import chain, join_of, read_views, rewritten
from rowmerge_nb.spi.page import PRESENT
from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis
from rowmerge_nb.sql.analyzer.statements.row_conditions import names_of_sides
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.tree.depth import room
from rowmerge_nb.sql.typed.expressions import has_subquery
from rowmerge_nb.sql.typed.readings import is_deterministic
from rowmerge_nb.trace.node_records import JoinType
from rowmerge_nb.trace.page_samples import AskedRows
from rowmerge_nb.trace.picking import check_columns, in_words, picked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.statements.action import Action, PlannedChange
    from rowmerge_nb.engine.statements.row_change import Named
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.plan.plan_nodes import PlanNode
    from rowmerge_nb.sql.analyzer.analysis import RowChangeAnalysis
    from rowmerge_nb.sql.analyzer.statements.row_conditions import RowConditions
    from rowmerge_nb.sql.typed.expressions import Typed
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace

MOST_ROWS: Final = 30
"""The number of rows at most."""
NUMBERED_ANEW: Final = (
    "The rows of the source query get other numbers when the query runs again. Search"
    " for values of its columns instead."
)
UNREPEATABLE: Final = (
    "The source may return different rows when it is read again, so the rows of the"
    " statement are unknown."
)


@dataclass(frozen=True)
class RowRequest:
    """A request for rows.

    Args:
        words: the condition, for people.
        predicate: the condition on joined rows; None for all.
        source_row: the number of the source row; None for all.
        possible: whether there can be such a row.
        of_target: the condition on target rows without a partner; None if none are requested.
    """

    words: str
    predicate: Typed | None = None
    source_row: int | None = None
    possible: bool = True
    of_target: Typed | None = None


def request_by_condition(conditions: RowConditions, text: str) -> RowRequest:
    with room():
        return RowRequest(text.strip(), conditions.read(text))


def request_by_values(
    conditions: RowConditions, row: Any, source_row: Any, columns: Mapping[str, Any]
) -> RowRequest:
    """Return the request of a source row's number and of values of columns of either side: see
    `picked`.
    """
    names = names_of_sides(conditions.analysis)
    number, values = picked(row, source_row, columns, (name for side in names for name in side))
    check_columns(values, names)
    joined = isinstance(conditions.analysis, MergeAnalysis)
    full = any(clause.by_source for clause in conditions.analysis.clauses)
    marks = (PRESENT if joined else "", SOURCE_PRESENT if full else "")
    like = conditions.like(values, marks) if values else None
    of_target = conditions.like(values, ("",)) if values and joined and number is None else None
    return RowRequest(
        in_words(number, values),
        like,
        number,
        possible=like is not None or not values,
        of_target=of_target,
    )


class RequestedRows(RunObserver):
    def __init__(self, analysis: RowChangeAnalysis, request: RowRequest) -> None:
        self._analysis = analysis
        self._request = request
        self._rows: AskedRows | None = None

    def after_checks(self, run: StatementRun, action: Action) -> None:
        run.begin_step("fetch the rows asked for")
        assert action.planned is not None
        try:
            context = replace(action.context, tables=run.transaction.scans.observations)
            self._rows = requested_rows(run, self._analysis, action.planned, context, self._request)
        except StatementInterrupted:
            raise
        except Exception as error:  # noqa: BLE001 - the trace has the reason in their place
            reason = message_of(error)
            self._rows = AskedRows(
                self._request.words, problem=f"They could not be read again: {reason}."
            )

    def add_to_trace(self, trace: Trace) -> Trace:
        return replace(trace, samples=replace(trace.samples, requested_rows=self._rows))


def requested_rows(
    run: StatementRun,
    analysis: RowChangeAnalysis,
    planned: PlannedChange,
    context: LoweringContext,
    request: RowRequest,
) -> AskedRows:
    whole = planned.whole()
    if not _is_repeatable(run, analysis, whole):
        return AskedRows(request.words, problem=UNREPEATABLE)
    if not request.possible:
        return AskedRows(request.words)
    processor = next(
        node for node in chain(whole) if isinstance(node, MergeProcessor | DeleteProject)
    )
    from_join = join_of(processor) is not None

    def with_filter(node: PlanNode) -> PlanNode:
        if isinstance(node, MarkDistinct):
            # A few rows meet without an exchange.
            return replace(node, exchange=False)
        is_first = (
            isinstance(node, Join)
            if from_join
            else isinstance(node, TableScan) and node.row_id is not None
        )
        if request.predicate is None or not is_first:
            return node
        return Filter(
            id="asked",
            outputs=node.outputs,
            source=node,
            predicate=request.predicate,
            text=request.words,
        )

    filtered = rewritten(processor, with_filter)
    witnessed = replace(context, witness=True, per_clause=MOST_ROWS, target=_columns(analysis))
    pages, has_more = _read(run, filtered, witnessed, request)
    if pages is not None:
        pages = with_truths(pages, analysis, witnessed.target, witnessed.source)
    return AskedRows(request.words, pages, has_more)


def unmatched_target_rows(
    run: StatementRun,
    analysis: RowChangeAnalysis,
    planned: PlannedChange,
    context: LoweringContext,
    request: RowRequest,
) -> pa.RecordBatch | None:
    """Return the requested target rows of a MERGE that have no partner; None if none are requested,
    or the joined rows have them.
    """
    from pyspark.sql import functions as F  # noqa: N812

    join = join_of(planned.whole())
    if (
        request.of_target is None
        or join is None
        or join.type is JoinType.FULL
        or has_subquery(join.predicate)
    ):
        return None
    scan = whole_scan(analysis, planned)
    filtered = Filter(
        id="asked",
        outputs=scan.outputs,
        source=scan,
        predicate=request.of_target,
        text=request.words,
    )
    with interrupts_afterwards(), room():
        run.transaction.scans.make_views(
            analysis.bindings, read_views(filtered) | read_views(join.right)
        )
        rows = lower(filtered, context).join(
            lower(join.right, context), F.expr(print_spark(join.predicate)), "left_anti"
        )
        rows = rows.select(*(backquoted(field.symbol) for field in analysis.target_fields)).limit(
            MOST_ROWS
        )
    table = run.collect(context.spark, rows, context.partitions)
    columns = analysis.target.columns
    arrays = [
        conform(values.combine_chunks(), column.type.arrow)
        for values, column in zip(table.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _read(
    run: StatementRun,
    processor: MergeProcessor | DeleteProject,
    context: LoweringContext,
    request: RowRequest,
) -> tuple[PageSample | None, bool]:
    from pyspark.sql import functions as F  # noqa: N812

    task = merge_pass(processor, context)
    with interrupts_afterwards(), room():
        run.transaction.scans.make_views(run.analysis.bindings, read_views(processor))
        rows = input_rows(processor, context)
        number = F.col(backquoted(rows.columns[-1])).getField("source_row")
        if request.source_row is not None:
            rows = rows.where(number == F.lit(request.source_row))
        rows = rows.orderBy(number).limit(MOST_ROWS + 1)
    table = run.collect(context.spark, rows, context.partitions)
    batches = table.slice(0, MOST_ROWS).combine_chunks().to_batches()
    changed = task.changed(iter(batches), 0)
    account = sum_up([record for record in changed if isinstance(record, TaskRecord)])
    if account.errors:
        raise account.errors[0]
    pages = account.pages
    return None if pages is None else replace(pages, complete=False), table.num_rows > MOST_ROWS


def _is_repeatable(run: StatementRun, analysis: RowChangeAnalysis, plan: PlanNode) -> bool:
    join = join_of(plan)
    if not isinstance(analysis, MergeAnalysis) or join is None:
        return True
    task = (
        run.transaction.scans.observations.page_scan(join.right)
        if isinstance(join.right, TableScan)
        else None
    )
    is_same = is_deterministic(analysis.source.tree) or isinstance(
        without_mark(join.right), AnsweredQuery
    )
    return is_same and (task is None or task.is_repeatable)


def _columns(analysis: RowChangeAnalysis) -> Named:
    pairs = zip(analysis.target.columns, analysis.target_fields, strict=True)
    return tuple((column.name, Symbol(field.symbol, field.type)) for column, field in pairs)
