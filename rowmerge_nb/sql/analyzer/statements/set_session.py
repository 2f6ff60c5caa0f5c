"""Analyzes SET TIME ZONE, SET SESSION and RESET SESSION."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

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
"""So many minutes a zone is away from UTC at most."""

_CODE: Final = "INVALID_SESSION_PROPERTY"


def set_time_zone(context: Context, statement: st.Statement) -> a.SettingAnalysis:
    """Analyze SET TIME ZONE: the zone must be there; LOCAL is UTC, with which a session begins.

    Raises:
        AnalysisError: with Trino's code and message.
    """
    assert isinstance(statement, st.SetTimeZone)
    zone = None if statement.zone is None else _zone(context, statement.zone)
    return a.SettingAnalysis(context.text, (), tuple(context.notices), "SET TIME ZONE", (), (), TIME_ZONE, zone)


def _zone(context: Context, node: s.Expression) -> str:
    """Return the name of the zone that an expression means."""
    refuse_subqueries(context, node)
    value = ExpressionAnalyzer(context, Scope(()), ExpressionSite("SET TIME ZONE")).analyze(node)
    span = context.statement_span(node.span)
    if value.type.base != "varchar" and value.type != INTERVAL_DAY:
        shown = formatted(node, context.text)
        context.error(
            "TYPE_MISMATCH",
            f"Expected expression of varchar or interval day-time type, but '{shown}' has {value.type} type",
            span,
        )
    found = value.value if isinstance(value, e.Constant) else context.evaluate([value], node.span)[0]
    if found is None:
        context.error("GENERIC_INTERNAL_ERROR", f"TIME ZONE expression '{formatted(node, context.text)}' not supported", span)
    if value.type == INTERVAL_DAY:
        seconds = Decimal(found) if isinstance(found, str) else Decimal(found.total_seconds())
        return _of_interval(context, seconds, span)
    if not found:
        context.error("GENERIC_INTERNAL_ERROR", "Zone id is an empty string", span)
    zone = canonical_zone(found)
    if zone is None:
        context.error("NOT_SUPPORTED", f"Time zone not supported: {found}", span)
    return zone


def _of_interval(context: Context, seconds: Decimal, span: st.Span) -> str:
    minutes, rest = divmod(abs(seconds), 60)
    if rest:
        context.error("INVALID_LITERAL", "Invalid TIME ZONE offset interval: interval contains seconds", span)
    if minutes > _FARTHEST:
        shown = -minutes if seconds < 0 else minutes
        context.error("INVALID_FUNCTION_ARGUMENT", f"Invalid offset minutes {shown}", span)
    return f"{'-' if seconds < 0 else '+'}{int(minutes) // 60:02d}:{int(minutes) % 60:02d}" if minutes else "UTC"


def set_session(context: Context, statement: st.Statement) -> a.SettingAnalysis:
    """Analyze SET SESSION and RESET SESSION of a property that has an effect here.

    Raises:
        AnalysisError: NOT_SUPPORTED for any other property; INVALID_SESSION_PROPERTY for a value that the property cannot have.
    """
    assert isinstance(statement, st.SetSession)
    name = ".".join(part.value for part in statement.name.parts)
    if name not in {TIME_ZONE, RECURSION}:
        span = context.statement_span(statement.name.span)
        context.error("NOT_SUPPORTED", f"The session property {name} is not supported by this engine", span, SESSION_HINT)
    value = None if statement.value is None else _property_value(context, name, statement.value)
    kind = f"{'RESET' if value is None else 'SET'} SESSION"
    return a.SettingAnalysis(context.text, (), tuple(context.notices), kind, (), (), name, value)


def _property_value(context: Context, name: str, node: s.Expression) -> str:
    """Return the value of a property as text."""
    span, shown = node.error_span, formatted(node, context.text)
    refuse_subqueries(context, node)
    value = ExpressionAnalyzer(context, Scope(()), ExpressionSite("SET SESSION")).analyze(node)
    expected = VARCHAR if name == TIME_ZONE else INTEGER
    if not can_coerce(value.type, expected):
        context.error(_CODE, f"Unable to set session property '{name}' to '{shown}': it must be {expected}", span)
    result = value.value if isinstance(value, e.Constant) else context.evaluate([value], node.span)[0]
    if result is None:
        context.error(_CODE, f"Unable to set session property '{name}' to '{shown}': it must not be null", span)
    if name == TIME_ZONE:
        zone = canonical_zone(result)
        if zone is None:
            context.error(_CODE, f"Time zone not supported: {result}", span)
        return zone
    if int(result) < 1:
        context.error(_CODE, f"{RECURSION} must be equal or greater than 1", span)
    return str(result)
