"""INSERT and CREATE TABLE AS within tasks, without rows in Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.next_steps import Refusal
from rowmerge_nb.engine.tasks.arrow import Batches, gathered, page_in
from rowmerge_nb.engine.tasks.exchange import hashed
from rowmerge_nb.engine.tasks.outcome import RECORD_ROW, outcome
from rowmerge_nb.engine.tasks.page_program import PageProgram
from rowmerge_nb.engine.tasks.recorder import Recorder
from rowmerge_nb.engine.tasks.scan import CellPass
from rowmerge_nb.engine.tasks.sent_pages import SentPages, received_pages, sent, without_reports
from rowmerge_nb.engine.tasks.writer import InsertPass, task_partition

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.exchange import Destination
    from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageEvaluator
    from rowmerge_nb.engine.tasks.page_query import QueryRows
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.spi.page import Page

_SENT_ROWS: Final = 1 << 18
"""Rows partitioned at once: more rows mean fewer, larger cells."""


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
