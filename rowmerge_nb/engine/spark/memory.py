"""The memory of the machine, or of the container."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from rowmerge_nb.engine.spark.java.java_options import usual_cores

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROC, _CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
_FILES: Final = {
    "": (".", "memory.max", "memory.current"),  # version 2
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),  # version 1
}
"""The folder and the files of a control group, by the controllers in a process's list."""
_SHARE: Final = 8
"""Tasks may fill 1/8 of the memory with a source, whose actual size is up to twice the estimate."""


def free_memory(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int | None:
    """Return the available bytes of the machine or container, including file caches; None if
    unknown.
    """
    sizes = _of_machine("MemAvailable:", proc)
    for limit, used in _limits(proc, cgroup):
        with suppress(OSError, ValueError):
            most, now = int(limit.read_text()), int(used.read_text())
            sizes.append(most - now + _of_files(limit.parent / "memory.stat"))
    return min(sizes, default=None)


def all_memory(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int | None:
    """Return the total bytes of the machine or container; None if unknown."""
    sizes = _of_machine("MemTotal:", proc)
    if not sizes:
        with suppress(OSError, ValueError, AttributeError):
            sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit, _ in _limits(proc, cgroup):
        with suppress(OSError, ValueError):
            sizes.append(int(limit.read_text()))
    return min(sizes, default=None)


@cache
def room_for_source() -> int:
    """Return the bytes that each local task may use for a replicated source."""
    return (all_memory() or 0) // _SHARE // usual_cores()


def _limits(proc: Path, cgroup: Path) -> Iterator[tuple[Path, Path]]:
    """Return the files of the limit and the use of this process's control group and those above."""
    names = dict.fromkeys(_FILES, "/")
    with suppress(OSError, ValueError):
        for line in (proc / "self" / "cgroup").read_text().splitlines():
            _, controllers, name = line.split(":", maxsplit=2)
            names.update({key: name for key in _FILES if key in controllers.split(",")})
    for key, name in names.items():
        folder, limit, used = _FILES[key]
        group = PurePosixPath(name.lstrip("/"))
        for each in (group, *group.parents):
            yield cgroup / folder / each / limit, cgroup / folder / each / used


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
