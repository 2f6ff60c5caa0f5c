"""The report describes the table as read, whenever a store stores its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.trace.error_record import StateEvidence
from tests.engine.statements.direct_store import ROWS, DirectStore

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

MERGE = """MERGE INTO shop.default.prices p
USING (VALUES (2, CAST(NULL AS double)), (3, 8.0), (4, 1.5)) n(id, price) ON p.id = n.id
WHEN MATCHED AND n.price IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET price = n.price
WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.price)"""
AFTER = [[1, 9.5], [3, 8.0], [4, 1.5]]
EARLY = ["at the sink", "abort fails"]
FAILING = ["half", "finish fails"]


class Shop:
    """An engine with the store of a bug."""

    def __init__(self, spark: Any, folder: Path, bug: str, **options: Any) -> None:
        self.store = DirectStore(folder, bug, **options)
        self.engine = Engine(spark=spark)
        self.engine.add_catalog("shop", self.store)

    def rows(self) -> list[list[Any]]:
        return sorted(self.store.file.read())

    def failure(self, **options: Any) -> tuple[RowMergeError, str]:
        with pytest.raises(RowMergeError) as caught:
            self.engine.run(MERGE, **options)
        return caught.value, " ".join(caught.value.result.text().split())


@pytest.mark.parametrize("fault", ["finish:1:before", "finish_merge"])
def test_a_store_without_a_bug_is_unchanged_by_a_fault(
    spark: Any, tmp_path: Path, fault: str
) -> None:
    shop = Shop(spark, tmp_path, "")
    error, text = shop.failure(fault=fault)
    assert error.changed is False
    assert error.result.trace.error.evidence is StateEvidence.ROWS
    assert "shop.default.prices is unchanged." in text
    assert "Read back: the table holds its 3 rows as before." in text
    assert shop.rows() == ROWS


@pytest.mark.parametrize("bug", EARLY)
@pytest.mark.parametrize("check", [None, True])
def test_existing_rows_are_not_missing(
    spark: Any, tmp_path: Path, bug: str, check: bool | None
) -> None:
    shop = Shop(spark, tmp_path, bug)
    found = shop.engine.run(MERGE, check=check).trace.checks.commit
    assert found is not None
    assert (found.state, found.wrong) == ("agrees", 0)
    early = "Another reader saw 2 changed rows before finish_merge was called"
    assert (early in found.message) is bool(check)
    assert shop.rows() == AFTER


@pytest.mark.parametrize("bug", EARLY)
@pytest.mark.parametrize("fault", ["finish:1:before", "finish_merge"])
@pytest.mark.parametrize("check", [None, True])
def test_rows_that_a_failed_statement_leaves_are_a_change(
    spark: Any, tmp_path: Path, bug: str, fault: str, check: bool | None
) -> None:
    shop = Shop(spark, tmp_path, bug)
    error, text = shop.failure(fault=fault, check=check)
    assert shop.rows() == AFTER
    assert error.changed is True
    assert error.result.trace.error.changed is True
    assert error.result.trace.target.rows_after == 3
    assert "shop.default.prices is changed. begin_merge was called." in text
    assert "2 rows of the table are not as before the failed statement." in text
    call = "no finish call was made" if fault != "finish_merge" else "finish_merge stored them"
    assert call in text
    assert "unchanged" not in text


@pytest.mark.parametrize("bug", FAILING)
@pytest.mark.parametrize("commits_in_finish", [False, True])
def test_rows_of_a_failed_finish_call_are_a_change(
    spark: Any, tmp_path: Path, bug: str, commits_in_finish: bool
) -> None:
    shop = Shop(spark, tmp_path, bug, commits_in_finish=commits_in_finish)
    error, text = shop.failure()
    assert shop.rows() != ROWS
    assert error.changed is True
    assert "shop.default.prices is changed." in text
    assert "not as before the failed statement. finish_merge stored them before it failed" in text


def test_rows_that_are_stored_twice_are_wrong(spark: Any, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path, "twice")
    found = shop.engine.run(MERGE).trace.checks.commit
    assert found is not None
    assert (found.state, found.wrong) == ("differs", 2)
    assert len(shop.rows()) == 5


def test_a_table_that_was_not_read_is_not_called_unchanged(spark: Any, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path, "at the sink")
    error, text = shop.failure(fault="finish:1:before", check=False)
    assert error.result.trace.error.evidence is None
    assert error.result.trace.target.rows_after is None
    assert "shop.default.prices was not read afterwards." in text
    assert "unchanged" not in text


def test_a_failure_before_the_sinks_leaves_the_table_unchanged(spark: Any, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path, "at the sink")
    error, text = shop.failure(fault="begin_merge", check=False)
    assert error.result.trace.error.evidence is StateEvidence.NO_SINK
    assert "shop.default.prices is unchanged." in text


def test_a_built_in_store_is_unchanged_if_it_has_its_former_version(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE t AS SELECT 1 AS id")
    with pytest.raises(RowMergeError) as caught:
        engine.run("UPDATE t SET id = 2", fault="finish:1:before")
    assert caught.value.result.trace.error.evidence is StateEvidence.VERSION
    assert "t is unchanged (1 row)." in " ".join(caught.value.result.text().split())


def test_rows_without_a_partner_after_a_failed_scan_have_no_journeys(
    spark: Any, tmp_path: Path
) -> None:
    error, text = Shop(spark, tmp_path, "scan fails").failure()
    assert "create_page_source failed" in error.message
    assert error.result.trace.samples.pages is None
    assert "Row journeys" not in text
    assert "not matched" not in text
    assert [clause.rows for clause in error.result.trace.clauses] == [None] * 4
    assert "rows were joined without those of the failed scan" in text
    assert "prices was not read afterwards" in text


@pytest.mark.parametrize(
    ("bug", "fact"),
    [
        ("begin fails", "begin_merge failed; the transaction was rolled back."),
        ("no sink", "begin_merge was called; no sink was created; finish_merge was not called;"),
    ],
)
def test_a_failed_call_is_not_a_missing_call(
    spark: Any, tmp_path: Path, bug: str, fact: str
) -> None:
    _, text = Shop(spark, tmp_path, bug).failure()
    assert f"shop.default.prices is unchanged. {fact}" in text


def test_a_sink_whose_abort_failed_is_not_aborted(spark: Any, tmp_path: Path) -> None:
    _, text = Shop(spark, tmp_path, "abort fails").failure(fault="finish:1:before")
    assert "2 sinks had been created, 0 of them aborted. Abort of 1 sink failed." in text
