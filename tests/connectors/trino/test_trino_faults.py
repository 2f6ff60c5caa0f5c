"""Faults at the calls of the contract, on Iceberg's plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import RowMergeError
from tests.connectors.trino.support import iceberg_properties

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BEFORE = [(1, "a"), (2, "b"), (3, "c")]
AFTER = [(1, "x"), (3, "c"), (9, "new")]
MERGE = """MERGE INTO ice.shop.accounts t
USING (VALUES (1, 'x'), (2, 'gone'), (9, 'new')) s(id, name) ON t.id = s.id
WHEN MATCHED AND s.name = 'gone' THEN DELETE
WHEN MATCHED THEN UPDATE SET name = s.name
WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name)"""
UNCHANGED = [
    "begin_merge:1:after",
    "get_next_page",
    "store_merged_rows",
    "finish",
    "finish_merge",
]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="module")
def engine(spark, trino_home, java_home, warehouse):
    connector = rm.TrinoConnector(
        "iceberg",
        plugin=trino_home / "plugin" / "iceberg",
        trino=trino_home / "lib",
        properties={**iceberg_properties(warehouse), "bootstrap.quiet": True},
        java=java_home,
        java_options=["-Xmx700m"],
    )
    engine = rm.Engine(spark=spark)
    engine.add_catalog("ice", connector)
    engine.run("CREATE SCHEMA ice.shop")
    engine.run("CREATE TABLE ice.shop.accounts (id bigint, name varchar)")
    engine.run("INSERT INTO ice.shop.accounts VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    yield engine
    connector.close()


def rows(engine):
    frame = engine.run("SELECT id, name FROM ice.shop.accounts ORDER BY id").to_pandas()
    return [tuple(row) for row in frame.itertuples(index=False)]


def files(warehouse: Path):
    return {path for path in warehouse.rglob("*") if path.is_file()}


@pytest.mark.parametrize("fault", UNCHANGED)
def test_a_fault_before_the_commit_leaves_the_table(engine, warehouse, fault):
    before = files(warehouse)
    with pytest.raises(RowMergeError) as caught:
        engine.run(MERGE, fault=fault)
    assert caught.value.changed is False
    assert rows(engine) == BEFORE
    # As in Trino, files of a writer that finished before another one failed remain: data files
    # with the statement's id, which are in no snapshot.
    remaining = files(warehouse) - before
    assert {path.parent.name for path in remaining} <= {"data"}
    assert all(path.name.startswith("rowmerge_") for path in remaining)


@pytest.mark.parametrize("fault", ["finish_merge:1:after", "commit"])
def test_a_fault_after_the_plugins_commit_reports_that_the_table_changed(engine, fault):
    with pytest.raises(RowMergeError) as caught:
        engine.run(MERGE, fault=fault)
    assert caught.value.changed is not False
    assert rows(engine) == AFTER
    engine.run("DELETE FROM ice.shop.accounts")
    engine.run("INSERT INTO ice.shop.accounts VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    assert rows(engine) == BEFORE
