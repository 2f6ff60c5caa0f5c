"""SHOW STATS: what every store keeps of its tables, and what it has nothing for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rowmerge_nb import Engine, HiveAcidConnector, IcebergConnector, PostgresConnector, RowMergeError, SqliteConnector

pytestmark = pytest.mark.spark

COLUMNS = ["column_name", "data_size", "distinct_values_count", "nulls_fraction", "row_count", "low_value", "high_value"]
NO_VALUES = {"data_size": 0.0, "distinct_values_count": 0.0, "nulls_fraction": 1.0}
ROWS = """(VALUES
    (1, VARCHAR 'a', 1.5, DATE '2024-02-29', 1e0, TIMESTAMP '2024-01-01 00:00:01.5', true),
    (2, NULL, NULL, DATE '1969-01-01', 4e0, NULL, false),
    (NULL, 'ccc', -2.25, NULL, 3e0, NULL, NULL),
    (-7, '', 0.0, NULL, -2e0, NULL, NULL)) AS v (id, n, d, day, f, ts, b)"""


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Engine:
    made = Engine(spark=spark, trace="off")
    made.add_catalog("lake", IcebergConnector(warehouse=tmp_path / "lake"))
    made.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
    made.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    return made


def stats(engine: Engine, name: str, **options: Any) -> dict[str | None, dict[str, Any]]:
    table = engine.run(f"SHOW STATS FOR {name}", **options).table
    assert table is not None
    assert table.column_names == COLUMNS
    assert [str(kind) for kind in table.schema.types] == ["string", *["double"] * 4, "string", "string"]
    return {row.pop("column_name"): {k: v for k, v in row.items() if v is not None} for row in table.to_pylist()}


def test_iceberg_tells_what_its_manifests_have(engine: Engine) -> None:
    engine.run(f"CREATE TABLE lake.default.t AS SELECT * FROM {ROWS}")
    engine.run("INSERT INTO lake.default.t (id, f) VALUES (9, 0e0), (10, 0e0), (11, 0e0), (12, 0e0)")
    found = stats(engine, "lake.default.t")
    assert found["n"].pop("data_size") > 0
    assert found == {
        "id": {"nulls_fraction": 0.125, "low_value": "-7", "high_value": "12"},
        "n": {"nulls_fraction": 0.625},
        "d": {"nulls_fraction": 0.625, "low_value": "-2.25", "high_value": "1.5"},
        "day": {"nulls_fraction": 0.75, "low_value": "1969-01-01", "high_value": "2024-02-29"},
        "f": {"nulls_fraction": 0.0, "low_value": "-2.0", "high_value": "4.0"},
        "ts": {"nulls_fraction": 0.875, "low_value": "2024-01-01 00:00:01.500000", "high_value": "2024-01-01 00:00:01.500000"},
        "b": {"nulls_fraction": 0.75},
        None: {"row_count": 8.0},
    }
    # A column that the first files do not have; rows that are deleted beside them.
    engine.run("ALTER TABLE lake.default.t ADD COLUMN late bigint")
    engine.run("DELETE FROM lake.default.t WHERE id = 12")
    after = stats(engine, "lake.default.t")
    assert (after["late"], after[None]) == ({}, {"row_count": 8.0})
    engine.run("CREATE TABLE lake.default.empty (id bigint)")
    assert stats(engine, "lake.default.empty") == {"id": NO_VALUES, None: {"row_count": 0.0}}


def test_memory_counts_nulls_and_sqlite_counts_rows(engine: Engine) -> None:
    engine.run(f"CREATE TABLE t AS SELECT * FROM {ROWS}")
    assert stats(engine, "t")["id"] == {"nulls_fraction": 0.25}
    assert stats(engine, "t")[None] == {"row_count": 4.0}
    engine.run("CREATE TABLE none (id bigint)")
    assert stats(engine, "none") == {"id": NO_VALUES, None: {"row_count": 0.0}}
    engine.run(f"CREATE TABLE lite.main.t AS SELECT id, n FROM {ROWS}")
    assert stats(engine, "lite.main.t") == {"id": {}, "n": {}, None: {"row_count": 4.0}}


def test_hive_tells_what_the_stripes_have_while_nothing_is_deleted(engine: Engine) -> None:
    engine.run(f"CREATE TABLE hive.default.t AS SELECT id, n, d FROM {ROWS}")
    assert stats(engine, "hive.default.t") == {
        "id": {"nulls_fraction": 0.25, "low_value": "-7", "high_value": "2"},
        "n": {"nulls_fraction": 0.25},
        "d": {"nulls_fraction": 0.25, "low_value": "-2.25", "high_value": "1.5"},
        None: {"row_count": 4.0},
    }
    engine.run("DELETE FROM hive.default.t WHERE id = 1")
    assert stats(engine, "hive.default.t") == {"id": {}, "n": {}, "d": {}, None: {"row_count": 4.0}}


def test_postgresql_tells_what_analyze_has_found(engine: Engine, postgresql: str) -> None:
    from adbc_driver_postgresql import dbapi

    connector = PostgresConnector(postgresql)
    engine.add_catalog("pg", connector)
    engine.run("DROP TABLE IF EXISTS pg.public.counted")
    engine.run(f"CREATE TABLE pg.public.counted AS SELECT id, n FROM {ROWS}")
    assert stats(engine, "pg.public.counted") == {"id": {}, "n": {}, None: {"row_count": 4.0}}
    with dbapi.connect(postgresql, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("ANALYZE public.counted")
    found = stats(engine, "pg.public.counted")
    assert found["id"] == {"nulls_fraction": 0.25, "distinct_values_count": 3.0}
    assert found["n"].pop("data_size") > 0
    assert found["n"] == {"nulls_fraction": 0.25, "distinct_values_count": 3.0}


def test_a_query_and_a_view_are_estimated_by_what_the_store_knows(engine: Engine) -> None:
    engine.run(f"CREATE TABLE lake.default.t AS SELECT * FROM {ROWS}")
    query = "SELECT id AS key, d FROM lake.default.t WHERE id > -3"
    engine.run(f"CREATE VIEW some AS {query}")
    # Three of four rows have a value, somewhere between -7 and 2.
    key = {"nulls_fraction": 0.0, "low_value": "-3", "high_value": "2"}
    for name in (f"({query})", "some"):
        known = stats(engine, name)
        assert known["key"] == key
        assert known["d"] == {"nulls_fraction": 0.25, "low_value": "-2.25", "high_value": "1.5"}
        assert known[None] == {"row_count": pytest.approx(4 * 0.75 * 5 / 9)}
    assert engine.run(f"SHOW STATS FOR ({query})").table == engine.run("SHOW STATS FOR some").table


def test_of_a_dataframe_and_of_information_schema_the_rows_are_counted(engine: Engine) -> None:
    assert stats(engine, "frame", namespace={"frame": pd.DataFrame({"a": [1, 2]})}) == {"a": {}, None: {"row_count": 2.0}}
    assert stats(engine, "information_schema.schemata")[None] == {"row_count": 2.0}


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("SHOW STATS FOR nope", "TABLE_NOT_FOUND", "Table 'memory.default.nope' does not exist"),
        ("SHOW STATS FOR seen", "NOT_SUPPORTED", "SHOW STATS of a query with DISTINCT is not supported by this engine"),
        ("SHOW STATS t", "SYNTAX_ERROR", "mismatched input 't'. Expecting: 'FOR'"),
    ],
)
def test_what_has_no_statistics_is_refused(engine: Engine, sql: str, code: str, message: str) -> None:
    engine.run("CREATE VIEW seen AS SELECT DISTINCT 1 AS a")
    with pytest.raises(RowMergeError) as failed:
        engine.run(sql)
    assert (failed.value.code, failed.value.message, failed.value.line) == (code, message, 1)
