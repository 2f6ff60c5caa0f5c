"""The results of the lab as plain data, and readings of them."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.words import number, plural
from rowmerge_nb.trace.lab_advice import advice_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class LabPoint:
    """A point of the grid.

    Args:
        share: the share of rows that each statement changes.
        locality: the share of the changed rows that are neighbors by key; the others are spread.
        partitioned_by: the partition column, or ``""``.
        buckets: the number of buckets of the key; 0 for none.
        sorted: whether the rows were loaded in the order of the key.
        files: the number of loads, each of which writes files of its own.
        compact_every: the number of statements between compactions; 0 for none.
    """

    store: str
    share: float
    locality: float
    partitioned_by: str
    buckets: int
    sorted: bool
    files: int
    statements: int
    compact_every: int

    def __str__(self) -> str:
        parts = [f"{self.store}: {percent(self.share)} of the rows", f"locality {self.locality:g}"]
        parts += [f"partitioned by {self.partitioned_by}"] if self.partitioned_by else []
        parts += [plural(self.buckets, "bucket")] if self.buckets else []
        return ", ".join(parts)


DIMENSIONS = tuple(field.name for field in fields(LabPoint))
"""The dimensions of a grid."""


@dataclass(frozen=True, kw_only=True)
class LabStep:
    """One statement of a run. Numbers of files and bytes are None for stores without files.

    Args:
        full_read_files: the files of a full read afterwards.
        files_to_merge: those of them that only delete rows of others.
        compaction_bytes: what a compaction afterwards wrote; None without one.
        mean_writer_rows: the mean of all writers, idle ones not counted.
    """

    rows_changed: int
    files_read: int | None
    bytes_read: int | None
    files_written: int | None
    bytes_written: int | None
    full_read_files: int | None
    full_read_bytes: int | None
    files_to_merge: int | None
    bytes_to_merge: int | None
    compaction_bytes: int | None
    writers: int
    busiest_writer_rows: int
    mean_writer_rows: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class LabRun:
    """One run: a table was loaded, and the statements ran.

    Args:
        loaded_files: its files; None for stores without files.
        refusal: why the store has no such table, or failed; ``""`` otherwise.
    """

    point: LabPoint
    loaded_rows: int = 0
    loaded_files: int | None = None
    loaded_bytes: int | None = None
    steps: tuple[LabStep, ...] = ()
    refusal: str = ""
    seconds: float = 0.0

    @property
    def rows_changed(self) -> int:
        """The rows that all statements changed."""
        return sum(step.rows_changed for step in self.steps)

    @property
    def bytes_written(self) -> int | None:
        """What statements and compactions wrote; None if unknown."""
        if not self.steps or self.steps[0].bytes_written is None:
            return None
        return sum((s.bytes_written or 0) + (s.compaction_bytes or 0) for s in self.steps)

    @property
    def full_read_bytes(self) -> int | None:
        """The bytes of a full read after all statements."""
        return self.steps[-1].full_read_bytes if self.steps else None

    @property
    def write_amplification(self) -> float | None:
        """The bytes written, divided by those that the changed rows took when they were loaded."""
        if self.bytes_written is None or not self.loaded_bytes or not self.rows_changed:
            return None
        return self.bytes_written / (self.rows_changed * self.loaded_bytes / self.loaded_rows)

    def read_amplification(self, statement: int = -1) -> float | None:
        """Return the bytes of a full read after a statement (from 0), divided by those of the loaded
        table.
        """
        if not self.steps or not self.loaded_bytes:
            return None
        size = self.steps[statement].full_read_bytes
        return None if size is None else size / self.loaded_bytes

    @property
    def skew(self) -> float | None:
        """How many times the mean the busiest writer got, at most."""
        ratios = [s.busiest_writer_rows / s.mean_writer_rows for s in self.steps if s.writers]
        return max(ratios, default=None)

    def as_json(self) -> dict[str, Any]:
        """Return the run as data for a file."""
        return asdict(self)


def run_of_json(record: Mapping[str, Any]) -> LabRun:
    """Return the run of `LabRun.as_json`; raises TypeError or KeyError for other data."""
    point, steps = LabPoint(**record["point"]), tuple(LabStep(**s) for s in record["steps"])
    return LabRun(**{**record, "point": point, "steps": steps})


def percent(share: float) -> str:
    """Return a share as percents.

    >>> percent(0.04), percent(0.0025)
    ('4 %', '0.25 %')
    """
    return f"{share * 100:g} %"


@dataclass(frozen=True, kw_only=True)
class Lab:
    """The results of a grid.

    Args:
        runs: the finished runs, in the order of the grid.
        planned: the number of runs of the grid.
        notices: sentences about what ended early.
    """

    statement: str
    rows: int
    runs: tuple[LabRun, ...]
    planned: int
    seconds: float
    file: str = ""
    notices: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether all runs of the grid finished."""
        return len(self.runs) == self.planned

    @property
    def measured(self) -> tuple[LabRun, ...]:
        """The runs that were not refused."""
        return tuple(run for run in self.runs if not run.refusal)

    @property
    def varied(self) -> tuple[str, ...]:
        """The dimensions with several values."""
        return tuple(
            name for name in DIMENSIONS if len({getattr(run.point, name) for run in self.runs}) > 1
        )

    @property
    def sentence(self) -> str:
        """What ran, in one sentence."""
        count = len(self.runs) - len(self.measured)
        refusals = f", {number(count)} of them refused by the store" if count else ""
        return (
            f"{number(len(self.runs))} of {plural(self.planned, 'run')}{refusals}, on tables of"
            f" {plural(self.rows, 'row')}."
        )

    @property
    def advice(self) -> tuple[str, ...]:
        """Sentences with their numbers: where one store moves fewer bytes than another, what
        compactions cost and save, and where writers are uneven.
        """
        return advice_of(self)

    def to_arrow(self) -> pa.Table:
        """Return a row per run, with its dimensions and measurements."""
        import pyarrow as pa

        return pa.Table.from_pylist([_row(run) for run in self.runs])

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per run, with its dimensions and measurements."""
        import pandas as pd

        return pd.DataFrame([_row(run) for run in self.runs])

    def steps_to_pandas(self) -> pd.DataFrame:
        """Return a row per statement of each run."""
        import pandas as pd

        return pd.DataFrame(
            [
                {**asdict(run.point), "statement": index, **asdict(step)}
                for run in self.runs
                for index, step in enumerate(run.steps, 1)
            ]
        )

    def groups(self, *names: str) -> dict[tuple[Any, ...], list[LabRun]]:
        """Return the measured runs by the values of dimensions."""

        def key(run: LabRun) -> tuple[Any, ...]:
            return tuple(getattr(run.point, name) for name in names)

        ordered = sorted(self.measured, key=key)
        return {values: list(runs) for values, runs in itertools.groupby(ordered, key)}

    def save_pictures(self, folder: str | Path) -> list[Path]:
        """Write the pictures as ``lab-light.svg`` and ``lab-dark.svg``, and return their paths.

        Raises:
            SetupError: matplotlib is not installed.
        """
        from rowmerge_nb.report.lab_report import save_pictures

        return save_pictures(self, folder)

    def __str__(self) -> str:
        from rowmerge_nb.report.lab_report import lab_text

        return lab_text(self)

    def __repr__(self) -> str:
        return f"<Lab: {self.sentence}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from rowmerge_nb.report.lab_report import lab_bundle

        return lab_bundle(self)


def _row(run: LabRun) -> dict[str, Any]:
    last = run.steps[-1] if run.steps else None
    return {
        **asdict(run.point),
        "rows_changed": run.rows_changed,
        "loaded_files": run.loaded_files,
        "loaded_bytes": run.loaded_bytes,
        "files_read": _sum(run.steps, "files_read"),
        "bytes_read": _sum(run.steps, "bytes_read"),
        "files_written": _sum(run.steps, "files_written"),
        "bytes_written": run.bytes_written,
        "full_read_files": None if last is None else last.full_read_files,
        "full_read_bytes": run.full_read_bytes,
        "files_to_merge": None if last is None else last.files_to_merge,
        "bytes_to_merge": None if last is None else last.bytes_to_merge,
        "compaction_bytes": _sum(run.steps, "compaction_bytes"),
        "write_amplification": run.write_amplification,
        "read_amplification": run.read_amplification(),
        "writer_skew": run.skew,
        "seconds": run.seconds,
        "refusal": run.refusal,
    }


def _sum(steps: Sequence[LabStep], name: str) -> int | None:
    values = [value for step in steps if (value := getattr(step, name)) is not None]
    return sum(values) if values else None
