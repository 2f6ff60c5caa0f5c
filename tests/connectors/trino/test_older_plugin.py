"""UPDATE and DELETE by the older flow on the Hive plugin of Trino 380.

ROWMERGE_OLDER_TRINO_HOME names a folder with ``lib/`` and ``plugin/hive/`` of that version, or the
cache of Maven coordinates has them. They need Java 17 to 22 and a Hive Metastore.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import ConnectorError
from tests.connectors.trino.older_jars import older_jars
from tests.connectors.trino.test_plugin_statements import ALL_TYPES, KINDS, rows_of, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.spark

ACID = "WITH (transactional = true)"
ACCOUNTS = "SELECT customer, purchases, address FROM accounts ORDER BY customer"


@pytest.fixture(scope="module")
def older_plugin(metastore: str) -> Iterator[rm.TrinoConnector]:
    """Hive's plugin of Trino 380."""
    jars = older_jars()
    connector = rm.TrinoConnector(
        "hive",
        plugin=jars.plugin,
        trino=jars.engine,
        java=jars.java,
        properties={"hive.metastore": "thrift", "hive.metastore.uri": metastore},
        java_options=["-Xmx700m"],
    )
    yield connector
    connector.close()


@pytest.fixture(scope="module")
def hive(spark: Any, older_plugin: rm.TrinoConnector) -> Iterator[rm.Engine]:
    with schema_of(spark, older_plugin, "older_plugin") as engine:
        yield engine


@pytest.fixture
def accounts(hive: rm.Engine) -> Iterator[rm.Engine]:
    """An engine with a table of three accounts."""
    columns = "customer varchar, purchases bigint, address varchar"
    hive.run(f"CREATE TABLE accounts ({columns}) {ACID}")
    hive.run(
        "INSERT INTO accounts VALUES ('Aaron', 5, 'Antioch'), ('Bill', 7, 'Buena'),"
        " ('Carol', 3, NULL)"
    )
    yield hive
    hive.run("DROP TABLE accounts")


def table_folder(engine: rm.Engine, table: str) -> Path:
    """Return the folder of a table's first file."""
    ((path,),) = rows_of(engine, f'SELECT min("$path") FROM {table}')
    return Path(unquote(urlparse(path).path)).parent.parent


def test_an_update_and_a_delete_write_the_plugins_own_deltas(accounts: rm.Engine) -> None:
    folder = table_folder(accounts, "accounts")
    update = accounts.run(
        "UPDATE accounts SET purchases = purchases + 100 WHERE customer <> 'Carol'",
        flow="updatable",
    )
    assert update.count == 2
    text = str(update)
    for call in ("begin_update", "update_rows", "finish_update"):
        assert call in text
    delete = accounts.run("DELETE FROM accounts WHERE address IS NULL", flow="updatable")
    assert delete.count == 1
    assert rows_of(accounts, ACCOUNTS) == [("Aaron", 105, "Antioch"), ("Bill", 107, "Buena")]
    names = sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))
    assert [name.partition("_0")[0] for name in names] == [
        *("delete_delta", "delete_delta"),
        *("delta", "delta"),
    ]


def test_our_own_connector_reads_what_the_plugin_has_written(
    spark: Any, accounts: rm.Engine, metastore: str
) -> None:
    accounts.run("UPDATE accounts SET address = 'new' WHERE purchases > 4", flow="updatable")
    accounts.run("DELETE FROM accounts WHERE customer = 'Bill'", flow="updatable")
    reader = rm.Engine(spark=spark, catalog="ours", schema="older_plugin")
    reader.add_catalog("ours", rm.HiveAcidConnector(metastore=metastore))
    expected = [("Aaron", 5, "new"), ("Carol", 3, None)]
    assert rows_of(reader, ACCOUNTS) == rows_of(accounts, ACCOUNTS) == expected


def test_merge_is_refused_with_the_version_that_began_it(accounts: rm.Engine) -> None:
    for sql in (
        (
            "MERGE INTO accounts t USING (VALUES 'Bill') s(c) ON t.customer = s.c"
            " WHEN MATCHED THEN DELETE"
        ),
        "DELETE FROM accounts WHERE customer = 'Bill'",
    ):
        with pytest.raises(ConnectorError, match=r"MERGE .* came with Trino 393") as info:
            accounts.run(sql)
        assert info.value.code == "NOT_SUPPORTED"
    assert len(rows_of(accounts, ACCOUNTS)) == 3


def test_tables_without_transactions_are_refused_in_the_plugins_words(hive: rm.Engine) -> None:
    hive.run("CREATE TABLE plain (id bigint)")
    hive.run("INSERT INTO plain VALUES 1")
    with pytest.raises(ConnectorError, match="only supported for ACID transactional tables"):
        hive.run("UPDATE plain SET id = 2", flow="updatable")
    assert rows_of(hive, "SELECT id FROM plain") == [(1,)]


def test_an_update_of_a_partitioned_table_reads_and_keeps_its_partition_columns(
    hive: rm.Engine, spark: Any, metastore: str
) -> None:
    """HiveUpdateProcessor.mergeWithNonUpdatedColumns omits partition columns from the scan."""
    hive.run(
        "CREATE TABLE parts (id bigint, name varchar, day date, part varchar) WITH"
        " (transactional = true, partitioned_by = ARRAY['day', 'part'])"
    )
    hive.run(
        "INSERT INTO parts VALUES (1, 'a', DATE '2024-02-29', 'p'), (2, 'b', DATE '2024-02-29',"
        " 'p'), (3, 'c', NULL, 'q'), (4, 'd', DATE '2024-03-01', NULL)"
    )
    update = "UPDATE parts SET name = part || cast(day AS varchar) WHERE id > 1"
    assert hive.run(update, flow="updatable").count == 3
    hive.run("UPDATE parts SET id = id + 10 WHERE part = 'p'", flow="updatable")
    hive.run("UPDATE parts SET id = 30, name = 'z' WHERE day IS NULL", flow="updatable")
    day = dt.date(2024, 2, 29)
    expected = [
        (4, None, dt.date(2024, 3, 1), None),
        (11, "a", day, "p"),
        (12, "p2024-02-29", day, "p"),
        (30, "z", None, "q"),
    ]
    select = "SELECT id, name, day, part FROM parts ORDER BY id"
    assert rows_of(hive, select) == expected
    assert hive.run("DELETE FROM parts WHERE part = 'p' AND id = 11", flow="updatable").count == 1
    reader = rm.Engine(spark=spark, catalog="ours", schema="older_plugin")
    reader.add_catalog("ours", rm.HiveAcidConnector(metastore=metastore))
    assert rows_of(reader, select) == rows_of(hive, select) == [expected[0], *expected[2:]]


def test_an_update_of_a_partition_column_is_refused_in_the_plugins_words(hive: rm.Engine) -> None:
    hive.run(
        "CREATE TABLE moved (id bigint, part varchar) WITH (transactional = true,"
        " partitioned_by = ARRAY['part'])"
    )
    hive.run("INSERT INTO moved VALUES (1, 'p')")
    with pytest.raises(ConnectorError, match="partition"):
        hive.run("UPDATE moved SET part = 'q'", flow="updatable")
    assert rows_of(hive, "SELECT id, part FROM moved") == [(1, "p")]


def test_all_types_of_hive_survive_an_update(hive: rm.Engine) -> None:
    hive.run(
        "CREATE TABLE kinds (k integer, b boolean, i integer, l bigint, r real, d double,"
        " m decimal(9, 2), n decimal(38, 2), v varchar, x varbinary, a date, y array(integer),"
        f" z map(varchar, integer), w row(f integer, g varchar), t timestamp(3)) {ACID}"
    )
    moment = "TIMESTAMP '2024-02-29 12:30:00.500'"
    hive.run(f"INSERT INTO kinds SELECT q.*, {moment} FROM ({ALL_TYPES}) q")
    nulls = ", ".join(["NULL"] * (len(KINDS) + 1))
    hive.run(f"INSERT INTO kinds VALUES (2, {nulls})")
    before = rows_of(hive, "SELECT * FROM kinds ORDER BY k")
    assert before[0][6] == Decimal("1.25")
    assert hive.run("UPDATE kinds SET k = k + 10", flow="updatable").count == 2
    after = rows_of(hive, "SELECT * FROM kinds ORDER BY k")
    assert [(row[0] - 10, *row[1:]) for row in after] == before
    copies = ", ".join(f"{name} = {name}" for name in f"{KINDS}t")
    assert hive.run(f"UPDATE kinds SET {copies} WHERE k > 0", flow="updatable").count == 2
    assert rows_of(hive, "SELECT * FROM kinds ORDER BY k") == after


def test_an_update_that_fails_leaves_the_table(accounts: rm.Engine) -> None:
    before = rows_of(accounts, ACCOUNTS)
    with pytest.raises(rm.RowMergeError, match="Division by zero"):
        accounts.run("UPDATE accounts SET purchases = 1 / (purchases - 7)", flow="updatable")
    assert rows_of(accounts, ACCOUNTS) == before
    assert accounts.run("DELETE FROM accounts", flow="updatable").count == 3
