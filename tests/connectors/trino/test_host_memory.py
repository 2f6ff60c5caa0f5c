"""Trino's memory plugin in one host, and the life of a host process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowmerge_nb.connectors.trino.host_channel import ChannelClosedError
from tests.connectors.trino.support import SESSION, Connection, Host, HostError, start_host

if TYPE_CHECKING:
    from collections.abc import Iterator

REAL_PLUGIN = "memory"
COLUMNS = [{"name": "id", "type": "bigint"}, {"name": "name", "type": "varchar(20)"}]
TYPES = ["bigint", "varchar(20)"]


@pytest.fixture(scope="module")
def host(
    trino_home: Path, java_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    """A host whose plugin keeps its pages in the process: it does the tasks' work too."""
    started = start_host(
        tmp_path_factory.mktemp("memory") / "host", trino_home, java_home, "memory"
    )
    assert "ready" in started.wait()
    yield started
    assert started.close() == 0


@pytest.fixture
def driver(host: Host) -> Iterator[Connection]:
    yield host.connect()
    host.disconnect()


def test_rows_are_read_back_from_memory_and_a_table_from_a_query(driver: Connection) -> None:
    begun = driver.call("begin_transaction", session=SESSION)
    number, transaction = begun["transaction"], begun["handle"]
    created = driver.call(
        "begin_create_table", transaction=number, schema="default", table="t", columns=COLUMNS
    )
    driver.call(
        "create_page_sink",
        transaction=transaction,
        session=SESSION,
        handle=created["handle"],
        credentials=created["credentials"],
        types=TYPES,
    )
    batch = pa.record_batch({"id": pa.array([1, 2, None]), "name": ["a", None, "c"]})
    driver.store("append_page", batch)
    fragments = driver.finish_sink()
    driver.finish_write("finish_create_table", number, created["handle"], fragments)
    driver.call("commit", transaction=number)

    begun = driver.call("begin_transaction", session=SESSION)
    number, transaction = begun["transaction"], begun["handle"]
    table = driver.call("table_handle", transaction=number, schema="default", table="t")["handle"]
    columns = driver.call("column_handles", transaction=number, table=table)
    scan = driver.call("splits", transaction=number, table=table)
    rows = [
        row
        for split in scan["splits"]
        for page in driver.pages(
            transaction=transaction,
            split=split,
            table=scan["table"],
            credentials=scan["credentials"],
            columns=[columns["name"], columns["id"]],
            types=TYPES[::-1],
        )
        for row in page.to_pylist()
    ]
    assert sorted(rows, key=str) == sorted(
        [{"c0": "a", "c1": 1}, {"c0": None, "c1": 2}, {"c0": "c", "c1": None}], key=str
    )
    driver.call(
        "open_scan",
        transaction=transaction,
        session=SESSION,
        split=scan["splits"][0],
        table=scan["table"],
        credentials=scan["credentials"],
        columns=[],
        types=[],
    )
    # A page without columns still has its number of rows.
    assert driver.call("next_page")["rows"] == 3
    driver.call("close")
    with pytest.raises(HostError) as error:
        driver.call("merge_row_id", transaction=number, table=table)
    described = error.value.described
    assert (described["code"], described["class"]) == (
        "NOT_SUPPORTED",
        "io.trino.spi.TrinoException",
    )
    assert described["message"] == "This connector does not support modifying table rows"
    driver.call("rollback", transaction=number)


def test_two_connections_are_served_concurrently(host: Host, driver: Connection) -> None:
    other = host.connect()
    numbers = [_begin(driver), _begin(other)]
    assert len(set(numbers)) == 2
    for each, number in zip((other, driver), numbers, strict=True):
        assert each.call("list_schemas", transaction=number) == ["default"]
        each.call("rollback", transaction=number)


def _begin(driver: Connection) -> int:
    return driver.call("begin_transaction", session=SESSION)["transaction"]


def test_an_invalid_message_ends_only_its_connection(host: Host, driver: Connection) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(host.path))
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    assert driver.call("hello")["connector"] == "memory"


def test_the_plugin_class_is_found_without_a_service_file_in_the_jars(
    trino_home: Path, java_home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    for jar in (trino_home / "plugin" / "memory").glob("*.jar"):
        with zipfile.ZipFile(jar) as content:
            if "META-INF/services/io.trino.spi.Plugin" in content.namelist():
                assert not any(name.endswith(".class") for name in content.namelist())
                continue
        (folder / jar.name).symlink_to(jar)
    started = start_host(tmp_path / "host", trino_home, java_home, [str(folder)])
    ready = started.wait()
    assert ready["ready"]["class"] == "io.trino.plugin.memory.MemoryPlugin"
    assert started.close() == 0


@pytest.mark.parametrize(
    ("settings", "code", "text"),
    [
        (
            {"properties": {"memory.max-data": "3MB"}},
            "CONFIGURATION_INVALID",
            "Configuration property 'memory.max-data' was not used",
        ),
        ({"connector": "memoire"}, "CATALOG_NOT_AVAILABLE", "no connector memoire"),
        ({"plugin_class": "a.B"}, "CONFIGURATION_UNAVAILABLE", "no class a.B"),
        ({"plugin": "/nowhere/at/all"}, "CONFIGURATION_UNAVAILABLE", "/nowhere/at/all"),
        ({"java_home": "/nowhere"}, "HOST_TERMINATED", "Java in /nowhere did not start"),
    ],
)
def test_a_host_that_cannot_start_names_the_reason(
    settings: dict[str, object],
    code: str,
    text: str,
    trino_home: Path,
    java_home: Path,
    tmp_path: Path,
) -> None:
    started = Host(
        tmp_path / "host",
        {
            "java_home": str(java_home),
            "engine": str(trino_home / "lib"),
            "plugin": str(trino_home / "plugin" / "memory"),
            **settings,
        },
    )
    error = started.wait()["error"]
    assert (error["code"], text in error["message"]) == (code, True), error
    assert error["hint"]
    assert started.process.wait(20) == 1
    started.close()


def test_a_host_ends_with_its_parent_and_not_by_an_interrupt(
    trino_home: Path, java_home: Path, tmp_path: Path
) -> None:
    started = start_host(tmp_path / "host", trino_home, java_home, "memory")
    started.wait()
    connection = started.connect()
    os.kill(started.process.pid, signal.SIGINT)
    time.sleep(0.2)
    assert connection.call("hello")["pid"] == started.process.pid
    started.process.kill()
    with pytest.raises(ChannelClosedError):
        connection.call("hello")
    assert started.close() == -signal.SIGKILL


def test_the_answer_of_hello_is_plain_json(driver: Connection) -> None:
    assert json.loads(json.dumps(driver.call("hello")))["trino"]
