"""Sinks, and the writer that feeds one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.names import class_name
from rowmerge_nb.engine.tasks.outcome import FRAGMENT_ROW, RECORD_ROW, outcome
from rowmerge_nb.engine.tasks.recorder import Recorder, TaskRecord, operation_text

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


def fragments_of(result: Collection[bytes] | Future[Collection[bytes]], sink: str) -> list[bytes]:
    """Wait for a sink's fragments and check that they are bytes."""
    collection: Any = result.result() if isinstance(result, Future) else result
    if not isinstance(collection, Collection):
        raise ConnectorError(
            f"{sink}.finish() returned {type(collection).__name__}; it must return a"
            " collection of bytes, or a future of one",
            code="GENERIC_INTERNAL_ERROR",
        )
    fragments = list(collection)
    for fragment in fragments:
        if type(fragment) is not bytes:
            raise ConnectorError(
                f"{sink}.finish() returned a fragment of type"
                f" {type(fragment).__name__}; fragments must be bytes",
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
