"""Results derived for other options from a trace, compared with runs under these options: ``python
-m proof.variants --statements 500``.

Statement 17 of seed 5 does not depend on other statements: ``python -m proof.variants --seed 5
--first 17 --statements 1``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from proof.engines.backends import arrow_table
from proof.statements.printing import Printer, script
from proof.statements.scenarios import KINDS, numbered_scenario
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.engine.api.what_if import variants_of
from rowmerge_nb.plan.rules import RULES
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from proof.statements.model import Scenario
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace
    from rowmerge_nb.trace.what_if_answers import Variants

__all__ = ["Summary", "compare", "main"]


@dataclass
class Summary:
    """The result of a run.

    Attributes:
        statements: the number of statements per kind.
        compared: the number of compared variants; ``failed``: those that failed alike.
        places: the number of compared writers of rows; ``unknown``: those that were not derived.
        without: how often nothing or not everything was derived, by reason.
        differences: the differences, each with a script that shows it.
    """

    seed: int
    statements: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    failed: int = 0
    places: int = 0
    unknown: int = 0
    without: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Return the summary in one line.

        >>> Summary(5).line()
        '0 statements of seed 5: 0 variants compared (0 of them fail), 0 differ; 0 writers compared, 0 not known.'
        """
        return (
            f"{sum(self.statements.values())} statements of seed {self.seed}: {self.compared}"
            f" variants compared ({self.failed} of them fail), {len(self.differences)} differ;"
            f" {self.places} writers compared, {self.unknown} not known."
        )


def compare(
    engine: Engine,
    numbers: Iterable[int],
    seed: int,
    *,
    kinds: Sequence[str] = KINDS,
    most: int | None = None,
) -> Summary:
    """Run statements of a series, derive other options from their traces, and run them under these.

    Args:
        engine: an engine.
        numbers: the statements' numbers.
        seed: the series.
        kinds: the kinds of statement.
        most: the maximum number of variants run per statement; None for all.
    """
    summary = Summary(seed)
    printer = Printer("trino")
    for number in numbers:
        scenario = numbered_scenario(seed, number, kinds)
        summary.statements[scenario.kind] += 1
        run = _Run(engine, scenario, printer.statement(scenario))
        trace = run.trace(scenario.settings.__dict__)
        if trace is None or not trace.join.rows:
            summary.without["it failed before rows were joined, or there are none"] += 1
            continue
        variants = variants_of(trace)
        if variants.why:
            summary.without[variants.why] += 1
        selected = list(variants.traces)
        if most is not None:
            selected = Random(number).sample(selected, min(most, len(selected)))  # noqa: S311 - nothing is secret here
        for values in selected:
            wrong = [*run.differences(variants, values, summary)]
            if wrong:
                text = (
                    f"-- statement {number}, {trace.settings.paradigm} {trace.settings.era} {trace.settings.duplicates} ->"
                    f" {values}: {'; '.join(wrong)}"
                )
                summary.differences.append(f"{text}\n{script(scenario)}")
    return summary


@dataclass(frozen=True)
class _Run:
    """A statement on its own tables."""

    engine: Engine
    scenario: Scenario
    sql: str

    def trace(self, options: Mapping[str, Any]) -> Trace | None:
        """Rehearse the statement; return None if it ends before it begins."""
        settings, target = self.scenario.settings, self.scenario.target
        self.engine.register(
            target.name,
            arrow_table(target),
            paradigm=options["paradigm"],
            partitioned_by=settings.partitioned_by,
            bucketed_by=settings.bucketed_by,
            bucket_count=3 if settings.bucketed_by else None,
            not_null=[column.name for column in target.columns if not column.nullable],
        )
        for table in self.scenario.tables[1:]:
            self.engine.register(table.name, arrow_table(table))
        try:
            return self.engine.run(
                self.sql,
                rehearse=True,
                era=options["era"],
                duplicates=options["duplicates"],
                rules_off=() if settings.rules else tuple(RULES),
            ).trace
        except RowMergeError as error:
            return error.result.trace if error.result is not None else None

    def differences(
        self, variants: Variants, values: tuple[str, ...], summary: Summary
    ) -> Iterator[str]:
        """Run the statement under other options, and yield differences from the derived results."""
        derived = variants.traces[values]
        options = {
            "paradigm": derived.settings.paradigm,
            "era": derived.settings.era,
            "duplicates": str(derived.settings.duplicates),
        }
        ran = self.trace({**options, **dict(zip(variants.choices, values, strict=True))})
        summary.compared += 1
        if ran is None or derived.state != ran.state:
            yield f"derived {derived.state}, ran {ran.state if ran is not None else 'not'}"
            return
        if derived.error is not None and ran.error is not None:
            summary.failed += 1
            ours, theirs = derived.error, ran.error
            # A trace lacks the line of ON, which errors without a clause name.
            line = theirs.line if ours.line is None else ours.line
            if (ours.code, ours.message, line) != (theirs.code, theirs.message, theirs.line):
                yield f"the errors are {ours} and {theirs}"
            if _ids(derived) != _ids(ran):
                yield (
                    f"the target rows that were matched more than once are {_ids(derived)} and"
                    f" {_ids(ran)}"
                )
            return
        if (derived.count, derived.target.rows_after) != (ran.count, ran.target.rows_after):
            yield (
                f"the counts are {derived.count}, {derived.target.rows_after} and {ran.count},"
                f" {ran.target.rows_after}"
            )
        assert derived.samples.pages is not None
        assert ran.samples.pages is not None
        yield from _page_differences(derived.samples.pages, ran.samples.pages, summary)
        if -1 not in derived.samples.pages.writers and _stored(derived) != _stored(ran):
            yield f"the writers have {_stored(derived)} and {_stored(ran)}"


def _page_differences(derived: PageSample, ran: PageSample, summary: Summary) -> Iterator[str]:
    if (derived.layout, derived.produced) != (ran.layout, ran.produced):
        yield f"rows become {derived.produced} and {ran.produced}"
    for name, ours, theirs in (
        ("before", derived.before, ran.before),
        ("after", derived.after, ran.after),
    ):
        if ours.schema != theirs.schema:
            yield f"the channels {name} are {ours.schema} and {theirs.schema}"
        elif _rows(ours) != _rows(theirs):
            yield f"the pages {name} are {_rows(ours)} and {_rows(theirs)}"
    pairs = [*zip(derived.writers, ran.writers, strict=False)]
    summary.unknown += sum(-1 in pair for pair in pairs)
    summary.places += sum(-1 not in pair for pair in pairs)
    if any(-1 not in pair and pair[0] != pair[1] for pair in pairs):
        yield f"the writers are {derived.writers} and {ran.writers}"


def _rows(page: pa.RecordBatch) -> list[str]:
    return [repr(row) for row in zip(*map(python_values, page.columns), strict=True)]


def _ids(trace: Trace) -> list[str]:
    return sorted(
        repr((group.row_id, group.total, group.case_number))
        for group in trace.join.duplicate_groups
    )


def _stored(trace: Trace) -> dict[int, dict[int, int]]:
    return {writer.writer: dict(sorted(writer.rows.items())) for writer in trace.writers}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison from the command line; return 1 if anything differs."""
    from rowmerge_nb import Engine

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statements", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument(
        "--most", type=int, default=None, help="so many variants of each statement; otherwise all"
    )
    options = parser.parse_args(arguments)
    with Engine() as engine:
        numbers = range(options.first, options.first + options.statements)
        summary = compare(
            engine, numbers, options.seed, kinds=options.kinds.split(","), most=options.most
        )
    lines = [
        *summary.differences,
        *(f"{count} x {why}" for why, count in summary.without.items()),
        summary.line(),
    ]
    sys.stdout.write("\n\n".join(lines) + "\n")
    return 1 if summary.differences else 0


if __name__ == "__main__":
    sys.exit(main())
