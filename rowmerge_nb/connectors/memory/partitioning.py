"""Distribution of a memory table's rows over writers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.connectors.memory.memory_handles import MemoryPartitioningHandle
from rowmerge_nb.connectors.shared.hashing import hashed_buckets
from rowmerge_nb.spi import (
    BucketFunction,
    ConnectorNodePartitioningProvider,
    ConnectorPartitioningHandle,
    ConnectorSession,
    ConnectorTransactionHandle,
    Page,
    Type,
)

if TYPE_CHECKING:
    from rowmerge_nb.connectors.shared.transforms import Transform

PARTITION_BUCKETS = 1 << 16
"""The number of buckets for partition values, far above the number of writers for an even load."""


class MemoryPartitioningProvider(ConnectorNodePartitioningProvider):
    def get_bucket_function(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        partitioning_handle: ConnectorPartitioningHandle,
        partition_channel_types: tuple[Type, ...],
    ) -> BucketFunction:
        if not isinstance(partitioning_handle, MemoryPartitioningHandle):
            return super().get_bucket_function(
                transaction_handle, session, partitioning_handle, partition_channel_types
            )
        count, arguments = partitioning_handle.bucket_count, partitioning_handle.arguments
        if arguments is None:
            return MemoryRowIdBucketFunction(count)
        return MemoryBucketFunction(count, arguments, partitioning_handle.transforms)


@dataclass(frozen=True)
class MemoryBucketFunction(BucketFunction):
    """The buckets of new rows: the hash of bucket columns or partition values, modulo the number of
    buckets.

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
        return self.count

    def get_buckets(self, page: Page) -> pa.Array:
        columns = [page.column(argument) for argument in self.arguments]
        if self.transforms:
            columns = [
                transform.apply(column)
                for transform, column in zip(self.transforms, columns, strict=True)
            ]
        return hashed_buckets(columns, self.count)


@dataclass(frozen=True)
class MemoryRowIdBucketFunction(BucketFunction):
    """The buckets of existing rows, which their row ids contain."""

    count: int

    @property
    def bucket_count(self) -> int:
        return self.count

    def get_buckets(self, page: Page) -> pa.Array:
        return page.column(0).field("bucket")
