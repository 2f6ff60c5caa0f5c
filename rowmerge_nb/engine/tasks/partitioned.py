"""A MERGE whose source no task can have as a whole: both sides go, page by page, to the tasks of their keys, which join them.

Spark sees neither a row nor a value of what it sends: a cell holds the rows of a page that one task is to get, as an Arrow stream.
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
from rowmerge_nb.engine.tasks.writer import task_partition

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.channels import ChangeChannels
    from rowmerge_nb.engine.tasks.merge_passes import MergePass
    from rowmerge_nb.engine.tasks.page_program import PageEvaluator
    from rowmerge_nb.spi.page import Page

SOURCE, TARGET = 0, 1
"""The sides of the join, in the order in which their rows come to a task."""
_ANSWERS: Final = -1
"""Stands in the place of a side where a cell has the answers of subqueries; they come first."""
CELLS: Final = pa.schema(
    [("partition", pa.int32()), ("side", pa.int32()), ("cell", pa.binary()), ("sender", pa.int32()), ("number", pa.int32())]
)
"""What is sent: to which task, of which side, the rows, and by which task as its how many-th page."""
IN_ORDER: Final = ("side", "sender", "number")
"""By these a task gets its cells in the same order, whoever sends first: an attempt that is made again stores the same rows in the same place."""
_SENT_ROWS: Final = 1 << 18
"""So many rows are parted at once, if there are: the more there are, the fewer and larger are the cells."""
_ROW_NUMBERS: Final = 33
"""Rows of a query are counted within each of its partitions, whose number stands above so many bits, as Spark does it."""


@dataclass(frozen=True)
class PartitionedOutputPass:
    """Parts the rows of one side by the hash of their keys.

    Args:
        side: ``SOURCE`` or ``TARGET``.
        scan: reads the side; None where its rows arrive.
        tasks: how many tasks read it; see `ScanPass.share`.
        schema: the side's channels, by the plan's symbols, and last the position.
        keys: the keys.
        partitions: how many tasks join.
        on: the number of the ON condition, in errors of a key; None if the keys cannot fail.
        alone: rows with a NULL among their keys, which meet no other, go along; they are spread over the tasks.
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
        """Yield the cells of the rows that one task has of this side."""
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
        """Yield arriving rows a position."""
        channels = pa.schema(list(self.schema)[:-1])
        start = task_partition() << _ROW_NUMBERS
        for batch in batches:
            positions = pa.array(np.arange(start, start + batch.num_rows))
            start += batch.num_rows
            yield pa.RecordBatch.from_arrays([*page_in(batch, channels).columns, positions], schema=self.schema)

    def _cells(self, page: Page, number: int, evaluator: PageEvaluator) -> Iterator[pa.RecordBatch]:
        order, counts = self._parted(page, evaluator)
        rows, ends = page.take(pa.array(order)), np.cumsum(counts)
        for partition in np.flatnonzero(counts).tolist():
            first = int(ends[partition] - counts[partition])
            cell = pa.array([cell_of(rows.slice(first, int(counts[partition])))], pa.binary())
            yield _sent(cell, partition, self.side, task_partition(), number)

    def _keys(self, page: Page, evaluator: PageEvaluator) -> list[pa.Array]:
        try:
            return self.keys.values(page, evaluator)
        except ExecutionError as error:
            # A cell carries no record. The driver reads the mark, and knows the place of ON by its number.
            number = "" if self.on is None else f"@{self.on}"
            raise RuntimeError(f"[[{error.code}{number}]] {' '.join(error.message.split())}") from error

    def _parted(self, page: Page, evaluator: PageEvaluator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the rows that are sent, task by task, and how many each task gets."""
        keys = self._keys(page, evaluator)
        to = (key_hashes(keys, page.num_rows) % np.uint64(self.partitions)).astype(np.int32)
        order = np.arange(page.num_rows)
        if any(key.null_count for key in keys):
            known = np.logical_and.reduce([key.is_valid().to_numpy(zero_copy_only=False) for key in keys])
            if self.alone:
                spread = page.column(POSITION).to_numpy() % self.partitions
                to = np.where(known, to, spread.astype(np.int32))
            else:
                order = np.flatnonzero(known)
                to = to[order]
        # Of few small numbers a stable sort counts them.
        sort = to.astype(np.uint16) if self.partitions < 1 << 16 else to
        return order[np.argsort(sort, kind="stable")], np.bincount(to, minlength=self.partitions)


def _sent(cell: pa.Array, partition: int, side: int, sender: int, number: int) -> pa.RecordBatch:
    to, of, by, place = (pa.array([value], pa.int32()) for value in (partition, side, sender, number))
    return pa.RecordBatch.from_arrays([to, of, cell, by, place], schema=CELLS)


@dataclass(frozen=True)
class AnswersOutputPass:
    """Sends the answers of subqueries, which arrive in one row, to every task that joins.

    Args:
        partitions: how many there are.
    """

    partitions: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the cells."""
        for batch in batches:
            cell = pa.array([cell_of(batch)], pa.binary())
            for partition in range(self.partitions):
                yield _sent(cell, partition, _ANSWERS, 0, 0)


@dataclass(frozen=True)
class PartitionedJoinTask:
    """MERGE of those rows of both sides that come to a task: all of a target row's matches are among them.

    The source's rows come first, and are held with an index of their keys; those of the target go through page by page.

    Args:
        target: the target's channels, and ``source`` the source's; both have a position.
        join: how the rows meet.
        program: the subqueries of the statement.
        channels: makes of joined rows what the pass above takes.
        above: the passes from MarkDistinct to the sink, or to the exchange.
    """

    target: pa.Schema
    source: pa.Schema
    join: KeyJoin
    program: PageProgram
    channels: ChangeChannels
    above: MergePass

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the rows of one task."""
        yield from self.above(self._joined(batches))

    def _joined(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        sides = itertools.groupby(_arrived(batches), key=lambda arrived: arrived[0])
        pages: Iterator[Page] = iter(())
        held: list[Page] = []
        answers = None
        for side, arrived in sides:
            pages = (page for _, page in arrived)
            if side == TARGET:
                break
            if side == SOURCE:
                held = list(pages)
            else:
                answers = next(pages)
        numbers, source = numbered(whole_page(held, self.source))
        with closing(self.program.evaluator(answers)) as evaluator:
            for rows in self.join.by_target(pages, self.target, source, evaluator):
                yield self.channels.batch(rows, evaluator, numbers)


def _arrived(batches: Batches) -> Iterator[tuple[int, Page]]:
    for batch in batches:
        for row, side in enumerate(batch.column(1).to_pylist()):
            for page in CellPass()([batch.select([0, 2]).slice(row, 1)]):
                yield side, page
