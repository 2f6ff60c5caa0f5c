"""Hashes of join keys, equal in processes of one byte order.

They only exclude rows; a match compares values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.row_hashes import row_hashes
from rowmerge_nb.spi.uuids import words_at

if TYPE_CHECKING:
    from collections.abc import Sequence

Hashes = npt.NDArray[np.uint64]

_SEED: Final = np.uint64(0x6A09E667F3BCC909)
_FACTORS: Final = (np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F))
_WORD: Final = 8
_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
"""Bit masks of the first n bytes of a word."""


def key_hashes(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """Return a hash of the keys of each row; that of a row with a NULL is arbitrary."""
    hashes = np.full(rows, _SEED, np.uint64)
    for column in columns:
        hashes = _with_column(hashes, column)
    return hashes


def _with_column(hashes: Hashes, column: pa.Array) -> Hashes:
    sql_type = column.type
    if (
        pa.types.is_string(sql_type)
        or pa.types.is_binary(sql_type)
        or pa.types.is_large_binary(sql_type)
    ):
        return _with_texts(hashes, column)
    if pa.types.is_fixed_size_binary(sql_type):
        return _with_texts(hashes, column.cast(pa.binary()))
    if pa.types.is_decimal128(sql_type):
        words = np.frombuffer(column.buffers()[1], np.uint64)[
            column.offset * 2 : (column.offset + len(column)) * 2
        ]
        return _mixed(_mixed(hashes ^ words[::2]) ^ words[1::2])
    numbers = _numbers(column)
    return _mixed(hashes ^ (row_hashes([column], len(column)) if numbers is None else numbers))


def _numbers(column: pa.Array) -> Hashes | None:
    sql_type = column.type
    if pa.types.is_boolean(sql_type):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(sql_type) or pa.types.is_time32(sql_type):
        column = column.view(pa.int32()).cast(pa.int64())
    elif pa.types.is_temporal(sql_type):
        column = column.view(pa.int64())
    if not pa.types.is_int64(column.type):
        return None
    values = pc.fill_null(column, 0) if column.null_count else column
    words: Hashes = values.to_numpy(zero_copy_only=False).view(np.uint64)
    return words


def _with_texts(hashes: Hashes, column: pa.Array) -> Hashes:
    """Add texts word by word, in one pass per word over all rows that are long enough."""
    wide = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    offsets = np.frombuffer(column.buffers()[1], wide)[
        column.offset : column.offset + len(column) + 1
    ].astype(np.int64)
    if not len(column):
        return hashes
    text = np.frombuffer(column.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    hashes = hashes + lengths.view(np.uint64) * _FACTORS[1]
    length = int(lengths[0])
    if length >= _WORD and bool((lengths == length).all()):
        return _with_equally_long(hashes, text, length)
    # The last word of the last text may extend beyond it.
    words = words_at(
        np.concatenate([text, np.zeros(_WORD, np.uint8)]), np.uint64, len(text) + 1, 0, 1
    )
    hashes = _mixed(hashes ^ words[starts] & _MASKS[np.minimum(lengths, _WORD)])
    rows = np.flatnonzero(lengths > _WORD)
    at = _WORD
    while len(rows):
        rest = lengths[rows] - at
        hashes[rows] = _mixed(
            hashes[rows] ^ words[starts[rows] + at] & _MASKS[np.minimum(rest, _WORD)]
        )
        at += _WORD
        rows = rows[rest > _WORD]
    return hashes


def _with_equally_long(hashes: Hashes, text: npt.NDArray[np.uint8], length: int) -> Hashes:
    """Add texts of equal length, which need no masks. The hashes equal those of `_with_texts`."""
    whole = length // _WORD * _WORD
    for at in range(0, whole, _WORD):
        hashes = _mixed(hashes ^ words_at(text, np.uint64, len(hashes), at, length))
    if length > whole:
        # The last word overlaps the previous one: shift out the bytes that were already added.
        last = words_at(text, np.uint64, len(hashes), length - _WORD, length) >> np.uint64(
            8 * (whole + _WORD - length)
        )
        hashes = _mixed(hashes ^ last)
    return hashes


def equally_long_texts(column: pa.Array) -> npt.NDArray[np.void] | None:
    """Return the bytes of texts that all have the same length of at least a word; None for other
    columns.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)) or not len(column):
        return None
    _, ends, content = column.buffers()
    offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    length = int(offsets[1] - offsets[0])
    if length < _WORD or not bool((np.diff(offsets) == length).all()):
        return None
    return np.frombuffer(content, f"V{length}", len(column), int(offsets[0]))


def equal_texts(one: npt.NDArray[np.void], other: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    """Compare texts of the same length row by row, a word at a time; the last two may overlap."""
    length = one.dtype.itemsize
    starts = [*range(0, length - _WORD, _WORD), length - _WORD]
    letters, other_letters = one.view(np.uint8), other.view(np.uint8)
    equal = np.ones(len(one), bool)
    if not len(one):
        return equal
    for at in starts:
        equal &= words_at(letters, np.uint64, len(one), at, length) == words_at(
            other_letters, np.uint64, len(one), at, length
        )
    return equal


def _mixed(words: Hashes) -> Hashes:
    """Mix each bit into the whole word, above all into the highest bits.

    The input must be a temporary array.
    """
    words *= _FACTORS[0]
    words ^= words >> np.uint64(32)
    words *= _FACTORS[1]
    words ^= words >> np.uint64(29)
    return words
