"""FORMAT as Java does it; Spark's formatter gets parts of dates and times as texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rowmerge_nb.spi.types import BIGINT, DOUBLE, VARCHAR, Type
from rowmerge_nb.sql.functions.date_patterns import CLOCK_CONVERSIONS, DATE_CONVERSIONS
from rowmerge_nb.sql.typed.type_rules import is_float, is_integer, is_text

_SPECIFIER: Final = re.compile(r"%(\d+\$)?([-#+ 0,(<]*)(\d+)?(\.\d+)?([tT])?([a-zA-Z%])")
_EXACT_DIGITS: Final = 15
_JAVA: Final = {
    "boolean": "lang.Boolean",
    "date": "time.LocalDate",
    "double": "lang.Double",
    "json": "lang.String",
    "real": "lang.Float",
    "time": "time.LocalTime",
    "timestamp": "time.LocalDateTime",
    "timestamp with time zone": "time.ZonedDateTime",
}
_MICROSECONDS: Final = 6
_SHOWN: Final = frozenset({"date", "interval day to second", "interval year to month", "uuid"})


ISO_DATE: Final = "F"
"""The letter after ``%t`` for a complete date."""
_CONVERSIONS: Final = {
    "date": {*DATE_CONVERSIONS, ISO_DATE},
    "time": {*CLOCK_CONVERSIONS},
    "timestamp": {*DATE_CONVERSIONS, ISO_DATE, *CLOCK_CONVERSIONS},
}
_OF_ZONES: Final = frozenset("zZsQc")
_OTHERS: Final = {"c": "Z"}
"""Java's name of a composite, if one of its parts is impossible."""


@dataclass(frozen=True)
class Moment:
    """A part of an argument, by the letter after ``%t``."""

    argument: int
    conversion: str


class FormatError(ValueError):
    """Java refuses the format or an argument, with this message."""


def argument_types(literal: str, kinds: list[Type]) -> list[Type | None]:
    """Return the types that arguments are cast to for Spark's FORMAT_STRING; None if unsupported.

    >>> [str(kind) for kind in argument_types("%s %.2f", [VARCHAR, Type("decimal", (4, 2))])]
    ['varchar', 'double']
    """
    cast_types: list[Type | None] = [
        VARCHAR if not _plain(sql_type) else sql_type for sql_type in kinds
    ]
    following = index = 0
    for explicit, flags, _width, _precision, moment, conversion in _SPECIFIER.findall(literal):
        if conversion in "%n":
            continue
        if explicit:
            index = int(explicit[:-1]) - 1
        elif "<" not in flags:
            index, following = following, following + 1
        if index >= len(kinds):
            raise FormatError(
                "MissingFormatArgument: Format specifier"
                f" '%{explicit}{flags}{_width}{_precision}{moment}{conversion}'"
            )
        cast_types[index] = (
            _moment(conversion, kinds[index], flags + _precision)
            if moment
            else _cast_type(conversion, kinds[index])
        )
    return cast_types


def with_moments(literal: str, kinds: list[Type]) -> tuple[str, list[Moment]]:
    """Return a format with texts for parts of dates and times, and these further arguments.

    >>> with_moments("%s: %tY", [VARCHAR, Type("date")])
    ('%1$s: %3$s', [Moment(argument=1, conversion='Y')])
    """
    moments: list[Moment] = []
    following = index = 0

    def explicit(match: re.Match[str]) -> str:
        nonlocal following, index
        number, flags, width, precision, moment, conversion = match.groups(default="")
        if conversion in "%n":
            return match[0]
        if number:
            index = int(number[:-1]) - 1
        elif "<" not in flags:
            index, following = following, following + 1
        position = index
        if moment and kinds[index].base != "unknown":
            moments.append(Moment(index, conversion))
            position = len(kinds) + len(moments) - 1
        if moment:
            conversion = "s" if moment == "t" else "S"
        return f"%{position + 1}${flags.replace('<', '')}{width}{precision}{conversion}"

    java_format = _SPECIFIER.sub(explicit, literal)
    return (
        (java_format, moments)
        if any(match[4] for match in _SPECIFIER.findall(literal))
        else (literal, [])
    )


def _moment(conversion: str, sql_type: Type, marks: str) -> Type | None:
    """Return the type that a part is formatted from; None if unsupported."""
    if sql_type.base == "unknown":
        return VARCHAR
    if not (
        conversion in _OF_ZONES or any(conversion in letters for letters in _CONVERSIONS.values())
    ):
        raise FormatError(f"UnknownFormatConversion: Conversion = 't{conversion}'")
    if (
        re.search("[^-<]", marks)
        or is_integer(sql_type)
        or sql_type.base == "timestamp with time zone"
    ):
        return None
    if conversion not in _CONVERSIONS.get(sql_type.base, ()):
        return _mismatch(_OTHERS.get(conversion, conversion), sql_type)
    return VARCHAR if sql_type.base == "date" else Type(sql_type.base, (_MICROSECONDS,))


def _plain(sql_type: Type) -> bool:
    return (
        is_integer(sql_type)
        or is_float(sql_type)
        or is_text(sql_type)
        or sql_type.base in {"boolean", "unknown"}
    )


def _cast_type(conversion: str, sql_type: Type) -> Type | None:
    base = conversion.lower()
    if sql_type.base == "unknown":
        return VARCHAR
    if base in "sb" or base == "h":
        if _plain(sql_type):
            # An integer's number is that of Java's Long, and a text's is not that of Spark's.
            return (
                sql_type
                if base != "h"
                else BIGINT
                if is_integer(sql_type)
                else None
                if is_text(sql_type)
                else sql_type
            )
        if base == "h":
            return None
        if sql_type.base == "json":
            return sql_type
        if sql_type.base in {"time", "timestamp"}:
            return Type(sql_type.base, (_MICROSECONDS,))
        return (
            VARCHAR
            if sql_type.base in _SHOWN
            or (sql_type.base == "decimal" and sql_type.parameters[1] <= _MICROSECONDS)
            else None
        )
    if base in {"d", "o", "x"}:
        return BIGINT if is_integer(sql_type) else _mismatch(conversion, sql_type)
    if base in "feg":
        if sql_type.base == "decimal":
            return DOUBLE if sql_type.parameters[0] <= _EXACT_DIGITS else None
        return sql_type if is_float(sql_type) else _mismatch(conversion, sql_type)
    if base == "a":
        return None
    if base == "c":
        return _mismatch(conversion, sql_type)
    raise FormatError(f"UnknownFormatConversion: Conversion = '{conversion}'")


def _mismatch(conversion: str, sql_type: Type) -> Type | None:
    if is_integer(sql_type):
        name = "java.lang.Long"
    elif sql_type.base == "decimal":
        name = "java.math.BigDecimal"
    elif is_text(sql_type):
        name = "java.lang.String"
    elif sql_type.base in _JAVA:
        name = f"java.{_JAVA[sql_type.base]}"
    else:
        return None
    raise FormatError(f"IllegalFormatConversion: {conversion} != {name}")
