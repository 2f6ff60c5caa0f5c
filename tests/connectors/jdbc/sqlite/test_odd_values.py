"""Invalid values of a column's declared type stop only the statements that read the column."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rowmerge_nb import Engine, RowMergeError, SqliteConnector

ODD = {
    "int": "'abc'",
    "smallint": "70000",
    "text": "CAST(x'ff41' AS TEXT)",
    "varchar(3)": "x'00ff'",
    "date": "'soon'",
    "timestamp": "'2024-13-45'",
    "decimal(5, 1)": "1.25",
    "double": "'inf'",
    "boolean": "2",
    "time": "'25:00'",
}
"""An invalid value in SQL for each declared type."""


@pytest.fixture
def engine(spark: SparkSession) -> Any:
    made = Engine(spark=spark, catalog="lite", schema="main")
    yield made
    made.close()


def columns() -> str:
    return ", ".join(
        f"o{index} {declared}{' NOT NULL' if index % 2 else ''}"
        for index, declared in enumerate(ODD)
    )


def stored(path: Path) -> list[tuple[Any, ...]]:
    """Return the rows as SQLite itself stores them: bytes and storage class of every value."""
    names = [f"o{index}" for index in range(len(ODD))]
    with closing(sqlite3.connect(path)) as connection, connection:
        shown = ", ".join(f"hex(CAST({name} AS BLOB)) || typeof({name})" for name in names)
        return connection.execute(f"SELECT id, a, {shown} FROM t ORDER BY id").fetchall()


@pytest.fixture
def path(engine: Engine, tmp_path: Path) -> Path:
    """Create a table of three rows; the second has an odd value in every column but the first two."""
    made = tmp_path / "odd.db"
    good = "1, 1, 'x', 'y', '2024-01-01', '2024-01-01 10:00', 1.5, 2.5, 1, '10:00'"
    with closing(sqlite3.connect(made)) as connection, connection:
        connection.execute(f"CREATE TABLE t (id integer PRIMARY KEY, a int, {columns()})")
        connection.execute(
            f"INSERT INTO t VALUES (1, 10, {good}), (2, 20, {', '.join(ODD.values())}), (3, 30, {good})"
        )
    engine.add_catalog("lite", SqliteConnector(made))
    return made


@pytest.mark.parametrize("era", ["current", "documents"])
def test_statements_that_do_not_name_odd_columns_work_and_leave_them_byte_for_byte(
    engine: Engine, path: Path, era: str
) -> None:
    before = stored(path)
    assert engine.run("SELECT count(*) AS n FROM t", era=era).to_pandas()["n"].tolist() == [3]
    assert sorted(engine.run("SELECT id, a FROM t", era=era).to_pandas()["a"]) == [10, 20, 30]
    told = engine.run("UPDATE t SET a = a + 1", era=era)
    assert any("Reports show NULL in their place" in str(notice) for notice in told.trace.notices)
    engine.run(
        "MERGE INTO t USING (VALUES (2, 7), (3, 8)) AS s (i, n) ON t.id = s.i WHEN MATCHED AND s.n = 8 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET a = n",
        era=era,
    )
    engine.run("UPDATE t SET a = 0 WHERE id = 1", era=era)
    expected = [(row[0], a, *row[2:]) for row, a in zip(before[:2], (0, 7), strict=True)]
    assert stored(path) == expected
    assert engine.run("DELETE FROM t WHERE id = 2", era=era).count == 1


@pytest.mark.parametrize("index", range(len(ODD)))
def test_a_statement_that_reads_an_odd_column_fails_with_column_row_and_value(
    engine: Engine, path: Path, index: int
) -> None:
    before = stored(path)
    for statement in (
        f"SELECT o{index} FROM t",
        f"SELECT id FROM t ORDER BY o{index}",
        f"UPDATE t SET a = 1 WHERE CAST(o{index} AS varchar) <> '~'",
        f"UPDATE t SET a = 1 RETURNING o{index}",
        f"MERGE INTO t USING (VALUES 2) AS s (i) ON t.id = s.i WHEN MATCHED AND t.o{index} IS NULL THEN DELETE",
    ):
        with pytest.raises(RowMergeError) as caught:
            engine.run(statement, dialect="extended")
        assert caught.value.code == "JDBC_ERROR", statement
        assert f"Column 'o{index}' of SQLite table 'main.t' is declared" in caught.value.message
        assert "rowid 2" in caught.value.message
        assert (caught.value.hint or "").startswith("Correct the value")
    assert stored(path) == before


def test_an_odd_value_can_be_replaced_without_reading_it(engine: Engine, path: Path) -> None:
    engine.run("UPDATE t SET o0 = 5, o4 = DATE '2024-02-03' WHERE id = 2")
    left = engine.run("SELECT o0, CAST(o4 AS varchar) AS d FROM t WHERE id = 2").to_pandas()
    assert left.values.tolist() == [[5, "2024-02-03"]]


def test_rows_do_not_move_if_an_odd_value_would_be_lost(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "moved.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (id integer PRIMARY KEY, a int UNIQUE, o int)")
        connection.execute("INSERT INTO t VALUES (1, 10, 'abc'), (2, 20, 5)")
    engine.add_catalog("lite", SqliteConnector(path))
    for era in ("current", "documents"):
        with pytest.raises(
            RowMergeError,
            match="column 'o' holds a value in one of them that its type does not allow",
        ):
            engine.run("UPDATE t SET a = 30 - a", era=era)
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("SELECT * FROM t").fetchall() == [(1, 10, "abc"), (2, 20, 5)]
