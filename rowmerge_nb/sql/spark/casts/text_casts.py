r"""Casts from text and to text: what Trino reads, what it writes, and what it says where it cannot.

Regular expressions here stand in Spark SQL literals, so every backslash is doubled; braces are avoided.
"""

# All writers of casts have one signature, whether they need all of it or not.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from rowmerge_nb.sql.spark.casts.moment_casts import from_micros, local, micros, with_zone, zone_of
from rowmerge_nb.sql.spark.text import fail, groups, once
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
"""Writes a cast: the value's text, its type, the type wanted, and whether a failure gives NULL."""

_BLANK: Final = r"[\\x00-\\x20]*"
_INTEGER: Final = rf"'^{_BLANK}[+-]?[0-9]+{_BLANK}\\z'"
_FLOAT: Final = rf"'^{_BLANK}[+-]?(NaN|Infinity|([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[fFdD]?){_BLANK}\\z'"
_DECIMAL: Final = r"'^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?\\z'"
_DATE: Final = r"'^([+-]?)([0-9]+)-([0-9][0-9]?)-([0-9][0-9]?)\\z'"
_CLOCK: Final = r"[0-9][0-9]?:[0-9][0-9]?(?::[0-9][0-9]?(?:[.][0-9]+)?)?"
_TIME: Final = rf"'^{_CLOCK}\\z'"
_MOMENT: Final = rf"'^([-+]?[0-9][0-9][0-9][0-9]+-[0-9][0-9]?-[0-9][0-9]?)(?: ({_CLOCK})?\\s*(.+)?)?\\z'"
_UUID: Final = r"'^[0-9A-Fa-f]+(-[0-9A-Fa-f]+)(-[0-9A-Fa-f]+)(-[0-9A-Fa-f]+)(-[0-9A-Fa-f]+)\\z'"
_MOST_FRACTION: Final = 18
_FROM_UTC: Final = "^(UTC|GMT|UT)?[+-]"
_THREE_LETTERS: Final = "'UTC', 'GMT', 'UCT', 'CET', 'MET', 'WET', 'EET', 'PRC', 'ROK'"
"""The names of zones with three letters; Spark takes PST and its like for names too."""


def _failure(safe: bool, code: str, *message: str) -> str:
    return "NULL" if safe else fail(code, *message)


def _checked(tried: str, text: str, message: str) -> str:
    """A value that is NULL where it failed: with the error that says so."""
    return tried if message == "NULL" else f"coalesce({tried}, IF({text} IS NULL, NULL, {message}))"


# -- from text --------------------------------------------------------------------------------------------------------


def from_text(target: Type) -> Writer:
    """Return what writes casts of text to a type."""
    if target.base in NUMBERS_IN_ERRORS:
        return _to_number
    if is_zoned(target):
        return _to_zoned
    return _READERS.get(target.base, _to_zoned)


def _to_varchar(text: str, source: Type, target: Type, safe: bool) -> str:
    if not target.parameters or (source.parameters and source.parameters[0] <= target.parameters[0]):
        return text
    return f"substring({text}, 1, {target.parameters[0]})"


def _to_char(text: str, source: Type, target: Type, safe: bool) -> str:
    return f"rpad({text}, {target.parameters[0]}, ' ')"


def _to_binary(text: str, source: Type, target: Type, safe: bool) -> str:
    return f"encode({text}, 'UTF-8')"


def _to_boolean(text: str, source: Type, target: Type, safe: bool) -> str:
    message = _failure(safe, "INVALID_CAST_ARGUMENT", "'Cannot cast \\''", text, "'\\' to BOOLEAN'")
    return (
        f"CASE WHEN lower({text}) IN ('t', 'true', '1') THEN true WHEN lower({text}) IN ('f', 'false', '0') THEN false "
        f"WHEN {text} IS NULL THEN NULL ELSE {message} END"
    )


def _to_number(text: str, source: Type, target: Type, safe: bool) -> str:
    form = _INTEGER if is_integer(target) else _FLOAT
    tried = f"IF({text} RLIKE {form}, try_cast({text} AS {spark_type(target)}), NULL)"
    if is_integer(target) and not (text.startswith("'") and text.isascii()):
        # Java's parseInt, which Trino goes by, reads the digits of all scripts.
        plain = f"translate({text}, '{OTHER_DIGITS}', '{'0123456789' * (len(OTHER_DIGITS) // 10)}')"
        others = f"IF({text} RLIKE '[^\\x00-\\x7F]' AND {plain} RLIKE {form}, try_cast({plain} AS {spark_type(target)}), NULL)"
        tried = f"coalesce({tried}, {others})"
    return _checked(
        tried,
        text,
        _failure(
            safe, "INVALID_CAST_ARGUMENT", "'Cannot cast \\''", text, text_literal(f"' to {NUMBERS_IN_ERRORS[target.base]}")
        ),
    )


def _to_decimal(text: str, source: Type, target: Type, safe: bool) -> str:
    precision, scale = target.parameters
    tried = f"IF({text} RLIKE {_DECIMAL}, try_cast({text} AS {spark_type(target)}), NULL)"
    why = f"IF({text} RLIKE {_DECIMAL}, 'Value too large.', 'Value is not a number.')"
    return _checked(
        tried,
        text,
        _failure(
            safe,
            "INVALID_CAST_ARGUMENT",
            "'Cannot cast VARCHAR \\''",
            text,
            text_literal(f"' to DECIMAL({precision}, {scale}). "),
            why,
        ),
    )


def _to_date(text: str, source: Type, target: Type, safe: bool) -> str:
    # Spark wants four digits of a year at least; Trino takes any number of them.
    whole = _trimmed(text)
    digits = f"regexp_extract({whole}, {_DATE}, 2)"
    year = f"lpad({digits}, greatest(4, char_length({digits})), '0')"
    rest = f"regexp_extract({whole}, '-[0-9][0-9]?-[0-9][0-9]?$', 0)"
    padded = f"concat(regexp_extract({whole}, {_DATE}, 1), {year}, {rest})"
    usual = f"{whole} RLIKE '^[0-9][0-9][0-9][0-9]-'"
    tried = f"IF({whole} RLIKE {_DATE}, try_cast(IF({usual}, {whole}, {padded}) AS DATE), NULL)"
    return _checked(tried, text, _failure(safe, "INVALID_CAST_ARGUMENT", "'Value cannot be cast to date: '", text))


def _trimmed(text: str) -> str:
    """Write a text without the white space around it, which is more than blanks."""
    return f"trim(BOTH {text_literal(WHITE)} FROM {text})"


def _to_time(text: str, source: Type, target: Type, safe: bool) -> str:
    clock = f"try_cast(regexp_extract({text}, '^[^.]*', 0) AS TIME(6))"
    number = f"{micros(clock, target)} + {_fraction(text, target)}"
    tried = f"IF({text} RLIKE {_TIME}, {from_micros(number, target)}, NULL)"
    return _checked(tried, text, _failure(safe, "INVALID_CAST_ARGUMENT", "'Value cannot be cast to time: '", text))


def _to_timestamp(text: str, source: Type, target: Type, safe: bool) -> str:
    """A zone in the text is read and left aside, as Trino does."""

    def write(found: list[str]) -> str:
        day, clock, zone = found
        parsed = f"try_cast(concat({day}, ' ', {_seconds(clock)}) AS TIMESTAMP_NTZ)"
        moment = from_micros(f"{micros(parsed, target)} + {_fraction(clock, target)}", target)
        return f"IF({zone} = '' OR {is_zone(zone)}, {moment}, NULL)"

    return _moment(text, write, safe)


def _to_zoned(text: str, source: Type, target: Type, safe: bool) -> str:
    kind = instant(target)

    def write(found: list[str]) -> str:
        day, clock, written = found

        def at(zone: str) -> str:
            parsed = f"try_cast(concat({day}, ' ', {_seconds(clock)}, ' ', {zone}) AS TIMESTAMP)"
            moment = from_micros(f"{micros(parsed, kind)} + {_fraction(clock, target)}", kind)
            far = _failure(safe, "NOT_SUPPORTED", "'Time zone not supported: '", zone)
            near = with_zone(moment, zone) if is_zoned(target) else moment
            return f"IF({is_too_far(zone)}, {far}, {near})"

        plain, zoned = at(text_literal(session_zone())), once(at, canonical_zone(written))
        return f"CASE WHEN {written} = '' THEN {plain} WHEN {is_zone(written)} THEN {zoned} END"

    return _moment(text, write, safe)


def _moment(text: str, write: Callable[[list[str]], str], safe: bool) -> str:
    trimmed = _trimmed(text)
    tried = f"IF({trimmed} RLIKE {_MOMENT}, {groups(trimmed, _MOMENT, 3, write)}, NULL)"
    return _checked(tried, text, _failure(safe, "INVALID_CAST_ARGUMENT", "'Value cannot be cast to timestamp: '", trimmed))


def _seconds(clock: str) -> str:
    """A clock without decimals, of which Spark takes no more than six, and with seconds, which it wants before a zone."""
    return f"regexp_replace(coalesce(nullif(substring_index({clock}, '.', 1), ''), '00:00'), '^([^:]*:[^:]*)$', '$1:00')"


def _fraction(clock: str, target: Type) -> str:
    """The microseconds that the decimals of a second make, rounded to the target's precision."""
    digits = f"substring(regexp_extract({clock}, '[.]([0-9]+)', 1), 1, {_MOST_FRACTION})"
    exact = f"round(CAST(concat('0.0', {digits}) AS DECIMAL(38,{_MOST_FRACTION + 1})) * 10, {precision_of(target)})"
    return f"CAST({exact} * 1000000 AS BIGINT)"


def canonical_zone(zone: str) -> str:
    """Write a zone's name as it is shown: everything that means UTC is UTC, and an offset has hours and minutes."""
    return once(_canonical, zone)


def _canonical(zone: str) -> str:
    names = ", ".join(f"'{name}'" for name in UTC_NAMES)
    plain = f"regexp_replace(regexp_replace({zone}, '^[A-Z]+', ''), '^([+-])([0-9])$', '$10$2')"
    offset = f"rpad(regexp_replace({plain}, '^([+-][0-9][0-9]):?([0-9][0-9])?(:00)?$', '$1:$2'), 6, '0')"
    turned = f"concat(IF({zone} LIKE '%-%', '+', '-'), lpad(substring({zone}, 9), 2, '0'), ':00')"
    return (
        f"CASE WHEN {zone} IN ({names}) OR {zone} RLIKE '^[A-Z]*[+-][0:]+$' THEN 'UTC' "
        f"WHEN {zone} RLIKE '{_FROM_UTC}' THEN {offset} WHEN {zone} LIKE 'Etc/GMT%' THEN {turned} ELSE {zone} END"
    )


def is_zone(zone: str) -> str:
    """Write whether a text names a zone, or a distance from UTC that Java has, be it too large for Trino. Spark knows more names than Trino."""
    known = f"try_cast(concat('2000-01-01 00:00:00 ', {zone}) AS TIMESTAMP) IS NOT NULL"
    return (
        f"CASE WHEN {zone} RLIKE '{_FROM_UTC}' THEN {zone} RLIKE '{DISTANCE}' "
        f"WHEN {zone} = '' OR ({zone} RLIKE '^[A-Z][A-Z][A-Z]$' AND {zone} NOT IN ({_THREE_LETTERS})) THEN false ELSE {known} END"
    )


def is_too_far(zone: str) -> str:
    """Write whether a zone of canonical name is a distance from UTC that no zone has."""
    return f"({zone} RLIKE '^[+-]' AND substring({zone}, 2) > '14:00')"


def _to_uuid(text: str, source: Type, target: Type, safe: bool) -> str:
    tried = f"IF({text} RLIKE {_UUID} AND char_length({text}) = 36, lower({text}), NULL)"
    length = fail("INVALID_CAST_ARGUMENT", "'Invalid UUID string length: '", f"CAST(char_length({text}) AS STRING)")
    other = fail("INVALID_CAST_ARGUMENT", "'Cannot cast value to UUID: '", text)
    return tried if safe else _checked(tried, text, f"IF({text} RLIKE {_UUID}, {length}, {other})")


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


# -- to text ----------------------------------------------------------------------------------------------------------


def to_text(source: Type) -> Writer:
    """Return what writes casts of a type to text."""
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
    """Write a date as Trino shows it: years of more than four digits have no sign."""
    return f"ltrim('+', CAST({text} AS STRING))"


def shown_moment(text: str, kind: Type) -> str:
    """Write a time or a timestamp as Trino shows it."""
    precision = precision_of(kind)
    decimals = "." + "S" * precision if precision else ""
    if kind.base == "time":
        # A text of Spark has no more decimals than are needed.
        full = f"rpad(concat(CAST({text} AS STRING), IF(instr(CAST({text} AS STRING), '.') > 0, '', '.')), 15, '0')"
        return f"substring({full}, 1, {8 + len(decimals)})"
    shown = f"date_format({local(text, kind)}, 'yyyy-MM-dd HH:mm:ss{decimals}')"
    return f"concat({shown}, ' ', {zone_of(text, kind)})" if kind.base == "timestamp with time zone" else shown


def _shown_interval(text: str) -> str:
    number = f"CAST(abs(extract(DAY FROM {text}) * 86400L + extract(HOUR FROM {text}) * 3600 + extract(MINUTE FROM {text}) * 60 + extract(SECOND FROM {text})) * 1000 AS BIGINT)"
    clock = (
        f"format_string('%d %02d:%02d:%02d.%03d', {number} div 86400000, {number} % 86400000 div 3600000, "
        f"{number} % 3600000 div 60000, {number} % 60000 div 1000, {number} % 1000)"
    )
    return f"IF({text} IS NULL, NULL, concat(IF({text} < INTERVAL '0' SECOND, '-', ''), {clock}))"


def _shown_months(text: str) -> str:
    number = f"abs(extract(YEAR FROM {text}) * 12 + extract(MONTH FROM {text}))"
    sign = f"IF({text} < INTERVAL '0' MONTH, '-', '')"
    return f"IF({text} IS NULL, NULL, concat({sign}, CAST({number} div 12 AS STRING), '-', CAST({number} % 12 AS STRING)))"


def _float_to_text(text: str, source: Type, target: Type, safe: bool) -> str:
    shown = _shown_real(text) if source.base == "real" else shown_double(text)
    return fitting(shown, source, target, safe, plain=f"CAST({text} AS STRING)")


def _scientific(text: str, number: str) -> str:
    """Trino writes every float in scientific form, but not NaN, the infinities and zero; NULL has no digits to look for."""
    sign = f"IF(CAST({text} AS STRING) LIKE '-%', '-', '')"
    return (
        f"CASE WHEN {text} IS NULL OR isnan({text}) OR abs({text}) = CAST('Infinity' AS DOUBLE) THEN CAST({text} AS STRING) "
        f"WHEN {text} = 0 THEN concat({sign}, '0E0') ELSE concat({sign}, {number}) END"
    )


def shown_double(text: str) -> str:
    """Write a double as Trino shows it: 1.0 is 1.0E0, and 123456.789 is 1.23456789E5."""
    shown = f"CAST(abs({text}) AS STRING)"
    # Decimal places are counted on the digits alone: "0.00120" has the digits 120 and the exponent -3.
    parts = (
        f"transform(array(split(concat({shown}, IF(instr({shown}, 'E') > 0, '', 'E0')), '[.E]')), p -> named_struct("
        "'i', p[0], 'f', p[1], 'e', CAST(p[2] AS INT)))"
    )
    lead = "length(p.f) - length(ltrim('0', p.f))"
    exponent = f"IF(p.i <> '0', length(p.i) - 1 + p.e, p.e - 1 - ({lead}))"
    digits = "rtrim('0', ltrim('0', concat(p.i, p.f)))"
    body = f"concat(substring({digits}, 1, 1), '.', IF(length({digits}) > 1, substring({digits}, 2), '0'), 'E', {exponent})"
    return _scientific(text, f"transform({parts}, p -> {body})[0]")


def _shown_real(text: str) -> str:
    """A real is shown with seven digits at most; the least ones, which have fewer, with those of the shortest text that is read as it."""
    shown = f"format_string('%.6E', IF(abs({text}) < 1.17549435E-38D, CAST(CAST(abs({text}) AS STRING) AS DOUBLE), CAST(abs({text}) AS DOUBLE)))"
    digits = f"rtrim('0', substring({shown}, 3, 6))"
    exponent = f"CAST(CAST(substring({shown}, 10) AS INT) AS STRING)"
    body = f"concat(substring({shown}, 1, 2), IF({digits} = '', '0', {digits}), 'E', {exponent})"
    return _scientific(text, body)


_UNCHECKED: Final = frozenset(
    {"json", "time", "timestamp", "timestamp with time zone", "interval day to second", "interval year to month"}
)
"""The types whose cast to text Trino does not check: what is too long is found when it is stored or sent, under TRY too."""


def _in_base_64(text: str) -> str:
    return rf"translate(base64(encode({text}, 'UTF-8')), '\r\n', '')"


def fitting(shown: str, source: Type, target: Type, safe: bool, plain: str | None = None) -> str:
    """Text of a number or a date that must fit a bounded type: cutting it would make another number of it."""
    if not target.parameters:
        return shown
    length = target.parameters[0]
    words = ["'Value '", shown] if plain is None else ["'Value '", plain, "' ('", shown, "')'"]
    message = _failure(safe, "INVALID_CAST_ARGUMENT", *words, text_literal(f" cannot be represented as {target.base}({length})"))
    if source.base in _UNCHECKED:
        said = text_literal(f"Character count exceeds length limit {length}: base64:")
        message = fail("GENERIC_INTERNAL_ERROR", said, _in_base_64(shown))
    return f"CASE WHEN {shown} IS NULL OR char_length({shown}) <= {length} THEN {shown} ELSE {message} END"
