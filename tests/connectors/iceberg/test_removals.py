"""expire_snapshots, remove_orphan_files and DROP TABLE remove a table's own files, whatever its metadata names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from rowmerge_nb import IcebergConnector
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg import commits, table_removal
from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog
from rowmerge_nb.connectors.shared.retention import Retention
from rowmerge_nb.spi import Constraint, SchemaTableName
from tests.connectors.iceberg.kit import (
    NAME,
    Statement,
    by_pyiceberg,
    contents,
    create,
    insert,
    make_table,
    rows,
    table,
)

OTHER = SchemaTableName("default", "o")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IcebergConnector]:
    with closing(make_table(tmp_path / "w")) as made:
        made.close()
    with closing(IcebergConnector(tmp_path / "w", min_retention=timedelta())) as store:
        yield store


def begin(
    store: IcebergConnector, procedure: str, name: SchemaTableName = NAME, number: float = 0
) -> tuple[Statement, Any]:
    statement = Statement(store, name)
    arguments = {"retention_threshold": Retention(number, "s")}
    handle = statement.metadata.get_table_handle_for_execute(
        statement.session, statement.handle, procedure, arguments, Constraint()
    )
    return statement, statement.metadata.execute_table_execute(statement.session, handle)


def execute(
    store: IcebergConnector, procedure: str, name: SchemaTableName = NAME, number: float = 0
) -> Any:
    statement, outcome = begin(store, procedure, name, number)
    statement.commit()
    return outcome


def truncate(store: IcebergConnector, name: SchemaTableName = NAME) -> None:
    statement = Statement(store, name)
    statement.metadata.truncate_table(statement.session, statement.handle)
    statement.commit()


def adopt(store: IcebergConnector, path: Path) -> Path:
    """Let the table's metadata name a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.table({"id": [7], "v": ["a"], "p": ["x"]}, schema=table(store).schema().as_arrow()), path
    )
    table(store).add_files([str(path)])
    return path


def test_expiry_removes_own_files_and_reports_it(store: IcebergConnector, tmp_path: Path) -> None:
    insert(store, rows(1))
    truncate(store)
    outcome = execute(store, "EXPIRE_SNAPSHOTS")
    assert outcome.metrics["deleted_files_count"] >= 3
    assert outcome.metrics["left_files_count"] == 0
    assert any(
        notice.startswith(f"{outcome.metrics['deleted_files_count']} files were removed: ")
        for notice in outcome.notices
    )
    assert list(tmp_path.rglob("*.parquet")) == []


@pytest.mark.parametrize(
    "place",
    [
        "elsewhere/precious.parquet",
        "w/precious.parquet",
        "w/default/precious.parquet",
        "w/default/o-folder/data/precious.parquet",
    ],
)
def test_expiry_leaves_files_that_are_not_in_the_tables_own_folder(
    store: IcebergConnector, tmp_path: Path, place: str
) -> None:
    precious = adopt(store, tmp_path / place)
    truncate(store)
    outcome = execute(store, "EXPIRE_SNAPSHOTS")
    assert precious.exists()
    assert outcome.metrics["left_files_count"] == 1
    assert f"1 file was left (not in the table's own folder): {precious}" in outcome.notices


def test_expiry_does_not_follow_a_link_out_of_the_tables_folder(
    store: IcebergConnector, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    data = Path(table(store).location().removeprefix("file://")) / "data"
    data.mkdir(exist_ok=True)
    (data / "link").symlink_to(tmp_path / "elsewhere")
    precious = adopt(store, data / "link" / "precious.parquet")
    truncate(store)
    assert execute(store, "EXPIRE_SNAPSHOTS").metrics["left_files_count"] == 1
    assert precious.exists()


@pytest.mark.parametrize("property_name", ["write.data.path", "write.metadata.path"])
@pytest.mark.parametrize("whose", ["letters", "another table", "another table's data"])
def test_a_folder_that_a_property_names_is_not_the_tables_own(
    store: IcebergConnector, tmp_path: Path, property_name: str, whose: str
) -> None:
    create(store, name=OTHER)
    insert(store, rows(1), OTHER)
    other = Path(table(store, OTHER).location().removeprefix("file://"))
    folder = {
        "letters": tmp_path / "letters",
        "another table": other,
        "another table's data": other / "data",
    }[whose]
    folder.mkdir(exist_ok=True)
    name = (
        "letter.parquet"
        if whose == "letters"
        else "00000-0-0b6ad2ed-4b0c-4a5f-9d6c-2f6ad9ab3f3e.parquet"
    )
    precious = adopt(store, folder / name)
    with table(store).transaction() as transaction:
        transaction.set_properties({property_name: f"file://{folder}"})
    (folder / "left.txt").write_text("x")
    for path in folder.rglob("*"):
        os.utime(path, (0, 0))
    truncate(store)
    execute(store, "EXPIRE_SNAPSHOTS")
    execute(store, "REMOVE_ORPHAN_FILES")
    assert precious.exists()
    assert (folder / "left.txt").exists()
    assert by_pyiceberg(store, OTHER) == [(1, "a", "x")]


def test_expiry_removes_files_of_a_data_location_that_writers_have_named(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with closing(
        make_table(tmp_path / "w", object_store_layout_enabled=True, data_location=str(elsewhere))
    ) as made:
        insert(made, rows(1))
    assert len(list(elsewhere.rglob("*.parquet"))) == 1
    with closing(IcebergConnector(tmp_path / "w", min_retention=timedelta())) as store:
        truncate(store)
        assert execute(store, "EXPIRE_SNAPSHOTS").metrics["left_files_count"] == 0
    assert list(elsewhere.rglob("*.parquet")) == []


def test_a_location_that_the_catalog_does_not_confirm_is_not_the_tables_own(
    store: IcebergConnector, tmp_path: Path
) -> None:
    from pyiceberg.table import update

    letters = tmp_path / "w" / "letters"
    precious = adopt(store, letters / "precious.parquet")
    (letters / "data").mkdir()
    (letters / "data" / "old.parquet").write_text("x")
    os.utime(letters / "data" / "old.parquet", (0, 0))
    with table(store).transaction() as transaction:
        transaction._apply((update.SetLocationUpdate(location=f"file://{letters}"),), ())
    truncate(store)
    execute(store, "EXPIRE_SNAPSHOTS")
    execute(store, "REMOVE_ORPHAN_FILES")
    statement = Statement(store)
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.commit()
    assert precious.exists()
    assert (letters / "data" / "old.parquet").exists()


def test_orphans_are_not_searched_beyond_links(store: IcebergConnector, tmp_path: Path) -> None:
    insert(store, rows(1))
    precious = tmp_path / "elsewhere" / "00000-0b6ad2ed-4b0c-4a5f-9d6c-2f6ad9ab3f3e.parquet"
    precious.parent.mkdir()
    precious.write_text("x")
    data = Path(table(store).location().removeprefix("file://")) / "data"
    (data / "folder").symlink_to(precious.parent)
    (data / "file.parquet").symlink_to(precious)
    (data / "own.parquet").write_text("x")
    for path in (precious, data / "own.parquet"):
        os.utime(path, (0, 0))
    outcome = execute(store, "REMOVE_ORPHAN_FILES")
    assert outcome.metrics == {"deleted_files_count": 1, "left_files_count": 2}
    assert any("own.parquet" in notice for notice in outcome.notices)
    assert any(
        notice.startswith("2 files were left (links are not followed): ")
        for notice in outcome.notices
    )
    assert precious.exists()
    assert store.orphans(timedelta()) == []


def test_a_file_that_cannot_be_removed_is_reported(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rowmerge_nb.connectors.iceberg import housekeeping

    insert(store, rows(1))
    own = Path(table(store).location().removeprefix("file://")) / "data" / "own.parquet"
    own.write_text("x")
    os.utime(own, (0, 0))

    def refused(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(housekeeping, "remove_location", refused)
    outcome = execute(store, "REMOVE_ORPHAN_FILES")
    assert outcome.metrics == {"deleted_files_count": 0, "left_files_count": 1}
    assert "Permission denied" in outcome.notices[0]
    assert store.remove_orphans(timedelta()) == []


def test_snapshots_expired_by_another_process_meanwhile_are_not_a_failure(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        insert(store, rows(number))
    whole = table_removal.expired_files
    with closing(IcebergConnector(tmp_path / "w", min_retention=timedelta())) as other:

        def meanwhile(*arguments: Any) -> Any:
            monkeypatch.setattr(table_removal, "expired_files", whole)
            found = whole(*arguments)
            execute(other, "EXPIRE_SNAPSHOTS")
            return found

        monkeypatch.setattr(table_removal, "expired_files", meanwhile)
        execute(store, "EXPIRE_SNAPSHOTS")
    assert [row[0] for row in contents(store)] == [0, 1, 2]
    assert len(table(store).snapshots()) == 1


@pytest.mark.parametrize("function", ["expired_files", "expire"])
def test_a_snapshot_that_expires_at_the_last_moment_is_not_an_internal_error(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    for number in range(3):
        insert(store, rows(number))
    module: Any = table_removal if function == "expired_files" else commits
    whole = getattr(module, function)
    with closing(IcebergConnector(tmp_path / "w", min_retention=timedelta())) as other:

        def meanwhile(*arguments: Any) -> Any:
            monkeypatch.setattr(module, function, whole)
            execute(other, "EXPIRE_SNAPSHOTS")
            return whole(*arguments)

        monkeypatch.setattr(module, function, meanwhile)
        if function == "expire":
            execute(store, "EXPIRE_SNAPSHOTS")
        else:
            with pytest.raises(ConnectorError, match="TRANSACTION_CONFLICT"):
                execute(store, "EXPIRE_SNAPSHOTS")
    assert [row[0] for row in contents(store)] == [0, 1, 2]


def test_orphans_are_searched_while_snapshots_expire(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(store, rows(1))
    insert(store, rows(2))
    whole = table_removal.known_files
    with closing(IcebergConnector(tmp_path / "w", min_retention=timedelta())) as other:

        def meanwhile(one: Any) -> Any:
            monkeypatch.setattr(table_removal, "known_files", whole)
            execute(other, "EXPIRE_SNAPSHOTS")
            return whole(one)

        monkeypatch.setattr(table_removal, "known_files", meanwhile)
        store.remove_orphans()
    assert contents(store) == by_pyiceberg(store) == [(1, "a", "x"), (2, "a", "x")]


@pytest.mark.parametrize("change", ["drop", "rename", "create schema", "drop schema"])
def test_a_change_with_a_lost_answer_exists(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    from rowmerge_nb.spi.alterations import RenameTable

    insert(store, rows(1))
    folder = Path(table(store).location().removeprefix("file://"))
    if change == "drop schema":
        store._tables.create_schema("s")
    method = {
        "drop": "drop_table",
        "rename": "rename_table",
        "create schema": "create_namespace",
        "drop schema": "drop_namespace",
    }
    whole = getattr(EmbeddedCatalog, method[change])

    def lost(*arguments: Any) -> None:
        whole(*arguments)
        msg = "the answer was lost"
        raise ConnectionError(msg)

    monkeypatch.setattr(EmbeddedCatalog, method[change], lost)
    statement = Statement(store)
    metadata, session = statement.metadata, statement.session
    match change:
        case "drop":
            metadata.drop_table(session, statement.handle)
        case "rename":
            metadata.alter_table(session, statement.handle, RenameTable(OTHER))
        case "create schema":
            metadata.create_schema(session, "s")
        case "drop schema":
            metadata.drop_schema(session, "s")
    statement.commit()
    assert folder.exists() == (change != "drop")
    assert (Statement(store).handle is None) == (change in {"drop", "rename"})
    assert ("s" in store._tables.schemas()) == (change == "create schema")


def test_a_drop_that_did_not_happen_is_a_failure(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        msg = "no answer"
        raise ConnectionError(msg)

    monkeypatch.setattr(EmbeddedCatalog, "drop_table", refused)
    statement = Statement(store)
    statement.metadata.drop_table(statement.session, statement.handle)
    with pytest.raises(ConnectorError, match="ICEBERG_CATALOG_ERROR") as caught:
        statement.commit()
    assert caught.value.changed is False
    assert contents(store) == []


def test_a_table_that_another_process_has_dropped_is_dropped(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = EmbeddedCatalog.drop_table

    def faster(catalog: Any, name: Any) -> None:
        whole(catalog, name)
        whole(catalog, name)

    monkeypatch.setattr(EmbeddedCatalog, "drop_table", faster)
    statement = Statement(store)
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.commit()
    assert Statement(store).handle is None


@pytest.mark.parametrize("retention", [1e30, float(10**9)])
def test_a_retention_beyond_the_calendar_keeps_everything(
    store: IcebergConnector, retention: float
) -> None:
    insert(store, rows(1))
    truncate(store)
    for procedure in ("EXPIRE_SNAPSHOTS", "REMOVE_ORPHAN_FILES"):
        assert execute(store, procedure, number=retention).metrics["deleted_files_count"] == 0
    shutil.rmtree(
        Path(table(store).location().removeprefix("file://")) / "nothing", ignore_errors=True
    )
