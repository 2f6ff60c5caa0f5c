"""Hive's bucket functions over whole columns: version 1 (Java's hash codes) and 2 (Murmur3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.connectors.hive_acid.layout_names import buckets_in
from rowmerge_nb.connectors.shared.murmur import bytes_of, hash_bytes
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
    from collections.abc import Sequence

    import numpy.typing as npt


_SEED: Final = 104729
_LARGEST: Final = np.uint32(0x7FFFFFFF)
_PLAIN: Final = frozenset(
    {"boolean", "tinyint", "smallint", "integer", "bigint", "real", "double", "varchar", "date"}
)


@dataclass(frozen=True)
class HivePartitioningHandle(ConnectorPartitioningHandle):
    """The bucket function for inserted rows."""

    bucket_count: int
    version: int
    types: tuple[Type, ...]
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class HiveUpdateHandle(ConnectorPartitioningHandle):
    """The bucket function for deleted rows."""

    bucket_count: int


def check_bucket_type(name: str, sql_type: Type) -> None:
    """Raise NOT_SUPPORTED, with Trino's words."""
    if sql_type.base in _PLAIN:
        return
    if sql_type.base in {"array", "map"}:
        for inner in sql_type.parameters:
            check_bucket_type(name, inner)
        return
    raise AnalysisError.unsupported(
        f"Cannot create a table bucketed on an unsupported type: column '{name}' is {sql_type}",
        hint="Bucket by columns of integers, booleans, floating-point numbers, varchar or dates.",
    )


def buckets_of(
    columns: Sequence[pa.Array], types: Sequence[Type], count: int, version: int
) -> npt.NDArray[np.int32]:
    """Return the bucket of every row; version 1 hashes ``varchar(n)`` and ``varchar`` differently."""
    combined = np.zeros(len(columns[0]), np.uint32)
    for column, sql_type in zip(columns, types, strict=True):
        combined = combined * np.uint32(31) + _hash(column, sql_type, version)
    return ((combined & _LARGEST) % np.uint32(count)).astype(np.int32)


def _hash(column: pa.Array, sql_type: Type, version: int) -> npt.NDArray[np.uint32]:
    if sql_type.base in {"array", "map"}:
        hashes = _hash_nested(column, sql_type, version)
    elif sql_type.base == "varchar":
        hashes = _hash_text(column, sql_type, version)
    else:
        hashes = _hash_number(column, sql_type, version)
    return np.where(pc.is_null(column).to_numpy(zero_copy_only=False), np.uint32(0), hashes)


def _hash_number(column: pa.Array, sql_type: Type, version: int) -> npt.NDArray[np.uint32]:
    if sql_type.base == "boolean":
        truths: npt.NDArray[np.uint32] = (
            pc.fill_null(column.cast(pa.int32()), 0).to_numpy(zero_copy_only=False).view(np.uint32)
        )
        return truths
    if sql_type.base in {"real", "double"}:
        floats = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
        # Java hashes every NaN as one bit pattern.
        numbers = np.where(np.isnan(floats), np.array(np.nan, floats.dtype), floats).view(
            f"i{floats.dtype.itemsize}"
        )
        if version == 2:
            # Hive converts the bits, read as a number, to floating point and hashes the bits of the
            # result.
            numbers = numbers.astype(floats.dtype).view(numbers.dtype)
    else:
        if sql_type.base == "date":
            column = column.cast(pa.int32())
        numbers = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    if version == 1 or sql_type.base == "tinyint":
        wide = numbers.astype(np.int64).view(np.uint64)
        folded = wide ^ (wide >> np.uint64(32)) if numbers.dtype.itemsize == 8 else wide
        return folded.astype(np.uint32)
    size = numbers.dtype.itemsize
    return _murmur(numbers.astype(f">i{size}").view(np.uint8), np.full(len(numbers), size))


def _hash_text(column: pa.Array, sql_type: Type, version: int) -> npt.NDArray[np.uint32]:
    data, lengths = bytes_of(column)
    if version == 2:
        return _murmur(data, lengths)
    sums, powers = _polynomials(data.view(np.int8).astype(np.int32).view(np.uint32), lengths)
    return sums + powers[lengths] if sql_type.parameters else sums


def _murmur(data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    return hash_bytes(data, lengths, _SEED, signed_tail=True).view(np.uint32)


def _hash_nested(column: pa.Array, sql_type: Type, version: int) -> npt.NDArray[np.uint32]:
    if sql_type.base == "map":
        entries = pa.ListArray.from_arrays(
            column.offsets,
            pa.StructArray.from_arrays([column.keys, column.items], names=["key", "value"]),
        )
        lengths = np.diff(column.offsets.to_numpy())
        flat = entries.flatten()
        keys, values = flat.field(0), flat.field(1)
        # Hive hashes the values of a map by version 1, even in version 2.
        hashes = _hash(keys, sql_type.parameters[0], version) ^ _hash(
            values, sql_type.parameters[1], 1
        )
        return _sums(hashes, np.cumsum(lengths) - lengths, lengths)
    lengths = (
        pc.fill_null(pc.list_value_length(column), 0)
        .to_numpy(zero_copy_only=False)
        .astype(np.int64)
    )
    return _polynomials(_hash(column.flatten(), sql_type.parameters[0], version), lengths)[0]


def _polynomials(
    digits: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Return the numbers with these digits in base 31, as Java's hash codes, and the powers of 31."""
    powers = np.ones(int(lengths.max(initial=0)) + 1, np.uint32)
    powers[1:] = np.cumprod(np.full(len(powers) - 1, 31, np.uint32), dtype=np.uint32)
    starts = np.cumsum(lengths) - lengths
    distance = np.repeat(starts + lengths, lengths) - 1 - np.arange(len(digits))
    return _sums(digits * powers[distance], starts, lengths), powers


def _sums(
    terms: npt.NDArray[np.uint32], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    sums = np.zeros(len(lengths), np.uint32)
    nonempty = lengths > 0
    if nonempty.any():
        sums[nonempty] = np.add.reduceat(terms, starts[nonempty], dtype=np.uint32)
    return sums


@dataclass(frozen=True)
class HiveBucketFunction(BucketFunction):
    handle: HivePartitioningHandle

    @property
    def bucket_count(self) -> int:
        return self.handle.bucket_count

    def get_buckets(self, page: Page) -> pa.Array:
        columns = [page.column(argument) for argument in self.handle.arguments]
        return pa.array(
            buckets_of(columns, self.handle.types, self.handle.bucket_count, self.handle.version)
        )


@dataclass(frozen=True)
class HiveUpdateBucketFunction(BucketFunction):
    """The buckets of deleted rows.

    >>> ids = pa.array([{"originalTransaction": 1, "bucket": 536936448, "rowId": 0}])
    >>> HiveUpdateBucketFunction(4).get_buckets(pa.RecordBatch.from_arrays([ids], names=["row_id"])).to_pylist()
    [1]
    """

    count: int

    @property
    def bucket_count(self) -> int:
        return self.count

    def get_buckets(self, page: Page) -> pa.Array:
        buckets = buckets_in(page.column(0).field(1).to_numpy(zero_copy_only=False))
        return pa.array((buckets % self.count).astype(np.int32))


class HivePartitioningProvider(ConnectorNodePartitioningProvider):
    def get_bucket_function(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        partitioning_handle: ConnectorPartitioningHandle,
        partition_channel_types: tuple[Type, ...],
    ) -> BucketFunction:
        if isinstance(partitioning_handle, HivePartitioningHandle):
            return HiveBucketFunction(partitioning_handle)
        if isinstance(partitioning_handle, HiveUpdateHandle):
            return HiveUpdateBucketFunction(partitioning_handle.bucket_count)
        return super().get_bucket_function(
            transaction_handle, session, partitioning_handle, partition_channel_types
        )
