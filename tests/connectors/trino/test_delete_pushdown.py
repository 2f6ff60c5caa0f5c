"""A DELETE that the plugin executes itself, on a host without Java."""

from __future__ import annotations

import pytest

import rowmerge_nb as rm
from tests.connectors.trino.fake_connector import FakeTrinoConnector

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark, tmp_path):
    connector = FakeTrinoConnector(tmp_path, properties={"log": str(tmp_path / "log")})
    engine = rm.Engine(spark=spark)
    engine.add_catalog("shop", connector)
    engine.run(
        "CREATE TABLE shop.default.accounts AS SELECT * FROM"
        " (VALUES (1, 'a'), (2, 'b'), (3, 'b'), (4, NULL)) t(id, part_name)"
    )
    yield engine
    connector.close()


def ids(engine):
    query = "SELECT id FROM shop.default.accounts ORDER BY id"
    return engine.run(query).to_pandas()["id"].tolist()


def test_a_delete_whose_condition_the_plugin_accepts_is_executed_by_it(engine):
    result = engine.run(
        "DELETE FROM shop.default.accounts WHERE part_name IN ('b', 'c')", delete_pushdown=True
    )
    assert [call.method for call in result.trace.calls] == [
        "apply_delete",
        "execute_delete",
        "commit",
    ]
    assert (result.count, result.counts["DELETE"]) == (2, 2)
    assert ids(engine) == [1, 4]
    text = str(result)
    assert "2 rows deleted" in text
    assert "the connector deleted the rows itself: no row was read" in " ".join(text.split())
    assert "TableDelete" in result._repr_mimebundle_()["text/html"]


def test_a_row_count_unknown_to_the_plugin_is_none(engine):
    result = engine.run("DELETE FROM shop.default.accounts", delete_pushdown=True)
    assert result.count is None
    assert ids(engine) == []
    assert "Rows deleted from" in str(result)
    assert "0 rows" not in str(result).split("\n", maxsplit=1)[0]


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("id = 2", "does not accept its condition"),
        ("id + 1 = 3", "more than ranges and lists of constants"),
        ("part_name = 'b' AND id % 2 = 0", "more than ranges and lists of constants"),
    ],
)
def test_other_deletes_go_through_the_sink_and_the_report_names_the_reason(engine, where, reason):
    result = engine.run(f"DELETE FROM shop.default.accounts WHERE {where}", delete_pushdown=True)
    methods = [call.method for call in result.trace.calls]
    assert "finish_merge" in methods
    assert "execute_delete" not in methods
    assert reason in " ".join(notice.message for notice in result.trace.notices)
    assert ids(engine) == [1, 3, 4]


def test_rows_go_through_the_sink_as_documented_without_the_option(engine):
    result = engine.run("DELETE FROM shop.default.accounts WHERE part_name = 'b'")
    assert "finish_merge" in [call.method for call in result.trace.calls]
    assert "apply_delete" not in [call.method for call in result.trace.calls]


def test_a_dry_run_shows_that_the_connector_would_delete(engine):
    result = engine.run(
        "DELETE FROM shop.default.accounts WHERE part_name = 'b'",
        delete_pushdown=True,
        dry_run=True,
    )
    assert [record.kind for record in result.trace.plan] == ["Output", "TableDelete"]
    assert ids(engine) == [1, 2, 3, 4]


def test_explain_shows_the_node_on_the_coordinator(engine):
    explained = engine.run(
        "EXPLAIN DELETE FROM shop.default.accounts WHERE part_name = 'b'", delete_pushdown=True
    ).explained
    assert "Fragment 0 [COORDINATOR_ONLY]" in explained
    assert "TableDelete[target = shop.default.accounts]" in explained
    assert "Fragment 1" not in explained
    assert ids(engine) == [1, 2, 3, 4]


def test_a_requested_check_reports_that_no_page_shows_the_rows(engine):
    result = engine.run(
        "DELETE FROM shop.default.accounts WHERE part_name = 'b'",
        delete_pushdown=True,
        check=True,
        record=True,
        why="id = 2",
    )
    assert "the connector deleted the rows itself" in str(result)
