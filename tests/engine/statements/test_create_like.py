"""CREATE TABLE with LIKE: the columns of other tables, and with INCLUDING PROPERTIES the properties of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from rowmerge_nb import Engine, HiveAcidConnector, IcebergConnector, RowMergeError, SqliteConnector

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.stand_in


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Engine:
    engine = Engine(spark=spark)
    engine.add_catalog("ice", IcebergConnector(warehouse=tmp_path / "ice"))
    engine.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    engine.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
    engine.run(
        "CREATE TABLE s (id bigint NOT NULL, name varchar COMMENT 'who', d decimal(12,2))"
        " WITH (bucketed_by = ARRAY['id'], bucket_count = 3)"
    )
    return engine


def shown(engine: Engine, table: str) -> str:
    """Return SHOW CREATE TABLE without its head, in one line."""
    text = " ".join((engine.run(f"SHOW CREATE TABLE {table}").explained or "").split())
    return text.partition(" ( ")[2]


COLUMNS = "id bigint NOT NULL, name varchar COMMENT 'who', d decimal(12, 2)"


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ("LIKE s", f"{COLUMNS} ) WITH ( paradigm = 'DELETE_ROW_AND_INSERT_ROW' )"),
        (
            "LIKE s EXCLUDING PROPERTIES",
            f"{COLUMNS} ) WITH ( paradigm = 'DELETE_ROW_AND_INSERT_ROW' )",
        ),
        (
            "x integer, LIKE Memory.Default.S INCLUDING PROPERTIES, y date",
            f"x integer, {COLUMNS}, y date ) WITH ( bucketed_by = ARRAY['id'], bucket_count = 3, paradigm = 'DELETE_ROW_AND_INSERT_ROW' )",
        ),
    ],
)
def test_like_copies_the_columns_of_a_table(engine: Engine, elements: str, expected: str) -> None:
    engine.run(f"CREATE TABLE t ({elements})")
    assert shown(engine, "t") == expected


def test_properties_of_with_precede_inherited_ones(engine: Engine) -> None:
    engine.run("CREATE TABLE t (LIKE s INCLUDING PROPERTIES) WITH (bucket_count = 5)")
    assert "bucket_count = 5" in shown(engine, "t")
    assert "bucketed_by = ARRAY['id']" in shown(engine, "t")
    engine.run("CREATE TABLE lite.main.k (id bigint, v varchar) WITH (primary_key = ARRAY['id'])")
    engine.run("CREATE TABLE lite.main.t (LIKE lite.main.k INCLUDING PROPERTIES)")
    assert (
        shown(engine, "lite.main.t")
        == "id bigint NOT NULL, v varchar ) WITH ( primary_key = ARRAY['id'] )"
    )


@pytest.mark.parametrize("catalog", ["ice", "hive"])
def test_a_table_of_one_store_is_created_like_that_of_another(engine: Engine, catalog: str) -> None:
    engine.run(f"CREATE TABLE {catalog}.default.t (LIKE s)")
    assert shown(engine, f"{catalog}.default.t").startswith(f"{COLUMNS} )")
    engine.run(f"INSERT INTO {catalog}.default.t VALUES (1, 'a', 2.5)")
    engine.run(f"CREATE TABLE back (LIKE {catalog}.default.t)")
    assert engine.table("back").num_rows == 0, "LIKE gives no rows"
    assert shown(engine, "back").startswith(f"{COLUMNS} )")


def test_a_table_is_created_like_a_dataframe(engine: Engine) -> None:
    people = pd.DataFrame({"id": [1], "name": ["a"]})
    engine.run("CREATE TABLE t (LIKE people)", namespace={"people": people})
    assert shown(engine, "t").startswith("id bigint, name varchar )")


def test_an_existing_table_stays_regardless_of_like(engine: Engine) -> None:
    engine.run("CREATE TABLE IF NOT EXISTS s (LIKE nosuch)")
    assert shown(engine, "s").startswith(COLUMNS)


@pytest.mark.parametrize(
    ("sql", "code", "place", "message"),
    [
        ("CREATE TABLE t (LIKE nosuch)", "TABLE_NOT_FOUND", (1, 1), "LIKE table 'memory.default.nosuch' does not exist"),
        ("CREATE TABLE t (LIKE nosuch.t)", "TABLE_NOT_FOUND", (1, 1), "LIKE table 'memory.nosuch.t' does not exist"),
        ("CREATE TABLE t (LIKE nosuch.s.t)", "CATALOG_NOT_FOUND", (1, 1), "LIKE table catalog 'nosuch' not found"),
        ("CREATE TABLE t (LIKE v)", "TABLE_NOT_FOUND", (1, 1), "LIKE table 'memory.default.v' does not exist"),
        ("CREATE TABLE t (id bigint, LIKE s)", "DUPLICATE_COLUMN_NAME", (1, 28), "Column name 'id' specified more than once"),
        ("CREATE TABLE t (LIKE s, NAME date)", "DUPLICATE_COLUMN_NAME", (1, 25), "Column name 'NAME' specified more than once"),
        (
            "CREATE TABLE t (LIKE s INCLUDING PROPERTIES, LIKE s INCLUDING PROPERTIES)",
            "NOT_SUPPORTED", (1, 1), "Only one LIKE clause can specify INCLUDING PROPERTIES",
        ),
        (
            "CREATE TABLE ice.default.t (LIKE s INCLUDING PROPERTIES)",
            "NOT_SUPPORTED", (1, 1), "CREATE TABLE LIKE table INCLUDING PROPERTIES across catalogs is not supported",
        ),
        ("CREATE TABLE lite.main.t (LIKE s)", "NOT_SUPPORTED", (1, 32), "This connector does not support creating tables with column comment"),
        ("CREATE TABLE t (LIKE s INCLUDING)", "SYNTAX_ERROR", (1, 33), "mismatched input ')'. Expecting: 'PROPERTIES'"),
    ],
)  # fmt: skip
def test_like_refuses_other_sources(
    engine: Engine, sql: str, code: str, place: tuple[int, int], message: str
) -> None:
    engine.run("CREATE VIEW v AS SELECT 1 AS one")
    with pytest.raises(RowMergeError) as refused:
        engine.run(sql)
    error = refused.value
    assert (error.code, (error.line, error.column), error.message) == (code, place, message)


def test_the_folder_of_an_iceberg_table_is_its_own(engine: Engine, tmp_path: Path) -> None:
    engine.run("CREATE TABLE ice.default.p (id bigint, r varchar) WITH (partitioning = ARRAY['r'])")
    with pytest.raises(
        RowMergeError,
        match="ICEBERG_FILESYSTEM_ERROR: Cannot create a table on a non-empty location",
    ):
        engine.run("CREATE TABLE ice.default.q (LIKE ice.default.p INCLUDING PROPERTIES)")
    engine.run(
        f"CREATE TABLE ice.default.q (LIKE ice.default.p INCLUDING PROPERTIES) WITH (location = '{tmp_path / 'own'}')"
    )
    assert "partitioning = ARRAY['r']" in shown(engine, "ice.default.q")
    with pytest.raises(RowMergeError) as refused:
        engine.run(
            f"CREATE TABLE ice.default.r WITH (location = '{tmp_path / 'own'}') AS SELECT 1 AS id"
        )
    assert (refused.value.code, refused.value.line, refused.value.column) == (
        "ICEBERG_FILESYSTEM_ERROR",
        1,
        34,
    )
