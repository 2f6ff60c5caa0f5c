"""The writer of each row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.arrow import Batches, conform, for_spark
from rowmerge_nb.engine.tasks.outcome import RECORD
from rowmerge_nb.engine.tasks.xxhash import xxhash64
from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.writer import WriterPass
    from rowmerge_nb.spi.layout import BucketFunction
    from rowmerge_nb.spi.page import Page, PageLayout


def hash_expression(columns: Sequence[str]) -> str:
    """Return Spark SQL of the engine's hash of columns; 0 without columns.

    >>> hash_expression(["c0", "c2"]), hash_expression([])
    ('xxhash64(c0, c2)', '0')
    """
    return f"xxhash64({', '.join(columns)})" if columns else "0"


def partition_expression(bucket: str, partition_count: int) -> str:
    """Return Spark SQL of a row's writer.

    >>> partition_expression(hash_expression(["c0"]), 4)
    'CAST(pmod(xxhash64(c0), 4) AS INT)'
    """
    return f"CAST(pmod({bucket}, {partition_count}) AS INT)"


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
        inserted = pc.is_in(page.column(layout.after.operation), value_set=_INSERTS).to_numpy(
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
class PlacePass:
    """Adds the bucket to the rows of an INSERT; channels of the types `behind` are passed through."""

    schema: pa.Schema
    destination: Destination
    behind: tuple[pa.DataType, ...] = ()

    @property
    def exchanged(self) -> pa.Schema:
        arrow_types = [*(for_spark(field.type) for field in self.schema), *self.behind]
        return pa.schema(
            [
                *(pa.field(f"c{i}", arrow_type) for i, arrow_type in enumerate(arrow_types)),
                pa.field(BUCKET, pa.int32()),
            ]
        )

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = [conform(batch.column(i), field.type) for i, field in enumerate(self.schema)]
            page = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            bucket = self.destination.buckets(page, np.arange(page.num_rows), 0)
            yield pa.RecordBatch.from_arrays([*batch.columns, bucket], schema=self.exchanged)


@dataclass(frozen=True)
class LocalExchange:
    """The exchange and its writers within the task that has all rows: one sink per writer.

    Args:
        by_row_id: the channel hashed for other rows; None to use `by_columns`.
    """

    writers: int
    by_columns: tuple[int, ...]
    by_row_id: int | None
    operation: int
    above: WriterPass = field(repr=False)

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        arrived = [(batch, self.writer_of(batch)) for batch in batches]
        for writer in range(self.writers):
            rows = (
                batch.take(pa.array(np.flatnonzero(numbers == writer)))
                for batch, numbers in arrived
            )
            yield from self.above.write((batch for batch in rows if batch.num_rows), writer)

    def writer_of(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        bucket = batch.column(batch.schema.names.index(BUCKET))
        others = self.by_columns if self.by_row_id is None else (self.by_row_id,)
        numbers = places_of(batch, bucket, self.by_columns, others, self.operation) % self.writers
        is_record = (
            batch.column(batch.schema.names.index(RECORD)).is_valid().to_numpy(zero_copy_only=False)
        )
        return np.where(is_record, 0, numbers)


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
            inserted = pc.is_in(batch.column(operation), value_set=_INSERTS)
            hashes = pc.if_else(
                inserted, hashes, hashed([batch.column(index) for index in others], batch.num_rows)
            )
        numbers = pc.coalesce(numbers, hashes)
    places: npt.NDArray[np.int64] = numbers.to_numpy()
    return places


BUCKET: Final = "$bucket"
EVEN_ROWS: Final = 4096
"""Length of a run that goes to one writer, if rows are spread evenly.

All tasks start with the same writer.
"""
_INSERTS: Final = pa.array([Operation.INSERT, Operation.UPDATE_INSERT], pa.int8())
