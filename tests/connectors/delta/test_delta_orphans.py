"""Leftovers of statements whose process dies or whose disk fails, and their removal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from proof.trials.points.in_process import InProcessEngine, without_spark
from rowmerge_nb import ConnectorError, DeltaConnector
from rowmerge_nb.connectors.delta import notes


@pytest.fixture
def store(tmp_path: Path) -> DeltaConnector:
    return DeltaConnector(tmp_path)


@pytest.fixture(autouse=True)
def _no_spark() -> Iterator[None]:
    with without_spark():
        yield


def engine_of(store: DeltaConnector) -> InProcessEngine:
    engine = InProcessEngine(catalog="lake")
    engine.add_catalog("lake", store)
    return engine


def rows(folder: Path) -> list[int]:
    return DeltaTable(folder / "default" / "t").to_pyarrow_table()["n"].to_pylist()


def names(store: DeltaConnector) -> list[str]:
    return [Path(orphan.name).name for orphan in store.orphans()]


def test_the_folder_of_a_dropped_table_that_could_not_be_removed_is_listed_and_removed(
    store: DeltaConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(store)
    engine.run("CREATE TABLE t (n bigint)", trace="off")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        engine.run("DROP TABLE t", trace="off")
    assert [name.startswith(".dropped-") for name in names(store)] == [True]
    assert len(store.remove_orphans()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["default"]


def test_links_to_folders_of_other_owners_are_left_alone(
    store: DeltaConnector, tmp_path: Path
) -> None:
    others = tmp_path.parent / f"{tmp_path.name}-others"
    others.mkdir()
    (others / "file").write_text("theirs")
    (others / "empty").mkdir()
    (tmp_path / f".dropped-{'0' * 32}").symlink_to(others)
    (tmp_path / "default").mkdir(exist_ok=True)
    (tmp_path / "default" / "linked").symlink_to(others / "empty")
    assert store.orphans() == []
    assert store.remove_orphans() == []
    assert (others / "file").read_text() == "theirs"
    assert (others / "empty").is_dir()


def test_folders_without_files_are_removed(store: DeltaConnector, tmp_path: Path) -> None:
    (tmp_path / "default" / "u" / notes.FOLDER).mkdir(parents=True)
    (tmp_path / "default" / "others" / "empty").mkdir(parents=True)
    (tmp_path / "default" / "others" / "file").touch()
    assert names(store) == ["u"]
    assert len(store.remove_orphans()) == 1
    assert [path.name for path in (tmp_path / "default").iterdir()] == ["others"]
    assert (tmp_path / "default" / "others" / "empty").is_dir()


def test_a_note_that_could_not_be_removed_is_listed_by_the_same_process(
    store: DeltaConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(store)
    engine.run("CREATE TABLE t (n bigint)", trace="off")

    def fail(path: Path, missing_ok: bool = False) -> None:
        raise OSError(5, "Input/output error", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        engine.run("INSERT INTO t (n) VALUES (1)", trace="off")
    assert len(names(store)) == 1
    assert len(store.remove_orphans()) == 1
    assert store.orphans() == []
    assert rows(tmp_path) == [1]


def test_a_note_without_content_protects_files(store: DeltaConnector, tmp_path: Path) -> None:
    engine = engine_of(store)
    engine.run("CREATE TABLE t (n bigint)", trace="off")
    engine.run("INSERT INTO t (n) VALUES (1)", trace="off")
    table = tmp_path / "default" / "t"
    (file,) = table.glob("rowmerge-*.parquet")
    prefix = "-".join(file.name.split("-")[:2])
    notes._ENDED.add(prefix)
    (table / notes.FOLDER / f"{prefix}.other").touch()
    assert names(store) == [f"{prefix}.other"]
    store.remove_orphans()
    assert file.exists()


def test_an_unreadable_folder_is_not_taken_for_an_empty_one(
    store: DeltaConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(store)
    engine.run("CREATE TABLE t (n bigint)", trace="off")

    def fail(path: Path) -> None:
        raise OSError(24, "Too many open files", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", fail)
        with pytest.raises(ConnectorError, match="cannot be read: Too many open files"):
            engine.run("INSERT INTO t (n) VALUES (1)", trace="off")
    assert rows(tmp_path) == []
