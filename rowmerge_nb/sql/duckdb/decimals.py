"""Decimals in DuckDB SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import decimal_of
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, duckdb_type, once
from rowmerge_nb.sql.typed.type_rules import MAX_PRECISION, exact_precision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.types import Type

_ONE_WORD: Final = 18
_MOST_DIGITS: Final = 37
"""Twice a number with this many digits fits into a HUGEINT."""
_LONGEST_FRACTION: Final = 36
"""Two fractions with this many digits have a sum of 38 digits."""


def widened(text: str, left: Type, right: Type, operator: str) -> str:
    """Cast the left side of ``+``, ``-`` or ``*`` if DuckDB's result type is too short.

    >>> from rowmerge_nb.spi.types import decimal_of
    >>> widened("a", decimal_of(12, 2), decimal_of(12, 2), "*"), widened("a", decimal_of(9, 2), decimal_of(9, 2), "+")
    ('CAST(a AS DECIMAL(19,2))', 'a')
    """
    short = max(left.parameters[0], right.parameters[0]) <= _ONE_WORD
    if short and exact_precision(operator, left, right) > _ONE_WORD:
        return f"CAST({text} AS DECIMAL({_ONE_WORD + 1},{left.parameters[1]}))"
    return text


def sum_at_scale(
    operands: Sequence[str], types: Sequence[Type], result: Type, operator: str
) -> str:
    """Write a sum or a difference that has fewer digits behind the point than its operands.

    Both are cut, and what was cut off is added apart: one number may not have room for all digits.
    The sum is rounded half away from zero.

    Raises:
        UnprintableError: what is cut off has too many digits.
    """
    scale, exact = result.parameters[1], max(sql_type.parameters[1] for sql_type in types)
    if exact > _LONGEST_FRACTION:
        raise UnprintableError(f"{types[0]} {operator} {types[1]}, which is rounded")
    result_type, exact_type = duckdb_type(result), duckdb_type(decimal_of(MAX_PRECISION, exact))

    def cut(text: str) -> str:
        return f"trunc({text}, {scale})"

    def fraction(text: str) -> str:
        return f"CAST({text} - CAST({cut(text)} AS {exact_type}) AS {exact_type})"

    fractions, sums = [], []
    for text, sql_type in zip(operands, types, strict=True):
        longer = sql_type.parameters[1] > scale
        sums.append(f"CAST({cut(text) if longer else text} AS {result_type})")
        fractions.append(fraction(f"CAST({text} AS {exact_type})") if longer else "0")
    total, rest = (f"({f' {operator} '.join(parts)})" for parts in (sums, fractions))
    unit = f"CAST('1e-{scale}' AS {result_type})"
    half = f"CAST('5e-{scale + 1}' AS {exact_type})"
    if "0" not in fractions:
        # Two fractions can be more than one unit.
        total = once(lambda rest: f"({total} + CAST({cut(rest)} AS {result_type}))", rest)
        rest = once(fraction, rest)
    return once(
        lambda total, rest: (
            f"CAST({total} + CASE"
            f" WHEN {rest} > {half} OR {rest} = {half} AND {total} >= 0 THEN {unit}"
            f" WHEN {rest} < -{half} OR {rest} = -{half} AND {total} <= 0 THEN -{unit}"
            f" ELSE 0 END AS {result_type})"
        ),
        total,
        rest,
    )


def decimal_quotient(left: str, right: str, kinds: Sequence[Type], result: Type, zero: str) -> str:
    """Write a quotient by integers, rounded half away from zero; ``zero`` raises an error.

    Digits behind the point are divided out of the remainder, in two steps where one would be too
    long.
    """
    (p1, s1), (p2, s2) = kinds[0].parameters, kinds[1].parameters
    scale = result.parameters[1]
    shift = scale - s1 + s2
    room = max(0, _MOST_DIGITS - p2)
    if p1 - s1 + s2 + scale > MAX_PRECISION or shift > 2 * room or p2 > _MOST_DIGITS:
        raise UnprintableError(f"the quotient of {kinds[0]} and {kinds[1]}")
    dividend, divisor = f"abs({_whole(left)})", f"abs({_whole(right)})"
    quotient, remainder = f"{dividend} // {divisor}", f"({dividend} % {divisor})"
    for step in (min(shift, room), max(0, shift - room)):
        if step:
            power = f"CAST('1{'0' * step}' AS HUGEINT)"
            longer = f"({remainder} * {power})"
            quotient = f"({quotient}) * {power} + {longer} // {divisor}"
            remainder = f"({longer} % {divisor})"
    digits = (
        f"CAST({quotient} + CASE WHEN 2 * {remainder} >= {divisor} THEN 1 ELSE 0 END AS VARCHAR)"
    )
    if scale:
        digits = (
            f"regexp_replace(lpad({digits}, CAST(greatest(length({digits}), {scale + 1}) AS"
            f" INTEGER), '0'), '(.{{{scale}}})$', '.\\1')"
        )
    signed = f"CASE WHEN ({left} < 0) <> ({right} < 0) THEN '-' ELSE '' END || {digits}"
    return (
        f"CASE WHEN {right} = 0 THEN CASE WHEN {left} IS NOT NULL THEN {zero} END "
        f"ELSE CAST({signed} AS {duckdb_type(result)}) END"
    )


def _whole(text: str) -> str:
    return f"CAST(replace(CAST({text} AS VARCHAR), '.', '') AS HUGEINT)"
