r"""Casts to and from number, whose values travel as Trino's text of them.

A value has one text: without zeros at its ends, and with an exponent as Java's BigDecimal writes it.
Regular expressions are in Spark SQL literals, so backslashes are doubled.
"""

# All writers of casts have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.spark.casts.text_casts import fitting
from rowmerge_nb.sql.spark.text import fail, groups, once
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import MAX_PRECISION, cast_name, is_float, is_text, spark_type

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type

_BLANK: Final = r"[\\x00-\\x20]*"
_LONGEST_EXPONENT: Final = 4
"""The digits of an exponent: Trino refuses larger ones, from about 16,000."""
_FORM: Final = (
    rf"'^{_BLANK}([+-]?)(?=[.]?[0-9])([0-9]*)[.]?([0-9]*)"
    rf"(?:[eE]([+-]?[0-9]{{1,{_LONGEST_EXPONENT}}}))?{_BLANK}\\z'"
)
_GROUPS: Final = 4


def to_number(text: str, source: Type, target: Type, safe: bool) -> str:
    if source.base == "boolean":
        return f"CAST(CAST({text} AS INT) AS STRING)"
    if not is_text(source) and not is_float(source):
        return once(_canonical, f"CAST({text} AS STRING)")
    plain = text if is_text(source) else f"CAST({text} AS STRING)"
    return once(lambda value: _read(value, safe=safe), plain)


def _read(text: str, *, safe: bool) -> str:
    words = ("'Cannot cast \\''", text, "'\\' to NUMBER'")
    failure = "NULL" if safe else fail("INVALID_CAST_ARGUMENT", *words)
    return (
        f"CASE WHEN {text} IS NULL OR {text} IN ('NaN', '-Infinity') THEN {text} WHEN {text} IN"
        f" ('Infinity', '+Infinity') THEN '+Infinity' WHEN {text} RLIKE {_FORM} THEN"
        f" {_canonical(text)} ELSE {failure} END"
    )


def _canonical(text: str) -> str:
    def write(parts: list[str]) -> str:
        sign, whole, fraction, exponent = parts
        digits = f"ltrim('0', concat({whole}, {fraction}))"
        power = (
            f"coalesce(try_cast({exponent} AS INT), 0) - length({fraction}) + length({digits}) -"
            f" length(rtrim('0', {digits}))"
        )
        number = (
            f"named_struct('s', {sign}, 'u', rtrim('0', {digits}), 'e', {power}, 'n',"
            f" length(rtrim('0', {digits})))"
        )
        return f"transform(array({number}), `$p` -> {_JOINED})[0]"

    return groups(text, _FORM, _GROUPS, write)


_JOINED: Final = (
    "CASE WHEN `$p`.n = 0 THEN '0' ELSE concat(IF(`$p`.s = '-', '-', ''), CASE WHEN `$p`.e = 0 THEN"
    " `$p`.u WHEN `$p`.e < 0 AND `$p`.e + `$p`.n > 0 THEN concat(left(`$p`.u, `$p`.e + `$p`.n), '.',"
    " right(`$p`.u, - `$p`.e)) WHEN `$p`.e < 0 AND `$p`.e + `$p`.n > -6 THEN concat('0.',"
    " repeat('0', - `$p`.e - `$p`.n), `$p`.u) ELSE concat(left(`$p`.u, 1), IF(`$p`.n > 1, concat('.',"
    " substring(`$p`.u, 2)), ''), IF(`$p`.e + `$p`.n > 0, 'E+', 'E'), `$p`.e + `$p`.n - 1) END) END"
)
"""The text of sign, digits, exponent and number of digits, as BigDecimal has it."""


def from_number(text: str, source: Type, target: Type, safe: bool) -> str:
    if is_text(target):
        return fitting(text, source, target, safe)
    if is_float(target):
        return f"CAST({text} AS {spark_type(target)})"
    decimal = spark_type(target) if target.base == "decimal" else f"DECIMAL({MAX_PRECISION},0)"
    attempt = f"try_cast(try_cast({text} AS {decimal}) AS {spark_type(target)})"
    if safe:
        return attempt
    words = (
        "'Cannot cast NUMBER \\''",
        text,
        text_literal(f"' to {cast_name(target)}"),
    )
    nan, far = (
        fail(code, *words) for code in ("INVALID_CAST_ARGUMENT", "NUMERIC_VALUE_OUT_OF_RANGE")
    )
    return (
        f"coalesce({attempt}, CASE WHEN {text} = 'NaN' THEN {nan} WHEN {text} IS NOT NULL THEN {far}"
        " END)"
    )
