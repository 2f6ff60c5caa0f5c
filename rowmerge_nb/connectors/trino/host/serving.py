"""Answering the connections of a host process, each in a thread of its own."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.abandoned_calls import AbandonedCalls
from rowmerge_nb.connectors.trino.host.coordinator_calls import CoordinatorCalls
from rowmerge_nb.connectors.trino.host.java_errors import describe_error
from rowmerge_nb.connectors.trino.host.jvm import java_class
from rowmerge_nb.connectors.trino.host.sessions import Sessions
from rowmerge_nb.connectors.trino.host.system_tables import PayloadAnswer
from rowmerge_nb.connectors.trino.host.task_calls import TaskCalls
from rowmerge_nb.connectors.trino.host_channel import ChannelClosedError, HostChannel

if TYPE_CHECKING:
    import pyarrow as pa

    from rowmerge_nb.connectors.trino.host.plugin_loading import LoadedPlugin


_ENDED: Final = frozenset(
    {
        *("finish_insert", "finish_create_table", "finish_merge", "execute_delete"),
        *("finish_delete", "finish_update"),
        *("commit", "rollback", "abort"),
    }
)
"""Calls that are made to their end, whatever happens to their caller."""


class HostServer:
    """Serves one plugin on a Unix socket."""

    def __init__(self, plugin: LoadedPlugin) -> None:
        self._plugin = plugin
        self._sessions = Sessions(
            plugin.settings.catalog, plugin.connector.getSessionProperties(), plugin.version
        )
        self._abandoned = AbandonedCalls()
        self._coordinator = CoordinatorCalls(plugin, self._sessions)

    def hello(self) -> Any:
        return self._coordinator.calls["hello"]({}, memoryview(b""))

    def listen(self, path: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(64)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        channel = HostChannel(connection)
        tasks = TaskCalls(self._plugin, self._sessions)
        with self._plugin.context():
            try:
                interrupt = java_class("java.lang.Thread").currentThread().interrupt
                while True:
                    request, payload = channel.receive()
                    with ExitStack() as stack:
                        if request.get("call") not in _ENDED:
                            stack.enter_context(self._abandoned.watched(connection, interrupt))
                        answer = self._answer(tasks, request, payload)
                    channel.send(*answer)
            except (ChannelClosedError, ValueError) as error:
                if isinstance(error, ValueError):
                    sys.stderr.write(f"A connection sent no message: {error}\n")
            finally:
                # An interrupt that came after the end of its call must not end the abort.
                java_class("java.lang.Thread").interrupted()
                self._release(tasks)
                channel.close()

    def _answer(
        self, tasks: TaskCalls, request: dict[str, Any], payload: memoryview
    ) -> tuple[dict[str, Any], bytes | pa.Buffer]:
        name = request.get("call")
        try:
            if name in tasks.calls:
                result, answer = tasks.calls[name](request, payload)
                return {"result": result}, answer
            if name in self._coordinator.calls:
                result = self._coordinator.calls[name](request, payload)
                if isinstance(result, PayloadAnswer):
                    return {"result": result.result}, result.payload
                return {"result": result}, b""
            unknown = ConnectorError(f"The host has no call {name}", code="GENERIC_INTERNAL_ERROR")
            return {"error": describe_error(unknown)}, b""
        except Exception as error:  # noqa: BLE001 - every error of a plugin is an answer
            return {"error": describe_error(error)}, b""

    def _release(self, tasks: TaskCalls) -> None:
        try:
            tasks.release()
        except Exception as error:  # noqa: BLE001 - the task is gone; the log has it
            sys.stderr.write(f"Sinks of a closed connection: {error}\n")
