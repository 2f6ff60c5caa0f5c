"""A statement is rerun on its former rows, unchanged or with changes, and the table is not affected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import (
    Engine,
    HiveAcidConnector,
    RowMergeError,
    SqliteConnector,
    load_trace,
    save_trace,
)
from rowmerge_nb.trace.journeys import journeys_of
from tests.trace.parts import with_parts

pytestmark = pytest.mark.spark

CREATE = """CREATE TABLE {t} AS SELECT * FROM (VALUES
    (1, 10, VARCHAR 'a', TIMESTAMP '2024-05-01 10:00:00 Asia/Kolkata'),
    (2, 20, 'b', TIMESTAMP '2024-05-01 10:00:00 UTC'),
    (3, NULL, 'c', NULL), (NULL, 40, 'd', NULL)) AS v (id, n, "odd name", at)"""
MERGE = """MERGE INTO {t} t USING (VALUES (1, 5), (3, 6), (3, 7), (9, 8)) AS s (id, m) ON t.id = s.id
WHEN MATCHED AND t.n > s.m THEN UPDATE SET n = s.m
WHEN MATCHED AND s.m = 6 THEN DELETE
WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.m)"""
STATEMENTS = (
    MERGE,
    "UPDATE {t} SET n = n + 1 WHERE id < 3",
    "UPDATE {t} SET n = 0",
    "DELETE FROM {t} WHERE n IS NULL",
    "DELETE FROM {t}",
)


@pytest.fixture
def engine(spark: Any) -> Engine:
    return Engine(spark=spark, dialect="extended")


def ways(trace: Any) -> list[tuple[Any, ...]]:
    """Return the values and the outcome per joined row, in any order."""
    found = journeys_of(trace) or ()
    return sorted(
        ((j.source_row, j.source, j.target, j.join, j.case_number, j.made) for j in found), key=repr
    )


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_row_has_its_former_outcome_in_a_rerun(engine: Engine, statement: str) -> None:
    engine.run(CREATE.format(t="t"))
    result = engine.run(statement.format(t="t"))
    there = engine.table("t")
    again = result.what_if()
    assert ways(again.trace) == ways(result.trace)
    assert (again.count, again.trace.committed) == (result.count, False)
    assert engine.table("t").equals(there)
    assert ways(again.what_if().trace) == ways(result.trace)


def test_clocks_keep_their_meaning_in_any_later_zone_of_the_session(engine: Engine) -> None:
    engine.run(CREATE.format(t="t"))
    engine.run("SET TIME ZONE 'Asia/Tokyo'")
    result = engine.run("DELETE FROM t WHERE at = TIMESTAMP '2024-05-01 19:00:00'")
    assert result.count == 1
    engine.run("SET TIME ZONE 'America/New_York'")
    assert result.what_if().count == 1
    asked = result.again.asked(None, None, {"id": 2}).samples.requested_rows
    assert asked.pages.after.num_rows == 1
    engine.run("RESET SESSION time_zone_id")
    assert result.what_if().count == 1
    assert engine.run("SELECT current_timezone()").to_pandas().iloc[0, 0] == "UTC"


def test_the_other_paradigm_can_be_tried_on_a_store_with_one_paradigm(
    engine: Engine, tmp_path: Path
) -> None:
    engine.add_catalog("shop", SqliteConnector(tmp_path / "shop.db", create=True))
    engine.run("CREATE TABLE shop.main.t (id bigint, n bigint) WITH (primary_key = ARRAY['id'])")
    engine.run("INSERT INTO shop.main.t VALUES (1, 10), (2, 20)")
    result = engine.run("UPDATE shop.main.t SET n = n + 1 WHERE id = 1")
    other = "DELETE_ROW_AND_INSERT_ROW"
    assert result.trace.settings.paradigm != other
    tried = result.what_if(paradigm=other)
    assert (
        tried.trace.settings.paradigm,
        [journey.becomes for journey in journeys_of(tried.trace) or ()],
    ) == (other, ["DI"])
    assert engine.run("SELECT n FROM shop.main.t ORDER BY id").table == pa.table({"n": [11, 20]})


def test_another_statement_is_tried_on_the_rows_that_took_part(engine: Engine) -> None:
    engine.run(CREATE.format(t="t"))
    result = engine.run(MERGE.format(t="t"))
    tried = result.what_if(result.trace.statement.replace("t.n > s.m", "t.n < s.m"))
    assert tried.counts == {"INSERT": 1, "UPDATE": 0, "DELETE": 1, "none": 2}
    # The former version has the rows that no condition mentioned, as long as it is kept; later, those of the trace exist.
    everything = "UPDATE t SET n = 1"
    assert result.what_if(everything).count == 4
    assert set(engine.table("t").column("n").to_pylist()) == {5, 20, 40, 8}
    other = engine.run("UPDATE t SET n = 2 WHERE id = 9")
    for _ in range(8):
        engine.run("UPDATE t SET n = 3 WHERE id = 9")
    assert other.what_if(everything).count == 1
    assert (
        engine.run("UPDATE t SET n = 2 WHERE id = 9", rehearse=True).what_if(everything).count == 4
    )


def test_rows_missing_from_the_copy_are_reported(engine: Engine, tmp_path: Path) -> None:
    engine.add_catalog("shop", SqliteConnector(tmp_path / "shop.db", create=True))
    engine.run(
        "CREATE TABLE shop.main.t WITH (primary_key = ARRAY['id']) AS SELECT * FROM (VALUES (1, 5), (2, 6), (3, 7)) AS v (id, n)"
    )
    result = engine.run("UPDATE shop.main.t SET n = 0 WHERE id < 3")
    again = result.what_if("DELETE FROM shop.main.t WHERE id = 3")
    [notice] = again.trace.notices
    assert notice.message.startswith(
        "The copy has 2 of 3 rows of shop.main.t: those that took part"
    )
    assert (again.trace.target.rows_before, again.trace.target.rows_after, again.balance) == (
        None,
        None,
        None,
    ), "the copy's are not the table's"
    assert " → " not in str(again).split("\n\n")[0]
    explorer = result.explore()
    explorer.statement = "UPDATE shop.main.t SET n = 1 WHERE id < 3"
    assert explorer.state["trial"]["note"] == notice.message
    assert (
        engine.run("DELETE FROM shop.main.t WHERE id = 3", rehearse=True).what_if().trace.notices
        == ()
    )


def test_untouched_rows_are_those_of_the_run_or_of_the_requested_trial(
    engine: Engine,
) -> None:
    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, 30)) AS v (id, n)")
    result = engine.run("UPDATE t SET n = 0 WHERE id = 1")
    tried = result.what_if("UPDATE t SET n = 0 WHERE id > 1")
    assert result.again is not None
    assert tried.again is not None
    for again in (result.again, tried.again):
        rows = again.untouched(tried.trace)
        assert rows is not None
        assert rows.column("id").to_pylist() == [1]
    rows = result.again.untouched(result.trace)
    assert rows is not None
    assert rows.column("id").to_pylist() == [2, 3]


def test_rows_that_a_trial_no_longer_joins_are_untouched(engine: Engine, tmp_path: Path) -> None:
    engine.add_catalog("shop", SqliteConnector(tmp_path / "shop.db", create=True))
    engine.run(
        "CREATE TABLE shop.main.t WITH (primary_key = ARRAY['id']) AS SELECT * FROM (VALUES (1, 5), (2, 6), (3, 7)) AS v (id, n)"
    )
    result = engine.run("UPDATE shop.main.t SET n = 0 WHERE id < 3")
    assert result.again is not None
    assert result.again.untouched(result.trace) is None
    rows = result.again.untouched(result.what_if("DELETE FROM shop.main.t WHERE id = 2").trace)
    assert rows is not None
    assert rows.column("id").to_pylist() == [1]


def test_a_copy_of_all_rows_misses_none_with_or_without_a_row_count(
    engine: Engine, tmp_path: Path
) -> None:
    engine.add_catalog("hive", HiveAcidConnector(tmp_path))
    engine.run(
        "CREATE TABLE hive.default.t AS SELECT * FROM (VALUES (1, 10), (2, 20)) AS v (id, n)"
    )
    result = engine.run("DELETE FROM hive.default.t WHERE id = 1", rehearse=True)
    result.trace = with_parts(result.trace, target={"rows_before": None})
    result.again = replace(result.again, trace=result.trace)
    assert result.what_if().trace.notices == ()


@pytest.mark.parametrize("columns", ["q varchar, p integer", "id date, n integer"])
def test_a_table_with_other_columns_is_not_a_copy_of_the_former_one(
    engine: Engine, columns: str
) -> None:
    engine.run("CREATE TABLE t AS SELECT VARCHAR 'a' AS id, 5 AS n")
    result = engine.run("UPDATE t SET n = 0", trace="full")
    engine.run_script(f"DROP TABLE t; CREATE TABLE t ({columns})")
    with pytest.raises(RowMergeError, match="than its rows had") as refused:
        result.what_if()
    assert refused.value.code == "TRANSACTION_CONFLICT"


def test_a_rule_that_ends_the_statement_ends_the_trial(engine: Engine) -> None:
    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 10)) AS v (id, n)")
    twice = """MERGE INTO t USING (VALUES (1, 1), (1, 2)) AS s (id, m) ON t.id = s.id
    WHEN MATCHED AND m = 1 THEN UPDATE SET n = m WHEN MATCHED AND m = 2 THEN UPDATE SET n = m + 1"""
    result = engine.run(twice, rehearse=True)
    with pytest.raises(RowMergeError) as failed:
        result.what_if(duplicates="standard")
    assert failed.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    assert failed.value.result is not None


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM other",
        "DROP TABLE t",
        "SELECT * FROM t",
        "EXPLAIN DELETE FROM t",
        "INSERT INTO t VALUES (1, 1)",
    ],
)
def test_only_statements_that_change_rows_of_the_same_table_are_tried(
    engine: Engine, sql: str
) -> None:
    engine.run_script(
        "CREATE TABLE t (id bigint, n bigint); CREATE TABLE other (id bigint); INSERT INTO t VALUES (1, 2)"
    )
    result = engine.run("UPDATE t SET n = 3")
    with pytest.raises(
        RowMergeError, match=r"not a MERGE, UPDATE or DELETE of memory\.default\.t"
    ) as refused:
        result.what_if(sql)
    assert refused.value.code == "INVALID_ARGUMENTS"
    assert engine.table("t").to_pylist() == [{"id": 1, "n": 3}]


def test_a_statement_that_cannot_be_rerun_names_the_reason(engine: Engine, tmp_path: Path) -> None:
    engine.run(CREATE.format(t="t"))
    query = engine.run("SELECT 1")
    with pytest.raises(RowMergeError, match="This SELECT cannot be run again") as refused:
        query.what_if()
    assert refused.value.code == "NOT_SUPPORTED"
    engine.add_catalog("shop", SqliteConnector(tmp_path / "shop.db", create=True))
    engine.run("CREATE TABLE shop.main.t WITH (primary_key = ARRAY['id']) AS SELECT 1 AS id")
    off = engine.run("DELETE FROM shop.main.t WHERE id = 1", trace="off")
    with pytest.raises(RowMergeError, match="does not have all rows") as refused:
        off.what_if()
    assert refused.value.code == "NOT_SUPPORTED"
    result = engine.run("DELETE FROM t WHERE id = 2")
    with pytest.raises(RowMergeError, match="There is no option 'paradime'"):
        result.what_if(paradime="x")
    for option in ({"rehearse": True}, {"trace": "auto"}, {"dry_run": True}):
        with pytest.raises(RowMergeError, match="is not possible here") as refused:
            result.what_if(**option)
        assert refused.value.code == "INVALID_ARGUMENTS"
    save_trace(result.trace, tmp_path / "t.json")
    assert load_trace(tmp_path / "t.json").statement == "DELETE FROM t WHERE id = 2"
    last = engine.run("DELETE FROM t WHERE id = 3")
    engine.run("DROP TABLE t")
    assert result.what_if().count == 1, "its copy is there still"
    with pytest.raises(RowMergeError, match=r"'memory\.default\.t' no longer exists") as gone:
        last.what_if()
    assert gone.value.code == "TABLE_NOT_FOUND"


# -- in the explorer


def test_the_explorer_shows_a_trial_and_who_changes_hands(engine: Engine) -> None:
    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20)) AS v (id, n)")
    engine.register("changes", pa.table({"id": [1, 2, 3], "m": [5, 6, 7]}))
    statement = "MERGE INTO t USING changes s ON t.id = s.id WHEN MATCHED AND m = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET n = m"
    explorer = engine.run(statement).explore()
    run = explorer.state
    assert run["choices"]["era"] == ["documents", "current"]
    explorer.paradigm = "CHANGE_ONLY_UPDATED_COLUMNS"
    # The outcome of these rows is known without a run.
    assert (explorer.state, explorer.tried, explorer.trouble, explorer.tries) == (run, None, "", 1)
    assert "CHANGE_ONLY_UPDATED_COLUMNS|documents|trino" in run["otherwise"]["changes"]
    explorer.statement = statement.replace("m = 5", "m = 6")
    assert [(one["name"], one["was"], one["is"]) for one in explorer.state["trial"]["moved"]] == [
        ("1", "clause 0 DELETE", "clause 1 UPDATE"),
        ("2", "clause 1 UPDATE", "clause 0 DELETE"),
    ]
    assert (explorer.tried.count, explorer.trouble, explorer.tries) == (2, "", 2)
    assert explorer.tried.trace.settings.paradigm == "CHANGE_ONLY_UPDATED_COLUMNS"
    assert explorer.state["trial"]["differs"] == [
        "case",
        "distinct",
        "transform",
        "sinks",
        "finish",
        "commit",
    ]
    shown = explorer.state
    explorer.statement = "MERGE INTO"
    assert explorer.trouble.startswith("SYNTAX_ERROR: line 1:11")
    assert (explorer.state, explorer.tried) == (shown, None)
    with pytest.raises(RowMergeError, match="era = 'old' is not possible"):
        explorer.era = "old"
    explorer.statement, explorer.paradigm = explorer.asrun["statement"], explorer.asrun["paradigm"]
    assert (explorer.state, explorer.trouble) == (run, "")
    assert engine.table("t").num_rows == 1


def test_a_source_changed_since_the_run_is_reported(engine: Engine) -> None:
    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20)) AS v (id, n)")
    engine.run("CREATE TABLE changes AS SELECT * FROM (VALUES (1, 5)) AS v (id, m)")
    explorer = engine.run(
        "MERGE INTO t USING changes s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = m"
    ).explore()
    engine.run("UPDATE changes SET m = 6")
    explorer.statement = explorer.statement.replace("n = m", "n = m + 1")
    assert explorer.state["trial"]["note"].endswith("a source has changed since.")


def test_an_explorer_of_a_lone_trace_tries_nothing_and_says_so(engine: Engine) -> None:
    from rowmerge_nb.report.explorer.widget import Explorer

    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20)) AS v (id, n)")
    explorer = Explorer(engine.run("DELETE FROM t WHERE id = 1").trace)
    assert explorer.state["choices"] is None
    explorer.era = "current"
    assert explorer.trouble == "The statement cannot run again: its engine is not available."


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO t USING (VALUES (1, 5), (1, 6)) AS s (id, m) ON t.id = s.id WHEN MATCHED AND m = 5 THEN DELETE",
        "DELETE FROM t WHERE id = 1",
    ],
)
def test_unjoined_rows_are_named_as_long_as_they_are_available(
    engine: Engine, statement: str
) -> None:
    engine.run(CREATE.format(t="t"))
    result = engine.run(statement, rehearse=True)
    state = result.explore().state
    assert [row["cells"][:3] for row in state["others"]] == [
        ["2", "20", "b"],
        ["3", None, "c"],
        [None, "40", "d"],
    ]
    assert state["untouched"] == 3
    committed = engine.run(statement)
    assert [row["cells"][:3] for row in committed.explore().state["others"]] == [
        row["cells"][:3] for row in state["others"]
    ]
    for _ in range(8):
        engine.run("UPDATE t SET n = 3 WHERE id = 2")
    # Rows that were read once stay with the result.
    assert [row["cells"][:3] for row in committed.explore().state["others"]] == [
        row["cells"][:3] for row in state["others"]
    ]
    committed.again = replace(committed.again)
    forgotten = committed.explore().state
    assert [row["cells"][:3] for row in forgotten["others"]] == [
        row["cells"][:3] for row in state["others"]
    ]  # the trace names them
    # Otherwise they are unknown; and a rehearsal on other rows than the table has now is not explained by these.
    for told in (committed, result):
        told.trace = with_parts(told.trace, samples={"untouched_rows": None})
        told.again = replace(told.again, trace=told.trace)
        forgotten = told.explore().state
        assert (forgotten["others"], forgotten["untouched"]) == ([], 3)


CELLS = 'MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.m, "odd name" = s.note WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.m)'
VALUES = "(VALUES (1, 5, 'a'), (9, 8, 'b')) AS s (id, m, note)"


@pytest.fixture
def sources(engine: Engine) -> dict[str, Any]:
    engine.run(CREATE.format(t="t"))
    engine.run("CREATE TABLE updates (id integer, m integer, note varchar(3))")
    engine.run("INSERT INTO updates VALUES (1, 5, 'a'), (9, 8, 'b')")
    return {
        "frame": pa.table(
            {
                "id": pa.array([1, 9], pa.int32()),
                "m": pa.array([5, 8], pa.int32()),
                "note": ["a", "b"],
            }
        )
    }


@pytest.mark.parametrize("source", [VALUES, "updates s", "frame s"])
def test_cells_of_a_source_can_have_other_values_in_a_trial_and_the_source_stays(
    engine: Engine, sources: dict[str, Any], source: str
) -> None:
    result = engine.run(CELLS.format(source=source), rehearse=True, namespace=sources)
    tried = result.what_if(source={1: {"ID": 2, "m": "7", "note": "'; "}, 0: {"m": None}})
    rows = [
        (j.source, j.target and j.target["id"], j.operation.name)
        for j in journeys_of(tried.trace) or ()
    ]
    assert rows == [
        ({"id": 1, "m": None, "note": "a"}, 1, "UPDATE"),
        ({"id": 2, "m": 7, "note": "'; "}, 2, "UPDATE"),
    ]
    # A trial of the trial still has the cells, and may have further ones.
    assert ways(tried.what_if().trace) == ways(tried.trace)
    further = [j.source for j in journeys_of(tried.what_if(source={0: {"m": 1}}).trace) or ()]
    assert further == [{"id": 1, "m": 1, "note": "a"}, {"id": 2, "m": 7, "note": "'; "}]
    assert ways(result.what_if().trace) == ways(result.trace)
    assert engine.table("updates").to_pydict() == {"id": [1, 9], "m": [5, 8], "note": ["a", "b"]}


@pytest.mark.parametrize("source", [VALUES, "updates s", "frame s"])
@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (3, "source = 3 is of type int"),
        ({0: 3}, r"source\[0\] = 3 is of type int"),
        ({"first": {}}, "source row = 'first'"),
        ({-1: {"m": 1}}, "source row = -1"),
        ({2: {"m": 1}}, "Source row 2 does not exist: the source has 2 rows"),
        ({0: {"mm": 1}}, "no column 'mm'. Did you mean 'm'?"),
        ({0: {"m": "five"}}, "'five' is no integer, the type of column 'm'"),
        ({0: {"m": 1.5}}, "1.5 is no integer"),
        ({0: {"m": True}}, "True is no integer"),
        ({0: {"m": 2**40}}, "1099511627776 is no integer"),
        ({0: {"m": [1]}}, r"\[1\] is no integer"),
        ({0: {"note": 5}}, "5 is no varchar"),
        ({0: {5: 5}}, "the column = 5"),
    ],
)
def test_missing_cells_and_values_of_another_type_are_refused(
    engine: Engine, sources: dict[str, Any], source: str, cells: Any, said: str
) -> None:
    result = engine.run(CELLS.format(source=source), rehearse=True, namespace=sources)
    with pytest.raises(RowMergeError, match=said) as raised:
        result.what_if(source=cells)
    assert (raised.value.code, bool(raised.value.hint)) == ("INVALID_ARGUMENTS", True)


def test_a_text_in_a_cell_is_never_read_as_sql(engine: Engine, sources: dict[str, Any]) -> None:
    result = engine.run(CELLS.format(source=VALUES), rehearse=True)
    hostile = "x'), (1, 1, 'y'); DROP TABLE t; --"
    tried = result.what_if(source={0: {"note": hostile}})
    assert next(j.source for j in journeys_of(tried.trace) or ()) == {
        "id": 1,
        "m": 5,
        "note": hostile,
    }
    with pytest.raises(RowMergeError, match="has 34 characters, more than varchar\\(3\\)"):
        engine.run(CELLS.format(source="updates s"), rehearse=True).what_if(
            source={0: {"note": hostile}}
        )
    assert engine.table("t").num_rows == 4


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("(SELECT * FROM updates) s", "is a query"),
        ("(SELECT id, n AS m FROM t) s", "is a query"),
        ("t s", "is its target"),
    ],
)
def test_cells_of_other_sources_are_refused_with_a_next_step(
    engine: Engine, sources: dict[str, Any], source: str, said: str
) -> None:
    result = engine.run(
        CELLS.format(source=source).replace("s.m", "0").replace("s.note", "'x'"), rehearse=True
    )
    with pytest.raises(RowMergeError, match=said) as raised:
        result.what_if(source={0: {"id": 1}})
    assert (raised.value.code, bool(raised.value.hint)) == ("NOT_SUPPORTED", True)


def test_a_source_with_other_rows_since_the_run_is_reported(
    engine: Engine, sources: dict[str, Any]
) -> None:
    result = engine.run(CELLS.format(source="updates s"), rehearse=True)
    engine.run("UPDATE updates SET m = 6 WHERE id = 9")
    with pytest.raises(RowMergeError, match="Source row 1 has changed") as raised:
        result.what_if(source={0: {"m": 1}})
    assert raised.value.code == "TRANSACTION_CONFLICT"
