"""Commits of a statement's result for audits: none, so that the rows themselves are compared, or by
pyiceberg to an Iceberg table.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from proof.engines.backends import arrow_table
from proof.statements.printing import Printer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from proof.statements.model import Row, Scenario, Table
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.trace.audit import Audit

__all__ = ["CATALOGS", "Committer", "Frames", "Pyiceberg", "rows_as_table"]

CATALOGS: Final = {"frames": "memory", "pyiceberg": "lake", "spark": "lake"}
"""The committers, each with the required default catalog of the engine."""


class Committer(Protocol):
    """Stores the rows that a statement supposedly left for an audit."""

    def audit(self, engine: Engine, scenario: Scenario, rows: Sequence[Row]) -> Audit:
        """Commit rows as the outcome of a scenario's statement, and audit it."""

    def close(self) -> None:
        """Release all resources."""


class Frames:
    """The rows before and after are Arrow tables."""

    def audit(self, engine: Engine, scenario: Scenario, rows: Sequence[Row]) -> Audit:
        """Audit the rows."""
        for table in scenario.tables[1:]:
            engine.register(table.name, arrow_table(table))
        target = scenario.target
        before, after = arrow_table(target), rows_as_table(target, rows)
        return engine.audit(
            target.name, before=before, after=after, statement=Printer("trino").statement(scenario)
        )

    def close(self) -> None:
        """Release nothing."""


class Pyiceberg:
    """Iceberg tables: pyiceberg recreates them, and commits the result of the statement as an
    overwrite.

    Args:
        engine: an engine whose default catalog is ``lake``; this class adds it.
        warehouse: the folder of the tables.
    """

    def __init__(self, engine: Engine, warehouse: str) -> None:
        from rowmerge_nb import IcebergConnector

        self._connector = IcebergConnector(warehouse)
        engine.add_catalog("lake", self._connector)

    def audit(self, engine: Engine, scenario: Scenario, rows: Sequence[Row]) -> Audit:
        """Create the tables, overwrite the target, and compare the two snapshots by an audit."""
        for table in scenario.tables[1:]:
            self._made(table)
        iceberg_table = self._made(scenario.target)
        before = iceberg_table.current_snapshot().snapshot_id
        with warnings.catch_warnings():
            # An overwrite of an empty table.
            warnings.filterwarnings("ignore", message="Delete operation did not match any records")
            iceberg_table.overwrite(rows_as_table(scenario.target, rows))
        after = iceberg_table.current_snapshot().snapshot_id
        statement = Printer("trino").statement(scenario)
        return engine.audit(scenario.target.name, before=before, after=after, statement=statement)

    def _made(self, table: Table) -> Any:
        catalog, name, rows = self._connector.catalog, ("default", table.name), arrow_table(table)
        if catalog.table_exists(name):
            catalog.drop_table(name)
        iceberg_table = catalog.create_table(name, schema=rows.schema)
        iceberg_table.append(rows)
        return iceberg_table

    def close(self) -> None:
        """Close the connector."""
        self._connector.close()


def rows_as_table(target: Table, rows: Iterable[Row]) -> pa.Table:
    """Return rows of a table as Arrow data of its exact types."""
    row_list = list(rows)
    columns = [[row[index] for row in row_list] for index in range(len(target.columns))]
    arrays = [
        pa.array(values, column.type.arrow)
        for values, column in zip(columns, target.columns, strict=True)
    ]
    return pa.table(arrays, names=list(target.names))
