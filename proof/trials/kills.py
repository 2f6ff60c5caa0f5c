"""Kills or interrupts processes during a MERGE, and inspects the table afterwards:
``scripts/kill-trials``.

In a trial, a child runs a MERGE and gets a signal after a random time: SIGKILL for the driver with
all its children, or for one of Spark's Python workers; or SIGINT for the driver, like a notebook's
button. Then another process checks:

- The table has either the old or the new rows, without duplicates, and the statement's report is
  true.
- Leftovers are listed and can be removed.
- The next statement works.

``--every-point`` works without Spark, and strikes at every operation of a disk or database:
    `proof.trials.points`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from proof.engines.postgresql import private_server
from proof.trials.driver import StoreLocation, digest, initial_rows, merged_rows, news
from rowmerge_nb.base.errors import SetupError

__all__ = ["Child", "Report", "Trials", "main", "places"]

STORES: Final = ("hive", "sqlite", "postgresql", "iceberg")
KINDS: Final = ("worker", "driver")
PATIENCE_SECONDS: Final = 60
LATEST: Final = 1.6
"""The latest moment of trials, relative to an undisturbed statement: on a busy machine the next one
takes longer.
"""
_STAGED: Final = {"sqlite": "*.arrow", "hive": "_tmp_*/*"}
"""The files below a store's folder while tasks of a MERGE write.

Hive creates its own folder before the tasks begin.
"""
_DAEMON: Final = "rowmerge_nb.engine.spark.worker"


@dataclass
class Report:
    """The results of trials of one kind on one store.

    Args:
        store: the store.
        kind: the killed process.
        trials: the number of trials.
        old: tables with the old rows.
        new: tables with the new rows.
        finished: statements that ended before the kill, or were not disturbed.
        retried: statements that succeeded despite a killed worker, or had changed the table when
            the interrupt came.
        failed: failures.
        unknown: reports of an unknown outcome.
        orphans: the number of listed and removed leftovers.
        problems: sentences; none on success.
        seconds: the duration.
    """

    store: str
    kind: str
    trials: int = 0
    old: int = 0
    new: int = 0
    finished: int = 0
    retried: int = 0
    failed: int = 0
    unknown: int = 0
    orphans: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Child:
    """A process that obeys orders, the leader of its own process group.

    Args:
        place: the store.
        module: the module of the process.
        environment: additional environment variables.
    """

    def __init__(
        self,
        place: StoreLocation,
        module: str = "proof.trials.driver",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        command = [sys.executable, "-m", module, place.store, place.where]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )

    def order(self, order: str, **arguments: Any) -> None:
        """Send an order."""
        stdin: IO[bytes] = self._process.stdin  # type: ignore[assignment]
        stdin.write(json.dumps({"order": order, **arguments}).encode() + b"\n")
        stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Wait for an answer.

        Raises:
            RuntimeError: the process died.
        """
        line = self._process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            self._log.seek(0)
            raise RuntimeError(
                "The process of the trial died:"
                f" {self._log.read()[-3000:].decode(errors='replace')}"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, order: str, **arguments: Any) -> dict[str, Any]:
        """Send an order and wait for the answer."""
        self.order(order, **arguments)
        return self.answer()

    def has_answered(self, seconds: float) -> bool:
        """Wait for some seconds; return whether an answer is available."""
        stdout: IO[bytes] = self._process.stdout  # type: ignore[assignment]
        return bool(select.select([stdout], [], [], seconds)[0])

    def interrupt(self) -> None:
        """Send SIGINT, like a notebook's button."""
        os.kill(self._process.pid, signal.SIGINT)

    def terminate(self) -> None:
        """Send SIGTERM, like a machine that shuts down."""
        self._process.terminate()

    def processes(self, program: str) -> list[int]:
        """Return the processes of its session that run a program."""
        return [
            pid
            for pid, (_, command) in _session(self._process.pid).items()
            if command.partition(" ")[0].endswith(program)
        ]

    def workers(self) -> list[int]:
        """Return the Python workers of its Spark, forked by the daemon that Java started."""
        session = _session(self._process.pid)
        daemons = {
            pid
            for pid, (parent, command) in session.items()
            if _DAEMON in command and "java" in session.get(parent, (0, ""))[1]
        }
        return [
            pid
            for pid, (_, command) in session.items()
            if _DAEMON in command and "java" not in command and pid not in daemons
        ]

    def kill(self) -> None:
        """Kill it with all its children, and wait until they are gone."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        end = time.monotonic() + PATIENCE_SECONDS
        # Workers exit by themselves when their Spark is gone.
        while _session(self._process.pid) and time.monotonic() < end:
            time.sleep(0.05)

    def close(self) -> None:
        """Shut it down."""
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_SECONDS)
        if self._process.poll() is None:
            self.kill()
        self._process.stdout.close()  # type: ignore[union-attr]
        self._log.close()


def _session(leader: int) -> dict[int, tuple[int, str]]:
    """Return the parent and the command of every live process in the child's session."""
    command = ["ps", "-ww", "-eo", "pid=,ppid=,sid=,stat=,args="]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 4) for line in listing.splitlines()]
    alive = [row for row in rows if row[2] == str(leader) and not row[3].startswith("Z")]
    return {int(row[0]): (int(row[1]), row[4] if len(row) > 4 else "") for row in alive}


class Trials:
    """Trials on one store, which continue with the same table.

    Args:
        place: the store, empty.
        rows: the initial number of rows.
        changes: the number of rows in the source of every MERGE.
        seed: determines the moments.
        log: called with a line after every trial.
    """

    def __init__(
        self,
        place: StoreLocation,
        rows: int,
        changes: int,
        seed: int = 1,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._place = place
        self._changes = changes
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._log = log
        self._table = initial_rows(rows)
        self._number = 0
        self._seconds = 0.0
        self._driver: Child | None = None
        self._files = Path(tempfile.mkdtemp(prefix="rowmerge_nb-trials-"))

    def prepare(self) -> None:
        """Create the table, and measure an undisturbed MERGE."""
        child = self._living_driver()
        _succeeded(child.ask("create", rows=self._table.num_rows))
        after = self._next()
        began = time.monotonic()
        _succeeded(child.ask("merge", source=str(self._source)))
        self._seconds = time.monotonic() - began
        self._table = after
        state = self._look(remove=False)
        if state["digest"] != _digest(after) or state["orphans"]:
            raise RuntimeError(f"The MERGE that nobody disturbed left {state}")

    def close(self) -> None:
        """Shut the driver down, and remove temporary files."""
        if self._driver is not None:
            self._driver.close()
            self._driver = None
        shutil.rmtree(self._files, ignore_errors=True)

    def drivers(self, trials: int) -> Report:
        """Kill drivers."""
        report, began = Report(self._place.store, "driver"), time.monotonic()
        for number in range(trials):
            child = self._living_driver()
            self._later_statement(child, report)
            after = self._next()
            began_merge = time.monotonic()
            child.order("merge", source=str(self._source))
            delay = self._moment()
            if number % 2 and self._place.store in _STAGED:
                # Every second driver dies when rows are staged, or later.
                while not _has_staged(self._place) and not child.has_answered(0.05):
                    pass
                delay = self._random.uniform(0, self._seconds / 50)
            report.finished += child.has_answered(delay)
            delay = time.monotonic() - began_merge
            child.kill()
            child.close()
            self._driver = None
            self._judge(report, after, f"the driver was killed after {delay:.2f} s")
        self._later_statement(self._living_driver(), report)
        self._see(report, self._look(remove=False), "after the last statement", (self._table,))
        report.seconds = time.monotonic() - began
        return report

    def workers(self, trials: int) -> Report:
        """Kill Python workers of Spark."""
        report, began = Report(self._place.store, "worker"), time.monotonic()
        child = self._living_driver()
        for _ in range(trials):
            after = self._next()
            child.order("merge", source=str(self._source))
            delay = self._moment()
            killed = self._kill_a_worker(child, delay)
            answer = child.answer()
            succeeded = "error" not in answer
            report.finished += not killed
            report.retried += killed and succeeded
            report.failed += not succeeded
            what = (
                f"a worker was {'' if killed else 'not '}killed after {delay:.2f} s and the"
                f" statement said {answer}"
            )
            new = self._judge(report, after, what)
            if new != succeeded:
                report.problems.append(
                    f"{what}, and the table has {'changed' if new else 'not changed'}"
                )
        self._later_statement(child, report)
        report.seconds = time.monotonic() - began
        return report

    def interrupts(self, trials: int) -> Report:
        """Interrupt drivers, which survive."""
        report, began = Report(self._place.store, "interrupt"), time.monotonic()
        child = self._living_driver()
        for number in range(trials):
            after = self._next()
            child.order("merge", source=str(self._source))
            # Every second interrupt comes while rows are written and committed.
            delay, ordered = self._moment(0.7 if number % 2 else 0.0), time.monotonic()
            finished = child.has_answered(delay)
            if finished:
                # Spark gets faster, and the load of the machine varies.
                self._seconds = time.monotonic() - ordered
            else:
                child.interrupt()
            answer = child.answer()
            changed = answer.get("changed", True)
            report.finished += finished
            report.retried += not finished and changed is True
            report.failed += changed is False
            report.unknown += changed is None
            what = (
                f"the statement was {'not ' if finished else ''}interrupted after {delay:.2f} s and"
                f" said {answer}"
            )
            new = self._judge(report, after, what)
            if answer.get("untold") or (changed is not None and new != changed):
                report.problems.append(
                    f"{what}, and the table has {'changed' if new else 'not changed'}"
                )
            self._later_statement(child, report)
        report.seconds = time.monotonic() - began
        return report

    def _moment(self, earliest: float = 0.0) -> float:
        """Return random seconds until a trial strikes; the earliest moment is a fraction of a
        statement's duration.
        """
        return self._random.uniform(earliest, LATEST) * self._seconds

    def _living_driver(self) -> Child:
        """Return the live driver, or a new one."""
        if self._driver is None:
            self._driver = Child(self._place)
            self._driver.ask("start")
        return self._driver

    def _kill_a_worker(self, child: Child, delay: float) -> bool:
        """Wait, then kill a worker as soon as one exists; return False if the statement was faster."""
        wait = delay
        while not child.has_answered(wait):
            workers = child.workers()
            if workers:
                with suppress(ProcessLookupError):
                    os.kill(self._random.choice(workers), signal.SIGKILL)
                    return True
            wait = 0.02
        return False

    @property
    def _source(self) -> Path:
        return self._files / "news.arrow"

    def _next(self) -> pa.Table:
        """Write the source of the next MERGE; return the rows after it."""
        self._number += 1
        source = news(self._table.column("id").to_numpy(), self._changes, self._number)
        with pa.ipc.new_file(str(self._source), source.schema) as file:
            file.write_table(source)
        return merged_rows(self._table, source)

    def _later_statement(self, child: Child, report: Report) -> None:
        """Change one row."""
        key = int(self._random.choice(self._table.column("id").to_pylist()[:1000]))
        answer = child.ask("update", key=key)
        if answer.get("count") != 1:
            report.problems.append(f"a later statement said {answer}")
            return
        there = pa.compute.equal(self._table.column("id"), key)
        raised = pa.compute.add(self._table.column("v"), pa.compute.cast(there, pa.int64()))
        self._table = self._table.set_column(1, "v", raised)

    def _look(self, *, remove: bool) -> dict[str, Any]:
        with _child(self._place) as child:
            return child.ask("look", remove=remove)

    def _judge(self, report: Report, after: pa.Table, what: str) -> bool:
        """Inspect the table and leftovers; return whether it has the new rows."""
        report.trials += 1
        traces = _traces(self._place)
        state = self._look(remove=False)
        end = time.monotonic() + PATIENCE_SECONDS
        # A server notices with a delay that its client is gone.
        while traces and not state["orphans"] and time.monotonic() < end:
            state = self._look(remove=False)
        new = self._see(report, state, what, (self._table, after)) == 1
        report.old, report.new = report.old + (not new), report.new + new
        if traces and not state["orphans"]:
            report.problems.append(f"{what}, and {traces} are not listed")
        removed = self._look(remove=True) if state["orphans"] else state
        report.orphans += len(removed["orphans"])
        if removed["digest"] != state["digest"]:
            report.problems.append(
                f"{what}, and removing {removed['orphans']} has changed the table"
            )
        if still := _traces(self._place):
            report.problems.append(f"{what}, and {still} cannot be removed")
        if new:
            self._table = after
        line = (
            f"{report.store}, {report.kind} {report.trials}: {what}: {'new' if new else 'old'}"
            f" rows, {len(state['orphans'])} leftovers"
        )
        self._log(f"{line}; {len(report.problems)} problems")
        return new

    def _see(
        self, report: Report, state: dict[str, Any], what: str, possible: tuple[pa.Table, ...]
    ) -> int:
        for number, table in enumerate(possible):
            if state["digest"] == _digest(table):
                return number
        report.problems.append(
            f"{what}, and the table holds {state['digest']}, not one of"
            f" {[_digest(table) for table in possible]}"
        )
        # Judge the following trials by the actual rows.
        with _child(self._place) as child:
            child.ask("ids", target=str(self._files / "now.arrow"))
        with pa.memory_map(str(self._files / "now.arrow")) as file:
            self._table = pa.ipc.open_file(file).read_all()
        return 0


@contextmanager
def _child(place: StoreLocation) -> Iterator[Child]:
    child = Child(place)
    try:
        yield child
    finally:
        child.close()


def _digest(table: pa.Table) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(asdict(digest(table))))
    return result


def _succeeded(answer: dict[str, Any]) -> None:
    if "error" in answer:
        raise RuntimeError(answer["error"])


def _has_staged(place: StoreLocation) -> bool:
    """Return whether tasks of a MERGE have begun to write."""
    return next(Path(place.where).rglob(_STAGED[place.store]), None) is not None


def _traces(place: StoreLocation) -> list[str]:
    """Return traces of attempts, without the connector."""
    if place.store == "postgresql":
        from rowmerge_nb.connectors.jdbc.postgresql.postgres_store import PostgresStore

        session = PostgresStore(place.where).connect()
        try:
            tables = session.query(
                "SELECT relname::text AS name FROM pg_class WHERE relname LIKE 'rowmerge\\_nb%'"
            )
        finally:
            session.close()
        return [row["name"] for row in tables]
    pattern = {"sqlite": ".shop.db-*", "hive": "_tmp_*"}.get(place.store, "")
    return [str(path) for path in Path(place.where).rglob(pattern)] if pattern else []


@contextmanager
def places(store: str) -> Iterator[StoreLocation]:
    """Yield an empty store of a kind; remove it afterwards.

    Raises:
        SetupError: the machine lacks a requirement.
    """
    with ExitStack() as stack:
        if store == "postgresql":
            yield StoreLocation(store, stack.enter_context(private_server()))
        else:
            yield StoreLocation(
                store,
                stack.enter_context(tempfile.TemporaryDirectory(prefix=f"rowmerge_nb-{store}-")),
            )


def main(arguments: list[str] | None = None) -> int:
    """Run ``scripts/kill-trials``; return 1 after a wrong result."""
    words = sys.argv[1:] if arguments is None else arguments
    if "--every-point" in words:
        from proof.trials.points.__main__ import main as every_point

        return every_point([argument for argument in words if argument != "--every-point"])
    parser = argparse.ArgumentParser(
        prog="scripts/kill-trials",
        description=(
            "Kills and interrupts processes in the middle of a MERGE. With --every-point: faults at"
            " every operation; see its --help."
        ),
    )
    parser.add_argument(
        "--stores", default=",".join(STORES), help="of " + ",".join(STORES) + " (%(default)s)"
    )
    parser.add_argument("--kinds", default=",".join(KINDS), help="what is killed (%(default)s)")
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="rows of the table (%(default)s)"
    )
    parser.add_argument(
        "--changes", type=int, default=100_000, help="rows of the source (%(default)s)"
    )
    parser.add_argument(
        "--trials", type=int, default=10, help="kills per store and kind (%(default)s)"
    )
    parser.add_argument(
        "--interrupts", type=int, default=10, help="interrupts per store (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="decides about the times (%(default)s)")
    options = parser.parse_args(words)
    reports = []
    for store in options.stores.split(","):
        try:
            with places(store) as place:
                reports += _of_store(place, options)
        except SetupError as error:
            print(f"Without {store}: {error}", file=sys.stderr)
    for line in table_lines(reports):
        print(line)
    for problem in (problem for report in reports for problem in report.problems):
        print(problem)
    return 1 if any(report.problems for report in reports) else 0


def _of_store(place: StoreLocation, options: argparse.Namespace) -> list[Report]:
    trials = Trials(
        place, options.rows, options.changes, options.seed, lambda line: print(line, flush=True)
    )
    try:
        trials.prepare()
        interrupted = [trials.interrupts(options.interrupts)] if options.interrupts else []
        return interrupted + [
            getattr(trials, f"{kind}s")(options.trials)
            for kind in options.kinds.split(",")
            if options.trials
        ]
    finally:
        trials.close()


def table_lines(reports: list[Report]) -> list[str]:
    """Return reports as a table.

    >>> print(table_lines([Report("sqlite", "driver", 10, 7, 3, 1)])[2])
    | sqlite | driver | 10 | 7 | 3 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |
    """
    heads = [
        "store",
        "killed",
        "trials",
        "old rows",
        "new rows",
        "undisturbed",
        "succeeded",
        "failed",
        "unknown",
        "leftovers",
        "problems",
        "s",
    ]
    rows = [
        (
            *(
                r.store,
                r.kind,
                r.trials,
                r.old,
                r.new,
                r.finished,
                r.retried,
                r.failed,
                r.unknown,
                r.orphans,
            ),
            *(len(r.problems), round(r.seconds)),
        )
        for r in reports
    ]
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


if __name__ == "__main__":
    raise SystemExit(main())
