"""``scripts/kill-trials --every-point``: prints the table of counts; exit code 1 if anything was not as it has to be."""

from __future__ import annotations

import argparse
import sys

from rowmerge_nb.errors import SetupError
from rowmerge_nb.testing.points.stores import STORES, store_of
from rowmerge_nb.testing.points.trials import PointReport, Trials, warm


def main(arguments: list[str] | None = None) -> int:
    """Run trials; gives 1 if one was not as it has to be."""
    parser = argparse.ArgumentParser(prog="scripts/kill-trials --every-point", description="Faults at every operation of a MERGE.")
    parser.add_argument("--stores", default=",".join(STORES), help="of " + ",".join(STORES) + " (%(default)s)")
    parser.add_argument("--sample", type=int, help="so many faults per store, always the same ones (all)")
    parser.add_argument("--seed", type=int, default=1, help="decides which (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the points")
    parser.add_argument("--only", help="kind:point:before|after, for instance kill:12:after")
    options = parser.parse_args(arguments)
    warm()
    reports: list[PointReport] = []
    for name in options.stores.split(","):
        try:
            with store_of(name) as store:
                trials = Trials(store, lambda line: print(line, file=sys.stderr, flush=True))
                trials.prepare()
                if options.list:
                    for point in trials.points:
                        print(point.number, point.name, point.about[-150:])
                    continue
                faults = trials.faults(options.sample, options.seed)
                if options.only:
                    kind, number, when = options.only.split(":")
                    faults = [f for f in faults if (f.kind, f.number, f.after) == (kind, int(number), when == "after")]
                reports.append(trials.run(faults))
        except SetupError as error:
            print(f"Without {name}: {error}", file=sys.stderr)
    print("| store | points | trials | rows of before | of after | said done | failed | changed | unknown | leftovers | problems | s |")
    print("| " + " | ".join(["---"] * 12) + " |")
    for r in reports:
        said = [r.said[word] for word in ("done", "failed", "changed", "unknown")]
        numbers = [r.points, r.trials, r.before, r.after, *said, r.leftovers, len(r.problems), round(r.seconds)]
        print(f"| {r.store} | {' | '.join(map(str, numbers))} |")
    for problem in (problem for report in reports for problem in report.problems):
        print(problem)
    return 1 if any(report.problems for report in reports) else 0


if __name__ == "__main__":
    raise SystemExit(main())
