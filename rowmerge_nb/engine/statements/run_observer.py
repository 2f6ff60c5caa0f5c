"""What a run reports while it runs, and what its observers add to its trace and result.

Kinds of statements know this module and no observer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowmerge_nb.base.errors import RowMergeError
    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.statements.action import Action
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.trace.trace import Trace


class RunObserver:
    """Watches one run.

    A hook handles its own errors and leaves the run as it is. Before the finish call it may raise
    StatementInterrupted, which ends the statement.
    """

    def before_begin(self, run: StatementRun) -> None:
        """Called before the statement is planned; a dry run never begins."""

    def before_action(self, run: StatementRun) -> None:
        """Called before the tasks start, after the connector's begin call."""

    def after_action(self, run: StatementRun, action: Action) -> None:
        """Called when the tasks have ended without an error, before their account is checked."""

    def after_checks(self, run: StatementRun, action: Action) -> None:
        """Called when the account of a row change has passed its checks."""

    def before_finish(self, run: StatementRun) -> None:
        """Called before the connector's finish call, or before the commit of a statement without
        one.
        """

    def after_result(self, run: StatementRun, result: Result) -> None:
        """Called when the statement is committed or, for a rehearsal, rolled back; may complete the
        result.
        """

    def on_failure(self, run: StatementRun, error: RowMergeError, origin: int | None) -> None:
        """Called before a failed statement is rolled back."""

    def at_end(self, run: StatementRun, result: Result | None) -> None:
        """Called last, exactly once per run."""

    def add_to_trace(self, trace: Trace) -> Trace:
        return trace

    def add_to_result(self, result: Result) -> None:
        """Add to the result what the trace does not hold."""


@dataclass(frozen=True)
class RunObservers(RunObserver):
    members: tuple[RunObserver, ...] = ()

    def before_begin(self, run: StatementRun) -> None:
        for member in self.members:
            member.before_begin(run)

    def before_action(self, run: StatementRun) -> None:
        for member in self.members:
            member.before_action(run)

    def after_action(self, run: StatementRun, action: Action) -> None:
        for member in self.members:
            member.after_action(run, action)

    def after_checks(self, run: StatementRun, action: Action) -> None:
        for member in self.members:
            member.after_checks(run, action)

    def before_finish(self, run: StatementRun) -> None:
        for member in self.members:
            member.before_finish(run)

    def after_result(self, run: StatementRun, result: Result) -> None:
        for member in self.members:
            member.after_result(run, result)

    def on_failure(self, run: StatementRun, error: RowMergeError, origin: int | None) -> None:
        for member in self.members:
            member.on_failure(run, error, origin)

    def at_end(self, run: StatementRun, result: Result | None) -> None:
        for member in self.members:
            member.at_end(run, result)

    def add_to_trace(self, trace: Trace) -> Trace:
        for member in self.members:
            trace = member.add_to_trace(trace)
        return trace

    def add_to_result(self, result: Result) -> None:
        for member in self.members:
            member.add_to_result(result)
