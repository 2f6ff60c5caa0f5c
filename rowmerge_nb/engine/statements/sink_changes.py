"""The changes that a statement's sinks received, one per row of their pages, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.handed import pages_of
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.trace.bags import row_codes
from rowmerge_nb.trace.row_pairs import equal_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rowmerge_nb.trace.page_samples import PageSample

    Mask = npt.NDArray[np.bool_]
    Numbers = npt.NDArray[np.int64]

_OLD: Final = (Operation.DELETE, Operation.UPDATE, Operation.UPDATE_DELETE)
_NEW: Final = (Operation.INSERT, Operation.UPDATE, Operation.UPDATE_INSERT)


@dataclass(frozen=True)
class SinkChanges:
    """The changes, in the order of the sample that the trace holds.

    Args:
        values: the table's columns, named by their indices.
        ids: what identifies the old row: the insert layout's columns, then the row id.
        joined_rows: the indices in the sample ``before``, -1 if there is none.
        numbers: the numbers by which the exchange chose the writers; None without an exchange.
    """

    method: str
    values: pa.Table
    ids: pa.Table
    page: pa.Table
    operations: Numbers
    halves: Mask
    writers: Numbers
    joined_rows: Numbers
    layout_columns: tuple[int, ...] = ()
    numbers: Numbers | None = None

    @classmethod
    def of_sample(cls, pages: PageSample) -> SinkChanges:
        layout, after = pages.layout, pages.after
        produced = np.array(pages.produced, np.int64)
        joined_rows = np.repeat(np.arange(len(produced)), produced)
        indices = pa.array(joined_rows, pa.int64())
        layout_values = (
            [
                pages.before.column(index).take(indices)
                for index in layout.before.write_redistribution_columns
            ]
            if pages.transformed
            else [after.column(index) for index in layout.redistribution_columns]
        )
        stored_page = layout.stored_page(after)
        placement = pages.placement
        return cls(
            "store_merged_rows",
            _table([after.column(index) for index in layout.after.columns]),
            _table([*layout_values, after.column(layout.after.row_id)]),
            _table(stored_page.columns),
            after.column(layout.after.operation).to_numpy(zero_copy_only=False).astype(np.int64),
            produced[joined_rows] > 1,
            np.array(pages.writers or [-1] * after.num_rows, np.int64),
            joined_rows,
            layout.redistribution_columns,
            None if placement is None else np.array(placement.numbers, np.int64),
        )

    @classmethod
    def of_inserted(cls, pages: Sequence[tuple[int, pa.RecordBatch]]) -> SinkChanges:
        values = pa.Table.from_batches([page for _, page in pages])
        values = values.rename_columns([str(index) for index in range(values.num_columns)])
        rows = values.num_rows
        sizes = [page.num_rows for _, page in pages]
        return cls(
            "append_page",
            values,
            _table([pa.nulls(rows)]),
            values,
            np.full(rows, int(Operation.INSERT), np.int64),
            np.zeros(rows, np.bool_),
            np.repeat(np.array([writer for writer, _ in pages], np.int64), sizes),
            np.full(rows, -1, np.int64),
        )

    @classmethod
    def none(cls, columns: pa.Schema) -> SinkChanges:
        values, numbers = columns.empty_table(), np.zeros(0, np.int64)
        return cls(
            "store_merged_rows",
            values,
            _table([pa.nulls(0)]),
            values,
            numbers,
            np.zeros(0, np.bool_),
            numbers,
            numbers,
        )

    @property
    def is_new(self) -> Mask:
        return np.isin(self.operations, [int(operation) for operation in _NEW])

    @property
    def is_old(self) -> Mask:
        return np.isin(self.operations, [int(operation) for operation in _OLD])

    @property
    def is_update(self) -> Mask:
        updates = (Operation.UPDATE, Operation.UPDATE_INSERT, Operation.UPDATE_DELETE)
        return self.halves | np.isin(self.operations, [int(operation) for operation in updates])

    @property
    def new_values(self) -> pa.Table:
        return self.values.filter(pa.array(self.is_new))

    def old_rows(self, ids: pa.Table) -> Numbers:
        """Return for each change the index of its old row among rows of these ids; -1 without."""
        rows, changes = row_codes(ids, self.ids)
        order = np.argsort(rows, kind="stable")
        at = np.minimum(np.searchsorted(rows[order], changes), max(len(rows) - 1, 0))
        if not len(rows):
            return np.full(len(changes), -1, np.int64)
        indices = order[at]
        return np.where(self.is_old & (rows[indices] == changes), indices, -1)

    def located(
        self, streams: Sequence[tuple[int, bytes, int]]
    ) -> tuple[Numbers, Numbers, Numbers]:
        """Return the writer, the number of the call from 1, and the row in its page, per change.

        What is not known is -1. Equal rows belong to each other by their order.
        """
        pages = [
            (writer, index + 1 + (left_out if index == len(batches) - 1 else 0), batch)
            for writer, stream, left_out in streams
            for batches in [pages_of(stream)]
            for index, batch in enumerate(batches)
        ]
        unknown = np.full(len(self.operations), -1, np.int64)
        width = self.page.num_columns
        if not pages or any(page.num_columns != width for _, _, page in pages):
            return self.writers, unknown, unknown.copy()
        sizes = [page.num_rows for _, _, page in pages]
        rows = pa.concat_tables([_table(page.columns) for _, _, page in pages])
        page_writers = np.repeat([writer for writer, _, _ in pages], sizes)
        codes, page_codes = row_codes(self.page, rows)
        if (self.writers >= 0).all():
            most = max(int(self.writers.max(initial=0)), int(page_writers.max(initial=0))) + 1
            codes, page_codes = codes * most + self.writers, page_codes * most + page_writers
        changes, received = equal_rows(codes, page_codes)
        writers, calls, places = self.writers.copy(), unknown, unknown.copy()
        writers[changes] = page_writers[received]
        calls[changes] = np.repeat([call for _, call, _ in pages], sizes)[received]
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        places[changes] = (np.arange(rows.num_rows) - starts)[received]
        return writers, calls, places

    def layout_values(self, index: int) -> pa.ChunkedArray:
        return pc.if_else(
            pa.array(self.is_new),
            self.values.column(self.layout_columns[index]),
            self.ids.column(index),
        )


def _table(columns: Sequence[pa.Array]) -> pa.Table:
    return pa.table(list(columns), [str(index) for index in range(len(columns))])
