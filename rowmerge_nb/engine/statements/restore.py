"""Restoring a former version of a table: one call of the connector, and the commit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import AnalysisError, RowMergeError
from rowmerge_nb.base.words import join
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.sql.analyzer.analysis import RestoreAnalysis, TableBinding
from rowmerge_nb.trace.trace import Trace


@dataclass(kw_only=True)
class RestoreRun(StatementRun):
    analysis: RestoreAnalysis

    def work(self) -> None:
        """Prepare the restore; the commit restores, if the table has not changed since."""
        target, version = self.analysis.target, self.analysis.version
        self.transaction.target = target
        session = self.transaction.session
        metadata = self.transaction.metadata(target.catalog)
        handle = target.handle
        if handle is None:
            raise ValueError(f"'{target.display}' is {target.kind}, which has no versions")
        dropped = self.analysis.dropped
        if dropped:
            self._check_constraints(target, dropped)
        arguments = "no rows" if version is None else f"version {version.version}"
        arguments += f", without {', '.join(dropped)}" if dropped else ""
        # A connector that adds no columns need not have the argument.
        call = partial(
            metadata.restore_table, session, handle, version, *([dropped] if dropped else [])
        )
        with self.steps.timed("run"):
            self.change("restore_table", call, arguments)

    def _check_constraints(self, target: TableBinding, dropped: tuple[str, ...]) -> None:
        """Refuse to drop a column that a CHECK constraint reads, as ALTER TABLE does: no row could
        be stored afterwards.
        """
        remaining_columns = tuple(column for column in target.columns if column.name not in dropped)
        try:
            self.services.read_constraints(replace(target, columns=remaining_columns), (), None)
        except RowMergeError as error:
            raise AnalysisError.unsupported(
                f"It would drop the column {join(list(dropped))} of '{target.qualified}'."
                f" {error.message}",
                hint=(
                    "Nothing was undone. ALTER TABLE ... SET PROPERTIES"
                    " check_constraints = ARRAY[...] without that constraint allows it."
                ),
            ) from error

    def trace(self, state: StatementState) -> Trace:
        trace, target = super().trace(state), self.analysis.target
        is_finished = state is StatementState.FINISHED
        rows_after, unread_reason = self.rows_after() if is_finished else (None, "")
        return replace(
            trace,
            target=replace(
                trace.target,
                name_parts=target.name,
                rows_before=target.row_count,
                rows_after=rows_after,
                unread_reason=unread_reason,
            ),
        )
