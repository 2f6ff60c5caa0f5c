"""Partitions: their values as text, and the distribution of rows to writers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.connectors.delta.delta_handles import DeltaPartitioningHandle
from rowmerge_nb.connectors.shared.file_positions import BUCKETS, FileBucketFunction
from rowmerge_nb.connectors.shared.hashing import hashed_buckets
from rowmerge_nb.connectors.shared.runs import runs_of
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
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.spi import ColumnMetadata

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,60}")
_TYPES: Final = frozenset(
    [
        "boolean",
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "decimal",
        "date",
        "timestamp",
        "varchar",
        "char",
    ]
) | {"timestamp with time zone"}


def check_partition_columns(names: Sequence[str], columns: Sequence[ColumnMetadata]) -> None:
    """Raise NOT_SUPPORTED for a partition column whose values have no exact text."""
    for column in columns:
        if column.name in names and column.type.base not in _TYPES:
            raise AnalysisError.unsupported(
                f"Delta tables cannot be partitioned by column '{column.name}' of type"
                f" {column.type}",
                hint="Partition by numbers, texts, dates or timestamps.",
            )


def groups(names: Sequence[str], page: Page) -> Iterator[tuple[tuple[str | None, ...], Page]]:
    """Split a page by partition; yield each partition's values as text, and its rows.

    >>> page = pa.RecordBatch.from_pydict({"d": [1, None, 1]})
    >>> [(values, rows.num_rows) for values, rows in groups(["d"], page)]
    [(('1',), 2), ((None,), 1)]
    """
    arrays = [texts(page.column(name)) for name in names]
    for name, array in zip(names, arrays, strict=True):
        if pc.any(pc.equal(array, "")).as_py():
            raise ConnectorError(
                f"Partition column '{name}' has an empty text, which Delta tables read as NULL",
                hint="Write NULL or another text.",
            )
    order, starts = runs_of(arrays, page.num_rows)
    firsts = pa.array(order[starts])
    values = list(zip(*(array.take(firsts).to_pylist() for array in arrays), strict=True))
    ordered = page.take(pa.array(order))
    ends = [*starts[1:].tolist(), page.num_rows]
    for value, start, end in zip(values, starts.tolist(), ends, strict=True):
        yield value, ordered.slice(start, end - start)


def texts(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


def folder_of(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Return the folder of a partition's files; it is empty if a value cannot be a folder's name.

    The log has the values, so folders are for people only.

    >>> folder_of(["d", "s"], ["2026", "x"]), folder_of(["s"], ["a/b"]), folder_of(["s"], [None])
    ('d=2026/s=x', '', '')
    """
    parts = [f"{name}={value}" for name, value in zip(names, values, strict=True)]
    plain = all(_PLAIN.fullmatch(text or "") for text in (*names, *values))
    return "/".join(parts) if plain else ""


class DeltaBucketFunction(BucketFunction):
    """Raise NOT_SUPPORTED likewise for a table that cannot be written."""

    bucket_count = BUCKETS

    def get_buckets(self, page: Page) -> pa.Array:
        return hashed_buckets(page.columns, BUCKETS)


class DeltaPartitioningProvider(ConnectorNodePartitioningProvider):
    def get_bucket_function(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        partitioning_handle: ConnectorPartitioningHandle,
        partition_channel_types: tuple[Type, ...],
    ) -> BucketFunction:
        if not isinstance(partitioning_handle, DeltaPartitioningHandle):
            return super().get_bucket_function(
                transaction_handle, session, partitioning_handle, partition_channel_types
            )
        return FileBucketFunction() if partitioning_handle.by_file else DeltaBucketFunction()
