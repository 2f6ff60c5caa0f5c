"""The row that an expression failed for, where Spark computed it: its errors tell the place in the text, and no row.

Once the statement has failed, the rows that reach the expression are read once more, in the statement's transaction, and it is computed on
pages, as tasks do it, up to the first row that it fails for. Where pages cannot be asked for it, where it fails for no row or with another
error, and where it takes too long, the error stays as it is.
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
from rowmerge_nb.engine.tasks.failing_row import FAILURE, FailingRowPass
from rowmerge_nb.plan.extended import SOURCE_PRESENT
from rowmerge_nb.plan.plan_nodes import CheckConstraints, Filter, Join, Project, Symbol
from rowmerge_nb.plan.rules import chain, join_of
from rowmerge_nb.spi.page import PRESENT
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.spark.printer import print_spark
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
"""An error does not wait longer for the row."""


@dataclass(frozen=True)
class _Asked:
    """An expression, and the rows that it is computed for.

    Args:
        column: the expression, as pages are asked for it.
        node: gives rows.
        channels: what is read of them: type and Spark's SQL, by the names that the expression has for it.
        guard: which of them, as Spark's SQL; ``""`` for all.
    """

    column: AssignedColumn
    node: PlanNode
    channels: Mapping[str, tuple[pa.DataType, str]]
    guard: str = ""


def name_failing_row(run: StatementRun, context: LoweringContext, error: RowMergeError, number: int) -> None:
    """Describe in an error's hint which row it is about; whatever goes wrong with that leaves the error as it is.

    Args:
        run: the statement's run, whose transaction is still open.
        context: with which its plan was lowered.
        error: the error; its place is known.
        number: the number of the expression that it comes from.
    """
    if run.plan is None or error.hint is None:
        return
    late = threading.Event()
    timer = threading.Timer(PATIENCE_SECONDS, late.set)
    timer.daemon = True
    timer.start()
    try:
        for asked in (*_asked(run.plan, number, context), *_checked(run.plan, number)):
            found = None if late.is_set() else _failure(run, context, asked, late)
            if found is not None and found.code == error.code and found.row:
                words = run.analysis.origins[number].words
                happened = f"It happened {words}. " if words else ""
                error.hint = f"{happened}{found.row} {error.hint.removeprefix(happened)}"
                return
    except Exception:  # noqa: BLE001 - the error that led here is the one to raise
        return
    finally:
        timer.cancel()


def _checked(plan: PlanNode, number: int) -> Iterator[_Asked]:
    """Yield the CHECK constraint of that number, which is asked of the new rows."""
    for node in chain(plan):
        if isinstance(node, CheckConstraints):
            guard = "" if node.stored is None else print_spark(node.stored)
            columns = check_columns(node.checks, {symbol.name: symbol.name for symbol, _ in node.row})
            for check, column in zip(node.checks, columns, strict=True):
                if check.value.origin is not None and check.value.origin.number == number:
                    told = {*column.expression.reads, *column.expression.names}
                    channels = {s.name: (s.type.arrow, print_spark(value)) for s, value in node.row if s.name in told}
                    yield _Asked(column, node.source, channels, guard)


def _of(tree: Typed, node: PlanNode, names: RowNames, guard: str = "") -> Iterator[_Asked]:
    """Yield an expression, if there is anything by which its rows are known."""
    told = {*references(tree), *names.display_names(references(tree))}
    channels = {symbol.name: (symbol.type.arrow, backquoted(symbol.name)) for symbol in node.outputs if symbol.name in told}
    if channels:
        column = assigned_column(Symbol("value", tree.type), tree.type.arrow, tree, names, PagePrinter())
        yield _Asked(column, node, channels, guard)


def _asked(plan: PlanNode, number: int, context: LoweringContext) -> Iterator[_Asked]:
    """Yield what is computed under the number of an expression."""

    def is_it(tree: Typed | None) -> bool:
        return tree is not None and tree.origin is not None and tree.origin.number == number

    full = (join := join_of(plan)) is not None and join.type is JoinType.FULL
    of_target, names = names_of(context, source=False), names_of(context)
    for node in chain(plan):
        if isinstance(node, Filter) and is_it(node.predicate):
            yield from _of(node.predicate, node.source, names)
        elif isinstance(node, Join) and is_it(node.predicate):
            # Of ON itself nobody knows which pairs of rows it is asked for; of its keys, that each row's is computed.
            for target, source in node.equalities:
                yield from _of(target, node.left, of_target)
                yield from _of(source, node.right, names)
        elif isinstance(node, Project) and node.case is not None:
            for at, branch in enumerate(node.case.branches):
                earlier, known = node.case.branches[:at], of_target if branch.by_source else names
                if branch.test is not None and is_it(branch.test):
                    yield from _of(branch.test, node.source, known, _first_of(earlier, _sides(branch, full=full)))
                guard = "" if node.case.unconditional else _first_of(earlier, _predicate(branch))
                for value in filter(is_it, branch.expressions):
                    yield from _of(value, node.source, known, guard)


def _first_of(earlier: tuple[CaseBranch, ...], condition: str) -> str:
    """Write that a condition is true, and that of no branch before it."""
    whens = "".join(f" WHEN {_predicate(branch)} THEN false" for branch in earlier)
    return f"CASE{whens} WHEN {condition} THEN true ELSE false END"


def _predicate(branch: CaseBranch) -> str:
    return "true" if branch.predicate is None else print_spark(branch.predicate)


def _sides(branch: CaseBranch, *, full: bool) -> str:
    """Write which sides a row must have for a branch."""
    if not (branch.matched or branch.by_source):
        return f"{PRESENT} IS NULL"
    return f"{PRESENT} IS NOT NULL" + (f" AND {SOURCE_PRESENT} IS {'' if branch.by_source else 'NOT '}NULL" if full else "")


def _failure(run: StatementRun, context: LoweringContext, asked: _Asked, late: threading.Event) -> Any:
    """Compute an expression for its rows; give the error with which it fails for one, None if it fails for none."""
    from pyspark.sql import functions as F  # noqa: N812

    task = FailingRowPass(asked.column, pa.schema([pa.field(name, kind) for name, (kind, _) in asked.channels.items()]))
    with interrupts_afterwards():
        rows = lower(asked.node, context)
        rows = rows.where(F.expr(asked.guard)) if asked.guard else rows
        rows = rows.select(*(F.expr(text).alias(f"c{index}") for index, (_, text) in enumerate(asked.channels.values())))
        failures = run.transaction.scans.in_tasks(rows, task, FAILURE).limit(1)
    found = collect(context.spark, failures, f"{run.transaction.session.query_id}-row", late).column(0).to_pylist()
    return pickle.loads(found[0]) if found else None  # noqa: S301 - our own task wrote it
