"""GROUP BY: keys, and checks of expressions over groups."""

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
    from rowmerge_nb.sql.analyzer.queries.select_list import SelectedColumn
    from rowmerge_nb.sql.analyzer.scope import ScopeField


def with_keys(node: s.Select, outputs: Sequence[SelectedColumn]) -> s.Select:
    """Replace AUTO in GROUP BY by the SELECT list without aggregates and window functions."""
    if not any(isinstance(item, s.AutoKeys) for item in node.group_by or ()):
        return node
    positions = [
        position
        for position, output in enumerate(outputs, 1)
        if not isinstance(output.value, e.Aggregate | e.Windowed)
    ]
    keys: list[s.Expression] = []
    key_indexes: list[tuple[int, ...]] = []
    for item in node.group_by or ():
        item_keys = (
            [s.Literal(item.span, "integer", str(position)) for position in positions]
            if isinstance(item, s.AutoKeys)
            else [item]
        )
        key_indexes.append(tuple(range(len(keys), len(keys) + len(item_keys))))
        keys += item_keys
    grouping = node.grouping
    if grouping is not None:
        sets = tuple(
            tuple(chain.from_iterable(key_indexes[at] for at in group)) for group in grouping.sets
        )
        columns = frozenset(chain.from_iterable(key_indexes[at] for at in grouping.columns))
        grouping = replace(grouping, sets=sets, columns=columns)
    return replace(node, group_by=tuple(keys), grouping=grouping)


def grouped_by(
    node: s.Select, analyzer: ExpressionAnalyzer, outputs: Sequence[SelectedColumn]
) -> tuple[e.Typed, ...] | None:
    """Return the keys of GROUP BY; NOT_SUPPORTED for types that this engine does not group by."""
    if node.group_by is None:
        return None
    site = analyzer.site
    analyzer.site = ExpressionSite("GROUP BY clause", judged_whole=True)
    keys = tuple(_key(item, analyzer, outputs) for item in node.group_by)
    for index in sorted(node.grouping.columns) if node.grouping is not None else ():
        if not isinstance(keys[index], e.Column) or isinstance(node.group_by[index], s.Literal):
            key_text = formatted(node.group_by[index], analyzer.context.text)
            analyzer.context.error(
                "INVALID_COLUMN_REFERENCE",
                f"GROUP BY expression must be a column reference: {key_text}",
                node.group_by[index].error_span,
            )
    analyzer.site = site
    return keys


def with_sets_once(node: s.Select, keys: tuple[e.Typed, ...] | None) -> s.Select:
    """Remove repeated sets from GROUP BY DISTINCT, ignoring order and repetition of keys."""
    if node.grouping is None or not node.grouping.distinct or keys is None:
        return node
    first = {
        frozenset(keys[index] for index in group): group for group in reversed(node.grouping.sets)
    }
    sets = tuple(group for group in node.grouping.sets if group in first.values())
    return replace(node, grouping=replace(node.grouping, sets=sets))


def grouping_operations(
    context: Context, node: s.Select, values: Sequence[e.Typed], keys: tuple[e.Typed, ...] | None
) -> list[tuple[e.Typed, e.Typed]]:
    """Check GROUPING, and return replacements: without several sets it is 0."""
    operations = [
        part
        for value in values
        for part in e.walk(value)
        if isinstance(part, e.Apply) and part.name == "grouping"
    ]
    for part in operations:
        if keys is None:
            context.error(
                "MISSING_GROUP_BY",
                "A GROUPING() operation can only be used with a corresponding GROUPING"
                " SET/CUBE/ROLLUP/GROUP BY clause",
                replace(node.span, about=part.detail.span),
            )
        wrong = next((argument for argument in part.arguments if argument not in keys), None)
        if wrong is not None:
            message = (
                "The arguments to GROUPING() must be expressions referenced by the GROUP BY at the"
                " associated query level."
            )
            argument_text = formatted(
                part.detail.arguments[part.arguments.index(wrong)], context.text
            )
            context.error(
                "INVALID_ARGUMENTS", f"{message} Mismatch due to {argument_text}.", part.detail.span
            )
    return (
        [(part, e.Constant(INTEGER, "0")) for part in operations] if node.grouping is None else []
    )


def check_groups(
    context: Context,
    values: Iterable[tuple[e.Typed, s.Node]],
    keys: tuple[e.Typed, ...],
    fields: Sequence[ScopeField],
) -> None:
    """Check that outside of aggregates only grouping keys are read."""
    for value, node in values:
        if any(
            isinstance(part, e.Subquery) and part.kind == "scalar" and part.outer
            for part in e.walk(value)
        ):
            context.refuse(
                "A correlated subquery in a query with GROUP BY is not supported by this engine",
                node.error_span,
                "Put the GROUP BY into a subquery in FROM.",
            )
        if not _is_grouped(value, keys):
            _check_window(context, value, node, keys)
            if isinstance(node, s.AllColumns) and isinstance(value, e.Column):
                context.error(
                    "EXPRESSION_NOT_AGGREGATE",
                    f"Column {_column_text(value, fields)} not in GROUP BY clause",
                    node.error_span,
                )
            text = context.text
            expression_text = (
                formatted(node, text) if isinstance(node, s.Expression) else node.span.of(text)
            )
            context.error(
                "EXPRESSION_NOT_AGGREGATE",
                f"'{expression_text}' must be an aggregate expression or appear in GROUP BY clause",
                node.error_span,
                f"Add it to GROUP BY, or aggregate it, as max({expression_text}).",
            )


def _column_text(column: e.Column, fields: Sequence[ScopeField]) -> str:
    number, field = next(
        (number, field) for number, field in enumerate(fields, 1) if field.symbol == column.symbol
    )
    return str(number) if field.name is None else f"'{'.'.join((*field.qualifier, field.name))}'"


def _check_window(
    context: Context, value: e.Typed, node: s.Node, keys: tuple[e.Typed, ...]
) -> None:
    if (
        not isinstance(value, e.Windowed)
        or not isinstance(node, s.FunctionCall)
        or node.window is None
    ):
        return
    divided = zip(value.partition_by, node.window.partition_by, strict=False)
    ordered = zip(value.order_by, node.window.order_by, strict=False)
    parts = [(part, item, "PARTITION BY") for part, item in divided]
    parts += [(key.value, item.value, "ORDER BY") for key, item in ordered]
    for part, item, clause in parts:
        if not _is_grouped(part, keys):
            expression_text = formatted(item, context.text)
            context.error(
                "EXPRESSION_NOT_AGGREGATE",
                f"{clause} expression '{expression_text}' must be an aggregate expression or appear"
                " in GROUP BY clause",
                item.error_span,
            )


def _key(
    item: s.Expression, analyzer: ExpressionAnalyzer, outputs: Sequence[SelectedColumn]
) -> e.Typed:
    output = numbered_output(analyzer.context, item, outputs, "GROUP BY")
    if output is not None:
        value = output.value
        if isinstance(output.node, s.Expression):
            analyzer.judge_written(output.node)
    else:
        value = analyzer.whole(item)
    if is_zoned(value.type) and not in_one_zone(value):
        analyzer.context.refuse(
            "GROUP BY timestamps that carry time zones of their own is not supported by this"
            " engine",
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
        inner = (
            e.children(node.function)
            + node.partition_by
            + tuple(key.value for key in node.order_by)
        )
        return all(_is_grouped(part, keys) for part in inner)
    if isinstance(node, e.Subquery):
        return node.value is None or _is_grouped(node.value, keys)
    return all(_is_grouped(part, keys) for part in e.children(node))
