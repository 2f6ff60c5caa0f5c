"""ALTER TABLE, COMMENT and CREATE TABLE AS through a plugin, on a host without Java."""

from __future__ import annotations

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from tests.connectors.trino.fake_connector import FakeTrinoConnector


@pytest.fixture
def engine(tmp_path):
    connector = FakeTrinoConnector(tmp_path, properties={"log": str(tmp_path / "log")})
    engine = rm.Engine()
    engine.add_catalog("shop", connector)
    engine.run("CREATE TABLE shop.default.accounts (id bigint, name varchar)")
    yield engine
    connector.close()


def described(engine, table="accounts"):
    rows = engine.run(f"DESCRIBE shop.default.{table}").to_pandas()
    return rows.to_numpy().tolist()


def calls(tmp_path):
    return (tmp_path / "log").read_text().split()


def test_each_alteration_is_a_call_of_the_plugin(engine, tmp_path):
    for alteration in (
        "ADD COLUMN price double COMMENT 'in euros' FIRST",
        "ADD COLUMN code varchar DEFAULT 'x' AFTER price",
        "RENAME COLUMN name TO label",
        "DROP COLUMN id",
        "ALTER COLUMN label SET DEFAULT 'new'",
        "SET PROPERTIES format = 'ORC'",
        "RENAME TO shop.default.clients",
    ):
        engine.run(f"ALTER TABLE shop.default.accounts {alteration}", dialect="extended")
    engine.run("COMMENT ON TABLE shop.default.clients IS 'who buys'")
    engine.run("COMMENT ON COLUMN shop.default.clients.label IS 'as printed'")

    assert described(engine, "clients") == [
        ["price", "double", "", "in euros"],
        ["code", "varchar", "", ""],
        ["label", "varchar", "", "as printed"],
    ]
    shown = engine.run("SHOW CREATE TABLE shop.default.clients").explained
    assert "label varchar DEFAULT 'new'" in shown
    assert "COMMENT 'who buys'" in shown
    assert "format = 'ORC'" in shown
    expected = [
        *("add_column", "rename_column", "drop_column", "set_default_value"),
        *("set_table_properties", "rename_table", "set_table_comment", "set_column_comment"),
    ]
    assert [call for call in dict.fromkeys(calls(tmp_path)) if call in expected] == expected


def test_operations_that_the_plugin_lacks_are_refused_in_its_words(engine):
    with pytest.raises(ConnectorError, match="does not support set_column_type") as caught:
        engine.run("ALTER TABLE shop.default.accounts ALTER COLUMN id SET DATA TYPE double")
    assert caught.value.code == "NOT_SUPPORTED"
    assert caught.value.changed is False
    assert described(engine)[0][:2] == ["id", "bigint"]


def test_an_unknown_property_is_an_error_at_its_name(engine):
    with pytest.raises(AnalysisError, match="no property colour") as caught:
        engine.run(
            "ALTER TABLE shop.default.accounts SET PROPERTIES format = 'ORC', colour = 'red'"
        )
    assert caught.value.code == "INVALID_TABLE_PROPERTY"
    assert caught.value.column == 66


@pytest.fixture
def on_spark(spark, tmp_path):
    connector = FakeTrinoConnector(tmp_path, properties={"log": str(tmp_path / "log")})
    engine = rm.Engine(spark=spark)
    engine.add_catalog("shop", connector)
    yield engine
    connector.close()


def rows(engine, query):
    return engine.run(query).to_pandas().to_numpy().tolist()


@pytest.mark.spark
def test_create_table_as_is_one_change_of_the_plugin(on_spark, tmp_path):
    result = on_spark.run(
        "CREATE TABLE shop.default.accounts COMMENT 'all' AS"
        " SELECT * FROM (VALUES (1, 'a'), (2, 'b')) t(id, part_name)"
    )

    assert result.count == 2
    methods = [call.method for call in result.trace.calls]
    assert methods[:2] == ["get_new_table_layout", "begin_create_table"]
    assert methods[-2:] == ["finish_create_table", "commit"]
    assert {"create_table", "begin_insert"}.isdisjoint(calls(tmp_path))
    assert rows(on_spark, "SELECT * FROM shop.default.accounts ORDER BY 1") == [[1, "a"], [2, "b"]]
    assert "COMMENT 'all'" in on_spark.run("SHOW CREATE TABLE shop.default.accounts").explained


@pytest.mark.spark
def test_a_failed_create_table_as_leaves_no_table(on_spark):
    with pytest.raises(rm.RowMergeError, match="DIVISION_BY_ZERO"):
        on_spark.run(
            "CREATE TABLE shop.default.accounts AS SELECT 1 / id AS half FROM (VALUES 1, 0) t(id)"
        )
    assert rows(on_spark, "SHOW TABLES FROM shop.default") == []


@pytest.mark.spark
def test_a_replaced_table_is_read_by_its_own_query(on_spark, tmp_path):
    on_spark.run("CREATE TABLE shop.default.accounts AS SELECT 1 AS id, 'a' AS name")
    on_spark.run(
        "CREATE OR REPLACE TABLE shop.default.accounts AS"
        " SELECT id + 1 AS id FROM shop.default.accounts",
        record=str(tmp_path / "record"),
    )

    assert rows(on_spark, "SELECT * FROM shop.default.accounts") == [[2]]
    from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector

    replayed = rm.replay(str(tmp_path / "record"), MemoryConnector())
    assert replayed.compared
    assert replayed.remaining.num_rows == 1


def test_a_dry_run_of_create_table_as_plans_the_call_that_creates_it(engine):
    result = engine.run("CREATE TABLE shop.default.copy AS SELECT 1 AS id", dry_run=True)
    assert "finish_create_table" in str(result.trace.plan)
