"""Casts in Spark SQL that mean what Trino's mean: rounding half away from zero, checked ranges, Trino's error texts."""

# All writers of casts have one signature, whether they need all of it or not.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.expressions import fail, once, quote, text_literal
from rowmerge_nb.sql.json_casts import from_json, to_json
from rowmerge_nb.sql.types import INTERVAL_DAY, INTERVAL_YEAR, can_coerce, is_float, is_integer, is_numeric, is_text, spark_type

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["can_cast", "can_write_cast", "cast", "store"]

_RANGES: Final = {"tinyint": 2**7, "smallint": 2**15, "integer": 2**31, "bigint": 2**63}
_MOMENTS: Final = frozenset({"date", "timestamp", "timestamp with time zone"})
_PLAIN: Final = frozenset({"boolean", "date", "time", "timestamp", "timestamp with time zone", "uuid", "varchar", "char", "json"})


def can_cast(source: Type, target: Type) -> bool:
    """Does Trino have a cast from one type to the other?

    >>> from rowmerge_nb.spi.types import DATE, INTEGER, VARCHAR
    >>> can_cast(DATE, INTEGER), can_cast(VARCHAR, DATE)
    (False, True)
    """
    if source == UNKNOWN or can_coerce(source, target):
        return True
    if target.base == "json" and source.base in {"array", "map", "row"}:
        return all(can_cast(part, target) for part in source.parameters)
    if {source.base, target.base} & {"array", "map", "row"} and source.base != "json" and target.base != "json":
        same = source.base == target.base and len(source.parameters) == len(target.parameters)
        return same and all(can_cast(a, b) for a, b in zip(source.parameters, target.parameters, strict=True))
    if is_numeric(source):
        return is_numeric(target) or is_text(target) or target.base in {"boolean", "json"}
    if is_text(source):
        return is_numeric(target) or target.base in _PLAIN
    if source.base == "boolean":
        return is_numeric(target) or is_text(target) or target.base in {"boolean", "json"}
    if source.base in _MOMENTS or source.base == "time":
        return is_text(target) or target.base in _temporal_targets(source.base)
    if source in (INTERVAL_DAY, INTERVAL_YEAR) or source.base == "uuid":
        return is_text(target) or (source.base == "uuid" and target.base == "varbinary")
    if source.base == "json":
        return target.base in {"varchar", "boolean", "array", "map", "row"} or is_numeric(target)
    return source.base == "varbinary" and target.base == "uuid"


def can_write_cast(source: Type, target: Type) -> bool:
    """Can a cast that Trino has be written in Spark SQL?

    >>> from rowmerge_nb.spi.types import DATE, JSON, row_of
    >>> can_write_cast(JSON, row_of([("a", DATE)]))
    False
    """
    return source.base != "json" or target.base == "json" or from_json("x", target, lambda *_: "", safe=False) is not None


def _temporal_targets(base: str) -> frozenset[str]:
    if base == "date":
        return _MOMENTS | {"json"}
    return frozenset({"time", "timestamp", "timestamp with time zone"} if base == "time" else _MOMENTS | {"time", "json"})


def cast(text: str, source: Type, target: Type, *, safe: bool = False) -> str:
    """Write the cast of a Spark SQL text from one type to another.

    Args:
        text: the value.
        source: its type.
        target: the type wanted.
        safe: give NULL where the cast fails (TRY_CAST).

    >>> from rowmerge_nb.spi.types import BIGINT, INTEGER
    >>> cast("`a`", INTEGER, BIGINT)
    'CAST(`a` AS BIGINT)'
    """
    if source == UNKNOWN:
        return f"CAST(NULL AS {spark_type(target)})"
    if source == target:
        return text
    writer = _writer(source, target)
    return once(lambda value: writer(value, source, target, safe), text)


def _writer(source: Type, target: Type) -> Callable[[str, Type, Type, bool], str]:
    if "json" in {source.base, target.base}:
        return _json
    if source.base in {"array", "map", "row"} and source.base == target.base:
        return _nested
    if is_numeric(source):
        return _from_number(source, target)
    if source.base == "boolean":
        return _boolean_to
    if is_text(source):
        return _from_text(target)
    if is_text(target):
        return _to_text
    if source.base == "json" or target.base == "json":
        return _json
    return _plain


def _failure(safe: bool, code: str, *message: str) -> str:
    return "NULL" if safe else fail(code, *message)


def _plain(text: str, _source: Type, target: Type, safe: bool) -> str:
    kind = spark_type(target)
    precision = target.parameters[0] if target.base in {"timestamp", "timestamp with time zone"} and target.parameters else 6
    value = f"{'try_cast' if safe else 'CAST'}({text} AS {kind})"
    if precision < 6 and _source.base.startswith("timestamp") and (_source.parameters or (6,))[0] > precision:
        return _rounded_moment(value, target, precision)
    return value


def _rounded_moment(value: str, target: Type, precision: int) -> str:
    step = 10 ** (6 - precision)
    micros = f"unix_micros(CAST({value} AS TIMESTAMP))"
    rounded = f"timestamp_micros(CAST(floor(({micros} + {step // 2}) / {step}) AS BIGINT) * {step})"
    return f"CAST({rounded} AS {spark_type(target)})"


# -- numbers ----------------------------------------------------------------------------------------------------------


def _from_number(source: Type, target: Type) -> Callable[[str, Type, Type, bool], str]:
    if is_text(target):
        return _number_to_text
    if target.base == "boolean":
        return lambda text, _s, _t, _safe: f"({text} <> 0)"
    if target.base == "json":
        return _json
    if can_coerce(source, target) or is_float(target):
        return lambda text, _s, t, _safe: f"CAST({text} AS {spark_type(t)})"
    if target.base == "decimal":
        return _to_decimal
    return _float_to_integer if is_float(source) else _exact_to_integer


def _exact_to_integer(text: str, source: Type, target: Type, safe: bool) -> str:
    limit = _RANGES[target.base]
    if is_integer(source):
        value = f"CAST({text} AS {spark_type(target)})"
        message = _failure(
            safe, "NUMERIC_VALUE_OUT_OF_RANGE", text_literal(f"Out of range for {target.base}: "), f"CAST({text} AS STRING)"
        )
        return f"CASE WHEN {text} IS NULL OR {text} BETWEEN {-limit} AND {limit - 1} THEN {value} ELSE {message} END"
    rounded = text if source.parameters[1] == 0 else f"round({text}, 0)"
    value = f"CAST({rounded} AS {spark_type(target)})"
    shown = f"CAST({rounded} AS STRING)"
    message = _failure(safe, "INVALID_CAST_ARGUMENT", "'Cannot cast \\''", shown, text_literal(f"' to {target.base.upper()}"))
    if source.parameters[0] - source.parameters[1] < len(str(limit)) - 1:
        return value
    low, high = (f"CAST('{n}' AS DECIMAL(38,0))" for n in (-limit, limit - 1))
    return f"CASE WHEN {text} IS NULL OR {rounded} BETWEEN {low} AND {high} THEN {value} ELSE {message} END"


def _float_to_integer(text: str, source: Type, target: Type, safe: bool) -> str:
    limit = _RANGES[target.base]
    name = target.base
    shown = f"CAST({text} AS STRING)"
    value = f"CAST(round({text}) AS {spark_type(target)})"
    nan = _failure(safe, "INVALID_CAST_ARGUMENT", text_literal(f"Cannot cast {source.base} NaN to {name}"))
    if name == "bigint":
        far = _failure(safe, "INVALID_CAST_ARGUMENT", "'Unable to cast '", shown, "' to bigint'")
        within = f"{text} >= -9223372036854775808D AND {text} < 9223372036854775808D"
    else:
        far = _failure(safe, "NUMERIC_VALUE_OUT_OF_RANGE", text_literal(f"Out of range for {name}: "), shown)
        within = f"round({text}) BETWEEN {-limit}D AND {limit - 1}D"
    return f"CASE WHEN isnan({text}) THEN {nan} WHEN {text} IS NULL OR ({within}) THEN {value} ELSE {far} END"


def _to_decimal(text: str, source: Type, target: Type, safe: bool) -> str:
    precision, scale = target.parameters
    name = "DOUBLE" if source.base == "double" else "REAL" if source.base == "real" else "BIGINT" if is_integer(source) else ""
    name = name or f"DECIMAL({source.parameters[0]}, {source.parameters[1]})"
    # A float's shortest decimal form is what is rounded, so that 1.005 becomes 1.01.
    value = f"CAST({text} AS STRING)" if is_float(source) else text
    tried = f"try_cast({value} AS {spark_type(target)})"
    if safe:
        return tried
    shown = f"CAST({text} AS STRING)"
    message = fail(
        "INVALID_CAST_ARGUMENT", text_literal(f"Cannot cast {name} '"), shown, text_literal(f"' to DECIMAL({precision}, {scale})")
    )
    return f"coalesce({tried}, IF({text} IS NULL, NULL, {message}))"


def _number_to_text(text: str, source: Type, target: Type, safe: bool) -> str:
    shown = f"CAST({text} AS STRING)"
    if is_float(source):
        shown = _scientific(text)
    return _fitting(shown, source, target, safe)


def _scientific(text: str) -> str:
    """Trino writes every double in scientific form: 1.0 is 1.0E0, and 123456.789 is 1.23456789E5."""
    shown = f"CAST(abs({text}) AS STRING)"
    # decimal places are counted on the digits alone: "0.00120" has the digits 120 and the exponent -3
    parts = (
        f"transform(array(split(concat({shown}, IF(instr({shown}, 'E') > 0, '', 'E0')), '[.E]')), p -> named_struct("
        "'i', p[0], 'f', p[1], 'e', CAST(p[2] AS INT)))"
    )
    lead = "length(p.f) - length(ltrim('0', p.f))"
    exponent = f"IF(p.i <> '0', length(p.i) - 1 + p.e, p.e - 1 - ({lead}))"
    digits = "rtrim('0', ltrim('0', concat(p.i, p.f)))"
    body = f"concat(substring({digits}, 1, 1), '.', IF(length({digits}) > 1, substring({digits}, 2), '0'), 'E', {exponent})"
    sign = f"IF(CAST({text} AS STRING) LIKE '-%', '-', '')"
    number = f"concat({sign}, transform({parts}, p -> {body})[0])"
    return (
        f"CASE WHEN isnan({text}) OR abs({text}) = CAST('Infinity' AS DOUBLE) THEN CAST({text} AS STRING) "
        f"WHEN {text} = 0 THEN concat({sign}, '0E0') ELSE {number} END"
    )


def _fitting(shown: str, source: Type, target: Type, safe: bool) -> str:
    """Text of a number or a date that must fit a bounded type: cutting it would make another number of it."""
    if not target.parameters:
        return shown
    length = target.parameters[0]
    message = _failure(
        safe, "INVALID_CAST_ARGUMENT", "'Value '", shown, text_literal(f" cannot be represented as {target.base}({length})")
    )
    padded = f"rpad({shown}, {length}, ' ')" if target.base == "char" else shown
    return f"CASE WHEN {shown} IS NULL OR char_length({shown}) <= {length} THEN {padded} ELSE {message} END"


def _boolean_to(text: str, source: Type, target: Type, safe: bool) -> str:
    shown = f"CAST({text} AS {spark_type(target)})"
    return _fitting(shown, source, target, safe) if is_text(target) else shown


# -- text -------------------------------------------------------------------------------------------------------------

_NAMES: Final = {
    "integer": "INT",
    "bigint": "BIGINT",
    "smallint": "SMALLINT",
    "tinyint": "TINYINT",
    "double": "DOUBLE",
    "real": "REAL",
}
_DATE: Final = r"'^\\s*[-+]?\\d{4,}-\\d{1,2}-\\d{1,2}\\s*$'"
_TIMESTAMP: Final = r"'^\\s*[-+]?\\d{4,}-\\d{1,2}-\\d{1,2}(\\s\\d{1,2}:\\d{1,2}(:\\d{1,2}(\\.\\d+)?)?)?(\\s.*)?$'"


def _from_text(target: Type) -> Callable[[str, Type, Type, bool], str]:
    if is_text(target):
        return _text_to_text
    if target.base == "boolean":
        return _text_to_boolean
    if target.base == "json":
        return _json
    return _text_to_value


def _text_to_text(text: str, source: Type, target: Type, safe: bool) -> str:
    if not target.parameters:
        return text
    length = target.parameters[0]
    if target.base == "char":
        return f"rpad({text}, {length}, ' ')"
    shorter = bool(source.parameters) and source.parameters[0] <= length
    return text if shorter else f"substring({text}, 1, {length})"


def _text_to_boolean(text: str, source: Type, target: Type, safe: bool) -> str:
    message = _failure(safe, "INVALID_CAST_ARGUMENT", "'Cannot cast \\''", text, "'\\' to BOOLEAN'")
    return (
        f"CASE WHEN lower({text}) IN ('t', 'true', '1') THEN true WHEN lower({text}) IN ('f', 'false', '0') THEN false "
        f"WHEN {text} IS NULL THEN NULL ELSE {message} END"
    )


def _text_to_value(text: str, source: Type, target: Type, safe: bool) -> str:
    tried = f"try_cast({text} AS {spark_type(target)})"
    if target.base == "decimal":
        tried = f"IF({text} <> trim({text}), NULL, {tried})"
    elif target.base == "date":
        tried = f"IF({text} RLIKE {_DATE}, {tried}, NULL)"
    elif target.base.startswith("timestamp"):
        tried = f"IF({text} RLIKE {_TIMESTAMP}, {tried}, NULL)"
    elif target.base == "uuid":
        tried = f"IF({text} RLIKE '^[0-9A-Fa-f]{{8}}(-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}}$', lower({text}), NULL)"
    if safe:
        return tried
    return f"coalesce({tried}, IF({text} IS NULL, NULL, {_text_failure(text, target)}))"


def _text_failure(text: str, target: Type) -> str:
    if target.base == "decimal":
        precision, scale = target.parameters
        said = text_literal(f"' to DECIMAL({precision}, {scale})")
        return fail("INVALID_CAST_ARGUMENT", "'Cannot cast VARCHAR \\''", text, said)
    if target.base in _NAMES:
        return fail("INVALID_CAST_ARGUMENT", "'Cannot cast \\''", text, text_literal(f"' to {_NAMES[target.base]}"))
    return fail("INVALID_CAST_ARGUMENT", text_literal(f"Value cannot be cast to {target.base}: "), text)


def _to_text(text: str, source: Type, target: Type, safe: bool) -> str:
    shown = f"CAST({text} AS STRING)"
    if source.base.startswith("timestamp"):
        precision = (source.parameters or (6,))[0]
        pattern = "yyyy-MM-dd HH:mm:ss" + ("." + "S" * min(precision, 6) if precision else "")
        shown = f"date_format({text}, '{pattern}')"
        if "zone" in source.base:
            shown = f"concat({shown}, ' UTC')"
    elif source == INTERVAL_DAY:
        shown = _shown_interval(text)
    elif source.base == "json":
        shown = f"get_json_object({text}, '$')"
    return _fitting(shown, source, target, safe)


def _shown_interval(text: str) -> str:
    seconds = f"abs(extract(DAY FROM {text}) * 86400 + extract(HOUR FROM {text}) * 3600 + extract(MINUTE FROM {text}) * 60 + extract(SECOND FROM {text}))"
    whole = f"CAST(floor({seconds}) AS BIGINT)"
    millis = f"CAST(floor(({seconds} - floor({seconds})) * 1000) AS INT)"
    clock = f"format_string('%d %02d:%02d:%02d.%03d', {whole} div 86400, {whole} % 86400 div 3600, {whole} % 3600 div 60, {whole} % 60, {millis})"
    return f"IF({text} IS NULL, NULL, concat(IF({text} < INTERVAL '0' SECOND, '-', ''), {clock}))"


# -- the rest ---------------------------------------------------------------------------------------------------------


def _json(text: str, source: Type, target: Type, safe: bool) -> str:
    if target.base == "json":
        return to_json(text, source, lambda value, kind: cast(value, kind, VARCHAR))
    written = from_json(text, target, lambda value, a, b: cast(value, a, b, safe=safe), safe=safe)
    assert written is not None, target
    return written


def _nested(text: str, source: Type, target: Type, safe: bool) -> str:
    if source.base == "array":
        inner = cast("x", source.parameters[0], target.parameters[0], safe=safe)
        return text if inner == "x" else f"transform({text}, x -> {inner})"
    if source.base == "map":
        key = cast("k", source.parameters[0], target.parameters[0], safe=safe)
        value = cast("v", source.parameters[1], target.parameters[1], safe=safe)
        with_keys = text if key == "k" else f"transform_keys({text}, (k, v) -> {key})"
        return with_keys if value == "v" else f"transform_values({with_keys}, (k, v) -> {value})"
    old = [name or f"field{i}" for i, name in enumerate(source.fields)]
    new = [name or f"field{i}" for i, name in enumerate(target.fields)]
    parts = [
        f"{text_literal(name)}, {cast(f'{text}.{quote(before)}', a, b, safe=safe)}"
        for name, before, a, b in zip(new, old, source.parameters, target.parameters, strict=True)
    ]
    return f"IF({text} IS NULL, NULL, named_struct({', '.join(parts)}))"


def store(text: str, source: Type, target: Type) -> str:
    """Write the cast that an assignment makes: like `cast`, but text that is too long fails unless only spaces are cut.

    >>> from rowmerge_nb.spi.types import VARCHAR
    >>> store("`a`", VARCHAR, VARCHAR)
    '`a`'
    """
    if is_text(source) and target.base == "varchar" and target.parameters:
        length = target.parameters[0]
        if source.base == "varchar" and source.parameters and source.parameters[0] <= length:
            return text
        message = fail(
            "INVALID_CAST_ARGUMENT",
            text_literal(f"Cannot truncate non-space characters when casting from {source} to {target} on INSERT"),
        )
        return once(lambda value: _cut(value, length, message), text)
    return cast(text, source, target)


def _cut(text: str, length: int, message: str) -> str:
    fits = f"{text} IS NULL OR char_length(rtrim({text})) <= {length}"
    return f"CASE WHEN {fits} THEN substring({text}, 1, {length}) ELSE {message} END"
