"""A statement stores the same rows whether DuckDB answers its source query before the tasks begin or Spark executes it."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import (
    ConnectorError,
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    RowMergeError,
    SqliteConnector,
    StatementInterrupted,
)
from rowmerge_nb.connectors.memory import reading
from rowmerge_nb.plan.rules import RuleSettings
from rowmerge_nb.spi.connector import Connector
from rowmerge_nb.spi.page_source import PagesSource
from rowmerge_nb.trace.node_records import QueryFacts

pytestmark = pytest.mark.spark

BY_DUCKDB = (
    "Here DuckDB executes the query, on the pages that this process reads, before the tasks begin"
)
REFUSED = "Here Spark executes the query: DuckDB leaves it to Spark: "
OFF = frozenset({"answer_source"})
SOURCE = pa.table(
    {
        "id": pa.array([1, 1, 2, 2, None, None, 7, 8], pa.int32()),
        "ts": pa.array([5, 6, None, 3, 1, 2, 9, 9], pa.timestamp("us")),
        "x": [1.5, float("nan"), -0.0, 0.0, None, 2.5, float("-inf"), 1e300],
        "d": pa.array(
            [
                Decimal("1.25"),
                None,
                Decimal("-99999999.99"),
                Decimal(0),
                None,
                Decimal(3),
                Decimal(1),
                Decimal(2),
            ],
            pa.decimal128(10, 2),
        ),
        "v": ["a", "b", "", "é", None, "z", "a ", "b"],
        "k": pa.array([1, 2, 3, 4, 5, 6, 7, 8], pa.int64()),
    }
)
COLUMNS = "id integer, ts timestamp(6), x double, d decimal(10, 2), c char(4), k bigint"
LATEST = """(SELECT id, ts, x, d, CAST(v AS char(4)) AS c, k FROM (
    SELECT s.*, row_number() OVER (PARTITION BY id ORDER BY ts DESC NULLS LAST, k) AS rn FROM {s} s) WHERE rn = 1)"""
SOURCES = {
    "row_number": LATEST,
    "rank": LATEST.replace("row_number()", "rank()"),
    "groups": "(SELECT id, max(ts) AS ts, 1e0 AS x, max(d) AS d, CAST(max(v) AS char(4)) AS c, sum(k) AS k FROM {s} GROUP BY id)",
    "one group": "(SELECT CAST(1 AS integer) AS id, max(ts) AS ts, avg(k) AS x, sum(d) AS d, CAST('q' AS char(4)) AS c, count(*) AS k FROM {s})",
    "distinct": "(SELECT DISTINCT id, ts, 0e0 AS x, d, CAST(v AS char(4)) AS c, k FROM {s} WHERE k IN (1, 3, 5, 7))",
    "order and limit": "(SELECT id, ts, x, d, CAST(v AS char(4)) AS c, k FROM {s} ORDER BY k DESC LIMIT 3)",
    "offset": "(SELECT id, ts, x, d, CAST(v AS char(4)) AS c, k FROM {s} ORDER BY x, k OFFSET 6)",
    "no row": "(SELECT id, ts, x, d, CAST(v AS char(4)) AS c, k FROM {s} ORDER BY k LIMIT 0)",
    "repeated matches": "(SELECT DISTINCT id, ts, 0e0 AS x, d, CAST(v AS char(4)) AS c, k FROM {s})",
    "a division by zero": LATEST.replace("id, ts,", "id / (id - 7) AS id, ts,", 1),
    "an overflow": "(SELECT id, max(ts) AS ts, 1e0 AS x, max(d) AS d, CAST('q' AS char(4)) AS c, sum(k + 9223372036854775800) AS k FROM {s} GROUP BY id)",
    "max of NaN": "(SELECT id, max(ts) AS ts, max(x) AS x, max(d) AS d, CAST('q' AS char(4)) AS c, sum(k) AS k FROM {s} GROUP BY id)",
}
REFUSALS = {"a division by zero", "an overflow", "max of NaN"}
MERGE = """MERGE INTO {t} t USING {source} s ON t.id = s.id
    WHEN MATCHED AND s.k > 6 THEN DELETE
    WHEN MATCHED THEN UPDATE SET ts = s.ts, x = s.x, d = s.d, c = s.c, k = s.k
    WHEN NOT MATCHED THEN INSERT (id, ts, x, d, c, k) VALUES (s.id, s.ts, s.x, s.d, s.c, s.k)"""
BY_SOURCE = f"{MERGE} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET k = -1"
LARGE = RuleSettings(small_rows=0, few_tasks_rows=1 << 40)
FORMS = {
    "one task": RuleSettings(),
    "paged": LARGE,
    "many tasks": replace(LARGE, one_task_bytes=0),
    "by keys": replace(LARGE, one_task_bytes=0, source_bytes=0, packed_bytes=0),
}


def new_engine(spark: Any, settings: RuleSettings = FORMS["one task"]) -> Engine:
    engine = Engine(spark=spark, dialect="extended", rule_settings=settings)
    engine.register("s", SOURCE)
    engine.register("empty", SOURCE.slice(0, 0))
    return engine


def source_details(plan: Any) -> tuple[str, ...]:
    details: tuple[str, ...] = next(node.details for node in plan if node.kind == "Source")
    return details


def outcome(
    engine: Engine, sql: str, table: str = "t", **options: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Run a statement; return its result and report, and the plan's report on the source query."""
    try:
        result = engine.run(sql, **options)
        trace = result.trace
        report: Any = (
            result.count,
            result.counts,
            trace.join.rows,
            trace.join.matched_rows,
            trace.target.rows_after,
        )
    except RowMergeError as error:
        trace, report = error.result.trace, (error.code, error.message, error.line, error.column)
    rows = engine.run(f"SELECT * FROM {table}", rules_off={"query_on_pages"}).table
    assert rows is not None
    return {"report": report, "rows": sorted(map(repr, rows.to_pylist()))}, source_details(
        trace.plan
    )


def create(engine: Engine, table: str = "t") -> None:
    engine.run(f"CREATE TABLE {table} ({COLUMNS})")
    engine.run(
        f"INSERT INTO {table} VALUES (1, NULL, 1e0, 1.5, 'a', 1), (3, NULL, 1e0, 1.5, 'b', 1), (7, NULL, 1e0, 1.5, 'c', 1), (NULL, NULL, 1e0, 1.5, 'd', 1)"
    )


@pytest.mark.parametrize("name", SOURCES)
def test_a_merge_has_the_same_rows_and_errors_in_both_forms(spark: Any, name: str) -> None:
    found = []
    for off in (frozenset[str](), OFF):
        with new_engine(spark) as engine:
            create(engine)
            found.append(
                outcome(
                    engine, MERGE.format(t="t", source=SOURCES[name].format(s="s")), rules_off=off
                )
            )
    (answered, details), (by_spark, others) = found
    assert answered == by_spark
    assert others == ()
    assert details == (BY_DUCKDB,) if name not in REFUSALS else details[0].startswith(REFUSED)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sql", [MERGE, BY_SOURCE])
def test_every_form_of_a_merge_reads_the_answer(
    spark: Any, form: str, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("INLINE_BYTES", 0), ("SPLIT_PAGES", 1)):
        monkeypatch.setattr(reading, name, value)
    statement = sql.format(t="t", source=LATEST.format(s="s"))
    found = []
    for settings, off in (
        (FORMS[form], frozenset[str]()),
        (RuleSettings(), OFF | {"change_in_task"}),
    ):
        with new_engine(spark, settings) as engine:
            create(engine)
            found.append(outcome(engine, statement, rules_off=off))
    assert found[0] == (found[1][0], (BY_DUCKDB,))


@pytest.mark.parametrize("name", SOURCES)
def test_an_insert_has_the_same_rows_and_errors_in_both_forms(spark: Any, name: str) -> None:
    found = []
    for off in (frozenset[str](), OFF):
        with new_engine(spark) as engine:
            create(engine)
            query = f"SELECT k, c, id, ts, x, d FROM {SOURCES[name].format(s='s')}"
            found.append(
                outcome(engine, f"INSERT INTO t (k, c, id, ts, x, d) {query}", rules_off=off)
            )
    assert found[0][0] == found[1][0]
    assert (found[0][1] == (BY_DUCKDB,)) == (name not in REFUSALS)


@pytest.mark.parametrize("source", ["s", "empty"])
def test_create_table_as_has_the_same_rows_in_both_forms(spark: Any, source: str) -> None:
    with new_engine(spark) as engine:
        query = LATEST.format(s=source)
        found = [
            outcome(engine, f"CREATE TABLE {table} AS SELECT * FROM {query}", table, rules_off=off)
            for table, off in (("one", frozenset[str]()), ("two", OFF))
        ]
    assert found[0] == (found[1][0], (BY_DUCKDB,))


@pytest.mark.parametrize("store", ["memory", "hive", "iceberg", "sqlite"])
def test_every_store_has_sources_that_duckdb_answers(
    spark: Any, store: str, tmp_path: Path
) -> None:
    connectors: dict[str, Callable[[Path], Connector]] = {
        "hive": lambda folder: HiveAcidConnector(str(folder)),
        "iceberg": lambda folder: IcebergConnector(str(folder)),
        "sqlite": lambda folder: SqliteConnector(folder / "file.db", create=True),
    }
    schema = {
        "memory": "memory.default",
        "hive": "c.default",
        "iceberg": "c.default",
        "sqlite": "c.main",
    }[store]
    found = []
    for off in (frozenset[str](), OFF):
        with new_engine(spark) as engine:
            if store in connectors:
                folder = tmp_path / f"{len(found)}"
                folder.mkdir()
                engine.add_catalog("c", connectors[store](folder))
            columns = "id integer, v varchar, k bigint"
            primary = " WITH (primary_key = ARRAY['id'])" if store == "sqlite" else ""
            engine.run(f"CREATE TABLE {schema}.t ({columns}){primary}")
            engine.run(f"INSERT INTO {schema}.t VALUES (1, 'x', 1), (7, 'y', 2)")
            engine.run(f"CREATE TABLE {schema}.source ({columns}){primary.replace('id', 'k')}")
            engine.run(f"INSERT INTO {schema}.source SELECT id, v, k FROM s WHERE id IS NOT NULL")
            merge = f"""MERGE INTO {schema}.t t USING (SELECT id, max(v) AS v, sum(k) AS k FROM {schema}.source GROUP BY id) s ON t.id = s.id
                WHEN MATCHED THEN UPDATE SET v = s.v, k = s.k WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.k)"""
            found.append(outcome(engine, merge, f"{schema}.t", rules_off=off))
    assert found[0] == (found[1][0], (BY_DUCKDB,))
    assert len(found[0][0]["rows"]) == 4


@pytest.mark.parametrize("store", ["memory", "hive", "iceberg"])
def test_a_source_that_reads_the_target_has_its_rows_before_the_statement(
    spark: Any, store: str, tmp_path: Path
) -> None:
    with new_engine(spark) as engine:
        if store != "memory":
            engine.add_catalog(
                "c", (HiveAcidConnector if store == "hive" else IcebergConnector)(str(tmp_path))
            )
        table = f"{'memory' if store == 'memory' else 'c'}.default.t"
        engine.run(f"CREATE TABLE {table} (id integer, k bigint)")
        engine.run(f"INSERT INTO {table} VALUES (1, 10), (2, 20), (2, 30)")
        merge = f"""MERGE INTO {table} t USING (SELECT id, sum(k) AS k FROM {table} GROUP BY id) s ON t.id = s.id AND t.id = 1
            WHEN MATCHED THEN UPDATE SET k = s.k + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.id + 10, s.k)"""
        found, details = outcome(engine, merge, table)
        inserted, _ = outcome(
            engine, f"INSERT INTO {table} SELECT DISTINCT id, -k FROM {table} WHERE id = 2", table
        )
    assert details == (BY_DUCKDB,)
    assert found["rows"] == sorted(
        map(repr, [{"id": i, "k": k} for i, k in [(1, 11), (2, 20), (2, 30), (12, 50)]])
    )
    assert len(inserted["rows"]) == 6


def test_the_number_of_rows_of_the_answer_chooses_the_form(spark: Any) -> None:
    settings = replace(LARGE, one_task_bytes=0, packed_bytes=100, source_bytes=100)
    with new_engine(spark, settings) as engine:
        create(engine)
        merge = MERGE.format(t="t", source="(SELECT * FROM {s} ORDER BY k LIMIT {n})")
        merge = MERGE.format(
            t="t",
            source="(SELECT id, ts, x, d, v AS c, k FROM (SELECT *, row_number() OVER (ORDER BY k) AS r FROM s) WHERE r < 2)",
        )
        planned = " ".join(engine.run(merge, dry_run=True).trace.plan[2].details)
        result = engine.run(merge)
    assert "tasks that get the rows of both sides by their keys" in planned
    assert "each of which gets the whole source" in " ".join(result.trace.plan[2].details)
    assert result.trace.join.source_rows == 1


def test_a_not_null_column_and_a_check_refuse_rows_of_an_answer(spark: Any) -> None:
    with new_engine(spark) as engine:
        engine.run("CREATE TABLE n (id integer NOT NULL, k bigint)")
        found = [
            outcome(
                engine, "INSERT INTO n SELECT id, sum(k) FROM s GROUP BY id", "n", rules_off=off
            )
            for off in ((), OFF)
        ]
        assert [details for _, details in found] == [(BY_DUCKDB,), ()]
        assert found[0][0] == found[1][0]
        assert found[0][0]["report"][0] == "CONSTRAINT_VIOLATION"


@pytest.mark.parametrize(
    "insert",
    [
        "INSERT INTO t (id) SELECT id FROM s GROUP BY id RETURNING id",
        "INSERT INTO t (id, k) SELECT a.id, u.k FROM s a CROSS JOIN UNNEST(ARRAY[a.k]) AS u (k)",
        "INSERT INTO t (id, k) SELECT id, lag(k) OVER (ORDER BY k) FROM s",
    ],
)
def test_spark_executes_queries_that_duckdb_does_not_get(spark: Any, insert: str) -> None:
    with new_engine(spark) as engine:
        create(engine)
        result = engine.run(insert)
    assert source_details(result.trace.plan) == ()
    assert result.count == (5 if "RETURNING" in insert else 8)


def test_a_dry_run_and_explain_name_duckdb_and_read_nothing(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_engine(spark) as engine:
        create(engine)
        monkeypatch.setattr(
            reading.MemoryPageSourceProvider,
            "create_page_source",
            lambda *_: pytest.fail("a page was read"),
        )
        merge = MERGE.format(t="t", source=LATEST.format(s="s"))
        assert source_details(engine.run(merge, dry_run=True).trace.plan) == (BY_DUCKDB,)
        assert BY_DUCKDB in engine.explain(merge).explained
        remote = Engine(spark=spark, rule_settings=RuleSettings(remote_executors=True))
        remote.register("s", SOURCE)
        remote.run(f"CREATE TABLE t ({COLUMNS})")
        assert source_details(remote.run(merge, dry_run=True).trace.plan) == ()
        remote.close()


@pytest.mark.parametrize("again", ["rehearse", "compare", "again", "asked"])
def test_a_statement_with_an_answered_source_is_tried_again(spark: Any, again: str) -> None:
    merge = MERGE.format(t="t", source=SOURCES["groups"].format(s="s"))
    with new_engine(spark) as engine:
        create(engine)
        if again == "rehearse":
            result = engine.run(merge, rehearse=True)
            assert engine.table("t").num_rows == 4
            assert result.rehearsed is not None
            assert result.rehearsed.num_rows == 6
        elif again == "compare":
            assert engine.compare(merge, by="duplicates").same
        else:
            result = engine.run(merge)
            assert result.trace.join.source_rows == 5
            if again == "again":
                assert result.what_if(merge).trace.clauses == result.trace.clauses
            else:
                asked = result.again.asked(None, None, {"id": 8}).samples.requested_rows
                assert (asked.problem, asked.pages.before.num_rows) == ("", 1)
                with pytest.raises(
                    RowMergeError, match="get other numbers when the query runs again"
                ):
                    result.again.asked(None, 1, {})
                why = engine.run(
                    MERGE.format(t="t", source=LATEST.format(s="s")),
                    rehearse=True,
                    trace="off",
                    why="id = 8",
                )
                assert why.trace.samples.requested_rows.problem == ""


class Source(PagesSource):
    """A page source that records whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True
        super().close()


@pytest.mark.parametrize("ended", ["interrupted", "cancelled", "broken"])
def test_the_end_of_a_source_query_leaves_the_table_unchanged(
    spark: Any, ended: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_engine(spark) as engine:
        create(engine)
        before = engine.table("t")

        def pages() -> Iterator[pa.RecordBatch]:
            for number in itertools.count():
                if number == 3 and ended == "interrupted":
                    signal.raise_signal(signal.SIGINT)
                elif number == 3 and ended == "cancelled":
                    engine.cancel()
                elif number == 3:
                    raise ConnectorError("the disk is broken", code="ICEBERG_BAD_DATA")
                yield pa.record_batch(
                    {"id": pa.array([number], pa.int32()), "k": pa.array([number], pa.int64())}
                )

        sources: list[Source] = []

        def opened(*_: Any) -> Source:
            sources.append(Source(pages()))
            return sources[-1]

        with monkeypatch.context() as patch:
            patch.setattr(reading.MemoryPageSourceProvider, "create_page_source", opened)
            kind = RowMergeError if ended == "broken" else StatementInterrupted
            with pytest.raises(
                kind, match=f"the disk is broken|The statement was {ended}"
            ) as caught:
                engine.run(
                    "MERGE INTO t USING (SELECT id, sum(k) AS k FROM s GROUP BY id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET k = s.k"
                )
        assert [source.closed for source in sources] == [True]
        assert caught.value.changed is False
        assert engine.table("t") == before


def test_the_file_of_a_large_answer_is_removed(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "INLINE_BYTES", 0)
    folders: list[tuple[Path, list[Path]]] = []
    original = reading.SplitStore.store

    def store(self: reading.SplitStore, *arguments: Any) -> pa.Table:
        rows = original(self, *arguments)
        folders.append((Path(self.folder), list(Path(self.folder).glob("*.arrow"))))
        return rows

    monkeypatch.setattr(reading.SplitStore, "store", store)
    with new_engine(spark) as engine:
        create(engine)
        engine.run(MERGE.format(t="t", source=LATEST.format(s="s")))
    [(folder, files)] = folders
    assert len(files) == 1
    assert not folder.exists()


def test_the_rows_of_an_answered_sources_nodes_are_counted(spark: Any) -> None:
    with Engine(spark=spark) as engine:
        engine.run("CREATE TABLE counted (id bigint, v varchar)")
        engine.register("many", pa.table({"id": [1, 1, 2, 3], "w": ["a", "b", "c", "d"]}))
        source = "(SELECT id, max(w) FROM many WHERE id < 3 GROUP BY id) q (k, w)"
        merge = f"MERGE INTO counted t USING {source} ON t.id = q.k WHEN NOT MATCHED THEN INSERT VALUES (k, w)"
        plan = engine.run(merge).trace.plan
    [facts] = [record.facts for record in plan if isinstance(record.facts, QueryFacts)]
    assert [(node.name, node.rows) for node in facts.nodes] == [
        ("Aggregate", 2),
        ("Filter", 3),
        ("TableScan", 4),
    ]
