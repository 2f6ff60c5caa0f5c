"""Columns that a MERGE adds to Iceberg tables: one commit for schema and snapshot, with the ids already in the files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import StringType

from rowmerge_nb import ConnectorError, IcebergConnector
from rowmerge_nb.connectors.iceberg.snapshot_producers import RowDelta
from rowmerge_nb.spi import ColumnMetadata, ConnectorTableVersion, parse_type
from rowmerge_nb.spi.types import VARCHAR
from tests.connectors.iceberg.kit import (
    NAME,
    Statement,
    by_pyiceberg,
    contents,
    insert,
    make_table,
    rows,
    table,
)

AFTER = [(1, "a", "x", None), (2, "new", "x", "b"), (9, "new", "x", "c")]


def evolving(store: IcebergConnector, kind: str = "varchar") -> Statement:
    statement = Statement(store)
    statement.handle = statement.metadata.get_evolved_table_handle(
        statement.session, statement.handle, [ColumnMetadata("note", parse_type(kind))]
    )
    statement.begin_merge()
    return statement


def staged(store: IcebergConnector) -> Statement:
    """Begin a merge that adds a column, updates a row and inserts one, up to the commit."""
    statement = evolving(store)
    nothing = (None,) * 4
    statement.stage(
        [
            (2, statement.ids()[2], *nothing),
            (1, None, 2, "new", "x", "b"),
            (1, None, 9, "new", "x", "c"),
        ]
    )
    statement.finish()
    return statement


def filled(tmp_path: Path, **properties: Any) -> IcebergConnector:
    store = make_table(tmp_path, **properties)
    insert(store, rows(1, 2))
    return store


def refused(statement: Statement) -> str:
    with pytest.raises(ConnectorError) as caught:
        statement.commit()
    statement.rollback()
    assert caught.value.code == "TRANSACTION_CONFLICT"
    return caught.value.message


def test_schema_and_snapshot_are_one_commit_that_other_readers_understand(tmp_path: Path) -> None:
    store = filled(tmp_path)
    before = table(store).metadata
    staged(store).commit()
    after = table(store).metadata
    assert contents(store) == by_pyiceberg(store) == AFTER
    assert len(after.metadata_log) == len(before.metadata_log) + 1
    assert after.current_snapshot().schema_id == after.current_schema_id != before.current_schema_id
    (file,) = (
        f
        for f in table(store).inspect.data_files().to_pylist()
        if f["record_count"] == 2 and f["readable_metrics"]["note"]["upper_bound"]
    )
    assert file["readable_metrics"]["note"]["upper_bound"] == "c"


@pytest.mark.parametrize(
    "kind", ["row(a integer, b array(varchar))", "map(varchar, row(c bigint))"]
)
def test_parts_of_nested_columns_get_the_ids_of_the_commit(tmp_path: Path, kind: str) -> None:
    store = filled(tmp_path)
    statement = evolving(store, kind)
    value = {"a": 1, "b": ["x", None]} if kind.startswith("row") else [("k", {"c": 5})]
    statement.stage([(1, None, 7, "new", "x", value)])
    statement.finish()
    statement.commit()
    assert contents(store)[-1] == by_pyiceberg(store)[-1] == (7, "new", "x", value)


def test_a_commit_in_between_leads_to_another_try_with_the_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path, isolation_level="snapshot")
    with table(store).transaction() as update:
        update.set_properties({"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"})
    original, others = RowDelta._commit, [lambda: insert(store, rows(5))]

    def commit(self: Any) -> Any:
        made = original(self)
        if others and self._change.handle.column_changes:
            others.pop()()
        return made

    monkeypatch.setattr(RowDelta, "_commit", commit)
    staged(store).commit()
    assert others == []
    assert (
        contents(store)
        == by_pyiceberg(store)
        == [AFTER[0], AFTER[1], (5, "a", "x", None), AFTER[2]]
    )
    assert store.orphans(timedelta(0)) == []


def test_an_alteration_in_between_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    with table(store).transaction() as update:
        update.set_properties({"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"})
    original = RowDelta._commit
    others = [lambda: table(store).update_schema().add_column("other", StringType()).commit()]

    def commit(self: Any) -> Any:
        made = original(self)
        if others:
            others.pop()()
        return made

    monkeypatch.setattr(RowDelta, "_commit", commit)
    assert "its columns were altered" in refused(staged(store))
    assert contents(store) == [(1, "a", "x", None), (2, "a", "x", None)]
    assert store.orphans(timedelta(0)) == []


def test_a_column_added_and_dropped_meanwhile_is_a_conflict_since_its_id_is_taken(
    tmp_path: Path,
) -> None:
    store = filled(tmp_path)
    statement = staged(store)
    schema = table(store).metadata.current_schema_id
    table(store).update_schema().add_column("other", StringType()).commit()
    table(store).update_schema().delete_column("other").commit()
    assert table(store).metadata.current_schema_id == schema
    assert "its columns were altered" in refused(statement)
    assert contents(store) == [(1, "a", "x"), (2, "a", "x")]


@pytest.mark.parametrize("with_rows", [True, False])
def test_a_lost_answer_is_determined_by_a_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_rows: bool
) -> None:
    store = filled(tmp_path)
    commit_table = store.catalog.commit_table
    if with_rows:
        statement = staged(store)
    else:
        statement = evolving(store)
        statement.finish()

    def lost(*arguments: Any) -> Any:
        commit_table(*arguments)
        raise TimeoutError

    monkeypatch.setattr(store.catalog, "commit_table", lost)
    statement.commit()
    monkeypatch.undo()
    assert contents(store) == (AFTER if with_rows else [(1, "a", "x", None), (2, "a", "x", None)])


def test_a_refusal_of_the_catalog_leaves_columns_rows_and_files_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)

    def refusing(*_: Any) -> Any:
        raise TimeoutError

    for begun in (staged, evolving):
        statement = begun(store)
        if begun is evolving:
            statement.finish()
        monkeypatch.setattr(store.catalog, "commit_table", refusing)
        with pytest.raises(ConnectorError) as caught:
            statement.commit()
        statement.rollback()
        monkeypatch.undo()
        assert caught.value.code == "ICEBERG_CATALOG_ERROR"
        assert contents(store) == [(1, "a", "x"), (2, "a", "x")]
        assert store.orphans(timedelta(0)) == []


def test_undoing_it_removes_columns_and_rows_by_one_commit(tmp_path: Path) -> None:
    store = filled(tmp_path)
    before = table(store).metadata
    staged(store).commit()
    statement = Statement(store)
    former = ConnectorTableVersion(before.current_snapshot_id)
    statement.metadata.restore_table(statement.session, statement.handle, former, ["note"])
    statement.commit()
    now = table(store).metadata
    assert (now.current_schema_id, now.current_snapshot_id) == (
        before.current_schema_id,
        before.current_snapshot_id,
    )
    assert contents(store) == by_pyiceberg(store) == [(1, "a", "x"), (2, "a", "x")]


def test_undoing_it_is_a_conflict_if_another_session_has_altered_the_columns(
    tmp_path: Path,
) -> None:
    store = filled(tmp_path)
    former = Statement(store)
    version = former.metadata.get_table_version(former.session, former.handle)
    former.rollback()
    staged(store).commit()
    statement = Statement(store)
    statement.metadata.restore_table(statement.session, statement.handle, version, ["note"])
    table(store).update_schema().add_column("other", StringType()).commit()
    assert "its columns were altered" in refused(statement)
    assert [len(row) for row in contents(store)] == [5, 5, 5]


def test_undoing_the_first_rows_of_a_table_removes_the_column_too(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    statement = evolving(store)
    statement.stage([(1, None, 1, "new", "x", "b")])
    statement.finish()
    statement.commit()
    statement = Statement(store)
    statement.metadata.restore_table(statement.session, statement.handle, None, ["note"])
    statement.commit()
    assert contents(store) == []
    assert [field.name for field in Statement(store).handle.fields] == ["id", "v", "p"]


def test_a_handle_with_new_columns_reads_them_as_null_and_changes_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path)
    statement = evolving(store)
    assert [row["note"] for row in statement.rows()] == [None, None]
    assert (
        statement.metadata.get_table_metadata(statement.session, statement.handle).columns[-1].type
        == VARCHAR
    )
    statement.rollback()
    assert Statement(store, NAME).metadata.evolves_tables
    assert contents(store) == by_pyiceberg(store) == [(1, "a", "x"), (2, "a", "x")]
