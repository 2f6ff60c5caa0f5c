"""Replays of records on a plugin of Trino, with and without a debugger of Java."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.trino import java_debugging
from rowmerge_nb.connectors.trino.host_process import HostProcess
from rowmerge_nb.replays import case
from tests.connectors.trino.fake_connector import FakeTrinoConnector
from tests.connectors.trino.support import iceberg_properties

CASE = case(
    table="shop.accounts",
    columns={"id": "bigint", "name": "varchar"},
    rows=[(1, "a"), (2, "b"), (3, None)],
    pages=[
        (0, [("DELETE", 0, (None, None)), ("INSERT", None, (1, "x"))]),
        (1, [("INSERT", None, (9, "new"))]),
    ],
)


FILLED = case(
    table="default.accounts",
    columns={"id": "bigint", "name": "varchar"},
    rows=[(1, "a"), (2, "b")],
    pages=[(0, [("DELETE", 0, (None, None)), ("INSERT", None, (9, "x"))])],
)


def count_starts(monkeypatch):
    """Return a list to which each new process is added."""
    starts: list[HostProcess] = []
    start = HostProcess.__init__

    def counted(self, *arguments):
        starts.append(self)
        start(self, *arguments)

    monkeypatch.setattr(HostProcess, "__init__", counted)
    return starts


def free_port() -> int:
    with socket.socket() as attempt:
        attempt.bind(("127.0.0.1", 0))
        return attempt.getsockname()[1]


@pytest.fixture
def make_iceberg(trino_home, java_home):
    def make(folder):
        return rm.TrinoConnector(
            "iceberg",
            plugin=trino_home / "plugin" / "iceberg",
            trino=trino_home / "lib",
            properties={**iceberg_properties(folder), "bootstrap.quiet": True},
            java=java_home,
            java_options=["-Xmx700m"],
        )

    return make


class Debugger:
    """A jdb that stops in a method, and goes on."""

    def __init__(self, java_home, port, method):
        self._program = [str(java_home / "bin" / "jdb"), "-attach", f"127.0.0.1:{port}"]
        self._method = method
        self.output = ""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()

    def wait(self):
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self):
        with subprocess.Popen(
            self._program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as jdb:
            jdb.stdin.write(f"stop in {self._method}\nresume\n")
            jdb.stdin.flush()
            is_at_breakpoint = False
            while piece := os.read(jdb.stdout.fileno(), 4096).decode():
                self.output += piece
                if not is_at_breakpoint and re.search(r"Breakpoint hit[\s\S]*\[1\] ", self.output):
                    is_at_breakpoint = True
                    jdb.stdin.write("where\nclear " + self._method + "\ncont\n")
                    jdb.stdin.flush()
            jdb.wait(20)


def test_a_debugger_of_java_stops_in_the_sink_at_the_replayed_page(
    make_iceberg, java_home, monkeypatch
):
    port = free_port()
    debugger = Debugger(java_home, port, "io.trino.plugin.iceberg.IcebergMergeSink.storeMergedRows")
    prompts = []

    def note(text, **_):
        prompts.append(text)
        debugger.start()

    monkeypatch.setattr(java_debugging, "print", note, raising=False)

    done = rm.replay(CASE, make_iceberg, debug=port)
    debugger.wait()

    assert [text.partition(".")[0] for text in prompts] == [
        f"Attach a debugger to port {port}; waiting"
    ]
    assert "Breakpoint hit" in debugger.output
    assert "IcebergMergeSink.storeMergedRows (IcebergMergeSink.java:" in debugger.output
    assert done.agrees, done


@pytest.mark.parametrize("port", [0, 70_000, True, "5005", 5005.0])
def test_an_invalid_port_is_an_error_before_anything_starts(port):
    with pytest.raises(RowMergeError, match=r"debug = .*Pass a port between 1 and 65535"):
        rm.replay(CASE, lambda: pytest.fail("it has started"), debug=port)


def test_a_port_in_use_is_an_error_before_anything_starts():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(RowMergeError, match=f"Port {port} of this machine cannot be used"):
            rm.replay(CASE, lambda: pytest.fail("it has started"), debug=port)


def test_a_connector_in_python_has_no_debugger_of_java():
    with pytest.raises(RowMergeError, match=r"MemoryConnector is in Python.*breakpoint\(\)"):
        rm.replay(CASE, MemoryConnector, debug=free_port())


@pytest.mark.not_quick
def test_the_calls_of_tasks_or_of_the_coordinator_are_made_in_the_debugged_process(
    tmp_path, monkeypatch
):
    prompts = []
    monkeypatch.setattr(
        java_debugging, "print", lambda text, **_: prompts.append(text), raising=False
    )
    connector = FakeTrinoConnector(tmp_path, processes=2)
    try:
        connector.hosts.coordinator()
        hosts = connector.hosts.running
        with connector.debugging(5005):
            debugged = connector.hosts.running
            assert debugged[0] is hosts[0]
            assert connector.get_page_sink_provider().socket_path == debugged[1].socket_path
            assert debugged[1] is not hosts[1]
        assert connector.hosts.running == hosts
        with connector.debugging(5005, coordinator=True):
            debugged = connector.hosts.running
            assert (debugged[0] is hosts[0], debugged[1] is hosts[1]) == (False, True)
        with connector.debugging(5005):
            # Like a debugger that ends the process.
            os.kill(connector.hosts.running[1].pid, signal.SIGKILL)
            connector.get_page_sink_provider()
        assert connector.hosts.running == hosts
        with connector.debugging(5005):
            connector.close()
        assert not any(host.is_alive for host in hosts)
    finally:
        connector.close()
    assert [text.split(" starts")[0].rpartition(" of ")[2] for text in prompts] == [
        "the tasks",
        "the coordinator",
        "the tasks",
        "the tasks",
    ]


def test_a_plugin_with_rows_in_memory_waits_before_the_table_is_created(tmp_path, monkeypatch):
    monkeypatch.setattr(java_debugging, "print", lambda *_, **__: None, raising=False)
    starts = count_starts(monkeypatch)
    done = rm.replay(FILLED, lambda: FakeTrinoConnector(tmp_path), debug=free_port())
    assert done.agrees, done
    assert len(starts) == 1

    connector = FakeTrinoConnector(tmp_path)
    try:
        connector.hosts.coordinator()
        with pytest.raises(RowMergeError, match="in a process that runs already"):
            rm.replay(FILLED, connector, debug=free_port())
    finally:
        connector.close()


def test_an_interrupt_ends_the_wait_for_a_debugger(make_iceberg, monkeypatch):
    port = free_port()

    def interrupt(*_, **__):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    monkeypatch.setattr(java_debugging, "print", interrupt, raising=False)
    with pytest.raises(KeyboardInterrupt):
        rm.replay(CASE, make_iceberg, debug=port)
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        attempt.bind(("127.0.0.1", port))


WRONG = case(
    table="shop.accounts",
    columns={"id": "bigint", "name": "varchar"},
    rows=[(number, "a") for number in range(4)],
    pages=[
        (0, [("INSERT", None, (number, "x")) for number in range(20, 24)]),
        (1, [("INSERT", None, (None, "none")), ("INSERT", None, (50, "y"))]),
    ],
    not_null=["id"],
)


def test_shrinking_uses_one_process_for_all_tries(make_iceberg, monkeypatch):
    starts = count_starts(monkeypatch)
    failing = rm.replay(WRONG, make_iceberg)
    assert failing.failed, failing
    starts.clear()

    done = failing.shrink(seconds=60)

    assert len(starts) == 2  # the coordinator's and that of the tasks
    assert not any(host.is_alive for host in starts)
    assert done.record.page_rows == 1, done
    assert done.record.rows.num_rows == 0
    assert done.step == failing.step


def test_shrinking_keeps_the_process_and_the_class_of_javas_exception(tmp_path, monkeypatch):
    failure = {"message": "shelf is full", "code": "SHOP_ERROR"}
    fail = json.dumps({"call": "store_merged_rows", "error": failure})
    starts = count_starts(monkeypatch)

    def make():
        return FakeTrinoConnector(tmp_path, properties={"fail": fail})

    pages = [(0, [("INSERT", None, (8, "x")), ("INSERT", None, (9, "x"))])]
    columns = {"id": "bigint", "name": "varchar"}
    failing = rm.replay(case(columns=columns, rows=[(1, "a"), (2, "b")], pages=pages), make)
    done = failing.shrink()

    assert len(starts) == 2  # that of the replay, and that of all tries
    assert done.step == "store_merged_rows"
    assert done.record.page_rows == 1
    assert done.record.rows.num_rows == 0
    assert done.origin == failing.origin
