"""Snapshots of Iceberg tables: read in their former state, and made current again."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import IntegerType, StringType

from rowmerge_nb import IcebergConnector, RowMergeError
from rowmerge_nb.spi import ConnectorTableVersion, PointerType, parse_type
from tests.connectors.iceberg.kit import (
    NAME,
    Statement,
    by_pyiceberg,
    contents,
    delete,
    files,
    insert,
    make_table,
    rows,
    table,
)

NOTHING = (None, None, None)


def head(store: IcebergConnector) -> int:
    return int(table(store).current_snapshot().snapshot_id)


def read(
    store: IcebergConnector, version: Any, kind: str | None = None, *, temporal: bool = False
) -> list[tuple[Any, ...]]:
    statement = reading(store, version, kind, temporal=temporal)
    found = sorted((tuple(row.values()) for row in statement.rows()), key=repr)
    statement.rollback()
    return found


def reading(
    store: IcebergConnector, version: Any, kind: str | None = None, *, temporal: bool = False
) -> Statement:
    statement = Statement(store)
    pointer = PointerType.TEMPORAL if temporal else PointerType.TARGET_ID
    wanted = ConnectorTableVersion(version, pointer, None if kind is None else parse_type(kind))
    try:
        statement.handle = statement.metadata.get_versioned_table_handle(
            statement.session, NAME, wanted
        )
    except BaseException:
        statement.rollback()
        raise
    return statement


def restoring(store: IcebergConnector, version: int | None) -> Statement:
    statement = Statement(store)
    wanted = None if version is None else ConnectorTableVersion(version)
    statement.metadata.restore_table(statement.session, statement.handle, wanted)
    return statement


def refused(statement: Statement) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        statement.commit()
    statement.rollback()
    return caught.value


@pytest.fixture
def store(tmp_path: Path) -> IcebergConnector:
    """A table of two snapshots: (1, 2), and (2, 3) with a delete file."""
    made = make_table(tmp_path)
    insert(made, rows(1, 2))
    made.first = head(made)  # type: ignore[attr-defined]
    time.sleep(0.002)
    delete(made, 1)
    insert(made, rows(3))
    return made


def test_a_snapshot_is_read_by_its_id_by_a_tag_and_by_a_branch(store: Any) -> None:
    table(store).manage_snapshots().create_tag(store.first, "begin").create_branch(
        store.first, "Old"
    ).commit()
    expected = [(1, "a", "x"), (2, "a", "x")]
    assert read(store, store.first) == read(store, store.first, "bigint") == expected
    assert read(store, "begin") == read(store, "Old", "varchar(3)") == expected
    assert read(store, "main") == contents(store) == [(2, "a", "x"), (3, "a", "x")]


@pytest.mark.parametrize(
    ("version", "kind", "code", "message", "hint"),
    [
        (
            77,
            "bigint",
            "INVALID_ARGUMENTS",
            "Iceberg snapshot ID does not exists: 77",
            "The newest snapshots of 'default.t' are: ",
        ),
        (
            "mian",
            "varchar(4)",
            "INVALID_ARGUMENTS",
            "Cannot find snapshot with reference name: mian",
            "Did you mean 'main'?",
        ),
        (
            "MAIN",
            None,
            "INVALID_ARGUMENTS",
            "Cannot find snapshot with reference name: MAIN",
            "There are: main.",
        ),
        (
            77,
            "integer",
            "NOT_SUPPORTED",
            "Unsupported type for table version: integer",
            "Write the id of a snapshot",
        ),
    ],
)
def test_a_version_without_a_snapshot_is_reported_in_trinos_words(
    store: Any, version: Any, kind: str | None, code: str, message: str, hint: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        read(store, version, kind)
    assert (caught.value.code, caught.value.message) == (code, message)
    assert (caught.value.hint or "").startswith(hint)


def test_a_moment_is_looked_up_in_the_log(store: Any) -> None:
    made, first = (entry.timestamp_ms for entry in table(store).history()[:2])
    at = dt.datetime.fromtimestamp(first / 1000, dt.UTC)
    assert read(store, at, temporal=True) == [(1, "a", "x"), (2, "a", "x")]
    assert read(store, at.replace(tzinfo=None), temporal=True) == [(1, "a", "x"), (2, "a", "x")]
    assert read(store, dt.datetime.now(dt.UTC), temporal=True) == contents(store)
    with pytest.raises(
        RowMergeError,
        match=r"INVALID_ARGUMENTS: No version history table default[.]t at or before .*Z",
    ) as caught:
        read(store, dt.datetime.fromtimestamp((made - 1) / 1000, dt.UTC), temporal=True)
    assert (caught.value.hint or "").startswith("Its history begins at ")


def test_a_restored_snapshot_is_found_at_the_moments_when_it_was_current(
    store: Any,
) -> None:
    second = dt.datetime.fromtimestamp(table(store).history()[-1].timestamp_ms / 1000, dt.UTC)
    time.sleep(0.002)
    restoring(store, store.first).commit()
    time.sleep(0.002)
    assert read(store, dt.datetime.now(dt.UTC), temporal=True) == [(1, "a", "x"), (2, "a", "x")]
    assert read(store, second, temporal=True) == [(2, "a", "x"), (3, "a", "x")]


def test_a_snapshot_has_the_columns_of_its_time(store: Any) -> None:
    with table(store).update_schema() as update:
        update.rename_column("v", "w").delete_column("p").add_column("n", IntegerType())
    assert [set(row) for row in Statement(store).rows()] == [{"id", "w", "n"}] * 2
    statement = reading(store, store.first)
    assert [
        column.name
        for column in statement.metadata.get_table_metadata(
            statement.session, statement.handle
        ).columns
    ] == [
        "id",
        "v",
        "p",
    ]
    assert sorted(statement.rows(), key=repr) == [
        {"id": 1, "v": "a", "p": "x"},
        {"id": 2, "v": "a", "p": "x"},
    ]
    statement.rollback()


def test_a_snapshot_of_a_partitioned_table_is_read_after_a_change_of_the_partitioning(
    tmp_path: Path,
) -> None:
    made = make_table(tmp_path, partitioning=("p",))
    insert(made, rows(1, 2))
    first = head(made)
    insert(made, rows(3, p="y"))
    with table(made).update_spec() as spec:
        spec.remove_field("p")
    with table(made).update_schema() as update:
        update.add_column("late", StringType())
    with table(made).update_spec() as spec:
        spec.add_identity("late")
    assert read(made, first) == [(1, "a", "x"), (2, "a", "x")]


def test_two_snapshots_are_read_in_one_transaction(store: Any) -> None:
    statement = reading(store, store.first)
    former = statement.rows()
    statement.handle = statement.metadata.get_table_handle(statement.session, NAME)
    assert [sorted(row["id"] for row in found) for found in (former, statement.rows())] == [
        [1, 2],
        [2, 3],
    ]
    statement.rollback()


def test_a_former_snapshot_that_a_statement_reads_does_not_cause_a_conflict(store: Any) -> None:
    statement = Statement(store)
    present = statement.handle
    statement.begin_merge()
    known = statement.ids()
    statement.handle = statement.metadata.get_versioned_table_handle(
        statement.session, NAME, ConnectorTableVersion(store.first)
    )
    statement.rows()
    statement.handle = present
    statement.stage([(2, known[2], *NOTHING)])
    statement.finish()
    assert len(statement.metadata._transaction.loaded(present).scans) == 1
    statement.commit()
    assert contents(store) == [(3, "a", "x")]


# -- restoring


def test_a_former_snapshot_becomes_current_and_no_snapshot_is_lost(store: Any) -> None:
    last, log = head(store), len(table(store).history())
    version = store.commit(restoring(store, store.first).transaction)
    assert version == ConnectorTableVersion(store.first)
    assert contents(store) == by_pyiceberg(store) == [(1, "a", "x"), (2, "a", "x")]
    assert len(table(store).history()) == log + 1
    assert read(store, last) == [(2, "a", "x"), (3, "a", "x")]
    restoring(store, last).commit()
    assert contents(store) == by_pyiceberg(store) == [(2, "a", "x"), (3, "a", "x")]


def test_nothing_is_restored_before_the_commit_or_after_a_rollback(store: Any) -> None:
    before = contents(store), head(store)
    statement = restoring(store, store.first)
    assert (contents(store), head(store)) == before
    statement.rollback()
    assert (contents(store), head(store)) == before


def test_the_time_before_the_first_snapshot_is_a_snapshot_without_rows(store: Any) -> None:
    last = head(store)
    restoring(store, None).commit()
    assert contents(store) == by_pyiceberg(store) == []
    assert table(store).current_snapshot().parent_snapshot_id == last
    insert(store, rows(9))
    assert contents(store) == [(9, "a", "x")]


@pytest.mark.parametrize("first", [True, False])
def test_a_commit_of_another_session_is_a_conflict(store: Any, first: bool) -> None:
    statement = restoring(store, store.first if first else None)
    insert(store, rows(4))
    listed = set(files(store))
    error = refused(statement)
    assert error.code == "TRANSACTION_CONFLICT"
    assert "was changed while the statement ran: snapshot" in error.message
    assert contents(store) == [(2, "a", "x"), (3, "a", "x"), (4, "a", "x")]
    assert set(files(store)) == listed


@pytest.mark.parametrize("first", [True, False])
def test_a_commit_of_another_session_at_the_last_moment_is_a_conflict(
    store: Any, first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog itself compares: the faster one wins, and nothing is retried on top of it."""
    statement = restoring(store, store.first if first else None)
    ask = statement.metadata._transaction.ask

    def asked() -> None:
        monkeypatch.setattr(statement.metadata._transaction, "ask", ask)
        insert(store, rows(4))
        ask()

    monkeypatch.setattr(statement.metadata._transaction, "ask", asked)
    # The action has bound the method by the transaction's attribute, which it looks up at its end.
    assert refused(statement).code == "TRANSACTION_CONFLICT"
    assert contents(store) == [(2, "a", "x"), (3, "a", "x"), (4, "a", "x")]


def test_a_recreated_table_is_another_table(store: Any) -> None:
    statement = restoring(store, store.first)
    store.catalog.drop_table(("default", "t"))
    make = Statement(store)
    assert make.handle is None
    make.rollback()
    assert refused(statement).code == "TRANSACTION_CONFLICT"


def test_a_missing_snapshot_cannot_be_restored(store: Any) -> None:
    with pytest.raises(
        RowMergeError, match="INVALID_ARGUMENTS: Iceberg snapshot ID does not exists: 5"
    ):
        restoring(store, 5)


def test_a_statement_that_read_a_table_restored_meanwhile_is_refused(store: Any) -> None:
    """Row 1 was deleted when it was read and is restored now, which no file read before shows."""
    statement = Statement(store)
    statement.begin_merge()
    assert 1 not in statement.ids()
    statement.stage([(1, None, 1, "again", "x")])
    statement.finish()
    restoring(store, store.first).commit()
    error = refused(statement)
    assert error.code == "TRANSACTION_CONFLICT"
    assert "it was rolled back to an earlier snapshot" in error.message
    assert contents(store) == [(1, "a", "x"), (2, "a", "x")]


def test_a_commit_with_a_lost_answer_is_looked_up_in_the_log(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = type(store.catalog).commit_table

    def lost(self: Any, *arguments: Any) -> Any:
        monkeypatch.setattr(type(store.catalog), "commit_table", commit)
        commit(self, *arguments)
        msg = "the connection was reset"
        raise OSError(msg)

    monkeypatch.setattr(type(store.catalog), "commit_table", lost)
    restoring(store, store.first).commit()
    assert contents(store) == [(1, "a", "x"), (2, "a", "x")]
