"""Random statements with an Iceberg target, compared with the oracle; ROWMERGE_RANDOM_STATEMENTS runs more of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proof.engines.backends import arrow_table
from proof.oracle.oracle import multiset
from proof.statements.model import Scenario
from rowmerge_nb import IcebergConnector
from rowmerge_nb.spi import SchemaTableName
from tests.connectors.iceberg.kit import by_pyiceberg, contents, create, insert
from tests.connectors.random_tables import TableUnderTest, agree_with_the_oracle

pytestmark = [pytest.mark.spark, pytest.mark.trial]


class LakeUnderTest(TableUnderTest):
    """The engine with the target in a lake, partitioned as in the scenario, sometimes by a transform."""

    name = "rowmerge_nb on Iceberg"

    def __init__(self, engine: Any, store: IcebergConnector, mode: str, version: int) -> None:
        super().__init__(engine)
        self._version = version
        self._store = store
        self._extra = {f"write.{word}.mode": mode for word in ("merge", "update", "delete")}
        self._count = 0

    def make(self, scenario: Scenario) -> None:
        target = scenario.target
        self._count += 1
        name = SchemaTableName("default", target.name)
        if self._store.catalog.table_exists(("default", target.name)):
            self._store.catalog.drop_table(("default", target.name))
        columns = [(c.name, f"{c.type}{'' if c.nullable else ' NOT NULL'}") for c in target.columns]
        partitioning = [
            f"bucket({c}, 3)" if self._is_bucketed(scenario, c) else c
            for c in scenario.settings.partitioned_by
        ]
        create(
            self._store,
            columns,
            name,
            partitioning=tuple(partitioning),
            format_version=self._version,
            extra_properties=self._extra,
        )
        # In two commits, for several files.
        data = arrow_table(target)
        for part in (data.slice(0, len(data) // 2), data.slice(len(data) // 2)):
            if part.num_rows:
                insert(self._store, part.combine_chunks().to_batches()[0], name)

    def _is_bucketed(self, scenario: Scenario, column: str) -> bool:
        kind = next(c.type.base for c in scenario.target.columns if c.name == column)
        return self._count % 2 == 0 and kind in {"integer", "bigint", "varchar", "date", "decimal"}

    def content(self, scenario: Scenario) -> Any:
        name = SchemaTableName("default", scenario.target.name)
        own, other = (
            multiset(contents(self._store, name)),
            multiset(by_pyiceberg(self._store, name)),
        )
        assert own == other, "pyiceberg reads the table otherwise"
        return own


@pytest.mark.parametrize(
    ("mode", "version"),
    [
        pytest.param("merge-on-read", 2, marks=pytest.mark.long),
        ("copy-on-write", 2),
        ("merge-on-read", 3),
        pytest.param("copy-on-write", 3, marks=pytest.mark.long),
    ],
)
def test_random_statements_on_iceberg_tables_end_like_in_the_oracle(
    spark: Any, tmp_path: Path, mode: str, version: int
) -> None:
    store = IcebergConnector(tmp_path)
    agree_with_the_oracle(
        spark, store, lambda engine: LakeUnderTest(engine, store, mode, version), range(15), 2718
    )
