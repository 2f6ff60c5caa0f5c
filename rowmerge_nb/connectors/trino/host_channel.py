"""Messages between a host process and the processes that use it: JSON headers and byte payloads.

A message is a 4-byte big-endian length, a JSON object of that length, and as many payload bytes as
the object's ``"bytes"`` says. Payloads are Arrow IPC streams, or fragments whose lengths are in the
header. Nothing that arrives is unpickled or evaluated.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Mapping, Sequence

_LENGTH: Final = struct.Struct(">I")
_LONGEST_HEADER: Final = 256 * 1024 * 1024


class ChannelClosedError(ConnectionError):
    """The other side closed the connection, or ended, in the middle of a conversation."""


class HostChannel:
    """One end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, header: Mapping[str, Any], payload: bytes | pa.Buffer = b"") -> None:
        view = memoryview(payload)
        text = json.dumps({**header, "bytes": view.nbytes}, ensure_ascii=False).encode()
        try:
            self._connection.sendall(_LENGTH.pack(len(text)) + text)
            if view.nbytes:
                self._connection.sendall(view)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ChannelClosedError(f"The connection is closed: {error}") from error

    def receive(self) -> tuple[dict[str, Any], memoryview]:
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        if length > _LONGEST_HEADER:
            raise ValueError(f"A header of {length} bytes is longer than {_LONGEST_HEADER}")
        header = json.loads(bytes(self._read(length)))
        if not isinstance(header, dict):
            raise ValueError(f"A header is a JSON object, got {header!r}")  # noqa: TRY004 - the bytes are wrong
        return header, self._read(int(header.pop("bytes", 0)))

    def close(self) -> None:
        self._connection.close()

    def _read(self, length: int) -> memoryview:
        view = memoryview(bytearray(length))
        position = 0
        while position < length:
            try:
                count = self._connection.recv_into(view[position:])
            except ConnectionResetError:
                count = 0
            if not count:
                raise ChannelClosedError("The other side closed the connection")
            position += count
        return view


def pack_batch(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def unpack_batch(payload: bytes | memoryview | pa.Buffer) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return reader.read_next_batch()


def pack_fragments(fragments: Iterable[bytes]) -> tuple[list[int], bytes]:
    parts = list(fragments)
    return [len(part) for part in parts], b"".join(parts)


def unpack_fragments(lengths: Sequence[int], payload: bytes | memoryview) -> list[bytes]:
    if sum(lengths) != len(payload):
        raise ValueError(f"Fragments of {sum(lengths)} bytes in a payload of {len(payload)}")
    view, fragments, position = memoryview(payload), [], 0
    for length in lengths:
        fragments.append(bytes(view[position : position + length]))
        position += length
    return fragments
