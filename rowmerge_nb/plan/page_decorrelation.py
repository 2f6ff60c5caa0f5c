"""Correlated subqueries as outer joins with the rows of their keys, since DuckDB's own optimizer is off.

The join's key is NULL for rows without a partner.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowmerge_nb.plan import query_nodes as n
from rowmerge_nb.plan.explained_expressions import printed
from rowmerge_nb.plan.keyed_subqueries import ZERO_OF_NO_ROWS, of_row
from rowmerge_nb.plan.page_joins import all_below, split_terms
from rowmerge_nb.plan.plan_nodes import Assignment, Filter, Join, PlanNode, Project, Symbol
from rowmerge_nb.plan.query_planner import equality, filtered, with_sources
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import may_fail
from rowmerge_nb.sql.typed.domains import conjunction, conjuncts
from rowmerge_nb.sql.typed.expressions import (
    Apply,
    Column,
    Constant,
    Typed,
    references,
)
from rowmerge_nb.sql.typed.type_rules import is_float
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def decorrelated(node: PlanNode) -> PlanNode:
    """Return a plan without correlated EXISTS and values that compare equal keys; raise
    UnprintableError for one that does more.
    """
    node = with_sources(node, list(map(decorrelated, node.sources))) if node.sources else node
    if isinstance(node, n.ApplyNode) and node.correlation:
        return _exists(node)
    if isinstance(node, n.CorrelatedJoinNode) and node.correlation:
        return (
            _single_row(node, node.query)
            if isinstance(node.query, n.EnforceSingleRowNode)
            else _aggregate(node)
        )
    return node


@dataclass(frozen=True)
class _Keys:
    """The keys of a subquery: its columns, and the values of the rows around it."""

    inner: tuple[Column, ...]
    outer: tuple[Typed, ...]

    @property
    def grouped(self) -> tuple[Column, ...]:
        return tuple(dict.fromkeys(self.inner))


def _exists(node: n.ApplyNode) -> PlanNode:
    if node.value is not None:
        raise UnprintableError("a correlated IN")
    query = node.query
    while isinstance(query, Project | n.SortNode) or _has_limit(query):
        [query] = query.sources
    rows, keys = _keyed(query, node.correlation)
    groups = n.AggregateNode(
        id=f"{node.id}g", outputs=_symbols(keys.grouped), source=rows, keys=keys.grouped
    )
    joined = _left_join(node, groups, keys)
    is_found = Apply(BOOLEAN, "is null", (keys.inner[0],), True)
    return _projected(node.id, joined, node.outputs, [(node.column, is_found)])


def _has_limit(node: PlanNode) -> bool:
    return isinstance(node, n.LimitNode) and not isinstance(node, n.OffsetNode) and node.count > 0


def _aggregate(node: n.CorrelatedJoinNode) -> PlanNode:
    projections: list[Project] = []
    query = node.query
    while isinstance(query, Project):
        if _reads(query, node.correlation):
            raise UnprintableError("a correlated subquery whose value reads the row")
        projections.append(query)
        query = query.source
    if not isinstance(query, n.AggregateNode) or query.keys:
        raise UnprintableError("a correlated subquery that is not an aggregate")
    rows, keys = _keyed(query.source, node.correlation)
    # A row without a partner has NULL instead of a count.
    counts = {
        column: Column(column.type, f"{column.symbol}$")
        for column, call in query.calls
        if call.name in ZERO_OF_NO_ROWS
    }
    calls = tuple((counts.get(column, column), call) for column, call in query.calls)
    groups = replace(
        query,
        outputs=_symbols((*keys.grouped, *(column for column, _ in calls))),
        source=rows,
        keys=keys.grouped,
        calls=calls,
    )
    result: PlanNode = _left_join(node, groups, keys)
    around = node.source.outputs
    if counts:
        zeros = [(column, _zero_if_null(count)) for column, count in counts.items()]
        result = _projected(f"{node.id}z", result, (*around, *query.outputs), zeros)
    for projection in reversed(projections):
        result = replace(projection, source=result, outputs=(*around, *projection.outputs))
    return result


def _single_row(node: n.CorrelatedJoinNode, query: n.EnforceSingleRowNode) -> PlanNode:
    """Read the row of each key; an error of a key without a row around it has Spark decide."""
    rows, keys = _keyed(query.source, node.correlation)
    symbols = dict.fromkeys((*_symbols(keys.grouped), *query.outputs))
    rows = replace(query, outputs=tuple(symbols), source=rows, keys=keys.grouped)
    return _left_join(node, rows, keys)


def _zero_if_null(column: Column) -> Typed:
    return Apply(column.type, "coalesce", (column, Constant(column.type, "0")))


def _keyed(node: PlanNode, correlation: Sequence[Column]) -> tuple[PlanNode, _Keys]:
    """Return the rows of a subquery without its correlated conditions, and with its keys."""
    outer = frozenset(column.symbol for column in correlation)
    layers: list[Project | Filter] = []
    while isinstance(node, Project | Filter):
        layers.append(node)
        node = node.source
    projections = (layer for layer in layers if isinstance(layer, Project))
    if any(_reads(part, correlation) for part in (*projections, *all_below(node))):
        raise UnprintableError("a correlated subquery that reads the row outside of WHERE")
    inner = frozenset(symbol.name for symbol in node.outputs)
    local = {
        layer.id: split_terms(conjuncts(layer.predicate), lambda term: not references(term) & outer)
        for layer in layers
        if isinstance(layer, Filter)
    }
    comparisons = [term for _, terms in local.values() for term in terms]
    pairs = list(dict.fromkeys(_key_pair(term, inner, outer) for term in comparisons))
    key_columns = {
        key: Column(key.type, f"{node.id}$key{index}")
        for index, (key, _) in enumerate(pairs)
        if not isinstance(key, Column)
    }
    if key_columns:
        outputs = (*node.outputs, *_symbols(key_columns.values()))
        values = [(column, key) for key, column in key_columns.items()]
        node = _projected(f"{node.id}k", node, outputs, values)
    columns = tuple(key if isinstance(key, Column) else key_columns[key] for key, _ in pairs)
    for layer in reversed(layers):
        if isinstance(layer, Project):
            symbols = tuple(dict.fromkeys((*layer.outputs, *_symbols(columns))))
            node = replace(layer, source=node, outputs=symbols)
        elif terms := local[layer.id][0]:
            node = filtered(layer.id, node, conjunction(terms))
    return node, _Keys(columns, tuple(value for _, value in pairs))


def _key_pair(term: Typed, inner: frozenset[str], outer: frozenset[str]) -> tuple[Typed, Typed]:
    pair = equality(of_row(term), inner, outer)
    if pair is None or any(is_float(key.type) or may_fail(key) for key in pair):
        raise UnprintableError("a correlated subquery that compares more than equal keys")
    return pair


def _left_join(node: n.ApplyNode | n.CorrelatedJoinNode, groups: PlanNode, keys: _Keys) -> Join:
    pairs = tuple(zip(keys.outer, keys.inner, strict=True))
    predicate = conjunction([Apply(BOOLEAN, "=", pair) for pair in pairs])
    return Join(
        id=f"{node.id}j",
        outputs=(*node.source.outputs, *groups.outputs),
        left=node.source,
        right=groups,
        predicate=predicate,
        text=printed(predicate),
        equalities=pairs,
        distribution="",
        type=JoinType.LEFT,
    )


def _projected(
    node_id: str,
    source: PlanNode,
    outputs: Iterable[Symbol],
    values: Iterable[tuple[Column, Typed]],
) -> Project:
    assignments = tuple(
        Assignment(Symbol(column.symbol, column.type), value, printed(value))
        for column, value in values
    )
    return Project(id=node_id, outputs=tuple(outputs), source=source, assignments=assignments)


def _symbols(columns: Iterable[Column]) -> tuple[Symbol, ...]:
    return tuple(Symbol(column.symbol, column.type) for column in columns)


def _reads(node: PlanNode, columns: Sequence[Column]) -> bool:
    symbols = {column.symbol for column in columns}
    return any(references(part) & symbols for part in node.expressions)
