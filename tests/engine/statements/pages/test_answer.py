"""Queries answered by DuckDB from pages: without Spark, with as few pages as necessary, and with every end."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import ConnectorError, Engine, RowMergeError, StatementInterrupted
from rowmerge_nb.connectors.memory import reading
from rowmerge_nb.engine.spark.lazy_session import LazySession
from rowmerge_nb.engine.statements.pages import answer
from rowmerge_nb.engine.tasks.arrow import GATHERED_ROWS
from rowmerge_nb.engine.tasks.page_program import require_duckdb
from rowmerge_nb.spi.page_source import PagesSource

BY_DUCKDB = "Here DuckDB executes the query, on the pages that this process reads"


class NoSpark(LazySession):
    """A session that must not be needed."""

    def start(self) -> None:
        pytest.fail("Spark was started")


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(spark=NoSpark()) as engine:
        engine.register(
            "t", pa.table({"id": [1, 2, 3, 4], "v": ["b", "a", "b", None], "n": [10, 20, None, 40]})
        )
        yield engine


def rows(engine: Engine, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    result = engine.run(sql, **options)
    assert result.trace.plan[0].details == (BY_DUCKDB,)
    assert result.table is not None
    return list(zip(*(column.to_pylist() for column in result.table.columns), strict=True))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id, n + 1 FROM t WHERE v = 'b' ORDER BY id", [(1, 11), (3, None)]),
        ("SELECT v, count(*), sum(n), avg(n), min(n), max(id) FROM t GROUP BY v ORDER BY v", None),
        ("SELECT v, count(*) c FROM t GROUP BY 1 HAVING count(*) > 1", [("b", 2)]),
        ("SELECT DISTINCT v FROM t ORDER BY v DESC", [("b",), ("a",), (None,)]),
        ("SELECT id FROM t ORDER BY n DESC NULLS FIRST LIMIT 2", [(3,), (4,)]),
        (
            "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY v ORDER BY n DESC) r FROM t) WHERE r = 1 ORDER BY id",
            [(1,), (2,), (4,)],
        ),
        (
            "SELECT id, rank() OVER (ORDER BY v), dense_rank() OVER (ORDER BY v) FROM t ORDER BY id",
            [(1, 2, 2), (2, 1, 1), (3, 2, 2), (4, 4, 3)],
        ),
        ("SELECT id FROM t ORDER BY v OFFSET 1 LIMIT 2", [(1,), (3,)]),
        ("SELECT count(*), sum(n) FROM t WHERE id > 9", [(0, None)]),
        ("SELECT id, n FROM t WHERE id > 9", []),
        ("SELECT count(DISTINCT v), count(n) FILTER (WHERE id > 1) FROM t", [(2, 2)]),
        (
            "SELECT s FROM (SELECT v, sum(n) AS s FROM t GROUP BY v) WHERE s < 30 ORDER BY s",
            [(10,), (20,)],
        ),
        ("WITH q AS (SELECT id AS k FROM t) SELECT max(k) FROM q", [(4,)]),
        (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'default'",
            [("t",)],
        ),
    ],
)
def test_simple_queries_of_one_table_need_no_spark(
    engine: Engine, sql: str, expected: list[tuple[Any, ...]] | None
) -> None:
    found = rows(engine, sql)
    grouped = [("a", 1, 20, 20.0, 20, 2), ("b", 2, 10, 10.0, 10, 3), (None, 1, 40, 40.0, 40, 4)]
    assert found == (grouped if expected is None else expected)


@pytest.mark.parametrize("sql", ["SHOW TABLES", "DESCRIBE t"])
def test_show_and_describe_need_no_spark(engine: Engine, sql: str) -> None:
    assert engine.run(sql).table.num_rows


def test_a_frame_of_the_notebook_is_queried_without_spark(engine: Engine) -> None:
    frame = pa.table({"k": [1, 1, 2]}).to_pandas()
    assert rows(
        engine, "SELECT k, count(*) FROM frame GROUP BY k ORDER BY k", namespace={"frame": frame}
    ) == [(1, 2), (2, 1)]


def test_explain_names_the_engine_of_a_query(engine: Engine) -> None:
    assert BY_DUCKDB in engine.explain("SELECT count(*) FROM t").explained
    spark = engine.explain("SELECT lag(id) OVER (ORDER BY id) FROM t").explained
    assert "Here Spark executes the query: pages do not support a function over a window" in spark


def test_joins_need_no_spark_and_show_the_smaller_side_on_the_right(engine: Engine) -> None:
    engine.register("u", pa.table({"id": range(200_000), "w": ["x"] * 200_000}))
    joined = "SELECT t.id, w FROM t LEFT JOIN u ON t.id = u.id AND t.n > 10"
    assert rows(engine, f"{joined} ORDER BY 1") == [(1, None), (2, "x"), (3, None), (4, "x")]
    assert "RightJoin[criteria = ((id = id_0) AND (n > bigint '10'))]" in str(
        engine.explain(joined).explained
    )
    assert rows(engine, "SELECT count(*) FROM t, u WHERE t.id = u.id AND u.id > 1") == [(3,)]
    assert rows(engine, "SELECT count(*) FROM t a JOIN t b USING (v)") == [(5,)]


def test_a_transaction_reads_the_version_that_it_began_with(engine: Engine) -> None:
    engine.run("START TRANSACTION")
    before = rows(engine, "SELECT count(*) FROM t")
    engine.register("t", pa.table({"id": [1], "v": ["x"], "n": [1]}))
    assert rows(engine, "SELECT count(*) FROM t") == before == [(4,)]
    engine.run("COMMIT")
    assert rows(engine, "SELECT count(*) FROM t") == [(1,)]


# -- amounts of reads


@pytest.fixture
def opened(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The columns of the opened splits of table ``many``, which has 50 splits of one page."""
    for name, value in (("INLINE_BYTES", 0), ("PAGE_ROWS", 100), ("SPLIT_PAGES", 1)):
        monkeypatch.setattr(reading, name, value)
    engine.register("many", pa.table({"id": range(5000), "v": ["x"] * 5000}))
    calls: list[Any] = []
    original = reading.MemoryPageSourceProvider.create_page_source

    def create(
        provider: Any, transaction: Any, session: Any, split: Any, table: Any, columns: Any
    ) -> Any:
        calls.append([column.name for column in columns])
        return original(provider, transaction, session, split, table, columns)

    monkeypatch.setattr(reading.MemoryPageSourceProvider, "create_page_source", create)
    return calls


def test_a_limit_ends_the_reading(engine: Engine, opened: list[Any]) -> None:
    assert len(rows(engine, "SELECT * FROM many WHERE v = 'x' OFFSET 5 LIMIT 20")) == 20
    assert 1 <= len(opened) <= 5


def test_only_the_columns_that_a_query_names_are_read(engine: Engine, opened: list[Any]) -> None:
    assert rows(engine, "SELECT max(id) FROM many") == [(4999,)]
    assert opened == [["id"]] * 50


def test_rows_are_in_the_order_of_the_table(engine: Engine, opened: list[Any]) -> None:
    assert [row[0] for row in rows(engine, "SELECT id FROM many WHERE id >= 10")] == list(
        range(10, 5000)
    )


@pytest.mark.parametrize("pages", [0, 1, 5])
def test_only_large_tables_are_read_by_several_threads(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    threads: list[int] = []
    lock = answer._lock
    monkeypatch.setattr(answer, "usual_cores", lambda: 3)
    monkeypatch.setattr(
        answer,
        "_lock",
        lambda connection, number: (threads.append(number), lock(connection, number)),
    )
    engine.register("some", pa.table({"k": pa.array(range(pages * GATHERED_ROWS), pa.int64())}))
    assert rows(engine, "SELECT count(DISTINCT k) FROM some") == [(pages * GATHERED_ROWS,)]
    assert threads == [3 if pages > 1 else 1]


def test_groups_beyond_the_memory_go_to_files_that_are_removed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(answer, "all_memory", lambda: 0)
    monkeypatch.setattr(answer, "_LEAST", 40 << 20)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine.register("wide", pa.table({"k": [f"{number:0100}" for number in range(400_000)]}))
    assert rows(engine, "SELECT count(*) FROM (SELECT DISTINCT k FROM wide)") == [(400_000,)]
    assert [
        file for path in tmp_path.iterdir() for file in path.iterdir() if "duckdb" in file.name
    ] == []


# -- ends

Pages = Callable[[], Iterator[pa.RecordBatch]]


class Source(PagesSource):
    """A page source that records whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True
        super().close()


def give(monkeypatch: pytest.MonkeyPatch, pages: Pages) -> list[Source]:
    """Make tables in memory return these pages; return the created page sources."""
    sources: list[Source] = []

    def create(*_: Any) -> Source:
        sources.append(Source(pages()))
        return sources[-1]

    monkeypatch.setattr(reading.MemoryPageSourceProvider, "create_page_source", create)
    return sources


def test_an_interrupt_ends_a_query(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def pages() -> Iterator[pa.RecordBatch]:
        for number in itertools.count():
            if number == 3:
                signal.raise_signal(signal.SIGINT)
            yield pa.record_batch({"id": [number]})

    sources = give(monkeypatch, pages)
    with pytest.raises(StatementInterrupted, match="The statement was interrupted"):
        engine.run("SELECT max(id) FROM t")
    assert [source.closed for source in sources] == [True]


def test_another_thread_cancels_a_query(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def pages() -> Iterator[pa.RecordBatch]:
        for number in itertools.count():
            if number == 3:
                engine.cancel()
            yield pa.record_batch({"id": [number]})

    give(monkeypatch, pages)
    with pytest.raises(StatementInterrupted, match="The statement was cancelled"):
        engine.run("SELECT max(id) FROM t")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectorError("the disk is broken", code="ICEBERG_BAD_DATA"), "ICEBERG_BAD_DATA"),
        (OSError("the disk is broken"), "GENERIC_INTERNAL_ERROR"),
    ],
)
def test_an_error_of_the_connector_keeps_its_code_and_names_the_call(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    def pages() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1]})
        raise error

    give(monkeypatch, pages)
    with pytest.raises(
        RowMergeError, match=r"get_next_page failed: .*the disk is broken"
    ) as caught:
        engine.run("SELECT max(id) FROM t")
    assert caught.value.code == code
    assert "A query changes nothing." in str(caught.value.result)


@pytest.mark.parametrize("table", ["t", "u"])
def test_the_error_of_one_table_ends_the_reading_of_all(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    engine.register("u", pa.table({"id": [1]}))
    fails = table == "u"

    def pages() -> Iterator[pa.RecordBatch]:
        nonlocal fails
        fails = not fails
        if fails:
            raise OSError("the disk is broken")
        for number in itertools.count():
            yield pa.record_batch({"id": [number]})

    sources = give(monkeypatch, pages)
    with pytest.raises(RowMergeError, match="the disk is broken"):
        engine.run("SELECT max(t.id) FROM t JOIN u ON t.id = u.id")
    assert all(source.closed for source in sources)
    assert not [thread for thread in threading.enumerate() if thread.name == "rowmerge_nb-pages"]


@pytest.mark.parametrize("sql", ["SELECT id FROM t", "SHOW TABLES"])
def test_a_closed_engine_answers_nothing(sql: str) -> None:
    engine = Engine(spark=NoSpark())
    engine.register("t", pa.table({"id": [1]}))
    engine.close()
    with pytest.raises(RowMergeError, match="The engine is closed"):
        engine.run(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO '{path}'",
        "ATTACH '{path}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SELECT * FROM frame",
    ],
)
def test_duckdb_reaches_nothing_but_the_pages(sql: str, tmp_path: Path) -> None:
    frame = pa.table({"id": [1]})
    with answer._connected() as connection:
        answer._lock(connection, 1)
        with pytest.raises(require_duckdb().Error):
            connection.sql(sql.format(path=tmp_path / "x"))
    assert frame.num_rows
