"""Joins that DuckDB computes: by hashes of keys, or of few pairs of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.plan import query_nodes as n
from rowmerge_nb.plan.plan_nodes import Filter, Join, PlanNode, TableScan
from rowmerge_nb.plan.query_planner import equality, with_sources
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import may_fail
from rowmerge_nb.sql.typed.domains import conjunction, conjuncts
from rowmerge_nb.sql.typed.expressions import Apply, Typed, references
from rowmerge_nb.sql.typed.type_rules import is_float
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST_PAIRS: Final = 1_000_000
"""Pairs of rows that a join without keys compares at most."""
_HASHED_ROWS: Final = 100_000
"""The hash table of more rows than these is built of the smaller side."""
_MIRRORED: Final = {JoinType.LEFT: JoinType.RIGHT, JoinType.RIGHT: JoinType.LEFT}
_MAY_FAIL: Final = "a condition beside a join that may fail"
_COMPARISONS: Final = frozenset({"<>", "<", "<=", ">", ">="})


@dataclass(frozen=True)
class JoinSides:
    first: frozenset[str]
    second: frozenset[str]

    @classmethod
    def of(cls, node: Join) -> JoinSides:
        return cls(*(frozenset(symbol.name for symbol in side.outputs) for side in node.sources))

    def on_first(self, term: Typed) -> bool:
        return bool(references(term)) and references(term) <= self.first

    def on_second(self, term: Typed) -> bool:
        return bool(references(term)) and references(term) <= self.second

    def equality(self, term: Typed) -> tuple[Typed, Typed] | None:
        """Return the operands of an equality of both sides, in their order, or None."""
        return equality(term, self.first, self.second)


@dataclass(frozen=True)
class JoinCondition:
    """ON of a join by keys.

    Args:
        keys: pairs (left, right). A key is NULL for rows that conditions on one side exclude.
        rest: comparisons of both sides.
    """

    keys: tuple[tuple[Typed, Typed], ...]
    rest: tuple[Typed, ...] = ()


def split_terms(
    terms: Iterable[Typed], belongs: Callable[[Typed], bool]
) -> tuple[list[Typed], list[Typed]]:
    parts: tuple[list[Typed], list[Typed]] = ([], [])
    for term in terms:
        parts[0 if belongs(term) else 1].append(term)
    return parts


def join_condition(node: Join) -> JoinCondition:
    sides = JoinSides.of(node)
    keys, on_first, on_second, rest = [], [], [], []
    for term in conjuncts(node.predicate):
        pair = sides.equality(term)
        if pair is not None:
            keys.append(pair)
        elif not references(term) or sides.on_first(term):
            on_first.append(term)
        elif sides.on_second(term):
            on_second.append(term)
        else:
            _check_comparison(term, sides)
            rest.append(term)
    (one, other), *others = keys
    return JoinCondition(((_only_if(on_first, one), _only_if(on_second, other)), *others), (*rest,))


def _only_if(terms: list[Typed], key: Typed) -> Typed:
    return Apply(key.type, "case", (conjunction(terms), key)) if terms else key


def _check_comparison(term: Typed, sides: JoinSides) -> None:
    """Refuse what an outer join does not check while it looks rows up by their keys."""
    compares = isinstance(term, Apply) and term.name in _COMPARISONS
    operands = term.arguments if isinstance(term, Apply) and compares else ()
    if (
        not compares
        or is_float(operands[0].type)
        or not all(sides.on_first(operand) or sides.on_second(operand) for operand in operands)
    ):
        raise UnprintableError(
            "an outer join with a condition that is not a comparison of its sides"
        )


def joined(node: PlanNode) -> PlanNode:
    """Return a plan whose joins have the smaller side on the right, of which DuckDB makes a hash
    table; raise UnprintableError for a join without keys of too many rows.
    """
    if isinstance(node, TableScan):
        return node
    node = with_sources(node, [joined(source) for source in node.sources])
    if not isinstance(node, Join):
        return node
    one, other = sizes = [_most_rows(side) for side in node.sources]
    if not node.equalities:
        one_row = any(size is not None and size <= 1 for size in sizes)
        if not one_row and (one is None or other is None or one * other > MOST_PAIRS):
            raise UnprintableError(
                f"a join without equal columns of more than {MOST_PAIRS:,} pairs of rows"
            )
        return node
    if one is None or other is None or other <= max(one, _HASHED_ROWS):
        return node
    return replace(
        node,
        left=node.right,
        right=node.left,
        equalities=tuple(pair[::-1] for pair in node.equalities),
        type=_MIRRORED.get(node.type, node.type),
    )


def check_failures(root: PlanNode) -> None:
    """Raise UnprintableError if Spark could compute what may fail for other rows than DuckDB.

    From columns that a join compares, Spark infers conditions on the other side. So it evaluates
    `10 / p.id > 2` on `q.id` too, for rows without a partner.
    """
    nodes = list(all_below(root))
    queries = [node for node in nodes if isinstance(node, n.ApplyNode)]
    joins = [node for node in nodes if isinstance(node, Join) and node.equalities]
    for node in joins:
        keys = [key for pair in node.equalities for key in pair]
        if any(map(may_fail, keys)) and len(joins) + len(queries) + len(node.equalities) > 2:
            raise UnprintableError("a join by several keys, of which one may fail to be computed")
        sides = JoinSides.of(node)
        if any(
            may_fail(term) for term in conjuncts(node.predicate) if sides.equality(term) is None
        ):
            raise UnprintableError(_MAY_FAIL)
    both: list[PlanNode] = [*joins, *queries]
    filters = [part for node in both for part in all_below(node) if isinstance(part, Filter)]
    filters += [node for node in nodes if isinstance(node, Filter) and node.source in both]
    if any(may_fail(node.predicate) for node in filters):
        raise UnprintableError(_MAY_FAIL)


def all_below(node: PlanNode) -> Iterator[PlanNode]:
    yield node
    for source in node.sources:
        yield from all_below(source)


def _most_rows(node: PlanNode) -> int | None:
    if isinstance(node, TableScan):
        return node.table.estimated_rows
    if isinstance(node, n.EnforceSingleRowNode | n.AggregateNode) and not node.keys:
        return 1
    if isinstance(node, n.ApplyNode):
        return _most_rows(node.source)
    sizes = [_most_rows(source) for source in node.sources]
    if isinstance(node, n.LimitNode) and not isinstance(node, n.OffsetNode):
        sizes = [node.count if size is None else min(size, node.count) for size in sizes]
    counts = [size for size in sizes if size is not None]
    if len(counts) < len(sizes):
        return None
    return math.prod(max(count, 1) for count in counts) if isinstance(node, Join) else sum(counts)
