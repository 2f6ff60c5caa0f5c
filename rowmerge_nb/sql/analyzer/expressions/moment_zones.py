"""Time zones in expressions."""

# All makers have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.types import BIGINT, DATE, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import INTERVAL_DAY, is_text, is_zoned, zoned
from rowmerge_nb.sql.typed.zones import EMPTY_ZONE, UNKNOWN_ZONES, canonical_zone, session_zone

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
    from rowmerge_nb.sql.analyzer.expressions.moment_calls import Maker
    from rowmerge_nb.sql.tree.syntax import Expression

_WITH_ZONE: Final = "timestamp with time zone"
_MOMENTS: Final = frozenset({"timestamp", _WITH_ZONE})


def written(sql_type: Type, name: str, *arguments: e.Typed, key: Any = None) -> e.Typed:
    return e.Apply(sql_type, "written", arguments, e.NamedOperation(name, key))


def at_time_zone(
    analyzer: CallAnalyzer, value: e.Typed, zone: e.Typed, node: Expression
) -> e.Typed:
    if value.type.base == "timestamp":
        value = analyzer.coerce(value, Type(_WITH_ZONE, value.type.parameters))
    if value.type.base == "time":
        analyzer.refuse("The type time with time zone is not supported by this engine", node)
    if value.type.base != _WITH_ZONE:
        analyzer.context.error(
            "TYPE_MISMATCH",
            "Type of value must be a time or timestamp with or without time zone (actual"
            f" {value.type})",
            node.error_span,
        )
    if not _is_zone(zone):
        analyzer.not_found("at_timezone", [value, zone], node)
    if e.is_null(value):
        return e.Constant(value.type, None)
    return written(zoned(value.type), "at time zone", value, zone_argument(analyzer, zone, node))


def in_one_zone(value: e.Typed) -> bool:
    """Return whether a timestamp has the same zone in all rows, by AT TIME ZONE or with_timezone
    with a constant.
    """
    if not isinstance(value, e.Apply):
        return False
    if isinstance(value.detail, e.NamedOperation) and value.detail.name in {
        "at time zone",
        "with_timezone",
    }:
        return isinstance(value.arguments[-1], e.Constant)
    zoned_arguments = [argument for argument in value.arguments if is_zoned(argument.type)]
    return len(zoned_arguments) == 1 and in_one_zone(zoned_arguments[0])


def _is_zone(value: e.Typed) -> bool:
    return is_text(value.type) or value.type in {UNKNOWN, INTERVAL_DAY}


def zone_argument(
    analyzer: CallAnalyzer, zone: e.Typed, node: Expression, *, unknown: str = "zone"
) -> e.Typed:
    """Return a zone's name; constants are checked here, others at run time, with the error
    ``unknown``.
    """
    if zone.type == INTERVAL_DAY:
        return written(VARCHAR, "zone of interval", zone)
    if isinstance(zone, e.Constant):
        name = canonical_zone(zone.value) if zone.value is not None else None
        if zone.value is not None and name is None:
            code, *message_parts = UNKNOWN_ZONES[unknown] if zone.value else EMPTY_ZONE
            analyzer.context.error(
                code,
                zone.value.join(message_parts) if zone.value else message_parts[0],
                node.error_span,
            )
        return e.Constant(VARCHAR, name)
    return written(VARCHAR, unknown, zone)


def _is_at_clock(value: e.Typed) -> bool:
    return value.type == DATE or value.type.base in _MOMENTS


def _with_zone(analyzer: CallAnalyzer, value: e.Typed) -> e.Typed:
    if value.type.base == _WITH_ZONE:
        return value
    return analyzer.coerce(value, Type(_WITH_ZONE, value.type.parameters or (0,)))


def _at_timezone(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 2 or not _is_at_clock(values[0]) or not _is_zone(values[1]):
        return None
    return at_time_zone(analyzer, _with_zone(analyzer, values[0]), values[1], node)


def _with_timezone(
    analyzer: CallAnalyzer, values: list[e.Typed], node: Expression
) -> e.Typed | None:
    if (
        len(values) != 2
        or values[0].type.base not in {"timestamp", "date"}
        or not is_text(values[1].type)
    ):
        return None
    value = (
        values[0]
        if values[0].type.base == "timestamp"
        else analyzer.coerce(values[0], Type("timestamp", (0,)))
    )
    if e.is_null(value):
        return e.Constant(Type(_WITH_ZONE, value.type.parameters), None)
    return _from_clock(value, zone_argument(analyzer, values[1], node))


def _from_clock(value: e.Typed, zone: e.Typed) -> e.Typed:
    return written(zoned(Type(_WITH_ZONE, value.type.parameters)), "with_timezone", value, zone)


def _zone_name(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 1 or not _is_at_clock(values[0]):
        return None
    return written(VARCHAR, "timezone", _with_zone(analyzer, values[0]))


def _timezone_part(name: str) -> Maker:
    def make(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
        if len(values) != 1 or not (_is_at_clock(values[0]) or values[0].type.base == "time"):
            return None
        return written(BIGINT, name, _with_zone(analyzer, values[0]))

    return make


def _current_zone(
    analyzer: CallAnalyzer, values: list[e.Typed], node: Expression
) -> e.Typed | None:
    return None if values else e.Constant(VARCHAR, session_zone())


ZONE_MAKERS: Final[dict[str, Maker]] = {
    "at_timezone": _at_timezone,
    "current_timezone": _current_zone,
    "with_timezone": _with_timezone,
    "timezone": _zone_name,
    "timezone_hour": _timezone_part("timezone_hour"),
    "timezone_minute": _timezone_part("timezone_minute"),
}
"""The functions of zones."""
