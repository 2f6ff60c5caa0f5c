"""``information_schema``: each catalog's description of itself on every store, and its limits."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import (
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    MemoryConnector,
    PostgresConnector,
    RowMergeError,
    SqliteConnector,
)
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi.information_schema import TABLES

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

OWN = sorted(TABLES)


@pytest.fixture
def engine(spark: Any) -> Any:
    with Engine(spark=spark, trace="off") as made:
        made.run('CREATE TABLE stock (sku varchar NOT NULL, "In Stock" bigint, at timestamp(6))')
        made.run('CREATE VIEW few AS SELECT sku FROM stock WHERE "In Stock" < 5')
        yield made


def rows(engine: Engine, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    table = engine.run(sql, **options).table
    assert table is not None
    return [tuple(row.values()) for row in table.to_pylist()]


def test_tables_columns_views_and_schemas_are_listed(engine: Engine) -> None:
    engine.run("CREATE SCHEMA other")
    ours = "WHERE table_schema <> 'information_schema'"
    assert rows(engine, f"SELECT * FROM information_schema.tables {ours}") == [
        ("memory", "default", "stock", "BASE TABLE"),
        ("memory", "default", "few", "VIEW"),
    ]
    assert rows(engine, f"SELECT * FROM memory.information_schema.columns {ours}") == [
        ("memory", "default", "stock", "sku", 1, None, "NO", "varchar"),
        ("memory", "default", "stock", "in stock", 2, None, "YES", "bigint"),
        ("memory", "default", "stock", "at", 3, None, "YES", "timestamp(6)"),
        ("memory", "default", "few", "sku", 1, None, "YES", "varchar"),
    ]
    assert rows(engine, "SELECT * FROM information_schema.views") == [
        ("memory", "default", "few", 'SELECT sku FROM stock WHERE "In Stock" < 5')
    ]
    schemas = [("memory", name) for name in ("default", "information_schema", "other")]
    assert rows(engine, "SELECT * FROM information_schema.schemata") == schemas
    assert rows(engine, "SHOW SCHEMAS") == [(name,) for _, name in schemas]


def test_it_lists_itself(engine: Engine) -> None:
    assert rows(engine, "SHOW TABLES FROM information_schema") == [(name,) for name in OWN]
    told = rows(
        engine,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'information_schema'",
    )
    assert sorted(told) == [(name,) for name in OWN]
    described = rows(engine, "DESCRIBE information_schema.columns")
    counted = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'information_schema' AND table_name = 'columns'"
    assert rows(engine, counted) == [(len(described),)]
    assert ("ordinal_position", "bigint", "", "") in described


@pytest.mark.parametrize("store", ["memory", "hive", "iceberg", "sqlite", "postgresql"])
def test_every_store_lists_its_tables(
    spark: Any, tmp_path: Any, request: pytest.FixtureRequest, store: str
) -> None:
    connector = {
        "memory": MemoryConnector,
        "hive": lambda: HiveAcidConnector(tmp_path / "w"),
        "iceberg": lambda: IcebergConnector(tmp_path / "w"),
        "sqlite": lambda: SqliteConnector(tmp_path / "w.db", create=True),
        "postgresql": lambda: PostgresConnector(request.getfixturevalue("postgresql")),
    }[store]()
    schema = {"sqlite": "main", "postgresql": "public"}.get(store, "default")
    with Engine(spark=spark, trace="off") as engine:
        engine.add_catalog("there", connector)
        engine.run(f"CREATE TABLE there.{schema}.told (id bigint, name varchar)")
        found = "SELECT {0} FROM there.information_schema.{1} WHERE table_schema = '{2}' AND table_name = 'told'"
        assert rows(engine, found.format("table_type", "tables", schema)) == [("BASE TABLE",)]
        assert rows(engine, found.format("column_name, data_type", "columns", schema)) == [
            ("id", "bigint"),
            ("name", "varchar"),
        ]
        assert (schema,) in rows(
            engine, "SELECT schema_name FROM there.information_schema.schemata"
        )
        engine.run(f"DROP TABLE there.{schema}.told")


def test_it_is_read_like_any_table(engine: Engine) -> None:
    engine.run("CREATE TABLE catalogue (name varchar, columns bigint)")
    engine.run(
        "MERGE INTO catalogue t USING (SELECT table_name, count(*) AS n FROM information_schema.columns WHERE table_schema = 'default'"
        " GROUP BY table_name) s ON t.name = s.table_name WHEN NOT MATCHED THEN INSERT VALUES (s.table_name, s.n)"
    )
    assert sorted(rows(engine, "SELECT * FROM catalogue")) == [
        ("catalogue", 2),
        ("few", 1),
        ("stock", 3),
    ]
    joined = "SELECT c.column_name FROM information_schema.tables t JOIN information_schema.columns c USING (table_schema, table_name)"
    assert rows(engine, f"{joined} WHERE t.table_type = 'VIEW'") == [("sku",)]
    assert "TableScan[table = memory.information_schema.tables]" in str(
        engine.run("EXPLAIN SELECT * FROM information_schema.tables")
    )


def test_an_unreadable_table_is_listed_without_columns(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata

    def unreadable(self: Any, session: Any, name: Any) -> Any:
        raise ConnectorError("it is stored as Parquet")

    monkeypatch.setattr(MemoryMetadata, "get_table_handle", unreadable)
    assert ("stock",) in rows(engine, "SELECT table_name FROM information_schema.tables")
    assert rows(
        engine,
        "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'default'",
    ) == [("few",)]


NOTHING = "Nothing can be created in schema 'information_schema': the engine provides its tables"


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("SELECT * FROM information_schema.nope", "TABLE_NOT_FOUND", "Table 'memory.information_schema.nope' does not exist"),
        ("SELECT * FROM information_schema.roles", "NOT_SUPPORTED", "The table information_schema.roles is not supported"),
        ("SELECT * FROM system.metadata.catalogs", "NOT_SUPPORTED", "The catalog system is not supported by this engine"),
        ("SHOW SCHEMAS FROM system", "NOT_SUPPORTED", "The catalog system is not supported by this engine"),
        ("USE system.runtime", "NOT_SUPPORTED", "The catalog system is not supported by this engine"),
        ("CALL system.runtime.kill_query('x')", "NOT_SUPPORTED", "The catalog system is not supported by this engine"),
        ("SELECT * FROM nowhere.information_schema.tables", "CATALOG_NOT_FOUND", "Catalog 'nowhere' not found"),
        ("SELECT * FROM information_schema.tables FOR VERSION AS OF 1", "NOT_SUPPORTED", "has no versions"),
        ("DELETE FROM information_schema.tables", "NOT_SUPPORTED", "is a table of information_schema; it can be read but not"),
        ("UPDATE information_schema.tables SET table_name = 'x'", "NOT_SUPPORTED", "is a table of information_schema"),
        ("MERGE INTO information_schema.tables t USING stock s ON true WHEN MATCHED THEN DELETE", "NOT_SUPPORTED", "not the target"),
        ("INSERT INTO information_schema.schemata VALUES ('a', 'b')", "NOT_SUPPORTED", "it can be read but not changed"),
        ("TRUNCATE TABLE information_schema.tables", "NOT_SUPPORTED", "it cannot be emptied"),
        ("DROP TABLE information_schema.tables", "NOT_SUPPORTED", "it cannot be dropped"),
        ("ALTER TABLE information_schema.tables ADD COLUMN a bigint", "NOT_SUPPORTED", "it cannot be altered"),
        ("CREATE TABLE information_schema.x (a bigint)", "NOT_SUPPORTED", NOTHING),
        ("CREATE TABLE information_schema.x AS SELECT 1 a", "NOT_SUPPORTED", NOTHING),
        ("CREATE VIEW information_schema.x AS SELECT 1 a", "NOT_SUPPORTED", NOTHING),
        ("ALTER TABLE stock RENAME TO information_schema.x", "NOT_SUPPORTED", NOTHING),
        ("CREATE SCHEMA information_schema", "SCHEMA_ALREADY_EXISTS", "already exists"),
        ("DROP SCHEMA information_schema", "SCHEMA_NOT_EMPTY", "Cannot drop non-empty schema"),
    ],
)  # fmt: skip
def test_it_belongs_to_the_engine(engine: Engine, sql: str, code: str, message: str) -> None:
    with pytest.raises(RowMergeError) as failed:
        engine.run(sql)
    assert failed.value.code == code
    assert message in failed.value.message
    assert failed.value.line == 1


def test_a_dataframe_may_be_joined_with_it(engine: Engine) -> None:
    wanted = pa.table({"name": ["stock", "nothing"]})
    found = rows(
        engine,
        "SELECT w.name, t.table_type FROM wanted w LEFT JOIN information_schema.tables t ON t.table_name = w.name ORDER BY 1",
        namespace={"wanted": wanted},
    )
    assert found == [("nothing", None), ("stock", "BASE TABLE")]
