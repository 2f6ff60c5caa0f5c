"""The edge between Spark and pages: types on both sides, and arrays brought into the exact type that the other side wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError

if TYPE_CHECKING:
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.types import Type


def conform(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert an array into a type, structs field by field in order, whatever their fields are called, at any depth.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit.

    >>> conform(pa.array([{"f0": 1}, None]), pa.struct([("id", pa.int64())])).to_pylist()
    [{'id': 1}, None]
    """
    if array.type.equals(wanted):
        return array
    if pa.types.is_null(wanted):
        return pa.nulls(len(array))
    if pa.types.is_list(wanted) and pa.types.is_list(array.type):
        values = conform(array.values, wanted.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, type=wanted, mask=array.is_null())
    if pa.types.is_map(wanted) and pa.types.is_map(array.type):
        keys, items = conform(array.keys, wanted.key_type), conform(array.items, wanted.item_type)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=wanted, mask=array.is_null())
    if pa.types.is_struct(wanted) and pa.types.is_struct(array.type):
        children = [conform(array.field(i), wanted.field(i).type) for i in range(wanted.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())
    if pa.types.is_dictionary(array.type):
        return conform(array.dictionary_decode(), wanted)
    return array.cast(wanted)


_KINDS: Final = (
    lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind),
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
    lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind),
    pa.types.is_boolean,
    pa.types.is_temporal,
    pa.types.is_struct,
    pa.types.is_map,
    lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind),
)


def is_of_kind(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of a type can be those of another one without becoming something else, as numbers that become texts do.

    >>> is_of_kind(pa.int32(), pa.int64()), is_of_kind(pa.int64(), pa.string())
    (True, False)
    """
    if pa.types.is_dictionary(given):
        given = given.value_type
    if given == wanted or pa.types.is_null(given) or pa.types.is_null(wanted):
        return True
    return any(kind(given) and kind(wanted) for kind in _KINDS)


def last_channel(batch: pa.RecordBatch) -> pa.Array:
    """Return the channel that travels behind all others: the witness of joined rows.

    >>> last_channel(pa.RecordBatch.from_pydict({"c0": [1], "c1": [2]})).to_pylist()
    [2]
    """
    return batch.column(batch.num_columns - 1)


def page_in(batch: pa.RecordBatch, schema: pa.Schema) -> Page:
    """Return the first channels of what arrives the names and the types of a page.

    >>> page_in(pa.RecordBatch.from_pydict({"c0": [1], "c1": [True]}), pa.schema([("id", pa.int32())])).to_pydict()
    {'id': [1]}
    """
    arrays = [conform(batch.column(index), channel.type) for index, channel in enumerate(schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def whole_page(pages: Iterable[Page], schema: pa.Schema) -> Page:
    """Put pages together; without any, give one without rows.

    >>> whole_page([], pa.schema([("id", pa.int32())])).num_rows
    0
    """
    found = list(pages)
    return pa.concat_batches(found) if found else pa.RecordBatch.from_pylist([], schema=schema)


GATHERED_ROWS: Final = 1 << 16
"""So many rows are computed together at least, if there are: what is computed for a page has its price, however few rows it has."""
GATHERED_BYTES: Final = 1 << 26
"""Of so many bytes no more rows are waited for."""


def gathered(pages: Iterable[Page], rows: int = GATHERED_ROWS, size: int = GATHERED_BYTES) -> Iterator[Page]:
    """Put small pages together, each with so many rows or bytes at least but for the last one; pages without rows are left out.

    >>> pages = [pa.RecordBatch.from_pydict({"id": ids}) for ids in ([1, 2], [3], [], [4])]
    >>> [page.column(0).to_pylist() for page in gathered(pages, 3)], [page.num_rows for page in gathered(pages, 3, 16)]
    ([[1, 2, 3], [4]], [2, 2])
    """
    for several in together(pages, rows, size):
        yield several[0] if len(several) == 1 else pa.concat_batches(several)


def together(pages: Iterable[Page], rows: int, size: int = GATHERED_BYTES) -> Iterator[list[Page]]:
    """Yield pages in lists, each of so many rows or bytes at least but for the last one; pages without rows are left out.

    >>> pages = [pa.RecordBatch.from_pydict({"id": ids}) for ids in ([1, 2], [3], [], [4])]
    >>> [[page.num_rows for page in several] for several in together(pages, 3)]
    [[2, 1], [1]]
    """
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
    """Return the offsets of a list or map array, copied: those of a slice cannot be combined with a null mask."""
    return pa.array(array.offsets.to_numpy().copy(), pa.int32())


def shown_zones(array: pa.Array, kind: Type) -> pa.Array:
    """Return a column of a result whose timestamps carry zones as Arrow's timestamps: in their zone if all have one, in UTC otherwise.

    >>> from rowmerge_nb.spi.types import Type
    >>> kind = Type("timestamp with time zone", (3,), ("zone",))
    >>> shown_zones(pa.array([{"instant": None, "zone": "Asia/Kolkata"}], kind.arrow), kind).type
    TimestampType(timestamp[us, tz=Asia/Kolkata])
    """
    if kind.base != "timestamp with time zone" or not kind.fields:
        return array
    instants, names = array.flatten()
    zones = names.drop_null().unique().to_pylist()
    return instants.cast(pa.timestamp("us", tz=zones[0] if len(zones) == 1 else "UTC"))


def for_spark(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type that Spark accepts out of a task for a channel of this type.

    >>> for_spark(pa.time64("us")), for_spark(pa.int64())
    (Time64Type(time64[ns]), DataType(int64))
    """
    if pa.types.is_time(kind):
        return pa.time64("ns")
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f"f{i}", for_spark(field.type)) for i, field in enumerate(kind)])
    if pa.types.is_map(kind):
        return pa.map_(for_spark(kind.key_type), for_spark(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(for_spark(kind.value_type))
    return kind


def page_of(given: Any, columns: int, source: str) -> Page:
    """Check what a page source gave.

    Raises:
        ConnectorError: GENERIC_INTERNAL_ERROR, if it is no page, or has another number of channels than columns were asked for.

    >>> page_of([1], 1, "MySource")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.ConnectorError: GENERIC_INTERNAL_ERROR: MySource.get_next_page gave list; it gives a pyarrow.RecordBatch, and None at its end
    """
    if not isinstance(given, pa.RecordBatch):
        raise ConnectorError(
            f"{source}.get_next_page gave {type(given).__name__}; it gives a pyarrow.RecordBatch, and None at its end",
            code="GENERIC_INTERNAL_ERROR",
        )
    if given.num_columns != columns:
        raise ConnectorError(
            f"{source}.get_next_page gave a page of {given.num_columns} channels; {columns} columns were asked for",
            code="GENERIC_INTERNAL_ERROR",
        )
    return given


Batches = Iterable[pa.RecordBatch]
