"""Analyzes UPDATE and DELETE in Trino's order: table, assigned columns, condition, values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.conversion_notices import note_stored_zone
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.queries.query import QueryAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope, ScopeField
from rowmerge_nb.sql.analyzer.statements.assigned_values import assigned_value
from rowmerge_nb.sql.analyzer.statements.merge import as_field, first_unfit
from rowmerge_nb.sql.analyzer.statements.misfits import Misfit
from rowmerge_nb.sql.analyzer.statements.returning import analyze_returning, typed
from rowmerge_nb.sql.analyzer.statements.terms import typed_condition
from rowmerge_nb.sql.analyzer.statements.updatable_views import (
    WHERE_TYPE,
    ChangedTable,
    changed_table,
)
from rowmerge_nb.sql.parser.column_names import column_list, nearest_column
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.typed.expressions import Column
from rowmerge_nb.sql.typed.type_rules import is_assignable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.handles import ColumnHandle
    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.queries.named_queries import NamedQueries
    from rowmerge_nb.sql.tree import syntax as s
    from rowmerge_nb.sql.typed.expressions import Typed


def analyze_update(context: Context, statement: st.Statement) -> a.UpdateAnalysis:
    assert isinstance(statement, st.Update)
    changed = _target(context, statement.target, "UPDATE")
    target = changed.table
    queries = QueryAnalyzer(context).visible(statement.named_queries, recursive=statement.recursive)
    own = _fields(context, statement, target.columns)
    fields = changed.named(own)
    hidden_fields = _fields(context, statement, target.hidden_columns, are_hidden=True)
    indexes = [changed.order[index] for index in _assigned(context, statement, changed)]
    checks = changed.checks(context, context.statement_span(statement.target.span))
    readable_fields = (*fields, *changed.computed_fields(own), *hidden_fields)
    where = _where(context, statement, changed, own, readable_fields, queries)
    scope = Scope(readable_fields)
    values = [
        assigned_value(
            ExpressionAnalyzer(context, scope, ExpressionSite("UPDATE SET"), named_queries=queries),
            target,
            own[index],
            value,
        )
        for index, value in zip(indexes, statement.values, strict=True)
    ]
    _check_types(context, statement, [fields[index] for index in indexes], values)
    assigned_values: list[a.TypedExpression | None] = [None] * len(fields)
    for index, value, node in zip(indexes, values, statement.values, strict=True):
        assigned_values[index] = _stored(context, fields[index], value, node)
    # Before the bindings: RETURNING may read further tables.
    returning = _returning(context, statement, changed, fields, queries)
    return a.UpdateAnalysis(
        statement.text,
        tuple(context.bindings.values()),
        tuple(context.notices),
        target,
        (statement.alias or statement.target.parts[-1]).text,
        tuple(as_field(f) for f in own),
        (_clause(context, statement, Operation.UPDATE, tuple(assigned_values), tuple(indexes)),),
        where,
        returning=returning,
        checks=checks,
        hidden_fields=tuple(map(as_field, hidden_fields)),
        origins=tuple(context.origins),
    )


def _check_types(
    context: Context, statement: st.Update, columns: Sequence[ScopeField], values: Sequence[Typed]
) -> None:
    column_types = [column.type for column in columns]
    if all(
        is_assignable(value.type, column_type)
        for column_type, value in zip(column_types, values, strict=True)
    ):
        return
    table, actual = (
        ", ".join(map(str, column_types)),
        ", ".join(str(value.type) for value in values),
    )
    wrong = first_unfit(column_types, values)
    column, node = columns[wrong], statement.values[wrong]
    misfit = Misfit(column.name or "", column.type, values[wrong], node.span.of(context.text))
    context.error(
        "TYPE_MISMATCH",
        f"UPDATE table column types don't match SET expressions: Table: [{table}], Expressions:"
        f" [{actual}]",
        context.statement_span(node.span),
        misfit.hint(),
    )


def _stored(
    context: Context, column: ScopeField, value: Typed, node: s.Expression
) -> a.TypedExpression:
    if isinstance(value, Column):
        text, types = node.span.of(context.text), (value.type, column.type)
        note_stored_zone(context, node.span, text, types, str(column.name))
    words = f"in the value for column '{column.name}'"
    return typed(context, context.stored(value, column.type), node.span, words)


def analyze_delete(context: Context, statement: st.Statement) -> a.DeleteAnalysis:
    assert isinstance(statement, st.Delete)
    changed = _target(context, statement.target, "DELETE")
    target = changed.table
    queries = QueryAnalyzer(context).visible(statement.named_queries, recursive=statement.recursive)
    own = _fields(context, statement, target.columns)
    fields = changed.named(own)
    hidden_fields = _fields(context, statement, target.hidden_columns, are_hidden=True)
    readable_fields = (*fields, *changed.computed_fields(own), *hidden_fields)
    where = _where(context, statement, changed, own, readable_fields, queries)
    returning = _returning(context, statement, changed, fields, queries)
    return a.DeleteAnalysis(
        statement.text,
        tuple(context.bindings.values()),
        tuple(context.notices),
        target,
        (statement.alias or statement.target.parts[-1]).text,
        tuple(as_field(f) for f in own),
        (_clause(context, statement, Operation.DELETE, (None,) * len(fields)),),
        where,
        returning=returning,
        hidden_fields=tuple(map(as_field, hidden_fields)),
        origins=tuple(context.origins),
    )


def _returning(
    context: Context,
    statement: st.Update | st.Delete,
    changed: ChangedTable,
    fields: tuple[ScopeField, ...],
    queries: NamedQueries,
) -> a.Returning | None:
    if not statement.returning:
        return None
    return analyze_returning(
        context,
        statement.returning,
        fields,
        named_queries=queries,
        versions=statement.versions,
        changed=changed if changed.is_view else None,
    )


def _target(context: Context, name: st.TableName, word: str) -> ChangedTable:
    changed = changed_table(
        context,
        name,
        (
            "Updating views is not supported"
            if word == "UPDATE"
            else "Deleting from views is not supported"
        ),
    )
    context.refuse_frame(changed.table, f"it can be read but not the target of {word}", name.span)
    return changed


def _fields(
    context: Context,
    statement: st.Update | st.Delete,
    columns: Sequence[ColumnMetadata | ColumnHandle],
    *,
    are_hidden: bool = False,
) -> tuple[ScopeField, ...]:
    alias = statement.alias
    qualifier = (alias.value,) if alias else tuple(part.value for part in statement.target.parts)
    return tuple(
        ScopeField(
            context.symbols.new(c.name),
            c.name,
            c.type,
            qualifier,
            target=True,
            is_hidden=are_hidden,
        )
        for c in columns
    )


def _assigned(context: Context, statement: st.Update, changed: ChangedTable) -> list[int]:
    target = changed.visible
    by_name = {column.name.lower(): index for index, column in enumerate(target.columns)}
    indexes: dict[int, None] = {}
    for column in statement.columns:
        index = by_name.get(column.value)
        if index is None:
            changed.refuse_computed(context, column)
            columns = [column.name for column in target.columns]
            hint = (
                nearest_column(column.value, columns)
                or f"{target.display} has the columns {column_list(columns)}."
            )
            context.error(
                "COLUMN_NOT_FOUND",
                f"The UPDATE SET target column {column.value} doesn't exist",
                column.span,
                hint,
            )
        if index in indexes:
            # Trino 476 fails with an internal error here; this is its message for MERGE.
            context.error(
                "DUPLICATE_COLUMN_NAME",
                f"Update column name is specified more than once: {column.value}",
                column.span,
                "Write one assignment per column.",
            )
        indexes[index] = None
    return list(indexes)


def _where(
    context: Context,
    statement: st.Update | st.Delete,
    changed: ChangedTable,
    own: tuple[ScopeField, ...],
    fields: tuple[ScopeField, ...],
    queries: NamedQueries,
) -> a.TypedExpression | None:
    node, view_condition = statement.where, changed.condition(own)
    if node is None:
        span = statement.target.span
        if view_condition is None:
            return None
        return replace(
            typed(context, view_condition, span, "in the WHERE of the view"), text=changed.where
        )
    condition = ExpressionAnalyzer(
        context,
        Scope(fields),
        ExpressionSite("WHERE clause", judged_whole=True),
        named_queries=queries,
    ).condition(node, WHERE_TYPE)
    return changed.with_where(
        view_condition, typed_condition(context, node, condition, "in the WHERE condition")
    )


def _clause(
    context: Context,
    statement: st.Statement,
    operation: Operation,
    values: tuple[a.TypedExpression | None, ...],
    assigned: tuple[int, ...] = (),
) -> a.ClauseAnalysis:
    text, origin = st.excerpt(statement.text), context.origin(statement.span)
    return a.ClauseAnalysis(
        0, True, operation, None, values, text, origin, assigned=assigned, head=text
    )
