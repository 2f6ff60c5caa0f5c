"""Default values of columns."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.types import UNKNOWN
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.rows.constant_columns import constant_of
from rowmerge_nb.sql.analyzer.scope import Scope
from rowmerge_nb.sql.parser.statement_reader import parse_expression
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import RANGES, common_type, is_integer, is_text

if TYPE_CHECKING:
    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer import analysis as a
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.tree.statements import Identifier, Span

_INVALID: Final = "INVALID_DEFAULT_COLUMN_VALUE"


def default_text(
    context: Context, catalog: str, name: Identifier, column_type: Type, node: s.Expression | None
) -> str | None:
    if node is None:
        return None
    if not context.tables.store(catalog).stores_defaults:
        context.refuse(
            f"Catalog '{catalog}' does not support default value for column name '{name.value}'",
            node.span,
            "Remove DEFAULT.",
        )
    number = node.operand if isinstance(node, s.Unary) and node.operator == "-" else node
    if not isinstance(number, s.Literal | s.TypedLiteral):
        context.error(
            _INVALID,
            f"The default of a column is a literal, not {node.span.of(context.text)!r}",
            node.span,
            "Write a value: DEFAULT 0, DEFAULT 'new'.",
        )
    text = formatted(node, context.text)
    value = ExpressionAnalyzer(context, Scope(()), ExpressionSite("DEFAULT")).analyze(node)
    if not _fits(value, column_type):
        context.error(
            _INVALID,
            f"'{text}' is not a valid {str(column_type).upper()} literal",
            node.span,
            f"The column {name.text} is of type {column_type}: give it a literal of that type.",
        )
    return text


def default_value(
    context: Context, table: a.TableBinding, column: ColumnMetadata, span: Span
) -> e.Typed:
    if column.default is None:
        return e.Constant(column.type, None)
    catalog, schema, _ = table.name
    inner = context.apart(column.default, catalog, schema, span)
    try:
        node = parse_expression(column.default)
        value = ExpressionAnalyzer(inner, Scope(()), ExpressionSite("DEFAULT")).analyze(node)
        reason = (
            ""
            if _is_literal(value) and _fits(value, column.type)
            else f"it is not a valid {str(column.type).upper()} literal"
        )
    except RowMergeError as error:
        reason = error.message
    if reason:
        context.error(
            _INVALID,
            f"Invalid default value for column '{column.name}' of '{table.qualified}': {reason}",
            span,
            f"Its connector reports DEFAULT {column.default}.",
        )
    return context.stored(value, column.type)


def _is_literal(value: e.Typed) -> bool:
    return isinstance(value, e.Constant) or (isinstance(value, e.Apply) and value.name == "negate")


def _fits(value: e.Typed, column_type: Type) -> bool:
    if value.type in {column_type, UNKNOWN}:
        return True
    literal = constant_of(value)
    if common_type(value.type, column_type) is None or literal is None or literal.value is None:
        return False
    if is_text(column_type):
        return (
            not column_type.parameters
            or len(literal.value.rstrip(" ")) <= column_type.parameters[0]
        )
    if is_integer(column_type):
        number = Decimal(literal.value)
        return (
            number == number.to_integral_value()
            and -RANGES[column_type.base] <= number < RANGES[column_type.base]
        )
    if column_type.base == "decimal":
        precision, scale = column_type.parameters
        number = Decimal(literal.value)
        return bool(
            number == round(number, scale) and abs(number) < Decimal(10) ** (precision - scale)
        )
    return True
