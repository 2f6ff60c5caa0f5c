"""The one Spark action of a statement, and its answer."""

from __future__ import annotations

import pickle
import threading
from typing import TYPE_CHECKING, Any

from rowmerge_nb.engine.errors.translate import problem_of, was_cancelled
from rowmerge_nb.engine.spark.interrupts import interrupts_put_off
from rowmerge_nb.engine.spark.quiet import quietly
from rowmerge_nb.engine.tasks.envelope import PROBLEM
from rowmerge_nb.engine.tasks.outcome import FRAGMENT_ROW
from rowmerge_nb.engine.tasks.recorder import TaskRecord
from rowmerge_nb.errors import StatementInterrupted

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["cancel", "collect", "fragments_and_records"]


def collect(spark: Any, rows: Any, tag: str, cancelled: threading.Event) -> pa.Table:
    """Run a DataFrame and give its rows; interrupting the caller cancels the Spark work.

    Args:
        spark: the session.
        rows: the DataFrame.
        tag: names the Spark work.
        cancelled: when it is set, the work is cancelled.

    The action runs in a thread of its own, so that a keyboard interrupt reaches the waiting caller at once.

    Raises:
        StatementInterrupted: the caller was interrupted, or the tag was (`Engine.cancel`).
    """
    answer: dict[str, Any] = {}
    # Not by joining the thread: one whose join() was interrupted counts as ended, before Python 3.13.
    begun, ended = threading.Event(), threading.Event()
    given_up = False

    def run() -> None:
        begun.wait()
        if given_up:
            return
        try:
            _tag(spark, tag)
            with quietly():
                answer["table"] = rows.toArrow()
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
            answer["error"] = error
        finally:
            ended.set()

    thread = threading.Thread(target=run, name="rowmerge_nb-action", daemon=True)
    try:
        thread.start()
        begun.set()
        while not ended.wait(0.1):
            if cancelled.is_set():
                # Again and again, since a job that is about to start cannot be cancelled yet.
                cancel(spark, tag)
    except KeyboardInterrupt as interrupt:
        # One that comes while the thread is started must not leave it running.
        given_up = not begun.is_set()
        begun.set()
        # Who interrupts twice must not have the rollback run beside the work.
        with interrupts_put_off():
            while not given_up and not ended.is_set():
                cancel(spark, tag)
                ended.wait(0.1)
        msg = "The statement was interrupted; its Spark work is cancelled"
        raise StatementInterrupted(msg, step="run") from interrupt
    if "error" in answer:
        if cancelled.is_set() or was_cancelled(answer["error"]):
            msg = "The statement was cancelled"
            raise StatementInterrupted(msg, step="run") from answer["error"]
        raise answer["error"]
    return answer["table"]


def cancel(spark: Any, tag: str) -> None:
    """Cancel the Spark work that was started under a tag, from any thread."""
    context = _context(spark)
    if context is not None:
        context.cancelJobsWithTag(tag)
    else:
        spark.interruptTag(tag)


def _tag(spark: Any, tag: str) -> None:
    """Put a tag on what this thread starts. A classic session's own tags do not reach the job behind ``toArrow``; job tags do."""
    context = _context(spark)
    if context is not None:
        context.addJobTag(tag)
    else:
        spark.addTag(tag)


def _context(spark: Any) -> Any:
    """Give the Spark context of a classic session; None for Spark Connect, which has none."""
    try:
        return spark.sparkContext
    except Exception:  # noqa: BLE001 - Connect raises one of several types, by version
        return None


def fragments_and_records(table: pa.Table) -> tuple[list[bytes], list[TaskRecord]]:
    """Sort the rows that the last pass gave: fragments in the order of their writers, and records."""
    fragments: list[tuple[int, bytes]] = []
    records: list[TaskRecord] = []
    for kind, writer, payload in zip(*(column.to_pylist() for column in table.columns), strict=True):
        if kind == FRAGMENT_ROW:
            fragments.append((writer, payload))
        elif payload.startswith(PROBLEM):
            records.append(TaskRecord(writer, error=problem_of(payload.decode())))
        else:
            records.append(pickle.loads(payload))  # noqa: S301 - our own tasks wrote it
    return [payload for _, payload in sorted(fragments, key=lambda pair: pair[0])], records
