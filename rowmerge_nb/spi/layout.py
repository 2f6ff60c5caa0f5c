"""Layouts: how the rows of a write are spread over writers (design documents, "MERGE redistribution")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import ConnectorError

if TYPE_CHECKING:
    import pyarrow as pa

    from rowmerge_nb.spi.handles import ConnectorPartitioningHandle, ConnectorSession, ConnectorTransactionHandle
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.types import Type


@dataclass(frozen=True)
class ConnectorTableLayout:
    """How rows that go into a table are to be spread.

    Args:
        partition_columns: the columns that decide the place of a row. Of an update layout there are none: its only
            argument is always the row id.
        partitioning: the connector's own partitioning; None asks for the engine's hash of ``partition_columns``.
        multiple_writers_per_partition_supported: rows of one place may end in several sinks, at the price of more files. The engine
            need not send rows anywhere then.

    >>> ConnectorTableLayout(("region",)).partitioning is None
    True
    """

    partition_columns: tuple[str, ...] = ()
    partitioning: ConnectorPartitioningHandle | None = None
    multiple_writers_per_partition_supported: bool = False


class BucketFunction(ABC):
    """Computes the bucket of every row of a page. Instances travel to tasks by pickle."""

    @property
    @abstractmethod
    def bucket_count(self) -> int:
        """How many buckets there are; the function's values lie in ``range(bucket_count)``."""

    @abstractmethod
    def get_buckets(self, page: Page) -> pa.Array:
        """Return the bucket of every row.

        Args:
            page: the layout's partition columns in their order, or the one channel ``row_id`` for an update layout.

        Returns:
            An int32 array without nulls, one entry per row, from 0 to ``bucket_count - 1``. The engine refuses anything else.
        """


class ConnectorNodePartitioningProvider:
    """Turns a partitioning handle into a bucket function."""

    def get_bucket_function(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        partitioning_handle: ConnectorPartitioningHandle,
        partition_channel_types: tuple[Type, ...],
    ) -> BucketFunction:
        """Return the bucket function of a partitioning.

        Args:
            transaction_handle: the statement's transaction.
            session: the statement's session.
            partitioning_handle: what the layout named.
            partition_channel_types: the types of the function's argument channels, in order.

        Raises:
            ConnectorError: NOT_SUPPORTED unless the connector overrides this method.
        """
        raise ConnectorError(f"{type(self).__name__} has no bucket function for {type(partitioning_handle).__name__}")
