"""Statements on Iceberg tables, run by the engine on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector
from rowmerge_nb.demo import SETUP, STATEMENT
from tests.goldens_on_spark.departures import DEPARTURES
from tests.goldens_on_spark.support import SCHEMA, Server, columns_of, expected_answer, recorded_cases
from tests.goldens_on_spark.test_goldens_on_spark import placed_like
from tests.goldens_on_spark.values import row_texts

pytestmark = pytest.mark.spark

AFTER = [
    ("Aaron", 11, "Arches"),
    ("Carol", 12, "Centreville"),
    ("Dave", 11, "Devon"),
    ("Ed", 7, "Etherville"),
    ("Gus", 2, "Gilroy"),
    ("Joe Shmoe", 112, "Jamestown"),
]


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(spark=spark, catalog="lake")
    engine.add_catalog("lake", IcebergConnector(tmp_path))
    yield engine
    engine.close()


def rows_of(engine: Engine, table: str = "t") -> list[tuple[Any, ...]]:
    found = engine.run(f"SELECT * FROM {table}").table
    assert found is not None
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def table_of(engine: Engine, name: str) -> Any:
    connector: Any = engine._connectors["lake"]
    return connector.catalog.load_table(("default", name))


@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize("partitioning", ["", "'address'", "'bucket(customer, 4)', 'truncate(address, 1)'"])
def test_the_document_s_merge_in_both_eras_makes_one_snapshot_that_pyiceberg_reads_alike(
    lake: Engine, era: str, partitioning: str
) -> None:
    made = f"WITH (partitioning = ARRAY[{partitioning}])" if partitioning else ""
    lake.run_script(SETUP.replace("WITH (partitioned_by = ARRAY['address'])", made))
    before = len(table_of(lake, "accounts").snapshots())
    result = lake.run(STATEMENT.replace("= purchases +", "= t.purchases +"), era=era)
    assert [(a, int(b), c) for a, b, c in rows_of(lake, "accounts")] == AFTER
    assert result.count == 6
    table = table_of(lake, "accounts")
    read = table.scan().to_arrow().to_pylist()
    assert sorted((row["customer"], int(row["purchases"]), row["address"]) for row in read) == AFTER
    assert len(table.snapshots()) == before + 1
    summary = table.current_snapshot().summary
    assert summary.operation.value == "overwrite"
    assert (summary["added-records"], summary["added-position-deletes"]) == ("5", "4")


class IcebergServer(Server):
    """Recorded cases on Iceberg tables, as they were recorded."""

    def __init__(self, spark: Any, directory: Path) -> None:
        super().__init__(spark)
        self.engine.close()
        self.connector: Any = IcebergConnector(directory)
        self.engine = Engine(spark=spark, catalog="iceberg", schema=SCHEMA, era="current", duplicates="trino", trace="off")
        self.engine.add_catalog("iceberg", self.connector)
        self.engine.run(f"CREATE SCHEMA {SCHEMA}")

    def _create(self, name: str, table: Mapping[str, Any]) -> None:
        columns = ", ".join(f'"{column[0]}" {" ".join(column[1:])}' for column in table["columns"])
        transforms = ", ".join(f"'{transform}'" for transform in table.get("partitioned_by", ()))
        properties = f" WITH (partitioning = ARRAY[{transforms}])" if transforms else ""
        self.engine.run(f"CREATE TABLE {SCHEMA}.{name} ({columns}){properties}")
        if table["rows"]:
            self._fill(name, table)

    def _content(self, case: Mapping[str, Any]) -> list[str]:
        """Read the target with pyiceberg's own reader."""
        columns = columns_of(case["tables"][case["target"]])
        read = self.connector.catalog.load_table((SCHEMA, case["target"])).scan().to_arrow()
        arrays = [read.column(place).combine_chunks().cast(kind.arrow) for place, (_, kind) in enumerate(columns)]
        import pyarrow as pa

        return row_texts([kind for _, kind in columns], pa.Table.from_arrays(arrays, names=[name for name, _ in columns]))


THEMES = ("clauses", "duplicates", "insert_columns", "partitioned")
CASES = [case for case in recorded_cases() if case["theme"] in THEMES]


@pytest.fixture(scope="module")
def server(spark: Any, tmp_path_factory: Any) -> Any:
    with IcebergServer(spark, tmp_path_factory.mktemp("iceberg")) as server:
        yield server


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_recorded_cases_have_their_answers_on_iceberg_tables(server: IcebergServer, case: Mapping[str, Any]) -> None:
    departure = DEPARTURES.get(case["id"])
    expected = expected_answer(case, departure["expect"] if departure else None)
    assert placed_like(server.answer(case), expected) == expected
