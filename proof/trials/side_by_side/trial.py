"""The trial on one store: concurrent writers, an independent reader, and a final check."""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proof.engines.postgresql import private_server
from proof.trials.local_spark import LocalEngine, without_spark
from proof.trials.neighbour import Neighbour
from proof.trials.readers import READERS, unreadable_snapshots
from proof.trials.side_by_side.ledger import (
    SHARED,
    Journal,
    Row,
    State,
    check_counters,
    check_rows,
    name_of,
    states_between,
)
from proof.trials.side_by_side.pauses import Pauses
from proof.trials.side_by_side.statements import Statement, Writer, own_table
from proof.trials.side_by_side.writing import (
    OurWriter,
    OutsideWriter,
    last_lines,
    open_store,
    read_rows,
    run_statement,
    schema_of,
    write,
)
from rowmerge_nb.connectors.hive_acid.hive_connector import HiveAcidConnector

if TYPE_CHECKING:
    from rowmerge_nb.spi.connector import Connector

__all__ = ["STORES", "Summary", "run_trial"]

STORES: Final = ("hive", "iceberg", "memory", "sqlite", "postgresql")
_PAUSE: Final = 0.5
"""Seconds between two reads of the independent reader."""
_PATIENCE: Final = 120
_SHORTEST_LIFE, _LONGEST_LIFE = 1.0, 12.0
"""Seconds after which a writer's process ends: others must not take its last statement's files for
those of a dead one.
"""
_MEETING: Final = 2.0
"""The maximum seconds that a statement waits for an action in its middle, which may wait for a lock
of the statement.
"""
_PROPERTIES: Final = {
    "iceberg": " WITH (partitioning = ARRAY['name'])",
    "hive": " WITH (partitioned_by = ARRAY['name'])",
    "memory": " WITH (partitioned_by = ARRAY['name'])",
    "sqlite": " WITH (primary_key = ARRAY['id'])",
    "postgresql": " WITH (primary_key = ARRAY['id'])",
}


@dataclass
class Summary:
    """The result of the trial.

    Args:
        store: the store.
        counts: the number of statements by kind and outcome.
        reads: the number of reads of the independent reader.
        violations: the violations.
    """

    store: str
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    reads: int = 0
    violations: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the counts, one line per kind of statement.

        >>> Summary("hive", Counter({("INSERT", "ok"): 2, ("INSERT", "TRANSACTION_CONFLICT"): 1})).lines()
        ['hive: 3 statements, 2 ok, 0 reads beside them, 0 violations', '  INSERT: 2 ok, 1 TRANSACTION_CONFLICT']
        """
        total, successes = (
            sum(self.counts.values()),
            sum(n for (_, outcome), n in self.counts.items() if outcome == "ok"),
        )
        lines = [
            (
                f"{self.store}: {total} statements, {successes} ok, {self.reads} reads beside them,"
                f" {len(self.violations)} violations"
            )
        ]
        for kind in sorted({kind for kind, _ in self.counts}):
            outcomes = sorted(
                ((n, o) for (k, o), n in self.counts.items() if k == kind), reverse=True
            )
            lines.append(
                f"  {kind}: {', '.join(f'{number} {outcome}' for number, outcome in outcomes)}"
            )
        return lines


def run_trial(store: str, seconds: float, writers: int, seed: int) -> Summary:
    """Run the trial on one store.

    Args:
        store: one of `STORES`.
        seconds: the duration.
        writers: the number of writers. On SQLite and PostgreSQL, one is ours and the others are
            other programs.
        seed: determines the statements.

    Raises:
        SetupError: the machine lacks a requirement of the store.
    """
    with _place(store) as (where, folder):
        journals = [folder / f"journal{number}" for number in range(writers)]
        if store == "memory":
            return _in_threads(journals, seconds, seed)
        tables = ["t", *map(own_table, range(writers))]
        _run_all([lambda: _create(store, open_store(store, where), tables)])
        summary = Summary(store)
        _write_and_look(summary, where, tables, journals, seconds, seed)
        _last_look(summary, store, where, tables, journals)
        return summary


def _write_and_look(
    summary: Summary, where: str, tables: list[str], journals: list[Path], seconds: float, seed: int
) -> None:
    """Run writers, each followed by a new process at its end, and read a table repeatedly."""
    store, end = summary.store, time.monotonic() + seconds

    def begin(number: int) -> int:
        return _fork(_writing(store, where, number, journals, end, seed))

    alive = {begin(number): number for number in range(len(journals))}
    while alive and time.monotonic() < end + _PATIENCE:
        ended_processes = [
            (pid, number) for pid, number in alive.items() if os.waitpid(pid, os.WNOHANG)[0]
        ]
        for pid, number in ended_processes:
            del alive[pid]
            if time.monotonic() < end:
                alive[begin(number)] = number
        summary.violations += _look(summary, store, where, tables, journals)
        time.sleep(_PAUSE)
    for pid in alive:
        summary.violations.append("a writer did not end in time")
        os.kill(pid, 9)
        os.waitpid(pid, 0)


@contextmanager
def _place(store: str) -> Iterator[tuple[str, Path]]:
    """Create an empty store, and a folder for journals."""
    with tempfile.TemporaryDirectory(
        prefix=f"rowmerge_nb-side-{store}-", ignore_cleanup_errors=True
    ) as folder:
        (Path(folder) / "store").mkdir()
        if store == "postgresql":
            with private_server() as dsn:
                yield dsn, Path(folder)
        else:
            yield str(Path(folder) / "store"), Path(folder)


def _create(store: str, connector: Connector, tables: list[str]) -> None:
    """Create the tables and the shared rows."""
    engine = LocalEngine(catalog="store", schema=schema_of(store))
    engine.add_catalog("store", connector)
    values = ", ".join(f"({key}, -1, 0, '{name_of(key)}')" for key in range(SHARED))
    for table in tables:
        engine.run(
            f"CREATE TABLE {table} (id bigint, owner bigint, n bigint, name"
            f" varchar){_PROPERTIES[store]}",
            trace="off",
        )
    engine.run(f"INSERT INTO t VALUES {values}", trace="off")


def _writing(
    store: str, where: str, number: int, journals: list[Path], end: float, seed: int
) -> Callable[[], None]:
    """Return the task of a writer's process: it writes for a while, and passes the writer's state
    to the next process.
    """
    is_outside = number > 0 and store in {"sqlite", "postgresql"}

    def task() -> None:
        journal, saved_writer = Journal(journals[number]), journals[number].with_suffix(".writer")
        writer = Writer("outside" if is_outside else store, number, len(journals), seed)
        if saved_writer.exists():
            writer = pickle.loads(saved_writer.read_bytes())  # noqa: S301 - the former process of this trial wrote it
            writer.last = None  # what can be undone is in the engine that has ended
        seconds = min(
            writer.random.uniform(_SHORTEST_LIFE, _LONGEST_LIFE), max(end - time.monotonic(), 0.0)
        )
        try:
            write_as(writer, journal, seconds)
        finally:
            saved_writer.write_bytes(pickle.dumps(writer))

    def write_as(writer: Writer, journal: Journal, seconds: float) -> None:
        if is_outside:
            write(OutsideWriter(store, where), writer, number, journal, seconds)
            return
        neighbour = Neighbour(lambda: _maintainer(store, where))

        def meet() -> None:
            maintenance = writer.draw_maintenance()
            for answer in neighbour.ask(
                {"kind": maintenance.kind, "text": maintenance.text}, _MEETING
            ):
                _note(journal, answer)

        pauses = Pauses(where, str(writer.random.random()), meet)
        write(
            OurWriter(store, open_store(store, where)),
            writer,
            number,
            journal,
            seconds,
            pauses.begin,
        )
        for answer in neighbour.answers(_PATIENCE):
            _note(journal, answer)
        neighbour.close()

    return task


def _maintainer(store: str, where: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Open the store in another process, which maintains tables during a writer's statements."""
    runner = OurWriter(store, open_store(store, where))

    def answer(order: dict[str, Any]) -> dict[str, Any]:
        outcome, detail, problem = run_statement(
            runner, Statement(order["kind"], order["text"]), "off"
        )
        return {**order, "outcome": detail or outcome, "problem": problem}

    return answer


def _note(journal: Journal, answer: dict[str, Any]) -> None:
    if "error" in answer:
        journal.violation(answer["error"])
        return
    journal.beside(answer["kind"], answer["outcome"])
    if answer["problem"]:
        journal.violation(
            f"in the middle of the statement: {answer['kind']} ({answer['text']}):"
            f" {answer['problem']}"
        )


# -- processes and threads


def _fork(task: Callable[[], None]) -> int:
    """Run a task in a child process, which skips the parent's exit handlers."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with without_spark():
                task()
            status = 0
        except BaseException:  # noqa: BLE001 - the parent sees the status
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def _run_all(tasks: list[Callable[[], None]]) -> None:
    for pid in [_fork(task) for task in tasks]:
        if os.waitpid(pid, 0)[1]:
            raise RuntimeError("The tables could not be made")


def _in_threads(journals: list[Path], seconds: float, seed: int) -> Summary:
    """Run the trial on tables in memory, with threads as writers and reader."""
    summary, tables = Summary("memory"), ["t", *map(own_table, range(len(journals)))]
    with without_spark():
        connector = open_store("memory", "")
        _create("memory", connector, tables)

        def task(number: int) -> None:
            runner = OurWriter("memory", connector)
            write(
                runner,
                Writer("memory", number, len(journals), seed),
                number,
                Journal(journals[number]),
                seconds,
            )

        threads = [
            threading.Thread(target=task, args=(number,), daemon=True)
            for number in range(len(journals))
        ]
        for thread in threads:
            thread.start()

        def reader(_: str, table: str) -> list[Any]:
            return read_rows(connector, "memory", table)

        end = time.monotonic() + seconds + _PATIENCE
        while any(thread.is_alive() for thread in threads) and time.monotonic() < end:
            summary.violations += _look(summary, "memory", "", tables, journals, reader)
            time.sleep(_PAUSE)
        if any(thread.is_alive() for thread in threads):
            summary.violations.append("a writer did not end in time")
        summary.violations += [
            p for t in tables for p in _look(summary, "memory", "", [t], journals, reader)
        ]
        _count(summary, journals)
    return summary


# -- looks


def _look(
    summary: Summary,
    store: str,
    where: str,
    tables: list[str],
    journals: list[Path],
    reader: Any = None,
) -> list[str]:
    """Read a table with the independent reader while others write; return problems."""
    table = tables[summary.reads % len(tables)]
    summary.reads += 1
    before = [Journal.lines(path) for path in journals]
    try:
        rows = (reader or READERS[store])(where, table)
    except Exception as error:  # noqa: BLE001 - whatever it is, the table cannot be read
        return [f"the independent reader cannot read '{table}': {last_lines(error)}"]
    after = [Journal.lines(path) for path in journals]
    states = {n: states_between(*pair) for n, pair in enumerate(zip(before, after, strict=True))}
    problems = check_rows(table, rows, states)
    problems += check_counters(rows, states) if table == "t" else []
    return [f"the independent reader: {problem}" for problem in problems]


def _last_look(
    summary: Summary, store: str, where: str, tables: list[str], journals: list[Path]
) -> None:
    """Compare both readers with the ledger after all writers have ended, before and after the
    removal of leftovers.
    """
    lines = [Journal.lines(path) for path in journals]
    states = {number: states_between(journal, journal) for number, journal in enumerate(lines)}

    def look(moment: str) -> None:
        connector = open_store(store, where)

        def ours(_: str, table: str) -> list[Row]:
            return read_rows(connector, store, table)

        for table in tables:
            for name, reader in (
                ("ours", ours),
                ("the independent reader", READERS[store]),
            ):
                summary.violations += [
                    f"{moment}, {name}: {p}" for p in _compared(reader, where, table, states)
                ]
            if store == "iceberg":
                summary.violations += [
                    f"{moment}: {problem}" for problem in unreadable_snapshots(where, table)
                ]
        connector.close()

    with without_spark():
        look("in the end")
        try:
            _clean(store, where, tables)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a violation
            summary.violations.append(f"leftovers cannot be removed: {last_lines(error)}")
        look("after leftovers were removed")
    _count(summary, journals)


def _clean(store: str, where: str, tables: list[str]) -> None:
    """Remove leftovers, and files replaced by compactions."""
    connector = open_store(store, where)
    connector.remove_orphans()
    if isinstance(connector, HiveAcidConnector):
        for table in tables:
            connector.remove_obsolete("default", table)
    connector.close()


def _compared(reader: Any, where: str, table: str, states: dict[int, list[State]]) -> list[str]:
    try:
        rows = reader(where, table)
    except Exception as error:  # noqa: BLE001 - whatever it is, the table cannot be read
        return [f"table '{table}' cannot be read: {last_lines(error)}"]
    return [
        *check_rows(table, rows, states),
        *(check_counters(rows, states) if table == "t" else ()),
    ]


def _count(summary: Summary, journals: list[Path]) -> None:
    """Add the journals' outcomes and violations."""
    for number, path in enumerate(journals):
        kind = ""
        for line in Journal.lines(path):
            kind = line.get("begin", kind)
            if "end" in line:
                summary.counts[kind, line["detail"] or line["end"]] += 1
            if "beside" in line:
                summary.counts[f"{line['beside']} within a statement", line["outcome"]] += 1
            if "violation" in line:
                summary.violations.append(f"writer {number}: {line['violation']}")
