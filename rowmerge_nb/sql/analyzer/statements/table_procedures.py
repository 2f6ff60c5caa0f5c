"""Analyzes ALTER TABLE EXECUTE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.spi.page_source import Constraint
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.constancy import refuse_mixed, refuse_subqueries
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope, ScopeField
from rowmerge_nb.sql.analyzer.statements.updatable_views import WHERE_TYPE
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed.domains import conjuncts, constraint_of
from rowmerge_nb.sql.typed.type_rules import can_coerce

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.spi.procedures import TableProcedure, TableProcedureArgument
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.tree import statements as st
    from rowmerge_nb.sql.tree import syntax as s

_WHOLE: Final = "Compare partition columns with constants, and join such comparisons with AND."


def table_execute(
    context: Context, statement: st.AlterTable, action: st.TableExecute
) -> a.TableExecuteAnalysis:
    context.refuse_view(statement.name, "ALTER TABLE EXECUTE is not supported for views")
    target = context.target(statement.name, statement.word)
    if target.handle is None:
        shadowed = target.dataframe is not None and len(target.name) == 1
        hint = (
            target.remedy
            if shadowed
            else "Tables of Iceberg and Delta Lake have procedures: docs/stores-iceberg-upkeep.md, docs/stores-delta.md."
        )
        context.refuse("This connector does not support table procedures", None, hint)
    procedure = _procedure(context, target.catalog, action.procedure)
    constraint = _constraint(context, procedure, target, statement, action.where)
    arguments = _arguments(context, target.catalog, procedure, action)
    return a.TableExecuteAnalysis(
        statement.text,
        tuple(context.bindings.values()),
        tuple(context.notices),
        target,
        procedure,
        arguments,
        constraint,
        None if action.where is None else action.where.error_span,
        origins=tuple(context.origins),
    )


def _procedure(context: Context, catalog: str, name: st.Identifier) -> TableProcedure:
    by_name = {procedure.name: procedure for procedure in context.tables.table_procedures(catalog)}
    procedure_name = context.canonical(name)
    if procedure_name not in by_name:
        hint = did_you_mean(procedure_name, by_name) or (
            f"There are: {', '.join(by_name)}." if by_name else f"Catalog '{catalog}' has none."
        )
        error = AnalysisError(
            f"Table procedure not registered: {procedure_name}",
            code="PROCEDURE_NOT_FOUND",
            hint=hint,
        )
        # Trino reports no position.
        error.about = (name.span.line, name.span.column, name.span.end - name.span.start)
        raise error
    return by_name[procedure_name]


def _constraint(
    context: Context,
    procedure: TableProcedure,
    target: a.TableBinding,
    statement: st.AlterTable,
    where: s.Expression | None,
) -> Constraint:
    """Return WHERE as a complete constraint: other rows must not be rewritten."""
    if where is None:
        return Constraint()
    if not procedure.rewrites:
        context.refuse(
            f"WHERE not supported for procedure {procedure.name}",
            context.statement_span(),
            "Remove it.",
        )
    qualifier = tuple(part.value for part in statement.name.parts)
    fields = tuple(
        ScopeField(context.symbols.new(c.name), c.name, c.type, qualifier, target=True)
        for c in target.readable
    )
    analyzer = ExpressionAnalyzer(
        context, Scope(fields), ExpressionSite("WHERE clause", judged_whole=True)
    )
    condition = analyzer.condition(where, WHERE_TYPE)
    names = {field.symbol: field.name for field in fields if field.name is not None}
    if not all(constraint_of(part, names).domains for part in conjuncts(condition)):
        context.refuse(
            f"WHERE of procedure {procedure.name} can only restrict single columns",
            where.error_span,
            _WHOLE,
        )
    return constraint_of(condition, names)


def _arguments(
    context: Context, catalog: str, procedure: TableProcedure, action: st.TableExecute
) -> Mapping[str, Any]:
    whole = context.statement_span()
    parameters = {argument.name: argument for argument in procedure.arguments}
    hint = f"Its arguments are: {', '.join(parameters)}." if parameters else "It has no arguments."
    refuse_mixed(context, action.arguments)
    if (
        action.arguments
        and action.arguments[0].name is None
        and len(action.arguments) > len(parameters)
    ):
        context.error("INVALID_ARGUMENTS", "Too many positional arguments", whole, hint)
    arguments: dict[str, st.CallArgument] = {}
    for argument, key in zip(action.arguments, (*parameters, *action.arguments), strict=False):
        name = argument.name.value if argument.name is not None else str(key)
        if name in arguments:
            context.error(
                "DUPLICATE_PROPERTY",
                f"Duplicate named argument: {name}",
                argument.span,
                "Give it once.",
            )
        arguments[name] = argument
    values = {name: argument.default for name, argument in parameters.items()}
    of = f"catalog '{catalog}' table procedure '{procedure.name}' property"
    for name, argument in arguments.items():
        if name not in parameters:
            context.error(
                "INVALID_PROCEDURE_ARGUMENT",
                f"{of[0].upper()}{of[1:]} '{name}' does not exist",
                argument.span,
                did_you_mean(name, parameters) or hint,
            )
        values[name] = _value(context, parameters[name], f"{of} '{name}'", argument)
    return values


def _value(
    context: Context, parameter: TableProcedureArgument, of: str, argument: st.CallArgument
) -> Any:
    code, argument_text = "INVALID_PROCEDURE_ARGUMENT", formatted(argument.value, context.text)
    refuse_subqueries(context, argument.value)
    analyzer = ExpressionAnalyzer(context, Scope(()), ExpressionSite("ALTER TABLE EXECUTE"))
    tree = analyzer.analyze(argument.value)
    if not can_coerce(tree.type, parameter.type):
        context.error(
            code,
            f"Invalid value for {of}: Cannot convert [{argument_text}] to {parameter.type}",
            argument.span,
            f"Give a constant of type {parameter.type}.",
        )
    value = context.evaluate([analyzer.coerce(tree, parameter.type)], argument.value.span)[0]
    if value is None:
        context.error(
            code,
            f"Invalid null value for {of} from [{argument_text}]",
            argument.span,
            "Omit the argument.",
        )
    try:
        return parameter.read(value)
    except ValueError as error:
        context.error(
            code,
            f"Unable to set {of} to [{argument_text}]: {error}",
            argument.span,
            "Write a value such as '100MB' or '7d'.",
        )
