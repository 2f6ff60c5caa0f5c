"""A MERGE whose source is sent to every task: the join tasks, and the stage of unmatched source
rows.
"""

from __future__ import annotations

import pickle
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ExecutionError
from rowmerge_nb.engine.tasks.arrow import Batches, gathered, page_in, whole_page
from rowmerge_nb.engine.tasks.outcome import (
    ANSWERS_ROW,
    MATCHED_ROW,
    OUTCOME,
    PIECE_ROW,
    outcome,
)
from rowmerge_nb.engine.tasks.page_join import KeyJoin, numbered, without_target
from rowmerge_nb.engine.tasks.page_program import PageProgram
from rowmerge_nb.engine.tasks.recorder import TaskRecord
from rowmerge_nb.engine.tasks.scan import cell_of
from rowmerge_nb.engine.tasks.sent_pages import SENT, received_pages, without_reports
from rowmerge_nb.engine.tasks.writer import task_partition

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.channels import ChangeChannels
    from rowmerge_nb.engine.tasks.exchange import PartitionFunction, WriterPass
    from rowmerge_nb.engine.tasks.merge_passes import MergePass
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.spi.page import Page

PIECES: Final = pa.schema([("piece", pa.int32()), ("cell", pa.binary())])
"""Pieces of the source's rows."""
PIECE: Final = "$piece"
MESSAGES: Final = pa.schema([*list(SENT)[:-1], (PIECE, pa.int32()), list(SENT)[-1]])
"""Messages to the writers behind an exchange. With the number of a piece, the cell is a bitmap of
its matched rows; if there is no cell, the piece itself is joined to the row.
"""
_ANSWERS: Final = -1
"""The piece number of rows with the results of subqueries."""
PIECE_ROWS: Final = 1 << 17
"""Rows per piece, except the last."""
MOST_BYTES: Final = 1 << 30
"""Maximum size of a source that is sent to every task."""
_PACKING_BYTES: Final = 16


@dataclass(frozen=True)
class PackPass:
    """Packs source rows into a few cells, which Spark sends to every task.

    Without `source`, its rows arrive.
    """

    source: ScanPass | None
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        size = 0
        # The id lets both stages verify that they have the same packing.
        packing = uuid.uuid4().bytes
        for number, piece in enumerate(_pieces(self._rows(batches), self.schema)):
            size += piece.nbytes
            if size > MOST_BYTES:
                raise RuntimeError(
                    "[[EXCEEDED_LOCAL_MEMORY_LIMIT]] The source of the MERGE is larger than"
                    f" {MOST_BYTES >> 20} MiB, so it cannot be sent to every task;"
                    " rules_off={'change_in_task'} has Spark join it"
                )
            cell = pa.array([packing + cell_of(piece)], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([number], pa.int32()), cell], schema=PIECES)

    def _rows(self, batches: Batches) -> Iterator[Page]:
        if self.source is None:
            yield from (page_in(batch, self.schema) for batch in batches)
            return
        # The input is exhausted although it is empty: Spark does not reuse a worker that leaves
        # rows unread.
        deque(batches, maxlen=0)
        for page in self.source.marked(range(len(self.source.splits))):
            yield page.select(self.schema.names)


def _pieces(pages: Iterable[Page], schema: pa.Schema) -> Iterator[Page]:
    waiting: list[Page] = []
    rows, has_piece = 0, False
    for page in pages:
        start = 0
        while page.num_rows - start >= PIECE_ROWS - rows:
            waiting.append(page.slice(start, PIECE_ROWS - rows))
            start += PIECE_ROWS - rows
            yield pa.concat_batches(waiting)
            waiting, rows, has_piece = [], 0, True
        if start < page.num_rows:
            waiting.append(page.slice(start))
            rows += page.num_rows - start
    if waiting or not has_piece:
        yield whole_page(waiting, schema)


def _piece(cell: pa.Scalar) -> Page:
    with pa.ipc.open_stream(cell.as_buffer()[_PACKING_BYTES:]) as stream:
        return stream.read_next_batch()


def _packing(cell: pa.Scalar) -> bytes:
    return bytes(cell.as_buffer()[:_PACKING_BYTES])


@dataclass(frozen=True)
class ReplicatedSource:
    """A source that every task reads itself, or receives in packed pieces if `scan` is None."""

    schema: pa.Schema
    scan: ScanPass | None

    def page(self, cells: dict[int, pa.Scalar]) -> Page:
        pages = (
            self.scan.pages()
            if self.scan is not None
            else [_piece(cells[number]) for number in sorted(cells)]
        )
        return whole_page([page.select(self.schema.names) for page in pages], self.schema)


@dataclass(frozen=True)
class ReplicatedJoinTask:
    """MERGE with a replicated source: each task joins its own splits with all of it.

    A task reports matched source rows to the next stage. Task 0 also requests the packed pieces for
    it, and sends the results of subqueries.
    """

    target: ScanPass
    tasks: int
    source: ReplicatedSource
    join: KeyJoin
    program: PageProgram
    channels: ChangeChannels
    above: MergePass
    receivers: int

    @property
    def to_writers(self) -> bool:
        """Whether changed rows go to certain writers."""
        return self.above.exchange is not None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        first = None
        cells: dict[int, pa.Scalar] = {}
        for batch in batches:
            numbers = (
                [0]
                if self.source.scan is not None
                else pc.fill_null(batch.column(1), 0).to_pylist()
            )
            if 0 in numbers:
                first = batch.slice(numbers.index(0), 1)
            if self.source.scan is None:
                cells.update(
                    (piece, cell)
                    for piece, cell in zip(numbers, batch.column(2), strict=True)
                    if cell.is_valid
                )
        if first is None:
            # Spark has failed below, and discards the output.
            return
        task = first.column(0)[0].as_py()
        matched: list[npt.NDArray[np.bool_]] = []
        changed = self.above.work(self._joined(task, cells, first, matched), task)
        yield from map(_without_piece, changed) if self.to_writers else changed
        packing = _packing(next(iter(cells.values()))) if cells else bytes(_PACKING_BYTES)
        for number, start in enumerate(
            range(0, max(len(matched[0]), 1) if matched else 0, PIECE_ROWS)
        ):
            bits = np.packbits(matched[0][start : start + PIECE_ROWS]).tobytes()
            yield self._piece_rows(number, packing + bits)
            if task == 0 and self.source.scan is None:
                yield self._piece_rows(number, None)
        if task == 0 and self.program.queries:
            yield self._answer_rows(
                cell_of(first.select([query.symbol for query in self.program.queries]))
            )

    def _piece_rows(self, piece: int, matched: bytes | None) -> pa.RecordBatch:
        """Return the bitmap of a piece's matched rows, or with None a request for the piece."""
        if self.to_writers:
            return self._writer_rows(piece, matched)
        return outcome(
            [(PIECE_ROW, piece, b"") if matched is None else (MATCHED_ROW, piece, matched)]
        )

    def _answer_rows(self, answers: bytes) -> pa.RecordBatch:
        if self.to_writers:
            return self._writer_rows(_ANSWERS, answers)
        return outcome([(ANSWERS_ROW, receiver, answers) for receiver in range(self.receivers)])

    def _writer_rows(self, piece: int, payload: bytes | None) -> pa.RecordBatch:
        arrays = [
            pa.array(range(self.receivers), pa.int32()),
            pa.repeat(pa.scalar(payload, pa.binary()), self.receivers),
            pa.repeat(pa.scalar(piece, pa.int32()), self.receivers),
            pa.nulls(self.receivers, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=MESSAGES)

    def _joined(
        self,
        task: int,
        cells: dict[int, pa.Scalar],
        answers: pa.RecordBatch,
        matched: list[npt.NDArray[np.bool_]],
    ) -> Iterator[pa.RecordBatch]:
        """Join; append the bitmap of matched source rows to the list once the source is loaded."""
        numbers, source = numbered(self.source.page(cells))
        matched.append(np.zeros(source.num_rows, bool))
        pages = self.target.read(self.target.share(task, self.tasks))
        with closing(self.program.evaluator(answers)) as evaluator:
            index = self.join.index(source, evaluator)
            for rows in self.join.matches(pages, source, index, evaluator):
                matched[0][rows.partners] = True
                yield self.channels.batch(rows, evaluator, numbers)


def _without_piece(messages: pa.RecordBatch) -> pa.RecordBatch:
    writers, cells, records = messages.columns
    nothing = pa.nulls(messages.num_rows, pa.int32())
    return pa.RecordBatch.from_arrays([writers, cells, nothing, records], schema=MESSAGES)


@dataclass
class _Messages:
    matched: dict[int, npt.NDArray[np.uint8]] = field(default_factory=dict)
    cells: dict[int, pa.Scalar] = field(default_factory=dict)
    packings: set[bytes] = field(default_factory=set)
    answers: pa.RecordBatch | None = None

    def take_piece(self, piece: int, cell: pa.Scalar) -> None:
        if cell.is_valid:
            self.cells[piece] = cell
            self.packings.add(_packing(cell))

    def take_matched(self, piece: int, payload: bytes) -> None:
        self.packings.add(payload[:_PACKING_BYTES])
        bits = np.frombuffer(payload, np.uint8, offset=_PACKING_BYTES)
        self.matched[piece] = self.matched[piece] | bits if piece in self.matched else bits

    def take_answers(self, payload: bytes) -> None:
        with pa.ipc.open_stream(payload) as stream:
            self.answers = stream.read_next_batch()


@dataclass(frozen=True)
class UnmatchedRows:
    """Builds the next passes' input from unmatched source rows."""

    target_schema: pa.Schema
    source: ReplicatedSource
    program: PageProgram
    channels: ChangeChannels

    def batches(self, messages: _Messages) -> Iterator[pa.RecordBatch]:
        """Yield the unmatched rows; ExecutionError if the join tasks packed the source
        otherwise.
        """
        matched, cells = messages.matched, messages.cells
        if len(messages.packings) > 1 or (
            self.source.scan is None
            and any(len(bits) for bits in matched.values())
            and set(matched) != set(cells)
        ):
            raise ExecutionError(
                "The source of the MERGE was read twice, and its rows may have changed",
                step="join",
                hint="rules_off={'change_in_task'} makes Spark join it; please report this.",
            )
        whole = self.source.page({}) if self.source.scan is not None and matched else None
        with closing(self.program.evaluator(messages.answers)) as evaluator:
            for number, bits in sorted(matched.items()):
                first = number * PIECE_ROWS
                if not len(bits):
                    # The one piece of an empty source.
                    continue
                page = (
                    whole.slice(first, PIECE_ROWS) if whole is not None else _piece(cells[number])
                )
                numbers, piece = numbered(page, first)
                rows = np.flatnonzero(np.unpackbits(bits, count=piece.num_rows) == 0)
                if len(rows):
                    yield self.channels.batch(
                        without_target(self.target_schema, piece, rows), evaluator, numbers
                    )


@dataclass(frozen=True)
class UnmatchedPass:
    """Processes unmatched source rows; other rows pass through.

    `first` is the number of its first writer.
    """

    first: int
    unmatched: UnmatchedRows
    above: MergePass

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        messages = _Messages()
        for batch in batches:
            row_kinds = batch.column(0)
            through = batch.filter(pc.less(row_kinds, MATCHED_ROW)).select(OUTCOME.names)
            if through.num_rows:
                yield pa.RecordBatch.from_arrays(through.columns, schema=OUTCOME)
            for row in np.flatnonzero(row_kinds.to_numpy() >= MATCHED_ROW).tolist():
                row_kind, piece = row_kinds[row].as_py(), batch.column(1)[row].as_py()
                if row_kind == PIECE_ROW:
                    messages.take_piece(piece, batch.column(4)[row])
                elif row_kind == MATCHED_ROW:
                    messages.take_matched(piece, batch.column(2)[row].as_py())
                else:
                    messages.take_answers(batch.column(2)[row].as_py())
        yield from self.above.work(self.unmatched.batches(messages), self.first + task_partition())


@dataclass(frozen=True)
class UnmatchedWriterPass:
    """A writer behind an exchange, which also stores its share of the unmatched source rows.

    Each writer computes all of them, because an exchange of all rows would cost more. The first
    writer reports their record.
    """

    number: int
    unmatched: UnmatchedRows
    above: MergePass
    function: PartitionFunction
    writers: WriterPass

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        writer = task_partition()
        reports: list[bytes] = []
        yield from self.writers.store(self._pages(batches, reports, writer), reports, writer)

    def _pages(self, batches: Batches, reports: list[bytes], writer: int) -> Iterator[Page]:
        messages = _Messages()
        cells = _cells(without_reports(batches, reports), messages)
        yield from gathered(received_pages(cells, in_files=self.writers.in_files))
        for rows in self.above.changed(self.unmatched.batches(messages), self.number):
            if isinstance(rows, TaskRecord):
                # All writers have the same record, except for errors.
                if not writer or rows.error is not None:
                    reports.append(pickle.dumps(rows))
                continue
            own = rows.page.filter(pa.array(self.function.partitions(rows) == writer))
            if own.num_rows:
                yield own


def _cells(batches: Batches, messages: _Messages) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        cells, pieces = batch.column(1), batch.column(2)
        for row in np.flatnonzero(pieces.is_valid()).tolist():
            piece, cell = pieces[row].as_py(), cells[row]
            if not cell.is_valid:
                messages.take_piece(piece, batch.columns[-1][row])
            elif piece != _ANSWERS:
                messages.take_matched(piece, cell.as_py())
            else:
                messages.take_answers(cell.as_py())
        yield batch.filter(pieces.is_null())
