"""Statements of the engine on real plugins of Trino."""

from __future__ import annotations

import os
import signal
from functools import partial

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import (
    AnalysisError,
    ConnectorError,
    DuplicateMatchError,
    ExecutionError,
)
from rowmerge_nb.spi.handles import ConnectorSession, SchemaTableName
from rowmerge_nb.spi.page_source import ColumnDomain, Constraint

REAL_PLUGIN = "iceberg"
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
            ("r", 'row("first" bigint, "z" double)', "", ""),
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


def test_a_constraint_skips_files_of_icebergs_plugin(iceberg):
    engine, connector = iceberg
    types = {
        "flag": ("boolean", "false", "true"),
        "number": ("integer", "1", "5"),
        "price": ("decimal(5, 2)", "1.50", "9.50"),
        "amount": ("decimal(38, 10)", "1.5", "12345678901234567890.5"),
        "name": ("varchar", "'a'", "'b'"),
        "code": ("varbinary", "X'00'", "X'ff'"),
        "day": ("date", "DATE '2026-01-31'", "DATE '2026-02-01'"),
        "at": ("time(6)", "TIME '08:00:00'", "TIME '09:00:00.000001'"),
        "moment": (
            "timestamp(6)",
            "TIMESTAMP '2026-01-31 08:00:00'",
            "TIMESTAMP '2026-02-01 08:00:00.000001'",
        ),
        "zoned": (
            "timestamp(6) with time zone",
            "TIMESTAMP '2026-01-31 08:00:00 UTC'",
            "TIMESTAMP '2026-02-01 08:00:00.000001 UTC'",
        ),
        "half": ("double", "DOUBLE '0.5'", "DOUBLE '1.5'"),
        "small": ("real", "REAL '0.5'", "REAL '1.5'"),
        "key": (
            "uuid",
            "UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'",
            "UUID '22151fd2-7586-11e9-8f9e-2a86e4085a59'",
        ),
    }
    columns = ", ".join(f"{name} {sql_type}" for name, (sql_type, *_) in types.items())
    parts = ", ".join(f"'{name}'" for name in ("name", "code", "key"))
    engine.run(f"CREATE TABLE ice.shop.typed ({columns}) WITH (partitioning = ARRAY[{parts}])")
    try:
        for index in (1, 2):
            engine.run(
                f"INSERT INTO ice.shop.typed VALUES ({', '.join(t[index] for t in types.values())})"
            )
        read = engine.run("SELECT * FROM ice.shop.typed ORDER BY number").table
        assert read.num_rows == 2
        transaction, session = connector.begin_transaction(), ConnectorSession("constraints")
        metadata = connector.get_metadata(transaction)
        table = metadata.get_table_handle(session, SchemaTableName("shop", "typed"))
        get_splits = partial(connector.get_split_manager().get_splits, transaction, session, table)
        assert len(get_splits(Constraint())) == 2
        for name in types:
            for domain in (
                ColumnDomain(values=(read[name][1].as_py(),)),
                ColumnDomain(low=read[name][1].as_py()),
            ):
                # Iceberg's plugin takes no constraint on a UUID.
                expected = 2 if name == "key" else 1
                assert len(get_splits(Constraint({name: domain}))) == expected, (name, domain)
            assert len(get_splits(Constraint({name: ColumnDomain(())}))) == 0
        connector.commit(transaction)
        day = "SELECT number FROM ice.shop.typed WHERE day = DATE '2026-02-01'"
        assert rows(engine, day) == [(5,)]
        assert rows(engine, "SELECT * FROM ice.shop.typed WHERE number > 5 AND number < 3") == []
    finally:
        engine.run("DROP TABLE ice.shop.typed")


def test_a_delete_of_whole_partitions_is_executed_by_icebergs_plugin(iceberg):
    engine, _ = iceberg
    engine.run(
        "CREATE TABLE ice.shop.parts WITH (partitioning = ARRAY['day']) AS SELECT * FROM (VALUES"
        " (1, DATE '2026-01-30'), (2, DATE '2026-01-31'), (3, DATE '2026-02-01')) t(id, day)"
    )
    try:
        pushed = engine.run(
            "DELETE FROM ice.shop.parts WHERE day < DATE '2026-02-01' AND day > DATE '2026-01-30'",
            delete_pushdown=True,
        )
        assert [call.method for call in pushed.trace.calls] == [
            "apply_delete",
            "execute_delete",
            "commit",
        ]
        assert pushed.count == 1
        assert rows(engine, "SELECT id FROM ice.shop.parts ORDER BY id") == [(1,), (3,)]
        by_sink = engine.run("DELETE FROM ice.shop.parts WHERE id = 1", delete_pushdown=True)
        assert "finish_merge" in [call.method for call in by_sink.trace.calls]
        assert "does not accept its condition" in by_sink.trace.notices[-1].message
        all_rows = engine.run("DELETE FROM ice.shop.parts", delete_pushdown=True)
        assert all_rows.trace.calls[1].method == "execute_delete"
        assert rows(engine, "SELECT count(*) FROM ice.shop.parts") == [(0,)]
    finally:
        engine.run("DROP TABLE ice.shop.parts")


def test_system_tables_and_versions_of_icebergs_plugin_are_read(iceberg):
    engine, connector = iceberg
    engine.run("CREATE TABLE ice.shop.told AS SELECT * FROM (VALUES 1, 2, 3) t(id)")
    try:
        ((first,),) = rows(engine, 'SELECT snapshot_id FROM ice.shop."told$snapshots"')
        before = engine.run('SELECT committed_at FROM ice.shop."told$snapshots"').table
        moment = before["committed_at"][0].as_py()
        engine.run("DELETE FROM ice.shop.told WHERE id = 2")
        files = 'SELECT content, record_count FROM ice.shop."told$files" ORDER BY content'
        assert [content for content, _ in rows(engine, files)] == [0, 1]
        for suffix in ("history", "manifests", "refs", "properties"):
            engine.run(f'SELECT * FROM ice.shop."told${suffix}"')
        query = "SELECT count(*) FROM ice.shop.told"
        assert rows(engine, query) == [(2,)]
        assert rows(engine, f"{query} FOR VERSION AS OF {first}") == [(3,)]
        assert rows(engine, f"{query} FOR VERSION AS OF 'main'") == [(2,)]
        at = f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f} UTC'"
        assert rows(engine, f"{query} FOR TIMESTAMP AS OF {at}") == [(3,)]
        with pytest.raises(ConnectorError, match=r"(?i)snapshot"):
            engine.run(f"{query} FOR VERSION AS OF 1")

        transaction, session = connector.begin_transaction(), ConnectorSession("statistics")
        metadata = connector.get_metadata(transaction)
        table = metadata.get_table_handle(session, SchemaTableName("shop", "told"))
        assert metadata.get_table_statistics(session, table).row_count in {2, 3}
        connector.commit(transaction)
    finally:
        engine.run("DROP TABLE ice.shop.told")
