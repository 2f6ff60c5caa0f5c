"""Analyzes subscripts of arrays, maps and rows."""

# Context.error never returns.
# ruff: noqa: RET503

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from rowmerge_nb.spi.types import BIGINT, INTEGER, UNKNOWN, map_of
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import common_type, is_integer

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer


def subscript(analyzer: ExpressionAnalyzer, node: s.Subscript) -> e.Typed:
    base = analyzer.analyze(node.base)
    if base.type.base == "row":
        return _field_by_number(analyzer, node, base)
    index = analyzer.analyze(node.index)
    if base.type.base == "array" and (is_integer(index.type) or index.type == UNKNOWN):
        return e.Apply(base.type.parameters[0], "subscript", (base, analyzer.coerce(index, BIGINT)))
    if base.type.base == "map":
        keys, value_type = base.type.parameters
        common = common_type(index.type, keys)
        if common is not None:
            wider = analyzer.coerce(base, map_of(common, value_type))
            return e.Apply(value_type, "subscript", (wider, analyzer.coerce(index, common)))
    if base.type.base == "json" and is_integer(index.type):
        text = analyzer.context.text
        base_text, index_text = node.base.span.of(text), node.index.span.of(text)
        path = f"{base_text}, '$[{index_text}]'"
        refuse_accessor(analyzer, f"{base_text}[{index_text}]", path, node)
    analyzer.context.error(
        "TYPE_MISMATCH", f"Cannot use {index.type} for subscript of {base.type}", node.error_span
    )


def refuse_accessor(
    analyzer: ExpressionAnalyzer, accessor: str, arguments: str, node: s.Expression
) -> NoReturn:
    """Refuse Trino's simplified access to JSON; the arguments are those of json_extract."""
    analyzer.context.refuse(
        f"JSON accessors such as {accessor} are not supported by this engine",
        node.error_span,
        f"Write json_extract({arguments}).",
    )


def _field_by_number(analyzer: ExpressionAnalyzer, node: s.Subscript, base: e.Typed) -> e.Typed:
    where = node.index.error_span
    if not isinstance(node.index, s.Literal):
        negative = isinstance(node.index, s.Unary) and isinstance(node.index.operand, s.Literal)
        if negative:
            index_text = node.index.span.of(analyzer.context.text)
            message = f"Invalid subscript index: {index_text}. ROW indices start at 1"
            analyzer.context.error("INVALID_FUNCTION_ARGUMENT", message, where)
    index = analyzer.analyze(node.index) if isinstance(node.index, s.Literal) else None
    if not (isinstance(index, e.Constant) and is_integer(index.type) and index.value is not None):
        analyzer.context.error(
            "EXPRESSION_NOT_CONSTANT",
            "Subscript expression on ROW requires a constant index",
            where,
        )
    if index.type != INTEGER:
        analyzer.context.error(
            "TYPE_MISMATCH",
            f"Subscript expression on ROW requires integer index, found {index.type}",
            where,
        )
    number, count = int(index.value), len(base.type.parameters)
    if not 1 <= number <= count:
        message = f"Subscript index out of bounds: {number}, max value is {count}"
        if number < 1:
            message = f"Invalid subscript index: {number}. ROW indices start at 1"
        analyzer.context.error("INVALID_FUNCTION_ARGUMENT", message, where)
    return e.Apply(base.type.parameters[number - 1], "field", (base,), number - 1)
