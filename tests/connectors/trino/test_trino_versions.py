"""System tables, versions and statistics of a plugin, on a host without Java."""

from __future__ import annotations

import json

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi import ConnectorSession, TableStatistics
from rowmerge_nb.spi.handles import SchemaTableName
from tests.connectors.trino.fake_connector import FakeTrinoConnector

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark, tmp_path):
    connector = FakeTrinoConnector(tmp_path)
    engine = rm.Engine(spark=spark)
    engine.add_catalog("shop", connector)
    engine.run("CREATE TABLE shop.default.accounts AS SELECT 1 AS id")
    yield engine
    connector.close()


def rows(engine, query):
    return engine.run(query).to_pandas().to_numpy().tolist()


def test_a_system_table_and_a_former_version_are_read(engine):
    ((version,),) = rows(engine, 'SELECT version FROM shop.default."accounts$versions"')
    engine.run("INSERT INTO shop.default.accounts VALUES 2")

    current = "SELECT id FROM shop.default.accounts"
    assert rows(engine, f"{current} ORDER BY id") == [[1], [2]]
    assert rows(engine, f"{current} FOR VERSION AS OF {version}") == [[1]]
    engine.run(
        "MERGE INTO shop.default.accounts t USING"
        f" (SELECT id FROM shop.default.accounts FOR VERSION AS OF {version}) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE"
    )
    assert rows(engine, current) == [[2]]
    with pytest.raises(ConnectorError, match="There is no version 99"):
        engine.run(f"{current} FOR VERSION AS OF 99")
    with pytest.raises(rm.RowMergeError, match="TABLE_NOT_FOUND"):
        engine.run('SELECT * FROM shop.default."accounts$shoes"')


def test_statistics_are_the_plugins_and_a_failure_is_a_notice(tmp_path):
    failure = {"message": "no statistics today", "code": "GENERIC_INTERNAL_ERROR"}
    fail = json.dumps({"call": "statistics", "error": failure})
    session, name = ConnectorSession("q1"), SchemaTableName("default", "accounts")
    for properties, expected in (({}, TableStatistics(0)), ({"fail": fail}, TableStatistics())):
        connector = FakeTrinoConnector(tmp_path, properties=properties)
        engine = rm.Engine()
        engine.add_catalog("shop", connector)
        engine.run("CREATE TABLE shop.default.accounts (id bigint)")
        transaction = connector.begin_transaction()
        metadata = connector.get_metadata(transaction)
        table = metadata.get_table_handle(session, name)
        assert metadata.get_table_statistics(session, table) == expected
        notices = connector.transaction_of(transaction).notices
        assert any("no statistics today" in notice for notice in notices) == bool(properties)
        connector.rollback(transaction)
        connector.close()
