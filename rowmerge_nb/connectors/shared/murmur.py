"""Murmur3 (x86, 32 bits) of columns, which defines the bucket functions of Iceberg and Hive."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

_C1: Final = np.uint32(0xCC9E2D51)
_C2: Final = np.uint32(0x1B873593)
_DECIMAL_BYTES: Final = 16


def murmur3(values: pa.Array) -> npt.NDArray[np.int32]:
    """Hash each value as Iceberg does; the hash of NULL is undefined.

    Integers, dates, times and timestamps are hashed as 64-bit numbers (days or microseconds),
    decimals as the shortest two's complement of their unscaled value, text as UTF-8, binary
    unchanged.
    """
    arrow_type = values.type
    if pa.types.is_decimal(arrow_type):
        return hash_bytes(*_decimal_bytes(values))
    if pa.types.is_binary(arrow_type) or pa.types.is_string(arrow_type):
        return hash_bytes(*bytes_of(values))
    if pa.types.is_temporal(arrow_type):
        values = values.cast(pa.int32() if arrow_type.bit_width == 32 else pa.int64())
    numbers = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return hash_bytes(numbers.astype("<i8").view(np.uint8), np.full(len(numbers), 8))


def bytes_of(values: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    column = pc.fill_null(values.cast(pa.large_binary()), b"")
    if not len(column):
        return np.zeros(0, np.uint8), np.zeros(0, np.int64)
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[
        column.offset : column.offset + len(column) + 1
    ]
    data = (
        np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    )
    return data[offsets[0] : offsets[-1]], np.diff(offsets)


def _decimal_bytes(values: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the unscaled values as big-endian two's complement of minimal length."""
    column = pc.fill_null(values, pa.scalar(Decimal(0), values.type))
    if not len(column):
        return np.zeros(0, np.uint8), np.zeros(0, np.int64)
    raw = np.frombuffer(column.buffers()[1], np.uint8).reshape(-1, _DECIMAL_BYTES)
    digits = raw[column.offset : column.offset + len(column), ::-1]
    sign = np.where(digits[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    # A leading byte is superfluous if it repeats the sign, and the next byte has the same sign.
    repeats = (digits[:, :-1] == sign) & ((digits[:, 1:] >= 0x80) == (sign == 0xFF))
    lengths = _DECIMAL_BYTES - np.cumprod(repeats, axis=1).sum(axis=1)
    significant = np.arange(_DECIMAL_BYTES) >= (_DECIMAL_BYTES - lengths)[:, None]
    return digits[significant], lengths


def hash_bytes(
    data: npt.NDArray[np.uint8],
    lengths: npt.NDArray[np.int64],
    seed: int = 0,
    *,
    signed_tail: bool = False,
) -> npt.NDArray[np.int32]:
    """Hash concatenated byte strings by block.

    >>> hash_bytes(*bytes_of(pa.array(["iceberg"]))).tolist()
    [1210000089]
    """
    hashes = np.full(len(lengths), seed, np.uint32)
    starts = np.cumsum(lengths) - lengths
    padded = np.concatenate([data, np.zeros(4, np.uint8)]).astype(np.uint32)
    for block in range(int(lengths.max(initial=0)) // 4):
        rows = np.flatnonzero(lengths >= 4 * (block + 1))
        hashes[rows] = _rotated(
            hashes[rows] ^ _scrambled(_word(padded, starts[rows] + 4 * block)), 13
        ) * np.uint32(5) + np.uint32(0xE6546B64)
    tail_lengths = lengths % 4
    if signed_tail:
        padded = padded.astype(np.uint8).view(np.int8).astype(np.int32).view(np.uint32)
    tails = np.zeros(len(lengths), np.uint32)
    for byte in range(3):
        has_byte = tail_lengths > byte
        tails[has_byte] ^= padded[(starts + lengths - tail_lengths)[has_byte] + byte] << np.uint32(
            8 * byte
        )
    hashes ^= np.where(tail_lengths > 0, _scrambled(tails), np.uint32(0)) ^ lengths.astype(
        np.uint32
    )
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (hashes ^ (hashes >> np.uint32(16))).view(np.int32)


def _word(data: npt.NDArray[np.uint32], at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    word: npt.NDArray[np.uint32] = data[at]
    for byte in range(1, 4):
        word = word | (data[at + byte] << np.uint32(8 * byte))
    return word


def _scrambled(word: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    return _rotated(word * _C1, 15) * _C2


def _rotated(word: npt.NDArray[np.uint32], by: int) -> npt.NDArray[np.uint32]:
    return (word << np.uint32(by)) | (word >> np.uint32(32 - by))
