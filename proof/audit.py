"""Trials of the audit: random statements executed by another implementation, and deliberate
mutations of their results.

``python -m proof.audit --by frames --statements 200 --mutations 50`` runs them. The other
implementation is DuckDB, or the oracle if DuckDB cannot express the statement; neither shares code
with the engine. Results are passed as Arrow tables, or committed to an Iceberg table by pyiceberg.
With ``--by spark``, Spark executes and commits by Iceberg's own library.

The audit must agree with a result. It must find every mutation and name the row, and every
deviation of Spark from the oracle.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from proof.engines.backends import DuckDB, InexpressibleError
from proof.engines.committing import CATALOGS, Frames, Pyiceberg
from proof.engines.spark_iceberg import SparkIceberg
from proof.oracle.oracle import multiset, predict
from proof.statements.model import MergeStatement
from proof.statements.scenarios import numbered_scenario
from rowmerge_nb.base.errors import SetupError

if TYPE_CHECKING:
    from proof.engines.committing import Committer
    from proof.statements.model import Row, Scenario
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.trace.audit import Audit

__all__ = ["MUTATIONS", "Committed", "Mutation", "Trials", "main", "trials"]

Rows = list["Row"]
_NUMBERS: Final[dict[str, Any]] = {
    "integer": int,
    "bigint": int,
    "double": float,
    "decimal": Decimal,
}


@dataclass
class Trials:
    """The result of trials.

    Attributes:
        by: the number of statements per implementation.
        agreed: the number of audits that agreed, as they must.
        passed_over: statements that fail, or that the other engine does not execute.
        differing: statements whose result differs from the prediction, and which the audit reports.
        false_alarms: statements that the audit reports wrongly.
        found: mutations that were found with their rows.
        missed: the other mutations, with their statements.
    """

    by: Counter[str] = field(default_factory=Counter)
    agreed: int = 0
    passed_over: int = 0
    differing: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def line(self) -> str:
        """Return the summary in one line."""
        by = ", ".join(f"{name} {count}" for name, count in sorted(self.by.items()))
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.found.items()))
        deviations = (
            f"{len(self.differing)} are executed otherwise and told so, " if self.differing else ""
        )
        return (
            f"{self.by.total()} statements ({by}) in {self.seconds:.0f} s: {self.agreed} agree,"
            f" {deviations}{len(self.false_alarms)} false alarms, {self.passed_over} passed over;"
            f" {self.found.total()} mutations found ({kinds}), {len(self.missed)} missed."
        )


def trials(
    engine: Engine,
    statements: int,
    mutations: int,
    *,
    seed: int = 1,
    committer: Committer | None = None,
    executed: Callable[[Scenario], tuple[str, Rows] | None] | None = None,
    progress: Callable[[Trials], None] = lambda _: None,
) -> Trials:
    """Audit random statements, and mutations of their results.

    Args:
        engine: the engine.
        statements: the number of statements.
        mutations: the number of mutations, of the first statements with rows.
        seed: the series of statements.
        committer: commits results; None for Arrow tables.
        executed: returns the implementation and the rows of a statement, or None if it fails; None
            for DuckDB, or the oracle.
        progress: called after every statement.
    """
    result, duck, started = Trials(), DuckDB(), time.monotonic()
    committer = committer or Frames()
    number = -1
    try:
        while result.by.total() < statements:
            number += 1
            scenario = numbered_scenario(seed, number)
            execution = _executed(duck, scenario) if executed is None else executed(scenario)
            if execution is None:
                result.passed_over += 1
                continue
            name, rows = execution
            result.by[name] += 1
            audit = committer.audit(engine, scenario, rows)
            # Another engine may deviate from the standard, which the audit must report.
            deviates = executed is not None and multiset(rows) != predict(scenario, "standard").rows
            if not audit.agrees and deviates:
                result.differing.append(f"seed {seed}, statement {number}, by {name}:\n{audit}")
            elif audit.agrees and not deviates:
                result.agreed += 1
            else:
                result.false_alarms.append(f"seed {seed}, statement {number}, by {name}:\n{audit}")
            if not deviates and result.found.total() + len(result.missed) < mutations:
                random = Random(f"{seed} {number} mutations")  # noqa: S311 - nothing is secret here
                _mutate(
                    partial(committer.audit, engine, scenario),
                    Committed(scenario, rows, random),
                    number,
                    result,
                )
            result.seconds = time.monotonic() - started
            progress(result)
    finally:
        duck.close()
    return result


def _executed(duck: DuckDB, scenario: Scenario) -> tuple[str, Rows] | None:
    """Return the implementation and the resulting rows of a statement; None if it fails."""
    predicted = predict(scenario, "standard")
    if predicted.errors:
        return None
    try:
        outcome = duck.run(scenario)
    except InexpressibleError:
        name, outcome = "oracle", predicted
    else:
        name = "duckdb"
        if outcome.errors:
            name, outcome = "oracle", predicted
    assert outcome.rows is not None
    return name, [row for row, count in outcome.rows for _ in range(count)]


# -- mutations


@dataclass(frozen=True)
class Mutation:
    """Rows as after a defect.

    Args:
        rows: the rows.
        wrong: those that the audit must name.
    """

    rows: Rows
    wrong: tuple[Row, ...]


@dataclass(frozen=True)
class Committed:
    """A result to mutate; a mutation is None if it is not applicable.

    Args:
        scenario: the statement and its tables.
        rows: its result.
        random: the source of choices.
    """

    scenario: Scenario
    rows: Rows
    random: Random

    def row_missing(self) -> Mutation | None:
        """Omit a row."""
        if not self.rows:
            return None
        at = self.random.randrange(len(self.rows))
        return Mutation([*self.rows[:at], *self.rows[at + 1 :]], (self.rows[at],))

    def row_doubled(self) -> Mutation | None:
        """Duplicate a row."""
        return (
            Mutation([*self.rows, row := self.random.choice(self.rows)], (row,))
            if self.rows
            else None
        )

    def value_changed(self) -> Mutation | None:
        """Change a number."""
        columns = [
            at
            for at, column in enumerate(self.scenario.target.columns)
            if column.type.base in _NUMBERS
        ]
        if not self.rows or not columns:
            return None
        at, column = self.random.randrange(len(self.rows)), self.random.choice(columns)
        number_type = _NUMBERS[self.scenario.target.columns[column].type.base]
        return self._other_value(
            at, column, number_type(1) if self.rows[at][column] != 1 else number_type(2)
        )

    def other_case(self) -> Mutation | None:
        """Change the case of a text."""
        texts = [
            (at, column, value)
            for at, row in enumerate(self.rows)
            for column, value in enumerate(row)
            if _has_case(value)
        ]
        if not texts:
            return None
        at, column, value = self.random.choice(texts)
        return self._other_value(at, column, str(value).swapcase())

    def not_applied(self) -> Mutation | None:
        """Keep an updated target row as it was, or omit a new row."""
        changed = list((Counter(self.scenario.target.rows) - Counter(self.rows)).elements())
        new = list((Counter(self.rows) - Counter(self.scenario.target.rows)).elements())
        if not changed and not new:
            return None
        row = self.random.choice(changed or new)
        if changed:
            return Mutation([*self.rows, row], (row,))
        rows = list(self.rows)
        rows.remove(row)
        return Mutation(rows, (row,))

    def wrong_clause(self) -> Mutation | None:
        """Omit the effect of the last clause."""
        statement = self.scenario.statement
        if not isinstance(statement, MergeStatement) or len(statement.clauses) < 2:
            return None
        other = predict(
            replace(self.scenario, statement=replace(statement, clauses=statement.clauses[:-1])),
            "standard",
        )
        if other.rows is None:
            return None
        return _as_others(self.rows, [row for row, count in other.rows for _ in range(count)])

    def second_version(self) -> Mutation | None:
        """Add a second version of a new row, as if by another source row."""
        new = [row for row in self.rows if row not in self.scenario.target.rows]
        changed = replace(self, rows=new[:1]).value_changed()
        return None if changed is None else _as_others(self.rows, [*self.rows, *changed.rows])

    def keys_swapped(self) -> Mutation | None:
        """Swap the first values of two rows."""
        pairs = [
            (one, other)
            for one in self.rows
            for other in self.rows
            if one[0] != other[0] and one[1:] != other[1:]
        ]
        if not pairs:
            return None
        one, other = self.random.choice(pairs)
        rows = list(self.rows)
        rows.remove(one)
        rows.remove(other)
        return _as_others(self.rows, [*rows, (other[0], *one[1:]), (one[0], *other[1:])])

    def _other_value(self, at: int, column: int, value: Any) -> Mutation:
        row = (*self.rows[at][:column], value, *self.rows[at][column + 1 :])
        return Mutation([*self.rows[:at], row, *self.rows[at + 1 :]], (self.rows[at], row))


def _has_case(value: Any) -> bool:
    return isinstance(value, str) and value.swapcase() != value


def _as_others(rows: Rows, others: Rows) -> Mutation | None:
    wrong = [*(Counter(rows) - Counter(others)), *(Counter(others) - Counter(rows))]
    return Mutation(others, tuple(wrong)) if wrong else None


MUTATIONS: Final = (
    "row_missing",
    "row_doubled",
    "value_changed",
    "keys_swapped",
    "other_case",
    "not_applied",
    "wrong_clause",
    "second_version",
)
"""The mutations: methods of `Committed`."""


def _mutate(
    audited: Callable[[Rows], Audit], committed: Committed, number: int, result: Trials
) -> None:
    for name in committed.random.sample(MUTATIONS, len(MUTATIONS)):
        mutation: Mutation | None = getattr(committed, name)()
        if mutation is None or Counter(mutation.rows) == Counter(committed.rows):
            continue
        audit = audited(mutation.rows)
        reported = {
            _text(row.values())
            for audited_row in audit.rows
            for row in (*audited_row.missing, *audited_row.unexpected)
        }
        if not audit.agrees and all(_text(row) in reported for row in mutation.wrong):
            result.found[name] += 1
        else:
            result.missed.append(f"statement {number}, {name}, {mutation.wrong}:\n{audit}")
        return


def _text(row: Any) -> str:
    # Doubles count 0.0 and -0.0 as one; a decimal has the scale of its column.
    return repr([_plain(value) for value in row])


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value.normalize()
    return 0.0 if isinstance(value, float) and value == 0 else value


# -- on the command line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run trials; return 1 after a wrong result, and 2 if the other engine is missing."""
    from rowmerge_nb.engine.engine import Engine

    parser = argparse.ArgumentParser(
        prog="python -m proof.audit",
        description="Audits random statements, and mutations of what they leave.",
    )
    parser.add_argument(
        "--by",
        choices=list(CATALOGS),
        default="frames",
        help="who commits what they leave (%(default)s)",
    )
    parser.add_argument(
        "--statements", type=int, default=200, metavar="N", help="how many statements (%(default)s)"
    )
    parser.add_argument(
        "--mutations", type=int, default=50, metavar="N", help="how many mutations (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="the series of statements (%(default)s)"
    )
    options = parser.parse_args(arguments)
    with Engine(cores=2, catalog=CATALOGS[options.by]) as engine, TemporaryDirectory() as warehouse:
        committer: Committer = Frames()
        try:
            if options.by == "pyiceberg":
                committer = Pyiceberg(engine, warehouse)
            elif options.by == "spark":
                committer = SparkIceberg(engine, warehouse)
        except SetupError as error:
            print(error, file=sys.stderr)
            return 2
        executed = committer.executed if isinstance(committer, SparkIceberg) else None
        with closing(committer):
            result = trials(
                engine,
                options.statements,
                options.mutations,
                seed=options.seed,
                committer=committer,
                executed=executed,
            )
    for text in _failures(result):
        print(text, end="\n\n", file=sys.stderr)
    print(result.line())
    return 1 if result.false_alarms or result.missed else 0


def _failures(result: Trials) -> Iterator[str]:
    yield from (f"EXECUTED OTHERWISE: {text}" for text in result.differing)
    yield from (f"FALSE ALARM: {text}" for text in result.false_alarms)
    yield from (f"MISSED: {text}" for text in result.missed)


if __name__ == "__main__":
    raise SystemExit(main())
