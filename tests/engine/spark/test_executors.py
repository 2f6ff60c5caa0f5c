from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from proof.trials.driver import MERGE, digest, initial_rows, merged_rows, news
from rowmerge_nb import Engine, HiveAcidConnector
from rowmerge_nb.engine.spark.executors import RELATION_BYTES, executors_of, relation_of


def test_nothing_is_sent_to_workers_of_our_own_session(spark):
    executors = executors_of(spark)
    assert not executors.sends_packages
    assert not executors.elsewhere
    assert executors_of(spark.newSession()) is executors

    def task(batches):
        return batches

    assert executors.task(spark, task, [], None) is task


def test_cells_travel_in_relations_of_bounded_size_and_arrive_with_their_numbers(spark):
    cells = [bytes([number]) * (RELATION_BYTES // 2) for number in range(5)]
    rows = relation_of(spark, cells)
    found = rows.selectExpr(
        "id", "length(cell) AS size", "hex(substr(cell, 1, 1)) AS first"
    ).collect()
    assert sorted((row.id, row.size, int(row.first, 16)) for row in found) == [
        (n, RELATION_BYTES // 2, n) for n in range(5)
    ]
    assert rows.toDF("id", "cell").schema.names == ["id", "cell"]


def test_rows_of_an_insert_travel_to_their_writers_on_remote_executors(
    spark, monkeypatch, tmp_path
):
    monkeypatch.setattr(executors_of(spark), "elsewhere", True)
    rows = pa.table(
        {"id": np.arange(150_000), "part": pa.array(np.arange(150_000) % 5).cast(pa.string())}
    )
    engine = Engine(spark=spark)
    engine.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    created = "CREATE TABLE hive.default.t WITH (partitioned_by = ARRAY['part']) AS SELECT id * 2 AS id, part FROM rows WHERE id > 9"
    result = engine.run(created, namespace={"rows": rows})
    assert result.count == 149_990
    assert len(result.trace.writers) == 2
    assert len(list((tmp_path / "hive").rglob("bucket_*"))) == 5
    found = engine.table("hive.default.t")
    assert sorted(found.column("id").to_pylist()) == list(range(20, 300_000, 2))
    engine.close()


@pytest.mark.parametrize("flow", ["merge", "updatable"])
def test_large_tables_in_memory_travel_to_remote_executors(spark, monkeypatch, flow):
    monkeypatch.setattr(executors_of(spark), "elsewhere", True)
    rows = 150_000
    table, source = initial_rows(rows), news(np.arange(rows), rows, 1)
    engine = Engine(spark=spark)
    engine.register("t", table)
    if flow == "merge":
        engine.run(MERGE, namespace={"news": source})
        assert digest(engine.table("t")) == digest(merged_rows(table, source))
    else:
        result = engine.run("DELETE FROM t WHERE id % 2 = 0", flow=flow)
        assert result.count == rows // 2
        assert digest(engine.table("t")) == digest(table.take(np.arange(1, rows, 2)))
    engine.close()
