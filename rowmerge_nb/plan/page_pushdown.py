"""Conditions moved to where DuckDB evaluates them, since its own optimizer is off.

Conditions on one side of a join reach that side, and equalities of both sides become its keys.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.plan import query_nodes as n
from rowmerge_nb.plan.explained_expressions import printed
from rowmerge_nb.plan.page_joins import JoinSides, split_terms
from rowmerge_nb.plan.plan_nodes import Filter, Join, PlanNode, Project
from rowmerge_nb.plan.query_planner import columns_of, filtered, with_sources
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import may_fail
from rowmerge_nb.sql.typed.domains import conjunction, conjuncts
from rowmerge_nb.sql.typed.expressions import TRUE, Typed, references, replaced
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_INNER: Final = frozenset({JoinType.CROSS, JoinType.INNER})


def pushed(node: PlanNode, conditions: Sequence[Typed] = ()) -> PlanNode:
    """Move conditions below groups, numbers, sorts, projections and joins.

    The conditions that reach a scan become its constraint.
    """
    if isinstance(node, Filter):
        return pushed(node.source, [*conjuncts(node.predicate), *conditions])
    if isinstance(node, Join):
        return _pushed_join(node, conditions)
    if isinstance(node, n.SetOperationNode):
        return _pushed_set_operation(node, conditions)
    unchanged = _unchanged(node)
    below = [
        condition
        for condition in conditions
        if references(condition) and references(condition) <= unchanged
    ]
    rest = [condition for condition in conditions if condition not in below]
    if isinstance(node, Project):
        _check_computed(node, rest)
    if node.sources:
        first, *others = node.sources
        node = with_sources(node, [pushed(first, below), *map(pushed, others)])
    return _over(node, rest)


def _over(node: PlanNode, conditions: Sequence[Typed]) -> PlanNode:
    return filtered(f"{node.id}f", node, conjunction(conditions)) if conditions else node


def _unchanged(node: PlanNode) -> frozenset[str]:
    if isinstance(node, Project):
        return _names(node) - {assignment.symbol.name for assignment in node.assignments}
    if isinstance(node, n.SortNode):
        return _names(node)
    if isinstance(node, n.ApplyNode):
        return _names(node.source)
    keys = (
        node.keys
        if isinstance(node, n.AggregateNode)
        else node.partition_by
        if isinstance(node, n.WindowNode)
        else ()
    )
    return frozenset(key.symbol for key in keys)


def _names(node: PlanNode) -> frozenset[str]:
    return frozenset(symbol.name for symbol in node.outputs)


def _check_computed(node: Project, conditions: Iterable[Typed]) -> None:
    """Refuse a condition on a computed value that may fail.

    Spark computes it below the join, also for rows without a partner.
    """
    doubtful = {item.symbol.name for item in node.assignments if may_fail(item.value)}
    if any(references(term) & doubtful for term in conditions) and _reads_join(node.source):
        raise UnprintableError("a condition on a value that is computed over a join and may fail")


def _reads_join(node: PlanNode) -> bool:
    if isinstance(node, Filter | Project | n.SortNode):
        return _reads_join(node.source)
    return isinstance(node, Join | n.ApplyNode)


def _pushed_set_operation(node: n.SetOperationNode, conditions: Sequence[Typed]) -> PlanNode:
    below, rest = split_terms(conditions, lambda term: bool(references(term)))
    parts = []
    for part, columns in zip(node.parts, node.inputs, strict=True):
        pairs = list(zip(columns_of(node), columns, strict=True))
        parts.append(pushed(part, [replaced(term, pairs) for term in below]))
    return _over(with_sources(node, parts), rest)


# -- joins


def _pushed_join(node: Join, conditions: Sequence[Typed]) -> PlanNode:
    sides = JoinSides.of(node)
    on = [] if node.predicate == TRUE else conjuncts(node.predicate)
    if node.type in _INNER:
        rest = [*on, *conditions]
        first, rest = split_terms(rest, sides.on_first)
        second, rest = split_terms(rest, sides.on_second)
        on, rest = split_terms(rest, lambda term: sides.equality(term) is not None)
    else:
        # A condition is moved to a side only if unmatched rows of the other one are dropped.
        of_first = node.type is JoinType.LEFT
        of_second = node.type is JoinType.RIGHT
        first, rest = split_terms(conditions, lambda term: of_first and sides.on_first(term))
        second, rest = split_terms(rest, lambda term: of_second and sides.on_second(term))
        on_first, on = split_terms(on, lambda term: of_second and sides.on_first(term))
        on_second, on = split_terms(on, lambda term: of_first and sides.on_second(term))
        first, second = [*first, *on_first], [*second, *on_second]
        if any(map(may_fail, rest)):
            # Spark may turn an outer join with such a condition into an inner one.
            raise UnprintableError("a condition over an outer join that may fail")
    return _over(_with_terms(node, pushed(node.left, first), pushed(node.right, second), on), rest)


def _with_terms(node: Join, first: PlanNode, second: PlanNode, terms: Sequence[Typed]) -> Join:
    sides = JoinSides.of(node)
    pairs = (sides.equality(term) for term in terms)
    predicate = conjunction(terms) if terms else TRUE
    join_type = node.type
    if node.type in _INNER:
        join_type = JoinType.INNER if terms else JoinType.CROSS
    return replace(
        node,
        left=first,
        right=second,
        predicate=predicate,
        text=printed(predicate) if terms else "",
        equalities=tuple(pair for pair in pairs if pair is not None),
        type=join_type,
    )
