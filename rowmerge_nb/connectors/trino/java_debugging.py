"""A host process that waits for a debugger of Java."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rowmerge_nb.connectors.trino.host_process import HostProcess

_LISTENS: Final = b"Listening for transport"
_PAUSE: Final = 0.05


def debugger_option(port: int) -> str:
    """Return the option that makes Java wait for a debugger of this machine.

    >>> debugger_option(5005)
    '-agentlib:jdwp=transport=dt_socket,server=y,suspend=y,address=127.0.0.1:5005'
    """
    return f"-agentlib:jdwp=transport=dt_socket,server=y,suspend=y,address=127.0.0.1:{port}"


def wait_for_debugger(host: HostProcess, port: int, side: str) -> None:
    """Print how to attach a debugger, and wait until the plugin is ready. An interrupt ends the
    wait.
    """
    while host.is_alive and not host.has_greeted and not _listens(host):
        time.sleep(_PAUSE)
    if host.is_alive:
        # A prompt, not a result: it must appear before the wait.
        print(  # noqa: T201 - as above
            f"Attach a debugger to port {port}; waiting. The plugin of {side} starts when the"
            " debugger lets it run. Interrupt to end the wait.",
            flush=True,
        )
    host.hello(seconds=None)


def _listens(host: HostProcess) -> bool:
    try:
        return _LISTENS in host.log.path.read_bytes()
    except OSError:
        return False
