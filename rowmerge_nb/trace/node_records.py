"""The nodes of a plan as plain data: what reports draw, what a saved trace keeps, and what EXPLAIN prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from rowmerge_nb.base.words import KnownRows
from rowmerge_nb.spi.operations import Operation


class JoinType(StrEnum):
    """The rows without a partner that a join keeps (Trino's ``JoinType``). The join of a MERGE is RIGHT or FULL.

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
        by_source: the clause is WHEN NOT MATCHED BY SOURCE.
        assigned: the columns that an UPDATE sets or an INSERT fills, in the order in which the clause names them.
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
    """What is known of a scan.

    Args:
        target: it reads the rows that the statement may change, and their row ids; False of a source.
        name: what the table goes by in the statement.
    """

    target: bool
    name: str


@dataclass(frozen=True)
class QueryFacts:
    """The nodes of a source query, the root first, depth first; the root has the query's rows."""

    nodes: tuple[NodeRecord, ...]


@dataclass(frozen=True)
class ProjectFacts:
    """What is known of a Project: the symbols that it computes."""

    assigned: tuple[str, ...]


@dataclass(frozen=True)
class JoinFacts:
    """What is known of the join of target and source.

    Args:
        distribution: how the source's rows travel: ``AUTOMATIC``, ``PARTITIONED``, ``SINGLE`` or ``REPLICATED``.
        replicate_target: every task gets all of the target.
        type: which rows without a partner it keeps.
    """

    distribution: str
    replicate_target: bool
    type: JoinType = JoinType.RIGHT


@dataclass(frozen=True)
class MarkDistinctFacts:
    """What is known of a MarkDistinct: whether rows are first redistributed by unique_id."""

    exchange: bool


@dataclass(frozen=True)
class ProcessorFacts:
    """What is known of ``transform_page``: the row change paradigm, and the columns of the insert layout in table order."""

    paradigm: str
    redistribution_columns: tuple[str, ...]


@dataclass(frozen=True)
class ExchangeFacts:
    """What is known of the exchange in front of the writers: by what the rows find them.

    Args:
        inserts: what places inserted rows, for readers: ``hash(address)``, ``ROUND_ROBIN``, or what the connector calls its function.
        others: what places deleted and updated rows; ``""`` where they have no layout of their own, and inserted rows' places them.
        insert_rule: ``hash`` of the insert layout's columns, a ``function`` of the connector's, or ``""`` where it has no insert layout.
        update_rule: the same of the update layout, which deleted and updated rows have by their row ids.
    """

    inserts: str
    others: str
    insert_rule: str
    update_rule: str


@dataclass(frozen=True)
class WriterFacts:
    """What is known of a MergeWriter: whether it runs in one pass with what is below of it."""

    fused: bool


NodeFacts: TypeAlias = (
    ScanFacts | QueryFacts | ProjectFacts | JoinFacts | MarkDistinctFacts | ProcessorFacts | ExchangeFacts | WriterFacts
)
"""What reports and drawings ask of single kinds of nodes."""


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
        facts: what is known of a node of its kind beside all this; None of kinds that nothing is asked of.
        trino: its arguments in the form that Trino prints.
        would: of a plan that was not run: how many rows would come out of it, as far as that is known.
        rows: rows that came out of a node of a query; None if they were not counted. Those of other nodes are in `Trace.rows`.
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
    lines.append(f"{first}{node.name}[{node.trino}]")
    bar = "│   " if node.sources else "    "
    lines.append(f"{rest}{bar}Layout: [{', '.join(f'{name}:{kind}' for name, kind in node.layout)}]")
    lines.extend(f"{rest}{bar}{detail}" for detail in node.details)
    if isinstance(node.facts, QueryFacts) and node.facts.nodes:
        inner = node.facts.nodes
        _print(inner[0].id, {record.id: record for record in inner}, f"{rest}└─ ", f"{rest}   ", lines)
    for index, source in enumerate(node.sources):
        last = index == len(node.sources) - 1
        _print(source, records, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), lines)
