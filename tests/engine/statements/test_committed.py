"""After the commit, the store is read, and the report compares its content with the expected one."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import (
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    RowMergeError,
    SqliteConnector,
    load_trace,
    save_trace,
)
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.writing import MemoryPageSink, MemoryPageSinkProvider
from rowmerge_nb.engine.statements import table_turns
from tests.contract.developers_bugs import BUGS

pytestmark = pytest.mark.spark

MERGE = """MERGE INTO {t} t USING (VALUES (1, 'x'), (2, CAST(NULL AS varchar)), (9, 'n'), (8, 'm')) AS s (id, v) ON t.id = s.id
WHEN MATCHED AND s.v IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET name = s.v
WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.v)"""
FAILING = {
    "FinishGivesNone",
    "RowIdsAreOfAnotherType",
    "ATypoInStoreMergedRows",
    "ATypoInFinishMerge",
}
HOLDS = "Read back: the store holds the expected 4 rows."


class Broken(MemoryConnector):
    checked_after_commit = True


@pytest.fixture
def engine(spark: Any) -> Engine:
    return Engine(spark=spark)


def with_bug(engine: Engine, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a table of a broken connector; its creation is correct."""
    kit = BUGS[name]()
    connector = kit.make_connector(folder)
    monkeypatch.setattr(type(connector), "checked_after_commit", True)
    engine.add_catalog("shop", connector)
    columns = ", ".join(f'"{column}" {kind}' for column, kind in kit.columns.items())
    engine.run(f"CREATE TABLE shop.default.t ({columns})")
    moment = "TIMESTAMP '2024-02-29 12:00:00'" if "at" in kit.columns else "NULL"
    other = list(kit.columns)[1]
    engine.run(
        f"INSERT INTO shop.default.t (id, \"{other}\", name) VALUES (1, {moment}, 'a'), (2, {moment}, 'b'), (3, {moment}, 'c')"
    )


@pytest.mark.parametrize("name", [name for name, kind in BUGS.items() if hasattr(kind, "report")])
def test_a_bug_of_a_connector_is_reported(
    engine: Engine, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_bug(engine, name, tmp_path, monkeypatch)
    if name in FAILING:
        # It is not a success: the table is unchanged.
        with pytest.raises(RowMergeError) as failed:
            engine.run(MERGE.format(t="shop.default.t"))
        assert BUGS[name].report in failed.value.message
        return
    result = engine.run(MERGE.format(t="shop.default.t"))
    check = result.trace.checks.commit
    assert check is not None
    assert check.state == "differs"
    text = str(result)
    assert BUGS[name].report in " ".join(text.split())
    headline = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    assert "The store does not hold them" in headline or "were expected" in headline


def test_a_bug_that_leaves_the_right_rows_is_not_seen_here(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_bug(engine, "AbortDoesNotCleanUp", tmp_path, monkeypatch)
    assert HOLDS in str(engine.run(MERGE.format(t="shop.default.t")))


def test_every_wrong_row_has_the_call_and_its_way(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_bug(engine, "TheOperationIsNotLookedAt", tmp_path, monkeypatch)
    result = engine.run(MERGE.format(t="shop.default.t"))
    lines = str(result).split("\n")
    at = next(index for index, line in enumerate(lines) if line.startswith("- Row (2, NULL, 'b')"))
    details = " ".join(lines[at + 1 : at + 3])
    assert re.match(r"  store_merged_rows, call 1 of writer \d, position \d;", details)
    assert "source row 1 (2, NULL): clause 0 DELETE" in " ".join(details.split())
    html = result._repr_mimebundle_()["text/html"]
    assert "Rows that are wrong in the store" in html
    assert "Row (2, NULL, &#39;b&#39;) should have been deleted but exists." in html
    assert "<del>b</del>" in html


def test_a_pair_is_one_row_with_its_cells_marked(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_bug(engine, "TimesAreShiftedByAnHour", tmp_path, monkeypatch)
    result = engine.run(MERGE.format(t="shop.default.t"))
    check = result.trace.checks.commit
    assert check is not None
    assert [row.problem for row in check.rows] == ["other values"] * check.wrong
    marked = "<del>2024-02-29 13:00:00</del> → <ins>2024-02-29 12:00:00</ins>"
    html = result._repr_mimebundle_()["text/html"]
    assert html.count(marked) == check.wrong
    assert "1:00:00 too late" in html
    assert "at is TIMESTAMP '2024-02-29 13:00:00' and must be" in " ".join(str(result).split())
    # A call of a MERGE is named by its number, and a saved trace has all of it.
    assert all(row.call == 1 and row.row is not None for row in check.rows)
    save_trace(result.trace, tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json").checks.commit == check


@pytest.mark.parametrize("paradigm", ["DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS"])
@pytest.mark.parametrize("era", ["documents", "current"])
def test_a_correct_store_agrees(engine: Engine, paradigm: str, era: str) -> None:
    engine.run(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, VARCHAR 'a', nan()), (2, 'b', -0e0), (3, 'c', NULL)) AS v (id, name, d)"
    )
    result = engine.run(MERGE.format(t="t"), check=True, paradigm=paradigm, era=era)
    assert result.trace.checks.commit is not None
    assert (result.trace.checks.commit.state, result.trace.checks.commit.message) == (
        "agrees",
        HOLDS,
    )
    for sql in (
        "UPDATE t SET name = upper(name) WHERE id > 2",
        "DELETE FROM t WHERE id = 3",
        "DELETE FROM t",
        "UPDATE t SET id = 0",
    ):
        check = engine.run(sql, check=True, paradigm=paradigm, era=era).trace.checks.commit
        assert check is not None
        assert check.state == "agrees"


@pytest.mark.parametrize("store", ["lake", "lite", "hive", "buckets"])
def test_every_store_of_ours_agrees_on_request(engine: Engine, store: str, tmp_path: Path) -> None:
    engine.add_catalog("lake", IcebergConnector(warehouse=tmp_path / "lake"))
    engine.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
    engine.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    table, properties = {
        "lake": ("lake.default.t", "WITH (partitioning = ARRAY['bucket(id, 4)'])"),
        "lite": ("lite.main.t", "WITH (primary_key = ARRAY['id'])"),
        "hive": ("hive.default.t", "WITH (partitioned_by = ARRAY['name'])"),
        "buckets": ("t", "WITH (bucketed_by = ARRAY['id'], bucket_count = 4)"),
    }[store]
    engine.run(f"CREATE TABLE {table} (id bigint, name varchar) {properties}")
    engine.run(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    result = engine.run(MERGE.format(t=table), check=True)
    assert result.trace.checks.commit is not None
    assert result.trace.checks.commit.message == HOLDS
    assert "check" in result.trace.seconds
    assert engine.run(f"UPDATE {table} SET name = 'z' WHERE id = 3").trace.checks.commit is None


def test_a_saved_trace_has_the_comparison(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_bug(engine, "FragmentsAreCommittedTwice", tmp_path, monkeypatch)
    result = engine.run(MERGE.format(t="shop.default.t"))
    save_trace(result.trace, tmp_path / "trace.json")
    assert str(load_trace(tmp_path / "trace.json")) == str(result.trace)


@pytest.mark.parametrize(
    "sql", ["UPDATE t SET name = 'own' WHERE id = 7", "INSERT INTO t VALUES (-1, 'own')"]
)
def test_a_concurrent_commit_of_another_session_is_not_a_false_alarm(
    engine: Engine, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The other statement commits although this one has the turn: this one waits for it.
    monkeypatch.setattr(table_turns, "TURN_SECONDS", 0.0)
    engine.run(
        "CREATE TABLE t AS SELECT n AS id, VARCHAR 'a' AS name FROM UNNEST(sequence(1, 50)) AS u (n)"
    )
    steps: list[str] = []
    engine.run(sql, check=True, progress=steps.append)
    assert steps[-1] == "check"
    outcomes = {step: disturbed(engine, sql, step) for step in steps}
    # Commits before the statement has begun to read are read; later commits, until its own, are conflicts. Rows
    # that are only added never block another statement.
    assert outcomes.pop("check") == "agrees"
    assert outcomes.pop("parse") == "agrees"
    changes = {"agrees", "TRANSACTION_CONFLICT"} if sql.startswith("UPDATE") else {"agrees"}
    assert set(outcomes.values()) == changes


def disturbed(engine: Engine, sql: str, at: str) -> str:
    """Run a statement while another session commits at the start of one of its steps; return the findings of its check, or its error's code."""

    def told(step: str) -> None:
        if step == at:
            other = threading.Thread(
                target=engine.run, args=("INSERT INTO t VALUES (1000, 'noise')",)
            )
            other.start()
            other.join()

    before = count_of_noise(engine)
    try:
        check = engine.run(sql, check=True, progress=told).trace.checks.commit
    except RowMergeError as error:
        return error.code
    finally:
        assert count_of_noise(engine) == before + 1
    assert check is not None
    return check.state


def count_of_noise(engine: Engine) -> int:
    return engine.table("t").column("name").to_pylist().count("noise")


def test_an_impossible_comparison_is_reported_with_its_reason(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.register("t", pa.table({"id": list(range(12_000)), "name": ["a"] * 12_000}))
    engine.add_catalog("shop", Broken())
    engine.run("CREATE TABLE shop.default.t AS SELECT * FROM t")
    unasked = engine.run("UPDATE shop.default.t SET name = 'b' WHERE id = 1").trace.checks.commit
    assert unasked is not None
    assert unasked.message == (
        "The rows in the store were not compared: the table has more than 10,000 rows; check=True reads up to 100,000."
    )
    asked = engine.run("UPDATE shop.default.t SET name = 'b'", check=True).trace.checks.commit
    assert asked is not None
    assert asked.message == "Read back: the store holds the expected 12,000 rows."
    off = engine.run(
        "UPDATE shop.default.t SET name = 'b' WHERE id = 1", trace="off", check=False
    ).trace
    assert off.checks.commit is None
    monkeypatch.setattr(Broken, "begin_transaction", failing_later(Broken.begin_transaction))
    unread = engine.run("UPDATE shop.default.t SET name = 'c' WHERE id < 3", check=True)
    assert unread.trace.checks.commit is not None
    assert (
        unread.trace.checks.commit.message
        == "The rows in the store could not be read back: OSError: the disk is gone."
    )
    assert unread.count == 3


def failing_later(begin: Any) -> Any:
    """Allow the statement's own transaction and that which counts its rows, and no further one."""
    begun = []

    def failing(self: Any) -> Any:
        begun.append(self)
        if len(begun) > 2:
            raise OSError("the disk is gone")
        return begin(self)

    return failing


@pytest.mark.parametrize("value", ["yes", 1])
def test_check_is_true_or_false(engine: Engine, value: Any) -> None:
    with pytest.raises(RowMergeError) as refused:
        engine.run("DELETE FROM t", check=value)
    assert refused.value.code == "INVALID_ARGUMENTS"


def test_the_older_flow_is_not_compared(engine: Engine) -> None:
    engine.run("CREATE TABLE t AS SELECT 1 AS id")
    check = engine.run("DELETE FROM t", check=True, flow="updatable").trace.checks.commit
    assert check is not None
    assert check.state == "not compared"


class LosesOne(MemoryPageSink):
    def append_page(self, page: Any) -> None:
        super().append_page(page.slice(1))


class StoresTwice(MemoryPageSink):
    def append_page(self, page: Any) -> None:
        super().append_page(page)
        super().append_page(page)


class SaysNothing(MemoryPageSink):
    def finish(self) -> Any:
        return []


class SinkOf(MemoryPageSinkProvider):
    def __init__(self, sink: Any) -> None:
        self.sink = sink

    def create_page_sink(self, *_: Any) -> Any:
        return self.sink()


class WithSink(MemoryConnector):
    """A connector that inserts through a given sink."""

    def __init__(self, sink: Any) -> None:
        super().__init__()
        self.sink = sink

    def get_page_sink_provider(self) -> Any:
        return SinkOf(self.sink)


@pytest.mark.parametrize(
    "rows", ["VALUES (1, 'a'), (2, NULL)", "SELECT n, 'x' FROM UNNEST(sequence(1, 2)) AS u (n)"]
)
def test_an_insert_is_read_back_on_request(engine: Engine, rows: str) -> None:
    engine.run("CREATE TABLE t AS SELECT 9 AS id, VARCHAR 'z' AS name")
    check = engine.run(f"INSERT INTO t {rows}", check=True).trace.checks.commit
    assert check is not None
    assert (check.state, check.message) == (
        "agrees",
        "Read back: the store holds the expected 3 rows.",
    )
    assert engine.run(f"INSERT INTO t {rows}").trace.checks.commit is None
    assert engine.run(f"INSERT INTO t {rows}", check=False).trace.checks.commit is None
    nothing = engine.run(
        "INSERT INTO t SELECT * FROM t WHERE id > 100", check=True
    ).trace.checks.commit
    assert nothing is not None
    assert nothing.state == "agrees"


@pytest.mark.parametrize(
    ("sink", "told"),
    [
        (LosesOne, "Row (1, 'a') should have been inserted but is missing."),
        (
            StoresTwice,
            "Row (1, 'a') exists more often than expected: it should have been inserted.",
        ),
        (SaysNothing, "finish() of 1 sink returned no fragment for 2 rows."),
    ],
)
def test_lost_and_duplicated_rows_of_an_insert_are_reported(
    engine: Engine, sink: Any, told: str
) -> None:
    engine.add_catalog("shop", WithSink(sink))
    engine.run("CREATE TABLE shop.default.t (id bigint, name varchar)")
    result = engine.run("INSERT INTO shop.default.t VALUES (1, 'a'), (2, 'b')", check=True)
    assert result.trace.checks.commit is not None
    assert result.trace.checks.commit.state == "differs"
    text = " ".join(str(result).split())
    assert told in text
    assert "append_page, call 1 of writer 0, position " in text


def test_rows_that_no_fragment_acknowledges_are_a_notice(engine: Engine) -> None:
    engine.add_catalog("shop", WithSink(SaysNothing))
    engine.run("CREATE TABLE shop.default.t (id bigint, name varchar)")
    notices = engine.run("INSERT INTO shop.default.t VALUES (1, 'a')").trace.notices
    assert [notice.message for notice in notices] == [
        (
            "finish() of 1 sink returned no fragment for 1 row. A finish call without"
            " their fragments may omit those rows."
        )
    ]
