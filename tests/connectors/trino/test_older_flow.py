"""UPDATE and DELETE by page sources of a plugin, on a host without Java."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import ConnectorError
from tests.connectors.trino.fake_connector import FakeTrinoConnector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.spark

OLDER = json.dumps({"trino": "380", "flows": ["updatable"]})
NEWER = json.dumps({"trino": "483", "flows": ["merge"]})
ACCOUNTS = "SELECT customer, purchases, address FROM shop.default.accounts ORDER BY customer"


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Iterator[Callable[..., rm.Engine]]:
    """Builds engines on a filled table of a plugin with these properties."""
    connectors = []

    def build(**properties: str) -> rm.Engine:
        connectors.append(FakeTrinoConnector(tmp_path, properties=properties))
        engine = rm.Engine(spark=spark)
        engine.add_catalog("shop", connectors[-1])
        engine.run(
            "CREATE TABLE shop.default.accounts AS SELECT * FROM (VALUES ('Aaron', 5, 'Antioch'),"
            " ('Bill', 7, 'Buena'), ('Carol', 3, NULL)) t(customer, purchases, address)"
        )
        return engine

    yield build
    for connector in connectors:
        connector.close()


def rows(engine: rm.Engine) -> list[tuple[Any, ...]]:
    table = engine.run(ACCOUNTS).table
    assert table is not None
    return [tuple(row.values()) for row in table.to_pylist()]


def test_an_update_passes_new_values_and_row_ids_to_the_source_that_read_them(
    shop: Callable[..., rm.Engine],
) -> None:
    engine = shop(greeting=OLDER)
    result = engine.run(
        "UPDATE shop.default.accounts SET address = 'new', purchases = purchases + 100"
        " WHERE customer <> 'Bill'",
        flow="updatable",
    )
    assert result.count == 2
    assert rows(engine) == [("Aaron", 105, "new"), ("Bill", 7, "Buena"), ("Carol", 103, "new")]
    text = result.text()
    for name in (
        "get_update_row_id_column_handle",
        "begin_update",
        "update_rows",
        "finish_update",
    ):
        assert name in text
    # Channel 0 is the row id, and the values follow in the order of the statement.
    assert "channels [2, 1, 0]" in text


def test_a_delete_passes_row_ids_to_the_source_that_read_them(
    shop: Callable[..., rm.Engine],
) -> None:
    engine = shop(greeting=OLDER)
    sql = "DELETE FROM shop.default.accounts WHERE purchases < 6"
    result = engine.run(sql, flow="updatable")
    assert result.count == 2
    assert rows(engine) == [("Bill", 7, "Buena")]
    assert "delete_rows" in result.text()
    assert engine.run(sql, flow="updatable").count == 0


def test_an_update_of_every_column_needs_nothing_from_the_row_id(
    shop: Callable[..., rm.Engine],
) -> None:
    engine = shop(greeting=OLDER)
    engine.run(
        "UPDATE shop.default.accounts SET customer = 'x', purchases = 1, address = NULL"
        " WHERE customer = 'Bill'",
        flow="updatable",
    )
    assert rows(engine)[-1] == ("x", 1, None)


def test_an_update_reads_columns_that_the_plugin_omits(shop: Callable[..., rm.Engine]) -> None:
    engine = shop(greeting=OLDER)
    engine.run(
        "CREATE TABLE shop.default.parts AS SELECT * FROM (VALUES (1, 'a', 'p'), (2, 'b', 'p'),"
        " (3, 'c', 'p'), (4, 'd', 'p'), (5, 'e', NULL)) t(id, name, part_city)"
    )
    result = engine.run(
        "UPDATE shop.default.parts SET name = concat(part_city, 'x') WHERE id > 3",
        flow="updatable",
    )
    assert result.count == 2
    table = engine.run("SELECT * FROM shop.default.parts ORDER BY id").table
    assert table is not None
    assert [tuple(row.values()) for row in table.to_pylist()[2:]] == [
        (3, "c", "p"),
        (4, "px", "p"),
        (5, None, None),
    ]
    engine.run("DELETE FROM shop.default.parts WHERE part_city = 'p'", flow="updatable")
    assert engine.run("SELECT count(*) AS n FROM shop.default.parts").to_pandas().n[0] == 1


@pytest.mark.parametrize(
    "sql",
    [
        (
            "MERGE INTO shop.default.accounts t USING (VALUES 'Bill') s(c) ON t.customer = s.c"
            " WHEN MATCHED THEN DELETE"
        ),
        "UPDATE shop.default.accounts SET purchases = 0",
        "DELETE FROM shop.default.accounts WHERE purchases = 5",
    ],
)
def test_the_machinery_of_merge_is_refused_with_the_version_that_began_it(
    shop: Callable[..., rm.Engine], sql: str
) -> None:
    engine = shop(greeting=OLDER)
    with pytest.raises(ConnectorError, match=r"Trino 380, but MERGE came with Trino 393") as info:
        engine.run(sql)
    assert info.value.code == "NOT_SUPPORTED"
    assert "flow='updatable'" in (info.value.hint or "")
    assert len(rows(engine)) == 3


@pytest.mark.parametrize(
    ("sql", "call"),
    [
        ("UPDATE shop.default.accounts SET purchases = 0", "UPDATE"),
        ("DELETE FROM shop.default.accounts", "DELETE"),
    ],
)
def test_the_older_flow_is_refused_by_a_plugin_without_it(
    shop: Callable[..., rm.Engine], sql: str, call: str
) -> None:
    engine = shop(greeting=NEWER)
    with pytest.raises(ConnectorError, match=f"the older flow of {call}") as info:
        engine.run(sql, flow="updatable")
    assert info.value.code == "NOT_SUPPORTED"
    assert engine.run(sql).count == 3


@pytest.mark.parametrize(
    "call", ["update_row_id", "begin_update", "update_rows", "finish_source", "finish_update"]
)
def test_an_error_of_any_call_leaves_the_table_unchanged(
    shop: Callable[..., rm.Engine], call: str
) -> None:
    error = {"message": "no coffee", "code": "SHOP_ERROR"}
    engine = shop(greeting=OLDER, fail=json.dumps({"call": call, "error": error}))
    before = rows(engine)
    with pytest.raises(rm.RowMergeError, match="no coffee") as info:
        engine.run("UPDATE shop.default.accounts SET purchases = 0", flow="updatable")
    assert info.value.code == "SHOP_ERROR"
    assert rows(engine) == before


def test_a_source_is_aborted_if_its_split_fails(
    shop: Callable[..., rm.Engine], tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    error = {"message": "no coffee", "code": "SHOP_ERROR"}
    fail = json.dumps({"call": "delete_rows", "error": error})
    engine = shop(greeting=OLDER, fail=fail, log=str(log))
    with pytest.raises(rm.RowMergeError, match="no coffee"):
        engine.run("DELETE FROM shop.default.accounts", flow="updatable")
    names = log.read_text().split()
    assert "abort_source" in names
    assert "finish_source" not in names[names.index("delete_rows") :]
    assert names[-1] == "rollback"


def test_a_host_that_ends_in_the_finish_call_leaves_the_outcome_open(
    shop: Callable[..., rm.Engine],
) -> None:
    engine = shop(greeting=OLDER, exit="finish_delete")
    with pytest.raises(ConnectorError, match="out of coffee") as info:
        engine.run("DELETE FROM shop.default.accounts", flow="updatable")
    assert info.value.code == "HOST_TERMINATED"
    assert info.value.changed is None
    assert "Check the table" in (info.value.hint or "")


def test_a_field_that_the_handle_of_begin_update_loses_is_a_notice(
    shop: Callable[..., rm.Engine],
) -> None:
    loss = {"class": "shop.ShopTable", "field": "shelf", "before": "A7", "after": "null"}
    engine = shop(greeting=OLDER, lost=json.dumps([loss]))
    result = engine.run("UPDATE shop.default.accounts SET purchases = 0", flow="updatable")
    assert "shop.ShopTable.shelf is lost" in str(result)


def test_both_flows_are_compared_on_one_statement(shop: Callable[..., rm.Engine]) -> None:
    engine = shop()
    comparison = engine.compare("DELETE FROM shop.default.accounts WHERE purchases < 6", by="flows")
    text = str(comparison)
    assert "delete_rows" in text
    assert "store_merged_rows" in text
    assert len(rows(engine)) == 3
