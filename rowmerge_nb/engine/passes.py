"""What runs in the tasks above a scan: checking and transforming merge rows, feeding sinks.

Each pass is a picklable callable from Arrow batches to Arrow batches, as Spark's ``mapInArrow`` wants it. A pass may be run more than
once for one partition, and its input may simply end when something fails on Spark's side; so nothing it does is visible before
the driver's ``finish_merge``. A Python error is not raised in the task: it is sent to the driver as a record, so that the failed
statement's trace survives.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.duplicates import NO_CLAUSE, NOTHING_FOUND, DuplicateRule, mark_distinct, match_patterns
from rowmerge_nb.engine.edge import conform, for_spark
from rowmerge_nb.engine.processors import MergeLayout, create_processor
from rowmerge_nb.engine.recorder import Recorder, TaskRecord, operation_text
from rowmerge_nb.engine.sinks import SinkFactory, task_partition
from rowmerge_nb.errors import ConnectorError, ExecutionError
from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.spi.layout import BucketFunction
    from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
    from rowmerge_nb.spi.operations import RowChangeParadigm
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.page_sink import ConnectorPageSink
    from rowmerge_nb.spi.updatable import UpdatablePageSource

__all__ = ["OUTCOME", "InsertPass", "MergePass", "PlacePass", "WriterPass", "abort", "fragments_of", "outcome"]

Batches = Iterable[pa.RecordBatch]

BUCKET: Final = "$bucket"
RECORD: Final = "$record"
RECORD_ROW, FRAGMENT_ROW = 0, 1
OUTCOME: Final = pa.schema([("kind", pa.int8()), ("writer", pa.int32()), ("payload", pa.binary())])
"""What the last pass of a statement gives the driver: records (kind 0) and fragments (kind 1)."""

WITNESSED_ROWS = 100
EVEN_ROWS: Final = 4096
"""So many rows of a task go to one writer before the next one gets some, where rows are spread evenly. All tasks begin with the same."""


@dataclass(frozen=True)
class Place:
    """How one kind of rows finds its writer.

    Args:
        function: the connector's bucket function; None for the engine's hash, which Spark computes.
        arguments: positions of the function's arguments among the channels of a transformed page.
        even: the rows are spread evenly, run by run, so that few of them have one writer.
    """

    function: BucketFunction | None = None
    arguments: tuple[int, ...] = ()
    even: bool = False

    def buckets(self, page: Page, rows: npt.NDArray[np.int64], start: int) -> pa.Array:
        """Give the bucket of some rows of a page (int32); NULL where the engine's hash decides.

        Args:
            page: a transformed page.
            rows: which rows.
            start: where even spreading goes on counting.
        """
        if self.even:
            return pa.array(((rows + start) // EVEN_ROWS).astype(np.int32))
        if self.function is None or not rows.size:
            return pa.nulls(rows.size, pa.int32())
        return self.function.get_buckets(page.select(list(self.arguments)).take(pa.array(rows))).cast(pa.int32())


@dataclass(frozen=True)
class Placing:
    """How the rows of an exchange find their writer: inserts (1, 4) by one place, deletes and updates (2, 3, 5) by the other."""

    inserts: Place
    updates: Place

    def buckets(self, page: Page, column_count: int, start: int) -> pa.Array:
        """Give the bucket of every row of a transformed page (int32); NULL where the engine's hash decides."""
        inserted = pc.is_in(page.column(column_count), value_set=_INSERTS).to_numpy(zero_copy_only=False)
        first, second = np.flatnonzero(inserted), np.flatnonzero(~inserted)
        parts = [self.inserts.buckets(page, first, start), self.updates.buckets(page, second, start)]
        order = np.argsort(np.concatenate([first, second]), kind="stable")
        return pa.concat_arrays(parts).take(pa.array(order))


@dataclass(frozen=True)
class MergePass:
    """From joined rows to rows to store: MarkDistinct, DuplicateCheck and MergeProcessor; fused, the writer too.

    Args:
        layout: the channels of the merge.
        paradigm: the connector's paradigm; None where there is no processor.
        rule: which repeated matches end the statement; None where no row can be matched twice.
        updates: the case numbers of UPDATE clauses, and ``deletes`` those of DELETE clauses.
        source_present: the position of the channel that marks rows with a source row; None unless the join is a FULL one.
        returning: the position of the channel with the row of RETURNING; None without one.
        witness: the type of the hidden witness channel, None if rows do not carry it.
        per_clause: how many rows per clause are sampled.
        placing: how rows find their writer; None without an exchange.
        sinks: makes sinks when the writer is in this pass; None behind an exchange.

    Its input channels are those of the page without ``is_distinct``, then ``unique_id``, those two, and the witness if there is one.
    """

    layout: MergeLayout
    paradigm: RowChangeParadigm | None
    rule: DuplicateRule | None
    witness: pa.DataType | None
    per_clause: int
    placing: Placing | None
    sinks: SinkFactory | None
    source_present: int | None = None
    returning: int | None = None
    updates: tuple[int, ...] = ()
    deletes: tuple[int, ...] = ()

    @property
    def exchanged(self) -> pa.Schema:
        """The channels that go into the exchange, in Spark's types: the transformed page, the bucket, and the record."""
        data = [pa.field(f"c{i}", for_spark(field.type)) for i, field in enumerate(self.layout.output_schema)]
        return pa.schema([*data, pa.field(BUCKET, pa.int32()), pa.field(RECORD, pa.binary())])

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on one partition."""
        recorder = Recorder(task_partition(), self.per_clause)
        try:
            pages = self._checked((batch for batch in batches if batch.num_rows), recorder)
        except Exception as error:  # noqa: BLE001 - whatever it is goes to the driver as a record
            recorder.failed(error, "MarkDistinct")
            pages = iter(())
        if self.sinks is not None:
            yield from _Writer(self.layout, self.sinks, recorder).run(self._transformed(pages, recorder))
            for record in recorder.returned:
                yield outcome([(RECORD_ROW, record.partition, pickle.dumps(record))])
            return
        spread = 0
        try:
            for page in self._transformed(pages, recorder):
                yield self._exchange_batch(page, spread)
                spread += page.num_rows
        except Exception as error:  # noqa: BLE001
            recorder.failed(error, "transform_page")
        if recorder.record.before or recorder.record.error or recorder.record.failing:
            yield self._record_batch(recorder.record)
        for record in recorder.returned:
            yield self._record_batch(record)

    def _checked(self, arriving: Iterator[pa.RecordBatch], recorder: Recorder) -> Iterator[tuple[Page, Page | None]]:
        """Mark and check all rows of the partition; give the input pages with their witnesses."""
        batches = list(arriving)
        if not batches or self.rule is None:
            return iter(())
        channels = len(self.layout.input_schema) - 1
        unique_id = pa.chunked_array([batch.column(channels) for batch in batches]).combine_chunks()
        cases = pa.chunked_array([batch.column(channels - 1) for batch in batches]).combine_chunks()
        recorder.record.matched += len(unique_id) - unique_id.null_count
        if self.source_present is not None:
            recorder.record.alone = sum(batch.column(self.source_present).null_count for batch in batches)
            recorder.record.matched -= recorder.record.alone
        numbers, counts = np.unique(pc.fill_null(cases, NO_CLAUSE).to_numpy(zero_copy_only=False), return_counts=True)
        recorder.record.clause_rows = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        recorder.record.patterns = match_patterns(unique_id, cases, self.updates, self.deletes)
        found = self.rule.check(unique_id, cases) if recorder.record.patterns else NOTHING_FOUND
        recorder.record.failing, recorder.record.warning = found.failing.tolist(), found.warning.tolist()[:WITNESSED_ROWS]
        if found.failing.size or found.warning.size:
            wanted = found.failing if found.failing.size else found.warning
            recorder.record.witnesses = self._witnesses(batches, wanted[:WITNESSED_ROWS])
        if found.failing.size:
            return iter(())
        return self._input_pages(batches, mark_distinct(unique_id, cases, self.layout.era), recorder)

    def _input_pages(
        self, batches: list[pa.RecordBatch], distinct: pa.Array, recorder: Recorder
    ) -> Iterator[tuple[Page, Page | None]]:
        schema = self.layout.input_schema
        start = 0
        while batches:
            batch = batches.pop(0)
            if self.returning is not None:
                recorder.give_back(batch.column(self.returning))
            marks = distinct.slice(start, batch.num_rows)
            start += batch.num_rows
            arrays = [conform(batch.column(i), field.type) for i, field in enumerate(list(schema)[:-1])]
            yield pa.RecordBatch.from_arrays([*arrays, marks], schema=schema), self._witness(batch)

    def _witness(self, batch: pa.RecordBatch) -> Page | None:
        if self.witness is None:
            return None
        return pa.RecordBatch.from_struct_array(conform(batch.column(batch.num_columns - 1), self.witness))

    def _witnesses(self, batches: list[pa.RecordBatch], ids: npt.NDArray[np.int64]) -> Page:
        """Take the rows of some target rows: unique_id, case_number, row_id, witness."""
        channels = len(self.layout.input_schema) - 1
        wanted, taken = pa.array(ids), []
        for batch in batches:
            rows = batch.filter(pc.is_in(batch.column(channels), value_set=wanted))
            row_id = conform(rows.column(channels - 3), self.layout.row_id)
            arrays = {"unique_id": rows.column(channels), "case_number": rows.column(channels - 1), "row_id": row_id}
            if self.witness is not None:
                arrays["witness"] = conform(rows.column(rows.num_columns - 1), self.witness)
            taken.append(pa.RecordBatch.from_pydict(arrays))
        return pa.concat_batches(taken)

    def _transformed(self, pages: Iterable[tuple[Page, Page | None]], recorder: Recorder) -> Iterator[Page]:
        if self.paradigm is None:
            msg = "Merge rows need a processor"
            raise ValueError(msg)
        processor = create_processor(self.paradigm, self.layout)
        number = len(self.layout.input_schema) - 2
        for before, witness in pages:
            after = processor.transform_page(before)
            cases = pc.fill_null(before.column(number), NO_CLAUSE).to_numpy(zero_copy_only=False)
            recorder.transformed(before, after, processor.rows_produced(before), cases, witness)
            if after.num_rows:
                yield after

    def _exchange_batch(self, page: Page, spread: int) -> pa.RecordBatch:
        if self.placing is None:
            buckets = pa.nulls(page.num_rows, pa.int32())
        else:
            buckets = self.placing.buckets(page, len(self.layout.columns), spread)
        schema = self.exchanged
        data = [conform(page.column(i), schema.field(i).type) for i in range(page.num_columns)]
        return pa.RecordBatch.from_arrays([*data, buckets, pa.nulls(page.num_rows, pa.binary())], schema=schema)

    def _record_batch(self, record: TaskRecord) -> pa.RecordBatch:
        schema = self.exchanged
        arrays = [*(pa.nulls(1, field.type) for field in schema)]
        arrays[-2:] = [pa.array([0], pa.int32()), pa.array([pickle.dumps(record)], pa.binary())]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(frozen=True)
class WriterPass:
    """The writer behind an exchange: hands pages to a sink, and passes on the records that travelled through the exchange."""

    layout: MergeLayout
    sinks: SinkFactory
    per_clause: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the rows of one writer."""
        recorder = Recorder(task_partition(), self.per_clause)
        passed: list[bytes] = []
        pages = self._pages(batches, passed)
        yield from _Writer(self.layout, self.sinks, recorder).run(pages)
        # A writer that failed has stopped taking pages; the records among the rest must still reach the driver.
        deque(pages, maxlen=0)
        for record in passed:
            yield outcome([(RECORD_ROW, -1, record)])

    def _pages(self, batches: Batches, passed: list[bytes]) -> Iterator[Page]:
        schema = self.layout.output_schema
        for batch in batches:
            records = batch.column(batch.num_columns - 1)
            passed.extend(records.drop_null().to_pylist())
            rows = batch.filter(records.is_null()) if records.null_count < len(records) else batch
            if rows.num_rows:
                arrays = [conform(rows.column(i), field.type) for i, field in enumerate(schema)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Writer:
    """Feeds one sink, from the first page to its fragments."""

    def __init__(self, layout: MergeLayout, sinks: SinkFactory, recorder: Recorder) -> None:
        self.layout = layout
        self.sinks = sinks
        self.recorder = recorder
        self.sink: ConnectorMergeSink | None = None

    def run(self, pages: Iterator[Page]) -> Iterator[pa.RecordBatch]:
        """Store all pages; give the fragments and the record, or after a failure the record alone."""
        fragments: list[bytes] = []
        try:
            self._step = "transform_page"
            for page in pages:
                self._store(page)
            if self.sink is not None and self.recorder.record.error is None:
                fragments = self._finish(self.sink)
        except Exception as error:  # noqa: BLE001 - whatever it is goes to the driver as a record
            self.recorder.failed(error, self._step)
            fragments = []
            if self.sink is not None:
                abort(self.sink, self.recorder)
        writer = self.recorder.record.partition
        for fragment in fragments:
            yield outcome([(FRAGMENT_ROW, writer, fragment)])
        if self.recorder.record != TaskRecord(writer):
            yield outcome([(RECORD_ROW, writer, pickle.dumps(self.recorder.record))])

    def _store(self, page: Page) -> None:
        recorder = self.recorder
        if self.sink is None:
            self._step = "create_merge_sink"
            with recorder.call("create_merge_sink"):
                self.sink = self.sinks()
        columns = len(self.layout.columns)
        operations = page.column(columns)
        from_updates = pc.sum(page.column(page.num_columns - 1)).as_py() or 0
        stored = page.select(list(range(page.num_columns - 1)))
        self._step = "store_merged_rows"
        with recorder.call("store_merged_rows", operation_text(operations), stored):
            self.sink.store_merged_rows(stored)
        recorder.stored(stored, operations, page.num_rows - from_updates)
        self._step = "transform_page"

    def _finish(self, sink: ConnectorMergeSink) -> list[bytes]:
        self._step = "finish"
        with self.recorder.call("finish") as given:
            fragments = fragments_of(sink.finish(), type(sink).__name__)
            given.extend(fragments)
        self.recorder.record.fragments = [len(fragment) for fragment in fragments]
        return fragments


@dataclass(frozen=True)
class PlacePass:
    """Adds to the rows of an INSERT the bucket of each, by which they find their writer.

    Args:
        schema: the table's columns.
        place: how the insert layout places rows.
    """

    schema: pa.Schema
    place: Place

    @property
    def exchanged(self) -> pa.Schema:
        """The channels that go into the exchange, in Spark's types: the columns and the bucket."""
        data = [pa.field(f"c{i}", for_spark(field.type)) for i, field in enumerate(self.schema)]
        return pa.schema([*data, pa.field(BUCKET, pa.int32())])

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on one partition."""
        for batch in batches:
            arrays = [conform(batch.column(i), field.type) for i, field in enumerate(self.schema)]
            page = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            bucket = self.place.buckets(page, np.arange(page.num_rows), 0)
            yield pa.RecordBatch.from_arrays([*batch.columns[: len(self.schema)], bucket], schema=self.exchanged)


@dataclass(frozen=True)
class InsertPass:
    """The writer of INSERT and CREATE TABLE AS: hands pages to a page sink.

    Args:
        schema: the table's columns, as the sink gets them.
        required: positions of the NOT NULL columns.
        make_sink: makes the sink.
    """

    schema: pa.Schema
    required: tuple[int, ...]
    make_sink: Callable[[], ConnectorPageSink]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on one partition."""
        recorder = Recorder(task_partition(), 0)
        sink: ConnectorPageSink | None = None
        fragments: list[bytes] = []
        step = "create_page_sink"
        try:
            for batch in batches:
                if not batch.num_rows:
                    continue
                page = self._page(batch)
                if sink is None:
                    with recorder.call("create_page_sink"):
                        sink = self.make_sink()
                step = "append_page"
                with recorder.call("append_page", f"I {page.num_rows}", page):
                    sink.append_page(page)
                recorder.record.pages += 1
                recorder.record.counted += page.num_rows
                recorder.record.operations = {1: recorder.record.counted}
            step = "finish"
            if sink is not None:
                with recorder.call("finish") as given:
                    fragments = fragments_of(sink.finish(), type(sink).__name__)
                    given.extend(fragments)
                recorder.record.fragments = [len(fragment) for fragment in fragments]
        except Exception as error:  # noqa: BLE001
            recorder.failed(error, step)
            fragments = []
            if sink is not None:
                abort(sink, recorder)
        writer = recorder.record.partition
        rows = [(FRAGMENT_ROW, writer, fragment) for fragment in fragments]
        for row in [*rows, (RECORD_ROW, writer, pickle.dumps(recorder.record))]:
            yield outcome([row])

    def _page(self, batch: pa.RecordBatch) -> Page:
        arrays = [conform(batch.column(i), field.type) for i, field in enumerate(self.schema)]
        for index in self.required:
            if arrays[index].null_count:
                msg = f"NULL value not allowed for NOT NULL column: {self.schema.field(index).name}"
                raise ExecutionError(msg, code="CONSTRAINT_VIOLATION", step="append_page")
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def fragments_of(given: Collection[bytes] | Future[Collection[bytes]], sink: str) -> list[bytes]:
    """Wait for a sink's fragments and check that they are bytes."""
    collection: Any = given.result() if isinstance(given, Future) else given
    if not isinstance(collection, Collection):
        msg = f"{sink}.finish() gave {type(collection).__name__}; it gives a collection of bytes, or a future of one"
        raise ConnectorError(msg, code="GENERIC_INTERNAL_ERROR")
    fragments = list(collection)
    for fragment in fragments:
        if type(fragment) is not bytes:
            msg = f"{sink}.finish() gave a fragment of type {type(fragment).__name__}; fragments are bytes"
            raise ConnectorError(msg, code="GENERIC_INTERNAL_ERROR")
    return fragments


def abort(writing: ConnectorMergeSink | ConnectorPageSink | UpdatablePageSource, recorder: Recorder) -> None:
    """Have dropped what was stored; the error that led here is the one to tell, and a call that fails is in the log."""
    recorder.record.aborted = True
    with suppress(Exception), recorder.call("abort"):
        writing.abort()


def outcome(rows: list[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """Give records and fragments in the form of ``OUTCOME``: kind, writer, payload."""
    kinds, writers, payloads = zip(*rows, strict=True)
    arrays = [pa.array(kinds, pa.int8()), pa.array(writers, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=OUTCOME)


_INSERTS: Final = pa.array([Operation.INSERT, Operation.UPDATE_INSERT], pa.int8())
