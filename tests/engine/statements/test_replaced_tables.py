"""CREATE OR REPLACE TABLE on every store: a cell that creates a table can be run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import (
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    PostgresConnector,
    RowMergeError,
    SqliteConnector,
)
from rowmerge_nb.engine.statements import query

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

STORES = {
    "memory": "memory.default",
    "hive": "hive.default",
    "lake": "lake.default",
    "lite": "lite.main",
    "pg": "pg.public",
}
KEYED = {"memory", "lite", "pg"}


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Engine:
    new = Engine(spark=spark)
    new.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    new.add_catalog("lake", IcebergConnector(tmp_path / "lake"))
    new.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
    return new


@pytest.fixture
def table(engine: Engine, store: str, request: pytest.FixtureRequest) -> str:
    name = f"{STORES[store]}.replaced"
    if store == "pg":
        engine.add_catalog("pg", PostgresConnector(request.getfixturevalue("postgresql")))
        engine.run(f"DROP TABLE IF EXISTS {name}")
    key = "WITH (primary_key = ARRAY['id'])" if store in KEYED else ""
    engine.run(f"CREATE TABLE {name} (id bigint, note varchar) {key}")
    engine.run(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    return name


def rows(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    result = engine.run(f"SELECT * FROM {name} ORDER BY 1").table
    assert result is not None
    return [tuple(row.values()) for row in result.to_pylist()]


def refused(engine: Engine, sql: str) -> RowMergeError:
    with pytest.raises(RowMergeError) as error:
        engine.run(sql)
    return error.value


def leftovers(engine: Engine) -> list[Any]:
    return [orphan for catalog in engine.orphans() for orphan in catalog.orphans]


def check_nothing_is_left(engine: Engine, table: str) -> None:
    assert leftovers(engine) == []
    engine.run(f"INSERT INTO {table} VALUES (9, 'z')")
    engine.run(f"DELETE FROM {table} WHERE id = 9")


@pytest.mark.parametrize("store", STORES)
@pytest.mark.on_spark
def test_a_cell_that_creates_a_table_runs_twice(engine: Engine, table: str, store: str) -> None:
    properties = "WITH (primary_key = ARRAY['k'])" if store in KEYED else ""
    for _ in range(2):
        engine.run(f"CREATE OR REPLACE TABLE {table} (k varchar, n integer) {properties}")
        assert rows(engine, table) == []
        engine.run(f"INSERT INTO {table} VALUES ('x', 1), ('y', 2)")
        engine.run(
            f"""MERGE INTO {table} t USING (VALUES ('x', 5), ('z', 7)) AS s (k, n) ON t.k = s.k
            WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.n)"""
        )
        assert rows(engine, table) == [("x", 5), ("y", 2), ("z", 7)]
    assert leftovers(engine) == []
    engine.run(f"DROP TABLE {table}")
    assert leftovers(engine) == []


@pytest.mark.parametrize("store", STORES)
def test_the_query_may_read_the_table_that_it_replaces(
    engine: Engine, table: str, store: str
) -> None:
    sql = f"CREATE OR REPLACE TABLE {table} AS SELECT id + 10 AS id, note FROM {table}"
    assert engine.run(sql).count == 2
    assert rows(engine, table) == [(11, "a"), (12, "b")]
    assert engine.run(sql.replace("+ 10", "+ 20")).count == 2
    assert rows(engine, table) == [(31, "a"), (32, "b")]
    engine.run(f"CREATE OR REPLACE TABLE {table} AS SELECT 'only' AS name WHERE false")
    assert rows(engine, table) == []
    assert leftovers(engine) == []


@pytest.mark.parametrize("store", STORES)
def test_a_statement_that_fails_leaves_the_former_table(
    engine: Engine, table: str, store: str
) -> None:
    failing = f"CREATE OR REPLACE TABLE {table} AS SELECT 1 / (id - 1) AS z FROM {table}"
    assert refused(engine, failing).code == "DIVISION_BY_ZERO"
    wrong = f"CREATE OR REPLACE TABLE {table} (a integer) WITH (no_such_property = 1)"
    assert refused(engine, wrong).code == "INVALID_TABLE_PROPERTY"
    if store in KEYED:
        keyed = "WITH (primary_key = ARRAY['k']) AS SELECT 1 AS k FROM"
        error = refused(engine, f"CREATE OR REPLACE TABLE {table} {keyed} {table}")
        assert error.code == "CONSTRAINT_VIOLATION"
    engine.run(f"CREATE OR REPLACE TABLE {table} (z integer)", dry_run=True)
    assert rows(engine, table) == [(1, "a"), (2, "b")]
    check_nothing_is_left(engine, table)


@pytest.mark.parametrize("store", STORES)
def test_an_unused_name_goes_to_a_new_table(engine: Engine, table: str, store: str) -> None:
    engine.run(f"DROP TABLE {table}")
    engine.run(f"CREATE OR REPLACE TABLE {table} AS SELECT 1 AS id, 'n' AS note")
    assert rows(engine, table) == [(1, "n")]


@pytest.mark.parametrize("store", ["memory", "hive", "lake", "lite"])
def test_rows_written_by_another_session_meanwhile_are_not_lost(
    engine: Engine, table: str, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rowmerge_nb.engine.statements import insert

    stored = query.stored_fragments

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(insert, "stored_fragments", stored)
        engine.run(f"INSERT INTO {table} VALUES (3, 'c')")
        return stored(*arguments)

    monkeypatch.setattr(insert, "stored_fragments", late)
    error = refused(engine, f"CREATE OR REPLACE TABLE {table} AS SELECT id FROM {table}")
    assert error.code == "TRANSACTION_CONFLICT"
    assert rows(engine, table) == [(1, "a"), (2, "b"), (3, "c")]
    check_nothing_is_left(engine, table)


@pytest.mark.parametrize("store", ["pg"])
def test_postgresql_lets_other_sessions_read_but_not_change_the_table_meanwhile(
    engine: Engine, table: str, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rowmerge_nb.engine.statements import insert

    stored, seen = query.stored_fragments, []
    other: Any = engine._catalogs.connectors["pg"].store.connect(writing=True)

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(insert, "stored_fragments", stored)
        seen.append(other.value("SELECT count(*) AS n FROM public.replaced"))
        other.execute("SET lock_timeout = '200ms'")
        with pytest.raises(RowMergeError) as error:
            other.execute("INSERT INTO public.replaced VALUES (3, 'c')")
        seen.append("lock" in str(error.value))
        return stored(*arguments)

    monkeypatch.setattr(insert, "stored_fragments", late)
    engine.run(f"CREATE OR REPLACE TABLE {table} AS SELECT id FROM {table}")
    other.close()
    assert seen == [2, True]
    assert rows(engine, table) == [(1,), (2,)]


@pytest.mark.parametrize("store", ["memory", "hive"])
def test_an_undo_does_not_reach_beyond_the_replacement(
    engine: Engine, table: str, store: str
) -> None:
    engine.run(f"CREATE OR REPLACE TABLE {table} AS SELECT 7 AS id")
    with pytest.raises(RowMergeError) as error:
        engine.undo(table)
    assert error.value.hint
    assert rows(engine, table) == [(7,)]


@pytest.mark.parametrize("store", ["memory"])
def test_the_error_of_a_table_that_exists_names_both_ways_on(
    engine: Engine, table: str, store: str
) -> None:
    error = refused(engine, f"CREATE TABLE {table} (id bigint)")
    assert error.code == "TABLE_ALREADY_EXISTS"
    assert error.hint == "Write CREATE OR REPLACE TABLE, or CREATE TABLE IF NOT EXISTS."


@pytest.mark.parametrize("store", ["lite"])
def test_a_view_of_the_database_is_not_replaced_by_a_table(
    engine: Engine, table: str, store: str, tmp_path: Path
) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "lite.db")) as database:
        database.execute("CREATE VIEW seen AS SELECT id FROM replaced")
        database.commit()
    for definition in ("(a bigint)", "AS SELECT 1 AS a"):
        error = refused(engine, f"CREATE OR REPLACE TABLE lite.main.seen {definition}")
        assert error.code == "NOT_SUPPORTED"
        assert "is a SQLite view" in error.message
    assert rows(engine, "lite.main.seen") == [(1,), (2,)]
