"""USE: the lookup of names without a catalog or schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine()
    made.add_catalog("lake", IcebergConnector(tmp_path))
    made.run("CREATE SCHEMA lake.sales")
    return made


def test_use_sets_the_lookup_of_names_including_those_passed_by_programs(engine: Engine) -> None:
    used = engine.run("USE Lake.SALES")
    assert (used.trace.kind, used.trace.target.name) == ("USE", "lake.sales")
    engine.run("CREATE TABLE t (id integer)")
    assert engine.full_name("t") == ("lake", "sales", "t")
    assert engine.table_metadata("lake", "sales", "t") is not None
    engine.run("USE information_schema")
    assert engine.full_name("t") == ("lake", "information_schema", "t")
    engine.run("USE memory.default")
    with pytest.raises(RowMergeError, match=r"Table 'memory\.default\.t' does not exist"):
        engine.run("SELECT * FROM t")


def test_a_dry_run_changes_nothing(engine: Engine) -> None:
    engine.run("USE lake.sales", dry_run=True)
    assert engine.full_name("t") == ("memory", "default", "t")


@pytest.mark.parametrize(
    ("sql", "code", "message", "column"),
    [
        ("USE nowhere", "NOT_FOUND", "Schema does not exist: memory.nowhere", 5),
        ("USE lake.sale", "NOT_FOUND", "Schema does not exist: lake.sale", 10),
        ("USE nowhere.sales", "CATALOG_NOT_FOUND", "Catalog 'nowhere' not found", 5),
        (
            "EXPLAIN USE lake.sales",
            "NOT_SUPPORTED",
            "EXPLAIN of USE is not supported by this engine",
            9,
        ),
    ],
)
def test_a_missing_name_is_reported_and_nothing_changes(
    engine: Engine, sql: str, code: str, message: str, column: int
) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql)
    error = caught.value
    assert (error.code, error.message, error.column) == (code, message, column)
    assert error.hint
    assert engine.full_name("t") == ("memory", "default", "t")


@pytest.mark.spark
def test_a_trial_of_an_earlier_statement_reads_what_the_statement_has_read(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run_script(
        "CREATE SCHEMA other; CREATE TABLE t AS SELECT 1 AS id; CREATE TABLE s AS SELECT 1 AS id; CREATE TABLE other.s (id integer)"
    )
    merged = engine.run("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE")
    engine.run("USE other")
    assert merged.what_if().counts["DELETE"] == 1
