"""Row counts of a dry run: exact, bounded or unknown, without running anything."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.trace.saved.schema import decoded, encoded


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = Engine()
    engine.register("t", pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}), not_null=["id"])
    engine.register("s", pa.table({"id": [1, 4], "v": ["x", "y"]}))
    engine.register(
        "nothing", pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.string())})
    )
    return engine


def would(engine: Engine, sql: str, kind: str, **options: Any) -> str:
    trace = engine.run(sql, dry_run=True, **options).trace
    return next(str(record.would) for record in trace.plan if record.kind == kind)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("TABLE s", "2 rows"),
        ("VALUES 1, 2, 3", "3 rows"),
        ("VALUES 1, CAST('2' AS integer)", "2 rows"),
        ("SELECT 1", "1 row"),
        ("SELECT id FROM s", "2 rows"),
        ("SELECT id FROM s WHERE id > 1", "at most 2 rows"),
        ("SELECT DISTINCT v FROM t", "at most 3 rows"),
        ("SELECT v, count(*) FROM t GROUP BY v", "at most 3 rows"),
        ("SELECT v, count(*) FROM t GROUP BY ROLLUP (v)", "at most 6 rows"),
        ("SELECT count(*) FROM t WHERE id > 7", "1 row"),
        ("SELECT 1 FROM t HAVING count(*) > 7", "at most 1 row"),
        ("SELECT 1 FROM nothing HAVING count(*) = 0", "at most 1 row"),
        ("SELECT id FROM t LIMIT 2", "2 rows"),
        ("SELECT id FROM t OFFSET 1 LIMIT 7", "2 rows"),
        ("SELECT id FROM t WHERE id > 1 OFFSET 3", "0 rows"),
        ("SELECT * FROM UNNEST(ARRAY[1, 2])", "None"),
        ("SELECT * FROM UNNEST(ARRAY[1, 2]) LIMIT 1", "at most 1 row"),
        ("TABLE t UNION ALL TABLE s", "5 rows"),
        ("TABLE t UNION TABLE s", "at most 5 rows"),
        ("TABLE t EXCEPT TABLE s", "at most 3 rows"),
        ("TABLE t INTERSECT TABLE s", "at most 2 rows"),
        ("SELECT t.id FROM t CROSS JOIN s", "6 rows"),
        ("SELECT t.id FROM t JOIN s ON t.id = s.id", "at most 6 rows"),
        ("SELECT t.id FROM t LEFT JOIN nothing n ON t.id = n.id", "at most 3 rows"),
        ("SELECT id FROM t FULL JOIN nothing n USING (id)", "at most 3 rows"),
        ("SELECT s.id FROM nothing n FULL JOIN s ON s.id = n.id", "at most 2 rows"),
        ("WITH t AS (SELECT id FROM s) SELECT * FROM t", "2 rows"),
    ],
)
def test_rows_of_a_query(engine: Engine, query: str, rows: str) -> None:
    assert would(engine, query, "Source") == rows


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 FROM nothing HAVING count(*) = 0",
        "SELECT count(*) FROM t WHERE id > 7",
        "SELECT 1 FROM t GROUP BY ()",
        "SELECT id FROM t OFFSET 1 LIMIT 7",
        "TABLE t UNION ALL TABLE s",
        "SELECT s.id FROM nothing n FULL JOIN s ON s.id = n.id",
        "SELECT v, count(*) FROM t GROUP BY v",
    ],
)
def test_reported_row_counts_match_the_result(engine: Engine, query: str, spark: Any) -> None:
    told = engine.run(query, dry_run=True).trace.plan[-1].would
    assert told is not None
    rows = engine.run(query)
    assert rows.table is not None
    count = rows.table.num_rows
    assert count == told.rows if told.exact else count <= told.rows


@pytest.mark.parametrize(
    ("sql", "kind", "rows"),
    [
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", "Join", "at most 6 rows"),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "MergeProcessor",
            "at most 6 rows",
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'q'",
            "MergeProcessor",
            "at most 12 rows",
        ),
        (
            "MERGE INTO nothing t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
            "Join",
            "2 rows",
        ),
        ("MERGE INTO t USING nothing s ON t.id = s.id WHEN MATCHED THEN DELETE", "Join", "0 rows"),
        ("DELETE FROM t", "DeleteProject", "3 rows"),
        ("DELETE FROM t WHERE id = 2", "TableScan", "at most 3 rows"),
        ("DELETE FROM t WHERE v LIKE '%x'", "Filter", "at most 3 rows"),
        ("UPDATE t SET v = 'x'", "MergeProcessor", "6 rows"),
        ("UPDATE t SET v = 'x' WHERE id = 2", "MergeProcessor", "at most 6 rows"),
    ],
)
def test_rows_of_a_change(engine: Engine, sql: str, kind: str, rows: str) -> None:
    assert would(engine, sql, kind) == rows


def test_a_source_of_unknown_size_has_no_row_count(engine: Engine) -> None:
    sql = "MERGE INTO t USING (SELECT x FROM UNNEST(ARRAY[1]) u(x)) s ON t.id = s.x WHEN MATCHED THEN DELETE"
    assert [would(engine, sql, kind) for kind in ("Source", "Join", "MergeProcessor")] == [
        "None"
    ] * 3


def test_the_report_uses_the_conditional(engine: Engine) -> None:
    shown = mime_bundle(engine.run("INSERT INTO t VALUES (7, 'x'), (8, 'y')", dry_run=True).trace)
    assert "It would read 2 rows of the query and insert 2 rows." in " ".join(
        shown["text/plain"].split()
    )
    assert "would be 2 rows" in shown["text/plain"]
    sql = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    shown = mime_bundle(engine.run(sql, dry_run=True).trace)
    assert "It would read 3 rows of t and 2 rows of s." in " ".join(shown["text/plain"].split())
    assert "no row counts" not in shown["text/plain"]
    assert "<td>at most 6 rows</td>" in shown["text/html"]


def test_explain_is_drawn_in_html_and_its_text_stays_unchanged(engine: Engine) -> None:
    sql = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    shown = engine.explain(sql)._repr_mimebundle_()
    assert shown["text/plain"].startswith("Fragment 0 [COORDINATOR_ONLY]")
    assert "would" not in shown["text/plain"]
    assert "<svg" in shown["text/html"]
    assert "As EXPLAIN prints it" in shown["text/html"]
    assert "TableCommit[target = t]" in shown["text/html"]


def test_explain_validate_and_show_create_have_nothing_to_draw(engine: Engine) -> None:
    for sql in ("EXPLAIN (TYPE VALIDATE) DELETE FROM t", "SHOW CREATE TABLE t"):
        assert "<svg" not in engine.run(sql)._repr_mimebundle_()["text/html"]


def test_a_saved_trace_has_it(engine: Engine) -> None:
    trace = engine.run("DELETE FROM t", dry_run=True).trace
    assert [record.would for record in decoded(encoded(trace)).plan] == [
        record.would for record in trace.plan
    ]
    assert trace.plan[-1].would is not None


def test_a_statement_that_ran_nothing_reports_what_would_happen(engine: Engine) -> None:
    made = engine.run("CREATE TABLE u (id bigint)")
    assert all(record.would is None for record in made.trace.plan)
