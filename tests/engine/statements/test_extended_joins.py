"""FULL joins: many rows compared with another engine's MERGE, duplicates that no form of the join hides, subqueries everywhere."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.plan.rules import RuleSettings
from tests.engine.statements.test_co_location import shuffled_aggressively, skewed

pytestmark = pytest.mark.spark

TINY = RuleSettings(small_rows=0, key_rows=0)
PRUNING = RuleSettings(small_rows=0)


def engine(
    spark: Any, settings: RuleSettings | None, target: pa.Table, source: pa.Table, **properties: Any
) -> Engine:
    made = Engine(spark=spark, rule_settings=settings, dialect="extended")
    made.options = made.options.changed(rules_off={"change_in_task"})
    made.register("t", target, **properties)
    made.register("s", source)
    return made


@pytest.mark.parametrize("layout", [{}, {"partitioned_by": ["part"]}], ids=["plain", "partitioned"])
def test_a_hundred_thousand_rows_match_those_of_duckdb(spark: Any, layout: dict[str, Any]) -> None:
    random = np.random.default_rng(7)
    ids = random.permutation(150_000)

    def table(keys: Any) -> pa.Table:
        missing = random.random(len(keys)) < 0.01
        values = random.integers(0, 1000, len(keys))
        return pa.table({"id": pa.array(keys, mask=missing), "v": values, "part": values % 5})

    target, source = table(ids[:100_000]), table(ids[50_000:])
    merge = (
        "MERGE INTO t USING s ON t.id = s.id "
        "WHEN NOT MATCHED BY SOURCE AND t.v < 100 THEN UPDATE SET v = t.v + 5000, part = 9 "
        "WHEN MATCHED AND s.v < 500 THEN UPDATE SET v = t.v + s.v, part = s.part "
        "WHEN NOT MATCHED BY SOURCE AND t.id % 3 = 0 THEN DELETE "
        "WHEN MATCHED AND s.v > 900 THEN DELETE "
        "WHEN NOT MATCHED AND s.v >= 10 THEN INSERT (id, v, part) VALUES (s.id, s.v, s.part) "
    )
    made = engine(spark, PRUNING, target, source, **layout)
    result = made.run(merge + "RETURNING merge_action() AS word, t.id, t.v")
    other = duckdb.connect()
    other.register("given", target)
    other.register("s", source)
    other.execute("CREATE TABLE t AS FROM given")
    words = other.execute(merge + "RETURNING merge_action, id, v").fetchall()
    assert in_order(result.table) == in_order(
        pa.table(list(zip(*words, strict=True)), names=["word", "id", "v"])
    )
    assert in_order(made.table("t")) == in_order(other.sql("FROM t").to_arrow_table())
    assert result.trace.returned == result.count == len(words) > 50_000


def in_order(table: pa.Table | None) -> list[list[Any]]:
    assert table is not None
    ordered = table.sort_by([(name, "ascending") for name in table.column_names])
    return [column.to_pylist() for column in ordered.columns]


FORMS = [
    ("t.id = s.id", RuleSettings(), "small"),
    ("t.id = s.id", RuleSettings(small_rows=1500), "small source"),
    ("t.id = s.id", TINY, "source partitioned by its keys"),
    (
        "t.id IS NOT DISTINCT FROM s.id",
        RuleSettings(small_rows=1500),
        "no equal keys that we see, but Spark does",
    ),
    ("t.id <= s.id AND t.id >= s.id", RuleSettings(), "no equal keys, replicated target"),
    (
        "t.id <= s.id AND t.id >= s.id",
        RuleSettings(small_rows=1500),
        "no equal keys, replicated source",
    ),
    ("t.id <= s.id AND t.id >= s.id", TINY, "no equal keys, exchange by unique_id"),
]


@pytest.mark.parametrize(
    ("on", "settings", "form", "broadcast"),
    [
        (*form, broadcast)
        for form in FORMS
        for broadcast in ("10mb", "-1")
        if broadcast == "10mb" or "no equal" not in form[-1]
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_duplicates_are_found_in_every_form_of_the_full_join(
    spark: Any, on: str, settings: RuleSettings, form: str, broadcast: str
) -> None:
    confs = {**shuffled_aggressively(spark), "spark.sql.autoBroadcastJoinThreshold": broadcast}
    before = {key: spark.conf.get(key) for key in confs}
    for key, value in confs.items():
        spark.conf.set(key, value)
    try:
        merge = (
            f"MERGE INTO t USING s ON {on} WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v) WHEN NOT MATCHED BY SOURCE AND t.id < 100 THEN DELETE"
        )
        target = pa.table({"id": range(2000), "v": [0] * 2000})
        fine = engine(spark, settings, target, skewed(1000, -1, duplicate=False))
        result = fine.run(merge)
        assert result.counts == {"INSERT": 1000, "UPDATE": 2, "DELETE": 98, "none": 1900}
        trace = result.trace
        assert (
            trace.join.matched_rows,
            trace.join.unmatched_rows,
            trace.join.unmatched_target_rows,
        ) == (2, 1000, 1998)
        assert fine.table("t").num_rows == 2902
        broken = engine(spark, settings, target, skewed(1000, -1, duplicate=True))
        with pytest.raises(RowMergeError) as caught:
            broken.run(merge)
        assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
        (group,) = caught.value.groups  # type: ignore[attr-defined]
        assert group.target["id"] == 5
        assert sorted(s.values["v"] for s in group.sources) == [1000, 1002]
        assert broken.table("t").num_rows == 2000
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


SUBQUERIES = [
    "ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id IN (SELECT k FROM big WHERE k > 7) THEN DELETE",
    "ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND EXISTS (SELECT 1 FROM big b WHERE b.k = t.id AND b.k > 7) THEN DELETE",
    "ON t.id = s.id AND s.id IN (SELECT k FROM big) WHEN NOT MATCHED BY SOURCE AND t.id > 7 THEN DELETE",
    "ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id > (SELECT min(k) + 7 FROM big) THEN DELETE",
]


@pytest.mark.parametrize("settings", [RuleSettings(), TINY], ids=["small", "large"])
@pytest.mark.parametrize("rest", SUBQUERIES)
def test_subqueries_work_with_a_full_join(spark: Any, rest: str, settings: RuleSettings) -> None:
    target = pa.table({"id": range(10), "v": [0] * 10})
    made = engine(spark, settings, target, pa.table({"id": [8, 2, 2]}))
    result = made.run(
        f"MERGE INTO t USING (SELECT DISTINCT id FROM s) s {rest} RETURNING t.id",
        namespace={"big": spark.range(50).withColumnRenamed("id", "k")},
    )
    assert result.table is not None
    assert result.table.column("id").to_pylist() == [9]
    assert sorted(made.table("t").column("id").to_pylist()) == list(range(9))


@pytest.mark.parametrize("settings", [RuleSettings(), TINY], ids=["small", "large"])
def test_a_subquery_of_returning_hides_no_duplicate(spark: Any, settings: RuleSettings) -> None:
    big = spark.range(50_000).withColumnRenamed("id", "k")
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        target = pa.table({"id": range(10), "v": [0] * 10})
        made = engine(
            spark, settings, target, pa.table({"id": [1, 1, 2, 2, 3, 3, 4], "k": range(5, 12)})
        )
        merge = "MERGE INTO t USING {} ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.k RETURNING t.id, (SELECT max(b.k) FROM big b WHERE b.k = s.k) AS found"
        with pytest.raises(RowMergeError) as caught:
            made.run(merge.format("s"), namespace={"big": big})
        assert {group.target["id"] for group in caught.value.groups} == {1, 2, 3}  # type: ignore[attr-defined]
        result = made.run(
            merge.format("(SELECT * FROM s WHERE k % 2 = 1) s"), namespace={"big": big}
        )
        assert in_order(result.table) == [[1, 2, 3, 4], [5, 7, 9, 11]]
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


@pytest.mark.parametrize(
    ("target", "source", "after"), [([], [1, 2], [1, 2]), ([1, 2], [], []), ([], [], [])]
)
def test_an_empty_side_is_a_side_without_partners(
    spark: Any, target: list[int], source: list[int], after: list[int]
) -> None:
    tables = [pa.table({"id": pa.array(ids, pa.int64())}) for ids in (target, source)]
    made = engine(spark, None, *tables)
    result = made.run(
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT * RETURNING *"
    )
    assert made.table("t").column("id").to_pylist() == after
    assert result.table is not None
    assert result.table.num_rows == len(target) + len(source)
