"""INSERT and CREATE TABLE AS within tasks, without rows in Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.next_steps import Refusal, null_refusal
from rowmerge_nb.engine.tasks.arrow import Batches, conform, gathered, page_in
from rowmerge_nb.engine.tasks.exchange import hashed
from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping
from rowmerge_nb.engine.tasks.outcome import FRAGMENT_ROW, RECORD_ROW, outcome
from rowmerge_nb.engine.tasks.page_program import PageProgram
from rowmerge_nb.engine.tasks.recorder import Recorder
from rowmerge_nb.engine.tasks.scan import CellPass
from rowmerge_nb.engine.tasks.sent_pages import SentPages, received_pages, sent, without_reports
from rowmerge_nb.engine.tasks.writer import abort, fragments_of, task_partition

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.exchange import Destination
    from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageEvaluator
    from rowmerge_nb.engine.tasks.page_query import QueryRows
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.page_sink import ConnectorPageSink

_SENT_ROWS: Final = 1 << 18
"""Rows partitioned at once: more rows mean fewer, larger cells."""


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
                recorder.record.row_count += page.num_rows
                recorder.record.operations = {1: recorder.record.row_count}
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


@dataclass(frozen=True)
class InsertedRows:
    """Computes the rows of an INSERT.

    Args:
        refusals: per column, the error that rejects NULL.
    """

    scan: ScanPass | None
    tasks: int
    query: QueryRows
    refusals: tuple[Refusal | None, ...]
    checks: tuple[AssignedColumn, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return self.query.schema

    def pages(self, batches: Batches) -> Iterator[Page]:
        """Yield the pages of the task numbers or cells that arrive."""
        with closing(PageProgram().evaluator(None)) as evaluator:
            for page in self.query.of(self._read(batches)):
                self._check(page, evaluator)
                yield page

    def _read(self, batches: Batches) -> Iterator[Page]:
        if self.scan is None:
            yield from CellPass()(batches)
            return
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield from self.scan.read(self.scan.share(task, self.tasks))

    def _check(self, page: Page, evaluator: PageEvaluator) -> None:
        for array, refusal in zip(page.columns, self.refusals, strict=True):
            if refusal is not None and array.null_count:
                raise refusal.error("Project")
        if self.checks:
            evaluator.values_of(self.checks, page)


@dataclass(frozen=True)
class ArrivedRows:
    schema: pa.Schema

    def pages(self, batches: Batches) -> Iterator[Page]:
        return (page_in(batch, self.schema) for batch in batches)


@dataclass(frozen=True)
class InsertTask:
    rows: InsertedRows
    above: InsertPass

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from self.above(self.rows.pages(batches))


@dataclass(frozen=True)
class InsertSenderPass:
    """Sends the rows of an INSERT to their writers, in files of `folder` unless it is None."""

    rows: InsertedRows | ArrivedRows
    destination: Destination
    writers: int
    folder: str | None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        recorder = Recorder(task_partition(), 0, caller="reader")
        try:
            with SentPages(self.folder, self.rows.schema) as sender:
                for page in gathered(self.rows.pages(batches), _SENT_ROWS):
                    places = self._places(page) % self.writers
                    yield from sender.to_writers(page, places, self.writers)
        except Exception as error:  # noqa: BLE001 - reported to the driver as a record
            recorder.failed(error, "Project")
            yield sent(0, None, recorder.serialize())

    def _places(self, page: Page) -> npt.NDArray[np.int64]:
        if self.destination.function is None:
            # In table order, like the hash of every exchange.
            numbers = hashed(
                [page.column(index) for index in sorted(self.destination.arguments)], page.num_rows
            )
        else:
            numbers = self.destination.buckets(page, np.arange(page.num_rows), 0)
        places: npt.NDArray[np.int64] = numbers.to_numpy().astype(np.int64, copy=False)
        return places


@dataclass(frozen=True)
class ReceivedInsertPass:
    """The writer of an INSERT whose rows arrive in cells."""

    above: InsertPass
    in_files: bool

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        reports: list[bytes] = []
        yield from self.above(
            gathered(received_pages(without_reports(batches, reports), in_files=self.in_files))
        )
        for report in reports:
            yield outcome([(RECORD_ROW, -1, report)])
