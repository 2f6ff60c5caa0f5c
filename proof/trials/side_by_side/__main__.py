"""``python -m proof.trials.side_by_side``: prints counts per kind of statement; the exit code is 1
if rows were lost, doubled or unreadable.
"""

from __future__ import annotations

import argparse
import sys

from proof.trials.points.trials import warm
from proof.trials.side_by_side.trial import STORES, run_trial
from rowmerge_nb.base.errors import SetupError

_SHOWN = 12


def main(arguments: list[str] | None = None) -> int:
    """Run the trial on some stores; return 1 after a violation."""
    parser = argparse.ArgumentParser(
        prog="python -m proof.trials.side_by_side",
        description=(
            "Random statements of several writers side by side, without Spark, and a ledger of what"
            " must be there."
        ),
    )
    parser.add_argument(
        "--store", default=",".join(STORES), help="of " + ",".join(STORES) + " (%(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=40, help="how long the writers write (%(default)s)"
    )
    parser.add_argument(
        "--processes", type=int, default=3, help="how many writers there are (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="decides about the statements (%(default)s)"
    )
    options = parser.parse_args(arguments)
    warm()
    has_failed = False
    for store in options.store.split(","):
        try:
            summary = run_trial(store, options.seconds, options.processes, options.seed)
        except SetupError as error:
            print(f"Without {store}: {error}", file=sys.stderr)
            continue
        print(*summary.lines(), sep="\n", flush=True)
        if summary.violations:
            has_failed = True
            print(*(f"VIOLATION {text}" for text in summary.violations[:_SHOWN]), sep="\n")
            command = (
                f"--store {store} --seconds {options.seconds:g} --processes {options.processes}"
                f" --seed {options.seed}"
            )
            print(f"Run again: python -m proof.trials.side_by_side {command}", flush=True)
    return int(has_failed)


if __name__ == "__main__":
    raise SystemExit(main())
