"""Views of one table as targets of the extended dialect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import code
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope, ScopeField
from rowmerge_nb.sql.analyzer.statements.constraints import check_constraints, refusing
from rowmerge_nb.sql.parser.column_names import column_list, name_in_sql
from rowmerge_nb.sql.parser.statement_reader import parse_query
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.sql.analyzer.context import Context

    _Refusal = Callable[[str], NoReturn]

WHERE_TYPE: Final = "WHERE clause must evaluate to a boolean: actual type {}"


@dataclass(frozen=True)
class ChangedTable:
    """The target of a statement: a table, or the table of a view.

    Args:
        visible: the table with the columns that the statement can name.
        order: the positions in ``table`` of the columns of ``visible``.
        conditions: the WHERE of the view and of views below it, with their texts' contexts and the
            names by which they call the table.
        guards: those of them that new rows must meet, by WITH CHECK OPTION.
        computed: the columns of the view that are not in ``visible``.
        placeholders: the fields of ``table`` in the values of ``computed``.
    """

    table: a.TableBinding
    visible: a.TableBinding
    order: tuple[int, ...]
    conditions: tuple[_Condition, ...] = ()
    guards: tuple[_Condition, ...] = ()
    computed: tuple[_ComputedColumn, ...] = ()
    placeholders: tuple[ScopeField, ...] = ()

    @property
    def is_view(self) -> bool:
        return self.visible is not self.table

    @property
    def table_names(self) -> tuple[str, ...]:
        """The names of the table's columns here; empty for those that the view lacks."""
        names = dict(zip(self.order, self.visible.columns, strict=True))
        return tuple(
            names[index].name if index in names else "" for index in range(len(self.table.columns))
        )

    def named(self, fields: Sequence[ScopeField]) -> tuple[ScopeField, ...]:
        """Return the table's fields under the view's names; those that it lacks have no name."""
        return tuple(
            replace(field, name=name or None)
            for field, name in zip(fields, self.table_names, strict=True)
        )

    def computed_fields(self, fields: Sequence[ScopeField]) -> tuple[ScopeField, ...]:
        """Return the computed columns over the table's fields; they can be read alone."""
        pairs = [
            (placeholder.read(), field.read())
            for placeholder, field in zip(self.placeholders, fields, strict=False)
        ]
        return tuple(
            ScopeField(
                "",
                column.name,
                column.value.type,
                fields[0].qualifier,
                target=True,
                value=e.replaced(column.value, pairs),
            )
            for column in self.computed
        )

    def in_order(self, fields: Sequence[ScopeField]) -> tuple[ScopeField, ...]:
        columns = [fields[index] for index in self.order]
        computed_fields = self.computed_fields(fields)
        for column, field in zip(self.computed, computed_fields, strict=True):
            columns.insert(column.position, field)
        return tuple(columns)

    def refuse_computed(self, context: Context, name: st.Identifier) -> None:
        """Raise NOT_SUPPORTED if a computed column is assigned."""
        column = next((c for c in self.computed if c.name.lower() == name.value), None)
        if column is not None:
            context.refuse(
                f"Column '{column.name}' of the view {self.visible.display} cannot be changed: it"
                f" is {column.text}",
                name.span,
                f"Change {column_list([c.name for c in self.visible.columns])}, which are columns"
                f" of {self.table.qualified}.",
            )

    def require_list(self, context: Context, span: st.Span) -> None:
        """Raise NOT_SUPPORTED for rows without a list of columns if some are computed."""
        if self.computed:
            columns = column_list([c.name for c in self.visible.columns])
            context.refuse(
                f"Rows of the view {self.visible.display} need a list of columns, since"
                f" '{self.computed[0].name}' is computed",
                span,
                f"Write the columns that can be stored: ({columns}).",
            )

    def labelled(self, columns: Sequence[ColumnMetadata]) -> tuple[ColumnMetadata, ...]:
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

    def checks(
        self, context: Context, span: st.Span, *, subqueries: bool = False
    ) -> tuple[a.CheckConstraint, ...]:
        """Return the table's CHECK constraints and the check options of views."""
        constraints = check_constraints(context, self.table, span, subqueries=subqueries)
        return constraints + tuple(guard.check(context, self.table, span) for guard in self.guards)

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
    below: ChangedTable
    qualifier: tuple[str, ...]
    view: str

    def analyze(self, fields: Sequence[ScopeField]) -> e.Typed:
        below = self.below
        own_fields = tuple(
            replace(field, name=name or None, qualifier=self.qualifier)
            for field, name in zip(fields, below.table_names, strict=True)
        )
        computed_fields = below.computed_fields(own_fields)
        scope = Scope((*own_fields, *computed_fields))
        analyzer = ExpressionAnalyzer(self.context, scope, ExpressionSite("WHERE clause"))
        return analyzer.condition(self.node, WHERE_TYPE)

    def check(self, context: Context, table: a.TableBinding, span: st.Span) -> a.CheckConstraint:
        fields = tuple(ScopeField(c.name, c.name, c.type) for c in table.columns)
        condition = self.analyze(fields)
        if not e.is_deterministic(condition) or any(
            isinstance(part, e.Subquery) for part in e.walk(condition)
        ):
            context.refuse(
                f"WITH CHECK OPTION of the view {self.view} has a subquery or a random value in"
                " its WHERE",
                span,
                "Create the view without WITH CHECK OPTION.",
            )
        text = formatted(self.node, self.context.text)
        message = f"New row violates the check option of the view {self.view}: {text}"
        value = refusing(condition, message, allows_null=False)
        return a.CheckConstraint(text, context.placed(value, span, f"in a row for {table.display}"))


@dataclass(frozen=True)
class _ComputedColumn:
    """A column of a view that is an expression of one row.

    Args:
        value: the expression, in the placeholders of the table's columns.
    """

    name: str
    position: int
    value: e.Typed
    text: str


def both(*conditions: e.Typed | None) -> e.Typed:
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
    for computed in changed.computed:
        columns += f"{', ' if columns else ''}{computed.name} is {code(computed.text)}"
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
            "Change the table that the view reads. A view that can be changed has columns of one"
            " table, expressions of them, and WHERE.",
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
    shown_columns = _ViewColumns(inner, view, base, qualifier or names, refuse)
    shown_columns.read(select)
    conditions, guards = base.conditions, base.guards
    if select.where is not None:
        display = name_in_sql(view.name[-1:])
        own = _Condition(inner, select.where, base, qualifier or names, display)
        conditions += (own,)
        guards += (own,) if view.definition.check_option == "LOCAL" else ()
    if view.definition.check_option == "CASCADED":
        guards = conditions
    columns = tuple(
        replace(base.table.columns[index], name=name) for index, name in shown_columns.plain.items()
    )
    visible = replace(base.table, display=name_in_sql(view.name[-1:]), columns=columns)
    return ChangedTable(
        base.table,
        visible,
        tuple(shown_columns.plain),
        conditions,
        guards,
        tuple(shown_columns.computed),
        shown_columns.placeholders,
    )


def check_option_of(context: Context, view: a.ViewBinding, span: st.Span) -> None:
    """Raise NOT_SUPPORTED for a view WITH CHECK OPTION that cannot be changed."""
    refusal = "WITH CHECK OPTION needs a view that can be changed"
    changed = _of_view(context, view, span, refusal)
    changed.checks(context, span, subqueries=True)


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
        refuse("is not a SELECT of one table")
    if select.distinct:
        refuse("has DISTINCT")
    if select.group_by is not None or select.having is not None:
        refuse("has GROUP BY or HAVING")
    return select


def _has_more(query: s.QueryNode) -> bool:
    return bool(query.named_queries or query.order_by or query.offset or query.limit is not None)


class _ViewColumns:
    """The columns of a view over a table, or over another view.

    Args:
        qualifier: the name by which the view calls what it reads.
    """

    def __init__(
        self,
        context: Context,
        view: a.ViewBinding,
        base: ChangedTable,
        qualifier: tuple[str, ...],
        refuse: _Refusal,
    ) -> None:
        self._context, self._view, self._base = context, view, base
        self._qualifier, self._refuse = qualifier, refuse
        self.plain: dict[int, str] = {}
        """The names of columns of the table, by their positions in it."""
        self.computed: list[_ComputedColumn] = []
        self.placeholders = base.placeholders

    def read(self, select: s.Select) -> None:
        base = self._base
        layout: list[int | _ComputedColumn] = [*base.order]
        for computed in base.computed:
            layout.insert(computed.position, computed)
        columns: list[int | _ComputedColumn] = []
        for item in select.items:
            if isinstance(item, s.AllColumns):
                columns += layout
            else:
                columns.append(self._column(item.value, _label(self._view, len(columns))))
        names = [column.name for column in self._view.definition.columns]
        if len(columns) != len(names):
            self._refuse("has different columns than when it was created")
        for position, (column, name) in enumerate(zip(columns, names, strict=True)):
            if isinstance(column, _ComputedColumn):
                self.computed.append(replace(column, name=name, position=position))
            elif column in self.plain:
                self._refuse("has a column of its table twice")
            else:
                self.plain[column] = name

    def _column(self, value: s.Expression, name: str) -> int | _ComputedColumn:
        if isinstance(value, s.Name):
            parts = [part.value for part in value.parts]
            qualifier = list(self._qualifier[len(self._qualifier) - len(parts) + 1 :])
            names = [text.lower() for text in self._base.table_names]
            if parts[:-1] == qualifier and parts[-1] in names:
                return names.index(parts[-1])
        text = value.span.of(self._context.text)
        return _ComputedColumn(name, 0, self._expression(value, name), text)

    def _expression(self, node: s.Expression, name: str) -> e.Typed:
        base, context = self._base, self._context
        if not self.placeholders:
            self.placeholders = tuple(
                ScopeField(context.symbols.new(f"view_{column.name}"), column.name, column.type)
                for column in base.table.columns
            )
        fields = tuple(
            replace(field, name=text or None, qualifier=self._qualifier)
            for field, text in zip(self.placeholders, base.table_names, strict=True)
        )
        computed_fields = replace(base, placeholders=self.placeholders).computed_fields(fields)
        scope = Scope((*fields, *computed_fields))
        try:
            value = ExpressionAnalyzer(context, scope, ExpressionSite("A view")).analyze(node)
        except RowMergeError as error:
            self._refuse(
                f"has the column '{name}', which is not an expression of its row: {error.message}"
            )
        if any(isinstance(part, e.Subquery) for part in e.walk(value)):
            self._refuse(f"has the column '{name}', which is a subquery")
        return value


def _label(view: a.ViewBinding, index: int) -> str:
    columns = view.definition.columns
    return columns[index].name if index < len(columns) else f"_col{index}"
