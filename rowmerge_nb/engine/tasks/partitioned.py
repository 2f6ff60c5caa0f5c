"""A MERGE whose source is too large for one task: pages of both sides are partitioned by key.

A cell holds or refers to a page's rows for one task.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ExecutionError, RowMergeError
from rowmerge_nb.engine.tasks.arrow import Batches, gathered, page_in, whole_page
from rowmerge_nb.engine.tasks.join_keys import JoinKeys
from rowmerge_nb.engine.tasks.key_hashes import key_hashes
from rowmerge_nb.engine.tasks.page_join import KeyJoin, numbered
from rowmerge_nb.engine.tasks.page_program import PageProgram
from rowmerge_nb.engine.tasks.scan import POSITION, CellPass, ScanPass, cell_of
from rowmerge_nb.engine.tasks.sent_pages import SentPages, parts_of, received_pages
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
        spreads_nulls: spread rows with a NULL key, which match nothing, over the tasks; otherwise
            drop them.
        folder: a folder that all tasks can access; None to send pages as bytes.
    """

    side: int
    scan: ScanPass | None
    tasks: int
    schema: pa.Schema
    keys: JoinKeys
    partitions: int
    on: int | None = field(default=None, kw_only=True)
    spreads_nulls: bool
    folder: str | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._cells(batches)
        except RowMergeError as error:
            raise _marked(error) from error

    def _cells(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        pages = self._read(batches) if self.scan is not None else self._counted(batches)
        with (
            closing(PageProgram().evaluator(None)) as evaluator,
            SentPages(self.folder, self.schema) as sender,
        ):
            for number, page in enumerate(gathered(pages, _SENT_ROWS)):
                rows, places = self._places(page, evaluator)
                for partition, part in parts_of(rows, places, self.partitions):
                    cell = sender.cell(part)
                    yield _sent(cell, partition, self.side, task_partition(), number)

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

    def _keys(self, page: Page, evaluator: PageEvaluator) -> list[pa.Array]:
        try:
            return self.keys.values(page, evaluator)
        except ExecutionError as error:
            raise _marked(error, "" if self.on is None else f"@{self.on}") from error

    def _places(self, page: Page, evaluator: PageEvaluator) -> tuple[Page, npt.NDArray[np.int32]]:
        keys = self._keys(page, evaluator)
        places = (key_hashes(keys, page.num_rows) % np.uint64(self.partitions)).astype(np.int32)
        if not any(key.null_count for key in keys):
            return page, places
        has_keys = np.logical_and.reduce(
            [key.is_valid().to_numpy(zero_copy_only=False) for key in keys]
        )
        if not self.spreads_nulls:
            return page.filter(pa.array(has_keys)), places[has_keys]
        spread = page.column(POSITION).to_numpy() % self.partitions
        return page, np.where(has_keys, places, spread.astype(np.int32))


def _marked(error: RowMergeError, number: str = "") -> RuntimeError:
    """A cell carries no record. The driver parses the mark, and maps the number to the position of
    ON.
    """
    return RuntimeError(f"[[{error.code}{number}]] {' '.join(error.message.split())}")


def _sent(cell: bytes, partition: int, side: int, sender: int, number: int) -> pa.RecordBatch:
    values = (partition, side, cell, sender, number)
    arrays = [pa.array([value], field.type) for value, field in zip(values, CELLS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=CELLS)


@dataclass(frozen=True)
class AnswersOutputPass:
    """Sends subqueries' results to every joining task."""

    partitions: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for partition in range(self.partitions):
                yield _sent(cell_of(batch), partition, _ANSWERS, 0, 0)


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
    in_files: bool = False

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from self.above(self._joined(batches))

    def _joined(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        sides = itertools.groupby(
            _arrived(batches, in_files=self.in_files), key=lambda cell: cell[0]
        )
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


def _arrived(batches: Batches, *, in_files: bool) -> Iterator[tuple[int, Page]]:
    for batch in batches:
        sides = batch.column(1)
        rows = batch.select([0, 2])
        is_answer = pc.equal(sides, _ANSWERS)
        for page in CellPass()([rows.filter(is_answer)]):
            yield _ANSWERS, page
        pages = received_pages([rows.filter(pc.invert(is_answer))], in_files=in_files)
        yield from zip(sides.filter(pc.invert(is_answer)).to_pylist(), pages, strict=True)
