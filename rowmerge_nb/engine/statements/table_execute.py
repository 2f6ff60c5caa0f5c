"""Running ALTER TABLE EXECUTE: a call of the connector, or rows that tasks read and rewrite."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.engine.statements.query import stored_fragments
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.plan.planner import plan_insert
from rowmerge_nb.plan.rules import apply_rules
from rowmerge_nb.sql.analyzer.analysis import Notice, TableExecuteAnalysis
from rowmerge_nb.sql.analyzer.queries.relation import table_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.spi.handles import ConnectorTableExecuteHandle
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.spi.procedures import ProcedureOutcome
    from rowmerge_nb.trace.trace import Trace


@dataclass(kw_only=True)
class TableExecuteRun(StatementRun):
    analysis: TableExecuteAnalysis
    outcome: ProcedureOutcome | None = None

    def work(self) -> Callable[[], None] | None:
        with self.steps.timed("run"):
            analysis, target = self.analysis, self.analysis.target
            self.transaction.target = target
            session = self.transaction.session
            metadata = self.transaction.metadata(target.catalog)
            log = self.transaction.log
            handle = target.handle
            assert handle is not None, "the analyzer rejects unknown procedures"
            name, arguments = analysis.procedure.name, analysis.arguments
            try:
                execute = log.call(
                    "get_table_handle_for_execute",
                    lambda: metadata.get_table_handle_for_execute(
                        session, handle, name, arguments, analysis.constraint
                    ),
                    name,
                )
            except ConnectorError as error:
                if (
                    error.code == "NOT_SUPPORTED"
                    and error.line is None
                    and analysis.where is not None
                ):
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
        outcome = self.outcome if state is StatementState.FINISHED else None
        if outcome is None:
            return super().trace(state)
        if outcome.metrics:
            self.rows = pa.table(
                {
                    "metric_name": list(outcome.metrics),
                    "metric_value": pa.array(outcome.metrics.values(), pa.int64()),
                }
            )
        trace = super().trace(state)
        return replace(
            trace, notices=(*trace.notices, *self.notice_records(*map(Notice, outcome.notices)))
        )

    def _rewritten(
        self, metadata: ConnectorMetadata, execute: ConnectorTableExecuteHandle
    ) -> Callable[[], None] | None:
        analysis, target = self.analysis, self.analysis.target
        session, log = self.transaction.session, self.transaction.log
        execution = log.call(
            "begin_table_execute", lambda: metadata.begin_table_execute(session, execute)
        )
        if execution is None:
            self.skipped = True
            return None
        self.transaction.insert_handle = log.handle = execution.insert_handle
        # The connector may let the rows carry more columns than the table has.
        columns = metadata.get_table_metadata(session, execution.source).columns
        source = replace(target, handle=execution.source, columns=columns)
        self.analysis = replace(analysis, bindings=(source,))
        layout = metadata.get_insert_layout(session, execution.source)
        partitions = execution.writers if layout is None else None
        tree = table_tree(source, [column.name for column in columns])
        plan = plan_insert(source, tree, analysis.text, (source,), layout, partitions=partitions)
        # Spark makes the files, as many as the connector asks for.
        self.plan = apply_rules(
            plan,
            replace(self.services.settings, off=self.services.settings.off | {"insert_on_pages"}),
        )
        fragments = stored_fragments(self, self.plan)
        return partial(
            self.finish,
            "finish_table_execute",
            fragments,
            partial(metadata.finish_table_execute, session, execute, fragments),
        )
