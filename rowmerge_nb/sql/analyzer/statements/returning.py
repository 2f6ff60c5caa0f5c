"""Analyzes RETURNING of the extended dialect, as PostgreSQL defines it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BOOLEAN, INTEGER, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.queries.named_queries import NamedQueries
from rowmerge_nb.sql.analyzer.queries.select_list import expanded, output_field
from rowmerge_nb.sql.analyzer.scope import Scope, ScopeField
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.statements.updatable_views import ChangedTable
    from rowmerge_nb.sql.tree import statements as st
    from rowmerge_nb.sql.tree.statements import Span

_ACTION: Final = "merge_action"
_CLAUSE: Final = "merge_clause"
_WORDS: Final = "in RETURNING"


def typed(context: Context, value: e.Typed, span: Span, words: str = "") -> a.TypedExpression:
    return a.TypedExpression(context.placed(value, span, words), span.shown(context.text))


def analyze_returning(
    context: Context,
    items: tuple[s.SelectItem | s.AllColumns, ...],
    target: tuple[ScopeField, ...],
    source: tuple[ScopeField, ...] | None = None,
    named_queries: NamedQueries | None = None,
    versions: tuple[str, str] = ("old", "new"),
    changed: ChangedTable | None = None,
) -> a.Returning:
    """Analyze a RETURNING list; ``changed`` is the view whose columns it sees.

    A column of the target means its new value, or the old one of a deleted row; ``old.c`` and
    ``new.c`` select one, unless a side of the MERGE has that name. ``*`` is the source's columns,
    then the target's. ``merge_action()`` and ``merge_clause()`` require a source.
    """
    new = _doubles(context, target)
    current = _doubles(context, target)
    action, clause = _new_field(context, _ACTION, VARCHAR), _new_field(context, _CLAUSE, INTEGER)
    aliases = {f.qualifier[-1] for f in (*target, *(source or ())) if f.qualifier}
    versioned = [
        replace(f, qualifier=(word,), qualified_only=True)
        for word, fields in zip(versions, (target, new), strict=True)
        for f in (fields if changed is None else (*fields, *changed.computed_fields(fields)))
        if word not in aliases
    ]
    visible_fields = current if changed is None else changed.in_order(current)
    fields = (*(source or ()), *visible_fields, *versioned)
    if source is not None and all(field.name != _ACTION for field in fields):
        # DuckDB has a column of this name.
        fields = (*fields, ScopeField(action.symbol, _ACTION, VARCHAR, is_hidden=True))
    functions = {_ACTION: action, _CLAUSE: clause} if source is not None else {}
    site = ExpressionSite(
        "RETURNING",
        functions={name: e.Column(field.type, field.symbol) for name, field in functions.items()},
    )
    columns = tuple(_columns(context, items, fields, site, named_queries or NamedQueries()))
    first, last = items[0].span, items[-1].span
    return a.Returning(
        columns,
        tuple(a.Field(f.symbol, f.name, f.type) for f in new),
        tuple(a.Field(f.symbol, f.name, f.type) for f in current),
        action,
        clause,
        context.text[first.start : last.end],
    )


def inserted_returning(
    context: Context, statement: st.Insert, changed: ChangedTable
) -> a.Returning:
    """Analyze RETURNING of an INSERT; its old values are NULL."""
    target = changed.table
    alias = statement.alias
    qualifier = (alias.value,) if alias else tuple(part.value for part in statement.target.parts)
    fields = tuple(
        ScopeField(context.symbols.new(c.name), c.name, c.type, qualifier, target=True)
        for c in target.columns
    )
    fields = changed.named(fields)
    returning = analyze_returning(
        context,
        statement.returning,
        fields,
        versions=statement.versions,
        changed=changed if changed.is_view else None,
    )
    pairs: list[tuple[e.Typed, e.Typed]] = []
    for column, old, new, current in zip(
        target.columns, fields, returning.new, returning.current, strict=True
    ):
        value = e.Column(column.type, column.name)
        pairs += [(e.Column(column.type, field.symbol), value) for field in (new, current)]
        pairs.append((e.Column(column.type, old.symbol), e.Constant(column.type, None)))
    columns = (
        replace(c, expression=replace(c.expression, tree=e.replaced(c.expression.tree, pairs)))
        for c in returning.columns
    )
    table_fields = tuple(
        a.Field(column.name, column.name, column.type) for column in target.columns
    )
    return replace(returning, columns=tuple(columns), new=table_fields, current=table_fields)


def _doubles(context: Context, fields: tuple[ScopeField, ...]) -> tuple[ScopeField, ...]:
    return tuple(replace(f, symbol=context.symbols.new(f.name)) for f in fields)


def _new_field(context: Context, name: str, sql_type: Type) -> a.Field:
    return a.Field(context.symbols.new(name), name, sql_type)


def _columns(
    context: Context,
    items: tuple[s.SelectItem | s.AllColumns, ...],
    fields: tuple[ScopeField, ...],
    site: ExpressionSite,
    named_queries: NamedQueries,
) -> Iterable[a.Returned]:
    analyzer = ExpressionAnalyzer(context, Scope(fields), site, named_queries=named_queries)
    number = 0
    for item in items:
        if isinstance(item, s.AllColumns):
            for f in expanded(context, item, fields):
                expression = typed(context, f.read(), item.span, _WORDS)
                display_name = ".".join((*f.qualifier[-1:], f.name or f.symbol))
                yield a.Returned(f.name or f"_col{number}", replace(expression, text=display_name))
                number += 1
            continue
        value = analyzer.analyze(item.value)
        if value.type == UNKNOWN:
            # A column that is always NULL needs a type.
            value = analyzer.coerce(value, BOOLEAN)
        name = output_field(item, analyzer, value).name
        if (
            name is None
            and isinstance(item.value, s.FunctionCall)
            and item.value.name in site.functions
        ):
            name = item.value.name
        yield a.Returned(name or f"_col{number}", typed(context, value, item.value.span, _WORDS))
        number += 1
