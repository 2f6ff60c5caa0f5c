"""Folders of Delta tables: those directly in the connected folder, folders of tables, missing folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from rowmerge_nb import ConnectorError, DeltaConnector, Engine, RowMergeError
from rowmerge_nb.connectors.delta.folders import Folders
from rowmerge_nb.spi import SchemaTableName

CUSTOMERS = pa.table({"id": [1, 2], "country": ["de", "fr"]})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "customers", CUSTOMERS, partition_by=["country"])
    return tmp_path


@pytest.fixture
def engine(lake: Path) -> Iterator[Engine]:
    with Engine() as engine:
        engine.connect("delta", lake, name="lake")
        yield engine


def test_tables_of_the_connected_folder_are_those_of_the_schema_default(
    engine: Engine, lake: Path
) -> None:
    schemas = engine.run("SHOW SCHEMAS FROM lake").to_pandas().iloc[:, 0].tolist()
    assert schemas == ["default", "information_schema"]
    tables = engine.run("SHOW TABLES FROM lake.default").to_pandas().iloc[:, 0].tolist()
    assert tables == ["customers"]
    assert not (lake / "default").exists()
    engine.run("DROP TABLE lake.default.customers")
    assert not (lake / "customers").exists()


def test_a_table_of_the_folder_default_has_precedence(lake: Path) -> None:
    inner = lake / "default" / "customers"
    write_deltalake(inner, CUSTOMERS)
    folders = Folders(lake)
    assert folders.table(SchemaTableName("default", "customers")) == inner
    assert folders.tables() == [SchemaTableName("default", "customers")]
    folders.remove(inner)
    assert folders.table(SchemaTableName("default", "customers")) == lake / "customers"


def test_folders_of_partitions_are_neither_schemas_nor_removed(lake: Path) -> None:
    (lake / "customers" / "country=it").mkdir()
    (lake / "year=2024").mkdir()
    assert Folders(lake).schemas() == ["default"]
    assert Folders(lake).all_folders() == [lake / "customers"]
    DeltaConnector(lake).remove_orphans()
    assert (lake / "customers" / "country=it").exists()


def test_no_schema_is_created_in_a_table(engine: Engine, lake: Path) -> None:
    with pytest.raises(ConnectorError, match="of the schema is a table"):
        engine.run("CREATE SCHEMA lake.customers")
    write_deltalake(lake / "default", CUSTOMERS)
    with pytest.raises(ConnectorError, match="of the schema is a table"):
        Folders(lake).new_table(SchemaTableName("default", "t"))
    assert Folders(lake).table(SchemaTableName("default", "default")) == lake / "default"


def test_the_schema_default_cannot_be_dropped(engine: Engine) -> None:
    with pytest.raises(ConnectorError, match="'default' cannot be dropped"):
        engine.run_script("DROP TABLE lake.default.customers; DROP SCHEMA lake.default")


def test_a_folder_of_a_table_is_refused_with_the_next_step(lake: Path) -> None:
    with pytest.raises(ConnectorError) as caught:
        DeltaConnector(lake / "customers")
    assert "is a Delta table, not a folder of tables" in caught.value.message
    assert caught.value.hint == (
        f"Connect the folder above it: engine.connect('delta', '{lake}', name='lake'); the table is"
        " lake.default.customers."
    )


def test_nothing_is_created_before_the_first_create(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with Engine() as engine:
        engine.add_catalog("lake", DeltaConnector(folder))
        assert engine.run("SHOW TABLES FROM lake.default").to_pandas().empty
        assert not folder.exists()
        engine.run("CREATE TABLE lake.default.t (id bigint)")
        assert (folder / "default" / "t" / "_delta_log").is_dir()


def test_a_name_with_a_catalog_is_not_a_dataframe(engine: Engine) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            "SELECT * FROM lake.default.customer", namespace={"customer2": CUSTOMERS.to_pandas()}
        )
    assert caught.value.code == "TABLE_NOT_FOUND"
    assert "customer2" not in (caught.value.hint or "")


def test_a_quoted_name_of_undo_and_restore_is_read_as_sql(engine: Engine) -> None:
    engine.run('CREATE SCHEMA lake."rd-work"')
    for name in ('lake."rd-work".t', "lake.rd-work.t"):
        with pytest.raises(RowMergeError, match="TABLE_NOT_FOUND") as caught:
            engine.undo(name)
        assert caught.value.message == "Table 'lake.\"rd-work\".t' does not exist"
    with pytest.raises(RowMergeError, match="TABLE_NOT_FOUND"):
        engine.restore('lake."rd-work".t', 3)
