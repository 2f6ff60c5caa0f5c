"""Statements on Delta tables, and the same tables in delta-rs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rowmerge_nb import DeltaConnector, Engine, RowMergeError

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

ROWS = "SELECT * FROM (VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'a b')) AS s(id, v, p)"
SOURCE = pa.table({"id": [2, 4], "v": [21, 40], "p": ["b", "c"]})
MERGE = (
    "MERGE INTO lake.default.t t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    " WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p)"
)


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    with Engine(spark=spark) as engine:
        engine.add_catalog("lake", DeltaConnector(tmp_path))
        yield engine


def rows_by_delta_rs(folder: Path) -> list[tuple[Any, ...]]:
    rows = DeltaTable(folder).to_pyarrow_table()
    return sorted(zip(*(rows.column(name).to_pylist() for name in ("id", "v", "p")), strict=True))


@pytest.mark.parametrize("properties", ["", "WITH (partitioned_by = ARRAY['p'])"])
def test_delta_rs_reads_what_statements_write(
    engine: Engine, tmp_path: Path, properties: str
) -> None:
    engine.run(f"CREATE TABLE lake.default.t {properties} AS {ROWS}")
    folder = tmp_path / "default" / "t"
    engine.run(MERGE, namespace={"s": SOURCE})
    merged = [(1, 10, "a"), (2, 21, "b"), (3, 30, "a b"), (4, 40, "c")]
    assert rows_by_delta_rs(folder) == merged
    engine.run("UPDATE lake.default.t SET v = v + 1 WHERE id = 3")
    engine.run("DELETE FROM lake.default.t WHERE id = 1")
    assert rows_by_delta_rs(folder) == [(2, 21, "b"), (3, 31, "a b"), (4, 40, "c")]
    assert DeltaTable(folder).version() == 3
    old = engine.run("SELECT * FROM lake.default.t FOR VERSION AS OF 1 ORDER BY id").to_pandas()
    assert list(old.itertuples(index=False, name=None)) == merged
    live = set(folder.rglob("*.parquet"))
    assert len(live) == sum(
        len(json.loads(line)) and "add" in json.loads(line)
        for commit in (folder / "_delta_log").glob("*.json")
        for line in commit.read_text().splitlines()
    )


def test_statements_change_what_delta_rs_writes(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "default" / "t"
    rows = pa.table({"id": [1, 2, 3], "v": [10, 20, 30], "p": ["a", "b", "ü/%"]})
    write_deltalake(folder, rows, partition_by=["p"])
    engine.run(MERGE, namespace={"s": SOURCE})
    engine.run("DELETE FROM lake.default.t WHERE p = 'ü/%'")
    assert rows_by_delta_rs(folder) == [(1, 10, "a"), (2, 21, "b"), (4, 40, "c")]


def test_a_commit_has_the_metrics_of_delta(engine: Engine, tmp_path: Path) -> None:
    engine.run(f"CREATE TABLE lake.default.t AS {ROWS}")
    files = len(DeltaTable(tmp_path / "default" / "t").file_uris())
    result = engine.run("DELETE FROM lake.default.t WHERE id <> 3")
    assert "Copy-on-write: " in str(result)
    assert "bytes written." in str(result)
    newest = DeltaTable(tmp_path / "default" / "t").history(1)[0]
    metrics = newest["operationMetrics"]
    assert metrics["numTargetRowsDeleted"] == "2"
    assert int(metrics["numTargetFilesRemoved"]) <= files
    assert int(metrics["numTargetRowsCopied"]) <= 1


def test_a_failed_statement_leaves_no_file(engine: Engine, tmp_path: Path) -> None:
    engine.run(f"CREATE TABLE lake.default.t AS {ROWS}")
    folder = tmp_path / "default" / "t"
    before = sorted(folder.rglob("*"))
    with pytest.raises(RowMergeError, match="DIVISION_BY_ZERO"):
        engine.run("UPDATE lake.default.t SET v = v / (id - 2)")
    assert sorted(folder.rglob("*")) == before
    with pytest.raises(RowMergeError, match="DIVISION_BY_ZERO"):
        engine.run("CREATE TABLE lake.default.u AS SELECT v / (id - 2) AS x FROM lake.default.t")
    assert not (tmp_path / "default" / "u").exists()


@pytest.mark.parametrize("other", ["append", "delete"])
def test_a_concurrent_commit_of_delta_rs_is_a_conflict(
    engine: Engine, tmp_path: Path, other: str
) -> None:
    connector = DeltaConnector(tmp_path)
    engine.run(f"CREATE TABLE lake.default.t AS {ROWS}")
    folder = tmp_path / "default" / "t"
    begun = connector.commit

    def late_commit(transaction: Any) -> Any:
        if other == "append":
            more = pa.table({"id": [9], "v": [9], "p": ["z"]}).cast(
                pa.schema(DeltaTable(folder).schema().to_arrow())
            )
            write_deltalake(folder, more, mode="append")
        else:
            DeltaTable(folder).delete("id = 1")
        return begun(transaction)

    connector.commit = late_commit  # type: ignore[method-assign]
    engine.add_catalog("slow", connector)
    with pytest.raises(RowMergeError, match="TRANSACTION_CONFLICT"):
        engine.run("UPDATE slow.default.t SET v = 0")
    assert all(v != 0 for _, v, _ in rows_by_delta_rs(folder))
    engine.run("INSERT INTO slow.default.t VALUES (5, 50, 'e')")
    assert (5, 50, "e") in rows_by_delta_rs(folder)


def test_undo_restores_the_rows(engine: Engine, tmp_path: Path) -> None:
    engine.run(f"CREATE TABLE lake.default.t AS {ROWS}")
    engine.run("DELETE FROM lake.default.t WHERE id = 1")
    engine.undo()
    assert rows_by_delta_rs(tmp_path / "default" / "t")[0] == (1, 10, "a")


@pytest.mark.parametrize(
    ("configuration", "feature"),
    [
        ({"delta.appendOnly": "true"}, "appendOnly"),
        ({"delta.enableChangeDataFeed": "true"}, "changeDataFeed"),
    ],
)
def test_a_feature_that_is_not_respected_is_refused_by_name(
    engine: Engine, tmp_path: Path, configuration: dict[str, str], feature: str
) -> None:
    folder = tmp_path / "default" / "t"
    rows = pa.table({"id": [1], "v": [10], "p": ["a"]})
    write_deltalake(folder, rows, configuration=configuration)
    with pytest.raises(RowMergeError, match=feature):
        engine.run("DELETE FROM lake.default.t WHERE id = 1")
    assert rows_by_delta_rs(folder) == [(1, 10, "a")]


def test_a_constraint_is_refused_by_name(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "default" / "t"
    write_deltalake(folder, pa.table({"id": [1], "v": [10], "p": ["a"]}))
    DeltaTable(folder).alter.add_constraint({"small": "v < 100"})
    with pytest.raises(RowMergeError, match="checkConstraints"):
        engine.run("INSERT INTO lake.default.t VALUES (2, 200, 'b')")
    assert rows_by_delta_rs(folder) == [(1, 10, "a")]


def test_a_store_is_connected_by_name(engine: Engine, tmp_path: Path) -> None:
    engine.connect("delta", str(tmp_path), name="named")
    engine.run(f"CREATE TABLE named.default.t AS {ROWS}")
    assert engine.run("SELECT count(*) AS n FROM named.default.t").to_pandas()["n"].tolist() == [3]
