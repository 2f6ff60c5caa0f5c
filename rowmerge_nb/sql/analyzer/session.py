"""Analyzes SET TIME ZONE and SET SESSION: the zone of a session is UTC, and it has no properties."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn

from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.types import INTERVAL_DAY
from rowmerge_nb.sql.typed.zones import canonical_zone

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context

__all__ = ["set_session", "set_time_zone"]

_FARTHEST = 14 * 60
"""So many minutes a zone is away from UTC at most."""


def set_time_zone(context: Context, statement: st.Statement) -> a.Analysis:
    """Analyze SET TIME ZONE: the zone must be there, and is UTC under one of its names.

    Raises:
        AnalysisError: with Trino's code and message; NOT_SUPPORTED for a zone that is not UTC.
    """
    assert isinstance(statement, st.SetTimeZone)
    if statement.zone is not None and _zone(context, statement.zone) != "UTC":
        hint = "Write x AT TIME ZONE 'Europe/Berlin', or with_timezone(x, 'Europe/Berlin')."
        said = "The time zone of a session is UTC in this engine, and cannot be set to another one"
        context.error("NOT_SUPPORTED", said, context.statement_span(statement.zone.span), hint)
    return a.ListingAnalysis(context.text, (), tuple(context.notices), "SET TIME ZONE", (), ())


def _zone(context: Context, node: s.Expression) -> str:
    """Give the name of the zone that an expression means."""
    query = next((part for part in s.walk(node) if isinstance(part, s.ScalarQuery)), None)
    if query is not None:
        context.error("EXPRESSION_NOT_CONSTANT", "Constant expression cannot contain a subquery", query.span)
    value = ExpressionAnalyzer(context, Scope(()), ExpressionSite("SET TIME ZONE")).analyze(node)
    span = context.statement_span(node.span)
    if value.type.base != "varchar" and value.type != INTERVAL_DAY:
        shown = formatted(node, context.text)
        said = f"Expected expression of varchar or interval day-time type, but '{shown}' has {value.type} type"
        context.error("TYPE_MISMATCH", said, span)
    found = value.value if isinstance(value, e.Constant) else context.evaluate([value], node.span)[0]
    if found is None:
        said = f"TIME ZONE expression '{formatted(node, context.text)}' not supported"
        context.error("GENERIC_INTERNAL_ERROR", said, span)
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


def set_session(context: Context, statement: st.Statement) -> NoReturn:
    """Refuse SET SESSION and RESET SESSION: there are no properties.

    Raises:
        AnalysisError: INVALID_SESSION_PROPERTY, CATALOG_NOT_FOUND.
    """
    assert isinstance(statement, st.SetSession)
    parts = [part.value for part in statement.name.parts]
    name, about = ".".join(parts), statement.name.span
    span = context.statement_span(about) if statement.value is None else statement.value.error_span
    hint = "How a statement is run is said by the options of a cell, and by arguments of run."
    if len(parts) > 2:
        context.error("INVALID_SESSION_PROPERTY", f"Invalid session property '{name}'", span, hint)
    if len(parts) == 2 and parts[0] not in context.tables.catalogs():
        context.error("CATALOG_NOT_FOUND", f"Catalog '{parts[0]}' not found", span)
    context.error("INVALID_SESSION_PROPERTY", f"Session property '{name}' does not exist", span, hint)
