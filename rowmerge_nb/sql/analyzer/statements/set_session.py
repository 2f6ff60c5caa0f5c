"""Analyzes SET TIME ZONE, SET SESSION and RESET SESSION."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.types import INTEGER, VARCHAR
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.constancy import refuse_subqueries
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope
from rowmerge_nb.sql.session_properties import RECURSION, SESSION_HINT, TIME_ZONE
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import INTERVAL_DAY, can_coerce
from rowmerge_nb.sql.typed.zones import canonical_zone

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context

_FARTHEST = 14 * 60
"""The maximum offset of a zone from UTC, in minutes."""

_CODE: Final = "INVALID_SESSION_PROPERTY"


def set_time_zone(context: Context, statement: st.Statement) -> a.SettingAnalysis:
    assert isinstance(statement, st.SetTimeZone)
    zone = None if statement.zone is None else _zone(context, statement.zone)
    return a.SettingAnalysis(
        context.text, (), tuple(context.notices), "SET TIME ZONE", (), (), TIME_ZONE, zone
    )


def _value(context: Context, value: e.Typed, node: s.Expression) -> Any:
    return value.value if isinstance(value, e.Constant) else context.evaluate([value], node.span)[0]


def _zone(context: Context, node: s.Expression) -> str:
    refuse_subqueries(context, node)
    value = ExpressionAnalyzer(context, Scope(()), ExpressionSite("SET TIME ZONE")).analyze(node)
    span = context.statement_span(node.span)
    if value.type.base != "varchar" and value.type != INTERVAL_DAY:
        expression_text = formatted(node, context.text)
        context.error(
            "TYPE_MISMATCH",
            f"Expected expression of varchar or interval day-time type, but '{expression_text}' has"
            f" {value.type} type",
            span,
        )
    zone_value = _value(context, value, node)
    if zone_value is None:
        context.error(
            "GENERIC_INTERNAL_ERROR",
            f"TIME ZONE expression '{formatted(node, context.text)}' not supported",
            span,
        )
    if value.type == INTERVAL_DAY:
        seconds = (
            Decimal(zone_value)
            if isinstance(zone_value, str)
            else Decimal(zone_value.total_seconds())
        )
        return _of_interval(context, seconds, span)
    if not zone_value:
        context.error("GENERIC_INTERNAL_ERROR", "Zone id is an empty string", span)
    zone = canonical_zone(zone_value)
    if zone is None:
        context.refuse(f"Time zone not supported: {zone_value}", span)
    return zone


def _of_interval(context: Context, seconds: Decimal, span: st.Span) -> str:
    minutes, rest = divmod(abs(seconds), 60)
    if rest:
        context.error(
            "INVALID_LITERAL", "Invalid TIME ZONE offset interval: interval contains seconds", span
        )
    if minutes > _FARTHEST:
        signed_minutes = -minutes if seconds < 0 else minutes
        context.error("INVALID_FUNCTION_ARGUMENT", f"Invalid offset minutes {signed_minutes}", span)
    return (
        f"{'-' if seconds < 0 else '+'}{int(minutes) // 60:02d}:{int(minutes) % 60:02d}"
        if minutes
        else "UTC"
    )


def set_session(context: Context, statement: st.Statement) -> a.SettingAnalysis:
    assert isinstance(statement, st.SetSession)
    name = ".".join(part.value for part in statement.name.parts)
    if name not in {TIME_ZONE, RECURSION}:
        span = context.statement_span(statement.name.span)
        context.refuse(
            f"The session property {name} is not supported by this engine", span, SESSION_HINT
        )
    value = None if statement.value is None else _property_value(context, name, statement.value)
    statement_kind = f"{'RESET' if value is None else 'SET'} SESSION"
    return a.SettingAnalysis(
        context.text, (), tuple(context.notices), statement_kind, (), (), name, value
    )


def _property_value(context: Context, name: str, node: s.Expression) -> str:
    span, expression_text = node.error_span, formatted(node, context.text)
    refuse_subqueries(context, node)
    value = ExpressionAnalyzer(context, Scope(()), ExpressionSite("SET SESSION")).analyze(node)
    expected = VARCHAR if name == TIME_ZONE else INTEGER
    if not can_coerce(value.type, expected):
        context.error(
            _CODE,
            f"Unable to set session property '{name}' to '{expression_text}': it must be"
            f" {expected}",
            span,
        )
    result = _value(context, value, node)
    if result is None:
        context.error(
            _CODE,
            f"Unable to set session property '{name}' to '{expression_text}': it must not be null",
            span,
        )
    if name == TIME_ZONE:
        zone = canonical_zone(result)
        if zone is None:
            context.error(_CODE, f"Time zone not supported: {result}", span)
        return zone
    if int(result) < 1:
        context.error(_CODE, f"{RECURSION} must be equal or greater than 1", span)
    return str(result)
