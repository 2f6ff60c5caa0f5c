"""Time zones in expressions: giving a timestamp a zone, asking for it, and the offset from UTC that it means."""

# All makers of calls have one signature, whether they need all of it or not.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.types import BIGINT, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.types import INTERVAL_DAY, is_text, zoned
from rowmerge_nb.sql.typed.zones import canonical_zone

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.calls import CallAnalyzer
    from rowmerge_nb.sql.analyzer.moments import Maker
    from rowmerge_nb.sql.tree.syntax import Expression

__all__ = ["ZONE_MAKERS", "at_time_zone", "written", "zone_argument"]

_WITH_ZONE: Final = "timestamp with time zone"
_MOMENTS: Final = frozenset({"timestamp", _WITH_ZONE})


def written(kind: Type, name: str, *arguments: e.Typed, key: Any = None) -> e.Typed:
    """Make an operation that is printed by a function of its own; see `rowmerge_nb.sql.typed.expressions.Written`."""
    return e.Apply(kind, "written", arguments, e.Written(name, key))


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
        analyzer.context.error("TYPE_MISMATCH", said, node.error_span)
    return written(zoned(value.type), "at time zone", value, zone_argument(analyzer, zone, node))


def zone_argument(analyzer: CallAnalyzer, zone: e.Typed, node: Expression) -> e.Typed:
    """Give the name of a zone: a known one is checked here, another one where it is used."""
    if zone.type == INTERVAL_DAY:
        return written(VARCHAR, "zone of interval", zone)
    if not (is_text(zone.type) or zone.type == UNKNOWN):
        said = f"Type of time zone must be varchar or interval day to second (actual {zone.type})"
        analyzer.context.error("TYPE_MISMATCH", said, node.error_span)
    if isinstance(zone, e.Constant):
        name = canonical_zone(zone.value) if zone.value is not None else None
        if zone.value is not None and name is None:
            analyzer.context.error("INVALID_FUNCTION_ARGUMENT", f"'{zone.value}' is not a valid time zone", node.error_span)
        return e.Constant(VARCHAR, name)
    return written(VARCHAR, "zone", zone)


def _at_timezone(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    return at_time_zone(analyzer, values[0], values[1], node) if len(values) == 2 and values[0].type.base in _MOMENTS else None


def _with_timezone(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 2 or values[0].type.base not in {"timestamp", "date"} or not is_text(values[1].type):
        return None
    value = values[0] if values[0].type.base == "timestamp" else analyzer.coerce(values[0], Type("timestamp", (0,)))
    return _from_clock(value, zone_argument(analyzer, values[1], node))


def _from_clock(value: e.Typed, zone: e.Typed) -> e.Typed:
    """The wall clock of a zone as a timestamp with that zone."""
    return written(zoned(Type(_WITH_ZONE, value.type.parameters)), "with_timezone", value, zone)


def _zone_name(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 1 or values[0].type.base != _WITH_ZONE:
        return None
    return written(VARCHAR, "timezone", values[0])


def _timezone_part(name: str) -> Maker:
    def make(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
        if len(values) != 1 or values[0].type.base != _WITH_ZONE:
            return None
        return written(BIGINT, name, values[0])

    return make


ZONE_MAKERS: Final[dict[str, Maker]] = {
    "at_timezone": _at_timezone,
    "with_timezone": _with_timezone,
    "timezone": _zone_name,
    "timezone_hour": _timezone_part("timezone_hour"),
    "timezone_minute": _timezone_part("timezone_minute"),
}
"""The functions of zones; see `rowmerge_nb.sql.analyzer.moments`."""
