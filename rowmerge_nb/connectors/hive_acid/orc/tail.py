"""Tails of ORC files: statistics of stripes, and metadata that Arrow does not write.

A file ends with statistics of stripes, footer, postscript (with the lengths of both) and one byte
with the postscript's length. Arrow reads user metadata and lengths of texts but writes neither.
Hive 3 reads the last key of each stripe from the former, and the latter distinguish ``varchar(n)``
from a string.
"""

from __future__ import annotations

import datetime as dt
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

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
from rowmerge_nb.spi import Type

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
    """A stripe; ``first`` rows come before it."""

    number: int
    first: int
    rows: int
    size: int


@dataclass(frozen=True)
class ValueRange:
    """The number of values (not NULL) of a column in a stripe, and their bounds if known."""

    count: int
    low: Any = None
    high: Any = None


@dataclass(frozen=True)
class OrcTail:
    """The parsed tail of a file.

    Args:
        children: for each type the numbers of its nested types; type 0 is the whole file.
    """

    stripes: tuple[Stripe, ...]
    children: tuple[tuple[int, ...], ...]
    statistics: tuple[tuple[bytes, ...], ...]

    def column(self, *path: int) -> int | None:
        """Return the number of a nested type: ``column(5, 0)`` is the first field of the sixth
        column.
        """
        number = 0
        for index in path:
            if number >= len(self.children) or index >= len(self.children[number]):
                return None
            number = self.children[number][index]
        return number

    def range(self, stripe: int, column: int | None, sql_type: Type) -> ValueRange | None:
        if (
            column is None
            or stripe >= len(self.statistics)
            or column >= len(self.statistics[stripe])
        ):
            return None
        # Invalid statistics count as unknown.
        with suppress(
            LookupError, ValueError, OverflowError, ArithmeticError, TypeError, AttributeError
        ):
            statistics = {
                number: value for number, _, value in fields(self.statistics[stripe][column])
            }
            count = statistics[_VALUES]
            reader = _READERS.get(sql_type.base)
            details = statistics.get(reader[0]) if reader is not None else None
            if not isinstance(count, int):
                return None
            if reader is None or not isinstance(details, bytes):
                return ValueRange(count)
            return ValueRange(
                count, *reader[1]({number: value for number, _, value in fields(details)})
            )
        return None


def _integer_range(details: Mapping[int, Any]) -> tuple[Any, Any]:
    return tuple(signed(details[index]) if index in details else None for index in (1, 2))  # type: ignore[return-value]


def _date_range(details: Mapping[int, Any]) -> tuple[Any, Any]:
    return tuple(
        _EPOCH + dt.timedelta(signed(details[index])) if index in details else None
        for index in (1, 2)
    )  # type: ignore[return-value]


def _text_range(details: Mapping[int, Any]) -> tuple[Any, Any]:
    # Long texts have only bounds.
    low, high = details.get(1, details.get(_LOWER)), details.get(2, details.get(_UPPER))
    return tuple(None if text is None else text.decode() for text in (low, high))  # type: ignore[return-value]


def _decimal_range(details: Mapping[int, Any]) -> tuple[Any, Any]:
    return tuple(Decimal(details[index].decode()) if index in details else None for index in (1, 2))  # type: ignore[return-value]


_READERS: Final[dict[str, tuple[int, Callable[[Mapping[int, Any]], tuple[Any, Any]]]]] = {
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), (_INTEGERS, _integer_range)),
    "date": (_DATES, _date_range),
    "varchar": (_TEXTS, _text_range),
    "decimal": (_DECIMALS, _decimal_range),
}
"""Types whose statistics are used.

Floating point may be NaN, char may lack its spaces, and some writers shift timestamps by their time
zone.
"""


def read_tail(path: Path) -> OrcTail | None:
    try:
        with path.open("rb") as file:
            script, start, footer, codec = _script_and_footer(file)
            script_fields = {
                number: value for number, _, value in fields(script) if isinstance(value, int)
            }
            length = script_fields.get(_METADATA_LENGTH, 0)
            file.seek(start - length)
            # Older writers order texts differently.
            metadata = (
                decompressed(file.read(length), codec)
                if script_fields.get(_WRITER_VERSION, 0)
                else b""
            )
        return OrcTail(
            tuple(_stripes(footer)),
            tuple(tuple(_subtypes(orc_type)) for orc_type in _messages(footer, _TYPES)),
            tuple(tuple(_messages(stripe, 1)) for stripe in _messages(metadata, 1)),
        )
    except (
        OSError,
        ValueError,
        LookupError,
        OverflowError,
        MemoryError,
        zlib.error,
        pa.ArrowException,
    ):
        return None


def _stripes(footer: bytes) -> Iterator[Stripe]:
    first = 0
    for number, stripe in enumerate(_messages(footer, _STRIPES)):
        numbers = {number: value for number, _, value in fields(stripe) if isinstance(value, int)}
        rows = numbers.get(_STRIPE_ROWS, 0)
        yield Stripe(number, first, rows, sum(numbers.get(part, 0) for part in _SIZES))
        first += rows


def _messages(message: bytes, number: int) -> Iterator[bytes]:
    return (
        value
        for field_number, _, value in fields(message)
        if field_number == number and isinstance(value, bytes)
    )


def _subtypes(orc_type: bytes) -> Iterator[int]:
    for number, _, value in fields(orc_type):
        if number == _SUBTYPES:
            yield from numbers_in(value) if isinstance(value, bytes) else [value]


def _script_and_footer(file: Any) -> tuple[bytes, int, bytes, int]:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL))
    tail = file.read()
    script = tail[-1 - tail[-1] : -1]
    script_fields = {number: value for number, _, value in fields(script) if isinstance(value, int)}
    length, codec = script_fields[_FOOTER_LENGTH], script_fields.get(_COMPRESSION, 0)
    start = size - 1 - len(script) - length
    if length > len(tail) - 1 - len(script):
        file.seek(start)
        tail = file.read()
    return (
        script,
        start,
        decompressed(tail[-1 - len(script) - length : -1 - len(script)], codec),
        codec,
    )


# -- writing


def complete_footer(
    path: Path,
    types: Sequence[tuple[int, Type]],
    entries: Callable[[Sequence[int]], Mapping[str, str]],
) -> None:
    """Add to a file's footer what Arrow does not write: ``varchar(n)`` and ``char(n)`` types by
    number, and user metadata.
    """
    with path.open("r+b") as file:
        script, start, footer, codec = _script_and_footer(file)
        types_by_number, new_footer, count, last = dict(types), bytearray(), 0, [-1]
        for number, wire, value in fields(footer):
            changed = value
            if number == _TYPES and isinstance(value, bytes):
                changed = (
                    _with_length(value, types_by_number[count])
                    if count in types_by_number
                    else value
                )
                count += 1
            elif number == _STRIPES and isinstance(value, bytes):
                rows = next((rows for inner, _, rows in fields(value) if inner == _STRIPE_ROWS), 0)
                last.append(last[-1] + int(rows))
            new_footer += encoded(number, wire, changed)
        for key, text in entries(last[1:]).items():
            new_footer += field(_METADATA, field(1, key.encode()) + field(2, text.encode()))
        packed = compressed(bytes(new_footer), codec)
        others = [encoded(*part) for part in fields(script) if part[0] != _FOOTER_LENGTH]
        script = b"".join([encoded(_FOOTER_LENGTH, VARINT, len(packed)), *others])
        file.seek(start)
        file.write(packed + script + bytes([len(script)]))
        file.truncate()


def _with_length(orc_type: bytes, of: Type) -> bytes:
    assert next((value for number, _, value in fields(orc_type) if number == 1), 0) == _STRING
    others = b"".join(encoded(*part) for part in fields(orc_type) if part[0] != 1)
    return (
        field(1, _CHAR if of.base == "char" else _VARCHAR)
        + others
        + field(_LENGTH, int(of.parameters[0]))
    )
