"""Queries that pages can answer, and the reasons of EXPLAIN for the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.plan.page_query import page_query
from rowmerge_nb.plan.planner import plan_query
from rowmerge_nb.plan.rules import RuleSettings
from tests.sql.support import meaning

if TYPE_CHECKING:
    from rowmerge_nb.plan.plan_nodes import Source
    from rowmerge_nb.sql.analyzer.analysis import QueryAnalysis

BY_SPARK = "Here Spark executes the query: "


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        engine.register("t", pa.table({"id": [1], "v": ["a"], "x": [1.5], "a": [[1]]}))
        yield engine


def executed(engine: Engine, sql: str, **options: frozenset[str]) -> str:
    [sentence] = engine.run(sql, dry_run=True, **options).trace.plan[0].details
    return sentence


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT 1", "a query that reads no table"),
        ("VALUES 1, 2", "rows of VALUES"),
        ("SELECT id FROM t WHERE id IN (VALUES 1, 2)", "rows of VALUES"),
        (
            "SELECT id FROM t p WHERE id = (SELECT max(id) FROM t q WHERE q.id > p.id)",
            "a correlated subquery that compares more than equal keys",
        ),
        (" UNION ALL ".join(["SELECT id FROM t"] * 33), "a query with 33 scans of tables"),
        ("SELECT lag(id) OVER (ORDER BY id) FROM t", "a function over a window"),
        ("SELECT max(id) OVER (PARTITION BY v) FROM t", "a function over a window"),
        ("SELECT rank() OVER (PARTITION BY a) FROM t", "groups of array(bigint)"),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", "an order of array(bigint)"),
        ("SELECT q FROM t, UNNEST(a) AS u (q)", "UNNEST"),
        ("SELECT v, count(*) FROM t GROUP BY ROLLUP (v)", "GROUPING SETS"),
        ("SELECT 'x' FROM t HAVING true", "a group without a column"),
        ("SELECT 'x' FROM t GROUP BY ()", "a group without a column"),
        ("SELECT DISTINCT a FROM t", "groups of array(bigint)"),
        ("SELECT count(DISTINCT x) FROM t", "groups of double"),
        ("SELECT count(DISTINCT a) FROM t", "groups of array(bigint)"),
        ("SELECT id FROM t ORDER BY a", "an order of array(bigint)"),
        ("SELECT sum(DISTINCT x) FROM t", "sum of distinct double"),
        ("SELECT array_agg(id ORDER BY v) FROM t", "the aggregate array_agg"),
        ("SELECT stddev(x) FROM t", "the aggregate stddev"),
        ("SELECT random() FROM t", "the function random()"),
        ("SELECT INTERVAL '1' DAY FROM t", "a value of type interval day to second"),
    ],
)
def test_the_plan_names_why_spark_executes_a_query(engine: Engine, sql: str, reason: str) -> None:
    assert executed(engine, sql) == f"{BY_SPARK}pages do not support {reason}"


def test_a_query_stays_with_executors_on_other_machines() -> None:
    with Engine(rule_settings=RuleSettings(remote_executors=True)) as engine:
        engine.register("t", pa.table({"id": [1]}))
        found = executed(engine, "SELECT id FROM t")
    assert (
        found == f"{BY_SPARK}its executors may run on other machines and read more at a time"
        " than this machine"
    )


def test_the_rule_can_be_switched_off(engine: Engine) -> None:
    result = engine.run("SELECT id FROM t", dry_run=True, rules_off={"query_on_pages"})
    assert result.trace.plan[0].details == ()


def test_a_condition_is_handed_to_the_scan() -> None:
    source = plan_query(
        cast(
            "QueryAnalysis",
            meaning("SELECT i FROM (SELECT * FROM numbers WHERE l > 5) WHERE l < 9"),
        )
    ).source
    [scan] = page_query(cast("Source", source)).scans.values()
    assert [
        (name, domain.low, domain.high) for name, domain in scan.constraint.domains.items()
    ] == [("l", 6, 8)]


def test_deep_and_long_expressions_are_planned(engine: Engine) -> None:
    assert "DuckDB" in executed(
        engine, f"SELECT id FROM t WHERE {' OR '.join(f'id = {number}' for number in range(500))}"
    )
    assert "DuckDB" in executed(engine, f"SELECT {'(' * 300}id{' + 1)' * 300} FROM t")


def test_the_rows_of_a_union_add_up() -> None:
    with Engine(
        rule_settings=RuleSettings(small_rows=0, one_task_bytes=0, packed_bytes=0, source_bytes=0)
    ) as engine:
        engine.register("t", pa.table({"id": range(50_000)}))
        union = "SELECT id FROM (SELECT id FROM t UNION ALL SELECT id FROM t UNION ALL SELECT id FROM t)"
        merge = f"MERGE INTO t USING ({union}) s ON t.id = s.id WHEN MATCHED THEN DELETE"
        plan = engine.run(merge, dry_run=True, rules_off={"answer_source"}).trace.plan
        details = " ".join(detail for node in plan for detail in node.details)
    assert "the source, about 1 MiB, is not sent to every task" in details
