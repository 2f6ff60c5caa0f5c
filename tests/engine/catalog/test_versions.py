"""Former states of tables, in every position where a statement reads a table, and the versions known to results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import rowmerge_nb as rm
from rowmerge_nb import Engine, HiveAcidConnector, IcebergConnector, RowMergeError, SqliteConnector

pytestmark = pytest.mark.spark

STORES = ["memory", "lake"]


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    made = Engine(spark=spark)
    made.add_catalog("lake", IcebergConnector(tmp_path / "lake"))
    made.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    made.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
    yield made
    made.close()


def rows(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
    found = engine.run(sql).table
    assert found is not None
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def made(engine: Engine, catalog: str, more: str = "") -> tuple[str, int]:
    """Create a table with two versions of rows; return its name and the first version."""
    name = f"{catalog}.default.t"
    engine.run(f"CREATE TABLE {name} (id bigint, v varchar) {more}")
    first = engine.run(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')").version_after
    engine.run(f"MERGE INTO {name} t USING (VALUES (2, 'B'), (3, 'C')) s (id, v) ON t.id = s.id "
               "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)")  # fmt: skip
    assert isinstance(first, int)
    return name, first


@pytest.mark.parametrize("catalog", STORES)
def test_a_version_is_read_at_every_position_of_a_table(engine: Engine, catalog: str) -> None:
    name, number = made(engine, catalog)
    then = f"{name} FOR VERSION AS OF BIGINT '{number}'"
    assert rows(engine, f"SELECT * FROM {name}") == [(1, "a"), (2, "B"), (3, "C")]
    assert rows(engine, f"SELECT * FROM {then}") == [(1, "a"), (2, "b")]
    assert rows(engine, f"SELECT n.id, o.v FROM {name} n LEFT JOIN {then} o ON n.id = o.id") == [
        (1, "a"),
        (2, "b"),
        (3, None),
    ]
    assert rows(engine, f"SELECT (SELECT max(v) FROM {then}), count(*) FROM {name}") == [("b", 3)]
    assert rows(
        engine,
        f"WITH w AS (SELECT * FROM {then} x) SELECT count(*) FROM w WHERE EXISTS (SELECT 1 FROM {then})",
    ) == [(2,)]
    engine.run(f"CREATE TABLE {name}_as AS SELECT * FROM {then}")
    engine.run(f"INSERT INTO {name}_as SELECT id + 10, v FROM {then}")
    assert rows(engine, f"SELECT * FROM {name}_as") == [(1, "a"), (11, "a"), (12, "b"), (2, "b")]
    engine.run(
        f"UPDATE {name} SET v = (SELECT max(o.v) FROM {then} o) WHERE id IN (SELECT id FROM {then} WHERE v = 'a')"
    )
    assert rows(engine, f"SELECT * FROM {name}") == [(1, "b"), (2, "B"), (3, "C")]
    engine.run(f"DELETE FROM {name} WHERE id NOT IN (SELECT id FROM {then})")
    assert rows(engine, f"SELECT * FROM {name}") == [(1, "b"), (2, "B")]


@pytest.mark.parametrize("catalog", STORES)
def test_a_merge_takes_its_source_from_a_former_version_of_its_target(
    engine: Engine, catalog: str
) -> None:
    name, number = made(engine, catalog)
    engine.run(f"DELETE FROM {name} WHERE id = 1")
    result = engine.run(
        f"MERGE INTO {name} t USING {name} FOR VERSION AS OF BIGINT '{number}' AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
    )
    assert result.counts == {"INSERT": 1, "UPDATE": 1, "DELETE": 0, "none": 0}
    assert rows(engine, f"SELECT * FROM {name}") == [(1, "a"), (2, "b"), (3, "C")]
    assert f"TableScan {name} FOR VERSION AS OF {number} s" in result.text()


@pytest.mark.parametrize("catalog", STORES)
def test_a_moment_is_computed_before_the_table_is_looked_up(engine: Engine, catalog: str) -> None:
    name, _ = made(engine, catalog)
    now = "FOR TIMESTAMP AS OF current_timestamp(6) - INTERVAL '0.001' SECOND"
    assert rows(engine, f"SELECT * FROM {name} {now}") == [(1, "a"), (2, "B"), (3, "C")]
    with pytest.raises(
        RowMergeError, match=r"No version history table default[.]t at or before"
    ) as caught:
        engine.run(f"SELECT * FROM {name} FOR TIMESTAMP AS OF current_date - INTERVAL '9' DAY")
    assert (caught.value.code, caught.value.line, caught.value.column) == (
        "INVALID_ARGUMENTS",
        1,
        15,
    )
    for moment in (
        "current_timestamp",
        "current_timestamp(6)",
        "localtimestamp",
        "localtimestamp(6)",
    ):
        with pytest.raises(RowMergeError, match="is not in the past") as caught:
            engine.run(f"SELECT * FROM {name} FOR TIMESTAMP AS OF {moment}")
        assert caught.value.column == 16 + len(name)


def test_a_version_that_cannot_be_computed_is_reported_at_its_position(engine: Engine) -> None:
    name, _ = made(engine, "memory")
    with pytest.raises(RowMergeError, match="DIVISION_BY_ZERO: line 1:50: Division by zero"):
        engine.run(f"SELECT * FROM {name} FOR VERSION AS OF 1 + 1 / 0")


@pytest.mark.parametrize("table", ["hive.default.t", "lite.main.t"])
def test_a_store_without_versions_is_reported_as_such(engine: Engine, table: str) -> None:
    engine.run(f"CREATE TABLE {table} (id bigint)")
    for sql, column in ((f"SELECT * FROM {table} FOR VERSION AS OF 1", 15), (f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} FOR TIMESTAMP AS OF DATE '2026-01-01')", 0)):  # fmt: skip
        with pytest.raises(
            RowMergeError, match="This connector does not support versioned tables"
        ) as caught:
            engine.run(sql)
        assert caught.value.code == "NOT_SUPPORTED"
        assert (
            caught.value.hint
            == "Remove FOR ... AS OF: only earlier versions of tables in memory and of"
            " Iceberg can be read."
        )
        assert caught.value.column == (column or sql.rindex(table) + 1)


def test_views_and_dataframes_have_no_versions(engine: Engine) -> None:
    name, number = made(engine, "memory")
    engine.run(f"CREATE VIEW past AS SELECT * FROM {name} FOR VERSION AS OF {number}")
    assert rows(engine, "SELECT * FROM past") == [(1, "a"), (2, "b")]
    with pytest.raises(
        RowMergeError, match="NOT_SUPPORTED: line 1:20: 'past' is a view, which has no versions"
    ):
        engine.run("SELECT * FROM past FOR VERSION AS OF 1")
    with pytest.raises(
        RowMergeError,
        match="NOT_SUPPORTED: line 1:15: 'frame' is a DataFrame of the notebook, which has no versions",
    ):
        engine.run(
            "SELECT * FROM frame FOR VERSION AS OF 1", namespace={"frame": pd.DataFrame({"a": [1]})}
        )


def test_a_missing_table_is_reported_as_without_a_version(engine: Engine) -> None:
    for name, code in (
        ("nope", "TABLE_NOT_FOUND"),
        ("lake.nope.t", "SCHEMA_NOT_FOUND"),
        ("nope.default.t", "CATALOG_NOT_FOUND"),
    ):
        with pytest.raises(RowMergeError) as caught:
            engine.run(f"SELECT * FROM {name} FOR VERSION AS OF 1")
        assert (caught.value.code, caught.value.column) == (code, 15)


def test_a_comparison_on_a_copy_reads_former_versions_of_the_table_itself(engine: Engine) -> None:
    name, number = made(engine, "lake")
    sql = (
        f"UPDATE {name} SET v = 'x' WHERE id IN (SELECT id FROM {name} FOR VERSION AS OF {number})"
    )
    compared = engine.compare(sql, by="paradigms")
    assert compared.same is True
    assert [side.result.count for side in (compared.left, compared.right)] == [2, 2]


def test_another_engine_is_not_asked_about_former_versions(engine: Engine) -> None:
    name, number = made(engine, "memory")
    result = engine.run(
        f"DELETE FROM {name} WHERE id IN (SELECT id FROM {name} FOR VERSION AS OF {number})",
        verify="duckdb",
    )
    assert result.verification is not None
    assert (result.verification.state, result.count) == ("not compared", 2)
    assert "an earlier version" in result.verification.message


@pytest.mark.parametrize("catalog", STORES)
def test_a_result_knows_the_versions_before_and_after(
    engine: Engine, catalog: str, tmp_path: Path
) -> None:
    name, _ = made(engine, catalog)
    first = engine.run(f"UPDATE {name} SET v = 'x'")
    second = engine.run(f"DELETE FROM {name} WHERE id = 1")
    assert first.version_after == second.version_before
    assert engine.table(name, second.version_before).num_rows == 3  # type: ignore[arg-type]
    assert engine.table(name, second.version_after).num_rows == 2  # type: ignore[arg-type]
    rm.save_trace(second.trace, tmp_path / "trace.json")
    loaded = rm.load_trace(tmp_path / "trace.json")
    assert (loaded.target.version_before, loaded.target.version_after) == (
        second.version_before,
        second.version_after,
    )
    rehearsed = engine.run(f"DELETE FROM {name}", rehearse=True)
    assert (rehearsed.version_before, rehearsed.version_after) == (second.version_after, None)
    assert engine.run(f"SELECT * FROM {name}").version_before is None


def test_a_store_without_versions_reports_none(engine: Engine) -> None:
    engine.run("CREATE TABLE lite.main.t (id bigint)")
    result = engine.run("INSERT INTO lite.main.t VALUES 1")
    assert (result.version_before, result.version_after) == (None, None)


def test_the_former_version_of_a_table_is_not_text(engine: Engine) -> None:
    engine.register("t", pa.table({"id": [1]}))
    with pytest.raises(RowMergeError, match="INVALID_ARGUMENTS: version = '1' is not possible"):
        engine.table("t", "1")  # type: ignore[arg-type]
    with pytest.raises(
        RowMergeError, match=r"NOT_FOUND: Version 9 of table .default[.]t. is not retained"
    ):
        engine.table("t", 9)
