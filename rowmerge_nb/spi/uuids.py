"""UUIDs in pages: lower-case text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

W = TypeVar("W", bound=np.unsignedinteger)

_BYTES: Final = 16
_DIGITS: Final = 32
_CHARACTERS: Final = 36
_HYPHENS: Final = (8, 13, 18, 23)
_WORDS: Final = (
    (0, 0, np.uint64),
    (9, 8, np.uint32),
    (14, 12, np.uint32),
    (19, 16, np.uint32),
    (24, 20, np.uint64),
    (32, 28, np.uint32),
)
"""The digits as words: where each is in the text, where among the digits alone, and its type."""
_PAIRS: Final = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)
"""The two digits of each byte."""
_CODES: Final = np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
_NIBBLES: Final = np.zeros(256, np.uint8)
for _digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
    _NIBBLES[list(_digits)] = range(16)
_NUMBERS: Final = _NIBBLES[_CODES[:, 0]] << np.uint8(4) | _NIBBLES[_CODES[:, 1]]
"""The byte of each pair of digits."""
_ZERO: Final = "00000000-0000-0000-0000-000000000000"


def uuid_texts(column: pa.Array) -> pa.Array:
    """Convert 16-byte UUIDs to text.

    >>> uuid_texts(pa.array([bytes(range(16)), None], pa.binary(16))).to_pylist()
    ['00010203-0405-0607-0809-0a0b0c0d0e0f', None]
    """
    rows, data = len(column), column.buffers()[1]
    if not rows or data is None:
        return pa.nulls(rows, pa.string())
    raw = np.frombuffer(data, np.uint8)[column.offset * _BYTES : (column.offset + rows) * _BYTES]
    digits = _PAIRS.take(raw).view(np.uint8)
    text = np.empty(rows * _CHARACTERS, np.uint8)
    for at in _HYPHENS:
        text[at::_CHARACTERS] = ord("-")
    for in_text, in_digits, word in _WORDS:
        words_at(text, word, rows, in_text, _CHARACTERS)[:] = words_at(
            digits, word, rows, in_digits, _DIGITS
        )
    offsets = np.arange(0, _CHARACTERS * (rows + 1), _CHARACTERS, dtype=np.int32)
    texts = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))
    return (
        pc.if_else(pc.is_null(column), pa.scalar(None, pa.string()), texts)
        if column.null_count
        else texts
    )


def uuid_bytes(column: pa.Array) -> pa.Array:
    """Convert the texts of UUIDs to 16 bytes each; those of NULL are zero.

    Raises:
        ValueError: a text does not have 36 characters.

    >>> uuid_bytes(pa.array(["00010203-0405-0607-0809-0A0b0c0d0e0f"]))[0].as_py() == bytes(range(16))
    True
    """
    texts = pc.fill_null(column, _ZERO) if column.null_count else column
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_BYTES), len(texts), [None, pa.py_buffer(_bytes_of(texts))]
    )


def _bytes_of(texts: pa.Array) -> npt.NDArray[np.uint8]:
    rows = len(texts)
    if not rows:
        return np.empty(0, np.uint8)
    _, ends, content = texts.buffers()
    offsets = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + rows + 1]
    if (np.diff(offsets) != _CHARACTERS).any():
        raise ValueError(f"a UUID is a text of {_CHARACTERS} characters")
    text = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]
    digits = np.empty(rows * _DIGITS, np.uint8)
    for in_text, in_digits, word in _WORDS:
        words_at(digits, word, rows, in_digits, _DIGITS)[:] = words_at(
            text, word, rows, in_text, _CHARACTERS
        )
    numbers: npt.NDArray[np.uint8] = _NUMBERS.take(digits.view(np.uint16))
    return numbers


def words_at(
    codes: npt.NDArray[np.uint8], word: type[W], count: int, start: int, stride: int
) -> npt.NDArray[W]:
    r"""Return bytes as words, without a copy: one every ``stride`` bytes, which may overlap.

    >>> words_at(np.arange(6, dtype=np.uint8), np.uint16, 2, 1, 3).tobytes()
    b'\x01\x02\x04\x05'
    """
    return np.ndarray((count,), word, codes.data, start, (stride,))
