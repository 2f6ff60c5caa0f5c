"""The engine with the target in another store than memory, filled and read through the connector's
contract without Spark.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from proof.engines.backends import EngineUnderTest, arrow_table, trino_class
from proof.oracle.oracle import Outcome, multiset
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.handles import ConnectorSession, SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.page_source import Constraint
from rowmerge_nb.spi.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from proof.statements.model import Scenario
    from rowmerge_nb.spi.connector import Connector

__all__ = ["StoreUnderTest", "insert_page", "read_rows"]

KEY = "row_key"
INSERTS = 3
"""The number of inserts that fill a table, so that a store of files has several splits."""


class StoreUnderTest(EngineUnderTest):
    """Runs UPDATE and DELETE statements on tables of a store.

    Args:
        engine: an engine with the connector.
        catalog: the connector's name there; it is the engine's default catalog.
        connector: the connector.
        schema: the schema of the tables; it is the engine's default schema.
        keyed: the store requires a primary key: the table gets an extra column, which is not
            compared.
        flow: how statements are executed.
    """

    def __init__(
        self,
        engine: Any,
        catalog: str,
        connector: Connector,
        schema: str,
        *,
        keyed: bool = False,
        flow: str = "merge",
        rules_off: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(engine, flow, rules_off)
        self.name = f"{self.name} on {connector.name}"
        self._catalog = catalog
        self._connector = connector
        self._schema = schema
        self._keyed = keyed

    def run(self, scenario: Scenario) -> Outcome:
        """Run a scenario's statement on a new table."""
        target, settings = scenario.target, scenario.settings
        name = SchemaTableName(self._schema, target.name)
        self._make(name, scenario)
        before = read_rows(self._connector, name, target.names)
        sources = {table.name: arrow_table(table) for table in scenario.tables[1:]}
        try:
            sql = self._printer.statement(scenario)
            result = self._engine.run(
                sql,
                namespace=sources,
                era=settings.era,
                trace=settings.trace,
                flow=self._flow,
                rules_off=self._rules_off,
            )
        except RowMergeError as error:
            self._pass_over(error)
            same = read_rows(self._connector, name, target.names) == before
            error_class = trino_class(error) if same else f"{error.code}, and the table was changed"
            return Outcome(None, None, frozenset({error_class}), str(error))
        return Outcome(read_rows(self._connector, name, target.names), result.count)

    def _make(self, name: SchemaTableName, scenario: Scenario) -> None:
        """Create the table, and fill it by a few inserts."""
        target, connector = scenario.target, self._connector
        columns = [ColumnMetadata(c.name, c.type, c.nullable) for c in target.columns]
        rows = arrow_table(target)
        properties: Mapping[str, Any] = {}
        if self._keyed:
            columns.append(ColumnMetadata(KEY, BIGINT, nullable=False))
            rows = rows.append_column(KEY, pa.array(np.arange(rows.num_rows)))
            properties = {"primary_key": [KEY]}
        session = _session()
        transaction = connector.begin_transaction()
        metadata = connector.get_metadata(transaction)
        if (old := metadata.get_table_handle(session, name)) is not None:
            metadata.drop_table(session, old)
        connector.commit(transaction)
        transaction = connector.begin_transaction()
        connector.get_metadata(transaction).create_table(
            session, ConnectorTableMetadata(name, tuple(columns), properties)
        )
        connector.commit(transaction)
        size = max(-(-rows.num_rows // INSERTS), 1)
        for start in range(0, rows.num_rows, size):
            insert_page(connector, name, rows.slice(start, size).combine_chunks().to_batches()[0])


_numbers = itertools.count(1)


def _session() -> ConnectorSession:
    return ConnectorSession(f"store-{next(_numbers)}")


def insert_page(connector: Connector, name: SchemaTableName, page: pa.RecordBatch) -> None:
    """Insert rows with one sink, so that a store of files writes one file."""
    session = _session()
    transaction = connector.begin_transaction()
    metadata = connector.get_metadata(transaction)
    handle = metadata.get_table_handle(session, name)
    assert handle is not None
    insert = metadata.begin_insert(session, handle, metadata.get_column_handles(session, handle))
    sink = connector.get_page_sink_provider().create_page_sink(transaction, session, insert)
    sink.append_page(page)
    fragments: Any = sink.finish()
    metadata.finish_insert(session, insert, fragments)
    connector.commit(transaction)


def read_rows(connector: Connector, name: SchemaTableName, columns: Sequence[str]) -> Any:
    """Read columns of a table through its connector, split by split; return a multiset of rows."""
    session = _session()
    transaction = connector.begin_transaction()
    metadata = connector.get_metadata(transaction)
    handle = metadata.get_table_handle(session, name)
    assert handle is not None
    handles = [
        column for column in metadata.get_column_handles(session, handle) if column.name in columns
    ]
    rows: list[tuple[Any, ...]] = []
    for split in connector.get_split_manager().get_splits(
        transaction, session, handle, Constraint()
    ):
        source = connector.get_page_source_provider().create_page_source(
            transaction, session, split, handle, handles
        )
        while (page := source.get_next_page()) is not None:
            rows += zip(*(column.to_pylist() for column in page.columns), strict=True)
        source.close()
    connector.commit(transaction)
    return multiset(rows)
