"""Dates and timestamps in DuckDB SQL."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import TIMESTAMP, Type
from rowmerge_nb.sql.duckdb.date_patterns import formatted
from rowmerge_nb.sql.duckdb.duckdb_casts import rounded_micros
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, duckdb_type, once, text_literal
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_YEAR,
    UNIT_MICROSECONDS,
    UNIT_MONTHS,
    is_zoned,
    most_units,
    precision_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FORMATS: Final = frozenset({"date_format", "format_datetime"})
_THOUSANDTHS: Final = 3
_WITH_ZONE: Final = "timestamp with time zone"
_KINDS: Final = frozenset({"date", "timestamp", _WITH_ZONE})
_DAYS: Final = {"day": 1, "week": 7}
_DAY_SECONDS: Final = 86_400


def shifted(
    operator: str, text: str, sql_type: Type, interval: e.Constant, fail: Callable[..., str]
) -> str:
    """Shift a date or timestamp by a constant interval, or raise UnprintableError."""
    if sql_type.base not in _KINDS or is_zoned(sql_type):
        raise UnprintableError(f"{sql_type} {operator} an interval")
    if interval.value is None:
        return f"CAST(NULL AS {duckdb_type(sql_type)})"
    if sql_type.base == _WITH_ZONE:
        return _on_clock(text, lambda clock: shifted(operator, clock, TIMESTAMP, interval, fail))
    if interval.type == INTERVAL_YEAR:
        return (
            f"CAST({text} {operator} to_months({int(interval.value)}) AS {sql_type.base.upper()})"
        )
    seconds = Decimal(interval.value)
    if sql_type.base == "timestamp":
        return f"make_timestamp(epoch_us({text}) {operator} ({int(seconds * 1_000_000)}))"
    if seconds % _DAY_SECONDS:
        action = (
            "add hour, minutes or seconds to a date"
            if operator == "+"
            else "subtract hour, minutes or seconds from a date"
        )
        message = fail("INVALID_FUNCTION_ARGUMENT", f"'Cannot {action}'")
        return f"CASE WHEN {text} IS NOT NULL THEN {message} END"
    return f"CAST({text} {operator} CAST({int(seconds) // _DAY_SECONDS} AS INTEGER) AS DATE)"


def moment_text(
    node: e.Apply, printed: Callable[[Sequence[e.Typed]], list[str]], fail: Callable[..., str]
) -> str:
    """Write a function with a unit or a pattern, or raise UnprintableError."""
    name, sql_type = node.detail.name, node.arguments[-1].type
    msg = f"the function {name}({', '.join(str(argument.type) for argument in node.arguments)})"
    if sql_type.base not in _KINDS or is_zoned(sql_type):
        raise UnprintableError(msg)
    if name in _FORMATS:
        return formatted(node.detail.key, _thousandths(printed(node.arguments)[0], sql_type))
    writer, unit = _WRITERS.get(name), node.arguments[0]
    if writer is None or not isinstance(unit, e.Constant):
        raise UnprintableError(msg)
    texts, word = printed(node.arguments[1:]), (unit.value or "").lower()
    if word not in (
        {*_DAYS, *UNIT_MONTHS} if sql_type.base == "date" else {*UNIT_MICROSECONDS, *UNIT_MONTHS}
    ):
        return _no_unit(unit, texts, sql_type, fail)
    plain = Type("timestamp", sql_type.parameters)
    if sql_type.base != _WITH_ZONE:
        text = writer(word, texts, sql_type)
    elif name == "date_diff":
        text = writer(word, [f"CAST({text} AS TIMESTAMP)" for text in texts], plain)
    else:
        text = _on_clock(texts[-1], lambda clock: writer(word, [*texts[:-1], clock], plain))
    if name != "date_add":
        return text
    most = most_units(word, sql_type)
    far = f"{texts[0]} NOT BETWEEN {-most} AND {most} AND {texts[1]} IS NOT NULL"
    return (
        f"CASE WHEN {far} THEN"
        f" {fail('INVALID_FUNCTION_ARGUMENT', text_literal('integer overflow'))} ELSE {text} END"
    )


def _no_unit(
    unit: e.Constant, texts: Sequence[str], sql_type: Type, fail: Callable[..., str]
) -> str:
    if unit.value is None:
        return "NULL"
    message = (
        f"'{unit.value.lower()}' is not a valid"
        f" {'DATE' if sql_type.base == 'date' else 'TIMESTAMP'} field"
    )
    not_null = " AND ".join(f"{text} IS NOT NULL" for text in texts)
    return (
        f"CASE WHEN {not_null} THEN {fail('INVALID_FUNCTION_ARGUMENT', text_literal(message))} END"
    )


def _thousandths(text: str, sql_type: Type) -> str:
    clock = f"CAST({text} AS TIMESTAMP)"
    return (
        clock
        if precision_of(sql_type) <= _THOUSANDTHS
        else f"make_timestamp({rounded_micros(f'epoch_us({clock})', _THOUSANDTHS)})"
    )


def _on_clock(text: str, write: Callable[[str], str]) -> str:
    return f"CAST({write(f'CAST({text} AS TIMESTAMP)')} AS TIMESTAMPTZ)"


def _date_trunc(unit: str, texts: list[str], sql_type: Type) -> str:
    return f"CAST(date_trunc('{unit}', {texts[0]}) AS {duckdb_type(sql_type)})"


def _date_add(unit: str, texts: list[str], sql_type: Type) -> str:
    def write(number: str, text: str) -> str:
        if unit in UNIT_MONTHS:
            moved = (
                f"CAST({text} + to_months(CAST({number} * {UNIT_MONTHS[unit]} AS INTEGER)) AS"
                f" {sql_type.base.upper()})"
            )
        elif sql_type.base == "date":
            moved = f"CAST({text} + CAST({number} * {_DAYS[unit]} AS INTEGER) AS DATE)"
        else:
            micros = f"(epoch_us({text}) + {number} * {UNIT_MICROSECONDS[unit]})"
            moved = f"make_timestamp({rounded_micros(micros, precision_of(sql_type)) if unit == 'millisecond' else micros})"
        # Beside NULL, too large a number is not an error.
        return f"CASE WHEN {text} IS NOT NULL THEN {moved} END"

    return once(write, *texts)


def _date_diff(unit: str, texts: list[str], sql_type: Type) -> str:
    if sql_type.base == "date" and unit in _DAYS:
        return f"(date_diff('day', {texts[0]}, {texts[1]}) // {_DAYS[unit]})"
    if unit in UNIT_MICROSECONDS:
        first, second = (_millis(text) for text in texts)
        return f"(({second} - {first}) // {UNIT_MICROSECONDS[unit] // 1000})"

    def write(a: str, b: str) -> str:
        low, high = f"least({a}, {b})", f"greatest({a}, {b})"
        apart = f"((year({high}) - year({low})) * 12 + month({high}) - month({low}))"
        whole = (
            f"({apart} - CASE WHEN {low} + to_months(CAST({apart} AS INTEGER)) > {high} THEN 1 ELSE"
            " 0 END)"
        )
        sign = f"CASE WHEN {a} <= {b} THEN 1 ELSE -1 END"
        months_text = f"CAST({sign} * ({whole} // {UNIT_MONTHS[unit]}) AS BIGINT)"
        return f"CASE WHEN {a} IS NULL OR {b} IS NULL THEN NULL ELSE {months_text} END"

    return once(
        write, *(f"date_trunc('milliseconds', CAST({text} AS TIMESTAMP))" for text in texts)
    )


def _millis(text: str) -> str:
    return f"((epoch_us({text}) - ((epoch_us({text}) % 1000 + 1000) % 1000)) // 1000)"


_WRITERS: Final = {"date_trunc": _date_trunc, "date_add": _date_add, "date_diff": _date_diff}
