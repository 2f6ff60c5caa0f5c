"""Arithmetic in Spark SQL with Trino's checks and messages.

An operation is tried first; its message repeats the operands without checks, so texts do not grow
exponentially.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import decimal_of
from rowmerge_nb.sql.spark.casts.moment_casts import (
    from_micros,
    instant_of,
    local,
    micros,
    rounded,
    with_zone,
    zone_of,
)
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
"""Above this precision, Spark rounds a decimal when it negates it; such decimals are negated as
text.
"""
_EPOCH: Final = "TIMESTAMP'1970-01-01 00:00:00'"


def arithmetic(
    node: e.Apply,
    texts: Sequence[str],
    raw: Sequence[str] | None,
    fail: Callable[..., str],
    *,
    safe: bool,
) -> str:
    """Write an operation.

    Args:
        node: its detail is the operator.
        safe: return NULL on failure (TRY).
    """
    operand_types = [argument.type for argument in node.arguments]
    operator = str(node.detail)
    if not all(is_numeric(operand_type) for operand_type in operand_types):
        return once(lambda a, b: _moment(operator, (a, b), operand_types, node.type, fail), *texts)
    left, right = texts
    if is_float(node.type):
        if operator in "/%":
            return once(lambda a, b: _float_division(operator, a, b, node.type), left, right)
        return f"({left} {operator} {right})"
    if operator in "/%":
        return _division(node, operator, texts, raw, fail, safe=safe)
    if node.type.base == "decimal":
        return once(
            lambda a, b: _decimal_attempt(node, operator, (a, b), raw, fail, safe=safe),
            left,
            right,
        )
    if raw is None and not safe:
        return f"({left} {operator} {right})"
    return _checked(node, f"{_TRIED[operator]}({left}, {right})", raw, fail, safe=safe)


def _decimal_attempt(
    node: e.Apply,
    operator: str,
    texts: tuple[str, str],
    raw: Sequence[str] | None,
    fail: Callable[..., str],
    *,
    safe: bool,
) -> str:
    """Write a sum, a difference or a product of decimals.

    Spark reserves one more digit than Trino, for a carry, and takes it from the scale where there
    is no room. Operands with one digit less leave that room.
    """
    operand_types = [argument.type for argument in node.arguments]
    name = spark_type(node.type)
    plain = f"CAST({texts[0]} {operator} {texts[1]} AS {name})"
    attempts = [
        f"try_cast({_TRIED[operator]}({', '.join(operands)}) AS {name})"
        for operands in _operands(operator, texts, operand_types, node.type)
    ]
    if exact_precision(operator, *operand_types) <= node.type.parameters[0] or (
        raw is None and not safe
    ):
        return _first([*attempts[:-1], plain])
    return _checked(node, _first(attempts), raw, fail, safe=safe)


def _first(attempts: Sequence[str]) -> str:
    return f"coalesce({', '.join(attempts)})" if attempts[1:] else attempts[0]


def _operands(
    operator: str, texts: tuple[str, str], operand_types: Sequence[Type], result: Type
) -> list[tuple[str, ...]]:
    (p1, s1), (p2, s2) = (operand.parameters for operand in operand_types)
    scale = result.parameters[1]
    before = (p1 - s1, p2 - s2)
    digits, exact = (sum(before), s1 + s2) if operator == "*" else (max(before), max(s1, s2))
    room = MAX_PRECISION - digits - 1
    spark_scale = exact if exact <= room else max(room, min(exact, 6))
    if spark_scale < scale:
        shorter = [
            f"try_cast({text} AS {spark_type(decimal_of(p - 1, s))})" if p > s else text
            for text, (p, s) in zip(texts, ((p1, s1), (p2, s2)), strict=True)
        ]
        pairs = (
            [(shorter[0], texts[1]), (texts[0], shorter[1])]
            if operator == "*"
            else [tuple(shorter[i] if before[i] == digits else texts[i] for i in range(2))]
        )
        return [*(pair for pair in pairs if pair != texts), texts]
    if spark_scale > scale:
        whole = spark_type(decimal_of(MAX_PRECISION, scale))
        return [texts, tuple(f"try_cast({text} AS {whole})" for text in texts)]
    return [texts]


def _checked(
    node: e.Apply, attempt: str, raw: Sequence[str] | None, fail: Callable[..., str], *, safe: bool
) -> str:
    if safe or raw is None:
        return attempt
    if node.type.base == "decimal":
        message = fail(_RANGE, "'Decimal overflow'")
    else:
        message_start = e.text_literal(f"{node.type} {_WORDS[node.detail]} overflow: ")
        message = fail(
            _RANGE,
            message_start,
            f"CAST({raw[0]} AS STRING)",
            f"' {node.detail} '",
            f"CAST({raw[1]} AS STRING)",
        )
    nullable = [
        text
        for text, part in zip(raw, node.arguments, strict=True)
        if e.is_null(part) or not isinstance(part, e.Constant)
    ]
    nulls = " OR ".join(f"{text} IS NULL" for text in nullable)
    return f"coalesce({attempt}, {f'IF({nulls}, NULL, {message})' if nulls else message})"


def _division(
    node: e.Apply,
    operator: str,
    texts: Sequence[str],
    raw: Sequence[str] | None,
    fail: Callable[..., str],
    *,
    safe: bool,
) -> str:
    """Write a quotient or a remainder; under TRY, failures yield NULL."""
    left, right = texts
    name = spark_type(node.type)
    operand_types = [argument.type for argument in node.arguments]
    guarded = divisor(right, safe=safe)
    checked = safe or raw is not None
    if operator == "%":
        return (
            f"CAST({left} % {guarded} AS {name})"
            if node.type.base == "decimal"
            else f"({left} % {guarded})"
        )
    if is_integer(node.type):
        number = node.arguments[1]
        if not checked or (isinstance(number, e.Constant) and number.value not in {None, "-1"}):
            return f"CAST({left} div {guarded} AS {name})"

        def divided(dividend: str, by: str) -> str:
            negated = _checked(
                node, f"try_subtract(CAST(0 AS {name}), {dividend})", raw, fail, safe=safe
            )
            return f"IF({by} = -1, {negated}, CAST({dividend} div {by} AS {name}))"

        return once(divided, left, guarded)
    if not checked or exact_precision(operator, *operand_types) <= MAX_PRECISION:
        return f"CAST({left} / {guarded} AS {name})"
    attempt = _checked(
        node, f"try_cast(try_divide({left}, {right}) AS {name})", raw, fail, safe=safe
    )
    return (
        attempt
        if safe
        else once(lambda b: f"IF({b} = 0, CAST({left} / {b} AS {name}), {attempt})", right)
    )


def divisor(text: str, *, safe: bool) -> str:
    """Write a divisor; under TRY zero becomes NULL.

    >>> divisor("x", safe=True), divisor("x", safe=False)
    ('nullif(x, 0)', 'x')
    """
    return f"nullif({text}, 0)" if safe else text


def negation(
    node: e.Apply, text: str, raw: str | None, fail: Callable[..., str], *, safe: bool
) -> str:
    sql_type = node.type
    if sql_type.base == "decimal" and sql_type.parameters[0] > ROUNDED_DIGITS:
        return once(lambda x: _negated_as_text(x, sql_type), text)
    argument = node.arguments[0]
    literal = (
        isinstance(argument, e.Constant) and argument.value is not None and argument.value.isdigit()
    )
    if not is_integer(sql_type) or literal or (raw is None and not safe):
        return f"(- {text})"
    attempt = f"try_subtract(CAST(0 AS {spark_type(sql_type)}), {text})"
    if safe or raw is None:
        return attempt
    message = fail(
        _RANGE, e.text_literal(f"{sql_type} negation overflow: "), f"CAST({raw} AS STRING)"
    )
    return f"coalesce({attempt}, IF({raw} IS NULL, NULL, {message}))"


def _negated_as_text(text: str, sql_type: Type) -> str:
    text_form = f"CAST({text} AS STRING)"
    # The sign is read from the text: compared with 0 as a decimal of scale 38, the smallest numbers
    # count as 0.
    return (
        f"CAST(IF({text_form} LIKE '-%', substring({text_form}, 2), concat('-', {text_form})) AS"
        f" {spark_type(sql_type)})"
    )


def absolute(text: str, sql_type: Type) -> str:
    """Write the absolute value of a decimal."""
    if sql_type.parameters[0] <= ROUNDED_DIGITS:
        return f"abs({text})"
    return f"CAST(ltrim('-', CAST({text} AS STRING)) AS {spark_type(sql_type)})"


def _float_division(operator: str, left: str, right: str, sql_type: Type) -> str:
    """Write a division of doubles; Spark's ANSI mode refuses zero, unlike IEEE 754 and Trino."""
    name = spark_type(sql_type)
    if operator == "%":
        return (
            f"CASE WHEN {right} = 0 THEN IF({left} IS NULL, NULL, CAST('NaN' AS {name})) ELSE"
            f" ({left} % {right}) END"
        )
    positive = f"({left} > 0) = (CAST({right} AS STRING) NOT LIKE '-%')"
    return (
        f"CASE WHEN {right} = 0 THEN CASE WHEN {left} IS NULL THEN NULL WHEN isnan({left}) OR"
        f" {left} = 0 THEN CAST('NaN' AS {name}) WHEN {positive} THEN CAST('Infinity' AS {name})"
        f" ELSE CAST('-Infinity' AS {name}) END ELSE CAST({left} / {right} AS {name}) END"
    )


# -- moments and intervals


def interval_micros(text: str) -> str:
    return f"unix_micros({_EPOCH} + {text})"


def from_interval_micros(number: str) -> str:
    return f"CAST(timestamp_micros({number}) - {_EPOCH} AS INTERVAL DAY TO SECOND)"


def interval_months(text: str) -> str:
    return f"(extract(YEAR FROM {text}) * 12 + extract(MONTH FROM {text}))"


def _moment(
    operator: str,
    texts: tuple[str, str],
    operand_types: Sequence[Type],
    result: Type,
    fail: Callable[..., str],
) -> str:
    (left, right), (first, second) = texts, operand_types
    intervals = (INTERVAL_DAY, INTERVAL_YEAR)
    if result in intervals:
        if first == second == result:
            return f"CAST({left} {operator} {right} AS {spark_type(result)})"
        if result in (first, second) and operator in "*/":
            value, number, sql_type = (
                (left, right, second) if first == result else (right, left, first)
            )
            return _scaled(operator, value, number, sql_type, result, fail)
        return _difference(left, right, first)
    moment, interval, sql_type = (
        (left, right, second) if second in intervals else (right, left, first)
    )
    return _shifted(operator, moment, interval, result, sql_type, fail)


def _difference(left: str, right: str, sql_type: Type) -> str:
    if sql_type.base == "date":
        return f"CAST({left} - {right} AS INTERVAL DAY TO SECOND)"
    return from_interval_micros(
        rounded(f"({micros(left, sql_type)} - {micros(right, sql_type)})", 3)
    )


def _shifted(
    operator: str, moment: str, interval: str, sql_type: Type, by: Type, fail: Callable[..., str]
) -> str:
    if sql_type.base == "date":
        if by == INTERVAL_YEAR:
            return f"CAST({moment} {operator} {interval} AS DATE)"
        preposition = "to a date" if operator == "+" else "from a date"
        word = "add" if operator == "+" else "subtract"
        message = fail(
            "INVALID_FUNCTION_ARGUMENT",
            e.text_literal(f"Cannot {word} hour, minutes or seconds {preposition}"),
        )
        days = f"CAST(extract(DAY FROM {interval}) AS INT)"
        moved = f"date_{'add' if operator == '+' else 'sub'}({moment}, {days})"
        clean = f"{interval} = make_dt_interval({days})"
        return (
            f"CASE WHEN {moment} IS NULL OR {interval} IS NULL OR {clean} THEN {moved} ELSE"
            f" {message} END"
        )
    if sql_type.base == "time":
        return from_micros(
            f"time_to_micros({moment}) {operator} {interval_micros(interval)}", sql_type
        )
    if is_zoned(sql_type):
        zone = zone_of(moment, sql_type)
        if by == INTERVAL_YEAR:
            # Months are added on the zone's clock, days and seconds to the instant.
            return with_zone(
                f"to_utc_timestamp(CAST({local(moment, sql_type)} {operator} {interval} AS"
                f" TIMESTAMP), {zone})",
                zone,
            )
        return with_zone(f"({instant_of(moment, sql_type)} {operator} {interval})", zone)
    return f"({moment} {operator} {interval})"


def _scaled(
    operator: str, value: str, number: str, sql_type: Type, result: Type, fail: Callable[..., str]
) -> str:
    """Write an interval times a number, truncated to milliseconds or months."""
    units = (
        f"({interval_micros(value)} div 1000)" if result == INTERVAL_DAY else interval_months(value)
    )
    product = (
        f"{units} * {number}"
        if is_integer(sql_type) and operator == "*"
        else f"CAST({units} {operator} {number} AS BIGINT)"
    )
    if is_float(sql_type) and operator == "*":
        # An empty interval times infinity is empty.
        product = f"CAST(nanvl({units} * {number}, 0D) AS BIGINT)"
    whole = (
        from_interval_micros(f"{product} * 1000")
        if result == INTERVAL_DAY
        else f"make_ym_interval(0, CAST({product} AS INT))"
    )
    if operator == "/":
        bad = f"isnan({number}) OR {number} = 0"
        message = fail(
            "INVALID_FUNCTION_ARGUMENT", "'Cannot divide by double '", f"CAST({number} AS STRING)"
        )
    elif is_float(sql_type):
        bad = f"isnan({number})"
        message = fail("INVALID_FUNCTION_ARGUMENT", "'Cannot multiply by double NaN'")
    else:
        return whole
    return (
        f"CASE WHEN {value} IS NULL OR {number} IS NULL THEN NULL WHEN {bad} THEN {message} ELSE"
        f" {whole} END"
    )
