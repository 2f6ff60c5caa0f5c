"""The two processes of one plugin: the coordinator's, and the one that Spark's tasks share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.connectors.trino.host_process import PROGRAM, HostProcess
from rowmerge_nb.connectors.trino.plugin_source import JarState, jar_state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

REBUILT: Final = "The plugin's jars have changed: a new process has loaded them."


class PluginHosts:
    """Starts the processes when they are first needed, and replaces those that have ended.

    Args:
        settings: builds what a process needs to start the plugin.
        paths: the plugin's folders and jars.
        count: 2, or 1 if one process serves both sides.
    """

    def __init__(
        self,
        settings: Callable[[], Mapping[str, Any]],
        paths: Sequence[Path],
        *,
        count: int = 2,
        program: str = PROGRAM,
    ) -> None:
        self._settings = settings
        self._paths = paths
        self._count = count
        self._program = program
        self._lock = threading.RLock()
        self._hosts: list[HostProcess] = []
        self._jars: JarState = ()
        self._users = 0

    @property
    def running(self) -> list[HostProcess]:
        """The processes that run: the coordinator's first."""
        with self._lock:
            return [host for host in self._hosts if host.is_alive]

    def coordinator(self) -> HostProcess:
        """Return the coordinator's process, ready for requests.

        Raises:
            ConnectorError: the plugin does not start.
        """
        host = self._started()[0]
        host.hello()
        return host

    def greeting(self) -> dict[str, Any]:
        """Return what the coordinator's process said of the plugin, also if it has ended since.

        Raises:
            ConnectorError: the plugin does not start.
        """
        with self._lock:
            host = (self._hosts or self._started())[0]
        return host.hello()

    def socket_of_tasks(self) -> str:
        """Return where the process of the tasks listens, once it does.

        Raises:
            ConnectorError: the plugin does not start.
        """
        host = self._started()[-1]
        host.hello()
        return host.socket_path

    def begin(self) -> tuple[HostProcess, str | None]:
        """Return the coordinator's process for a new transaction, and a sentence if it has just
        loaded changed jars.
        """
        with self._lock:
            notice = None
            if self._hosts and not self._users and jar_state(self._paths) != self._jars:
                self._stop()
                notice = REBUILT
            host = self.coordinator()
            self._users += 1
            return host, notice

    def end(self) -> None:
        """End a transaction."""
        with self._lock:
            self._users -= 1

    def close(self) -> None:
        """End both processes."""
        with self._lock:
            self._stop()

    def _started(self) -> list[HostProcess]:
        with self._lock:
            for index, host in enumerate(self._hosts):
                if not host.is_alive:
                    host.stop()
                    self._hosts[index] = HostProcess(self._settings(), self._program)
            if not self._hosts:
                self._jars = jar_state(self._paths)
                settings = self._settings()
                # Beside each other: a plugin takes some seconds to be ready.
                for _ in range(self._count):
                    self._hosts.append(HostProcess(settings, self._program))
            return self._hosts

    def _stop(self) -> None:
        hosts, self._hosts = self._hosts, []
        for host in hosts:
            host.stop()
