"""Killed processes, interrupts and an ending Java, in each phase of a MERGE on a Java plugin."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import ConnectorError, RowMergeError, StatementInterrupted
from tests.connectors.trino.shelf_catalog import AFTER, BEFORE, ShelfCatalog
from tests.connectors.trino.shelf_plugin import ShelfBuild, troubles

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def build(trino_home, java_home, tmp_path_factory):
    return ShelfBuild(trino_home / "lib", java_home, tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def shelf(spark, build, trino_home, java_home, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    catalog = ShelfCatalog(
        rm.Engine(spark=spark), build, folder, trino_home / "lib", java_home, *troubles()
    )
    yield catalog
    hosts = catalog.connector.hosts.running
    sockets = [Path(host.socket_path).parent for host in hosts]
    catalog.connector.close()
    assert not [host for host in hosts if host.is_alive]
    assert not [path for path in sockets if path.exists()]


def next_statement_works(shelf, rows):
    """The table is correct, and a further statement leaves no files of the failed one."""
    assert shelf.rows() == rows
    shelf.engine.run("UPDATE shelf.shop.accounts SET city = 'there' WHERE id = 3")
    expected = [(i, name, "there" if i == 3 else city) for i, name, city in rows]
    assert shelf.rows() == expected
    # One for the INSERT, one or two for the MERGE, one for the UPDATE.
    assert len(shelf.data_files()) <= (4 if rows == AFTER else 2)
    assert len(shelf.connector.hosts.running) == 2


@pytest.mark.parametrize(
    ("place", "side", "changed", "call"),
    [
        ("beginMerge", 0, False, "begin_merge"),
        ("createMergeSink", -1, False, "create_merge_sink"),
        ("storeMergedRows", -1, False, "store_merged_rows"),
        ("finish", -1, False, "finish"),
        ("finish", 0, False, ""),
        ("finishMerge", 0, None, ""),
        ("committed", 0, None, ""),
    ],
)
def test_the_error_of_a_process_killed_in_a_phase_names_what_has_changed(
    shelf, place, side, changed, call
):
    shelf.fill()
    hosts = shelf.connector.hosts.running
    shelf.make_trouble(place, "kill", shelf.connector.hosts.running[side].pid)
    with pytest.raises(RowMergeError) as caught:
        shelf.merge()
    error = caught.value
    assert shelf.wait_for("reached", 0)
    assert (error.code, error.changed) == ("HOST_TERMINATED", changed)
    assert call in error.message or "SIGKILL" in error.message
    next_statement_works(shelf, AFTER if place == "committed" else BEFORE)
    ended = [host for host in hosts if host not in shelf.connector.hosts.running]
    assert len(ended) == 1
    assert not Path(ended[0].socket_path).parent.exists()


def test_a_process_killed_after_the_finish_call_has_changed_the_table(shelf):
    shelf.fill()
    shelf.make_trouble("commit", "kill")
    result = shelf.merge()
    assert shelf.wait_for("reached", 0)
    assert result.counts["UPDATE"] == 1
    next_statement_works(shelf, AFTER)


@pytest.mark.parametrize("side", [0, -1])
def test_a_process_killed_before_a_statement_is_replaced(shelf, side):
    shelf.fill()
    host = shelf.connector.hosts.running[side]
    os.kill(host.pid, signal.SIGKILL)
    while host.is_alive:
        time.sleep(0.01)
    shelf.merge()
    next_statement_works(shelf, AFTER)


def test_a_process_of_tasks_killed_before_its_first_call_is_replaced(shelf):
    shelf.fill()
    shelf.make_trouble("beginMerge", "kill", shelf.connector.hosts.running[-1].pid)
    shelf.merge()
    assert shelf.wait_for("reached", 0)
    next_statement_works(shelf, AFTER)


@pytest.mark.parametrize("place", ["beginMerge", "createMergeSink", "storeMergedRows", "finish"])
def test_ctrl_c_ends_a_plugin_that_hangs_before_the_finish_call(shelf, place):
    shelf.fill()
    pids = [host.pid for host in shelf.connector.hosts.running]
    shelf.make_trouble(place, "hang")
    threading.Thread(target=interrupt_when_reached, args=[shelf]).start()
    with pytest.raises(StatementInterrupted) as caught:
        shelf.merge()
    assert caught.value.changed is False
    assert shelf.wait_for("interrupted", 10)
    next_statement_works(shelf, BEFORE)
    assert [host.pid for host in shelf.connector.hosts.running] == pids


def test_a_killed_worker_of_spark_ends_its_call_in_java_and_another_attempt_stores_the_rows(shelf):
    shelf.fill()
    shelf.make_trouble("storeMergedRows", "hang")
    threading.Thread(target=kill_workers_when_reached, args=[shelf]).start()
    result = shelf.merge()
    assert result.counts == {"INSERT": 1, "UPDATE": 1, "DELETE": 1, "none": 0}
    assert shelf.wait_for("interrupted", 10)
    next_statement_works(shelf, AFTER)


def kill_workers_when_reached(shelf):
    if shelf.wait_for("reached"):
        for pid in python_workers():
            os.kill(pid, signal.SIGKILL)


def python_workers():
    """Processes of Spark's tasks, forked by its daemon, below this process."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            pid = int(folder.name)
            parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            commands[pid] = (folder / "cmdline").read_bytes()
    processes = {
        pid
        for pid, command in commands.items()
        if b"rowmerge_nb.engine.spark.worker" in command
        and b"java" not in command.partition(b"\0")[0]
        and is_ours(pid, parents)
    }
    return [pid for pid in processes if parents[pid] in processes]


def is_ours(pid, parents):
    while pid in parents:
        pid = parents[pid]
        if pid == os.getpid():
            return True
    return False


def test_ctrl_c_waits_for_the_finish_call(shelf):
    shelf.fill()
    shelf.make_trouble("finishMerge", "wait")
    threading.Thread(target=interrupt_when_reached, args=[shelf]).start()
    with pytest.raises(StatementInterrupted) as caught:
        shelf.merge()
    assert caught.value.changed is True
    assert not shelf.wait_for("interrupted", 0)
    next_statement_works(shelf, AFTER)


def interrupt_when_reached(shelf):
    if shelf.wait_for("reached"):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("trouble", "argument", "words", "hint"),
    [
        ("exit", "", ["Runtime.exit() called with status: 3", "Trouble.java"], "new process"),
        ("memory", "", ["java.lang.OutOfMemoryError"], "java_options=['-Xmx2g']"),
    ],
)
def test_a_java_that_ends_itself_names_the_reason(shelf, trouble, argument, words, hint):
    shelf.fill()
    shelf.make_trouble("storeMergedRows", trouble, argument)
    with pytest.raises(ConnectorError) as caught:
        shelf.merge()
    assert caught.value.code == "HOST_TERMINATED"
    assert "during store_merged_rows" in caught.value.message
    assert all(word in caught.value.message for word in words)
    assert hint in caught.value.hint
    next_statement_works(shelf, BEFORE)


@pytest.mark.parametrize(
    ("trouble", "argument", "java_class", "hint"),
    [
        ("overflow", "", "java.lang.StackOverflowError", "Trouble.overflow(Trouble.java:"),
        (
            "missing",
            "com/google/common/base/Joiner",
            "java.lang.NoClassDefFoundError",
            "Trino's lib has it in guava-",
        ),
    ],
)
def test_an_error_of_java_is_an_error_of_the_call(shelf, trouble, argument, java_class, hint):
    shelf.fill()
    pids = [host.pid for host in shelf.connector.hosts.running]
    shelf.make_trouble("finish", trouble, argument)
    with pytest.raises(ConnectorError) as caught:
        shelf.merge()
    (raised, *_) = caught.value.raised
    assert (raised.method, raised.caller, raised.error) == ("finish", "writer", java_class)
    assert hint in caught.value.hint
    next_statement_works(shelf, BEFORE)
    assert [host.pid for host in shelf.connector.hosts.running] == pids


def test_a_plugin_that_prints_100_mb_does_not_block_and_its_log_is_emptied(shelf):
    shelf.fill()
    shelf.make_trouble("storeMergedRows", "print")
    shelf.merge()
    next_statement_works(shelf, AFTER)
    assert shelf.connector.hosts.running[-1].log.path.stat().st_size < 16 * 1024 * 1024
