"""Random statements on Delta tables that delta-rs reads, compared with the oracle."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from proof.engines.backends import arrow_table
from proof.oracle.oracle import multiset
from proof.statements.model import Scenario
from proof.trials.driver import read
from rowmerge_nb import DeltaConnector
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    SaveMode,
    SchemaTableName,
)
from tests.connectors.random_tables import TableUnderTest, agree_with_the_oracle

pytestmark = [pytest.mark.spark, pytest.mark.trial]


class DeltaUnderTest(TableUnderTest):
    """The engine with the target in a Delta table, partitioned as in the scenario."""

    name = "rowmerge_nb on Delta"

    def __init__(self, engine: Any, store: DeltaConnector, directory: Path) -> None:
        super().__init__(engine)
        self._store, self._directory = store, directory / "default"

    def make(self, scenario: Scenario) -> None:
        target = scenario.target
        name = SchemaTableName("default", target.name)
        shutil.rmtree(self._directory / target.name, ignore_errors=True)
        columns = tuple(ColumnMetadata(c.name, c.type, c.nullable) for c in target.columns)
        partitions = tuple(
            column
            for column in scenario.settings.partitioned_by
            # Delta has no empty text as a partition value.
            if next(c for c in columns if c.name == column).type.base not in {"double", "varchar"}
        )
        properties = {"partitioned_by": partitions} if len(partitions) < len(columns) else {}
        session, transaction = ConnectorSession("fill"), self._store.begin_transaction()
        self._store.get_metadata(transaction).create_table(
            session, ConnectorTableMetadata(name, columns, properties), SaveMode.FAIL
        )
        self._store.commit(transaction)
        data = arrow_table(target)
        # In two commits, for several files.
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

    def content(self, scenario: Scenario) -> Any:
        table = scenario.target.name
        own = read(self._store, "default", table)
        # Its reader, based on pyarrow's datasets, cannot read negative decimals.
        query = QueryBuilder().register("t", DeltaTable(self._directory / table))
        records = pa.table(query.execute("SELECT * FROM t").read_all())
        other = records.select(own.column_names).cast(own.schema)
        mine, others = (
            multiset(tuple(row.values()) for row in rows.to_pylist()) for rows in (own, other)
        )
        assert mine == others, "delta-rs reads the table otherwise"
        return mine


def test_random_statements_on_delta_tables_end_like_in_the_oracle(
    spark: Any, tmp_path: Path
) -> None:
    store = DeltaConnector(tmp_path)
    agree_with_the_oracle(
        spark, store, lambda engine: DeltaUnderTest(engine, store, tmp_path), range(15), 2718
    )
