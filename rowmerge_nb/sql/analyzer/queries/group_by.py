"""GROUP BY: by what rows are grouped, and what of them can be read then."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from rowmerge_nb.spi.types import INTEGER
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.moment_zones import in_one_zone
from rowmerge_nb.sql.analyzer.queries.select_list import numbered_output
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import is_zoned

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
    from rowmerge_nb.sql.analyzer.queries.select_list import Output
    from rowmerge_nb.sql.analyzer.scope import ScopeField


def with_keys(node: s.Select, outputs: Sequence[Output]) -> s.Select:
    """Put the keys into GROUP BY in place of AUTO: all columns of the SELECT list but aggregates and functions over windows."""
    if not any(isinstance(item, s.AutoKeys) for item in node.group_by or ()):
        return node
    kept = [place for place, output in enumerate(outputs, 1) if not isinstance(output.value, e.Aggregate | e.Windowed)]
    keys: list[s.Expression] = []
    places: list[tuple[int, ...]] = []
    for item in node.group_by or ():
        written = [s.Literal(item.span, "integer", str(place)) for place in kept] if isinstance(item, s.AutoKeys) else [item]
        places.append(tuple(range(len(keys), len(keys) + len(written))))
        keys += written
    grouping = node.grouping
    if grouping is not None:
        sets = tuple(tuple(chain.from_iterable(places[at] for at in found)) for found in grouping.sets)
        columns = frozenset(chain.from_iterable(places[at] for at in grouping.columns))
        grouping = replace(grouping, sets=sets, columns=columns)
    return replace(node, group_by=tuple(keys), grouping=grouping)


def grouped_by(node: s.Select, analyzer: ExpressionAnalyzer, outputs: Sequence[Output]) -> tuple[e.Typed, ...] | None:
    """Return the keys by which a SELECT makes groups; None without GROUP BY.

    Raises:
        AnalysisError: with Trino's code and place; NOT_SUPPORTED for types that are not grouped by here.
    """
    if node.group_by is None:
        return None
    site = analyzer.site
    analyzer.site = ExpressionSite("GROUP BY clause", judged_whole=True)
    keys = tuple(_key(item, analyzer, outputs) for item in node.group_by)
    for index in sorted(node.grouping.columns) if node.grouping is not None else ():
        if not isinstance(keys[index], e.Column) or isinstance(node.group_by[index], s.Literal):
            shown = formatted(node.group_by[index], analyzer.context.text)
            analyzer.context.error(
                "INVALID_COLUMN_REFERENCE",
                f"GROUP BY expression must be a column reference: {shown}",
                node.group_by[index].error_span,
            )
    analyzer.site = site
    return keys


def with_sets_once(node: s.Select, keys: tuple[e.Typed, ...] | None) -> s.Select:
    """Of GROUP BY DISTINCT, give each set once, whatever the order of its keys is, and however often it has one."""
    if node.grouping is None or not node.grouping.distinct or keys is None:
        return node
    first = {frozenset(keys[index] for index in found): found for found in reversed(node.grouping.sets)}
    sets = tuple(found for found in node.grouping.sets if found in first.values())
    return replace(node, grouping=replace(node.grouping, sets=sets))


def grouping_operations(
    context: Context, node: s.Select, values: Sequence[e.Typed], keys: tuple[e.Typed, ...] | None
) -> list[tuple[e.Typed, e.Typed]]:
    """Check what GROUPING is asked of; without several sets it is always 0.

    Raises:
        AnalysisError: MISSING_GROUP_BY, INVALID_ARGUMENTS.
    """
    found = [part for value in values for part in e.walk(value) if isinstance(part, e.Apply) and part.name == "grouping"]
    for part in found:
        if keys is None:
            context.error(
                "MISSING_GROUP_BY",
                "A GROUPING() operation can only be used with a corresponding GROUPING SET/CUBE/ROLLUP/GROUP BY clause",
                replace(node.span, about=part.detail.span),
            )
        wrong = next((argument for argument in part.arguments if argument not in keys), None)
        if wrong is not None:
            said = "The arguments to GROUPING() must be expressions referenced by the GROUP BY at the associated query level."
            shown = formatted(part.detail.arguments[part.arguments.index(wrong)], context.text)
            context.error("INVALID_ARGUMENTS", f"{said} Mismatch due to {shown}.", part.detail.span)
    return [(part, e.Constant(INTEGER, "0")) for part in found] if node.grouping is None else []


def check_groups(
    context: Context, values: Iterable[tuple[e.Typed, s.Node]], keys: tuple[e.Typed, ...], fields: Sequence[ScopeField]
) -> None:
    """Check that outside of aggregates only what is grouped by is read.

    Args:
        context: the statement.
        values: expressions over groups, and where they were written.
        keys: what is grouped by.
        fields: the columns of FROM, by which those of ``*`` are named.

    Raises:
        AnalysisError: EXPRESSION_NOT_AGGREGATE; NOT_SUPPORTED for a correlated subquery.
    """
    for value, written in values:
        if any(isinstance(part, e.Subquery) and part.kind == "scalar" and part.outer for part in e.walk(value)):
            context.error(
                "NOT_SUPPORTED",
                "A correlated subquery in a query with GROUP BY is not supported by this engine",
                written.error_span,
                "Put the GROUP BY into a subquery in FROM.",
            )
        if not _is_grouped(value, keys):
            _check_window(context, value, written, keys)
            if isinstance(written, s.AllColumns) and isinstance(value, e.Column):
                context.error(
                    "EXPRESSION_NOT_AGGREGATE", f"Column {_shown(value, fields)} not in GROUP BY clause", written.error_span
                )
            text = context.text
            shown = formatted(written, text) if isinstance(written, s.Expression) else written.span.of(text)
            context.error(
                "EXPRESSION_NOT_AGGREGATE",
                f"'{shown}' must be an aggregate expression or appear in GROUP BY clause",
                written.error_span,
            )


def _shown(column: e.Column, fields: Sequence[ScopeField]) -> str:
    """Return a column of FROM as Trino names it: with its table, and by its number where it has no name."""
    number, field = next((number, field) for number, field in enumerate(fields, 1) if field.symbol == column.symbol)
    return str(number) if field.name is None else f"'{'.'.join((*field.qualifier, field.name))}'"


def _check_window(context: Context, value: e.Typed, written: s.Node, keys: tuple[e.Typed, ...]) -> None:
    """Point at what a window is divided or sorted by, where that is at fault."""
    if not isinstance(value, e.Windowed) or not isinstance(written, s.Call) or written.window is None:
        return
    divided = zip(value.partition_by, written.window.partition_by, strict=False)
    ordered = zip(value.order_by, written.window.order_by, strict=False)
    parts = [(part, item, "PARTITION BY") for part, item in divided]
    parts += [(key.value, item.value, "ORDER BY") for key, item in ordered]
    for part, item, clause in parts:
        if not _is_grouped(part, keys):
            shown = formatted(item, context.text)
            context.error(
                "EXPRESSION_NOT_AGGREGATE",
                f"{clause} expression '{shown}' must be an aggregate expression or appear in GROUP BY clause",
                item.error_span,
            )


def _key(item: s.Expression, analyzer: ExpressionAnalyzer, outputs: Sequence[Output]) -> e.Typed:
    output = numbered_output(analyzer.context, item, outputs, "GROUP BY")
    if output is not None:
        value = output.value
        if isinstance(output.node, s.Expression):
            analyzer.judge_written(output.node)
    else:
        value = analyzer.whole(item)
    if is_zoned(value.type) and not in_one_zone(value):
        analyzer.context.error(
            "NOT_SUPPORTED",
            "GROUP BY timestamps that carry time zones of their own is not supported by this engine",
            item.error_span,
            "Write x AT TIME ZONE 'UTC' as timestamp: CAST(x AS timestamp).",
        )
    return value


def _is_grouped(node: e.Typed, keys: tuple[e.Typed, ...]) -> bool:
    if node in keys or isinstance(node, (e.Aggregate, e.Constant)):
        return True
    if isinstance(node, e.Column):
        return node.outer
    if isinstance(node, e.Windowed):
        inner = e.children(node.function) + node.partition_by + tuple(key.value for key in node.order_by)
        return all(_is_grouped(part, keys) for part in inner)
    if isinstance(node, e.Subquery):
        return node.value is None or _is_grouped(node.value, keys)
    return all(_is_grouped(part, keys) for part in e.children(node))
