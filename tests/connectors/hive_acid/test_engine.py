"""Statements on Hive tables, run by the engine on Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, HiveAcidConnector, RowMergeError
from rowmerge_nb.demo import SETUP, STATEMENT
from rowmerge_nb.spi import SchemaTableName
from tests.connectors.hive_acid.kit import Statement
from tests.goldens_on_spark.departures import DEPARTURES
from tests.goldens_on_spark.support import SCHEMA, Server, cases_on, columns_of, expected_answer
from tests.goldens_on_spark.test_goldens_on_spark import placed_like
from tests.goldens_on_spark.values import row_texts

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
def test_recorded_statements_give_the_recorded_rows_counts_and_files(
    spark: Any, tmp_path: Path, sample: str
) -> None:
    """The statements that another engine ran on a real metastore are run here, and files of the same places come of them."""
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
    # Here several writers may insert at once, each under a statement number of its own.
    found = {
        re.sub(r"_\d{4}/", "_0000/", path.relative_to(root).as_posix())
        for path in root.rglob("bucket_*")
    }
    assert found == recorded


def test_all_types_come_back_as_they_were_written(spark: Any, tmp_path: Path) -> None:
    engine = lake(spark, tmp_path)
    recording = RECORDED["sample:types"]["steps"]
    engine.run(recording[0]["sql"][0])
    # No reader gives back what is written of the last second of 1969, so it is refused.
    with pytest.raises(RowMergeError, match=r"Timestamp 1969-12-31 23:59:59\.999000 of column 'n'"):
        engine.run(recording[1]["sql"][0])
    assert rows_of(engine, "s_types") == []
    engine.run(recording[1]["sql"][0].replace("23:59:59.999", "23:59:58.999"))
    before = rows_of(engine, "s_types")
    assert len(before) == 3
    assert engine.run("UPDATE s_types SET b = b").count == 3
    assert rows_of(engine, "s_types") == before


class HiveServer(Server):
    """Recorded cases on Hive tables; the catalog keeps the name that they were recorded with."""

    def __init__(self, spark: Any, directory: Path) -> None:
        super().__init__(spark)
        self.engine.close()
        self.connector: Any = HiveAcidConnector(directory)
        self.engine = Engine(
            spark=spark,
            catalog="iceberg",
            schema=SCHEMA,
            era="current",
            duplicates="trino",
            trace="off",
        )
        self.engine.add_catalog("iceberg", self.connector)
        self.engine.run(f"CREATE SCHEMA {SCHEMA}")

    def _create(self, name: str, table: Mapping[str, Any]) -> None:
        columns = ", ".join(
            f'"{column[0]}" {" ".join(column[1:])}' for column in in_hives_order(table)["columns"]
        )
        transforms = table.get("partitioned_by", ())
        bucketed = BUCKETED.fullmatch(transforms[0]) if transforms else None
        properties = (
            f" WITH (partitioned_by = ARRAY[{', '.join(map(repr, transforms))}])"
            if transforms
            else ""
        )
        if bucketed:
            properties = (
                f" WITH (bucketed_by = ARRAY['{bucketed[1]}'], bucket_count = {bucketed[2]})"
            )
        self.engine.run(f"CREATE TABLE {SCHEMA}.{name} ({columns}){properties}")
        if table["rows"]:
            self._fill(name, in_hives_order(table))

    def _content(self, case: Mapping[str, Any]) -> list[str]:
        statement = Statement(self.connector, SchemaTableName(SCHEMA, case["target"]))
        rows = statement.rows()
        statement.commit()
        columns = columns_of(case["tables"][case["target"]])
        schema = pa.schema([(name, kind.arrow) for name, kind in columns])
        data = pa.Table.from_pylist(
            [{name.lower(): value for name, value in row.items()} for row in rows], schema=schema
        )
        return row_texts([kind for _, kind in columns], data)


BUCKETED = re.compile(r"bucket\((\w+), (\d+)\)")
WITHOUT_HIVE_TABLES = {"part-by-month"}
"""Cases with a table that Hive does not have: partitioned by a transform of a column that is not the hash of buckets."""


def in_hives_order(table: Mapping[str, Any]) -> dict[str, Any]:
    """Give a recorded table with its partition columns last, as Hive wants them."""
    names = [column[0] for column in table["columns"]]
    last = [name for name in table.get("partitioned_by", ()) if name in names]
    order = [names.index(name) for name in [*(name for name in names if name not in last), *last]]
    columns, rows = (
        [[entry[place] for place in order] for entry in lines]
        for lines in ([table["columns"]], table["rows"])
    )
    return {**table, "columns": columns[0], "rows": rows}


@pytest.fixture(scope="module")
def server(spark: Any, tmp_path_factory: Any) -> Any:
    with HiveServer(spark, tmp_path_factory.mktemp("hive")) as server:
        yield server


@pytest.mark.parametrize("case", cases_on("hive", without=WITHOUT_HIVE_TABLES))
def test_recorded_cases_have_their_answers_on_hive_tables(
    server: HiveServer, case: Mapping[str, Any]
) -> None:
    departure = DEPARTURES.get(case["id"])
    expected = expected_answer(case, departure["expect"] if departure else None)
    assert placed_like(server.answer(case), expected) == expected
