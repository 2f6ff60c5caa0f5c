"""Values of columns that the extended dialect has: DEFAULT, fields of rows, and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.next_steps import Refusal
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.analyzer.statements.column_defaults import default_value
from rowmerge_nb.sql.parser.statement_reader import parse_expression
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import is_assignable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer import analysis as a
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
    from rowmerge_nb.sql.analyzer.scope import ScopeField
    from rowmerge_nb.sql.tree.statements import Identifier, Span


def assigned_value(
    analyzer: ExpressionAnalyzer, target: a.TableBinding, field: ScopeField, node: s.Expression
) -> e.Typed:
    if isinstance(node, s.Default):
        # The target may be a table that the statement adds columns to.
        column = next((c for c in target.columns if c.name == field.name), None)
        if column is None:
            return e.Constant(field.type, None)
        return default_value(analyzer.context, target, column, node.span)
    if isinstance(node, s.FieldValues):
        base = e.Column(field.type, field.symbol)
        return _with_fields(analyzer, base, str(field.name), node.fields)
    return analyzer.analyze(node)


def _with_fields(
    analyzer: ExpressionAnalyzer,
    base: e.Typed,
    name: str,
    fields: Sequence[tuple[tuple[Identifier, ...], s.Expression]],
) -> e.Typed:
    """Return a row with some fields replaced; other fields of a NULL row are NULL."""
    context = analyzer.context
    first = fields[0][0][0]
    if base.type.base != "row":
        context.error(
            "TYPE_MISMATCH",
            f"Expression {name} is not of type ROW",
            first.span,
            "Assign the whole column.",
        )
    labels = [label.lower() if label else None for label in base.type.fields]
    parts: list[e.Typed] = [
        e.Apply(part, "field", (base,), index) for index, part in enumerate(base.type.parameters)
    ]
    assigned: dict[str, list[tuple[tuple[Identifier, ...], s.Expression]]] = {}
    for path, value in fields:
        assigned.setdefault(path[0].value, []).append((path, value))
    for label, entries in assigned.items():
        span = entries[0][0][0].span
        if labels.count(label) != 1:
            context.error(
                "INVALID_COLUMN_REFERENCE",
                f"Column reference '{name}.{label}' is invalid",
                span,
                f"{name} has the fields {', '.join(filter(None, base.type.fields))}.",
            )
        index = labels.index(label)
        whole = [value for path, value in entries if len(path) == 1]
        if len(whole) > 1 or (whole and len(entries) > 1):
            context.error(
                "DUPLICATE_COLUMN_NAME",
                f"Field is assigned more than once: {name}.{label}",
                span,
                "Write one assignment per field.",
            )
        if whole:
            new = analyzer.analyze(whole[0])
            _check_field(context, new, parts[index].type, f"{name}.{label}", whole[0].span)
            parts[index] = context.stored(new, parts[index].type)
        else:
            inner = [(path[1:], value) for path, value in entries]
            parts[index] = _with_fields(analyzer, parts[index], f"{name}.{label}", inner)
    return e.Apply(base.type, "row", tuple(parts))


def _check_field(context: Context, value: e.Typed, sql_type: Type, name: str, span: Span) -> None:
    if not is_assignable(value.type, sql_type):
        context.error(
            "TYPE_MISMATCH",
            f"Field {name} has the type {sql_type}, and its value {value.type}",
            span,
            f"Write CAST(... AS {sql_type}).",
        )


def refusing(condition: e.Typed | None, message: str, code: str) -> e.Typed:
    """Return a condition that no row meets, and that fails if another condition holds.

    It has the form of NOT NULL checks, which pages compute.
    """
    no = e.Constant(BOOLEAN, "false")
    holds = e.TRUE if condition is None else e.Apply(BOOLEAN, "coalesce", (condition, no))
    passes = e.Apply(BOOLEAN, "case", (e.Apply(BOOLEAN, "not", (holds,)), no))
    return e.Apply(
        BOOLEAN, "coalesce", (passes, e.Apply(BOOLEAN, "fail", (), Refusal(code, message)))
    )


def has_defaults(query: s.QueryNode) -> bool:
    return isinstance(query.body, s.Values) and any(
        isinstance(item, s.Default) for row in query.body.rows for item in _items(row)
    )


def filled_rows(columns: Sequence[ColumnMetadata], query: s.QueryNode) -> s.QueryNode:
    """Return a query whose rows of VALUES have the defaults of their columns for DEFAULT.

    A single DEFAULT is the row of DEFAULT VALUES.
    """
    if not isinstance(query.body, s.Values) or not has_defaults(query):
        return query
    rows = query.body.rows
    if isinstance(rows[0], s.Default) and len(columns) > 1:
        rows = (s.RowConstructor(rows[0].span, (rows[0],) * len(columns)),)
    complete_rows: list[s.Expression] = []
    for row in rows:
        items = [
            (
                default_node(columns[index], item.span)
                if isinstance(item, s.Default) and index < len(columns)
                else item
            )
            for index, item in enumerate(_items(row))
        ]
        complete_rows.append(
            replace(row, items=tuple(items)) if isinstance(row, s.RowConstructor) else items[0]
        )
    return replace(query, body=replace(query.body, rows=tuple(complete_rows)))


def _items(row: s.Expression) -> tuple[s.Expression, ...]:
    return row.items if isinstance(row, s.RowConstructor) else (row,)


def default_node(column: ColumnMetadata, span: Span) -> s.Expression:
    node = parse_expression(column.default or "NULL")
    if isinstance(node, s.Unary):
        node = replace(node, operand=replace(node.operand, span=span))
    return replace(node, span=span)
