"""The passes of UPDATE and DELETE, which stream: no row can match twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.engine.tasks.merge_passes import MergePass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowmerge_nb.engine.tasks.recorder import Recorder
    from rowmerge_nb.spi.page import Page

ONLY_CASE = 0


class _StreamingPass(MergePass):
    """Its input channels are those of a page, then the witness, if any."""

    def _checked(
        self, arriving: Iterator[pa.RecordBatch], recorder: Recorder
    ) -> Iterator[tuple[Page, Page | None]]:
        record = recorder.record
        for batch in arriving:
            record.matched += batch.num_rows
            record.clause_rows[ONLY_CASE] = record.clause_rows.get(ONLY_CASE, 0) + batch.num_rows
            yield self._page(batch), self._witness(batch)

    def _page(self, batch: pa.RecordBatch) -> Page:
        raise NotImplementedError


class UpdatePass(_StreamingPass):
    """Turns merge rows into rows to store, with a constant ``is_distinct``."""

    def _checked(
        self, arriving: Iterator[pa.RecordBatch], recorder: Recorder
    ) -> Iterator[tuple[Page, Page | None]]:
        yield from super()._checked(
            (self._with_returned(batch, recorder) for batch in arriving), recorder
        )

    def _with_returned(self, batch: pa.RecordBatch, recorder: Recorder) -> pa.RecordBatch:
        if self.returning is not None:
            recorder.add_returned(batch.column(self.returning))
        return batch

    def _page(self, batch: pa.RecordBatch) -> Page:
        return self._input_page(batch, pa.array(np.ones(batch.num_rows, np.int8)))


class DeletePass(_StreamingPass):
    """Passes rows to delete to the writer, without a processor."""

    def _page(self, batch: pa.RecordBatch) -> Page:
        arrays = [
            conform(batch.column(i), field.type) for i, field in enumerate(self.output_schema)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)

    def _transformed(
        self, pages: Iterable[tuple[Page, Page | None]], recorder: Recorder
    ) -> Iterator[Page]:
        for page, witness in pages:
            recorder.passed_through(self.layout, page, ONLY_CASE, witness)
            yield page
