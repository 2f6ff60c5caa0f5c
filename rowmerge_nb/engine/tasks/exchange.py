"""Where a row goes: the place of every row of a page, by the layouts of the statement.

The engine's own hash, by which rows go where a layout names no partitioning, and which the channel ``hash`` holds, is here alone.
"""

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
    """Print the engine's hash of columns for Spark; the same values in the same order give the same number.

    Args:
        columns: the columns' Spark text, in table order; without any, all rows belong together.

    >>> hash_expression(["c0", "c2"]), hash_expression([])
    ('xxhash64(c0, c2)', '0')
    """
    return f"xxhash64({', '.join(columns)})" if columns else "0"


def partition_expression(bucket: str, partition_count: int) -> str:
    """Print for Spark which of the writers takes a row.

    Args:
        bucket: Spark text of a hash or a bucket's number.
        partition_count: how many writers there are.

    >>> partition_expression(hash_expression(["c0"]), 4)
    'CAST(pmod(xxhash64(c0), 4) AS INT)'
    """
    return f"CAST(pmod({bucket}, {partition_count}) AS INT)"


def hashed(columns: Sequence[pa.Array], rows: int) -> pa.Array:
    """Return the engine's hash of columns, by the types in which they travel through Spark."""
    if not columns:
        # All rows belong together, as `hash_expression` has it.
        return pa.array(np.zeros(rows, np.int64))
    return pa.array(xxhash64([conform(column, for_spark(column.type)) for column in columns], rows))


@dataclass(frozen=True)
class Destination:
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
        """Return the bucket of some rows of a page (int32); NULL where the engine's hash decides.

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

    inserts: Destination
    updates: Destination

    def buckets(self, page: Page, layout: PageLayout, start: int) -> pa.Array:
        """Return the bucket of every row of a transformed page (int32); NULL where the engine's hash decides."""
        inserted = pc.is_in(page.column(layout.after.operation), value_set=_INSERTS).to_numpy(zero_copy_only=False)
        first, second = np.flatnonzero(inserted), np.flatnonzero(~inserted)
        parts = [self.inserts.buckets(page, first, start), self.updates.buckets(page, second, start)]
        order = np.argsort(np.concatenate([first, second]), kind="stable")
        return pa.concat_arrays(parts).take(pa.array(order))

    def numbers(self, page: Page, layout: PageLayout, buckets: pa.Array) -> pa.Array:
        """Return the number by which every row of a transformed page finds its writer (int64): its bucket, or else its hash.

        Args:
            page: the rows.
            layout: where the channels lie.
            buckets: what `buckets` has given for these rows.
        """
        # In table order, as the channel ``hash`` has them, so that the same values give the same number.
        inserts, updates = sorted(self.inserts.arguments), sorted(self.updates.arguments)
        return pa.array(places_of(page, buckets, inserts, updates, layout.after.operation))


@dataclass(frozen=True)
class PlacePass:
    """Adds to the rows of an INSERT the bucket of each, by which they find their writer.

    Args:
        schema: the table's columns.
        destination: how the insert layout places rows.
        behind: the types of channels behind the columns, which go along.
    """

    schema: pa.Schema
    destination: Destination
    behind: tuple[pa.DataType, ...] = ()

    @property
    def exchanged(self) -> pa.Schema:
        """The channels that go into the exchange, in Spark's types: the columns and the bucket."""
        kinds = [*(for_spark(field.type) for field in self.schema), *self.behind]
        return pa.schema([*(pa.field(f"c{i}", kind) for i, kind in enumerate(kinds)), pa.field(BUCKET, pa.int32())])

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on one partition."""
        for batch in batches:
            arrays = [conform(batch.column(i), field.type) for i, field in enumerate(self.schema)]
            page = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            bucket = self.destination.buckets(page, np.arange(page.num_rows), 0)
            yield pa.RecordBatch.from_arrays([*batch.columns, bucket], schema=self.exchanged)


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
        arrived = [(batch, self.writer_of(batch)) for batch in batches]
        for writer in range(self.writers):
            rows = (batch.take(pa.array(np.flatnonzero(numbers == writer))) for batch, numbers in arrived)
            yield from self.above.write((batch for batch in rows if batch.num_rows), writer)

    def writer_of(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Return the number of each row's writer, as Spark's exchange computes it; records go to the first."""
        bucket = batch.column(batch.schema.names.index(BUCKET))
        others = self.by_columns if self.by_row_id is None else (self.by_row_id,)
        numbers = places_of(batch, bucket, self.by_columns, others, self.operation) % self.writers
        is_record = batch.column(batch.schema.names.index(RECORD)).is_valid().to_numpy(zero_copy_only=False)
        return np.where(is_record, 0, numbers)


def places_of(
    batch: pa.RecordBatch, bucket: pa.Array, inserts: Sequence[int], others: Sequence[int], operation: int
) -> npt.NDArray[np.int64]:
    """Return the place of every row, whose remainder is its writer: its bucket, and where that is NULL a hash.

    Args:
        batch: the rows, the channels of a transformed page first.
        bucket: what `Placing.buckets` gives of them.
        inserts: the channels whose hash decides over inserted rows.
        others: those whose hash decides over other rows.
        operation: the channel of the operation.
    """
    numbers = bucket.cast(pa.int64())
    if bucket.null_count:
        hashes = hashed([batch.column(index) for index in inserts], batch.num_rows)
        if tuple(others) != tuple(inserts):
            inserted = pc.is_in(batch.column(operation), value_set=_INSERTS)
            hashes = pc.if_else(inserted, hashes, hashed([batch.column(index) for index in others], batch.num_rows))
        numbers = pc.coalesce(numbers, hashes)
    places: npt.NDArray[np.int64] = numbers.to_numpy()
    return places


BUCKET: Final = "$bucket"
EVEN_ROWS: Final = 4096
"""So many rows of a task go to one writer before the next one gets some, where rows are spread evenly. All tasks begin with the same."""
_INSERTS: Final = pa.array([Operation.INSERT, Operation.UPDATE_INSERT], pa.int8())
