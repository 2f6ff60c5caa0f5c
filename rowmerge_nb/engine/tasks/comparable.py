"""Normalization of join keys: equal values of both sides get equal representations."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NOT_A_NUMBER = np.float64("nan").view(np.int64)


def comparable(values: pa.Array) -> pa.Array:
    """Return values in the widest type of their family.

    Floating point numbers become the bits of doubles, with one zero. NaN, which equals nothing,
    becomes NULL.

    >>> comparable(pa.array([1], pa.int8())).type, comparable(pa.array(["a"], pa.large_string())).type
    (DataType(int64), DataType(string))
    >>> comparable(pa.array([0.0, -0.0, float("nan")])).to_pylist()
    [0, 0, None]
    """
    sql_type = values.type
    if pa.types.is_dictionary(sql_type):
        return comparable(values.dictionary_decode())
    if pa.types.is_floating(sql_type):
        # -0.0 + 0.0 is 0.0.
        numbers = pc.add(values.cast(pa.float64()), 0.0)
        bits = numbers.view(pa.int64())
        if not pc.any(pc.is_nan(numbers)).as_py():
            return bits
        return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.int64()), bits)
    if pa.types.is_integer(sql_type):
        return values.cast(pa.int64())
    if pa.types.is_decimal(sql_type):
        return values.cast(pa.decimal128(38, sql_type.scale))
    if pa.types.is_large_string(sql_type) or pa.types.is_string_view(sql_type):
        return values.cast(pa.string())
    return values


def key_parts(values: pa.Array, *, nulls_meet: bool) -> list[pa.Array]:
    """Return columns that decide equality: two values are equal if all their parts are equal and
    none is NULL.

    With `nulls_meet` (IS NOT DISTINCT FROM), NULL equals NULL, NaN equals NaN, and no part is NULL.
    """
    if nulls_meet:
        parts = _own_parts(values, nulls_meet=True)
        return [values.is_null(), *map(_without_nulls, parts)]
    return _own_parts(values, nulls_meet=False)


def _own_parts(values: pa.Array, *, nulls_meet: bool) -> list[pa.Array]:
    if pa.types.is_struct(values.type):
        return list(
            chain.from_iterable(
                key_parts(field, nulls_meet=nulls_meet) for field in values.flatten()
            )
        )
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        return _list_parts(values, nulls_meet=nulls_meet)
    part = comparable(values)
    if nulls_meet and pa.types.is_floating(values.type):
        part = pc.if_else(part.is_valid(), part, int(_NOT_A_NUMBER))
    return [part]


def _without_nulls(values: pa.Array) -> pa.Array:
    if not values.null_count:
        return values
    # The empty text, zero, or the epoch: a value of every type.
    if pa.types.is_string(values.type) or _is_bytes(values.type):
        return pc.fill_null(values.cast(pa.large_binary()), b"")
    zeros = pa.array(np.zeros(1, np.uint8).repeat(values.type.bit_width // 8 or 1))
    zero = pa.Array.from_buffers(values.type, 1, [None, zeros.buffers()[1]])[0]
    return pc.fill_null(values, zero)


def _list_parts(values: pa.Array, *, nulls_meet: bool) -> list[pa.Array]:
    """Return the bytes of each array's elements, part by part.

    An array with a NULL element equals nothing.
    """
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    elements = key_parts(values.flatten(), nulls_meet=nulls_meet)
    parts = list(chain.from_iterable(_joined(part, offsets) for part in elements))
    comparable_rows = values.is_valid().to_numpy(zero_copy_only=False)
    for part in elements:
        if part.null_count:
            nulls = np.concatenate([[0], np.cumsum(part.is_null().to_numpy(zero_copy_only=False))])
            comparable_rows = comparable_rows & (nulls[offsets[1:]] == nulls[offsets[:-1]])
    return (
        parts
        if comparable_rows.all()
        else [
            pc.if_else(pa.array(comparable_rows), part, pa.scalar(None, part.type))
            for part in parts
        ]
    )


def _joined(part: pa.Array, offsets: np.ndarray) -> list[pa.Array]:
    if _is_bytes(part.type) or pa.types.is_string(part.type):
        texts = part.cast(pa.large_binary())
        starts = np.frombuffer(texts.buffers()[1], np.int64)[
            texts.offset : texts.offset + len(texts) + 1
        ]
        data = texts.buffers()[2] or pa.py_buffer(b"")
        lengths = np.diff(starts)
        return [
            _texts(starts[offsets], data),
            _texts(offsets * lengths.itemsize, pa.py_buffer(lengths)),
        ]
    if pa.types.is_decimal(part.type):
        width = part.type.byte_width
        return [_texts((offsets + part.offset) * width, part.buffers()[1] or pa.py_buffer(b""))]
    if pa.types.is_temporal(part.type):
        part = part.view(pa.int32() if part.type.bit_width == pa.int32().bit_width else pa.int64())
    numbers = pc.fill_null(part, False if pa.types.is_boolean(part.type) else 0).cast(pa.int64())
    words = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False))
    return [_texts(offsets * words.itemsize, pa.py_buffer(words))]


def _texts(offsets: np.ndarray, data: pa.Buffer) -> pa.Array:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int64)), data]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _is_bytes(arrow_type: pa.DataType) -> bool:
    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(check(arrow_type) for check in checks)
