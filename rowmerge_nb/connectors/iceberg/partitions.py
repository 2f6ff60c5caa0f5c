"""Partitions: their values, their folders, and the distribution of rows to writers."""

from __future__ import annotations

import base64
import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergPartitioningHandle, PartitionField
from rowmerge_nb.connectors.shared.file_positions import BUCKETS, FileBucketFunction
from rowmerge_nb.connectors.shared.hashing import hashed_buckets
from rowmerge_nb.connectors.shared.runs import runs_of
from rowmerge_nb.connectors.shared.transforms import Transform
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

    from pyiceberg.partitioning import PartitionSpec

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergField

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MOST: Final = 2**31 - 1
_PERIODS: Final = {"year", "month", "day", "hour"}


def partitioning_of(
    spec: PartitionSpec, fields: Sequence[IcebergField], table: object
) -> tuple[PartitionField, ...]:
    return tuple(_partition_field(part, fields, table) for part in spec.fields)


def _partition_field(part: Any, fields: Sequence[IcebergField], table: object) -> PartitionField:
    name, _, rest = str(part.transform).partition("[")
    path = _path_to(part.source_id, fields)
    if name not in {"identity", "bucket", "truncate", "void", *_PERIODS} or (
        path is None and name != "void"
    ):
        raise ConnectorError(
            f"Iceberg table '{table}' is partitioned by {part.name}: {part.transform}, which is not"
            " supported",
            hint="Partition the table by another transform.",
        )
    width = int(rest.rstrip("]")) if rest else None
    if path is None:
        # A void field of a dropped column: its value is NULL for any column.
        return PartitionField(part.name, 0, (), Transform("void", fields[0].name))
    field = fields[path[0]]
    for step in path[1:]:
        field = field.fields[step]
    return PartitionField(
        part.name, path[0], path[1:], Transform(name, field.name, width, field.type.base)
    )


def _path_to(field_id: int, fields: Sequence[IcebergField]) -> tuple[int, ...] | None:
    for index, field in enumerate(fields):
        if field.id == field_id:
            return (index,)
        deeper = _path_to(field_id, field.fields) if field.type_name == "struct" else None
        if deeper is not None:
            return (index, *deeper)
    return None


def _values(partitioning: Sequence[PartitionField], page: Page) -> list[pa.Array]:
    columns = []
    for part in partitioning:
        column = page.column(part.column)
        if part.path:
            column = pc.struct_field(column, list(part.path))
        columns.append(_within_range(part.transform, column, part.transform.apply(column)))
    return columns


def _within_range(transform: Transform, column: pa.Array, values: pa.Array) -> pa.Array:
    """Cast partition values to Iceberg's 32 bits, or raise NUMERIC_VALUE_OUT_OF_RANGE."""
    if (
        transform.name in {"identity", "bucket", "void"}
        or transform.base == "bigint"
        or not pa.types.is_int64(values.type)
    ):
        return values
    far = pc.or_(pc.less(values, -_MOST - 1), pc.greater(values, _MOST))
    index = pc.index(far, value=True).as_py()
    if index >= 0:
        number = column[index].cast(pa.int64()).as_py()
        display_value = np.datetime64(number, "us") if pa.types.is_temporal(column.type) else number
        raise ConnectorError(
            f"Value {display_value} of column '{transform.column}' has no partition: {transform} is"
            f" {values[index].as_py()}, out of range for integer",
            code="NUMERIC_VALUE_OUT_OF_RANGE",
            hint="Write another value, or partition the table by another transform.",
        )
    return values.cast(pa.int32())


def groups(
    partitioning: Sequence[PartitionField], page: Page
) -> Iterator[tuple[tuple[Any, ...], Page]]:
    """Split a page by partition; yield each partition's values and rows.

    Values are those of JSON.
    """
    if not partitioning:
        yield (), page
        return
    arrays = _values(partitioning, page)
    order, starts = runs_of(arrays, page.num_rows)
    firsts = pa.array(order[starts])
    values = list(zip(*(_plain(array.take(firsts)) for array in arrays), strict=True))
    if len(starts) == 1:
        yield values[0], page
        return
    sorted_page = page.take(pa.array(order))
    for value, start, end in zip(
        values, starts.tolist(), [*starts[1:].tolist(), page.num_rows], strict=True
    ):
        yield value, sorted_page.slice(start, end - start)


def _plain(array: pa.Array) -> list[Any]:
    arrow_type = array.type
    if pa.types.is_temporal(arrow_type):
        array = array.cast(pa.int32() if arrow_type.bit_width == 32 else pa.int64())
    values = array.to_pylist()
    if pa.types.is_binary(arrow_type):
        return [value if value is None else value.hex() for value in values]
    return [str(value) if isinstance(value, Decimal) else value for value in values]


def folder_of(partitioning: Sequence[PartitionField], values: Sequence[Any]) -> str:
    """Return the folder of a partition; nothing reads its name back.

    >>> day = PartitionField("d_day", 0, (), Transform("day", "d", None, "date"))
    >>> folder_of([day, PartitionField("s", 1, (), Transform("identity", "s"))], [19782, "a/b"])
    'd_day=2024-02-29/s=a%2Fb'
    """
    pairs = zip(partitioning, values, strict=True)
    return "/".join(
        f"{quote_plus(part.name, safe='')}={quote_plus(_format_value(part, value), safe='')}"
        for part, value in pairs
    )


def _format_value(part: PartitionField, value: Any) -> str:
    name, base = part.transform.name, part.transform.base
    if value is None:
        return "null"
    if name == "year":
        return f"{value + 1970:04d}"
    if name == "month":
        return f"{value // 12 + 1970:04d}-{value % 12 + 1:02d}"
    if name == "day" or (name == "identity" and base == "date"):
        return str(np.datetime64(int(value), "D"))
    if name == "hour":
        return str(np.datetime64(int(value), "h")).replace("T", "-")
    if name == "identity" and base.startswith("timestamp"):
        # NumPy supports all years.
        return str(np.datetime64(int(value), "us")).removesuffix(".000000") + (
            "+00:00" if base.endswith("zone") else ""
        )
    if base == "varbinary" and name != "bucket":
        return base64.b64encode(bytes.fromhex(value)).decode("ascii")
    if name == "identity" and base == "time":
        return str((_EPOCH + dt.timedelta(microseconds=value)).time())
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- layouts


def layout_of(
    partitioning: Sequence[PartitionField],
) -> tuple[tuple[int, ...], IcebergPartitioningHandle]:
    """Return the columns that decide a row's partition, and the partitioning handle."""
    columns = tuple(sorted({part.column for part in partitioning}))
    renumbered = tuple(replace(part, column=columns.index(part.column)) for part in partitioning)
    return columns, IcebergPartitioningHandle(renumbered)


@dataclass(frozen=True)
class PartitionBucketFunction(BucketFunction):
    """Hashes a row's partition values, so that one writer gets a partition."""

    partitioning: tuple[PartitionField, ...]

    bucket_count = BUCKETS

    def get_buckets(self, page: Page) -> pa.Array:
        return hashed_buckets(_values(self.partitioning, page), BUCKETS)


class IcebergPartitioningProvider(ConnectorNodePartitioningProvider):
    def get_bucket_function(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        partitioning_handle: ConnectorPartitioningHandle,
        partition_channel_types: tuple[Type, ...],
    ) -> BucketFunction:
        if not isinstance(partitioning_handle, IcebergPartitioningHandle):
            return super().get_bucket_function(
                transaction_handle, session, partitioning_handle, partition_channel_types
            )
        if partitioning_handle.partitioning is None:
            return FileBucketFunction()
        return PartitionBucketFunction(partitioning_handle.partitioning)
