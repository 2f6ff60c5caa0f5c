"""The two processes of one plugin: the coordinator's, and the one that Spark's tasks share."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.trino.host_process import PROGRAM, HostProcess
from rowmerge_nb.connectors.trino.java_debugging import debugger_option, wait_for_debugger
from rowmerge_nb.connectors.trino.plugin_source import JarState, jar_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

REBUILT: Final = "The plugin's jars have changed: a new process has loaded them."


class PluginHosts:
    """Starts the processes when they are first needed, and replaces those that have ended.

    Args:
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
        self._retired: list[HostProcess] = []
        self._users: list[HostProcess] = []

    @property
    def running(self) -> list[HostProcess]:
        with self._lock:
            return [host for host in self._hosts if host.is_alive]

    def coordinator(self) -> HostProcess:
        host = self._started()[0]
        host.hello()
        return host

    def greeting(self) -> dict[str, Any]:
        """Return what the coordinator's process said of the plugin, even if it has ended since."""
        with self._lock:
            host = (self._hosts or self._started())[0]
        return host.hello()

    def socket_of_tasks(self) -> str:
        """Wait until the process of the tasks listens, and return its socket's path."""
        host = self._started()[-1]
        host.hello()
        return host.socket_path

    def begin(self) -> tuple[HostProcess, str | None]:
        """Return the coordinator's process for a new transaction, and a sentence if it has just
        loaded changed jars.
        """
        with self._lock:
            notice = None
            if self._hosts and self._has_no_users() and jar_state(self._paths) != self._jars:
                self._retire()
                notice = REBUILT
            host = self.coordinator()
            for each in self._hosts:
                each.log.shorten()
            self._users.append(host)
            return host, notice

    def end(self, host: HostProcess) -> None:
        with self._lock:
            if host in self._retired:
                # The call that hung has ended.
                self._retired.remove(host)
                host.stop()
            elif host in self._users:
                self._users.remove(host)

    @property
    def is_single(self) -> bool:
        return self._count == 1

    @contextmanager
    def debugging(self, port: int, *, coordinator: bool) -> Iterator[None]:
        """Wait for a Java debugger to attach to a new process, and use that process.

        The process that it replaces continues to run, and is used again at the end.

        Raises:
            RowMergeError: NOT_SUPPORTED if a process with the rows of tables runs already.
        """
        if self.is_single and self.running:
            raise RowMergeError.unsupported(
                "The plugin keeps its rows in a process that runs already, without a debugger",
                hint="Pass a function that creates a connector instead of a connector.",
            )
        settings = self._settings()
        options = [*settings["java_options"], debugger_option(port)]
        host = HostProcess({**settings, "java_options": options}, self._program)
        index = 0 if coordinator else -1
        try:
            wait_for_debugger(host, port, "the coordinator" if coordinator else "the tasks")
            with self._lock:
                if self.is_single:
                    self._hosts, self._jars = [host], jar_state(self._paths)
                else:
                    replaced = self._started()[index]
                    self._hosts[index] = host
            try:
                yield
            finally:
                if not self.is_single:
                    self._put_back(index, replaced)
        finally:
            host.stop()

    def _put_back(self, index: int, host: HostProcess) -> None:
        with self._lock:
            if not self._hosts:
                host.stop()
                return
            # The process with the debugger, or its successor.
            self._hosts[index].stop()
            self._hosts[index] = host

    def close(self) -> None:
        with self._lock:
            self._retire()
            retired, self._retired = self._retired, []
            for host in retired:
                host.stop()

    def _has_no_users(self) -> bool:
        """Whether no transaction needs the processes, except for abandoned calls."""
        return not self._users or len(self._users) == self._hosts[0].hanging_calls

    def _retire(self) -> None:
        """End the processes, except one with a call that hangs: it may still change a table."""
        hosts, self._hosts, self._users = self._hosts, [], []
        for host in hosts:
            if host.hanging_calls:
                self._retired.append(host)
            else:
                host.stop()

    def _started(self) -> list[HostProcess]:
        with self._lock:
            for index, host in enumerate(self._hosts):
                if not host.is_alive:
                    host.stop()
                    self._hosts[index] = HostProcess(self._settings(), self._program)
            if not self._hosts:
                self._jars = jar_state(self._paths)
                settings = self._settings()
                # They start at the same time, since each needs some seconds.
                for _ in range(self._count):
                    self._hosts.append(HostProcess(settings, self._program))
            return self._hosts
