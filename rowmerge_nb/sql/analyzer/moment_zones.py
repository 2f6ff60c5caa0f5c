"""Time zones in expressions: giving a timestamp a zone, asking for it, and the offset from UTC that it means."""

# All makers of calls have one signature, and so have all writers of Spark SQL, whether they need all of it or not.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.types import BIGINT, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.spark.casts.moments import instant_of, local, with_zone, zone_of
from rowmerge_nb.sql.spark.casts.text import canonical_zone as written_zone
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.types import INTERVAL_DAY, is_text, is_zoned, zoned
from rowmerge_nb.sql.typed.zones import canonical_zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.analyzer.calls import CallAnalyzer
    from rowmerge_nb.sql.analyzer.moments import Maker
    from rowmerge_nb.sql.tree.syntax import Expression

__all__ = ["ZONE_MAKERS", "at_time_zone", "offset_minutes", "offset_name", "written", "zone_argument"]

_WITH_ZONE: Final = "timestamp with time zone"
_MOMENTS: Final = frozenset({"timestamp", _WITH_ZONE})
_CODE: Final = "INVALID_FUNCTION_ARGUMENT"


def written(kind: Type, name: str, write: Callable[..., str], *arguments: e.Typed, key: Any = None) -> e.Typed:
    """Make an operation that is printed by a function of its own; see `rowmerge_nb.sql.typed.expressions.Written`."""
    return e.Apply(kind, "written", arguments, e.Written(name, key, write))


def _unknown_to(value: e.Typed, kind: Type) -> e.Typed:
    return e.Constant(kind, None) if value.type == UNKNOWN else value


def at_time_zone(analyzer: CallAnalyzer, value: e.Typed, zone: e.Typed, node: Expression) -> e.Typed:
    """Make ``value AT TIME ZONE zone``: the same instant, with that zone."""
    value = _unknown_to(value, Type(_WITH_ZONE, (3,)))
    if value.type.base == "timestamp":
        value = analyzer.coerce(value, Type(_WITH_ZONE, value.type.parameters))
    if value.type.base == "time":
        analyzer.refuse("The type time with time zone is not supported by this engine", node)
    if value.type.base != _WITH_ZONE:
        said = f"Type of value must be a time or timestamp with or without time zone (actual {value.type})"
        analyzer.context.error("TYPE_MISMATCH", said, node.place)
    kind = value.type
    name = zone_argument(analyzer, zone, node)

    def write(fail: Callable[..., str], text: str, into: str) -> str:
        return with_zone(instant_of(text, kind), into)

    return written(zoned(kind), "at time zone", write, value, name)


def zone_argument(analyzer: CallAnalyzer, zone: e.Typed, node: Expression) -> e.Typed:
    """Give the name of a zone: a known one is checked here, another one where it is used."""
    if zone.type == INTERVAL_DAY:
        return written(VARCHAR, "zone of interval", _offset_name, zone)
    if not (is_text(zone.type) or zone.type == UNKNOWN):
        said = f"Type of time zone must be varchar or interval day to second (actual {zone.type})"
        analyzer.context.error("TYPE_MISMATCH", said, node.place)
    if isinstance(zone, e.Constant):
        name = canonical_zone(zone.value) if zone.value is not None else None
        if zone.value is not None and name is None:
            analyzer.context.error("NOT_SUPPORTED", f"Time zone not supported: {zone.value}", node.place)
        return e.Constant(VARCHAR, name)
    return written(VARCHAR, "zone", _checked_zone, zone)


def _checked_zone(fail: Callable[..., str], text: str) -> str:
    known = f"try_cast(concat('2000-01-01 00:00:00 ', {text}) AS TIMESTAMP) IS NOT NULL"
    refused = fail("NOT_SUPPORTED", "'Time zone not supported: '", text)
    return f"CASE WHEN {text} IS NULL OR {known} THEN {written_zone(text)} ELSE {refused} END"


def _offset_name(fail: Callable[..., str], text: str) -> str:
    minutes = f"CAST(extract(DAY FROM {text}) * 1440 + extract(HOUR FROM {text}) * 60 + extract(MINUTE FROM {text}) AS INT)"
    return offset_name(fail, minutes)


def offset_name(fail: Callable[..., str], minutes: str) -> str:
    """Write the name of the zone that is so many minutes away from UTC."""
    name = f"concat(IF({minutes} < 0, '-', '+'), format_string('%02d:%02d', abs({minutes}) div 60, abs({minutes}) % 60))"
    far = fail(_CODE, f"concat('Invalid offset minutes ', CAST({minutes} AS STRING))")
    return f"CASE WHEN {minutes} = 0 THEN 'UTC' WHEN abs({minutes}) <= 840 OR {minutes} IS NULL THEN {name} ELSE {far} END"


def _at_timezone(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    return at_time_zone(analyzer, values[0], values[1], node) if len(values) == 2 and values[0].type.base in _MOMENTS else None


def _with_timezone(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 2 or values[0].type.base not in {"timestamp", "date"} or not is_text(values[1].type):
        return None
    value = values[0] if values[0].type.base == "timestamp" else analyzer.coerce(values[0], Type("timestamp", (0,)))
    return _from_clock(value, zone_argument(analyzer, values[1], node))


def _from_clock(value: e.Typed, zone: e.Typed) -> e.Typed:
    """The wall clock of a zone as a timestamp with that zone."""

    def write(fail: Callable[..., str], text: str, name: str) -> str:
        return with_zone(f"to_utc_timestamp(CAST({text} AS TIMESTAMP), {name})", name)

    return written(zoned(Type(_WITH_ZONE, value.type.parameters)), "with_timezone", write, value, zone)


def _zone_name(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 1 or values[0].type.base != _WITH_ZONE:
        return None
    kind = values[0].type
    return written(VARCHAR, "timezone", lambda _, text: f"IF({text} IS NULL, NULL, {zone_of(text, kind)})", values[0])


def offset_minutes(text: str, kind: Type) -> str:
    """Write the minutes between a wall clock and UTC."""
    if not is_zoned(kind):
        return "0L"
    return f"((unix_micros(CAST({local(text, kind)} AS TIMESTAMP)) - unix_micros({instant_of(text, kind)})) div 60000000)"


def _timezone_part(divide: str) -> Maker:
    def make(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
        if len(values) != 1 or values[0].type.base != _WITH_ZONE:
            return None
        kind = values[0].type
        spark = "IF({0} IS NULL, NULL, CAST({1} " + divide + " 60 AS BIGINT))"
        return written(BIGINT, f"timezone {divide}", lambda _, text: spark.format(text, offset_minutes(text, kind)), values[0])

    return make


ZONE_MAKERS: Final[dict[str, Maker]] = {
    "at_timezone": _at_timezone,
    "with_timezone": _with_timezone,
    "timezone": _zone_name,
    "timezone_hour": _timezone_part("div"),
    "timezone_minute": _timezone_part("%"),
}
"""The functions of zones; see `rowmerge_nb.sql.analyzer.moments`."""
