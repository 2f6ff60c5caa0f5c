"""The row for which an expression failed in Spark, whose errors have a position in the text and no
row.

After the failure, the rows that reach the expression are read again in the statement's transaction.
The expression is computed on pages, as tasks do, up to the first row that it fails for. The error
is unchanged if pages cannot compute it, if no row fails with the same error, and if the search
takes too long.
"""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.job import collect
from rowmerge_nb.engine.spark.lowering import lower
from rowmerge_nb.engine.spark.page_lowering import assigned_column, check_columns, names_of
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.engine.tasks.failing_row import FAILURE, FailingRowPass
from rowmerge_nb.plan.extended import SOURCE_PRESENT
from rowmerge_nb.plan.plan_nodes import CheckConstraints, Filter, Join, Project, Symbol
from rowmerge_nb.plan.rules import chain, join_of
from rowmerge_nb.spi.page import PRESENT
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.tree.depth import room
from rowmerge_nb.sql.typed.expressions import references
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowmerge_nb.base.errors import RowMergeError
    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.spark.page_lowering import RowNames
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.engine.tasks.page_program import AssignedColumn
    from rowmerge_nb.plan.plan_nodes import CaseBranch, PlanNode
    from rowmerge_nb.sql.typed.expressions import Typed

PATIENCE_SECONDS: Final = 20.0
"""The error waits at most this long for the row."""


class FailingRow(RunObserver):
    def on_failure(self, run: StatementRun, error: RowMergeError, origin: int | None) -> None:
        if origin is not None and run.lowering is not None:
            with room():
                name_failing_row(run, run.lowering, error, origin)


@dataclass(frozen=True)
class _Candidate:
    column: AssignedColumn
    node: PlanNode
    channels: Mapping[str, tuple[pa.DataType, str]]
    guard: str = ""


def name_failing_row(
    run: StatementRun, context: LoweringContext, error: RowMergeError, number: int
) -> None:
    """Name in an error's hint the row that it is about; a failed search leaves the error
    unchanged.
    """
    if run.plan is None or error.hint is None:
        return
    late = threading.Event()
    timer = threading.Timer(PATIENCE_SECONDS, late.set)
    timer.daemon = True
    timer.start()
    try:
        for candidate in (*_candidates(run.plan, number, context), *_checked(run.plan, number)):
            failure = None if late.is_set() else _failure(run, context, candidate, late)
            if failure is not None and failure.code == error.code and failure.row:
                words = run.analysis.origins[number].words
                location = f"It happened {words}. " if words else ""
                error.hint = f"{location}{failure.row} {error.hint.removeprefix(location)}"
                return
    except Exception:  # noqa: BLE001 - the error that led here is the one to raise
        return
    finally:
        timer.cancel()


def _checked(plan: PlanNode, number: int) -> Iterator[_Candidate]:
    for node in chain(plan):
        if isinstance(node, CheckConstraints):
            guard = "" if node.is_stored is None else print_spark(node.is_stored)
            columns = check_columns(
                node.checks, {symbol.name: symbol.name for symbol, _ in node.row}
            )
            for check, column in zip(node.checks, columns, strict=True):
                if check.value.origin is not None and check.value.origin.number == number:
                    names = {*column.expression.reads, *column.expression.names}
                    channels = {
                        s.name: (s.type.arrow, print_spark(value))
                        for s, value in node.row
                        if s.name in names
                    }
                    yield _Candidate(column, node.source, channels, guard)


def _of(tree: Typed, node: PlanNode, names: RowNames, guard: str = "") -> Iterator[_Candidate]:
    read = {*references(tree), *names.display_names(references(tree))}
    channels = {
        symbol.name: (symbol.type.arrow, backquoted(symbol.name))
        for symbol in node.outputs
        if symbol.name in read
    }
    if channels:
        column = assigned_column(
            Symbol("value", tree.type), tree.type.arrow, tree, names, PagePrinter()
        )
        yield _Candidate(column, node, channels, guard)


def _candidates(plan: PlanNode, number: int, context: LoweringContext) -> Iterator[_Candidate]:
    def is_it(tree: Typed | None) -> bool:
        return tree is not None and tree.origin is not None and tree.origin.number == number

    full = (join := join_of(plan)) is not None and join.type is JoinType.FULL
    of_target, names = names_of(context, source=False), names_of(context)
    for node in chain(plan):
        if isinstance(node, Filter) and is_it(node.predicate):
            yield from _of(node.predicate, node.source, names)
        elif isinstance(node, Join) and is_it(node.predicate):
            # The pairs of rows that ON is computed for are not known; its keys are computed for
            # every row.
            for target, source in node.equalities:
                yield from _of(target, node.left, of_target)
                yield from _of(source, node.right, names)
        elif isinstance(node, Project) and node.case is not None:
            for index, branch in enumerate(node.case.branches):
                earlier = node.case.branches[:index]
                row_names = of_target if branch.by_source else names
                if branch.test is not None and is_it(branch.test):
                    yield from _of(
                        branch.test,
                        node.source,
                        row_names,
                        _first_of(earlier, _sides(branch, full=full)),
                    )
                guard = "" if node.case.unconditional else _first_of(earlier, _predicate(branch))
                for value in filter(is_it, branch.expressions):
                    yield from _of(value, node.source, row_names, guard)


def _first_of(earlier: tuple[CaseBranch, ...], condition: str) -> str:
    whens = "".join(f" WHEN {_predicate(branch)} THEN false" for branch in earlier)
    return f"CASE{whens} WHEN {condition} THEN true ELSE false END"


def _predicate(branch: CaseBranch) -> str:
    return "true" if branch.predicate is None else print_spark(branch.predicate)


def _sides(branch: CaseBranch, *, full: bool) -> str:
    if not (branch.matched or branch.by_source):
        return f"{PRESENT} IS NULL"
    return f"{PRESENT} IS NOT NULL" + (
        f" AND {SOURCE_PRESENT} IS {'' if branch.by_source else 'NOT '}NULL" if full else ""
    )


def _failure(
    run: StatementRun, context: LoweringContext, candidate: _Candidate, late: threading.Event
) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    task = FailingRowPass(
        candidate.column,
        pa.schema(
            [pa.field(name, arrow_type) for name, (arrow_type, _) in candidate.channels.items()]
        ),
    )
    with interrupts_afterwards():
        rows = lower(candidate.node, context)
        rows = rows.where(F.expr(candidate.guard)) if candidate.guard else rows
        rows = rows.select(
            *(
                F.expr(text).alias(f"c{index}")
                for index, (_, text) in enumerate(candidate.channels.values())
            )
        )
        failures = run.transaction.scans.in_tasks(rows, task, FAILURE).limit(1)
    payloads = (
        collect(context.spark, failures, f"{run.transaction.session.query_id}-row", late)
        .column(0)
        .to_pylist()
    )
    return pickle.loads(payloads[0]) if payloads else None  # noqa: S301 - our own task wrote it
