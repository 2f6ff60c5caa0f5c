"""User metadata of ORC files, which Arrow reads but does not write: Hive 3 wants to know the last key of every stripe from them.

A file ends with its footer, a postscript that says how long the footer is, and one byte that says how long the postscript is. Both are
protocol buffers, to which fields can be appended.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["add_user_metadata"]

_TAIL: Final = 64 * 1024
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FOOTER_LENGTH, _COMPRESSION = 1, 2
_STRIPES, _METADATA = 3, 5
_STRIPE_ROWS: Final = 5
_NONE, _ZLIB = 0, 1
_LARGEST_CHUNK: Final = 1 << 23


def add_user_metadata(path: Path, entries: Callable[[Sequence[int]], Mapping[str, str]]) -> None:
    """Write user metadata into a file that Arrow has written.

    Args:
        path: the file.
        entries: gives keys and values, told the number of the last row of every stripe.
    """
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        tail = file.read()
        script = tail[-1 - tail[-1] : -1]
        fields = {number: value for number, _, value in _fields(script) if isinstance(value, int)}
        length, codec = fields[_FOOTER_LENGTH], fields.get(_COMPRESSION, _NONE)
        start = size - 1 - len(script) - length
        if length > len(tail) - 1 - len(script):
            file.seek(start)
            tail = file.read()
        footer = _decompressed(tail[-1 - len(script) - length : -1 - len(script)], codec)
        rows = [
            next((value for inner, _, value in _fields(stripe) if inner == _STRIPE_ROWS and isinstance(value, int)), 0)
            for number, _, stripe in _fields(footer)
            if number == _STRIPES and isinstance(stripe, bytes)
        ]
        last = [sum(rows[: place + 1]) - 1 for place in range(len(rows))]
        for key, value in entries(last).items():
            item = _field(1, key.encode()) + _field(2, value.encode())
            footer += _field(_METADATA, item)
        packed = _compressed(footer, codec)
        file.seek(start)
        script = _key(_FOOTER_LENGTH, _VARINT) + _varint(len(packed)) + b"".join(_without(script, _FOOTER_LENGTH))
        file.write(packed + script + bytes([len(script)]))
        file.truncate()


def _fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Give number, wire type and value of every field of a protocol buffer."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == _VARINT:
            value, at = _read_varint(message, at)
        else:
            length = {_FIXED64: 8, _FIXED32: 4}.get(wire, -1)
            if length < 0:
                length, at = _read_varint(message, at)
            value = message[at : at + length]
            at += length
        yield number, wire, value


def _without(message: bytes, dropped: int) -> Iterator[bytes]:
    for number, wire, value in _fields(message):
        if number == dropped:
            continue
        if isinstance(value, int):
            yield _key(number, wire) + _varint(value)
        else:
            yield _key(number, wire) + (_varint(len(value)) if wire == _BYTES else b"") + value


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def _key(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _field(number: int, value: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(value)) + value


def _decompressed(packed: bytes, codec: int) -> bytes:
    """Undo ORC's chunks: three bytes of header each, of which the lowest bit says that the chunk is as it was."""
    if codec == _NONE:
        return packed
    if codec != _ZLIB:
        msg = f"ORC files are written with zlib here, not with codec {codec}"
        raise ValueError(msg)
    parts, at = [], 0
    while at < len(packed):
        header = int.from_bytes(packed[at : at + 3], "little")
        chunk = packed[at + 3 : at + 3 + (header >> 1)]
        parts.append(chunk if header & 1 else zlib.decompress(chunk, wbits=-zlib.MAX_WBITS))
        at += 3 + (header >> 1)
    return b"".join(parts)


def _compressed(plain: bytes, codec: int) -> bytes:
    if codec == _NONE:
        return plain
    # One chunk holds what its file's buffers hold at most, 64 KB by Arrow's default; plain chunks need no packing.
    cut = min(_TAIL, _LARGEST_CHUNK) - 1
    chunks = [plain[at : at + cut] for at in range(0, len(plain), cut)]
    return b"".join((len(chunk) << 1 | 1).to_bytes(3, "little") + chunk for chunk in chunks)
