"""Plans a query's tree into nodes in the order that SQL defines, without reordering.

Scans read only the columns that are used. A column that is merely renamed keeps its symbol.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatchmethod
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rowmerge_nb.base.next_steps import Refusal
from rowmerge_nb.plan import query_nodes as n
from rowmerge_nb.plan.explained_expressions import printed
from rowmerge_nb.plan.plan_nodes import (
    Assignment,
    Filter,
    Join,
    PlanNode,
    Project,
    Symbol,
    TableScan,
)
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.spi.types import BIGINT, BOOLEAN
from rowmerge_nb.sql.functions.overloads import overloads
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.domains import conjunction, conjuncts
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rowmerge_nb.plan.plan_nodes import Source
    from rowmerge_nb.sql.analyzer.analysis import TableBinding

Node = TypeVar("Node", bound=PlanNode)
_WINDOW: Final = "window"


@dataclass(frozen=True)
class QueryPlan:
    root: PlanNode
    columns: tuple[e.Column, ...]


def plan_query_tree(source: Source) -> QueryPlan:
    planner = _QueryPlanner(source.tree, source.tables, source.id)
    root = planner.plan(source.tree)
    return QueryPlan(root, planner.columns_now(q.columns_of(source.tree)))


def source_nodes(source: Source) -> PlanNode:
    """Return the last node of a query, without unread columns."""
    plan = plan_query_tree(source)
    outputs = {symbol.name for symbol in source.outputs}
    pairs = zip(q.columns_of(source.tree), plan.columns, strict=True)
    return pruned(plan.root, {now.symbol for column, now in pairs if column.symbol in outputs})


def columns_of(node: PlanNode) -> tuple[e.Column, ...]:
    return tuple(e.Column(symbol.type, symbol.name) for symbol in node.outputs)


def filtered(node_id: str, source: PlanNode, predicate: e.Typed) -> Filter:
    return Filter(
        id=node_id,
        outputs=source.outputs,
        source=source,
        predicate=predicate,
        text=printed(predicate),
    )


@dataclass
class _Step:
    number: int
    is_open: bool = False


class _QueryPlanner:
    def __init__(self, tree: q.Query, tables: Sequence[TableBinding], prefix: str) -> None:
        queries = [tree, *(inner.query for inner in q.subqueries(tree))]
        typed = (
            part for query in queries for part in q.parts_of(query) if isinstance(part, e.Typed)
        )
        self._used = {
            part.symbol for value in typed for part in e.walk(value) if isinstance(part, e.Column)
        }
        self._tables = {table.view: table for table in tables}
        self._ids = (f"{prefix}.{number}" for number in count(1))
        self._renamed: dict[str, e.Column] = {}
        self._step = _Step(0)

    # -- relations

    @singledispatchmethod
    def plan(self, query: Any) -> PlanNode:
        raise AssertionError(query)

    @plan.register
    def _(self, query: q.Scanned) -> PlanNode:
        table = self._tables[query.view]
        handles = {handle.name: handle for handle in table.readable}
        columns = tuple(
            handles.get(name) or ColumnHandle(name, column.type) for column, name in query.columns
        )
        return self._node(TableScan, q.columns_of(query), table=table, columns=columns)

    @plan.register
    def _(self, query: q.Valued) -> PlanNode:
        return self._values(query.columns, query.count, query.first)

    @plan.register
    def _(self, query: q.Generated) -> PlanNode:
        return self._node(n.TableFunctionProcessorNode, query.columns, function=query.name)

    @plan.register
    def _(self, query: q.Unnested) -> PlanNode:
        return self._unnest(self._one_row(), query, "")

    @plan.register
    def _(self, query: q.Joined) -> PlanNode:
        left = self.plan(query.left)
        if isinstance(query.right, q.Unnested) and (query.condition is None or query.lateral):
            node = self._unnest(left, query.right, "INNER" if query.kind == "CROSS" else query.kind)
        elif query.lateral:
            node = self._correlated(left, self.plan(query.right))
        else:
            node = self._join(JoinType[query.kind], left, self.plan(query.right), query.condition)
        pairs = [(column, self._now(_only_value(value))) for column, value in query.shared]
        return self._project(node, pairs, also=self.columns_now(query.rest)) if pairs else node

    def _join(
        self, join_type: JoinType, left: PlanNode, right: PlanNode, condition: e.Typed | None
    ) -> PlanNode:
        conditions = [] if condition is None else [self._now(part) for part in conjuncts(condition)]
        sides = [left, right]
        for index, part in enumerate(conditions):
            reads = {symbol for inner in _queries_of(part) for symbol in e.references(inner)}
            # A query in the condition is planned over the side whose columns it reads.
            side = next(
                (i for i in (0, 1) if reads <= {symbol.name for symbol in sides[i].outputs}), None
            )
            if side is not None:
                sides[side], (conditions[index],) = self._subqueries(sides[side], [part])
        names = [frozenset(symbol.name for symbol in side.outputs) for side in sides]
        equalities = tuple(
            pair for part in conditions if (pair := equality(part, *names)) is not None
        )
        predicate = conjunction(conditions) if conditions else e.TRUE
        return self._node(
            Join,
            (*columns_of(sides[0]), *columns_of(sides[1])),
            left=sides[0],
            right=sides[1],
            predicate=predicate,
            text=printed(predicate) if conditions else "",
            equalities=equalities,
            distribution="",
            type=join_type,
        )

    def _correlated(
        self, left: PlanNode, right: PlanNode, outer: Iterable[e.Column] | None = None
    ) -> PlanNode:
        """Join rows with a query that reads ``outer``, or what its nodes read of them."""
        reads = (
            _read_by(right)
            if outer is None
            else {column.symbol for column in self.columns_now(outer)}
        )
        correlation = tuple(column for column in columns_of(left) if column.symbol in reads)
        outputs = (*columns_of(left), *columns_of(right))
        return self._node(
            n.CorrelatedJoinNode, outputs, source=left, query=right, correlation=correlation
        )

    def _unnest(self, source: PlanNode, query: q.Unnested, join: str) -> PlanNode:
        source, items = self._subqueries(source, [self._now(item) for item in query.items])
        source, columns = self._computed(source, items)
        ordinality = query.ordinality and len(query.columns) == sum(query.groups)
        elements = (
            *query.columns,
            *([self._new(e.Constant(BIGINT, None), "ordinality")] if ordinality else []),
        )
        arrays = {
            column.symbol for column, item in zip(columns, items, strict=True) if column is not item
        }
        others = (column for column in columns_of(source) if column.symbol not in arrays)
        return self._node(
            n.UnnestNode,
            (*others, *elements),
            source=source,
            items=columns,
            columns=elements,
            type=join,
        )

    # -- queries

    @plan.register
    def _(self, query: q.Coerced) -> PlanNode:
        node = self.plan(query.source)
        node, values = self._subqueries(node, [self._now(value) for _, value in query.columns])
        renames = all(isinstance(value, e.Column) for value in values)
        return self._project(
            node, list(zip(q.columns_of(query), values, strict=True)), renames=renames
        )

    @plan.register
    def _(self, query: q.Ordered) -> PlanNode:
        return self._ordered(self.plan(query.source), query.order_by, query)

    @plan.register
    def _(self, query: q.SetOperated) -> PlanNode:
        parts: list[PlanNode] = []
        inputs: list[tuple[e.Column, ...]] = []
        for side in (query.left, query.right):
            part = self.plan(side)
            columns = self.columns_now(q.columns_of(side))
            # A union of unions is one.
            if (
                isinstance(part, n.SetOperationNode)
                and part.operator == query.operator == "UNION"
                and columns == columns_of(part)
            ):
                parts += part.parts
                inputs += part.inputs
            else:
                parts.append(part)
                inputs.append(columns)
        return self._set_operation(
            query.operator, query.columns, parts, inputs, distinct=query.distinct
        )

    def _set_operation(
        self,
        operator: str,
        columns: tuple[e.Column, ...],
        parts: Sequence[PlanNode],
        inputs: Sequence[tuple[e.Column, ...]],
        *,
        distinct: bool,
    ) -> PlanNode:
        node = self._node(
            n.SetOperationNode,
            columns,
            operator=operator,
            is_all=not distinct,
            parts=tuple(parts),
            inputs=tuple(inputs),
        )
        return (
            self._node(n.AggregateNode, columns, source=node, keys=columns)
            if distinct and operator == "UNION"
            else node
        )

    @plan.register
    def _(self, query: q.Recursive) -> PlanNode:
        parts, inputs, around = [], [], self._step
        for number, level in enumerate(query.levels):
            self._step = _Step(number)
            parts.append(self.plan(level))
            inputs.append(self.columns_now(q.columns_of(level)))
        self._step = around
        return self._set_operation("UNION", query.columns, parts, inputs, distinct=query.distinct)

    @plan.register
    def _(self, query: q.Stepped) -> PlanNode:
        """Plan a step of a recursion.

        The step before it, which is within its query, is planned by itself.
        """
        if not self._step.is_open:
            self._step.is_open = True
            return self.plan(query.source)
        columns = q.columns_of(query)
        for column in columns:
            self._renamed.pop(column.symbol, None)
        return self._node(n.RecursionStepNode, columns, level=self._step.number - 1)

    @plan.register
    def _(self, query: q.Failing) -> PlanNode:
        return self._filter(
            self.plan(query.source),
            e.Apply(BOOLEAN, "fail", (), Refusal(query.code, query.message)),
        )

    @plan.register
    def _(self, query: q.Extremes) -> PlanNode:
        node = self.plan(query.source)
        [value], [column] = self.columns_now(q.columns_of(query.source)), query.columns
        aggregates = (
            e.Aggregate(BIGINT, "count", ()),
            e.Aggregate(BIGINT, "count", (value,)),
            e.Aggregate(value.type, "min", (value,)),
            e.Aggregate(value.type, "max", (value,)),
        )
        calls = tuple((self._new(call), call) for call in aggregates)
        node = self._node(
            n.AggregateNode, [output for output, _ in calls], source=node, keys=(), calls=calls
        )
        return self._project(
            node, [(column, e.Apply(column.type, "row", tuple(output for output, _ in calls)))]
        )

    @plan.register
    def _(self, query: q.Selected) -> PlanNode:
        node = self.plan(query.source) if query.source is not None else self._one_row()
        if query.where is not None:
            node, (where,) = self._subqueries(node, [self._now(query.where)])
            node = self._filter(node, where)
        columns = q.columns_of(query)
        own = {column.symbol for column in columns}
        keys = [key.value for key in query.order_by if not isinstance(key.value, e.Constant)]
        # A key of ORDER BY that is no output is computed with the SELECT list.
        sort_values = [key for key in keys if not e.references(key) <= own or not e.references(key)]
        having = [query.having] if query.having is not None else []
        outputs = list(query.outputs)
        sorted_by = (e.replaced(key, outputs) for key in sort_values)
        values = [
            self._now(value) for value in (*(value for _, value in outputs), *sorted_by, *having)
        ]
        node, values = self._grouped(node, query, values)
        if having:
            node, (condition,) = self._subqueries(node, values[-1:])
            node, values = self._filter(node, condition), values[:-1]
        node, values = self._windowed(node, values)
        node, values = self._subqueries(node, values)
        sort_columns = [self._new(value) for value in sort_values]
        node = self._project(node, list(zip((*columns, *sort_columns), values, strict=True)))
        if query.distinct:
            distinct = tuple(dict.fromkeys(self.columns_now((*columns, *sort_columns))))
            node = self._node(n.AggregateNode, distinct, source=node, keys=distinct)
        pairs = list(zip(sort_values, sort_columns, strict=True))
        order = tuple(replace(key, value=e.replaced(key.value, pairs)) for key in query.order_by)
        return self._ordered(node, order, query)

    def _grouped(
        self, node: PlanNode, query: q.Selected, values: list[e.Typed]
    ) -> tuple[PlanNode, list[e.Typed]]:
        calls = list(dict.fromkeys(call for value in values for call in _aggregates(value)))
        if query.keys is None and not calls and query.having is None:
            return node, values
        groups = [self._now(key) for key in query.keys or ()]
        arguments = [value for call in calls for value in e.children(call)]
        node, below = self._subqueries(node, [*groups, *arguments])
        node, columns = self._computed(node, below)
        keys, rest = columns[: len(groups)], iter(columns[len(groups) :])
        over = [replace_arguments(call, [next(rest) for _ in e.children(call)]) for call in calls]
        pairs: list[tuple[e.Typed, e.Typed]] = list(zip(groups, keys, strict=True))
        unique = tuple(dict.fromkeys(keys))
        if query.sets is not None:
            node, by_key, number = self._group_id(node, query.sets, keys, columns[len(groups) :])
            pairs = [(value, by_key[key]) for value, key in zip(groups, keys, strict=True)]
            unique = (*by_key.values(), number)
        aggregates = tuple((self._new(call), call) for call in over)
        outputs = (*unique, *(column for column, _ in aggregates))
        node = self._node(n.AggregateNode, outputs, source=node, keys=unique, calls=aggregates)
        pairs += [(call, column) for call, (column, _) in zip(calls, aggregates, strict=True)]
        return node, [e.replaced(value, pairs) for value in values]

    def _group_id(
        self, node: PlanNode, sets: q.Sets, keys: Sequence[e.Column], arguments: Iterable[e.Column]
    ) -> tuple[PlanNode, dict[e.Column, e.Column], e.Column]:
        number = self._new(e.Constant(BIGINT, None), "groupid")
        by_key = {key: self._new(key, f"{key.symbol}$gid") for key in dict.fromkeys(keys)}
        others = tuple(dict.fromkeys(arguments))
        columns = tuple(
            tuple(dict.fromkeys(by_key[keys[index]] for index in indexes)) for indexes in sets
        )
        renamed = tuple((column, key) for key, column in by_key.items())
        outputs = (*by_key.values(), *others, number)
        return (
            self._node(
                n.GroupIdNode, outputs, source=node, keys=renamed, sets=columns, arguments=others
            ),
            by_key,
            number,
        )

    def _windowed(self, node: PlanNode, values: list[e.Typed]) -> tuple[PlanNode, list[e.Typed]]:
        calls = list(dict.fromkeys(call for value in values for call in _windows(value)))
        if not calls:
            return node, values
        node, below = self._subqueries(
            node, [value for call in calls for value in _window_values(call)]
        )
        node, columns = self._computed(node, below)
        rest = iter(columns)
        windows: dict[Any, list[tuple[e.Windowed, e.Windowed]]] = {}
        for call in calls:
            over = _over_columns(call, [next(rest) for _ in _window_values(call)])
            windows.setdefault((over.partition_by, over.order_by), []).append((call, over))
        pairs: list[tuple[e.Typed, e.Typed]] = []
        for (partition_by, order_by), group in windows.items():
            functions = tuple((self._new(call, _function_name(call)), over) for call, over in group)
            outputs = (*columns_of(node), *(column for column, _ in functions))
            keys = tuple(key for key in partition_by if isinstance(key, e.Column))
            node = self._node(
                n.WindowNode,
                outputs,
                source=node,
                partition_by=keys,
                order_by=order_by,
                calls=functions,
            )
            pairs += [
                (call, column) for (call, _), (column, _) in zip(group, functions, strict=True)
            ]
        return node, [e.replaced(value, pairs) for value in values]

    def _ordered(
        self, node: PlanNode, keys: Sequence[e.Sort], query: q.Selected | q.Ordered
    ) -> PlanNode:
        keys = [key for key in keys if not isinstance(key.value, e.Constant)]
        node, columns = self._computed(node, [self._now(key.value) for key in keys])
        order = tuple(replace(key, value=column) for key, column in zip(keys, columns, strict=True))
        outputs, limit = columns_of(node), query.limit
        if order and limit is not None and query.ties:
            return self._with_ties(node, order, limit, query.offset)
        if order and limit is not None and not query.offset:
            return self._node(n.TopNNode, outputs, source=node, count=limit, order_by=order)
        node = self._node(n.SortNode, outputs, source=node, order_by=order) if order else node
        node = (
            self._node(n.OffsetNode, outputs, source=node, count=query.offset)
            if query.offset
            else node
        )
        return node if limit is None else self._node(n.LimitNode, outputs, source=node, count=limit)

    def _with_ties(
        self, node: PlanNode, order: tuple[e.Sort, ...], limit: int, offset: int
    ) -> PlanNode:
        """Plan FETCH FIRST WITH TIES: rows up to a rank, behind those of OFFSET, sorted by number."""
        functions = [
            e.Apply(BIGINT, "function", (), overloads(name)[0]) for name in ("rank", "row_number")
        ]
        calls = [e.Windowed(BIGINT, function, (), order, None) for function in functions]
        rank, number = self._new(calls[0], "rank_num"), self._new(calls[1], "row_number")
        outputs = (*columns_of(node), rank, number)
        pairs = tuple(zip((rank, number), calls, strict=True))
        node = self._node(
            n.WindowNode, outputs, source=node, partition_by=(), order_by=order, calls=pairs
        )
        condition = e.Apply(BOOLEAN, "<=", (rank, e.Constant(BIGINT, str(limit + offset))))
        if offset:
            skipped = e.Apply(BOOLEAN, ">", (number, e.Constant(BIGINT, str(offset))))
            condition = e.Apply(BOOLEAN, "and", (condition, skipped))
        by_number = (e.Sort(number, descending=False, nulls_first=False),)
        return self._node(
            n.SortNode, outputs, source=self._filter(node, condition), order_by=by_number
        )

    # -- expressions

    def columns_now(self, columns: Iterable[e.Column]) -> tuple[e.Column, ...]:
        return tuple(self._renamed.get(column.symbol, column) for column in columns)

    def _now(self, value: e.Typed) -> e.Typed:
        columns = {
            part
            for part in e.walk(value)
            if isinstance(part, e.Column) and part.symbol in self._renamed
        }
        pairs = [
            (column, replace(self._renamed[column.symbol], outer=column.outer))
            for column in columns
        ]
        return e.replaced(value, pairs) if pairs else value

    def _new(self, value: e.Typed, base: str = "") -> e.Column:
        base = base or (value.name if isinstance(value, e.Aggregate) else "expr")
        symbol = next(
            name for i in count(-1) if (name := base if i < 0 else f"{base}_{i}") not in self._used
        )
        self._used.add(symbol)
        return e.Column(value.type, symbol)

    def _project(
        self,
        node: PlanNode,
        pairs: Sequence[tuple[e.Column, e.Typed]],
        *,
        also: Sequence[e.Column] = (),
        renames: bool = True,
    ) -> PlanNode:
        """Compute columns; ``also`` pass through.

        If ``renames`` is set, the first column that is another one keeps that one's symbol.
        """
        below = {symbol.name for symbol in node.outputs}
        outputs: dict[e.Column, None] = {}
        assignments = []
        for column, value in pairs:
            self._renamed.pop(column.symbol, None)
            passes = (
                isinstance(value, e.Column)
                and value.symbol in below
                and (renames or value.symbol == column.symbol)
            )
            if (
                isinstance(value, e.Column)
                and passes
                and value not in outputs
                and value not in also
            ):
                outputs[value] = None
                if value.symbol != column.symbol:
                    self._renamed[column.symbol] = value
            else:
                outputs[column] = None
                assignments.append(
                    Assignment(Symbol(column.symbol, column.type), value, printed(value))
                )
        if not assignments:
            return node
        return self._node(Project, (*outputs, *also), source=node, assignments=tuple(assignments))

    def _computed(
        self, node: PlanNode, values: Sequence[e.Typed]
    ) -> tuple[PlanNode, tuple[e.Column, ...]]:
        new_columns = {
            value: self._new(value)
            for value in dict.fromkeys(values)
            if not isinstance(value, e.Column)
        }
        if new_columns:
            assignments = tuple(
                Assignment(Symbol(c.symbol, c.type), value, printed(value))
                for value, c in new_columns.items()
            )
            node = self._node(
                Project,
                (*columns_of(node), *new_columns.values()),
                source=node,
                assignments=assignments,
            )
        return node, tuple(
            value if isinstance(value, e.Column) else new_columns[value] for value in values
        )

    def _subqueries(
        self, node: PlanNode, values: Sequence[e.Typed]
    ) -> tuple[PlanNode, list[e.Typed]]:
        pairs: list[tuple[e.Typed, e.Typed]] = []
        for query in dict.fromkeys(query for value in values for query in _queries_of(value)):
            node, answer = self._subquery(node, query)
            pairs.append((query, answer))
        return node, [e.replaced(value, pairs) for value in values] if pairs else list(values)

    def _subquery(self, node: PlanNode, query: e.Subquery) -> tuple[PlanNode, e.Typed]:
        value = key = None
        if query.value is not None:
            node, operands = self._subqueries(node, [query.value])
            node, (value,) = self._computed(node, operands)
        inner = self.plan(query.query)
        columns = self.columns_now(q.columns_of(query.query))
        outer = {column.symbol for column in self.columns_now(query.outer)}
        correlation = tuple(column for column in columns_of(node) if column.symbol in outer)
        if query.kind != "scalar":
            answer = self._new(e.Constant(BOOLEAN, None))
            key = columns[0] if value is not None else None
            outputs = (*columns_of(node), answer)
            fields = {
                "query": inner,
                "correlation": correlation,
                "column": answer,
                "value": value,
                "key": key,
            }
            return self._node(n.ApplyNode, outputs, source=node, **fields), answer
        if not query.aggregates:
            inner = self._node(n.EnforceSingleRowNode, columns_of(inner), source=inner)
        node = (
            self._correlated(node, inner, correlation)
            if correlation
            else self._join(JoinType.CROSS, node, inner, None)
        )
        return node, columns[0] if len(columns) == 1 else e.Apply(query.type, "row", columns)

    # -- nodes

    def _node(self, node_type: type[Node], outputs: Iterable[e.Column], /, **fields: Any) -> Node:
        return node_type(
            id=next(self._ids), outputs=tuple(Symbol(c.symbol, c.type) for c in outputs), **fields
        )

    def _filter(self, node: PlanNode, predicate: e.Typed) -> Filter:
        return filtered(next(self._ids), node, predicate)

    def _values(self, columns: tuple[e.Column, ...], rows: int, first: n.Rows) -> n.ValuesNode:
        return self._node(n.ValuesNode, columns, count=rows, first=first, columns=columns)

    def _one_row(self) -> n.ValuesNode:
        return self._values((), 1, lambda _: [[]])


def replace_arguments(call: e.Aggregate, columns: Sequence[e.Column]) -> e.Aggregate:
    """Return an aggregate over columns, in the order of `children`."""
    rest = iter(columns)
    arguments = tuple(next(rest) for _ in call.arguments)
    mask = next(rest) if call.filter is not None else None
    return replace(
        call,
        arguments=arguments,
        filter=mask,
        order_by=tuple(replace(k, value=next(rest)) for k in call.order_by),
    )


def _over_columns(call: e.Windowed, columns: Sequence[e.Column]) -> e.Windowed:
    pairs = list(zip(_window_values(call), columns, strict=True))
    function = call.function
    if isinstance(function, e.Aggregate):
        function = replace_arguments(function, columns[: len(e.children(function))])
    elif isinstance(function, e.Apply):
        function = replace(
            function,
            arguments=tuple(e.replaced(argument, pairs) for argument in function.arguments),
        )
    partition = tuple(e.replaced(key, pairs) for key in call.partition_by)
    order = tuple(replace(key, value=e.replaced(key.value, pairs)) for key in call.order_by)
    return replace(call, function=function, partition_by=partition, order_by=order)


def _window_values(call: e.Windowed) -> tuple[e.Typed, ...]:
    return (*e.children(call.function), *call.partition_by, *(key.value for key in call.order_by))


def _function_name(call: e.Windowed) -> str:
    function = call.function
    return (
        function.name
        if isinstance(function, e.Aggregate)
        else getattr(getattr(function, "detail", None), "name", _WINDOW)
    )


def _only_value(value: e.Typed) -> e.Typed:
    """Return a column of USING: that of one side, or of either if the join keeps rows of both."""
    is_one = isinstance(value, e.Apply) and value.name == "coalesce" and len(value.arguments) == 1
    return e.children(value)[0] if is_one else value


def equality(
    term: e.Typed, left: frozenset[str], right: frozenset[str]
) -> tuple[e.Typed, e.Typed] | None:
    if not isinstance(term, e.Apply) or term.name != "=":
        return None
    for one, other in (term.arguments, term.arguments[::-1]):
        reads = e.references(one), e.references(other)
        if all(reads) and reads[0] <= left and reads[1] <= right:
            return one, other
    return None


def _windows(node: e.Typed) -> Iterator[e.Windowed]:
    if isinstance(node, e.Windowed):
        yield node
    elif not isinstance(node, e.Subquery):
        for child in e.children(node):
            yield from _windows(child)


def _aggregates(node: e.Typed) -> Iterator[e.Aggregate]:
    if isinstance(node, e.Aggregate):
        yield node
        return
    inner = (
        _window_values(node)
        if isinstance(node, e.Windowed)
        else ()
        if isinstance(node, e.Subquery)
        else e.children(node)
    )
    for child in inner:
        yield from _aggregates(child)


def _queries_of(node: e.Typed) -> Iterator[e.Subquery]:
    if isinstance(node, e.Subquery):
        yield node
        return
    for child in e.children(node):
        yield from _queries_of(child)


def _read_by(node: PlanNode) -> frozenset[str]:
    own = frozenset(symbol for part in node.expressions for symbol in e.references(part))
    return own.union(*map(_read_by, node.sources))


# -- columns that are not read

_SOURCES: Final = ("source", "left", "right", "query")


def with_sources(node: Node, sources: Iterable[PlanNode]) -> Node:
    rest = list(sources)
    if isinstance(node, n.SetOperationNode):
        return replace(node, parts=tuple(rest))
    changes: dict[str, Any] = dict(
        zip((name for name in _SOURCES if hasattr(node, name)), rest, strict=True)
    )
    return replace(node, **changes)


def pruned(node: PlanNode, read: set[str]) -> PlanNode:
    """Drop unread columns from the root down; ``read`` grows."""
    if isinstance(node, n.WindowNode):
        calls = tuple(pair for pair in node.calls if pair[0].symbol in read)
        if not calls:
            return pruned(node.source, read)
        node = replace(node, calls=calls)
    elif isinstance(node, n.AggregateNode):
        node = replace(node, calls=tuple(pair for pair in node.calls if pair[0].symbol in read))
        read |= {key.symbol for key in node.keys}
    elif isinstance(node, Project):
        assignments = tuple(
            assignment for assignment in node.assignments if assignment.symbol.name in read
        )
        if not assignments and node.assignments:
            return pruned(node.source, read)
        node = replace(node, assignments=assignments)
    elif isinstance(node, TableScan):
        pairs = zip(node.columns, node.outputs, strict=True)
        node = replace(
            node, columns=tuple(column for column, symbol in pairs if symbol.name in read)
        )
    if not isinstance(node, n.SetOperationNode):
        node = replace(
            node, outputs=tuple(symbol for symbol in node.outputs if symbol.name in read)
        )
    read |= {symbol for part in node.expressions for symbol in e.references(part)}
    sources = [pruned(source, read) for source in node.sources]
    return with_sources(node, sources) if sources else node
