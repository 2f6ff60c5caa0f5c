"""Ctrl-C during a long call of a plugin: the statement ends soon, and the call as well."""

from __future__ import annotations

import signal
import socket
import threading
import time

import pyarrow as pa
import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import StatementInterrupted
from rowmerge_nb.connectors.trino.host.abandoned_calls import AbandonedCalls
from tests.connectors.trino.fake_connector import FakeTrinoConnector


def test_a_call_is_interrupted_when_its_caller_vanishes():
    calls, (here, there) = AbandonedCalls(), socket.socketpair()
    ended = threading.Event()
    with there, calls.watched(there, ended.set):
        assert not ended.wait(0.3)
        here.close()
        assert ended.wait(5)


def test_a_call_that_has_ended_is_not_interrupted():
    calls, (here, there) = AbandonedCalls(), socket.socketpair()
    ended = threading.Event()
    with there:
        with calls.watched(there, ended.set):
            pass
        here.close()
        assert not ended.wait(0.5)


def test_a_call_of_java_ends_by_the_interrupt(blocks):
    described, _ = blocks.round_trip(pa.record_batch({"c0": [1]}), ["bigint"], "sleep")
    assert described["seconds"] < 20


@pytest.mark.parametrize("call", ["table_handle", "list_schemas", "system_table"])
def test_ctrl_c_during_a_metadata_call_ends_the_statement_and_nothing_has_changed(tmp_path, call):
    log = tmp_path / "log"
    connector = FakeTrinoConnector(tmp_path, properties={"slow": call, "log": str(log)})
    engine = rm.Engine()
    engine.add_catalog("shop", connector)
    connector.hosts.coordinator()

    def interrupt():
        while not log.exists() or call not in log.read_text().split():
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    name = '"accounts$versions"' if call == "system_table" else "accounts"
    statement = f"SHOW COLUMNS FROM shop.default.{name}"
    if call == "list_schemas":
        statement = "SHOW SCHEMAS FROM shop"
    threading.Thread(target=interrupt, daemon=True).start()
    start = time.monotonic()
    try:
        with pytest.raises(StatementInterrupted) as caught:
            engine.run(statement)
        assert time.monotonic() - start < 20
        assert caught.value.changed is False
        engine.run("CREATE TABLE shop.default.accounts (id bigint)")
        assert engine.run("SHOW TABLES FROM shop.default").to_pandas().iat[0, 0] == "accounts"
    finally:
        connector.close()
