"""Target rows that took no part in a small statement: those that were not joined, or that WHERE has not chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.errors import StatementInterrupted
from rowmerge_nb.plan.plan_nodes import Symbol, TableScan
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.spi.page import ROW_ID
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from rowmerge_nb.engine.statements.merge import MergeRun
    from rowmerge_nb.engine.statements.row_change import Answer, Planned
    from rowmerge_nb.engine.statements.update_delete import UpdateDeleteRun

MOST_READ: Final = 1_000
"""Larger tables are not read once more for it."""
MOST_ROWS: Final = 30
"""So many rows are kept."""


def note_untouched(run: MergeRun | UpdateDeleteRun, planned: Planned, answer: Answer) -> None:
    """Add the rows that took no part to a statement's account, where it is small; to be called before it is finished.

    They are found by their row ids, in the transaction of the statement, in stores that keep versions. That is an explanation: should it fail, nothing is told.

    Raises:
        StatementInterrupted: the user has stopped it; nothing was changed.
    """
    try:
        answer.account.untouched = _untouched(run, planned, answer)
    except StatementInterrupted:
        raise
    except Exception:  # noqa: BLE001
        return


def _untouched(run: MergeRun | UpdateDeleteRun, planned: Planned, answer: Answer) -> pa.RecordBatch | None:
    pages, target = answer.account.pages, run.analysis.target
    rows = target.row_count
    if not answer.context.witness or rows is None or rows > MOST_READ:
        return None
    if not run.transaction.metadata(target.catalog).keeps_versions:
        # A connector that is being written, or a database, is asked what the statement asks, and no more.
        return None
    if answer.account.joined and (pages is None or not pages.complete):
        return None
    joined = set() if pages is None else {repr(value) for value in python_values(pages.row_ids) if value is not None}
    names = [column.name for column in target.columns]
    if len(joined) >= rows:
        return pa.RecordBatch.from_arrays([pa.nulls(0, column.type.arrow) for column in target.columns], names=names)
    scan = run.transaction.scans.observations.page_scan(whole_scan(run, planned))
    assert scan is not None
    read = pa.Table.from_batches(list(scan.read(range(len(scan.splits)))), schema=scan.schema).combine_chunks()
    # A store that gives other rows now, or other ids, is not asked what it does not know.
    at = [repr(value) for value in python_values(read.column(len(names)))]
    left = [index for index, value in enumerate(at) if value not in joined]
    if len(at) != rows or len(left) != rows - len(joined):
        return None
    taken = read.select(range(len(names))).take(pa.array(left[:MOST_ROWS], pa.int64())).combine_chunks()
    arrays = [column.combine_chunks() for column in taken.columns]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def whole_scan(run: MergeRun | UpdateDeleteRun, planned: Planned) -> TableScan:
    """Return a scan of all columns of the target, with its row id as the last one."""
    target, row_id = run.analysis.target, Symbol(ROW_ID, planned.facts.row_id.type)
    columns = tuple(ColumnHandle(column.name, column.type) for column in target.columns)
    fields = tuple(Symbol(field.symbol, field.type) for field in run.analysis.target_fields)
    return TableScan(
        id="untouched", outputs=(*fields, row_id), table=target, columns=(*columns, planned.facts.row_id), row_id=row_id
    )
