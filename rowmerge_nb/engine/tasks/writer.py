"""How tasks come by their sinks: each is told which of the statement's writers it is."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError, ExecutionError
from rowmerge_nb.engine.tasks.arrow import Batches, conform
from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping
from rowmerge_nb.engine.tasks.outcome import FRAGMENT_ROW, RECORD, RECORD_ROW, outcome
from rowmerge_nb.engine.tasks.recorder import Recorder, TaskRecord, operation_text

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import ConnectorSession, ConnectorTransactionHandle
    from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
    from rowmerge_nb.spi.page import Page, PageLayout
    from rowmerge_nb.spi.page_sink import ConnectorPageSink
    from rowmerge_nb.spi.updatable import UpdatablePageSource


@dataclass(frozen=True)
class SinkFactory:
    """Makes the merge sink of a task."""

    provider: Any
    transaction: ConnectorTransactionHandle
    session: ConnectorSession
    handle: Any

    def __call__(self, writer: int) -> ConnectorMergeSink:
        """Make the sink of a writer."""
        session = replace(self.session, writer=writer)
        sink: ConnectorMergeSink = self.provider.create_merge_sink(self.transaction, session, self.handle)
        return sink


@dataclass(frozen=True)
class PageSinkFactory:
    """Makes the page sink of a task."""

    provider: Any
    transaction: ConnectorTransactionHandle
    session: ConnectorSession
    handle: Any

    def __call__(self) -> ConnectorPageSink:
        """Make a sink."""
        session = replace(self.session, writer=task_partition())
        sink: ConnectorPageSink = self.provider.create_page_sink(self.transaction, session, self.handle)
        return sink


def task_partition() -> int:
    """Return the number of the partition that this task works on; 0 outside of a task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


@dataclass(frozen=True)
class WriterPass:
    """The writer behind an exchange: hands pages to a sink, and passes on the records that travelled through the exchange.

    Args:
        layout: where the channels lie.
        columns: the table's columns in table order and, last, the row id.
        sinks: makes the sink.
        per_clause: how many rows are kept.
        keeping: which pages are kept of those that the sink gets.
    """

    layout: PageLayout
    columns: pa.Schema
    sinks: SinkFactory
    per_clause: int
    keeping: Keeping = IN_CASE

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the rows of the writer that this task is."""
        yield from self.write(batches, task_partition())

    def write(self, batches: Batches, writer: int) -> Iterator[pa.RecordBatch]:
        """Work on the rows of one writer."""
        recorder = Recorder(writer, self.per_clause, keeping=self.keeping)
        passed: list[bytes] = []
        pages = self._pages(batches, passed)
        yield from MergeSinkWriter(self.layout, self.sinks, recorder).run(pages)
        # A writer that failed has stopped taking pages; the records among the rest must still reach the driver.
        deque(pages, maxlen=0)
        for record in passed:
            yield outcome([(RECORD_ROW, -1, record)])

    def _pages(self, batches: Batches, passed: list[bytes]) -> Iterator[Page]:
        schema = self.layout.output_schema(self.columns)
        for batch in batches:
            records = batch.column(RECORD)
            passed.extend(records.drop_null().to_pylist())
            rows = batch.filter(records.is_null()) if records.null_count < len(records) else batch
            if rows.num_rows:
                arrays = [conform(rows.column(i), field.type) for i, field in enumerate(schema)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class MergeSinkWriter:
    """Feeds one sink, from the first page to its fragments."""

    def __init__(self, layout: PageLayout, sinks: SinkFactory, recorder: Recorder) -> None:
        self.layout = layout
        self.sinks = sinks
        self.recorder = recorder
        recorder.handle = sinks.handle
        self.sink: ConnectorMergeSink | None = None

    def run(self, pages: Iterator[Page]) -> Iterator[pa.RecordBatch]:
        """Store all pages; give the fragments and the record, or after a failure the record alone."""
        fragments: list[bytes] = []
        try:
            self._step = "transform_page"
            for page in pages:
                self._store(page)
            if self.sink is not None:
                if self.recorder.record.error is None and not self.recorder.record.failing:
                    fragments = self._finish(self.sink)
                else:
                    abort(self.sink, self.recorder)
        except Exception as error:  # noqa: BLE001 - whatever it is goes to the driver as a record
            self.recorder.failed(error, self._step)
            fragments = []
            if self.sink is not None:
                abort(self.sink, self.recorder)
        writer = self.recorder.record.partition
        for fragment in fragments:
            yield outcome([(FRAGMENT_ROW, writer, fragment)])
        if self.recorder.record != TaskRecord(writer):
            yield outcome([(RECORD_ROW, writer, self.recorder.told())])

    def _store(self, page: Page) -> None:
        recorder = self.recorder
        stored = self.layout.stored_page(page)
        recorder.handing(stored)
        if self.sink is None:
            self._step = "create_merge_sink"
            with recorder.call("create_merge_sink", "" if recorder.handle is None else type(recorder.handle).__name__):
                self.sink = self.sinks(recorder.record.partition)
        operations = page.column(self.layout.after.operation)
        from_updates = pc.sum(page.column(self.layout.after.insert_from_update)).as_py() or 0
        self._step = "store_merged_rows"
        with recorder.call("store_merged_rows", operation_text(operations), stored):
            self.sink.store_merged_rows(stored)
        recorder.stored(self.layout, stored, operations, page.num_rows - from_updates)
        self._step = "transform_page"

    def _finish(self, sink: ConnectorMergeSink) -> list[bytes]:
        self._step = "finish"
        with self.recorder.call("finish") as given:
            fragments = fragments_of(sink.finish(), type(sink).__name__)
            given.extend(fragments)
        self.recorder.record.fragments = [len(fragment) for fragment in fragments]
        return fragments


@dataclass(frozen=True)
class InsertPass:
    """The writer of INSERT and CREATE TABLE AS: hands pages to a page sink.

    Args:
        schema: the table's columns, as the sink gets them.
        required: positions of the NOT NULL columns.
        make_sink: makes the sink.
        keeping: which pages are kept of those that the sink gets.
        handle: the handle that sinks are made with, which is told beside an error of the connector's code.
        returning: the position of the channel with the row of RETURNING; None without one.
    """

    schema: pa.Schema
    required: tuple[int, ...]
    make_sink: Callable[[], ConnectorPageSink]
    keeping: Keeping = IN_CASE
    handle: object = None
    returning: int | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the partition of this task."""
        yield from self.write(batches, Recorder(task_partition(), 0, keeping=self.keeping, handle=self.handle))

    def write(self, batches: Batches, recorder: Recorder) -> Iterator[pa.RecordBatch]:
        """Work on one partition."""
        sink: ConnectorPageSink | None = None
        fragments: list[bytes] = []
        step = "create_page_sink"
        try:
            for batch in batches:
                if not batch.num_rows:
                    continue
                page = self._page(batch)
                recorder.handing(page)
                if sink is None:
                    with recorder.call("create_page_sink"):
                        sink = self.make_sink()
                step = "append_page"
                with recorder.call("append_page", f"I {page.num_rows}", page):
                    sink.append_page(page)
                recorder.record.pages += 1
                recorder.record.counted += page.num_rows
                recorder.record.operations = {1: recorder.record.counted}
                if self.returning is not None:
                    recorder.give_back(batch.column(self.returning))
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
        rows += [(RECORD_ROW, writer, pickle.dumps(record)) for record in recorder.returned]
        for row in [*rows, (RECORD_ROW, writer, recorder.told())]:
            yield outcome([row])

    def _page(self, batch: pa.RecordBatch) -> Page:
        arrays = [conform(batch.column(i), field.type) for i, field in enumerate(self.schema)]
        for index in self.required:
            if arrays[index].null_count:
                raise ExecutionError(
                    f"NULL value not allowed for NOT NULL column: {self.schema.field(index).name}",
                    code="CONSTRAINT_VIOLATION",
                    step="append_page",
                )
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def fragments_of(given: Collection[bytes] | Future[Collection[bytes]], sink: str) -> list[bytes]:
    """Wait for a sink's fragments and check that they are bytes."""
    collection: Any = given.result() if isinstance(given, Future) else given
    if not isinstance(collection, Collection):
        raise ConnectorError(
            f"{sink}.finish() gave {type(collection).__name__}; it gives a collection of bytes, or a future of one",
            code="GENERIC_INTERNAL_ERROR",
        )
    fragments = list(collection)
    for fragment in fragments:
        if type(fragment) is not bytes:
            raise ConnectorError(
                f"{sink}.finish() gave a fragment of type {type(fragment).__name__}; fragments are bytes",
                code="GENERIC_INTERNAL_ERROR",
            )
    return fragments


def abort(writing: ConnectorMergeSink | ConnectorPageSink | UpdatablePageSource, recorder: Recorder) -> None:
    """Drop what was stored. The error that led here is the one to report; a call that fails is in the log."""
    recorder.record.aborted = True
    with suppress(Exception), recorder.call("abort"):
        writing.abort()
