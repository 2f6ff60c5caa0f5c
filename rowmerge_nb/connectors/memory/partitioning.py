"""How rows of memory tables are spread over writers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.memory.handles import (
    MemoryPartitioningHandle,
)
from rowmerge_nb.connectors.shared.hashing import hash_columns
from rowmerge_nb.spi.layout import BucketFunction, ConnectorNodePartitioningProvider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.connectors.shared.transforms import Transform
    from rowmerge_nb.spi.handles import (
        ConnectorPartitioningHandle,
        ConnectorSession,
        ConnectorTransactionHandle,
    )
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.types import Type


class MemoryPartitioningProvider(ConnectorNodePartitioningProvider):
    """Bucket functions of bucketed and partitioned tables."""

    def get_bucket_function(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        partitioning_handle: ConnectorPartitioningHandle,
        partition_channel_types: tuple[Type, ...],
    ) -> BucketFunction:
        """Return the bucket function of bucket columns or partition values, or that of the row id."""
        if not isinstance(partitioning_handle, MemoryPartitioningHandle):
            return super().get_bucket_function(transaction_handle, session, partitioning_handle, partition_channel_types)
        count, arguments = partitioning_handle.bucket_count, partitioning_handle.arguments
        if arguments is None:
            return MemoryRowIdBucketFunction(count)
        return MemoryBucketFunction(count, arguments, partitioning_handle.transforms)


def buckets_of(columns: Sequence[pa.Array], count: int) -> pa.Array:
    """Return the bucket that each row's values belong to."""
    return pa.array((hash_columns(columns) % np.uint64(count)).astype(np.int32))


@dataclass(frozen=True)
class MemoryBucketFunction(BucketFunction):
    """Bucket of a new row: hash of its bucket columns, or of its partition values, modulo the number of buckets.

    >>> page = pa.RecordBatch.from_pydict({"id": [1, 2, 1]})
    >>> buckets = MemoryBucketFunction(4, (0,)).get_buckets(page)
    >>> buckets[0] == buckets[2]
    True
    """

    count: int
    arguments: tuple[int, ...]
    transforms: tuple[Transform, ...] = ()

    @property
    def bucket_count(self) -> int:
        """How many buckets there are."""
        return self.count

    def get_buckets(self, page: Page) -> pa.Array:
        """Return the bucket of every row."""
        columns = [page.column(argument) for argument in self.arguments]
        if self.transforms:
            columns = [transform.apply(column) for transform, column in zip(self.transforms, columns, strict=True)]
        return buckets_of(columns, self.count)


@dataclass(frozen=True)
class MemoryRowIdBucketFunction(BucketFunction):
    """Bucket of a row that is there already: it is part of the row id."""

    count: int

    @property
    def bucket_count(self) -> int:
        """How many buckets there are."""
        return self.count

    def get_buckets(self, page: Page) -> pa.Array:
        """Return the bucket of every row."""
        return page.column(0).field("bucket")


PARTITION_PLACES = 1 << 16


"""Partition values are hashed to this many places: far more than there are writers, so that these stay evenly loaded."""
