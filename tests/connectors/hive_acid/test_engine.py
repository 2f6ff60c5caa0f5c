"""Statements on Hive tables, run by the engine on Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, HiveAcidConnector, RowMergeError
from rowmerge_nb.demo import SETUP, STATEMENT

pytestmark = pytest.mark.spark

RECORDED = json.loads((Path(__file__).parent / "samples" / "tables.json").read_text())
AFTER = [
    ("Aaron", 11, "Arches"),
    ("Carol", 12, "Centreville"),
    ("Dave", 11, "Devon"),
    ("Ed", 7, "Etherville"),
    ("Gus", 2, "Gilroy"),
    ("Joe Shmoe", 112, "Jamestown"),
]


def lake(spark: Any, directory: Path, **options: Any) -> Engine:
    engine = Engine(spark=spark, catalog="lake", **options)
    engine.add_catalog("lake", HiveAcidConnector(directory))
    return engine


def rows_of(engine: Engine, table: str = "t") -> list[tuple[Any, ...]]:
    found = engine.run(f"SELECT * FROM {table}").table
    assert found is not None
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize(
    "properties",
    [
        "",
        "WITH (partitioned_by = ARRAY['address'])",
        "WITH (bucketed_by = ARRAY['customer'], bucket_count = 3)",
        "WITH (partitioned_by = ARRAY['address'], bucketed_by = ARRAY['customer'], bucket_count = 3, bucketing_version = 2)",
    ],
)
def test_the_document_s_merge_on_tables_of_every_layout_and_in_both_eras(
    spark: Any, tmp_path: Path, era: str, properties: str
) -> None:
    engine = lake(spark, tmp_path, era=era)
    engine.run_script(SETUP.replace("WITH (partitioned_by = ARRAY['address'])", properties))
    result = engine.run(STATEMENT.replace("= purchases +", "= t.purchases +"))
    assert [(a, int(b), c) for a, b, c in rows_of(engine, "accounts")] == AFTER
    assert result.count == 6
    if "partitioned" in properties:
        folder = tmp_path / "warehouse" / "accounts" / "address=Antioch"
        assert {path.name for path in folder.iterdir()} == {
            "delta_0000001_0000001_0000",
            "delete_delta_0000002_0000002_0000",
        }


REPLAYED = ("plain", "bucketed", "part", "partbucket")


@pytest.mark.parametrize("sample", REPLAYED)
def test_recorded_statements_yield_the_recorded_rows_counts_and_files(
    spark: Any, tmp_path: Path, sample: str
) -> None:
    """Statements recorded by another engine on a real metastore run here and create files in the same locations."""
    engine = lake(spark, tmp_path)
    recording = RECORDED[f"sample:{sample}"]
    recorded = {
        p
        for step in recording["steps"]
        for p, file in step["new_files"].items()
        if isinstance(file, dict)
    }
    for step in recording["steps"]:
        (sql,) = step["sql"]
        expected = json.loads(step["result"][0])
        assert engine.run(sql).count == (expected[0][0] if expected else None), sql
    assert rows_of(engine, f"s_{sample}") == sorted(
        (tuple(row) for row in recording["final_rows"]), key=repr
    )
    root = tmp_path / "warehouse" / f"s_{sample}"
    # Several writers may insert concurrently here, each under its own statement number.
    found = {
        re.sub(r"_\d{4}/", "_0000/", path.relative_to(root).as_posix())
        for path in root.rglob("bucket_*")
    }
    assert found == recorded


def test_all_types_are_read_back_as_written(spark: Any, tmp_path: Path) -> None:
    engine = lake(spark, tmp_path)
    recording = RECORDED["sample:types"]["steps"]
    engine.run(recording[0]["sql"][0])
    # No reader returns written values of the last second of 1969, so they are refused.
    with pytest.raises(RowMergeError, match=r"Timestamp 1969-12-31 23:59:59\.999000 of column 'n'"):
        engine.run(recording[1]["sql"][0])
    assert rows_of(engine, "s_types") == []
    engine.run(recording[1]["sql"][0].replace("23:59:59.999", "23:59:58.999"))
    before = rows_of(engine, "s_types")
    assert len(before) == 3
    assert engine.run("UPDATE s_types SET b = b").count == 3
    assert rows_of(engine, "s_types") == before
