"""Partitionings of a plugin: its bucket functions, called in the process of the tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host_channel import pack_batch, unpack_batch
from rowmerge_nb.connectors.trino.host_process import TaskConnection
from rowmerge_nb.connectors.trino.trino_handles import TrinoPartitioningHandle
from rowmerge_nb.spi.handles import own
from rowmerge_nb.spi.layout import BucketFunction, ConnectorNodePartitioningProvider

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import (
        ConnectorPartitioningHandle,
        ConnectorSession,
        ConnectorTransactionHandle,
    )
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.types import Type

_BUCKETS: Final = 64


@dataclass(frozen=True)
class TrinoNodePartitioningProvider(ConnectorNodePartitioningProvider):
    socket_path: str

    def get_bucket_function(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        partitioning_handle: ConnectorPartitioningHandle,
        partition_channel_types: tuple[Type, ...],
    ) -> TrinoBucketFunction:
        partitioning = own(partitioning_handle, TrinoPartitioningHandle)
        types = tuple(str(sql_type) for sql_type in partition_channel_types)
        return TrinoBucketFunction(
            self.socket_path,
            partitioning,
            types,
            self._bucket_count(partitioning, types),
        )

    def _bucket_count(self, partitioning: TrinoPartitioningHandle, types: tuple[str, ...]) -> int:
        connection = TaskConnection(self.socket_path)
        try:
            return open_function(connection, partitioning, types, None)
        except ConnectorError as error:
            if error.code == "HOST_TERMINATED":
                raise
            # The plugin leaves the number to the engine; another failure comes again with it.
            return open_function(connection, partitioning, types, _BUCKETS)
        finally:
            connection.close()


def open_function(
    connection: TaskConnection,
    partitioning: TrinoPartitioningHandle,
    types: tuple[str, ...],
    count: int | None,
) -> int:
    """Open a bucket function on a connection, and return its number of buckets.

    ``count`` None asks the plugin for the number.
    """
    result, _ = connection.request(
        "bucket_function",
        **partitioning.context.wire,
        partitioning=partitioning.java.wire,
        types=list(types),
        count=count,
    )
    return int(result["count"])


@dataclass
class TrinoBucketFunction(BucketFunction):
    socket_path: str
    partitioning: TrinoPartitioningHandle
    types: tuple[str, ...]
    count: int
    _connection: TaskConnection | None = field(default=None, compare=False, repr=False)

    @property
    def bucket_count(self) -> int:
        return self.count

    def get_buckets(self, page: Page) -> pa.Array:
        if self._connection is None:
            connection = TaskConnection(self.socket_path)
            open_function(connection, self.partitioning, self.types, self.count)
            self._connection = connection
        _, payload = self._connection.request("buckets", pack_batch(page))
        return unpack_batch(payload).column(0).cast(pa.int32())

    def __getstate__(self) -> dict[str, Any]:
        # Each process connects for itself.
        return {**self.__dict__, "_connection": None}
