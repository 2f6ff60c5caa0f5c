"""Every store as the default catalog of an engine, for statements at the limits of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import (
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    PostgresConnector,
    SqliteConnector,
)
from tests.extremes.support import quoted

STORES = ("memory", "hive", "sqlite", "postgresql", "iceberg")


@dataclass
class Store:
    """A store under an engine.

    Args:
        kind: the name of the store.
        engine: the engine with it as its default catalog.
        connector: its connector.
    """

    kind: str
    engine: Engine
    connector: Any

    @property
    def flows(self) -> tuple[str, ...]:
        """The flows of UPDATE and DELETE on this store."""
        return ("merge",) if self.kind == "iceberg" else ("merge", "updatable")

    def create(self, table: str, columns: str, key: str | None) -> None:
        """Recreate a table; that of a database gets a primary key if it needs one to change rows."""
        keyed = (
            f" WITH (primary_key = ARRAY['{key}'])"
            if key and self.kind in {"sqlite", "postgresql"}
            else ""
        )
        self.engine.run(f"DROP TABLE IF EXISTS {quoted(table)}")
        self.engine.run(f"CREATE TABLE {quoted(table)} ({columns}){keyed}")

    def rows(self, table: str, columns: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """Read a table by a query of the engine."""
        chosen = ", ".join(map(quoted, columns)) or "*"
        found = self.engine.run(f"SELECT {chosen} FROM {quoted(table)}").table
        assert found is not None
        return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=repr)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, spark: Any, tmp_path: Path) -> Iterator[Store]:
    kind = request.param
    connector: Any = None
    schema = {"sqlite": "main", "postgresql": "public"}.get(kind, "default")
    if kind == "hive":
        connector = HiveAcidConnector(str(tmp_path))
    elif kind == "iceberg":
        connector = IcebergConnector(str(tmp_path))
    elif kind == "sqlite":
        connector = SqliteConnector(tmp_path / "x.db", create=True)
    elif kind == "postgresql":
        connector = PostgresConnector(request.getfixturevalue("postgresql"))
    engine = Engine(spark=spark, catalog="memory" if connector is None else "store", schema=schema)
    if connector is not None:
        engine.add_catalog("store", connector)
    with engine:
        yield Store(kind, engine, connector)
