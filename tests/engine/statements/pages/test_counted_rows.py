"""Row counts of the nodes of queries that DuckDB answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.engine.statements.pages.counted_rows import (
    ProfileOperator,
    counted_rows,
    match_rows,
)
from rowmerge_nb.plan.plan_nodes import PlanNode, TableScan
from rowmerge_nb.plan.query_nodes import LimitNode, SortNode
from rowmerge_nb.sql.analyzer.analysis import TableBinding
from rowmerge_nb.trace.node_records import NodeRecord, QueryFacts


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        engine.register("t", pa.table({"id": range(100), "v": ["a", "b"] * 50, "x": [1.0] * 100}))
        engine.register("u", pa.table({"k": [1, 2, 2, 500], "w": ["a", "b", "c", "d"]}))
        yield engine


def nodes(engine: Engine, sql: str) -> list[NodeRecord]:
    [facts] = [
        node.facts for node in engine.run(sql).trace.plan if isinstance(node.facts, QueryFacts)
    ]
    return list(facts.nodes)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT v, max(id) FROM t WHERE id > 10 GROUP BY v HAVING max(id) > 98", [1, 2, 89, 100]),
        ("SELECT id + 1 FROM t ORDER BY x, id LIMIT 3", [3, 100, 100]),
        ("SELECT id FROM t ORDER BY x, id OFFSET 2 LIMIT 3", [3, 98, 100, 100]),
        ("SELECT id FROM t LIMIT 5", [5, 100]),
        (
            "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY v ORDER BY id) r FROM t) WHERE r = 1",
            [2, 100, 100],
        ),
        ("SELECT DISTINCT v FROM t", [2, 100]),
        ("SELECT id FROM t UNION ALL SELECT k FROM u UNION ALL SELECT k FROM u", [108, 100, 4, 4]),
        ("SELECT k FROM u UNION SELECT id FROM t WHERE id < 3", [4, 7, 4, 3, 100]),
        ("SELECT k FROM u INTERSECT SELECT id FROM t", [2, 4, 100]),
        ("SELECT k FROM u EXCEPT ALL SELECT id FROM t", [2, 4, 100]),
        ("SELECT k FROM u WHERE k IN (SELECT id FROM t)", [3, 4, 4, 100]),
        ("SELECT k FROM u WHERE w = 'c' AND EXISTS (SELECT 1 FROM t)", [1, 1, 1, 4, 100]),
        ("SELECT k, (SELECT v FROM t WHERE id = 7) FROM u", [4, 4, 1, 1, 100]),
        ("SELECT v, w FROM t JOIN u ON id = k", [3, 100, 4]),
        ("SELECT v, w FROM t RIGHT JOIN u ON id = k WHERE w > 'a'", [3, 100, 3, 4]),
        ("SELECT w, count(*) FROM t, u WHERE id = k AND w > 'a' GROUP BY w", [2, 2, 100, 3, 4]),
        (
            "SELECT id FROM u CROSS JOIN (SELECT max(id) AS id FROM t) WHERE k < id",
            [3, 4, 4, 1, 100],
        ),
        ("SELECT a.k FROM u a FULL JOIN u b ON a.k < b.k AND a.w <> b.w", [7, 4, 4]),
    ],
)
def test_rows_of_nodes_are_counted(engine: Engine, sql: str, rows: list[int]) -> None:
    assert [node.rows for node in nodes(engine, sql)] == rows


def test_a_plan_of_duckdb_with_more_than_one_input_is_not_matched(engine: Engine) -> None:
    values = ", ".join(map(str, range(300)))
    assert {node.rows for node in nodes(engine, f"SELECT id FROM t WHERE id IN ({values})")} == {
        None
    }


def test_a_query_that_was_not_run_has_no_counts(engine: Engine) -> None:
    explained = engine.explain("SELECT id FROM t WHERE id > 1")
    assert all(
        node.rows is None
        for record in explained.trace.plan
        if isinstance(record.facts, QueryFacts)
        for node in record.facts.nodes
    )


def limited() -> PlanNode:
    scan = TableScan(id="1", outputs=(), table=TableBinding("t", "", ("t",), (), "v"), columns=())
    return LimitNode(
        id="3", outputs=(), source=SortNode(id="2", outputs=(), source=scan, order_by=()), count=1
    )


SCAN = ProfileOperator("TABLE_SCAN", 5)


@pytest.mark.parametrize(
    "operator",
    [
        ProfileOperator("TOP_N", 1, (ProfileOperator("FILTER", 2, (SCAN,)),)),
        ProfileOperator("TOP_N", 1, (SCAN, SCAN)),
        ProfileOperator("TOP_N", 1),
        ProfileOperator("QUERY", 1),
    ],
)
def test_other_operators_are_not_matched(operator: ProfileOperator) -> None:
    assert match_rows(limited(), operator) == {}


def test_profiles_of_both_versions_are_read() -> None:
    class Connection:
        def __init__(self, profile: Any) -> None:
            self.profile = profile

        def get_profiling_information(self, **_: str) -> str:
            return json.dumps(self.profile)

    first = {
        "children": [
            {
                "operator_name": "TOP_N ",
                "operator_cardinality": 1,
                "children": [{"operator_name": "ARROW_SCAN ", "operator_cardinality": 7}],
            }
        ]
    }
    second = {
        "operator": [
            {
                "type": "TOP_N",
                "intermediate_rows": 1,
                "children": [{"type": "TABLE_SCAN", "intermediate_rows": 7}],
            }
        ]
    }
    assert (
        counted_rows(Connection(first), limited())
        == counted_rows(Connection(second), limited())
        == {"1": 7, "3": 1}
    )
    assert (
        counted_rows(Connection({"operator": [{}, {}]}), limited())
        == counted_rows(object(), limited())
        == {}
    )
