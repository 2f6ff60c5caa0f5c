"""The option ``check``: the table is read back after the commit or a failure, see
`rowmerge_nb.engine.statements.committed`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import StatementInterrupted
from rowmerge_nb.engine.statements.committed import begin_check, check_failure, is_checked
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.engine.tasks.task_faults import unwatched

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from rowmerge_nb.base.errors import RowMergeError
    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.statements.committed import Checking
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.spi.metadata import IndependentRows


class CommitCheckObserver(RunObserver):
    """Adds to the trace whether the table has the rows that the statement must have left."""

    def __init__(
        self,
        read: Callable[[ConnectorTableVersion | None, int], pa.Table | None],
        read_independently: Callable[[int], IndependentRows | None] = lambda _: None,
    ) -> None:
        self._read = read
        self._read_independently = read_independently
        self._check: Checking | None = None
        self._error: RowMergeError | None = None

    def before_action(self, run: StatementRun) -> None:
        # A sink may show its rows too early, so the former rows are read before there is a sink.
        self._check = begin_check(run, self._read, self._read_independently)

    def before_finish(self, run: StatementRun) -> None:
        if self._check is None:
            self._check = begin_check(run, self._read, self._read_independently)
        if self._check is not None:
            self._check = self._check.with_pages()

    def after_result(self, run: StatementRun, result: Result) -> None:
        if self._check is not None:
            self._check.told(result)

    def on_failure(self, run: StatementRun, error: RowMergeError, origin: int | None) -> None:
        self._error = error
        if run.options.check and run.versions.before is None:
            with suppress(Exception), unwatched():
                run.versions.read(run.transaction, getattr(run.analysis, "target", None))

    def at_end(self, run: StatementRun, result: Result | None) -> None:
        if (
            result is not None
            and result.trace.state is StatementState.FAILED
            and is_checked(run)
            and (run.options.check or self._is_read_back())
        ):
            check_failure(run, self._check, self._read, result)
            changed = result.trace.error and result.trace.error.changed
            if self._error is not None and changed:
                self._error.changed = changed

    def _is_read_back(self) -> bool:
        """Return whether a failure that did not ask for it is checked: not after an interrupt, and
        not if reading would start a process.
        """
        return (
            self._check is not None
            and self._check.before is not None
            and not isinstance(self._error, StatementInterrupted)
            and getattr(self._error, "code", "") != "HOST_TERMINATED"
        )
