"""Changed rows, derived from a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace

_NAMES = {int(operation): operation.name for operation in Operation}


def changed_rows(trace: Trace) -> dict[str, pa.Array]:
    """Return the sampled rows for which a clause fired, column by column.

    The columns are ``operation``, ``case_number``, ``source_row``, and per table column
    ``old.<name>`` and ``new.<name>``. Old values are NULL if rows did not carry them.
    """
    pages = trace.samples.pages
    if pages is None:
        return {}
    if not pages.transformed:
        return _without_merge_rows(pages)
    layout, merge_row = pages.layout.merge_row, pages.before.column(pages.layout.before.merge_row)
    operations = merge_row.field(layout.operation).fill_null(int(Operation.NONE))
    fired = pc.and_(merge_row.is_valid(), pc.not_equal(operations, int(Operation.NONE)))
    rows = np.flatnonzero(fired.to_numpy(zero_copy_only=False))
    selected = merge_row.take(rows)
    columns = {merge_row.type.field(index).name: selected.field(index) for index in layout.columns}
    case_numbers = selected.field(layout.case_number)
    return _columns(operations.take(rows), case_numbers, columns, pages, rows)


def _without_merge_rows(pages: PageSample) -> dict[str, pa.Array]:
    channels = pages.layout.after
    operations = pages.after.column(channels.operation)
    columns = {
        pages.after.schema.names[index]: pages.after.column(index) for index in channels.columns
    }
    rows = np.arange(pages.after.num_rows)
    return _columns(operations, pa.array(np.zeros_like(rows)), columns, pages, rows)


def _columns(
    operations: pa.Array,
    case_numbers: pa.Array,
    columns: dict[str, pa.Array],
    pages: PageSample,
    rows: npt.NDArray[np.int64],
) -> dict[str, pa.Array]:
    old: dict[str, pa.Array] = {}
    source_rows = pa.nulls(len(rows), pa.int64())
    if pages.witness is not None:
        names = pages.witness.schema.names
        if "target" in names:
            target = pages.witness.column("target").take(rows)
            old = dict(zip((field.name for field in target.type), target.flatten(), strict=True))
        if "source_row" in names and pages.transformed:
            source_rows = pages.witness.column("source_row").take(rows)
    is_deleted = pc.equal(operations, int(Operation.DELETE))
    changes = {
        "operation": pa.array([_NAMES[number] for number in operations.to_pylist()], pa.string()),
        "case_number": case_numbers,
        "source_row": source_rows,
    }
    for name, values in columns.items():
        changes[f"old.{name}"] = old.get(name, pa.nulls(len(rows), values.type))
        changes[f"new.{name}"] = pc.if_else(is_deleted, pa.scalar(None, values.type), values)
    return changes
