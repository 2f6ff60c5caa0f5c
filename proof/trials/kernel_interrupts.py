"""Interrupts a real Jupyter kernel that runs ``%%merge`` cells: ``python -m
proof.trials.kernel_interrupts --interrupts 100``.

Each trial runs a cell, interrupts the kernel at a random moment like the button of a notebook, and
compares the cell's report with the store. Half of the moments are late, when rows are committed and
the report is drawn. A report must name exactly the statements whose changes are in the store. After
a bare KeyboardInterrupt, nothing may have changed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from queue import Empty
from typing import Any, Final

from proof.trials.driver import StoreLocation
from proof.trials.kills import places
from rowmerge_nb.base.errors import SetupError

__all__ = ["STORES", "Kernel", "Reply", "Tally", "interrupt_cells", "main", "named_statements"]

STORES: Final = ("memory", "sqlite", "postgresql", "hive", "iceberg")
PATIENCE_SECONDS: Final = 120
LATE: Final = 0.6
"""The fraction of a cell's time after which a moment is late."""
_ROWS: Final = 200
_VALUE: Final = "value of the expression: "
_DONE: Final = re.compile(r"Statements? (?:1 to )?(\d+) of this cell ran and stays?")
_MERGE: Final = (
    "MERGE INTO {t} t USING (SELECT id FROM {t}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v ="
    " {number} WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (s.id, {number}, 0)"
)
CELLS: Final = (
    "%%merge{e}\n" + _MERGE,
    "%%merge{e} --explore\n" + _MERGE,
    "%%merge{e} --show outcome,diff,plan,pages,calls\nUPDATE {t} SET v = {number} WHERE id > 0",
    "%%merge{e} --check\nUPDATE {t} SET v = {number}",
    "%%merge{e}\nUPDATE {t} SET v = {number};\nUPDATE {t} SET w = {number}",
    "%%merge{e} --verify duckdb\n" + _MERGE,
)
"""Cells; each statement sets a column to the number of its trial: the first one ``v``, the second
one ``w``.
"""


@dataclass
class Reply:
    """The answer of a cell.

    Args:
        status: ``ok`` or ``error``; ``none`` without an answer.
        name: the class of the error; ``""`` without one.
        text: the error's text.
        outputs: the displayed texts.
    """

    status: str
    name: str = ""
    text: str = ""
    outputs: list[str] = field(default_factory=list)


class Kernel:
    """A kernel in its own process."""

    def __init__(self) -> None:
        from jupyter_client.manager import start_new_kernel

        self._manager, self._client = start_new_kernel(startup_timeout=PATIENCE_SECONDS)

    def run(self, code: str, interrupt_after: float | None = None) -> Reply:
        """Run a cell; interrupt the kernel after some seconds, unless None."""
        number = self._client.execute(code)
        if interrupt_after is not None:
            time.sleep(interrupt_after)
            self._manager.interrupt_kernel()
        reply = Reply("none")
        try:
            while True:
                message = self._client.get_iopub_msg(timeout=PATIENCE_SECONDS)
                if message["parent_header"].get("msg_id") != number:
                    continue
                content = message["content"]
                if message["msg_type"] == "status" and content["execution_state"] == "idle":
                    break
                if "data" in content:
                    reply.outputs.append(content["data"].get("text/plain", ""))
                elif message["msg_type"] == "stream":
                    reply.outputs.append(content["text"])
            answer = self._client.get_shell_msg(timeout=10)
            while answer["parent_header"].get("msg_id") != number:
                answer = self._client.get_shell_msg(timeout=10)
        except Empty:
            return reply
        content = answer["content"]
        reply.status, reply.name, reply.text = (
            content["status"],
            content.get("ename", ""),
            content.get("evalue", ""),
        )
        return reply

    def value(self, code: str) -> Any:
        """Return the JSON value of an expression in the kernel.

        Raises:
            RuntimeError: the cell failed.
        """
        reply = self.run(f"import json; print({_VALUE!r} + json.dumps({code}))")
        if reply.status != "ok":
            raise RuntimeError(f"The kernel failed: {reply}")
        # Workers of a canceled job print tracebacks, and a kernel may send a line and its end in
        # two messages.
        value, _ = json.JSONDecoder().raw_decode("".join(reply.outputs).rpartition(_VALUE)[2])
        return value

    def close(self) -> None:
        """Shut the kernel down."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


def named_statements(reply: Reply) -> int | None:
    """Return how many statements of a cell changed something according to its report; None if it
    does not know.

    >>> named_statements(Reply("error", "StatementInterrupted", "Statement 1 of this cell ran and stays; statement 2 did not run."))
    1
    >>> named_statements(Reply("error", "StatementInterrupted", "USER_CANCELED: The statement was interrupted"))
    0
    """
    if reply.status == "ok":
        return sys.maxsize
    if "outcome is unknown" in reply.text:
        return None
    match = _DONE.search(reply.text)
    if match:
        return int(match[1])
    return int("change was committed" in reply.text)


@dataclass
class Tally:
    """The results of the trials on one store.

    Args:
        store: the store.
        trials: the number of trials.
        undisturbed: cells that ended without an error.
        changed: reports of a change.
        unchanged: reports of no change.
        unknown: reports of an unknown outcome.
        bare: bare KeyboardInterrupts without a change.
        problems: wrong reports.
        seconds: the duration.
    """

    store: str
    trials: int = 0
    undisturbed: int = 0
    changed: int = 0
    unchanged: int = 0
    unknown: int = 0
    bare: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def note(self, what: str, reply: Reply, statements: int, there: int) -> None:
        """Compare a cell's report with the store.

        Args:
            what: a description of the trial.
            reply: the cell's answer.
            statements: the number of statements of the cell.
            there: the number of them that changed the store.
        """
        self.trials += 1
        reported = named_statements(reply)
        is_bare = reply.name == "KeyboardInterrupt"
        self.undisturbed += reply.status == "ok"
        self.bare += is_bare
        self.unknown += reported is None
        if reply.status == "error" and not is_bare and reported is not None:
            self.changed += reported > 0
            self.unchanged += reported == 0
        if reply.status == "none" or (reported is not None and min(reported, statements) != there):
            self.problems.append(
                f"{what}: {there} of {statements} statements are in the store, and the cell says"
                f" {reply}"
            )


def interrupt_cells(
    place: StoreLocation, trials: int, seed: int, report: Callable[[str], None] = lambda _: None
) -> Tally:
    """Interrupt a kernel that changes a table.

    Args:
        place: the store of the table; for tables in memory only its name counts.
        trials: the number of interrupted cells.
        seed: determines the moments.
        report: called with a line after every trial.
    """
    tally, began = Tally(place.store), time.monotonic()
    random_source = random.Random(seed)  # noqa: S311 - no secret
    with closing(Kernel()) as kernel:
        table = _prepare(kernel, place)
        usual = {index: _seconds(kernel, cell, table) for index, cell in enumerate(CELLS)}
        for number in range(1, trials + 1):
            index = random_source.randrange(len(CELLS))
            cell = _filled(CELLS[index], table, number)
            delay = random_source.uniform(LATE if number % 2 else 0.0, 1.05) * usual[index]
            reply = kernel.run(cell, delay)
            last = kernel.value("last()")
            statements = cell.count(";") + 1
            there = sum(value == number for value in last[:statements])
            tally.note(
                f"trial {number}, {cell!r} interrupted after {delay:.3f} s",
                reply,
                statements,
                there,
            )
            # Cells get faster as Java warms up; a late interrupt would have no effect.
            usual[index] *= 0.9 if reply.status == "ok" else 1.02
            _refuse_halves(tally, number, kernel)
            report(
                f"{place.store} {number}: {reply.status} {reply.text[:90]!r}, {there} of"
                f" {statements} there"
            )
    tally.seconds = time.monotonic() - began
    return tally


def _refuse_halves(tally: Tally, number: int, kernel: Kernel) -> None:
    """Record a partial change in the store as a problem."""
    rows, values = kernel.value("whole()")
    if rows != _ROWS or values != 1:
        tally.problems.append(
            f"trial {number}: the table has {rows} rows and {values} different values of v"
        )


def _filled(cell: str, table: str, number: int) -> str:
    return cell.format(e=" --engine engine", t=table, number=number)


def _prepare(kernel: Kernel, place: StoreLocation) -> str:
    """Create an engine with a table in a kernel; return the table's name."""
    name = "t" if place.store == "memory" else f"store.{place.schema}.t"
    connector = (
        ""
        if place.store == "memory"
        else (
            "from proof.trials.driver import StoreLocation\nengine.add_catalog('store',"
            f" {place!r}.connector())"
        )
    )
    properties = "" if place.store == "memory" else place.properties
    reply = kernel.run(f"""
%load_ext rowmerge_nb
import rowmerge_nb as rm
engine = rm.Engine(cores=2)
{connector}
engine.run("CREATE TABLE {name} (id bigint, v bigint, w bigint){properties}")
engine.run("INSERT INTO {name} SELECT n, 0, 0 FROM UNNEST(sequence(1, {_ROWS})) u (n)")

def rows():
    return engine.table("{name}")

def last():
    return [max(rows().column(name).to_pylist()) for name in ("v", "w")]

def whole():
    found = rows()
    return [found.num_rows, len(set(found.column("v").to_pylist()))]
""")
    if reply.status != "ok":
        raise RuntimeError(f"The table could not be made: {reply}")
    return name


def _seconds(kernel: Kernel, cell: str, table: str) -> float:
    """Return the duration of an undisturbed cell: the faster of two runs."""
    times = []
    for _ in range(2):
        began = time.monotonic()
        reply = kernel.run(_filled(cell, table, 0))
        times.append(time.monotonic() - began)
        if reply.status != "ok":
            raise RuntimeError(f"A cell failed that nothing disturbed: {reply}")
    return min(times)


@contextmanager
def _place(store: str) -> Iterator[StoreLocation]:
    with ExitStack() as stack:
        yield StoreLocation(store, "") if store == "memory" else stack.enter_context(places(store))


def main(arguments: list[str] | None = None) -> int:
    """Run the trials; return 1 after a wrong report."""
    parser = argparse.ArgumentParser(
        prog="python -m proof.trials.kernel_interrupts", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--stores", default=",".join(STORES), help="of " + ",".join(STORES) + " (%(default)s)"
    )
    parser.add_argument(
        "--interrupts", type=int, default=100, help="interrupts per store (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="decides about the moments (%(default)s)"
    )
    parser.add_argument("--quiet", action="store_true", help="print no line per trial")
    options = parser.parse_args(arguments)
    tallies = []
    for store in options.stores.split(","):
        try:
            with _place(store) as place:
                lines = (
                    (lambda _: None) if options.quiet else (lambda line: print(line, flush=True))
                )
                tallies.append(interrupt_cells(place, options.interrupts, options.seed, lines))
        except SetupError as error:
            print(f"Without {store}: {error}", file=sys.stderr)
    names = (
        "store",
        "trials",
        "undisturbed",
        "changed",
        "unchanged",
        "unknown",
        "bare",
        "problems",
    )
    print("| " + " | ".join(names) + " |")
    print("| " + " | ".join(["---"] * len(names)) + " |")
    for tally in tallies:
        values = {**vars(tally), "problems": len(tally.problems)}
        print("| " + " | ".join(str(values[name]) for name in names) + " |")
    for problem, count in Counter(
        problem for tally in tallies for problem in tally.problems
    ).items():
        print(problem if count == 1 else f"{problem} ({count} times)")
    return int(any(tally.problems for tally in tallies))


if __name__ == "__main__":
    raise SystemExit(main())
