"""Date and time functions that depend on a unit, a pattern, or a value's zone."""

# All makers have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BIGINT, DATE, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.analyzer.expressions.moment_zones import ZONE_MAKERS, written, zone_argument
from rowmerge_nb.sql.functions.date_patterns import (
    PatternError,
    PatternToken,
    joda_tokens,
    mysql_tokens,
)
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    can_coerce,
    common_type,
    is_exact,
    is_text,
    is_zoned,
    varchar_of,
    zoned,
)
from rowmerge_nb.sql.typed.zones import session_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
    from rowmerge_nb.sql.tree.syntax import Expression

    Maker: TypeAlias = Callable[[CallAnalyzer, list[e.Typed], Expression], e.Typed | None]

_WITH_ZONE: Final = "timestamp with time zone"
_MOMENTS: Final = frozenset({"timestamp", _WITH_ZONE})
_CODE: Final = "INVALID_FUNCTION_ARGUMENT"
_MILLISECONDS: Final = Type("timestamp", (3,))
_ZONED_MILLISECONDS: Final = zoned(Type(_WITH_ZONE, (3,)))


def moment_function(
    analyzer: CallAnalyzer, name: str, values: Sequence[e.Typed], node: Expression
) -> e.Typed | None:
    """Analyze a date or time function, unless the table of functions decides."""
    maker = _MAKERS.get(name)
    return maker(analyzer, _with_typed_nulls(name, values), node) if maker is not None else None


def _with_typed_nulls(name: str, values: Sequence[e.Typed]) -> list[e.Typed]:
    kinds = (*_NULLS.get(name, ()), *[UNKNOWN] * len(values))
    return [
        e.Constant(sql_type, None) if value.type == UNKNOWN else value
        for value, sql_type in zip(values, kinds, strict=False)
    ]


def _is_moment(value: e.Typed) -> bool:
    return value.type.base in _MOMENTS


def _on_clock(
    analyzer: CallAnalyzer, values: list[e.Typed], name: str, node: Expression
) -> e.Typed | None:
    """Analyze a function of the wall clock; DATE of text is a cast."""
    if name == "date" and len(values) == 1 and is_text(values[0].type):
        return analyzer.coerce(values[0], DATE)
    if not any(value.type.base == _WITH_ZONE for value in values):
        return None
    clocks = [
        (
            e.Apply(Type("timestamp", value.type.parameters), "cast", (value,))
            if value.type.base == _WITH_ZONE
            else value
        )
        for value in values
    ]
    return analyzer.function(name, clocks, node)


def _clock_function(name: str) -> Maker:
    return lambda analyzer, values, node: _on_clock(analyzer, values, name, node)


# -- units


def _is_dated(value: e.Typed) -> bool:
    return value.type.base in _MOMENTS or value.type.base in {"date", "time"}


def _is_moved(analyzer: CallAnalyzer, value: e.Typed, node: Expression) -> bool:
    if value.type == UNKNOWN:
        analyzer.ambiguous(node)
    return _is_dated(value)


def _date_trunc(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 2 or not is_text(values[0].type) or not _is_moved(analyzer, values[1], node):
        return None
    unit, value = values
    return written(value.type, "date_trunc", unit, value)


def _date_add(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 3 or not is_text(values[0].type) or not can_coerce(values[1].type, BIGINT):
        return None
    if not _is_moved(analyzer, values[2], node):
        return None
    unit, amount, value = values[0], analyzer.coerce(values[1], BIGINT), values[2]
    return written(value.type, "date_add", unit, amount, value)


def _date_diff(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 3 or not is_text(values[0].type):
        return None
    unit = values[0]
    if all(value.type == UNKNOWN for value in values[1:]):
        return e.Constant(BIGINT, None)
    if not (_is_dated(values[1]) or _is_dated(values[2])):
        return None
    common = common_type(values[1].type, values[2].type)
    if common is None:
        return None
    first, second = (analyzer.coerce(value, common) for value in values[1:])

    return written(BIGINT, "date_diff", unit, first, second)


# -- patterns


def _tokens(
    analyzer: CallAnalyzer,
    read: Callable[[str], tuple[PatternToken, ...]],
    pattern: e.Typed,
    node: Expression,
) -> tuple[PatternToken, ...]:
    if not isinstance(pattern, e.Constant) or pattern.value is None:
        analyzer.refuse(
            "A date pattern that is not a literal is not supported by this engine", node
        )
    try:
        return read(pattern.value)
    except PatternError as error:
        analyzer.context.error(_CODE, str(error), node.error_span)


_OF_ZONES: Final = frozenset({"zone", "zone name", "offset"})


def _format(read: Callable[[str], tuple[PatternToken, ...]], name: str) -> Maker:
    def make(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
        if (
            len(values) != 2
            or values[0].type.base not in {"date", *_MOMENTS}
            or not is_text(values[1].type)
        ):
            return None
        if any(map(e.is_null, values)):
            return e.Constant(VARCHAR, None)
        tokens = _tokens(analyzer, read, values[1], node)
        value = analyzer.coerce(values[0], _MILLISECONDS) if values[0].type == DATE else values[0]
        if value.type.base == "timestamp" and any(token.field in _OF_ZONES for token in tokens):
            analyzer.context.error(
                _CODE,
                f"{name} for TIMESTAMP type, cannot use 'Z' nor 'z' in format, as this type does"
                " not contain TZ information",
                node.error_span,
            )
        if is_zoned(value.type) and any(token.field == "zone name" for token in tokens):
            analyzer.refuse(
                "Names of time zones (z) in a pattern are not supported by this engine: write ZZZ",
                node,
            )

        return written(VARCHAR, name, value, key=tokens)

    return make


def _parse(read: Callable[[str], tuple[PatternToken, ...]], name: str, sql_type: Type) -> Maker:
    def make(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
        if len(values) != 2 or not all(is_text(value.type) for value in values):
            return None
        if any(map(e.is_null, values)):
            return e.Constant(sql_type, None)
        return written(sql_type, name, values[0], key=_tokens(analyzer, read, values[1], node))

    return make


# -- ISO 8601 and Unix time


def _from_iso8601(sql_type: Type, name: str) -> Maker:
    def make(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
        if len(values) != 1 or not is_text(values[0].type):
            return None
        return written(sql_type, name, values[0])

    return make


def _to_iso8601(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 1 or not _is_moment(values[0]):
        return None
    sql_type = values[0].type
    if sql_type.parameters[0] > 6:
        return None

    # A year has up to twelve characters, an offset six.
    decimals = sql_type.parameters[0] + 1 if sql_type.parameters[0] else 0
    longest = 22 + decimals + (6 if sql_type.base == _WITH_ZONE else 0)
    return written(varchar_of(longest), "to_iso8601", values[0])


def _from_unixtime(
    analyzer: CallAnalyzer, values: list[e.Typed], node: Expression
) -> e.Typed | None:
    if not values or not can_coerce(values[0].type, Type("double")):
        return None
    seconds = analyzer.coerce(values[0], Type("double"))
    if len(values) == 1:
        if session_zone() == "UTC":
            return written(Type(_WITH_ZONE, (3,)), "from_unixtime", seconds)
        return written(
            _ZONED_MILLISECONDS, "from_unixtime", seconds, e.Constant(VARCHAR, session_zone())
        )
    if len(values) == 2 and (is_text(values[1].type) or values[1].type == UNKNOWN):
        zone = zone_argument(analyzer, values[1], node, unknown="unsupported zone")
        return written(_ZONED_MILLISECONDS, "from_unixtime", seconds, zone)
    if len(values) == 3 and all(can_coerce(value.type, BIGINT) for value in values[1:]):
        hours, minutes = (analyzer.coerce(value, BIGINT) for value in values[1:])
        return written(_ZONED_MILLISECONDS, "from_unixtime", seconds, hours, minutes)
    return None


def _to_unixtime(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    """Read a clock in the session's zone; the table has the function for UTC."""
    if len(values) != 1 or values[0].type.base != "timestamp" or session_zone() == "UTC":
        return None
    return analyzer.function(
        "to_unixtime",
        [analyzer.coerce(values[0], Type(_WITH_ZONE, values[0].type.parameters))],
        node,
    )


def _nanoseconds(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 1 or not (
        is_exact(values[0].type) or is_text(values[0].type) or values[0].type == UNKNOWN
    ):
        return None
    analyzer.refuse(
        "Nanoseconds are not supported by this engine: its timestamps have microseconds", node
    )


_CLOCK_FUNCTIONS: Final = (
    *(
        "year",
        "quarter",
        "month",
        "week",
        "week_of_year",
        "day",
        "day_of_month",
        "day_of_week",
        "dow",
        "day_of_year",
        "doy",
    ),
    *(
        "year_of_week",
        "yow",
        "hour",
        "minute",
        "second",
        "millisecond",
        "last_day_of_month",
        "date",
    ),
)

_NULLS: Final[dict[str, tuple[Type, ...]]] = {
    **dict.fromkeys(("date_format", "format_datetime", "with_timezone"), (_MILLISECONDS, VARCHAR)),
    **dict.fromkeys(("date_parse", "parse_datetime"), (VARCHAR, VARCHAR)),
    **dict.fromkeys(
        ("from_iso8601_timestamp", "from_iso8601_date", "date_trunc", "date_diff"), (VARCHAR,)
    ),
    **dict.fromkeys(("timezone", "timezone_hour", "timezone_minute"), (Type(_WITH_ZONE, (3,)),)),
    "at_timezone": (Type(_WITH_ZONE, (3,)), VARCHAR),
    "date_add": (VARCHAR, BIGINT),
}
"""The types of untyped NULLs by position."""

_MAKERS: Final[dict[str, Maker]] = {
    **ZONE_MAKERS,
    **{name: _clock_function(name) for name in _CLOCK_FUNCTIONS},
    "date_trunc": _date_trunc,
    "date_add": _date_add,
    "date_diff": _date_diff,
    "date_format": _format(mysql_tokens, "date_format"),
    "format_datetime": _format(joda_tokens, "format_datetime"),
    "date_parse": _parse(mysql_tokens, "date_parse", _MILLISECONDS),
    "parse_datetime": _parse(joda_tokens, "parse_datetime", _ZONED_MILLISECONDS),
    "from_iso8601_timestamp": _from_iso8601(_ZONED_MILLISECONDS, "from_iso8601_timestamp"),
    "from_iso8601_date": _from_iso8601(DATE, "from_iso8601_date"),
    "to_iso8601": _to_iso8601,
    "from_unixtime": _from_unixtime,
    "to_unixtime": _to_unixtime,
    "from_unixtime_nanos": _nanoseconds,
    "from_iso8601_timestamp_nanos": _nanoseconds,
}
