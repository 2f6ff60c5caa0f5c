"""Random statements with a target in a store, compared with the oracle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from proof.engines.backends import EngineUnderTest, Oracle, arrow_table, trino_class
from proof.fuzz import fuzz
from proof.oracle.oracle import Outcome
from proof.statements.model import InsertAction, MergeStatement, Scenario
from rowmerge_nb import Engine, RowMergeError

STATEMENTS = os.environ.get("ROWMERGE_RANDOM_STATEMENTS")
"""The number of statements, if higher than the default."""


class TableUnderTest(EngineUnderTest):
    """The engine with the target in a table created by `make` and read by `content`, also by another program."""

    paradigm = "DELETE_ROW_AND_INSERT_ROW"

    def make(self, scenario: Scenario) -> None:
        raise NotImplementedError

    def content(self, scenario: Scenario) -> Any:
        raise NotImplementedError

    def adapted(self, scenario: Scenario) -> Scenario:
        """Return the scenario with the features of such tables: one paradigm, and no buckets."""
        settings = replace(scenario.settings, paradigm=self.paradigm, bucketed_by=())
        return replace(scenario, settings=settings)

    def run(self, scenario: Scenario) -> Outcome:
        settings = scenario.settings
        self.make(scenario)
        before = self.content(scenario)
        try:
            result = self._engine.run(
                self._printer.statement(scenario),
                namespace={table.name: arrow_table(table) for table in scenario.tables[1:]},
                era=settings.era,
                duplicates=settings.duplicates,
                trace=settings.trace,
            )
        except RowMergeError as error:
            unchanged = self.content(scenario) == before
            kind = trino_class(error) if unchanged else f"{error.code}, and the table was changed"
            return Outcome(None, None, frozenset({kind}), str(error))
        return Outcome(self.content(scenario), result.count)


class _Adapted:
    """A backend whose statements are rewritten by a table's `TableUnderTest.adapted`."""

    def __init__(self, backend: Any, adapted: Callable[[Scenario], Scenario]) -> None:
        self._backend, self._adapted = backend, adapted
        self.name, self.rule, self.eager = backend.name, backend.rule, backend.eager

    def run(self, scenario: Scenario) -> Outcome:
        outcome: Outcome = self._backend.run(self._adapted(scenario))
        return outcome

    def close(self) -> None:
        self._backend.close()


def naming_inserted_columns(scenario: Scenario) -> Scenario:
    """Let a MERGE name the columns that it inserts, since the table has others or another order."""
    statement = scenario.statement
    if not isinstance(statement, MergeStatement):
        return scenario
    clauses = tuple(
        replace(
            clause,
            action=replace(clause.action, columns=clause.action.columns or scenario.target.names),
        )
        if isinstance(clause.action, InsertAction)
        else clause
        for clause in statement.clauses
    )
    return replace(scenario, statement=replace(statement, clauses=clauses))


def agree_with_the_oracle(
    spark: Any,
    connector: Any,
    under_test: Callable[[Engine], TableUnderTest],
    numbers: Iterable[int],
    seed: int,
    **options: Any,
) -> None:
    """Fail unless statements of these numbers end like in the oracle; ``options`` are those of the engine."""
    numbers = range(int(STATEMENTS)) if STATEMENTS else numbers

    def make() -> Any:
        engine = Engine(spark=spark, catalog="lake", **options)
        engine.add_catalog("lake", connector)
        table = under_test(engine)
        return _Adapted(table, table.adapted), [_Adapted(Oracle(), table.adapted)]

    summary = fuzz(make, list(numbers), seed, at_once=1)
    assert summary.failures == [], summary.failures[0].text(seed)
    assert summary.agreed["oracle"] > 0.8 * len(list(numbers)), summary.line()
