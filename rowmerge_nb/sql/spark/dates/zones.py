"""Functions of time zones in Spark SQL: giving a timestamp a zone, asking for it, and the offset from UTC that it means."""

# All writers have one signature, whether they need all of it or not.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.spark.casts.moments import instant_of, local, with_zone, zone_of
from rowmerge_nb.sql.spark.casts.text import canonical_zone
from rowmerge_nb.sql.typed.types import is_zoned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.typed.expressions import Apply

    Writer: TypeAlias = Callable[..., str]

__all__ = ["ZONES", "Writer", "offset_minutes", "offset_name"]

_CODE: Final = "INVALID_FUNCTION_ARGUMENT"


def _at_time_zone(node: Apply, fail: Callable[..., str], text: str, zone: str) -> str:
    return with_zone(instant_of(text, node.arguments[0].type), zone)


def _with_timezone(node: Apply, fail: Callable[..., str], text: str, zone: str) -> str:
    """The wall clock of a zone as a timestamp with that zone."""
    return with_zone(f"to_utc_timestamp(CAST({text} AS TIMESTAMP), {zone})", zone)


def _zone_name(node: Apply, fail: Callable[..., str], text: str) -> str:
    return f"IF({text} IS NULL, NULL, {zone_of(text, node.arguments[0].type)})"


def _checked_zone(node: Apply, fail: Callable[..., str], text: str) -> str:
    known = f"try_cast(concat('2000-01-01 00:00:00 ', {text}) AS TIMESTAMP) IS NOT NULL"
    refused = fail(_CODE, "'\\''", text, "'\\' is not a valid time zone'")
    return f"CASE WHEN {text} IS NULL OR {known} THEN {canonical_zone(text)} ELSE {refused} END"


def _offset_name(node: Apply, fail: Callable[..., str], text: str) -> str:
    minutes = f"CAST(extract(DAY FROM {text}) * 1440 + extract(HOUR FROM {text}) * 60 + extract(MINUTE FROM {text}) AS INT)"
    return offset_name(fail, minutes)


def offset_name(fail: Callable[..., str], minutes: str) -> str:
    """Write the name of the zone that is so many minutes away from UTC."""
    name = f"concat(IF({minutes} < 0, '-', '+'), format_string('%02d:%02d', abs({minutes}) div 60, abs({minutes}) % 60))"
    far = fail(_CODE, f"concat('Invalid offset minutes ', CAST({minutes} AS STRING))")
    return f"CASE WHEN {minutes} = 0 THEN 'UTC' WHEN abs({minutes}) <= 840 OR {minutes} IS NULL THEN {name} ELSE {far} END"


def offset_minutes(text: str, kind: Type) -> str:
    """Write the minutes between a wall clock and UTC."""
    if not is_zoned(kind):
        return "0L"
    return f"((unix_micros(CAST({local(text, kind)} AS TIMESTAMP)) - unix_micros({instant_of(text, kind)})) div 60000000)"


def _timezone_part(divide: str) -> Writer:
    def write(node: Apply, fail: Callable[..., str], text: str) -> str:
        return f"IF({text} IS NULL, NULL, CAST({offset_minutes(text, node.arguments[0].type)} {divide} 60 AS BIGINT))"

    return write


ZONES: Final[Mapping[str, Writer]] = {
    "at time zone": _at_time_zone,
    "zone of interval": _offset_name,
    "zone": _checked_zone,
    "with_timezone": _with_timezone,
    "timezone": _zone_name,
    "timezone_hour": _timezone_part("div"),
    "timezone_minute": _timezone_part("%"),
}
"""Per function what writes it, given the call, what writes a failure, and the texts of the arguments."""
