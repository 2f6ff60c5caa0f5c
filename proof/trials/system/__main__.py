"""``python -m proof.trials.system``: prints a table of counts; the exit code is 1 after a problem."""

from __future__ import annotations

import argparse
import sys

from proof.trials.points.statements import STATEMENTS, statements_of
from proof.trials.points.stores import STORES, store_of
from proof.trials.points.trials import warm
from proof.trials.system.trials import FAULTS, SystemReport, SystemTrials, table_lines
from rowmerge_nb.base.errors import SetupError

_STORES = [name for name, kind in STORES.items() if kind.survives]


def main(arguments: list[str] | None = None) -> int:
    """Run trials; return 1 after a problem."""
    parser = argparse.ArgumentParser(
        prog="python -m proof.trials.system",
        description="Faults of the machine at random moments of statements of the real engine.",
    )
    parser.add_argument(
        "--stores", default=",".join(_STORES), help="of " + ",".join(_STORES) + " (%(default)s)"
    )
    parser.add_argument(
        "--statements",
        default="",
        metavar="NAMES",
        help="of " + ", ".join(STATEMENTS) + " (all that a store has)",
    )
    parser.add_argument(
        "--faults", default=",".join(FAULTS), help="of " + ",".join(FAULTS) + " (%(default)s)"
    )
    parser.add_argument(
        "--trials", type=int, default=3, help="trials per store, statement and fault (%(default)s)"
    )
    parser.add_argument(
        "--stopped", type=float, default=60, help="seconds that Java is stopped (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="decides about the moments (%(default)s)"
    )
    options = parser.parse_args(arguments)
    warm()
    reports: list[SystemReport] = []
    for name in options.stores.split(","):
        try:
            reports += _of_store(name, options)
        except SetupError as error:
            print(f"Without {name}: {error}", file=sys.stderr)
    print(*table_lines(reports), sep="\n")
    problems = [problem for report in reports for problem in report.problems]
    print(*problems, sep="\n")
    return 1 if problems else 0


def _of_store(name: str, options: argparse.Namespace) -> list[SystemReport]:
    statements = [
        STATEMENTS[word] for word in options.statements.split(",") if word
    ] or statements_of(name)
    with store_of(name) as store:
        trials = SystemTrials(store, options.seed, options.stopped)
        try:
            reports = []
            for statement in [statement for statement in statements if name in statement.stores]:
                for fault in options.faults.split(","):
                    reports.append(trials.run(statement, fault, options.trials))
                    print(table_lines(reports)[-1], file=sys.stderr, flush=True)
            return reports
        finally:
            trials.close()


if __name__ == "__main__":
    raise SystemExit(main())
