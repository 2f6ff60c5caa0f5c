"""The record of a statement: the pages that its tasks kept, and the rows of its target, read again
before the finish call.

With the option ``record`` all pages are kept that have room. Otherwise only the pages of a writer,
or of a split, in which a call of the connector failed, so that the call can be repeated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import (
    HOST_TERMINATED,
    ExecutionError,
    RowMergeError,
    StatementInterrupted,
    message_of,
)
from rowmerge_nb.engine.api.result import Recording
from rowmerge_nb.engine.spark.interrupts import to_its_end
from rowmerge_nb.engine.statements.naming import kind_of
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.engine.tasks.handed import pages_of
from rowmerge_nb.engine.tasks.identity import row_keys
from rowmerge_nb.engine.tasks.task_faults import unwatched
from rowmerge_nb.plan.older_flow import UpdateRows
from rowmerge_nb.plan.plan_nodes import DeleteProject, MergeProcessor, TableScan
from rowmerge_nb.plan.rules import chain
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import row_ids_of
from rowmerge_nb.sql.analyzer.analysis import (
    CreateTableAnalysis,
    InsertAnalysis,
    Notice,
    RowChangeAnalysis,
)
from rowmerge_nb.trace.record import HandedPage, Record, RecordedColumn, RecordedFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.plan.plan_nodes import Output
    from rowmerge_nb.spi.handles import ColumnHandle, ConnectorTableHandle
    from rowmerge_nb.sql.analyzer.analysis import TableBinding

IN_TASKS: Final = frozenset(
    {
        *("create_merge_sink", "store_merged_rows", "create_page_sink", "append_page", "finish"),
        *("create_page_source", "get_next_page", "update_rows", "delete_rows", "close"),
    }
)
"""Calls of the contract that tasks make."""
READING: Final = frozenset({"create_page_source", "get_next_page"})
"""Calls of the contract by which tasks read."""
SCANNED_ROWS: Final = 200_000
"""The number of target rows that are searched for rows of the pages, without the option ``record``.
"""


class StatementRecorder(RunObserver):
    """Makes the record, and adds it to the result.

    A failure ends no statement; with ``record`` a notice has the reason.
    """

    def __init__(self) -> None:
        self._recording: Recording | None = None

    def before_finish(self, run: StatementRun) -> None:
        if run.options.record:
            self._make(run)

    def on_failure(self, run: StatementRun, error: RowMergeError, origin: int | None) -> None:
        """Record the failed call: before the rollback, the rows of the target are read as the
        statement has seen them.
        """
        if not isinstance(error, StatementInterrupted):
            to_its_end(lambda: self._make(run, error))

    def add_to_result(self, result: Result) -> None:
        result.recording = self._recording

    def _make(self, run: StatementRun, error: RowMergeError | None = None) -> None:
        with unwatched():
            self._recording = _recording_of(run, self._recording, error)


def _recording_of(
    run: StatementRun, earlier: Recording | None, error: RowMergeError | None
) -> Recording:
    try:
        record = (
            _record_of(run, error)
            if earlier is None or earlier.record is None
            else replace(
                earlier.record, calls=run.calls(), failure=_failed_call(run.account, error)
            )
        )
        if record is not None and isinstance(run.options.record, str):
            record.save(run.options.record)
    except Exception as failure:  # noqa: BLE001 - the notice below has it
        missing = message_of(failure)
        if run.options.record:
            run.transaction.notices.append(Notice(f"There is no record: {missing}"))
        return Recording(None, missing=missing)
    if record is None:
        return Recording(None)
    return Recording(record, run.transaction.opened_target().connector)


def _record_of(run: StatementRun, error: RowMergeError | None) -> Record | None:
    """Return the record; None for a statement that hands no rows to a connector, and if no pages
    were kept.
    """
    target, plan = run.transaction.target, run.plan
    if (
        not isinstance(run.analysis, RowChangeAnalysis | InsertAnalysis | CreateTableAnalysis)
        or target is None
        or (target.handle is None and run.transaction.insert_handle is None)
        or target.metadata is None
        or plan is None
    ):
        return None
    failure = _failed_call(run.account, error)
    if not run.options.keeping.always and (failure is None or failure.method not in IN_TASKS):
        return None
    begun_handle: ConnectorTableHandle | None = getattr(run, "handle", None)
    flow = Flow.MERGE if begun_handle is None else Flow.UPDATABLE
    scans = (
        node for node in chain(plan) if isinstance(node, TableScan) and node.row_id is not None
    )
    row_id = next((scan.row_id_columns[0] for scan in scans), None)
    record = replace(_of_pages(run, target, plan, row_id, flow), failure=failure)
    if not _can_read_target(run, record, error):
        return record
    if target.handle is None:
        # CREATE TABLE AS: the table did not exist.
        return replace(
            record, rows=pa.RecordBatch.from_pylist([], schema=record.schema), row_count=0
        )
    task = run.transaction.scans.observations.whole_target(target, row_id, begun_handle)
    return _with_rows(run, record, task)


def _of_pages(
    run: StatementRun,
    target: TableBinding,
    plan: Output,
    row_id: ColumnHandle | None,
    flow: Flow,
) -> Record:
    assert target.metadata is not None
    pages, left_out = _pages(run.account, run.options.keeping.most_bytes)
    processor = next(
        (node for node in chain(plan) if isinstance(node, MergeProcessor | DeleteProject)), None
    )
    update = next((node for node in chain(plan) if isinstance(node, UpdateRows)), None)
    return Record(
        statement=run.analysis.text,
        kind=kind_of(run.analysis),
        name=target.name,
        connector=run.services.connector,
        paradigm=run.paradigm,
        columns=tuple(
            RecordedColumn(column.name, str(column.type), column.nullable)
            for column in target.columns
        ),
        row_id=None if row_id is None else RecordedColumn(row_id.name, str(row_id.type)),
        properties=_plain(target.metadata.properties),
        session=_plain(run.transaction.session.properties),
        era=run.options.era,
        flow=flow,
        redistribution=processor.layout.redistribution_columns if processor is not None else (),
        updated=_updated(run, update),
        channels=update.channels if update is not None else (),
        pages=pages,
        left_out=left_out,
        every=run.options.keeping.every,
        calls=run.calls(),
    )


def _can_read_target(run: StatementRun, record: Record, error: RowMergeError | None) -> bool:
    # Reading has failed already; or it would wait for a new process of the store; or it would open
    # page sources that change rows, without the option record.
    return not (
        (record.failure is not None and record.failure.method in READING)
        or (error is not None and error.code == HOST_TERMINATED)
        or (record.flow is Flow.UPDATABLE and not run.options.keeping.always)
    )


def _failed_call(account: Account | None, error: RowMergeError | None) -> RecordedFailure | None:
    if error is None:
        return None
    partition = account.failed_partition if account is not None else None
    for call in account.calls if account is not None and partition is not None else ():
        if call.error is not None and call.number == partition:
            return RecordedFailure(call.method, call.number, call.error)
    step = error.step if isinstance(error, ExecutionError) else ""
    from_connector = step in IN_TASKS or step.startswith("finish_") or step == "commit"
    return RecordedFailure(step, None, error.message) if from_connector else None


def _pages(
    account: Account | None, most_bytes: int
) -> tuple[tuple[HandedPage, ...], dict[int, int]]:
    """Return the pages of all writers as far as there is room, and the number of missing pages by
    writer.
    """
    pages: list[HandedPage] = []
    left_out: dict[int, int] = {}
    size = 0
    for number, stream, missing in account.retained_pages if account is not None else ():
        for page in pages_of(stream):
            # The last page of a writer is kept by the task whatever its size: it is the one that
            # fails.
            if (
                pages
                and size + page.nbytes > most_bytes
                and account is not None
                and number != account.failed_partition
            ):
                missing += 1  # noqa: PLW2901 - counted on
            else:
                pages.append(HandedPage(number, page))
                size += page.nbytes
        if missing:
            left_out[number] = missing
    return tuple(pages), left_out


def _updated(run: StatementRun, update: UpdateRows | None) -> dict[int, tuple[str, ...]]:
    """Return the columns that clauses update; in the older flow in the order of the page."""
    analysis = run.analysis
    if update is not None:
        assigned = sorted(
            zip(update.channels, (column.name for column in update.columns), strict=False)
        )
        return {0: tuple(name for _, name in assigned)}
    if not isinstance(analysis, RowChangeAnalysis):
        return {}
    names = [column.name for column in analysis.target.columns]
    return {
        clause.number: tuple(
            name for name, value in zip(names, clause.values, strict=True) if value is not None
        )
        for clause in analysis.clauses
        if clause.operation is Operation.UPDATE
    }


def _with_rows(run: StatementRun, record: Record, task: ScanPass) -> Record:
    """Add the target's rows: all rows of a small table, of a larger one those that the pages name,
    as far as there is room.
    """
    room, is_requested = run.options.keeping.most_bytes, run.options.keeping.always
    row_ids = touched_row_keys(record)
    kept_pages: list[pa.RecordBatch] = []
    size = count = 0
    for page in task.read(range(len(task.splits))):
        rows = pa.RecordBatch.from_arrays(page.columns[:-1], schema=record.schema)
        count += rows.num_rows
        if size + rows.nbytes > room:
            # The rows that the pages name are needed, however many others were kept.
            rows = rows.filter(
                pa.array(np.isin(row_keys([row_ids_of(rows)], rows.num_rows), row_ids))
            )
        if rows.num_rows and size + rows.nbytes <= 2 * room:
            kept_pages.append(rows)
            size += rows.nbytes
        if not is_requested and count >= SCANNED_ROWS:
            break
    rows = (
        pa.concat_batches(kept_pages)
        if kept_pages
        else pa.RecordBatch.from_pylist([], schema=record.schema)
    )
    return replace(record, rows=rows, row_count=count, splits=len(task.splits))


def touched_row_keys(record: Record) -> npt.NDArray[np.int64]:
    if record.row_id is None:
        return np.zeros(0, np.int64)
    channel = 0 if record.flow is Flow.UPDATABLE else record.layout.after.row_id
    ids = [page.page.column(channel).drop_null() for page in record.pages]
    return np.concatenate(
        [np.zeros(0, np.int64), *(row_keys([array], len(array)) for array in ids)]
    )


def _plain(properties: Mapping[str, Any]) -> dict[str, Any]:
    plain = {}
    for name, value in properties.items():
        if isinstance(value, list | tuple):
            value = tuple(value)  # noqa: PLW2901 - as a file gives it back
        flat = value if isinstance(value, tuple) else (value,)
        if all(one is None or type(one) in {str, int, float, bool} for one in flat):
            plain[name] = value
    return plain
