"""Plan nodes as plain data, for reports, saved traces and EXPLAIN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from rowmerge_nb.base.words import KnownRows
from rowmerge_nb.spi.operations import Operation


class JoinType(StrEnum):
    """The unmatched rows that a join keeps: the right side's or both (Trino's ``JoinType``).

    A MERGE has RIGHT or FULL.

    >>> JoinType.FULL.join_label
    'FullJoin'
    """

    CROSS = "CrossJoin"
    INNER = "InnerJoin"
    LEFT = "LeftJoin"
    RIGHT = "RightJoin"
    FULL = "FullJoin"

    @property
    def join_label(self) -> str:
        return self.value


@dataclass(frozen=True)
class BranchRecord:
    """One branch of the searched CASE.

    Args:
        present: whether there is a target row, as in the merge row.
        assigned: the columns of SET or of the INSERT's list, in that order.
    """

    number: int
    operation: Operation
    matched: bool | None
    condition: str
    values: tuple[str, ...]
    present: str
    by_source: bool = False
    assigned: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScanFacts:
    target: bool
    name: str


@dataclass(frozen=True)
class QueryFacts:
    """The nodes of a source query, the root first, depth first; the root has the query's rows."""

    nodes: tuple[NodeRecord, ...]


@dataclass(frozen=True)
class ProjectFacts:
    assigned: tuple[str, ...]


@dataclass(frozen=True)
class JoinFacts:
    """Facts about the join of target and source.

    Args:
        distribution: the source's: ``AUTOMATIC``, ``PARTITIONED``, ``SINGLE`` or ``REPLICATED``.
    """

    distribution: str
    replicate_target: bool
    type: JoinType = JoinType.RIGHT


@dataclass(frozen=True)
class MarkDistinctFacts:
    """Whether rows are redistributed by unique_id first."""

    exchange: bool


@dataclass(frozen=True)
class ProcessorFacts:
    """The paradigm, and the insert layout's columns in table order."""

    paradigm: str
    redistribution_columns: tuple[str, ...]


@dataclass(frozen=True)
class ExchangeFacts:
    """Facts about the exchange before the writers.

    Args:
        inserts: the partitioning of inserted rows, for readers: ``hash(address)``, ``ROUND_ROBIN``,
            or the connector's function.
        others: that of deleted and updated rows; ``""`` if it is the same.
        insert_rule: ``hash``, a connector's ``function``, or ``""`` without an insert layout.
        update_rule: the same of the update layout, applied to row ids.
    """

    inserts: str
    others: str
    insert_rule: str
    update_rule: str


@dataclass(frozen=True)
class WriterFacts:
    """Whether it runs in one pass with the nodes below it."""

    fused: bool


NodeFacts: TypeAlias = (
    ScanFacts
    | QueryFacts
    | ProjectFacts
    | JoinFacts
    | MarkDistinctFacts
    | ProcessorFacts
    | ExchangeFacts
    | WriterFacts
)
"""What reports and drawings ask of single kinds of nodes."""


@dataclass(frozen=True)
class NodeRecord:
    """A plan node.

    Args:
        name: Trino's name (``RightJoin``, ``Filter``, ``TableCommit``).
        arguments: the text after the name: ``accounts t``, ``t.customer = s.customer``,
            ``(unique_id, case_number)``.
        would: for a plan that did not run, the estimated or known output rows.
        rows: the output rows of a node of a query; None if not counted. `Trace.rows` has those of
            other nodes.
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
    facts: NodeFacts | None = None
    trino: str = ""
    would: KnownRows | None = None
    rows: int | None = None


def explain_text(plan: Sequence[NodeRecord]) -> str:
    lines: list[str] = []
    if plan:
        _print(plan[0].id, {record.id: record for record in plan}, "", "", lines)
    return "\n".join(lines)


def _print(
    node_id: str, records: Mapping[str, NodeRecord], first: str, rest: str, lines: list[str]
) -> None:
    node = records[node_id]
    lines.append(f"{first}{node.name}[{node.trino}]")
    bar = "│   " if node.sources else "    "
    lines.append(
        f"{rest}{bar}Layout: [{', '.join(f'{name}:{sql_type}' for name, sql_type in node.layout)}]"
    )
    lines.extend(f"{rest}{bar}{detail}" for detail in node.details)
    if isinstance(node.facts, QueryFacts) and node.facts.nodes:
        inner = node.facts.nodes
        _print(
            inner[0].id, {record.id: record for record in inner}, f"{rest}└─ ", f"{rest}   ", lines
        )
    for index, source in enumerate(node.sources):
        last = index == len(node.sources) - 1
        _print(
            source,
            records,
            rest + ("└─ " if last else "├─ "),
            rest + ("   " if last else "│  "),
            lines,
        )
