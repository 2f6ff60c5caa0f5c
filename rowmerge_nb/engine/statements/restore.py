"""Running what puts back a former version of a table: one call of the connector, and the commit."""

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
    """One restoring of a former version on its way, to undo a statement or because somebody has asked for it."""

    analysis: RestoreAnalysis

    def work(self) -> None:
        """Let the connector prepare it; the commit does it, if the table has not changed since."""
        target, version = self.analysis.target, self.analysis.version
        self.transaction.target = target
        session, metadata, handle = self.transaction.session, self.transaction.metadata(target.catalog), target.handle
        if handle is None:
            raise ValueError(f"'{target.display}' is {target.kind}, which has no versions")
        dropped = self.analysis.dropped
        if dropped:
            self._check_constraints(target, dropped)
        told = "no rows" if version is None else f"version {version.version}"
        told += f", without {', '.join(dropped)}" if dropped else ""
        # A connector that adds no columns need not know of any to drop.
        call = partial(metadata.restore_table, session, handle, version, *([dropped] if dropped else []))
        with self.timed("run"):
            self.change("restore_table", call, told)

    def _check_constraints(self, target: TableBinding, dropped: tuple[str, ...]) -> None:
        """Refuse to drop a column that a CHECK constraint reads, as ALTER TABLE does: no row could be stored any more."""
        kept = tuple(column for column in target.columns if column.name not in dropped)
        try:
            self.read_constraints(replace(target, columns=kept), (), None)
        except RowMergeError as error:
            raise AnalysisError(
                f"It would drop the column {join(list(dropped))} of '{target.qualified}'. {error.message}",
                code="NOT_SUPPORTED",
                hint="Nothing was taken back. ALTER TABLE ... SET PROPERTIES check_constraints = ARRAY[...] without that constraint lets it.",
            ) from error

    def trace(self, state: StatementState) -> Trace:
        """Return the trace, with the rows before and after."""
        after = self.rows_after() if state is StatementState.FINISHED else None
        return replace(
            super().trace(state), name=self.analysis.target.name, rows_before=self.analysis.target.row_count, rows_after=after
        )
