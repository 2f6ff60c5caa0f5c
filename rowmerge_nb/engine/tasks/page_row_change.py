"""The whole of a row change in the task that reads the target: scan, join, CASE and processor, on Arrow pages, without Spark in between.

The passes above the join are those that Spark's form has, so what they check, record, sample and store is the same. Here are an UPDATE, a
DELETE and a MERGE of which one task has all; where many tasks have a MERGE's source, it is `rowmerge_nb.engine.tasks.replicated`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.arrow import Batches, gathered, last_channel, page_in, whole_page
from rowmerge_nb.engine.tasks.joined_rows import JoinedRows, Side
from rowmerge_nb.engine.tasks.page_join import KeyJoin, numbered
from rowmerge_nb.engine.tasks.page_program import PageProgram

if TYPE_CHECKING:
    from rowmerge_nb.engine.tasks.channels import ChangeChannels, DeleteChannels
    from rowmerge_nb.engine.tasks.exchange import LocalExchange
    from rowmerge_nb.engine.tasks.merge_passes import MergePass
    from rowmerge_nb.engine.tasks.scan import ScanPass


@dataclass(frozen=True)
class RowTask:
    """UPDATE and DELETE: the rows of the tasks whose numbers arrive, filtered and changed.

    Args:
        target: reads the target.
        tasks: how many tasks there are; see `ScanPass.share`.
        program: the condition, and the subqueries of condition and values, whose answers arrive beside the numbers.
        channels: makes of rows what the pass above takes.
        above: the pass of the processor.
        exchange: sends the rows to their writers within this task; None where that is Spark's business, or nobody's.
    """

    target: ScanPass
    tasks: int
    program: PageProgram
    channels: ChangeChannels | DeleteChannels
    above: MergePass
    exchange: LocalExchange | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the splits of a task."""
        given = self.above(rows for batch in batches for rows in self._changed(batch))
        yield from given if self.exchange is None else self.exchange(given)

    def _changed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        numbers = (split for task in batch.column(0).to_pylist() for split in self.target.share(task, self.tasks))
        with closing(self.program.evaluator(batch)) as evaluator:
            for kept in gathered(evaluator.filtered(self.target.read(numbers))):
                yield self.channels.batch(JoinedRows(kept.num_rows, (Side(kept),)), evaluator)


@dataclass(frozen=True)
class JoinTask:
    """MERGE that one task does.

    Args:
        paged: the target is gone through page by page; else it is held as a whole, and rows come in the order of the source.
        target: reads the target.
        source: reads the source; None where its rows arrive, and one that is none of its, as the last channel says.
        source_schema: the channels of the source that arrive, by the plan's symbols.
        join: how the rows meet.
        program: the subqueries of the statement; their answers arrive in the one row that is none of the source's.
        channels: makes of joined rows what the pass above takes.
        above: the passes from MarkDistinct to the processor.
        exchange: sends the rows to their writers within this task; None where there is nothing between processor and writer.
    """

    paged: bool
    target: ScanPass
    source: ScanPass | None
    source_schema: pa.Schema
    join: KeyJoin
    program: PageProgram
    channels: ChangeChannels
    above: MergePass
    exchange: LocalExchange | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on both tables."""
        given = self.above(self._joined(batches))
        yield from given if self.exchange is None else self.exchange(given)

    def _joined(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        # All that arrives is taken, also where it says nothing: a worker that leaves rows behind is not used again.
        arrived = list(batches)
        if self.source is None:
            kept = (batch.filter(last_channel(batch)) for batch in arrived)
            source = whole_page([page_in(batch, self.source_schema) for batch in kept], self.source_schema)
            arrived = [batch.filter(pc.invert(last_channel(batch))) for batch in arrived]
        else:
            source = whole_page(self.source.pages(), self.source.schema)
        own = next((batch for batch in arrived if batch.num_rows), None)
        if own is None:
            # Spark has failed below, and throws away what comes out of this.
            return
        # Both scans have a position; the target's is the one that is asked for by its name.
        numbers, source = numbered(source)
        schema = self.target.schema
        with closing(self.program.evaluator(own)) as evaluator:
            if self.paged:
                joined = self.join.by_target(self.target.read(range(len(self.target.splits))), schema, source, evaluator)
            else:
                joined = self.join.joined(whole_page(self.target.pages(), schema), source, evaluator)
            for rows in joined:
                yield self.channels.batch(rows, evaluator, numbers)
