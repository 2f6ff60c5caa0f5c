"""Killed processes of Trino's Iceberg plugin: the error describes the state of the table."""

from __future__ import annotations

import os
import signal
import threading

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.trino.host_process import HostProcess
from rowmerge_nb.connectors.trino.trino_metadata import TrinoMetadata
from rowmerge_nb.connectors.trino.trino_transactions import TrinoTransaction
from tests.connectors.trino.support import iceberg_properties

pytestmark = pytest.mark.spark

BEFORE = [(1, "a"), (2, "b"), (3, "c")]
AFTER = [(1, "new name"), (3, "c"), (9, "new")]


@pytest.fixture(scope="module")
def iceberg(spark, trino_home, java_home, tmp_path_factory):
    connector = rm.TrinoConnector(
        "iceberg",
        plugin=trino_home / "plugin" / "iceberg",
        trino=trino_home / "lib",
        properties=iceberg_properties(tmp_path_factory.mktemp("warehouse")),
        java=java_home,
        java_options=["-Xmx400m"],
    )
    engine = rm.Engine(spark=spark)
    engine.add_catalog("ice", connector)
    engine.run("CREATE SCHEMA ice.shop")
    yield engine, connector
    connector.close()


def fill(engine):
    engine.run("DROP TABLE IF EXISTS ice.shop.accounts")
    engine.run("CREATE TABLE ice.shop.accounts (id bigint, name varchar)")
    engine.run("INSERT INTO ice.shop.accounts VALUES (1, 'a'), (2, 'b'), (3, 'c')")


def merge(engine):
    return engine.run(
        """MERGE INTO ice.shop.accounts t
        USING (VALUES (1, 'new name'), (2, 'gone'), (9, 'new')) s(id, name) ON t.id = s.id
        WHEN MATCHED AND s.name = 'gone' THEN DELETE
        WHEN MATCHED THEN UPDATE SET name = s.name
        WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name)"""
    )


def rows(engine):
    frame = engine.run("SELECT id, name FROM ice.shop.accounts ORDER BY id").to_pandas()
    return [tuple(row) for row in frame.itertuples(index=False)]


def test_after_a_kill_before_the_finish_call_nothing_has_changed(iceberg, monkeypatch):
    engine, connector = iceberg
    fill(engine)
    finish = TrinoTransaction.finish

    def kill_and_finish(transaction, *arguments, **more):
        host = connector.hosts.running[0]
        os.kill(host.pid, signal.SIGKILL)
        host._process.wait()
        return finish(transaction, *arguments, **more)

    with monkeypatch.context() as patched:
        patched.setattr(TrinoTransaction, "finish", kill_and_finish)
        with pytest.raises(RowMergeError, match=r"HOST_TERMINATED.*SIGKILL") as caught:
            merge(engine)
    assert caught.value.changed is False
    assert rows(engine) == BEFORE
    merge(engine)
    assert rows(engine) == AFTER


def test_after_a_kill_in_the_finish_call_the_outcome_is_unknown(iceberg, monkeypatch):
    engine, _ = iceberg
    fill(engine)
    request = HostProcess.request

    def request_and_kill(host, call, *arguments, **more):
        if call == "finish_merge":
            threading.Timer(0.03, os.kill, [host.pid, signal.SIGKILL]).start()
        return request(host, call, *arguments, **more)

    with monkeypatch.context() as patched:
        patched.setattr(HostProcess, "request", request_and_kill)
        with pytest.raises(RowMergeError, match=r"HOST_TERMINATED.*SIGKILL") as caught:
            merge(engine)
    assert caught.value.changed is None
    assert "Check the table" in caught.value.hint
    assert rows(engine) in (BEFORE, AFTER)
    fill(engine)
    merge(engine)
    assert rows(engine) == AFTER


def test_after_a_kill_of_the_process_of_tasks_nothing_has_changed(iceberg, monkeypatch):
    engine, connector = iceberg
    fill(engine)
    begin_merge = TrinoMetadata.begin_merge

    def stop_and_kill(metadata, *arguments, **more):
        handle = begin_merge(metadata, *arguments, **more)
        pid = connector.hosts.running[-1].pid
        # The tasks' first call waits for a process that is stopped and then killed.
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(2, os.kill, [pid, signal.SIGKILL]).start()
        return handle

    with monkeypatch.context() as patched:
        patched.setattr(TrinoMetadata, "begin_merge", stop_and_kill)
        with pytest.raises(RowMergeError, match=r"HOST_TERMINATED.*during") as caught:
            merge(engine)
    assert caught.value.changed is False
    assert rows(engine) == BEFORE
    notices = merge(engine).trace.notices
    assert rows(engine) == AFTER
    assert not [notice for notice in notices if "is lost" in notice.message]
