"""One statement, run in two ways on the same rows, without a commit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, HiveAcidConnector, RowMergeError, SqliteConnector
from rowmerge_nb.testing.faults import Fault, FaultyConnector

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

TARGET = pa.table({"id": [1, 2, 3], "v": [10, 20, 30], "p": ["a", "b", "a"]})
SOURCE = pa.table({"id": [2, 3, 4], "v": [200, 300, 400]})
MERGE = """MERGE INTO {} t USING s ON t.id = s.id WHEN MATCHED AND s.v = 200 THEN UPDATE SET v = s.v
    WHEN MATCHED THEN UPDATE SET p = 'z' WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, 'a')"""


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark)
    engine.register("t", TARGET, partitioned_by=["p"])
    return engine


def metrics(comparison: Any) -> dict[str, tuple[str, str]]:
    return {metric.name: (metric.left, metric.right) for metric in comparison.metrics}


def test_paradigms_leave_the_same_rows_by_different_pages(engine: Engine) -> None:
    compared = engine.compare(MERGE.format("t"), by="paradigms", namespace={"s": SOURCE})
    assert compared.same is True
    assert compared.sentence == (
        "DELETE_ROW_AND_INSERT_ROW stores 5 rows (D 2, I 3), CHANGE_ONLY_UPDATED_COLUMNS 3 (U 2, I 1); "
        "both would leave the same 4 rows in t."
    )
    lines = [line.split() for line in str(compared).splitlines()]
    start = lines.index(["What", "transform_page", "does", "with", "each", "row"])
    assert [line[0] for line in lines[start + 2 :][:5]] == ["0", "I", "1", "I", "2"], (
        "two rows, where an update is two"
    )
    assert [line[3] for line in lines[start + 2 :][:1]] == ["≠"]
    plan = [line for line in str(compared).splitlines() if line[:1] in {"<", ">"}]
    assert [line.split()[-1] for line in plan] == [
        "DELETE_ROW_AND_INSERT_ROW",
        "CHANGE_ONLY_UPDATED_COLUMNS",
    ]
    numbers = metrics(compared)
    assert numbers["rows stored"] == ("D 2, I 3", "U 2, I 1")
    assert numbers["rows through exchanges"] == ("5", "3")
    assert numbers["operations"] == ("I 1, U 2", "I 1, U 2")
    assert sorted(compared.left.rows.column("id").to_pylist()) == [1, 2, 3, 4]
    assert engine.table("t").equals(TARGET), "nothing was committed"
    assert not engine._catalogs.memory._transactions
    assert list(compared.to_pandas().columns) == [
        "DELETE_ROW_AND_INSERT_ROW",
        "CHANGE_ONLY_UPDATED_COLUMNS",
    ]
    assert compared.calls_to_pandas().loc["begin_merge"].tolist() == [1, 1]
    assert "commit" not in compared.calls_to_pandas().index


def test_the_rule_under_which_a_statement_fails_is_shown_with_its_error(engine: Engine) -> None:
    twice = pa.table({"id": [2, 2, 4], "v": [200, 300, 400]})
    compared = engine.compare(MERGE.format("t"), by="duplicates", namespace={"s": twice})
    assert compared.same is None
    assert compared.sentence == "trino would change 3 rows of t; standard fails."
    assert metrics(compared)["answer"] == ("3 rows", "MERGE_TARGET_ROW_MULTIPLE_MATCHES")
    assert compared.left.rows.num_rows == 5, "two versions of row 2"
    assert "One MERGE target table row matched more than one source row" in str(compared)
    [notice] = compared.left.result.trace.notices
    assert notice.message.startswith(
        "1 target row would be changed by more than one clause. Trino allows that,"
        " and the table would hold"
    )
    assert engine.table("t").equals(TARGET)


def test_both_rules_may_fail(engine: Engine) -> None:
    twice = pa.table({"id": [3, 3], "v": [1, 2]})
    compared = engine.compare(MERGE.format("t"), by="duplicates", namespace={"s": twice})
    assert compared.sentence == "Both ways fail."


def test_flows_leave_the_same_rows_with_and_without_an_exchange(engine: Engine) -> None:
    for sql, stored in (
        ("UPDATE t SET v = v + 1 WHERE p = 'a'", ("D 2, I 2", "U 2")),
        ("DELETE FROM t WHERE v > 10", ("D 2", "D 2")),
    ):
        compared = engine.compare(sql, by="flows")
        assert compared.same is True
        assert metrics(compared)["rows stored"] == stored
        assert metrics(compared)["exchanges"] == ("1", "0")
        told = [
            side.result.diff().drop(columns="source_row").sort_values("old.id")
            for side in (compared.left, compared.right)
        ]
        assert told[0].to_dict("records") == told[1].to_dict("records")
        calls = {name: (left, right) for name, left, right in compared.calls}
        assert calls["begin_merge"] == (1, 0)
        assert calls["begin_update" if sql.startswith("UPDATE") else "begin_delete"] == (0, 1)
    assert engine.table("t").equals(TARGET)


@pytest.mark.parametrize("store", ["hive", "sqlite"])
def test_other_stores_are_compared_by_what_they_take_out_and_put_in(
    engine: Engine, tmp_path: Any, store: str
) -> None:
    connector = (
        HiveAcidConnector(tmp_path)
        if store == "hive"
        else SqliteConnector(tmp_path / "x.db", create=True)
    )
    engine.add_catalog("other", connector)
    name = "other.default.t" if store == "hive" else "other.main.t"
    properties = "partitioned_by = ARRAY['p']" if store == "hive" else "primary_key = ARRAY['id']"
    engine.run(f"CREATE TABLE {name} (id bigint, v bigint, p varchar) WITH ({properties})")
    engine.run(f"INSERT INTO {name} SELECT * FROM t")
    for sql in (f"UPDATE {name} SET v = v + 1 WHERE id < 3", f"DELETE FROM {name} WHERE id < 3"):
        compared = engine.compare(sql, by="flows")
        assert (compared.same, compared.compared) == (True, "changes")
        end = f"would remove the same rows from {name} and insert the same rows."
        stored = "merge stores 4 rows (D 2, I 2), updatable 2 (U 2); both "
        assert (
            compared.sentence
            == (stored if store == "hive" and sql.startswith("UPDATE") else "Both ways ") + end
        )
    paradigms = engine.compare(MERGE.format(name), by="paradigms", namespace={"s": SOURCE})
    assert (paradigms.same, paradigms.compared) == (True, "rows")
    assert f"both sides ran on a copy of {name} in memory" in paradigms.notice
    read = engine.run(f"SELECT * FROM {name}").table
    assert read.sort_by("id").equals(TARGET), "nothing was committed"
    assert connector.orphans() == []


def test_results_that_differ_are_shown_row_by_row(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rowmerge_nb.connectors.memory import memory_metadata as memory

    right = memory.apply_changes
    counted = iter((0, 1, 2))

    def wrong(data: pa.Table, fragments: Any) -> pa.Table:
        changed = right(data, fragments)
        return changed.slice(1) if next(counted) == 1 else changed

    monkeypatch.setattr(memory, "apply_changes", wrong)
    compared = engine.compare("UPDATE t SET v = 7 WHERE id = 1", by="flows")
    assert compared.same is False
    assert compared.sentence.startswith("THE RESULTS DIFFER in ")
    ((side, what, times, *row),) = compared.differences_to_pandas().to_numpy().tolist()
    assert (side, what, times) == ("merge", "has", 1)
    assert tuple(row) in {(1, 7, "a"), (2, 20, "b"), (3, 30, "a")}


@pytest.mark.parametrize(
    ("by", "sql", "options", "words"),
    [
        (
            "flows",
            MERGE.format("t"),
            {},
            "The flows of MERGE cannot be compared.*Compare paradigms or duplicates",
        ),
        ("duplicates", "DELETE FROM t", {}, "matches every row once.*Compare flows or paradigms"),
        ("paradigms", "SELECT 1", {}, "SELECT cannot be compared.*MERGE, UPDATE and DELETE can"),
        (
            "paradigm",
            "DELETE FROM t",
            {},
            "by = 'paradigm' is not possible.*flows, paradigms, duplicates",
        ),
        (
            "flows",
            "DELETE FROM t",
            {"flow": "updatable"},
            "option flow cannot be combined.*Omit flow",
        ),
        ("paradigms", "DELETE FROM t", {"flow": "updatable"}, "option flow cannot be combined"),
        ("paradigms", "DELETE FROM t", {"dry_run": True}, "option dry_run cannot be combined"),
        ("paradigms", "DELETE FROM nope", {}, "TABLE_NOT_FOUND"),
        (
            "flows",
            "DELETE FROM t",
            {"paradigm": "CHANGE_ONLY_UPDATED_COLUMNS"},
            "option paradigm cannot be combined.*Omit paradigm",
        ),
        (
            "flows",
            "EXPLAIN DELETE FROM t",
            {},
            "EXPLAIN cannot be compared: it runs in only one way",
        ),
    ],
)
def test_impossible_comparisons_are_refused_with_the_next_step(
    engine: Engine, by: str, sql: str, options: Any, words: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.compare(sql, by=by, namespace={"s": SOURCE}, **options)
    import re

    assert re.search(words, str(caught.value))
    assert engine.table("t").equals(TARGET)


def test_an_engine_whose_default_is_the_older_flow_compares_as_any_other(spark: Any) -> None:
    engine = Engine(spark=spark, flow="updatable")
    engine.register("t", TARGET)
    assert engine.compare("UPDATE t SET v = 1", by="paradigms").same is True
    assert engine.compare("UPDATE t SET v = 1", by="flows").same is True
    assert engine.compare(MERGE.format("t"), by="duplicates", namespace={"s": SOURCE}).same is True
    with pytest.raises(RowMergeError, match="The flows of MERGE cannot be compared"):
        engine.compare(MERGE.format("t"), by="flows", namespace={"s": SOURCE})
    with pytest.raises(RowMergeError, match="pass flow='merge' if the other flow is the default"):
        engine.run(MERGE.format("t"), namespace={"s": SOURCE})


def test_a_rehearsal_does_everything_but_commit(engine: Engine) -> None:
    result = engine.run("DELETE FROM t WHERE id = 1", rehearse=True)
    assert (result.count, result.trace.committed, result.trace.target.rows_after) == (1, False, 2)
    assert result.rehearsed.column("id").to_pylist() == [2, 3]
    assert [call.method for call in result.trace.calls][-2:] == ["finish_merge", "rollback"]
    assert str(result).startswith("[rehearsal, rolled back] 1 row deleted from t.")
    assert engine.table("t").equals(TARGET)


def test_a_rehearsed_table_is_not_searched_after_it_is_gone(engine: Engine) -> None:
    result = engine.run("CREATE TABLE made AS SELECT 1 AS n", rehearse=True)
    assert str(result).splitlines()[0] == "[rehearsal, rolled back] Table made created with 1 row."
    assert not any("made" in info for info in map(str, engine.tables()))


@pytest.mark.parametrize(
    "statement",
    ["USE default", "PREPARE p FROM SELECT 2", "DEALLOCATE PREPARE q", "START TRANSACTION"],
)
def test_statements_that_change_the_engine_cannot_be_rehearsed_and_a_dry_run_does_not_change_it(
    engine: Engine, statement: str
) -> None:
    engine.run("PREPARE q FROM SELECT 1")
    with pytest.raises(RowMergeError) as caught:
        engine.run(statement, rehearse=True)
    assert (caught.value.code, caught.value.message) == (
        "NOT_SUPPORTED",
        "This statement cannot be rehearsed: it takes effect immediately",
    )
    assert engine.run(statement, dry_run=True).trace.state == "planned"
    assert engine.run("EXECUTE q").table.to_pylist() == [{"_col0": 1}]  # type: ignore[union-attr]
    for absent, code in (("EXECUTE p", "NOT_FOUND"), ("ROLLBACK", "NOT_IN_TRANSACTION")):
        with pytest.raises(RowMergeError) as caught:
            engine.run(absent)
        assert caught.value.code == code


def test_a_side_whose_connector_fails_is_shown_as_the_error_it_is(
    engine: Engine, spark: Any
) -> None:
    faulty = FaultyConnector(engine._catalogs.memory, Fault("delete_rows"))
    engine.add_catalog("faulty", faulty)
    compared = engine.compare("DELETE FROM faulty.default.t", by="flows")
    assert compared.right.failed
    assert "the disk is full" in str(compared)
    assert engine.table("t").equals(TARGET)
