"""Bounds checks for Avro manifests: pyiceberg's decoder reads past the end of damaged files and
crashes the process.

The frame of a file (header, blocks, sync marks) is checked to the last byte first. pyiceberg
accepts a file that is cut off between blocks or ends in zeros, and rows would be missing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyiceberg.avro.decoder import BinaryDecoder

_MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16


def guard_decoder() -> None:
    """Make pyiceberg check the bounds of Avro files in this process."""
    from pyiceberg.avro import file

    file.new_decoder = _decoder  # type: ignore[attr-defined]


def _decoder(b: bytes) -> BinaryDecoder:
    if b[:4] == _MAGIC:
        _check_frame(_bounded(b), len(b))
    return _bounded(b)


def _check_frame(decoder: Any, size: int) -> None:
    decoder.read(len(_MAGIC))
    while (entries := decoder.read_int()) != 0:
        if entries < 0:
            decoder.read_int()
        for _ in range(2 * abs(entries)):
            decoder.read_bytes()
    mark = decoder.read(_SYNC)
    while decoder.tell() < size:
        records, payload = decoder.read_int(), decoder.read_bytes()
        # A block without records is what pyiceberg writes for a snapshot without files.
        if records < 0 or (records and not payload) or decoder.read(_SYNC) != mark:
            raise ValueError(f"there is no complete block of records before byte {decoder.tell()}")


def _bounded(data: bytes) -> BinaryDecoder:
    decoder: BinaryDecoder = _bounded_class()(data)
    return decoder


@cache
def _bounded_class() -> Any:
    from pyiceberg.avro.decoder import BinaryDecoder, StreamingBinaryDecoder

    try:
        from pyiceberg.avro.decoder_fast import CythonBinaryDecoder
    except ModuleNotFoundError:
        return StreamingBinaryDecoder

    class Bounded(BinaryDecoder):
        def __init__(self, data: bytes) -> None:
            # A varint at the end may be unterminated. Each padding zero terminates one, and there
            # are enough for any valid request.
            self._fast = CythonBinaryDecoder(data + bytes(len(data) + 1))
            self._size = len(data)

        def tell(self) -> int:
            return self._fast.tell()

        def read(self, n: int) -> bytes:
            self._require(n)
            return self._fast.read(n)

        def skip(self, n: int) -> None:
            self._require(n)
            self._fast.skip(n)

        def read_int(self) -> int:
            if self._fast.tell() >= self._size:
                raise EOFError
            return self._fast.read_int()

        def read_ints(self, n: int) -> tuple[int, ...]:
            self._require(n)
            numbers = self._fast.read_ints(n)
            self._require(0)
            return numbers

        def _require(self, count: int) -> None:
            if not 0 <= count <= self._size - self._fast.tell():
                raise ValueError(
                    f"{count} bytes are requested at byte {self._fast.tell()} of {self._size}"
                )

    return Bounded
