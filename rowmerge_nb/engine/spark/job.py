"""The Spark action of a statement, and its result."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import RowMergeError, StatementInterrupted
from rowmerge_nb.engine.spark.errors.translate import problem_of, was_cancelled
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards, run_cancellable
from rowmerge_nb.engine.spark.quiet import quietly
from rowmerge_nb.engine.tasks.envelope import PROBLEM
from rowmerge_nb.engine.tasks.outcome import FRAGMENT_ROW
from rowmerge_nb.engine.tasks.recorder import TaskRecord

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    import pyarrow as pa


def collect(
    spark: Any,
    rows: Any,
    tag: str,
    cancelled: threading.Event,
    find_loss: Callable[[], RowMergeError | None] = lambda: None,
) -> pa.Table:
    def action() -> pa.Table:
        with quietly():
            _tag(spark, tag)
            return rows.toArrow()

    try:
        return run_cancellable(action, partial(cancel, spark, tag), cancelled, find_loss=find_loss)
    except RowMergeError:
        raise
    except Exception as error:
        if cancelled.is_set() or was_cancelled(error):
            raise StatementInterrupted("The statement was cancelled", step="run") from error
        raise


def cancel(spark: Any, tag: str) -> None:
    with interrupts_afterwards():
        context = _context(spark)
        if context is not None:
            context.cancelJobsWithTag(tag)
        else:
            spark.interruptTag(tag)


def _tag(spark: Any, tag: str) -> None:
    """Tag the work of this thread.

    A classic session's own tags do not reach the job of ``toArrow``; job tags do.
    """
    context = _context(spark)
    if context is not None:
        context.addJobTag(tag)
    else:
        spark.addTag(tag)


def _context(spark: Any) -> Any:
    try:
        return spark.sparkContext
    except Exception:  # noqa: BLE001 - Connect raises one of several types, by version
        return None


def fragments_and_records(table: pa.Table) -> tuple[list[bytes], list[TaskRecord]]:
    """Separate the rows of the last pass: fragments ordered by writer, and records."""
    fragments: list[tuple[int, bytes]] = []
    records: list[TaskRecord] = []
    for row_kind, writer, payload in zip(
        *(column.to_pylist() for column in table.columns), strict=True
    ):
        if row_kind == FRAGMENT_ROW:
            fragments.append((writer, payload))
        elif payload.startswith(PROBLEM):
            records.append(TaskRecord(writer, error=problem_of(payload.decode())))
        else:
            records.append(pickle.loads(payload))  # noqa: S301 - our own tasks wrote it
    return [payload for _, payload in sorted(fragments, key=lambda pair: pair[0])], records
