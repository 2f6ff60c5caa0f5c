"""The writer of each row."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.arrow import Batches, conform, for_spark, gathered
from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping
from rowmerge_nb.engine.tasks.outcome import RECORD_ROW, outcome
from rowmerge_nb.engine.tasks.recorder import Recorder, TaskRecord
from rowmerge_nb.engine.tasks.sent_pages import SentPages, received_pages, sent, without_reports
from rowmerge_nb.engine.tasks.writer import MergeSinkWriter, task_partition
from rowmerge_nb.engine.tasks.xxhash import xxhash64
from rowmerge_nb.spi.page import INSERTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.merge_passes import ChangedRows
    from rowmerge_nb.engine.tasks.writer import SinkFactory
    from rowmerge_nb.spi.layout import BucketFunction
    from rowmerge_nb.spi.page import Page, PageLayout


def hash_expression(columns: Sequence[str]) -> str:
    """Return Spark SQL of the engine's hash of columns; 0 without columns.

    >>> hash_expression(["c0", "c2"]), hash_expression([])
    ('xxhash64(c0, c2)', '0')
    """
    return f"xxhash64({', '.join(columns)})" if columns else "0"


def hashed(columns: Sequence[pa.Array], rows: int) -> pa.Array:
    if not columns:
        # As in `hash_expression`.
        return pa.array(np.zeros(rows, np.int64))
    return pa.array(xxhash64([conform(column, for_spark(column.type)) for column in columns], rows))


@dataclass(frozen=True)
class Destination:
    """The rule by which rows find their writer.

    Args:
        even: spread rows in runs, so that a few rows share a writer.
    """

    function: BucketFunction | None = None
    arguments: tuple[int, ...] = ()
    even: bool = False

    def buckets(self, page: Page, rows: npt.NDArray[np.int64], start: int) -> pa.Array:
        """Return the buckets of some rows of a transformed page; NULL if the engine's hash decides.

        Even spreading starts at `start`.
        """
        if self.even:
            return pa.array(((rows + start) // EVEN_ROWS).astype(np.int32))
        if self.function is None or not rows.size:
            return pa.nulls(rows.size, pa.int32())
        return self.function.get_buckets(
            page.select(list(self.arguments)).take(pa.array(rows))
        ).cast(pa.int32())


@dataclass(frozen=True)
class Placing:
    """The destinations of inserts (operations 1, 4) and of deletes and updates (2, 3, 5)."""

    inserts: Destination
    updates: Destination

    def buckets(self, page: Page, layout: PageLayout, start: int) -> pa.Array:
        """Return the bucket of every row of a transformed page; see `Destination.buckets`."""
        inserted = pc.is_in(page.column(layout.after.operation), value_set=INSERTS).to_numpy(
            zero_copy_only=False
        )
        first, second = np.flatnonzero(inserted), np.flatnonzero(~inserted)
        parts = [
            self.inserts.buckets(page, first, start),
            self.updates.buckets(page, second, start),
        ]
        order = np.argsort(np.concatenate([first, second]), kind="stable")
        return pa.concat_arrays(parts).take(pa.array(order))

    def numbers(self, page: Page, layout: PageLayout, buckets: pa.Array) -> pa.Array:
        """Return the number that selects every row's writer."""
        # In table order, like the channel ``hash``, so that equal values have equal hashes.
        inserts, updates = sorted(self.inserts.arguments), sorted(self.updates.arguments)
        return pa.array(places_of(page, buckets, inserts, updates, layout.after.operation))


@dataclass(frozen=True)
class PartitionFunction:
    """The function from changed rows to the numbers of their writers.

    Args:
        by_row_id: the channel hashed for other rows; None to use `by_columns`.
    """

    writers: int
    by_columns: tuple[int, ...]
    by_row_id: int | None
    operation: int

    def partitions(self, rows: ChangedRows) -> npt.NDArray[np.int64]:
        others = self.by_columns if self.by_row_id is None else (self.by_row_id,)
        places = places_of(rows.page, rows.buckets, self.by_columns, others, self.operation)
        return places % self.writers


@dataclass(frozen=True)
class LocalExchange:
    """The exchange and its writers within the task that has all rows: one sink per writer."""

    function: PartitionFunction
    above: WriterPass = field(repr=False)

    def __call__(self, changed: Iterable[ChangedRows | TaskRecord]) -> Iterator[pa.RecordBatch]:
        arrived: list[tuple[Page, npt.NDArray[np.int64]]] = []
        reports: list[bytes] = []
        for rows in changed:
            if isinstance(rows, TaskRecord):
                reports.append(pickle.dumps(rows))
            else:
                arrived.append((rows.page, self.function.partitions(rows)))
        for writer in range(self.function.writers):
            pages = (
                page.take(pa.array(np.flatnonzero(numbers == writer))) for page, numbers in arrived
            )
            yield from self.above.store(
                (page for page in pages if page.num_rows), [] if writer else reports, writer
            )


@dataclass(frozen=True)
class PagePartitioner:
    """Sends changed rows to their writers, in files of `folder` unless it is None.

    Args:
        schema: the channels of a transformed page.
        function: None if the rows stay in their partition of Spark's.
    """

    schema: pa.Schema
    function: PartitionFunction | None
    folder: str | None

    def __call__(self, changed: Iterable[ChangedRows | TaskRecord]) -> Iterator[pa.RecordBatch]:
        try:
            with SentPages(self.folder, self.schema) as sender:
                for rows in changed:
                    if isinstance(rows, TaskRecord):
                        yield sent(0, None, pickle.dumps(rows))
                    elif self.function is None:
                        yield sent(0, sender.cell(rows.page))
                    else:
                        places, writers = self.function.partitions(rows), self.function.writers
                        yield from sender.to_writers(rows.page, places, writers)
        except Exception as error:  # noqa: BLE001 - reported to the driver as a record
            recorder = Recorder(task_partition(), 0)
            recorder.failed(error, "transform_page")
            yield sent(0, None, recorder.serialize())


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


def places_of(
    batch: pa.RecordBatch,
    bucket: pa.Array,
    inserts: Sequence[int],
    others: Sequence[int],
    operation: int,
) -> npt.NDArray[np.int64]:
    """Return the number of every row, whose remainder is its writer: the bucket, or a hash if that
    is NULL.
    """
    numbers = bucket.cast(pa.int64())
    if bucket.null_count:
        hashes = hashed([batch.column(index) for index in inserts], batch.num_rows)
        if tuple(others) != tuple(inserts):
            inserted = pc.is_in(batch.column(operation), value_set=INSERTS)
            hashes = pc.if_else(
                inserted, hashes, hashed([batch.column(index) for index in others], batch.num_rows)
            )
        numbers = pc.coalesce(numbers, hashes)
    places: npt.NDArray[np.int64] = numbers.to_numpy()
    return places


EVEN_ROWS: Final = 4096
"""Length of a run that goes to one writer, if rows are spread evenly.

All tasks start with the same writer.
"""
