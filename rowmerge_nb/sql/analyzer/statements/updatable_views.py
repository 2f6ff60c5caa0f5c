"""Views of one table as targets of the extended dialect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import code
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.column_names import name_in_sql
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope, ScopeField
from rowmerge_nb.sql.parser.statement_reader import parse_query
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.sql.analyzer.context import Context

    _Refusal = Callable[[str], NoReturn]

_WHERE = "WHERE clause must evaluate to a boolean: actual type {}"


@dataclass(frozen=True)
class ChangedTable:
    """The target of a statement: a table, or the table of a view.

    Args:
        table: the table that is changed.
        visible: the table with the columns that the statement can name.
        order: the positions in ``table`` of the columns of ``visible``.
        conditions: the WHERE of the view and of views below it, with their texts' contexts and the
            names by which they call the table.
    """

    table: a.TableBinding
    visible: a.TableBinding
    order: tuple[int, ...]
    conditions: tuple[_Condition, ...] = ()

    @property
    def is_view(self) -> bool:
        return self.visible is not self.table

    def named(self, fields: Sequence[ScopeField]) -> tuple[ScopeField, ...]:
        """Return the table's fields under the view's names; those that it lacks have no name."""
        names = dict(zip(self.order, self.visible.columns, strict=True))
        return tuple(
            replace(field, name=names[index].name if index in names else None)
            for index, field in enumerate(fields)
        )

    def labelled(self, columns: Sequence[ColumnMetadata]) -> tuple[ColumnMetadata, ...]:
        """Return columns of the table under the view's names."""
        names = {
            self.table.columns[index].name: column.name
            for index, column in zip(self.order, self.visible.columns, strict=True)
        }
        return tuple(replace(column, name=names[column.name]) for column in columns)

    @property
    def where(self) -> str:
        """The text of the condition of the rows that the view shows; empty for all rows."""
        return " AND ".join(
            f"({condition.node.span.of(condition.context.text)})" for condition in self.conditions
        )

    def condition(self, fields: Sequence[ScopeField]) -> e.Typed | None:
        parts = tuple(condition.analyze(fields) for condition in self.conditions)
        return both(*parts) if parts else None

    def with_where(
        self, condition: e.Typed | None, expression: a.TypedExpression
    ) -> a.TypedExpression:
        """Return a statement's condition for the rows that the view shows."""
        if condition is None:
            return expression
        tree = replace(both(condition, expression.tree), origin=expression.tree.origin)
        return a.TypedExpression(tree, f"{self.where} AND ({expression.text})")


@dataclass(frozen=True)
class _Condition:
    context: Context
    node: s.Expression
    names: tuple[str, ...]
    qualifier: tuple[str, ...]

    def analyze(self, fields: Sequence[ScopeField]) -> e.Typed:
        own_fields = tuple(
            replace(field, name=name or None, qualifier=self.qualifier)
            for field, name in zip(fields, self.names, strict=True)
        )
        analyzer = ExpressionAnalyzer(
            self.context, Scope(own_fields), ExpressionSite("WHERE clause")
        )
        return analyzer.condition(self.node, _WHERE)


def both(*conditions: e.Typed | None) -> e.Typed:
    """Return the AND of conditions, without those that are None."""
    parts = tuple(part for part in conditions if part is not None)
    return parts[0] if len(parts) == 1 else e.Apply(BOOLEAN, "and", parts)


def changed_table(context: Context, name: st.TableName, refusal: str) -> ChangedTable:
    """Return the target of a statement.

    Raises:
        AnalysisError: NOT_SUPPORTED for a view, in Trino's dialect, or if its rows are not those of
            one table.
    """
    span = context.statement_span(name.span)
    if not context.extended or name.branch is not None:
        context.refuse_view(name, refusal)
    view = None if name.branch is not None else context.seen_view(name, span)
    if view is None:
        table = context.target(name, span)
        return ChangedTable(table, table, tuple(range(len(table.columns))))
    changed = _of_view(context, view, span, refusal)
    columns = ", ".join(
        f"{column.name} is {changed.table.columns[index].name}"
        for column, index in zip(changed.visible.columns, changed.order, strict=True)
        if column.name != changed.table.columns[index].name
    )
    where = changed.where
    context.notice(
        f"The view {name.span.of(context.text)} shows rows of {changed.table.qualified}, which is"
        f" changed{f', where {code(where)}' if where else ''}{f'; {columns}' if columns else ''}.",
        name.span,
    )
    return changed


def _of_view(context: Context, view: a.ViewBinding, span: st.Span, refusal: str) -> ChangedTable:
    def refuse(why: str) -> NoReturn:
        context.refuse(
            f"{refusal}: '{view.qualified}' {why}",
            span,
            "Change the table that the view reads. A view that can be changed has plain columns of"
            " one table, and WHERE.",
        )

    if view.qualified in context.views:
        context.error("VIEW_IS_RECURSIVE", "View is recursive", span)
    inner = context.within(view, span)
    select = _select(view, refuse)
    relation, qualifier = _relation(select)
    if not isinstance(relation, s.Table) or relation.period is not None:
        refuse("reads more than one table" if relation is not None else "reads no table")
    names = tuple(part.value for part in relation.name.parts)
    below = inner.seen_view(relation.name, span)
    if below is not None:
        base = _of_view(inner, below, span, refusal)
    else:
        try:
            table = inner.target(relation.name, span)
        except RowMergeError as error:
            refuse(f"cannot be read: {error.message}")
        base = ChangedTable(table, table, tuple(range(len(table.columns))))
    inner.refuse_frame(base.table, "a view of it cannot be changed", span)
    order = _columns(view, select, base, names if qualifier is None else qualifier, refuse)
    columns = tuple(
        replace(base.table.columns[index], name=column.name)
        for index, column in zip(order, view.definition.columns, strict=True)
    )
    conditions = base.conditions
    if select.where is not None:
        below_names = {
            index: column.name
            for index, column in zip(base.order, base.visible.columns, strict=True)
        }
        all_names = tuple(below_names.get(i, "") for i in range(len(base.table.columns)))
        conditions += (_Condition(inner, select.where, all_names, qualifier or names),)
    visible = replace(base.table, display=name_in_sql(view.name[-1:]), columns=columns)
    return ChangedTable(base.table, visible, order, conditions)


def viewed_table(view: a.ViewBinding) -> tuple[str, ...] | None:
    """Return the full name of what a view of one table reads; None for another view."""
    query = parse_query(view.definition.original_sql)
    body = query.body
    if isinstance(body, s.TableBody):
        name = body.name
    elif isinstance(body, s.Select) and isinstance(table := _relation(body)[0], s.Table):
        name = table.name
    else:
        return None
    definition = view.definition
    parts = tuple(part.value for part in name.parts)
    return (*(definition.catalog, definition.schema)[: 3 - len(parts)], *parts)


def _relation(select: s.Select) -> tuple[s.Relation | None, tuple[str, ...] | None]:
    relation = select.relation
    if isinstance(relation, s.Aliased) and not relation.columns:
        return relation.relation, (relation.alias.value,)
    return relation, None


def _select(view: a.ViewBinding, refuse: _Refusal) -> s.Select:
    query = parse_query(view.definition.original_sql)
    while isinstance(query.body, s.QueryNode) and not _has_more(query):
        query = query.body
    select = query.body
    if isinstance(select, s.TableBody):
        every = s.AllColumns(select.span, None, ())
        table = s.Table(select.span, select.name)
        select = s.Select(select.span, False, (every,), table, None, None, None)
    if _has_more(query):
        refuse("has WITH, ORDER BY, LIMIT or OFFSET")
    if not isinstance(select, s.Select):
        refuse("is no SELECT of one table")
    if select.distinct:
        refuse("has DISTINCT")
    if select.group_by is not None or select.having is not None:
        refuse("has GROUP BY or HAVING")
    return select


def _has_more(query: s.QueryNode) -> bool:
    return bool(query.named or query.order_by or query.offset or query.limit is not None)


def _columns(
    view: a.ViewBinding,
    select: s.Select,
    base: ChangedTable,
    qualifier: tuple[str, ...],
    refuse: _Refusal,
) -> tuple[int, ...]:
    positions = {
        column.name.lower(): index
        for index, column in zip(base.order, base.visible.columns, strict=True)
    }
    order: list[int] = []
    for item in select.items:
        if isinstance(item, s.AllColumns):
            order += base.order
            continue
        value = item.value
        if not isinstance(value, s.Name) or [p.value for p in value.parts[:-1]] != list(
            qualifier[len(qualifier) - len(value.parts) + 1 :]
        ):
            refuse(f"has the column '{_label(view, len(order))}', which is computed")
        index = positions.get(value.parts[-1].value)
        if index is None:
            refuse(f"has the column '{_label(view, len(order))}', which is no column of its table")
        order.append(index)
    if len(order) != len(view.definition.columns):
        refuse("has other columns than when it was created")
    if len({*order}) != len(order):
        refuse("has a column of its table twice")
    return tuple(order)


def _label(view: a.ViewBinding, index: int) -> str:
    columns = view.definition.columns
    return columns[index].name if index < len(columns) else f"_col{index}"
