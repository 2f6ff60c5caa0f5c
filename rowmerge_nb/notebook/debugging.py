"""``%debug`` and ``%pdb on`` at the connector's line instead of the magic's.

A failed task leaves no frames in this process, so the call is repeated here with the recorded
pages.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rowmerge_nb
from rowmerge_nb.base.errors import RowMergeError, message_of
from rowmerge_nb.notebook.display import show, text_bundle

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from rowmerge_nb.engine.api.result import Recording
    from rowmerge_nb.trace.record import Record, RecordedFailure


def register(shell: InteractiveShell) -> None:
    """Make the shell's debugger open at the connector's own error."""
    shell.debugger = partial(_debugger, shell)  # type: ignore[method-assign]


def unregister(shell: InteractiveShell) -> None:
    vars(shell).pop("debugger", None)


def _debugger(shell: Any, force: bool = False) -> None:
    error = getattr(sys, "last_value", None)
    if not isinstance(error, RowMergeError) or not (force or shell.call_pdb):
        type(shell).debugger(shell, force)
        return
    failure, message = connectors_error(error)
    if message:
        show(text_bundle(message))
    if failure is not None:
        from rowmerge_nb.replays.debugging import debugger_at

        debugger_at(failure)
    elif not message:
        # IPython keeps no traceback of an error with its own rendering, and would use that of the
        # previous error.
        shell.InteractiveTB.tb = None
        type(shell).debugger(shell, force)


def connectors_error(error: RowMergeError) -> tuple[BaseException | None, str]:
    """Return the connector's error, from a repeated call if necessary, or None; and a sentence
    about it.
    """
    from rowmerge_nb.engine.observers.statement_record import IN_TASKS

    recording: Recording | None = getattr(error.result, "recording", None)
    record = recording.record if recording is not None else None
    if (
        recording is not None
        and record is not None
        and record.failure is not None
        and record.failure.method in IN_TASKS
    ):
        return _replayed(recording, record, record.failure)
    if getattr(error, "step", "") in IN_TASKS:
        missing = recording.missing if recording is not None else ""
        why = f"its page was not kept{f': {missing}' if missing else ''}"
        return (
            None,
            (
                f"The call failed in a task and cannot be repeated here: {why}. Run"
                " the cell again with --record FILE."
            ),
        )
    below = error.__context__
    if isinstance(below, Exception) and not isinstance(below, RowMergeError) and _is_foreign(below):
        return below, ""
    return None, ""


def _replayed(
    recording: Recording, record: Record, failure: RecordedFailure
) -> tuple[BaseException | None, str]:
    from rowmerge_nb.replays.run import replay
    from rowmerge_nb.replays.shown import headline

    where = "" if failure.number is None else f" of {record.worker} {failure.number}"
    call = f"{failure.method}{where}"
    worker: dict[str, Any] = (
        {record.worker: failure.number} if failure.number in record.writers else {}
    )
    try:
        outcome = replay(record, recording.connector, **worker)
    except Exception as problem:  # noqa: BLE001 - it is told
        why = message_of(problem)
        return None, f"{call} failed in a task and cannot be repeated here: {why}"
    if outcome.error is None:
        notes = "".join(f"\nNote: {notice}" for notice in outcome.notices)
        return (
            None,
            (
                f"{call} failed in a task but does not fail when it is repeated"
                f" here.\n{headline(outcome)}{notes}"
            ),
        )
    return outcome.error, f"{call}, repeated in this process with the recorded pages:"


def _is_foreign(error: BaseException) -> bool:
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    name = frames.tb_frame.f_code.co_filename if frames is not None else ""
    ours = str(Path(rowmerge_nb.__file__).parent)
    return (
        bool(name)
        and not name.startswith(ours)
        and "/pyspark/" not in name
        and "/py4j/" not in name
    )
