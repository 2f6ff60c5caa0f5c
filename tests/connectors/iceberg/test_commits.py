"""Concurrent commits, partial failures, and their leftovers."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import create_engine

from rowmerge_nb import ConnectorError, IcebergConnector
from rowmerge_nb.connectors.iceberg.snapshot_producers import RowDelta, Truncation
from rowmerge_nb.connectors.shared.orphans import process_name, this_process
from rowmerge_nb.spi import (
    ColumnDomain,
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    ConnectorTableVersion,
    Constraint,
    Orphan,
    SchemaTableName,
    parse_type,
)
from tests.connectors.iceberg.kit import (
    NAME,
    Statement,
    add_deletes,
    by_pyiceberg,
    contents,
    create,
    delete,
    files,
    insert,
    make_table,
    rows,
    table,
)

NOTHING = (None, None, None)


def deleting(
    store: IcebergConnector, *keys: int, insert: Any = None, constraint: Constraint | None = None
) -> Statement:
    """Begin a merge that deletes rows, and stage it."""
    statement = Statement(store)
    statement.begin_merge()
    ids = {row["id"]: row["$row_id"] for row in statement.rows(ids=True, constraint=constraint)}
    changes = [(2, ids[key], *NOTHING) for key in keys]
    statement.stage([*changes, *([(1, None, insert, "new", "x")] if insert is not None else [])])
    statement.finish()
    return statement


def refused(statement: Statement, why: str) -> None:
    """Check that a commit is refused, changes nothing and leaves nothing."""
    store = statement.store
    before = contents(store) if store.catalog.table_exists(("default", "t")) else None
    with pytest.raises(
        ConnectorError,
        match=f"TRANSACTION_CONFLICT: Iceberg table 'default.t' was changed while the statement ran: {why}",
    ):
        statement.commit()
    statement.rollback()
    if before is not None:
        assert contents(store) == before
    folder = Path(statement.handle.data_location.removeprefix("file://"))
    assert not list(folder.rglob(f"{statement.session.query_id}-*"))


def evolve(store: IcebergConnector) -> None:
    with table(store).update_schema() as update:
        from pyiceberg.types import LongType

        update.add_column("more", LongType())


def repartition(store: IcebergConnector) -> None:
    with table(store).update_spec() as update:
        update.add_identity("p")


def replace(store: IcebergConnector) -> None:
    store.catalog.drop_table(("default", "t"))
    create(store)


def remove_file(store: IcebergConnector) -> None:
    """Drop a whole data file, like an overwrite of another engine."""
    table(store).delete("id < 3")


CONFLICTS: list[tuple[Callable[[IcebergConnector], None], str]] = [
    (lambda store: delete(store, 2), "another commit deleted rows of data file 'file://.*' too"),
    (
        remove_file,
        "data file 'file://.*', rows of which were to be deleted, was removed by another commit",
    ),
    (evolve, "its columns were altered"),
    (repartition, "its partitioning was altered"),
    (replace, "it was dropped, and another table has its name"),
    (lambda store: store.catalog.drop_table(("default", "t")), "it was dropped"),
]


@pytest.mark.parametrize("level", ["serializable", "snapshot"])
@pytest.mark.parametrize(
    ("other", "why"),
    CONFLICTS,
    ids=["deletes", "removes", "evolves", "repartitions", "replaces", "drops"],
)
def test_a_conflicting_commit_is_a_conflict_and_never_a_lost_update(
    tmp_path: Path, other: Callable[[IcebergConnector], None], why: str, level: str
) -> None:
    store = make_table(tmp_path, isolation_level=level)
    insert(store, rows(1, 2))
    insert(store, rows(3, 4))
    statement = deleting(store, 1, insert=7)
    other(store)
    refused(statement, why)


def test_serializable_isolation_conflicts_with_rows_that_the_statement_would_have_read(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    insert(store, rows(3, 4))
    statement = deleting(store, 1)
    insert(store, rows(5))
    refused(statement, "another commit added rows that the statement would have read")
    statement = deleting(store, 1)
    delete(store, 3)
    refused(statement, "another commit deleted rows that the statement read")
    statement = deleting(store, 1)
    table(store).delete("id in (4, 5)")
    refused(
        statement,
        "another commit removed data files that the statement read|another commit added rows",
    )
    # A MERGE with inserts only would have read them too.
    statement = deleting(store, insert=9)
    insert(store, rows(9))
    refused(statement, "another commit added rows")


def test_snapshot_isolation_ignores_rows_of_other_files(tmp_path: Path) -> None:
    store = make_table(tmp_path, isolation_level="snapshot")
    insert(store, rows(1, 2))
    insert(store, rows(3, 4))
    statement = deleting(store, 1, insert=8)
    insert(store, rows(5))
    delete(store, 3)
    statement.commit()
    assert [row[0] for row in contents(store)] == [2, 4, 5, 8]
    assert contents(store) == by_pyiceberg(store)


def test_commits_outside_the_requested_scans_do_not_conflict(tmp_path: Path) -> None:
    store = make_table(tmp_path, partitioning=("p",))
    insert(store, rows(1, 2, p="x"))
    insert(store, rows(3, 4, p="y"))
    within = Constraint({"p": ColumnDomain(values=("x",))})
    statement = deleting(store, 1, constraint=within)
    insert(store, rows(5, p="y"))
    delete(store, 3)
    table(store).delete("id = 5")
    statement.commit()
    assert [row[0] for row in contents(store)] == [2, 4]
    statement = deleting(store, 2, constraint=within)
    insert(store, rows(6, p="x"))
    refused(statement, "another commit added rows")


def test_inserts_conflict_only_with_a_replaced_table(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    statement = Statement(store)
    handle = statement.metadata.begin_insert(statement.session, statement.handle, ())
    sink = store.get_page_sink_provider().create_page_sink(
        statement.transaction, statement.session, handle
    )
    sink.append_page(pa.RecordBatch.from_pydict({"id": [3], "v": ["a"], "p": ["x"]}))
    statement.metadata.finish_insert(statement.session, handle, sink.finish())
    delete(store, 1)
    insert(store, rows(4))
    statement.commit()
    assert [row[0] for row in contents(store)] == [2, 3, 4]


def test_equality_deletes_of_another_engine_are_a_conflict(tmp_path: Path) -> None:
    store = make_table(tmp_path, isolation_level="snapshot")
    insert(store, rows(1, 2))
    statement = deleting(store, 1)
    schema = pa.schema([pa.field("id", pa.int64(), metadata={b"PARQUET:field_id": b"1"})])
    add_deletes(
        store, tmp_path / "e.parquet", pa.table({"id": [2]}, schema=schema), "EQUALITY_DELETES", [1]
    )
    refused(statement, "another commit deleted rows of data file")


def test_a_commit_in_between_leads_to_another_try_or_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other commit follows the check, so that only the catalog notices."""
    store = make_table(tmp_path)
    with table(store).transaction() as update:
        update.set_properties({"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"})
    insert(store, rows(1, 2))
    insert(store, rows(3, 4))
    original = RowDelta._commit
    others: list[Callable[[], None]] = []

    def commit(self: Any) -> Any:
        made = original(self)
        if others:
            others.pop()()
        return made

    monkeypatch.setattr(RowDelta, "_commit", commit)
    statement = Statement(store)
    handle = statement.metadata.begin_insert(statement.session, statement.handle, ())
    sink = store.get_page_sink_provider().create_page_sink(
        statement.transaction, statement.session, handle
    )
    sink.append_page(pa.RecordBatch.from_pydict({"id": [9], "v": ["a"], "p": ["x"]}))
    statement.metadata.finish_insert(statement.session, handle, sink.finish())
    others.append(lambda: delete(store, 4))
    statement.commit()
    assert [row[0] for row in contents(store)] == [1, 2, 3, 9]
    assert table(store).current_snapshot().summary["total-records"] == "5"
    assert contents(store) == by_pyiceberg(store)
    statement = deleting(store, 1)
    others.append(lambda: delete(store, 2))
    with pytest.raises(
        ConnectorError, match=r"TRANSACTION_CONFLICT: .*another commit deleted rows of data file"
    ):
        statement.commit()
    statement.rollback()
    assert [row[0] for row in contents(store)] == [1, 3, 9]
    # Neither failed attempts nor their manifests remain.
    assert store.orphans(timedelta(0)) == []


def test_leftovers_of_a_dead_process_are_listed_at_once_with_its_name(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1))
    before, content = set(files(store)), contents(store)
    abandoned = deleting(store, 1, insert=2)
    (note,) = tmp_path.rglob("*-writer")
    assert note.read_text() == this_process()
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as dead:
        note.write_text(process_name(dead.pid))
    other = IcebergConnector(tmp_path)
    found = other.orphans()
    assert {orphan.process for orphan in found} == {note.read_text()}
    assert {orphan.statement for orphan in found} == {abandoned.session.query_id}
    assert len(found) == 3
    assert len(other.remove_orphans()) == 3
    assert set(files(other)) == before
    assert contents(other) == content


@pytest.mark.trial
@pytest.mark.parametrize("step", ["stage", "write", "catalog"])
def test_leftovers_of_a_commit_whose_process_died_are_listed_at_once(
    tmp_path: Path, step: str
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    before, content = everything(tmp_path), contents(store)
    child = subprocess.run(
        [
            *(
                sys.executable,
                "-c",
                "import sys; from tests.connectors.iceberg.test_commits import die_in; die_in(*sys.argv[1:])",
            ),
            *(str(tmp_path), step),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 9, child.stderr
    left = everything(tmp_path) - before
    assert any(name.endswith("-m0.avro") for name in left)
    assert any(name.endswith(".metadata.json") for name in left) == (step != "stage")
    for path in tmp_path.rglob("*.metadata.json"):
        # Half a metadata file is an orphan after a minute.
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 120))
    other = IcebergConnector(tmp_path)
    found = other.remove_orphans()
    assert len(found) == len(left)
    assert len({orphan.statement for orphan in found} - {""}) == 1
    assert everything(tmp_path) == before
    assert contents(other) == content
    delete(other, 1)
    assert [row[0] for row in contents(other)] == [2]


def test_files_that_a_rollback_cannot_remove_are_listed_and_can_be_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1))
    before = everything(tmp_path)
    statement = deleting(store, 1, insert=2)
    assert len(everything(tmp_path) - before) == 3
    with monkeypatch.context() as broken:
        from rowmerge_nb.connectors.iceberg import housekeeping

        def refused(io: Any, location: str) -> None:
            if location.endswith("-deletes.parquet"):
                raise OSError(5, "Input/output error")
            remove(io, location)

        remove = housekeeping.remove_location
        broken.setattr(housekeeping, "remove_location", refused)
        with pytest.raises(OSError, match="Input/output error"):
            statement.rollback()
    (left,) = everything(tmp_path) - before
    assert left.endswith("-deletes.parquet")
    assert len(store.orphans()) == 1
    assert len(store.remove_orphans()) == 1
    assert everything(tmp_path) == before


def test_a_note_that_cannot_be_removed_does_not_keep_the_files_of_an_ended_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1))
    before = everything(tmp_path)
    statement = deleting(store, 1, insert=2)
    with monkeypatch.context() as broken:
        broken.setattr(
            "rowmerge_nb.connectors.iceberg.iceberg_connector.remove_attempts",
            lambda *_, **__: None,
        )
        statement.rollback()
    assert len(store.orphans()) == len(store.remove_orphans()) == 3
    assert everything(tmp_path) == before


def everything(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "catalog.sqlite" not in path.name
    }


def die_in(folder: str, step: str) -> None:
    """Commit, and die after writing the manifests: with a metadata file half written, or before the catalog is called."""
    from pyiceberg.catalog.sql import SqlCatalog

    write = SqlCatalog._write_metadata

    def written(metadata: Any, io: Any, metadata_path: str) -> None:
        if step == "write":
            Path(metadata_path.removeprefix("file://")).write_text('{"format-version": 2, "tab')
        elif step == "catalog":
            write(metadata, io, metadata_path)
        os._exit(9)

    SqlCatalog._write_metadata = staticmethod(written)  # type: ignore[method-assign]
    deleting(IcebergConnector(folder), 1, insert=7).commit()


@pytest.mark.parametrize("version", [2, 3])
def test_many_threads_that_insert_and_delete_lose_nothing(tmp_path: Path, version: int) -> None:
    store = make_table(tmp_path, isolation_level="snapshot", format_version=version)
    with table(store).transaction() as update:
        update.set_properties(
            {
                "commit.retry.num-retries": "50",
                "commit.retry.min-wait-ms": "1",
                "commit.retry.max-wait-ms": "20",
            }
        )
    insert(store, rows(*range(100, 104)))
    outcomes: list[tuple[int, str]] = []

    def work(number: int) -> None:
        statement = deleting(store, 100 + number, insert=number)
        try:
            statement.commit()
            outcomes.append((number, ""))
        except ConnectorError as error:
            statement.rollback()
            outcomes.append((number, error.code))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 4
    assert {code for _, code in outcomes} <= {"", "TRANSACTION_CONFLICT"}
    done = {number for number, code in outcomes if not code}
    assert done, "one of them at least is the first"
    expected = {*done, *(100 + number for number in range(4) if number not in done)}
    assert {row[0] for row in contents(store)} == expected
    assert contents(store) == by_pyiceberg(store)


# -- failures


def test_a_statement_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = make_table(tmp_path, partitioning=("p",))
    insert(store, rows(1, 2))
    before = files(store), contents(store)
    statement = deleting(store, 1, insert=3)
    assert len(files(store)) == 3
    statement.rollback()
    assert (files(store), contents(store)) == before
    # An aborted attempt removes its files by itself, finished or not.
    for finished in (True, False):
        statement = Statement(store)
        statement.begin_merge()
        sink = statement.sink([(1, None, 5, "a", "z"), (2, statement.ids()[1], *NOTHING)])
        if finished:
            sink.finish()
        sink.abort()
        assert files(store) == before[0]
        statement.rollback()
    statement.rollback()


def test_files_stay_if_the_outcome_of_the_commit_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.exceptions import CommitStateUnknownException

    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    commit_table = store.catalog.commit_table

    def lost(*arguments: Any) -> Any:
        commit_table(*arguments)
        raise CommitStateUnknownException("the answer did not arrive")

    monkeypatch.setattr(store.catalog, "commit_table", lost)
    # The catalog can be asked for the outcome.
    deleting(store, 1, insert=3).commit()
    assert contents(store) == [(2, "a", "x"), (3, "new", "x")]

    def silent(*_: Any) -> Any:
        raise ConnectionError("no answer")

    def lost_and_silent(*arguments: Any) -> Any:
        commit_table(*arguments)
        monkeypatch.setattr(store.catalog, "load_table", silent)
        silent()

    statement = deleting(store, 2, insert=4)
    monkeypatch.setattr(store.catalog, "commit_table", lost_and_silent)
    with pytest.raises(
        ConnectorError,
        match=r"ICEBERG_COMMIT_ERROR: The outcome is unknown: .* whether table 'default.t' was changed",
    ) as caught:
        statement.commit()
    assert caught.value.changed is None
    statement.rollback()
    monkeypatch.undo()
    assert contents(store) == by_pyiceberg(store) == [(3, "new", "x"), (4, "new", "x")]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_error_just_after_the_catalogs_commit_keeps_the_files_of_the_new_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    commit_table = store.catalog.commit_table

    def interrupted(*arguments: Any) -> Any:
        commit_table(*arguments)
        raise raised

    statement = deleting(store, 1, insert=3)
    monkeypatch.setattr(store.catalog, "commit_table", interrupted)
    # A lack of memory can be investigated; a connector must not catch the others.
    with suppress(KeyboardInterrupt, SystemExit):
        statement.commit()
    statement.rollback()
    monkeypatch.undo()
    assert contents(store) == by_pyiceberg(store) == [(2, "a", "x"), (3, "new", "x")]
    delete(store, 2)
    assert contents(store) == [(3, "new", "x")]


def test_a_commit_refused_by_the_embedded_catalog_is_not_reported_as_done(tmp_path: Path) -> None:
    """Another process reads the catalog's file longer than the commit waits."""
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    before = files(store)
    statement = deleting(store, 1, insert=3)
    store.catalog.engine.dispose()
    store.catalog.engine = create_engine(f"sqlite:///{tmp_path / 'catalog.sqlite'}?timeout=0.2")
    reader = sqlite3.connect(tmp_path / "catalog.sqlite")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM iceberg_tables").fetchall()
    with pytest.raises(
        ConnectorError,
        match=r"ICEBERG_CATALOG_ERROR: .*could not commit to table 'default.t': .*locked",
    ) as caught:
        statement.commit()
    assert caught.value.changed is False
    statement.rollback()
    reader.close()
    assert contents(store) == by_pyiceberg(store) == [(1, "a", "x"), (2, "a", "x")]
    assert files(store) == before
    store.close()
    again = IcebergConnector(tmp_path)
    assert contents(again) == [(1, "a", "x"), (2, "a", "x")]
    delete(again, 1)
    assert contents(again) == [(2, "a", "x")]


def test_a_full_disk_of_the_embedded_catalog_is_reported_briefly(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    before = files(store)
    with sqlite3.connect(tmp_path / "catalog.sqlite") as catalog:
        catalog.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON iceberg_tables BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
    statement = deleting(store, 1, insert=3)
    with pytest.raises(ConnectorError) as caught:
        statement.commit()
    error = caught.value
    assert (error.code, error.changed) == ("GENERIC_INSUFFICIENT_RESOURCES", False)
    assert (
        error.message
        == "Iceberg's catalog could not commit to table 'default.t': database or disk is full"
    )
    assert str(error.hint).startswith("Free space on its disk")
    statement.rollback()
    catalog.execute("DROP TRIGGER full")
    catalog.close()
    assert files(store) == before
    delete(store, 1)
    assert contents(store) == [(2, "a", "x")]


def test_a_catalog_in_memory_keeps_its_tables_when_a_commit_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = SqlCatalog("m", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("default")
    store = IcebergConnector(catalog=catalog)
    assert not store.commits_in_thread, "another thread would see another database"
    create(store)
    insert(store, rows(1))

    def fails(*_: Any) -> Any:
        raise OSError("no answer")

    statement = deleting(store, 1)
    monkeypatch.setattr(catalog, "commit_table", fails)
    with pytest.raises(ConnectorError) as caught:
        statement.commit()
    assert caught.value.changed is None
    monkeypatch.undo()
    assert contents(store) == [(1, "a", "x")]
    store.close()


def test_a_full_disk_while_manifests_are_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    statement = deleting(store, 1, insert=3)
    listed = set(tmp_path.rglob("*"))

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyiceberg.table.update.snapshot.write_manifest_list", full)
    with pytest.raises(
        ConnectorError,
        match=r"GENERIC_INSUFFICIENT_RESOURCES: The metadata of Iceberg table 'default[.]t'",
    ):
        statement.commit()
    assert set(tmp_path.rglob("*")) == listed, "the manifests are gone"
    statement.rollback()
    assert contents(store) == [(1, "a", "x"), (2, "a", "x")]


def test_a_commit_returns_its_new_snapshot(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    statement = deleting(store, 1)
    version = store.commit(statement.transaction)
    assert version is not None
    assert version.version == table(store).current_snapshot().snapshot_id
    insert(store, rows(5, 6))
    reader = Statement(store)
    handle = reader.metadata.get_versioned_table_handle(reader.session, NAME, version)
    assert handle is not None
    assert handle.snapshot == version.version
    with pytest.raises(
        ConnectorError, match="INVALID_ARGUMENTS: Iceberg snapshot ID does not exists: 7"
    ):
        reader.metadata.get_versioned_table_handle(reader.session, NAME, ConnectorTableVersion(7))
    with pytest.raises(
        ConnectorError, match="INVALID_ARGUMENTS: Cannot find snapshot with reference name: x"
    ):
        reader.metadata.get_versioned_table_handle(reader.session, NAME, ConnectorTableVersion("x"))


def test_attempts_that_no_fragment_names_do_not_count_and_are_removed_with_the_commit(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    statement = Statement(store)
    statement.begin_merge()
    ids = statement.ids()
    change = [(1, None, 3, "a", "x"), (2, ids[2], *NOTHING)]
    statement.sink(change).finish()
    statement.stage(change)
    assert len(files(store)) == 5
    assert contents(store) == [(1, "a", "x"), (2, "a", "x")]
    statement.finish()
    statement.commit()
    assert contents(store) == by_pyiceberg(store) == [(1, "a", "x"), (3, "a", "x")]
    assert len(files(store)) == 3


def test_files_outside_the_local_disk_go_through_pyiceberg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("files", "housekeeping"):
        monkeypatch.setattr(f"rowmerge_nb.connectors.iceberg.{module}.local_path", lambda _: None)
    store = make_table(tmp_path, partitioning=("p",))
    insert(store, rows(1, 2, 3))
    delete(store, 1)
    statement = deleting(store, 2, insert=4)
    statement.sink([(1, None, 9, "a", "x")]).abort()
    statement.rollback()
    assert len(files(store)) == 2
    (data,) = (path for path in files(store) if "deletes" not in path.name)
    assert store.orphans(timedelta(0)) == []
    late = data.with_name("late.parquet")
    late.write_bytes(b"")
    assert names(store.remove_orphans(timedelta(0))) == [f"file://{late}"]
    assert contents(store) == by_pyiceberg(store) == [(2, "a", "x"), (3, "a", "x")]
    data.unlink()
    with pytest.raises(
        ConnectorError,
        match=r"ICEBERG_MISSING_DATA: File 'file://.*' of Iceberg table 'default.t' does not exist",
    ):
        contents(store)


def test_statements_of_one_name_do_not_remove_each_other_s_files(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1))
    for key in (2, 3):
        statement = Statement(store)
        statement.session = ConnectorSession("same")
        statement.begin_merge()
        statement.stage([(1, None, key, "a", "x")])
        statement.finish()
        statement.commit()
    assert {row[0] for row in contents(store)} == {1, 2, 3}


def test_a_new_table_appears_with_its_rows_or_not_at_all(tmp_path: Path) -> None:
    store = IcebergConnector(tmp_path)
    name = SchemaTableName("default", "made")
    for good in (False, True):
        statement = Statement(store, name)
        columns = (ColumnMetadata("id", parse_type("bigint")),)
        statement.metadata.create_table(
            statement.session, ConnectorTableMetadata(name, columns, {})
        )
        handle: Any = statement.metadata.get_table_handle(statement.session, name)
        inserting = statement.metadata.begin_insert(statement.session, handle, ())
        sink = store.get_page_sink_provider().create_page_sink(
            statement.transaction, statement.session, inserting
        )
        sink.append_page(pa.RecordBatch.from_pydict({"id": [1, 2]}))
        fragments = sink.finish()
        assert Statement(store, name).handle is None
        if good:
            statement.metadata.finish_insert(statement.session, inserting, fragments)
            statement.commit()
        else:
            statement.rollback()
            assert not list(tmp_path.rglob("*.parquet"))
    assert contents(store, name) == [(1,), (2,)]
    assert len(table(store, name).snapshots()) == 1
    # Two statements create one table: the second one finds it existing.
    other = SchemaTableName("default", "twice")
    statements = [Statement(store, other) for _ in range(2)]
    for statement in statements:
        statement.metadata.create_table(
            statement.session, ConnectorTableMetadata(other, columns, {})
        )
    statements[0].commit()
    with pytest.raises(
        ConnectorError, match=r"TRANSACTION_CONFLICT: .*another table of this name was created"
    ):
        statements[1].commit()


def names(orphans: list[Orphan]) -> list[str]:
    assert all(orphan.bytes is not None and orphan.modified is not None for orphan in orphans)
    return [orphan.name for orphan in orphans]


def test_orphans_are_files_of_ended_statements_and_old_ones_and_never_those_of_a_running_one(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1))
    running = deleting(store, 1, insert=2)
    mine = {path for path in files(store) if path.name.startswith(running.session.query_id)}
    assert len(mine) == 2
    folder = next(iter(mine)).parent
    stranger = folder / "00000-of-another-engine.parquet"
    stranger.write_bytes(b"")
    assert store.orphans() == [], "of files of others only old ones are listed"
    assert names(store.orphans(timedelta(0))) == [f"file://{stranger}"]
    # Another connector sees that the process that writes them lives.
    other = IcebergConnector(tmp_path)
    assert other.orphans() == []
    assert names(other.orphans(timedelta(0))) == [f"file://{stranger}"]
    running.commit()
    assert contents(store) == [(2, "new", "x")]
    assert names(store.orphans(timedelta(0))) == [f"file://{stranger}"]
    assert not list(folder.glob("*-writer")), "the note that says who writes is gone"
    # A task that did not notice the end of its statement.
    late = folder / f"{running.merge_handle.prefix}-late.parquet"
    late.write_bytes(b"")
    assert names(store.orphans()) == [f"file://{late}"]
    assert names(store.remove_orphans(timedelta(0))) == sorted(
        [f"file://{stranger}", f"file://{late}"]
    )
    assert contents(store) == by_pyiceberg(store) == [(2, "new", "x")]
    assert store.orphans(timedelta(0)) == []


def test_the_inside_of_pyiceberg_is_what_the_module_of_commits_counts_on() -> None:
    """If this fails, pyiceberg has changed: check its row deltas and `commits.py`."""
    import inspect

    import pyiceberg
    from pyiceberg.manifest import ManifestWriterV2
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.update.snapshot import (
        UpdateSnapshot,
        _FastAppendFiles,
        _MergeAppendFiles,
        _SnapshotProducer,
    )

    assert pyiceberg.__version__.startswith("0.12.")
    assert not hasattr(UpdateSnapshot, "row_delta"), (
        "pyiceberg has a public commit of row deltas now: use it"
    )
    assert not [name for name in dir(Table) if "delta" in name]
    for overridden in (
        "_manifests",
        "_summary",
        "_validate_concurrency",
        "_existing_manifests",
        "_deleted_entries",
    ):
        assert hasattr(_SnapshotProducer, overridden)
    for called in (
        "append_data_file",
        "new_manifest_output",
        "spec",
        "schema",
        "snapshot_id",
        "_clean_all_uncommitted",
    ):
        assert hasattr(_MergeAppendFiles, called)
    assert {"_parent_snapshot_id", "_compression", "_operation"} <= set(
        _SnapshotProducer.__annotations__
    )
    assert "_validate_concurrency" in inspect.getsource(Transaction)
    assert "_validate_concurrency" in vars(RowDelta)
    assert issubclass(Truncation, _FastAppendFiles)
    assert {"content", "_meta"} <= set(vars(ManifestWriterV2))


def test_nothing_stays_of_an_attempt_that_another_commit_has_overtaken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog

    store, other = make_table(tmp_path), IcebergConnector(tmp_path)
    true = EmbeddedCatalog._write_metadata
    written: list[str] = []

    def overtaken(catalog: EmbeddedCatalog, metadata: Any, io: Any, metadata_path: str) -> None:
        true(catalog, metadata, io, metadata_path)
        written.append(metadata_path)
        if len(written) == 1:
            insert(other, rows(100))

    monkeypatch.setattr(EmbeddedCatalog, "_write_metadata", overtaken)
    insert(store, rows(101))
    assert len(written) == 3, "the first attempt, the other commit, the second attempt"
    there = {
        path.name
        for path in Path(table(store).location().removeprefix("file://")).glob(
            "metadata/*.metadata.json"
        )
    }
    assert Path(written[0]).name not in there
    assert {Path(path).name for path in written[1:]} <= there
    assert {row[0] for row in contents(store)} == {100, 101}
    assert list(store.orphans()) == []
