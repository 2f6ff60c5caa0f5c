"""The process in which a plugin runs: its start, its end, and requests to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.private import PrivateDirectory
from rowmerge_nb.connectors.trino.host_channel import ChannelClosedError, HostChannel
from rowmerge_nb.connectors.trino.host_log import HostLog
from rowmerge_nb.connectors.trino.trino_errors import error_of, terminated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROGRAM: Final = "rowmerge_nb.connectors.trino.host"
"""The module that a host process runs."""

_START_SECONDS: Final = 180
_STOP_SECONDS: Final = 5
HANGING_SECONDS: Final = 10
"""Until then, an interrupt waits for the end of a finish call."""
_OUTPUT_BYTES: Final = 8192
LOG_NAME: Final = "log"
"""The name of the log, beside the socket."""
_CALL_NAME: Final = "call"
"""The name of the file with the call of a task that the process did not answer."""
_GRACE_SECONDS: Final = 0.3
"""How long tasks may report the end of the process by themselves: their report has more."""


class HostProcess:
    def __init__(self, settings: Mapping[str, Any], program: str = PROGRAM) -> None:
        self._directory = PrivateDirectory()
        self.socket_path = str(self._directory.path / "host")
        self.log = HostLog(self._directory.path / LOG_NAME)
        self._idle: list[HostChannel] = []
        self._calls: dict[object, float] = {}
        self._lock = threading.Lock()
        settings_path = self._directory.path / "settings.json"
        settings_path.write_text(json.dumps(dict(settings)), encoding="utf-8")
        paths = [path for path in sys.path if path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        # Java uses the signals that Python's fault handler would catch.
        environment.pop("PYTHONFAULTHANDLER", None)
        arguments = ["--socket", self.socket_path, "--settings", str(settings_path)]
        with self.log.path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", program, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                # Ctrl-C interrupts the statement, not the plugin.
                start_new_session=True,
            )
        self._greeting: Future[bytes] = Future()
        threading.Thread(target=self._listen, name="rowmerge_nb-host", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def has_greeted(self) -> bool:
        return self._greeting.done()

    def hello(self, seconds: float | None = _START_SECONDS) -> dict[str, Any]:
        """Wait until the plugin is ready, and return what the process says of it."""
        try:
            line = self._greeting.result(seconds)
        except FutureTimeoutError as error:
            self.stop()
            raise ConnectorError(
                f"The plugin was not ready after {seconds:g} seconds; its last words:"
                f" {self.log.last_words()}",
                code="HOST_TERMINATED",
                hint="Check what its properties name: a metastore or a database may not respond.",
            ) from error
        try:
            greeting = json.loads(line)
        except ValueError:
            raise self.ended(was_ready=False) from None
        if "error" in greeting:
            self.stop()
            raise error_of(greeting["error"])
        ready: dict[str, Any] = greeting.get("ready") or {}
        return ready

    def request(self, call: str, payload: bytes = b"", **arguments: Any) -> tuple[Any, memoryview]:
        self.hello()
        with self._calling():
            return self._request(call, payload, arguments)

    def _request(
        self, call: str, payload: bytes, arguments: Mapping[str, Any]
    ) -> tuple[Any, memoryview]:
        with self._lock:
            channel = self._idle.pop() if self._idle else None
        try:
            channel = channel or open_channel(self.socket_path)
            answer = exchange(channel, call, payload, **arguments)
        except ConnectorError:
            self._keep(channel)
            raise
        except (OSError, ValueError) as error:
            if channel is not None:
                channel.close()
            raise self.ended() from error
        except BaseException:
            # An interrupt: the answer still comes, so this connection is of no further use.
            if channel is not None:
                channel.close()
            raise
        self._keep(channel)
        return answer

    @property
    def hanging_calls(self) -> int:
        """The number of calls without an answer for so long that a user may have given them up."""
        with self._lock:
            return sum(time.monotonic() - start > HANGING_SECONDS for start in self._calls.values())

    @contextlib.contextmanager
    def _calling(self) -> Iterator[None]:
        key = object()
        with self._lock:
            self._calls[key] = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                del self._calls[key]

    def _keep(self, channel: HostChannel | None) -> None:
        if channel is not None:
            with self._lock:
                self._idle.append(channel)

    def ended(self, *, was_ready: bool = True) -> ConnectorError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        reason = end_of(self._process.returncode)
        return terminated(reason, self.log.last_words(), was_ready=was_ready)

    def unanswered_call(self) -> str:
        """Return the call of a task that this process did not answer before it ended, or ``""``."""
        try:
            return (self._directory.path / _CALL_NAME).read_text(encoding="utf-8")
        except OSError:
            return ""

    def stop(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for channel in idle:
            channel.close()
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._directory.remove()

    def _listen(self) -> None:
        output = self._process.stdout
        if output is None:
            return
        with output:
            greeting = output.readline()
            if b'"ready"' in greeting[:16]:
                self.log.clear()
            self._greeting.set_result(greeting)
            while output.read(_OUTPUT_BYTES):
                pass


def open_channel(socket_path: str) -> HostChannel:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(socket_path)
    except BaseException:
        connection.close()
        raise
    return HostChannel(connection)


def exchange(
    channel: HostChannel, call: str, payload: Any = b"", **arguments: Any
) -> tuple[Any, memoryview]:
    channel.send({"call": call, **arguments}, payload)
    header, result_payload = channel.receive()
    if "error" in header:
        raise error_of(header["error"])
    return header.get("result"), result_payload


class TaskConnection:
    """A connection of a task to a host process, for one scan, sink or bucket function."""

    def __init__(self, socket_path: str) -> None:
        self._log = HostLog(Path(socket_path).parent / LOG_NAME)
        self._channel: HostChannel | None = None
        try:
            self._channel = open_channel(socket_path)
        except OSError as error:
            raise terminated(f"nothing listens at {socket_path}", self._log.last_words()) from error

    def request(self, call: str, payload: Any = b"", **arguments: Any) -> tuple[Any, memoryview]:
        if self._channel is None:
            raise terminated("its connection is closed", "")
        try:
            return exchange(self._channel, call, payload, **arguments)
        except ConnectorError:
            raise
        except (ChannelClosedError, OSError) as error:
            self.close()
            with contextlib.suppress(OSError):
                (self._log.path.parent / _CALL_NAME).write_text(call, encoding="utf-8")
            raise terminated(_during(call), self._log.last_words()) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def __del__(self) -> None:
        # A failed task may drop its sink; the host aborts it once the connection is closed.
        self.close()


class HostEnd:
    """The end of a process during a statement, which the driver sees before all tasks do."""

    def __init__(self, host: HostProcess) -> None:
        self._host = host
        self._seen: float | None = None

    def find(self) -> ConnectorError | None:
        if self._host.is_alive:
            return None
        now = time.monotonic()
        if self._seen is None:
            self._seen = now
        if now - self._seen < _GRACE_SECONDS:
            return None
        call = self._host.unanswered_call()
        if not call:
            return self._host.ended()
        return terminated(_during(call), self._host.log.last_words())


def _during(call: str) -> str:
    return f"during {call}"


def end_of(return_code: int | None) -> str:
    """Return how a process ended, in words.

    >>> end_of(1), end_of(-9), end_of(None)
    ('exit code 1', 'SIGKILL', 'its connection is closed')
    """
    if return_code is None:
        return "its connection is closed"
    if return_code >= 0:
        return f"exit code {return_code}"
    try:
        return signal.Signals(-return_code).name
    except ValueError:
        return f"signal {-return_code}"
