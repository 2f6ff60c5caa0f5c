"""The growth of time and memory as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Point:
    """The time and memory of a size.

    Args:
        rows: rows of the target.
        seconds: of the fastest warm round.
        memory: the maximum bytes of memory.
    """

    rows: int
    seconds: float
    memory: int


def draw(path: Path, lines: Mapping[str, Sequence[Point]]) -> None:
    """Draw seconds and memory over the rows of the target, a line for each contestant, with
    logarithmic axes.
    """
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    # Text stays text, and the same figures give the same file.
    with mpl.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "growth", "font.family": "sans-serif"}
    ):
        figure, (times, sizes) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
        for name, points in lines.items():
            rows = [point.rows for point in points]
            times.loglog(rows, [point.seconds for point in points], marker="o", label=name)
            sizes.loglog(rows, [point.memory / 1e6 for point in points], marker="o", label=name)
        times.set(xlabel="rows of the target", ylabel="seconds", title="MERGE of a million rows")
        sizes.set(xlabel="rows of the target", ylabel="MB", title="memory beside the tables")
        for axes in (times, sizes):
            axes.grid(which="major", alpha=0.3)
        figure.legend(
            *times.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
        )
        figure.savefig(path, metadata={"Date": None}, facecolor="white")
        plt.close(figure)
