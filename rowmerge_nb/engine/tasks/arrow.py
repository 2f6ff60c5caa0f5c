"""Spark's Arrow batches and pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError

if TYPE_CHECKING:
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.types import Type


def conform(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert an array to a type, at any depth; struct fields by position. Raises ArrowInvalid.

    >>> conform(pa.array([{"f0": 1}, None]), pa.struct([("id", pa.int64())])).to_pylist()
    [{'id': 1}, None]
    """
    if array.type.equals(target):
        return array
    if pa.types.is_null(target):
        return pa.nulls(len(array))
    if pa.types.is_list(target) and pa.types.is_list(array.type):
        values = conform(array.values, target.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=array.is_null())
    if pa.types.is_map(target) and pa.types.is_map(array.type):
        keys, items = conform(array.keys, target.key_type), conform(array.items, target.item_type)
        return pa.MapArray.from_arrays(
            _offsets(array), keys, items, type=target, mask=array.is_null()
        )
    if pa.types.is_struct(target) and pa.types.is_struct(array.type):
        children = [conform(array.field(i), target.field(i).type) for i in range(target.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
    if pa.types.is_dictionary(array.type):
        return conform(array.dictionary_decode(), target)
    return array.cast(target)


_FAMILIES: Final = (
    lambda t: pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t),
    lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t),
    lambda t: (
        pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t)
    ),
    pa.types.is_boolean,
    pa.types.is_temporal,
    pa.types.is_struct,
    pa.types.is_map,
    lambda t: pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t),
)


def is_of_kind(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether two types are of one family, so that a conversion keeps the meaning of values
    (unlike number to text).

    >>> is_of_kind(pa.int32(), pa.int64()), is_of_kind(pa.int64(), pa.string())
    (True, False)
    """
    if pa.types.is_dictionary(source):
        source = source.value_type
    if source == target or pa.types.is_null(source) or pa.types.is_null(target):
        return True
    return any(is_in_family(source) and is_in_family(target) for is_in_family in _FAMILIES)


def last_channel(batch: pa.RecordBatch) -> pa.Array:
    """Return the last channel: the witness of joined rows."""
    return batch.column(batch.num_columns - 1)


def page_in(batch: pa.RecordBatch, schema: pa.Schema) -> Page:
    """Return the first channels of a batch with the names and types of a page.

    >>> page_in(pa.RecordBatch.from_pydict({"c0": [1], "c1": [True]}), pa.schema([("id", pa.int32())])).to_pydict()
    {'id': [1]}
    """
    arrays = [conform(batch.column(index), channel.type) for index, channel in enumerate(schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def whole_page(pages: Iterable[Page], schema: pa.Schema) -> Page:
    """Concatenate pages, possibly none.

    >>> whole_page([], pa.schema([("id", pa.int32())])).num_rows
    0
    """
    parts = list(pages)
    return pa.concat_batches(parts) if parts else pa.RecordBatch.from_pylist([], schema=schema)


GATHERED_ROWS: Final = 1 << 16
"""Minimum rows per computation: each page has a fixed cost."""
GATHERED_BYTES: Final = 1 << 26
"""Bytes above which no further rows are awaited."""


def gathered(
    pages: Iterable[Page], rows: int = GATHERED_ROWS, size: int = GATHERED_BYTES
) -> Iterator[Page]:
    """Concatenate small pages up to at least `rows` rows or `size` bytes, except the last; empty
    pages are dropped.

    >>> pages = [pa.RecordBatch.from_pydict({"id": ids}) for ids in ([1, 2], [3], [], [4])]
    >>> [page.column(0).to_pylist() for page in gathered(pages, 3)], [page.num_rows for page in gathered(pages, 3, 16)]
    ([[1, 2, 3], [4]], [2, 2])
    """
    for several in together(pages, rows, size):
        yield several[0] if len(several) == 1 else pa.concat_batches(several)


def together(pages: Iterable[Page], rows: int, size: int = GATHERED_BYTES) -> Iterator[list[Page]]:
    """Yield lists of pages; see `gathered`."""
    waiting: list[Page] = []
    waiting_rows = waiting_bytes = 0
    for page in pages:
        if not page.num_rows:
            continue
        waiting.append(page)
        waiting_rows, waiting_bytes = waiting_rows + page.num_rows, waiting_bytes + page.nbytes
        if waiting_rows >= rows or waiting_bytes >= size:
            yield waiting
            waiting, waiting_rows, waiting_bytes = [], 0, 0
    if waiting:
        yield waiting


def _offsets(array: pa.Array) -> pa.Array:
    """Copy the offsets of a list or map array: those of a slice cannot be combined with a null
    mask.
    """
    return pa.array(array.offsets.to_numpy().copy(), pa.int32())


def shown_zones(array: pa.Array, sql_type: Type) -> pa.Array:
    """Return a result column of zoned timestamps as Arrow timestamps: in their zone if all share
    one, otherwise in UTC.

    >>> from rowmerge_nb.spi.types import Type
    >>> sql_type = Type("timestamp with time zone", (3,), ("zone",))
    >>> shown_zones(pa.array([{"instant": None, "zone": "Asia/Kolkata"}], sql_type.arrow), sql_type).type
    TimestampType(timestamp[us, tz=Asia/Kolkata])
    """
    if sql_type.base != "timestamp with time zone" or not sql_type.fields:
        return array
    instants, names = array.flatten()
    zones = names.drop_null().unique().to_pylist()
    return instants.cast(pa.timestamp("us", tz=zones[0] if len(zones) == 1 else "UTC"))


def for_spark(arrow_type: pa.DataType) -> pa.DataType:
    """Return the Arrow type that Spark accepts from a task for this type.

    >>> for_spark(pa.time64("us")), for_spark(pa.int64())
    (Time64Type(time64[ns]), DataType(int64))
    """
    if pa.types.is_time(arrow_type):
        return pa.time64("ns")
    if pa.types.is_null(arrow_type):
        return pa.string()
    if pa.types.is_struct(arrow_type):
        return pa.struct(
            [pa.field(f"f{i}", for_spark(field.type)) for i, field in enumerate(arrow_type)]
        )
    if pa.types.is_map(arrow_type):
        return pa.map_(for_spark(arrow_type.key_type), for_spark(arrow_type.item_type))
    if pa.types.is_list(arrow_type):
        return pa.list_(for_spark(arrow_type.value_type))
    return arrow_type


def page_of(value: Any, columns: int, source: str) -> Page:
    """Check the return value of a page source."""
    if not isinstance(value, pa.RecordBatch):
        raise ConnectorError(
            f"{source}.get_next_page returned {type(value).__name__}; it must return a"
            " pyarrow.RecordBatch, and None at the end",
            code="GENERIC_INTERNAL_ERROR",
        )
    if value.num_columns != columns:
        raise ConnectorError(
            f"{source}.get_next_page returned a page of {value.num_columns} channels;"
            f" {columns} columns were requested",
            code="GENERIC_INTERNAL_ERROR",
        )
    return value


Batches = Iterable[pa.RecordBatch]
