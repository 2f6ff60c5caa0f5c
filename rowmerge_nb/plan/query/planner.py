"""How a query's tree becomes nodes, before any rewriting."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.plan.query.query_nodes import (
    Aggregation,
    Correlated,
    Cut,
    Filtered,
    GroupId,
    JoinedRows,
    Projected,
    QueryNode,
    Scan,
    SemiJoined,
    SetOperation,
    SingleRow,
    Sorted,
    TableFunction,
    UnnestedRows,
    ValueRows,
    WindowRows,
    projection,
)
from rowmerge_nb.spi.types import BIGINT, BOOLEAN
from rowmerge_nb.sql.functions.overloads import overloads
from rowmerge_nb.sql.typed import queries as tree
from rowmerge_nb.sql.typed.domains import conjuncts
from rowmerge_nb.sql.typed.expressions import (
    Aggregate,
    Apply,
    Column,
    Constant,
    Sort,
    Subquery,
    Typed,
    Windowed,
    children,
    references,
    replaced,
)
from rowmerge_nb.sql.typed.readings import is_drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


def both(conditions: Sequence[Typed]) -> Typed | None:
    """Join conditions by AND; None if there are none."""
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else Apply(BOOLEAN, "and", tuple(conditions))


def split_condition(
    conditions: Iterable[Typed], left: QueryNode, right: QueryNode, new: Callable[[Typed], Column]
) -> tuple[QueryNode, QueryNode, tuple[tuple[Column, Column], ...], tuple[Typed, ...]]:
    """Find the equalities of a join's sides: both sides with the keys computed, the pairs of keys, and the conditions that are left.

    Args:
        conditions: what must hold.
        left: the left side.
        right: the right side.
        new: gives a column for an expression.
    """
    pairs, rest, computed = [], [], ([], [])  # type: ignore[var-annotated]
    names = tuple(frozenset(column.symbol for column in side.outputs) for side in (left, right))
    for condition in conditions:
        sides = condition.arguments if isinstance(condition, Apply) and condition.name == "=" else ()
        reads = [references(side) for side in sides]
        if sides and reads[0] and reads[1] and reads[0] <= names[1] and reads[1] <= names[0]:
            sides, reads = sides[::-1], reads[::-1]
        if not (sides and reads[0] and reads[1] and reads[0] <= names[0] and reads[1] <= names[1]):
            rest.append(condition)
            continue
        pair = []
        for side, made in zip(sides, computed, strict=True):
            column = side if isinstance(side, Column) else new(side)
            if column is not side:
                made.append((column, side))
            pair.append(column)
        pairs.append((pair[0], pair[1]))
    over = [
        projection(side, [*((c, c) for c in side.outputs), *made]) if made else side
        for side, made in zip((left, right), computed, strict=True)
    ]
    return over[0], over[1], tuple(pairs), tuple(rest)


class QueryPlanner:
    """Makes nodes of a query's tree, before any rewriting.

    Args:
        query: the tree.

    >>> from rowmerge_nb.spi.types import INTEGER
    >>> scan = tree.Scanned("c.s.t", ((Column(INTEGER, "id"), "id"),), lambda: 1)
    >>> QueryPlanner(scan).plan(scan).table
    'c.s.t'
    """

    def __init__(self, query: tree.Query) -> None:
        """Find the symbols that are taken."""
        self._used = _symbols(query)

    def new(self, value: Typed, base: str = "") -> Column:
        """Return a column for a value, under a symbol like those that Trino gives."""
        if not base:
            base = value.name if isinstance(value, Aggregate) else "expr"
        if not base and isinstance(value, Windowed):
            base = "window"
        symbol, number = base, 0
        while symbol in self._used:
            symbol, number = f"{base}_{number}", number + 1
        self._used.add(symbol)
        return Column(value.type, symbol)

    # -- relations ------------------------------------------------------------------------------------------------

    @singledispatchmethod
    def plan(self, query: Any) -> QueryNode:
        """Plan a query or a relation."""
        raise AssertionError(query)

    @plan.register
    def _(self, query: tree.Scanned) -> QueryNode:
        return Scan(tuple(c for c, _ in query.columns), query.name, tuple(name for _, name in query.columns), query.rows)

    @plan.register
    def _(self, query: tree.Valued) -> QueryNode:
        return ValueRows(query.columns, query.count, query.first, query.columns)

    @plan.register
    def _(self, query: tree.Generated) -> QueryNode:
        return TableFunction(query.columns, query.name)

    @plan.register
    def _(self, query: tree.Unnested) -> QueryNode:
        return self._unnest(_nothing(), query, "INNER")

    @plan.register
    def _(self, query: tree.Joined) -> QueryNode:
        left = self.plan(query.left)
        if isinstance(query.right, tree.Unnested) and query.condition is None:
            node: QueryNode = self._unnest(left, query.right, query.kind)
        elif isinstance(query.right, tree.Unnested) and query.lateral:
            node = self._unnest(left, query.right, query.kind)
        elif query.lateral:
            right = self.plan(query.right)
            correlation = tuple(column for column in left.outputs if column.symbol in _read_by(right))
            node = Correlated((*left.outputs, *right.outputs), left, right, correlation, query.kind)
        else:
            node = self._join(query, left, self.plan(query.right))
        if not query.shared:
            return node
        used = {symbol for _, value in query.shared for symbol in references(value)}
        keys = {c.symbol for pair in getattr(node, "criteria", ()) for c in pair}
        rest = (column for column in node.outputs if column.symbol not in used | keys)
        shared = [(column, _first_alone(value)) for column, value in query.shared]
        return projection(node, [*shared, *((column, column) for column in rest)])

    def _join(self, query: tree.Joined, left: QueryNode, right: QueryNode) -> QueryNode:
        conditions = list(conjuncts(query.condition)) if query.condition is not None else []
        (left, right), conditions = self._with_queries((left, right), conditions)
        left, right, criteria, rest = split_condition(conditions, left, right, self.new)
        outputs = (*left.outputs, *right.outputs)
        return JoinedRows(outputs, query.kind, left, right, criteria, both(rest))

    def _with_queries(
        self, sides: tuple[QueryNode, QueryNode], conditions: list[Typed]
    ) -> tuple[tuple[QueryNode, QueryNode], list[Typed]]:
        """Plan the queries of a join's condition over the side that they are about, the left one where they are about neither."""
        left, right = sides
        planned = []
        for condition in conditions:
            reads = {symbol for part in _queries_of(condition) for symbol in references(part)}
            if reads and reads <= {column.symbol for column in right.outputs}:
                right, (done,) = self._subqueries(right, [condition])
            elif reads <= {column.symbol for column in left.outputs}:
                left, (done,) = self._subqueries(left, [condition])
            else:
                done = condition
            planned.append(done)
        return (left, right), planned

    def _unnest(self, source: QueryNode, query: tree.Unnested, kind: str) -> QueryNode:
        source, items = self._subqueries(source, query.items)
        source, columns = self._columns(source, items)
        ordinality = (
            (self.new(Constant(BIGINT, None), "ordinality"),)
            if query.ordinality and len(query.columns) == sum(query.groups)
            else ()
        )
        made = (*query.columns, *ordinality)
        kept = tuple(column for column in source.outputs if column not in columns)
        passed = kept + tuple(c for c in columns if any(c is item for item in items))
        return UnnestedRows((*passed, *made), source, columns, made, "INNER" if kind == "CROSS" else kind, query.ordinality)

    # -- queries --------------------------------------------------------------------------------------------------

    @plan.register
    def _(self, query: tree.Coerced) -> QueryNode:
        node, values = self._subqueries(self.plan(query.source), [value for _, value in query.columns])
        return projection(node, zip((column for column, _ in query.columns), values, strict=True))

    @plan.register
    def _(self, query: tree.Ordered) -> QueryNode:
        return self._ordered(self.plan(query.source), query.order_by, query)

    @plan.register
    def _(self, query: tree.SetOperated) -> QueryNode:
        sides = [self.plan(query.left), self.plan(query.right)]
        # A union of unions is one.
        parts: list[QueryNode] = []
        inputs: list[tuple[Column, ...]] = []
        for side in sides:
            if isinstance(side, SetOperation) and side.name == query.operator == "UNION":
                parts += side.parts
                inputs += side.inputs
            else:
                parts.append(side)
                inputs.append(side.outputs)
        made = SetOperation(query.columns, query.operator, tuple(parts), tuple(inputs))
        if query.distinct and query.operator == "UNION":
            return Aggregation(query.columns, made, query.columns, ())
        return made if query.distinct else replace(made, name=f"{query.operator} ALL" if query.operator != "UNION" else "UNION")

    @plan.register
    def _(self, query: tree.Selected) -> QueryNode:
        node = self.plan(query.source) if query.source is not None else _nothing()
        if query.where is not None:
            node, (where,) = self._subqueries(node, [query.where])
            node = Filtered(node.outputs, node, where)
        columns = [column for column, _ in query.outputs]
        values = [value for _, value in query.outputs]
        shown = {column.symbol for column in columns}
        # What an ORDER BY names of the SELECT list is there when it is sorted; all else is computed with the list.
        others = [key.value for key in query.order_by if not references(key.value) <= shown or not references(key.value)]
        others = [value for value in others if not isinstance(value, Constant)]
        having = [query.having] if query.having is not None else []
        node, parts = self._grouped(node, query, [*values, *others, *having])
        if having:
            node, (kept,) = self._subqueries(node, parts[-1:])
            node, parts = Filtered(node.outputs, node, kept), parts[:-1]
        node, parts = self._windowed(node, parts)
        node, parts = self._subqueries(node, parts)
        hidden = [(self.new(value), part) for value, part in zip(others, parts[len(values) :], strict=True)]
        node = projection(node, [*zip(columns, parts, strict=False), *hidden])
        if query.distinct:
            node = Aggregation(node.outputs, node, node.outputs, ())
        replacing = [(value, column) for value, (column, _) in zip(others, hidden, strict=True)]
        keys = tuple(replace(key, value=replaced(key.value, replacing)) for key in query.order_by)
        node = self._ordered(node, keys, query)
        return projection(node, zip(columns, columns, strict=True)) if hidden else node

    def _grouped(self, node: QueryNode, query: tree.Selected, parts: Sequence[Typed]) -> tuple[QueryNode, list[Typed]]:
        """Group, where the query does: the node, and the expressions over its columns."""
        calls: list[Aggregate] = []
        for part in parts:
            calls += [found for found in _aggregates(part) if found not in calls]
        if query.keys is None and not calls:
            return node, list(parts)
        arguments = [value for call in calls for value in children(call)]
        node, values = self._subqueries(node, [*(query.keys or ()), *arguments])
        node, columns = self._columns(node, values)
        keys, rest = columns[: len(query.keys or ())], list(columns[len(query.keys or ()) :])
        replacing: list[tuple[Typed, Typed]] = list(zip(query.keys or (), keys, strict=True))
        unique = tuple(dict.fromkeys(keys))
        if query.sets is not None:
            number = self.new(Constant(BIGINT, None), "groupid")
            made = tuple((self.new(key, f"{key.symbol}$gid"), key) for key in unique)
            by_key = {key: column for column, key in made}
            passed = tuple(column for column in rest if column not in by_key)
            sets = tuple(tuple(dict.fromkeys(by_key[keys[place]] for place in places)) for places in query.sets)
            outputs = (*by_key.values(), *dict.fromkeys(passed), *(key for key in unique if key in rest), number)
            node = GroupId(outputs, node, made, sets, number)
            replacing = [(value, by_key[key]) for value, key in zip(query.keys or (), keys, strict=True)]
            unique = (*by_key.values(), number)
        made_calls = []
        for call in calls:
            new = iter([rest.pop(0) for _ in children(call)])
            shown = Aggregate(
                call.type,
                call.name,
                tuple(next(new) for _ in call.arguments),
                call.distinct,
                next(new) if call.filter is not None else None,
                tuple(replace(key, value=next(new)) for key in call.order_by),
            )
            made_calls.append((self.new(call), shown))
        node = Aggregation((*unique, *(column for column, _ in made_calls)), node, unique, tuple(made_calls))
        replacing += [(call, column) for call, (column, _) in zip(calls, made_calls, strict=True)]
        return node, [replaced(part, replacing) for part in parts]

    def _windowed(self, node: QueryNode, parts: Sequence[Typed]) -> tuple[QueryNode, list[Typed]]:
        """Compute functions over windows, window by window."""
        found: list[Windowed] = []
        for part in parts:
            found += [inner for inner in _inside(part) if isinstance(inner, Windowed) and inner not in found]
        if not found:
            return node, list(parts)
        node, values = self._subqueries(node, [value for window in found for value in _of_window(window)])
        node, columns = self._columns(node, values)
        rest, shown = list(columns), []
        for window in found:
            new = [rest.pop(0) for _ in _of_window(window)]
            pairs = list(zip(_of_window(window), new, strict=True))
            shown.append((window, replaced_in_window(window, pairs)))
        windows: dict[tuple[Any, ...], list[tuple[Windowed, Windowed]]] = {}
        for window, over in shown:
            windows.setdefault((over.partition_by, over.order_by), []).append((window, over))
        replacing: list[tuple[Typed, Typed]] = []
        for (partition_by, order_by), group in windows.items():
            calls = tuple(
                (
                    self.new(old, getattr(old.function, "name", ""))
                    if isinstance(old.function, Aggregate)
                    else self.new(old, _named(old)),
                    over,
                )
                for old, over in group
            )
            outputs = (*node.outputs, *(column for column, _ in calls))
            node = WindowRows(outputs, node, tuple(c for c in partition_by if isinstance(c, Column)), order_by, calls)
            replacing += [(old, column) for (old, _), (column, _) in zip(group, calls, strict=True)]
        return node, [replaced(part, replacing) for part in parts]

    def _ordered(self, node: QueryNode, keys: tuple[Sort, ...], query: tree.Selected | tree.Ordered) -> QueryNode:
        limit, offset = query.limit, query.offset
        keys = tuple(key for key in keys if not isinstance(key.value, Constant))
        outputs = node.outputs
        node, columns = self._columns(node, [key.value for key in keys])
        order_by = tuple(replace(key, value=column) for key, column in zip(keys, columns, strict=True))
        if order_by and limit is not None and query.ties:
            node = self._with_ties(node, order_by, limit, offset)
        elif order_by and limit is not None and not offset:
            node = Cut(node.outputs, node, limit, order_by)
        else:
            node = Sorted(node.outputs, node, order_by) if order_by else node
            node = Cut(node.outputs, node, offset, offset=True) if offset else node
            node = Cut(node.outputs, node, limit) if limit is not None else node
        return node if node.outputs == outputs else projection(node, zip(outputs, outputs, strict=True))

    def _with_ties(self, node: QueryNode, order_by: tuple[Sort, ...], limit: int, offset: int) -> QueryNode:
        """Plan FETCH FIRST WITH TIES as Trino does: the rows up to a rank."""
        if offset:
            node = Cut(node.outputs, Sorted(node.outputs, node, order_by), offset, offset=True)
        rank = Windowed(BIGINT, Apply(BIGINT, "function", (), overloads("rank")[0]), (), order_by, None)
        column = self.new(rank, "rank_num")
        node = WindowRows((*node.outputs, column), node, (), order_by, ((column, rank),))
        return Filtered(node.outputs, node, Apply(BOOLEAN, "<=", (column, Constant(BIGINT, str(limit)))))

    # -- expressions ----------------------------------------------------------------------------------------------

    def _columns(self, node: QueryNode, values: Sequence[Typed]) -> tuple[QueryNode, tuple[Column, ...]]:
        """Compute values that are no columns yet."""
        made: dict[Typed, Column] = {}
        columns = []
        for value in values:
            if isinstance(value, Column):
                columns.append(value)
                continue
            if value not in made:
                made[value] = self.new(value)
            columns.append(made[value])
        if made:
            node = projection(node, [*((c, c) for c in node.outputs), *((column, value) for value, column in made.items())])
        return node, tuple(columns)

    def _subqueries(self, node: QueryNode, values: Sequence[Typed]) -> tuple[QueryNode, list[Typed]]:
        """Plan the queries in expressions: the node with their values as columns, and the expressions over those."""
        replacing: list[tuple[Typed, Typed]] = []
        done: list[Subquery] = []
        for value in values:
            for found in _queries_of(value):
                if found in done or not is_drawn(found.query):
                    continue
                done.append(found)
                node, column = self._subquery(node, found, found.query)
                replacing.append((found, column))
        return node, [replaced(value, replacing) for value in values] if replacing else list(values)

    def _subquery(self, node: QueryNode, found: Subquery, query: tree.Query) -> tuple[QueryNode, Typed]:
        inner = self.plan(query)
        if found.kind == "in" and not found.outer and found.value is not None:
            node, (value,) = self._subqueries(node, [found.value])
            node, (column,) = self._columns(node, [value])
            if inner.outputs[0].type != column.type:
                inner, _ = self._columns(inner, [Apply(column.type, "cast", (inner.outputs[0],))])
            key, made = inner.outputs[-1], self.new(Constant(BOOLEAN, None), "expr")
            return SemiJoined((*node.outputs, made), node, inner, column, key, made), made
        if found.kind == "exists":
            call = Aggregate(BIGINT, "count", ())
            count = self.new(call)
            if not found.outer:
                inner = Cut(inner.outputs, inner, 1)
            inner = Aggregation((count,), inner, (), ((count, call),))
            value = Apply(BOOLEAN, ">", (count, Constant(BIGINT, "0")))
            inner = projection(inner, [(self.new(value), value)])
        elif not found.aggregates:
            inner = SingleRow(inner.outputs, inner)
        outputs = (*node.outputs, *inner.outputs)
        if found.outer:
            known = {column.symbol: column for column in node.outputs}
            correlation = tuple(known[column.symbol] for column in found.outer if column.symbol in known)
            node = Correlated(outputs, node, inner, correlation, "INNER")
        else:
            node = JoinedRows(outputs, "CROSS", node, inner)
        if found.kind == "in" and found.value is not None:
            return node, Apply(BOOLEAN, "in", (found.value, inner.outputs[0]))
        columns = inner.outputs
        return node, columns[0] if len(columns) == 1 else Apply(found.type, "row", columns)


_WINDOW_WORD: Final = "window"


def _named(window: Windowed) -> str:
    """Return the name of a window function."""
    function = window.function
    return str(getattr(getattr(function, "detail", None), "name", _WINDOW_WORD))


def _nothing() -> QueryNode:
    """Return the one row without columns that a SELECT without FROM reads."""
    return ValueRows((), 1, lambda _: [[]], ())


def replaced_in_window(window: Windowed, pairs: Sequence[tuple[Typed, Typed]]) -> Windowed:
    """Return a window function over other columns."""
    function = window.function
    if isinstance(function, Apply):
        function = replace(function, arguments=tuple(replaced(argument, pairs) for argument in function.arguments))
    elif isinstance(function, Aggregate):
        kept = None if function.filter is None else replaced(function.filter, pairs)
        function = replace(function, arguments=tuple(replaced(value, pairs) for value in function.arguments), filter=kept)
    return replace(
        window,
        function=function,
        partition_by=tuple(replaced(key, pairs) for key in window.partition_by),
        order_by=tuple(replace(key, value=replaced(key.value, pairs)) for key in window.order_by),
    )


def _first_alone(value: Typed) -> Typed:
    """Return a column of USING: that of one side, or of either where the join keeps rows of both."""
    alone = isinstance(value, Apply) and value.name == "coalesce" and len(value.arguments) == 1
    return children(value)[0] if alone else value


def _of_window(window: Windowed) -> tuple[Typed, ...]:
    """Return the expressions that a window function reads: its arguments and keys."""
    return (*children(window.function), *window.partition_by, *(key.value for key in window.order_by))


def _inside(node: Typed) -> Iterator[Typed]:
    """Yield everything in an expression but what is inside of a query or of a function over a window."""
    yield node
    if not isinstance(node, Windowed | Subquery):
        for child in children(node):
            yield from _inside(child)


def _aggregates(node: Typed) -> Iterator[Aggregate]:
    """Yield the aggregates of an expression that are over groups; those in the arguments and keys of a window function included."""
    if isinstance(node, Aggregate):
        yield node
        return
    inner = _of_window(node) if isinstance(node, Windowed) else () if isinstance(node, Subquery) else children(node)
    for child in inner:
        yield from _aggregates(child)


def _queries_of(node: Typed) -> Iterator[Subquery]:
    """Yield the queries of an expression, not those inside of a lambda's or another query's."""
    if isinstance(node, Subquery):
        yield node
        return
    for child in children(node):
        yield from _queries_of(child)


def _read_by(node: QueryNode) -> frozenset[str]:
    """Return the symbols that the expressions of a node and of those below it read."""
    found: set[str] = set()
    for part in _expressions(node):
        found |= references(part)
    for source in node.sources:
        found |= _read_by(source)
    return frozenset(found)


def _expressions(node: QueryNode) -> tuple[Typed, ...]:
    if isinstance(node, Filtered):
        return (node.predicate,)
    if isinstance(node, Projected):
        return tuple(value for _, value in node.assignments)
    if isinstance(node, JoinedRows):
        return () if node.condition is None else (node.condition,)
    return node.items if isinstance(node, UnnestedRows) else ()


def _symbols(query: object) -> set[str]:
    """Return all symbols of a tree's columns."""
    found: set[str] = set()
    waiting: list[Any] = [query]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Column):
            found.add(node.symbol)
        elif isinstance(node, Subquery):
            waiting += [*node.outer, node.value, node.query]
        elif isinstance(node, Typed):
            waiting += children(node)
        elif isinstance(node, Sort):
            waiting.append(node.value)
        elif isinstance(node, tuple):
            waiting += node
        elif hasattr(node, "__dataclass_fields__"):
            waiting += [getattr(node, name) for name in node.__dataclass_fields__]
    return found
