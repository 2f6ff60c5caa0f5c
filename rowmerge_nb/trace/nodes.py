"""The nodes of a plan as plain data: what reports draw, what a saved trace keeps, and what EXPLAIN prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rowmerge_nb.spi.operations import Operation

__all__ = ["BranchRecord", "JoinType", "NodeRecord", "explain_text"]


class JoinType(StrEnum):
    """Which rows without a partner a join keeps: those of the right side, or those of both (Trino's ``JoinType``).

    >>> JoinType.FULL.join_label
    'FullJoin'
    """

    RIGHT = "RightJoin"
    FULL = "FullJoin"

    @property
    def join_label(self) -> str:
        """What the join is called in a plan."""
        return self.value


@dataclass(frozen=True)
class BranchRecord:
    """One branch of the searched CASE.

    Args:
        number: case number; -1 for ELSE.
        operation: what it asks for; ``Operation.NONE`` for ELSE and for DO NOTHING.
        matched: whether the clause is WHEN MATCHED; None for ELSE.
        condition: the branch's condition: ``present AND s.address = 'Berkeley'``, ``ELSE``.
        values: per table column the value that goes into the merge row (``NULL`` for null).
        present: what the merge row's field ``present`` says: whether there is a target row.
        clause: the WHEN clause as written; ``""`` for ELSE.
        line: the clause's line within the statement; 0 for ELSE.
        by_source: the clause is WHEN NOT MATCHED BY SOURCE.
    """

    number: int
    operation: Operation
    matched: bool | None
    condition: str
    values: tuple[str, ...]
    present: str
    clause: str
    line: int
    by_source: bool = False


@dataclass(frozen=True)
class NodeRecord:
    """One node of a plan, as plain data.

    Args:
        id: the node's id.
        kind: the node's class name: ``TableScan``, ``Join``, ``MarkDistinct``, ``DuplicateCheck``, ``MergeProcessor``, ...
        name: the name as Trino prints it (``RightJoin``, ``Filter``, ``TableCommit``).
        arguments: what stands behind the name, for readers: ``accounts t``, ``t.customer = s.customer``, ``(unique_id, case_number)``.
        details: further lines, as EXPLAIN prints them.
        layout: output symbols with types as text.
        sources: ids of the nodes below.
        meaning: one sentence for people who see the node for the first time.
        branches: of the Project with the CASE: its branches, ELSE last; otherwise empty.
        attributes: facts that drawings use, by name: of MarkDistinct ``exchange`` (``yes``/``no``), of Join ``distribution``,
            ``replicate_target`` and ``full``, of MergeProcessor ``paradigm``, ``redistribution`` (column names, comma separated), of Exchange
            ``insert`` and ``update`` (layouts as text), of MergeWriter ``fused``, of TableScan ``role`` (``target``/``source``); of every
            node ``trino``: its arguments in the form that Trino prints.
    """

    id: str
    kind: str
    name: str
    arguments: str
    details: tuple[str, ...]
    layout: tuple[tuple[str, str], ...]
    sources: tuple[str, ...]
    meaning: str
    branches: tuple[BranchRecord, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


def explain_text(plan: Sequence[NodeRecord]) -> str:
    """Print a plan as EXPLAIN does: one node per line as a tree, with layout and details below.

    The nodes of MERGE carry the names and argument forms that Trino prints.

    Args:
        plan: the plan's records, the root first.
    """
    lines: list[str] = []
    if plan:
        _print(plan[0].id, {record.id: record for record in plan}, "", "", lines)
    return "\n".join(lines)


def _print(node_id: str, records: Mapping[str, NodeRecord], first: str, rest: str, lines: list[str]) -> None:
    node = records[node_id]
    lines.append(f"{first}{node.name}[{node.attributes.get('trino', '')}]")
    bar = "│   " if node.sources else "    "
    lines.append(f"{rest}{bar}Layout: [{', '.join(f'{name}:{kind}' for name, kind in node.layout)}]")
    lines.extend(f"{rest}{bar}{detail}" for detail in node.details)
    for index, source in enumerate(node.sources):
        last = index == len(node.sources) - 1
        _print(source, records, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), lines)
