"""A relay between a plugin of Hive of an older Trino and a Hive Metastore.

Trino 380 stores changes of transactional tables by `alter_table_req` and `alter_partitions_req`,
which Hive 3.1 lacks. Later versions of Trino make older calls then. So does this relay, which passes
all other messages on unchanged.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlparse

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Mapping

_URI: Final = "hive.metastore.uri"
_AUTHENTICATION: Final = "hive.metastore.authentication.type"
_SSL: Final = "hive.metastore.thrift.client.ssl.enabled"
_PORT: Final = 9083
_SUBSTITUTES: Final = {
    "alter_table_req": "alter_table_with_environment_context",
    "alter_partitions_req": "alter_partitions_with_environment_context",
}
"""Calls that Hive 3.1 lacks, and those that it has."""
_FIELDS: Final = {2: 1, 3: 2, 4: 3, 5: 4}
"""The numbers of database, table, new state and environment: in the request, and as arguments."""
_EMPTY_SUCCESS: Final = struct.pack(">bhbb", 12, 0, 0, 0)
"""A result whose field 0 is an empty struct."""
_STOP: Final = b"\x00"
_STRUCT: Final = 12
_CALL, _REPLY, _EXCEPTION = 1, 2, 3


def relayed_properties(properties: Mapping[str, str]) -> dict[str, str]:
    uris = properties.get(_URI, "")
    is_plain = properties.get(_AUTHENTICATION, "NONE") == "NONE" and properties.get(_SSL) != "true"
    if not uris.startswith("thrift://") or not is_plain:
        return dict(properties)
    relays = [MetastoreRelay(uri.strip()).start() for uri in uris.split(",")]
    return {**properties, _URI: ",".join(f"thrift://127.0.0.1:{port}" for port in relays)}


class MetastoreRelay:
    """Passes messages of Thrift's binary protocol on to a metastore."""

    def __init__(self, uri: str) -> None:
        address = urlparse(uri)
        self._address = address.hostname or "localhost", address.port or _PORT

    def start(self) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return int(listener.getsockname()[1])

    def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with (
            contextlib.suppress(OSError, EOFError),
            client,
            socket.create_connection(self._address) as server,
        ):
            while True:
                request = read_message(client)
                server.sendall(request.data)
                answer = read_message(server)
                if answer.is_unknown_method and request.name in _SUBSTITUTES:
                    server.sendall(substitute(request))
                    answer = substituted_answer(request, read_message(server))
                client.sendall(answer.data)


@dataclass(frozen=True)
class Message:
    """A message, and the place of its struct."""

    name: str
    message_type: int
    number: int
    data: bytes
    start: int

    @property
    def content(self) -> bytes:
        """The struct of arguments, of a result or of an exception."""
        return self.data[self.start :]

    @property
    def is_unknown_method(self) -> bool:
        """Whether it is the exception of a call that the server lacks."""
        return self.message_type == _EXCEPTION and b"Invalid method name" in self.content


def read_message(connection: socket.socket) -> Message:
    recording = _Recording(connection)
    protocol = _protocol(recording)
    name, message_type, number = protocol.readMessageBegin()
    start = len(recording.data)
    protocol.skip(_STRUCT)
    return Message(name, message_type, number, bytes(recording.data), start)


def substitute(request: Message) -> bytes:
    """Return the call that Hive 3.1 has, with the same arguments."""
    fields = struct_fields(struct_fields(request.content)[1][1])
    parts = [
        struct.pack(">bh", fields[number][0], argument) + fields[number][1]
        for number, argument in _FIELDS.items()
        if number in fields
    ]
    return message_bytes(_SUBSTITUTES[request.name], _CALL, request.number, b"".join(parts) + _STOP)


def substituted_answer(request: Message, answer: Message) -> Message:
    """Return the answer of a substitute as that of the call: exceptions have the same numbers."""
    content = answer.content
    if answer.message_type == _REPLY and content == _STOP:
        content = _EMPTY_SUCCESS
    data = message_bytes(request.name, answer.message_type, answer.number, content)
    return Message(request.name, answer.message_type, answer.number, data, len(data) - len(content))


def struct_fields(data: bytes) -> dict[int, tuple[int, bytes]]:
    recording = _Recording(data)
    protocol = _protocol(recording)
    fields: dict[int, tuple[int, bytes]] = {}
    while True:
        _, field_type, number = protocol.readFieldBegin()
        if field_type == 0:
            return fields
        start = len(recording.data)
        protocol.skip(field_type)
        fields[number] = field_type, bytes(recording.data[start:])


def message_bytes(name: str, message_type: int, number: int, content: bytes) -> bytes:
    text = name.encode()
    head = struct.pack(">HHI", 0x8001, message_type, len(text))
    return head + text + struct.pack(">I", number) + content


class _Recording:
    """A transport of Thrift that keeps the bytes that it has read."""

    def __init__(self, source: socket.socket | bytes) -> None:
        self._source = source
        self.data = bytearray()

    def readAll(self, size: int) -> bytes:  # noqa: N802 - the name of Thrift
        start = len(self.data)
        if isinstance(self._source, bytes):
            self.data += self._source[start : start + size]
        else:
            while len(self.data) < start + size:
                part = self._source.recv(start + size - len(self.data))
                if not part:
                    raise EOFError
                self.data += part
        return bytes(self.data[start:])


def _protocol(transport: _Recording) -> Any:
    try:
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    except ImportError as error:
        raise SetupError(
            "An older plugin of Hive needs Thrift, which is not installed",
            hint=f"Run: {install_command('hive')}",
        ) from error
    return TBinaryProtocol(transport)
