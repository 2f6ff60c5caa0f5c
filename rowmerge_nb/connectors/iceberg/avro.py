"""Manifests whose bytes are not what they were: pyiceberg's decoder looks at no end, so that they would end the process.

A file's frame is walked through before anything in it is read: header, blocks, and the marks between them, to the very last byte. pyiceberg takes
a file that was cut off between two blocks, or whose end is zeros, for one with fewer entries; rows would be missing without a word.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyiceberg.avro.decoder import BinaryDecoder

_MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16


def guard_decoder() -> None:
    """Make pyiceberg check the bounds of Avro files in this process; a second call changes nothing."""
    from pyiceberg.avro import file

    file.new_decoder = _decoder  # type: ignore[attr-defined]


def _decoder(b: bytes) -> BinaryDecoder:
    """Return a decoder of a whole file, or of the payload of a block."""
    if b[:4] == _MAGIC:
        _check_frame(_bounded(b), len(b))
    return _bounded(b)


def _check_frame(decoder: Any, size: int) -> None:
    """Walk through a file.

    Raises:
        ValueError: it does not consist of a header and whole blocks.
    """
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
            raise ValueError(f"there is no whole block of records before byte {decoder.tell()}")


def _bounded(data: bytes) -> BinaryDecoder:
    decoder: BinaryDecoder = _bounded_class()(data)
    return decoder


@cache
def _bounded_class() -> Any:
    """Return the class of decoders that ask pyiceberg's fast one for what is there, and for nothing else."""
    from pyiceberg.avro.decoder import BinaryDecoder, StreamingBinaryDecoder

    try:
        from pyiceberg.avro.decoder_fast import CythonBinaryDecoder
    except ModuleNotFoundError:
        return StreamingBinaryDecoder

    class Bounded(BinaryDecoder):
        def __init__(self, data: bytes) -> None:
            # A number at the end may say that it goes on. Behind it there are zeros, each of them a number: as many as may be asked for.
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
                raise ValueError(f"{count} bytes are asked for at byte {self._fast.tell()} of {self._size}")

    return Bounded
