"""Protocol buffers and compression chunks in tails of ORC files."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, _FIXED64, BYTES, _FIXED32 = 0, 1, 2, 5
_NONE, _ZLIB, _SNAPPY, _ZSTD = 0, 1, 2, 5
_CUT: Final = 64 * 1024 - 1
"""The size of a written chunk: at most the reader's buffer, 64 KB by Arrow's default."""

_LARGEST: Final = 1 << 23
"""The largest chunk: a header has 23 bits for the length of an uncompressed one."""
_MOST: Final = 1 << 28
"""A limit above the size of any tail."""


def fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == VARINT:
            value, at = _read_varint(message, at)
        else:
            length = {_FIXED64: 8, _FIXED32: 4}.get(wire, -1)
            if length < 0:
                length, at = _read_varint(message, at)
            value = message[at : at + length]
            at += length
        yield number, wire, value


def numbers_in(value: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(value):
        number, at = _read_varint(value, at)
        numbers.append(number)
    return numbers


def signed(value: int) -> int:
    """Decode a field of type ``sint64``.

    >>> signed(3), signed(4)
    (-2, 2)
    """
    return value >> 1 ^ -(value & 1)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def varint(value: int) -> bytes:
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def encoded(number: int, wire: int, value: int | bytes) -> bytes:
    key = varint(number << 3 | wire)
    if isinstance(value, int):
        return key + varint(value)
    return key + (varint(len(value)) if wire == BYTES else b"") + value


def field(number: int, value: int | bytes) -> bytes:
    """Encode a field that is a number, text or message.

    >>> list(fields(field(2, b"a") + field(1, 300)))
    [(2, 2, b'a'), (1, 0, 300)]
    """
    return encoded(number, VARINT if isinstance(value, int) else BYTES, value)


def decompressed(data: bytes, codec: int) -> bytes:
    """Decompress ORC chunks.

    The lowest bit of a chunk's three-byte header marks an uncompressed one.
    """
    if codec == _NONE:
        return data
    chunks, at, size = [], 0, 0
    while at < len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (header >> 1)]
        chunks.append(chunk if header & 1 else _unpacked(chunk, codec))
        size += len(chunks[-1])
        if len(chunks[-1]) > _LARGEST or size > _MOST:
            raise ValueError(
                f"a tail of {len(data)} bytes decompresses to more than {_MOST} bytes,"
                f" or one of its chunks to more than {_LARGEST}"
            )
        at += 3 + (header >> 1)
    return b"".join(chunks)


def _unpacked(chunk: bytes, codec: int) -> bytes:
    if codec == _ZLIB:
        unpacking = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        plain = unpacking.decompress(chunk, _LARGEST + 1)
        if not unpacking.eof:
            raise ValueError(
                f"a chunk of {len(chunk)} bytes is truncated, or holds more than {_LARGEST}"
            )
        return plain
    if codec == _SNAPPY:
        size, _ = _read_varint(chunk, 0)
        if size > _LARGEST:
            raise ValueError(f"a chunk of {len(chunk)} bytes declares a size of {size}")
        return bytes(pa.decompress(chunk, size, codec="snappy"))
    if codec == _ZSTD:
        with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
            return bytes(stream.read(_LARGEST + 1))
    raise ValueError(f"ORC codec {codec} is not supported")


def compressed(plain: bytes, codec: int) -> bytes:
    if codec == _NONE:
        return plain
    chunks = [plain[at : at + _CUT] for at in range(0, len(plain), _CUT)]
    return b"".join((len(chunk) << 1 | 1).to_bytes(3, "little") + chunk for chunk in chunks)
