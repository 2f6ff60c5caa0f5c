"""Spark's ``xxhash64`` over Arrow arrays, bit for bit, for rows that are sent to writers without
Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.ordering import ascending

if TYPE_CHECKING:
    from collections.abc import Sequence

Words = npt.NDArray[np.uint64]

_SEED: Final = 42
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE: Final = 32
_LONG_DIGITS: Final = 18
"""Maximum digits of a decimal that is hashed as a long; a wider one is hashed by its bytes."""


def xxhash64(columns: Sequence[pa.Array], rows: int) -> npt.NDArray[np.int64]:
    """Hash rows by columns; a NULL does not change the hash of the preceding columns."""
    hashed = np.full(rows, _SEED, np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            hashed = _folded(column, hashed)
    return hashed.view(np.int64)


def _folded(column: pa.Array, seeds: Words) -> Words:
    arrow_type = column.type
    if pa.types.is_dictionary(arrow_type):
        return _folded(column.dictionary_decode(), seeds)
    if pa.types.is_null(arrow_type):
        return seeds
    if pa.types.is_struct(arrow_type):
        hashes = seeds
        for field in column.flatten():
            hashes = _folded(field, hashes)
    elif (
        pa.types.is_string(arrow_type)
        or pa.types.is_large_string(arrow_type)
        or pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
    ):
        hashes = _of_texts(column.cast(pa.large_binary()), seeds)
    elif pa.types.is_decimal(arrow_type):
        hashes = _of_decimals(column, seeds)
    else:
        hashes = _of_numbers(column, seeds)
    if not column.null_count:
        return hashes
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), hashes, seeds)


def _of_numbers(column: pa.Array, seeds: Words) -> Words:
    arrow_type = column.type
    if pa.types.is_floating(arrow_type):
        numbers = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
        # -0.0 equals 0.0, and there is one NaN.
        plain = np.where(
            numbers == 0,
            numbers.dtype.type(0),
            np.where(np.isnan(numbers), numbers.dtype.type("nan"), numbers),
        )
        if arrow_type.bit_width == 32:
            return _of_ints(plain.view(np.int32), seeds)
        return _of_longs(plain.view(np.int64), seeds)
    if pa.types.is_timestamp(arrow_type):
        return _of_longs(
            _whole(column.cast(pa.timestamp("us", arrow_type.tz)).cast(pa.int64())), seeds
        )
    if pa.types.is_time(arrow_type):
        return _of_longs(_whole(column.cast(pa.time64("ns")).cast(pa.int64())), seeds)
    if pa.types.is_int64(arrow_type):
        return _of_longs(_whole(column), seeds)
    if pa.types.is_date(arrow_type):
        column = column.cast(pa.int32())
    if not (pa.types.is_integer(column.type) or pa.types.is_boolean(arrow_type)):
        raise TypeError(f"There is no hash of {arrow_type}")
    return _of_ints(_whole(column.cast(pa.int32())), seeds)


def _whole(column: pa.Array) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return numbers


def _of_ints(numbers: npt.NDArray[np.signedinteger], seeds: Words) -> Words:
    mixed = (
        seeds + _P5 + np.uint64(4)
        ^ numbers.astype(np.int32).view(np.uint32).astype(np.uint64) * _P1
    )
    return _avalanche(_rotated(mixed, 23) * _P2 + _P3)


def _of_longs(numbers: npt.NDArray[np.int64], seeds: Words) -> Words:
    return _avalanche(
        _eaten(seeds + _P5 + np.uint64(8), np.ascontiguousarray(numbers).view(np.uint64))
    )


def _of_decimals(column: pa.Array, seeds: Words) -> Words:
    """Hash unscaled numbers: up to 18 digits as longs, others by their minimal big-endian bytes."""
    wide = column.cast(pa.decimal128(38, column.type.scale))
    words = np.frombuffer(wide.buffers()[1], np.int64)[
        wide.offset * 2 : (wide.offset + len(wide)) * 2
    ].reshape(-1, 2)
    if column.type.precision <= _LONG_DIGITS:
        return _of_longs(
            np.where(column.is_valid().to_numpy(zero_copy_only=False), words[:, 0], 0), seeds
        )
    highest_first = np.ascontiguousarray(words.view(np.uint8).reshape(-1, 16)[:, ::-1])
    # A leading byte is dropped if it repeats the sign of the next one.
    sign = np.where(highest_first[:, :1] >= 0x80, 0xFF, 0)
    repeats = (highest_first[:, :-1] == sign) & ((highest_first[:, 1:] ^ sign) < 0x80)
    spare = np.argmin(np.concatenate([repeats, np.zeros((len(repeats), 1), bool)], axis=1), axis=1)
    hashed = seeds.copy()
    for dropped in ascending(spare):
        rows = np.flatnonzero(spare == dropped)
        hashed[rows] = _of_bytes(highest_first[rows, dropped:], seeds[rows])
    return hashed


def _of_texts(column: pa.LargeBinaryArray, seeds: Words) -> Words:
    offsets = np.frombuffer(column.buffers()[1], np.int64)[
        column.offset : column.offset + len(column) + 1
    ]
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    hashed = seeds.copy()
    for length in ascending(lengths):
        rows = np.flatnonzero(lengths == length)
        texts = data[offsets[rows][:, None] + np.arange(length)]
        hashed[rows] = _of_bytes(texts, seeds[rows])
    return hashed


def _of_bytes(texts: npt.NDArray[np.uint8], seeds: Words) -> Words:
    length = texts.shape[1]
    whole = length // 8 * 8
    words: Words = (
        np.ascontiguousarray(texts[:, :whole]).view(np.uint64).reshape(len(texts), whole // 8)
    )
    first = length // _STRIPE * 4
    if length >= _STRIPE:
        lanes = [seeds + _P1 + _P2, seeds + _P2, seeds, seeds - _P1]
        for start in range(0, first, 4):
            for lane in range(4):
                lanes[lane] = _rotated(lanes[lane] + words[:, start + lane] * _P2, 31) * _P1
        hashed = (
            _rotated(lanes[0], 1)
            + _rotated(lanes[1], 7)
            + _rotated(lanes[2], 12)
            + _rotated(lanes[3], 18)
        )
        for state in lanes:
            hashed = (hashed ^ _rotated(state * _P2, 31) * _P1) * _P1 + _P4
    else:
        hashed = seeds + _P5
    hashed = hashed + np.uint64(length)
    for word in range(first, whole // 8):
        hashed = _eaten(hashed, words[:, word])
    at = whole
    if length - at >= 4:
        half = (
            np.ascontiguousarray(texts[:, at : at + 4])
            .view(np.uint32)
            .reshape(len(texts))
            .astype(np.uint64)
        )
        hashed = _rotated(hashed ^ half * _P1, 23) * _P2 + _P3
        at += 4
    for byte in range(at, length):
        hashed = _rotated(hashed ^ texts[:, byte].astype(np.uint64) * _P5, 11) * _P1
    return _avalanche(hashed)


def _eaten(hashed: Words, words: Words) -> Words:
    return _rotated(hashed ^ _rotated(words * _P2, 31) * _P1, 27) * _P1 + _P4


def _rotated(words: Words, turn: int) -> Words:
    return words << np.uint64(turn) | words >> np.uint64(64 - turn)


def _avalanche(hashed: Words) -> Words:
    hashed = (hashed ^ hashed >> np.uint64(33)) * _P2
    hashed = (hashed ^ hashed >> np.uint64(29)) * _P3
    return hashed ^ hashed >> np.uint64(32)
