"""Row counts of the nodes of a query that DuckDB has answered, from its profile.

A profile whose operators are not those of the nodes is ignored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.plan import query_nodes as n
from rowmerge_nb.plan.plan_nodes import Filter, PlanNode, Project, TableScan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SAME_ROWS: Final = ("PROJECTION", "RESULT_COLLECTOR", "ARROW_COLLECTOR", "QUERY")
_OPERATORS: Final[Mapping[type[PlanNode], tuple[str, ...]]] = {
    TableScan: ("TABLE_SCAN", "ARROW_SCAN", "ARROW_SCAN_DUMB"),
    Filter: ("FILTER",),
    n.AggregateNode: (
        "HASH_GROUP_BY",
        "PERFECT_HASH_GROUP_BY",
        "UNGROUPED_AGGREGATE",
        "PARTITIONED_AGGREGATE",
    ),
    n.WindowNode: ("WINDOW", "STREAMING_WINDOW"),
    n.SortNode: ("ORDER_BY",),
    n.TopNNode: ("TOP_N",),
    n.LimitNode: ("LIMIT", "STREAMING_LIMIT", "TOP_N"),
    n.OffsetNode: ("LIMIT", "STREAMING_LIMIT", "TOP_N"),
}


def counted_rows(connection: Any, root: PlanNode) -> dict[str, int]:
    """Return the rows that came out of the nodes of the last query, by their ids."""
    read = getattr(connection, "get_profiling_information", None)
    try:
        operators = list(_operators(json.loads(read(format="json")))) if read is not None else []
    except (TypeError, ValueError):
        return {}
    return match_rows(root, operators)


def match_rows(root: PlanNode, operators: list[tuple[str, int]]) -> dict[str, int]:
    """Return the rows of nodes; nothing unless each operator belongs to a node."""
    nodes = list(_upward(root))
    rows: dict[str, int] = {}
    last = 0
    rest = iter([pair for pair in operators if pair[0] not in _SAME_ROWS])
    name, count = next(rest, ("", 0))
    for node in nodes:
        if isinstance(node, Project):
            rows[node.id] = last
        elif name in _OPERATORS.get(type(node), ()):
            rows[node.id] = last = count
            name, count = next(rest, ("", 0))
        elif not (isinstance(node, n.SortNode | n.OffsetNode) and name == "TOP_N"):
            # DuckDB sorts and cuts by one operator.
            return {}
    return {} if name else rows


def _upward(node: PlanNode) -> Iterator[PlanNode]:
    for source in node.sources:
        yield from _upward(source)
    yield node


def _operators(profile: Any) -> Iterator[tuple[str, int]]:
    """Yield names and rows of operators, from the scan up, as DuckDB 1 and 2 write them."""
    below = profile.get("operator", profile.get("children", ()))
    if len(below) > 1:
        raise ValueError
    for operator in below:
        yield from _operators(operator)
    name = profile.get("type") or profile.get("operator_type") or profile.get("operator_name")
    if isinstance(name, str):
        yield (
            name.strip(),
            int(profile.get("intermediate_rows", profile.get("operator_cardinality", 0))),
        )
