"""Analyzes CALL."""

# Context.error never returns.

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.constancy import refuse_mixed, refuse_subqueries
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope
from rowmerge_nb.sql.analyzer.statements.returning import typed
from rowmerge_nb.sql.missing_catalog import unknown_catalog
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.typed.type_rules import can_coerce

if TYPE_CHECKING:
    from rowmerge_nb.spi.procedures import Procedure
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.tree import syntax as s


def call(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.CallStatement)
    name = _name(context, statement)
    catalog, schema, _ = name
    procedures = context.tables.procedures(catalog)
    procedure = next(
        (
            candidate
            for candidate in procedures
            if (catalog, candidate.schema, candidate.name) == name
        ),
        None,
    )
    if procedure is None:
        listed = ", ".join(f"{candidate.schema}.{candidate.name}" for candidate in procedures)
        hint = (
            f"Catalog '{catalog}' has: {listed}."
            if listed
            else f"Catalog '{catalog}' has no procedures."
        )
        at = statement.name.span
        error = AnalysisError(
            f"Procedure not registered: {schema}.{name[2]}", code="PROCEDURE_NOT_FOUND", hint=hint
        )
        # Trino reports no position.
        error.about = (at.line, at.column, at.end - at.start)
        raise error
    arguments = _arguments(context, statement, procedure)
    types = {argument.name: argument.type for argument in procedure.arguments}
    values = {}
    for argument, value in arguments.items():
        refuse_subqueries(context, value)
        analyzer = ExpressionAnalyzer(context, Scope(()), ExpressionSite("CALL"))
        tree = analyzer.analyze(value)
        if not can_coerce(tree.type, types[argument]):
            context.error(
                "TYPE_MISMATCH",
                f"Cannot cast type {tree.type} to {types[argument]}",
                value.error_span,
            )
        values[argument] = typed(context, analyzer.coerce(tree, types[argument]), value.span)
    return a.CallAnalysis(statement.text, (), tuple(context.notices), name, procedure, values)


def _name(context: Context, statement: st.CallStatement) -> tuple[str, str, str]:
    parts = [part.value for part in statement.name.parts]
    if len(parts) > 3:
        context.error(
            "SYNTAX_ERROR", f"Too many dots in table name: {'.'.join(parts)}", statement.name.span
        )
    catalog, schema, name = (*context.tables.default()[: 3 - len(parts)], *parts)
    if catalog not in context.tables.catalogs():
        raise unknown_catalog(catalog, context.tables.catalogs()).at(
            context.statement_span(statement.name.span)
        )
    return catalog, schema, name


def _arguments(
    context: Context, statement: st.CallStatement, procedure: Procedure
) -> dict[str, s.Expression]:
    whole, names = context.statement_span(), [argument.name for argument in procedure.arguments]
    hint = f"Its arguments are: {', '.join(names) or 'none'}."
    refuse_mixed(context, statement.arguments)
    arguments: dict[str, s.Expression] = {}
    for index, argument in enumerate(statement.arguments):
        if argument.name is None and index >= len(names):
            context.error("INVALID_ARGUMENTS", "Too many arguments for procedure", whole, hint)
        display_name = (
            names[index].upper()
            if argument.name is None
            else _canonical(argument.name, context.text)
        )
        name = display_name.lower() if display_name == display_name.upper() else display_name
        if name in arguments:
            context.error(
                "INVALID_ARGUMENTS", f"Duplicate procedure argument: {display_name}", argument.span
            )
        if name not in names:
            context.error(
                "INVALID_ARGUMENTS", f"Unknown argument name: {display_name}", argument.span, hint
            )
        arguments[name] = argument.value
    for parameter in procedure.arguments:
        if parameter.required and parameter.name not in arguments:
            context.error(
                "INVALID_ARGUMENTS",
                f"Required procedure argument '{parameter.name.upper()}' is missing",
                whole,
                hint,
            )
    return arguments


def _canonical(name: st.Identifier, text: str) -> str:
    return name.text if name.span.of(text).startswith('"') else name.text.upper()
