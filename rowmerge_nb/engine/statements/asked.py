"""Rows that somebody asks for, whatever a trace keeps: the joined rows for which a condition is true, with what became of each.

They are computed once more, by the statement's own plan up to the processor, over the rows that it has read: while it runs in its own
transaction, afterwards from the version of the target that it was made from. That is one job, and an explanation: it ends no statement.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import RowMergeError, StatementInterrupted, error_text
from rowmerge_nb.base.names import backquoted
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.lowering import input_rows, lower
from rowmerge_nb.engine.spark.passes import merge_pass
from rowmerge_nb.engine.statements.account import sum_up
from rowmerge_nb.engine.statements.reasons import with_truths
from rowmerge_nb.engine.statements.untouched import whole_scan
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.engine.tasks.outcome import RECORD
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
from rowmerge_nb.trace.picking import check_columns, in_words, picked
from rowmerge_nb.trace.trace import AskedRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.statements.merge import MergeRun
    from rowmerge_nb.engine.statements.row_change import Answer, Named, Planned
    from rowmerge_nb.engine.statements.update_delete import UpdateDeleteRun
    from rowmerge_nb.plan.plan_nodes import PlanNode
    from rowmerge_nb.sql.analyzer.analysis import RowChangeAnalysis
    from rowmerge_nb.sql.analyzer.statements.row_conditions import RowConditions
    from rowmerge_nb.sql.typed.expressions import Typed
    from rowmerge_nb.trace.trace import PageSample

MOST_ROWS: Final = 30
"""So many rows are told at most."""
NUMBERED_ANEW: Final = (
    "The rows of the source query get other numbers when it is answered again. Look for values of its columns instead."
)
UNREPEATABLE: Final = "The source may have other rows when it is read again, so that those of the statement are not known."


@dataclass(frozen=True)
class Wanted:
    """Which rows are asked for.

    Args:
        words: the condition, for people.
        predicate: it must be true of a row; None for any.
        source_row: the number of its source row; None for any.
        possible: there can be such a row.
        of_target: what must be true of a target row without a partner; None where none is asked for.
    """

    words: str
    predicate: Typed | None = None
    source_row: int | None = None
    possible: bool = True
    of_target: Typed | None = None


def wanted_by_condition(conditions: RowConditions, text: str) -> Wanted:
    """Return what a condition in SQL asks for.

    Raises:
        RowMergeError: it is wrong.
    """
    with room():
        return Wanted(text.strip(), conditions.read(text))


def wanted_by_values(conditions: RowConditions, row: Any, source_row: Any, columns: Mapping[str, Any]) -> Wanted:
    """Return what the number of a source row, and values of columns of either side, ask for: see `picked`.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if neither side has a column of such a name; NOT_SUPPORTED for values that SQL does not compare.
    """
    names = names_of_sides(conditions.analysis)
    number, values = picked(row, source_row, columns, (name for side in names for name in side))
    check_columns(values, names)
    joined, full = isinstance(conditions.analysis, MergeAnalysis), any(clause.by_source for clause in conditions.analysis.clauses)
    marks = (PRESENT if joined else "", SOURCE_PRESENT if full else "")
    like = conditions.like(values, marks) if values else None
    of_target = conditions.like(values, ("",)) if values and joined and number is None else None
    return Wanted(in_words(number, values), like, number, possible=like is not None or not values, of_target=of_target)


def explain_rows(run: MergeRun | UpdateDeleteRun, planned: Planned, answer: Answer) -> None:
    """Add to a statement's account the rows that were asked for with it; to be called before it is finished.

    Raises:
        StatementInterrupted: the user has stopped it; nothing was changed.
    """
    wanted = run.wanted
    if wanted is None:
        return
    run.begin_step("fetch the rows asked for")
    try:
        context = replace(answer.context, tables=run.transaction.scans.observations)
        answer.account.asked = wanted_rows(run, planned, context, wanted)
    except StatementInterrupted:
        raise
    except Exception as error:  # noqa: BLE001 - it is told in their place
        said = error.message if isinstance(error, RowMergeError) else error_text(error)
        answer.account.asked = AskedRows(wanted.words, problem=f"They could not be read once more: {said}.")


def wanted_rows(run: MergeRun | UpdateDeleteRun, planned: Planned, context: LoweringContext, wanted: Wanted) -> AskedRows:
    """Read the rows that are asked for, and what the statement makes of them.

    Args:
        run: the statement's run.
        planned: its plan.
        context: with which that is lowered.
        wanted: which rows.
    """
    whole = planned.whole()
    if not _is_repeatable(run, whole):
        return AskedRows(wanted.words, problem=UNREPEATABLE)
    if not wanted.possible:
        return AskedRows(wanted.words)
    processor = next(node for node in chain(whole) if isinstance(node, MergeProcessor | DeleteProject))
    from_join = join_of(processor) is not None

    def choosing(node: PlanNode) -> PlanNode:
        if isinstance(node, MarkDistinct):
            # So few rows need no exchange to meet.
            return replace(node, exchange=False)
        begins = isinstance(node, Join) if from_join else isinstance(node, TableScan) and node.row_id is not None
        if wanted.predicate is None or not begins:
            return node
        return Filter(id="asked", outputs=node.outputs, source=node, predicate=wanted.predicate, text=wanted.words)

    chosen = rewritten(processor, choosing)
    shown = replace(context, witness=True, per_clause=MOST_ROWS, target=_columns(run.analysis))
    pages, more = _read(run, chosen, shown, wanted)
    if pages is not None:
        pages = with_truths(pages, run.analysis, shown.target, shown.source)
    return AskedRows(wanted.words, pages, more)


def untouched_rows(
    run: MergeRun | UpdateDeleteRun, planned: Planned, context: LoweringContext, wanted: Wanted
) -> pa.RecordBatch | None:
    """Return the target rows of a MERGE that are asked for and have no partner; None where they are not asked for, or stand among the joined ones.

    Args:
        run: the statement's run.
        planned: its plan.
        context: with which that is lowered.
        wanted: which rows.
    """
    from pyspark.sql import functions as F  # noqa: N812

    join = join_of(planned.whole())
    if wanted.of_target is None or join is None or join.type is JoinType.FULL or has_subquery(join.predicate):
        return None
    scan = whole_scan(run, planned)
    chosen = Filter(id="asked", outputs=scan.outputs, source=scan, predicate=wanted.of_target, text=wanted.words)
    with interrupts_afterwards(), room():
        run.transaction.scans.make_views(run.analysis.bindings, read_views(chosen) | read_views(join.right))
        rows = lower(chosen, context).join(lower(join.right, context), F.expr(print_spark(join.predicate)), "left_anti")
        rows = rows.select(*(backquoted(field.symbol) for field in run.analysis.target_fields)).limit(MOST_ROWS)
    table = run.collect(context.spark, rows, context.partitions)
    columns = run.analysis.target.columns
    arrays = [conform(found.combine_chunks(), column.type.arrow) for found, column in zip(table.columns, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _read(
    run: MergeRun | UpdateDeleteRun, processor: MergeProcessor | DeleteProject, context: LoweringContext, wanted: Wanted
) -> tuple[PageSample | None, bool]:
    """Read some of the rows that reach a processor, in the order of the source, and have it work on them."""
    from pyspark.sql import functions as F  # noqa: N812

    task = merge_pass(processor, context, placing=None, sinks=None)
    with interrupts_afterwards(), room():
        run.transaction.scans.make_views(run.analysis.bindings, read_views(processor))
        rows = input_rows(processor, context)
        number = F.col(backquoted(rows.columns[-1])).getField("source_row")
        if wanted.source_row is not None:
            rows = rows.where(number == F.lit(wanted.source_row))
        rows = rows.orderBy(number).limit(MOST_ROWS + 1)
    table = run.collect(context.spark, rows, context.partitions)
    batches = table.slice(0, MOST_ROWS).combine_chunks().to_batches()
    told = [payload for made in task.work(iter(batches), 0) for payload in made.column(RECORD).to_pylist() if payload is not None]
    account = sum_up([pickle.loads(payload) for payload in told])  # noqa: S301 - our own pass has written it, here
    if account.errors:
        raise account.errors[0]
    pages = account.pages
    return None if pages is None else replace(pages, complete=False), table.num_rows > MOST_ROWS


def _is_repeatable(run: MergeRun | UpdateDeleteRun, plan: PlanNode) -> bool:
    """Return whether the source has the same rows when it is read again."""
    analysis, join = run.analysis, join_of(plan)
    if not isinstance(analysis, MergeAnalysis) or join is None:
        return True
    task = run.transaction.scans.observations.page_scan(join.right) if isinstance(join.right, TableScan) else None
    same = is_deterministic(analysis.source.tree) or isinstance(without_mark(join.right), AnsweredQuery)
    return same and (task is None or task.is_repeatable)


def _columns(analysis: RowChangeAnalysis) -> Named:
    """Return all columns of the target, by the names that people know them by."""
    pairs = zip(analysis.target.columns, analysis.target_fields, strict=True)
    return tuple((column.name, Symbol(field.symbol, field.type)) for column, field in pairs)
