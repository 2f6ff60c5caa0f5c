"""The connector on a host without Java: statements, conflicts, ends of the process, rebuilt jars."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import threading
import time
from contextlib import suppress

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import ConnectorError, SetupError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.trino.plugin_hosts import REBUILT
from rowmerge_nb.connectors.trino.trino_connector import TrinoConnector
from rowmerge_nb.connectors.trino.trino_errors import PluginError
from rowmerge_nb.spi import ColumnMetadata, ConnectorSession, ConnectorTableMetadata
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.types import BIGINT, VARCHAR
from tests.connectors.trino.fake_connector import FakeTrinoConnector

SESSION = ConnectorSession("q1")
NAME = SchemaTableName("default", "accounts")
MERGE = """MERGE INTO shop.default.accounts t
USING (VALUES (1, 'new name'), (2, 'gone'), (9, 'new')) s(id, name) ON t.id = s.id
WHEN MATCHED AND s.name = 'gone' THEN DELETE
WHEN MATCHED THEN UPDATE SET name = s.name
WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name)"""


@pytest.fixture
def connector(tmp_path):
    connector = FakeTrinoConnector(tmp_path, properties={"log": str(tmp_path / "log")})
    yield connector
    connector.close()


def create(connector, *columns):
    transaction = connector.begin_transaction()
    metadata = connector.get_metadata(transaction)
    columns = columns or (ColumnMetadata("id", BIGINT), ColumnMetadata("name", VARCHAR))
    metadata.create_table(SESSION, ConnectorTableMetadata(NAME, columns))
    connector.commit(transaction)


def end(pid):
    os.kill(pid, signal.SIGKILL)
    for _ in range(100):
        with suppress(OSError):
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
        time.sleep(0.01)


@pytest.mark.spark
@pytest.mark.parametrize("era", ["documents", "current"])
def test_a_merge_changes_the_rows_through_the_plugins_sink(spark, connector, era):
    engine = rm.Engine(spark=spark)
    engine.add_catalog("shop", connector)
    engine.run("CREATE TABLE shop.default.accounts (id bigint, name varchar)")
    engine.run("INSERT INTO shop.default.accounts VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)")

    result = engine.run(MERGE, era=era)

    assert result.counts == {"INSERT": 1, "UPDATE": 1, "DELETE": 1, "none": 0}
    says_era = [notice for notice in result.trace.notices if "--era current" in notice.message]
    assert len(says_era) == (era == "documents")
    rows = engine.run("SELECT * FROM shop.default.accounts WHERE name IS NOT NULL ORDER BY id")
    assert rows.to_pandas().to_numpy().tolist() == [[1, "new name"], [3, "c"], [9, "new"]]
    count = engine.run("SELECT count(*) FROM shop.default.accounts WHERE name IS NULL")
    assert count.to_pandas().iat[0, 0] == 1
    path = engine.run('SELECT DISTINCT "$path" FROM shop.default.accounts')
    assert path.to_pandas().iat[0, 0] == "shop"


@pytest.mark.spark
def test_a_merge_asks_the_plugin_for_the_buckets_of_its_partitioning(spark, connector, tmp_path):
    engine = rm.Engine(spark=spark)
    engine.add_catalog("shop", connector)
    engine.run("CREATE TABLE shop.default.accounts (id bigint, part_name varchar)")
    engine.run(MERGE.replace("name =", "part_name =").replace("s.part_name", "s.name"))

    assert {"bucket_function", "buckets"} <= set((tmp_path / "log").read_text().split())
    count = engine.run("SELECT count(*) FROM shop.default.accounts")
    assert count.to_pandas().iat[0, 0] == 3


def test_java_starts_with_the_first_request_and_ends_with_close(connector):
    assert connector.hosts.running == []
    create(connector)
    (host,) = connector.hosts.running
    connector.close()
    assert not host.is_alive
    assert connector.hosts.running == []


def test_tasks_have_a_process_of_their_own_unless_one_process_is_requested(tmp_path):
    connector = FakeTrinoConnector(tmp_path, processes=2)
    try:
        create(connector)
        assert len({host.pid for host in connector.hosts.running}) == 2
    finally:
        connector.close()


def test_one_or_two_processes_may_be_requested(tmp_path):
    with pytest.raises(SetupError, match="processes = 3 is not 1 or 2"):
        FakeTrinoConnector(tmp_path, processes=3)


@pytest.mark.parametrize("commits_in_finish", [True, False])
def test_the_plugin_declares_when_its_writes_take_effect(tmp_path, commits_in_finish):
    greeting = json.dumps({"commits_in_finish": commits_in_finish})
    connector = FakeTrinoConnector(tmp_path, properties={"greeting": greeting})
    try:
        assert connector.commits_in_finish is commits_in_finish
        end(connector.hosts.running[0].pid)
        assert connector.commits_in_finish is commits_in_finish
        assert connector.hosts.running == []
    finally:
        connector.close()


def test_a_process_that_ended_is_an_error_and_the_next_statement_starts_another(connector):
    create(connector)
    transaction = connector.begin_transaction()
    metadata = connector.get_metadata(transaction)
    assert metadata.get_table_handle(SESSION, NAME) is not None
    end(connector.hosts.running[0].pid)

    with pytest.raises(ConnectorError, match="HOST_TERMINATED") as caught:
        metadata.list_tables(SESSION)
    assert caught.value.changed is False
    connector.rollback(transaction)

    create(connector)


def test_after_an_end_within_a_finish_call_the_outcome_is_unknown(tmp_path):
    connector = FakeTrinoConnector(tmp_path, properties={"exit": "finish_merge"})
    try:
        create(connector)
        transaction = connector.begin_transaction()
        metadata = connector.get_metadata(transaction)
        handle = metadata.begin_merge(SESSION, metadata.get_table_handle(SESSION, NAME))
        with pytest.raises(ConnectorError, match=r"exit code 7.*out of coffee") as caught:
            metadata.finish_merge(SESSION, handle, [])
        assert caught.value.changed is None
        connector.rollback(transaction)
    finally:
        connector.close()


def test_after_an_end_before_the_finish_call_nothing_has_changed(connector):
    create(connector)
    transaction = connector.begin_transaction()
    metadata = connector.get_metadata(transaction)
    handle = metadata.begin_merge(SESSION, metadata.get_table_handle(SESSION, NAME))
    end(connector.hosts.running[0].pid)
    with pytest.raises(ConnectorError, match="HOST_TERMINATED") as caught:
        metadata.finish_merge(SESSION, handle, [])
    assert caught.value.changed is False
    connector.rollback(transaction)


def test_a_conflict_of_the_plugin_is_a_transaction_conflict(connector):
    create(connector)
    first, second = connector.begin_transaction(), connector.begin_transaction()
    handles = []
    for transaction in (first, second):
        metadata = connector.get_metadata(transaction)
        table = metadata.get_table_handle(SESSION, NAME)
        handles.append(metadata.begin_merge(SESSION, table))
    connector.get_metadata(first).finish_merge(SESSION, handles[0], [])
    with pytest.raises(ConnectorError) as caught:
        connector.get_metadata(second).finish_merge(SESSION, handles[1], [])
    assert caught.value.code == "TRANSACTION_CONFLICT"
    connector.commit(first)
    connector.rollback(second)


def test_an_exception_keeps_its_code_and_its_frames_of_java(tmp_path):
    failure = {"message": "disk on fire", "code": "ICEBERG_FILESYSTEM_ERROR"}
    fail = json.dumps({"call": "list_schemas", "error": failure})
    connector = FakeTrinoConnector(tmp_path, properties={"fail": fail})
    try:
        transaction = connector.begin_transaction()
        with pytest.raises(PluginError) as caught:
            connector.get_metadata(transaction).list_schemas(SESSION)
        connector.rollback(transaction)
    finally:
        connector.close()
    assert caught.value.code == "ICEBERG_FILESYSTEM_ERROR"
    assert caught.value.hint == "In Java: shop.ShopMetadata.call(ShopMetadata.java:12)."
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.java_class == caught.value.java_class


def test_rebuilt_jars_are_used_by_the_next_statement_and_reported(connector, tmp_path):
    create(connector)
    first = connector.hosts.running[0]
    (tmp_path / "plugin" / "shop.jar").write_bytes(b"rebuilt")
    create(connector)
    second = connector.hosts.running[0]
    assert not first.is_alive
    assert first.pid != second.pid

    (tmp_path / "plugin" / "shop.jar").write_bytes(b"rebuilt again")
    transaction = connector.begin_transaction()
    connector.get_metadata(transaction).list_schemas(SESSION)
    assert connector.transaction_of(transaction).notices == [REBUILT]
    connector.rollback(transaction)


@pytest.mark.spark
def test_rebuilt_jars_are_used_after_a_lost_answer(spark, connector, tmp_path):
    engine = rm.Engine(spark=spark)
    engine.add_catalog("shop", connector)
    create_table = "CREATE TABLE shop.default.accounts (id bigint, name varchar)"
    engine.run(create_table)
    (first,) = connector.hosts.running
    with pytest.raises(rm.RowMergeError) as caught:
        engine.run(MERGE, fault="finish_merge:after")
    # The table was read: it has the rows.
    assert caught.value.changed is True
    (tmp_path / "plugin" / "shop.jar").write_bytes(b"rebuilt")
    # The tables of this plugin are in its process, which is a new one now.
    engine.run(create_table)
    assert not first.is_alive


def test_rebuilt_jars_are_used_although_a_finish_call_hangs(tmp_path, monkeypatch):
    connector = FakeTrinoConnector(tmp_path, properties={"hang": "finish_merge"})
    create(connector)
    transaction = connector.begin_transaction()
    metadata = connector.get_metadata(transaction)
    handle = metadata.begin_merge(SESSION, metadata.get_table_handle(SESSION, NAME))
    failures = []

    def finish():
        with pytest.raises(ConnectorError) as caught:
            metadata.finish_merge(SESSION, handle, [])
        failures.append(caught.value)

    thread = threading.Thread(target=finish)
    thread.start()
    (first,) = connector.hosts.running
    while not first._calls:
        time.sleep(0.01)
    (tmp_path / "plugin" / "shop.jar").write_bytes(b"rebuilt")
    read_schemas(connector)
    assert connector.hosts.running == [first]

    monkeypatch.setattr("rowmerge_nb.connectors.trino.host_process.HANGING_SECONDS", 0)
    read_schemas(connector)
    (second,) = connector.hosts.running
    assert second is not first
    assert first.is_alive
    connector.close()
    thread.join()
    assert not first.is_alive
    assert failures[0].changed is None


def read_schemas(connector):
    transaction = connector.begin_transaction()
    connector.get_metadata(transaction).list_schemas(SESSION)
    connector.commit(transaction)


def test_a_plugin_that_does_not_start_names_the_reason(tmp_path):
    refusal = "Invalid configuration property shelf: must not be null"
    connector = FakeTrinoConnector(tmp_path, properties={"refuse": refusal})
    transaction = connector.begin_transaction()
    for _ in range(2):
        with pytest.raises(ConnectorError, match="CONFIGURATION_INVALID: Invalid configuration"):
            connector.get_metadata(transaction).list_schemas(SESSION)
    connector.rollback(transaction)
    connector.close()


def test_an_unknown_session_property_is_an_error_of_the_plugin(tmp_path):
    connector = FakeTrinoConnector(tmp_path, session={"target_sise": 5})
    transaction = connector.begin_transaction()
    with pytest.raises(ConnectorError, match="no session property target_sise"):
        connector.get_metadata(transaction).list_schemas(SESSION)
    connector.rollback(transaction)
    connector.close()


def test_a_type_that_pages_cannot_hold_is_named(connector):
    create(connector)
    from rowmerge_nb.connectors.trino.type_names import type_of

    with pytest.raises(ConnectorError, match="'visitors' has the type HyperLogLog"):
        type_of("HyperLogLog", "visitors")


def test_a_connector_without_jpype_names_the_package_to_install(tmp_path, monkeypatch):
    (tmp_path / "shop.jar").touch()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SetupError, match=re.escape(install_command("trino"))):
        TrinoConnector("iceberg", plugin=tmp_path, trino=tmp_path)


def test_a_catalog_file_has_name_and_properties(tmp_path, monkeypatch):
    monkeypatch.setenv("WAREHOUSE", "/lake")
    file = tmp_path / "ice.properties"
    file.write_text(
        "# ours\nconnector.name = memory\n\nlog=${ENV:WAREHOUSE}/\\\n  log\nurl: jdbc\\:x\n"
    )
    connector = FakeTrinoConnectorOfFile.from_catalog_file(file, plugin=tmp_path, trino=tmp_path)
    assert connector.connector_name == "memory"
    assert connector.properties == {"log": "/lake/log", "url": "jdbc:x"}
    connector.close()


class FakeTrinoConnectorOfFile(FakeTrinoConnector):
    def __init__(self, name, *, plugin, trino, **arguments):
        super().__init__(plugin, name, **arguments)


def test_a_field_that_json_loses_is_a_notice_with_its_class(tmp_path):
    lost = {"class": "shop.ShopMerge", "field": "shelf", "before": "A7", "after": "null"}
    connector = FakeTrinoConnector(tmp_path, properties={"lost": json.dumps([lost])})
    try:
        create(connector)
        transaction = connector.begin_transaction()
        metadata = connector.get_metadata(transaction)
        handle = metadata.begin_merge(SESSION, metadata.get_table_handle(SESSION, NAME))
        output = metadata.finish_merge(SESSION, handle, [])
        connector.commit(transaction)
    finally:
        connector.close()
    (notice,) = output.notices
    assert notice.startswith("The field shop.ShopMerge.shelf is lost in the JSON of its handle")
    assert repr(handle).startswith("ShopMerge(updated={}, ")


def test_options_of_java_are_a_list(tmp_path):
    with pytest.raises(rm.RowMergeError, match=r"java_options = '-Xmx1g' .* such as \['-Xmx2g'\]"):
        FakeTrinoConnector(tmp_path, java_options="-Xmx1g")
