"""``scripts/kill-trials --every-point``: prints a table of counts; the exit code is 1 after a
problem.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from proof.trials.points.statements import STATEMENTS, statements_of
from proof.trials.points.stores import STORES, store_of
from proof.trials.points.trials import PointReport, Trials, warm
from proof.trials.points.watch import FAULTS, Fault
from rowmerge_nb.base.errors import SetupError

__all__ = ["main", "table_lines"]

_HEADS: Final = (
    *("store", "statement", "fault", "points", "trials", "as before", "as after"),
    *("said done", "failed", "changed", "unknown", "leftovers", "problems", "s"),
)


def main(arguments: list[str] | None = None) -> int:
    """Run trials; return 1 after a problem."""
    parser = argparse.ArgumentParser(
        prog="scripts/kill-trials --every-point",
        description="Faults at every disk or database operation of a statement, without Spark.",
    )
    parser.add_argument(
        "--stores", default=",".join(STORES), help="of " + ",".join(STORES) + " (%(default)s)"
    )
    parser.add_argument(
        "--statements-of",
        default="",
        metavar="NAMES",
        help="of " + ", ".join(STATEMENTS) + " (all that a store has)",
    )
    parser.add_argument(
        "--faults", default=",".join(FAULTS), help="of " + ",".join(FAULTS) + " (%(default)s)"
    )
    parser.add_argument(
        "--sample",
        type=int,
        help="so many faults per store and statement, always the same ones (all)",
    )
    parser.add_argument("--seed", type=int, default=1, help="decides which (%(default)s)")
    parser.add_argument(
        "--lines",
        action="store_true",
        help="SIGINT at lines of the package from finish_merge on, in place of other faults",
    )
    parser.add_argument("--only", help="one fault, for instance kill:12:after")
    parser.add_argument("--list", action="store_true", help="print the points")
    options = parser.parse_args(arguments)
    warm()
    reports: list[PointReport] = []
    for name in options.stores.split(","):
        try:
            reports += _of_store(name, options)
        except SetupError as error:
            print(f"Without {name}: {error}", file=sys.stderr)
    if reports:
        print(*table_lines(reports), sep="\n")
    problems = [problem for report in reports for problem in report.problems]
    print(*problems, sep="\n")
    return 1 if problems else 0


def _of_store(name: str, options: argparse.Namespace) -> list[PointReport]:
    statements = [
        STATEMENTS[word] for word in options.statements_of.split(",") if word
    ] or statements_of(name)
    reports: list[PointReport] = []
    with store_of(name) as store:
        for statement in [statement for statement in statements if name in statement.stores]:
            if options.lines and statement.name != "MERGE":
                continue
            trials = Trials(store, statement, lambda line: print(line, file=sys.stderr, flush=True))
            trials.prepare()
            if options.list:
                print(
                    f"{name}, {statement.name}:",
                    *(f"{p.number} {p.name} {p.about[-150:]}" for p in trials.points),
                    sep="\n",
                )
                continue
            reports += trials.run(_faults(trials, options))
    return reports


def _faults(trials: Trials, options: argparse.Namespace) -> list[Fault]:
    if options.only:
        fault_kind, number, when = options.only.split(":")
        return [Fault(fault_kind, int(number), when == "after")]
    if options.lines:
        return trials.lines(options.sample, options.seed)
    return trials.faults(options.sample, options.seed, options.faults.split(","))


def table_lines(reports: list[PointReport]) -> list[str]:
    """Return reports as a table.

    >>> print(table_lines([PointReport("hive", "MERGE", "kill", 168, 10, 7, 3)])[2])
    | hive | MERGE | kill | 168 | 10 | 7 | 3 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
    """
    lines = [_HEADS, ("---",) * len(_HEADS)]
    for r in reports:
        report_counts = [r.said[word] for word in ("done", "failed", "changed", "unknown")]
        numbers = (
            r.points,
            r.trials,
            r.before,
            r.after,
            *report_counts,
            r.leftovers,
            len(r.problems),
            round(r.seconds),
        )
        lines.append((r.store, r.statement, r.fault, *map(str, numbers)))
    return [f"| {' | '.join(line)} |" for line in lines]


if __name__ == "__main__":
    raise SystemExit(main())
