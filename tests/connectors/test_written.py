"""Files and statements that connectors report as written, compared with the stores themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import (
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    RowMergeError,
    SqliteConnector,
    load_trace,
    save_trace,
)

pytestmark = pytest.mark.spark

ROWS = "SELECT * FROM (VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'a')) AS s(id, v, p)"
SOURCE = pa.table({"id": [2, 4], "v": [21, 40], "p": ["b", "c"]})
MERGE = "MERGE INTO {} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p)"


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    with Engine(spark=spark) as engine:
        engine.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
        engine.add_catalog("ice", IcebergConnector(tmp_path / "ice"))
        engine.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
        yield engine


def told(result: Any) -> dict[str, tuple[str, int]]:
    """Return the size of every file reported by a statement, with its category."""
    return {row.name: (row.kind, row.bytes) for row in result.written().itertuples(index=False)}


def sizes(root: Path, suffix: str) -> dict[str, int]:
    return {path.relative_to(root).as_posix(): path.stat().st_size for path in root.rglob(suffix)}


@pytest.mark.parametrize("flow", ["merge", "updatable"])
def test_hive_lists_every_file_added_by_a_statement(
    engine: Engine, tmp_path: Path, flow: str
) -> None:
    engine.run(f"CREATE TABLE hive.default.t WITH (partitioned_by = ARRAY['p']) AS {ROWS}")
    root = next((tmp_path / "hive").rglob("t"))
    before = sizes(root, "bucket_*")
    result = engine.run("UPDATE hive.default.t SET v = v + 1 WHERE id <> 2", flow=flow)
    added = {name: size for name, size in sizes(root, "bucket_*").items() if name not in before}
    found = told(result)
    assert {name: size for name, (_, size) in found.items()} == added
    kinds = sorted(kind for kind, _ in found.values())
    assert set(kinds) == {"delta file", "delete_delta file"}
    assert result.written().groupby("kind")["rows"].sum().to_dict() == {
        "delta file": 2,
        "delete_delta file": 2,
    }
    call = next(
        call
        for call in result.trace.calls
        if call.method == f"finish_{'merge' if flow == 'merge' else 'update'}"
    )
    assert call.gave.endswith(
        f"{len(added) // 2} delta files" if len(added) > 2 else "1 delta file"
    )


def test_iceberg_lists_every_file_added_by_a_statement(engine: Engine, tmp_path: Path) -> None:
    engine.run(f"CREATE TABLE ice.default.t WITH (partitioning = ARRAY['p']) AS {ROWS}")
    root = next((tmp_path / "ice").rglob("metadata")).parent
    before = sizes(root, "*.parquet")
    found = told(engine.run(MERGE.format("ice.default.t"), namespace={"s": SOURCE}))
    assert {name: size for name, (_, size) in found.items()} == {
        name: size for name, size in sizes(root, "*.parquet").items() if name not in before
    }
    assert sorted(kind for kind, _ in found.values()) == [
        "data file",
        "data file",
        "position delete file",
    ]


def test_a_database_lists_its_statements_and_their_row_counts(engine: Engine) -> None:
    engine.run(
        "CREATE TABLE lite.main.t (id integer, v integer, p varchar) WITH (primary_key = ARRAY['id'])"
    )
    inserted = engine.run(f"INSERT INTO lite.main.t {ROWS}").written()
    assert inserted[["kind", "rows"]].to_numpy().tolist() == [["INSERT statement", 3]]
    merged = engine.run(MERGE.format("lite.main.t"), namespace={"s": SOURCE}).written()
    assert merged[["kind", "rows"]].to_numpy().tolist() == [
        ["UPDATE statement", 1],
        ["INSERT statement", 1],
    ]
    assert merged["name"][0].startswith('UPDATE "main"."t"')


def test_a_comparison_counts_the_files_of_both_flows_and_leaves_none(
    engine: Engine, tmp_path: Path
) -> None:
    engine.run(f"CREATE TABLE hive.default.t AS {ROWS}")
    root = next((tmp_path / "hive").rglob("t"))
    before = sizes(root, "*")
    compared = engine.compare("DELETE FROM hive.default.t WHERE id > 1", by="flows")
    metrics = {metric.name: (metric.left, metric.right) for metric in compared.metrics}
    assert metrics["written"] == ("1 delete_delta file", "1 delete_delta file")
    assert all(int(size.replace(",", "")) > 0 for size in metrics["bytes written"])
    assert sizes(root, "*") == before


def test_tables_in_memory_write_nothing(engine: Engine) -> None:
    assert engine.run(f"CREATE TABLE t AS {ROWS}").written().empty
    assert engine.run("DELETE FROM t WHERE id = 1").written().empty


def test_a_saved_trace_has_what_was_written(engine: Engine, tmp_path: Path) -> None:
    result = engine.run(f"CREATE TABLE hive.default.t AS {ROWS}")
    save_trace(result.trace, tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json").target.output == result.trace.target.output


def test_a_query_has_no_written_files_to_report(engine: Engine) -> None:
    with pytest.raises(RowMergeError, match="What this SELECT wrote is unknown"):
        engine.run(ROWS).written()
