"""Folders shared by two tables or two metastores, or owned by neither: actions on one table lose no files of another."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import ConnectorError, HiveAcidConnector
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    SchemaTableName,
    parse_type,
)
from tests.connectors.hive_acid.kit import NAME, contents, inserted, make_table, merge
from tests.connectors.hive_acid.test_writes import A, B, C, drop

COLUMNS = {"id": "bigint", "v": "varchar", "p": "varchar"}


def refused(call: Any, code: str = "HIVE_PATH_ALREADY_EXISTS") -> ConnectorError:
    with pytest.raises(ConnectorError) as caught:
        call()
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


def create(store: HiveAcidConnector, name: SchemaTableName, *, killed: bool = False) -> None:
    transaction = store.begin_transaction()
    metadata = store.get_metadata(transaction)
    metadata.create_table(
        ConnectorSession("c"),
        ConnectorTableMetadata(name, (ColumnMetadata("id", parse_type("bigint")),)),
    )
    if killed:
        # Like other sessions that find its process dead.
        for opened in store.open_transactions():
            store.abort_transaction(opened.number)
    else:
        store.commit(transaction)


@pytest.mark.parametrize("place", ["same", "within", "around", "link"])
def test_a_folder_that_another_table_has_is_not_registered(tmp_path: Path, place: str) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    folder = store.warehouse / "t"
    (folder / "_kept").mkdir()
    (tmp_path / "link").symlink_to(folder)
    location = {
        "same": folder,
        "within": folder / "_kept",
        "around": store.warehouse,
        "link": tmp_path / "link",
    }[place]
    error = refused(lambda: store.register_table("default", "u", location, columns=COLUMNS))
    assert "'default.t'" in error.message
    assert [table.table for table in store.metastore.list_tables()] == ["t"]


def test_a_table_of_another_metastore_is_not_registered_until_it_is_unregistered_there(
    tmp_path: Path,
) -> None:
    store, other = make_table(tmp_path), HiveAcidConnector(tmp_path / "other")
    merge(store, inserted(A))
    folder = store.warehouse / "t"
    error = refused(lambda: other.register_table("default", "t", folder, columns=COLUMNS))
    assert str(tmp_path / "metastore.sqlite") in error.message
    store.unregister_table("default", "t")
    other.register_table("default", "t", folder, columns=COLUMNS)
    merge(other, inserted(B))
    assert contents(other) == [A, B]


def test_rows_under_a_write_id_of_another_writer_are_not_replaced(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path / "made")
    merge(store, inserted(A))
    folder = (store.warehouse / "t").rename(tmp_path / "t")
    first, second = HiveAcidConnector(tmp_path / "first"), HiveAcidConnector(tmp_path / "second")
    for metastore in (first, second):
        metastore.register_table("default", "t", folder, columns=COLUMNS)
    merge(first, inserted(B))
    error = refused(lambda: merge(second, inserted(C)))
    assert "write id 2" in error.message
    assert contents(first) == [A, B]
    second.unregister_table("default", "t")
    second.register_table("default", "t", folder, columns=COLUMNS)
    assert contents(second) == [A, B]


def test_a_copy_of_a_store_has_tables_of_its_own(tmp_path: Path) -> None:
    store = make_table(tmp_path / "store")
    merge(store, inserted(A))
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    copy = HiveAcidConnector(tmp_path / "copy")
    merge(copy, inserted(B))
    merge(store, inserted(C))
    assert (contents(store), contents(copy)) == ([A, C], [A, B])
    assert store.remove_orphans() == copy.remove_orphans() == []
    drop(copy)
    assert contents(store) == [A, C]


def test_a_store_that_was_moved_has_its_tables(tmp_path: Path) -> None:
    store = make_table(tmp_path / "store", partitioned_by=("p",))
    create(store, SchemaTableName("default", "a.db"))
    merge(store, inserted(A))
    moved = HiveAcidConnector((tmp_path / "store").rename(tmp_path / "moved"))
    merge(moved, inserted(B))
    assert contents(moved) == [A, B]
    assert moved.remove_orphans() == []
    drop(moved)
    assert [path.name for path in moved.warehouse.iterdir()] == ["a%2Edb"]


def test_an_unregistered_table_is_not_an_orphan(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    store.unregister_table("default", "t")
    assert store.remove_orphans() == []
    store.register_table("default", "t", store.warehouse / "t", columns=COLUMNS)
    assert contents(store) == [A]
    drop(store)
    assert store.remove_orphans() == []
    assert (store.warehouse / "t").is_dir()


def test_a_read_only_table_is_not_an_orphan(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    store.unregister_table("default", "t")
    store.register_table(
        "default", "t", store.warehouse / "t", columns=COLUMNS, transactional=False
    )
    assert store.remove_orphans() == []


def test_the_folder_of_a_creation_that_was_killed_is_an_orphan(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    create(store, SchemaTableName("default", "u"), killed=True)
    survivor = HiveAcidConnector(tmp_path)
    assert [orphan.name for orphan in survivor.remove_orphans()] == [str(store.warehouse / "u")]
    assert sorted(folder.name for folder in store.warehouse.iterdir()) == [NAME.table]


def test_a_folder_registered_after_its_creation_was_killed_is_not_an_orphan(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    create(store, SchemaTableName("default", "u"), killed=True)
    survivor = HiveAcidConnector(tmp_path)
    survivor.register_table("default", "u", store.warehouse / "u", columns={"id": "bigint"})
    (store.warehouse / "u" / "notes").touch()
    drop(survivor, SchemaTableName("default", "u"))
    assert survivor.remove_orphans() == []
    assert (store.warehouse / "u" / "notes").exists()


def test_the_folder_of_a_dropped_table_that_was_not_removed_is_an_orphan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        drop(store)
    (orphan,) = store.remove_orphans()
    assert Path(orphan.name).name.startswith("_dropped_")
    assert list(store.warehouse.iterdir()) == []


def test_a_table_named_like_a_folder_of_a_schema_gets_another_folder(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    create(store, SchemaTableName("default", "s.db"))
    transaction = store.begin_transaction()
    store.get_metadata(transaction).create_schema(ConnectorSession("c"), "s")
    store.commit(transaction)
    create(store, SchemaTableName("s", "u"))
    drop(store, SchemaTableName("default", "s.db"))
    assert (store.warehouse / "s.db" / "u").is_dir()
