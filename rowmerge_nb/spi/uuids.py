"""UUIDs in pages: lower-case text."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_BYTES: Final = 16
_CHARACTERS: Final = 36
_DIGITS: Final = [index for index in range(_CHARACTERS) if index not in {8, 13, 18, 23}]
"""The positions of the hexadecimal digits; hyphens are between them."""


def uuid_texts(column: pa.Array) -> pa.Array:
    """Convert 16-byte UUIDs to text.

    >>> uuid_texts(pa.array([bytes(range(16)), None], pa.binary(16))).to_pylist()
    ['00010203-0405-0607-0809-0a0b0c0d0e0f', None]
    """
    rows, data = len(column), column.buffers()[1]
    if not rows or data is None:
        return pa.nulls(rows, pa.string())
    raw = np.frombuffer(data, np.uint8)[column.offset * _BYTES : (column.offset + rows) * _BYTES]
    nibbles = np.stack([raw >> 4, raw & 15], axis=1).reshape(rows, 2 * _BYTES)
    text = np.full((rows, _CHARACTERS), ord("-"), np.uint8)
    text[:, _DIGITS] = np.frombuffer(b"0123456789abcdef", np.uint8)[nibbles]
    offsets = pa.py_buffer(
        np.arange(0, _CHARACTERS * (rows + 1), _CHARACTERS, dtype=np.int32).tobytes()
    )
    texts = pa.StringArray.from_buffers(rows, offsets, pa.py_buffer(text.tobytes()))
    return (
        pc.if_else(pc.is_null(column), pa.scalar(None, pa.string()), texts)
        if column.null_count
        else texts
    )
