"""FORMAT: a literal of Java's formatter, each argument in the form that Java's formatter gets from Trino."""

from __future__ import annotations

import re
from typing import Final

from rowmerge_nb.spi.types import BIGINT, DOUBLE, VARCHAR, Type
from rowmerge_nb.sql.typed.types import is_float, is_integer, is_text

__all__ = ["FormatError", "argument_types"]

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


class FormatError(ValueError):
    """Java's formatter refuses the literal, or the argument in its place; the text is Java's."""


def argument_types(literal: str, kinds: list[Type]) -> list[Type | None]:
    """Give the type that each argument is cast to for Spark's FORMAT_STRING.

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
            msg = f"MissingFormatArgument: Format specifier '%{explicit}{flags}{_width}{_precision}{moment}{conversion}'"
            raise FormatError(msg)
        wanted[index] = None if moment else _wanted(conversion, kinds[index])
    return wanted


def _plain(kind: Type) -> bool:
    return is_integer(kind) or is_float(kind) or is_text(kind) or kind.base in {"boolean", "unknown"}


def _wanted(conversion: str, kind: Type) -> Type | None:
    base = conversion.lower()
    if kind.base == "unknown":
        return VARCHAR
    if base in "sb" or base == "h":
        if _plain(kind):
            return kind if base != "h" else None
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
    if base in {"a", "c"}:
        return None
    msg = f"UnknownFormatConversion: Conversion = '{conversion}'"
    raise FormatError(msg)


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
    msg = f"IllegalFormatConversion: {conversion} != {name}"
    raise FormatError(msg)
