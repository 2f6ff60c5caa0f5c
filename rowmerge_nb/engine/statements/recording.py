"""The record of a statement: the pages that its tasks kept, and the rows that its target had, read once more before anything is finished.

Where the option ``record`` asks for it all pages are kept that have room; else those of a writer, or of a split, in which a call of the
connector failed, so that the call can be made again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import ExecutionError, RowMergeError, error_text
from rowmerge_nb.engine.result import Recording
from rowmerge_nb.engine.statements.naming import kind_of
from rowmerge_nb.engine.tasks.handed import pages_of
from rowmerge_nb.engine.tasks.identity import row_keys
from rowmerge_nb.plan.older_flow import UpdateRows
from rowmerge_nb.plan.plan_nodes import DeleteProject, MergeProcessor, TableScan
from rowmerge_nb.plan.rules import chain
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import row_ids_of
from rowmerge_nb.sql.analyzer.analysis import CreateTableAnalysis, InsertAnalysis, Notice, RowChangeAnalysis
from rowmerge_nb.trace.record import HandedPage, Record, RecordedColumn, RecordedFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.spi.handles import ConnectorTableHandle

IN_TASKS: Final = frozenset(
    {
        *("create_merge_sink", "store_merged_rows", "create_page_sink", "append_page", "finish"),
        *("create_page_source", "get_next_page", "update_rows", "delete_rows", "close"),
    }
)
"""Calls of the contract that tasks make."""
READING: Final = frozenset({"create_page_source", "get_next_page"})
"""Those by which tasks read."""
SCANNED_ROWS: Final = 200_000
"""So many rows of the target are looked through for those that the pages speak of, if nobody has asked for a record."""


def recording_of(run: StatementRun, error: RowMergeError | None = None) -> Recording:
    """Return the record of a statement, or why there is none; it is saved where that was asked for.

    It is beside the matter: should it fail, the statement ends as it would have without it, and says so where a record was asked for.

    Args:
        run: the statement's run, before its finish call is made, or its transaction is rolled back.
        error: what ended it.
    """
    try:
        known = run.recording.record if run.recording is not None else None
        record = (
            _record_of(run, error)
            if known is None
            else replace(known, calls=run.calls(), failure=_failed_call(run.account, error))
        )
        if record is not None and isinstance(run.options.record, str):
            record.save(run.options.record)
    except Exception as failure:  # noqa: BLE001 - it is told below
        missing = failure.message if isinstance(failure, RowMergeError) else error_text(failure)
        if run.options.record:
            run.transaction.notices.append(Notice(f"There is no record: {missing}"))
        return Recording(None, missing=missing)
    if record is None:
        return Recording(None)
    return Recording(record, run.transaction.opened_target().connector)


def _record_of(run: StatementRun, error: RowMergeError | None) -> Record | None:
    """Return the record; None of a statement that hands no rows to a connector, and where no pages were kept."""
    analysis, target = run.analysis, run.transaction.target
    known = isinstance(analysis, RowChangeAnalysis | InsertAnalysis | CreateTableAnalysis)
    if not known or target is None or target.handle is None or target.metadata is None or run.plan is None:
        return None
    failed = _failed_call(run.account, error)
    if not run.options.keeping.always and (failed is None or failed.method not in IN_TASKS):
        return None
    begun: ConnectorTableHandle | None = getattr(run, "handle", None)
    flow = Flow.MERGE if begun is None else Flow.UPDATABLE
    scan = next((node for node in chain(run.plan) if isinstance(node, TableScan) and node.row_id is not None), None)
    row_id = scan.row_id_columns[0] if scan is not None else None
    scans = run.transaction.scans.observations
    pages, left_out = _pages(run.account, run.options.keeping.most_bytes)
    processor = next((node for node in chain(run.plan) if isinstance(node, MergeProcessor | DeleteProject)), None)
    update = next((node for node in chain(run.plan) if isinstance(node, UpdateRows)), None)
    record = Record(
        statement=analysis.text,
        kind=kind_of(analysis),
        name=target.name,
        connector=run.connector,
        paradigm=run.paradigm,
        columns=tuple(RecordedColumn(column.name, str(column.type), column.nullable) for column in target.columns),
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
        failure=failed,
    )
    # They cannot be read, which is what the record is about; or reading them would open page sources that take rows back, which nobody asked for.
    if (failed is not None and failed.method in READING) or (begun is not None and not run.options.keeping.always):
        return record
    return _with_rows(run, record, scans.whole_target(target, row_id, begun))


def _failed_call(account: Account | None, error: RowMergeError | None) -> RecordedFailure | None:
    """Return the call of the connector that ended the statement, where one did."""
    if error is None:
        return None
    failed = account.failed if account is not None else None
    for call in account.calls if account is not None and failed is not None else ():
        if call.error is not None and call.number == failed:
            return RecordedFailure(call.method, call.number, call.error)
    step = error.step if isinstance(error, ExecutionError) else ""
    from_connector = step in IN_TASKS or step.startswith("finish_") or step == "commit"
    return RecordedFailure(step, None, error.message) if from_connector else None


def _pages(account: Account | None, most_bytes: int) -> tuple[tuple[HandedPage, ...], dict[int, int]]:
    """Return the pages of all writers, and how many of each are not among them; what has no room any more is left out."""
    pages: list[HandedPage] = []
    left_out: dict[int, int] = {}
    size = 0
    for number, stream, missing in account.handed if account is not None else ():
        for page in pages_of(stream):
            # The last page of a writer is kept by the task whatever its size: it is the one that fails.
            if pages and size + page.nbytes > most_bytes and account is not None and number != account.failed:
                missing += 1  # noqa: PLW2901 - counted on
            else:
                pages.append(HandedPage(number, page))
                size += page.nbytes
        if missing:
            left_out[number] = missing
    return tuple(pages), left_out


def _updated(run: StatementRun, update: UpdateRows | None) -> dict[int, tuple[str, ...]]:
    """Return the columns that clauses update; of the older flow in the order in which they stand in a page."""
    analysis = run.analysis
    if update is not None:
        assigned = sorted(zip(update.channels, (column.name for column in update.columns), strict=False))
        return {0: tuple(name for _, name in assigned)}
    if not isinstance(analysis, RowChangeAnalysis):
        return {}
    names = [column.name for column in analysis.target.columns]
    return {
        clause.number: tuple(name for name, value in zip(names, clause.values, strict=True) if value is not None)
        for clause in analysis.clauses
        if clause.operation is Operation.UPDATE
    }


def _with_rows(run: StatementRun, record: Record, task: ScanPass) -> Record:
    """Add the rows that the target has: all of a small table, of a larger one those that the pages speak of, as far as there is room."""
    room, asked = run.options.keeping.most_bytes, run.options.keeping.always
    named = _named_rows(record)
    kept: list[pa.RecordBatch] = []
    size = count = 0
    for page in task.read(range(len(task.splits))):
        rows = pa.RecordBatch.from_arrays(page.columns[:-1], schema=record.schema)
        count += rows.num_rows
        if size + rows.nbytes > room:
            # Those that the pages speak of are needed, however many others have been kept.
            rows = rows.filter(pa.array(np.isin(row_keys([row_ids_of(rows)], rows.num_rows), named)))
        if rows.num_rows and size + rows.nbytes <= 2 * room:
            kept.append(rows)
            size += rows.nbytes
        if not asked and count >= SCANNED_ROWS:
            break
    rows = pa.concat_batches(kept) if kept else pa.RecordBatch.from_pylist([], schema=record.schema)
    return replace(record, rows=rows, row_count=count, splits=len(task.splits))


def _named_rows(record: Record) -> npt.NDArray[np.int64]:
    """Return the keys of the row ids that the pages speak of."""
    if record.row_id is None:
        return np.zeros(0, np.int64)
    at = 0 if record.flow is Flow.UPDATABLE else record.layout.after.row_id
    ids = [page.page.column(at).drop_null() for page in record.pages]
    return np.concatenate([np.zeros(0, np.int64), *(row_keys([array], len(array)) for array in ids)])


def _plain(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is plain data; a tuple stands for every kind of list."""
    kept = {}
    for name, value in properties.items():
        if isinstance(value, list | tuple):
            value = tuple(value)  # noqa: PLW2901 - as a file gives it back
        flat = value if isinstance(value, tuple) else (value,)
        if all(one is None or type(one) in {str, int, float, bool} for one in flat):
            kept[name] = value
    return kept
