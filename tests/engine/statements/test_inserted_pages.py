"""An INSERT or CREATE TABLE AS stores the same rows whether tasks compute its query on pages or Spark does."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rowmerge_nb import (
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    PostgresConnector,
    RowMergeError,
    SqliteConnector,
)
from rowmerge_nb.engine.api.statement_options import Options
from rowmerge_nb.plan.rules import RuleSettings

pytestmark = pytest.mark.spark

ON_PAGES = "The nodes below run in the tasks that read the query's table, on pages"
ANSWERED = "The nodes below run in the tasks that read the answer of the query, on pages"
BY_SPARK = "Spark's operators execute the nodes below: pages do not support "
ROWS = pa.table(
    {
        "id": pa.array([1, 2, None, 4], pa.int32()),
        "part": ["a", None, "b", "a"],
        "x": [1.5, float("nan"), -0.0, None],
        "d": pa.array(
            [Decimal("1.25"), Decimal("-99999999.99"), None, Decimal(0)], pa.decimal128(10, 2)
        ),
    }
)
COLUMNS = "id integer, part varchar, x double"
QUERIES = {
    "columns": "SELECT id, part, x FROM s",
    "a condition": "SELECT id, part, x FROM s WHERE id > 1",
    "values": "SELECT id + 1, upper(part), x * 2 FROM s WHERE id IS NOT NULL",
    "a query of a query": "SELECT b, a, x FROM (SELECT part AS a, id AS b, x FROM s WHERE part = 'a')",
    "a WITH": "WITH w AS (SELECT id AS i, part FROM s) SELECT i, part, 1e0 FROM w WHERE i < 4",
    "an aggregate below": "SELECT 7, 'one', 1e0 FROM (SELECT count(*) AS n FROM s)",
    "a limit": "SELECT id, part, x FROM s ORDER BY id LIMIT 2",
    "no column": "SELECT 1, 'c', 2e0 FROM s",
    "no row": "SELECT id, part, x FROM s WHERE id > 100",
    "an empty table": "SELECT id, part, x FROM empty WHERE id > 1",
    "NULL": "SELECT id, NULL, NULL FROM s",
    "converted values": "SELECT 3 + id * 2, part || '!', id + 1 FROM s WHERE id < 4",
    "converted constants": "SELECT 3, NULL, 7 FROM s",
    "a failing conversion of a sum": "SELECT 2147483647 + CAST(id AS bigint), part, 1 FROM s WHERE id > 0",
    "a failing part of a sum": "SELECT CAST(part AS bigint) + 1, part, 1 FROM s WHERE id > 0",
    "a division by zero": "SELECT id / (id - 4), part, x FROM s",
    "a failing condition": "SELECT id, part, x FROM s WHERE 1 / (id - 4) > 0",
    "a failing store": "SELECT 3000000000 + id, part, x FROM s",
    "a failing cast": "SELECT CAST(part AS integer), part, x FROM s",
    "an overflow": "SELECT id * 1000000000, part, x FROM s",
    "a decimal overflow": "SELECT CAST(d * 100 AS decimal(9,2)), part, x FROM s",
    "a text too long": "SELECT id, part || part || part, x FROM s",
    "the target itself": "SELECT id + 10, part, x FROM t",
}
DIFFERENT_COLUMNS = {
    "a decimal overflow": "id decimal(9,2), part varchar, x double",
    "a text too long": "id integer, part varchar(2), x double",
}
PLACED_ON_PAGES = {"a failing store", "a failing conversion of a sum", "a text too long"}
"""Values that cannot be converted when stored: tasks report the position of the value, Spark has none."""
ALL_BY_SPARK = frozenset({"insert_on_pages"})
BOTH = (frozenset[str](), ALL_BY_SPARK)


def new_engine(spark: Any, off: frozenset[str] = frozenset(), **settings: Any) -> Engine:
    engine = Engine(spark=spark, dialect="extended", rule_settings=RuleSettings(**settings))
    engine.options = engine.options.changed(rules_off=off)
    engine.register("s", ROWS)
    engine.register("empty", ROWS.slice(0, 0))
    return engine


def outcome(engine: Engine, insert: str) -> dict[str, Any]:
    """Run an INSERT into the table ``t``, and return its result and report."""
    try:
        result = engine.run(insert)
        trace = result.trace
        # The form decides which of several writers gets a row.
        rows_of_writers = sum((Counter(writer.rows) for writer in trace.writers), Counter())
        report: Any = (
            result.count,
            result.counts,
            rows_of_writers,
            trace.target.rows_before,
            trace.target.rows_after,
        )
    except RowMergeError as error:
        report = (error.code, error.message, error.line, error.column)
    return {"report": report, "rows": sorted(map(repr, engine.table("t").to_pylist()))}


def in_both_forms(
    spark: Any, create: str, insert: str, *, small_rows: int = 0
) -> list[dict[str, Any]]:
    found = []
    for off in BOTH:
        engine = new_engine(spark, off, small_rows=small_rows)
        engine.run(create)
        if " FROM t" in insert:
            engine.run("INSERT INTO t VALUES (50, 'p', 0.5e0), (NULL, 'q', 1e0)")
        found.append(outcome(engine, insert))
        engine.close()
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_pages_and_spark_insert_the_same_rows_and_report_the_same_errors(
    spark: Any, name: str
) -> None:
    layout = " WITH (partitioned_by = ARRAY['part'])" if len(name) % 2 == 0 else ""
    create = f"CREATE TABLE t ({DIFFERENT_COLUMNS.get(name, COLUMNS)}){layout}"
    pages, by_spark = in_both_forms(spark, create, f"INSERT INTO t {QUERIES[name]}")
    if name in PLACED_ON_PAGES:
        code, message, *position = pages["report"]
        assert position == [1, 26 if "text" in name else 22]
        pages["report"] = (code, message, None, None)
    assert pages == by_spark


@pytest.mark.parametrize("small_rows", [0, 10_000])
def test_null_for_a_not_null_column_is_refused_in_both_forms(spark: Any, small_rows: int) -> None:
    create = "CREATE TABLE t (id integer NOT NULL, part varchar, x double)"
    pages, by_spark = in_both_forms(
        spark, create, "INSERT INTO t SELECT id, part, x FROM s", small_rows=small_rows
    )
    assert pages == by_spark
    assert pages["report"][0] == "CONSTRAINT_VIOLATION"
    assert not pages["rows"]


def test_char_is_padded_and_omitted_columns_get_their_defaults_in_both_forms(spark: Any) -> None:
    create = "CREATE TABLE t (id integer, part char(4), x double DEFAULT 7e0)"
    pages, by_spark = in_both_forms(
        spark, create, "INSERT INTO t (part, id) SELECT part, id FROM s WHERE part = 'a'"
    )
    assert pages == by_spark
    assert pages["report"][0] == 2
    assert "'part': 'a   ', 'x': 7.0" in " ".join(pages["rows"])


def line_of(engine: Engine, statement: str, **options: Any) -> str:
    """Return the plan's report at the writer of an INSERT."""
    plan = engine.run(statement, dry_run=True, **options).trace.plan
    [details] = [node.details for node in plan if node.kind == "TableWriter"]
    return " ".join(details)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id, part, x FROM s", ""),
        (
            "SELECT id + 1, upper(part), CAST(d AS double) FROM s WHERE id > 1 AND part LIKE 'a%'",
            "",
        ),
        ("SELECT 7 + id * 2, 'one', 1 FROM s WHERE x > 0", ""),
        ("SELECT CAST(x AS bigint), CAST(NULL AS varchar), d FROM s", ""),
        ("SELECT s.id, s.part, s.x FROM s JOIN r ON s.id = r.id", ANSWERED),
        ("SELECT count(*), 'a', 1e0 FROM s", ANSWERED),
        ("SELECT id, part, x FROM s LIMIT 2", ANSWERED),
        (
            "SELECT lag(id) OVER (ORDER BY id), part, x FROM s",
            "more than conditions and values of one table",
        ),
        ("SELECT id, part, x FROM s WHERE id = (SELECT max(id) FROM s)", ANSWERED),
        (
            "SELECT s.id, s.part, s.x FROM s CROSS JOIN UNNEST(ARRAY[s.id]) AS u (id)",
            "more than conditions and values of one table",
        ),
        (
            "SELECT s.id, s.part, s.x FROM s JOIN r ON format('%s', s.x) = r.part",
            "a query with 2 scans of tables",
        ),
        ("SELECT id, format('%s', part), x FROM s", "the function format(varchar(2), varchar)"),
    ],
)
def test_the_plan_reports_what_computes_the_rows_and_why_it_is_spark(
    spark: Any, query: str, reason: str
) -> None:
    engine = new_engine(spark)
    engine.register("r", ROWS)
    engine.run(f"CREATE TABLE t ({COLUMNS})")
    for statement in (f"INSERT INTO t {query}", f"CREATE TABLE u (id, part, x) AS {query}"):
        assert line_of(engine, statement) == {"": ON_PAGES, ANSWERED: ANSWERED}.get(
            reason, BY_SPARK + reason
        )
        assert line_of(engine, statement, rules_off=ALL_BY_SPARK) == ""
    meaning = next(
        node.meaning
        for node in engine.run(f"INSERT INTO t {query}", dry_run=True).trace.plan
        if node.kind == "Source"
    )
    assert ("tasks compute it on the pages" in meaning) == (not reason)
    engine.close()


def test_a_query_without_a_table_and_returning_are_sparks(spark: Any) -> None:
    engine = new_engine(spark)
    engine.run(f"CREATE TABLE t ({COLUMNS})")
    assert line_of(engine, "INSERT INTO t VALUES (1, 'a', 1e0)") == ""
    assert (
        line_of(engine, "INSERT INTO t SELECT id, part, x FROM s RETURNING id")
        == f"{BY_SPARK}RETURNING"
    )
    engine.close()


STORES = ("memory", "iceberg", "hive", "sqlite", "pg")
LAYOUTS = {
    "memory": " WITH (partitioned_by = ARRAY['part'])",
    "iceberg": " WITH (partitioning = ARRAY['part', 'bucket(id, 3)'])",
    "hive": " WITH (bucketed_by = ARRAY['id'], bucket_count = 3)",
    "sqlite": "",
    "pg": "",
}


def with_store(engine: Engine, store: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Add the catalog of a store, and return the name of its schema."""
    if store == "memory":
        return "memory.default"
    if store == "iceberg":
        engine.add_catalog(store, IcebergConnector(folder / store))
    elif store == "hive":
        engine.add_catalog(store, HiveAcidConnector(folder / store))
    elif store == "sqlite":
        folder.mkdir()
        engine.add_catalog(store, SqliteConnector(folder / "store.db", create=True))
    else:
        engine.add_catalog(store, PostgresConnector(request.getfixturevalue("postgresql")))
    return f"{store}.{ {'sqlite': 'main', 'pg': 'public'}.get(store, 'default') }"


@pytest.mark.parametrize("store", STORES)
def test_tasks_read_the_tables_of_a_store_and_write_to_it(
    spark: Any, store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    contents = []
    for number, off in enumerate(BOTH):
        engine = new_engine(spark, off, small_rows=1)
        schema = with_store(engine, store, tmp_path / str(number), request)
        first, second = (f"{schema}.inserted_{name}_{number}" for name in ("a", "b"))
        create = f"CREATE TABLE {first}{LAYOUTS[store]} AS SELECT id, part, CAST(d AS double) AS x FROM s"
        copy = (
            f"CREATE TABLE {second}{LAYOUTS[store]} AS SELECT id, part, x FROM {first} WHERE id < 4"
        )
        insert = f"INSERT INTO {second} (part, id) SELECT part || '!', id * 2 FROM {first} WHERE part = 'a'"
        itself = f"INSERT INTO {second} SELECT id, part, x FROM {second}"
        counts = []
        for statement in (create, copy, insert, itself):
            assert line_of(engine, statement) == ("" if off else ON_PAGES)
            counts.append(engine.run(statement).count)
        assert counts == [4, 2, 2, 4]
        contents.append(sorted(map(repr, engine.table(second).to_pylist())))
        for table in (first, second):
            engine.run(f"DROP TABLE {table}")
        engine.close()
    assert contents[0] == contents[1]
    assert len(contents[0]) == 8


@pytest.mark.parametrize("kind", ["arrow", "pandas", "duckdb"])
def test_tasks_read_frames(spark: Any, kind: str) -> None:
    frame: Any = ROWS
    if kind == "pandas":
        frame = pd.DataFrame({"id": [1, 2], "part": ["a", None], "x": [1.5, 2.5]})
    elif kind == "duckdb":
        frame = pytest.importorskip("duckdb").from_arrow(ROWS)
    engine = new_engine(spark)
    statement = "CREATE TABLE t AS SELECT id + 1 AS id, part, x FROM frame WHERE x IS NOT NULL"
    assert line_of(engine, statement, namespace={"frame": frame}) == ON_PAGES
    assert engine.run(statement, namespace={"frame": frame}).count == (2 if kind == "pandas" else 3)
    engine.close()


def test_a_frame_of_spark_is_read_by_spark_and_stored_anyway(spark: Any) -> None:
    engine = new_engine(spark)
    frame = spark.createDataFrame([(1, "a", 1.5), (2, None, 2.5)], "id int, part string, x double")
    statement = "CREATE TABLE t AS SELECT id, part, x FROM frame"
    assert (
        line_of(engine, statement, namespace={"frame": frame})
        == f"{BY_SPARK}'frame', a DataFrame of Spark"
    )
    assert engine.run(statement, namespace={"frame": frame}).count == 2
    engine.close()


def test_every_task_with_splits_writes_and_a_failing_one_leaves_nothing(
    spark: Any, tmp_path: Path
) -> None:
    rows = pa.table(
        {"id": np.arange(600_000), "part": pa.array(np.arange(600_000) % 8).cast(pa.string())}
    )
    layouts = {"": "", "placed": " WITH (partitioning = ARRAY['part'])"}
    writers = {}
    for name, layout in layouts.items():
        engine = new_engine(spark)
        engine.add_catalog("iceberg", IcebergConnector(tmp_path / f"ice{name}"))
        result = engine.run(
            f"CREATE TABLE iceberg.default.t{layout} AS SELECT * FROM rows",
            namespace={"rows": rows},
        )
        writers[name] = sum(writer.pages > 0 for writer in result.trace.writers)
        files = sorted((tmp_path / f"ice{name}").rglob("*.parquet"))
        with pytest.raises(RowMergeError) as raised:
            engine.run(
                "INSERT INTO iceberg.default.t SELECT id / (id - 555555), part FROM rows",
                namespace={"rows": rows},
            )
        assert (raised.value.code, raised.value.line, raised.value.column) == (
            "DIVISION_BY_ZERO",
            1,
            38,
        )
        assert sorted((tmp_path / f"ice{name}").rglob("*.parquet")) == files
        ids = engine.table("iceberg.default.t").column("id").to_numpy()
        assert np.array_equal(np.sort(ids), np.arange(600_000))
        engine.close()
    assert writers == {"": 2, "placed": 2}


@pytest.mark.parametrize("small_rows", [0, 10_000])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id / (id - 4) AS id, x FROM s",
        "SELECT id, CAST(part AS double) AS x FROM s WHERE id > 1 AND x > 1",
    ],
)
def test_a_query_of_a_merge_fails_on_pages_as_by_spark(
    spark: Any, query: str, small_rows: int
) -> None:
    found = []
    for off in ((), ("source_on_pages",)):
        engine = new_engine(spark, frozenset(off), small_rows=small_rows)
        engine.run("CREATE TABLE t AS SELECT id, x FROM s")
        merge = f"MERGE INTO t USING ({query}) q ON t.id = q.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (q.id, q.x)"
        meaning = next(
            node.meaning
            for node in engine.run(merge, dry_run=True).trace.plan
            if node.kind == "Source"
        )
        assert ("tasks compute it on the pages" in meaning) == (not off)
        found.append(outcome(engine, merge))
        engine.close()
    assert found[0] == found[1]
    assert found[0]["report"][2:] != (None, None)


def test_the_rules_can_be_disabled() -> None:
    both = ["insert_on_pages", "source_on_pages"]
    assert Options().changed(rules_off=both).rules_off == frozenset(both)
    with pytest.raises(RowMergeError, match="insert_on_pages"):
        Options().changed(rules_off=["insert_by_pages"])
