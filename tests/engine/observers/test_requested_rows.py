"""Rows missing from a trace are explained on request: with the run, or from the former version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rowmerge_nb import Engine, Result, RowMergeError, load_trace, save_trace
from rowmerge_nb.connectors.hive_acid.hive_connector import HiveAcidConnector
from rowmerge_nb.connectors.iceberg.iceberg_connector import IcebergConnector
from rowmerge_nb.connectors.jdbc.sqlite.sqlite_connector import SqliteConnector
from rowmerge_nb.engine.observers import requested_rows
from rowmerge_nb.plan.rules import RuleSettings
from rowmerge_nb.trace.journeys import asked_journeys, journeys_of
from tests.trace.parts import with_parts

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MERGE = """MERGE INTO {table} t USING (VALUES (1, 2), (2, 3), (NULL, 4), (3, 9), (4, 200)) AS q (id, m) ON t.id = q.id
WHEN MATCHED AND (n <> 0 AND 10 / n > 3 OR s = 'x') THEN DELETE
WHEN MATCHED AND NOT s = 'c' THEN UPDATE SET n = m
WHEN NOT MATCHED AND m > 100 THEN INSERT VALUES (q.id, m, 'new')"""
LARGE = RuleSettings(small_rows=0, key_rows=0)
BY_SPARK = {"rules_off": {"change_in_task"}}


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Engine:
    engine = Engine(spark=spark, rule_settings=LARGE, dialect="extended")
    engine.add_catalog("ice", IcebergConnector(tmp_path / "ice"))
    engine.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    return engine


def filled(engine: Engine, catalog: str = "memory") -> str:
    engine.run(f"CREATE SCHEMA IF NOT EXISTS {catalog}.default")
    table = f"{catalog}.default.t"
    engine.run(
        f"CREATE TABLE {table} AS SELECT * FROM (VALUES (1, 0, VARCHAR 'a'), (2, 5, NULL), (3, 7, 'c'), (9, 9, 'z')) AS v (id, n, s)"
    )
    return table


@pytest.mark.parametrize("catalog", ["memory", "ice", "hive"])
@pytest.mark.parametrize("options", [{}, BY_SPARK], ids=["in tasks", "by Spark"])
def test_rows_looked_up_later_match_a_whole_trace(
    engine: Engine, catalog: str, options: Any
) -> None:
    table = filled(engine, catalog)
    whole = engine.run(MERGE.format(table=table), rehearse=True, trace="full", **options)
    result = engine.run(MERGE.format(table=table), trace="off", **options)
    engine.run(f"DELETE FROM {table}")
    assert journeys_of(result.trace) is None
    for row in range(5) if catalog == "memory" else (2, 4):
        [found], [wanted] = result.why(row), whole.why(source_row=row)
        assert replace(found, writers=wanted.writers, page_row=wanted.page_row) == wanted
    assert str(result.why(id=2)).splitlines() == [
        "Source row 1 (2, 3): no clause fired",
        "  It has a partner: ON is true: t.id = q.id (q.id = 2, t.id = 2).",
        "  Clause 0 is unknown: s = 'x', since t.s is NULL.",
        "  Clause 1 is unknown: s = 'c', since t.s is NULL.",
        "  No clause fires, so the row does nothing.",
    ]
    assert [row.source_row for row in result.why({"S": "c"})] == [3]
    assert [row.source_row for row in result.why(id="4", m=200)] == [4]
    assert [row.source_row for row in result.why(id=None)] == [2]


@pytest.mark.parametrize("catalog", ["memory", "ice", "hive"])
def test_rows_requested_with_the_run_are_whole_in_the_trace_and_in_a_saved_one(
    engine: Engine, catalog: str, tmp_path: Path
) -> None:
    table = filled(engine, catalog)
    result = engine.run(MERGE.format(table=table), trace="off", why="t.id = 2 OR q.id = 4")
    found = asked_journeys(result.trace)
    assert [(row.source_row, row.operation.name, row.becomes, row.made) for row in found] == [
        (1, "NONE", "", None),
        (4, "INSERT", "I", {"id": 4, "n": 200, "s": "new"}),
    ]
    assert "Source row 4 (4, 200): clause 2 INSERT\n  It has no partner" in str(result)
    save_trace(result.trace, tmp_path / "trace.json")
    saved = Result(load_trace(tmp_path / "trace.json"))
    assert list(saved.why(id=2)) == list(result.why(id=2))
    assert list(saved.journeys().source_row) == [1, 4]
    with pytest.raises(
        RowMergeError, match="INVALID_ARGUMENTS: None of the 2 rows that took part is id = 3"
    ):
        saved.why(id=3)


def test_updates_and_deletes_explain_rows_selected_by_where(engine: Engine) -> None:
    table = filled(engine)
    update = engine.run(f"UPDATE {table} SET n = n + 1 WHERE id < 3", trace="off", why="id = 1")
    assert [row.made for row in update.why(id=1)] == [{"id": 1, "n": 1, "s": "a"}]
    assert [row.made for row in update.why(id=2)] == [{"id": 2, "n": 6, "s": None}]
    delete = engine.run(f"DELETE FROM {table} WHERE id = 3", trace="off")
    assert str(delete.why(s="c")).splitlines()[1] == "  WHERE is true: id = 3 (t.id = 3)."
    with pytest.raises(
        RowMergeError,
        match=r"None of the 1 row that took part is id = 1.* Rows that WHERE has not selected",
    ):
        delete.why(id=1)


def test_rows_of_no_source_are_found_too(engine: Engine) -> None:
    table = filled(engine)
    result = engine.run(
        f"MERGE INTO {table} t USING (VALUES 1) AS q (id) ON t.id = q.id WHEN NOT MATCHED BY SOURCE AND n > 6 THEN DELETE",
        trace="off",
        **BY_SPARK,
    )
    [found] = result.why(s="z")
    assert (found.join, found.source, found.becomes) == ("not matched by source", None, "D")
    # The source's id of such a row is NULL because there is no source row, and is not one of its values.
    with pytest.raises(RowMergeError, match="None of the 4 rows that took part is id = None"):
        result.why(id=None)
    assert [row.target["id"] for row in result.why(s=None) if row.target] == [2]


@pytest.mark.parametrize("catalog", ["memory", "ice", "hive"])
@pytest.mark.parametrize(
    "on", ["t.id = q.id", "lower(t.s) = lower(q.s)", "t.id = q.id AND t.n > q.m"]
)
def test_unmatched_target_rows_are_found_unchanged(engine: Engine, catalog: str, on: str) -> None:
    table = filled(engine, catalog)
    merge = f"MERGE INTO {table} t USING (VALUES (1, -1, 'A'), (3, 1, 'C')) AS q (id, m, s) ON {on} WHEN MATCHED THEN UPDATE SET n = 0"
    result = engine.run(merge, trace="off")
    engine.run(f"UPDATE {table} SET n = 77")
    assert str(result.why(s="z")).splitlines() == [
        "Target row (9, 9, z): no clause fired",
        "  No source row matches it.",
        "  No clause fires, so the row does nothing.",
    ]
    # A joined row is reported as such, once.
    assert [(row.source_row, row.join) for row in result.why(id=3)] == [(1, "matched")]
    with pytest.raises(RowMergeError, match="None of the 2 rows that took part is s = 'y'"):
        result.why(s="y")


def test_rows_of_a_hive_table_are_looked_up_until_they_are_compacted_with_later_changes(
    engine: Engine,
) -> None:
    table = filled(engine, "hive")
    engine.run(f"DELETE FROM {table} WHERE id = 9")
    result = engine.run(MERGE.format(table=table), trace="off")
    assert (result.version_before, result.version_after) == (2, None)
    engine.run(f"UPDATE {table} SET n = 77")

    def told() -> list[Any]:
        return [row.target["n"] for row in result.why(id=3) if row.target]

    assert told() == [7]
    engine.run("CALL hive.system.compact('default', 't', 'minor')")
    assert told() == [7]
    engine.run("CALL hive.system.remove_obsolete('default', 't')")
    with pytest.raises(
        RowMergeError,
        match="NOT_SUPPORTED: The rows that this MERGE had can no longer be read: Not"
        " enough history",
    ) as caught:
        told()
    assert "--why" in (caught.value.hint or "")


def test_a_store_without_versions_suggests_a_request_with_the_run(
    engine: Engine, tmp_path: Path
) -> None:
    engine.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
    engine.run(
        "CREATE TABLE lite.main.t (id bigint, n bigint, s varchar) WITH (primary_key = ARRAY['id'])"
    )
    engine.run("INSERT INTO lite.main.t VALUES (1, 0, 'a'), (2, 5, NULL), (3, 7, 'c'), (9, 9, 'z')")
    rehearsed = engine.run(MERGE.format(table="lite.main.t"), trace="off", rehearse=True)
    assert [row.source_row for row in rehearsed.why(id=1)] == [0]
    result = engine.run(MERGE.format(table="lite.main.t"), trace="off")
    with pytest.raises(
        RowMergeError, match="NOT_SUPPORTED: Connector 'sqlite' does not keep the version"
    ) as caught:
        result.why(id=1)
    assert "--why" in (caught.value.hint or "")


def test_an_expired_version_suggests_a_request_with_the_run(engine: Engine) -> None:
    table = filled(engine)
    result = engine.run(MERGE.format(table=table), trace="off")
    engine.run(f"DROP TABLE {table}")
    filled(engine)
    result.trace = with_parts(result.trace, target={"version_before": 99})
    assert result.again is not None
    result.again = replace(result.again, trace=result.trace)
    with pytest.raises(
        RowMergeError, match="NOT_SUPPORTED: The rows that this MERGE had can no longer be read"
    ) as caught:
        result.why(id=1)
    assert "--why" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("condition", "code", "column"),
    [
        ("t.idd = 3", "COLUMN_NOT_FOUND", 1),
        ("true AND id", "TYPE_MISMATCH", 10),
        ("random() > 1", "NOT_SUPPORTED", 1),
        ("t.id IN (SELECT 1)", "NOT_SUPPORTED", 1),
        ("t.id =", "SYNTAX_ERROR", 7),
        ("id = 1 id", "SYNTAX_ERROR", 8),
    ],
)
def test_a_wrong_condition_is_reported_at_its_position_before_anything_begins(
    engine: Engine, condition: str, code: str, column: int
) -> None:
    table = filled(engine)
    with pytest.raises(RowMergeError) as caught:
        engine.run(f"-- a comment\n\n{MERGE.format(table=table)}", why=condition)
    error = caught.value
    assert (error.code, error.line, error.column, error.statement) == (code, 1, column, condition)
    assert error.changed is False
    assert engine.table(table).num_rows == 4


@pytest.mark.parametrize(
    ("wanted", "code"),
    [({"idd": 3}, "INVALID_ARGUMENTS"), ({"id": 99}, "INVALID_ARGUMENTS"), ({"id": [1]}, "NOT_SUPPORTED"), ({"m": 1, "n": 1}, "INVALID_ARGUMENTS")],
)  # fmt: skip
def test_impossible_requests_are_refused_with_a_next_step(
    engine: Engine, wanted: Any, code: str
) -> None:
    result = engine.run(MERGE.format(table=filled(engine)), trace="off")
    with pytest.raises(RowMergeError) as caught:
        result.why(**wanted)
    assert (caught.value.code, bool(caught.value.hint)) == (code, True)


def test_a_column_named_source_row_is_not_a_row_number(engine: Engine) -> None:
    engine.run(
        "CREATE TABLE t AS SELECT * FROM (VALUES (7, VARCHAR 'a'), (8, 'b')) AS v (source_row, s)"
    )
    merge = "MERGE INTO t USING (VALUES 7, 8) AS q (k) ON t.source_row = q.k WHEN MATCHED THEN UPDATE SET s = 'x'"
    for level in ("off", "full"):
        result = engine.run(merge, rehearse=True, trace=level)
        with pytest.raises(RowMergeError, match="AMBIGUOUS_NAME"):
            result.why(source_row=1)
        assert [row.source_row for row in result.why({"source_row": 7})] == [0]
        assert [row.source_row for row in result.why(1)] == [1]


def test_at_most_thirty_rows_are_listed_and_the_limit_is_reported(engine: Engine) -> None:
    filled(engine)
    frame = pd.DataFrame({"id": range(100), "m": range(100)})
    merge = "MERGE INTO t USING frame q ON t.id = q.id WHEN NOT MATCHED THEN INSERT VALUES (q.id, m, 'new')"
    result = engine.run(merge, trace="off", why="m >= 10", namespace={"frame": frame})
    assert result.trace.samples.requested_rows is not None
    assert (
        [row.source_row for row in asked_journeys(result.trace)],
        result.trace.samples.requested_rows.more,
    ) == (
        [*range(10, 40)],
        True,
    )
    assert "There are more such rows" in str(result)


def test_a_source_that_may_have_other_rows_is_not_read_again(engine: Engine, spark: Any) -> None:
    filled(engine)
    merge = "MERGE INTO t USING frame q ON t.id = q.id WHEN NOT MATCHED THEN INSERT VALUES (q.id, 1, 'new')"
    frame = spark.range(5).selectExpr("CAST(id AS int) AS id")
    result = engine.run(
        merge, trace="off", why="q.id = 1", namespace={"frame": frame}, rehearse=True
    )
    assert result.trace.samples.requested_rows is not None
    assert result.trace.samples.requested_rows.problem == requested_rows.UNREPEATABLE
    with pytest.raises(RowMergeError, match="NOT_SUPPORTED: The source may return different rows"):
        result.why(id=1)


def test_an_explanation_that_fails_does_not_fail_the_statement(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(engine)

    def broken(*_: Any) -> Any:
        msg = "no rows today"
        raise OSError(msg)

    monkeypatch.setattr(requested_rows, "requested_rows", broken)
    result = engine.run(MERGE.format(table=table), why="q.id = 1")
    assert result.trace.samples.requested_rows is not None
    assert (
        result.trace.samples.requested_rows.problem
        == "They could not be read again: OSError: no rows today."
    )
    assert result.count == 2


def test_the_older_flow_refuses_and_other_statements_have_no_such_rows(engine: Engine) -> None:
    table = filled(engine)
    with pytest.raises(
        RowMergeError, match="NOT_SUPPORTED: Rows cannot be requested with the older flow"
    ):
        engine.run(f"UPDATE {table} SET n = 1", flow="updatable", why="id = 1")
    assert engine.run(f"SELECT * FROM {table}", why="id = 1").trace.samples.requested_rows is None
    assert (
        engine.run(
            f"UPDATE {table} SET n = 1", dry_run=True, why="id = 1"
        ).trace.samples.requested_rows
        is None
    )
