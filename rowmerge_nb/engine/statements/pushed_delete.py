"""A DELETE that the connector executes itself: no row is read here, and no sink is created."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.words import plural
from rowmerge_nb.engine.statements.row_change import target_handle, target_metadata
from rowmerge_nb.plan.update_delete_plans import plan_pushed_delete
from rowmerge_nb.sql.analyzer.analysis import Notice
from rowmerge_nb.sql.typed.domains import described, exact_constraint

if TYPE_CHECKING:
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.spi.handles import ConnectorTableHandle
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.spi.page_source import Constraint
    from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis
    from rowmerge_nb.trace.trace import Trace

STEP = "execute_delete"


@dataclass
class PushedDelete:
    """A DELETE that the connector has taken; ``rows`` if it knows them."""

    metadata: ConnectorMetadata
    handle: ConnectorTableHandle
    rows: int | None = None

    def execute(self, run: StatementRun) -> None:
        run.steps.current = STEP
        run.begin_step(STEP)
        run.transaction.log.handle = self.handle
        session = run.transaction.session
        with run.steps.timed(STEP):
            self.rows = run.change(
                STEP,
                lambda: self.metadata.execute_delete(session, self.handle),
                gave=lambda rows: "number unknown" if rows is None else plural(rows, "row"),
            )

    def add_to_trace(self, trace: Trace) -> Trace:
        is_finished = trace.state is StatementState.FINISHED
        rows = self.rows if is_finished else None
        return replace(
            trace,
            count=rows,
            clauses=tuple(replace(clause, rows=rows) for clause in trace.clauses),
        )


def push_delete(run: StatementRun, analysis: DeleteAnalysis) -> PushedDelete | None:
    """Return a DELETE that the connector takes; None after a notice of why the sink gets the rows."""
    run.transaction.target = analysis.target
    run.steps.current = "plan"
    fields = zip(analysis.target_fields, analysis.target.columns, strict=True)
    names = {field.symbol: column.name for field, column in fields}
    where = None if analysis.where is None else analysis.where.tree
    constraint = exact_constraint(where, names)
    pushed, reason = None, ""
    if analysis.returning is not None:
        reason = "RETURNING needs the rows"
    elif constraint is None:
        reason = "its condition is more than ranges and lists of constants"
    else:
        pushed = _applied(run, analysis, constraint)
        reason = f"connector '{run.services.connector}' does not accept its condition"
    if pushed is None:
        run.transaction.notices.append(
            Notice(f"The DELETE went through the merge sink, because {reason}.")
        )
    return pushed


def _applied(
    run: StatementRun, analysis: DeleteAnalysis, constraint: Constraint
) -> PushedDelete | None:
    metadata, session = target_metadata(run, analysis), run.transaction.session
    handle = run.transaction.log.call(
        "apply_delete",
        lambda: metadata.apply_delete(session, target_handle(analysis), constraint),
        described(constraint) or "all rows",
        gave=lambda applied: "not taken" if applied is None else type(applied).__name__,
    )
    if handle is None:
        return None
    run.plan = plan_pushed_delete(analysis)
    return PushedDelete(metadata, handle)
