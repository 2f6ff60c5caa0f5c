"""Random statements on the engine and on others, compared, for ``scripts/fuzz``.

Statement 17 of seed 5 does not depend on other statements: ``scripts/fuzz --seed 5 --first 17
--statements 1``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from proof.comparison import Difference, Verdict, judge
from proof.engines.backends import (
    Backend,
    DuckDB,
    EngineUnderTest,
    InexpressibleError,
    Oracle,
    PostgreSQL,
    Trino,
)
from proof.engines.postgresql import private_server
from proof.statements.model import Scenario
from proof.statements.printing import script
from proof.statements.reduction import reduced
from proof.statements.scenarios import KINDS, numbered_scenario
from rowmerge_nb.base.errors import SetupError

__all__ = ["Failure", "Summary", "fuzz", "main"]

REFERENCES: Final = ("oracle", "duckdb", "postgresql", "trino")
STORES: Final = ("memory", "hive", "sqlite")
FORMS: Final = ("tasks", "paged", "large", "partitioned", "spark")
AT_ONCE: Final = 2
MOST_DIFFERENCES: Final = 50
"""The number of differences that ends a run: then the engine is broken, not a statement."""
REDUCED: Final = 5
"""The maximum number of failures that are reduced; each takes up to a hundred runs."""


@dataclass(frozen=True)
class Failure:
    """A statement on which engines differ."""

    number: int
    scenario: Scenario
    differences: tuple[Difference, ...]

    def text(self, seed: int) -> str:
        """Return a script that shows the difference."""
        settings = self.scenario.settings
        lines = [
            (
                f"-- seed {seed}, statement {self.number}: scripts/fuzz --seed {seed} --first"
                f" {self.number} --statements 1"
            ),
            (
                f"-- era={settings.era} duplicates={settings.duplicates} trace={settings.trace}"
                f" rules={settings.rules}"
            ),
            *(
                f"-- {difference.reference}: {difference.sentence}".replace("\n", " ")
                for difference in self.differences
            ),
        ]
        return "\n".join([*lines, script(self.scenario)])


@dataclass
class Summary:
    """The result of a run.

    Attributes:
        kinds: statements per kind.
        endings: the number that succeeded alike, failed alike, differ, or are not supported by the
            engine.
        agreed: per reference, the number of confirmed statements.
        passed_over: per reference, the number of skipped statements.
        failures: the statements that differ.
    """

    seed: int
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    agreed: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, number: int, scenario: Scenario, verdict: Verdict | None) -> None:
        """Count a statement."""
        self.kinds[scenario.kind] += 1
        if verdict is None:
            self.endings["not said"] += 1
            return
        self.agreed.update(verdict.agreed)
        self.passed_over.update(verdict.passed_over)
        if verdict.differences:
            self.endings["differ"] += 1
            self.failures.append(Failure(number, scenario, verdict.differences))
        else:
            self.endings["failed alike" if verdict.outcome.errors else "succeeded alike"] += 1

    def line(self) -> str:
        """Return the summary in one line.

        >>> Summary(5, 1.0).line()
        '0 statements of seed 5 in 1 s: 0 succeeded alike, 0 failed alike, 0 differ.'
        """
        total = sum(self.kinds.values())
        kinds = (
            f" ({', '.join(f'{name} {count}' for name, count in sorted(self.kinds.items()))})"
            if self.kinds
            else ""
        )
        endings = ", ".join(
            f"{self.endings[name]} {name}" for name in ("succeeded alike", "failed alike", "differ")
        )
        references = [
            f"{name} confirmed {self.agreed[name]}"
            + (f", passed over {skipped}" if (skipped := self.passed_over[name]) else "")
            for name in sorted({*self.agreed, *self.passed_over})
        ]
        unsaid = (
            f"; the engine cannot say {self.endings['not said']}"
            if self.endings["not said"]
            else ""
        )
        answers = f" {'; '.join(references)}." if references else ""
        return (
            f"{total} statements of seed {self.seed}{kinds} in {self.seconds:.0f} s:"
            f" {endings}{unsaid}.{answers}"
        )


def fuzz(
    make: Callable[[], tuple[Backend, Sequence[Backend]]],
    numbers: Sequence[int],
    seed: int,
    *,
    kinds: Sequence[str] = KINDS,
    at_once: int = 1,
    progress: Callable[[Summary], None] = lambda _: None,
) -> Summary:
    """Run statements of a series and compare.

    Args:
        make: returns an engine and its references; called once per thread.
        numbers: the statements' numbers.
        seed: the series.
        kinds: the kinds of statement.
        at_once: the number of concurrent statements.
        progress: called after every statement.
    """
    summary = Summary(seed)
    started = time.monotonic()
    with ExitStack() as stack:
        backends = _PerThread(make, stack)

        def run(number: int) -> tuple[int, Scenario, Verdict | None]:
            scenario = numbered_scenario(seed, number, kinds)
            return number, scenario, _verdict(*backends.get(), scenario)

        pool = ThreadPoolExecutor(at_once)
        # Report the findings so far when interrupted.
        with suppress(KeyboardInterrupt):
            for number, scenario, verdict in pool.map(run, numbers):
                summary.add(number, scenario, verdict)
                summary.seconds = time.monotonic() - started
                progress(summary)
                if summary.endings["differ"] >= MOST_DIFFERENCES:
                    break
        pool.shutdown(cancel_futures=True)
    return summary


def _verdict(engine: Backend, references: Sequence[Backend], scenario: Scenario) -> Verdict | None:
    try:
        return judge(engine, references, scenario)
    except InexpressibleError:
        return None


class _PerThread:
    """Engines and references, one set per thread; all are closed at the end."""

    def __init__(
        self, make: Callable[[], tuple[Backend, Sequence[Backend]]], stack: ExitStack
    ) -> None:
        self._make = make
        self._stack = stack
        self._known = threading.local()

    def get(self) -> tuple[Backend, Sequence[Backend]]:
        if not hasattr(self._known, "made"):
            engine, references = self._make()
            for backend in (engine, *references):
                self._stack.callback(backend.close)
            self._known.made = (engine, references)
        return self._known.made  # type: ignore[no-any-return]


def smallest(
    failure: Failure, engine: Backend, references: Sequence[Backend], tries: int = 100
) -> Failure:
    """Reduce a failure's scenario while keeping the kind of difference."""
    difference_kind = _kind(failure.differences)
    last = failure.differences

    def still(candidate: Scenario) -> bool:
        nonlocal last
        try:
            verdict = judge(engine, references, candidate)
        except Exception:  # noqa: BLE001 - a part that has another type cannot be evaluated: it shows nothing
            return False
        if not verdict.differences or _kind(verdict.differences) != difference_kind:
            return False
        last = verdict.differences
        return True

    return Failure(failure.number, reduced(failure.scenario, still, tries), last)


def _kind(differences: tuple[Difference, ...]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (
            d.reference,
            " ".join(d.sentence.split()[:4]) if d.sentence.startswith("it ended") else "rows",
        )
        for d in differences
    )


# -- on the command line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``scripts/fuzz``; return 1 if something differs."""
    options = _parser().parse_args(arguments)
    if (options.flow, options.store) != ("merge", "memory"):
        options.kinds = ",".join(kind for kind in options.kinds.split(",") if kind != "MERGE")
    with ExitStack() as stack:
        make = _maker(options, stack)
        numbers = range(options.first, options.first + options.statements)
        display = _Shown(options.statements)
        summary = fuzz(
            make,
            numbers,
            options.seed,
            kinds=options.kinds.split(","),
            at_once=options.at_once,
            progress=display.progress,
        )
        texts = list(_told(summary, make)) if summary.failures else []
    for text in texts:
        print(text, end="\n\n")
    if options.failures_to:
        Path(options.failures_to).write_text("\n\n".join(texts), encoding="utf-8")
    print(summary.line())
    return 1 if summary.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz", description="Runs random statements and compares engines."
    )
    parser.add_argument(
        "--statements", type=int, default=100, metavar="N", help="how many (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="the series of statements (%(default)s)"
    )
    parser.add_argument(
        "--first",
        type=int,
        default=0,
        metavar="NUMBER",
        help="the first statement's number (%(default)s)",
    )
    parser.add_argument(
        "--against",
        default="",
        metavar="NAMES",
        help=f"of {','.join(REFERENCES)}; by default all that are there",
    )
    parser.add_argument(
        "--engine",
        choices=("rowmerge_nb", *REFERENCES),
        default="rowmerge_nb",
        help="what is tested (%(default)s)",
    )
    parser.add_argument(
        "--trino",
        metavar="URL",
        help="a Trino server and a catalog there with MERGE: http://user@127.0.0.1:8080/iceberg",
    )
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of statement (%(default)s)")
    parser.add_argument(
        "--flow",
        choices=("merge", "updatable"),
        default="merge",
        help="how UPDATE and DELETE are executed (%(default)s)",
    )
    parser.add_argument(
        "--form",
        choices=FORMS,
        default="tasks",
        help=(
            "what executes a row change: one task, one task page by page, tasks as of large tables,"
            " tasks that get rows by their keys, Spark (%(default)s)"
        ),
    )
    parser.add_argument(
        "--store",
        choices=STORES,
        default="memory",
        help="where the target is; others take UPDATE and DELETE (%(default)s)",
    )
    parser.add_argument(
        "--at-once",
        type=int,
        default=AT_ONCE,
        metavar="N",
        help="statements at the same time (%(default)s)",
    )
    parser.add_argument(
        "--failures-to", metavar="FILE", help="where scripts of the differences are written"
    )
    return parser


def _maker(
    options: argparse.Namespace, stack: ExitStack
) -> Callable[[], tuple[Backend, Sequence[Backend]]]:
    names = [name.strip() for name in options.against.split(",") if name.strip()] or list(
        REFERENCES
    )
    if unknown := sorted(set(names) - set(REFERENCES)):
        raise SystemExit(f"--against has no {unknown[0]!r}; there are: {', '.join(REFERENCES)}")
    if not options.trino:
        if options.engine == "trino" or (options.against and "trino" in names):
            raise SystemExit(
                "Where Trino is has to be said: --trino http://user@127.0.0.1:8080/iceberg"
            )
        names = [name for name in names if name != "trino"]
    uri = ""
    if "postgresql" in {*names, options.engine}:
        try:
            uri = os.environ.get("ROWMERGE_POSTGRES") or stack.enter_context(private_server())
        except SetupError as error:
            if options.against or options.engine == "postgresql":
                raise SystemExit(str(error)) from error
            print(f"Without PostgreSQL: {error}", file=sys.stderr)
            names.remove("postgresql")

    def backend(name: str, flow: str = options.flow) -> Backend:
        if name == "rowmerge_nb":
            return _engine_under_test(options.store, flow, options.form, stack)
        makers: dict[str, Callable[[], Backend]] = {
            "postgresql": lambda: PostgreSQL(uri),
            "trino": lambda: Trino(options.trino),
            "duckdb": DuckDB,
            "oracle": Oracle,
        }
        return makers[name]()

    # The older flow is also compared with the current one.
    flows = ["merge"] if options.flow != "merge" else []
    return lambda: (
        backend(options.engine),
        [
            *(backend("rowmerge_nb", flow) for flow in flows),
            *(backend(name) for name in names if name != options.engine),
        ],
    )


def _engine_under_test(store: str, flow: str, form: str, stack: ExitStack) -> EngineUnderTest:
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.plan.rules import RuleSettings

    off = frozenset({"change_in_task"} if form == "spark" else ())
    if store == "memory":
        large = RuleSettings(small_rows=0, one_task_bytes=0)
        partitioned = replace(large, source_bytes=0, packed_bytes=0)
        sizes = {"paged": RuleSettings(small_rows=0), "large": large, "partitioned": partitioned}
        return EngineUnderTest(Engine(cores=2, rule_settings=sizes.get(form)), flow, off)
    from proof.engines.stores import StoreUnderTest
    from rowmerge_nb.connectors.hive_acid.hive_connector import HiveAcidConnector
    from rowmerge_nb.connectors.jdbc.sqlite.sqlite_connector import SqliteConnector

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowmerge_nb-")))
    connector = (
        HiveAcidConnector(folder)
        if store == "hive"
        else SqliteConnector(folder / "fuzz.db", create=True)
    )
    schema = "default" if store == "hive" else "main"
    engine = Engine(cores=2, catalog="store", schema=schema)
    engine.add_catalog("store", connector)
    return StoreUnderTest(
        engine, "store", connector, schema, keyed=store == "sqlite", flow=flow, rules_off=off
    )


def _told(summary: Summary, make: Callable[[], tuple[Backend, Sequence[Backend]]]) -> Iterator[str]:
    """Yield the failures as scripts, the first ones reduced."""
    engine, references = make()
    try:
        for position, failure in enumerate(summary.failures):
            yield (smallest(failure, engine, references) if position < REDUCED else failure).text(
                summary.seed
            )
    finally:
        for backend in (engine, *references):
            backend.close()


class _Shown:
    """Prints a line per difference, and a progress line every ten seconds."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._told = 0
        self._last = time.monotonic()

    def progress(self, summary: Summary) -> None:
        for failure in summary.failures[self._told :]:
            for difference in failure.differences:
                print(
                    f"Statement {failure.number} differs from {difference.reference}:"
                    f" {difference.sentence}",
                    flush=True,
                )
        self._told = len(summary.failures)
        if time.monotonic() - self._last < 10:
            return
        self._last = time.monotonic()
        finished = sum(summary.kinds.values())
        pace = summary.seconds / finished
        remaining_minutes = (self._total - finished) * pace / 60
        print(
            f"{finished} of {self._total}, {pace:.2f} s each, {summary.endings['differ']} differ,"
            f" {remaining_minutes:.0f} min left",
            flush=True,
        )


if __name__ == "__main__":
    raise SystemExit(main())
