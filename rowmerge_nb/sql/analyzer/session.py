"""Analyzes SET TIME ZONE, SET SESSION and RESET SESSION, and gives what SHOW SESSION lists."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope
from rowmerge_nb.sql.session_properties import LISTED, PROPERTIES, RECURSION, TIME_ZONE
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.types import INTERVAL_DAY, can_coerce
from rowmerge_nb.sql.typed.zones import canonical_zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.session_properties import SessionProperty

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
    """Give the name of the zone that an expression means."""
    query = next((part for part in s.walk(node) if isinstance(part, s.ScalarQuery)), None)
    if query is not None:
        context.error("EXPRESSION_NOT_CONSTANT", "Constant expression cannot contain a subquery", query.span)
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
    """Analyze SET SESSION and RESET SESSION: the property must be there, and take the value.

    Raises:
        AnalysisError: INVALID_SESSION_PROPERTY, CATALOG_NOT_FOUND.
    """
    assert isinstance(statement, st.SetSession)
    known = _property(context, statement.name, statement.value)
    if statement.value is None:
        return a.SettingAnalysis(context.text, (), tuple(context.notices), "RESET SESSION", (), (), known.name, None)
    value = _property_value(context, known, statement.value)
    return a.SettingAnalysis(context.text, (), tuple(context.notices), "SET SESSION", (), (), known.name, value)


def check_session(context: Context, properties: Sequence[tuple[st.TableName, s.Expression]]) -> None:
    """Check the properties of WITH SESSION; those that mean something here are set by statements of their own.

    Raises:
        AnalysisError: INVALID_SESSION_PROPERTY, CATALOG_NOT_FOUND; NOT_SUPPORTED for a property that means something here.
    """
    for name, value in properties:
        known = _property(context, name, value)
        _property_value(context, known, value)
        if known.name in {TIME_ZONE, RECURSION}:
            context.error(
                "NOT_SUPPORTED",
                f"{known.name} in WITH SESSION is not supported by this engine",
                name.span,
                f"Write SET SESSION {known.name} = ... before the query, and RESET SESSION {known.name} behind it.",
            )


def _property(context: Context, written: st.TableName, value: s.Expression | None) -> SessionProperty:
    """Find a property by its name."""
    parts = [part.value for part in written.parts]
    name, about = ".".join(parts), written.span
    span = context.statement_span(about) if value is None else value.error_span
    hint = "SHOW SESSION lists those that there are. How a statement is run is said by the options of a cell, and by arguments of run."
    if len(parts) > 2:
        context.error(_CODE, f"Invalid session property '{name}'", span, hint)
    if len(parts) == 2 and parts[0] not in context.tables.catalogs():
        context.error("CATALOG_NOT_FOUND", f"Catalog '{parts[0]}' not found", span)
    known = PROPERTIES.get(name)
    if known is None:
        context.error(_CODE, f"Session property '{name}' does not exist", span, hint)
    return known


def _property_value(context: Context, known: SessionProperty, node: s.Expression) -> str:
    """Give the value of a property as a text."""
    span = node.error_span
    unable = f"Unable to set session property '{known.name}' to '{formatted(node, context.text)}'"
    query = next((part for part in s.walk(node) if isinstance(part, s.ScalarQuery)), None)
    if query is not None:
        context.error(_CODE, f"{unable}: Constant expression cannot contain a subquery", span)
    try:
        value = ExpressionAnalyzer(context, Scope(()), ExpressionSite("SET SESSION")).analyze(node)
        if not can_coerce(value.type, known.type):
            context.error(_CODE, f"Cannot cast type {value.type} to {known.type}", span)
        found = value.value if isinstance(value, e.Constant) else context.evaluate([value], node.span)[0]
    except RowMergeError as error:
        if error.code == "NOT_SUPPORTED":
            raise
        context.error(_CODE, f"{unable}: {error.message}", span)
    if found is None:
        context.error(_CODE, f"{unable}: Session property value must not be null", span)
    text = str(found).lower() if known.type == BOOLEAN else str(found)
    if known.name == TIME_ZONE:
        zone = canonical_zone(text)
        if zone is None:
            context.error(_CODE, f"Time zone not supported: {text}", span)
        return zone
    refusal = known.refusal(text)
    if refusal is not None:
        context.error(_CODE, refusal, span)
    return text


def session_rows(context: Context) -> list[tuple[str, str, str, str, str]]:
    """Give what SHOW SESSION lists."""
    settings = context.tables.settings()
    return [
        (
            name,
            settings.get(name, known.default),
            known.default,
            str(known.type),
            "The steps of WITH RECURSIVE" if name == RECURSION else "Without effect here",
        )
        for name, known in LISTED.items()
    ]
