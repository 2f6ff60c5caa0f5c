"""Casts in DuckDB SQL that mean what Trino's mean: rounding half away from zero, checked ranges, Trino's error texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import UNKNOWN, Type
from rowmerge_nb.sql.duckdb.text import UnprintableError, duckdb_type, failure, literal, once, text_literal
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.types import RANGES, as_decimal, is_exact, is_float, is_integer, is_zoned, precision_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["cast_text", "is_total", "rounded_micros"]

_SHORT_DECIMAL: Final = 18
"""Up to this precision Trino keeps a decimal in one word, and reports what does not fit after it was rounded."""
_BLANK: Final = r"[\x00-\x20]*"
_NAMES: Final = {"tinyint": "TINYINT", "smallint": "SMALLINT", "integer": "INT", "bigint": "BIGINT"}
_MICROS: Final = 6


def is_total(source: Type, target: Type) -> bool:
    """Tell whether a cast succeeds for every value.

    >>> from rowmerge_nb.spi.types import BIGINT, INTEGER
    >>> is_total(INTEGER, BIGINT), is_total(BIGINT, INTEGER)
    (True, False)
    """
    if source in {target, UNKNOWN} or source.base == target.base == "varchar":
        return source in {target, UNKNOWN} or not target.parameters
    if is_exact(source) and target.base == "decimal":
        (p1, s1), (p2, s2) = as_decimal(source).parameters, target.parameters
        return bool(p2 - s2 >= p1 - s1 and s2 >= s1)
    if is_integer(source) and is_integer(target):
        return RANGES[source.base] <= RANGES[target.base]
    if is_exact(source) or is_float(source):
        return is_float(target) or target.base == "boolean" or (target.base == "varchar" and not target.parameters)
    moments = {"date", "timestamp"}
    return {source.base, target.base} <= moments or (source.base in {"boolean", *moments} and target.base == "varchar")


def cast_text(text: str, argument: e.Typed, target: Type, *, safe: bool, storing: bool) -> str:
    """Write a cast.

    Args:
        text: the value in DuckDB SQL.
        argument: the value.
        target: the type wanted.
        safe: give NULL where the cast fails.
        storing: the cast is that of an assignment: text that is too long fails unless only spaces are cut.

    Raises:
        UnprintableError: DuckDB has no form of it that is known to mean the same.
    """
    source = argument.type
    if source == UNKNOWN:
        return literal(target, None)
    if source == target:
        return text
    if is_zoned(source) or is_zoned(target):
        raise UnprintableError(_words(source, target))
    if source.base == "varchar" and target.base not in {"varchar", *_NAMES}:
        return _constant(argument, target)
    writer = _writer(source, target)

    def fail(code: str, *message: str) -> str:
        return "NULL" if safe else failure(code, *message)

    if storing and source.base == target.base == "varchar":
        return once(lambda value: _stored(value, source, target, fail), text)
    return once(lambda value: writer(value, source, target, fail), text)


def _words(source: Type, target: Type) -> str:
    return f"a cast from {source} to {target}"


def _writer(source: Type, target: Type) -> Callable[[str, Type, Type, Callable[..., str]], str]:
    if is_exact(source) and is_integer(target):
        return _to_integer
    if is_exact(source) and target.base == "decimal":
        return _to_decimal
    if is_float(source) and is_integer(target) and not (source.base == "real" and target.base == "bigint"):
        return _float_to_integer
    if is_float(source) and target.base == "decimal":
        return _float_to_decimal
    if source.base == "decimal" and is_float(target):
        return lambda text, _s, t, _f: f"CAST(CAST({text} AS VARCHAR) AS {duckdb_type(t)})"
    if (is_integer(source) and is_float(target)) or (source.base, target.base) == ("real", "double"):
        return lambda text, _s, t, _f: f"CAST({text} AS {duckdb_type(t)})"
    if (source.base, target.base) == ("double", "real"):
        return _double_to_real
    if (is_exact(source) or is_float(source)) and target.base == "boolean":
        return lambda text, _s, _t, _f: f"({text} <> 0)"
    if source.base == "boolean" and (is_exact(target) or is_float(target)):
        return lambda text, _s, t, _f: f"CAST(CAST({text} AS INTEGER) AS {duckdb_type(t)})"
    if source.base == "varchar" and is_integer(target):
        return _text_to_integer
    if source.base == target.base == "varchar":
        return lambda text, s, t, _f: text if _holds(s, t) else f"substr({text}, 1, {t.parameters[0]})"
    if target.base == "varchar" and (is_exact(source) or source.base in {"boolean", "date", "timestamp"}):
        return _to_text
    if {source.base, target.base} <= {"date", "timestamp"}:
        return _moment
    raise UnprintableError(_words(source, target))


# -- numbers ----------------------------------------------------------------------------------------------------------


def _to_integer(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    kind = duckdb_type(target)
    if is_total(source, target):
        return f"CAST({text} AS {kind})"
    if is_integer(source):
        message = fail("NUMERIC_VALUE_OUT_OF_RANGE", f"'Out of range for {target.base}: '", f"CAST({text} AS VARCHAR)")
    else:
        shown = f"CAST(round({text}, 0) AS VARCHAR)" if source.parameters[0] <= _SHORT_DECIMAL else _shown(text, source)
        message = fail("INVALID_CAST_ARGUMENT", "'Cannot cast '''", shown, f"''' to {target.base.upper()}'")
    return f"coalesce(TRY_CAST({text} AS {kind}), CASE WHEN {text} IS NOT NULL THEN {message} END)"


def _to_decimal(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    kind = duckdb_type(target)
    if is_total(source, target):
        return f"CAST({text} AS {kind})"
    said = f"DECIMAL({source.parameters[0]}, {source.parameters[1]})" if source.base == "decimal" else source.base.upper()
    message = _unfit(said, _shown(text, source), target, fail)
    return f"coalesce(TRY_CAST({text} AS {kind}), CASE WHEN {text} IS NOT NULL THEN {message} END)"


def _unfit(said: str, shown: str, target: Type, fail: Callable[..., str]) -> str:
    precision, scale = target.parameters
    return fail("INVALID_CAST_ARGUMENT", f"'Cannot cast {said} '''", shown, f"''' to DECIMAL({precision}, {scale})'")


def _float_to_integer(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    limit, base = RANGES[target.base], target.base
    shown = _shown_float(text)
    nan = fail("INVALID_CAST_ARGUMENT", f"'Cannot cast {source.base} NaN to {base}'")
    if base == "bigint":
        nan = far = fail("INVALID_CAST_ARGUMENT", "'Unable to cast '", shown, "' to bigint'")
        within = f"{text} >= -9223372036854775808.0::DOUBLE AND {text} < 9223372036854775808.0::DOUBLE"
    else:
        far = fail("NUMERIC_VALUE_OUT_OF_RANGE", f"'Out of range for {base}: '", shown)
        within = f"round({text}) BETWEEN {-limit} AND {limit - 1}"
    value = f"CAST(round({text}) AS {duckdb_type(target)})"
    return f"CASE WHEN {text} IS NULL THEN NULL WHEN isnan({text}) THEN {nan} WHEN {within} THEN {value} ELSE {far} END"


def _float_to_decimal(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    # A float's shortest decimal form is what is rounded, so that 1.005 becomes 1.01.
    message = _unfit(source.base.upper(), _shown_float(text), target, fail)
    return (
        f"coalesce(TRY_CAST(CAST({text} AS VARCHAR) AS {duckdb_type(target)}), CASE WHEN {text} IS NOT NULL THEN {message} END)"
    )


def _shown_float(text: str) -> str:
    """Write a float as errors show it, in Java's form: 1.0E10, NaN, Infinity."""
    shown = f"CAST(abs({text}) AS VARCHAR)"
    number, power = f"split_part({shown}, 'e', 1)", f"coalesce(TRY_CAST(nullif(split_part({shown}, 'e', 2), '') AS INTEGER), 0)"
    whole, part = f"split_part({number}, '.', 1)", f"split_part({number}, '.', 2)"
    digits = f"trim({whole} || {part}, '0')"
    lead = f"CASE WHEN {whole} <> '0' THEN length({whole}) ELSE length(ltrim({part}, '0')) - length({part}) END"
    mantissa = f"substr({digits}, 1, 1) || '.' || coalesce(nullif(substr({digits}, 2), ''), '0')"
    far = f"CASE WHEN {text} < 0 THEN '-' ELSE '' END || {mantissa} || 'E' || CAST({power} + {lead} - 1 AS VARCHAR)"
    near = f"{text} = 0 OR (abs({text}) >= 0.001::DOUBLE AND abs({text}) < 10000000.0::DOUBLE)"
    infinite = f"CASE WHEN {text} > 0 THEN 'Infinity' ELSE '-Infinity' END"
    return f"CASE WHEN isnan({text}) THEN 'NaN' WHEN isinf({text}) THEN {infinite} WHEN {near} THEN CAST({text} AS VARCHAR) ELSE {far} END"


def _double_to_real(text: str, _source: Type, _target: Type, _fail: Callable[..., str]) -> str:
    """What is too large becomes infinite; DuckDB would fail."""
    finite = f"isnan({text}) OR isinf({text}) OR abs({text}) < 3.4028235677973366e38::DOUBLE"
    infinite = "'inf'::FLOAT", "'-inf'::FLOAT"
    return (
        f"CASE WHEN {text} IS NULL OR {finite} THEN CAST({text} AS FLOAT) "
        f"WHEN {text} > 0 THEN {infinite[0]} ELSE {infinite[1]} END"
    )


def _text_to_integer(text: str, _source: Type, target: Type, fail: Callable[..., str]) -> str:
    number = f"regexp_extract({text}, '^{_BLANK}([+-]?[0-9]+){_BLANK}$', 1)"
    message = fail("INVALID_CAST_ARGUMENT", "'Cannot cast '''", text, f"''' to {_NAMES[target.base]}'")
    tried = f"TRY_CAST(nullif({number}, '') AS {duckdb_type(target)})"
    return f"coalesce({tried}, CASE WHEN {text} IS NOT NULL THEN {message} END)"


# -- text -------------------------------------------------------------------------------------------------------------


def _shown(text: str, source: Type) -> str:
    """Write an exact number as Trino shows it: DuckDB leaves the zero before the point out where it has no room in the type."""
    plain = f"CAST({text} AS VARCHAR)"
    if source.base == "decimal" and source.parameters[0] == source.parameters[1]:
        return f"regexp_replace({plain}, '^(-?)[.]', '\\10.')"
    return plain


def _to_text(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    shown = _shown(text, source)
    if source.base == "timestamp":
        precision = precision_of(source)
        length = len("2000-01-01 00:00:00") + (precision + 1 if precision else 0)
        shown = f"substr(strftime({text}, '%Y-%m-%d %H:%M:%S.%f'), 1, {length})"
    if not target.parameters:
        return shown
    length = target.parameters[0]
    message = fail("INVALID_CAST_ARGUMENT", "'Value '", shown, f"' cannot be represented as varchar({length})'")
    return f"CASE WHEN {shown} IS NULL OR length({shown}) <= {length} THEN {shown} ELSE {message} END"


def _holds(source: Type, target: Type) -> bool:
    return not target.parameters or (bool(source.parameters) and source.parameters[0] <= target.parameters[0])


def _stored(text: str, source: Type, target: Type, fail: Callable[..., str]) -> str:
    if _holds(source, target):
        return text
    length = target.parameters[0]
    said = f"Cannot truncate non-space characters when casting from {source} to {target} on INSERT"
    message = fail("INVALID_CAST_ARGUMENT", text_literal(said))
    fits = f"{text} IS NULL OR length(rtrim({text}, ' ')) <= {length}"
    return f"CASE WHEN {fits} THEN substr({text}, 1, {length}) ELSE {message} END"


_CONSTANTS: Final = {
    "date": (r"\s*(\d{4}-\d\d-\d\d)\s*",),
    "timestamp": (r"\s*(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)\s*", r"\s*(\d{4}-\d\d-\d\d)\s*"),
    "double": (r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?)",),
    "boolean": ("(?i:(true|false))",),
}


def _constant(argument: e.Typed, target: Type) -> str:
    """Read a constant text in the one form that all readers take alike."""
    if isinstance(argument, e.Constant) and argument.value is not None:
        for form in _CONSTANTS.get(target.base, ()):
            found = re.fullmatch(form, argument.value)
            if found and (target.base != "timestamp" or _precision(found[1]) <= precision_of(target)):
                return f"CAST('{found[1]}' AS {duckdb_type(target)})"
    if isinstance(argument, e.Constant) and argument.value is None:
        return literal(target, None)
    raise UnprintableError(_words(argument.type, target))


def _precision(moment: str) -> int:
    return len(moment.partition(".")[2])


# -- moments ----------------------------------------------------------------------------------------------------------


def rounded_micros(number: str, precision: int) -> str:
    """Write microseconds rounded, halves up, to so many decimals of a second."""
    step = 10 ** (_MICROS - precision)
    if step == 1:
        return number
    moved = f"({number} + {step // 2})"
    return f"({moved} - (({moved} % {step} + {step}) % {step}))"


def _moment(text: str, source: Type, target: Type, _fail: Callable[..., str]) -> str:
    if source.base == target.base == "timestamp" and precision_of(source) > precision_of(target):
        return f"make_timestamp({rounded_micros(f'epoch_us({text})', precision_of(target))})"
    return f"CAST({text} AS {duckdb_type(target)})"
