"""The catalog ``system``: what it tells of all catalogs, and that nothing in it can be changed."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.spi.system_tables import SYSTEM_TABLES

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def engine(spark: Any, tmp_path_factory: Any) -> Any:
    with Engine(spark=spark, trace="off") as made:
        made.add_catalog("lake", IcebergConnector(tmp_path_factory.mktemp("w")))
        made.run(
            "CREATE TABLE lake.default.stock (sku varchar NOT NULL COMMENT 'key', price decimal(10,2), at timestamp(6)) COMMENT 'all'"
        )
        made.run("CREATE VIEW few COMMENT 'some' AS SELECT sku FROM lake.default.stock")
        yield made


def rows(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
    table = engine.run(sql).table
    assert table is not None
    return [tuple(row.values()) for row in table.to_pylist()]


HERE = "table_schem = 'default'"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SHOW SCHEMAS FROM system", [("information_schema",), ("jdbc",), ("metadata",), ("runtime",)]),
        (
            "SELECT * FROM system.metadata.catalogs ORDER BY 1",
            [("lake", "lake", "iceberg"), ("memory", "memory", "memory"), ("system", "system", "system")],
        ),
        (
            "SELECT * FROM system.metadata.table_comments WHERE schema_name = 'default' ORDER BY 1",
            [("lake", "default", "stock", "all"), ("memory", "default", "few", "some")],
        ),
        ("SELECT table_cat, table_name, table_type FROM system.jdbc.tables WHERE " + HERE + " ORDER BY 1", [("lake", "stock", "TABLE"), ("memory", "few", "VIEW")]),
        (
            "SELECT column_name, data_type, type_name, column_size, decimal_digits, num_prec_radix, nullable, remarks, is_nullable FROM system.jdbc.columns WHERE table_cat = 'lake' AND table_name = 'stock' ORDER BY ordinal_position",
            [
                ("sku", 12, "varchar", 2147483647, None, None, 0, "key", "NO"),
                ("price", 3, "decimal(10,2)", 10, 2, 10, 1, None, "YES"),
                ("at", 93, "timestamp(6)", 28, 6, None, 1, None, "YES"),
            ],
        ),
        ("SELECT default_value, type FROM system.metadata.table_properties WHERE catalog_name = 'lake' AND property_name = 'partitioning'", [("", None)]),
        ("SELECT data_type, \"precision\" FROM system.jdbc.types WHERE type_name = 'bigint'", [(-5, 19)]),
        ("SELECT coordinator, state FROM system.runtime.nodes", [(True, "active")]),
        ("SELECT role_name FROM information_schema.roles", []),
        ("SELECT count(*) FROM lake.information_schema.table_privileges", [(0,)]),
        ("SHOW CREATE TABLE system.jdbc.catalogs", [("CREATE TABLE system.jdbc.catalogs (\n   table_cat varchar\n)",)]),
    ],
)  # fmt: skip
def test_it_tells_of_all_catalogs(engine: Engine, query: str, found: list[tuple[Any, ...]]) -> None:
    assert rows(engine, query) == found


def test_all_of_its_tables_can_be_described(engine: Engine) -> None:
    for name, columns in SYSTEM_TABLES.items():
        assert [row[0] for row in rows(engine, f"DESCRIBE system.{name}")] == [column.name for column in columns]


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("DELETE FROM system.runtime.nodes", "NOT_SUPPORTED", "it can be read but not the target of DELETE"),
        ("CREATE TABLE system.runtime.x (a bigint)", "NOT_SUPPORTED", "does not support creating tables"),
        ("CREATE SCHEMA system.x", "NOT_SUPPORTED", "does not support creating schemas"),
        ("SELECT 1 FROM system.metadata.nosuch", "TABLE_NOT_FOUND", "Table 'system.metadata.nosuch' does not exist"),
        ("CALL system.runtime.kill_query('x', 'y')", "NOT_FOUND", "Target query not found: x"),
        ("CALL system.runtime.kill_query()", "INVALID_ARGUMENTS", "Required procedure argument 'QUERY_ID' is missing"),
    ],
)
def test_nothing_in_it_can_be_changed(engine: Engine, statement: str, code: str, message: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(statement)
    assert (caught.value.code, message in caught.value.message) == (code, True)


def test_its_name_is_taken(engine: Engine, tmp_path: Any) -> None:
    with pytest.raises(RowMergeError, match="There is a catalog 'system' already"):
        engine.add_catalog("system", IcebergConnector(tmp_path))
