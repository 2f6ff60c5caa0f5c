"""Trials, each in a process forked from one that has loaded everything and opened nothing."""

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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from proof.trials.neighbour import Neighbour
from proof.trials.points.in_process import MERGE, after_merge, without_spark
from proof.trials.points.statements import (
    STATEMENTS,
    Acting,
    PointStatement,
    Seen,
    observe,
    rows_of,
    version_of,
)
from proof.trials.points.stores import FURTHER, NEWS, Store, shape, table_of
from proof.trials.points.watch import BESIDE, ENDING, FAULTS, LASTING, LINE, Fault, Point, Watch
from proof.trials.points.wrapping import watch_process
from rowmerge_nb.base.errors import RowMergeError

if TYPE_CHECKING:
    from rowmerge_nb.spi.connector import Connector

__all__ = ["PointReport", "Trials", "asked_together", "warm"]

_PATIENCE: Final = 90.0
_MEETING: Final = 1.5
_NOT_REACHED: Final = "the point was not reached"
_REMOVAL: Final = "ALTER TABLE t EXECUTE remove_orphan_files(retention_threshold => '0s')"


@dataclass
class PointReport:
    """The results of one fault in one statement on one store.

    Args:
        store: the store.
        statement: the statement.
        fault: the kind of fault.
        points: the number of points of the statement.
        trials: the number of trials.
        before: stores in the old state.
        after: stores in the new state; a statement without visible changes always leaves the old
            one.
        said: the number of reports ``done``, ``failed``, ``changed``, ``unknown``; a killed process
            has none.
        leftovers: the number of listed and removed leftovers.
        problems: sentences; none on success.
        seconds: the duration.
    """

    store: str
    statement: str = "MERGE"
    fault: str = ""
    points: int = 0
    trials: int = 0
    before: int = 0
    after: int = 0
    said: Counter[str] = field(default_factory=Counter)
    leftovers: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Trials:
    """Trials of one statement on one store.

    Args:
        store: the store, empty.
        statement: the statement.
        log: called with a line after every trial.
    """

    def __init__(
        self,
        store: Store,
        statement: PointStatement = STATEMENTS["MERGE"],
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._case = statement
        self._log = log
        self.points: list[Point] = []
        self._lines = 0
        self._things: dict[str, list[str]] = {}
        self.states: dict[str, Seen] = {}

    def prepare(self) -> None:
        """Create the table if necessary, and count the points of an undisturbed statement."""
        if self._store.survives and not self._store.is_saved:
            _asked(self._fill)
            self._store.save()
        answers = _asked(lambda: self._statement(None))
        if answers.get("said") != "done" or answers.get("problems"):
            raise RuntimeError(
                f"{self._case.name} on {self._store.name} that nobody disturbs came to this:"
                f" {answers}"
            )
        self.points = [Point(**point) for point in answers["points"]]
        self._lines = answers["lines"]
        self._things = answers["things"]
        self.states = answers["states"]

    def faults(
        self, sample: int | None = None, seed: int = 1, kinds: Sequence[str] = FAULTS
    ) -> list[Fault]:
        """Return all faults, or a reproducible sample."""
        every = [
            Fault(kind, point.number, after)
            for point in _distinct(self.points)
            for kind in kinds
            for after in (False, True)
            if self._applies(kind, point, after=after)
        ]
        if sample is None or sample >= len(every):
            return every
        return sorted(
            random.Random(seed).sample(every, sample),  # noqa: S311
            key=lambda f: (f.number, f.kind, f.after),
        )

    def _applies(self, kind: str, point: Point, *, after: bool) -> bool:
        """Return whether a fault makes sense at a point."""
        if kind in BESIDE:
            return self._store.survives and not after
        if kind in LASTING and after:
            return False
        if kind in {"read-only", "descriptors"} and self._store.name == "postgresql":
            # The files belong to the server.
            return False
        return {"read-only": point.lasts, "descriptors": point.opens}.get(kind, True)

    def lines(self, sample: int | None = None, seed: int = 1) -> list[Fault]:
        """Return interrupts at lines of the package from ``finish_merge`` on: all, or a sample."""
        every = [Fault(LINE, number) for number in range(1, self._lines + 1)]
        return (
            every
            if sample is None or sample >= len(every)
            else random.Random(seed).sample(every, sample)  # noqa: S311
        )

    def run(self, faults: list[Fault]) -> list[PointReport]:
        """Try faults; return a report per kind of fault."""
        reports: dict[str, PointReport] = {}
        for fault in faults:
            new = PointReport(self._store.name, self._case.name, fault.kind, len(self.points))
            report, began = reports.setdefault(fault.kind, new), time.monotonic()
            problems = self._trial(fault, report)
            what = f"{report.store}, {report.statement}, {fault}"
            if fault.kind != LINE:
                point = self.points[fault.number - 1]
                what += f" ({point.name} {point.about[-70:]})"
            report.problems += [f"{what}: {problem}" for problem in problems]
            self._log(f"{what}: {problems or 'as it has to be'}")
            report.seconds += time.monotonic() - began
        return list(reports.values())

    def _trial(self, fault: Fault, report: PointReport) -> list[str]:
        report.trials += 1
        answers = _asked(lambda: self._statement(fault))
        if _NOT_REACHED in answers.get("problems", ()):
            # Garbage collection would add points at random times.
            answers = _asked(lambda: self._statement(fault))
        problems = list(answers.get("problems", ()))
        swept = _asked(lambda: {"left": self._store.swept()})["left"]
        problems += [f"{swept} are left when the process is gone"] if swept else []
        if fault.kind in ENDING and answers.get("died") and self._store.survives:
            answers = {**_asked(lambda: self._look(None)), "said": "nothing"}
            problems += answers.get("problems", ())
        elif self._store.survives and "rows" in answers:
            again = _asked(lambda: self._look_again(answers["further"]))
            problems += [
                f"another process sees: {problem}" for problem in again.get("problems", ())
            ]
        report.said[answers.get("said", "nothing")] += answers.get("said", "nothing") != "nothing"
        report.leftovers += answers.get("leftovers", 0)
        report.before += answers.get("rows") == "before"
        report.after += answers.get("rows") == "after"
        return problems

    # -- in a process of their own

    def _fill(self) -> dict[str, Any]:
        with without_spark():
            connector = self._store.connector()
            engine = self._store.engine(connector)
            self._store.fill(engine)
            # Deltas, deleted rows and snapshots, for maintenance statements.
            engine.run("UPDATE t SET v = v + 1 WHERE id < 3", trace="off")
            engine.run("UPDATE t SET v = v - 1 WHERE id < 3", trace="off")
            connector.close()
        return {}

    def _statement(self, fault: Fault | None) -> dict[str, Any]:
        """Run the statement, and inspect the result."""
        self._store.lay()
        neighbour_answers: list[dict[str, Any]] = []
        neighbour = (
            Neighbour(self._neighbour) if fault is not None and fault.kind in BESIDE else None
        )
        watch = Watch(
            fault,
            lambda: neighbour_answers.extend(neighbour.ask({"do": watch.fault.kind}, _MEETING)),  # type: ignore[union-attr]
        )
        watch_process(watch, self._store.directories)
        with without_spark():
            connector = self._store.connector()
            engine = self._store.engine(connector)
            acting = Acting(
                self._store, connector, engine, version_of(connector, self._store.schema)
            )
            self._case.prepare(acting)
            before = self._store.things(), observe(connector, self._store.schema)
            report = _said(self._case, acting, watch)
            problems = report.pop("problems")
            if fault is not None and not watch.struck:
                problems.append(_NOT_REACHED)
            if not self._things:
                report["things"] = {"before": before[0], "after": self._store.things()}
                report["states"] = {
                    "before": before[1],
                    "after": observe(connector, self._store.schema),
                }
                report["lines"] = watch.lines
                report["points"] = [vars(point) for point in watch.points]
            if neighbour is not None:
                problems += self._judged([*neighbour_answers, *neighbour.answers(_PATIENCE)])
                neighbour.close()
            looked = self._look(acting, report["said"])
            problems += looked.pop("problems")
            problems += self._truth(report["said"], looked["rows"])
            if (
                fault is not None
                and fault.kind in BESIDE
                and report["said"] != "done"
                and "TRANSACTION_CONFLICT" not in report["words"]
            ):
                problems.append(f"it failed beside another process: {report['words']}")
            if (
                fault is not None
                and fault.kind in {"interrupt", LINE}
                and watch.struck
                and report["said"] == "done"
            ):
                problems.append("the interrupt was lost")
            connector.close()
        problems = [f"{watch.place} {problem}".strip() for problem in problems]
        return {**report, **looked, "problems": problems}

    def _neighbour(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """Open the store in another process, which reads or removes leftovers at the point."""
        tokens = without_spark()
        tokens.__enter__()
        connector = self._store.connector()

        def answer(order: dict[str, Any]) -> dict[str, Any]:
            try:
                if order["do"] == "remover":
                    connector.remove_orphans()
                    if self._store.name == "iceberg":
                        self._store.engine(connector).run(_REMOVAL, trace="off")
                    return {}
                return {
                    "seen": observe(connector, self._store.schema),
                    "rows": self._store.foreign_rows(),
                }
            except Exception as error:  # noqa: BLE001 - the trial tells
                conflict = isinstance(error, RowMergeError) and error.code in {
                    "TRANSACTION_CONFLICT",
                    "TABLE_NOT_FOUND",
                }
                return {} if conflict else {"error": f"{order['do']}: {error!r}"}

        return answer

    def _judged(self, answers: list[dict[str, Any]]) -> list[str]:
        """Return problems in what another process saw at the point."""
        problems = [answer["error"] for answer in answers if "error" in answer]
        for answer in answers:
            if "seen" in answer and self.state_of(answer["seen"]) is None:
                problems.append(f"a reader in between sees {answer['seen']}")
            if answer.get("rows") is not None and answer["rows"] not in map(
                rows_of, self.states.values()
            ):
                problems.append(f"an independent reader in between sees {answer['rows']}")
        return problems

    def state_of(self, seen: Seen) -> str | None:
        """Return whether the store is in the old or the new state; None if neither."""
        return next((state for state, content in self.states.items() if content == seen), None)

    def look_anew(self) -> dict[str, Any]:
        """Inspect the store in a new process after that of the statement has ended."""
        return _asked(lambda: self._look(None))

    def truth_of(self, said: str, state: str) -> list[str]:
        """Return what is wrong with a statement's report."""
        return self._truth(said, state)

    def _look(self, acting: Acting | None, said: str = "") -> dict[str, Any]:
        """Check the state of the store, leftovers, and another statement.

        Args:
            acting: the open store; None opens it.
            said: the statement's report.
        """
        problems: list[str] = []
        with without_spark():
            connector = self._store.connector() if acting is None else acting.connector
            content = json.loads(json.dumps(observe(connector, self._store.schema)))
            state = self.state_of(content) if self.states else "after"
            if state is None:
                return {
                    "rows": "neither",
                    "problems": [f"the store holds {content}"],
                    "further": None,
                }
            problems += self._foreign(rows_of(content), "an independent reader sees")
            listed = self._removed(connector, state, said, problems)
            if content != json.loads(json.dumps(observe(connector, self._store.schema))):
                problems.append("removing leftovers has changed the store")
            further = self._further(connector, content, problems)
            if acting is None:
                connector.close()
        return {"rows": state, "leftovers": listed, "problems": problems, "further": further}

    def _look_again(self, further: list[list[Any]] | None) -> dict[str, Any]:
        """Check the result of the second statement in another process."""
        if further is None:
            return {}
        with without_spark():
            connector = self._store.connector()
            rows = rows_of(observe(connector, self._store.schema))
            connector.close()
        problems = [] if rows == further else [f"the table holds {rows}, and not {further}"]
        return {"problems": problems + self._foreign(further, "an independent reader sees")}

    def _foreign(self, expected: list[list[Any]], words: str) -> list[str]:
        try:
            rows = self._store.foreign_rows()
        except Exception as error:  # noqa: BLE001 - whatever it is, the table cannot be read
            return [f"an independent reader cannot read the table: {error!r}"]
        return [] if rows is None or rows == expected else [f"{words} {rows}, and not {expected}"]

    def _further(self, connector: Connector, seen: Seen, problems: list[str]) -> list[list[Any]]:
        """Run another MERGE, on a new table if none exists; return the expected rows."""
        engine = self._store.engine(connector)
        rows = {row[0]: (row[1], row[2]) for row in rows_of(seen)}
        further = sorted([key, *values] for key, values in after_merge(rows, dict(FURTHER)).items())
        try:
            if seen["t"] is None:
                engine.run(
                    "CREATE TABLE t (id bigint, v bigint, name varchar)"
                    + self._store.properties[1],
                    trace="off",
                )
            engine.merge(table_of(FURTHER))
        except Exception as error:  # noqa: BLE001 - it is reported
            problems.append(f"a further statement fails: {error!r}")
        present_rows = rows_of(observe(connector, self._store.schema))
        if present_rows != further:
            problems.append(
                f"after a further statement the table holds {present_rows}, and not {further}"
            )
        return further

    def _removed(self, connector: Connector, state: str, said: str, problems: list[str]) -> int:
        """List and remove leftovers; the rest must be the same as after an undisturbed statement."""
        if not self._things:
            return 0
        self._store.age()
        # A statement that changes no row may be visible in its files only.
        states = [state] if self.states["before"] != self.states["after"] else ["before", "after"]
        expected = [shape(self._things[possible]) for possible in states]

        def strays() -> list[str]:
            return min((_more(shape(self._store.things()), shapes) for shapes in expected), key=len)

        orphans = connector.orphans()
        end = time.monotonic() + 20
        # A server notices with a delay that its client is gone.
        while (
            self._store.name == "postgresql" and strays() and not orphans and time.monotonic() < end
        ):
            time.sleep(0.02)
            orphans = connector.orphans()
        if (rest := strays()) and not orphans:
            problems.append(f"{rest} are not listed")
        removed = connector.remove_orphans()
        if rest := strays():
            problems.append(f"{rest} are left, {len(removed)} leftovers were removed")
        if missing := min(
            (_more(shapes, shape(self._store.things())) for shapes in expected), key=len
        ):
            problems.append(f"{missing} are missing")
        return len(removed)

    def _truth(self, said: str, rows: str) -> list[str]:
        """Return whether the report is true, as far as visible."""
        if not self.states or self.states["before"] == self.states["after"]:
            return []
        expected_state = {"done": "after", "changed": "after", "failed": "before"}.get(said)
        return (
            [f"it said '{said}', and the store is as {rows}"]
            if expected_state not in {None, rows}
            else []
        )


def _distinct(points: list[Point]) -> list[Point]:
    """Reduce the writes to one file to the first and the last one."""
    abouts = [(point.name, point.about) for point in points]
    edges = zip(points, [None, *abouts], abouts, [*abouts[1:], None], strict=False)
    return [point for point, before, own, after in edges if own != before or own != after]


def _more(these: list[str], those: list[str]) -> list[str]:
    """Return the surplus of one list over the other."""
    return sorted((Counter(these) - Counter(those)).elements())


def _said(statement: PointStatement, acting: Acting, watch: Watch) -> dict[str, Any]:
    """Run the statement; return its report, as one word and as text."""
    problems: list[str] = []
    traced = watch.fault is None or watch.fault.kind == LINE
    if traced and statement.name == "MERGE":

        def begin(step: str) -> None:
            if step == "finish_merge":
                watch.trace_lines()

        statement = replace(
            statement,
            run=lambda acting: acting.sql(
                MERGE, namespace={"news": table_of(NEWS)}, progress=begin
            ),
        )
    with watch.watching():
        try:
            result = statement.run(acting)
        except RowMergeError as error:
            report, words = _state(error), str(error)
            if watch.fault is not None and watch.fault.kind in {"error", *LASTING}:
                problems += [] if _names_cause(error) else [f"the cause is not told: {error}"]
        except BaseException as error:  # noqa: BLE001 - it is reported
            report, words = "nothing", f"{error!r}"
            if isinstance(error, KeyboardInterrupt) and statement.name == "remove_orphans":
                # A Python method, not a statement: it is not shielded, and makes no report.
                return {"said": report, "words": words, "problems": []}
            problems.append(
                f"it raised {error!r}: {''.join(traceback.format_exception(error)[-4:])}"
            )
        else:
            # Later interrupts come after the statement.
            watch.end()
            report, words = "done", str(getattr(result, "count", None))
    return {"said": report, "words": words, "problems": problems}


def _state(error: RowMergeError) -> str:
    """Return an error's claim about the table in one word."""
    return {False: "failed", True: "changed", None: "unknown"}[error.changed]


def _names_cause(error: RowMergeError) -> bool:
    text = str(error)
    words = (
        *(
            "No space left",
            "Input/output error",
            "is full",
            "disk I/O error",
            "closed the connection",
            "ENOSPC",
        ),
        *(
            "Too many open files",
            "unable to open database file",
            "Read-only file system",
            "readonly database",
            "is read-only",
        ),
    )
    return any(word in text for word in words)


def _asked(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return asked_together([ask])[0]


def asked_together(asks: Sequence[Callable[[], dict[str, Any]]]) -> list[dict[str, Any]]:
    """Run functions concurrently in child processes; return their results, ``died`` for a process
    killed by a signal.
    """
    # Freeze the parent's objects, so that children do not collect them.
    gc.freeze()
    return [_answered(*process) for process in [_begun(ask) for ask in asks]]


def _begun(ask: Callable[[], dict[str, Any]]) -> tuple[int, int]:
    """Start a process; return its number and the pipe of its result."""
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
        return {
            "died": True,
            "problems": [] if os.WTERMSIG(status) in ENDING.values() else [f"it died of {status}"],
        }
    if not content:
        return {"problems": [f"its process ended with status {status}"]}
    answer: dict[str, Any] = json.loads(content)
    return answer


def _answer(ask: Callable[[], dict[str, Any]], writing: int) -> None:
    """Run a function, write its result, and exit without the parent's exit handlers."""
    status = 0
    try:
        answer = ask()
    except BaseException as error:  # noqa: BLE001 - the parent tells
        answer = {
            "problems": [f"it raised {error!r}: {''.join(traceback.format_exception(error)[-6:])}"]
        }
    try:
        with os.fdopen(writing, "wb") as file:
            file.write(json.dumps(answer).encode())
    except BaseException:  # noqa: BLE001 - there is no way to tell more
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _read(reading: int) -> tuple[bytes, bool]:
    """Read to the end; return False on a timeout."""
    content, end = b"", time.monotonic() + _PATIENCE
    while (remaining := end - time.monotonic()) > 0:
        if select.select([reading], [], [], remaining)[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                return content, True
            content += part
    return content, False


def _warm() -> Iterator[str]:
    """Import what the trials need, for forks."""
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
        "rowmerge_nb.connectors.hive_acid.hive_connector",
        "rowmerge_nb.connectors.iceberg.iceberg_connector",
        "rowmerge_nb.connectors.jdbc.sqlite.sqlite_connector",
        "rowmerge_nb.connectors.jdbc.postgresql.postgres_connector",
        "rowmerge_nb.connectors.iceberg.commits",
        "rowmerge_nb.sql.analyzer.statements.statement",
        "rowmerge_nb.sql.parser.statement_reader",
    ):
        __import__(name)
        yield name


def warm() -> None:
    """Import what the trials need, for forks, without opening anything; limit Arrow's threads."""
    for _ in _warm():
        pass
