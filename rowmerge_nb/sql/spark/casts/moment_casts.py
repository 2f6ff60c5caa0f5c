"""Casts between dates, times and timestamps, and helpers of date functions.

A timestamp is a TIMESTAMP_NTZ. A timestamp with time zone is a TIMESTAMP or, if its values carry
zones, a struct of an instant and a zone. Spark's session zone is UTC, so casts between its types
retain the microseconds.
"""

from __future__ import annotations

from typing import Final

from rowmerge_nb.spi.types import DATE, Type
from rowmerge_nb.sql.spark.text import once
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import MOST_MICROSECONDS, instant, is_zoned, precision_of
from rowmerge_nb.sql.typed.zones import session_zone

# All writers of casts have one signature.
# ruff: noqa: ARG001


_DAY: Final = 86_400_000_000


def instant_of(text: str, sql_type: Type) -> str:
    return f"({text}).instant" if is_zoned(sql_type) else text


def zone_of(text: str, sql_type: Type) -> str:
    return f"({text}).zone" if is_zoned(sql_type) else "'UTC'"


def local(text: str, sql_type: Type) -> str:
    """Write the wall clock of a timestamp, in its own zone, as TIMESTAMP_NTZ."""
    if is_zoned(sql_type):
        return f"CAST(from_utc_timestamp(({text}).instant, ({text}).zone) AS TIMESTAMP_NTZ)"
    return text if sql_type.base == "timestamp" else f"CAST({text} AS TIMESTAMP_NTZ)"


def with_zone(moment: str, zone: str) -> str:
    """Write a timestamp that carries a zone, or NULL."""
    return f"IF({moment} IS NULL OR {zone} IS NULL, NULL, {zoned_value(moment, zone)})"


def zoned_value(moment: str, zone: str) -> str:
    """Write the struct of an instant and a zone; nullable fields let the struct be NULL."""
    return (
        f"CAST(named_struct('instant', {moment}, 'zone', {zone}) AS STRUCT<`instant`: TIMESTAMP,"
        " `zone`: STRING>)"
    )


def micros(text: str, sql_type: Type) -> str:
    """Write the microseconds since 1970, or since midnight for a time."""
    if sql_type.base == "time":
        return f"time_to_micros({text})"
    return (
        f"unix_micros(CAST({text} AS TIMESTAMP))"
        if sql_type.base in {"timestamp", "date"}
        else f"unix_micros({text})"
    )


def from_micros(number: str, sql_type: Type) -> str:
    """Write a value from its microseconds; times wrap around midnight."""
    if sql_type.base == "time":
        return f"time_from_micros(pmod({number}, {_DAY}L))"
    return (
        f"CAST(timestamp_micros({number}) AS TIMESTAMP_NTZ)"
        if sql_type.base == "timestamp"
        else f"timestamp_micros({number})"
    )


def rounded(number: str, precision: int) -> str:
    step = 10 ** (MOST_MICROSECONDS - precision)
    return (
        number if step == 1 else f"({number} + {step // 2} - pmod({number} + {step // 2}, {step}))"
    )


def between(text: str, source: Type, target: Type, safe: bool) -> str:
    if is_zoned(source) and target.base in {"date", "time", "timestamp"}:
        return _from_local_micros(text, source, target)
    if target.base == "date":
        return f"CAST({local(text, source)} AS DATE)"
    if source == DATE:
        clock = f"CAST({text} AS TIMESTAMP_NTZ)"
        return clock if target.base == "timestamp" else _at_clock(clock, target)
    if source.base == "time":
        return _from_time(text, source, target)
    if target.base == "time":
        clock = f"CAST({local(text, source)} AS TIME(6))"
        return _with_precision(clock, source, target)
    if target.base == "timestamp":
        return _with_precision(local(text, source), source, target)
    if source.base == "timestamp":
        return _at_clock(
            _with_precision(text, source, Type("timestamp", target.parameters)), target
        )
    return _zoned(
        _with_precision(instant_of(text, source), source, instant(target)),
        zone_of(text, source),
        target,
    )


def _from_local_micros(text: str, source: Type, target: Type) -> str:
    """Write the wall clock of a moment with a zone as another type, from its microseconds.

    Spark's own casts go through `java.time`, which takes longer.
    """
    number = f"unix_micros(from_utc_timestamp(({text}).instant, ({text}).zone))"
    if target.base == "date":
        return once(
            lambda n: f"date_from_unix_date(CAST(({n} - pmod({n}, {_DAY}L)) div {_DAY}L AS INT))",
            number,
        )
    if precision_of(source) > precision_of(target):
        number = rounded(number, precision_of(target))
    return from_micros(number, target)


def _from_time(text: str, source: Type, target: Type) -> str:
    if target.base == "time":
        return _with_precision(text, source, target)
    today = f"make_timestamp_ntz(current_date(), {text})"
    if target.base == "timestamp":
        return _with_precision(today, source, target)
    return _at_clock(_with_precision(today, source, Type("timestamp", target.parameters)), target)


def _at_clock(clock: str, target: Type) -> str:
    zone, moment = text_literal(session_zone()), f"CAST({clock} AS TIMESTAMP)"
    return _zoned(moment if session_zone() == "UTC" else at_clock(moment, zone), zone, target)


def at_clock(clock: str, zone: str) -> str:
    """Write the instant of a wall clock in a zone; see `rowmerge_nb.sql.typed.zones.at_clock`."""

    def write(clock_text: str, zone: str) -> str:
        later = (
            f"timestamp_micros(2 * unix_micros({clock_text}) -"
            f" unix_micros(from_utc_timestamp({clock_text}, {zone})))"
        )
        first = f"to_utc_timestamp({clock_text}, {zone})"
        return once(
            lambda late: f"IF(from_utc_timestamp({late}, {zone}) = {clock_text}, {late}, {first})",
            later,
        )

    return once(write, clock, zone)


def _zoned(text: str, zone: str, target: Type) -> str:
    return with_zone(text, zone) if is_zoned(target) else text


def _with_precision(text: str, source: Type, target: Type) -> str:
    if precision_of(source) <= precision_of(target):
        return text
    return from_micros(rounded(micros(text, target), precision_of(target)), target)
