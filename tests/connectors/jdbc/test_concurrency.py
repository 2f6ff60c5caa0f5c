"""Concurrent changes of one row by several sessions, in threads and processes: no change is lost, and losers get an error."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import PostgresConnector, RowMergeError, SqliteConnector
from tests.connectors.jdbc.support import Database, Statement, merge

THREADS, TURNS = 3, 4


def increments(database: Database, turns: int) -> list[str]:
    """Add one to the only row several times; return the outcome of each."""
    told = []
    for _ in range(turns):
        try:
            add_one(database)
            told.append("ok")
        except RowMergeError as error:
            told.append(error.code)
    return told


def add_one(database: Database) -> None:
    """Read, stage and apply in one statement, like the engine."""
    statement = Statement(database, "counter")
    try:
        statement.begin()
        rows = statement.read(row_id=True)
        (value,) = rows.column("n").to_pylist()
        arrays = [
            pa.array([1], pa.int32()),
            pa.array([value + 1], pa.int32()),
            pa.array([3], pa.int8()),
        ]
        page = pa.RecordBatch.from_arrays(
            [*arrays, rows.column("$row_id").combine_chunks()],
            names=["id", "n", "operation", "row_id"],
        )
        sink = statement.sink()
        sink.store_merged_rows(page)
        statement.finish(sink.finish())
        statement.commit()
    except BaseException:
        statement.rollback()
        raise


def opened(kind: str, where: str) -> Database:
    connector: Any = SqliteConnector(where) if kind == "sqlite" else PostgresConnector(where)
    return Database(kind, connector, "main" if kind == "sqlite" else "public")


def place_of(database: Database) -> str:
    store: Any = database.connector.store
    return str(store.path if database.kind == "sqlite" else store.dsn)


@pytest.fixture
def counter(database: Database) -> Database:
    database.sql(
        "CREATE TABLE counter (id int PRIMARY KEY, n int)", "INSERT INTO counter VALUES (1, 0)"
    )
    return database


def check(counter: Database, told: list[str]) -> None:
    assert set(told) <= {"ok", "TRANSACTION_CONFLICT"}
    assert told.count("ok") > 0
    assert counter.rows("SELECT n FROM counter") == [(told.count("ok"),)]
    assert counter.leftovers() == []


def test_increments_of_several_threads_are_never_lost(counter: Database) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        told = list(
            pool.map(
                lambda _: increments(opened(counter.kind, place_of(counter)), TURNS), range(THREADS)
            )
        )
    check(counter, [code for codes in told for code in codes])


def test_increments_of_one_connector_in_several_threads_are_never_lost(counter: Database) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        told = list(pool.map(lambda _: increments(counter, TURNS), range(THREADS)))
    check(counter, [code for codes in told for code in codes])


CHILD = "import json, sys; from tests.connectors.jdbc.test_concurrency import increments, opened; print(json.dumps(increments(opened(*sys.argv[1:3]), int(sys.argv[3]))))"


@pytest.mark.trial
def test_increments_of_several_processes_are_never_lost(counter: Database) -> None:
    command = [sys.executable, "-c", CHILD, counter.kind, place_of(counter), str(TURNS)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = [code for child in children for code in json.loads(child.communicate()[0])]
    assert len(told) == 3 * TURNS
    check(counter, told)


def test_one_of_two_statements_that_read_the_same_row_wins(counter: Database) -> None:
    first, second = Statement(counter, "counter"), Statement(counter, "counter")
    fragments = []
    for statement, value in ((first, 10), (second, 20)):
        statement.begin()
        sink = statement.sink()
        sink.store_merged_rows(statement.page([(1, value, 3, 1)]))
        fragments.append(sink.finish())
    first.finish(fragments[0])
    first.commit()
    with pytest.raises(RowMergeError) as caught:
        second.finish(fragments[1])
    second.rollback()
    assert caught.value.code == "TRANSACTION_CONFLICT"
    assert caught.value.hint == "Run the statement again."
    assert counter.rows("SELECT n FROM counter") == [(10,)]


def test_changes_of_different_rows_are_compatible_if_the_database_locks_rows(
    pg: Database,
) -> None:
    pg.sql(
        "CREATE TABLE counter (id int PRIMARY KEY, n int)",
        "INSERT INTO counter SELECT i, 0 FROM generate_series(1, 4) i",
    )

    def change(key: int) -> None:
        for value in range(1, 6):
            merge(pg, "counter", [(key, value, 3, key)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(1, 5)))
    assert pg.rows("SELECT id, n FROM counter ORDER BY id") == [(key, 5) for key in range(1, 5)]
    assert pg.leftovers() == []
