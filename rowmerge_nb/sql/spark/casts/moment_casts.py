"""Casts between dates, times and timestamps, and the micros, zones and roundings that they and date functions share.

A timestamp is a TIMESTAMP_NTZ of Spark, a timestamp with time zone a TIMESTAMP, or, where its values carry zones, a struct of
the instant and the zone's name. Spark's session zone is UTC whatever that of the statement's session is, so a cast between its two types keeps
the number of microseconds.
"""

from __future__ import annotations

from typing import Final

from rowmerge_nb.spi.types import DATE, Type
from rowmerge_nb.sql.spark.text import once
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import MOST_MICROSECONDS, instant, is_zoned, precision_of
from rowmerge_nb.sql.typed.zones import session_zone

# All writers of casts have one signature, whether they need all of it or not.
# ruff: noqa: ARG001


_DAY: Final = 86_400_000_000


def instant_of(text: str, kind: Type) -> str:
    """Write the instant, a TIMESTAMP of Spark, of a timestamp with time zone."""
    return f"({text}).instant" if is_zoned(kind) else text


def zone_of(text: str, kind: Type) -> str:
    """Write the name of the zone of a timestamp with time zone."""
    return f"({text}).zone" if is_zoned(kind) else "'UTC'"


def local(text: str, kind: Type) -> str:
    """Write the wall clock of a timestamp, of one with a time zone in its own zone; a TIMESTAMP_NTZ of Spark."""
    if is_zoned(kind):
        return f"CAST(from_utc_timestamp(({text}).instant, ({text}).zone) AS TIMESTAMP_NTZ)"
    return text if kind.base == "timestamp" else f"CAST({text} AS TIMESTAMP_NTZ)"


def with_zone(moment: str, zone: str) -> str:
    """Write a timestamp that carries a zone; NULL where there is no instant."""
    return f"IF({moment} IS NULL OR {zone} IS NULL, NULL, {zoned_value(moment, zone)})"


def zoned_value(moment: str, zone: str) -> str:
    """Write the struct of an instant and a zone; by its type both may be NULL, without which no NULL can stand beside it."""
    return f"CAST(named_struct('instant', {moment}, 'zone', {zone}) AS STRUCT<`instant`: TIMESTAMP, `zone`: STRING>)"


def micros(text: str, kind: Type) -> str:
    """Write the microseconds since 1970 of a wall clock or an instant, those since midnight of a time."""
    if kind.base == "time":
        return f"time_to_micros({text})"
    return f"unix_micros(CAST({text} AS TIMESTAMP))" if kind.base in {"timestamp", "date"} else f"unix_micros({text})"


def from_micros(number: str, kind: Type) -> str:
    """Write the value of a type that these microseconds are; a time wraps around midnight."""
    if kind.base == "time":
        return f"time_from_micros(pmod({number}, {_DAY}L))"
    return f"CAST(timestamp_micros({number}) AS TIMESTAMP_NTZ)" if kind.base == "timestamp" else f"timestamp_micros({number})"


def rounded(number: str, precision: int) -> str:
    """Write microseconds rounded, halves up, to so many decimals of a second."""
    step = 10 ** (MOST_MICROSECONDS - precision)
    return number if step == 1 else f"({number} + {step // 2} - pmod({number} + {step // 2}, {step}))"


def between(text: str, source: Type, target: Type, safe: bool) -> str:
    """Write the cast between two types of moments."""
    if target.base == "date":
        return f"CAST({local(text, source)} AS DATE)"
    if source == DATE:
        clock = f"CAST({text} AS TIMESTAMP_NTZ)"
        return clock if target.base == "timestamp" else _at_clock(clock, target)
    if source.base == "time":
        return _from_time(text, source, target)
    if target.base == "time":
        clock = f"CAST({local(text, source)} AS TIME(6))"
        return _fitted(clock, source, target)
    if target.base == "timestamp":
        return _fitted(local(text, source), source, target)
    if source.base == "timestamp":
        return _at_clock(_fitted(text, source, Type("timestamp", target.parameters)), target)
    return _zoned(_fitted(instant_of(text, source), source, instant(target)), zone_of(text, source), target)


def _from_time(text: str, source: Type, target: Type) -> str:
    if target.base == "time":
        return _fitted(text, source, target)
    today = f"make_timestamp_ntz(current_date(), {text})"
    if target.base == "timestamp":
        return _fitted(today, source, target)
    return _at_clock(_fitted(today, source, Type("timestamp", target.parameters)), target)


def _at_clock(clock: str, target: Type) -> str:
    """The instant at which the clocks of the session's zone show this."""
    zone, moment = text_literal(session_zone()), f"CAST({clock} AS TIMESTAMP)"
    return _zoned(moment if session_zone() == "UTC" else at_clock(moment, zone), zone, target)


def at_clock(clock: str, zone: str) -> str:
    """Write the instant at which the clocks of a zone show what those of UTC show at another one; see `rowmerge_nb.sql.typed.zones.at_clock`."""

    def written(shown: str, zone: str) -> str:
        found = f"timestamp_micros(2 * unix_micros({shown}) - unix_micros(from_utc_timestamp({shown}, {zone})))"
        first = f"to_utc_timestamp({shown}, {zone})"
        return once(lambda late: f"IF(from_utc_timestamp({late}, {zone}) = {shown}, {late}, {first})", found)

    return once(written, clock, zone)


def _zoned(text: str, zone: str, target: Type) -> str:
    return with_zone(text, zone) if is_zoned(target) else text


def _fitted(text: str, source: Type, target: Type) -> str:
    """A value, in Spark's type for the target already, rounded where the target has fewer decimals."""
    if precision_of(source) <= precision_of(target):
        return text
    return from_micros(rounded(micros(text, target), precision_of(target)), target)
