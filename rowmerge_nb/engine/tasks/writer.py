"""Passes that write."""

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

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.next_steps import null_refusal
from rowmerge_nb.engine.tasks.arrow import Batches, conform, gathered
from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping
from rowmerge_nb.engine.tasks.outcome import FRAGMENT_ROW, RECORD_ROW, outcome
from rowmerge_nb.engine.tasks.recorder import Recorder, TaskRecord, operation_text
from rowmerge_nb.engine.tasks.sent_pages import received_pages, without_reports
from rowmerge_nb.spi.handles import class_name

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import ConnectorSession, ConnectorTransactionHandle
    from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
    from rowmerge_nb.spi.page import Page, PageLayout
    from rowmerge_nb.spi.page_sink import ConnectorPageSink
    from rowmerge_nb.spi.updatable import UpdatablePageSource


@dataclass(frozen=True)
class SinkFactory:
    provider: Any
    transaction: ConnectorTransactionHandle
    session: ConnectorSession
    handle: Any

    def __call__(self, writer: int) -> ConnectorMergeSink:
        session = replace(self.session, writer=writer)
        sink: ConnectorMergeSink = self.provider.create_merge_sink(
            self.transaction, session, self.handle
        )
        return sink


@dataclass(frozen=True)
class PageSinkFactory:
    provider: Any
    transaction: ConnectorTransactionHandle
    session: ConnectorSession
    handle: Any

    def __call__(self) -> ConnectorPageSink:
        session = replace(self.session, writer=task_partition())
        sink: ConnectorPageSink = self.provider.create_page_sink(
            self.transaction, session, self.handle
        )
        return sink


def task_partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


@dataclass(frozen=True)
class WriterPass:
    """The writer behind an exchange: passes pages to a sink, and forwards the records of the
    previous stage.

    Args:
        in_files: arriving cells refer to files; see `received_pages`.
    """

    layout: PageLayout
    sinks: SinkFactory
    per_clause: int
    keeping: Keeping = IN_CASE
    in_files: bool = False

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        reports: list[bytes] = []
        cells = without_reports(batches, reports)
        pages = gathered(received_pages(cells, in_files=self.in_files))
        yield from self.store(pages, reports, task_partition())

    def store(
        self, pages: Iterator[Page], reports: list[bytes], writer: int
    ) -> Iterator[pa.RecordBatch]:
        """Store pages, then forward the records; both may grow while pages are read."""
        recorder = Recorder(writer, self.per_clause, keeping=self.keeping)
        yield from MergeSinkWriter(self.layout, self.sinks, recorder).run(pages)
        # A failed writer stops reading; the records among the rest must still reach the driver.
        deque(pages, maxlen=0)
        for report in reports:
            yield outcome([(RECORD_ROW, -1, report)])


class MergeSinkWriter:
    """Feeds one sink, from the first page to its fragments."""

    def __init__(self, layout: PageLayout, sinks: SinkFactory, recorder: Recorder) -> None:
        self.layout = layout
        self.sinks = sinks
        self.recorder = recorder
        recorder.handle = sinks.handle
        self.sink: ConnectorMergeSink | None = None

    def run(self, pages: Iterator[Page]) -> Iterator[pa.RecordBatch]:
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
        except Exception as error:  # noqa: BLE001 - reported to the driver as a record
            self.recorder.failed(error, self._step)
            fragments = []
            if self.sink is not None:
                abort(self.sink, self.recorder)
        writer = self.recorder.record.partition
        for fragment in fragments:
            yield outcome([(FRAGMENT_ROW, writer, fragment)])
        if self.recorder.record != TaskRecord(writer):
            yield outcome([(RECORD_ROW, writer, self.recorder.serialize())])

    def _store(self, page: Page) -> None:
        recorder = self.recorder
        stored_page = self.layout.stored_page(page)
        recorder.retain(stored_page)
        if self.sink is None:
            self._step = "create_merge_sink"
            with recorder.call(
                "create_merge_sink",
                "" if recorder.handle is None else class_name(recorder.handle),
            ):
                self.sink = self.sinks(recorder.record.partition)
        operations = page.column(self.layout.after.operation)
        from_updates = pc.sum(page.column(self.layout.after.insert_from_update)).as_py() or 0
        self._step = "store_merged_rows"
        with recorder.call("store_merged_rows", operation_text(operations), stored_page):
            self.sink.store_merged_rows(stored_page)
        recorder.stored(self.layout, stored_page, operations, page.num_rows - from_updates)
        self._step = "transform_page"

    def _finish(self, sink: ConnectorMergeSink) -> list[bytes]:
        self._step = "finish"
        with self.recorder.call("finish") as call:
            fragments = fragments_of(sink.finish(), type(sink).__name__)
            call.extend(fragments)
        self.recorder.record.fragments = [len(fragment) for fragment in fragments]
        return fragments


@dataclass(frozen=True)
class InsertPass:
    schema: pa.Schema
    required: tuple[int, ...]
    make_sink: Callable[[], ConnectorPageSink]
    keeping: Keeping = IN_CASE
    handle: object = None
    returning: int | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from self.write(
            batches, Recorder(task_partition(), 0, keeping=self.keeping, handle=self.handle)
        )

    def write(self, batches: Batches, recorder: Recorder) -> Iterator[pa.RecordBatch]:
        sink: ConnectorPageSink | None = None
        fragments: list[bytes] = []
        step = "create_page_sink"
        try:
            for batch in batches:
                if not batch.num_rows:
                    continue
                page = self._page(batch)
                recorder.retain(page)
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
                    recorder.add_returned(batch.column(self.returning))
            step = "finish"
            if sink is not None:
                with recorder.call("finish") as call:
                    fragments = fragments_of(sink.finish(), type(sink).__name__)
                    call.extend(fragments)
                recorder.record.fragments = [len(fragment) for fragment in fragments]
        except Exception as error:  # noqa: BLE001
            recorder.failed(error, step)
            fragments = []
            if sink is not None:
                abort(sink, recorder)
        writer = recorder.record.partition
        rows = [(FRAGMENT_ROW, writer, fragment) for fragment in fragments]
        rows += [(RECORD_ROW, writer, pickle.dumps(record)) for record in recorder.returned]
        for row in [*rows, (RECORD_ROW, writer, recorder.serialize())]:
            yield outcome([row])

    def _page(self, batch: pa.RecordBatch) -> Page:
        arrays = [conform(batch.column(i), field.type) for i, field in enumerate(self.schema)]
        for index in self.required:
            if arrays[index].null_count:
                raise null_refusal(self.schema.field(index).name).error("append_page")
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def fragments_of(result: Collection[bytes] | Future[Collection[bytes]], sink: str) -> list[bytes]:
    """Wait for a sink's fragments and check that they are bytes."""
    collection: Any = result.result() if isinstance(result, Future) else result
    if not isinstance(collection, Collection):
        raise ConnectorError(
            f"{sink}.finish() gave {type(collection).__name__}; it gives a collection of bytes, or"
            " a future of one",
            code="GENERIC_INTERNAL_ERROR",
        )
    fragments = list(collection)
    for fragment in fragments:
        if type(fragment) is not bytes:
            raise ConnectorError(
                f"{sink}.finish() gave a fragment of type {type(fragment).__name__}; fragments are"
                " bytes",
                code="GENERIC_INTERNAL_ERROR",
            )
    return fragments


def abort(
    writing: ConnectorMergeSink | ConnectorPageSink | UpdatablePageSource, recorder: Recorder
) -> None:
    """Abort a sink and log an error of that call, because the original error is the one to report."""
    recorder.record.aborted = True
    with suppress(Exception), recorder.call("abort"):
        writing.abort()
