r"""Casts from and to text in DuckDB SQL, with Trino's formats and errors.

A regular expression splits a text, which is rewritten; DuckDB's own casts accept other texts
(``1_000``).
"""

# All writers of casts have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, bound, duckdb_type, failure
from rowmerge_nb.sql.typed.cast_rules import NUMBERS_IN_ERRORS
from rowmerge_nb.sql.typed.characters import OTHER_DIGITS, WHITE
from rowmerge_nb.sql.typed.type_rules import precision_of
from rowmerge_nb.sql.typed.zones import DISTANCE, names_of_zones

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type

Writer: TypeAlias = "Callable[[str, Type, Type, Callable[..., str]], str]"
"""Writes a cast: the value's text, its type, the target type, and the writer of failures."""

_CODE: Final = "INVALID_CAST_ARGUMENT"
_BLANK: Final = r"[\x00-\x20]*"
_DIGITS: Final = r"(?:[0-9]+[.]?[0-9]*|[.][0-9]+)"
_NUMBER: Final = rf"[+-]?{_DIGITS}(?:[eE][+-]?[0-9]+)?"
_PARTS: Final = r"^([+-]?)([0-9]*)[.]?([0-9]*)(?:[eE]([+-]?[0-9]+))?$"
_DATE: Final = r"^([+-]?[0-9]{1,7})-([0-9][0-9]?)-([0-9][0-9]?)$"
# A valid zone at the end is ignored, as in Trino.
_MOMENT: Final = (
    r"^([+-]?[0-9]{4,6})-([0-9][0-9]?)-([0-9][0-9]?)"
    r"(?: (?:([0-9][0-9]?):([0-9][0-9]?)(?::([0-9][0-9]?)(?:[.]([0-9]+))?)?)?[\t-\r"
    r" ]*([^\n\r\x{85}\x{2028}\x{2029}]+)?)?$"
)
_UUID: Final = r"^[0-9A-Fa-f]+(?:-[0-9A-Fa-f]+){4}$"
_UUID_LENGTH: Final = 36
_FAR: Final = 100
"""More digits than any decimal."""
_YEARS: Final = {"date": (-5_877_640, 5_881_579), "timestamp": (-290_306, 294_246)}
"""The years that DuckDB supports completely."""
_MICROS: Final = 6


def _checked(attempt: str, text: str, message: str) -> str:
    return (
        attempt
        if message == "NULL"
        else f"coalesce({attempt}, CASE WHEN {text} IS NOT NULL THEN {message} END)"
    )


# -- from text


def from_text(target: Type) -> Writer | None:
    return _READERS.get(target.base)


def _to_varchar(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    if not target.parameters or (
        source.parameters and source.parameters[0] <= target.parameters[0]
    ):
        return text
    return f"substr({text}, 1, {target.parameters[0]})"


def _to_char(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    return f"rpad({text}, {target.parameters[0]}, ' ')"


def _to_binary(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    return f"encode({text})"


def _to_boolean(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    message = fail(_CODE, "'Cannot cast '''", text, "''' to BOOLEAN'")
    return (
        f"CASE WHEN lower({text}) IN ('t', 'true', '1') THEN true WHEN lower({text}) IN ('f',"
        f" 'false', '0') THEN false WHEN {text} IS NOT NULL THEN {message} END"
    )


def _to_integer(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    def read(value: str) -> str:
        number = f"regexp_extract({value}, '^{_BLANK}([+-]?[0-9]+){_BLANK}$', 1)"
        return f"TRY_CAST(nullif({number}, '') AS {duckdb_type(target)})"

    # Trino uses Java's parseInt, which reads the digits of all scripts.
    plain = f"translate({text}, '{OTHER_DIGITS}', '{'0123456789' * (len(OTHER_DIGITS) // 10)}')"
    others = f"CASE WHEN length({text}) < strlen({text}) THEN {read(plain)} END"
    message = fail(_CODE, "'Cannot cast '''", text, f"''' to {NUMBERS_IN_ERRORS[target.base]}'")
    return _checked(f"coalesce({read(text)}, {others})", text, message)


def _to_float(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    number = f"regexp_extract({text}, '^{_BLANK}({_NUMBER})[fFdD]?{_BLANK}$', 1)"
    word = f"regexp_extract({text}, '^{_BLANK}([+-]?(?:NaN|Infinity)){_BLANK}$', 1)"
    message = fail(_CODE, "'Cannot cast '''", text, f"''' to {NUMBERS_IN_ERRORS[target.base]}'")
    return _checked(
        f"TRY_CAST(nullif({number} || replace({word}, '-NaN', 'NaN'), '') AS"
        f" {duckdb_type(target)})",
        text,
        message,
    )


def _to_decimal(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    precision, scale = target.parameters
    number = f"regexp_matches({text}, '^{_NUMBER}$')"
    attempt = f"CASE WHEN {number} THEN {decimal_of_digits(text, target)} END"
    why = f"CASE WHEN {number} THEN 'Value too large.' ELSE 'Value is not a number.' END"
    return _checked(
        attempt,
        text,
        fail(
            _CODE,
            "'Cannot cast VARCHAR '''",
            text,
            f"''' to DECIMAL({precision}, {scale}). '",
            f"({why})",
        ),
    )


def decimal_of_digits(text: str, target: Type) -> str:
    """Write a number's text as a decimal, rounded half away from zero; NULL on overflow."""
    plain = bound(_without_exponent, f"regexp_extract({text}, '{_PARTS}', ['s', 'w', 'f', 'e'])")
    return (
        f"TRY_CAST(CASE WHEN regexp_matches({text}, '[eE]') THEN {plain} ELSE {text} END AS"
        f" {duckdb_type(target)})"
    )


def _without_exponent(parts: str) -> str:
    """Write a number with its exponent expanded, since DuckDB parses exponents differently."""

    def write(digits: str, point: str) -> str:
        shifted = (
            f"CASE WHEN {point} IS NULL THEN NULL WHEN {digits} = '' OR {point} < -{_FAR} THEN '0'"
            f" WHEN {point} <= 0 THEN '0.' || repeat('0', -{point}) || {digits} WHEN {point} <="
            f" {_FAR} THEN rpad(substr({digits}, 1, {point}), CAST({point} AS INTEGER), '0') || '.'"
            f" || substr({digits}, {point} + 1) END"
        )
        return f"{parts}['s'] || {shifted}"

    digits = f"ltrim({parts}['w'] || {parts}['f'], '0')"
    zeros = f"length({parts}['w'] || {parts}['f']) - length({digits})"
    return bound(
        write, digits, f"(length({parts}['w']) - ({zeros}) + TRY_CAST({parts}['e'] AS INTEGER))"
    )


def _day(parts: str, type_name: str) -> str:
    year, month, day = (f"TRY_CAST(nullif({parts}['{name}'], '') AS INTEGER)" for name in "ymd")
    first, last = _YEARS[type_name]
    is_valid = f"{year} BETWEEN {first} AND {last} AND {month} BETWEEN 1 AND 12"
    within = f"{day} BETWEEN 1 AND day(last_day(make_date({year}, {month}, 1)))"
    return (
        f"CASE WHEN {is_valid} THEN CASE WHEN {within} THEN make_date({year}, {month}, {day})"
        " END END"
    )


def _to_date(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    parts = f"regexp_extract(trim({text}, '{WHITE}'), '{_DATE}', ['y', 'm', 'd'])"
    attempt = bound(lambda parts_text: _day(parts_text, "date"), parts)
    return _checked(attempt, text, fail(_CODE, "'Value cannot be cast to date: '", text))


def _to_timestamp(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    precision = min(precision_of(target), _MICROS)

    def write(parts: str) -> str:
        hour, minute, second = (
            f"coalesce(TRY_CAST(nullif({parts}['{name}'], '') AS BIGINT), 0)" for name in "his"
        )
        # The first omitted digit decides.
        digits = (
            f"CAST(rpad(substr({parts}['f'], 1, {precision + 1}), {precision + 1}, '0') AS BIGINT)"
        )
        fraction = f"(({digits} + 5) // 10 * {10 ** (_MICROS - precision)})"
        clock = f"(({hour} * 60 + {minute}) * 60 + {second}) * 1000000 + {fraction}"
        within = f"{hour} < 24 AND {minute} < 60 AND {second} < 60"
        zone = (
            f"{parts}['z'] = '' OR regexp_matches({parts}['z'], '{DISTANCE}') OR {parts}['z'] IN"
            f" ({names_of_zones()})"
        )
        return (
            f"CASE WHEN {within} AND ({zone}) THEN"
            f" make_timestamp(epoch_us(CAST({_day(parts, 'timestamp')} AS TIMESTAMP)) +"
            f" {clock}) END"
        )

    names = ", ".join(f"'{name}'" for name in "ymdhisfz")
    trimmed = f"trim({text}, '{WHITE}')"
    attempt = bound(write, f"regexp_extract({trimmed}, '{_MOMENT}', [{names}])")
    return _checked(attempt, text, fail(_CODE, "'Value cannot be cast to timestamp: '", trimmed))


def _to_uuid(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    formed = f"regexp_matches({text}, '{_UUID}')"
    attempt = f"CASE WHEN {formed} AND length({text}) = {_UUID_LENGTH} THEN lower({text}) END"
    length = fail(_CODE, "'Invalid UUID string length: '", f"CAST(length({text}) AS VARCHAR)")
    other = fail(_CODE, "'Cannot cast value to UUID: '", text)
    return _checked(
        attempt,
        text,
        "NULL" if length == "NULL" else f"CASE WHEN {formed} THEN {length} ELSE {other} END",
    )


_READERS: Final[dict[str, Writer]] = {
    "varchar": _to_varchar,
    "char": _to_char,
    "varbinary": _to_binary,
    "boolean": _to_boolean,
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), _to_integer),
    **dict.fromkeys(("real", "double"), _to_float),
    "decimal": _to_decimal,
    "date": _to_date,
    "timestamp": _to_timestamp,
    "uuid": _to_uuid,
}


# -- to text


def to_text(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    """Write a cast to text, or raise UnprintableError; too long a text is an error."""
    write = _SHOWN.get(source.base)
    if write is None:
        raise UnprintableError(f"a cast from {source} to {target}")
    value_text = write(text, source)
    if not target.parameters:
        return value_text
    length = target.parameters[0]

    def fitting(text_value: str) -> str:
        message_start = (
            ["'Value '", java_double(text), "' ('", text_value, "')'"]
            if source.base == "double"
            else ["'Value '", text_value]
        )
        message = fail(
            _CODE, *message_start, f"' cannot be represented as {target.base}({length})'"
        )
        if source.base in {"timestamp", "timestamp with time zone"}:
            # Trino does not check this; it fails when stored or sent, even under TRY.
            message = failure(
                "GENERIC_INTERNAL_ERROR",
                f"'Character count exceeds length limit {length}: base64:'",
                f"to_base64(encode({text_value}))",
            )
        return (
            f"CASE WHEN {text_value} IS NULL OR length({text_value}) <= {length} THEN {text_value}"
            f" ELSE {message} END"
        )

    return bound(fitting, value_text)


def shown_exact(text: str, source: Type) -> str:
    """Write an exact number; DuckDB may omit the zero before the point."""
    plain = f"CAST({text} AS VARCHAR)"
    if source.base == "decimal" and source.parameters[0] == source.parameters[1]:
        return f"regexp_replace({plain}, '^(-?)[.]', '\\10.')"
    return plain


def shown_date(text: str, source: Type) -> str:
    """Write a date; long years have a sign in timestamps only."""
    year = f"year({text})"
    plus = "" if source.base == "date" else "+"
    far = (
        f"CASE WHEN {year} < 0 THEN '-' ELSE '{plus}' END || lpad(CAST(abs({year}) AS VARCHAR),"
        f" greatest(4, length(CAST(abs({year}) AS VARCHAR)))::INTEGER, '0')"
    )
    rest = (
        f"'-' || lpad(CAST(month({text}) AS VARCHAR), 2, '0') || '-' || lpad(CAST(day({text}) AS"
        " VARCHAR), 2, '0')"
    )
    return (
        f"CASE WHEN {year} BETWEEN 1 AND 9999 THEN CAST({text} AS VARCHAR) WHEN {year} = 0 THEN"
        f" '0000' || {rest} ELSE {far} || {rest} END"
    )


def _shown_timestamp(text: str, source: Type) -> str:
    precision = precision_of(source)
    length = len(" 00:00:00") + (precision + 1 if precision else 0)
    clock = f"substr(strftime(CAST({text} AS TIMESTAMP), ' %H:%M:%S.%f'), 1, {length})"
    timestamp_text = f"({shown_date(f'CAST({text} AS DATE)', source)}) || {clock}"
    return (
        f"{timestamp_text} || ' UTC'"
        if source.base == "timestamp with time zone"
        else timestamp_text
    )


def _digits(text: str) -> str:
    def write(parts: str) -> str:
        lead = (
            f"CASE WHEN {parts}['w'] <> '0' THEN length({parts}['w']) ELSE"
            f" length(ltrim({parts}['f'], '0')) - length({parts}['f']) END"
        )
        power = f"coalesce(TRY_CAST(nullif({parts}['e'], '') AS INTEGER), 0) + {lead} - 1"
        return f"{{'d': trim({parts}['w'] || {parts}['f'], '0'), 'e': CAST({power} AS VARCHAR)}}"

    return bound(
        write,
        f"regexp_extract(CAST(abs({text}) AS VARCHAR), '^([0-9]+)[.]?([0-9]*)(?:e(.+))?$', ['w',"
        " 'f', 'e'])",
    )


def _scientific(text: str) -> str:
    def write(digits: str) -> str:
        two = f"printf('%.1e', CAST(abs({text}) AS DOUBLE))"
        short = f"substr({two}, 1, 3) || 'E' || CAST(CAST(substr({two}, 5) AS INTEGER) AS VARCHAR)"
        long = (
            f"substr({digits}['d'], 1, 1) || '.' || substr({digits}['d'], 2) || 'E' ||"
            f" {digits}['e']"
        )
        return (
            f"CASE WHEN {text} < 0 THEN '-' ELSE '' END || CASE WHEN length({digits}['d']) = 1 THEN"
            f" {short} ELSE {long} END"
        )

    return bound(write, _digits(text))


def _special(text: str) -> str:
    infinite = f"CASE WHEN {text} > 0 THEN 'Infinity' ELSE '-Infinity' END"
    return (
        f"WHEN {text} IS NULL THEN NULL WHEN isnan({text}) THEN 'NaN' WHEN isinf({text}) THEN"
        f" {infinite}"
    )


def java_double(text: str) -> str:
    """Write a float in Java's form: 1.5, 1.0E10, NaN, Infinity."""
    near = f"{text} = 0 OR (abs({text}) >= 0.001::DOUBLE AND abs({text}) < 10000000.0::DOUBLE)"
    return (
        f"CASE {_special(text)} WHEN {near} THEN CAST({text} AS VARCHAR) ELSE"
        f" {_scientific(text)} END"
    )


def shown_double(text: str, _source: Type) -> str:
    """Write a double like Trino: 1.0E0, 1.23456789E5."""
    zero = (
        f"WHEN {text} = 0 THEN CASE WHEN CAST({text} AS VARCHAR) LIKE '-%' THEN '-0E0' ELSE"
        " '0E0' END"
    )
    return f"CASE {_special(text)} {zero} ELSE {_scientific(text)} END"


def _unchanged(text: str, _source: Type) -> str:
    return text


def _plain(text: str, _source: Type) -> str:
    return f"CAST({text} AS VARCHAR)"


_SHOWN: Final[dict[str, Callable[[str, Type], str]]] = {
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint", "decimal"), shown_exact),
    "boolean": _plain,
    "date": shown_date,
    "timestamp": _shown_timestamp,
    "timestamp with time zone": _shown_timestamp,
    "double": shown_double,
    "uuid": _unchanged,
}
