"""The documents' MERGE, and statements on all types and on many rows, through plugins of Trino."""

from __future__ import annotations

import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import ConnectorError, DuplicateMatchError, SetupError
from rowmerge_nb.demo import SETUP, STATEMENT
from tests.connectors.trino.conftest import start_plugin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.spark

AFTER = [
    ("Aaron", 11, "Arches"),
    ("Carol", 12, "Centreville"),
    ("Dave", 11, "Devon"),
    ("Ed", 7, "Etherville"),
    ("Gus", 2, "Gilroy"),
    ("Joe Shmoe", 112, "Jamestown"),
]
PARTITIONED = "WITH (partitioned_by = ARRAY['address'])"
ALL_TYPES = """SELECT 1 AS k, true AS b, 2 AS i, 3000000000 AS l, CAST(0.5 AS real) AS r, 0.25e0 AS d,
    CAST(1.25 AS decimal(9, 2)) AS m, CAST(-12345678901234567890.12 AS decimal(38, 2)) AS n,
    'text' AS v, X'00ff' AS x, DATE '2024-02-29' AS a, ARRAY[1, NULL, 3] AS y,
    MAP(ARRAY['p', 'q'], ARRAY[1, 2]) AS z, CAST(ROW(7, 'in') AS ROW(f integer, g varchar)) AS w"""
KINDS = "bilrdmnvxayzw"


@contextmanager
def schema_of(spark: Any, connector: rm.TrinoConnector, schema: str) -> Iterator[rm.Engine]:
    """An engine with a new schema of a plugin, whose tables are dropped at the end."""
    engine = rm.Engine(spark=spark, catalog="c", schema=schema)
    engine.add_catalog("c", connector)
    engine.run(f"CREATE SCHEMA {schema}")
    yield engine
    for name, _, _ in [entry[:3] for entry in engine.tables()]:
        if name.startswith(f"c.{schema}."):
            engine.run(f"DROP TABLE {name}")
    engine.run(f"DROP SCHEMA {schema}")


def rows_of(engine: rm.Engine, query: str) -> list[tuple[Any, ...]]:
    content = engine.run(query).table
    assert content is not None
    return [tuple(row.values()) for row in content.to_pylist()]


def merge_as_in_the_documents(engine: rm.Engine, properties: str, era: str) -> None:
    """Run the documents' MERGE on new tables, and compare its count and rows."""
    engine.run_script(SETUP.replace(PARTITIONED, properties))
    result = engine.run(STATEMENT.replace("= purchases +", "= t.purchases +"), era=era)
    assert result.count == 6
    rows = rows_of(engine, "SELECT * FROM accounts ORDER BY customer")
    assert [(name, int(number), address) for name, number, address in rows] == AFTER


def change_all_types(engine: rm.Engine) -> None:
    """Change tables of all types, of which one row is NULL."""
    engine.run(f"CREATE TABLE types AS {ALL_TYPES}")
    (row,) = rows_of(engine, "SELECT * FROM types")
    nulls = ", ".join(["2", *["NULL"] * len(KINDS)])
    engine.run(f"INSERT INTO types VALUES ({nulls})")
    assert engine.run("UPDATE types SET k = k + 10").count == 2
    updates = ", ".join(f"{name} = s.{name}" for name in KINDS)
    result = engine.run(
        f"""MERGE INTO types t USING (SELECT 12 AS key, s.* FROM ({ALL_TYPES}) s
            UNION ALL SELECT 13, s.* FROM ({ALL_TYPES}) s) s ON t.k = s.key
        WHEN MATCHED THEN UPDATE SET {updates}
        WHEN NOT MATCHED THEN INSERT VALUES (s.key, {", ".join(f"s.{name}" for name in KINDS)})"""
    )
    assert result.count == 2
    rows = rows_of(engine, "SELECT * FROM types ORDER BY k")
    assert rows == [(key, *row[1:]) for key in (11, 12, 13)]


def move_and_refuse(engine: rm.Engine, properties: str) -> None:
    """Move rows between partitions, and let a source match a row twice."""
    engine.run(f"CREATE TABLE moved (id bigint, part varchar) {properties}")
    engine.run("INSERT INTO moved VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, 'a')")
    assert engine.run("UPDATE moved SET part = 'c' WHERE part = 'a' OR part IS NULL").count == 3
    assert engine.run("DELETE FROM moved WHERE id = 4").count == 1
    with pytest.raises(DuplicateMatchError):
        engine.run(
            "MERGE INTO moved t USING (VALUES 1, 1) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE"
        )
    rows = rows_of(engine, "SELECT * FROM moved ORDER BY id")
    assert rows == [(1, "c"), (2, "b"), (3, "c")]


# Iceberg


@pytest.fixture(scope="module")
def iceberg(spark: Any, iceberg_plugin: rm.TrinoConnector) -> Iterator[rm.Engine]:
    with schema_of(spark, iceberg_plugin, "plugins") as engine:
        yield engine


@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize(
    "transforms", ["'address'", "'bucket(customer, 4)', 'truncate(address, 1)'"]
)
def test_the_documents_merge_on_iceberg(iceberg: rm.Engine, era: str, transforms: str) -> None:
    merge_as_in_the_documents(iceberg, f"WITH (partitioning = ARRAY[{transforms}])", era)


@pytest.mark.parametrize("version", [2, 3])
def test_pyiceberg_reads_what_the_plugin_has_committed(
    iceberg: rm.Engine, version: int, trino_home: Path
) -> None:
    pytest.importorskip("pyiceberg")
    if version == 3 and list((trino_home / "lib").glob("*trino-spi-476.jar")):
        pytest.skip("Trino 476 writes no tables of version 3")
    read = "agrees: Read back by PyIceberg"
    properties = f"WITH (format_version = {version}, partitioning = ARRAY['k'])"
    engine = iceberg
    more = "UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59' AS u, TIMESTAMP '2024-02-29 12:00:00.123456 UTC' AS c"
    engine.run(f"CREATE TABLE read_back {properties} AS {ALL_TYPES}, {more}")
    nulls = ", ".join(["2", *["NULL"] * (len(KINDS) + 2)])
    merge = (
        "MERGE INTO read_back t USING (VALUES 2, 3) s(k) ON t.k = s.k WHEN MATCHED THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
    )
    insert = f"INSERT INTO read_back VALUES ({nulls})"
    for statement in (insert, "UPDATE read_back SET v = 'new' WHERE k = 1", merge):
        check = engine.run(statement, check=True).trace.checks.commit
        assert check is not None
        assert f"{check.state}: {check.message}".startswith(read), check
    engine.run("DROP TABLE read_back")


def test_all_types_and_moves_between_partitions_on_iceberg(iceberg: rm.Engine) -> None:
    change_all_types(iceberg)
    move_and_refuse(iceberg, "WITH (partitioning = ARRAY['part'])")


@pytest.mark.long
@pytest.mark.parametrize("layout", ["", "WITH (partitioning = ARRAY['bucket(id, 4)'])"])
def test_a_million_rows_on_iceberg(iceberg: rm.Engine, layout: str) -> None:
    iceberg.run(f"CREATE TABLE million (id bigint, name varchar) {layout}")
    try:
        iceberg.run(
            "INSERT INTO million SELECT n, CAST(n AS varchar) FROM TABLE(sequence(0, 999999)) s (n)"
        )
        result = iceberg.run(
            """MERGE INTO million t USING (SELECT * FROM TABLE(sequence(500000, 1499999))) s (n)
            ON t.id = s.n WHEN MATCHED AND n % 2 = 0 THEN DELETE
            WHEN MATCHED THEN UPDATE SET name = 'changed'
            WHEN NOT MATCHED THEN INSERT VALUES (n, 'new')"""
        )
        assert result.counts == {"INSERT": 500000, "UPDATE": 250000, "DELETE": 250000, "none": 0}
        query = "SELECT count(*), count(DISTINCT id), count_if(name = 'changed') FROM million"
        assert rows_of(iceberg, query) == [(1250000, 1250000, 250000)]
    finally:
        iceberg.run("DROP TABLE million")


# Hive


@pytest.fixture(scope="module")
def hive(spark: Any, trino_home: Path, java_home: Path, metastore: str) -> Iterator[rm.Engine]:
    if not (trino_home / "plugin" / "hive" / "hdfs").is_dir():
        pytest.skip("ROWMERGE_TRINO_HOME has no folder plugin/hive/hdfs (of io.trino:trino-hdfs)")
    properties = {
        "hive.metastore": "thrift",
        "hive.metastore.uri": metastore,
        "fs.hadoop.enabled": True,
    }
    connector = start_plugin(trino_home, java_home, "hive", properties)
    assert connector.commits_in_finish is False
    with schema_of(spark, connector, "hive_plugin") as engine:
        yield engine
    connector.close()


@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize(
    "layout",
    [
        "",
        ", partitioned_by = ARRAY['address']",
        ", bucketed_by = ARRAY['customer'], bucket_count = 3",
        ", partitioned_by = ARRAY['address'], bucketed_by = ARRAY['customer'], bucket_count = 3",
    ],
)
def test_the_documents_merge_on_acid_tables_of_hive(hive: rm.Engine, era: str, layout: str) -> None:
    merge_as_in_the_documents(hive, f"WITH (transactional = true{layout})", era)


def test_moves_between_partitions_on_hive(hive: rm.Engine) -> None:
    move_and_refuse(hive, "WITH (transactional = true, partitioned_by = ARRAY['part'])")


@pytest.mark.parametrize(
    ("properties", "is_acid"),
    [
        ("", False),
        ("WITH (partitioned_by = ARRAY['v'])", False),
        ("WITH (transactional = true)", True),
        ("WITH (transactional = true, partitioned_by = ARRAY['v'])", True),
        ("WITH (transactional = true, bucketed_by = ARRAY['k'], bucket_count = 2)", True),
    ],
)
def test_create_table_as_on_hive(hive: rm.Engine, properties: str, is_acid: bool) -> None:
    query = "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) t(k, v)"
    assert hive.run(f"CREATE TABLE filled {properties} AS {query}").count == 3
    assert rows_of(hive, "SELECT k, v FROM filled ORDER BY k") == [(1, "a"), (2, "b"), (3, None)]
    if is_acid:
        assert hive.run("DELETE FROM filled WHERE k = 2").count == 1
        assert rows_of(hive, "SELECT k, v FROM filled ORDER BY k") == [(1, "a"), (3, None)]
    hive.run("DROP TABLE filled")


# Delta Lake

DELTA_PLUGIN = """
import com.google.inject.Module;
import io.trino.filesystem.TrinoFileSystemFactory;
import io.trino.filesystem.local.LocalFileSystemFactory;
import io.trino.plugin.deltalake.DeltaLakeConnectorFactory;
import io.trino.plugin.deltalake.transactionlog.writer.*;
import io.trino.spi.connector.*;
import java.nio.file.Path;
import java.util.*;
import static com.google.inject.multibindings.MapBinder.newMapBinder;

/** Delta Lake on a local folder, for which the released plugin has no file system. */
public class LocalDeltaPlugin implements io.trino.spi.Plugin {
    public Iterable<ConnectorFactory> getConnectorFactories() { return List.of(new Factory()); }

    public static class Factory extends DeltaLakeConnectorFactory {
        public Connector create(String name, Map<String, String> config, ConnectorContext context) {
            Map<String, String> rest = new HashMap<>(config);
            Path folder = Path.of(rest.remove("local.location"));
            Module local = binder -> {
                newMapBinder(binder, String.class, TrinoFileSystemFactory.class)
                        .addBinding("local").toInstance(new LocalFileSystemFactory(folder));
                newMapBinder(binder, String.class, TransactionLogSynchronizer.class)
                        .addBinding("local").to(LocalTransactionLogSynchronizer.class);
            };
            return createConnector(name, rest, context, Optional.empty(), local);
        }
    }
}
"""


@pytest.fixture(scope="module")
def delta(
    spark: Any, trino_home: Path, java_home: Path, tmp_path_factory: Any
) -> Iterator[rm.Engine]:
    jars = trino_home / "plugin" / "delta-lake"
    if not jars.is_dir():
        pytest.skip("ROWMERGE_TRINO_HOME has no folder plugin/delta-lake of Trino 476")
    folder = tmp_path_factory.mktemp("delta")
    source = folder / "LocalDeltaPlugin.java"
    source.write_text(DELTA_PLUGIN, encoding="utf-8")
    class_path = f"{jars}/*:{trino_home / 'lib'}/*"
    subprocess.run(
        [java_home / "bin" / "javac", "-cp", class_path, "-d", folder / "classes", source],
        check=True,
    )
    (folder / "lake").mkdir()
    properties = {
        "hive.metastore": "file",
        "hive.metastore.catalog.dir": "local:///warehouse",
        "local.location": str(folder / "lake"),
        "delta.enable-non-concurrent-writes": True,
    }
    connector = start_plugin(
        trino_home,
        java_home,
        "delta_lake",
        properties,
        plugin=[*sorted(jars.glob("*.jar")), folder / "classes"],
        plugin_class="LocalDeltaPlugin",
    )
    with schema_of(spark, connector, "delta_plugin") as engine:
        yield engine
    connector.close()


@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize("properties", ["", PARTITIONED, "WITH (deletion_vectors_enabled = true)"])
def test_the_documents_merge_on_delta_lake(delta: rm.Engine, era: str, properties: str) -> None:
    merge_as_in_the_documents(delta, properties, era)


def test_all_types_and_moves_between_partitions_on_delta_lake(delta: rm.Engine) -> None:
    change_all_types(delta)
    move_and_refuse(delta, "WITH (partitioned_by = ARRAY['part'])")


# PostgreSQL


@pytest.fixture(scope="module")
def postgresql_plugin(
    spark: Any, trino_home: Path, java_home: Path
) -> Iterator[tuple[Any, Any, Any]]:
    """An engine, a session of another program on its database, and the plugin's connector."""
    from proof.engines.postgresql import find_server, private_server

    if not (trino_home / "plugin" / "postgresql").is_dir():
        pytest.skip("ROWMERGE_TRINO_HOME has no folder plugin/postgresql of Trino 476")
    try:
        find_server()
    except SetupError as error:
        pytest.skip(str(error))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with private_server(port) as uri:
        properties = {
            "connection-url": f"jdbc:postgresql://127.0.0.1:{port}/postgres",
            "connection-user": "postgres",
            "connection-password": "any",
        }
        connector = start_plugin(trino_home, java_home, "postgresql", properties)
        session = rm.PostgresConnector(uri).store.connect(writing=True)
        session.execute("CREATE SCHEMA shop")
        session.execute(
            "CREATE TABLE shop.accounts"
            " (customer varchar PRIMARY KEY, purchases decimal(38, 0), address varchar)"
        )
        engine = rm.Engine(spark=spark, catalog="c", schema="shop")
        engine.add_catalog("c", connector)
        yield engine, session, connector
        session.close()
        connector.close()


def test_rows_with_a_key_are_changed_on_postgresql(postgresql_plugin: tuple[Any, Any, Any]) -> None:
    engine, *_ = postgresql_plugin
    engine.run("INSERT INTO accounts VALUES ('a', 1, 'x'), ('b', 2, NULL), ('c', 3, 'y')")
    assert engine.run("UPDATE accounts SET address = 'z' WHERE customer = 'b'").count == 1
    assert engine.run("DELETE FROM accounts WHERE customer = 'c'").count == 1
    rows = rows_of(engine, "SELECT customer, address FROM accounts ORDER BY customer")
    assert rows == [("a", "x"), ("b", "z")]


@pytest.mark.parametrize("era", ["documents", "current"])
def test_the_documents_merge_on_postgresql(
    spark: Any, postgresql_plugin: tuple[Any, Any, Any], era: str
) -> None:
    _, session, connector = postgresql_plugin
    schema = f"of_{era}"
    session.execute(f"CREATE SCHEMA {schema}")
    own = rm.Engine(spark=spark, catalog="c", schema=schema)
    own.add_catalog("c", connector)
    own.run_script(SETUP.replace(PARTITIONED, ""))
    merge = STATEMENT.replace("= purchases +", "= t.purchases +")
    with pytest.raises(ConnectorError, match="without primary keys") as caught:
        own.run(merge, era=era)
    assert caught.value.code == "NOT_SUPPORTED"
    # The plugin creates no keys.
    session.execute(f"ALTER TABLE {schema}.accounts ADD PRIMARY KEY (customer)")

    result = own.run(merge, era=era)

    assert result.count == 6
    assert result.trace.settings.paradigm == "CHANGE_ONLY_UPDATED_COLUMNS"
    rows = rows_of(own, "SELECT * FROM accounts ORDER BY customer")
    assert [(name, int(number), address) for name, number, address in rows] == AFTER
    # A source that matches a row twice changes nothing.
    with pytest.raises(DuplicateMatchError):
        own.run(
            "MERGE INTO accounts t USING (VALUES 'Ed', 'Ed') s(name) ON t.customer = s.name"
            " WHEN MATCHED THEN DELETE",
            era=era,
        )
    assert rows_of(own, "SELECT * FROM accounts ORDER BY customer") == rows


def test_postgresql_refuses_a_merge_on_a_table_without_a_key(
    postgresql_plugin: tuple[Any, Any, Any],
) -> None:
    engine, *_ = postgresql_plugin
    engine.run("CREATE TABLE keyless AS SELECT 1 AS id")
    with pytest.raises(ConnectorError, match="without primary keys") as caught:
        engine.run("DELETE FROM keyless WHERE id = 1")
    assert caught.value.code == "NOT_SUPPORTED"


# memory


def test_a_plugin_in_memory_keeps_its_rows_in_the_process_of_the_tasks(
    spark: Any, trino_home: Path, java_home: Path
) -> None:
    connector = start_plugin(trino_home, java_home, "memory", {})
    try:
        with schema_of(spark, connector, "shop") as engine:
            engine.run("CREATE TABLE t AS SELECT 1 AS id")
            engine.run("INSERT INTO t VALUES (2), (NULL)")
            assert rows_of(engine, "SELECT id FROM t ORDER BY id") == [(1,), (2,), (None,)]
            assert len(connector.hosts.running) == 2
            with pytest.raises(ConnectorError, match="does not support modifying table rows"):
                engine.run("DELETE FROM t WHERE id = 1")
    finally:
        connector.close()
