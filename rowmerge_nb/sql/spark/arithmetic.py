"""Arithmetic in Spark SQL: checked as Trino checks it, with the operands in the messages.

An operation that may fail is tried first, and only where it gave no value its operands are looked at again. There they are written
without checks of their own: they have been computed once already, so they cannot fail, and texts do not grow with every level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.spark.casts.moment_casts import from_micros, instant_of, local, micros, rounded, with_zone, zone_of
from rowmerge_nb.sql.spark.text import once
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    MAX_PRECISION,
    exact_precision,
    is_float,
    is_integer,
    is_numeric,
    is_zoned,
    spark_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.spi.types import Type

_TRIED: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_WORDS: Final = {"+": "addition", "-": "subtraction", "*": "multiplication", "/": "division"}
_RANGE: Final = "NUMERIC_VALUE_OUT_OF_RANGE"
ROUNDED_DIGITS: Final = 34
"""Spark rounds a decimal to so many digits when it turns its sign: longer ones are turned as text."""
_EPOCH: Final = "TIMESTAMP'1970-01-01 00:00:00'"
_LOWEST: Final = {
    "tinyint": "-128Y",
    "smallint": "-32768S",
    "integer": "(-2147483647 - 1)",
    "bigint": "(-9223372036854775807L - 1L)",
}


def arithmetic(node: e.Apply, texts: Sequence[str], raw: Sequence[str] | None, fail: Callable[..., str], *, safe: bool) -> str:
    """Write an operation.

    Args:
        node: the operation; its detail is the operator.
        texts: the operands.
        raw: the operands without checks; None if this operation is wanted without checks itself.
        fail: writes a failure.
        safe: give NULL where it fails (TRY).
    """
    kinds = [argument.type for argument in node.arguments]
    operator = str(node.detail)
    if not all(is_numeric(kind) for kind in kinds):
        return once(lambda a, b: _moment(operator, (a, b), kinds, node.type, fail), *texts)
    left, right = texts
    if is_float(node.type):
        if operator in "/%":
            return once(lambda a, b: _float_division(operator, a, b, node.type), left, right)
        return f"({left} {operator} {right})"
    if operator in "/%":
        return _division(node, operator, texts, raw, fail, safe=safe)
    decimal = node.type.base == "decimal"
    plain = f"CAST({left} {operator} {right} AS {spark_type(node.type)})" if decimal else f"({left} {operator} {right})"
    if decimal and exact_precision(operator, *kinds) <= node.type.parameters[0]:
        return plain
    if raw is None and not safe:
        return plain
    tried = f"{_TRIED[operator]}({left}, {right})"
    return _checked(node, f"try_cast({tried} AS {spark_type(node.type)})" if decimal else tried, raw, fail, safe=safe)


def _checked(node: e.Apply, tried: str, raw: Sequence[str] | None, fail: Callable[..., str], *, safe: bool) -> str:
    if safe or raw is None:
        return tried
    if node.type.base == "decimal":
        message = fail(_RANGE, "'Decimal overflow'")
    else:
        said = e.text_literal(f"{node.type} {_WORDS[node.detail]} overflow: ")
        message = fail(_RANGE, said, f"CAST({raw[0]} AS STRING)", f"' {node.detail} '", f"CAST({raw[1]} AS STRING)")
    nullable = [text for text, part in zip(raw, node.arguments, strict=True) if not isinstance(part, e.Constant)]
    nulls = " OR ".join(f"{text} IS NULL" for text in nullable)
    return f"coalesce({tried}, {f'IF({nulls}, NULL, {message})' if nulls else message})"


def _division(
    node: e.Apply, operator: str, texts: Sequence[str], raw: Sequence[str] | None, fail: Callable[..., str], *, safe: bool
) -> str:
    """Write a quotient or a remainder. Under TRY a zero is left to nobody's check, nor is a quotient that the type has no room for."""
    left, right = texts
    name = spark_type(node.type)
    guarded = divisor(right, safe=safe)
    checked = safe or raw is not None
    if operator == "%":
        return f"CAST({left} % {guarded} AS {name})" if node.type.base == "decimal" else f"({left} % {guarded})"
    if is_integer(node.type):
        number = node.arguments[1]
        if not checked or (isinstance(number, e.Constant) and number.value not in {None, "-1"}):
            return f"CAST({left} div {guarded} AS {name})"

        def divided(dividend: str, by: str) -> str:
            negated = _checked(node, f"try_subtract(CAST(0 AS {name}), {dividend})", raw, fail, safe=safe)
            return f"IF({by} = -1, {negated}, CAST({dividend} div {by} AS {name}))"

        return once(divided, left, guarded)
    if not checked or not _may_overflow([part.type.parameters for part in node.arguments], node.type):
        return f"CAST({left} / {guarded} AS {name})"
    tried = _checked(node, f"try_cast(try_divide({left}, {right}) AS {name})", raw, fail, safe=safe)
    # Of two types Spark would make one that has room for both.
    return tried if safe else once(lambda b: f"IF({b} = 0, CAST({left} / {b} AS {name}), {tried})", right)


def divisor(text: str, *, safe: bool) -> str:
    """Write what is divided by: under TRY zero is NULL, for which Spark does not fail.

    >>> divisor("x", safe=True), divisor("x", safe=False)
    ('nullif(x, 0)', 'x')
    """
    return f"nullif({text}, 0)" if safe else text


def _may_overflow(kinds: Sequence[tuple[int, int]], result: Type) -> bool:
    """Can a quotient have too many digits, for Trino's result type or for Spark's own, which it is computed in?"""
    (p1, s1), (p2, s2) = kinds
    needed = p1 + s2 + max(s2 - s1, 0)
    return needed > result.parameters[0] or p1 - s1 + s2 + max(6, s1 + p2 + 1) > MAX_PRECISION


def negation(node: e.Apply, text: str, raw: str | None, fail: Callable[..., str], *, safe: bool) -> str:
    """Write the negation of a number or an interval; ``raw`` and the rest as for `arithmetic`."""
    kind = node.type
    if kind.base == "decimal" and kind.parameters[0] > ROUNDED_DIGITS:
        return once(lambda x: _turned(x, kind), text)
    argument = node.arguments[0]
    literal = isinstance(argument, e.Constant) and argument.value is not None and argument.value.isdigit()
    if not is_integer(kind) or literal or (raw is None and not safe):
        return f"(- {text})"
    tried = f"try_subtract(CAST(0 AS {spark_type(kind)}), {text})"
    if safe or raw is None:
        return tried
    message = fail(_RANGE, e.text_literal(f"{kind} negation overflow: "), f"CAST({raw} AS STRING)")
    return f"coalesce({tried}, IF({raw} IS NULL, NULL, {message}))"


def _turned(text: str, kind: Type) -> str:
    shown = f"CAST({text} AS STRING)"
    # The text tells the sign: 0 as a decimal of 38 places is not to be had, and compared with it the smallest numbers count as 0.
    return f"CAST(IF({shown} LIKE '-%', substring({shown}, 2), concat('-', {shown})) AS {spark_type(kind)})"


def absolute(text: str, kind: Type) -> str:
    """Write the absolute value of a decimal.

    >>> from rowmerge_nb.spi.types import decimal_of
    >>> absolute("x", decimal_of(34, 2)), absolute("x", decimal_of(38, 2))
    ('abs(x)', "CAST(ltrim('-', CAST(x AS STRING)) AS DECIMAL(38,2))")
    """
    if kind.parameters[0] <= ROUNDED_DIGITS:
        return f"abs({text})"
    return f"CAST(ltrim('-', CAST({text} AS STRING)) AS {spark_type(kind)})"


def _float_division(operator: str, left: str, right: str, kind: Type) -> str:
    """Spark's ANSI mode refuses to divide a double by zero; IEEE 754 and Trino do not."""
    name = spark_type(kind)
    if operator == "%":
        return f"CASE WHEN {right} = 0 THEN IF({left} IS NULL, NULL, CAST('NaN' AS {name})) ELSE ({left} % {right}) END"
    positive = f"({left} > 0) = (CAST({right} AS STRING) NOT LIKE '-%')"
    return (
        f"CASE WHEN {right} = 0 THEN CASE WHEN {left} IS NULL THEN NULL WHEN isnan({left}) OR {left} = 0 THEN CAST('NaN' AS {name}) "
        f"WHEN {positive} THEN CAST('Infinity' AS {name}) ELSE CAST('-Infinity' AS {name}) END ELSE CAST({left} / {right} AS {name}) END"
    )


# -- moments and intervals --------------------------------------------------------------------------------------------


def interval_micros(text: str) -> str:
    """Write the microseconds of an interval of days to seconds."""
    return f"unix_micros({_EPOCH} + {text})"


def from_interval_micros(number: str) -> str:
    """Write the interval of days to seconds that has so many microseconds."""
    return f"CAST(timestamp_micros({number}) - {_EPOCH} AS INTERVAL DAY TO SECOND)"


def interval_months(text: str) -> str:
    """Write the months of an interval of years to months."""
    return f"(extract(YEAR FROM {text}) * 12 + extract(MONTH FROM {text}))"


def _moment(operator: str, texts: tuple[str, str], kinds: Sequence[Type], result: Type, fail: Callable[..., str]) -> str:
    (left, right), (first, second) = texts, kinds
    intervals = (INTERVAL_DAY, INTERVAL_YEAR)
    if result in intervals:
        if first == second == result:
            return f"CAST({left} {operator} {right} AS {spark_type(result)})"
        if result in (first, second) and operator in "*/":
            value, number, kind = (left, right, second) if first == result else (right, left, first)
            return _scaled(operator, value, number, kind, result, fail)
        return _apart(left, right, first)
    moment, interval, kind = (left, right, second) if second in intervals else (right, left, first)
    return _shifted(operator, moment, interval, result, kind, fail)


def _apart(left: str, right: str, kind: Type) -> str:
    """The time between two moments, in milliseconds."""
    if kind.base == "date":
        return f"CAST({left} - {right} AS INTERVAL DAY TO SECOND)"
    return from_interval_micros(rounded(f"({micros(left, kind)} - {micros(right, kind)})", 3))


def _shifted(operator: str, moment: str, interval: str, kind: Type, by: Type, fail: Callable[..., str]) -> str:
    if kind.base == "date":
        if by == INTERVAL_YEAR:
            return f"CAST({moment} {operator} {interval} AS DATE)"
        said = "to a date" if operator == "+" else "from a date"
        word = "add" if operator == "+" else "subtract"
        message = fail("INVALID_FUNCTION_ARGUMENT", e.text_literal(f"Cannot {word} hour, minutes or seconds {said}"))
        days = f"CAST(extract(DAY FROM {interval}) AS INT)"
        moved = f"date_{'add' if operator == '+' else 'sub'}({moment}, {days})"
        clean = f"{interval} = make_dt_interval({days})"
        return f"CASE WHEN {moment} IS NULL OR {interval} IS NULL OR {clean} THEN {moved} ELSE {message} END"
    if kind.base == "time":
        return from_micros(f"time_to_micros({moment}) {operator} {interval_micros(interval)}", kind)
    if is_zoned(kind):
        zone = zone_of(moment, kind)
        if by == INTERVAL_YEAR:
            # Months are counted by the clock of the zone, days and seconds by the instant.
            return with_zone(f"to_utc_timestamp(CAST({local(moment, kind)} {operator} {interval} AS TIMESTAMP), {zone})", zone)
        return with_zone(f"({instant_of(moment, kind)} {operator} {interval})", zone)
    return f"({moment} {operator} {interval})"


def _scaled(operator: str, value: str, number: str, kind: Type, result: Type, fail: Callable[..., str]) -> str:
    """An interval times a number, cut to whole milliseconds or months."""
    units = f"({interval_micros(value)} div 1000)" if result == INTERVAL_DAY else interval_months(value)
    product = f"{units} * {number}" if is_integer(kind) and operator == "*" else f"CAST({units} {operator} {number} AS BIGINT)"
    if is_float(kind) and operator == "*":
        # No interval times an infinite number is none.
        product = f"CAST(nanvl({units} * {number}, 0D) AS BIGINT)"
    whole = (
        from_interval_micros(f"{product} * 1000") if result == INTERVAL_DAY else f"make_ym_interval(0, CAST({product} AS INT))"
    )
    if operator == "/":
        bad = f"isnan({number}) OR {number} = 0"
        message = fail("INVALID_FUNCTION_ARGUMENT", "'Cannot divide by double '", f"CAST({number} AS STRING)")
    elif is_float(kind):
        bad = f"isnan({number})"
        message = fail("INVALID_FUNCTION_ARGUMENT", "'Cannot multiply by double NaN'")
    else:
        return whole
    return f"CASE WHEN {value} IS NULL OR {number} IS NULL THEN NULL WHEN {bad} THEN {message} ELSE {whole} END"
