"""Table functions in FROM and USING: ``TABLE(sequence(start => 1, stop => 10))``."""

# Context.error never returns.

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BIGINT
from rowmerge_nb.sql.analyzer.scope import ScopeField
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed.type_rules import can_coerce

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
    from rowmerge_nb.sql.tree.statements import Span

_WITH_CATALOG: Final = 3
"""The number of parts of a name with a catalog."""
_BUILT_IN: Final = ("system", "builtin")
"""Catalog and schema of the functions without a connector."""
_DEFAULTS: Final = {"start": 0, "stop": 0, "step": 1}
_PARAMETERS: Final[dict[str, dict[str, bool]]] = {
    "sequence": {"start": False, "stop": True, "step": False},
    "exclude_columns": {"input": True, "columns": True},
}
"""The functions and their parameters in order, with whether each is required."""
_KINDS: Final[dict[str, str]] = {"input": "table", "columns": "descriptor"}
"""Parameters that take something other than a value."""


def table_arguments(context: Context, node: s.TableFunction) -> dict[str, s.Expression]:
    parts = tuple(part.value for part in node.name.parts)
    if len(parts) == _WITH_CATALOG and parts[0] not in {*context.tables.catalogs(), _BUILT_IN[0]}:
        context.error(
            "CATALOG_NOT_FOUND",
            f"Catalog '{parts[0]}' not found",
            node.name.span,
            "SHOW CATALOGS lists them.",
            parts[0],
        )
    name = parts[-1] if parts[:-1] in {(), _BUILT_IN} else ""
    if name not in _PARAMETERS:
        context.error(
            "FUNCTION_NOT_FOUND",
            f"Table function '{'.'.join(parts)}' not registered",
            node.name.span,
            "There are: sequence(start, stop, step), exclude_columns(input, columns).",
        )
    return _arguments(context, node, _PARAMETERS[name])


def kept_columns(
    context: Context, columns: s.Expression, fields: Sequence[ScopeField]
) -> tuple[ScopeField, ...]:
    assert isinstance(columns, s.Descriptor)
    if columns.typed:
        context.error(
            "INVALID_FUNCTION_ARGUMENT",
            "COLUMNS descriptor contains types",
            None,
            "Name the columns alone.",
        )
    excluded = [column.value for column in columns.columns]
    names = {(field.name or "").lower() for field in fields}
    missing = ", ".join(name for name in dict.fromkeys(excluded) if name not in names)
    if missing:
        context.error(
            "INVALID_FUNCTION_ARGUMENT",
            f"Excluded columns: [{missing}] not present in the table",
            None,
        )
    retained = tuple(
        replace(field, qualifier=())
        for field in fields
        if (field.name or "").lower() not in excluded
    )
    if not retained:
        context.error("INVALID_FUNCTION_ARGUMENT", "All columns are excluded", None)
    return retained


def sequence_rows(
    context: Context, arguments: Mapping[str, s.Expression], analyzer: ExpressionAnalyzer
) -> tuple[ScopeField, tuple[int, int, int]]:
    numbers = {
        parameter: _constant(context, parameter, value, analyzer)
        for parameter, value in arguments.items()
    }
    start, stop, step = (
        numbers.get(parameter, default) for parameter, default in _DEFAULTS.items()
    )
    if (start < stop and step <= 0) or (start > stop and step >= 0):
        direction = "positive" if start < stop else "negative"
        context.error(
            "INVALID_FUNCTION_ARGUMENT",
            f"Step must be {direction} for sequence [{start}, {stop}]",
            None,
        )
    return ScopeField(context.symbols.new("sequential_number"), "sequential_number", BIGINT), (
        start,
        stop,
        step,
    )


def _arguments(
    context: Context, node: s.TableFunction, parameters: Mapping[str, bool]
) -> dict[str, s.Expression]:
    names = [parameter for parameter, _ in node.arguments if parameter is not None]
    if names and len(names) < len(node.arguments):
        context.error(
            "INVALID_ARGUMENTS",
            "All arguments must be passed by name or all must be passed positionally",
            _first_argument(node),
        )
    if len(node.arguments) > len(parameters):
        context.error(
            "INVALID_ARGUMENTS",
            f"Too many arguments. Expected at most {len(parameters)} arguments, got"
            f" {len(node.arguments)} arguments",
            _first_argument(node),
        )
    arguments: dict[str, s.Expression] = {}
    for parameter, (name, value) in zip(parameters, node.arguments, strict=False):
        parameter_name = name.value if name is not None else parameter
        span = value.span if name is None else name.span
        if parameter_name not in parameters:
            context.error(
                "INVALID_FUNCTION_ARGUMENT",
                f"Unexpected argument name: {parameter_name.upper()}",
                span,
            )
        if parameter_name in arguments:
            context.error(
                "INVALID_FUNCTION_ARGUMENT",
                f"Duplicate argument name: {parameter_name.upper()}",
                span,
            )
        expected_kind, actual_kind = _KINDS.get(parameter_name, "expression"), _kind(value)
        if expected_kind != actual_kind:
            context.error(
                "INVALID_FUNCTION_ARGUMENT",
                f"Invalid argument {parameter_name.upper()}. Expected {expected_kind}, got"
                f" {actual_kind}",
                span,
            )
        arguments[parameter_name] = value
    missing = next(
        (
            parameter
            for parameter, is_required in parameters.items()
            if is_required and parameter not in arguments
        ),
        None,
    )
    if missing is not None:
        context.error(
            "MISSING_ARGUMENT", f"Missing argument: {missing.upper()}", _first_argument(node)
        )
    return arguments


def _kind(value: s.Expression) -> str:
    return {s.TableArgument: "table", s.Descriptor: "descriptor"}.get(type(value), "expression")


def _first_argument(node: s.TableFunction) -> Span:
    if not node.arguments:
        return node.name.span
    name, value = node.arguments[0]
    return value.span if name is None else name.span


def _constant(
    context: Context, parameter: str, node: s.Expression, analyzer: ExpressionAnalyzer
) -> int:
    sql_type = analyzer.analyze(node).type
    if not can_coerce(sql_type, BIGINT):
        context.error("TYPE_MISMATCH", f"Cannot cast type {sql_type} to bigint", node.span)
    sign, inner = 1, node
    while isinstance(inner, s.Unary) and inner.operator in {"+", "-"}:
        sign, inner = (-sign if inner.operator == "-" else sign), inner.operand
    if not (isinstance(inner, s.Literal) and inner.kind == "integer"):
        context.refuse(
            f"Argument {parameter.upper()} of sequence is to be an integer written as a constant;"
            f" this is of type {sql_type}",
            node.span,
        )
    return sign * int(inner.value)
