"""Trials: each in a process of its own, forked from one that has loaded everything and opened nothing."""

from __future__ import annotations

import gc
import json
import os
import random
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from proof.trials.points.in_process import after_merge, without_spark
from proof.trials.points.stores import FURTHER, NEWS, ROWS, Rows, Store, shape, table_of
from proof.trials.points.watch import FAULTS, LINE, Fault, Point, Watch
from proof.trials.points.wrapping import watch_process
from rowmerge_nb.errors import RowMergeError

if TYPE_CHECKING:
    from proof.trials.points.in_process import InProcessEngine
    from rowmerge_nb.spi.connector import Connector

__all__ = ["PointReport", "Trials", "asked_together", "warm"]

_PATIENCE: Final = 90.0
_NOT_REACHED: Final = "the point was not reached"
_NEW: Final = after_merge(dict(ROWS), dict(NEWS))


@dataclass
class PointReport:
    """What came of the trials on one store.

    Args:
        store: the store.
        points: how many points a MERGE has there.
        trials: how many trials there were.
        before: how often the table held the rows of before.
        after: how often those of after.
        said: how often the statement said what: ``done``, ``failed``, ``changed``, ``unknown``; nothing where the process was killed.
        leftovers: how many leftovers were listed and removed.
        problems: sentences; none if all is well.
        seconds: how long it took.
    """

    store: str
    points: int = 0
    trials: int = 0
    before: int = 0
    after: int = 0
    said: Counter[str] = field(default_factory=Counter)
    leftovers: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Trials:
    """Trials on one store.

    Args:
        store: the store, empty.
        told: is given a line after every trial.
    """

    def __init__(self, store: Store, told: Callable[[str], None] = lambda _: None) -> None:
        self._store = store
        self._told = told
        self.points: list[Point] = []
        self._lines = 0
        self._things: dict[str, list[str]] = {}

    def prepare(self) -> None:
        """Make the table, and count the points of a MERGE that nobody disturbs."""
        if self._store.survives:
            _asked(self._fill)
            self._store.save()
        told = _asked(lambda: self._statement(None))
        if told["said"] != "done" or told["rows"] != "after" or told.get("problems"):
            msg = f"The MERGE that nobody disturbed came to this: {told}"
            raise RuntimeError(msg)
        self.points = [Point(**point) for point in told["points"]]
        self._lines = told["lines"]
        self._things = told["things"]

    def faults(self, sample: int | None = None, seed: int = 1) -> list[Fault]:
        """Give the faults to try: all of them, or some, always the same ones."""
        every = [
            Fault(kind, point.number, after)
            for point in self.points
            for kind in FAULTS
            for after in (False, True)
            if not (kind == "lasting" and after)
        ]
        if sample is None or sample >= len(every):
            return every
        return sorted(random.Random(seed).sample(every, sample), key=lambda f: (f.number, f.kind, f.after))  # noqa: S311 - no secret

    def lines(self, sample: int | None = None, seed: int = 1) -> list[Fault]:
        """Give an interrupt at every line of the package from ``finish_merge`` on, or at some."""
        every = [Fault(LINE, number) for number in range(1, self._lines + 1)]
        return every if sample is None or sample >= len(every) else random.Random(seed).sample(every, sample)  # noqa: S311 - no secret

    def run(self, faults: list[Fault]) -> PointReport:
        """Try faults."""
        report, began = PointReport(self._store.name, len(self.points)), time.monotonic()
        for fault in faults:
            problems = self._trial(fault, report)
            what = f"{report.store}, {fault}"
            if fault.kind != LINE:
                point = self.points[fault.number - 1]
                what += f" ({point.name} {point.about[-70:]})"
            report.problems += [f"{what}: {problem}" for problem in problems]
            self._told(f"{what}: {problems or 'as it has to be'}")
        report.seconds = time.monotonic() - began
        return report

    def _trial(self, fault: Fault, report: PointReport) -> list[str]:
        report.trials += 1
        told = _asked(lambda: self._statement(fault))
        if _NOT_REACHED in told.get("problems", ()):
            # What the collector of garbage removes comes at times of its own.
            told = _asked(lambda: self._statement(fault))
        problems = list(told.get("problems", ()))
        left = _asked(lambda: {"left": self._store.swept()})["left"]
        problems += [f"{left} are left when the process is gone"] if left else []
        if fault.kind == "kill" and told.get("died") and self._store.survives:
            told = {**_asked(lambda: self._look(None)), "said": "nothing"}
            problems += told.get("problems", ())
        elif self._store.survives and "rows" in told:
            again = _asked(lambda: self._look(None, ended=True))
            problems += [f"another process sees: {problem}" for problem in again.get("problems", ())]
        report.said[told.get("said", "nothing")] += told.get("said", "nothing") != "nothing"
        report.leftovers += told.get("leftovers", 0)
        report.before += told.get("rows") == "before"
        report.after += told.get("rows") == "after"
        return problems

    # -- in a process of their own ------------------------------------------------------------------------------------

    def _fill(self) -> dict[str, Any]:
        with without_spark():
            connector = self._store.connector()
            self._store.fill(self._store.engine(connector))
            connector.close()
        return {}

    def _statement(self, fault: Fault | None) -> dict[str, Any]:
        """Run the statement, and look at what came of it."""
        self._store.lay()
        before = self._store.things()
        watch = Watch(fault)
        watch_process(watch, self._store.directories)
        with without_spark():
            connector = self._store.connector()
            engine = self._store.engine(connector)
            told = _said(engine, watch)
            problems = told.pop("problems")
            if fault is not None and not watch.struck:
                problems.append(_NOT_REACHED)
            if not self._things:
                told["things"] = {"before": before, "after": self._store.things()}
                told["lines"] = watch.lines
                told["points"] = [vars(point) for point in watch.points]
            looked = self._look(connector)
            problems += looked.pop("problems")
            problems += _truth(told["said"], looked["rows"])
            if fault is not None and fault.kind in {"interrupt", LINE} and watch.struck and told["said"] == "done":
                problems.append("the interrupt was lost")
            connector.close()
        problems = [f"{watch.place} {problem}".strip() for problem in problems]
        return {**told, **looked, "problems": problems}

    def _look(self, connector: Connector | None, *, ended: bool = False) -> dict[str, Any]:
        """See that the rows are those of before or of after, what is left behind, and that a further MERGE works.

        Args:
            connector: the store as it was opened; None opens it.
            ended: the further MERGE has been run.
        """
        problems: list[str] = []
        with without_spark():
            opened = connector or self._store.connector()
            found = self._store.rows(opened)
            states: dict[str, Rows] = {"before": ROWS, "after": _NEW}
            if ended:
                states = {state: after_merge(dict(rows), dict(FURTHER)) for state, rows in states.items()}
            state = next((state for state, rows in states.items() if rows == found), None)
            if state is None:
                return {"rows": "neither", "problems": [f"the table holds {found}"]}
            if ended:
                return {"rows": state, "problems": problems}
            listed = self._removed(opened, state, problems)
            engine = self._store.engine(opened)
            try:
                engine.merge(table_of(FURTHER))
            except Exception as error:  # noqa: BLE001 - it is told
                problems.append(f"a further MERGE fails: {error!r}")
            further = after_merge(dict(states[state]), dict(FURTHER))
            if self._store.rows(opened) != further:
                problems.append(f"after a further MERGE the table holds {self._store.rows(opened)}")
            if connector is None:
                opened.close()
        return {"rows": state, "leftovers": listed, "problems": problems}

    def _removed(self, connector: Connector, state: str, problems: list[str]) -> int:
        """Have leftovers listed and removed; what there is then must be what a statement that nobody disturbed leaves."""
        if not self._things:
            return 0
        self._store.age()
        wanted = shape(self._things[state])
        strays = _more(shape(self._store.things()), wanted)
        orphans = connector.orphans()
        end = time.monotonic() + 20
        # A server needs a moment to notice that its client is gone.
        while self._store.name == "postgresql" and strays and not orphans and time.monotonic() < end:
            time.sleep(0.02)
            strays, orphans = _more(shape(self._store.things()), wanted), connector.orphans()
        if strays and not orphans:
            problems.append(f"{strays} are not listed")
        removed = connector.remove_orphans()
        if strays := _more(shape(self._store.things()), wanted):
            problems.append(f"{strays} are left, {len(removed)} leftovers were removed")
        if missing := _more(wanted, shape(self._store.things())):
            problems.append(f"{missing} are missing")
        return len(removed)


def _more(these: list[str], those: list[str]) -> list[str]:
    """Give what there is more of in one list than in the other."""
    return sorted((Counter(these) - Counter(those)).elements())


def _said(engine: InProcessEngine, watch: Watch) -> dict[str, Any]:
    """Run the statement, and give what it says, in one word and in its own."""
    problems: list[str] = []
    traced = watch.fault is None or watch.fault.kind == LINE
    with watch.watching():
        try:
            result = engine.merge(table_of(NEWS), lambda step: watch.trace_lines() if step == "finish_merge" and traced else None)
        except RowMergeError as error:
            said, words = _state(error), str(error)
            if watch.fault is not None and watch.fault.kind in {"error", "lasting"}:
                problems += [] if _names_cause(error) else [f"the cause is not told: {error}"]
        except BaseException as error:  # noqa: BLE001 - it is told
            said, words = "nothing", f"{error!r}"
            problems.append(f"it raised {error!r}: {''.join(traceback.format_exception(error)[-4:])}")
        else:
            # What comes from here on comes after the statement.
            watch.end()
            said, words = "done", str(result.count)
    return {"said": said, "words": words, "problems": problems}


def _state(error: RowMergeError) -> str:
    """Give in one word what an error says of the table."""
    return {False: "failed", True: "changed", None: "unknown"}[error.changed]


def _names_cause(error: RowMergeError) -> bool:
    text = str(error)
    words = ("No space left", "Input/output error", "is full", "disk I/O error", "closed the connection", "ENOSPC")
    return any(word in text for word in words)


def _truth(said: str, rows: str) -> list[str]:
    """Say whether what was said is true."""
    wanted = {"done": "after", "changed": "after", "failed": "before"}.get(said)
    return [f"it said '{said}', and the table holds the rows of {rows}"] if wanted not in {None, rows} else []


def _asked(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return asked_together([ask])[0]


def asked_together(asks: Sequence[Callable[[], dict[str, Any]]]) -> list[dict[str, Any]]:
    """Do things in processes of their own, all at the same time, and give their answers; ``died`` where one was killed by a signal."""
    # What the parent has made must not be collected by every child anew.
    gc.freeze()
    return [_answered(*begun) for begun in [_begun(ask) for ask in asks]]


def _begun(ask: Callable[[], dict[str, Any]]) -> tuple[int, int]:
    """Start a process; give its number and where its answer is to be read."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _answer(ask, writing)
    os.close(writing)
    return pid, reading


def _answered(pid: int, reading: int) -> dict[str, Any]:
    content, timely = _read(reading)
    os.close(reading)
    if not timely:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not timely:
        return {"problems": [f"it did not end within {_PATIENCE:.0f} s"]}
    if os.WIFSIGNALED(status):
        return {"died": True, "problems": [] if os.WTERMSIG(status) == signal.SIGKILL else [f"it died of {status}"]}
    if not content:
        return {"problems": [f"its process ended with status {status}"]}
    answer: dict[str, Any] = json.loads(content)
    return answer


def _answer(ask: Callable[[], dict[str, Any]], writing: int) -> None:
    """Do something, write the answer, and end, without anything that the parent would do when it ends."""
    status = 0
    try:
        answer = ask()
    except BaseException as error:  # noqa: BLE001 - the parent tells
        answer = {"problems": [f"it raised {error!r}: {''.join(traceback.format_exception(error)[-6:])}"]}
    try:
        with os.fdopen(writing, "wb") as file:
            file.write(json.dumps(answer).encode())
    except BaseException:  # noqa: BLE001 - there is no way to tell more
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _read(reading: int) -> tuple[bytes, bool]:
    """Read to the end; False if that takes too long."""
    content, end = b"", time.monotonic() + _PATIENCE
    while (left := end - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                return content, True
            content += part
    return content, False


def _warm() -> Iterator[str]:
    """Load what the trials need, so that a fork has it."""
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    os.environ["PYICEBERG_MAX_WORKERS"] = "1"
    for name in (
        "adbc_driver_sqlite.dbapi",
        "adbc_driver_postgresql.dbapi",
        "pyiceberg.catalog.sql",
        "pyiceberg.io.pyarrow",
        "pyspark",
        "rowmerge_nb.connectors.hive_acid.connector",
        "rowmerge_nb.connectors.iceberg.connector",
        "rowmerge_nb.connectors.jdbc.sqlite.connector",
        "rowmerge_nb.connectors.jdbc.postgresql.connector",
        "rowmerge_nb.connectors.iceberg.commits",
        "rowmerge_nb.sql.analyzer.statements",
        "rowmerge_nb.sql.parser.statements",
    ):
        __import__(name)
        yield name


def warm() -> None:
    """Load what the trials need, so that every fork has it; nothing is opened, and Arrow is told to have few threads."""
    for _ in _warm():
        pass
