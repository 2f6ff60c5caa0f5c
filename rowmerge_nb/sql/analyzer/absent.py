"""Analyzes statements about what no store here has: materialized views, statistics that are gathered, other names of schemas.

What they name must be there all the same, as in Trino; only then is it told that this cannot be done.
"""

# Context.error never returns.

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.context import dotted
from rowmerge_nb.sql.analyzer.definitions import completed_schema, is_known_schema, known_schema
from rowmerge_nb.sql.analyzer.queries import QueryAnalyzer
from rowmerge_nb.sql.tree import statements as st

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.sql.analyzer.context import Context

_INSTEAD: Final = {
    "CREATE": "Write CREATE VIEW, or CREATE TABLE AS for the rows as they are now.",
    "DROP": "Write DROP VIEW of a view, or DROP TABLE of a table.",
    "ALTER": "Write ALTER TABLE of a table that has its rows.",
    "REFRESH": "Write CREATE TABLE AS for the rows as they are now.",
    "SHOW CREATE": "Write SHOW CREATE VIEW of a view, or SHOW CREATE TABLE of a table.",
}
"""What to write instead of a statement about a materialized view."""


def check_properties(context: Context, kind: str, catalog: str, spans: Mapping[str, st.Span]) -> None:
    """Refuse properties of something that has none.

    Args:
        context: the statement's state.
        kind: what it is: ``schema``, ``analyze``, ``materialized view``.
        catalog: the catalog that it is of.
        spans: where the name of each property stands.
    """
    for name, span in spans.items():
        context.error(
            f"INVALID_{kind.upper().replace(' ', '_')}_PROPERTY",
            f"Catalog '{catalog}' {kind} property '{name}' does not exist",
            span,
            "Leave it out.",
        )


def materialized_view(context: Context, statement: st.Statement) -> a.Analysis:
    """Analyze a statement about a materialized view: there is none.

    Raises:
        AnalysisError: what is wrong with the query, INVALID_MATERIALIZED_VIEW_PROPERTY, TABLE_NOT_FOUND, GENERIC_USER_ERROR, or NOT_SUPPORTED.
    """
    assert isinstance(statement, st.MaterializedView)
    kind, name, span = statement.kind, statement.name, context.statement_span(statement.name.span)
    catalog = context.completed(name)[0]
    if statement.query is not None:
        context.place(name, span)
        QueryAnalyzer(context).query(statement.query.tree)
        check_properties(context, "materialized view", catalog, statement.property_spans)
        context.check_refusals()
        context.error("NOT_SUPPORTED", "This connector does not support creating materialized views", span, _INSTEAD[kind])
    check_properties(context, "materialized view", catalog, statement.property_spans)
    _is_none(context, statement)
    return a.DefinitionAnalysis(
        context.text, (), tuple(context.notices), f"{kind} MATERIALIZED VIEW", context.completed(name), skipped=True
    )


def _is_none(context: Context, statement: st.MaterializedView) -> None:
    """Say that a view is none that is materialized, unless the statement is content with that."""
    kind, name, span = statement.kind, statement.name, context.statement_span(statement.name.span)
    qualified = dotted(context.completed(name))
    view = context.known_view(name)
    table = None if view is not None else context.known_table(name)
    found = "view" if view is not None else "table" if table is not None and table.dataframe is None else ""
    if kind == "SHOW CREATE" and found:
        said = f"Relation '{qualified}' is a {found}, not a materialized view"
        context.error("NOT_SUPPORTED", said, span, _INSTEAD[kind])
    said = f"Materialized {'View' if kind == 'ALTER' else 'view'} '{qualified}' does not exist"
    if kind in {"DROP", "ALTER"}:
        if found:
            meant = f"{kind} {found.upper()} {qualified}{' RENAME TO ...' if kind == 'ALTER' else ''}"
            said += f", but a {found} with that name exists. Did you mean {meant}?"
        elif statement.if_exists:
            return
    context.error("GENERIC_USER_ERROR" if kind == "DROP" else "TABLE_NOT_FOUND", said, span, _INSTEAD[kind])


def analyze_table(context: Context, statement: st.Statement) -> NoReturn:
    """Analyze ANALYZE: stores keep what they know by themselves.

    Raises:
        AnalysisError: TABLE_NOT_FOUND, INVALID_ANALYZE_PROPERTY, or NOT_SUPPORTED.
    """
    assert isinstance(statement, st.AnalyzeTable)
    span = context.statement_span(statement.name.span)
    context.refuse_view(statement.name, "Analyzing views is not supported")
    target = context.target(statement.name, span)
    check_properties(context, "analyze", target.catalog, statement.property_spans)
    context.error("NOT_SUPPORTED", "This connector does not support analyze", span, "Omit the statement.")


def rename_schema(context: Context, statement: st.Statement) -> NoReturn:
    """Analyze ``ALTER SCHEMA ... RENAME TO``: stores cannot.

    Raises:
        AnalysisError: SCHEMA_NOT_FOUND, SCHEMA_ALREADY_EXISTS, or NOT_SUPPORTED.
    """
    assert isinstance(statement, st.RenameSchema)
    span = context.statement_span(statement.name.span)
    catalog, schema = completed_schema(context, statement.name)
    known_schema(context, catalog, schema, span)
    aimed = context.statement_span(statement.to.span)
    if is_known_schema(context, catalog, statement.to.value):
        context.error(
            "SCHEMA_ALREADY_EXISTS",
            f"Target schema '{catalog}.{statement.to.value}' already exists",
            aimed,
            "Choose another name.",
        )
    context.error(
        "NOT_SUPPORTED",
        "This connector does not support renaming schemas",
        aimed,
        "Write CREATE SCHEMA with the new name, and ALTER TABLE ... RENAME TO for each of its tables.",
    )
