"""Running a query, whose rows come to the driver, and running plans without a join of ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.job import fragments_and_records
from rowmerge_nb.engine.spark.lowering import lower
from rowmerge_nb.engine.spark.lowering_context import LoweringContext
from rowmerge_nb.engine.spark.spark_session import usual_partitions
from rowmerge_nb.engine.statements.account import check_fragments, sum_up
from rowmerge_nb.engine.statements.action import Action
from rowmerge_nb.engine.statements.committed import keeping_of
from rowmerge_nb.engine.statements.pages.answer import PagesRefusedError, answer
from rowmerge_nb.engine.statements.statement import UNKNOWN_SIZE, StatementRun
from rowmerge_nb.engine.tasks.arrow import conform, shown_zones
from rowmerge_nb.plan.carried import view_texts
from rowmerge_nb.plan.plan_nodes import PhysicalForm, Source
from rowmerge_nb.plan.planner import plan_query
from rowmerge_nb.plan.rules import apply_rules, is_small, read_views
from rowmerge_nb.sql.analyzer.analysis import QueryAnalysis
from rowmerge_nb.sql.tree.depth import room

if TYPE_CHECKING:
    from rowmerge_nb.plan.plan_nodes import Output


@dataclass(kw_only=True)
class QueryRun(StatementRun):
    rehearsable: ClassVar[bool] = True
    rollback_sentence: ClassVar[str] = "a query changes nothing"
    analysis: QueryAnalysis

    def work(self) -> None:
        fields = self.analysis.fields
        with self.steps.timed("run"):
            with room():
                self.plan = apply_rules(plan_query(self.analysis), self.services.settings)
            if self.options.dry_run:
                return
            table = self._answer(self.plan)
            if table is None:
                table = plan_rows(self, self.plan)
            columns = [
                shown_zones(conform(column.combine_chunks(), f.type.arrow), f.type)
                for column, f in zip(table.columns, fields, strict=True)
            ]
            self.rows = pa.Table.from_arrays(
                columns, names=[f.name or f"_col{i}" for i, f in enumerate(fields)]
            )

    def _answer(self, plan: Output) -> pa.Table | None:
        if plan.pages is None:
            return None
        assert isinstance(plan.source, Source)
        self.begin_step("run")
        try:
            rows, self.query_rows = answer(
                plan.pages, self.transaction.scans.driver_scan, self.transaction.cancelled
            )
        except PagesRefusedError as refusal:
            form = PhysicalForm(f"DuckDB leaves it to Spark: {refusal}")
            source = replace(plan.source, by_spark=True, planned=None)
            self.plan = replace(plan, form=form, pages=None, source=source)
            return None
        return rows


def plan_rows(run: StatementRun, plan: Output) -> pa.Table:
    run.begin_step("start Spark")
    spark = run.services.spark()
    run.begin_step("run")
    usual = usual_partitions(spark)
    scans = run.transaction.scans
    keeping = keeping_of(run)
    context = LoweringContext(
        spark=spark, tables=scans, partitions=usual, tasks=usual, writers=usual, keeping=keeping
    )
    run.lowering = context
    with interrupts_afterwards():
        scans.make_views(run.analysis.bindings, read_views(plan), view_texts(plan, run.sql()))
        rows = lower(plan, context)
    return run.collect(spark, rows, usual if is_small(plan) else usual * UNKNOWN_SIZE)


def stored_fragments(run: StatementRun, plan: Output) -> list[bytes]:
    """Run a plan whose tasks store rows in page sinks, and return the fragments; the run gets the
    account.
    """
    run.begin_action()
    fragments, records = fragments_and_records(plan_rows(run, plan))
    run.account = sum_up(records)
    if run.account.errors:
        raise run.account.errors[0]
    assert run.lowering is not None
    run.observers.after_action(run, Action(run.lowering, run.account, fragments))
    check_fragments(run.account, fragments)
    return fragments
