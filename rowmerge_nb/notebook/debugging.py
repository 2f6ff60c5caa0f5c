"""``%debug`` after a cell that failed in connector code: it stops at the connector's line, and not in the magic.

What failed in a task has left no frames in this process. Its record has the pages, so the call is made again here, when the debugger is
asked for and not before, and the debugger opens where that fails. ``%pdb on`` goes the same way.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rowmerge_nb
from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.notebook.display import show, text_bundle

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from rowmerge_nb.engine.result import Recording
    from rowmerge_nb.trace.record import Record, RecordedFailure


def register(shell: InteractiveShell) -> None:
    """Make the shell's debugger open at the connector's own error."""
    shell.debugger = partial(_debugger, shell)  # type: ignore[method-assign]


def unregister(shell: InteractiveShell) -> None:
    """Restore the shell's debugger."""
    vars(shell).pop("debugger", None)


def _debugger(shell: Any, force: bool = False) -> None:
    error = getattr(sys, "last_value", None)
    if not isinstance(error, RowMergeError) or not (force or shell.call_pdb):
        type(shell).debugger(shell, force)
        return
    found, told = connectors_error(error)
    if told:
        show(text_bundle(told))
    if found is not None:
        from rowmerge_nb.replays.debugging import debugger_at

        debugger_at(found)
    elif not told:
        # Of an error that has a text of its own IPython keeps no traceback, and would take that of the error before.
        shell.InteractiveTB.tb = None
        type(shell).debugger(shell, force)


def connectors_error(error: RowMergeError) -> tuple[BaseException | None, str]:
    """Return the error that the connector's code raised in this process, or raises when its call is made again; and what is to be said of it.

    Args:
        error: the error that ended a cell.

    Returns:
        The error with its traceback, or None; and a sentence, or ``""`` where the error does not come from a connector.
    """
    from rowmerge_nb.engine.observers.statement_record import IN_TASKS

    recording: Recording | None = getattr(error.result, "recording", None)
    record = recording.record if recording is not None else None
    if recording is not None and record is not None and record.failure is not None and record.failure.method in IN_TASKS:
        return _replayed(recording, record, record.failure)
    if getattr(error, "step", "") in IN_TASKS:
        missing = recording.missing if recording is not None else ""
        why = f"its page was not kept{f': {missing}' if missing else ''}"
        return None, f"The call failed in a task, and cannot be made again here: {why}. Run the cell again with --record FILE."
    below = error.__context__
    if isinstance(below, Exception) and not isinstance(below, RowMergeError) and _is_foreign(below):
        return below, ""
    return None, ""


def _replayed(recording: Recording, record: Record, failure: RecordedFailure) -> tuple[BaseException | None, str]:
    """Make the call again that failed in a task."""
    from rowmerge_nb.replays.run import replay
    from rowmerge_nb.replays.shown import headline

    where = "" if failure.number is None else f" of {record.worker} {failure.number}"
    call = f"{failure.method}{where}"
    chosen: dict[str, Any] = {record.worker: failure.number} if failure.number in record.writers else {}
    try:
        done = replay(record, recording.connector, **chosen)
    except Exception as problem:  # noqa: BLE001 - it is told
        why = problem.message if isinstance(problem, RowMergeError) else error_text(problem)
        return None, f"{call} failed in a task, and cannot be made again here: {why}"
    if done.error is None:
        notes = "".join(f"\nNote: {notice}" for notice in done.notices)
        return None, f"{call} failed in a task, and does not fail when it is made again here.\n{headline(done)}{notes}"
    return done.error, f"{call}, made again in this process with the pages that were recorded:"


def _is_foreign(error: BaseException) -> bool:
    """Return whether an error was raised in code that is not of this package, nor of Spark."""
    found = error.__traceback__
    while found is not None and found.tb_next is not None:
        found = found.tb_next
    name = found.tb_frame.f_code.co_filename if found is not None else ""
    ours = str(Path(rowmerge_nb.__file__).parent)
    return bool(name) and not name.startswith(ours) and "/pyspark/" not in name and "/py4j/" not in name
