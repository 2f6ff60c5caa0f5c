"""Plans printed by EXPLAIN of Trino 483, and our plans of the same statements, in a common form."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from rowmerge_nb import Engine
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.trace.node_records import NodeRecord

RECORDED: Mapping[str, Any] = json.loads(
    (Path(__file__).parent.parent / "goldens" / "plans.json").read_text(encoding="utf-8")
)
STATEMENTS: Mapping[str, Any] = {statement["id"]: statement for statement in RECORDED["statements"]}
DIFFERENCES: Mapping[str, str] = json.loads(
    (Path(__file__).parent / "differences.json").read_text(encoding="utf-8")
)
"""The reason per statement with a different plan."""

FUSED = {
    "ScanFilterProject": ("Project", "Filter", "TableScan"),
    "ScanProject": ("Project", "TableScan"),
    "ScanFilter": ("Filter", "TableScan"),
    "FilterProject": ("Filter",),
}
"""Operators that Trino prints as one, and the nodes that they consist of."""
COMPARED = ("MergeProcessor", "Filter", "MarkDistinct", "Project")


@dataclass(frozen=True)
class Node:
    """A node of a plan: its name, its compared output columns, and its children."""

    name: str
    layout: tuple[str, ...]
    sources: tuple[Node, ...]


def recorded_plan(statement: str) -> Node:
    """Return a plan of Trino without the exchanges of its cluster, with fused operators taken apart, the target on the left."""
    return _recorded(STATEMENTS[statement]["logical"])[0]


def _recorded(lines: Sequence[Mapping[str, Any]]) -> tuple[Node, ...]:
    """Build trees from lines indented by depth."""
    nodes = []
    starts = (
        [i for i, line in enumerate(lines) if line["depth"] == lines[0]["depth"]] if lines else []
    )
    for start, end in itertools.pairwise([*starts, len(lines)]):
        line, sources = lines[start], _recorded(lines[start + 1 : end])
        if line["name"].endswith("Exchange") and "MERGE [" not in line["args"]:
            nodes += sources
            continue
        names = FUSED.get(line["name"], (line["name"].replace("LocalExchange", "Exchange"),))
        if line["name"] == "ScanFilter" and "filterPredicate" not in line["args"]:
            names = ("TableScan",)  # a dynamic filter is passed by a join to its scan at run time
        if names[0] == "LeftJoin":
            names, sources = ("RightJoin",), sources[::-1]
        layout = tuple(_symbol(name) for name, _ in line["layout"])
        for name in reversed(names):
            sources = (Node(name, layout if name == names[0] else (), sources),)
        nodes += sources
    return tuple(nodes)


def _symbol(name: str) -> str:
    """Return the name used here for a recorded symbol."""
    return {"field": "row_id"}.get(name, re.sub(r"^case_number_\d+$", "case_number", name))


def our_plan(engine: Engine, statement: str) -> Node:
    """Return our logical plan of a statement."""
    records = engine.explain(STATEMENTS[statement]["sql"], kind="LOGICAL").trace.plan
    by_id = {record.id: record for record in records}

    def node(record: NodeRecord) -> Node:
        layout = tuple(name for name, _ in record.layout)
        return Node(record.name, layout, tuple(node(by_id[source]) for source in record.sources))

    return node(records[0])


def comparable(plan: Node, *, above_join: bool = True) -> Node:
    """Omit layouts without information: of scans and joins, which Trino prunes and Spark prunes here when it plans."""
    joins = plan.name.endswith("Join")
    sources = tuple(
        comparable(source, above_join=above_join and not joins) for source in plan.sources
    )
    layout = plan.layout if above_join and plan.name in COMPARED and not _over_scan(plan) else ()
    return Node(plan.name, layout, sources)


def _over_scan(plan: Node) -> bool:
    return plan.name == "Filter" and any(source.name == "TableScan" for source in plan.sources)


def recorded_engine() -> Engine:
    """Create an engine with the recorded statements' tables."""
    engine = Engine(schema="gold", era="current")
    for name, table in RECORDED["tables"].items():
        columns = [pa.field(column[0], parse_type(column[1]).arrow) for column in table["columns"]]
        required = [column[0] for column in table["columns"] if len(column) > 2]
        engine.register(
            name,
            pa.schema(columns).empty_table(),
            partitioned_by=table.get("partitioned_by", ()),
            not_null=required,
        )
    return engine
