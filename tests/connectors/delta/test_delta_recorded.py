"""Statements recorded on Trino, and random ones, on Delta tables that delta-rs reads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from proof.engines.backends import EngineUnderTest, Oracle, arrow_table, trino_class
from proof.fuzz import fuzz
from proof.oracle.oracle import Outcome, multiset
from proof.statements.model import Scenario
from proof.trials.driver import read
from rowmerge_nb import DeltaConnector, Engine, RowMergeError
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    SaveMode,
    SchemaTableName,
)
from tests.connectors.iceberg.test_random import Adapted
from tests.goldens_on_spark.departures import DEPARTURES
from tests.goldens_on_spark.support import SCHEMA, Server, cases_on, columns_of, expected_answer
from tests.goldens_on_spark.test_goldens_on_spark import placed_like
from tests.goldens_on_spark.values import row_texts

pytestmark = pytest.mark.spark

STATEMENTS = int(os.environ.get("ROWMERGE_RANDOM_STATEMENTS", "15"))
WITHOUT_DELTA_TABLES = {"part-by-month", "part-bucketed"}
"""Cases with a table that is partitioned by a transform, which Delta does not have."""


class DeltaServer(Server):
    """Recorded cases on Delta tables."""

    def __init__(self, spark: Any, directory: Path) -> None:
        super().__init__(spark)
        self.engine.close()
        self.directory = directory
        self.connector: Any = DeltaConnector(directory)
        self.engine = Engine(
            spark=spark,
            catalog="iceberg",
            schema=SCHEMA,
            era="current",
            duplicates="trino",
            trace="off",
        )
        self.engine.add_catalog("iceberg", self.connector)
        self.engine.run(f"CREATE SCHEMA {SCHEMA}")

    def _content(self, case: Mapping[str, Any]) -> list[str]:
        """Read the target with delta-rs."""
        columns = columns_of(case["tables"][case["target"]])
        rows = DeltaTable(self.directory / SCHEMA / case["target"]).to_pyarrow_table()
        kinds = [kind for _, kind in columns]
        arrays = [rows.column(name).cast(kind.arrow) for name, kind in columns]
        return row_texts(kinds, rows.from_arrays(arrays, names=[name for name, _ in columns]))


@pytest.fixture(scope="module")
def server(spark: Any, tmp_path_factory: Any) -> Any:
    with DeltaServer(spark, tmp_path_factory.mktemp("delta")) as server:
        yield server


@pytest.mark.parametrize("case", cases_on("delta", without=WITHOUT_DELTA_TABLES))
def test_recorded_cases_have_their_answers_on_delta_tables(
    server: DeltaServer, case: Mapping[str, Any]
) -> None:
    departure = DEPARTURES.get(case["id"])
    expected = expected_answer(case, departure["expect"] if departure else None)
    assert placed_like(server.answer(case), expected) == expected


class DeltaUnderTest(EngineUnderTest):
    """The engine with the target in a Delta table, partitioned as the scenario says."""

    name = "rowmerge_nb on Delta"

    def __init__(self, engine: Any, store: DeltaConnector, directory: Path) -> None:
        super().__init__(engine)
        self._store, self._directory = store, directory / "default"

    def run(self, scenario: Scenario) -> Outcome:
        target, settings = scenario.target, scenario.settings
        name = SchemaTableName("default", target.name)
        shutil.rmtree(self._directory / target.name, ignore_errors=True)
        columns = tuple(ColumnMetadata(c.name, c.type, c.nullable) for c in target.columns)
        partitions = tuple(
            column
            for column in settings.partitioned_by
            # Delta has no empty text as the value of a partition.
            if next(c for c in columns if c.name == column).type.base not in {"double", "varchar"}
        )
        properties = {"partitioned_by": partitions} if len(partitions) < len(columns) else {}
        session, transaction = ConnectorSession("fill"), self._store.begin_transaction()
        self._store.get_metadata(transaction).create_table(
            session, ConnectorTableMetadata(name, columns, properties), SaveMode.FAIL
        )
        self._store.commit(transaction)
        data = arrow_table(target)
        # In two commits, so that there are several files.
        for part in (data.slice(0, len(data) // 2), data.slice(len(data) // 2)):
            transaction = self._store.begin_transaction()
            metadata = self._store.get_metadata(transaction)
            handle = metadata.get_table_handle(session, name)
            assert handle is not None
            insert = metadata.begin_insert(session, handle, ())
            sink = self._store.get_page_sink_provider().create_page_sink(
                transaction, session, insert
            )
            for page in part.combine_chunks().to_batches():
                sink.append_page(page)
            metadata.finish_insert(session, insert, sink.finish())
            self._store.commit(transaction)
        before = self._content(target.name)
        sources = {table.name: arrow_table(table) for table in scenario.tables[1:]}
        try:
            result = self._engine.run(
                self._printer.statement(scenario),
                namespace=sources,
                era=settings.era,
                duplicates=settings.duplicates,
                trace=settings.trace,
            )
        except RowMergeError as error:
            kind = (
                trino_class(error)
                if self._content(target.name) == before
                else f"{error.code}, and the table was changed"
            )
            return Outcome(None, None, frozenset({kind}), str(error))
        return Outcome(self._content(target.name), result.count)

    def _content(self, table: str) -> Any:
        own = read(self._store, "default", table)
        # Its reader of pyarrow's datasets cannot read negative decimals.
        query = QueryBuilder().register("t", DeltaTable(self._directory / table))
        records = pa.table(query.execute("SELECT * FROM t").read_all())
        other = records.select(own.column_names).cast(own.schema)
        mine, others = (
            multiset(tuple(row.values()) for row in rows.to_pylist()) for rows in (own, other)
        )
        assert mine == others, "delta-rs reads the table otherwise"
        return mine


@pytest.mark.trial
def test_random_statements_on_delta_tables_end_as_the_oracle_says(
    spark: Any, tmp_path: Path
) -> None:
    def make() -> Any:
        engine = Engine(spark=spark, catalog="lake")
        store = DeltaConnector(tmp_path)
        engine.add_catalog("lake", store)
        return Adapted(DeltaUnderTest(engine, store, tmp_path)), [Adapted(Oracle())]

    summary = fuzz(make, range(STATEMENTS), 2718, at_once=1)
    assert summary.failures == [], summary.failures[0].text(2718)
    assert summary.agreed["oracle"] > STATEMENTS * 4 // 5
