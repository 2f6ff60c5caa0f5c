"""Random statements through the whole engine, Spark included, compared with the oracle, DuckDB and PostgreSQL."""

from __future__ import annotations

from typing import Any

from rowmerge_nb import Engine
from rowmerge_nb.testing.backends import DuckDB, EngineUnderTest, Oracle
from rowmerge_nb.testing.fuzz import fuzz


def test_random_statements_end_as_the_oracle_and_duckdb_say(spark: Any) -> None:
    # Engines of their own within the process's one Spark context, two statements at a time.
    summary = fuzz(lambda: (EngineUnderTest(Engine(cores=2)), [Oracle(), DuckDB()]), range(100), 476, at_once=2)
    assert summary.failures == [], summary.failures[0].text(476)
    assert summary.agreed["oracle"] == 100
    assert summary.agreed["duckdb"] > 50
