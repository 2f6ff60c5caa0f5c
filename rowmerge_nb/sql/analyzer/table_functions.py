"""Table functions in FROM and USING: ``TABLE(sequence(start => 1, stop => 10))``."""

# Context.error never returns.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BIGINT
from rowmerge_nb.sql.analyzer.scope import ScopeField
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.types import can_coerce

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.expressions import ExpressionAnalyzer
    from rowmerge_nb.sql.tree.statements import Span

__all__ = ["table_function"]

_WITH_CATALOG: Final = 3
"""So many parts has a name that begins with a catalog."""
_BUILT_IN: Final = ("system", "builtin")
"""Catalog and schema of the functions that are there without a connector."""
_SEQUENCE: Final = {"start": 0, "stop": None, "step": 1}


def table_function(context: Context, node: s.TableFunction, analyzer: ExpressionAnalyzer) -> tuple[ScopeField, str]:
    """Analyze a call of a table function.

    Args:
        context: the statement's state.
        node: the call.
        analyzer: analyzes the arguments.

    Returns:
        Its column, and Spark SQL text that can stand in FROM.
    """
    parts = tuple(part.value for part in node.name.parts)
    if len(parts) == _WITH_CATALOG and parts[0] not in {*context.tables.catalogs(), _BUILT_IN[0]}:
        context.error("CATALOG_NOT_FOUND", f"Catalog '{parts[0]}' not found", node.name.span, "SHOW CATALOGS lists them.")
    name = parts[-1] if parts[:-1] in {(), _BUILT_IN} else ""
    if name == "exclude_columns":
        said = "The table function exclude_columns is not supported by this engine"
        context.error("NOT_SUPPORTED", said, node.name.span, "Name the columns in the SELECT list.")
    if name != "sequence":
        said = f"Table function '{'.'.join(parts)}' not registered"
        context.error("FUNCTION_NOT_FOUND", said, node.name.span, "There is: sequence(start, stop, step).")
    values = _arguments(context, node, analyzer)
    start, stop, step = (values[parameter] for parameter in _SEQUENCE)
    if (start < stop and step <= 0) or (start > stop and step >= 0):
        needed = "positive" if start < stop else "negative"
        said = f"Step must be {needed} for sequence [{start}, {stop}]"
        context.error("INVALID_FUNCTION_ARGUMENT", said, None)
    field = ScopeField(context.symbols.new("sequential_number"), "sequential_number", BIGINT)
    # Spark's range leaves out its end, and wants a step even where there is but one number.
    step = step or 1
    text = f"range({start}L, {stop + (1 if step > 0 else -1)}L, {step}L)"
    return field, f"(SELECT id AS {e.quote(field.symbol)} FROM {text})"


def _arguments(context: Context, node: s.TableFunction, analyzer: ExpressionAnalyzer) -> dict[str, int]:
    """Give the value of each parameter of ``sequence``: all arguments are named, or none is."""
    named = [parameter for parameter, _ in node.arguments if parameter is not None]
    if named and len(named) < len(node.arguments):
        said = "All arguments must be passed by name or all must be passed positionally"
        context.error("INVALID_ARGUMENTS", said, _first_argument(node))
    if len(node.arguments) > len(_SEQUENCE):
        context.error("INVALID_ARGUMENTS", "Too many arguments. Expected at most 3 arguments, got more", node.span)
    given: dict[str, int] = {}
    for parameter, (written, value) in zip(_SEQUENCE, node.arguments, strict=False):
        chosen = written.value if written is not None else parameter
        if chosen not in _SEQUENCE:
            place = value.span if written is None else written.span
            context.error("INVALID_FUNCTION_ARGUMENT", f"Unexpected argument name: {chosen.upper()}", place)
        if chosen in given:
            context.error("INVALID_FUNCTION_ARGUMENT", f"Duplicate argument name: {chosen.upper()}", value.span)
        given[chosen] = _constant(context, chosen, value, analyzer)
    if "stop" not in given:
        context.error("MISSING_ARGUMENT", "Missing argument: STOP", _first_argument(node))
    return {parameter: given.get(parameter, default or 0) for parameter, default in _SEQUENCE.items()}


def _first_argument(node: s.TableFunction) -> Span:
    """Where Trino says what is wrong with the arguments together: at the first one, or at the function's name."""
    if not node.arguments:
        return node.name.span
    written, value = node.arguments[0]
    return value.span if written is None else written.span


def _constant(context: Context, parameter: str, node: s.Expression, analyzer: ExpressionAnalyzer) -> int:
    kind = analyzer.analyze(node).type
    if not can_coerce(kind, BIGINT):
        context.error("TYPE_MISMATCH", f"Cannot cast type {kind} to bigint", node.span)
    sign, inner = 1, node
    while isinstance(inner, s.Unary) and inner.operator in {"+", "-"}:
        sign, inner = (-sign if inner.operator == "-" else sign), inner.operand
    if not (isinstance(inner, s.Literal) and inner.kind == "integer"):
        said = f"Argument {parameter.upper()} of sequence is to be an integer written as a constant; this is of type {kind}"
        context.error("NOT_SUPPORTED", said, node.span)
    return sign * int(inner.value)
