"""Rolled-back files are removed despite late tasks, interrupts at any line, and other statements in the same location."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import HiveAcidConnector, RowMergeError
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid import delta_writer as writer
from rowmerge_nb.connectors.hive_acid import hive_metadata as metadata
from rowmerge_nb.connectors.hive_acid.metastore import embedded
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    SchemaTableName,
    parse_type,
)
from rowmerge_nb.spi.alterations import SetTableComment
from tests.connectors.hive_acid.kit import Statement, contents, files, inserted, make_table, merge
from tests.connectors.hive_acid.test_writes import A, B, C, drop


@pytest.mark.parametrize("ends", ["rollback", "commit"])
@pytest.mark.parametrize("properties", [{}, {"partitioned_by": ("p",)}])
def test_a_task_that_outlives_its_statement_leaves_no_file(
    tmp_path: Path, properties: dict[str, Any], ends: str
) -> None:
    store = make_table(tmp_path, **properties)
    statement = Statement(store)
    statement.stage([inserted(A)])
    begun, late = statement.sink(1, inserted(B)), statement.sink(2, [])
    if ends == "commit":
        statement.finish()
    getattr(statement, ends)()
    before = files(store)
    assert not any("_tmp_" in name for name in before)
    for call in (
        begun.finish,
        lambda: late.store_merged_rows(
            statement.page(
                [(1, None, *B), (2, {"originalTransaction": 1, "bucket": 1 << 29, "rowId": 0}, *B)]
            )
        ),
        late.finish,
    ):
        with pytest.raises(RowMergeError) as caught:
            call()
        assert caught.value.code == "HIVE_WRITER_DATA_ERROR"
    assert files(store) == before
    assert contents(store) == ([A] if ends == "commit" else [])


def test_a_file_closed_by_a_task_after_the_rollback_is_removed(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    statement = Statement(store)
    statement.stage([])
    sink = statement.sink(0, inserted(A))
    statement.rollback()
    with pytest.raises(RowMergeError):
        sink.finish()
    sink.abort()
    assert files(store) == set()


def interrupted_at(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *, after: bool) -> None:
    true = getattr(module, name)

    def interrupted(*arguments: Any, **more: Any) -> Any:
        if after:
            true(*arguments, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, interrupted)


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("name", ["place", "make_folder", "_make_partition"])
def test_an_interrupt_while_files_are_published_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    store = make_table(tmp_path, partitioned_by=("p",))
    merge(store, inserted(A))
    before = files(store)
    statement = Statement(store)
    statement.stage([inserted(B, (9, "z", "new"))])
    with monkeypatch.context() as patched:
        interrupted_at(patched, writer, name, after=after)
        with pytest.raises(KeyboardInterrupt):
            statement.finish()
    statement.rollback()
    assert files(store) == before
    assert (store.orphans(), store.open_transactions()) == ([], [])


def test_a_directory_of_the_same_name_that_is_not_its_own_is_not_removed(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    statement = Statement(store)
    statement.stage([inserted(B)])
    other = store.warehouse / "t" / "delta_0000002_0000002_0000"
    shutil.copytree(store.warehouse / "t" / "delta_0000001_0000001_0000", other)
    with pytest.raises(RowMergeError) as caught:
        statement.finish()
    assert caught.value.code == "HIVE_PATH_ALREADY_EXISTS"
    statement.rollback()
    assert (other / "bucket_00000").is_file()


def test_a_directory_that_vanishes_before_its_move_keeps_the_record_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path, partitioned_by=("p",))
    statement = Statement(store)
    statement.stage([inserted(A, C)])
    calls: list[Path] = []

    def losing(whole: Path, *arguments: Any) -> None:
        calls.append(whole)
        if len(calls) == 2:
            shutil.rmtree(whole)
        place(whole, *arguments)

    place = writer._place
    monkeypatch.setattr(writer, "_place", losing)
    with pytest.raises(RowMergeError):
        statement.finish()
    statement.rollback()
    assert len(calls) == 2
    assert files(store) == set()


@pytest.mark.parametrize("name", ["open_transaction", "allocate_write_id"])
def test_an_interrupt_while_a_transaction_begins_leaves_none_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store = make_table(tmp_path)
    statement = Statement(store)
    with monkeypatch.context() as patched:
        interrupted_at(patched, store.metastore, name, after=True)
        with pytest.raises(KeyboardInterrupt):
            statement.stage([inserted(A)])
    statement.rollback()
    assert store.open_transactions() == []
    assert files(store) == set()


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("name", ["place", "note_creation"])
def test_an_interrupt_while_a_table_is_created_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    store = HiveAcidConnector(tmp_path)
    transaction = store.begin_transaction()
    made = ConnectorTableMetadata(
        SchemaTableName("default", "t"), (ColumnMetadata("id", parse_type("bigint")),)
    )
    with monkeypatch.context() as patched:
        interrupted_at(patched, metadata, name, after=after)
        with pytest.raises(KeyboardInterrupt):
            store.get_metadata(transaction).create_table(ConnectorSession("c"), made)
    store.rollback(transaction)
    assert list(store.warehouse.iterdir()) == []
    assert store.open_transactions() == []


def test_a_table_under_creation_is_not_an_orphan_of_another_process(tmp_path: Path) -> None:
    store = HiveAcidConnector(tmp_path)
    transaction = store.begin_transaction()
    made = ConnectorTableMetadata(
        SchemaTableName("default", "t"), (ColumnMetadata("id", parse_type("bigint")),)
    )
    store.get_metadata(transaction).create_table(ConnectorSession("c"), made)
    other = HiveAcidConnector(tmp_path)
    assert other.remove_orphans() == []
    store.commit(transaction)
    assert contents(other) == []


def test_files_of_a_statement_that_begins_during_a_search_for_orphans_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = make_table(tmp_path), HiveAcidConnector(tmp_path)
    asked = other.metastore.open_transactions
    statements: list[Statement] = []

    def begin() -> Any:
        opened = asked()
        if not statements:
            statements.append(Statement(store))
            statements[0].stage([inserted(A)])
        return opened

    monkeypatch.setattr(other.metastore, "open_transactions", begin)
    assert other.remove_orphans() == []
    statements[0].finish()
    statements[0].commit()
    assert contents(store) == [A]


def test_the_folder_of_a_table_whose_drop_was_killed_is_an_orphan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    with monkeypatch.context() as patched:
        patched.setattr(
            "rowmerge_nb.connectors.hive_acid.hive_connector._remove_dropped", lambda _: None
        )
        drop(store)
    assert [Path(orphan.name).name for orphan in store.remove_orphans()] == ["t"]
    assert list(store.warehouse.iterdir()) == []


def test_the_note_of_a_drop_that_was_killed_before_its_commit_is_an_orphan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    statement = Statement(store)
    statement.metadata.drop_table(statement.session, statement.handle)
    with monkeypatch.context() as patched:
        interrupted_at(patched, store.metastore, "commit", after=False)
        with pytest.raises(KeyboardInterrupt):
            statement.commit()
    survivor = HiveAcidConnector(tmp_path)
    monkeypatch.setattr(survivor, "_aborted_dead", dict)
    monkeypatch.setattr(survivor.metastore, "open_transactions", list)
    (note,) = survivor.remove_orphans()
    assert Path(note.name).parent == store.warehouse / "t"
    assert contents(survivor) == [A]
    assert survivor.orphans() == []


def test_a_failed_drop_leaves_a_table_that_can_be_unregistered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    with monkeypatch.context() as patched:
        interrupted_at(patched, store.metastore, "commit", after=False)
        statement = Statement(store)
        statement.metadata.drop_table(statement.session, statement.handle)
        with pytest.raises(KeyboardInterrupt):
            statement.commit()
    statement.rollback()
    store.unregister_table("default", "t")
    assert store.remove_orphans() == []
    assert (store.warehouse / "t").is_dir()


def test_orphans_that_cannot_be_removed_are_not_reported_as_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    (store.warehouse / "_dropped_0123456789ab").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        assert store.remove_orphans() == []
    assert len(store.remove_orphans()) == 1


@pytest.mark.parametrize("what", ["drop", "create", "schema", "comment", "unregister", "insert"])
@pytest.mark.parametrize("lands", [True, False])
def test_a_commit_whose_answer_is_lost_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, lands: bool
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    statement = Statement(store)
    about = statement.session, statement.handle
    if what == "drop":
        statement.metadata.drop_table(*about)
    elif what == "create":
        made = ConnectorTableMetadata(
            SchemaTableName("default", "u"), (ColumnMetadata("id", parse_type("bigint")),)
        )
        statement.metadata.create_table(statement.session, made)
    elif what == "schema":
        statement.metadata.create_schema(statement.session, "sales")
    elif what == "comment":
        statement.metadata.alter_table(*about, SetTableComment("new"))
    elif what == "insert":
        statement.stage([inserted(B)])
        statement.finish()
    with monkeypatch.context() as patched:
        commits = losing_commits(patched, lands=lands)
        action = (
            (lambda: store.unregister_table("default", "t"))
            if what == "unregister"
            else statement.commit
        )
        if lands:
            action()
        else:
            with pytest.raises(RowMergeError, match="disk I/O error") as caught:
                action()
            assert caught.value.changed is False
        assert commits
    if not lands:
        statement.rollback()
    names = {name.table for name in store.metastore.list_tables()}
    assert names == (
        {"drop": set(), "unregister": set(), "create": {"t", "u"}}.get(what, {"t"})
        if lands
        else {"t"}
    )
    assert ("sales" in store.metastore.list_schemas()) is (what == "schema" and lands)
    assert (store.warehouse / "t").exists() is not (what == "drop" and lands)
    if "t" in names:
        assert contents(store) == ([A, B] if what == "insert" and lands else [A])
        comment = Statement(store).handle.table.comment
        assert comment == ("new" if what == "comment" and lands else None)
    assert store.open_transactions() == []


def losing_commits(monkeypatch: pytest.MonkeyPatch, *, lands: bool) -> list[str]:
    """Lose the answer of the first COMMIT that makes changes visible."""
    made: list[str] = []

    class Losing(sqlite3.Connection):
        def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
            if sql.startswith("UPDATE commits"):
                made.append(sql)
            if sql == "COMMIT" and made == [
                "UPDATE commits SET sequence = sequence + 1 RETURNING sequence"
            ]:
                made.append(sql)
                super().execute("COMMIT" if lands else "ROLLBACK")
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(sql, *more)

    true = sqlite3.connect
    monkeypatch.setattr(
        embedded.sqlite3, "connect", lambda *args, **more: true(*args, factory=Losing, **more)
    )
    return made


def test_a_metastore_that_is_silent_after_a_drop_does_not_make_it_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    true = store.metastore.commit

    def commit(*arguments: Any) -> None:
        true(*arguments)
        monkeypatch.setattr(
            store.metastore, "schema_location", lambda _: pytest.fail("it is asked again")
        )

    monkeypatch.setattr(store.metastore, "commit", commit)
    drop(store)
    assert list(store.warehouse.iterdir()) == []


def silent_metastore(store: HiveAcidConnector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let connections to the metastore and folder listings fail, as without a free descriptor."""

    def refused(*_: Any, **__: Any) -> Any:
        raise ConnectorError("Too many open files", code="HIVE_METASTORE_ERROR")

    for name in ("abort", "open_transactions", "commit"):
        monkeypatch.setattr(store.metastore, name, refused)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)


def test_leftovers_of_a_rollback_without_a_metastore_are_orphans_of_a_living_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    before = files(store)
    statement = Statement(store)
    statement.stage([inserted(A)])
    with monkeypatch.context() as patched:
        silent_metastore(store, patched)
        with pytest.raises(RowMergeError, match="Too many open files"):
            statement.rollback()
    (orphan,) = store.orphans()
    assert "_tmp_" in orphan.name
    assert store.open_transactions() == []
    assert store.remove_orphans() == [orphan]
    assert files(store) == before


def test_a_compaction_whose_metastore_becomes_silent_ends_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    merge(store, inserted(B))
    before = files(store)
    with monkeypatch.context() as patched:

        def fail(*_: Any, **__: Any) -> Any:
            silent_metastore(store, patched)
            raise ConnectorError("Too many open files", code="HIVE_METASTORE_ERROR")

        patched.setattr(store.metastore, "while_open", fail)
        with pytest.raises(RowMergeError, match="Too many open files"):
            store.compact("default", "t", major=False)
    assert [orphan.name.partition("_tmp_")[1] for orphan in store.orphans()] == ["_tmp_"]
    assert store.open_transactions() == []
    store.remove_orphans()
    assert files(store) == before
    assert store.compact("default", "t", major=False) != []


def test_a_statement_that_has_only_read_ends_later_if_its_metastore_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    statement = Statement(store)
    statement.metadata._ensure_begun(statement.session)
    with monkeypatch.context() as patched:
        silent_metastore(store, patched)
        statement.rollback()
    assert len(store.open_transactions()) == 1
    Statement(store).rollback()
    assert store.open_transactions() == []
