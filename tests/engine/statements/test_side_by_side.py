"""Two threads of one engine that write to one table, and two engines on one session of the user."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from proof.trials.points.in_process import MERGE
from proof.trials.points.stores import ROWS, STORES, Postgresql, Rows, Store, table_of
from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.engine.spark.spark_session import SESSION_SETTINGS

WRITERS = 2
TRIES = 200
NEW_KEY = 100


@pytest.fixture(
    params=[
        *((name, False) for name in STORES),
        *((name, True) for name in ("memory", "hive", "iceberg")),
    ],
    ids=str,
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    name, partitioned = request.param
    if name != "postgresql":
        yield STORES[name](tmp_path, partitioned=partitioned)
        return
    made = Postgresql(tmp_path, request.getfixturevalue("postgresql"))
    made._run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    yield made
    made._connection.close()


def news_of(writer: int, number: int) -> Rows:
    """Return the source of a writer's MERGE: a row updated by all of them, one of its own, and a new key."""
    changed = ((0, 1), (2 + 2 * writer, 2 + writer), (NEW_KEY + number, 3 + writer))
    return {key: (value, "ab"[key % 2]) for key, value in changed}


def expected_rows(statements: int) -> Rows:
    """Return the rows after all statements of all writers, which are the same in every order."""
    rows = dict(ROWS)
    for writer in range(WRITERS):
        for number in range(statements):
            for key, (value, name) in news_of(writer, number).items():
                rows[key] = (rows.get(key, (0, name))[0] + value, name)
    return rows


def write(engine: Engine, writer: int, statements: int) -> None:
    """Run the statements of a writer, each repeatedly until it succeeds."""
    for number in range(statements):
        source = table_of(news_of(writer, number))
        for _ in range(TRIES):
            try:
                engine.run(MERGE, namespace={"news": source}, trace="off")
                break
            except RowMergeError as error:
                if error.code != "TRANSACTION_CONFLICT" or error.changed is not False:
                    raise
        else:
            pytest.fail(f"writer {writer} did not get statement {number} through")


def check(spark: SparkSession, store: Store, statements: int) -> None:
    from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector

    connector = MemoryConnector() if store.name == "memory" else store.connector()
    engine = Engine(spark=spark, catalog="store", schema=store.schema)
    engine.add_catalog("store", connector)
    engine.run(
        f"CREATE TABLE t (id bigint, v bigint, name varchar){store.properties[store._partitioned]}"
    )
    engine.run("INSERT INTO t SELECT * FROM news", namespace={"news": table_of(ROWS)})
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda writer: write(engine, writer, statements), range(WRITERS)))
    assert store.rows(connector) == expected_rows(statements)
    assert list(connector.orphans()) == []
    engine.close()


@pytest.mark.each_value
def test_threads_of_one_engine_run_one_after_the_other(spark: SparkSession, store: Store) -> None:
    check(spark, store, 1)


@pytest.mark.long
def test_threads_of_one_engine_run_one_after_the_other_for_many_statements(
    spark: SparkSession, store: Store
) -> None:
    check(spark, store, 8)


def side_by_side(*works: Any) -> list[RowMergeError]:
    """Run functions concurrently, one thread each; return the errors."""
    errors: list[RowMergeError] = []
    begin = threading.Barrier(len(works))

    def run(work: Any) -> None:
        begin.wait()
        try:
            work()
        except RowMergeError as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.fixture
def engine(spark: SparkSession) -> Iterator[Engine]:
    made = Engine(spark=spark)
    made.register("t", pa.table({"id": [1, 2], "v": [0, 0]}))
    yield made
    made.close()


def test_inserts_into_a_memory_table_run_concurrently_and_are_undone_one_by_one(
    engine: Engine,
) -> None:
    inserts = [
        lambda n=n: engine.run(f"INSERT INTO t VALUES ({n}, {n})", check=True)
        for n in range(10, 14)
    ]
    results: list[Any] = []
    assert (
        side_by_side(*[lambda insert=insert: results.append(insert()) for insert in inserts]) == []
    )
    assert sorted(engine.table("t").column("id").to_pylist()) == [1, 2, 10, 11, 12, 13]
    assert [result.trace.checks.commit.wrong for result in results] == [0] * 4
    assert all("holds" in result.trace.checks.commit.message for result in results)
    assert sorted(result.trace.target.rows_before for result in results) == [2, 3, 4, 5]
    # Each of them undoes only its own row.
    for left in (5, 4, 3, 2):
        engine.undo("t")
        assert engine.table("t").num_rows == left


def test_a_slow_merge_and_a_fast_update_of_one_memory_table_both_get_their_turn(
    engine: Engine,
) -> None:
    done = {"merge": 0, "update": 0}

    def merge() -> None:
        for _ in range(3):
            engine.run(
                "MERGE INTO t USING (SELECT id, count(*) AS n FROM t GROUP BY id) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = t.v + 1"
            )
            done["merge"] += 1

    def update() -> None:
        while done["merge"] < 3 and done["update"] < 100:
            engine.run("UPDATE t SET v = v + 1 WHERE id = 1", trace="off")
            done["update"] += 1

    def insert() -> None:
        while done["merge"] < 3:
            engine.run("INSERT INTO t VALUES (9, 0)", trace="off")

    assert side_by_side(merge, update, insert) == []
    rows = {row["id"]: row["v"] for row in engine.table("t").to_pylist() if row["id"] < 9}
    assert rows == {1: 3 + done["update"], 2: 3}


def test_two_engines_on_a_session_leave_its_settings_unchanged(spark: SparkSession) -> None:
    user = spark.newSession()
    user.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    user.conf.set("spark.sql.ansi.enabled", "false")
    user.conf.set("spark.sql.shuffle.partitions", "7")
    before = {
        key: user.conf.get(key, None) for key in (*SESSION_SETTINGS, "spark.sql.shuffle.partitions")
    }
    first, second = (Engine(spark=user) for _ in range(2))
    within_first, within_second, first_done = (
        threading.Event(),
        threading.Event(),
        threading.Event(),
    )
    failures: list[Exception] = []

    def run(engine: Engine, entered: threading.Event, other: threading.Event) -> None:
        def progress(step: str) -> None:
            if step == "commit":
                entered.set()
                assert other.wait(60)

        try:
            engine.register("t", table_of(ROWS))
            engine.run(
                MERGE, namespace={"news": table_of({1: (1, "b")})}, trace="off", progress=progress
            )
        except (AssertionError, RowMergeError) as failure:
            failures.append(failure)

    # The first one begins first and ends first.
    leading = threading.Thread(target=run, args=(first, within_first, within_second))
    leading.start()
    assert within_first.wait(60)
    trailing = threading.Thread(target=run, args=(second, within_second, first_done))
    trailing.start()
    leading.join()
    first_done.set()
    trailing.join()
    assert failures == []
    for engine in (first, second):
        assert engine.table("t").num_rows == len(ROWS)
        engine.close()
    assert {key: user.conf.get(key, None) for key in before} == before
