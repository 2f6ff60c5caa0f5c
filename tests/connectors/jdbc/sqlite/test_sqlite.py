"""Features specific to SQLite: declared types, misfits, files, locks, rowids."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import RowMergeError, SetupError, SqliteConnector
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.jdbc.sqlite import sqlite_store as store
from rowmerge_nb.connectors.jdbc.sqlite import sqlite_transaction as sqlite
from rowmerge_nb.spi import ConnectorTableMetadata, Constraint, SchemaTableName
from tests.connectors.jdbc.support import SESSION, Database, Statement, merge
from tests.connectors.jdbc.test_calls import content, create, insert


def refused(call: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        call()
    return caught.value


def opened(path: Any, **more: Any) -> Any:
    connector = SqliteConnector(path, **more)
    try:
        return connector.get_metadata(connector.begin_transaction()).list_tables(SESSION)
    finally:
        connector.close()


@pytest.mark.parametrize(
    ("declared", "value", "shown"),
    [
        ("int", "'abc'", "'abc' (text), which is no integer"),
        ("int", "3000000000", "3000000000 (integer), which is no integer"),
        ("tinyint", "200", "200 (integer), which is no tinyint"),
        ("boolean", "2", "2 (integer), which is no boolean"),
        ("double", "'x'", "'x' (text), which is no double"),
        ("numeric", "9007199254740993", "9007199254740993 (integer), which is no double"),
        ("float4", "1e300", "1.0e+300 (real), which is no real"),
        ("varchar(3)", "'long'", "'long' (text), which is no varchar(3)"),
        ("text", "x'00'", "X'00' (blob), which is no varchar"),
        ("blob", "'t'", "'t' (text), which is no varbinary"),
        ("decimal(5,1)", "1.25", "1.25 (real), which is no decimal(5,1)"),
        ("decimal(3,0)", "12345", "no decimal(3,0)"),
        ("date", "20240101", "20240101 (integer), which is no date"),
        ("date", "'tomorrow'", "'tomorrow' (text), which is no date, in the row with rowid 2"),
        ("timestamp", "'noon'", "no timestamp(6)"),
        ("time", "'25:00:00'", "'25:00:00' (text), which is no time(6), in the row with rowid 2"),
    ],
)
def test_a_value_that_its_declared_type_does_not_have_is_named(
    lite: Database, declared: str, value: str, shown: str
) -> None:
    lite.sql(
        f'CREATE TABLE t (id int PRIMARY KEY, "Odd One" {declared})',
        f"INSERT INTO t VALUES (1, NULL), (2, {value})",
    )
    statement = Statement(lite, "t")
    error = refused(statement.read)
    assert error.code == "JDBC_ERROR"
    assert "Column 'Odd One' of SQLite table 'main.t' is declared" in error.message
    assert shown in error.message
    assert statement.read("id").num_rows == 2, "columns that are not read are not looked at"
    statement.rollback()


@pytest.mark.parametrize("declared", ["", "geometry", "decimal(50,2)", "timestamp(9)", "string"])
def test_a_declared_type_without_a_counterpart_is_named(lite: Database, declared: str) -> None:
    lite.sql(f"CREATE TABLE t (id int PRIMARY KEY, shape {declared})")
    error = refused(lambda: Statement(lite, "t"))
    assert error.code == "NOT_SUPPORTED"
    assert "Column 'shape' of SQLite table 'main.t'" in error.message
    assert declared in error.message


def test_numbers_that_sqlite_would_change_are_refused_before_they_are_written(
    lite: Database,
) -> None:
    lite.sql("CREATE TABLE t (id int PRIMARY KEY, price decimal(20,2), x double)")
    wide = pa.table(
        {"id": [1], "price": pa.array([12345678901234567], pa.decimal128(20, 2)), "x": [1.0]}
    )
    error = refused(lambda: insert(lite, "t", wide))
    assert error.code == "NUMERIC_VALUE_OUT_OF_RANGE"
    assert "12345678901234567.00 of column 'price'" in error.message
    assert "decimal_text(20,2)" in str(error.hint)
    narrow = pa.table(
        {"id": [1], "price": pa.array([1234567890123], pa.decimal128(20, 2)), "x": [1.0]}
    )
    insert(lite, "t", narrow)
    assert Statement(lite, "t").read("price").to_pylist() == narrow.select(["price"]).to_pylist()
    assert (
        "NaN"
        in refused(
            lambda: insert(lite, "t", narrow.set_column(2, "x", pa.array([float("nan")])))
        ).message
    )


def test_the_first_rows_do_not_determine_the_types_of_later_ones(lite: Database) -> None:
    lite.sql("CREATE TABLE t (id int PRIMARY KEY, note text, price decimal(6,2), d double)")
    with sqlite3.connect(lite.connector.store.path) as other:  # type: ignore[attr-defined]
        other.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?)", [(i, None, None, None) for i in range(40_000)]
        )
        other.execute("INSERT INTO t VALUES (40000, 'late', 1.25, 2)")
    other.close()
    last = Statement(lite, "t").read().to_pylist()[-1]
    assert (last["note"], str(last["price"]), last["d"]) == ("late", "1.25", 2.0)


def test_large_tables_are_read_in_ranges_of_rowids(lite: Database, monkeypatch: Any) -> None:
    monkeypatch.setattr(sqlite, "SPLIT_ROWS", 1_000)
    monkeypatch.setattr(sqlite, "SMALL_ROWS", 10)
    lite.sql(
        "CREATE TABLE t (id text PRIMARY KEY)", "CREATE TABLE w (id int PRIMARY KEY) WITHOUT ROWID"
    )
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4500)"
    lite.sql(
        f"{numbers} INSERT INTO t SELECT 'k' || i FROM n",
        f"{numbers} INSERT INTO w SELECT i FROM n",
    )
    lite.sql("DELETE FROM t WHERE rowid % 7 = 0")
    statement = Statement(lite, "t")
    splits = lite.connector.get_split_manager().get_splits(
        statement.transaction, SESSION, statement.handle, Constraint()
    )
    assert len(splits) == 4
    assert not any(split.carries_rows for split in splits)
    keys = statement.read().column(0).to_pylist()
    assert len(keys) == len(set(keys)) == 4500 - 4500 // 7
    assert Statement(lite, "w").read().num_rows == 4500


def test_a_lone_integer_key_is_numbered_by_sqlite(lite: Database) -> None:
    lite.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, v text)", "INSERT INTO t VALUES (41, 'a')")
    assert Statement(lite, "t").handle.metadata.columns[0].nullable
    merge(lite, "t", [(None, "b", 1, None)])
    assert lite.rows("SELECT * FROM t ORDER BY 1") == [(41, "a"), (42, "b")]


def test_null_keys_cannot_be_distinguished(lite: Database) -> None:
    lite.sql("CREATE TABLE t (id text PRIMARY KEY)", "INSERT INTO t VALUES (NULL), (NULL)")
    statement = Statement(lite, "t")
    assert statement.read().num_rows == 2
    assert "the primary key" in refused(lambda: statement.read(row_id=True)).message
    statement.rollback()


def test_keys_are_found_as_they_are_stored(lite: Database) -> None:
    lite.sql(
        "CREATE TABLE t (day timestamp PRIMARY KEY, v int)",
        "INSERT INTO t VALUES ('2024-01-02T03:04:05', 1), ('2024-01-03', 2)",
    )
    merge(lite, "t", [(None, 5, 2, "2024-01-02T03:04:05")])
    assert lite.rows("SELECT * FROM t") == [("2024-01-03", 2)]


def test_a_key_with_more_digits_than_its_row_id_matches_no_other_row(lite: Database) -> None:
    lite.sql(
        "CREATE TABLE t (id decimal(18,0) PRIMARY KEY, v int)",
        "INSERT INTO t VALUES (9007199254740992, 1), (9007199254740993, 2)",
    )
    error = refused(lambda: Statement(lite, "t").read(row_id=True))
    assert error.code == "JDBC_ERROR"
    assert "9007199254740993" in error.message
    assert Statement(lite, "t").read("v").num_rows == 2


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_lock_of_another_program_is_reported_after_a_timeout(
    lite: Database, monkeypatch: Any, mode: str
) -> None:
    monkeypatch.setattr(store, "BUSY_MILLISECONDS", 200)
    lite.sql(
        f"PRAGMA journal_mode = {mode}",
        "CREATE TABLE t (id int PRIMARY KEY)",
        "INSERT INTO t VALUES (1)",
    )
    # Not by Python's sqlite3: two SQLite libraries in one process do not see each other's locks.
    other = lite.session()
    other.execute("BEGIN IMMEDIATE")
    error = refused(lambda: merge(lite, "t", [(2, 3, 1)]))
    other.close()
    assert error.code == "TRANSACTION_CONFLICT"
    assert "is locked by another connection" in error.message
    merge(lite, "t", [(2, 3, 1)])
    assert lite.rows("SELECT * FROM t") == [(2,)]


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        ("n" * 300, "JDBC_ERROR", "Correct the path."),
        ("a\0b", "INVALID_ARGUMENTS", "Give another path."),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_an_impossible_path_is_reported(
    tmp_path: Path, name: str, code: str, hint: str, create: bool
) -> None:
    error = refused(lambda: opened(tmp_path / name, create=create))
    assert (error.code, error.hint) == (code, hint)


def test_missing_files_and_files_that_are_not_databases_are_reported(tmp_path: Path) -> None:
    assert "there is no directory" in refused(lambda: opened(tmp_path / "no" / "x.db")).message
    missing = refused(lambda: opened(tmp_path / "x.db"))
    assert "there is no such file" in missing.message
    assert "create=True" in str(missing.hint)
    assert not (tmp_path / "x.db").exists()
    assert opened(tmp_path / "x.db", create=True) == []
    assert (tmp_path / "x.db").exists()
    again = Database("sqlite", SqliteConnector(tmp_path / "x.db", create=True), "main")
    create(again, "t", {"id": "bigint"})
    assert opened(tmp_path / "x.db") == [again.name("t")]
    (tmp_path / "text.db").write_text("this is not a database, whatever its name says " * 30)
    wrong = refused(lambda: opened(tmp_path / "text.db"))
    assert "file is not a database" in wrong.message
    assert str(tmp_path / "text.db") in wrong.message
    assert "several processes" in refused(lambda: SqliteConnector(":memory:")).message


def test_a_file_that_may_not_be_written_is_read_and_not_changed(
    lite: Database, monkeypatch: Any
) -> None:
    lite.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    statement = Statement(lite, "t")
    assert statement.read().num_rows == 1
    error = refused(lambda: merge(lite, "t", [(2, 3, 1)]))
    assert error.code == "PERMISSION_DENIED"
    assert "is read-only" in error.message
    assert refused(lambda: create(lite, "u", {"id": "bigint"})).code == "PERMISSION_DENIED"
    statement.rollback()


def test_the_only_schema_is_main(lite: Database) -> None:
    transaction = lite.connector.begin_transaction()
    metadata = lite.connector.get_metadata(transaction)
    assert metadata.list_schemas(SESSION) == ["main"]
    assert not metadata.schema_exists(SESSION, "other")
    columns = Statement(lite_with_table(lite), "t").handle.metadata.columns
    error = refused(
        lambda: metadata.create_table(
            SESSION, ConnectorTableMetadata(SchemaTableName("other", "t"), columns)
        )
    )
    assert error.code == "SCHEMA_NOT_FOUND"


def lite_with_table(lite: Database) -> Database:
    lite.sql("CREATE TABLE t (id int PRIMARY KEY)")
    return lite


def test_a_missing_driver_is_reported_with_the_command(lite: Database, monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_sqlite", None)
    with pytest.raises(SetupError) as caught:
        opened(lite.connector.store.path)  # type: ignore[attr-defined]
    assert caught.value.hint == f"Run: {install_command('sqlite')}"


def test_a_column_renamed_meanwhile_is_reported_and_its_name_is_not_read_as_text(
    lite: Database,
) -> None:
    lite.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, note varchar)",
        "INSERT INTO shelf VALUES (1, 'a')",
    )
    statement = Statement(lite, "shelf")
    lite.sql("ALTER TABLE shelf RENAME COLUMN note TO remark")
    with pytest.raises(RowMergeError) as caught:
        statement.read()
    statement.rollback()
    assert caught.value.code == "COLUMN_NOT_FOUND"
    assert "no such column: note" in caught.value.message
    assert caught.value.hint == "Run the statement again."


@pytest.mark.parametrize("resolution", ["REPLACE", "IGNORE"])
def test_a_table_with_replace_or_ignore_on_repeated_keys_keeps_all_rows(
    lite: Database, resolution: str
) -> None:
    unique = f"UNIQUE ON\n conflict {resolution}"
    lite.sql(
        f"CREATE TABLE shelf (sku INTEGER PRIMARY KEY, place INTEGER {unique})",
        "INSERT INTO shelf VALUES (1, 10), (2, 20)",
    )
    for change in ((2, 10, 3, 2), (3, 10, 1, None)):
        with pytest.raises(
            RowMergeError, match=r"CONSTRAINT_VIOLATION: .*UNIQUE constraint failed: shelf\.place"
        ):
            merge(lite, "shelf", [change])
        assert content(lite) == [(1, 10), (2, 20)]
    merge(lite, "shelf", [(1, 20, 3, 1), (2, 10, 3, 2)])
    assert content(lite) == [(1, 20), (2, 10)], "places may be exchanged"


def test_a_refusal_by_a_trigger_is_reported_with_a_next_step(lite: Database) -> None:
    lite.sql(
        "CREATE TABLE shelf (sku INTEGER PRIMARY KEY, note TEXT)",
        "CREATE TRIGGER guard BEFORE INSERT ON shelf BEGIN SELECT RAISE(ABORT, 'no inserts'); END",
    )
    with pytest.raises(
        RowMergeError,
        match=r"JDBC_ERROR: .* failed: no inserts\. Change what the message refers to",
    ):
        merge(lite, "shelf", [(1, "a", 1, None)])
    assert content(lite) == []
