"""Conversion of Arrow arrays to SQL's Arrow types: every value exactly, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi.types import from_arrow
from rowmerge_nb.spi.uuids import uuid_texts

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type

_DAY: Final = 86_400


class RefusedValueError(Exception):
    """A value that no SQL type holds exactly; ``reason`` is the second half of a sentence."""

    def __init__(self, row: int, value: object, reason: str) -> None:
        super().__init__(reason)
        self.row = row
        self.value = value
        self.reason = reason


def exact_values(column: pa.ChunkedArray) -> tuple[Type, pa.ChunkedArray]:
    """Return a column's SQL type, and its values in that type's Arrow type.

    A chunk that fails is halved until it succeeds, or one value remains, which is refused. Halves
    also fit 32-bit offsets.
    """
    sql_type = from_arrow(column.type)
    _check_names(column.type)
    if (
        column.type.equals(sql_type.arrow)
        and not pa.types.is_nested(column.type)
        and not pa.types.is_time(column.type)
    ):
        return sql_type, column
    chunks: list[pa.Array] = []
    row = 0
    for chunk in column.chunks:
        chunks += _exact_chunks(chunk, sql_type.arrow, row)
        row += len(chunk)
    return sql_type, pa.chunked_array(chunks, type=sql_type.arrow)


def _exact_chunks(array: pa.Array, target: pa.DataType, row: int) -> list[pa.Array]:
    try:
        return [_exact(array, target)]
    except (pa.ArrowInvalid, pa.ArrowCapacityError, OverflowError) as error:
        if len(array) <= 1:
            raise RefusedValueError(row, _first_value(array), str(error)) from error
    half = len(array) // 2
    return [
        *_exact_chunks(array[:half], target, row),
        *_exact_chunks(array[half:], target, row + half),
    ]


def _first_value(array: pa.Array) -> object:
    try:
        return array[0].as_py()
    except (ValueError, OverflowError, pa.ArrowException):
        return array[0]


def _exact(array: pa.Array, target: pa.DataType) -> pa.Array:
    source = array.type
    if isinstance(source, pa.BaseExtensionType):
        return _exact_extension(array, target)
    if pa.types.is_dictionary(source):
        return _exact_dictionary(array, target)
    if pa.types.is_run_end_encoded(source):
        return _exact_runs(array, target)
    if pa.types.is_struct(target):
        # Flattening makes the fields of NULL rows NULL, even invalid ones.
        fields = [
            _exact(field, target.field(index).type) for index, field in enumerate(array.flatten())
        ]
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=array.is_null())
    if pa.types.is_map(target):
        return _exact_map(array, target)
    if pa.types.is_list(target):
        elements = _exact(pc.list_flatten(array), target.value_type)
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        return pa.ListArray.from_arrays(
            _offsets(lengths), elements, type=target, mask=array.is_null()
        )
    if pa.types.is_time(target):
        _check_times(array)
    return array.cast(target)


def _exact_dictionary(array: pa.DictionaryArray, target: pa.DataType) -> pa.Array:
    try:
        decoded = array.dictionary_decode()
    except pa.ArrowNotImplementedError:
        # Arrow cannot decode a dictionary of string views, as Polars has for categories.
        return _exact(array.dictionary, target).take(array.indices)
    return _exact(decoded, target)


def _exact_runs(array: pa.RunEndEncodedArray, target: pa.DataType) -> pa.Array:
    rows = np.arange(array.offset, array.offset + len(array))
    runs = np.searchsorted(array.run_ends.to_numpy(), rows, side="right")
    first, end = (int(runs[0]), int(runs[-1]) + 1) if len(runs) else (0, 0)
    return _exact(array.values[first:end], target).take(pa.array(runs - first))


def _exact_extension(array: pa.ExtensionArray, target: pa.DataType) -> pa.Array:
    if array.type.extension_name == "arrow.uuid":
        return uuid_texts(array.storage)
    if array.type.extension_name == "arrow.bool8":
        return pc.not_equal(array.storage, 0)
    return _exact(array.storage, target)


def _exact_map(array: pa.MapArray, target: pa.DataType) -> pa.Array:
    offsets = array.offsets.to_numpy()
    entries = slice(int(offsets[0]), int(offsets[-1])) if len(offsets) else slice(0, 0)
    keys = _exact(array.keys[entries], target.key_type)
    items = _exact(array.items[entries], target.item_type)
    own_offsets = pa.array(offsets - entries.start, pa.int32())
    return pa.MapArray.from_arrays(own_offsets, keys, items, type=target, mask=array.is_null())


def _offsets(lengths: np.ndarray) -> pa.Array:
    return pa.array(np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))).cast(pa.int32())


def _check_times(array: pa.Array) -> None:
    unit = array.type.unit
    ticks = array.cast(pa.int32() if unit in {"s", "ms"} else pa.int64())
    bounds = pc.min_max(ticks)
    day = _DAY * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    if bounds["min"].is_valid and not 0 <= bounds["min"].as_py() <= bounds["max"].as_py() < day:
        raise pa.ArrowInvalid("that time of day does not exist")


def _check_names(arrow_type: pa.DataType) -> None:
    names = (
        [field.name.lower() for field in arrow_type if field.name]
        if pa.types.is_struct(arrow_type)
        else []
    )
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise TypeError(
            f"its rows have two fields named '{repeated}' (names are compared without case)"
        )
    for index in range(arrow_type.num_fields):
        _check_names(arrow_type.field(index).type)
