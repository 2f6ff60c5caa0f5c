"""What stores need to find and to describe what dead processes have left behind."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rowmerge_nb.spi.connector import Orphan

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["has_died", "orphaned_path", "this_process"]


def this_process() -> str:
    """Give the name of this process, ``host:pid``, by which others on the machine can tell whether it lives."""
    return f"{socket.gethostname()}:{os.getpid()}"


def has_died(process: str) -> bool:
    """Tell whether a process of this machine is gone; of one elsewhere nothing is known, so that it counts as alive.

    Args:
        process: ``host:pid``.

    >>> has_died(this_process()), has_died("elsewhere:1"), has_died("nonsense")
    (False, False, False)
    """
    host, _, number = process.rpartition(":")
    if host != socket.gethostname() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        # It is there, and somebody else's.
        return False
    # One that was killed keeps its number until its parent asks for it; only Linux tells.
    with suppress(OSError, IndexError):
        return Path(f"/proc/{number}/stat").read_text("latin-1").rpartition(")")[2].split()[0] in {"Z", "X"}
    return False


def orphaned_path(path: Path, statement: str = "", process: str = "") -> Orphan:
    """Describe a file or directory, its size and its last change.

    >>> import tempfile
    >>> orphaned_path(Path(tempfile.mkdtemp()), "q1").statement
    'q1'
    """
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
        # It may be removed while it is looked at; a folder that is gone has nothing below it for os.walk.
        with suppress(OSError):
            yield entry.stat()
