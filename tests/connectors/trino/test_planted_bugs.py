"""Bugs planted in a Java sink: the findings of the report, the contract kit and a replay."""

from __future__ import annotations

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import ConnectorError, RowMergeError
from rowmerge_nb.spi import ConnectorSession
from rowmerge_nb.testing.contract import ConnectorContract, check_contract
from tests.connectors.trino.planted_bugs import (
    DROPPED_PAGE,
    EARLY_ROWS,
    FAILED_FINISH,
    LOST_FIELD,
    LOST_FRAGMENT,
    SWAPPED_COLUMNS,
    UNUSED_LOST_FIELD,
    failed_end,
)
from tests.connectors.trino.shelf_catalog import AFTER, BEFORE, ShelfCatalog
from tests.connectors.trino.shelf_plugin import ShelfBuild, line_of

pytestmark = pytest.mark.spark

SESSION = ConnectorSession("contract")
LOST = "The field shelf.ShelfMergeHandle.stored is lost in the JSON of its handle: tasks get null"


@pytest.fixture(scope="module")
def shelf(spark, trino_home, java_home, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    build = ShelfBuild(trino_home / "lib", java_home, tmp_path_factory.mktemp("build"))
    catalog = ShelfCatalog(rm.Engine(spark=spark), build, folder, trino_home / "lib", java_home)
    yield catalog
    catalog.connector.close()


class Kept:
    """The catalog's connector, whose processes serve all checks of the kit."""

    def __init__(self, connector):
        self._connector = connector

    def __getattr__(self, name):
        return getattr(self._connector, name)

    def close(self):
        pass


def kit_failures(shelf, check="an_update_changes"):
    """Return the text of the kit's report, with its failures."""
    connector = Kept(shelf.connector)

    class ShelfContract(ConnectorContract):
        columns = {"id": "bigint", "name": "varchar", "city": "varchar"}

        def make_connector(self, folder):
            transaction = connector.begin_transaction()
            metadata = connector.get_metadata(transaction)
            if not metadata.schema_exists(SESSION, "default"):
                metadata.create_schema(SESSION, "default")
            for name in metadata.list_tables(SESSION):
                if name.schema == "default":
                    metadata.drop_table(SESSION, metadata.get_table_handle(SESSION, name))
            connector.commit(transaction)
            return connector

    return str(check_contract(ShelfContract, only=check))


def rows_of(page):
    return set() if page is None else set(zip(*page.to_pydict().values(), strict=True))


def replayed(shelf, record):
    """Return a replay on the rebuilt plugin."""
    return rm.replay(record, shelf.new_connector)


@pytest.mark.parametrize(
    ("bug", "report", "replay", "kit"),
    [
        pytest.param(
            DROPPED_PAGE,
            ["Row (9, 'new', 'city') should have been inserted but is missing. store_merged_rows"],
            ({(1, "new name", "x"), (9, "new", "city")}, {(1, "a", "x"), (2, "b", "y")}),
            "the table is unchanged by the statement",
            id="dropped page",
        ),
        pytest.param(
            SWAPPED_COLUMNS,
            [
                (
                    "Row (9, 'new', 'city') should have been inserted: name is 'city' and"
                    " must be 'new'"
                ),
                "store_merged_rows, call 1 of writer 1",
            ],
            (
                {(1, "new name", "x"), (9, "new", "city")},
                {(1, "x", "new name"), (9, "city", "new")},
            ),
            "name is '0073' and must be 'Ünï ☃ 😀', city is 'Ünï ☃ 😀' and must be '0073'",
            id="swapped columns",
        ),
        pytest.param(
            LOST_FRAGMENT,
            ["finish() of 1 sink returned no fragment for 1 row", "Row (9, 'new', 'city')"],
            ({(9, "new", "city")}, set()),
            "finish() of a merge sink returned no fragment for 1 row that it received",
            id="lost fragment",
        ),
    ],
)
def test_wrong_rows_are_found_with_the_call_that_got_them(shelf, bug, report, replay, kit):
    shelf.plant(*bug)
    shelf.fill()
    result = shelf.merge(check=True, record=True)
    text = " ".join(str(result).split())
    assert all(words in text for words in report)
    again = replayed(shelf, result.record())
    missing, extra = replay
    assert rows_of(again.missing) == missing
    assert rows_of(again.extra) == extra
    assert kit in kit_failures(shelf)


def test_an_exception_in_finish_is_named_with_its_line_of_java(shelf):
    number = line_of("ShelfMergeSink.java", "writer.finish()") + 1
    line = f"ShelfMergeSink.java:{number}"
    shelf.plant(*FAILED_FINISH)
    shelf.fill()
    with pytest.raises(ConnectorError, match="The disk is full") as caught:
        shelf.merge()
    error = caught.value
    assert error.changed is False
    assert {raised.method for raised in error.raised} == {"finish"}
    assert error.raised[0].frames[-1].function == "shelf.ShelfMergeSink.finish"
    assert line in error.hint
    assert f"ShelfMergeSink.java, line {number}, in shelf.ShelfMergeSink.finish" in str(
        error.result
    )
    # The pages of a failed call are kept without the option.
    again = replayed(shelf, error.result.record())
    assert (again.step, again.number) == ("finish", 0)
    assert line in again.error.hint
    assert line in kit_failures(shelf)
    assert shelf.rows() == BEFORE


def test_rows_that_a_sink_publishes_are_seen_before_the_finish_call_and_after_a_failure(shelf):
    shelf.plant(*EARLY_ROWS)
    shelf.fill()
    result = shelf.merge(check=True)
    assert shelf.rows() == AFTER
    check = result.trace.checks.commit
    assert check.state == "agrees"
    assert "Another reader saw 2 changed rows before finish_merge was called" in check.message
    shelf.fill()
    with pytest.raises(RowMergeError) as caught:
        shelf.merge(fault="finish:1:before")
    text = " ".join(caught.value.result.text().split())
    assert caught.value.changed is True
    assert "shelf.shop.accounts is changed." in text
    assert (
        "not as before the failed statement. A sink stored them: no finish call was made." in text
    )
    assert shelf.rows() != BEFORE


def test_a_rollback_that_throws_is_not_a_rollback(shelf):
    shelf.plant(*FAILED_FINISH, failed_end("rollback"))
    shelf.fill()
    with pytest.raises(RowMergeError) as caught:
        shelf.merge()
    text = " ".join(caught.value.result.text().split())
    assert "The rollback failed" in text or "the rollback failed" in text
    assert "No rollback" in text
    assert "the transaction was rolled back" not in text
    assert [raised.method for raised in caught.value.raised][-1] == "rollback"


def test_a_commit_that_throws_after_the_finish_call_is_an_error_of_a_changed_table(shelf):
    shelf.plant()
    shelf.fill()
    shelf.plant(failed_end("commit"))
    with pytest.raises(RowMergeError, match="No commit") as caught:
        shelf.merge()
    assert caught.value.changed is True
    assert caught.value.hint.endswith("Do not run it again.")
    assert "so its change is stored" in " ".join(caught.value.result.text().split())


def test_a_field_that_json_loses_is_named_with_its_class(shelf):
    shelf.plant(*LOST_FIELD)
    shelf.fill()
    with pytest.raises(ConnectorError, match="is null") as caught:
        shelf.merge()
    assert caught.value.raised[0].method == "create_merge_sink"
    assert "shelf.RowWriter.<init>(RowWriter.java:" in caught.value.hint
    assert LOST in caught.value.hint
    again = replayed(shelf, caught.value.result.record())
    assert again.step == "create_merge_sink"
    assert LOST in again.error.hint
    assert LOST in kit_failures(shelf)


def test_a_lost_field_that_no_task_needs_is_a_notice(shelf):
    shelf.plant(*UNUSED_LOST_FIELD)
    shelf.fill()
    notices = [notice.message for notice in shelf.merge().trace.notices]
    assert any(text.startswith(LOST) for text in notices)
    assert shelf.rows() == AFTER
