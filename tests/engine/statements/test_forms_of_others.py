"""Forms of DuckDB's and PostgreSQL's tests of MERGE, run in both engines: equal rows, or the reason for other rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from rowmerge_nb import Engine, RowMergeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rowmerge_nb.connectors.jdbc.database import DatabaseSession

pytestmark = [pytest.mark.spark, pytest.mark.local_inserts]

_PROPERTIES = " WITH (primary_key = ARRAY['a'])"
SETUP = (
    "CREATE TABLE t (a integer{key}, b integer DEFAULT 7, c integer){properties}",
    "CREATE TABLE s (b integer, a integer, c integer)",
    "CREATE TABLE u (a integer, b integer, d integer)",
    "INSERT INTO t VALUES (1, 10, 100), (2, 20, 200), (5, 50, NULL)",
    "INSERT INTO s VALUES (11, 1, 111), (33, 3, 333), (55, 5, 555)",
    "INSERT INTO u VALUES (1, 0, 4), (2, 1, 5)",
)
ON = "MERGE INTO t USING s ON t.a = s.a "
BOTH = {
    "qualified columns": "UPDATE t SET b = t.b + 1 WHERE t.a > 1",
    "alias of update": "UPDATE t AS x SET b = x.b + 1 WHERE x.a > 1",
    "alias of delete": "DELETE FROM t AS x WHERE x.a > 1",
    "update from": "UPDATE t SET b = s.b, c = t.c + s.c FROM s WHERE t.a = s.a",
    "update from two": "UPDATE t SET b = s.b + u.d FROM s, u WHERE t.a = s.a AND u.a = t.a",
    "update from a join": "UPDATE t SET b = u.d FROM s JOIN u ON s.a = u.a WHERE t.a = s.a",
    "update from a query": "UPDATE t SET b = q.n FROM (SELECT a, max(b) AS n FROM s GROUP BY a) q WHERE t.a = q.a",
    "delete using": "DELETE FROM t USING s WHERE t.a = s.a AND s.b > 20",
    "list of columns": "UPDATE t SET (b, c) = (c, b)",
    "defaults": "INSERT INTO t VALUES (8, DEFAULT, 1), (9, 2, DEFAULT)",
    "default in update": "UPDATE t SET b = DEFAULT WHERE a = 1",
    "default values": "INSERT INTO u DEFAULT VALUES",
    "with before insert": "WITH q AS (SELECT a + 10 AS a FROM s) INSERT INTO t (a) SELECT a FROM q",
    "with before update": "WITH q AS (SELECT a FROM s) UPDATE t SET b = 0 WHERE a IN (SELECT a FROM q)",
    "with before delete": "WITH q AS (SELECT a FROM s) DELETE FROM t WHERE a IN (SELECT a FROM q)",
    "with before merge": "WITH q AS (SELECT * FROM s WHERE b > 20) MERGE INTO t USING q ON t.a = q.a WHEN MATCHED THEN DELETE",
    "conflict, nothing": "INSERT INTO t VALUES (1, 1, 1), (4, 4, 4) ON CONFLICT (a) DO NOTHING",
    "conflict, nothing, twice": "INSERT INTO t VALUES (4, 4, 4), (4, 5, 5) ON CONFLICT (a) DO NOTHING",
    "conflict, update": "INSERT INTO t VALUES (1, 1, 1), (4, 4, 4) ON CONFLICT (a) DO UPDATE SET b = excluded.b + t.b",
    "conflict, where": "INSERT INTO t VALUES (1, 1, 1), (2, 4, 4) ON CONFLICT (a) DO UPDATE SET b = excluded.b WHERE t.b < 15",
    "conflict, query": "INSERT INTO t SELECT a, b, c FROM s ON CONFLICT (a) DO UPDATE SET c = excluded.c",
    "conflict, nothing, no columns": "INSERT INTO t VALUES (1, 1, 1), (4, 4, 4) ON CONFLICT DO NOTHING",
    "merge, do nothing": ON
    + "WHEN MATCHED AND s.a = 1 THEN DO NOTHING WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b, s.c)",
    "merge, default": ON
    + "WHEN MATCHED THEN UPDATE SET b = DEFAULT WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a, DEFAULT)",
    "merge, list": ON + "WHEN MATCHED THEN UPDATE SET (b, c) = (s.c, s.b)",
    "merge, without insert": ON + "WHEN MATCHED AND s.b > 20 THEN UPDATE SET c = t.c + s.c",
    "merge, conditions in order": ON
    + "WHEN MATCHED AND t.b > 100 THEN DELETE WHEN MATCHED AND t.c IS NULL THEN UPDATE SET c = 0 "
    "WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED AND s.b > 1000 THEN INSERT VALUES (s.a, 0, 0) "
    "WHEN NOT MATCHED THEN INSERT (a, c) VALUES (s.a, s.c)",
    "merge, values": "MERGE INTO t USING (VALUES (1, 5), (9, 6)) q (a, b) ON t.a = q.a "
    "WHEN MATCHED THEN UPDATE SET b = t.b + q.b WHEN NOT MATCHED THEN INSERT (a, b) VALUES (q.a, q.b)",
    "merge, never": "MERGE INTO t USING s ON false WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a + 100, s.b)",
    "merge, join": "MERGE INTO t USING (SELECT s.a, u.d FROM s LEFT JOIN u ON s.a = u.a) q ON t.a = q.a "
    "WHEN MATCHED AND q.d IS NOT NULL THEN UPDATE SET c = q.d WHEN MATCHED THEN DELETE",
    "merge, the target as source": "MERGE INTO t USING t AS o ON t.a = o.a WHEN MATCHED AND o.b > 15 THEN UPDATE SET b = o.b + t.b",
    "merge, more than the key": "MERGE INTO t USING s ON t.a = s.a AND t.b < 30 WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED AND s.a = 3 THEN INSERT (a) VALUES (s.a)",
    "merge, a NULL key": "MERGE INTO u USING (SELECT CAST(NULL AS integer) AS a) q ON u.a = q.a "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (a, d) VALUES (q.a, 1)",
    "merge, aliases": "MERGE INTO t AS x USING s AS y ON x.a = y.a WHEN MATCHED THEN UPDATE SET b = x.b + y.b",
    "merge, other order": ON + "WHEN NOT MATCHED THEN INSERT (c, a) VALUES (s.b * 2 + 1, s.a)",
    "merge, inequality": "MERGE INTO u USING (SELECT max(a) AS m FROM s) q ON u.a < q.m WHEN MATCHED THEN UPDATE SET d = q.m",
    "merge, nothing to insert": ON
    + "WHEN NOT MATCHED THEN DO NOTHING WHEN MATCHED THEN UPDATE SET c = 1",
}
DUCKDB = {
    **BOTH,
    "or replace": "INSERT OR REPLACE INTO t VALUES (1, 1, 1), (4, 4, NULL)",
    "or replace, query": "INSERT OR REPLACE INTO t SELECT a, b, c FROM s",
    "or ignore": "INSERT OR IGNORE INTO t VALUES (1, 1, 1), (4, 4, 4), (4, 5, 5)",
    "conflict, update, no columns": "INSERT INTO t VALUES (1, 1, 1), (4, 4, 4) ON CONFLICT DO UPDATE SET b = excluded.b + t.b",
    "insert by name": "INSERT INTO t BY NAME SELECT c, a + 10 AS a FROM s",
    "or replace, by name": "INSERT OR REPLACE INTO t BY NAME SELECT c, b, a FROM s",
    "insert by position": "INSERT INTO t BY POSITION SELECT a + 10, b, c FROM s",
    "merge, action": ON + "WHEN MATCHED THEN DELETE RETURNING merge_action",
    "using columns": "MERGE INTO t USING s USING (a) WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)",
    "using two columns": "MERGE INTO u USING t USING (a, b) WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (a, b) VALUES (t.a, t.b)",
    "by position": "MERGE INTO t USING (SELECT a, b, c FROM s) s USING (a) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT",
    "positions, not names": ON + "WHEN MATCHED THEN UPDATE BY POSITION",
    "by name": ON + "WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME",
    "by name, fewer": "MERGE INTO t USING (SELECT a, c FROM s) s USING (a) WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME",
    "insert default values": "MERGE INTO u USING s ON u.a = s.a WHEN NOT MATCHED THEN INSERT DEFAULT VALUES",
    "by source": ON + "WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "by source, update": ON
    + "WHEN NOT MATCHED BY SOURCE AND t.a = 2 THEN UPDATE SET b = -1 WHEN MATCHED THEN DO NOTHING",
    "all three": ON
    + "WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED BY TARGET THEN INSERT (a) VALUES (s.a) "
    "WHEN NOT MATCHED BY SOURCE THEN DELETE",
    # DuckDB's * matches columns by position, this engine by name, like Delta.
    "stars": "MERGE INTO t USING (SELECT a, b, c FROM s) s USING (a) WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "merge, with": "WITH q AS (SELECT 1 AS a, 2 AS b) MERGE INTO t USING q USING (a) WHEN MATCHED THEN UPDATE SET b = q.b",
    "merge, returning": ON + "WHEN MATCHED THEN UPDATE SET b = s.b RETURNING merge_action, t.a",
    "by target": ON + "WHEN NOT MATCHED BY TARGET THEN INSERT (a) VALUES (s.a)",
    "error, not reached": ON
    + "WHEN MATCHED AND s.b > 1000 THEN ERROR 'no' WHEN MATCHED THEN DELETE",
}
POSTGRESQL = {
    **BOTH,
    "list from a query": "UPDATE t SET (b, c) = (SELECT s.b, s.c FROM s WHERE s.a = t.a)",
    "only": "UPDATE ONLY t SET b = 1",
    "delete from only": "DELETE FROM ONLY t AS x WHERE x.a = 1",
    "merge into only": "MERGE INTO ONLY t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "subqueries": ON
    + "WHEN MATCHED AND t.b > (SELECT avg(b) FROM s) THEN DELETE WHEN MATCHED THEN UPDATE SET c = (SELECT max(d) FROM u)",
    "list of a row": "UPDATE t SET (b, c) = ROW(c, b)",
}
SQLSERVER = {
    "alias of update": (
        "UPDATE x SET x.b = s.b FROM t AS x INNER JOIN s ON x.a = s.a WHERE s.b > 20",
        "UPDATE t SET b = s.b FROM s WHERE t.a = s.a AND s.b > 20",
    ),
    "the table itself": (
        "UPDATE t SET t.b = s.b + u.d FROM t JOIN s ON t.a = s.a JOIN u ON u.a = t.a OR u.d = 5",
        "UPDATE t SET b = s.b + u.d FROM s, u WHERE t.a = s.a AND u.d = 5",
        "DELETE FROM u WHERE d <> 5",
    ),
    "the target behind another join": (
        "UPDATE x SET c = u.d FROM s LEFT JOIN u ON s.a = u.a JOIN t x ON x.a = s.a",
        "UPDATE t SET c = u.d FROM s LEFT JOIN u ON s.a = u.a WHERE t.a = s.a",
    ),
    "alias alone": (
        "UPDATE x SET x.b = x.b + 1 FROM t AS x WHERE x.a > 1",
        "UPDATE t SET b = b + 1 WHERE a > 1",
    ),
    "alias of delete": (
        "DELETE x FROM t AS x JOIN s ON x.a = s.a WHERE s.b > 20",
        "DELETE FROM t USING s WHERE t.a = s.a AND s.b > 20",
    ),
    "two FROM": (
        "DELETE FROM x FROM t x, s WHERE x.a = s.a",
        "DELETE FROM t USING s WHERE t.a = s.a",
    ),
    "alias of delete alone": ("DELETE x FROM t x WHERE x.a > 1", "DELETE FROM t WHERE a > 1"),
}
"""Statements of SQL Server, their equivalents in DuckDB, and the setup of both."""
FAILS = {
    "error": ON + "WHEN MATCHED AND s.a = 5 THEN ERROR 'five'",
    "error without a message": ON + "WHEN NOT MATCHED THEN ERROR",
}
OTHERWISE = {
    "several matches": (
        "UPDATE t SET b = u.d FROM u",
        "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
        "DuckDB and PostgreSQL take one of the matching rows, and do not say which",
    ),
    "the same new key twice": (
        "INSERT INTO t VALUES (4, 4, 4), (4, 5, 5) ON CONFLICT (a) DO UPDATE SET b = excluded.b",
        "CONSTRAINT_VIOLATION",
        "PostgreSQL refuses it too; DuckDB keeps the first",
    ),
    "a new key that is replaced": (
        "REPLACE INTO t VALUES (4, 4, 4), (4, 5, 5)",
        "CONSTRAINT_VIOLATION",
        "SQLite keeps the last, DuckDB the first; rows of a query have no order",
    ),
    "an old key that is replaced twice": (
        "INSERT OR REPLACE INTO t VALUES (1, 4, 4), (1, 5, 5)",
        "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
        "as above",
    ),
    "no key": (
        "REPLACE INTO u VALUES (1, 2, 3)",
        "NOT_SUPPORTED",
        "DuckDB refuses it too; SQLite inserts",
    ),
    "no key, conflict": (
        "INSERT INTO u VALUES (1, 2, 3) ON CONFLICT DO NOTHING",
        "NOT_SUPPORTED",
        "DuckDB refuses it too",
    ),
    "a NULL in the key": (
        "REPLACE INTO t VALUES (NULL, 2, 3)",
        "CONSTRAINT_VIOLATION",
        "PostgreSQL and DuckDB refuse it too; SQLite takes it",
    ),
    "a name that is no column": (
        "INSERT INTO t BY NAME SELECT 1 AS a, 2 AS nope",
        "COLUMN_NOT_FOUND",
        "so does DuckDB",
    ),
    "a column without a name": (
        "INSERT INTO t BY NAME SELECT 1 AS a, 2 + 3",
        "COLUMN_NOT_FOUND",
        "so does DuckDB",
    ),
    "part of the columns": (
        "REPLACE INTO t VALUES (1, 2)",
        "TYPE_MISMATCH",
        "so does every engine",
    ),
    "a target row twice": (
        "MERGE INTO t USING (SELECT 1 AS a FROM s) q ON t.a = q.a WHEN MATCHED THEN UPDATE SET b = 0",
        "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
        "so does PostgreSQL; DuckDB takes one of them",
    ),
    "a column twice": (
        "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = 1, b = 2",
        "DUPLICATE_COLUMN_NAME",
        "so do DuckDB and PostgreSQL",
    ),
    "INSERT of matched rows": (
        "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN INSERT (a) VALUES (9)",
        "SYNTAX_ERROR",
        "PostgreSQL refuses it too; DuckDB inserts",
    ),
    "star except": (
        "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET * EXCEPT (b)",
        "SYNTAX_ERROR",
        "no other engine of the two has it",
    ),
    "duplicate key": (
        "INSERT INTO t VALUES (1, 2, 3) ON DUPLICATE KEY UPDATE b = 5",
        "SYNTAX_ERROR",
        "neither DuckDB nor PostgreSQL has it; the hint has the MERGE",
    ),
    "a change within WITH": (
        "WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x",
        "SYNTAX_ERROR",
        "PostgreSQL takes it; here one statement makes one commit",
    ),
    "both forms": (
        "INSERT OR REPLACE INTO t VALUES (1, 2, 3) ON CONFLICT DO NOTHING",
        "SYNTAX_ERROR",
        "so does DuckDB",
    ),
    "a constraint": (
        "INSERT INTO t VALUES (1, 2, 3) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING",
        "SYNTAX_ERROR",
        "tables have no names of constraints here",
    ),
    "a condition of the keys": (
        "INSERT INTO t VALUES (1, 2, 3) ON CONFLICT (a) WHERE b > 1 DO NOTHING",
        "SYNTAX_ERROR",
        "tables have no partial indexes here",
    ),
    "several conflicts": (
        "INSERT INTO t VALUES (1, 2, 3) ON CONFLICT (a) DO NOTHING ON CONFLICT (b) DO NOTHING",
        "SYNTAX_ERROR",
        "PostgreSQL and DuckDB refuse it too",
    ),
}


SQLITE = (
    "INSERT OR REPLACE INTO t (a, c) VALUES (1, 5), (6, 6)",
    "REPLACE INTO t SELECT a, b, c FROM s",
    "WITH q AS (SELECT a FROM s) REPLACE INTO t (a) SELECT a FROM q",
    "INSERT OR IGNORE INTO t VALUES (1, 1, 1), (4, 4, 4), (4, 4, 4)",
    "INSERT OR ABORT INTO t VALUES (4, 4, 4)",
    "INSERT INTO t VALUES (1, 1, 1), (4, 4, 4) ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (1, 1, 1), (4, 4, 4) ON CONFLICT DO UPDATE SET b = excluded.b + t.b WHERE t.c > 1",
    # A key with a NULL conflicts with none, also in SQLite's table.
    "REPLACE INTO t VALUES (NULL, 1, 1), (NULL, 2, 2)",
    "INSERT INTO t (b) VALUES (1), (2) ON CONFLICT DO NOTHING",
    "REPLACE INTO t (b) VALUES (1)",
)


@pytest.fixture(scope="module")
def engine(spark: Any) -> Iterator[Engine]:
    with Engine(spark=spark, dialect="extended") as engine:
        yield engine


def _rows(found: Any) -> list[list[Any]]:
    return sorted((list(row.values()) for row in found.to_pylist()), key=str)


def _begin(engine: Engine) -> None:
    for name in "tsu":
        engine.run(f"DROP TABLE IF EXISTS {name}")
    for sql in SETUP:
        engine.run(sql.format(key="", properties=_PROPERTIES))


def _here(engine: Engine, sql: str) -> list[list[list[Any]]]:
    _begin(engine)
    engine.run(sql)
    return [_rows(engine.table(name)) for name in "tu"]


@pytest.mark.parametrize("name", DUCKDB)
def test_a_form_has_the_rows_of_duckdb(engine: Engine, name: str) -> None:
    with duckdb.connect() as there:
        for sql in SETUP:
            there.execute(sql.format(key=" PRIMARY KEY", properties=""))
        there.execute(DUCKDB[name])
        expected = [
            sorted(map(list, there.execute(f"SELECT * FROM {table}").fetchall()), key=str)
            for table in "tu"
        ]
    assert _here(engine, DUCKDB[name]) == expected


@pytest.mark.parametrize("name", SQLSERVER)
def test_a_target_that_from_names_is_changed_as_in_sql_server(engine: Engine, name: str) -> None:
    here, there, *before = SQLSERVER[name]
    rows = []
    for sql in (here, there):
        _begin(engine)
        for first in before:
            engine.run(first)
        engine.run(sql)
        rows.append([_rows(engine.table(table)) for table in "tu"])
    assert rows[0] == rows[1]


def test_an_outer_join_of_the_target_is_refused_with_what_it_means(engine: Engine) -> None:
    _begin(engine)
    for sql, form in (
        ("DELETE x FROM t x LEFT JOIN s ON x.a = s.a WHERE s.a IS NULL", "WHERE NOT EXISTS"),
        ("UPDATE x SET b = 0 FROM t x LEFT JOIN s ON x.a = s.a", "WHEN NOT MATCHED BY SOURCE"),
        ("UPDATE x SET b = 0 FROM t x JOIN s USING (a)", "Write ON"),
    ):
        with pytest.raises(RowMergeError) as caught:
            engine.run(sql)
        assert form in str(caught.value.hint)


@pytest.mark.parametrize("name", POSTGRESQL)
def test_a_form_has_the_rows_of_postgresql(
    engine: Engine, postgresql_session: DatabaseSession, name: str
) -> None:
    there = postgresql_session
    there.execute("DROP TABLE IF EXISTS t, s, u")
    for sql in SETUP:
        there.execute(sql.format(key=" PRIMARY KEY", properties=""))
    there.execute(POSTGRESQL[name])
    expected = [
        sorted((list(row.values()) for row in there.query(f"SELECT * FROM {table}")), key=str)
        for table in "tu"
    ]
    there.execute("DROP TABLE t, s, u")
    assert _here(engine, POSTGRESQL[name]) == expected


@pytest.mark.parametrize("sql", SQLITE)
def test_a_form_has_the_rows_of_sqlite(engine: Engine, tmp_path: Path, sql: str) -> None:
    files = [tmp_path / name for name in ("here.db", "there.db")]
    setup = (
        "CREATE TABLE t (a int PRIMARY KEY, b int, c int)",
        *(text.format(key="", properties="") for text in SETUP[1:]),
    )
    for file in files:
        with closing(sqlite3.connect(file)) as there, there:
            for text in setup:
                there.execute(text)
            if file is files[1]:
                there.execute(sql)
    with Engine(spark=engine.spark, dialect="extended") as here:
        here.connect("sqlite", str(files[0]), name="here")
        here.run("USE here.main")
        here.run(sql)
    rows = []
    for file in files:
        with closing(sqlite3.connect(file)) as there:
            rows.append(sorted(there.execute("SELECT * FROM t"), key=str))
    assert rows[0] == rows[1]


def test_a_replaced_row_has_the_defaults_of_columns_that_are_not_inserted(engine: Engine) -> None:
    _begin(engine)
    result = engine.run("REPLACE INTO t (a, c) VALUES (1, 5), (6, 6)")
    assert _rows(engine.table("t")) == [[1, 7, 5], [2, 20, 200], [5, 50, None], [6, 7, 6]]
    assert "b of a replaced row will be the default" in str(result)


@pytest.mark.parametrize("name", FAILS)
def test_then_error_fails_as_in_duckdb_and_changes_nothing(engine: Engine, name: str) -> None:
    with duckdb.connect() as there:
        for sql in SETUP:
            there.execute(sql.format(key="", properties=""))
        with pytest.raises(duckdb.ConstraintException):
            there.execute(FAILS[name])
    _begin(engine)
    before = engine.table("t")
    with pytest.raises(RowMergeError) as caught:
        engine.run(FAILS[name])
    assert caught.value.code == "CONSTRAINT_VIOLATION"
    assert engine.table("t") == before


@pytest.mark.parametrize("name", OTHERWISE)
def test_some_forms_are_refused_for_a_reason(engine: Engine, name: str) -> None:
    sql, code, reason = OTHERWISE[name]
    _begin(engine)
    before = engine.table("t")
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql)
    assert caught.value.code == code, reason
    assert engine.table("t") == before


def test_the_report_names_the_translation_of_a_form(engine: Engine) -> None:
    _begin(engine)
    result = engine.run("UPDATE t AS x SET x.b = s.b FROM s WHERE x.a = s.a")
    merge = "MERGE INTO t x USING s ON x.a = s.a WHEN MATCHED THEN UPDATE SET b = s.b"
    assert result.trace.kind == "MERGE"
    assert merge in " ".join(str(result).split())
    after = engine.table("t")
    _begin(engine)
    engine.run(merge, dialect="trino")
    assert _rows(engine.table("t")) == _rows(after)


def test_fields_of_rows_are_assigned_one_by_one(engine: Engine) -> None:
    engine.run(
        "CREATE OR REPLACE TABLE r (a integer, c row(x integer, y row(z varchar, w integer)))"
    )
    engine.run("INSERT INTO r VALUES (1, ROW(1, ROW('p', 2))), (2, NULL)")
    engine.run("UPDATE r SET c.x = a + 8, c.y.z = 'q'")
    assert engine.table("r").to_pylist() == [
        {"a": 1, "c": {"x": 9, "y": {"z": "q", "w": 2}}},
        {"a": 2, "c": {"x": 10, "y": {"z": "q", "w": None}}},
    ]
    for sql, code in (
        ("UPDATE r SET c.nope = 1", "INVALID_COLUMN_REFERENCE"),
        ("UPDATE r SET a.x = 1", "TYPE_MISMATCH"),
        ("UPDATE r SET c.x = 'text'", "TYPE_MISMATCH"),
        ("UPDATE r SET c.y.z = 'a', c.y = NULL", "DUPLICATE_COLUMN_NAME"),
    ):
        with pytest.raises(RowMergeError) as caught:
            engine.run(sql)
        assert (caught.value.code, caught.value.line) == (code, 1)


def test_returning_names_the_old_and_the_new_row(engine: Engine) -> None:
    _begin(engine)
    result = engine.run(
        "UPDATE t SET b = 1 WHERE a = 1 RETURNING WITH (OLD AS o, NEW AS n) o.b, n.b AS nb"
    )
    assert result.table is not None
    assert result.table.to_pylist() == [{"b": 10, "nb": 1}]
    with pytest.raises(RowMergeError, match=r"old\.b"):
        engine.run("UPDATE t SET b = 1 RETURNING WITH (OLD AS o) old.b")


def test_a_recursive_query_can_be_the_source(engine: Engine) -> None:
    _begin(engine)
    engine.run(
        "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 3) MERGE INTO t"
        " USING q ON t.a = q.n WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (a) VALUES (n)"
    )
    assert _rows(engine.table("t")) == [[3, 7, None], [5, 50, None]]


def test_errors_of_on_conflict_have_positions(engine: Engine) -> None:
    _begin(engine)
    for sql, code, column in (
        ("INSERT INTO t (b) VALUES (1) ON CONFLICT (a) DO NOTHING", "COLUMN_NOT_FOUND", 43),
        (
            "INSERT INTO t SELECT nope, 1, 1 FROM s ON CONFLICT (a) DO NOTHING",
            "COLUMN_NOT_FOUND",
            22,
        ),
        (
            "INSERT INTO t VALUES (1, 1, 1) ON CONFLICT (a) DO UPDATE SET d = 1",
            "COLUMN_NOT_FOUND",
            32,
        ),
    ):
        with pytest.raises(RowMergeError) as caught:
            engine.run(sql)
        assert (caught.value.code, caught.value.column) == (code, column)
