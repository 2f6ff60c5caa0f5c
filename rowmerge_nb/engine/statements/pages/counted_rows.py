"""Row counts of the nodes of a query that DuckDB has answered, from its profile.

A profile whose operators are not those of the nodes is ignored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.plan import query_nodes as n
from rowmerge_nb.plan.plan_nodes import Filter, Join, PlanNode, Project, TableScan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SAME_ROWS: Final = ("", "PROJECTION", "RESULT_COLLECTOR", "ARROW_COLLECTOR", "QUERY")
_TOP_N: Final = "TOP_N"
_ONCE: Final = ("PROJECTION", "UNGROUPED_AGGREGATE", "LIMIT", "STREAMING_LIMIT")
_GROUPS: Final = (
    "HASH_GROUP_BY",
    "PERFECT_HASH_GROUP_BY",
    "UNGROUPED_AGGREGATE",
    "PARTITIONED_AGGREGATE",
)
_OPERATORS: Final[Mapping[type[PlanNode], tuple[str, ...]]] = {
    TableScan: ("TABLE_SCAN", "ARROW_SCAN", "ARROW_SCAN_DUMB"),
    Filter: ("FILTER",),
    Join: (
        "HASH_JOIN",
        "NESTED_LOOP_JOIN",
        "BLOCKWISE_NL_JOIN",
        "PIECEWISE_MERGE_JOIN",
        "IE_JOIN",
        "CROSS_PRODUCT",
    ),
    n.AggregateNode: _GROUPS,
    n.ApplyNode: ("HASH_JOIN", "CROSS_PRODUCT"),
    n.EnforceSingleRowNode: _GROUPS,
    n.WindowNode: ("WINDOW", "STREAMING_WINDOW"),
    n.SortNode: ("ORDER_BY",),
    n.TopNNode: (_TOP_N,),
    n.LimitNode: ("LIMIT", "STREAMING_LIMIT", _TOP_N),
    n.OffsetNode: ("LIMIT", "STREAMING_LIMIT", _TOP_N),
}


@dataclass(frozen=True)
class ProfileOperator:
    name: str
    rows: int
    sources: tuple[ProfileOperator, ...] = ()


def counted_rows(connection: Any, root: PlanNode) -> dict[str, int]:
    """Return the rows that came out of the nodes of the last query, by their ids."""
    read = getattr(connection, "get_profiling_information", None)
    try:
        return {} if read is None else match_rows(root, _operator(json.loads(read(format="json"))))
    except (TypeError, ValueError):
        return {}


def match_rows(root: PlanNode, operator: ProfileOperator) -> dict[str, int]:
    """Return the rows of nodes; nothing unless each operator belongs to a node."""
    rows: dict[str, int] = {}
    return rows if _matches(root, operator, rows) else {}


def _matches(node: PlanNode, operator: ProfileOperator, rows: dict[str, int]) -> bool:
    while operator.name in _SAME_ROWS and len(operator.sources) == 1:
        [operator] = operator.sources
    if isinstance(node, Project):
        has_match = _matches(node.source, operator, rows)
        if node.source.id in rows:
            rows[node.id] = rows[node.source.id]
        return has_match
    if isinstance(node, n.SetOperationNode):
        return _set_matches(node, operator, rows)
    if isinstance(node, n.ApplyNode) and node.value is None and len(operator.sources) == 2:
        # DuckDB counts up to one row, and adds the count to each row.
        first, second = operator.sources
        operator = replace(operator, sources=(first, _counted_once(second)))
    if operator.name not in _OPERATORS.get(type(node), ()):
        return False
    rows[node.id] = operator.rows
    sources = node.sources
    if operator.name == _TOP_N and not isinstance(node, n.TopNNode):
        # DuckDB sorts and cuts by one operator.
        sources = _below_sort(node)
    return _all_match(sources, operator.sources, rows)


def _all_match(
    nodes: Sequence[PlanNode], operators: Sequence[ProfileOperator], rows: dict[str, int]
) -> bool:
    return len(nodes) == len(operators) and all(
        _matches(node, operator, rows) for node, operator in zip(nodes, operators, strict=True)
    )


def _counted_once(operator: ProfileOperator) -> ProfileOperator:
    while operator.name in _ONCE and len(operator.sources) == 1:
        has_limit = "LIMIT" in operator.name
        [operator] = operator.sources
        if has_limit:
            break
    return operator


def _set_matches(node: n.SetOperationNode, operator: ProfileOperator, rows: dict[str, int]) -> bool:
    """Match a set operation. DuckDB's UNION counts no rows; it finds the rows of the others by a
    join, which joins their numbers for ALL.
    """
    rows[node.id] = operator.rows
    if node.operator == "UNION":
        has_match = _all_match(node.parts, _union_parts(operator, len(node.parts)), rows)
        rows[node.id] = sum(rows.get(part.id, 0) for part in node.parts)
        return has_match
    while len(operator.sources) == 1:
        [operator] = operator.sources
    parts = [below.sources[0] if node.is_all else below for below in operator.sources]
    return _all_match(node.parts, parts, rows)


def _union_parts(operator: ProfileOperator, count: int) -> list[ProfileOperator]:
    """Return the parts of a UNION; in DuckDB 1 each has two."""
    parts = list(operator.sources) if operator.name == "UNION" else []
    while 0 < len(parts) < count and parts[0].name == "UNION":
        parts = [*parts[0].sources, *parts[1:]]
    return parts


def _below_sort(node: PlanNode) -> tuple[PlanNode, ...]:
    [source] = node.sources
    if isinstance(source, n.SortNode):
        return source.sources
    return _below_sort(source) if isinstance(source, n.OffsetNode) else ()


def _operator(profile: Any) -> ProfileOperator:
    """Return the operators of a profile, as DuckDB 1 and 2 write them."""
    name = profile.get("type") or profile.get("operator_type") or profile.get("operator_name") or ""
    return ProfileOperator(
        str(name).strip(),
        int(profile.get("intermediate_rows", profile.get("operator_cardinality", 0)) or 0),
        tuple(map(_operator, profile.get("operator", profile.get("children", ())))),
    )
