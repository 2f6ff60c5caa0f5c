"""``scripts/kill-trials --every-point``: prints a table of counts; the exit code is 1 if anything was not as it has to be."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from proof.trials.points.stores import STORES, store_of
from proof.trials.points.trials import PointReport, Trials, warm
from proof.trials.points.writers import side_by_side
from rowmerge_nb.errors import SetupError

__all__ = ["main", "table_lines"]

_HEADS: Final = (
    *("store", "points", "trials", "rows of before", "of after"),
    *("said done", "failed", "changed", "unknown", "leftovers", "problems", "s"),
)


def main(arguments: list[str] | None = None) -> int:
    """Run trials; gives 1 if one was not as it has to be."""
    parser = argparse.ArgumentParser(
        prog="scripts/kill-trials --every-point",
        description="Faults at every disk or database operation of a MERGE, without Spark.",
    )
    parser.add_argument("--stores", default=",".join(STORES), help="of " + ",".join(STORES) + " (%(default)s)")
    parser.add_argument("--sample", type=int, help="so many faults per store, always the same ones (all)")
    parser.add_argument("--seed", type=int, default=1, help="decides which (%(default)s)")
    parser.add_argument(
        "--lines", action="store_true", help="SIGINT at lines of the package from finish_merge on, in place of other faults"
    )
    parser.add_argument("--only", help="one fault, for instance kill:12:after; kinds are kill, interrupt, error, lasting")
    parser.add_argument("--list", action="store_true", help="print the points")
    parser.add_argument("--writers", type=int, help="so many processes that write side by side, in place of faults")
    parser.add_argument("--statements", type=int, default=4, help="statements of every writer (%(default)s)")
    options = parser.parse_args(arguments)
    warm()
    reports: list[PointReport] = []
    problems: list[str] = []
    for name in options.stores.split(","):
        try:
            if options.writers:
                problems += _side_by_side(name, options)
            else:
                reports += _of_store(name, options)
        except SetupError as error:
            print(f"Without {name}: {error}", file=sys.stderr)
    if reports:
        print(*table_lines(reports), sep="\n")
    problems += [problem for report in reports for problem in report.problems]
    print(*problems, sep="\n")
    return 1 if problems else 0


def _of_store(name: str, options: argparse.Namespace) -> list[PointReport]:
    with store_of(name) as store:
        trials = Trials(store, lambda line: print(line, file=sys.stderr, flush=True))
        trials.prepare()
        if options.list:
            for point in trials.points:
                print(point.number, point.name, point.about[-150:])
            return []
        faults = (trials.lines if options.lines else trials.faults)(options.sample, options.seed)
        if options.only:
            kind, number, when = options.only.split(":")
            faults = [
                f
                for f in (*trials.faults(), *trials.lines())
                if (f.kind, f.number, f.after) == (kind, int(number), when == "after")
            ]
        return [trials.run(faults)]


def _side_by_side(name: str, options: argparse.Namespace) -> list[str]:
    problems = []
    for partitioned in (True, False):
        with store_of(name, partitioned=partitioned) as store:
            if not store.survives:
                # Its tables are one process's.
                return []
            report = side_by_side(store, options.writers, options.statements)
        what = f"{name}{', partitioned' if partitioned else ''}"
        print(f"{what}: {options.writers} writers of {options.statements} statements, {report.conflicts} conflicts")
        problems += [f"{what}: {problem}" for problem in report.problems]
    return problems


def table_lines(reports: list[PointReport]) -> list[str]:
    """Write reports as a table.

    >>> print(table_lines([PointReport("hive", 168, 10, 7, 3)])[2])
    | hive | 168 | 10 | 7 | 3 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
    """
    lines = [_HEADS, ("---",) * len(_HEADS)]
    for r in reports:
        said = [r.said[word] for word in ("done", "failed", "changed", "unknown")]
        numbers = (r.points, r.trials, r.before, r.after, *said, r.leftovers, len(r.problems), round(r.seconds))
        lines.append((r.store, *map(str, numbers)))
    return [f"| {' | '.join(line)} |" for line in lines]


if __name__ == "__main__":
    raise SystemExit(main())
