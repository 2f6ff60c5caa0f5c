"""Layouts: how written rows are distributed over writers (design documents, "MERGE
redistribution").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import ConnectorError

if TYPE_CHECKING:
    import pyarrow as pa

    from rowmerge_nb.spi.handles import (
        ConnectorPartitioningHandle,
        ConnectorSession,
        ConnectorTransactionHandle,
    )
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.types import Type


@dataclass(frozen=True)
class ConnectorTableLayout:
    """The distribution of rows written to a table.

    Args:
        partition_columns: the columns that determine a row's writer; empty in an update layout,
            which uses the row id.
        partitioning: the connector's partitioning; None for the engine's hash of
            ``partition_columns``.
        multiple_writers_per_partition_supported: rows of one partition may go to several sinks, so
            the engine may skip the exchange.

    >>> ConnectorTableLayout(("region",)).partitioning is None
    True
    """

    partition_columns: tuple[str, ...] = ()
    partitioning: ConnectorPartitioningHandle | None = None
    multiple_writers_per_partition_supported: bool = False


class BucketFunction(ABC):
    """Computes the bucket of each row. Instances are pickled to tasks."""

    @property
    @abstractmethod
    def bucket_count(self) -> int:
        """The number of buckets."""

    @abstractmethod
    def get_buckets(self, page: Page) -> pa.Array:
        """Return the bucket of each row.

        Args:
            page: the layout's partition columns in order, or the channel ``row_id`` for an update
                layout.

        Returns:
            An int32 array without nulls, with values from 0 to ``bucket_count - 1``.
        """


class ConnectorNodePartitioningProvider:
    """Returns the bucket functions of partitioning handles."""

    def get_bucket_function(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        partitioning_handle: ConnectorPartitioningHandle,
        partition_channel_types: tuple[Type, ...],
    ) -> BucketFunction:
        """Return the bucket function of a partitioning, for arguments of the types
        ``partition_channel_types``.

        Raises:
            ConnectorError: NOT_SUPPORTED by default.
        """
        raise ConnectorError(
            f"{type(self).__name__} has no bucket function for {type(partitioning_handle).__name__}"
        )
