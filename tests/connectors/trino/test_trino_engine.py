"""Statements of the engine on real plugins of Trino."""

from __future__ import annotations

import os
import signal

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import (
    AnalysisError,
    ConnectorError,
    DuplicateMatchError,
    ExecutionError,
)

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def iceberg(spark, trino_home, java_home, tmp_path_factory):
    warehouse = tmp_path_factory.mktemp("warehouse")
    connector = rm.TrinoConnector(
        "iceberg",
        plugin=trino_home / "plugin" / "iceberg",
        trino=trino_home / "lib",
        properties={
            "iceberg.catalog.type": "TESTING_FILE_METASTORE",
            "hive.metastore.catalog.dir": "local:///warehouse",
            "fs.local.enabled": True,
            "local.location": str(warehouse),
            "bootstrap.quiet": True,
        },
        java=java_home,
        java_options=["-Xmx700m"],
    )
    engine = rm.Engine(spark=spark)
    engine.add_catalog("ice", connector)
    engine.run("CREATE SCHEMA ice.shop")
    yield engine, connector
    connector.close()


def rows(engine, query):
    frame = engine.run(query).to_pandas()
    return [tuple(row) for row in frame.itertuples(index=False)]


@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize("layout", ["", " WITH (partitioning = ARRAY['bucket(id, 3)', 'name'])"])
def test_a_merge_on_icebergs_plugin(iceberg, era, layout):
    engine, _ = iceberg
    engine.run(f"CREATE TABLE ice.shop.accounts (id bigint, name varchar){layout}")
    try:
        engine.run("INSERT INTO ice.shop.accounts VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
        result = engine.run(
            """MERGE INTO ice.shop.accounts t
            USING (VALUES (1, 'new name'), (2, 'gone'), (9, 'new')) s(id, name) ON t.id = s.id
            WHEN MATCHED AND s.name = 'gone' THEN DELETE
            WHEN MATCHED THEN UPDATE SET name = s.name
            WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name)""",
            era=era,
        )
        assert result.counts == {"INSERT": 1, "UPDATE": 1, "DELETE": 1, "none": 0}
        engine.run("UPDATE ice.shop.accounts SET id = id + 100 WHERE id = 4", era=era)
        engine.run("DELETE FROM ice.shop.accounts WHERE id = 3", era=era)
        assert rows(engine, "SELECT id, name FROM ice.shop.accounts ORDER BY id") == [
            (1, "new name"),
            (9, "new"),
            (104, "d"),
        ]
        with pytest.raises(DuplicateMatchError):
            engine.run(
                "MERGE INTO ice.shop.accounts t USING (VALUES 1, 1) s(id) ON t.id = s.id"
                " WHEN MATCHED THEN DELETE"
            )
        assert rows(engine, "SELECT count(*) FROM ice.shop.accounts") == [(3,)]
    finally:
        engine.run("DROP TABLE ice.shop.accounts")


def test_an_unknown_table_property_is_at_its_name_with_the_plugins_list(iceberg):
    engine, _ = iceberg
    with pytest.raises(AnalysisError, match=r"formt.*format_version") as caught:
        engine.run("CREATE TABLE ice.shop.bad (id bigint) WITH (formt = 'ORC')")
    assert caught.value.code == "INVALID_TABLE_PROPERTY"
    assert caught.value.line == 1


def test_a_killed_process_of_the_tasks_is_an_error_and_the_next_statement_works(iceberg):
    engine, connector = iceberg
    engine.run("CREATE TABLE ice.shop.killed AS SELECT 1 AS id")
    os.kill(connector.hosts.running[-1].pid, signal.SIGKILL)
    try:
        engine.run("INSERT INTO ice.shop.killed VALUES 2")
    except ConnectorError as error:
        assert error.code == "HOST_TERMINATED"  # noqa: PT017 - the process may be replaced in time
        engine.run("INSERT INTO ice.shop.killed VALUES 2")
    assert rows(engine, "SELECT id FROM ice.shop.killed ORDER BY id") == [(1,), (2,)]


def test_alterations_are_calls_of_icebergs_plugin(iceberg):
    engine, _ = iceberg
    engine.run("CREATE TABLE ice.shop.altered (id integer, name varchar NOT NULL, old bigint)")
    engine.run("INSERT INTO ice.shop.altered VALUES (1, 'a', 7)")
    for alteration in (
        "ADD COLUMN price decimal(10, 2) COMMENT 'in euros' AFTER id",
        "ADD COLUMN r row(x bigint, y varchar)",
        "RENAME COLUMN name TO label",
        "DROP COLUMN old",
        "ALTER COLUMN id SET DATA TYPE bigint",
        "ALTER COLUMN label DROP NOT NULL",
        "ADD COLUMN r.z double",
        "RENAME COLUMN r.x TO first",
        "DROP COLUMN r.y",
        "SET PROPERTIES format_version = 2, partitioning = ARRAY['label']",
        "RENAME TO ice.shop.renamed",
    ):
        engine.run(f"ALTER TABLE ice.shop.altered {alteration}", dialect="extended")
    try:
        engine.run("COMMENT ON TABLE ice.shop.renamed IS 'who buys'")
        engine.run("COMMENT ON COLUMN ice.shop.renamed.label IS 'as printed'")
        engine.run("INSERT INTO ice.shop.renamed VALUES (2, 1.5, NULL, ROW(1, 2.5))")

        assert rows(engine, "DESCRIBE ice.shop.renamed") == [
            ("id", "bigint", "", ""),
            ("price", "decimal(10,2)", "", "in euros"),
            ("label", "varchar", "", "as printed"),
            ("r", "row(first bigint, z double)", "", ""),
        ]
        shown = engine.run("SHOW CREATE TABLE ice.shop.renamed").explained
        assert "COMMENT 'who buys'" in shown
        assert "partitioning = ARRAY['label']" in shown
        assert rows(engine, "SELECT id, label FROM ice.shop.renamed ORDER BY id") == [
            (1, "a"),
            (2, None),
        ]
        with pytest.raises(ConnectorError) as caught:
            engine.run("ALTER TABLE ice.shop.renamed ALTER COLUMN id SET DATA TYPE varchar")
        assert caught.value.changed is False
        assert caught.value.raised[0].frames
    finally:
        engine.run("DROP TABLE ice.shop.renamed")


def test_create_table_as_is_one_change_of_icebergs_plugin(iceberg):
    engine, _ = iceberg
    with pytest.raises(ExecutionError, match="DIVISION_BY_ZERO"):
        engine.run("CREATE TABLE ice.shop.made AS SELECT 1 / id AS x FROM (VALUES 1, 0) t(id)")
    assert ("made",) not in rows(engine, "SHOW TABLES FROM ice.shop")
    made = engine.run(
        "CREATE TABLE ice.shop.made WITH (partitioning = ARRAY['bucket(id, 3)'])"
        " AS SELECT * FROM (VALUES (1, 'a'), (2, NULL), (3, 'c')) t(id, name)"
    )
    assert made.count == 3
    assert made.trace.calls[-2].method == "finish_create_table"
    engine.run("CREATE OR REPLACE TABLE ice.shop.made AS SELECT id + 1 AS id FROM ice.shop.made")
    assert rows(engine, "SELECT * FROM ice.shop.made ORDER BY id") == [(2,), (3,), (4,)]
    engine.run("CREATE OR REPLACE TABLE ice.shop.made (day date)")
    assert rows(engine, "SELECT * FROM ice.shop.made") == []
    engine.run("DROP TABLE ice.shop.made")
