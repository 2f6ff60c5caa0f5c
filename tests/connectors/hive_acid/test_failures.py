"""Statements on Hive tables that fail, collide or are cancelled leave the old content or the new one, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, HiveAcidConnector, RowMergeError
from tests.connectors.hive_acid.kit import contents, events, files

pytestmark = pytest.mark.spark

MERGE = """MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v, p = s.p
    WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p)"""
SOURCE = pa.table({"id": [2, 3], "v": ["B", "C"], "p": ["y", "y"]})
ROWS = [(1, "a", "x"), (2, "b", "x")]
MERGED = [(1, "a", "x"), (2, "B", "y"), (3, "C", "y")]


def shop(spark: Any, directory: Path, properties: str = "") -> tuple[Engine, HiveAcidConnector]:
    store = HiveAcidConnector(directory)
    engine = Engine(spark=spark, catalog="hive")
    engine.add_catalog("hive", store)
    if store.metastore.list_tables() == []:
        engine.run(f"CREATE TABLE t (id bigint, v varchar, p varchar) {properties}")
        engine.run("INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x')")
    return engine, store


@pytest.mark.parametrize(
    "step", ["analyze", "plan", "begin_merge", "run", "finish_merge", "commit"]
)
def test_a_statement_that_is_cancelled_at_any_step_leaves_no_trace(
    spark: Any, tmp_path: Path, step: str
) -> None:
    engine, store = shop(spark, tmp_path, "WITH (partitioned_by = ARRAY['p'])")
    before = files(store)
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            MERGE,
            namespace={"s": SOURCE},
            progress=lambda name: engine.cancel() if name == step else None,
        )
    assert caught.value.code == "USER_CANCELED"
    assert contents(store) == ROWS
    assert {name for name in files(store) if name != "p=y"} == before
    assert store.open_transactions() == []
    assert engine.run(MERGE, namespace={"s": SOURCE}).count == 2
    assert contents(store) == MERGED


def test_one_of_two_concurrent_merges_wins_and_the_other_gets_a_conflict(
    spark: Any, tmp_path: Path
) -> None:
    first, store = shop(spark, tmp_path)
    second, _ = shop(spark, tmp_path)

    def meanwhile(step: str) -> None:
        if step == "finish_merge":
            assert second.run(MERGE, namespace={"s": SOURCE}).count == 2

    with pytest.raises(RowMergeError) as caught:
        first.run(MERGE.replace("s.v", "'lost'"), namespace={"s": SOURCE}, progress=meanwhile)
    assert caught.value.code == "TRANSACTION_CONFLICT"
    assert caught.value.hint == "Run the statement again."
    assert contents(store) == MERGED
    assert store.orphans() == []
    assert store.open_transactions() == []


def test_an_error_on_sparks_side_that_cuts_the_stream_short_changes_nothing(
    spark: Any, tmp_path: Path
) -> None:
    engine, store = shop(spark, tmp_path)
    before = files(store)
    numbers = pa.table({"id": list(range(10, 200_010)), "v": [1] * 199_999 + [0]})
    sql = "MERGE INTO t USING many s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, cast(100 / s.v AS varchar), 'x')"
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql, namespace={"many": numbers})
    assert caught.value.code == "DIVISION_BY_ZERO"
    assert contents(store) == ROWS
    assert files(store) == before


def test_a_file_that_is_cut_short_is_named_in_the_error(spark: Any, tmp_path: Path) -> None:
    engine, store = shop(spark, tmp_path)
    path = min((store.warehouse / "t").rglob("bucket_*"))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(RowMergeError) as caught:
        engine.run(MERGE, namespace={"s": SOURCE})
    assert caught.value.code == "HIVE_BAD_DATA"
    assert str(path) in caught.value.message
    assert store.open_transactions() == []


@pytest.mark.trial
def test_many_rows_of_several_writers_move_between_partitions_and_buckets(
    spark: Any, tmp_path: Path
) -> None:
    rows = 12_000
    data = pa.table(
        {
            "id": list(range(rows)),
            "v": [f"v{n % 7}" for n in range(rows)],
            "p": [f"p{n % 5}" for n in range(rows)],
        }
    )
    source = pa.table({"id": list(range(0, 2 * rows, 2)), "n": list(range(rows))})
    properties = {
        "plain": "",
        "partitions": "WITH (partitioned_by = ARRAY['p'])",
        "buckets": "WITH (bucketed_by = ARRAY['id'], bucket_count = 4)",
        "both": "WITH (partitioned_by = ARRAY['p'], bucketed_by = ARRAY['v'], bucket_count = 3, bucketing_version = 2)",
    }
    expected = {n: (f"v{n % 7}", f"p{n % 5}") for n in range(rows)}
    for n in range(0, 2 * rows, 2):
        if n in expected and n % 3 == 0:
            del expected[n]
        elif n in expected:
            del expected[n]
            expected[n + 1_000_000] = (f"w{n // 2 % 3}", f"q{n // 2 % 2}")
        else:
            expected[n] = ("new", "p0")
    for era in ("documents", "current"):
        for kind, text in properties.items():
            engine = Engine(spark=spark, catalog="hive", era=era)
            store = HiveAcidConnector(tmp_path / era / kind)
            engine.add_catalog("hive", store)
            engine.run(f"CREATE TABLE t {text} AS SELECT id, v, p FROM d", namespace={"d": data})
            result = engine.run(
                """MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND t.id % 3 = 0 THEN DELETE
                WHEN MATCHED THEN UPDATE SET id = t.id + 1000000, v = 'w' || cast(s.n % 3 AS varchar), p = 'q' || cast(s.n % 2 AS varchar)
                WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'new', 'p0')""",
                namespace={"s": source},
            )
            assert result.count == rows
            assert {row[0]: row[1:] for row in contents(store)} == expected, (era, kind)
            numbers = [
                tuple(e[1:4])
                for path, rows_of in events(store).items()
                if "delete_delta" in path
                for e in rows_of
            ]
            assert len(numbers) == rows // 2
            for path, found in events(store).items():
                keys = [tuple(e[1:4]) for e in found]
                assert keys == sorted(keys), path
            assert engine.run("DELETE FROM t WHERE v = 'new'").count == rows // 2
            assert engine.run("UPDATE t SET p = 'q9' WHERE p = 'q0'").count > 0
            assert {row[2] for row in contents(store)} == {"p0", "p1", "p2", "p3", "p4", "q1", "q9"}
            engine.run("DROP TABLE t")
            assert store.orphans() == []
            assert not list(store.warehouse.iterdir())
