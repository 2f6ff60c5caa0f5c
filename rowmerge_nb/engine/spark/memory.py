"""How much memory there is: of the machine, or within the limit of a container."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from rowmerge_nb.engine.spark.java.java_options import usual_cores

_PROC, _CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
_LIMITS: Final = (
    ("memory.max", "memory.current"),  # version 2
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),  # version 1
)
_SHARE: Final = 8
"""Into so many parts goes the memory of which tasks may fill one with a source; what they hold is up to twice what was guessed."""


def free_memory(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int | None:
    """Return how many bytes of memory can be had: of the machine, and within the limit of a container; None where nothing tells.

    What files have in memory can be had, since it goes when it is needed.
    """
    known = _of_machine("MemAvailable:", proc)
    for limit, used in _LIMITS:
        with suppress(OSError, ValueError):
            most, now = int((cgroup / limit).read_text()), int((cgroup / used).read_text())
            known.append(most - now + _of_files((cgroup / limit).parent / "memory.stat"))
    return min(known, default=None)


def all_memory(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int | None:
    """Return how many bytes of memory the machine has, or the container may have, free or not; None where nothing tells."""
    known = _of_machine("MemTotal:", proc)
    if not known:
        with suppress(OSError, ValueError, AttributeError):
            known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit, _ in _LIMITS:
        with suppress(OSError, ValueError):
            known.append(int((cgroup / limit).read_text()))
    return min(known, default=None)


@cache
def room_for_source() -> int:
    """Return how many bytes each task on this machine may hold of what all of them hold: the tasks together an eighth of the memory.

    Raises:
        SetupError: ROWMERGE_CORES is no number of cores.
    """
    return (all_memory() or 0) // _SHARE // usual_cores()


def _of_machine(entry: str, proc: Path) -> list[int]:
    with suppress(OSError, ValueError, KeyError):
        lines = (line.split() for line in (proc / "meminfo").read_text().splitlines())
        return [{words[0]: int(words[1]) for words in lines}[entry] << 10]
    return []


def _of_files(statistics: Path) -> int:
    with suppress(OSError, ValueError):
        words = dict(line.split() for line in statistics.read_text().splitlines())
        return int(words.get("total_inactive_file", words.get("inactive_file", "0")))
    return 0
