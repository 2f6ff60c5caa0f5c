"""Timing: several runs, the median and the spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Seconds of several runs of one thing."""

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
        """The run that so many percent of the runs do not exceed."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]

    def __str__(self) -> str:
        return f"{self.median:7.3f} s  [{min(self.seconds):.3f} .. {max(self.seconds):.3f}]"


def timed(run: Callable[[], object], runs: int, before: Callable[[], object] = lambda: None) -> Times:
    """Time some runs; what happens in ``before`` each run is not counted."""
    seconds = []
    for _ in range(runs):
        before()
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return Times(tuple(seconds))
