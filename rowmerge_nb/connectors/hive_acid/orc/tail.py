"""Tails of ORC files: what they tell of stripes, and what Arrow does not write into them.

A file ends with statistics of its stripes, its footer, a postscript that says how long both are, and one byte that says how long the
postscript is. All of them are protocol buffers. Arrow reads user metadata and the lengths of texts but writes neither: Hive 3 wants to know
the last key of every stripe from the former, and a ``varchar(n)`` is told from a string by the latter.
"""

from __future__ import annotations

import datetime as dt
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.connectors.hive_acid.orc.messages import (
    VARINT,
    compressed,
    decompressed,
    encoded,
    field,
    fields,
    numbers_in,
    signed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rowmerge_nb.spi.types import Type

_TAIL: Final = 64 * 1024
_FOOTER_LENGTH, _COMPRESSION, _METADATA_LENGTH, _WRITER_VERSION = 1, 2, 5, 6
_STRIPES, _TYPES, _METADATA = 3, 4, 5
_SIZES, _STRIPE_ROWS = (2, 3, 4), 5
_SUBTYPES, _LENGTH = 2, 4
_STRING, _VARCHAR, _CHAR = 7, 16, 17
_VALUES, _INTEGERS, _TEXTS, _DECIMALS, _DATES = 1, 2, 4, 6, 7
_LOWER, _UPPER = 4, 5
_EPOCH: Final = dt.date(1970, 1, 1)


@dataclass(frozen=True)
class Stripe:
    """A stripe of a file.

    Args:
        number: its place, from 0.
        first: how many rows come before it.
        rows: how many it has.
        size: its bytes in the file.
    """

    number: int
    first: int
    rows: int
    size: int


@dataclass(frozen=True)
class ValueRange:
    """What is known of a column in a stripe.

    Args:
        count: how many values are not NULL.
        low: none is smaller; None if that is not known.
        high: none is larger; None if that is not known.
    """

    count: int
    low: Any = None
    high: Any = None


@dataclass(frozen=True)
class OrcTail:
    """What the tail of a file tells.

    Args:
        stripes: the stripes.
        children: per type, by its number, the numbers of the types within it; the first type is the whole file.
        statistics: per stripe the statistics of every type, encoded.
    """

    stripes: tuple[Stripe, ...]
    children: tuple[tuple[int, ...], ...]
    statistics: tuple[tuple[bytes, ...], ...]

    def column(self, *path: int) -> int | None:
        """Return the number of the type at a place within the file, as ``column(5, 0)`` for the first one in the sixth."""
        number = 0
        for index in path:
            if number >= len(self.children) or index >= len(self.children[number]):
                return None
            number = self.children[number][index]
        return number

    def range(self, stripe: int, column: int | None, kind: Type) -> ValueRange | None:
        """Return what is known of a column in a stripe; None if nothing is, or the column's type has no order that is safe to use."""
        if column is None or stripe >= len(self.statistics) or column >= len(self.statistics[stripe]):
            return None
        # Where the bytes are no statistics, nothing is known.
        with suppress(LookupError, ValueError, OverflowError, ArithmeticError, TypeError, AttributeError):
            known = {number: value for number, _, value in fields(self.statistics[stripe][column])}
            count = known[_VALUES]
            reader = _READERS.get(kind.base)
            details = known.get(reader[0]) if reader is not None else None
            if not isinstance(count, int):
                return None
            if reader is None or not isinstance(details, bytes):
                return ValueRange(count)
            return ValueRange(count, *reader[1]({number: value for number, _, value in fields(details)}))
        return None


def _integer_range(found: Mapping[int, Any]) -> tuple[Any, Any]:
    return tuple(signed(found[index]) if index in found else None for index in (1, 2))  # type: ignore[return-value]


def _date_range(found: Mapping[int, Any]) -> tuple[Any, Any]:
    return tuple(_EPOCH + dt.timedelta(signed(found[index])) if index in found else None for index in (1, 2))  # type: ignore[return-value]


def _text_range(found: Mapping[int, Any]) -> tuple[Any, Any]:
    # Of long texts there are only bounds.
    low, high = found.get(1, found.get(_LOWER)), found.get(2, found.get(_UPPER))
    return tuple(None if text is None else text.decode() for text in (low, high))  # type: ignore[return-value]


def _decimal_range(found: Mapping[int, Any]) -> tuple[Any, Any]:
    return tuple(Decimal(found[index].decode()) if index in found else None for index in (1, 2))  # type: ignore[return-value]


_READERS: Final[dict[str, tuple[int, Callable[[Mapping[int, Any]], tuple[Any, Any]]]]] = {
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), (_INTEGERS, _integer_range)),
    "date": (_DATES, _date_range),
    "varchar": (_TEXTS, _text_range),
    "decimal": (_DECIMALS, _decimal_range),
}
"""Types that stripes are left out by. Not a number of floating point, which may be NaN; not char, whose spaces are written or not; not a
timestamp, which some writers shift by their time zone."""


def read_tail(path: Path) -> OrcTail | None:
    """Read a file's tail; None if it cannot be understood, which is no error: reading the rows will tell one if there is one.

    Args:
        path: the file.
    """
    try:
        with path.open("rb") as file:
            script, start, footer, codec = _script_and_footer(file)
            known = {number: value for number, _, value in fields(script) if isinstance(value, int)}
            length = known.get(_METADATA_LENGTH, 0)
            file.seek(start - length)
            # Writers before this version have put texts in an order of their own.
            metadata = decompressed(file.read(length), codec) if known.get(_WRITER_VERSION, 0) else b""
        return OrcTail(
            tuple(_stripes(footer)),
            tuple(tuple(_subtypes(kind)) for kind in _messages(footer, _TYPES)),
            tuple(tuple(_messages(stripe, 1)) for stripe in _messages(metadata, 1)),
        )
    except (OSError, ValueError, LookupError, OverflowError, MemoryError, zlib.error, pa.ArrowException):
        return None


def _stripes(footer: bytes) -> Iterator[Stripe]:
    first = 0
    for number, stripe in enumerate(_messages(footer, _STRIPES)):
        found = {number: value for number, _, value in fields(stripe) if isinstance(value, int)}
        rows = found.get(_STRIPE_ROWS, 0)
        yield Stripe(number, first, rows, sum(found.get(part, 0) for part in _SIZES))
        first += rows


def _messages(message: bytes, number: int) -> Iterator[bytes]:
    return (value for found, _, value in fields(message) if found == number and isinstance(value, bytes))


def _subtypes(kind: bytes) -> Iterator[int]:
    for number, _, value in fields(kind):
        if number == _SUBTYPES:
            yield from numbers_in(value) if isinstance(value, bytes) else [value]


def _script_and_footer(file: Any) -> tuple[bytes, int, bytes, int]:
    """Return postscript, where the footer starts, footer, and codec of a file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL))
    tail = file.read()
    script = tail[-1 - tail[-1] : -1]
    known = {number: value for number, _, value in fields(script) if isinstance(value, int)}
    length, codec = known[_FOOTER_LENGTH], known.get(_COMPRESSION, 0)
    start = size - 1 - len(script) - length
    if length > len(tail) - 1 - len(script):
        file.seek(start)
        tail = file.read()
    return script, start, decompressed(tail[-1 - len(script) - length : -1 - len(script)], codec), codec


# -- writing --------------------------------------------------------------------------------------------------------


def complete_footer(path: Path, types: Sequence[tuple[int, Type]], entries: Callable[[Sequence[int]], Mapping[str, str]]) -> None:
    """Write into a file what Arrow has left out.

    Args:
        path: the file.
        types: numbers of types that Arrow calls strings, and what they are: ``varchar(n)`` or ``char(n)``.
        entries: gives keys and values of user metadata, told the number of the last row of every stripe.
    """
    with path.open("r+b") as file:
        script, start, footer, codec = _script_and_footer(file)
        wanted, made, count, last = dict(types), bytearray(), 0, [-1]
        for number, wire, value in fields(footer):
            changed = value
            if number == _TYPES and isinstance(value, bytes):
                changed = _with_length(value, wanted[count]) if count in wanted else value
                count += 1
            elif number == _STRIPES and isinstance(value, bytes):
                rows = next((rows for inner, _, rows in fields(value) if inner == _STRIPE_ROWS), 0)
                last.append(last[-1] + int(rows))
            made += encoded(number, wire, changed)
        for key, text in entries(last[1:]).items():
            made += field(_METADATA, field(1, key.encode()) + field(2, text.encode()))
        packed = compressed(bytes(made), codec)
        others = [encoded(*part) for part in fields(script) if part[0] != _FOOTER_LENGTH]
        script = b"".join([encoded(_FOOTER_LENGTH, VARINT, len(packed)), *others])
        file.seek(start)
        file.write(packed + script + bytes([len(script)]))
        file.truncate()


def _with_length(kind: bytes, of: Type) -> bytes:
    """Make a varchar or char of a type that is a string."""
    assert next((value for number, _, value in fields(kind) if number == 1), 0) == _STRING
    others = b"".join(encoded(*part) for part in fields(kind) if part[0] != 1)
    return field(1, _CHAR if of.base == "char" else _VARCHAR) + others + field(_LENGTH, int(of.parameters[0]))
