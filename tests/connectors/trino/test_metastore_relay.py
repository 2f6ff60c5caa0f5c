"""The relay to a Hive Metastore that lacks calls of an older plugin."""

from __future__ import annotations

import socket
import struct
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import pytest

from rowmerge_nb.connectors.trino.host.metastore_relay import (
    message_bytes,
    read_message,
    relayed_properties,
    struct_fields,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("thrift")

URI = "hive.metastore.uri"
STOP = b"\x00"
CALL, REPLY, EXCEPTION = 1, 2, 3
EMPTY_SUCCESS = struct.pack(">bhbb", 12, 0, 0, 0)


def text(number: int, value: str) -> bytes:
    """A field with a text."""
    return struct.pack(">bhI", 11, number, len(value)) + value.encode()


def nested(number: int, content: bytes) -> bytes:
    """A field with a struct."""
    return struct.pack(">bh", 12, number) + content + STOP


class Metastore:
    """A server with some calls; every other one is an exception."""

    def __init__(self, **results: bytes) -> None:
        self.results = results
        self.requests: list[tuple[str, bytes]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection:
            while True:
                try:
                    request = read_message(connection)
                except (EOFError, OSError):
                    return
                self.requests.append((request.name, request.content))
                result = self.results.get(request.name)
                unknown = text(1, f"Invalid method name: '{request.name}'") + STOP
                message_type, content = (EXCEPTION, unknown) if result is None else (REPLY, result)
                connection.sendall(
                    message_bytes(request.name, message_type, request.number, content)
                )


@pytest.fixture
def connected() -> Iterator[Any]:
    """Connects to the relay of a metastore; the connection sends one call and reads its answer."""
    closing = []

    def connect(metastore: Metastore) -> Any:
        address = urlparse(relayed_properties({URI: metastore.uri})[URI])
        connection = socket.create_connection((address.hostname, address.port))
        closing.extend([connection, metastore.listener])

        def call(name: str, number: int, content: bytes) -> Any:
            connection.sendall(message_bytes(name, CALL, number, content))
            return read_message(connection)

        return call

    yield connect
    for each in closing:
        each.close()


REQUEST = (
    nested(
        1,
        text(1, "hive")
        + text(2, "shop")
        + text(3, "accounts")
        + nested(4, text(1, "the new table"))
        + struct.pack(">bhq", 10, 6, 7)
        + text(7, "write ids"),
    )
    + STOP
)


def test_a_call_that_hive_3_lacks_is_replaced_by_an_available_one(connected: Any) -> None:
    metastore = Metastore(alter_table_with_environment_context=STOP)
    answer = connected(metastore)("alter_table_req", 5, REQUEST)
    assert [name for name, _ in metastore.requests] == [
        "alter_table_req",
        "alter_table_with_environment_context",
    ]
    fields = struct_fields(metastore.requests[1][1])
    assert {number: content[-13:] for number, (_, content) in fields.items()} == {
        1: b"\x00\x00\x00\x04shop",
        2: b"\x00\x00\x00\x08accounts",
        3: b"the new table"[1:] + STOP,
    }
    assert (answer.name, answer.message_type, answer.number) == ("alter_table_req", REPLY, 5)
    assert answer.content == EMPTY_SUCCESS


def test_an_exception_of_the_substitute_is_that_of_the_call(connected: Any) -> None:
    refusal = nested(1, text(1, "no such table")) + STOP
    metastore = Metastore(alter_table_with_environment_context=refusal)
    answer = connected(metastore)("alter_table_req", 5, REQUEST)
    assert answer.content == refusal


def test_all_other_messages_pass_unchanged(connected: Any) -> None:
    metastore = Metastore(alter_table_req=EMPTY_SUCCESS, get_all_databases=STOP)
    call = connected(metastore)
    assert call("alter_table_req", 1, REQUEST).content == EMPTY_SUCCESS
    assert call("get_all_databases", 2, STOP).content == STOP
    unknown = call("get_catalogs", 3, STOP)
    assert unknown.message_type == EXCEPTION
    assert b"get_catalogs" in unknown.content
    assert [name for name, _ in metastore.requests] == [
        "alter_table_req",
        "get_all_databases",
        "get_catalogs",
    ]


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"hive.metastore": "file"},
        {URI: "thrift://hms:9083", "hive.metastore.authentication.type": "KERBEROS"},
        {URI: "thrift://hms:9083", "hive.metastore.thrift.client.ssl.enabled": "true"},
    ],
)
def test_catalogs_without_readable_messages_need_no_relay(properties: dict[str, str]) -> None:
    assert relayed_properties(properties) == properties


def test_each_of_several_metastores_has_a_relay() -> None:
    uris = relayed_properties({URI: "thrift://one:1, thrift://two"})[URI].split(",")
    assert len(set(uris)) == 2
    assert all(uri.startswith("thrift://127.0.0.1:") for uri in uris)
