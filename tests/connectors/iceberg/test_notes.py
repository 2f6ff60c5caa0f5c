"""Maintenance never removes files of a statement that another process is committing."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import IcebergConnector
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg import iceberg_connector as connector
from rowmerge_nb.connectors.iceberg import notes
from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog
from rowmerge_nb.connectors.iceberg.iceberg_catalog import Tables
from rowmerge_nb.connectors.shared import orphans
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorTableMetadata,
    Constraint,
    SaveMode,
    SchemaTableName,
    parse_type,
)
from rowmerge_nb.spi.alterations import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SetProperties,
    SetTableComment,
)
from rowmerge_nb.spi.handles import ConnectorTableVersion
from tests.connectors.iceberg.kit import (
    NAME,
    Statement,
    by_pyiceberg,
    contents,
    delete,
    insert,
    make_table,
    rows,
    table,
)
from tests.connectors.iceberg.test_commits import deleting

NEW = SchemaTableName("default", "new")
COLUMN = ColumnMetadata("w", parse_type("bigint"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IcebergConnector]:
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1, 2))
        insert(store, rows(3))
        yield store


def executing(statement: Statement, procedure: str, **arguments: Any) -> None:
    metadata, session = statement.metadata, statement.session
    handle = metadata.get_table_handle_for_execute(
        session, statement.handle, procedure, arguments, Constraint()
    )
    metadata.execute_table_execute(session, handle)


def altering(alteration: Any) -> Callable[[Statement], None]:
    return lambda statement: statement.metadata.alter_table(
        statement.session, statement.handle, alteration
    )


def replacing(statement: Statement) -> None:
    definition = ConnectorTableMetadata(NAME, (COLUMN,), {})
    statement.metadata.create_table(statement.session, definition, SaveMode.REPLACE)


def creating(statement: Statement, *values: int) -> None:
    metadata, session = statement.metadata, statement.session
    metadata.create_table(session, ConnectorTableMetadata(NEW, (COLUMN,), {}))
    if values:
        handle = metadata.begin_insert(session, metadata.get_table_handle(session, NEW), ())
        sink = statement.store.get_page_sink_provider().create_page_sink(
            statement.transaction, session, handle
        )
        sink.append_page(pa.RecordBatch.from_pydict({"w": list(values)}))
        metadata.finish_insert(session, handle, sink.finish())


def first_version(statement: Statement) -> ConnectorTableVersion:
    return ConnectorTableVersion(table(statement.store).metadata.snapshots[0].snapshot_id)


STATEMENTS: dict[str, Callable[[Statement], None]] = {
    "optimize_manifests": lambda statement: executing(statement, "OPTIMIZE_MANIFESTS"),
    "rollback_to_snapshot": lambda statement: executing(
        statement, "ROLLBACK_TO_SNAPSHOT", snapshot_id=first_version(statement).version
    ),
    "truncate": lambda statement: statement.metadata.truncate_table(
        statement.session, statement.handle
    ),
    "restore": lambda statement: statement.metadata.restore_table(
        statement.session, statement.handle, first_version(statement)
    ),
    "restore to nothing": lambda statement: statement.metadata.restore_table(
        statement.session, statement.handle, None
    ),
    "replace": replacing,
    "create": creating,
    "create as": lambda statement: creating(statement, 1, 2),
    "add column": altering(AddColumn(COLUMN)),
    "drop column": altering(DropColumn("v")),
    "rename column": altering(RenameColumn("v", "w")),
    "set properties": altering(SetProperties({"max_commit_retry": 7})),
    "new partitioning": altering(SetProperties({"partitioning": ("p",)})),
    "comment": altering(SetTableComment("text")),
}


@pytest.mark.each_value
@pytest.mark.parametrize("place", ["here", "in another container"])
@pytest.mark.parametrize("kind", STATEMENTS)
def test_the_files_of_a_statement_that_is_committing_stay(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, place: str
) -> None:
    statement = Statement(store)
    STATEMENTS[kind](statement)
    write, seen = EmbeddedCatalog._write_metadata, []

    def maintained(catalog: Any, metadata: Any, io: Any, metadata_path: str) -> None:
        write(catalog, metadata, io, metadata_path)
        seen.append(len(list(tmp_path.rglob("*-writer"))))
        long_ago = time.time() - 3600
        for path in tmp_path.rglob("*.*"):
            os.utime(path, (long_ago, long_ago))
        with (
            closing(IcebergConnector(tmp_path, min_retention=timedelta())) as other,
            monkeypatch.context() as patched,
        ):
            if place != "here":
                patched.setattr(orphans, "_space", lambda: "f" * 16)
            assert other.remove_orphans(timedelta()) == []
            if kind not in {"create", "create as"}:
                maintaining = Statement(other)
                executing(maintaining, "REMOVE_ORPHAN_FILES", retention_threshold=retention())
                maintaining.commit()

    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedCatalog, "_write_metadata", maintained)
        statement.commit()
    assert seen == [1], "the note is there before the metadata file"
    name = NEW if kind.startswith("create") else NAME
    assert contents(store, name) == by_pyiceberg(store, name)
    assert not list(tmp_path.rglob("*-writer"))


@pytest.mark.each_value
@pytest.mark.parametrize("cleaner", ["remove_orphans", "REMOVE_ORPHAN_FILES"])
@pytest.mark.parametrize("kind", [*STATEMENTS, "merge"])
def test_the_files_of_a_process_that_commits_and_ends_after_the_tables_were_read_stay(
    store: IcebergConnector,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    cleaner: str,
) -> None:
    statement = deleting(store, 1, insert=9) if kind == "merge" else Statement(store)
    STATEMENTS.get(kind, lambda _: None)(statement)
    write, census = EmbeddedCatalog._write_metadata, Tables.census
    tables_are_read, process_has_ended = threading.Event(), threading.Event()

    def written(catalog: Any, metadata: Any, io: Any, metadata_path: str) -> None:
        write(catalog, metadata, io, metadata_path)
        thread.start()
        assert tables_are_read.wait(60)

    def read(tables: Tables, without: Any = None) -> Any:
        known = census(tables, without)
        tables_are_read.set()
        assert process_has_ended.wait(60)
        return known

    def clean() -> None:
        with closing(IcebergConnector(tmp_path, min_retention=timedelta())) as other:
            if cleaner == "remove_orphans":
                other.remove_orphans()
                return
            maintaining = Statement(other)
            executing(maintaining, cleaner, retention_threshold=retention())
            maintaining.commit()

    thread = threading.Thread(target=clean)
    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedCatalog, "_write_metadata", written)
        patched.setattr(Tables, "census", read)
        # It ends before it has removed its note.
        patched.setattr(notes.Writer, "forget", notes.Writer.stop)
        statement.commit()
        patched.setattr(orphans, "_status", lambda _: None)
        patched.setattr(orphans, "_exists", lambda _: False)
        process_has_ended.set()
        thread.join()
    name = NEW if kind.startswith("create") else NAME
    assert contents(store, name) == by_pyiceberg(store, name)


def retention() -> Any:
    from rowmerge_nb.connectors.shared.retention import Retention

    return Retention(0, "s")


def test_a_later_metadata_file_is_not_taken_for_a_leftover_of_the_statement_before(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its snapshot was created by a statement of the other connector, which has ended."""
    write = EmbeddedCatalog._write_metadata
    with closing(IcebergConnector(tmp_path)) as other:
        statement = Statement(other)
        altering(SetTableComment("text"))(statement)

        def maintained(catalog: Any, metadata: Any, io: Any, metadata_path: str) -> None:
            write(catalog, metadata, io, metadata_path)
            assert store.remove_orphans() == []

        with monkeypatch.context() as patched:
            patched.setattr(EmbeddedCatalog, "_write_metadata", maintained)
            statement.commit()
        assert contents(other) == by_pyiceberg(other)


@pytest.mark.parametrize("silent_hours", [1, 25])
def test_a_note_of_a_process_that_cannot_be_seen_counts_as_long_as_it_is_renewed(
    store: IcebergConnector, tmp_path: Path, silent_hours: int
) -> None:
    statement = deleting(store, 1, insert=9)
    [note] = tmp_path.rglob("*-writer")
    note.write_text("elsewhere:1")
    past = time.time() - 3600 * silent_hours
    for path in tmp_path.rglob("*"):
        os.utime(path, (past, past))
    with closing(IcebergConnector(tmp_path)) as other:
        assert len(other.remove_orphans(timedelta())) == (0 if silent_hours == 1 else 3)
    if silent_hours == 1:
        statement.commit()
        assert [row[0] for row in contents(store)] == [2, 3, 9]
    else:
        with pytest.raises(ConnectorError, match=r"TRANSACTION_CONFLICT: The note .* was removed"):
            statement.commit()
        statement.rollback()
        assert [row[0] for row in contents(store)] == [1, 2, 3]


def test_a_note_is_renewed_while_its_statement_runs_and_not_recreated(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = deleting(store, 1)
    [note] = tmp_path.rglob("*-writer")
    os.utime(note, (0, 0))
    [(location, properties)] = store._transactions[statement.transaction.number].notes.items()
    notes.renew(properties, location)
    assert time.time() - note.stat().st_mtime < 60
    note.unlink()
    with pytest.raises(FileNotFoundError):
        notes.renew(properties, location)
    statement.rollback()


def test_tasks_that_did_not_notice_the_end_of_their_statement_leave_nothing(
    store: IcebergConnector, tmp_path: Path
) -> None:
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    statement = Statement(store)
    statement.begin_merge()
    ids = statement.ids()
    late = statement.sink([(1, None, 8, "a", "x"), (2, ids[1], None, None, None)])
    later = statement.sink([])
    statement.rollback()
    for sink in (late, later):
        with pytest.raises(ConnectorError, match=r"TRANSACTION_CONFLICT: Statement .* has ended"):
            sink.store_merged_rows(insertion()) if sink is later else sink.finish()
        sink.abort()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


def insertion() -> pa.RecordBatch:
    from rowmerge_nb.connectors.shared.file_positions import ROW_ID_TYPE

    arrays = [
        pa.array([9]),
        pa.array(["a"]),
        pa.array(["x"]),
        pa.array([1], pa.int8()),
        pa.nulls(1, ROW_ID_TYPE.arrow),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["id", "v", "p", "operation", "row_id"])


def test_a_service_that_writes_the_metadata_itself_needs_no_note(
    store: IcebergConnector, tmp_path: Path
) -> None:
    class RestCatalog(EmbeddedCatalog):
        def _write_metadata(self, metadata: Any, io: Any, metadata_path: str) -> None:
            assert not list(tmp_path.rglob("*-writer"))
            super()._write_metadata(metadata, io, metadata_path)

    catalog = RestCatalog(store.catalog.name, **store.catalog.properties)
    with closing(IcebergConnector(catalog=catalog)) as served:
        statement = Statement(served)
        altering(SetTableComment("text"))(statement)
        statement.commit()
        assert table(served).properties["comment"] == "text"


def test_a_failed_commit_leaves_no_note(store: IcebergConnector, tmp_path: Path) -> None:
    statement = deleting(store, 1)
    delete(store, 1)
    with pytest.raises(ConnectorError, match="TRANSACTION_CONFLICT"):
        statement.commit()
    statement.rollback()
    assert not list(tmp_path.rglob("*-writer"))


@pytest.mark.parametrize("when", ["next statement", "close"])
def test_files_written_by_a_task_after_the_rollback_are_removed_with_the_next_statement(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    statement = deleting(store, 1, insert=9)
    [data] = [path for path in tmp_path.rglob("*-deletes.parquet") if path not in before]
    statement.rollback()
    # Half a file of a worker killed by Spark, and a manifest of an abandoned thread.
    data.write_bytes(b"PAR1")
    (data.parent.parent / "metadata" / f"{statement.merge_handle.prefix}-m0.avro").write_bytes(
        b"Obj"
    )
    if when == "close":
        store.close()
    else:
        store.rollback(store.begin_transaction())
        assert data.exists(), "its worker may write still"
        monkeypatch.setattr(connector, "_LATE_SECONDS", 0)
        store.rollback(store.begin_transaction())
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("half", [True, False])
def test_a_metadata_file_of_a_commit_that_failed_is_removed(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: bool
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy.orm import Session

    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    statement = Statement(store)
    altering(SetTableComment("text"))(statement)

    def failing(*arguments: Any, **options: Any) -> None:
        if half:
            path = Path(str(options.get("metadata_path", arguments[-1])).removeprefix("file://"))
            path.write_text('{"format-version"')
            raise OSError(28, "No space left on device")
        msg = "gone"
        raise ConnectionError(msg)

    with monkeypatch.context() as broken:
        broken.setattr(*((SqlCatalog, "_write_metadata") if half else (Session, "commit")), failing)
        with pytest.raises(ConnectorError):
            statement.commit()
    statement.rollback()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_change_with_a_lost_answer_counts_even_if_another_one_followed(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = Statement(store)
    altering(SetTableComment("mine"))(statement)
    whole = EmbeddedCatalog.commit_table

    def lost(catalog: Any, *arguments: Any) -> None:
        whole(catalog, *arguments)
        monkeypatch.setattr(EmbeddedCatalog, "commit_table", whole)
        with closing(IcebergConnector(tmp_path)) as other:
            following = Statement(other)
            altering(SetTableComment("theirs"))(following)
            following.commit()
        msg = "the answer was lost"
        raise ConnectionError(msg)

    monkeypatch.setattr(EmbeddedCatalog, "commit_table", lost)
    statement.commit()
    assert table(store).properties["comment"] == "theirs"
    assert all(
        Path(entry.metadata_file.removeprefix("file://")).exists()
        for entry in table(store).metadata.metadata_log
    )


def test_the_folder_of_a_creation_that_was_killed_at_the_catalog_is_an_orphan(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy.orm import Session

    statement = Statement(store)
    creating(statement, 1, 2)
    before = set(tmp_path.glob("default/*"))

    class Killed(BaseException):
        """The end of the process."""

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as broken:
        broken.setattr(Session, "commit", killed)
        with pytest.raises(Killed):
            statement.commit()
    [note] = tmp_path.rglob("*-writer")
    assert len(list(note.parent.parent.glob("metadata/*.metadata.json"))) == 1
    with closing(IcebergConnector(tmp_path)) as other:
        assert other.orphans() == [], "the process lives"
        note.write_text(re.sub(r"\d+$", "1", note.read_text()))
        [orphan] = other.remove_orphans()
        assert orphan.name == str(note.parent.parent)
        # The same folder of an unregistered table is left alone.
        creating(again := Statement(other), 3)
        again.commit()
        other.catalog.drop_table(("default", "new"))
        assert other.orphans(timedelta()) == []
    assert len(set(tmp_path.glob("default/*")) - before) == 1


@pytest.mark.parametrize("kind", ["comment", "rollback_to_snapshot", "truncate"])
def test_the_metadata_file_of_a_killed_commit_is_removed_at_once(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from sqlalchemy.orm import Session

    before = {path for path in tmp_path.rglob("*.*") if path.is_file()}
    statement = Statement(store)
    STATEMENTS[kind](statement)

    def killed(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as broken:
        broken.setattr(Session, "commit", killed)
        with pytest.raises(SystemExit):
            statement.commit()
    [note] = tmp_path.rglob("*-writer")
    note.write_text(re.sub(r"\d+$", "1", note.read_text()))
    with closing(IcebergConnector(tmp_path)) as other:
        other.remove_orphans()
    assert {path for path in tmp_path.rglob("*.*") if path.is_file()} == before
    assert contents(store) == by_pyiceberg(store)


def test_a_renewal_that_outlives_its_statement_is_the_last() -> None:
    writer = notes.Writer("q-1")
    writer.stop()
    writer._renew()
    assert writer._renewal is None
