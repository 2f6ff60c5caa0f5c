"""Races: the same tables changed by all contestants, one after the other in every round."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from benchmarks import data
from benchmarks.data import Case
from benchmarks.engines import Contestant, DeltaRs, DuckDB, DuckDBParquet, RowMerge, Work
from benchmarks.floor import Floor
from benchmarks.keys import KINDS
from benchmarks.measure import Memory, Times, timed
from benchmarks.picture import Point, draw
from benchmarks.spark_peers import spark_peers
from benchmarks.stores import PostgreSQL, Store, postgresql, stores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

MEGABYTE = 1_000_000


@dataclass
class Lap:
    """The results of one contestant: seconds of each round, and files, bytes and memory of the last one."""

    seconds: list[float] = field(default_factory=list)
    files: int = 0
    written: int = 0
    memory: dict[str, int] = field(default_factory=dict)

    @property
    def best(self) -> float:
        """The fastest warm round."""
        return min(self.seconds[1:])

    @property
    def megabytes(self) -> str:
        """The maximum memory of driver, Java, the largest worker, and all together."""
        return ", ".join(f"{size // MEGABYTE}" for size in self.memory.values())


@dataclass(frozen=True)
class Race:
    """The work of a race and its contestants.

    Args:
        work: the work of the contestants.
        statement: the same, for readers.
        contestants: creates those that may take part.
        days: the number of repetitions on the same table; the last one is timed.
        regions: the number of partitions of a partitioned table.
    """

    work: Work
    statement: str
    contestants: Callable[[ExitStack], list[Contestant]]
    days: int = 1
    regions: int = len(data.REGIONS)


def _memory(_: ExitStack) -> list[Contestant]:
    return [
        DeltaRs(),
        DuckDB(),
        RowMerge(),
        RowMerge(trace="off"),
        RowMerge(paradigm="CHANGE_ONLY_UPDATED_COLUMNS"),
    ]


def _all_stores(stack: ExitStack) -> list[Contestant]:
    dsn = postgresql(stack)
    own: list[Contestant] = [PostgreSQL(dsn)] if dsn else []
    traces: list[Contestant] = [Store("iceberg", trace="off")]
    return [DeltaRs(), DuckDB(), *own, *spark_peers(), Floor(), RowMerge(), *stores(dsn), *traces]


def _both_flows(stack: ExitStack) -> list[Contestant]:
    dsn = postgresql(stack)
    own: list[Contestant] = [PostgreSQL(dsn)] if dsn else []
    both = [
        Store(store, flow=flow) for store in ("hive", "sqlite") for flow in ("merge", "updatable")
    ]
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


def _keyed(_: ExitStack) -> list[Contestant]:
    return [DeltaRs(), DuckDB(), Store("hive"), Store("iceberg")]


def _partitioned(_: ExitStack) -> list[Contestant]:
    return [DeltaRs(), Store("hive"), Store("iceberg")]


def _loading(_: ExitStack) -> list[Contestant]:
    return [
        DeltaRs(),
        DuckDB(),
        RowMerge(),
        Store("hive"),
        Store("hive", codec="ZSTD"),
        Store("iceberg"),
    ]


def _parted(_: ExitStack) -> list[Contestant]:
    return [
        DeltaRs(),
        DuckDBParquet(),
        Store("hive"),
        Store("hive", codec="ZSTD"),
        Store("iceberg"),
    ]


def _reading(_: ExitStack) -> list[Contestant]:
    return [DeltaRs(), DuckDB(), DuckDBParquet(), RowMerge(), Store("hive"), Store("iceberg")]


RACES: Mapping[str, Race] = {
    "race": Race("merge", "MERGE", _memory),
    "stores": Race("merge", "MERGE", _all_stores),
    "delete": Race("delete", data.DELETE, _both_flows),
    "update": Race("update", data.UPDATE, _both_flows),
    "insert": Race("insert", data.INSERT, _loading),
    "create": Race("create", data.CREATE, _loading),
    "partition": Race("partition", f"{data.CREATE}, partitioned by region", _parted),
    "days": Race("merge", "MERGE of the fifth day, never compacted", _keyed, days=5),
    "parts": Race("merge-parts", "MERGE into 2,000 partitions", _partitioned, regions=2000),
    "dedup": Race("latest", "MERGE of the latest row of each key", _keyed),
    "dedup-groups": Race("grouped", "MERGE of a group of each key", _keyed),
    "select": Race("select", data.SELECT, _reading),
}

KEYED = Race("merge", "MERGE", _keyed)
"""The races of each kind of keys, and of each size."""


def race(known: Race, case: Case, runs: int, among: Sequence[str]) -> dict[str, Lap]:
    """Race, print the table, and return the results of each contestant.

    Args:
        known: the work and its contestants.
        case: the tables.
        runs: warm rounds.
        among: words, one of which must be in a contestant's name; all race if empty.
    """
    case = replace(case, regions=known.regions)
    with ExitStack() as stack:
        contestants = [
            c
            for c in known.contestants(stack)
            if (not among or any(word in c.name.lower() for word in among))
            and (c.keys is None or case.keys.name in c.keys)
        ]
        _keep_spark(contestants, stack)
        laps = {c.name: Lap() for c in contestants}
        fingerprints = {}
        for number in range(runs + 1):
            for contestant in contestants:
                contestant.prepare(case, known.work)
                for _ in range(known.days - 1):
                    contestant.run(known.work)
                _run(contestant, laps[contestant.name], known.work)
                fingerprints[contestant.name] = data.fingerprint(contestant.content())
                seconds = laps[contestant.name].seconds[-1]
                print(f"  round {number}, {contestant.name}: {seconds:.3f} s", file=sys.stderr)
        for contestant in contestants:
            contestant.close()
    if len(set(fingerprints.values())) != 1:
        sys.exit(f"The engines disagree: {fingerprints}")
    print(
        f"\n{known.statement}: {case}; {runs} warm rounds; all give"
        f" {next(iter(fingerprints.values()))}"
    )
    _print(
        laps,
        case.source_rows if known.work in {"create", "partition", "insert"} else case.target_rows,
    )
    return laps


GROWTH = ((100_000, 100_000), (1_000_000, 100_000), (10_000_000, 100_000), (100_000, 10_000))
LARGE = ((1_000_000, 1_000_000), (10_000_000, 1_000_000), (40_000_000, 1_000_000))
HUGE = (100_000_000, 1_000_000)
"""Rows of target and source: a source of constant size, then one of a million rows, and the races
that need `--long`.
"""


def growing(
    case: Case, runs: int, among: Sequence[str], *, long: bool, picture: Path | None
) -> None:
    """Race MERGE at several sizes, and print how time and memory grow.

    Args:
        case: the keys, and the seed of random numbers.
        runs: as in `race`.
        among: as in `race`.
        long: includes the largest size.
        picture: an SVG file for the growth with a source of a million rows.
    """
    large = (*LARGE, *([HUGE] if long else []))
    races = {
        size: race(KEYED, Case(*size, case.keys, case.seed), runs, among)
        for size in (*GROWTH, *large)
    }
    _table(
        {
            f"{target:,} target rows, {source:,} source rows": laps
            for (target, source), laps in races.items()
        }
    )
    if picture is not None:
        names = dict.fromkeys(name for size in large for name in races[size])
        draw(
            picture,
            {
                name: [
                    Point(size[0], laps[name].best, laps[name].memory["all"])
                    for size in large
                    if name in (laps := races[size])
                ]
                for name in names
            },
        )


def by_keys(case: Case, names: Sequence[str], runs: int, among: Sequence[str]) -> None:
    """Race MERGE by several kinds of keys, and print a table of all; arguments as those of `race`."""
    _table(
        {
            name: race(
                KEYED, Case(case.target_rows, case.source_rows, KINDS[name], case.seed), runs, among
            )
            for name in names
        }
    )


def stage(runs: int) -> Times:
    """Time one empty stage of Spark in all tasks: the minimum time of a statement
    that does not run in the driver.
    """
    from rowmerge_nb.engine.spark.spark_session import create_session

    spark = create_session()

    def nothing() -> None:
        spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id bigint").toArrow()

    nothing()
    times = timed(nothing, runs)
    print(f"{'one stage of Spark, in tasks of Python':46} {times}")
    return times


def _table(races: Mapping[str, Mapping[str, Lap]]) -> None:
    """Print a line for each race: the fastest warm round of each contestant, and its ratio
    to delta-rs.
    """
    names = [*dict.fromkeys(name for laps in races.values() for name in laps)]
    print(
        "\nSeconds of the fastest warm round, in brackets as a multiple of delta-rs; memory of"
        " driver, Java, largest worker, all together (MB)"
    )
    for title, laps in races.items():
        print(title)
        base = laps[DeltaRs.name].best if DeltaRs.name in laps else None
        for name in names:
            if name in laps:
                ratio = f"({laps[name].best / base:.2f})" if base else ""
                print(f"  {name:46}{laps[name].best:10.3f} {ratio:>8}   {laps[name].megabytes}")


def _keep_spark(contestants: Sequence[Contestant], stack: ExitStack) -> None:
    """Keep Spark and its Python workers until the end of a race, like a notebook.

    A store is recreated for each round, with its own engine; closing the last engine
    stops Spark, so that the next round would restart it.
    """
    if any(isinstance(contestant, Store) for contestant in contestants):
        from rowmerge_nb import Engine

        engine = stack.enter_context(Engine())
        engine.spark.range(1).count()


def _run(contestant: Contestant, lap: Lap, work: Work) -> None:
    before = contestant.files()
    with Memory(below=contestant.below) as memory:
        started = time.perf_counter()
        contestant.run(work)
        lap.seconds.append(time.perf_counter() - started)
    after = contestant.files()
    changed = {
        path: size - before.get(path, 0) for path, size in after.items() if size != before.get(path)
    }
    lap.files, lap.written, lap.memory = len(changed), sum(changed.values()), memory.most


def _print(laps: dict[str, Lap], rows: int) -> None:
    base = Times(tuple(laps[DeltaRs.name].seconds[1:])).median if DeltaRs.name in laps else None
    duck = Times(tuple(laps[DuckDB.name].seconds[1:])).median if DuckDB.name in laps else None
    floor = Times(tuple(laps[Floor.name].seconds[1:])).median if Floor.name in laps else None
    head = (
        f"{'engine':46} {'first':>7}  {'warm median [min .. max]':28} {'x delta-rs':>10}"
        f" {'x DuckDB':>8} {'x floor':>7} {'rows/s':>8}"
    )
    print(f"{head}  {'files':>5} {'MB':>7}  memory: driver, Java, worker, all (MB)")
    for name, lap in laps.items():
        first, *warm = lap.seconds
        times = Times(tuple(warm))
        ratios = [f"{times.median / other:.2f}" if other else "" for other in (base, duck, floor)]
        speed = f"{rows / times.median / 1e6:.1f} M"
        files = f"{lap.files:5} {lap.written / MEGABYTE:7.1f}" if lap.files else f"{'':13}"
        print(
            f"{name:46} {first:7.3f}  {times!s:28} {ratios[0]:>10} {ratios[1]:>8} {ratios[2]:>7}"
            f" {speed:>8}  {files}  {lap.megabytes}"
        )
