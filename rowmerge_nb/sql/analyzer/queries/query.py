"""Analyzes queries as trees whose output columns are symbols."""

# An analyzer calls private methods of other instances.
# ruff: noqa: SLF001

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.inline_functions import define_functions
from rowmerge_nb.sql.analyzer.queries.group_by import (
    check_groups,
    grouped_by,
    grouping_operations,
    with_keys,
    with_sets_once,
)
from rowmerge_nb.sql.analyzer.queries.named_queries import NamedQueries, check_columns
from rowmerge_nb.sql.analyzer.queries.recursion import (
    AnalyzedQuery,
    analyzed,
    recursion_of,
    recursive_rows,
)
from rowmerge_nb.sql.analyzer.queries.relation import QueryResult, RelationAnalyzer, RelationResult
from rowmerge_nb.sql.analyzer.queries.select_list import (
    SelectedColumn,
    numbered_output,
    outputs_by_name,
    select_list,
)
from rowmerge_nb.sql.analyzer.queries.windows import named_windows
from rowmerge_nb.sql.analyzer.rows.computed_rows import FEW_ROWS, computed_rows
from rowmerge_nb.sql.analyzer.rows.values_rows import (
    WrittenRow,
    common_row,
    constant_rows,
    values_rows,
)
from rowmerge_nb.sql.analyzer.scope import ScopeField
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.type_rules import common_type, instant, is_orderable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer

_SELECT = ExpressionSite("SELECT clause", aggregates=True, windows=True)
_EXPLAINED_ROWS = 10
"""Rows of VALUES that EXPLAIN shows."""
_HAVING = ExpressionSite("HAVING clause", aggregates=True)


@dataclass(frozen=True)
class _Above:
    outputs: tuple[SelectedColumn, ...]
    having: e.Typed | None
    order_by: tuple[e.Sort, ...]

    @property
    def values(self) -> list[e.Typed]:
        values = [*(output.value for output in self.outputs), *(key.value for key in self.order_by)]
        return [*values, self.having] if self.having is not None else values

    def changed(self, change: Callable[[e.Typed], e.Typed]) -> _Above:
        return _Above(
            tuple(replace(output, value=change(output.value)) for output in self.outputs),
            None if self.having is None else change(self.having),
            tuple(replace(key, value=change(key.value)) for key in self.order_by),
        )

    def replaced(self, pairs: Sequence[tuple[e.Typed, e.Typed]]) -> _Above:
        return self.changed(lambda value: e.replaced(value, pairs)) if pairs else self


class QueryAnalyzer(RelationAnalyzer):
    def query(self, node: s.QueryNode) -> QueryResult:
        define_functions(self.context, node.functions)
        inner = self._with(node.named_queries, recursive=node.recursive)
        if isinstance(node.body, s.Select):
            result = inner._select(node.body, node)
            self._check_fetch(node)
            return result
        result = inner._body(node.body)
        self._check_fetch(node)
        if not (node.order_by or node.offset or node.limit is not None):
            return result
        keys = tuple(inner._sort_key(item, result.fields) for item in node.order_by)
        return replace(
            result, tree=q.Ordered(result.tree, keys, node.limit, node.offset or 0, node.ties)
        )

    def _check_fetch(self, node: s.QueryNode) -> None:
        if node.fetch is not None and node.limit == 0:
            self.context.error(
                "NUMERIC_VALUE_OUT_OF_RANGE",
                f"FETCH FIRST row count must be positive (actual value: {node.limit})",
                node.fetch,
            )
        if node.ties and not node.order_by:
            self.context.error(
                "MISSING_ORDER_BY", "FETCH FIRST WITH TIES clause requires ORDER BY", node.fetch
            )

    def visible(
        self, named_queries: tuple[s.NamedQuery, ...], *, recursive: bool = False
    ) -> NamedQueries:
        return self._with(named_queries, recursive=recursive).named_queries

    def _with(
        self, named_queries: tuple[s.NamedQuery, ...], *, recursive: bool = False
    ) -> QueryAnalyzer:
        entries: dict[str, tuple[int, s.NamedQuery]] = {}
        for index, entry in enumerate(named_queries):
            if entry.name.value in entries:
                self.context.error(
                    "DUPLICATE_NAMED_QUERY",
                    f"WITH query name '{entry.name.value}' specified more than once",
                    entry.span,
                )
            visible_queries = NamedQueries(self.named_queries, entries, index)
            recursion = recursion_of(self.context, entry) if recursive else None
            # Unused queries must be valid too.
            if recursion is None:
                result = self._seeing(entry.query, visible_queries)
            else:
                result = recursive_rows(
                    self.context, entry, recursion, visible_queries, self._seeing
                )
            check_columns(self.context, entry, len(result.fields))
            entries[entry.name.value] = (
                index,
                entry if recursion is None else analyzed(entry, result),
            )
        return (
            QueryAnalyzer(
                self.context,
                self.parent,
                NamedQueries(self.named_queries, entries, len(named_queries)),
            )
            if named_queries
            else self
        )

    def _seeing(self, node: s.QueryBody, visible_queries: NamedQueries) -> QueryResult:
        return QueryAnalyzer(self.context, self.parent, visible_queries)._body(node)

    def _body(self, node: s.QueryBody) -> QueryResult:
        if isinstance(node, AnalyzedQuery):
            return node.renamed(self.context)
        if isinstance(node, s.QueryNode):
            return self.query(node)
        if isinstance(node, s.Select):
            return self._select(node, s.QueryNode(node.span, (), node, (), None, None))
        if isinstance(node, s.Values):
            return self._values(node)
        if isinstance(node, s.TableBody):
            whole = _whole(self._table(s.Table(node.span, node.name)))
            self.context.check_read(whole.fields, node.span)
            return whole
        assert isinstance(node, s.SetOperation)
        return self._set_operation(node)

    # -- VALUES

    def _values(self, node: s.Values) -> QueryResult:
        analyzer = self.expressions((), ExpressionSite("VALUES"))
        parts = values_rows(self.context, analyzer, node)
        fields = tuple(
            ScopeField(self.context.symbols.new("field"), None, column_type)
            for column_type in common_row(self.context, node, parts)
        )
        columns = tuple(e.Column(f.type, f.symbol) for f in fields)
        rows = constant_rows(parts, fields)
        if rows is not None:
            forms: tuple[q.Form, ...] = (q.Form(columns, self.context.bind(rows).view, columns),)
            return QueryResult(fields, q.Valued(columns, rows.count, rows.first, forms))
        written_rows = [part for part in parts if isinstance(part, WrittenRow)]
        is_numbered = len(written_rows) < len(parts) or len(parts) > FEW_ROWS
        if is_numbered:
            forms = computed_rows(self.context, analyzer, node, parts, fields)
        else:
            forms = tuple(q.Form(self._cells(analyzer, row, fields)) for row in written_rows)
        first_rows = [
            [analyzer.coerce(c, f.type) for c, f in zip(row.cells, fields, strict=True)]
            for row in written_rows[:_EXPLAINED_ROWS]
        ]
        count = sum(part.count for part in parts)
        return QueryResult(
            fields, q.Valued(columns, count, lambda most: first_rows[:most], forms, is_numbered)
        )

    def _cells(
        self, analyzer: ExpressionAnalyzer, row: WrittenRow, fields: tuple[ScopeField, ...]
    ) -> tuple[e.Typed, ...]:
        cells = zip(row.cells, row.nodes, fields, strict=True)
        return tuple(
            self.placed(analyzer.coerce(cell, field.type), node) for cell, node, field in cells
        )

    # -- UNION, INTERSECT, EXCEPT

    def _set_operation(self, node: s.SetOperation) -> QueryResult:
        left_side, right_side = self._body(node.left), self._body(node.right)
        if len(left_side.fields) != len(right_side.fields):
            self.context.error(
                "TYPE_MISMATCH",
                f"{node.operator} query has different number of fields: {len(left_side.fields)},"
                f" {len(right_side.fields)}",
                replace(node.word, about=node.right.span),
            )
        column_types = []
        for number, (a, b) in enumerate(zip(left_side.fields, right_side.fields, strict=True), 1):
            common = common_type(a.type, b.type)
            if common is None:
                self.context.error(
                    "TYPE_MISMATCH",
                    f"column {number} in {node.operator} query has incompatible types: {a.type},"
                    f" {b.type}",
                    replace(node.word, about=node.right.span),
                )
            column_types.append(
                instant(common) if node.distinct or node.operator != "UNION" else common
            )
        fields = tuple(
            replace(f, symbol=self.context.symbols.new(f.symbol), type=column_type, qualifier=())
            for f, column_type in zip(left_side.fields, column_types, strict=True)
        )
        columns = tuple(e.Column(f.type, f.symbol) for f in fields)
        sides = left_side.coerced_tree(column_types), right_side.coerced_tree(column_types)
        return QueryResult(fields, q.SetOperated(node.operator, node.distinct, *sides, columns))

    # -- SELECT

    def _select(self, node: s.Select, query: s.QueryNode) -> QueryResult:
        relation = self.relation(node.relation) if node.relation is not None else None
        fields = relation.fields if relation else ()
        analyzer = self.expressions(fields, _SELECT)
        analyzer.select = node.span
        analyzer.windows = named_windows(analyzer, node)
        where = self._condition(
            node.where,
            fields,
            ExpressionSite("WHERE clause", judged_whole=True),
            "WHERE clause must evaluate to a boolean: actual type {}",
        )
        outputs = select_list(node, analyzer, None if relation is None else fields)
        node = with_keys(node, outputs)
        if node.distinct:
            outputs = [
                replace(output, field=replace(output.field, type=instant(output.field.type)))
                for output in outputs
            ]
        group_by = grouped_by(node, analyzer, outputs)
        node = with_sets_once(node, group_by)
        having = self._condition(
            node.having, fields, _HAVING, "HAVING clause must evaluate to a boolean: actual type {}"
        )
        if query.order_by:
            analyzer.outputs = outputs_by_name(outputs)
        keys = tuple(self._order_key(item, analyzer, outputs, node) for item in query.order_by)
        analyzer.outputs = {}
        above = _Above(tuple(outputs), having, keys)
        above = above.replaced(grouping_operations(self.context, node, above.values, group_by))
        self._check_groups(node, above, group_by, query, fields)
        if group_by:
            # Spark matches a key with a grouping expression only if their texts are equal, error
            # numbers included.
            group_by = tuple(
                self._placed_key(key, item, above.outputs)
                for key, item in zip(group_by, node.group_by or (), strict=True)
            )
            above = above.replaced([(key, key) for key in group_by])
        self._check_frames(node, above)
        return QueryResult(
            tuple(output.field for output in above.outputs),
            self._tree(relation, where, above, group_by, node, query),
        )

    def _check_frames(self, node: s.Select, above: _Above) -> None:
        windows = [
            part for value in above.values for part in e.walk(value) if isinstance(part, e.Windowed)
        ]
        counts_groups = any(
            window.frame is not None and window.frame.unit == "GROUPS" for window in windows
        )
        is_grouped = (
            node.group_by is not None
            or node.having is not None
            or any(map(e.is_aggregated, above.values))
        )
        if counts_groups and is_grouped:
            self.context.refuse(
                "A frame of GROUPS in a query with GROUP BY or aggregates is not supported by this"
                " engine",
                node.span,
                "Put the GROUP BY into a subquery in FROM.",
            )

    def _check_groups(
        self,
        node: s.Select,
        above: _Above,
        group_by: tuple[e.Typed, ...] | None,
        query: s.QueryNode,
        fields: Sequence[ScopeField],
    ) -> None:
        values: list[tuple[e.Typed, s.Node]] = [
            (output.value, output.node) for output in above.outputs
        ]
        values += [(above.having, node.having)] if above.having and node.having else []
        output_symbols = {output.field.symbol for output in above.outputs}
        values += [
            (key.value, item.value)
            for key, item in zip(above.order_by, query.order_by, strict=True)
            if not (isinstance(key.value, e.Column) and key.value.symbol in output_symbols)
        ]
        if (
            group_by is not None
            or above.having is not None
            or any(e.is_aggregated(value) for value, _ in values)
        ):
            check_groups(self.context, values, group_by or (), fields)

    def _tree(
        self,
        relation: RelationResult | None,
        where: e.Typed | None,
        above: _Above,
        keys: tuple[e.Typed, ...] | None,
        node: s.Select,
        query: s.QueryNode,
    ) -> q.Selected:
        return q.Selected(
            source=relation.tree if relation is not None else None,
            where=where if where is None or node.where is None else self.placed(where, node.where),
            outputs=tuple(
                (
                    e.Column(output.field.type, output.field.symbol),
                    self.placed(output.value, output.node),
                )
                for output in above.outputs
            ),
            keys=keys,
            sets=tuple(node.grouping.sets) if node.grouping is not None else None,
            having=(
                above.having
                if above.having is None or node.having is None
                else self.placed(above.having, node.having)
            ),
            distinct=node.distinct,
            order_by=above.order_by,
            limit=query.limit,
            offset=query.offset or 0,
            ties=query.ties,
        )

    def _placed_key(
        self, key: e.Typed, item: s.Expression, outputs: Sequence[SelectedColumn]
    ) -> e.Typed:
        node = next((output.node for output in outputs if key in e.walk(output.value)), item)
        return replace(key, origin=self.context.origin(node.span))

    def _condition(
        self,
        node: s.Expression | None,
        fields: tuple[ScopeField, ...],
        site: ExpressionSite,
        message: str,
    ) -> e.Typed | None:
        if node is None:
            return None
        return self.expressions(fields, site).condition(node, message)

    # -- ORDER BY

    def _order_key(
        self,
        item: s.SortItem,
        analyzer: ExpressionAnalyzer,
        outputs: Sequence[SelectedColumn],
        node: s.Select,
    ) -> e.Sort:
        value = self._order_value(item.value, analyzer, outputs)
        if not is_orderable(value.type):
            self.context.refuse_number((value.type,), item.value.span)
            key_text = formatted(item.value, self.context.text)
            self.context.error(
                "TYPE_MISMATCH",
                f"Type {value.type} is not orderable, and therefore cannot be used in ORDER BY:"
                f" {key_text}",
                replace(node.span, about=item.value.span),
            )
        same = next((output for output in outputs if output.value == value), None)
        if same is not None:
            value = e.Column(same.field.type, same.field.symbol)
        elif node.distinct and not (
            isinstance(value, e.Column) and any(o.field.symbol == value.symbol for o in outputs)
        ):
            self.context.error(
                "EXPRESSION_NOT_IN_DISTINCT",
                "For SELECT DISTINCT, ORDER BY expressions must appear in select list",
                replace(node.span, about=item.value.error_span),
            )
        return e.Sort(value, item.descending, item.nulls_first)

    def _order_value(
        self, item: s.Expression, analyzer: ExpressionAnalyzer, outputs: Sequence[SelectedColumn]
    ) -> e.Typed:
        output = numbered_output(self.context, item, outputs, "ORDER BY")
        if output is not None:
            return e.Column(output.field.type, output.field.symbol)
        if isinstance(item, s.Name) and len(item.parts) == 1:
            matching = [
                output.field for output in outputs if output.field.matches([item.parts[0].value])
            ]
            if len(matching) > 1:
                self.context.error(
                    "AMBIGUOUS_NAME", f"Column '{item.parts[0].value}' is ambiguous", item.span
                )
            if matching:
                return e.Column(matching[0].type, matching[0].symbol)
        if any(isinstance(part, (s.ScalarQuery, s.Exists)) for part in s.walk(item)):
            return self._order_by_query(item, analyzer, outputs)
        return analyzer.analyze(item)

    def _order_by_query(
        self, item: s.Expression, analyzer: ExpressionAnalyzer, outputs: Sequence[SelectedColumn]
    ) -> e.Typed:
        try:
            return analyzer.analyze(item)
        except AnalysisError as error:
            if error.code != "COLUMN_NOT_FOUND":
                raise
            return self.expressions(
                tuple(output.field for output in outputs), ExpressionSite("ORDER BY clause")
            ).analyze(item)

    def _sort_key(self, item: s.SortItem, fields: tuple[ScopeField, ...]) -> e.Sort:
        outputs = [SelectedColumn(e.Column(f.type, f.symbol), f, item) for f in fields]
        analyzer = self.expressions(fields, ExpressionSite("ORDER BY clause"))
        return e.Sort(
            self._order_value(item.value, analyzer, outputs), item.descending, item.nulls_first
        )


def _whole(relation: RelationResult) -> QueryResult:
    fields = tuple(field for field in relation.fields if not field.is_hidden)
    if len(fields) == len(relation.fields):
        return QueryResult(fields, relation.tree)
    return QueryResult(
        fields, q.Coerced(relation.tree, tuple((e.Column(f.type, f.symbol),) * 2 for f in fields))
    )
