"""The observers of a statement's run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.engine.observers.commit_check import CommitCheckObserver
from rowmerge_nb.engine.observers.failing_row import FailingRow
from rowmerge_nb.engine.observers.near_misses import NearMisses
from rowmerge_nb.engine.observers.requested_rows import RequestedRows
from rowmerge_nb.engine.observers.row_reasons import RowReasons
from rowmerge_nb.engine.observers.second_opinion import SecondOpinion
from rowmerge_nb.engine.observers.statement_record import StatementRecorder
from rowmerge_nb.engine.observers.untouched_rows import UntouchedRows
from rowmerge_nb.engine.statements.run_observer import RunObservers
from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis, RowChangeAnalysis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from rowmerge_nb.engine.api.statement_options import Options
    from rowmerge_nb.engine.observers.requested_rows import RowRequest
    from rowmerge_nb.engine.observers.undo_log import UndoLog
    from rowmerge_nb.engine.observers.user_observers import ObserverRegistry
    from rowmerge_nb.engine.observers.verify.verification import Verification
    from rowmerge_nb.engine.statements.run_observer import RunObserver
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.spi.metadata import IndependentRows
    from rowmerge_nb.sql.analyzer.analysis import Analysis


def observers_of(
    analysis: Analysis,
    options: Options,
    *,
    read_rows: Callable[[ConnectorTableVersion | None, int], pa.Table | None],
    read_independently: Callable[[int], IndependentRows | None],
    undo_log: UndoLog,
    user_observers: ObserverRegistry,
    request: RowRequest | None = None,
    verification: Verification | None = None,
) -> RunObservers:
    """Return the observers of a run, in the order in which they are called."""

    def members() -> Iterator[RunObserver]:
        if isinstance(analysis, RowChangeAnalysis):
            yield RowReasons(analysis)
        if isinstance(analysis, MergeAnalysis):
            yield NearMisses(analysis)
        if isinstance(analysis, RowChangeAnalysis) and options.flow != Flow.UPDATABLE:
            yield UntouchedRows(analysis)
            if request is not None:
                yield RequestedRows(analysis, request)
        yield FailingRow()
        yield StatementRecorder()
        yield CommitCheckObserver(read_rows, read_independently)
        if verification is not None:
            yield SecondOpinion(verification)
        yield undo_log
        if not options.dry_run and (observer := user_observers.of_run()) is not None:
            yield observer

    return RunObservers(tuple(members()))
