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

from rowmerge_nb.engine.spark.in_task import assigned_column, names_of
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.job import collect
from rowmerge_nb.engine.spark.lowering import lower
from rowmerge_nb.engine.tasks.failing_row import FAILURE, FailingRowPass
from rowmerge_nb.plan.extended import SOURCE_PRESENT
from rowmerge_nb.plan.nodes import Filter, Join, Project, Symbol
from rowmerge_nb.plan.rules import chain, join_of
from rowmerge_nb.spi.page import PRESENT
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.typed.expressions import quote, references
from rowmerge_nb.trace.nodes import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.engine.spark.lowering import LoweringContext
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.errors import RowMergeError
    from rowmerge_nb.plan.nodes import CaseBranch, PlanNode
    from rowmerge_nb.sql.typed.expressions import Typed

__all__ = ["name_failing_row"]

PATIENCE_SECONDS: Final = 20.0
"""An error does not wait longer for the row."""


@dataclass(frozen=True)
class _Asked:
    """An expression, and the rows that it is computed for.

    Args:
        tree: the expression.
        node: gives rows.
        guard: which of them, as Spark's SQL; ``""`` for all.
    """

    tree: Typed
    node: PlanNode
    guard: str = ""


def name_failing_row(run: StatementRun, context: LoweringContext, error: RowMergeError, number: int) -> None:
    """Say in an error's hint which row it is about; whatever goes wrong with that leaves the error as it is.

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
        for asked in _asked(run.plan, number):
            found = None if late.is_set() else _failure(run, context, asked, late)
            if found is not None and found.code == error.code and found.row:
                happened = f"It happened {run.analysis.origins[number].words}."
                error.hint = error.hint.replace(happened, f"{happened} {found.row}", 1)
                return
    except Exception:  # noqa: BLE001 - the error that led here is the one to raise
        return
    finally:
        timer.cancel()


def _asked(plan: PlanNode, number: int) -> Iterator[_Asked]:
    """Give what is computed under the number of an expression."""

    def is_it(tree: Typed | None) -> bool:
        return tree is not None and tree.origin is not None and tree.origin.number == number

    full = (join := join_of(plan)) is not None and join.type is JoinType.FULL
    for node in chain(plan):
        if isinstance(node, Filter) and is_it(node.predicate):
            yield _Asked(node.predicate, node.source)
        elif isinstance(node, Join) and is_it(node.predicate):
            # Of ON itself nobody knows which pairs of rows it is asked for; of its keys, that each row's is computed.
            for target, source in node.equalities:
                yield _Asked(target, node.left)
                yield _Asked(source, node.right)
        elif isinstance(node, Project) and node.case is not None:
            for at, branch in enumerate(node.case.branches):
                earlier = node.case.branches[:at]
                if branch.test is not None and is_it(branch.test):
                    yield _Asked(branch.test, node.source, _first_of(earlier, _sides(branch, full=full)))
                guard = "" if node.case.unconditional else _first_of(earlier, _predicate(branch))
                yield from (_Asked(value, node.source, guard) for value in branch.expressions if is_it(value))


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

    read = references(asked.tree)
    symbols = [symbol for symbol in asked.node.outputs if symbol.name in read]
    if not symbols:
        return None
    column = assigned_column(
        Symbol("value", asked.tree.type), asked.tree.type.arrow, asked.tree, names_of(context), PagePrinter()
    )
    task = FailingRowPass(column, pa.schema([pa.field(symbol.name, symbol.type.arrow) for symbol in symbols]))
    with interrupts_afterwards():
        rows = lower(asked.node, context)
        rows = rows.where(F.expr(asked.guard)) if asked.guard else rows
        rows = rows.select(*(F.col(quote(symbol.name)).alias(f"c{index}") for index, symbol in enumerate(symbols)))
        failures = run.transaction.scans.in_tasks(rows, task, FAILURE).limit(1)
    found = collect(context.spark, failures, f"{run.transaction.session.query_id}-row", late).column(0).to_pylist()
    return pickle.loads(found[0]) if found else None  # noqa: S301 - our own task wrote it
