"""The one Spark action of a statement, and its answer."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import StatementInterrupted
from rowmerge_nb.engine.errors.translate import problem_of, was_cancelled
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards, run_cancellable
from rowmerge_nb.engine.spark.quiet import quietly
from rowmerge_nb.engine.tasks.envelope import PROBLEM
from rowmerge_nb.engine.tasks.outcome import FRAGMENT_ROW
from rowmerge_nb.engine.tasks.recorder import TaskRecord

if TYPE_CHECKING:
    import threading

    import pyarrow as pa


def collect(spark: Any, rows: Any, tag: str, cancelled: threading.Event) -> pa.Table:
    """Run a DataFrame and give its rows; interrupting the caller cancels the Spark work.

    Args:
        spark: the session.
        rows: the DataFrame.
        tag: names the Spark work.
        cancelled: when it is set, the work is cancelled.

    Raises:
        StatementInterrupted: the caller was interrupted, or the tag was (`Engine.cancel`).
    """

    def action() -> pa.Table:
        with quietly():
            _tag(spark, tag)
            return rows.toArrow()

    try:
        return run_cancellable(action, partial(cancel, spark, tag), cancelled)
    except StatementInterrupted:
        raise
    except Exception as error:
        if cancelled.is_set() or was_cancelled(error):
            raise StatementInterrupted("The statement was cancelled", step="run") from error
        raise


def cancel(spark: Any, tag: str) -> None:
    """Cancel the Spark work that was started under a tag, from any thread."""
    with interrupts_afterwards():
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
    """Return the Spark context of a classic session; None for Spark Connect, which has none."""
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
