"""Casts in DuckDB SQL with Trino's rounding (half away from zero), range checks and errors."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import UNKNOWN, Type
from rowmerge_nb.sql.duckdb.duckdb_text import (
    UnprintableError,
    duckdb_type,
    failure,
    literal,
    once,
    text_literal,
)
from rowmerge_nb.sql.duckdb.nested import nested_cast
from rowmerge_nb.sql.duckdb.text_casts import (
    decimal_of_digits,
    from_text,
    java_double,
    shown_exact,
    to_text,
)
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    MOMENTS,
    NESTED,
    RANGES,
    as_decimal,
    cast_name,
    is_exact,
    is_float,
    is_integer,
    is_text,
    is_zoned,
    precision_of,
    varchar_of,
)
from rowmerge_nb.sql.typed.zones import session_zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.duckdb.text_casts import Writer

_SHORT_DECIMAL: Final = 18
"""Up to this precision, a decimal is one word in Trino, and errors show the rounded value."""
_MICROS: Final = 6


def is_total(source: Type, target: Type) -> bool:
    """Return whether a cast always succeeds."""
    if source in {target, UNKNOWN}:
        return True
    if source.base in NESTED:
        return source.base == target.base and all(
            is_total(a, b) for a, b in zip(source.parameters, target.parameters, strict=True)
        )
    if is_text(source):
        return target.base in {"varchar", "varbinary"} and not target.parameters
    if is_exact(source) and target.base == "decimal":
        (p1, s1), (p2, s2) = as_decimal(source).parameters, target.parameters
        return bool(p2 - s2 >= p1 - s1 and s2 >= s1)
    if is_integer(source) and is_integer(target):
        return RANGES[source.base] <= RANGES[target.base]
    if target.base == "varchar":
        return not target.parameters
    if is_exact(source) or is_float(source):
        return is_float(target) or target.base == "boolean"
    return (
        source.base == "uuid"
        or {source.base, target.base} <= MOMENTS
        or source.base == target.base == "time"
    )


def cast_text(
    argument: e.Typed, target: Type, printed: Callable[[e.Typed], str], *, safe: bool, storing: bool
) -> str:
    """Write a cast, or raise UnprintableError.

    Args:
        safe: return NULL on failure.
        storing: an assignment, which cuts only spaces.
    """
    source = argument.type
    if source == UNKNOWN:
        return literal(target, None)
    constant = _constant(argument, target) if source != target else None
    if constant is not None:
        return constant
    return _value_cast(printed(argument), source, target, safe=safe, storing=storing)


def _value_cast(text: str, source: Type, target: Type, *, safe: bool, storing: bool = False) -> str:
    if source == target:
        return text
    if source == UNKNOWN:
        return literal(target, None)
    if source.base in NESTED and source.base == target.base:
        if safe and not is_total(source, target):
            raise UnprintableError(_words(source, target))
        return nested_cast(text, source, target, partial(_value_cast, safe=safe, storing=storing))
    if source.base == "char" and target.base not in {"char", "varbinary"}:
        varchar = varchar_of(source.parameters[0])
        return _value_cast(f"rtrim({text}, ' ')", varchar, target, safe=safe, storing=storing)
    writer = _writer(source, target)

    def fail(code: str, *message: str) -> str:
        return "NULL" if safe else failure(code, *message)

    if storing and is_text(source) and is_text(target) and target.parameters:
        return once(lambda value: _stored(value, source, target, writer, fail), text)
    return once(lambda value: writer(value, source, target, fail), text)


def _words(source: Type, target: Type) -> str:
    return f"a cast from {source} to {target}"


def _writer(source: Type, target: Type) -> Writer:
    if "number" in {source.base, target.base} or (
        target.base == "timestamp with time zone"
        and source.base != target.base
        and session_zone() != "UTC"
    ):
        raise UnprintableError(_words(source, target))
    writer = _from_text(target) if is_text(source) else _from_number(source, target)
    if writer is None and target.base == "varchar" and not is_zoned(source):
        writer = to_text
    if (
        writer is None
        and (source.base in MOMENTS or is_zoned(source))
        and target.base in MOMENTS
        and not is_zoned(target)
    ):
        writer = _moment
    if writer is None and (source.base, target.base) == ("uuid", "varbinary"):
        writer = _uuid_bytes
    if writer is None and source.base == target.base == "time":
        writer = _time
    if writer is None or (is_zoned(source) and target.base != "timestamp with time zone"):
        raise UnprintableError(_words(source, target))
    return writer


def _from_text(target: Type) -> Writer | None:
    return None if is_zoned(target) else from_text(target)


def _from_number(source: Type, target: Type) -> Writer | None:
    if is_exact(source) and is_integer(target):
        return _to_integer
    if is_exact(source) and target.base == "decimal":
        return _to_decimal
    if is_float(source) and is_integer(target):
        return _float_to_integer
    if is_float(source) and target.base == "decimal":
        return _float_to_decimal
    if source.base == "decimal" and is_float(target):
        return lambda text, _s, t, _f: f"CAST(CAST({text} AS VARCHAR) AS {duckdb_type(t)})"
    if (is_integer(source) and is_float(target)) or (source.base, target.base) == (
        "real",
        "double",
    ):
        return lambda text, _s, t, _f: f"CAST({text} AS {duckdb_type(t)})"
    if (source.base, target.base) == ("double", "real"):
        return _double_to_real
    if (is_exact(source) or is_float(source)) and target.base == "boolean":
        return lambda text, _s, _t, _f: f"({text} <> 0)"
    if source.base == "boolean" and (is_exact(target) or is_float(target)):
        return lambda text, _s, t, _f: f"CAST(CAST({text} AS INTEGER) AS {duckdb_type(t)})"
    return None


# -- numbers


def _to_integer(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    type_text = duckdb_type(target)
    if is_total(source, target):
        return f"CAST({text} AS {type_text})"
    if is_integer(source):
        message = fail(
            "NUMERIC_VALUE_OUT_OF_RANGE",
            f"'Out of range for {target.base}: '",
            f"CAST({text} AS VARCHAR)",
        )
    else:
        value_text = (
            f"CAST(round({text}, 0) AS VARCHAR)"
            if source.parameters[0] <= _SHORT_DECIMAL
            else shown_exact(text, source)
        )
        message = fail(
            "NUMERIC_VALUE_OUT_OF_RANGE",
            "'Cannot cast '''",
            value_text,
            f"''' to {target.base.upper()}'",
        )
    return _attempted(text, type_text, message)


def _attempted(text: str, type_text: str, message: str) -> str:
    return (
        f"coalesce(TRY_CAST({text} AS {type_text}), CASE WHEN {text} IS NOT NULL THEN {message}"
        " END)"
    )


def _to_decimal(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    type_text = duckdb_type(target)
    if is_total(source, target):
        return f"CAST({text} AS {type_text})"
    message = _unfit(cast_name(source), shown_exact(text, source), target, fail)
    return _attempted(text, type_text, message)


def _unfit(
    type_words: str,
    value_text: str,
    target: Type,
    fail: Callable[..., str],
    code: str = "NUMERIC_VALUE_OUT_OF_RANGE",
) -> str:
    precision, scale = target.parameters
    return fail(
        code,
        f"'Cannot cast {type_words} '''",
        value_text,
        f"''' to DECIMAL({precision}, {scale})'",
    )


def _float_to_integer(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    limit, base = RANGES[target.base], target.base
    value_text = java_double(text)
    nan = fail("INVALID_CAST_ARGUMENT", f"'Cannot cast {source.base} NaN to {base}'")
    far = fail("NUMERIC_VALUE_OUT_OF_RANGE", f"'Out of range for {base}: '", value_text)
    within = (
        f"{text} >= -9223372036854775808.0::DOUBLE AND {text} < 9223372036854775808.0::DOUBLE"
        if base == "bigint"
        # As doubles, since as a real 2147483647 would be out of range.
        else f"round(CAST({text} AS DOUBLE)) BETWEEN {-limit}::DOUBLE AND {limit - 1}::DOUBLE"
    )
    value = f"CAST(round({text}) AS {duckdb_type(target)})"
    return (
        f"CASE WHEN {text} IS NULL THEN NULL WHEN isnan({text}) THEN {nan} WHEN {within} THEN"
        f" {value} ELSE {far} END"
    )


def _float_to_decimal(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    # The shortest decimal form of a float is rounded, so that 1.005 becomes 1.01.
    parts = (source.base.upper(), java_double(text), target, fail)
    message = _unfit(*parts)
    attempt = once(lambda digits: decimal_of_digits(digits, target), f"CAST({text} AS VARCHAR)")
    return (
        f"CASE WHEN isnan({text}) THEN {_unfit(*parts, 'INVALID_CAST_ARGUMENT')} WHEN isinf({text})"
        f" THEN {message} ELSE coalesce({attempt}, CASE WHEN {text} IS NOT NULL THEN {message} END)"
        " END"
    )


def _double_to_real(text: str, _source: Type, _target: Type, _fail: Callable[..., str]) -> str:
    finite = f"isnan({text}) OR isinf({text}) OR abs({text}) < 3.4028235677973366e38::DOUBLE"
    infinite = "'inf'::FLOAT", "'-inf'::FLOAT"
    return (
        f"CASE WHEN {text} IS NULL OR {finite} THEN CAST({text} AS FLOAT) "
        f"WHEN {text} > 0 THEN {infinite[0]} ELSE {infinite[1]} END"
    )


# -- text


def _stored(text: str, source: Type, target: Type, writer: Writer, fail: Callable[..., str]) -> str:
    value, length = writer(text, source, target, fail), target.parameters[0]
    if source.parameters and source.parameters[0] <= length:
        return value
    message = fail(
        "INVALID_CAST_ARGUMENT",
        text_literal(
            f"Cannot truncate non-space characters when casting from {source} to {target} on INSERT"
        ),
    )
    return (
        f"CASE WHEN {text} IS NULL OR length(rtrim({text}, ' ')) <= {length} THEN {value} ELSE"
        f" {message} END"
    )


_CONSTANTS: Final = {
    "date": (r"\s*(\d{4}-\d\d-\d\d)\s*",),
    "timestamp": (
        r"\s*(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)\s*",
        r"\s*(\d{4}-\d\d-\d\d)\s*",
    ),
    "double": (r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?)",),
    "boolean": ("(?i:(true|false))",),
}


def _constant(argument: e.Typed, target: Type) -> str | None:
    if not isinstance(argument, e.Constant):
        return None
    if argument.value is None:
        return literal(target, None)
    if (
        is_zoned(argument.type)
        and target.base == argument.type.base
        and precision_of(argument.type) <= precision_of(target)
    ):
        return literal(target, argument.value.rpartition(" ")[0])
    for form in _CONSTANTS.get(target.base, ()) if argument.type.base == "varchar" else ():
        match = re.fullmatch(form, argument.value)
        if match and (target.base != "timestamp" or _precision(match[1]) <= precision_of(target)):
            return f"CAST('{match[1]}' AS {duckdb_type(target)})"
    return None


def _precision(moment: str) -> int:
    return len(moment.partition(".")[2])


# -- moments


def rounded_micros(number: str, precision: int) -> str:
    step = 10 ** (_MICROS - precision)
    if step == 1:
        return number
    moved = f"({number} + {step // 2})"
    return f"({moved} - (({moved} % {step} + {step}) % {step}))"


def _moment(text: str, source: Type, target: Type, _fail: Callable[..., str]) -> str:
    if is_zoned(source):
        text = f"{text}['instant']"
    if target.base != "date" and precision_of(source) > precision_of(target):
        timestamp_text = (
            f"make_timestamp({rounded_micros(f'epoch_us({text})', precision_of(target))})"
        )
        return (
            timestamp_text
            if target.base == "timestamp"
            else f"CAST({timestamp_text} AS {duckdb_type(target)})"
        )
    return f"CAST({text} AS {duckdb_type(target)})"


def _time(text: str, source: Type, target: Type, _fail: Callable[..., str]) -> str:
    """Write a time cast, which wraps around midnight."""
    if precision_of(source) <= precision_of(target):
        return text
    return (
        f"CAST(make_timestamp({rounded_micros(f'epoch_us({text})', precision_of(target))}) AS TIME)"
    )


def _uuid_bytes(text: str, _source: Type, _target: Type, _fail: Callable[..., str]) -> str:
    return f"unhex(replace({text}, '-', ''))"
