"""Random statements through the whole engine, including Spark, compared with the oracle, DuckDB and PostgreSQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from proof.engines.backends import DuckDB, EngineUnderTest, Oracle
from proof.fuzz import fuzz
from rowmerge_nb import Engine


@pytest.mark.trial
def test_random_statements_end_like_in_the_oracle_and_duckdb(spark: Any) -> None:
    # Separate engines within the process's one Spark context, two statements at a time.
    summary = fuzz(
        lambda: (EngineUnderTest(Engine(cores=2)), [Oracle(), DuckDB()]), range(100), 476, at_once=2
    )
    assert summary.failures == [], summary.failures[0].text(476)
    assert summary.agreed["oracle"] == 100
    assert summary.agreed["duckdb"] > 50


@pytest.mark.parametrize("bucketed_by", [[], ["id"]])
def test_a_target_without_rows_is_merged_into_for_every_row_id(
    spark: Any, bucketed_by: list[str]
) -> None:
    with Engine(spark=spark) as engine:
        empty = pa.table({"id": pa.array([], pa.int32())})
        engine.register(
            "t", empty, bucketed_by=bucketed_by, bucket_count=3 if bucketed_by else None
        )
        engine.run(
            "MERGE INTO t USING (VALUES 1, 2) AS s (id) ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id)"
        )
        assert sorted(engine.table("t").column("id").to_pylist()) == [1, 2]
