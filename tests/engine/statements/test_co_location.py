"""No form of the join hides duplicates: skew, non-equi joins, broadcast targets, all with adaptive execution."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.plan.rules import RuleSettings

pytestmark = pytest.mark.spark

TINY = RuleSettings(small_rows=0, key_rows=0)
"""All tables count as large: no broadcast of the target, no single partition, no pruning."""
PRUNING = RuleSettings(small_rows=0)


def engine(spark: Any, settings: RuleSettings, source: pa.Table, target_rows: int = 1000) -> Engine:
    made = Engine(spark=spark, rule_settings=settings)
    made.options = made.options.changed(rules_off={"change_in_task"})
    made.register("t", pa.table({"id": list(range(target_rows)), "v": [0] * target_rows}))
    made.register("s", source)
    return made


def skewed(rows: int, key: int, *, duplicate: bool) -> pa.Table:
    """Return a source in which nearly all rows have one key that no target row has."""
    ids = [key] * rows + ([5, 7, 5] if duplicate else [5, 7])
    return pa.table({"id": ids, "v": list(range(len(ids)))})


def shuffled_aggressively(spark: Any) -> dict[str, str]:
    """Let adaptive execution split skewed partitions wherever possible."""
    return {
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1b",
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.0",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1kb",
        "spark.sql.adaptive.forceOptimizeSkewedJoin": "true",
        "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1b",
        "spark.sql.shuffle.partitions": "4",
    }


FORMS = [
    ("t.id = s.id", RuleSettings(), "replicated target, source in one partition"),
    ("t.id = s.id", TINY, "source partitioned by its keys"),
    ("t.id = s.id", PRUNING, "pruned target, source partitioned by its keys"),
    ("t.id = s.id AND t.v >= 0", TINY, "keys and a further condition"),
    ("t.id <= s.id AND t.id >= s.id", RuleSettings(), "non-equi join, small"),
    ("t.id <= s.id AND t.id >= s.id", TINY, "non-equi join, large: exchange by unique_id"),
]


@pytest.mark.parametrize("broadcast", ["32mb", "-1"])
@pytest.mark.parametrize(("on", "settings", "form"), FORMS, ids=[form for _, _, form in FORMS])
def test_duplicates_are_found_in_every_form_of_the_join(
    spark: Any, on: str, settings: RuleSettings, form: str, broadcast: str
) -> None:
    confs = {
        **shuffled_aggressively(spark),
        "spark.sql.adaptive.autoBroadcastJoinThreshold": broadcast,
    }
    before = {key: spark.conf.get(key, None) for key in confs}
    for key, value in confs.items():
        spark.conf.set(key, value)
    try:
        merge = f"MERGE INTO t USING s ON {on} WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
        fine = engine(spark, settings, skewed(3000, -1, duplicate=False))
        result = fine.run(merge)
        assert result.counts == {"INSERT": 3000, "UPDATE": 2, "DELETE": 0, "none": 0}
        assert fine.table("t").num_rows == 4000
        broken = engine(spark, settings, skewed(3000, -1, duplicate=True))
        with pytest.raises(RowMergeError) as caught:
            broken.run(merge)
        assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
        (group,) = caught.value.groups  # type: ignore[attr-defined]
        assert group.target["id"] == 5
        assert sorted(s.values["v"] for s in group.sources) == [3000, 3002]
        assert broken.table("t").num_rows == 1000
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def test_many_matches_of_one_skewed_target_row_are_one_group(spark: Any) -> None:
    broken = engine(spark, TINY, skewed(5000, 3, duplicate=False))
    with pytest.raises(RowMergeError) as caught:
        broken.run(
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.v < 2 THEN UPDATE SET v = s.v"
        )
    (group,) = caught.value.groups  # type: ignore[attr-defined]
    assert group.target["id"] == 3
    assert group.total == 5000
    assert len(group.sources) == 20, "the first ones are named, all are counted"


SUBQUERIES = [
    "ON t.id = s.id WHEN MATCHED AND s.k IN (SELECT k FROM big) THEN UPDATE SET v = s.k",
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = (SELECT max(b.k) FROM big b WHERE b.k = s.k)",
    "ON t.id = s.id AND s.k IN (SELECT k FROM big) WHEN MATCHED THEN UPDATE SET v = s.k",
    "ON t.id = s.id WHEN MATCHED AND EXISTS (SELECT 1 FROM big b WHERE b.k = s.k) THEN DELETE",
]


@pytest.mark.parametrize("settings", [RuleSettings(), TINY], ids=["small", "large"])
@pytest.mark.parametrize("rest", SUBQUERIES)
def test_a_subquery_that_spark_joins_by_an_exchange_of_its_own_hides_no_duplicate(
    spark: Any, rest: str, settings: RuleSettings
) -> None:
    big = spark.range(50_000).withColumnRenamed("id", "k")
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        # Different k send the two rows of one target row different ways; several pairs, so that some must separate.
        ids = [1, 1, 2, 2, 3, 3, 4, 5]
        made = engine(spark, settings, pa.table({"id": ids, "k": list(range(5, 13))}))
        with pytest.raises(RowMergeError) as caught:
            made.run(f"MERGE INTO t USING s {rest}", namespace={"big": big})
        assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
        assert {group.target["id"] for group in caught.value.groups} == {1, 2, 3}  # type: ignore[attr-defined]
        assert made.table("t").column("v").to_pylist() == [0] * 1000
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)
