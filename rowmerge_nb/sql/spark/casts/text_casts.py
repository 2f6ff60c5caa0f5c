r"""Casts from and to text, with Trino's formats and errors.

Regular expressions are in Spark SQL literals, so backslashes are doubled; braces are avoided.
"""

# All writers of casts have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from rowmerge_nb.sql.spark.casts.float_texts import shown_double, shown_real
from rowmerge_nb.sql.spark.casts.moment_casts import from_micros, local, micros, with_zone, zone_of
from rowmerge_nb.sql.spark.text import fail, groups, null_or_fail, once
from rowmerge_nb.sql.typed.cast_rules import NUMBERS_IN_ERRORS
from rowmerge_nb.sql.typed.characters import OTHER_DIGITS, WHITE
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    instant,
    is_float,
    is_integer,
    is_zoned,
    precision_of,
    spark_type,
)
from rowmerge_nb.sql.typed.zones import DISTANCE, UTC_NAMES, session_zone

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type

Writer: TypeAlias = "Callable[[str, Type, Type, bool], str]"
"""Writes a cast: the value's text, its type, the target type, and whether a failure returns NULL.
"""

_BLANK: Final = r"[\\x00-\\x20]*"
_INTEGER: Final = rf"'^{_BLANK}[+-]?[0-9]+{_BLANK}\\z'"
_FLOAT: Final = rf"'^{_BLANK}[+-]?(NaN|Infinity|([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[fFdD]?){_BLANK}\\z'"
_DECIMAL: Final = r"'^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?\\z'"
_DATE: Final = r"'^([+-]?)([0-9]+)-([0-9][0-9]?)-([0-9][0-9]?)\\z'"
_CLOCK: Final = r"[0-9][0-9]?:[0-9][0-9]?(?::[0-9][0-9]?(?:[.][0-9]+)?)?"
_TIME: Final = rf"'^{_CLOCK}\\z'"
_MOMENT: Final = (
    rf"'^([-+]?[0-9][0-9][0-9][0-9]+-[0-9][0-9]?-[0-9][0-9]?)(?: ({_CLOCK})?\\s*(.+)?)?\\z'"
)
_DIGITS: Final = "[0-9][0-9]"
USUAL_DATE: Final = f"{_DIGITS}{_DIGITS}-{_DIGITS}-{_DIGITS}"
_USUAL_CLOCK: Final = f"{_DIGITS}:{_DIGITS}:{_DIGITS}"
_UUID: Final = r"'^[0-9A-Fa-f]+(-[0-9A-Fa-f]+)(-[0-9A-Fa-f]+)(-[0-9A-Fa-f]+)(-[0-9A-Fa-f]+)\\z'"
_MOST_FRACTION: Final = 18
_FROM_UTC: Final = "^(UTC|GMT|UT)?[+-]"
FARTHEST_OFFSET: Final = "14:00"
"""The largest distance from UTC that a zone may have."""
_THREE_LETTERS: Final = "'UTC', 'GMT', 'UCT', 'CET', 'MET', 'WET', 'EET', 'PRC', 'ROK'"
"""Zone names with three letters; Spark also accepts PST and the like."""


def _checked(attempt: str, text: str, message: str) -> str:
    return (
        attempt
        if message == "NULL"
        else f"coalesce({attempt}, IF({text} IS NULL, NULL, {message}))"
    )


def usual(text: str, regex: str, cast: str) -> str:
    """Write a cast of Spark's for texts of the usual form, whose rest takes a longer way; or NULL."""
    return rf"IF({text} RLIKE '^{regex}\\z', {cast}, NULL)"


def usual_moment(between: str, decimals: int) -> str:
    """Return the regular expression of a day, ``between``, and a clock that is not to be rounded."""
    fraction = f"(?:[.][0-9]{'[0-9]?' * (decimals - 1)})?" if decimals else ""
    return f"{USUAL_DATE}{between}{_USUAL_CLOCK}{fraction}"


# -- from text


def from_text(target: Type) -> Writer:
    if target.base in NUMBERS_IN_ERRORS:
        return _to_number
    if is_zoned(target):
        return _to_zoned
    return _READERS.get(target.base, _to_zoned)


def _to_varchar(text: str, source: Type, target: Type, safe: bool) -> str:
    if not target.parameters or (
        source.parameters and source.parameters[0] <= target.parameters[0]
    ):
        return text
    return f"substring({text}, 1, {target.parameters[0]})"


def _to_char(text: str, source: Type, target: Type, safe: bool) -> str:
    return f"rpad({text}, {target.parameters[0]}, ' ')"


def _to_binary(text: str, source: Type, target: Type, safe: bool) -> str:
    return f"encode({text}, 'UTF-8')"


def _to_boolean(text: str, source: Type, target: Type, safe: bool) -> str:
    message = null_or_fail(
        safe, "INVALID_CAST_ARGUMENT", "'Cannot cast \\''", text, "'\\' to BOOLEAN'"
    )
    return (
        f"CASE WHEN lower({text}) IN ('t', 'true', '1') THEN true WHEN lower({text}) IN ('f',"
        f" 'false', '0') THEN false WHEN {text} IS NULL THEN NULL ELSE {message} END"
    )


def _to_number(text: str, source: Type, target: Type, safe: bool) -> str:
    form = _INTEGER if is_integer(target) else _FLOAT
    attempt = f"IF({text} RLIKE {form}, try_cast({text} AS {spark_type(target)}), NULL)"
    if is_integer(target) and not (text.startswith("'") and text.isascii()):
        # Trino uses Java's parseInt, which reads the digits of all scripts.
        plain = f"translate({text}, '{OTHER_DIGITS}', '{'0123456789' * (len(OTHER_DIGITS) // 10)}')"
        others = (
            f"IF({text} RLIKE '[^\\x00-\\x7F]' AND {plain} RLIKE {form}, try_cast({plain} AS"
            f" {spark_type(target)}), NULL)"
        )
        attempt = f"coalesce({attempt}, {others})"
    return _checked(
        attempt,
        text,
        null_or_fail(
            safe,
            "INVALID_CAST_ARGUMENT",
            "'Cannot cast \\''",
            text,
            text_literal(f"' to {NUMBERS_IN_ERRORS[target.base]}"),
        ),
    )


def _to_decimal(text: str, source: Type, target: Type, safe: bool) -> str:
    precision, scale = target.parameters
    attempt = f"IF({text} RLIKE {_DECIMAL}, try_cast({text} AS {spark_type(target)}), NULL)"
    why = f"IF({text} RLIKE {_DECIMAL}, 'Value too large.', 'Value is not a number.')"
    return _checked(
        attempt,
        text,
        null_or_fail(
            safe,
            "INVALID_CAST_ARGUMENT",
            "'Cannot cast VARCHAR \\''",
            text,
            text_literal(f"' to DECIMAL({precision}, {scale}). "),
            why,
        ),
    )


def _to_date(text: str, source: Type, target: Type, safe: bool) -> str:
    # Spark requires years with at least four digits, Trino takes any number.
    whole = _trimmed(text)
    digits = f"regexp_extract({whole}, {_DATE}, 2)"
    year = f"lpad({digits}, greatest(4, char_length({digits})), '0')"
    rest = f"regexp_extract({whole}, '-[0-9][0-9]?-[0-9][0-9]?$', 0)"
    padded = f"concat(regexp_extract({whole}, {_DATE}, 1), {year}, {rest})"
    long = f"{whole} RLIKE '^[0-9][0-9][0-9][0-9]-'"
    attempt = f"IF({whole} RLIKE {_DATE}, try_cast(IF({long}, {whole}, {padded}) AS DATE), NULL)"
    return _checked(
        f"coalesce({usual(text, USUAL_DATE, f'try_cast({text} AS DATE)')}, {attempt})",
        text,
        null_or_fail(safe, "INVALID_CAST_ARGUMENT", "'Value cannot be cast to date: '", text),
    )


def _trimmed(text: str) -> str:
    return f"trim(BOTH {text_literal(WHITE)} FROM {text})"


def _to_time(text: str, source: Type, target: Type, safe: bool) -> str:
    clock = f"try_cast(regexp_extract({text}, '^[^.]*', 0) AS TIME(6))"
    number = f"{micros(clock, target)} + {_fraction(text, target)}"
    attempt = f"IF({text} RLIKE {_TIME}, {from_micros(number, target)}, NULL)"
    return _checked(
        attempt,
        text,
        null_or_fail(safe, "INVALID_CAST_ARGUMENT", "'Value cannot be cast to time: '", text),
    )


def _to_timestamp(text: str, source: Type, target: Type, safe: bool) -> str:
    """Write a timestamp; as in Trino, a zone is checked and ignored."""

    def write(parts: list[str]) -> str:
        day, clock, zone = parts
        parsed = f"try_cast(concat({day}, ' ', {_seconds(clock)}) AS TIMESTAMP_NTZ)"
        moment = from_micros(f"{micros(parsed, target)} + {_fraction(clock, target)}", target)
        return f"IF({zone} = '' OR {is_zone(zone)}, {moment}, NULL)"

    regex = rf"(?:{USUAL_DATE}|{usual_moment(' ', precision_of(target))})"
    first = usual(text, regex, f"try_cast({text} AS TIMESTAMP_NTZ)")
    return _moment(text, first, write, safe)


def _to_zoned(text: str, source: Type, target: Type, safe: bool) -> str:
    instant_type = instant(target)

    def write(parts: list[str]) -> str:
        day, clock, zone_text = parts

        def at(zone: str) -> str:
            parsed = f"try_cast(concat({day}, ' ', {_seconds(clock)}, ' ', {zone}) AS TIMESTAMP)"
            moment = from_micros(
                f"{micros(parsed, instant_type)} + {_fraction(clock, target)}", instant_type
            )
            far = null_or_fail(safe, "NOT_SUPPORTED", "'Time zone not supported: '", zone)
            near = with_zone(moment, zone) if is_zoned(target) else moment
            return f"IF({is_too_far(zone)}, {far}, {near})"

        plain, zoned = at(text_literal(session_zone())), once(at, canonical_zone(zone_text))
        return f"CASE WHEN {zone_text} = '' THEN {plain} WHEN {is_zone(zone_text)} THEN {zoned} END"

    return _moment(text, _usual_zoned(text, target), write, safe)


def _usual_zoned(text: str, target: Type) -> str:
    zone = session_zone()
    if zone[0] in "+-" and zone[1:] > FARTHEST_OFFSET:
        return "NULL"
    whole = text if zone == "UTC" else f"concat({text}, {text_literal(f' {zone}')})"
    local_time = f"try_cast({whole} AS TIMESTAMP)"
    moment = with_zone(local_time, text_literal(zone)) if is_zoned(target) else local_time
    return usual(text, usual_moment(" ", precision_of(target)), moment)


def _moment(text: str, first: str, write: Callable[[list[str]], str], safe: bool) -> str:
    trimmed = _trimmed(text)
    attempt = f"IF({trimmed} RLIKE {_MOMENT}, {groups(trimmed, _MOMENT, 3, write)}, NULL)"
    return _checked(
        f"coalesce({first}, {attempt})",
        text,
        null_or_fail(
            safe, "INVALID_CAST_ARGUMENT", "'Value cannot be cast to timestamp: '", trimmed
        ),
    )


def _seconds(clock: str) -> str:
    """Write a clock with seconds, which Spark requires before a zone, and without its fraction."""
    return (
        f"regexp_replace(coalesce(nullif(substring_index({clock}, '.', 1), ''), '00:00'),"
        " '^([^:]*:[^:]*)$', '$1:00')"
    )


def _fraction(clock: str, target: Type) -> str:
    digits = f"substring(regexp_extract({clock}, '[.]([0-9]+)', 1), 1, {_MOST_FRACTION})"
    exact = (
        f"round(CAST(concat('0.0', {digits}) AS DECIMAL(38,{_MOST_FRACTION + 1})) * 10,"
        f" {precision_of(target)})"
    )
    return f"CAST({exact} * 1000000 AS BIGINT)"


def canonical_zone(zone: str) -> str:
    return once(_canonical, zone)


def _canonical(zone: str) -> str:
    names = ", ".join(f"'{name}'" for name in UTC_NAMES)
    plain = f"regexp_replace(regexp_replace({zone}, '^[A-Z]+', ''), '^([+-])([0-9])$', '$10$2')"
    offset = (
        f"rpad(regexp_replace({plain}, '^([+-][0-9][0-9]):?([0-9][0-9])?(:00)?$', '$1:$2'), 6, '0')"
    )
    turned = f"concat(IF({zone} LIKE '%-%', '+', '-'), lpad(substring({zone}, 9), 2, '0'), ':00')"
    return (
        f"CASE WHEN {zone} IN ({names}) OR {zone} RLIKE '^[A-Z]*[+-][0:]+$' THEN 'UTC' WHEN {zone}"
        f" RLIKE '{_FROM_UTC}' THEN {offset} WHEN {zone} LIKE 'Etc/GMT%' THEN {turned} ELSE"
        f" {zone} END"
    )


def is_zone(zone: str) -> str:
    """Write whether a text is a zone or an offset; Spark knows more names than Trino."""
    is_known = f"try_cast(concat('2000-01-01 00:00:00 ', {zone}) AS TIMESTAMP) IS NOT NULL"
    return (
        f"CASE WHEN {zone} RLIKE '{_FROM_UTC}' THEN {zone} RLIKE '{DISTANCE}' WHEN {zone} = '' OR"
        f" ({zone} RLIKE '^[A-Z][A-Z][A-Z]$' AND {zone} NOT IN ({_THREE_LETTERS})) THEN false ELSE"
        f" {is_known} END"
    )


def is_too_far(zone: str) -> str:
    """Write whether a canonical offset is too large for a zone."""
    return f"({zone} RLIKE '^[+-]' AND substring({zone}, 2) > '{FARTHEST_OFFSET}')"


def _to_uuid(text: str, source: Type, target: Type, safe: bool) -> str:
    attempt = f"IF({text} RLIKE {_UUID} AND char_length({text}) = 36, lower({text}), NULL)"
    length = fail(
        "INVALID_CAST_ARGUMENT",
        "'Invalid UUID string length: '",
        f"CAST(char_length({text}) AS STRING)",
    )
    other = fail("INVALID_CAST_ARGUMENT", "'Cannot cast value to UUID: '", text)
    return (
        attempt if safe else _checked(attempt, text, f"IF({text} RLIKE {_UUID}, {length}, {other})")
    )


_READERS: Final[dict[str, Writer]] = {
    "varchar": _to_varchar,
    "char": _to_char,
    "varbinary": _to_binary,
    "boolean": _to_boolean,
    "decimal": _to_decimal,
    "date": _to_date,
    "time": _to_time,
    "timestamp": _to_timestamp,
    "uuid": _to_uuid,
}


# -- to text


def to_text(source: Type) -> Writer:
    if is_float(source):
        return _float_to_text
    if source.base in {"timestamp", "timestamp with time zone", "time"}:
        return lambda text, s, target, safe: fitting(shown_moment(text, s), s, target, safe)
    if source == INTERVAL_DAY:
        return lambda text, s, target, safe: fitting(_shown_interval(text), s, target, safe)
    if source == INTERVAL_YEAR:
        return lambda text, s, target, safe: fitting(_shown_months(text), s, target, safe)
    if source.base == "date":
        return lambda text, s, target, safe: fitting(shown_date(text), s, target, safe)
    return lambda text, s, target, safe: fitting(f"CAST({text} AS STRING)", s, target, safe)


def shown_date(text: str) -> str:
    """Write a date like Trino, without a sign for long years."""
    return f"ltrim('+', CAST({text} AS STRING))"


def shown_moment(text: str, sql_type: Type) -> str:
    """Write a time or a timestamp like Trino."""
    precision = precision_of(sql_type)
    decimals = "." + "S" * precision if precision else ""
    if sql_type.base == "time":
        # Spark's text omits trailing zeros.
        full = (
            f"rpad(concat(CAST({text} AS STRING), IF(instr(CAST({text} AS STRING), '.') > 0, '',"
            " '.')), 15, '0')"
        )
        return f"substring({full}, 1, {8 + len(decimals)})"
    clock_text = f"date_format({local(text, sql_type)}, 'yyyy-MM-dd HH:mm:ss{decimals}')"
    return (
        f"concat({clock_text}, ' ', {zone_of(text, sql_type)})"
        if sql_type.base == "timestamp with time zone"
        else clock_text
    )


def _shown_interval(text: str) -> str:
    millis = f"abs(unix_micros(timestamp_micros(0L) + {text}) div 1000)"
    clock = ", ".join(
        f"lpad(CAST({millis} {part} AS STRING), {digits}, '0'), '{end}'"
        for part, digits, end in (
            ("% 86400000 div 3600000", 2, ":"),
            ("% 3600000 div 60000", 2, ":"),
            ("% 60000 div 1000", 2, "."),
            ("% 1000", 3, ""),
        )
    )
    return (
        f"concat(IF({text} < INTERVAL '0' SECOND, '-', ''), CAST({millis} div 86400000 AS STRING),"
        f" ' ', {clock})"
    )


def _shown_months(text: str) -> str:
    number = f"abs(extract(YEAR FROM {text}) * 12 + extract(MONTH FROM {text}))"
    sign = f"IF({text} < INTERVAL '0' MONTH, '-', '')"
    return (
        f"IF({text} IS NULL, NULL, concat({sign}, CAST({number} div 12 AS STRING), '-',"
        f" CAST({number} % 12 AS STRING)))"
    )


def _float_to_text(text: str, source: Type, target: Type, safe: bool) -> str:
    number_text = shown_real(text) if source.base == "real" else shown_double(text)
    return fitting(number_text, source, target, safe, plain=f"CAST({text} AS STRING)")


_UNCHECKED: Final = frozenset({"json", "timestamp", "timestamp with time zone"})
"""Types whose cast to text Trino does not check: a text that is too long fails when stored or sent,
even under TRY.
"""
_CANNOT: Final = frozenset({"boolean", "time", "interval day to second", "interval year to month"})
"""Types with other words in the error of a text that is too long."""


_LONGEST: Final = {
    "boolean": 5,
    "bigint": 20,
    "real": 13,
    "double": 24,
    INTERVAL_DAY.base: 23,
    INTERVAL_YEAR.base: 13,
}
"""The length of the longest text of a type, as of -1.175494E-38."""


def _in_base_64(text: str) -> str:
    return rf"translate(base64(encode({text}, 'UTF-8')), '\r\n', '')"


def fitting(text: str, source: Type, target: Type, safe: bool, plain: str | None = None) -> str:
    """Write a text, or an error if it is too long."""
    if not target.parameters or target.parameters[0] >= _LONGEST.get(source.base, math.inf):
        return text
    length = target.parameters[0]
    words = ["'Value '", text] if plain is None else ["'Value '", plain, "' ('", text, "')'"]
    end = f" cannot be represented as {target.base}({length})"
    if source.base in _CANNOT:
        words, end = ["'Cannot cast \\''", text], f"' to {target.base}({length})"
    message = null_or_fail(safe, "INVALID_CAST_ARGUMENT", *words, text_literal(end))
    if source.base in _UNCHECKED:
        message_start = text_literal(f"Character count exceeds length limit {length}: base64:")
        message = fail("GENERIC_INTERNAL_ERROR", message_start, _in_base_64(text))
    return (
        f"CASE WHEN {text} IS NULL OR char_length({text}) <= {length} THEN {text} ELSE"
        f" {message} END"
    )
