"""The expected row count of a source that joins tables: the bound of a join is a product, and the result usually is smaller."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.engine.statements import row_change
from rowmerge_nb.plan import rules

pytestmark = pytest.mark.spark


def test_a_join_is_measured_by_its_tables_together(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(spark=spark)
    for name in ("t", "a", "b"):
        engine.register(name, pa.table({"id": list(range(30_000)), "v": [0] * 30_000}))
    seen: list[int | None] = []
    partitions = row_change._partitions

    def noted(usual: int, rows: int | None) -> int:
        seen.append(rows)
        return partitions(usual, rows)

    monkeypatch.setattr(row_change, "_partitions", noted)
    merge = "MERGE INTO t USING ({}) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1"
    joined = "SELECT a.id FROM a JOIN b ON a.id = b.id"
    by_spark = engine.run(merge.format(joined), rules_off={"answer_source"})
    assert by_spark.trace.count == 30_000
    assert engine.run(merge.format("SELECT id FROM a")).trace.count == 30_000
    assert seen == [60_001, 30_000]


def test_a_bound_larger_than_all_tables_is_ignored(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 0), (2, 0)) AS v (id, v)")
    # At most 160 rows: for 2 ** 60 rows, Spark was once asked for a matching number of partitions.
    monkeypatch.setattr(rules, "_MOST_BOUND", 159)
    many = " UNION ALL ".join(
        ["SELECT a.id FROM t a, t b, t c WHERE a.id = b.id AND b.id = c.id"] * 20
    )
    seen: list[int | None] = []
    partitions = row_change._partitions
    monkeypatch.setattr(
        row_change,
        "_partitions",
        lambda usual, rows: (seen.append(rows), partitions(usual, rows))[1],
    )
    result = engine.run(
        f"MERGE INTO t USING (SELECT DISTINCT id FROM ({many})) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1"
    )
    assert (result.trace.count, seen) == (2, [None])
