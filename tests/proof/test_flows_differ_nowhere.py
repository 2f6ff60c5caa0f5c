"""Random UPDATE and DELETE statements: the flow of MERGE, the older flow, and the oracle agree on three stores.

More of them: ``scripts/fuzz --flow updatable --store hive --statements 500``, with PostgreSQL as one more reference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proof.engines.backends import EngineUnderTest, Oracle
from proof.engines.stores import StoreUnderTest
from proof.fuzz import fuzz
from rowmerge_nb import Engine, HiveAcidConnector, SqliteConnector

FLOWS = ("updatable", "merge")


@pytest.mark.trial
@pytest.mark.parametrize(("store", "statements"), [("memory", 6), ("hive", 4), ("sqlite", 4)])
def test_random_statements_end_alike_by_both_flows(
    spark: Any, tmp_path: Path, store: str, statements: int
) -> None:
    def made(flow: str) -> EngineUnderTest:
        if store == "memory":
            return EngineUnderTest(Engine(spark=spark), flow)
        connector: Any = (
            HiveAcidConnector(tmp_path / flow)
            if store == "hive"
            else SqliteConnector(tmp_path / flow, create=True)
        )
        schema = "default" if store == "hive" else "main"
        engine = Engine(spark=spark, catalog="store", schema=schema)
        engine.add_catalog("store", connector)
        return StoreUnderTest(
            engine, "store", connector, schema, keyed=store == "sqlite", flow=flow
        )

    def make() -> Any:
        engine, reference = map(made, FLOWS)
        return engine, [reference, Oracle()]

    summary = fuzz(make, range(statements), 1848, kinds=("UPDATE", "DELETE"))
    assert summary.failures == [], summary.failures[0].text(1848)
    assert summary.agreed["oracle"] == statements - summary.endings["not said"] >= statements - 1
