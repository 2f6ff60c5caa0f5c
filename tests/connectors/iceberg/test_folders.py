"""The folder of a table whose creation failed is removed by its statement, or found as an orphan if that died."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import AnalysisError, ConnectorError, IcebergConnector
from rowmerge_nb.connectors.iceberg import commits
from rowmerge_nb.connectors.shared.orphans import process_name
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    SchemaTableName,
    parse_type,
)
from tests.connectors.iceberg.kit import NAME, insert, make_table, rows

NEW = SchemaTableName("default", "new")


def folders(store_path: Path) -> list[str]:
    return sorted(path.name.rsplit("-", 1)[0] for path in store_path.glob("default/*"))


def begin_creation(
    store: IcebergConnector, name: SchemaTableName = NEW, *, rows: bool = False, **properties: Any
) -> Any:
    transaction, session = store.begin_transaction(), ConnectorSession("query-new")
    metadata = store.get_metadata(transaction)
    columns = (ColumnMetadata("id", parse_type("bigint")),)
    metadata.create_table(session, ConnectorTableMetadata(name, columns, properties))
    if rows:
        handle = metadata.get_table_handle(session, name)
        assert handle is not None
        metadata.begin_insert(session, handle, ())
    return transaction


def test_a_creation_with_rows_that_is_rolled_back_leaves_no_folder(tmp_path: Path) -> None:
    with closing(make_table(tmp_path)) as store:
        transaction = begin_creation(store, rows=True)
        assert folders(tmp_path) == ["new", NAME.table]
        store.rollback(transaction)
        assert folders(tmp_path) == [NAME.table]


def test_a_creation_on_a_full_disk_is_reported_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(make_table(tmp_path)) as store:

        def write(**given: Any) -> None:
            path = Path(given["metadata_path"].removeprefix("file://"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(store.catalog, "_write_metadata", write)
        transaction = begin_creation(store)
        with pytest.raises(
            ConnectorError, match=r"GENERIC_INSUFFICIENT_RESOURCES: .* cannot be written"
        ) as caught:
            store.commit(transaction)
        assert caught.value.changed is False
        store.rollback(transaction)
        assert folders(tmp_path) == [NAME.table]


def test_a_folder_that_the_user_named_stays_when_a_creation_is_rolled_back(tmp_path: Path) -> None:
    with closing(make_table(tmp_path / "w")) as store:
        kept = tmp_path / "mine" / "kept"
        kept.parent.mkdir()
        transaction = begin_creation(store, location=f"file://{kept.parent}")
        kept.touch()
        store.rollback(transaction)
        assert kept.exists()


def table_of(store: IcebergConnector, name: SchemaTableName = NAME) -> Any:
    return store.catalog.load_table((name.schema, name.table))


def test_no_table_is_created_in_a_folder_with_files(tmp_path: Path) -> None:
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1))
        place = table_of(store).location()
        for location in (place, f"{place}/", place.removeprefix("file://")):
            with pytest.raises(
                AnalysisError,
                match="ICEBERG_FILESYSTEM_ERROR: Cannot create a table on a non-empty location",
            ) as refused:
                begin_creation(store, location=location)
            assert refused.value.properties == ("location",)
        empty = tmp_path / "empty"
        (empty / "folder").mkdir(parents=True)
        store.rollback(begin_creation(store, location=str(empty)))


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%20b", "a b", "ä"])
def test_a_table_keeps_its_files_apart_under_every_folder_name(tmp_path: Path, name: str) -> None:
    with closing(make_table(tmp_path / "w", location=f"file://{tmp_path / name}")) as store:
        insert(store, rows(1))
        insert(store, rows(2))
        assert table_of(store).scan().to_arrow().num_rows == 2
        assert {path.name for path in (tmp_path / name).iterdir()} == {"data", "metadata"}


@pytest.mark.parametrize("dropped", [NAME, NEW])
def test_files_that_another_table_has_too_outlive_a_table(
    tmp_path: Path, dropped: SchemaTableName
) -> None:
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1))
        first = table_of(store)
        store.register_table(NEW.schema, NEW.table, first.metadata_location)
        # From here on, each of them has files unknown to the other.
        insert(store, rows(2))
        assert store.orphans(timedelta()) == []
        drop(store, dropped)
        (left,) = {NAME, NEW} - {dropped}
        assert table_of(store, left).scan().to_arrow().num_rows == (1 if left == NEW else 2)
        drop(store, left)
        assert not Path(first.location().removeprefix("file://")).exists()


def drop(store: IcebergConnector, name: SchemaTableName) -> None:
    transaction, session = store.begin_transaction(), ConnectorSession("query-drop")
    metadata = store.get_metadata(transaction)
    handle = metadata.get_table_handle(session, name)
    assert handle is not None
    metadata.drop_table(session, handle)
    store.commit(transaction)


def test_a_table_whose_creation_was_not_confirmed_keeps_its_folder_after_later_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(make_table(tmp_path)) as store:
        real = commits.commit

        def unanswered(*arguments: Any, **options: Any) -> None:
            real(*arguments, **options)
            msg = "The outcome is unknown"
            raise ConnectorError(msg, code="ICEBERG_COMMIT_ERROR", changed=None)

        with monkeypatch.context() as patched:
            patched.setattr(commits, "commit", unanswered)
            with pytest.raises(ConnectorError):
                store.commit(begin_creation(store))
        transaction, session = store.begin_transaction(), ConnectorSession("query-later")
        assert store.get_metadata(transaction).get_table_handle(session, NEW) is not None
        store.rollback(transaction)
        assert folders(tmp_path) == ["new", NAME.table]


def test_the_folder_of_a_creation_that_was_killed_is_an_orphan(tmp_path: Path) -> None:
    with closing(make_table(tmp_path)) as store, closing(IcebergConnector(tmp_path)) as other:
        transaction = begin_creation(store, rows=True)
        assert other.orphans(timedelta()) == store.orphans(timedelta()) == []
        (note,) = tmp_path.glob("default/new-*/data/*-writer")
        with subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
        ) as dead:
            note.write_text(process_name(dead.pid))
        (orphan,) = other.orphans()
        assert (orphan.name, orphan.statement) == (str(note.parent.parent), "query-new")
        assert store.orphans() == [], "it is running here"
        assert other.remove_orphans() == [orphan]
        assert folders(tmp_path) == [NAME.table]
        assert (tmp_path / "catalog.sqlite").exists()
        store.rollback(transaction)


def test_a_copy_of_a_warehouse_reads_the_tables_of_the_original_and_changes_none(
    tmp_path: Path,
) -> None:
    with closing(make_table(tmp_path / "first")) as first:
        insert(first, rows(1, 2))
        shutil.copytree(tmp_path / "first", tmp_path / "copy")
        with closing(IcebergConnector(tmp_path / "copy")) as copy:
            assert table_of(copy).scan().to_arrow().num_rows == 2
            with pytest.raises(
                ConnectorError,
                match=r"NOT_SUPPORTED: .*its files are those of table 'default\..*' in the warehouse",
            ) as refusal:
                insert(copy, rows(3))
            assert f"IcebergConnector('{tmp_path / 'first'}')" in str(refusal.value.hint)
            transaction, session = copy.begin_transaction(), ConnectorSession("query")
            metadata = copy.get_metadata(transaction)
            handle = metadata.get_table_handle(session, NAME)
            assert handle is not None
            metadata.truncate_table(session, handle)
            with pytest.raises(ConnectorError, match="NOT_SUPPORTED"):
                copy.commit(transaction)
            transaction = begin_creation(copy, rows=True)
            copy.commit(transaction)
        assert table_of(first).scan().to_arrow().num_rows == 2
        insert(first, rows(4))
        assert first.orphans(timedelta()) == []


def test_the_error_about_a_moved_warehouse_names_the_link_that_restores_its_tables(
    tmp_path: Path,
) -> None:
    with closing(make_table(tmp_path / "first")) as first:
        insert(first, rows(1, 2))
    (tmp_path / "first").rename(tmp_path / "second")
    with closing(IcebergConnector(tmp_path / "second")) as second:
        metadata, session = (
            second.get_metadata(second.begin_transaction()),
            ConnectorSession("query"),
        )
        with pytest.raises(ConnectorError, match="ICEBERG_MISSING_METADATA") as failure:
            metadata.get_table_handle(session, NAME)
        assert f"make '{tmp_path / 'first'}' a symbolic link" in str(failure.value.hint)
        (tmp_path / "first").symlink_to(tmp_path / "second")
        insert(second, rows(3))
        assert table_of(second).scan().to_arrow().num_rows == 3


def test_writes_into_one_common_file_are_refused(tmp_path: Path) -> None:
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1))
        with table_of(store).transaction() as transaction:
            transaction.set_properties({"write.data.path": f"file://{tmp_path}/a#b"})
        with pytest.raises(
            ConnectorError, match=r"NOT_SUPPORTED: .*'#' and '\?' end the path of its address"
        ):
            insert(store, rows(2))
        assert table_of(store).scan().to_arrow().num_rows == 1


def data_path(store: IcebergConnector, name: SchemaTableName, path: str) -> None:
    with table_of(store, name).transaction() as transaction:
        transaction.set_properties({"write.data.path": path})


def insert_into(store: IcebergConnector, name: SchemaTableName, number: int) -> None:
    schema = table_of(store, name).schema().as_arrow()
    table_of(store, name).append(
        pa.table([[number], *([None] for _ in schema.names[1:])], schema=schema)
    )


def age(folder: Path) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (0, 0))


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_files_of_a_table_within_the_folder_of_another_one_are_not_orphans(
    tmp_path: Path, scheme: str
) -> None:
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1))
        place = f"{scheme}{table_of(store).location().removeprefix('file://')}/data/inner"
        store.commit(begin_creation(store, location=place))
        insert_into(store, NEW, 1)
        age(tmp_path)
        assert store.remove_orphans() == []
        assert table_of(store, NEW).scan().to_arrow().num_rows == 1


@pytest.mark.parametrize("former", [False, True], ids=["now", "formerly"])
def test_files_that_a_table_writes_into_the_folder_of_another_one_outlive_that_table(
    tmp_path: Path, former: bool
) -> None:
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1))
        store.commit(begin_creation(store))
        folder = table_of(store).location()
        data_path(store, NEW, f"{folder}/../{folder.rpartition('/')[2]}/data")
        insert_into(store, NEW, 1)
        if former:
            with table_of(store, NEW).transaction() as transaction:
                transaction.remove_properties("write.data.path")
        age(tmp_path)
        assert store.remove_orphans() == []
        drop(store, NAME)
        assert table_of(store, NEW).scan().to_arrow().num_rows == 1


def test_a_table_is_dropped_with_unowned_leftovers_in_its_folder(tmp_path: Path) -> None:
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1))
        store.commit(begin_creation(store))
        (Path(table_of(store).location().removeprefix("file://")) / "data" / "left.parquet").touch()
        drop(store, NAME)
        assert folders(tmp_path) == ["new"]


def test_unowned_files_outside_the_warehouse_are_not_orphans(tmp_path: Path) -> None:
    with (
        closing(make_table(tmp_path / "w")) as store,
        closing(IcebergConnector(tmp_path / "other")) as other,
    ):
        store.commit(begin_creation(store, location=str(tmp_path / "outside")))
        metadata = table_of(store, NEW).metadata_location
        store.catalog.drop_table((NEW.schema, NEW.table))
        for connector in (store, other):
            connector.register_table(NEW.schema, NEW.table, metadata)
            insert_into(connector, NEW, 1)
        age(tmp_path / "outside")
        assert store.remove_orphans() == other.remove_orphans() == []
        assert [
            table_of(connector, NEW).scan().to_arrow().num_rows for connector in (store, other)
        ] == [1, 1]


@pytest.mark.parametrize(
    "location",
    ["", " ", "/", "relative/folder", "~/folder", "file:///", "file://host/folder", "/a\0b"],
)
def test_a_location_that_programs_resolve_differently_is_refused(
    tmp_path: Path, location: str
) -> None:
    with closing(make_table(tmp_path)) as store:
        with pytest.raises(
            AnalysisError, match="INVALID_TABLE_PROPERTY: location must be the absolute path"
        ) as refused:
            begin_creation(store, location=location)
        assert refused.value.properties == ("location",)


@pytest.mark.filterwarnings("ignore:No preferred file implementation")
@pytest.mark.parametrize("location", ["nonsense://x/y", "/" + "x" * 300])
def test_an_inaccessible_location_is_reported(tmp_path: Path, location: str) -> None:
    with closing(make_table(tmp_path)) as store:
        with pytest.raises(
            AnalysisError, match=r"ICEBERG_FILESYSTEM_ERROR: Location .* cannot be read"
        ) as refused:
            begin_creation(store, location=location)
        assert refused.value.properties == ("location",)
