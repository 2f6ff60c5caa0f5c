"""Timing: several runs, the median and the spread; and the memory of the processes meanwhile."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Times:
    """Seconds of several runs of one action."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle run."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """The fastest run."""
        return min(self.seconds)

    def percentile(self, percent: int) -> float:
        """The run that this percentage of the runs does not exceed."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]

    def __str__(self) -> str:
        return f"{self.median:7.3f} s  [{min(self.seconds):.3f} .. {max(self.seconds):.3f}]"


def timed(
    run: Callable[[], object], runs: int, before: Callable[[], object] = lambda: None
) -> Times:
    """Time some runs; the work of ``before`` each run is not counted."""
    seconds = []
    for _ in range(runs):
        before()
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return Times(tuple(seconds))


class Memory:
    """The maximum resident memory of a contestant meanwhile, in bytes, sampled every 50 ms
    if the system reports it (Linux).

    For this process it is the increase over its earlier memory, since the race's own tables are in
    it.

    Args:
        below: Java and Python's workers below this process belong to the contestant; others may
            have started them.

    Attributes:
        most: of ``driver`` (this process), ``java``, the largest ``worker``, and of ``all``
            together.
    """

    def __init__(self, *, below: bool) -> None:
        self.below = below
        self.most = dict.fromkeys(("driver", "java", "worker", "all"), 0)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self.before = resident(os.getpid())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.05):
            sizes = [("driver", resident(os.getpid()) - self.before)]
            if self.below:
                sizes += [
                    ("java" if name == "java" else "worker", resident(process))
                    for process, name in children(os.getpid())
                ]
            for kind, size in (*sizes, ("all", sum(size for _, size in sizes))):
                self.most[kind] = max(self.most[kind], size)


def resident(process: int) -> int:
    """Return the bytes of memory of a process, or 0 if unknown."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except (OSError, ValueError):
        return 0


def processor_time(process: int) -> float:
    """Return the processor seconds of a process, its descendants, and its descendants that have
    ended, if the system reports them (Linux).
    """
    seconds = 0.0
    for number in (process, *(number for number, _ in children(process))):
        with suppress(OSError):
            words = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
            seconds += sum(int(word) for word in words[11:15]) / os.sysconf("SC_CLK_TCK")
    return seconds


def children(process: int) -> list[tuple[int, str]]:
    """Return all descendants of a process with their names."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, rest = entry.read_text().rsplit(")", 1)
        except (OSError, ValueError):
            continue
        number, name = head.split(" (", 1)
        parents.setdefault(int(rest.split()[1]), []).append((int(number), name))
    found, waiting = [], [process]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += [number for number, _ in below]
    return found
