"""Large statements read only the necessary rows and columns, and change the same rows as without pruning."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.plan.rules import RULES, RuleSettings
from rowmerge_nb.trace.node_records import ScanFacts

pytestmark = pytest.mark.spark

ROWS = 3000
LARGE = RuleSettings(small_rows=0)
BY_SPARK = frozenset({"change_in_task"})
PLAIN = frozenset(RULES) - {"co_locate_matches"}
MERGE = """MERGE INTO t USING s ON t.id = s.id AND t.region < 'x'
WHEN MATCHED AND s.v < 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET v = t.v + s.v
WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.region, s.v, 'new')"""


def made(spark: Any, settings: RuleSettings, **properties: Any) -> Engine:
    engine = Engine(spark=spark, rule_settings=settings)
    numbers = list(range(ROWS))
    regions = ["EU" if i % 3 else "zz" for i in numbers]
    target = pa.table(
        {"id": numbers, "region": regions, "v": numbers, "note": [f"note {i}" for i in numbers]}
    )
    engine.register("t", target, **properties)
    keys = [*range(0, ROWS, 50), -1, -2]
    source = pa.table(
        {
            "id": pa.array(keys, pa.int32()),
            "region": ["EU"] * len(keys),
            "v": [k % 7 - 1 for k in keys],
        }
    )
    engine.register("s", source)
    return engine


def rows(engine: Engine) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in engine.table("t").to_pylist())


@pytest.mark.parametrize("paradigm", ["DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS"])
@pytest.mark.parametrize("source", ["s", "(SELECT * FROM s) s"])
def test_pruned_and_plain_plans_change_the_same_rows(
    spark: Any, paradigm: str, source: str
) -> None:
    statement = MERGE.replace("USING s", f"USING {source}")
    engines = [made(spark, LARGE, paradigm=paradigm) for _ in range(3)]
    results = [
        engine.run(statement, rules_off=off)
        for engine, off in zip(engines, (set(), BY_SPARK, PLAIN), strict=True)
    ]
    in_tasks, by_spark, plain = (result.counts for result in results)
    assert in_tasks == by_spark == plain
    assert plain["UPDATE"] > 0
    assert plain["DELETE"] > 0
    assert rows(engines[0]) == rows(engines[1]) == rows(engines[2])
    shown = ["SemiJoin" in str(result.plan) for result in results]
    assert shown == [True, True, False]


def test_only_necessary_rows_of_the_target_are_read(spark: Any) -> None:
    result = made(spark, LARGE, paradigm="CHANGE_ONLY_UPDATED_COLUMNS").run(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    (scan,) = [
        node
        for node in result.trace.plan
        if isinstance(node.facts, ScanFacts) and node.facts.target
    ]
    assert [name for name, _ in scan.layout] == ["id", "row_id"]


def test_rows_matched_twice_are_reported_with_all_values_even_if_not_all_were_read(
    spark: Any,
) -> None:
    engine = made(spark, LARGE)
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            "MERGE INTO t USING (SELECT id FROM s UNION ALL SELECT 50) s ON t.id = s.id WHEN MATCHED THEN DELETE"
        )
    (group,) = caught.value.groups  # type: ignore[attr-defined]
    assert group.target == {"id": 50, "region": "EU", "v": 50, "note": "note 50"}


def test_the_rows_of_an_insert_go_to_the_writers_of_their_partitions(spark: Any) -> None:
    engine = made(spark, LARGE, partitioned_by=["region"])
    engine.run(
        "CREATE TABLE copied (id bigint, region varchar) WITH (partitioned_by = ARRAY['region'])"
    )
    result = engine.run(
        "INSERT INTO copied SELECT id, concat(region, CAST(id % 5 AS varchar)) FROM t UNION ALL SELECT id, region FROM t"
    )
    assert result.count == 2 * ROWS
    assert engine.table("copied").num_rows == 2 * ROWS
    assert "Exchange" in str(result.plan)
    assert 1 <= len(result.trace.writers) <= 2


def test_bucketed_inserts_send_each_bucket_to_one_writer(spark: Any) -> None:
    engine = made(spark, LARGE)
    engine.run(
        "CREATE TABLE copied (id bigint, note varchar) WITH (bucketed_by = ARRAY['id'], bucket_count = 4)"
    )
    result = engine.run("INSERT INTO copied SELECT id, note FROM t")
    assert "bucket(id)" in str(result.plan)
    assert (
        engine.run("MERGE INTO copied c USING s ON c.id = s.id WHEN MATCHED THEN DELETE").count
        == ROWS // 50
    )
