"""Running ALTER TABLE EXECUTE: a call of the connector, or rows that are read and written anew in tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.engine.spark.job import fragments_and_records
from rowmerge_nb.engine.statements.account import check_fragments, sum_up
from rowmerge_nb.engine.statements.query import plan_rows
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.plan.planner import plan_insert
from rowmerge_nb.plan.rules import apply_rules
from rowmerge_nb.sql.analyzer.analysis import Notice, TableExecuteAnalysis

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.spi.handles import ConnectorTableExecuteHandle
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.spi.procedures import ProcedureOutcome
    from rowmerge_nb.trace.trace import Trace


@dataclass(kw_only=True)
class TableExecuteRun(StatementRun):
    """One ALTER TABLE EXECUTE on its way."""

    analysis: TableExecuteAnalysis
    outcome: ProcedureOutcome | None = None

    def work(self) -> Callable[[], None] | None:
        """Run the procedure, up to the finish call."""
        with self.timed("run"):
            analysis, target = self.analysis, self.analysis.target
            self.transaction.target = target
            session, metadata, log = self.transaction.session, self.transaction.metadata(target.catalog), self.transaction.log
            handle = target.handle
            assert handle is not None, "the analyzer refuses what no connector has"
            name, arguments = analysis.procedure.name, analysis.arguments
            try:
                execute = log.call(
                    "get_table_handle_for_execute",
                    lambda: metadata.get_table_handle_for_execute(session, handle, name, arguments, analysis.constraint),
                    name,
                )
            except ConnectorError as error:
                if error.code == "NOT_SUPPORTED" and error.line is None and analysis.where is not None:
                    error.at(analysis.where)
                raise
            if self.options.dry_run:
                return None
            if not analysis.procedure.rewrites:
                call = partial(metadata.execute_table_execute, session, execute)
                self.outcome = self.change("execute_table_execute", call, name)
                return None
            return self._rewritten(metadata, execute)

    def trace(self, state: StatementState) -> Trace:
        """Return the trace, with what the procedure says that it has done."""
        outcome = self.outcome if state is StatementState.FINISHED else None
        if outcome is None:
            return super().trace(state)
        if outcome.metrics:
            self.rows = pa.table(
                {"metric_name": list(outcome.metrics), "metric_value": pa.array(outcome.metrics.values(), pa.int64())}
            )
        trace = super().trace(state)
        return replace(trace, notices=(*trace.notices, *self.notice_records(*map(Notice, outcome.notices))))

    def _rewritten(self, metadata: ConnectorMetadata, execute: ConnectorTableExecuteHandle) -> Callable[[], None] | None:
        """Read rows and write them anew, up to the finish call; give what makes that."""
        analysis, target = self.analysis, self.analysis.target
        session, log = self.transaction.session, self.transaction.log
        execution = log.call("begin_table_execute", lambda: metadata.begin_table_execute(session, execute))
        if execution is None:
            self.skipped = True
            return None
        self.transaction.insert_handle = log.handle = execution.insert_handle
        source = replace(target, handle=execution.source)
        self.analysis = replace(analysis, bindings=(source,))
        layout = metadata.get_insert_layout(session, execution.source)
        partitions = execution.writers if layout is None else None
        plan = plan_insert(target, analysis.tree, analysis.text, (source,), layout, partitions=partitions)
        # Spark makes the files, as many as the connector asks for.
        self.plan = apply_rules(plan, replace(self.settings, off=frozenset({*self.settings.off, "insert_on_pages"})))
        fragments, records = fragments_and_records(plan_rows(self, self.plan))
        self.account = sum_up(records)
        if self.account.errors:
            raise self.account.errors[0]
        check_fragments(self.account, fragments)
        return partial(
            self.finish,
            "finish_table_execute",
            fragments,
            partial(metadata.finish_table_execute, session, execute, fragments),
        )
