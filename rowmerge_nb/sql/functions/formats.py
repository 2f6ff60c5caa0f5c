"""FORMAT: a literal of Java's formatter, each argument in the form that Java's formatter gets from Trino.

Spark's formatter knows no moments as Java has them: they come to it as texts, one for each place where a part of them is to be shown.
"""

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
"""The letter behind ``%t`` for a date as a whole."""
_CONVERSIONS: Final = {
    "date": {*DATE_CONVERSIONS, ISO_DATE},
    "time": {*CLOCK_CONVERSIONS},
    "timestamp": {*DATE_CONVERSIONS, ISO_DATE, *CLOCK_CONVERSIONS},
}
_OF_ZONES: Final = frozenset("zZsQc")
_OTHERS: Final = {"c": "Z"}
"""What Java names of what is made of several parts, where one of them cannot be."""


@dataclass(frozen=True)
class Moment:
    """A part of a moment that a format shows.

    Args:
        argument: which argument it is a part of.
        conversion: the letter behind ``%t``.
    """

    argument: int
    conversion: str


class FormatError(ValueError):
    """Java's formatter refuses the literal, or the argument in its place; the text is Java's."""


def argument_types(literal: str, kinds: list[Type]) -> list[Type | None]:
    """Return the type that each argument is cast to for Spark's FORMAT_STRING.

    Args:
        literal: the format.
        kinds: the arguments' types.

    Returns:
        One type per argument, for moments one with microseconds; None where this engine cannot format it as Trino does.

    Raises:
        FormatError: Trino refuses the format.

    >>> [str(kind) for kind in argument_types("%s %.2f", [VARCHAR, Type("decimal", (4, 2))])]
    ['varchar', 'double']
    """
    wanted: list[Type | None] = [VARCHAR if not _plain(kind) else kind for kind in kinds]
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
                f"MissingFormatArgument: Format specifier '%{explicit}{flags}{_width}{_precision}{moment}{conversion}'"
            )
        wanted[index] = _moment(conversion, kinds[index], flags + _precision) if moment else _wanted(conversion, kinds[index])
    return wanted


def with_moments(literal: str, kinds: list[Type]) -> tuple[str, list[Moment]]:
    """Return the format with texts in the place of the parts of moments, and what these texts are: further arguments of it.

    Args:
        literal: the format, which `argument_types` has found right.
        kinds: the arguments' types.

    >>> with_moments("%s: %tY", [VARCHAR, Type("date")])
    ('%1$s: %3$s', [Moment(argument=1, conversion='Y')])
    """
    moments: list[Moment] = []
    following = index = 0

    def explicit(found: re.Match[str]) -> str:
        nonlocal following, index
        number, flags, width, precision, moment, conversion = found.groups(default="")
        if conversion in "%n":
            return found[0]
        if number:
            index = int(number[:-1]) - 1
        elif "<" not in flags:
            index, following = following, following + 1
        place = index
        if moment and kinds[index].base != "unknown":
            moments.append(Moment(index, conversion))
            place = len(kinds) + len(moments) - 1
        if moment:
            conversion = "s" if moment == "t" else "S"
        return f"%{place + 1}${flags.replace('<', '')}{width}{precision}{conversion}"

    written = _SPECIFIER.sub(explicit, literal)
    return (written, moments) if any(found[4] for found in _SPECIFIER.findall(literal)) else (literal, [])


def _moment(conversion: str, kind: Type, marks: str) -> Type | None:
    """The type of what a part is shown of; None where this engine cannot show it as Trino does, Java's words where that cannot either."""
    if kind.base == "unknown":
        return VARCHAR
    if not (conversion in _OF_ZONES or any(conversion in known for known in _CONVERSIONS.values())):
        raise FormatError(f"UnknownFormatConversion: Conversion = 't{conversion}'")
    if re.search("[^-<]", marks) or is_integer(kind) or kind.base == "timestamp with time zone":
        return None
    if conversion not in _CONVERSIONS.get(kind.base, ()):
        return _mismatch(_OTHERS.get(conversion, conversion), kind)
    return VARCHAR if kind.base == "date" else Type(kind.base, (_MICROSECONDS,))


def _plain(kind: Type) -> bool:
    return is_integer(kind) or is_float(kind) or is_text(kind) or kind.base in {"boolean", "unknown"}


def _wanted(conversion: str, kind: Type) -> Type | None:
    base = conversion.lower()
    if kind.base == "unknown":
        return VARCHAR
    if base in "sb" or base == "h":
        if _plain(kind):
            # An integer's number is that of Java's Long, and a text's is not that of Spark's.
            return kind if base != "h" else BIGINT if is_integer(kind) else None if is_text(kind) else kind
        if base == "h":
            return None
        if kind.base == "json":
            return kind
        if kind.base in {"time", "timestamp"}:
            return Type(kind.base, (_MICROSECONDS,))
        return VARCHAR if kind.base in _SHOWN or (kind.base == "decimal" and kind.parameters[1] <= _MICROSECONDS) else None
    if base in {"d", "o", "x"}:
        return BIGINT if is_integer(kind) else _mismatch(conversion, kind)
    if base in "feg":
        if kind.base == "decimal":
            return DOUBLE if kind.parameters[0] <= _EXACT_DIGITS else None
        return kind if is_float(kind) else _mismatch(conversion, kind)
    if base == "a":
        return None
    if base == "c":
        return _mismatch(conversion, kind)
    raise FormatError(f"UnknownFormatConversion: Conversion = '{conversion}'")


def _mismatch(conversion: str, kind: Type) -> Type | None:
    """Java names the class of the argument that Trino hands it."""
    if is_integer(kind):
        name = "java.lang.Long"
    elif kind.base == "decimal":
        name = "java.math.BigDecimal"
    elif is_text(kind):
        name = "java.lang.String"
    elif kind.base in _JAVA:
        name = f"java.{_JAVA[kind.base]}"
    else:
        return None
    raise FormatError(f"IllegalFormatConversion: {conversion} != {name}")
