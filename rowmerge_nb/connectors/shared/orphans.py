"""Processes and the files that dead processes have left."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from rowmerge_nb.spi import Orphan

_PROCESS: Final = re.compile(
    r".*:(?P<pid>[0-9]+)/(?P<space>[0-9a-f]{16})-(?P<start>[0-9]+)", re.DOTALL
)


def this_process() -> str:
    """Return this process's `process_name`, by which others can check whether it is alive."""
    return process_name(os.getpid())


def process_name(pid: int) -> str:
    """Return the name of a process on this machine: ``host:pid/space-start``.

    The host is informative only. The space is a digest of the boot, the PID namespace and the time
    namespace; the start time distinguishes processes with the same PID. Without ``/proc`` the name
    is ``host:pid``, and others cannot check the process.
    """
    name, space, status = f"{socket.gethostname()}:{pid}", _space(), _status(pid)
    return f"{name}/{space}-{status[1]}" if space and status is not None else name


def has_died(process: str) -> bool:
    """Return whether a process is certainly gone; one on another machine may be alive."""
    return is_alive(process) is False


def is_alive(process: str) -> bool | None:
    """Return whether a process is alive, or None if it cannot be seen from here."""
    name = _PROCESS.fullmatch(process)
    if name is None or name["space"] != _space():
        return None
    pid = int(name["pid"])
    status = _status(pid)
    if status is None:
        # Some systems hide the processes of other users in /proc.
        return None if _exists(pid) else False
    state, start = status
    # A killed process is a zombie until its parent waits for it.
    return state not in {"Z", "X"} and start == name["start"]


def _space() -> str:
    with suppress(OSError):
        # A container may show the /proc of another PID namespace.
        if str(Path("/proc/self").readlink()) == str(os.getpid()):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
            links = (Path("/proc/self/ns/pid"), Path("/proc/self/ns/time"))
            namespaces = (str(link.readlink()) for link in links if link.is_symlink())
            return hashlib.sha256("".join((boot, *namespaces)).encode()).hexdigest()[:16]
    return ""


def _status(pid: int) -> tuple[str, str] | None:
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(")")[2].split()
        return fields[0], fields[19]
    return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        # It belongs to another user.
        return True
    return True


def orphaned_path(path: Path, statement: str = "", process: str = "") -> Orphan:
    """Describe a file or directory with its total size and last change."""
    states = list(_states(path))
    return Orphan(
        str(path),
        sum(state.st_size for state in states) if states else None,
        max((state.st_mtime for state in states), default=None),
        statement,
        process,
    )


def _states(path: Path) -> Iterator[os.stat_result]:
    below = (Path(folder) / name for folder, _, names in os.walk(path) for name in names)
    for entry in (path, *below):
        # It may be removed meanwhile; os.walk ignores a missing folder.
        with suppress(OSError):
            yield entry.stat()
