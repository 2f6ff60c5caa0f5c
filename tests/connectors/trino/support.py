"""Host processes of plugins, and connections to them."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowmerge_nb.connectors.trino.host_channel import (
    HostChannel,
    pack_batch,
    pack_fragments,
    unpack_batch,
    unpack_fragments,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

SESSION = {"user": "ann", "query_id": "20240101_000000_00001_abcde", "time_zone": "UTC"}


class HostError(Exception):
    """An error answered by a host."""

    def __init__(self, described: dict[str, Any]) -> None:
        super().__init__(
            f"{described['code']}: {described['message']}\n" + "\n".join(described["frames"])
        )
        self.described = described


class Connection:
    """One connection to a host."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self.channel = HostChannel(self._socket)

    def call(self, name: str, payload: bytes = b"", **arguments: Any) -> Any:
        """Return the result of a call."""
        return self.ask(name, payload, **arguments)[0]

    def ask(self, name: str, payload: bytes = b"", **arguments: Any) -> tuple[Any, memoryview]:
        """Return the result and the payload of a call."""
        self.channel.send({"call": name, **arguments}, payload)
        header, answer = self.channel.receive()
        if "error" in header:
            raise HostError(header["error"])
        return header["result"], answer

    def store(self, name: str, batch: pa.RecordBatch, **arguments: Any) -> Any:
        return self.call(name, pack_batch(batch), **arguments)

    def finish_sink(self, **arguments: Any) -> list[bytes]:
        result, payload = self.ask("finish", **arguments)
        return unpack_fragments(result["lengths"], payload)

    def finish_write(
        self, name: str, transaction: int, handle: Any, fragments: list[bytes], **arguments: Any
    ) -> None:
        lengths, payload = pack_fragments(fragments)
        self.call(
            name, payload, transaction=transaction, handle=handle, lengths=lengths, **arguments
        )

    def pages(self, **arguments: Any) -> list[pa.RecordBatch]:
        """Return the pages of a split."""
        self.call("open_scan", session=SESSION, **arguments)
        batches = []
        while True:
            result, payload = self.ask("next_page")
            if result.get("end"):
                self.call("close")
                return batches
            batches.append(unpack_batch(payload))


class Host:
    """A host process."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        folder.mkdir(exist_ok=True)
        self.path = folder / "socket"
        file = folder / "settings.json"
        file.write_text(json.dumps(settings), encoding="utf-8")
        self.log = (folder / "log").open("w+", encoding="utf-8")
        program = [sys.executable, "-m", "rowmerge_nb.connectors.trino.host"]
        self.process = subprocess.Popen(
            [*program, "--socket", str(self.path), "--settings", str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        self.ready: dict[str, Any] = {}
        self._connections: list[Connection] = []

    def wait(self) -> dict[str, Any]:
        """Return the ready message of the host, or its error."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.log.seek(0)
        assert line, self.log.read()
        self.ready = json.loads(line)
        return self.ready

    def connect(self) -> Connection:
        self._connections.append(Connection(self.path))
        return self._connections[-1]

    def disconnect(self) -> None:
        """Close all connections."""
        while self._connections:
            self._connections.pop().channel.close()

    def close(self) -> int:
        """End the process like the end of its parent would; return its exit code."""
        self.disconnect()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(20)
        self.process.stdout.close()
        self.log.close()
        return code


def start_host(
    folder: Path, home: Path, java: Path, plugin: str | Sequence[str], **settings: Any
) -> Host:
    """Start a host of a plugin below the home of Trino, or of jars."""
    path = str(home / "plugin" / plugin) if isinstance(plugin, str) else list(plugin)
    return Host(
        folder,
        {"java_home": str(java), "engine": str(home / "lib"), "plugin": path, **settings},
    )


def iceberg_properties(warehouse: Path) -> dict[str, str]:
    """Return the properties of an Iceberg catalog in a folder."""
    warehouse.mkdir(parents=True, exist_ok=True)
    return {
        "iceberg.catalog.type": "TESTING_FILE_METASTORE",
        "hive.metastore.catalog.dir": "local:///warehouse",
        "fs.local.enabled": "true",
        "local.location": str(warehouse),
    }
