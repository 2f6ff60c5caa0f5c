"""A MERGE whose source is too large for one task: pages of both sides are partitioned by key.

A cell contains a page's rows for one task, as an Arrow stream.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ExecutionError
from rowmerge_nb.engine.tasks.arrow import Batches, gathered, page_in, whole_page
from rowmerge_nb.engine.tasks.join_keys import JoinKeys
from rowmerge_nb.engine.tasks.key_hashes import key_hashes
from rowmerge_nb.engine.tasks.page_join import KeyJoin, numbered
from rowmerge_nb.engine.tasks.page_program import PageProgram
from rowmerge_nb.engine.tasks.scan import POSITION, CellPass, ScanPass, cell_of
from rowmerge_nb.engine.tasks.sent_pages import parts_of
from rowmerge_nb.engine.tasks.writer import task_partition

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.channels import ChangeChannels
    from rowmerge_nb.engine.tasks.merge_passes import MergePass
    from rowmerge_nb.engine.tasks.page_program import PageEvaluator
    from rowmerge_nb.spi.page import Page

SOURCE, TARGET = 0, 1
"""The sides of the join, in order of arrival."""
_ANSWERS: Final = -1
"""The side of cells with the results of subqueries, which come first."""
CELLS: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("side", pa.int32()),
        ("cell", pa.binary()),
        ("sender", pa.int32()),
        ("number", pa.int32()),
    ]
)
"""The receiving task, the side, the rows, the sending task, and the number of its page."""
IN_ORDER: Final = ("side", "sender", "number")
"""Sort order of a task's cells: a repeated attempt stores the same rows in the same order."""
_SENT_ROWS: Final = 1 << 18
"""Rows partitioned at once: more rows mean fewer, larger cells."""
_ROW_NUMBERS: Final = 33
"""Bits of a row's number within its partition; the partition number is above them, as in Spark."""


@dataclass(frozen=True)
class PartitionedOutputPass:
    """Partitions the rows of one side by the hash of their keys.

    Args:
        alone: spread rows with a NULL key, which match nothing, over the tasks; otherwise drop
            them.
    """

    side: int
    scan: ScanPass | None
    tasks: int
    schema: pa.Schema
    keys: JoinKeys
    partitions: int
    on: int | None = field(default=None, kw_only=True)
    alone: bool

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        pages = self._read(batches) if self.scan is not None else self._counted(batches)
        with closing(PageProgram().evaluator(None)) as evaluator:
            for number, page in enumerate(gathered(pages, _SENT_ROWS)):
                yield from self._cells(page, number, evaluator)

    def _read(self, batches: Batches) -> Iterator[Page]:
        assert self.scan is not None
        for batch in batches:
            for task in batch.column(0).to_pylist():
                for page in self.scan.marked(self.scan.share(task, self.tasks)):
                    yield page.select(self.schema.names)

    def _counted(self, batches: Batches) -> Iterator[Page]:
        channels = pa.schema(list(self.schema)[:-1])
        start = task_partition() << _ROW_NUMBERS
        for batch in batches:
            positions = pa.array(np.arange(start, start + batch.num_rows))
            start += batch.num_rows
            yield pa.RecordBatch.from_arrays(
                [*page_in(batch, channels).columns, positions], schema=self.schema
            )

    def _cells(self, page: Page, number: int, evaluator: PageEvaluator) -> Iterator[pa.RecordBatch]:
        for partition, rows in parts_of(*self._partitions(page, evaluator), self.partitions):
            cell = pa.array([cell_of(rows)], pa.binary())
            yield _sent(cell, partition, self.side, task_partition(), number)

    def _keys(self, page: Page, evaluator: PageEvaluator) -> list[pa.Array]:
        try:
            return self.keys.values(page, evaluator)
        except ExecutionError as error:
            # A cell carries no record. The driver parses the mark, and maps the number to the
            # position of ON.
            number = "" if self.on is None else f"@{self.on}"
            raise RuntimeError(
                f"[[{error.code}{number}]] {' '.join(error.message.split())}"
            ) from error

    def _partitions(
        self, page: Page, evaluator: PageEvaluator
    ) -> tuple[Page, npt.NDArray[np.int32]]:
        """Return the rows to send with their partitions."""
        keys = self._keys(page, evaluator)
        to = (key_hashes(keys, page.num_rows) % np.uint64(self.partitions)).astype(np.int32)
        if not any(key.null_count for key in keys):
            return page, to
        has_keys = np.logical_and.reduce(
            [key.is_valid().to_numpy(zero_copy_only=False) for key in keys]
        )
        if not self.alone:
            return page.filter(pa.array(has_keys)), to[has_keys]
        spread = page.column(POSITION).to_numpy() % self.partitions
        return page, np.where(has_keys, to, spread.astype(np.int32))


def _sent(cell: pa.Array, partition: int, side: int, sender: int, number: int) -> pa.RecordBatch:
    receiver, side_number, sending_task, page_number = (
        pa.array([value], pa.int32()) for value in (partition, side, sender, number)
    )
    return pa.RecordBatch.from_arrays(
        [receiver, side_number, cell, sending_task, page_number], schema=CELLS
    )


@dataclass(frozen=True)
class AnswersOutputPass:
    """Sends subqueries' results to every joining task."""

    partitions: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            cell = pa.array([cell_of(batch)], pa.binary())
            for partition in range(self.partitions):
                yield _sent(cell, partition, _ANSWERS, 0, 0)


@dataclass(frozen=True)
class PartitionedJoinTask:
    """MERGE of some key hashes: the source is indexed in memory, then the target is processed page
    by page.
    """

    target: pa.Schema
    source: pa.Schema
    join: KeyJoin
    program: PageProgram
    channels: ChangeChannels
    above: MergePass

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from self.above(self._joined(batches))

    def _joined(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        sides = itertools.groupby(_arrived(batches), key=lambda cell: cell[0])
        pages: Iterator[Page] = iter(())
        source_pages: list[Page] = []
        answers = None
        for side, cells in sides:
            pages = (page for _, page in cells)
            if side == TARGET:
                break
            if side == SOURCE:
                source_pages = list(pages)
            else:
                answers = next(pages)
        numbers, source = numbered(whole_page(source_pages, self.source))
        with closing(self.program.evaluator(answers)) as evaluator:
            for rows in self.join.by_target(pages, self.target, source, evaluator):
                yield self.channels.batch(rows, evaluator, numbers)


def _arrived(batches: Batches) -> Iterator[tuple[int, Page]]:
    for batch in batches:
        for row, side in enumerate(batch.column(1).to_pylist()):
            for page in CellPass()([batch.select([0, 2]).slice(row, 1)]):
                yield side, page
