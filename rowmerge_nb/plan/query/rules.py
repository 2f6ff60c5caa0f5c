"""What Trino's optimizer makes of a query's nodes, as far as it shows in a plan: conditions go to where rows are read, columns that nobody reads go."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from rowmerge_nb.plan.query.planner import QueryPlanner, both, split_condition
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
    Sorted,
    UnnestedRows,
    ValueRows,
    WindowRows,
    projection,
)
from rowmerge_nb.sql.typed.domains import conjuncts
from rowmerge_nb.sql.typed.expressions import (
    Column,
    Constant,
    Sort,
    Typed,
    children,
    has_subquery,
    is_deterministic,
    references,
    replaced,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rowmerge_nb.sql.typed.queries import Query


def planned_query(query: Query) -> tuple[QueryNode, tuple[Column, ...]]:
    """Plan a query as Trino's optimizer leaves it, and say where its columns are: in their order, under the symbols that they have there.

    Args:
        query: its tree.
    """
    planner = QueryPlanner(query)
    node = _Pushing(planner.new).pushed(planner.plan(query), [])
    names = _renamings(node)
    wanted = tuple(_column(names, column) for column in node.outputs)
    node = _renamed(node, names)
    return _merged(_pruned(node, set(_symbols(wanted)))), wanted


def planned_source(query: Query, outputs: Sequence[Column]) -> QueryNode:
    """Plan a query whose columns are read by nodes above it.

    Args:
        query: its tree.
        outputs: those of its columns that are read, by their symbols.
    """
    symbols = [column.symbol for column in QueryPlanner(query).plan(query).outputs]
    node, found = planned_query(query)
    values = dict(zip(symbols, found, strict=True))
    return _merged(_pruned(projection(node, [(column, values[column.symbol]) for column in outputs]), set(_symbols(outputs))))


# -- symbols ------------------------------------------------------------------------------------------------------------


def _renamings(node: QueryNode) -> dict[str, str]:
    """Find the columns that are nothing but another one under a new symbol."""
    found: dict[str, str] = {}
    for source in node.sources:
        found |= _renamings(source)
    if isinstance(node, Projected):
        own = [value.symbol for _, value in node.assignments if isinstance(value, Column)]
        taken = _made(node.source)
        found |= {
            column.symbol: value.symbol
            for column, value in node.assignments
            if isinstance(value, Column) and column != value and own.count(value.symbol) == 1 and column.symbol not in taken
        }
    return found


def _made(node: QueryNode) -> frozenset[str]:
    """Return the symbols that a node and those below it have."""
    return _symbols(node.outputs).union(*map(_made, node.sources))


def _column(names: Mapping[str, str], column: Column) -> Column:
    symbol = column.symbol
    while symbol in names:
        symbol = names[symbol]
    return column if symbol == column.symbol else replace(column, symbol=symbol)


def _renamed(part: Any, names: Mapping[str, str]) -> Any:
    """Return a node, or what stands in one, with the columns under their first symbols."""
    if isinstance(part, Column):
        return _column(names, part)
    if isinstance(part, tuple):
        return tuple(_renamed(inner, names) for inner in part)
    if not isinstance(part, QueryNode | Typed | Sort) or not names:
        return part
    kept = {"type", "origin", "detail", "query"} if isinstance(part, Typed) else set()
    changed = {f.name: _renamed(getattr(part, f.name), names) for f in fields(part) if f.name not in kept}
    return replace(part, **changed)


# -- conditions ---------------------------------------------------------------------------------------------------------


def _symbols(columns: Iterable[Column]) -> frozenset[str]:
    return frozenset(column.symbol for column in columns)


def _kept(node: QueryNode, conditions: Sequence[Typed]) -> QueryNode:
    predicate = both(conditions)
    return node if predicate is None else Filtered(node.outputs, node, predicate)


class _Pushing:
    """Pushes conditions to where rows are read; ``new`` gives a column for a key that is computed."""

    def __init__(self, new: Callable[[Typed], Column]) -> None:
        self.new = new

    def pushed(self, node: QueryNode, conditions: list[Typed]) -> QueryNode:
        """Push conditions down as far as they may go."""
        if isinstance(node, Filtered):
            return self.pushed(node.source, [*conjuncts(node.predicate), *conditions])
        if isinstance(node, Projected):
            pairs = [(column, value) for column, value in node.assignments]
            computed = dict(pairs)
            free = [
                c for c in conditions if all(_repeatable(computed[column]) for column in _columns_of(c) if column in computed)
            ]
            below = [replaced(condition, pairs) for condition in free]
            made = replace(node, source=self.pushed(node.source, below))
            return _kept(made, [condition for condition in conditions if condition not in free])
        if isinstance(node, JoinedRows):
            return self._join(node, conditions)
        through: frozenset[str] = frozenset()
        if isinstance(node, Sorted):
            through = _symbols(node.outputs)
        elif isinstance(node, Aggregation):
            through = _symbols(node.keys) if node.keys and not isinstance(node.source, GroupId) else frozenset()
        elif isinstance(node, UnnestedRows):
            through = _symbols(node.source.outputs) - _symbols(node.made) if node.kind == "INNER" else frozenset()
        elif isinstance(node, SemiJoined | Correlated):
            through = _symbols(node.source.outputs)
        elif isinstance(node, WindowRows):
            through = _symbols(node.partition_by)
        down = [c for c in conditions if references(c) and references(c) <= through]
        sources = node.sources
        changed = (
            node.over(*(self.pushed(source, down if at == 0 else []) for at, source in enumerate(sources))) if sources else node
        )
        return _kept(changed, [condition for condition in conditions if condition not in down])

    def _join(self, node: JoinedRows, conditions: list[Typed]) -> QueryNode:
        sides = (_symbols(node.left.outputs), _symbols(node.right.outputs))
        free = (node.kind in {"INNER", "CROSS", "LEFT"}, node.kind in {"INNER", "CROSS", "RIGHT"})
        down: tuple[list[Typed], list[Typed]] = ([], [])
        above: list[Typed] = []
        for condition in conditions:
            reads = references(condition)
            at = next((at for at in (0, 1) if reads and reads <= sides[at] and free[at]), None)
            (above if at is None else down[at]).append(condition)
        inner = node.kind in {"INNER", "CROSS"}
        own = list(conjuncts(node.condition)) if node.condition is not None else []
        # What a join asks of one side alone its other side's rows do not wait for; of a LEFT join that is the right side.
        for at, kinds in ((0, {"INNER", "RIGHT"}), (1, {"INNER", "LEFT"})):
            if node.kind in kinds:
                mine = [c for c in own if references(c) and references(c) <= sides[at] and not has_subquery(c)]
                down[at].extend(mine)
                own = [c for c in own if c not in mine]
        left, right, kind, criteria = self.pushed(node.left, down[0]), self.pushed(node.right, down[1]), node.kind, node.criteria
        if inner and above:
            joining = [c for c in above if is_deterministic(c)]
            above = [c for c in above if c not in joining]
            left, right, more, rest = split_condition(joining, left, right, self.new)
            criteria, own = (*criteria, *more), [*own, *rest]
            kind = "INNER" if criteria or own else kind
        return _kept(JoinedRows((*left.outputs, *right.outputs), kind, left, right, criteria, both(own)), above)


def _columns_of(node: Typed) -> list[Column]:
    found = [node] if isinstance(node, Column) else []
    return [*found, *(column for child in children(node) for column in _columns_of(child))]


def _repeatable(value: Typed) -> bool:
    return is_deterministic(value) and not has_subquery(value)


# -- columns ------------------------------------------------------------------------------------------------------------


def _only(columns: Iterable[Column], needed: set[str]) -> tuple[Column, ...]:
    return tuple(column for column in columns if column.symbol in needed)


def _pruned(node: QueryNode, needed: set[str]) -> QueryNode:
    """Leave out the columns that nobody needs."""
    outputs = _only(node.outputs, needed)
    if isinstance(node, Scan):
        names = tuple(name for column, name in zip(node.outputs, node.names, strict=True) if column.symbol in needed)
        return replace(node, outputs=outputs, names=names)
    if isinstance(node, ValueRows):
        return replace(node, outputs=outputs)
    if isinstance(node, Projected):
        assignments = tuple((column, value) for column, value in node.assignments if column.symbol in needed)
        below = {symbol for _, value in assignments for symbol in references(value)}
        return Projected(tuple(column for column, _ in assignments), _pruned(node.source, below), assignments)
    if isinstance(node, Filtered):
        below = needed | references(node.predicate)
        return _narrowed(replace(node, source=(source := _pruned(node.source, set(below))), outputs=source.outputs), needed)
    if isinstance(node, Aggregation):
        calls = tuple((column, call) for column, call in node.calls if column.symbol in needed)
        below = set(_symbols(node.keys)) | {symbol for _, call in calls for symbol in references(call)}
        made = tuple(column for column, _ in calls)
        return Aggregation((*node.keys, *made), _pruned(node.source, below), node.keys, calls)
    if isinstance(node, GroupId):
        below = {old.symbol for _, old in node.keys} | needed
        return replace(node, outputs=outputs, source=_pruned(node.source, below))
    if isinstance(node, WindowRows):
        calls_ = tuple((column, call) for column, call in node.calls if column.symbol in needed)
        if not calls_:
            return _pruned(node.source, needed)
        below = needed | {symbol for _, call in calls_ for symbol in references(call)}
        source = _pruned(node.source, set(below))
        return replace(node, outputs=(*source.outputs, *(column for column, _ in calls_)), source=source, calls=calls_)
    if isinstance(node, JoinedRows):
        below = needed | {column.symbol for pair in node.criteria for column in pair}
        below |= references(node.condition) if node.condition is not None else set()
        sides = (_pruned(node.left, set(below)), _pruned(node.right, set(below)))
        return replace(node, left=sides[0], right=sides[1], outputs=_only((*sides[0].outputs, *sides[1].outputs), needed))
    if isinstance(node, SemiJoined):
        source = _pruned(node.source, needed | {node.value.symbol})
        filtering = _pruned(node.filtering, {node.key.symbol})
        return replace(node, outputs=(*source.outputs, node.found), source=source, filtering=filtering)
    if isinstance(node, UnnestedRows):
        below = needed | _symbols(node.items)
        return replace(
            node, outputs=_only(node.outputs, needed | set(_symbols(node.made))), source=_pruned(node.source, set(below))
        )
    if isinstance(node, SetOperation):
        return _pruned_set(node, needed)
    if isinstance(node, Sorted) or (isinstance(node, Cut) and node.order_by):
        below = needed | {symbol for key in node.order_by for symbol in references(key.value)}
        source = _pruned(node.source, set(below))
        return _narrowed(replace(node, outputs=source.outputs, source=source), needed)
    if isinstance(node, Correlated):
        source = _pruned(node.source, needed | set(_symbols(node.correlation)))
        query = _pruned(node.query, set(_symbols(node.query.outputs)) & needed)
        return replace(node, outputs=_only((*source.outputs, *query.outputs), needed), source=source, query=query)
    sources = tuple(_pruned(source, needed) for source in node.sources)
    changed = node.over(*sources) if sources else node
    return replace(changed, outputs=sources[0].outputs if sources else node.outputs)


def _pruned_set(node: SetOperation, needed: set[str]) -> QueryNode:
    places = [at for at, column in enumerate(node.outputs) if column.symbol in needed or node.name != "UNION"]
    inputs = tuple(tuple(columns[at] for at in places) for columns in node.inputs)
    parts = tuple(_pruned(part, set(_symbols(columns))) for part, columns in zip(node.parts, inputs, strict=True))
    return SetOperation(tuple(node.outputs[at] for at in places), node.name, parts, inputs)


def _narrowed(node: QueryNode, needed: set[str]) -> QueryNode:
    """Leave out of a node's columns those that it had to read and nobody else needs."""
    outputs = _only(node.outputs, needed)
    return node if outputs == node.outputs else projection(node, zip(outputs, outputs, strict=True))


# -- projections --------------------------------------------------------------------------------------------------------


def _merged(node: QueryNode) -> QueryNode:
    """Make one of projections over each other, and leave out those that compute nothing."""
    sources = tuple(_merged(source) for source in node.sources)
    node = node.over(*sources) if sources else node
    if not isinstance(node, Projected):
        return node
    source = node.source
    if isinstance(source, ValueRows) and source.count == 1:
        given = dict(zip(source.columns, source.first(1)[0], strict=False)) if source.columns else {}
        known = [(column, value) for column, value in given.items() if isinstance(value, Typed)]
        row = [replaced(value, known) for _, value in node.assignments]
        if all(_repeatable(value) and not references(value) for value in row):
            # What is the same whatever it is computed over is a row of VALUES.
            return ValueRows(node.outputs, 1, lambda _: [row], node.outputs)
    if isinstance(source, Projected) and _is_inlined(node, source):
        assignments = [(column, replaced(value, list(source.assignments))) for column, value in node.assignments]
        return _merged(projection(source.source, assignments))
    if isinstance(source, JoinedRows | Correlated | Aggregation) and _passes(node):
        # A join gives those columns that are wanted.
        if set(node.outputs) == set(source.outputs):
            return source
        return (
            replace(source, outputs=tuple(c for c in source.outputs if c in node.outputs))
            if not isinstance(source, Aggregation)
            else node
        )
    return source if _passes(node) and set(node.outputs) == set(source.outputs) else node


def _passes(node: Projected) -> bool:
    return all(column == value for column, value in node.assignments)


def _is_inlined(node: Projected, source: Projected) -> bool:
    """Return whether no value is computed twice when two projections become one."""
    used: dict[str, int] = {}
    for _, value in node.assignments:
        for column in _columns_of(value):
            used[column.symbol] = used.get(column.symbol, 0) + 1
    return all(
        isinstance(value, Column | Constant) or (used.get(column.symbol, 0) <= 1 and _repeatable(value))
        for column, value in source.assignments
    )
