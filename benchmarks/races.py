"""Races: the same tables changed by all contestants, one after the other in every round."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks import data
from benchmarks.engines import Contestant, DeltaRs, DuckDB, RowMerge
from benchmarks.measure import Memory, Times
from benchmarks.spark_peers import spark_peers
from benchmarks.stores import PostgreSQL, Store, postgresql, stores

if TYPE_CHECKING:
    from collections.abc import Sequence

MEGABYTE = 1_000_000


@dataclass
class Lap:
    """What one contestant did: seconds of each round, and of the last one files, bytes and memory."""

    seconds: list[float] = field(default_factory=list)
    files: int = 0
    written: int = 0
    memory: str = ""


def race(name: str, target_rows: int, source_rows: int, runs: int, among: Sequence[str]) -> None:
    """Race, and print the table.

    Args:
        name: ``race``: memory tables; ``stores``: MERGE into every store; ``delete``: a tenth of the rows is deleted.
        target_rows: rows of the target.
        source_rows: rows of the source.
        runs: warm rounds.
        among: words, one of which a contestant's name must have; all race without any.
    """
    target, source = data.target(target_rows), data.source(source_rows, target_rows)
    with ExitStack() as stack:
        contestants = [c for c in _contestants(name, stack) if not among or any(word in c.name.lower() for word in among)]
        laps = {c.name: Lap() for c in contestants}
        fingerprints = {}
        for number in range(runs + 1):
            for contestant in contestants:
                contestant.prepare(target, source)
                _run(contestant, laps[contestant.name], delete=name == "delete")
                fingerprints[contestant.name] = data.fingerprint(contestant.content())
                seconds = laps[contestant.name].seconds[-1]
                print(f"  round {number}, {contestant.name}: {seconds:.3f} s", file=sys.stderr)
        for contestant in contestants:
            contestant.close()
    if len(set(fingerprints.values())) != 1:
        sys.exit(f"The engines disagree: {fingerprints}")
    rows = f"{target_rows:,} target rows" + ("" if name == "delete" else f", {source_rows:,} source rows")
    print(
        f"\n{data.DELETE if name == 'delete' else 'MERGE'}: {rows}; {runs} warm rounds; all give {next(iter(fingerprints.values()))}"
    )
    _print(laps, target_rows)


def _contestants(name: str, stack: ExitStack) -> list[Contestant]:
    if name == "race":
        return [
            DeltaRs(),
            DuckDB(),
            RowMerge(),
            RowMerge(trace="off"),
            RowMerge(paradigm="CHANGE_ONLY_UPDATED_COLUMNS"),
        ]
    dsn = postgresql(stack)
    peers: list[Contestant] = [DeltaRs(), DuckDB(), *([PostgreSQL(dsn)] if dsn else [])]
    if name == "stores":
        return [*peers, *spark_peers(), RowMerge(), *stores(dsn)]
    both = [Store(store, flow=flow) for store in ("hive", "sqlite") for flow in ("merge", "updatable")]
    return [*peers, RowMerge(), RowMerge(flow="updatable"), *both, Store("iceberg")]


def _run(contestant: Contestant, lap: Lap, *, delete: bool) -> None:
    before = contestant.files()
    with Memory() as memory:
        started = time.perf_counter()
        if delete:
            contestant.delete()
        else:
            contestant.merge()
        lap.seconds.append(time.perf_counter() - started)
    after = contestant.files()
    changed = {path: size - before.get(path, 0) for path, size in after.items() if size != before.get(path)}
    lap.files, lap.written, lap.memory = len(changed), sum(changed.values()), str(memory)


def _print(laps: dict[str, Lap], rows: int) -> None:
    base = Times(tuple(laps[DeltaRs.name].seconds[1:])).median if DeltaRs.name in laps else None
    duck = Times(tuple(laps[DuckDB.name].seconds[1:])).median if DuckDB.name in laps else None
    head = f"{'engine':46} {'first':>7}  {'warm median [min .. max]':28} {'x delta-rs':>10} {'x DuckDB':>8} {'rows/s':>8}"
    print(f"{head}  {'files':>5} {'MB':>7}  memory: driver, Java, workers (MB)")
    for name, lap in laps.items():
        first, *warm = lap.seconds
        times = Times(tuple(warm))
        ratios = [f"{times.median / other:.2f}" if other else "" for other in (base, duck)]
        speed = f"{rows / times.median / 1e6:.1f} M"
        files = f"{lap.files:5} {lap.written / MEGABYTE:7.1f}" if lap.files else f"{'':13}"
        print(f"{name:46} {first:7.3f}  {times!s:28} {ratios[0]:>10} {ratios[1]:>8} {speed:>8}  {files}  {lap.memory}")
