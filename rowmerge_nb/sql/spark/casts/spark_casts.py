"""Casts in Spark SQL with Trino's rounding (half away from zero), range checks and errors."""

# All writers of casts have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.spi.types import UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.spark.casts import json_casts as casts_json
from rowmerge_nb.sql.spark.casts import moment_casts as casts_moments
from rowmerge_nb.sql.spark.casts import number_casts as casts_number
from rowmerge_nb.sql.spark.casts import text_casts as casts_text
from rowmerge_nb.sql.spark.casts.float_texts import EXACT_REALS, shortest_real
from rowmerge_nb.sql.spark.text import fail, null_or_fail, once
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import (
    MAX_PRECISION,
    MOMENTS,
    NESTED,
    RANGES,
    as_decimal,
    can_coerce,
    cast_name,
    is_float,
    is_numeric,
    is_text,
    spark_type,
    varchar_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.spark.casts.text_casts import Writer

_NUMBERS: Final = frozenset({*RANGES, "decimal", "real", "double"})
_PADDED: Final = frozenset({"char", "varbinary"})
"""The targets of casts from char that keep its blanks."""
_SHORT_DECIMAL: Final = 18
"""Up to this precision, a decimal is one word in Trino, and errors show the rounded value."""


def cast(text: str, source: Type, target: Type, *, safe: bool = False) -> str:
    """Write a cast; ``safe`` returns NULL on failure (TRY_CAST)."""
    if source == UNKNOWN:
        return f"CAST(NULL AS {spark_type(target)})"
    if source == target:
        return text
    if source.base == "char" and target.base not in _PADDED:
        return cast(f"rtrim({text})", varchar_of(source.parameters[0]), target, safe=safe)
    writer = _writer(source, target)
    return once(lambda value: writer(value, source, target, safe), text)


def _writer(source: Type, target: Type) -> Writer:
    if source.base in NESTED and source.base == target.base:
        return _nested
    if target.base == "json":
        return casts_json.to_json
    if source.base == "json":
        return _json_read
    if target.base == "number":
        return casts_number.to_number
    if source.base == "number":
        return casts_number.from_number
    if is_text(source):
        return casts_text.from_text(target)
    if is_text(target):
        return casts_text.to_text(source)
    if is_numeric(source):
        return _from_number(source, target)
    if source.base == "boolean":
        return _boolean_to_number
    if source.base == "uuid":
        return lambda text, *_: f"unhex(replace({text}, '-', ''))"
    if source.base == "varbinary":
        return _binary_to_uuid
    return casts_moments.between


def _binary_to_uuid(text: str, source: Type, target: Type, safe: bool) -> str:
    digits = f"lower(hex({text}))"
    groups = ", '-', ".join(
        f"substring({digits}, {start}, {length})" for start, length in _UUID_GROUPS
    )
    length = f"octet_length({text})"
    far = null_or_fail(
        safe, "INVALID_CAST_ARGUMENT", "'Invalid UUID binary length: '", f"CAST({length} AS STRING)"
    )
    return f"CASE WHEN {text} IS NULL OR {length} = 16 THEN concat({groups}) ELSE {far} END"


_UUID_GROUPS: Final = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


# -- numbers


def _from_number(source: Type, target: Type) -> Callable[[str, Type, Type, bool], str]:
    if target.base == "boolean":
        return lambda text, _s, _t, _safe: f"({text} <> 0)"
    if source.base == "decimal" and is_float(target):
        # Through the text, to find the nearest number: dividing by a power of ten may miss it.
        return lambda text, _s, t, _safe: f"CAST(CAST({text} AS STRING) AS {spark_type(t)})"
    if target.base == "decimal" and not _has_room(source, target):
        return _to_decimal
    if can_coerce(source, target) or is_float(target):
        return lambda text, _s, t, _safe: f"CAST({text} AS {spark_type(t)})"
    if is_float(source):
        return _float_to_integer
    return _decimal_to_integer if source.base == "decimal" else _integer_to_integer


def _has_room(source: Type, decimal: Type) -> bool:
    """Return whether a decimal type holds all values of a type; Trino's implicit casts may not."""
    if is_float(source):
        return False
    (p1, s1), (p2, s2) = as_decimal(source).parameters, decimal.parameters
    return bool(p2 - s2 >= p1 - s1 and s2 >= s1)


def _boolean_to_number(text: str, source: Type, target: Type, safe: bool) -> str:
    return f"CAST({text} AS {spark_type(target)})"


def _integer_to_integer(text: str, source: Type, target: Type, safe: bool) -> str:
    limit = RANGES[target.base]
    value = f"CAST({text} AS {spark_type(target)})"
    message = null_or_fail(
        safe,
        "NUMERIC_VALUE_OUT_OF_RANGE",
        text_literal(f"Out of range for {target.base}: "),
        f"CAST({text} AS STRING)",
    )
    return (
        f"CASE WHEN {text} IS NULL OR {text} BETWEEN {-limit} AND {limit - 1} THEN {value} ELSE"
        f" {message} END"
    )


def _decimal_to_integer(text: str, source: Type, target: Type, safe: bool) -> str:
    limit = RANGES[target.base]
    precision, scale = source.parameters
    rounded = text if scale == 0 else f"round({text}, 0)"
    value = f"CAST({rounded} AS {spark_type(target)})"
    if precision - scale < len(str(limit)) - 1:
        return value
    value_text = f"CAST({rounded if precision <= _SHORT_DECIMAL else text} AS STRING)"
    message = null_or_fail(
        safe,
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "'Cannot cast \\''",
        value_text,
        text_literal(f"' to {target.base.upper()}"),
    )
    low, high = (f"CAST('{n}' AS DECIMAL(38,0))" for n in (-limit, limit - 1))
    return (
        f"CASE WHEN {text} IS NULL OR {rounded} BETWEEN {low} AND {high} THEN {value} ELSE"
        f" {message} END"
    )


def _float_to_integer(text: str, source: Type, target: Type, safe: bool) -> str:
    limit = RANGES[target.base]
    name = target.base
    value_text = f"CAST({text} AS STRING)"
    # Spark's own `round` makes a BigDecimal of each value.
    rounded = (
        f"IF(abs({text} - rint({text})) = 0.5D, {text} + IF({text} > 0, 0.5D, -0.5D), rint({text}))"
    )
    value = f"CAST({rounded} AS {spark_type(target)})"
    nan = null_or_fail(
        safe, "INVALID_CAST_ARGUMENT", text_literal(f"Cannot cast {source.base} NaN to {name}")
    )
    far = null_or_fail(
        safe,
        "NUMERIC_VALUE_OUT_OF_RANGE",
        text_literal(f"Out of range for {name}: "),
        value_text,
    )
    within = (
        f"{text} >= -9223372036854775808D AND {text} < 9223372036854775808D"
        if name == "bigint"
        else f"{rounded} BETWEEN {-limit}D AND {limit - 1}D"
    )
    return (
        f"CASE WHEN isnan({text}) THEN {nan} WHEN {text} IS NULL OR ({within}) THEN {value} ELSE"
        f" {far} END"
    )


def _to_decimal(text: str, source: Type, target: Type, safe: bool) -> str:
    precision, scale = target.parameters
    name = cast_name(source)
    attempt = (
        _float_to_decimal(text, source, target)
        if is_float(source)
        else f"try_cast({text} AS {spark_type(target)})"
    )
    if safe:
        return attempt
    value_text = f"CAST({text} AS STRING)"
    parts = (
        text_literal(f"Cannot cast {name} '"),
        value_text,
        text_literal(f"' to DECIMAL({precision}, {scale})"),
    )
    message = fail("NUMERIC_VALUE_OUT_OF_RANGE", *parts)
    if is_float(source):
        message = f"IF(isnan({text}), {fail('INVALID_CAST_ARGUMENT', *parts)}, {message})"
    if source.base == "double":
        # Values of 39 digits that fit into 128 bits overflow before the precision is checked.
        least = f"1e{MAX_PRECISION - scale}D"
        most = f"{2**127 / 10**MAX_PRECISION!r}e{MAX_PRECISION - scale}D"
        over = fail("NUMERIC_VALUE_OUT_OF_RANGE", "'Decimal overflow'")
        message = f"IF(abs({text}) >= {least} AND abs({text}) < {most}, {over}, {message})"
    return f"coalesce({attempt}, IF({text} IS NULL, NULL, {message}))"


def _float_to_decimal(text: str, source: Type, target: Type) -> str:
    """Write the shortest decimal form of a float, rounded, so that 1.005 becomes 1.01.

    Finding that form is slow; only a number in the middle between two results needs it.
    """
    is_real = source.base == "real"
    near = "2e-7D" if is_real else "1e-15D"
    scaled = f"(abs({text}) * 1e{target.parameters[1]}D)"
    decimal = spark_type(target)
    java = f"CAST({text} AS STRING)"
    is_shortest = (
        EXACT_REALS.format(size=f"abs({text})") if is_real else f"length({java}) <= {_FEW_LETTERS}"
    )
    # In a lambda, Spark interprets the rare case, and Java can compile the others.
    shortest = (
        shortest_real(text)
        if is_real
        else f"transform(array({text}), `$f` -> {_shortest('`$f`')})[0]"
    )
    return (
        f"CASE WHEN abs({scaled} % 1D - 0.5D) > {scaled} * {near} THEN try_cast({text} AS {decimal})"
        f" WHEN {is_shortest} THEN try_cast({java} AS {decimal})"
        f" WHEN {text} IS NOT NULL THEN try_cast({shortest} AS {decimal}) END"
    )


_FEW_LETTERS: Final = 16
"""Up to this length, Java's text of a double has the fewest digits."""


def _shortest(text: str) -> str:
    """Write the shortest decimal form of a double; before Java 19, Java's own may be longer.

    Every shorter text is among those tried, from 15 digits.
    """

    def rounded_text(digits: int) -> str:
        return f"format_string('%.{digits - 1}E', {text})"

    branches = (
        f"WHEN try_cast({rounded_text(digits)} AS DOUBLE) = {text} THEN {rounded_text(digits)}"
        for digits in (15, 16)
    )
    return f"CASE {' '.join(branches)} ELSE {rounded_text(17)} END"


# -- JSON


def _json_read(text: str, source: Type, target: Type, safe: bool) -> str:
    json_cast = casts_json.from_json(
        text, target, lambda value, a, b, is_safe: cast(value, a, b, safe=is_safe), safe=safe
    )
    assert json_cast is not None, target
    return json_cast


# -- nested values


def _nested(text: str, source: Type, target: Type, safe: bool) -> str:
    value = _nested_value(text, source, target, safe)
    if not safe or value == text:
        return value
    # One part that cannot be cast makes the whole NULL.
    return once(
        lambda value: f"IF({_is_part_lost(text, value, source, target)}, NULL, {value})", value
    )


def _is_part_lost(before: str, after: str, source: Type, target: Type) -> str:
    if source.base == "array":
        return f"exists(zip_with({before}, {after}, (x, y) -> x IS NOT NULL AND y IS NULL), z -> z)"
    if source.base == "map":
        values = (
            f"zip_with(map_values({before}), map_values({after}), (x, y) -> x IS NOT NULL AND y IS"
            " NULL)"
        )
        return f"exists({values}, z -> z)"
    pairs = zip(_field_names(source), _field_names(target), strict=True)
    return " OR ".join(
        f"({before}.{backquoted(a)} IS NOT NULL AND {after}.{backquoted(b)} IS NULL)"
        for a, b in pairs
    )


def _field_names(sql_type: Type) -> list[str]:
    return [name or f"field{i}" for i, name in enumerate(sql_type.fields)]


def _nested_value(text: str, source: Type, target: Type, safe: bool) -> str:
    if source.base == "array":
        inner = cast("x", source.parameters[0], target.parameters[0], safe=safe)
        return text if inner == "x" else f"transform({text}, x -> {inner})"
    if source.base == "map":
        key = cast("k", source.parameters[0], target.parameters[0], safe=safe)
        value = cast("v", source.parameters[1], target.parameters[1], safe=safe)
        with_keys = text
        if key != "k":
            equal = fail("INVALID_CAST_ARGUMENT", "'duplicate keys'")
            keys = f"transform(map_keys({text}), k -> {key})"
            with_keys = (
                f"IF(size(array_distinct({keys})) < size({text}), {'NULL' if safe else equal},"
                f" transform_keys({text}, (k, v) -> {key}))"
            )
        return with_keys if value == "v" else f"transform_values({with_keys}, (k, v) -> {value})"
    old, new = _field_names(source), _field_names(target)
    parts = [
        f"{text_literal(name)}, {cast(f'{text}.{backquoted(before)}', a, b, safe=safe)}"
        for name, before, a, b in zip(new, old, source.parameters, target.parameters, strict=True)
    ]
    return f"IF({text} IS NULL, NULL, named_struct({', '.join(parts)}))"


def shown(text: str, sql_type: Type) -> str:
    """Write a value like Java's collections, for errors."""
    if sql_type.base == "array":
        return (
            f"concat('[', array_join(transform({text}, x ->"
            f" {_shown_part('x', sql_type.parameters[0])}), ', '), ']')"
        )
    if sql_type.base == "row":
        fields = (
            _shown_part(f"{text}.{backquoted(n)}", part)
            for n, part in zip(_field_names(sql_type), sql_type.parameters, strict=True)
        )
        return f"concat('[', concat_ws(', ', {', '.join(fields)}), ']')"
    if sql_type.base == "map":
        key = shown("e.key", sql_type.parameters[0])
        value = _shown_part("e.value", sql_type.parameters[1])
        return (
            f"concat('{{', array_join(transform(map_entries({text}), e -> concat({key}, '=',"
            f" {value})), ', '), '}}')"
        )
    if sql_type.base == "varbinary":
        return f"base64({text})"
    plain = is_float(sql_type) or sql_type.base not in {
        *_NUMBERS,
        *MOMENTS,
        "time",
        "interval day to second",
        "interval year to month",
    }
    return f"CAST({text} AS STRING)" if plain else cast(text, sql_type, VARCHAR)


def _shown_part(text: str, sql_type: Type) -> str:
    return "'null'" if sql_type == UNKNOWN else f"coalesce({shown(text, sql_type)}, 'null')"


# -- assignment


def store(text: str, source: Type, target: Type) -> str:
    """Write the cast of an assignment, which cuts only spaces."""
    if is_text(source) and is_text(target) and target.parameters:
        length = target.parameters[0]
        if source.parameters and source.parameters[0] <= length:
            return cast(text, source, target)
        message = fail(
            "INVALID_CAST_ARGUMENT",
            text_literal(
                f"Cannot truncate non-space characters when casting from {source} to {target} on"
                " INSERT"
            ),
        )
        return once(lambda value: _cut(value, source, target, message), text)
    return cast(text, source, target)


def _cut(text: str, source: Type, target: Type, message: str) -> str:
    fits = f"{text} IS NULL OR char_length(rtrim({text})) <= {target.parameters[0]}"
    return f"CASE WHEN {fits} THEN {cast(text, source, target)} ELSE {message} END"
