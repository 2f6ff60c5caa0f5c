"""Random statements whose target is an Iceberg table, compared with the oracle; ROWMERGE_RANDOM_STATEMENTS runs more of them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proof.engines.backends import EngineUnderTest, Oracle, arrow_table, trino_class
from proof.fuzz import fuzz
from proof.oracle.oracle import Outcome, multiset
from proof.statements.model import Scenario
from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.spi import SchemaTableName
from tests.connectors.iceberg.kit import by_pyiceberg, contents, create, insert

pytestmark = [pytest.mark.spark, pytest.mark.trial]

STATEMENTS = int(os.environ.get("ROWMERGE_RANDOM_STATEMENTS", "15"))


class LakeUnderTest(EngineUnderTest):
    """The engine with the target in a lake: partitioned as the scenario says, in some of them by a transform."""

    name = "rowmerge_nb on Iceberg"

    def __init__(self, engine: Any, store: IcebergConnector, mode: str) -> None:
        super().__init__(engine)
        self._store = store
        self._extra = {f"write.{word}.mode": mode for word in ("merge", "update", "delete")}
        self._count = 0

    def run(self, scenario: Scenario) -> Outcome:
        target, settings = scenario.target, scenario.settings
        self._count += 1
        name = SchemaTableName("default", target.name)
        if self._store.catalog.table_exists(("default", target.name)):
            self._store.catalog.drop_table(("default", target.name))
        columns = [(c.name, f"{c.type}{'' if c.nullable else ' NOT NULL'}") for c in target.columns]
        partitioning = [
            f"bucket({c}, 3)" if self._is_bucketed(scenario, c) else c
            for c in settings.partitioned_by
        ]
        create(
            self._store,
            columns,
            name,
            partitioning=tuple(partitioning),
            extra_properties=self._extra,
        )
        # In two commits, so that there are several files.
        data = arrow_table(target)
        for part in (data.slice(0, len(data) // 2), data.slice(len(data) // 2)):
            if part.num_rows:
                insert(self._store, part.combine_chunks().to_batches()[0], name)
        before = self._content(name)
        sources = {table.name: arrow_table(table) for table in scenario.tables[1:]}
        try:
            sql = self._printer.statement(scenario)
            result = self._engine.run(
                sql,
                namespace=sources,
                era=settings.era,
                duplicates=settings.duplicates,
                trace=settings.trace,
            )
        except RowMergeError as error:
            kind = (
                trino_class(error)
                if self._content(name) == before
                else f"{error.code}, and the table was changed"
            )
            return Outcome(None, None, frozenset({kind}), str(error))
        return Outcome(self._content(name), result.count)

    def _is_bucketed(self, scenario: Scenario, column: str) -> bool:
        kind = next(c.type.base for c in scenario.target.columns if c.name == column)
        return self._count % 2 == 0 and kind in {"integer", "bigint", "varchar", "date", "decimal"}

    def _content(self, name: SchemaTableName) -> Any:
        own, other = (
            multiset(contents(self._store, name)),
            multiset(by_pyiceberg(self._store, name)),
        )
        assert own == other, "pyiceberg reads the table otherwise"
        return own


class Adapted:
    """A backend that gets statements for the one paradigm that these tables have."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.name, self.rule, self.eager = backend.name, backend.rule, backend.eager

    def run(self, scenario: Scenario) -> Outcome:
        settings = replace(scenario.settings, paradigm="DELETE_ROW_AND_INSERT_ROW", bucketed_by=())
        outcome: Outcome = self._backend.run(replace(scenario, settings=settings))
        return outcome

    def close(self) -> None:
        self._backend.close()


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_random_statements_on_iceberg_tables_end_as_the_oracle_says(
    spark: Any, tmp_path: Path, mode: str
) -> None:
    def make() -> Any:
        engine = Engine(spark=spark, catalog="lake")
        store = IcebergConnector(tmp_path)
        engine.add_catalog("lake", store)
        return Adapted(LakeUnderTest(engine, store, mode)), [Adapted(Oracle())]

    summary = fuzz(make, range(STATEMENTS), 2718, at_once=1)
    assert summary.failures == [], summary.failures[0].text(2718)
    assert summary.agreed["oracle"] > STATEMENTS * 4 // 5
