"""Functions of time zones in Spark SQL."""

# All writers have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.spark.casts.moment_casts import at_clock, instant_of, local, with_zone, zone_of
from rowmerge_nb.sql.spark.casts.text_casts import canonical_zone, is_too_far, is_zone
from rowmerge_nb.sql.spark.text import once
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import is_zoned
from rowmerge_nb.sql.typed.zones import EMPTY_ZONE, UNKNOWN_ZONES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.typed.expressions import Apply

    Writer: TypeAlias = Callable[..., str]

_CODE: Final = "INVALID_FUNCTION_ARGUMENT"


def _at_time_zone(node: Apply, fail: Callable[..., str], text: str, zone: str) -> str:
    return with_zone(instant_of(text, node.arguments[0].type), zone)


def _with_timezone(node: Apply, fail: Callable[..., str], text: str, zone: str) -> str:
    return with_zone(at_clock(f"CAST({text} AS TIMESTAMP)", zone), zone)


def _zone_name(node: Apply, fail: Callable[..., str], text: str) -> str:
    return f"IF({text} IS NULL, NULL, {zone_of(text, node.arguments[0].type)})"


def _checked_zone(node: Apply, fail: Callable[..., str], text: str) -> str:
    code, before, behind = UNKNOWN_ZONES[node.detail.name]
    error = fail(code, text_literal(before), text, text_literal(behind))
    near = once(lambda zone: f"IF({is_too_far(zone)}, {error}, {zone})", canonical_zone(text))
    empty = fail(EMPTY_ZONE[0], text_literal(EMPTY_ZONE[1]))
    return (
        f"CASE WHEN {text} IS NULL THEN NULL WHEN {is_zone(text)} THEN {near} WHEN {text} = '' THEN"
        f" {empty} ELSE {error} END"
    )


def _offset_name(node: Apply, fail: Callable[..., str], text: str) -> str:
    minutes = (
        f"CAST(extract(DAY FROM {text}) * 1440L + extract(HOUR FROM {text}) * 60 + extract(MINUTE"
        f" FROM {text}) AS INT)"
    )
    seconds = fail(_CODE, "'Invalid time zone offset interval: interval contains seconds'")
    return f"IF(extract(SECOND FROM {text}) <> 0, {seconds}, {offset_name(fail, minutes)})"


def offset_name(fail: Callable[..., str], minutes: str) -> str:
    name = (
        f"concat(IF({minutes} < 0, '-', '+'), format_string('%02d:%02d', abs({minutes}) div 60,"
        f" abs({minutes}) % 60))"
    )
    far = fail(_CODE, f"concat('Invalid offset minutes ', CAST({minutes} AS STRING))")
    return (
        f"CASE WHEN {minutes} = 0 THEN 'UTC' WHEN abs({minutes}) <= 840 THEN {name} WHEN {minutes}"
        f" IS NOT NULL THEN {far} END"
    )


def offset_minutes(text: str, sql_type: Type) -> str:
    """Write a wall clock's offset from UTC in minutes."""
    if not is_zoned(sql_type):
        return "0L"
    return (
        f"((unix_micros(CAST({local(text, sql_type)} AS TIMESTAMP)) -"
        f" unix_micros({instant_of(text, sql_type)})) div 60000000)"
    )


def _timezone_part(divide: str) -> Writer:
    def write(node: Apply, fail: Callable[..., str], text: str) -> str:
        return (
            f"IF({text} IS NULL, NULL, CAST({offset_minutes(text, node.arguments[0].type)} {divide}"
            " 60 AS BIGINT))"
        )

    return write


ZONES: Final[Mapping[str, Writer]] = {
    "at time zone": _at_time_zone,
    "zone of interval": _offset_name,
    **dict.fromkeys(UNKNOWN_ZONES, _checked_zone),
    "with_timezone": _with_timezone,
    "timezone": _zone_name,
    "timezone_hour": _timezone_part("div"),
    "timezone_minute": _timezone_part("%"),
}
"""Writers by function; arguments: the call, a writer of failures, and the arguments' texts."""
