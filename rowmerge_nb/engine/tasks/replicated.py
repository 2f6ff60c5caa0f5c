"""A MERGE whose source every task has: the tasks that join their splits with it, and the stage of the source rows that none has matched."""

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
from rowmerge_nb.engine.tasks.arrow import Batches, page_in, whole_page
from rowmerge_nb.engine.tasks.exchange import BUCKET
from rowmerge_nb.engine.tasks.outcome import ANSWERS_ROW, MATCHED_ROW, OUTCOME, PIECE_ROW, RECORD, outcome
from rowmerge_nb.engine.tasks.page_join import KeyJoin, numbered, without_target
from rowmerge_nb.engine.tasks.page_program import PageProgram
from rowmerge_nb.engine.tasks.scan import cell_of
from rowmerge_nb.engine.tasks.writer import task_partition

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.channels import ChangeChannels
    from rowmerge_nb.engine.tasks.exchange import LocalExchange
    from rowmerge_nb.engine.tasks.merge_passes import MergePass
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.spi.page import Page

PIECES: Final = pa.schema([("piece", pa.int32()), ("cell", pa.binary())])
"""What is sent of a source: pieces of its rows."""
PIECE, MATCHED = "$piece", "$matched"
"""By these a task tells the writers behind an exchange what else it tells the stage of unmatched rows: of which piece, and which of its
rows have met a target row, as bits; a row without bits has the piece itself joined to it. Changed rows have neither."""
_ANSWERS: Final = -1
"""Stands in the place of a piece where a writer is told the answers of subqueries."""
PIECE_ROWS: Final = 1 << 17
"""The rows of a piece; the last one may have fewer."""
MOST_BYTES: Final = 1 << 30
"""A source that turns out to be larger than this is not sent to every task."""
_PACKING_BYTES: Final = 16


@dataclass(frozen=True)
class PackPass:
    """Packs the rows of a source into a few cells, which Spark sends to every task.

    Args:
        source: reads the source, all of it in this one task; None where its rows arrive.
        schema: the source's channels, by the plan's symbols; of a table also the position behind them.
    """

    source: ScanPass | None
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the pieces: their numbers, and the rows as an Arrow stream behind what tells this packing from another."""
        size = 0
        # Both stages must have the rows of one packing: by this they see that they do.
        packing = uuid.uuid4().bytes
        for number, piece in enumerate(_pieces(self._rows(batches), self.schema)):
            size += piece.nbytes
            if size > MOST_BYTES:
                raise RuntimeError(
                    f"[[EXCEEDED_LOCAL_MEMORY_LIMIT]] The source of the MERGE is larger than {MOST_BYTES >> 20} MiB, so it cannot be "
                    "sent to every task; rules_off={'change_in_task'} has Spark join it"
                )
            cell = pa.array([packing + cell_of(piece)], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([number], pa.int32()), cell], schema=PIECES)

    def _rows(self, batches: Batches) -> Iterator[Page]:
        if self.source is None:
            yield from (page_in(batch, self.schema) for batch in batches)
            return
        # What arrives says nothing here, but a worker that leaves rows behind is not used again.
        deque(batches, maxlen=0)
        for page in self.source.marked(range(len(self.source.splits))):
            yield page.select(self.schema.names)


def _pieces(pages: Iterable[Page], schema: pa.Schema) -> Iterator[Page]:
    """Cut and put together pages, so that each has the rows of a piece; there is one piece at least, if it be empty."""
    waiting: list[Page] = []
    rows, made = 0, False
    for page in pages:
        start = 0
        while page.num_rows - start >= PIECE_ROWS - rows:
            waiting.append(page.slice(start, PIECE_ROWS - rows))
            start += PIECE_ROWS - rows
            yield pa.concat_batches(waiting)
            waiting, rows, made = [], 0, True
        if start < page.num_rows:
            waiting.append(page.slice(start))
            rows += page.num_rows - start
    if waiting or not made:
        yield whole_page(waiting, schema)


def _piece(cell: pa.Scalar) -> Page:
    with pa.ipc.open_stream(cell.as_buffer()[_PACKING_BYTES:]) as stream:
        return stream.read_next_batch()


def _packing(cell: pa.Scalar) -> bytes:
    """Return what tells one packing of a source from another."""
    return bytes(cell.as_buffer()[:_PACKING_BYTES])


@dataclass(frozen=True)
class ReplicatedSource:
    """A source that every task has: it reads the source itself, or gets the pieces that one task has packed.

    Args:
        schema: the source's channels, by the plan's symbols; of a table also the position behind them.
        scan: reads the source; None where pieces arrive.
    """

    schema: pa.Schema
    scan: ScanPass | None

    def page(self, cells: dict[int, pa.Scalar]) -> Page:
        """Return all of its rows.

        Args:
            cells: the pieces that have arrived, by their numbers.
        """
        pages = self.scan.pages() if self.scan is not None else [_piece(cells[number]) for number in sorted(cells)]
        return whole_page([page.select(self.schema.names) for page in pages], self.schema)


@dataclass(frozen=True)
class ReplicatedJoinTask:
    """MERGE with a source that every task has: each joins the splits that are its own with all of it.

    Which source rows it has matched it tells the stage of unmatched rows, piece by piece; where pieces have been packed, one task asks
    for them to be sent there as well; it also hands on the answers of subqueries. Where changed rows go to certain writers, each of these
    is told all of it.

    Args:
        target: reads the target.
        tasks: how many tasks there are; see `ScanPass.share`.
        source: the source.
        join: how the rows meet.
        program: the subqueries of the statement; their answers arrive beside the task's number, or beside its first piece.
        channels: makes of joined rows what the pass above takes.
        above: the passes from MarkDistinct to the sink, or to the exchange.
        receivers: how many tasks the next stage has: writers where the pass above ends at an exchange.
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
        """Changed rows go to certain writers."""
        return self.above.sinks is None

    @property
    def exchanged(self) -> pa.Schema:
        """The channels that go into the exchange, in Spark's types: those of changed rows, and what the writers are told."""
        *rows, record = self.above.exchanged
        return pa.schema([*rows, (PIECE, pa.int32()), (MATCHED, pa.binary()), record])

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the splits of one task."""
        first = None
        cells: dict[int, pa.Scalar] = {}
        for batch in batches:
            numbers = [0] if self.source.scan is not None else pc.fill_null(batch.column(1), 0).to_pylist()
            if 0 in numbers:
                first = batch.slice(numbers.index(0), 1)
            if self.source.scan is None:
                cells.update((piece, cell) for piece, cell in zip(numbers, batch.column(2), strict=True) if cell.is_valid)
        if first is None:
            # Spark has failed below, and throws away what comes out of this.
            return
        task = first.column(0)[0].as_py()
        matched: list[npt.NDArray[np.bool_]] = []
        changed = self.above.work(self._joined(task, cells, first, matched), task)
        yield from map(self._among_told, changed) if self.to_writers else changed
        packing = _packing(next(iter(cells.values()))) if cells else bytes(_PACKING_BYTES)
        for number, start in enumerate(range(0, max(len(matched[0]), 1) if matched else 0, PIECE_ROWS)):
            bits = np.packbits(matched[0][start : start + PIECE_ROWS]).tobytes()
            yield self._told(number, packing + bits)
            if task == 0 and self.source.scan is None:
                yield self._told(number, None)
        if task == 0 and self.program.queries:
            yield self._told_answers(cell_of(first.select([query.symbol for query in self.program.queries])))

    def _told(self, piece: int, matched: bytes | None) -> pa.RecordBatch:
        """Return which rows of a piece have been matched; None asks for the piece itself."""
        if self.to_writers:
            return self._told_writers(piece, matched)
        return outcome([(PIECE_ROW, piece, b"") if matched is None else (MATCHED_ROW, piece, matched)])

    def _told_answers(self, answers: bytes) -> pa.RecordBatch:
        """Return the rows that bring the answers of subqueries to every task of the next stage."""
        if self.to_writers:
            return self._told_writers(_ANSWERS, answers)
        return outcome([(ANSWERS_ROW, receiver, answers) for receiver in range(self.receivers)])

    def _told_writers(self, piece: int, told: bytes | None) -> pa.RecordBatch:
        rows = [{BUCKET: writer, PIECE: piece, MATCHED: told} for writer in range(self.receivers)]
        return pa.RecordBatch.from_pylist(rows, schema=self.exchanged)

    def _among_told(self, changed: pa.RecordBatch) -> pa.RecordBatch:
        """Return changed rows the channels of what is told beside them."""
        *rows, record = changed.columns
        nothing = [pa.nulls(changed.num_rows, kind) for kind in (pa.int32(), pa.binary())]
        return pa.RecordBatch.from_arrays([*rows, *nothing, record], schema=self.exchanged)

    def _joined(
        self, task: int, cells: dict[int, pa.Scalar], answers: pa.RecordBatch, matched: list[npt.NDArray[np.bool_]]
    ) -> Iterator[pa.RecordBatch]:
        """Join; what is told of a source row that was matched goes into the list, when the source is there."""
        numbers, source = numbered(self.source.page(cells))
        matched.append(np.zeros(source.num_rows, bool))
        pages = self.target.read(self.target.share(task, self.tasks))
        with closing(self.program.evaluator(answers)) as evaluator:
            index = self.join.index(source, evaluator)
            for rows in self.join.matches(pages, source, index, evaluator):
                matched[0][rows.partners] = True
                yield self.channels.batch(rows, evaluator, numbers)


@dataclass
class _Told:
    """What the tasks of the join have told one task of the next stage: the rows that they have matched, piece by piece, the pieces, the answers."""

    matched: dict[int, npt.NDArray[np.uint8]] = field(default_factory=dict)
    cells: dict[int, pa.Scalar] = field(default_factory=dict)
    packings: set[bytes] = field(default_factory=set)
    answers: pa.RecordBatch | None = None

    def take_piece(self, piece: int, cell: pa.Scalar) -> None:
        """Keep a piece, if there is one."""
        if cell.is_valid:
            self.cells[piece] = cell
            self.packings.add(_packing(cell))

    def take_matched(self, piece: int, told: bytes) -> None:
        """Unite what one more task has matched of a piece."""
        self.packings.add(told[:_PACKING_BYTES])
        bits = np.frombuffer(told, np.uint8, offset=_PACKING_BYTES)
        self.matched[piece] = self.matched[piece] | bits if piece in self.matched else bits

    def take_answers(self, told: bytes) -> None:
        """Keep the answers of subqueries."""
        with pa.ipc.open_stream(told) as stream:
            self.answers = stream.read_next_batch()


@dataclass(frozen=True)
class UnmatchedRows:
    """Makes of the source rows that no task has matched what the passes above the join take.

    Args:
        target_schema: the target's channels, which are NULL in all rows here.
        source: the source.
        program: the subqueries of the statement.
        channels: makes of joined rows what the pass above takes.
    """

    target_schema: pa.Schema
    source: ReplicatedSource
    program: PageProgram
    channels: ChangeChannels

    def batches(self, told: _Told) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the pieces of which the tasks have told.

        Raises:
            ExecutionError: the tasks have had other rows of the source than those that are here.
        """
        matched, cells = told.matched, told.cells
        if len(told.packings) > 1 or (
            self.source.scan is None and any(len(bits) for bits in matched.values()) and set(matched) != set(cells)
        ):
            raise ExecutionError(
                "The source of the MERGE was read twice, and its rows may have been others",
                step="join",
                hint="rules_off={'change_in_task'} has Spark join it; please report this.",
            )
        whole = self.source.page({}) if self.source.scan is not None and matched else None
        with closing(self.program.evaluator(told.answers)) as evaluator:
            for number, bits in sorted(matched.items()):
                first = number * PIECE_ROWS
                if not len(bits):
                    # The one piece of a source without rows.
                    continue
                page = whole.slice(first, PIECE_ROWS) if whole is not None else _piece(cells[number])
                numbers, piece = numbered(page, first)
                rows = np.flatnonzero(np.unpackbits(bits, count=piece.num_rows) == 0)
                if len(rows):
                    yield self.channels.batch(without_target(self.target_schema, piece, rows), evaluator, numbers)


@dataclass(frozen=True)
class UnmatchedPass:
    """The source rows that no task has matched; what the tasks of the stage before have said goes through as it is.

    Args:
        first: the number of the first writer of this stage; those below it are of the stage before.
        unmatched: makes the rows.
        above: the passes from MarkDistinct to the sink.
    """

    first: int
    unmatched: UnmatchedRows
    above: MergePass

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the pieces that have come to one task."""
        told = _Told()
        for batch in batches:
            kinds = batch.column(0)
            through = batch.filter(pc.less(kinds, MATCHED_ROW)).select(OUTCOME.names)
            if through.num_rows:
                yield pa.RecordBatch.from_arrays(through.columns, schema=OUTCOME)
            for row in np.flatnonzero(kinds.to_numpy() >= MATCHED_ROW).tolist():
                kind, piece = kinds[row].as_py(), batch.column(1)[row].as_py()
                if kind == PIECE_ROW:
                    told.take_piece(piece, batch.column(4)[row])
                elif kind == MATCHED_ROW:
                    told.take_matched(piece, batch.column(2)[row].as_py())
                else:
                    told.take_answers(batch.column(2)[row].as_py())
        yield from self.above.work(self.unmatched.batches(told), self.first + task_partition())


@dataclass(frozen=True)
class UnmatchedWriterPass:
    """The writer behind an exchange, who takes of the source rows that no task has matched those that are its own.

    Where such a row belongs is known when its clause has been computed. So each writer computes all of them: a further exchange would
    send all the other rows once more. What is recorded of them the first writer tells.

    Args:
        number: the number under which these rows are recorded; those below it are of the stage before.
        unmatched: makes the rows.
        above: the passes from MarkDistinct to the exchange.
        exchange: tells the writer of each row, and has the pass of the writers.
    """

    number: int
    unmatched: UnmatchedRows
    above: MergePass
    exchange: LocalExchange

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the rows of the writer that this task is."""
        writer = task_partition()
        yield from self.exchange.above.write(self._rows(batches, writer), writer)

    def _rows(self, batches: Batches, writer: int) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows that have come here, and then those of the unmatched source rows."""
        told = _Told()
        for batch in batches:
            pieces, matched = (batch.column(batch.schema.names.index(name)) for name in (PIECE, MATCHED))
            for row in np.flatnonzero(pieces.is_valid()).tolist():
                piece = pieces[row].as_py()
                if not matched[row].is_valid:
                    told.take_piece(piece, batch.columns[-1][row])
                elif piece != _ANSWERS:
                    told.take_matched(piece, matched[row].as_py())
                else:
                    told.take_answers(matched[row].as_py())
            yield batch.filter(pieces.is_null())
        for batch in self.above.work(self.unmatched.batches(told), self.number):
            yield batch.filter(pa.array(self.exchange.writer_of(batch) == writer))
            # They all tell the same, but for what has gone wrong in one of them alone.
            records = map(pickle.loads, batch.column(RECORD).drop_null().to_pylist() if writer else [])
            if any(record.error is not None for record in records):
                yield batch
