"""DROP TABLE removes the folder of a table at once or by ``remove_orphans``, but never that of an unregistered table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import IcebergConnector
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg import embedded, table_removal
from rowmerge_nb.connectors.iceberg import iceberg_catalog as catalogs
from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog
from rowmerge_nb.connectors.shared.orphans import this_process
from rowmerge_nb.spi import SchemaTableName
from tests.connectors.iceberg.kit import Statement, contents, insert, make_table, rows, table

NEW = SchemaTableName("default", "new")
DEAD = this_process().rpartition("-")[0] + "-1"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IcebergConnector]:
    store = make_table(tmp_path / "w")
    insert(store, rows(1))
    yield store
    store.close()


def folder_of(store: IcebergConnector) -> Path:
    return Path(table(store).location().removeprefix("file://"))


def drop(store: IcebergConnector) -> None:
    statement = Statement(store)
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.commit()


def begin_removal(path: Path) -> None:
    """Remove the first files only, like a process killed then."""
    shutil.rmtree(path / "data")
    raise KeyboardInterrupt


def drop_and_die(store: IcebergConnector, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """Drop the table like a process killed after the catalog's answer, or while it removes the folder."""
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(embedded, "this_process", lambda: DEAD)
        patch.setattr(EmbeddedCatalog, "release_folder", lambda *_: None)
        if at == "removing":
            patch.setattr(table_removal, "remove_folder", begin_removal)
        else:
            patch.setattr(catalogs.Tables, "_remove_dropped", lambda *_: None)
        drop(store)
    assert Statement(store).handle is None


@pytest.mark.parametrize("at", ["dropped", "removing"])
def test_the_folder_of_a_table_whose_drop_was_killed_is_an_orphan(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    folder = folder_of(store)
    drop_and_die(store, monkeypatch, at)
    assert folder.exists()
    (orphan,) = store.orphans()
    assert (orphan.name, orphan.process) == (str(folder), DEAD)
    other = IcebergConnector(tmp_path / "w")
    assert [orphan.name for orphan in other.remove_orphans()] == [str(folder)]
    assert not folder.exists()
    assert store.orphans() == other.orphans() == []
    other.close()


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("failure", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_a_folder_that_could_not_be_removed_is_an_orphan_at_once(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch, failure: BaseException, lasting: bool
) -> None:
    folder = folder_of(store)

    def refuse(*_: Any) -> None:
        if not isinstance(failure, OSError):
            raise failure

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(table_removal, "remove_folder", refuse)
        if lasting:
            patch.setattr(EmbeddedCatalog, "release_folder", refuse)
        drop(store)
    assert [orphan.name for orphan in store.orphans()] == [str(folder)]
    assert [orphan.name for orphan in store.remove_orphans()] == [str(folder)]
    assert not folder.exists()


def test_a_folder_under_removal_by_a_process_is_not_an_orphan(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    whole = table_removal.remove_folder

    def slowly(path: Path) -> None:
        seen.extend(store.orphans(timedelta()))
        whole(path)

    monkeypatch.setattr(table_removal, "remove_folder", slowly)
    drop(store)
    assert seen == []
    assert store.orphans(timedelta()) == []


@pytest.mark.parametrize("way", ["dropped", "refused", "registered", "adopted"])
def test_a_table_unregistered_by_another_program_stays(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    folder, metadata = folder_of(store), table(store).metadata_location
    if way == "refused":

        def refuse(*_: Any) -> None:
            raise ConnectionError

        with monkeypatch.context() as patch, pytest.raises(ConnectorError):
            patch.setattr(EmbeddedCatalog, "drop_table", refuse)
            drop(store)
    if way in {"registered", "adopted"}:
        drop_and_die(store, monkeypatch, "dropped")
        register = (
            store.register_table
            if way == "registered"
            else lambda *n: store.catalog.register_table(n[:2], n[2])
        )
        register("default", "t", metadata)
    store.catalog.drop_table(("default", "t"))
    assert store.orphans(timedelta()) == store.remove_orphans(timedelta()) == []
    store.register_table("default", "t", metadata)
    assert contents(store) == [(1, "a", "x")]
    assert folder.exists()


def test_a_dropped_table_s_folder_stays_while_another_table_has_files_in_it(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = table(store).metadata_location
    drop_and_die(store, monkeypatch, "dropped")
    copy = Path(metadata.removeprefix("file://"))
    elsewhere = copy.parents[2] / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(copy, elsewhere / copy.name)
    store.register_table("default", "new", f"file://{elsewhere / copy.name}")
    assert store.orphans(timedelta()) == store.remove_orphans(timedelta()) == []
    assert contents(store, NEW) == [(1, "a", "x")]


def test_a_table_of_the_same_name_is_created_and_dropped_after_a_killed_drop(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(store)
    drop_and_die(store, monkeypatch, "removing")
    make_table(tmp_path / "w").close()
    again = folder_of(store)
    assert [orphan.name for orphan in store.remove_orphans(timedelta())] == [str(folder)]
    assert again.exists()
    drop(store)
    assert not again.exists()


def test_the_folder_of_a_dropped_table_whose_manifests_are_damaged_is_an_orphan(
    store: IcebergConnector,
) -> None:
    folder = folder_of(store)
    for manifest in (folder / "metadata").glob("*.avro"):
        manifest.write_bytes(b"Obj")
    drop(store)
    assert [orphan.name for orphan in store.remove_orphans()] == [str(folder)]
    assert not folder.exists()
