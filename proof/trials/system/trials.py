"""Trials: a statement of the real engine in its own process, and a fault of the machine at a random
moment.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from proof.trials.driver import StoreLocation
from proof.trials.kills import Child
from proof.trials.points.statements import PointStatement
from proof.trials.points.stores import Postgresql, Store
from proof.trials.points.trials import Trials

__all__ = ["FAULTS", "SystemReport", "SystemTrials", "table_lines"]

FAULTS: Final = ("terminate", "stopped-java", "temporary-folder", "clock-back")
"""SIGTERM for the driver; SIGSTOP for its Java for some time; its temporary folder is emptied; its
clock is a day late.
"""
_DAY: Final = 86400.0
_PATIENCE: Final = 180.0
_HEADS: Final = (
    "store",
    "statement",
    "fault",
    "trials",
    "as before",
    "as after",
    "said done",
    "failed",
    "changed",
    "unknown",
    "problems",
    "s",
)


@dataclass
class SystemReport:
    """The results of one fault in one statement.

    Args:
        store: the store.
        statement: the statement.
        fault: the fault.
        trials: the number of trials.
        states: how often the store was in the old and in the new state.
        said: the number of each report of the statement.
        problems: sentences; none on success.
        seconds: the duration.
    """

    store: str
    statement: str
    fault: str
    trials: int = 0
    states: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


class SystemTrials:
    """Trials on one store.

    Args:
        store: the store, empty.
        seed: determines the moments.
        stopped: seconds for which Java is stopped.
    """

    def __init__(self, store: Store, seed: int, stopped: float) -> None:
        self._store = store
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._stopped = stopped
        self._folder = Path(tempfile.mkdtemp(prefix="rowmerge_nb-system-"))
        self._child: Child | None = None

    def close(self) -> None:
        """End the driver, and remove its temporary folder."""
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, statement: PointStatement, fault: str, trials: int) -> SystemReport:
        """Run trials of a fault in a statement."""
        report, began = SystemReport(self._store.name, statement.name, fault), time.monotonic()
        points = Trials(self._store, statement)
        points.prepare()
        usual = self._usual(statement)
        for _ in range(trials):
            delay = self._random.uniform(0, usual * 1.2)
            problems = self._trial(statement, fault, delay, points, report)
            report.problems += [
                f"{report.store}, {report.statement}, {fault} after {delay:.2f} s: {p}"
                for p in problems
            ]
        report.seconds = time.monotonic() - began
        return report

    def _usual(self, statement: PointStatement) -> float:
        """Return the duration of an undisturbed statement."""
        child = self._living(statement)
        began = time.monotonic()
        child.ask("run")
        return time.monotonic() - began

    def _trial(
        self,
        statement: PointStatement,
        fault: str,
        delay: float,
        points: Trials,
        report: SystemReport,
    ) -> list[str]:
        report.trials += 1
        child = self._living(statement)
        if fault == "clock-back":
            child.ask("clock", seconds=-_DAY)
        child.order("run")
        answered = child.has_answered(delay)
        if fault == "terminate":
            return self._terminated(child, points, report, answered=answered)
        if fault == "stopped-java" and not answered:
            self._stop_java(child)
        if fault == "temporary-folder":
            self._empty_folder()
        if not child.has_answered(_PATIENCE):
            self._end()
            return [f"it did not answer within {_PATIENCE:.0f} s"]
        answer = child.answer()
        report.said[answer["said"]] += 1
        problems = self._judged(answer, child.ask("look"), points, report)
        further = child.ask("further")
        if further["said"] != "done":
            problems.append(f"a further statement fails: {further['words']}")
        if problems:
            # A problem must not affect the next trial.
            self._end()
        elif fault == "clock-back":
            child.ask("clock", seconds=0.0)
        return problems

    def _judged(
        self, answer: dict[str, Any], seen: Any, points: Trials, report: SystemReport
    ) -> list[str]:
        state = points.state_of(seen)
        report.states[state or "neither"] += 1
        if state is None:
            return [f"it said '{answer['said']}' ({answer['words']}), and the store holds {seen}"]
        problems = points.truth_of(answer["said"], state)
        if answer["code"] in {"raw", "GENERIC_INTERNAL_ERROR"}:
            problems.append(f"it raised {answer['words']}")
        return problems

    def _terminated(
        self, child: Child, points: Trials, report: SystemReport, *, answered: bool
    ) -> list[str]:
        """Send SIGTERM, and inspect the store when the process is gone."""
        child.terminate()
        end = time.monotonic() + _PATIENCE
        while child.processes("java") and time.monotonic() < end:
            time.sleep(0.1)
        problems = ["its Java lives on"] if child.processes("java") else []
        self._end()
        looked = points.look_anew()
        report.states[looked["rows"]] += 1
        report.said["done"] += answered
        return [*problems, *looked.get("problems", ())]

    def _stop_java(self, child: Child) -> None:
        stopped = child.processes("java")
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(self._stopped)
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _empty_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(exist_ok=True)

    def _living(self, statement: PointStatement) -> Child:
        """Reset the store; return the live driver, or a new one, prepared for a statement."""
        self._store.lay()
        if self._child is None:
            where = (
                self._store.dsn if isinstance(self._store, Postgresql) else str(self._store.live)
            )
            module, variables = "proof.trials.system.driver", {"TMPDIR": str(self._folder)}
            self._child = Child(StoreLocation(self._store.name, where), module, variables)
            self._child.ask("start")
        self._child.ask("prepare", statement=statement.name)
        return self._child

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.close()
            self._child = None


def table_lines(reports: list[SystemReport]) -> list[str]:
    """Return reports as a table.

    >>> print(table_lines([SystemReport("hive", "MERGE", "terminate", 3)])[2])
    | hive | MERGE | terminate | 3 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
    """
    lines: list[tuple[str, ...]] = [_HEADS, ("---",) * len(_HEADS)]
    for r in reports:
        report_counts = [r.said[word] for word in ("done", "failed", "changed", "unknown")]
        numbers = (
            r.trials,
            r.states["before"],
            r.states["after"],
            *report_counts,
            len(r.problems),
            round(r.seconds),
        )
        lines.append((r.store, r.statement, r.fault, *map(str, numbers)))
    return [f"| {' | '.join(line)} |" for line in lines]
