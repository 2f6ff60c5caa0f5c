"""A requested fault strikes once, is reported as injected, and leaves the table as the contract requires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError, SqliteConnector
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.engine.statements import committed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

ROWS = pa.table({"id": [1, 2, 3], "v": [10, 20, 30]})
SOURCE = pa.table({"id": [2, 3, 4], "v": [200, 300, 400]})
MERGE = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
AFTER = [(1, 10), (2, 200), (3, 300), (4, 400)]


@pytest.fixture
def engine(spark: Any) -> Engine:
    made = Engine(spark=spark)
    made.register("t", ROWS)
    return made


def run(engine: Engine, fault: str, **options: Any) -> Any:
    return engine.run(MERGE, namespace={"s": SOURCE}, fault=fault, **options)


def rows(engine: Engine) -> list[tuple[int, int]]:
    return sorted(zip(*engine.table("t").to_pydict().values(), strict=True))


def told(result: Any) -> str:
    return " ".join(notice.message for notice in result.trace.notices)


@pytest.mark.parametrize(
    "fault", ["begin_merge", "store_merged_rows:1:after", "finish", "finish_merge:after"]
)
def test_an_error_before_the_commit_is_reported_as_injected_and_changes_nothing(
    engine: Engine, fault: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        run(engine, fault)
    assert f"injected by {fault}" in caught.value.message
    assert caught.value.changed is False
    assert rows(engine) == [(1, 10), (2, 20), (3, 30)]
    method = fault.partition(":")[0]
    assert f"Injected fault ({fault}): call 1 of {method} raised an error" in told(
        caught.value.result
    )
    assert any(
        call.method == method and "injected" in (call.error or "")
        for call in caught.value.result.trace.calls
    )


def test_a_lost_answer_of_the_commit_is_an_unknown_outcome(engine: Engine) -> None:
    with pytest.raises(RowMergeError) as caught:
        run(engine, "commit:after")
    assert caught.value.changed is None
    assert "Injected fault (commit:after)" in str(caught.value.result)
    assert rows(engine) == AFTER


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("begin_merge", "the table holds its 3 rows as before."),
        ("store_merged_rows", "the table holds its 3 rows as before."),
        ("commit", "the table holds its 3 rows as before."),
        ("commit:after", "4 rows that the statement should leave, so its change is stored."),
    ],
)
def test_a_check_reads_the_table_after_a_failure_too(
    engine: Engine, fault: str, sentence: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        run(engine, fault, check=True)
    check = caught.value.result.trace.checks.commit
    assert (check.state, check.wrong) == ("agrees", 0)
    assert sentence in " ".join(str(caught.value.result).split())


def test_rows_left_by_a_failure_are_reported(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed, "differing", lambda rows, _: (rows, rows.slice(0, 0)))
    with pytest.raises(RowMergeError) as caught:
        run(engine, "finish", check=True)
    assert caught.value.result.trace.checks.commit.wrong == 3
    text = " ".join(str(caught.value.result).split())
    assert "3 rows of the table are not as before the failed statement." in text


def test_a_store_without_versions_is_compared_after_any_fault(
    engine: Engine, tmp_path: Path
) -> None:
    engine.add_catalog("lite", SqliteConnector(tmp_path / "t.db", create=True))
    engine.run("CREATE TABLE lite.main.t WITH (primary_key = ARRAY['id']) AS SELECT * FROM t")
    states = []
    for fault in ("store_merged_rows", "commit"):
        with pytest.raises(RowMergeError) as caught:
            engine.run("UPDATE lite.main.t SET v = 0", fault=fault, check=True)
        states.append(caught.value.result.trace.checks.commit.state)
    assert states == ["agrees", "agrees"]


def test_a_worker_that_is_killed_is_replaced_and_the_statement_ends_well(engine: Engine) -> None:
    result = run(engine, "store_merged_rows:1:after:kill")
    assert rows(engine) == AFTER
    assert (
        "(store_merged_rows:1:after:kill): call 1 of store_merged_rows killed its worker after"
        in told(result)
    )


def test_a_page_that_is_stored_twice_is_found_by_the_check(engine: Engine) -> None:
    result = run(engine, "store_merged_rows:1:twice", check=True)
    assert result.trace.checks.commit.wrong
    [call] = [call for call in result.trace.calls if call.injected]
    assert call.method == "store_merged_rows"
    assert call.injected == "store_merged_rows:1:twice"


def test_a_delayed_call_is_marked_in_its_step(engine: Engine) -> None:
    result = run(engine, "finish_merge:after:delay=0.01")
    [call] = [call for call in result.trace.calls if call.injected]
    assert call.method == "finish_merge"
    assert rows(engine) == AFTER


def test_rows_that_are_read_twice_are_changed_twice(engine: Engine) -> None:
    result = engine.run("UPDATE t SET v = 0 WHERE id = 1", fault="get_next_page:1:twice")
    assert result.trace.count == 2
    assert "(get_next_page:1:twice): call 1 of get_next_page returned its rows twice" in told(
        result
    )


def test_reading_back_is_not_counted(engine: Engine) -> None:
    plain = run(engine, "get_next_page:99")
    engine.register("t", ROWS)
    checked = run(engine, "get_next_page:99", check=True)
    assert checked.trace.checks.commit is not None
    told = [
        notice.message for notice in plain.trace.notices if "was never triggered" in notice.message
    ]
    assert told == [
        notice.message
        for notice in checked.trace.notices
        if "was never triggered" in notice.message
    ]
    assert told[0].startswith(
        "The fault get_next_page:99 was never triggered: get_next_page was called "
    )


def test_a_fault_of_a_call_that_never_happens_is_reported(engine: Engine) -> None:
    result = run(engine, "begin_delete")
    assert "The fault begin_delete was never triggered: begin_delete was not called" in str(result)


def test_calls_of_a_catalog_that_is_only_read_are_not_counted(engine: Engine) -> None:
    other = MemoryConnector()
    engine.add_catalog("other", other)
    engine.run("CREATE TABLE other.default.u AS SELECT 2 AS id, 200 AS v")
    result = engine.run(
        "MERGE INTO t USING other.default.u s ON t.id = s.id WHEN MATCHED THEN DELETE",
        fault="begin_transaction:2",
    )
    assert "begin_transaction was called 1 time" in " ".join(
        notice.message for notice in result.trace.notices
    )


def test_a_rehearsal_may_have_a_fault_but_comparisons_and_trials_may_not(engine: Engine) -> None:
    assert "Injected fault (rollback:delay=0.01)" in str(
        run(engine, "rollback:delay=0.01", rehearse=True)
    )
    with pytest.raises(RowMergeError, match="fault cannot be combined"):
        engine.compare(MERGE, by="duplicates", namespace={"s": SOURCE}, fault="finish")
