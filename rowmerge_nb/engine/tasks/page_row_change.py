"""Row changes within the task that reads the target: scan, join, CASE and processor on Arrow pages.

For MERGE in many tasks, see `rowmerge_nb.engine.tasks.replicated`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.arrow import Batches, gathered, last_channel, page_in, whole_page
from rowmerge_nb.engine.tasks.joined_rows import JoinedRows, JoinedSide
from rowmerge_nb.engine.tasks.page_join import KeyJoin, numbered
from rowmerge_nb.engine.tasks.page_program import PageProgram

if TYPE_CHECKING:
    from rowmerge_nb.engine.tasks.channels import ChangeChannels, DeleteChannels
    from rowmerge_nb.engine.tasks.merge_passes import MergePass
    from rowmerge_nb.engine.tasks.scan import ScanPass


@dataclass(frozen=True)
class RowTask:
    """UPDATE and DELETE of numbered splits."""

    target: ScanPass
    tasks: int
    program: PageProgram
    channels: ChangeChannels | DeleteChannels
    above: MergePass

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from self.above(rows for batch in batches for rows in self._changed(batch))

    def _changed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        numbers = (
            split
            for task in batch.column(0).to_pylist()
            for split in self.target.share(task, self.tasks)
        )
        with closing(self.program.evaluator(batch)) as evaluator:
            for page in gathered(evaluator.filtered(self.target.read(numbers))):
                yield self.channels.batch(JoinedRows(page.num_rows, (JoinedSide(page),)), evaluator)


@dataclass(frozen=True)
class JoinTask:
    """MERGE in one task.

    Args:
        paged: go page by page, rather than hold the target.
    """

    paged: bool
    target: ScanPass
    source: ScanPass | None
    source_schema: pa.Schema
    join: KeyJoin
    program: PageProgram
    channels: ChangeChannels
    above: MergePass

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from self.above(self._joined(batches))

    def _joined(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        # The input is always exhausted: Spark does not reuse a worker that leaves rows unread.
        arrived = list(batches)
        if self.source is None:
            source_batches = (batch.filter(last_channel(batch)) for batch in arrived)
            source = whole_page(
                [page_in(batch, self.source_schema) for batch in source_batches], self.source_schema
            )
            arrived = [batch.filter(pc.invert(last_channel(batch))) for batch in arrived]
        else:
            source = whole_page(self.source.pages(), self.source.schema)
        own = next((batch for batch in arrived if batch.num_rows), None)
        if own is None:
            # Spark has failed below, and discards the output.
            return
        # Both scans have a position; the name refers to the target's.
        numbers, source = numbered(source)
        schema = self.target.schema
        with closing(self.program.evaluator(own)) as evaluator:
            if self.paged:
                joined = self.join.by_target(
                    self.target.read(range(len(self.target.splits))), schema, source, evaluator
                )
            else:
                joined = self.join.joined(
                    whole_page(self.target.pages(), schema), source, evaluator
                )
            for rows in joined:
                yield self.channels.batch(rows, evaluator, numbers)
