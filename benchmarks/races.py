"""Races: the same tables changed by all contestants, one after the other in every round."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks import data
from benchmarks.engines import Contestant, DeltaRs, DuckDB, RowMerge
from benchmarks.floor import Floor
from benchmarks.measure import Memory, Times
from benchmarks.spark_peers import spark_peers
from benchmarks.stores import PostgreSQL, Store, postgresql, stores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MEGABYTE = 1_000_000


@dataclass
class Lap:
    """What one contestant did: seconds of each round, and of the last one files, bytes and memory."""

    seconds: list[float] = field(default_factory=list)
    files: int = 0
    written: int = 0
    memory: str = ""


@dataclass(frozen=True)
class Race:
    """What is done in a race, and by whom.

    Args:
        work: the method of a contestant that is timed.
        statement: what it does, for people.
        contestants: makes those that may take part.
    """

    work: str
    statement: str
    contestants: Callable[[ExitStack], list[Contestant]]


def _memory(_: ExitStack) -> list[Contestant]:
    return [DeltaRs(), DuckDB(), RowMerge(), RowMerge(trace="off"), RowMerge(paradigm="CHANGE_ONLY_UPDATED_COLUMNS")]


def _all_stores(stack: ExitStack) -> list[Contestant]:
    dsn = postgresql(stack)
    own: list[Contestant] = [PostgreSQL(dsn)] if dsn else []
    traces: list[Contestant] = [Store("iceberg", trace="off")]
    return [DeltaRs(), DuckDB(), *own, *spark_peers(), Floor(), RowMerge(), *stores(dsn), *traces]


def _both_flows(stack: ExitStack) -> list[Contestant]:
    dsn = postgresql(stack)
    own: list[Contestant] = [PostgreSQL(dsn)] if dsn else []
    both = [Store(store, flow=flow) for store in ("hive", "sqlite") for flow in ("merge", "updatable")]
    return [
        DeltaRs(),
        DuckDB(),
        *own,
        Floor(),
        RowMerge(),
        RowMerge(flow="updatable"),
        *both,
        Store("hive", codec="ZSTD"),
        Store("iceberg"),
    ]


RACES: Mapping[str, Race] = {
    "race": Race("merge", "MERGE", _memory),
    "stores": Race("merge", "MERGE", _all_stores),
    "delete": Race("delete", data.DELETE, _both_flows),
    "update": Race("update", data.UPDATE, _both_flows),
}


def race(name: str, target_rows: int, source_rows: int, runs: int, among: Sequence[str]) -> dict[str, Times]:
    """Race, print the table, and give the warm rounds of each.

    Args:
        name: one of `RACES`.
        target_rows: rows of the target.
        source_rows: rows of the source.
        runs: warm rounds.
        among: words, one of which a contestant's name must have; all race without any.
    """
    target, source, known = data.target(target_rows), data.source(source_rows, target_rows), RACES[name]
    with ExitStack() as stack:
        contestants = [c for c in known.contestants(stack) if not among or any(word in c.name.lower() for word in among)]
        laps = {c.name: Lap() for c in contestants}
        fingerprints = {}
        for number in range(runs + 1):
            for contestant in contestants:
                contestant.prepare(target, source)
                _run(contestant, laps[contestant.name], known.work)
                fingerprints[contestant.name] = data.fingerprint(contestant.content())
                seconds = laps[contestant.name].seconds[-1]
                print(f"  round {number}, {contestant.name}: {seconds:.3f} s", file=sys.stderr)
        for contestant in contestants:
            contestant.close()
    if len(set(fingerprints.values())) != 1:
        sys.exit(f"The engines disagree: {fingerprints}")
    rows = f"{target_rows:,} target rows" + (f", {source_rows:,} source rows" if known.work == "merge" else "")
    print(f"\n{known.statement}: {rows}; {runs} warm rounds; all give {next(iter(fingerprints.values()))}")
    _print(laps, target_rows)
    return {name: Times(tuple(lap.seconds[1:])) for name, lap in laps.items()}


GROWTH = ((100_000, 100_000), (1_000_000, 100_000), (10_000_000, 100_000), (100_000, 10_000), (10_000_000, 1_000_000))
"""Rows of target and source: first a source that stays, then one that grows with the target."""


def growing(runs: int, among: Sequence[str]) -> None:
    """Race MERGE at several sizes, and print how the times grow; arguments as those of `race`."""
    found = {sizes: race("stores", *sizes, runs, among) for sizes in GROWTH}
    print(f"\n{'median seconds of a MERGE':46}" + "".join(f"{f'{t // 1000:,}k / {s // 1000:,}k':>18}" for t, s in GROWTH))
    for name in next(iter(found.values())):
        print(f"{name:46}" + "".join(f"{found[sizes][name].median:18.3f}" for sizes in GROWTH))


def _run(contestant: Contestant, lap: Lap, work: str) -> None:
    before = contestant.files()
    timed = getattr(contestant, work)
    with Memory() as memory:
        started = time.perf_counter()
        timed()
        lap.seconds.append(time.perf_counter() - started)
    after = contestant.files()
    changed = {path: size - before.get(path, 0) for path, size in after.items() if size != before.get(path)}
    lap.files, lap.written, lap.memory = len(changed), sum(changed.values()), str(memory)


def _print(laps: dict[str, Lap], rows: int) -> None:
    base = Times(tuple(laps[DeltaRs.name].seconds[1:])).median if DeltaRs.name in laps else None
    duck = Times(tuple(laps[DuckDB.name].seconds[1:])).median if DuckDB.name in laps else None
    floor = Times(tuple(laps[Floor.name].seconds[1:])).median if Floor.name in laps else None
    head = f"{'engine':46} {'first':>7}  {'warm median [min .. max]':28} {'x delta-rs':>10} {'x DuckDB':>8} {'x floor':>7} {'rows/s':>8}"
    print(f"{head}  {'files':>5} {'MB':>7}  memory: driver, Java, workers (MB)")
    for name, lap in laps.items():
        first, *warm = lap.seconds
        times = Times(tuple(warm))
        ratios = [f"{times.median / other:.2f}" if other else "" for other in (base, duck, floor)]
        speed = f"{rows / times.median / 1e6:.1f} M"
        files = f"{lap.files:5} {lap.written / MEGABYTE:7.1f}" if lap.files else f"{'':13}"
        print(
            f"{name:46} {first:7.3f}  {times!s:28} {ratios[0]:>10} {ratios[1]:>8} {ratios[2]:>7} {speed:>8}  {files}  {lap.memory}"
        )
