"""Two threads of one engine that write to one table, and two engines on one session of the user's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from proof.trials.points.in_process import MERGE
from proof.trials.points.stores import ROWS, STORES, Postgresql, Store, table_of
from proof.trials.points.writers import SideBySide, expected_rows, run_writer
from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.engine.spark.session import SESSION_SETTINGS

WRITERS = 2


@pytest.fixture(params=[*((name, False) for name in STORES), *((name, True) for name in ("memory", "hive", "iceberg"))], ids=str)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    name, partitioned = request.param
    if name != "postgresql":
        yield STORES[name](tmp_path, partitioned=partitioned)
        return
    made = Postgresql(tmp_path, request.getfixturevalue("postgresql"))
    made._run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    yield made
    made._connection.close()


def write(engine: Engine, statements: int) -> SideBySide:
    """Have two threads write, and give what came of both."""
    reports: list[SideBySide] = []

    def merge(source: Any) -> Any:
        return engine.run(MERGE, namespace={"news": source}, trace="off")

    def run(writer: int) -> None:
        reports.append(run_writer(merge, writer, statements))

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == WRITERS, "a thread died"
    return SideBySide(sum(r.conflicts for r in reports), [problem for r in reports for problem in r.problems])


def check(spark: SparkSession, store: Store, statements: int) -> None:
    from rowmerge_nb.connectors.memory.connector import MemoryConnector

    connector = MemoryConnector() if store.name == "memory" else store.connector()
    engine = Engine(spark=spark, catalog="store", schema=store.schema)
    engine.add_catalog("store", connector)
    engine.run(f"CREATE TABLE t (id bigint, v bigint, name varchar){store.properties[store._partitioned]}")
    engine.run("INSERT INTO t SELECT * FROM news", namespace={"news": table_of(ROWS)})
    told = write(engine, statements)
    assert told.problems == []
    assert store.rows(connector) == expected_rows(WRITERS, statements)
    assert list(connector.orphans()) == []
    engine.close()


def test_threads_of_one_engine_come_one_after_the_other(spark: SparkSession, store: Store) -> None:
    check(spark, store, 1)


@pytest.mark.long
def test_threads_of_one_engine_come_one_after_the_other_for_many_statements(spark: SparkSession, store: Store) -> None:
    check(spark, store, 8)


def test_two_engines_on_a_session_leave_its_settings_as_they_were(spark: SparkSession) -> None:
    user = spark.newSession()
    user.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    user.conf.set("spark.sql.ansi.enabled", "false")
    user.conf.set("spark.sql.shuffle.partitions", "7")
    before = {key: user.conf.get(key, None) for key in (*SESSION_SETTINGS, "spark.sql.shuffle.partitions")}
    first, second = (Engine(spark=user) for _ in range(2))
    within_first, within_second, first_done = threading.Event(), threading.Event(), threading.Event()
    failures: list[Exception] = []

    def run(engine: Engine, entered: threading.Event, other: threading.Event) -> None:
        def progress(step: str) -> None:
            if step == "commit":
                entered.set()
                assert other.wait(60)

        try:
            engine.register("t", table_of(ROWS))
            engine.run(MERGE, namespace={"news": table_of({1: (1, "b")})}, trace="off", progress=progress)
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
