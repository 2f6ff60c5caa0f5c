"""The whole of a row change in the task that reads the target: scan, join, CASE and processor, on Arrow pages, without Spark in between.

The passes above the join are those that Spark's form has, so what they check, record, sample and store is the same.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.arrow import Batches, conform, for_spark, last_channel
from rowmerge_nb.engine.tasks.exchange import BUCKET
from rowmerge_nb.engine.tasks.joined_rows import NO_ROW, JoinedRows, Side
from rowmerge_nb.engine.tasks.key_index import KeyIndex
from rowmerge_nb.engine.tasks.outcome import MATCHED_ROW, OUTCOME, PIECE_ROW, RECORD, outcome
from rowmerge_nb.engine.tasks.page_program import PageEvaluator, PageExpression, PageProgram
from rowmerge_nb.engine.tasks.scan import POSITION, cell_of
from rowmerge_nb.engine.tasks.writer import task_partition
from rowmerge_nb.engine.tasks.xxhash import xxhash64
from rowmerge_nb.errors import ExecutionError
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import OPERATION

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.merge import MergePass
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.engine.tasks.searched_case import PageCase
    from rowmerge_nb.engine.tasks.writer import WriterPass
    from rowmerge_nb.spi.page import Page

__all__ = [
    "PIECES",
    "ChangeChannels",
    "DeleteChannels",
    "JoinTask",
    "KeyJoin",
    "LocalExchange",
    "PackPass",
    "ReplicatedJoinTask",
    "ReplicatedSource",
    "RowTask",
    "UnmatchedPass",
]


@dataclass(frozen=True)
class ChangeChannels:
    """Makes of joined rows what the pass of the processor takes.

    Args:
        location: the symbols of the old redistribution columns.
        hashed: the channel ``hash`` stands behind them.
        row_id: the symbol of the row id.
        case: makes the merge row.
        numbered: ``unique_id`` stands behind the case number.
        marked: the mark of rows with a source row stands behind it; the join is a FULL one.
        witness: the type of the witness; None if rows do not carry it.
        shown: of the target and of the source the symbols whose values the witness has.
    """

    location: tuple[str, ...]
    hashed: bool
    row_id: str
    case: PageCase
    numbered: bool
    marked: bool
    witness: pa.StructType | None
    shown: tuple[tuple[str, ...], tuple[str, ...]]

    def batch(self, rows: JoinedRows, evaluator: PageEvaluator, source_rows: pa.Array | None = None) -> pa.RecordBatch:
        """Give the channels.

        Args:
            rows: joined rows.
            evaluator: computes conditions and values.
            source_rows: the number of every row of the source's page.
        """
        location = [rows.column(name) for name in self.location]
        merge_row = self.case.merge_rows(rows, evaluator)
        # A NULL row has no number, so not the field itself, which has one.
        number = pc.struct_field(merge_row, [merge_row.type.num_fields - 1])
        arrays = [*location]
        if self.hashed:
            arrays.append(_hash(location, rows.count))
        arrays += [rows.column(self.row_id), merge_row, number]
        if self.numbered:
            arrays.append(rows.column(POSITION))
        if self.marked:
            there = rows.sides[1].is_there
            arrays.append(pa.array(there, mask=~there))
        if self.witness is not None:
            arrays.append(witness_of(rows, self.witness, self.shown, source_rows))
        return pa.RecordBatch.from_arrays(arrays, names=[f"c{index}" for index in range(len(arrays))])


@dataclass(frozen=True)
class DeleteChannels:
    """Makes of rows to delete the page of the writer, and the witness.

    Args:
        schema: the page's channels.
        kept: per table column the symbol of the value that is kept; None where there is NULL.
        row_id: the symbol of the row id.
        witness: the type of the witness; None if rows do not carry it.
        shown: the symbols whose values the witness has.
    """

    schema: pa.Schema
    kept: tuple[str | None, ...]
    row_id: str
    witness: pa.StructType | None
    shown: tuple[tuple[str, ...], tuple[str, ...]]

    def batch(self, rows: JoinedRows, _: PageEvaluator) -> pa.RecordBatch:
        """Give the channels."""
        known = dict(zip(self.schema.names[: len(self.kept)], self.kept, strict=True))
        arrays = []
        for index, channel in enumerate(self.schema):
            kept = known.get(channel.name) if index < len(self.kept) else None
            if kept is not None:
                arrays.append(rows.column(kept))
            elif index < len(self.kept):
                arrays.append(pa.nulls(rows.count, channel.type))
            else:
                arrays.append(self._control(channel, rows))
        if self.witness is not None:
            arrays.append(witness_of(rows, self.witness, self.shown, None))
        return pa.RecordBatch.from_arrays(arrays, names=[f"c{index}" for index in range(len(arrays))])

    def _control(self, channel: pa.Field, rows: JoinedRows) -> pa.Array:
        if channel.name == self.row_id:
            return rows.column(self.row_id)
        value = int(Operation.DELETE) if channel.name == OPERATION else 0
        return pa.array(np.full(rows.count, value)).cast(channel.type)


def witness_of(
    rows: JoinedRows, kind: pa.StructType, shown: tuple[tuple[str, ...], tuple[str, ...]], source_rows: pa.Array | None
) -> pa.StructArray:
    """Give both sides' values of joined rows; a side that a row does not have is NULL."""
    fields: dict[str, pa.Array] = {"source_row": pa.nulls(rows.count, pa.int64())}
    if source_rows is not None and len(rows.sides) > 1:
        fields["source_row"] = rows.sides[1].taken(source_rows)
    for name, side, symbols in zip(("target", "source"), rows.sides, shown, strict=False):
        if kind.get_field_index(name) >= 0:
            wanted = kind.field(name).type
            values = [conform(side.column(symbol), field.type) for symbol, field in zip(symbols, wanted, strict=True)]
            absent = None if side.is_there.all() else pa.array(~side.is_there)
            fields[name] = pa.StructArray.from_arrays(values, fields=list(wanted), mask=absent)
    return pa.StructArray.from_arrays([fields[field.name] for field in kind], fields=list(kind))


def _hash(columns: Sequence[pa.Array], rows: int) -> pa.Array:
    """Give the engine's hash of columns, by the types in which they travel through Spark."""
    if not columns:
        return pa.array(np.zeros(rows, np.int64))
    return pa.array(xxhash64([conform(column, for_spark(column.type)) for column in columns], rows))


@dataclass(frozen=True)
class RowTask:
    """UPDATE and DELETE: the rows of the splits whose numbers arrive, filtered and changed.

    Args:
        target: reads the target.
        where: the condition; None for all rows.
        channels: makes of rows what the pass above takes.
        above: the pass of the processor.
        exchange: sends the rows to their writers within this task; None where that is Spark's business, or nobody's.
    """

    target: ScanPass
    where: PageExpression | None
    channels: ChangeChannels | DeleteChannels
    above: MergePass
    exchange: LocalExchange | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the splits."""
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        given = self.above(self._changed(numbers))
        yield from given if self.exchange is None else self.exchange(given)

    def _changed(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        evaluator = PageEvaluator(PageProgram(self.where))
        for page in self.target.read(numbers):
            kept = evaluator.filter(page)
            if kept.num_rows:
                yield self.channels.batch(JoinedRows(kept.num_rows, (Side(kept),)), evaluator)


_JOINED_ROWS = 1 << 16
"""So many joined rows are computed together at least, if there are."""


@dataclass(frozen=True)
class KeyJoin:
    """How the rows of both sides meet.

    Args:
        keys: pairs of symbols of columns that must be equal: of the target, of the source.
        rest: what ON asks for beside that; None for nothing.
        full: target rows without a source row stay.
    """

    keys: tuple[tuple[str, str], ...]
    rest: PageExpression | None
    full: bool

    def joined(self, target: Page, source: Page, evaluator: PageEvaluator) -> JoinedRows:
        """Join two pages: source row by source row, and last the target rows without one if they stay.

        Raises:
            ExecutionError: ON cannot be computed for a pair whose keys are equal; with its place.
        """
        rows, partners = self._pairs(target, source)
        if self.rest is not None and len(rows):
            pairs = JoinedRows(len(rows), (Side(target, partners), Side(source, rows)))
            true = evaluator.rows_where(self.rest, pairs.page(sorted(self.rest.reads)))
            rows, partners = rows[true], partners[true]
        alone = np.setdiff1d(np.arange(source.num_rows), rows)
        order = np.argsort(np.concatenate([rows, alone]), kind="stable")
        rows = np.concatenate([rows, alone])[order]
        partners = np.concatenate([partners, np.full(len(alone), NO_ROW)])[order]
        if self.full:
            unmatched = np.setdiff1d(np.arange(target.num_rows), partners)
            rows, partners = np.concatenate([rows, np.full(len(unmatched), NO_ROW)]), np.concatenate([partners, unmatched])
        return JoinedRows(len(rows), (Side(target, partners), Side(source, rows)))

    def index(self, source: Page) -> KeyIndex:
        """Make what finds the source rows of a page's keys."""
        return KeyIndex([source.column(right) for _, right in self.keys])

    def matches(self, pages: Iterable[Page], source: Page, index: KeyIndex, evaluator: PageEvaluator) -> Iterator[JoinedRows]:
        """Join pages of the target with the source; the source's rows without a partner are left out.

        Small pages are put together: what is computed for each has its price.

        Raises:
            ExecutionError: ON cannot be computed for a pair whose keys are equal; with its place.
        """
        waiting: list[tuple[Page, npt.NDArray[np.int64]]] = []
        count = 0
        for page in pages:
            partners, rows = index.matches([page.column(left) for left, _ in self.keys])
            if self.full:
                alone = np.setdiff1d(np.arange(page.num_rows), partners)
                partners, rows = np.concatenate([partners, alone]), np.concatenate([rows, np.full(len(alone), NO_ROW)])
            if len(rows):
                # Of the page only what has met is kept, a row for each of its partners.
                whole = len(rows) == page.num_rows and bool((partners == np.arange(page.num_rows)).all())
                waiting.append((page if whole else page.take(pa.array(partners)), rows))
                count += len(rows)
            if count >= _JOINED_ROWS:
                yield from self._checked(waiting, source, evaluator)
                waiting, count = [], 0
        if waiting:
            yield from self._checked(waiting, source, evaluator)

    def _checked(
        self, parts: Sequence[tuple[Page, npt.NDArray[np.int64]]], source: Page, evaluator: PageEvaluator
    ) -> Iterator[JoinedRows]:
        """Give the pairs for which the rest of ON is true, too."""
        target, rows = pa.concat_batches([page for page, _ in parts]), np.concatenate([rows for _, rows in parts])
        pairs = JoinedRows(len(rows), (Side(target), Side(source, rows)))
        if self.rest is not None:
            met = np.flatnonzero(rows != NO_ROW)
            true = met[evaluator.rows_where(self.rest, pairs.picked(met).page(sorted(self.rest.reads)))]
            pairs = self._with_the_rest(pairs, true) if self.full else pairs.picked(true)
        if pairs.count:
            yield pairs

    def _with_the_rest(self, pairs: JoinedRows, true: npt.NDArray[np.int64]) -> JoinedRows:
        """Keep of a FULL join each target row without a true pair, once and without a partner."""
        target, source = pairs.sides
        rows = source.rows
        assert rows is not None
        positions = target.page.column(POSITION).to_numpy()
        left = np.setdiff1d(positions, positions[true])
        _, first = np.unique(positions, return_index=True)
        alone = first[np.isin(positions[first], left)]
        kept = np.concatenate([true, alone])
        partners = np.concatenate([rows[true], np.full(len(alone), NO_ROW)])
        return JoinedRows(len(kept), (target.picked(kept), Side(source.page, partners)))

    def _pairs(self, target: Page, source: Page) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Give the pairs with equal keys: rows of the source, rows of the target."""
        if not self.keys:
            every = np.repeat(np.arange(source.num_rows), target.num_rows)
            return every, np.tile(np.arange(target.num_rows), source.num_rows)
        index = KeyIndex([target.column(left) for left, _ in self.keys])
        return index.matches([source.column(right) for _, right in self.keys])


@dataclass(frozen=True)
class JoinTask:
    """MERGE of a small target and a small source: one task has all of both.

    Args:
        target: reads the target.
        source: reads the source; None where its rows arrive, among others that are none of its, as the last channel says.
        source_schema: the channels of the source that arrive, by the plan's symbols.
        join: how the rows meet.
        channels: makes of joined rows what the pass above takes.
        above: the passes from MarkDistinct to the processor.
        exchange: sends the rows to their writers within this task; None where there is nothing between processor and writer.
    """

    target: ScanPass
    source: ScanPass | None
    source_schema: pa.Schema
    join: KeyJoin
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
            source = _whole([_named(batch, self.source_schema) for batch in kept], self.source_schema)
        else:
            source = _whole(self.source.pages(), self.source.schema)
        target = _whole(self.target.pages(), self.target.schema)
        # Both scans have a position; the target's is the one that is asked for by its name.
        numbers, source = _numbered_source(source)
        evaluator = PageEvaluator(PageProgram())
        rows = self.join.joined(target, source, evaluator)
        if rows.count:
            yield self.channels.batch(rows, evaluator, numbers)


def _named(batch: pa.RecordBatch, schema: pa.Schema) -> Page:
    """Give rows of Spark's the names and types of the plan's symbols."""
    return pa.RecordBatch.from_arrays(
        [conform(batch.column(index), channel.type) for index, channel in enumerate(schema)], schema=schema
    )


def _whole(pages: Iterable[Page], schema: pa.Schema) -> Page:
    found = list(pages)
    return pa.concat_batches(found) if found else pa.RecordBatch.from_pylist([], schema=schema)


@dataclass(frozen=True)
class PackPass:
    """Packs the rows of a source into a few cells, which Spark sends to every task.

    Args:
        source: reads the source, all of it in this one task; None where its rows arrive.
        schema: the source's channels, by the plan's symbols; of a table also the position behind them.
        most_bytes: more than that is not sent.
    """

    source: ScanPass | None
    schema: pa.Schema
    most_bytes: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Give the pieces: their numbers, how many rows are before them, and the rows as an Arrow stream."""
        number, first, size = 0, 0, 0
        # Both stages must have the rows of one packing: by this they see that they do.
        packing = uuid.uuid4().bytes
        for piece in _pieces(self._rows(batches), self.schema):
            size += piece.nbytes
            if size > self.most_bytes:
                msg = (
                    f"[[EXCEEDED_LOCAL_MEMORY_LIMIT]] The source of the MERGE is larger than {self.most_bytes >> 20} MiB, so it cannot be "
                    "sent to every task; rules_off={'change_in_task'} has Spark join it"
                )
                raise RuntimeError(msg)
            cell = pa.array([packing + cell_of(piece)], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([number], pa.int32()), pa.array([first]), cell], schema=PIECES)
            number, first = number + 1, first + piece.num_rows

    def _rows(self, batches: Batches) -> Iterator[Page]:
        if self.source is None:
            yield from (_named(batch, self.schema) for batch in batches)
            return
        # What arrives says nothing here, but a worker that leaves rows behind is not used again.
        deque(batches, maxlen=0)
        for page in self.source.marked(range(len(self.source.splits))):
            yield page.select(self.schema.names)


PIECES = pa.schema([("piece", pa.int32()), ("first", pa.int64()), ("cell", pa.binary())])
"""What is sent of a source: pieces of its rows."""
PIECE_ROWS = 1 << 17
"""The rows of a piece; the last one may have fewer."""


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
        yield _whole(waiting, schema)


_PACKING_BYTES = 16


def _piece(cell: pa.Scalar) -> Page:
    with pa.ipc.open_stream(cell.as_buffer()[_PACKING_BYTES:]) as stream:
        return stream.read_next_batch()


def _packing(cell: pa.Scalar) -> bytes:
    """Give what tells one packing of a source from another."""
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
        """Give all of its rows.

        Args:
            cells: the pieces that have arrived, by their numbers.
        """
        pages = self.scan.pages() if self.scan is not None else [_piece(cells[number]) for number in sorted(cells)]
        return _whole([page.select(self.schema.names) for page in pages], self.schema)


@dataclass(frozen=True)
class ReplicatedJoinTask:
    """MERGE with a source that every task has: each joins the splits that are its own with all of it.

    Which source rows it has matched it tells the stage of unmatched rows, piece by piece; where pieces have been packed, one task asks
    for them to be sent there as well.

    Args:
        target: reads the target.
        tasks: how many tasks there are; a task reads every split whose number leaves its own as the remainder.
        source: the source.
        join: how the rows meet.
        channels: makes of joined rows what the pass above takes.
        above: the passes from MarkDistinct to the sink.
    """

    target: ScanPass
    tasks: int
    source: ReplicatedSource
    join: KeyJoin
    channels: ChangeChannels
    above: MergePass

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the splits of one task."""
        task = None
        cells: dict[int, pa.Scalar] = {}
        for batch in batches:
            task = batch.column(0)[0].as_py()
            if self.source.scan is None:
                cells.update(
                    (piece, cell)
                    for piece, cell in zip(batch.column(1).to_pylist(), batch.column(3), strict=True)
                    if cell.is_valid
                )
        if task is None:
            # Spark has failed below, and throws away what comes out of this.
            return
        matched: list[npt.NDArray[np.bool_]] = []
        yield from self.above.work(self._joined(task, cells, matched), task)
        packing = _packing(next(iter(cells.values()))) if cells else bytes(_PACKING_BYTES)
        for number, start in enumerate(range(0, max(len(matched[0]), 1) if matched else 0, PIECE_ROWS)):
            bits = np.packbits(matched[0][start : start + PIECE_ROWS]).tobytes()
            yield outcome([(MATCHED_ROW, number, packing + bits)])
            if task == 0 and self.source.scan is None:
                yield outcome([(PIECE_ROW, number, b"")])

    def _joined(self, task: int, cells: dict[int, pa.Scalar], matched: list[npt.NDArray[np.bool_]]) -> Iterator[pa.RecordBatch]:
        """Join; what is told of a source row that was matched goes into the list, when the source is there."""
        numbers, source = _numbered_source(self.source.page(cells))
        matched.append(np.zeros(source.num_rows, bool))
        evaluator, index = PageEvaluator(PageProgram()), self.join.index(source)
        pages = self.target.read(range(task, len(self.target.splits), self.tasks))
        for rows in self.join.matches(pages, source, index, evaluator):
            partners = rows.sides[1].rows
            assert partners is not None
            matched[0][partners[partners != NO_ROW]] = True
            yield self.channels.batch(rows, evaluator, numbers)


@dataclass(frozen=True)
class UnmatchedPass:
    """The source rows that no task has matched; what the tasks of the stage before have said goes through as it is.

    Args:
        first: the number of the first writer of this stage; those below it are of the stage before.
        target_schema: the target's channels, which are NULL in all rows here.
        source: the source.
        channels: makes of joined rows what the pass above takes.
        above: the passes from MarkDistinct to the sink.
    """

    first: int
    target_schema: pa.Schema
    source: ReplicatedSource
    channels: ChangeChannels
    above: MergePass

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the pieces that have come to one task."""
        matched: dict[int, npt.NDArray[np.uint8]] = {}
        cells: dict[int, pa.Scalar] = {}
        packings: set[bytes] = set()
        for batch in batches:
            kinds = batch.column(0)
            through = batch.filter(pc.less(kinds, MATCHED_ROW)).select(OUTCOME.names)
            if through.num_rows:
                yield pa.RecordBatch.from_arrays(through.columns, schema=OUTCOME)
            for row in np.flatnonzero(kinds.to_numpy() >= MATCHED_ROW).tolist():
                piece = batch.column(1)[row].as_py()
                if kinds[row].as_py() == PIECE_ROW:
                    if batch.column(5)[row].is_valid:
                        cells[piece] = batch.column(5)[row]
                        packings.add(_packing(cells[piece]))
                else:
                    told = batch.column(2)[row].as_py()
                    packings.add(told[:_PACKING_BYTES])
                    bits = np.frombuffer(told, np.uint8, offset=_PACKING_BYTES)
                    matched[piece] = matched[piece] | bits if piece in matched else bits
        yield from self.above.work(self._unmatched(matched, cells, packings), self.first + task_partition())

    def _unmatched(
        self, matched: dict[int, npt.NDArray[np.uint8]], cells: dict[int, pa.Scalar], packings: set[bytes]
    ) -> Iterator[pa.RecordBatch]:
        if len(packings) > 1 or (
            self.source.scan is None and any(len(bits) for bits in matched.values()) and set(matched) != set(cells)
        ):
            msg = "The source of the MERGE was read twice, and its rows may have been others"
            hint = "rules_off={'change_in_task'} has Spark join it; please report this."
            raise ExecutionError(msg, step="join", hint=hint)
        nothing = pa.RecordBatch.from_pylist([], schema=self.target_schema)
        evaluator = PageEvaluator(PageProgram())
        whole = self.source.page({}) if self.source.scan is not None and matched else None
        for number, bits in sorted(matched.items()):
            first = number * PIECE_ROWS
            if not len(bits):
                # The one piece of a source without rows.
                continue
            page = whole.slice(first, PIECE_ROWS) if whole is not None else _piece(cells[number])
            numbers, piece = _numbered_source(page, first)
            rows = np.flatnonzero(np.unpackbits(bits, count=piece.num_rows) == 0)
            if len(rows):
                sides = (Side(nothing, np.full(len(rows), NO_ROW)), Side(piece, rows))
                yield self.channels.batch(JoinedRows(len(rows), sides), evaluator, numbers)


def _numbered_source(source: Page, first: int = 0) -> tuple[pa.Array, Page]:
    """Give the numbers of a source's rows and its other channels: a table's rows have a position, others are counted."""
    names = source.schema.names
    if POSITION in names:
        return source.column(POSITION), source.select([name for name in names if name != POSITION])
    return pa.array(np.arange(first, first + source.num_rows)), source


@dataclass(frozen=True)
class LocalExchange:
    """The exchange and the writers behind it, in the task that has all rows: as many sinks as there would be tasks.

    Args:
        writers: how many writers there are.
        by_columns: the channels whose hash decides over inserted rows where no bucket is given.
        by_row_id: the channel whose hash decides over other rows; None if they go by the columns as well.
        operation: the channel of the operation.
        above: the pass of the writers.
    """

    writers: int
    by_columns: tuple[int, ...]
    by_row_id: int | None
    operation: int
    above: WriterPass = field(repr=False)

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Feed the writers, one after the other."""
        arrived = [(batch, self._writer_of(batch)) for batch in batches]
        for writer in range(self.writers):
            rows = (batch.take(pa.array(np.flatnonzero(numbers == writer))) for batch, numbers in arrived)
            yield from self.above.write((batch for batch in rows if batch.num_rows), writer)

    def _writer_of(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Give the number of each row's writer, as Spark's exchange computes it; records go to the first."""
        by_columns = _hash([batch.column(index) for index in self.by_columns], batch.num_rows)
        hashed = by_columns.to_numpy()
        if self.by_row_id is not None:
            inserted = pc.is_in(batch.column(self.operation), value_set=self._inserts).to_numpy(zero_copy_only=False)
            hashed = np.where(inserted, hashed, _hash([batch.column(self.by_row_id)], batch.num_rows).to_numpy())
        bucket = batch.column(batch.schema.names.index(BUCKET))
        known = bucket.is_valid().to_numpy(zero_copy_only=False)
        numbers = np.where(known, pc.fill_null(bucket, 0).to_numpy(zero_copy_only=False), hashed) % self.writers
        is_record = batch.column(batch.schema.names.index(RECORD)).is_valid().to_numpy(zero_copy_only=False)
        return np.where(is_record, 0, numbers)

    @cached_property
    def _inserts(self) -> pa.Array:
        return pa.array([Operation.INSERT, Operation.UPDATE_INSERT], pa.int8())
