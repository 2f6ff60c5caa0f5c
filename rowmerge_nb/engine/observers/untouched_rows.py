"""Target rows that took no part in a small statement: rows that were not joined, or that WHERE did
not select.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.errors import StatementInterrupted
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.plan.plan_nodes import Symbol, TableScan
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.spi.page import ROW_ID
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from rowmerge_nb.engine.statements.action import Action, PlannedChange
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.sql.analyzer.analysis import RowChangeAnalysis
    from rowmerge_nb.trace.trace import Trace

MOST_READ: Final = 1_000
"""Larger tables are not read again for this."""
MOST_ROWS: Final = 30
"""The number of rows in the trace at most."""


class UntouchedRows(RunObserver):
    """Adds the first untouched rows to the trace.

    They are found by their row ids, in the statement's transaction, in stores that keep versions. A
    reading that fails adds nothing.
    """

    def __init__(self, analysis: RowChangeAnalysis) -> None:
        self._analysis = analysis
        self._rows: pa.RecordBatch | None = None

    def after_checks(self, run: StatementRun, action: Action) -> None:
        try:
            self._rows = _untouched(run, self._analysis, action)
        except StatementInterrupted:
            raise
        except Exception:  # noqa: BLE001
            return

    def add_to_trace(self, trace: Trace) -> Trace:
        return replace(trace, samples=replace(trace.samples, untouched_rows=self._rows))


def _untouched(
    run: StatementRun, analysis: RowChangeAnalysis, action: Action
) -> pa.RecordBatch | None:
    pages, target = action.account.pages, analysis.target
    rows = target.row_count
    if not action.context.witness or rows is None or rows > MOST_READ:
        return None
    if not run.transaction.metadata(target.catalog).keeps_versions:
        # A connector under development, or a database, gets only the calls of the statement itself.
        return None
    if action.account.joined and (pages is None or not pages.complete):
        return None
    joined = (
        set()
        if pages is None
        else {repr(value) for value in python_values(pages.row_ids) if value is not None}
    )
    names = [column.name for column in target.columns]
    if len(joined) >= rows:
        return pa.RecordBatch.from_arrays(
            [pa.nulls(0, column.type.arrow) for column in target.columns], names=names
        )
    assert action.planned is not None
    scan = run.transaction.scans.observations.page_scan(whole_scan(analysis, action.planned))
    assert scan is not None
    read = pa.Table.from_batches(
        list(scan.read(range(len(scan.splits)))), schema=scan.schema
    ).combine_chunks()
    # A store that returns other rows now, or other ids, cannot be compared.
    row_ids = [repr(value) for value in python_values(read.column(len(names)))]
    untouched = [index for index, row_id in enumerate(row_ids) if row_id not in joined]
    if len(row_ids) != rows or len(untouched) != rows - len(joined):
        return None
    first_rows = (
        read.select(range(len(names)))
        .take(pa.array(untouched[:MOST_ROWS], pa.int64()))
        .combine_chunks()
    )
    arrays = [column.combine_chunks() for column in first_rows.columns]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def whole_scan(analysis: RowChangeAnalysis, planned: PlannedChange) -> TableScan:
    """Return a scan of all columns of the target, with its row id as the last one."""
    target, row_id = analysis.target, Symbol(ROW_ID, planned.facts.row_id.type)
    columns = tuple(ColumnHandle(column.name, column.type) for column in target.columns)
    fields = tuple(Symbol(field.symbol, field.type) for field in analysis.target_fields)
    return TableScan(
        id="untouched",
        outputs=(*fields, row_id),
        table=target,
        columns=(*columns, planned.facts.row_id),
        row_id=row_id,
    )
