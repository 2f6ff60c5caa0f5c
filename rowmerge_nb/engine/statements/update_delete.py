"""Running UPDATE and DELETE by the machinery of MERGE: another plan, and no matches to check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.engine.spark.page_lowering import TOLD_COLUMNS
from rowmerge_nb.engine.statements.account import Account, check_fragments
from rowmerge_nb.engine.statements.merge_sinks import (
    ask_target,
    begin_merge,
    check_stored,
    finish_merge,
    lowered,
)
from rowmerge_nb.engine.statements.pushed_delete import PushedDelete, push_delete
from rowmerge_nb.engine.statements.returning import returned_table
from rowmerge_nb.engine.statements.row_change import (
    Named,
    NodeRows,
    act,
    action_context,
    call_facts,
    plan_change,
    plan_of,
    row_change_trace,
)
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.plan.plan_nodes import CheckConstraints, Filter, Project, TableScan
from rowmerge_nb.plan.rules import chain, estimated_rows
from rowmerge_nb.plan.update_delete_plans import plan_delete, plan_update
from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis, UpdateAnalysis

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.statements.action import PlannedChange
    from rowmerge_nb.plan.plan_nodes import Output
    from rowmerge_nb.plan.planner import TargetFacts
    from rowmerge_nb.sql.analyzer.analysis import TableBinding
    from rowmerge_nb.trace.error_record import Consequence
    from rowmerge_nb.trace.trace import Trace


@dataclass(kw_only=True)
class UpdateDeleteRun(StatementRun):
    rehearsable: ClassVar[bool] = True
    changes_rows: ClassVar[bool] = True
    analysis: UpdateAnalysis | DeleteAnalysis
    pushed: PushedDelete | None = None

    def work(self) -> Callable[[], None] | None:
        if self.options.delete_pushdown and isinstance(self.analysis, DeleteAnalysis):
            self.pushed = push_delete(self, self.analysis)
        if self.pushed is not None:
            return None if self.options.dry_run else partial(self.pushed.execute, self)
        analysis, planned = self.analysis, self.planned()
        if self.options.dry_run:
            return None
        begin_merge(self, analysis)
        action = act(self, planned, lambda: self.context(planned), partial(lowered, self))
        check_fragments(action.account, action.fragments)
        check_stored(analysis, action.account, planned.facts.paradigm)
        self.observers.after_checks(self, action)
        self.rows = returned_table(action.account.returned, analysis.returning)
        return partial(finish_merge, self, analysis, action.fragments)

    def planned(self) -> PlannedChange:
        return plan_change(
            self, self.analysis, partial(ask_target, self, self.analysis), self._plan
        )

    def _plan(self, facts: TargetFacts) -> Output:
        if isinstance(self.analysis, UpdateAnalysis):
            return plan_update(self.analysis, facts, era=self.options.era)
        return plan_delete(self.analysis, facts, era=self.options.era)

    def context(self, planned: PlannedChange) -> LoweringContext:
        scan = target_scan(plan_of(self))
        columns = shown_columns(self.analysis, scan)
        keys = (keys_of(self.analysis.target, columns), frozenset[str]())
        return action_context(self, planned.settings, estimated_rows(scan), columns, keys=keys)

    def trace(self, state: StatementState) -> Trace:
        trace = row_change_trace(self, self.analysis, super().trace(state), self._sizes)
        if self.pushed is not None:
            return self.pushed.add_to_trace(trace)
        is_returned = self.rows is not None and state is StatementState.FINISHED
        return replace(
            trace, returned=self.rows.num_rows if self.rows is not None and is_returned else None
        )

    def facts(self) -> list[Consequence]:
        return [] if self.pushed is not None else call_facts(self, "merge", "sink")

    def _sizes(self, account: Account) -> Iterator[NodeRows]:
        scan = target_scan(plan_of(self))
        rows = scan.table.row_count
        for node in chain(plan_of(self)):
            if isinstance(node, Project | CheckConstraints):
                yield node, (account.joined,), account.joined
            elif isinstance(node, Filter):
                yield node, (rows,), account.joined
        yield scan, (), rows


def target_scan(plan: Output) -> TableScan:
    return next(node for node in chain(plan) if isinstance(node, TableScan))


def keys_of(target: TableBinding, columns: Named) -> frozenset[str]:
    """Return the symbols of the columns that identify a row in an error: the primary key, or the
    first columns that are read.
    """
    properties = {} if target.metadata is None else target.metadata.properties
    key = {name for name, _ in columns} & {
        str(name) for name in properties.get("primary_key") or ()
    }
    return frozenset(
        symbol.name
        for name, symbol in [pair for pair in columns if pair[0] in key] or columns[:TOLD_COLUMNS]
    )


def shown_columns(analysis: UpdateAnalysis | DeleteAnalysis, scan: TableScan) -> Named:
    read = {symbol.name: symbol for symbol in scan.outputs}
    pairs = zip(analysis.target.columns, analysis.target_fields, strict=True)
    return tuple(
        (column.name, read[field.symbol]) for column, field in pairs if field.symbol in read
    )
