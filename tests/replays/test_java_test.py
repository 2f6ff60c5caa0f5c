"""Java tests of replays on a plugin of Trino: the text, without Java."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from rowmerge_nb import MemoryConnector, RowMergeError, replay
from rowmerge_nb.replays import case
from rowmerge_nb.replays.java_test import MOST_VALUES
from tests.connectors.trino.fake_connector import FakeTrinoConnector

GOLDEN = Path(__file__).parent / "TestAccounts.java"
MERGE = case(
    table="default.accounts",
    columns={"id": "bigint", "name": "varchar"},
    rows=[(1, "a"), (2, "b"), (3, None)],
    not_null=["id"],
    properties={"format": "ORC", "external_location": "/lake/accounts"},
    session={"era": "current"},
    updated={0: ("name",)},
    pages=[
        (0, [("UPDATE_DELETE", 0, (1, "a"), 0), ("UPDATE_INSERT", None, (1, "x"), 0)]),
        (0, []),
        (1, [("INSERT", None, (9, 'it\'s "new"\n'), 1)]),
    ],
)
VALUES = {
    "boolean": True,
    "tinyint": -1,
    "smallint": 2,
    "integer": 3,
    "bigint": 2**62,
    "real": 0.5,
    "double": float("-inf"),
    "decimal(10, 2)": Decimal("1.50"),
    "decimal(30, 2)": Decimal("-1.50"),
    "varchar": 'it\'s """ \\ \n\x00 日本 \\u0041 */',
    "varchar(10)": "x",
    "char(5)": "ab",
    "varbinary": b"\x00'",
    "json": '{"a": 1}',
    "date": dt.date(2024, 2, 29),
    "time(6)": dt.time(1, 2, 3, 4),
    "timestamp(6)": dt.datetime(1924, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001 - without a zone
    "timestamp(9)": dt.datetime(2024, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001 - as above
    "timestamp(3) with time zone": dt.datetime(2024, 2, 29, 1, 2, 3, 4000, dt.UTC),
    "timestamp(6) with time zone": dt.datetime(1924, 2, 29, 1, 2, 3, 4, dt.UTC),
    "uuid": "00112233-4455-6677-8899-aabbccddeeff",
    "array(bigint)": [1, None],
    "array(row(x bigint, y array(varchar)))": [{"x": 1, "y": [None]}, None],
    "map(varchar, double)": [("k", 1.5), ("n", None)],
}


def case_of_types(*without: str):
    """Return a case with a column and two values of each type."""
    chosen = {sql_type: value for sql_type, value in VALUES.items() if sql_type not in without}
    columns = {f"c{index}": sql_type for index, sql_type in enumerate(chosen)}
    row, nulls = tuple(chosen.values()), (None,) * len(chosen)
    return case(
        table="shop.types",
        columns=columns,
        rows=[row, nulls],
        pages=[(2, [("DELETE", 0, nulls), ("INSERT", None, row), ("INSERT", None, nulls)])],
    )


def make_shop(folder):
    return FakeTrinoConnector(
        folder, properties={"shop.folder": f"{folder}/shop", "connection-password": "secret"}
    )


def test_the_text_has_the_calls_the_pages_and_the_rows(tmp_path):
    done = replay(MERGE, make_shop)
    assert done.agrees, done
    text = done.to_test(tmp_path / "TestAccounts.java").read_text()
    assert text == GOLDEN.read_text()
    assert "secret" not in text


def test_every_type_is_written(tmp_path):
    done = replay(case_of_types(), make_shop)
    assert done.agrees, done
    text = done.to_test(tmp_path / "TestTypes.java").read_text()
    for literal in (
        "4611686018427387904L",
        "Double.NEGATIVE_INFINITY",
        'new BigDecimal("-1.50")',
        r'"it\'s \"\"\" \\ \n\u0000 \u65e5\u672c \\u0041 */"'.replace(r"\'", "'"),
        'HexFormat.of().parseHex("0027")',
        'LocalDateTime.parse("1924-02-29T01:02:03.000004")',
        'Instant.parse("2024-02-29T01:02:03.004000Z")',
        "row(row(1L, row((Object) null)), null)",
        'row(row("k", 1.5), row("n", null))',
    ):
        assert literal in text, literal


def test_an_insert_has_the_calls_of_a_page_sink(tmp_path):
    record = case(
        kind="INSERT",
        columns={"id": "bigint"},
        rows=[(1,)],
        pages=[(0, [("INSERT", None, (2,)), ("INSERT", None, (None,))])],
    )
    text = replay(record, make_shop).to_test(tmp_path / "TestInsert.java").read_text()
    assert "sink0.appendPage(page(List.of(\n                row(2L),\n" in text
    assert "row((Object) null)))).get();" in text
    assert "finishInsert" in text
    assert "MergeSink" not in text


def failing(error):
    fail = json.dumps({"call": "store_merged_rows", "error": error})

    def make(folder):
        return FakeTrinoConnector(folder, properties={"fail": fail})

    return make


def test_an_error_is_expected_if_it_is_right(tmp_path):
    done = replay(MERGE, failing({"message": "shelf is full", "code": "SHELF_FULL"}))
    assert done.failed
    taken = done.to_test(tmp_path / "TestTaken.java").read_text()
    assert "void testStoreMergedRowsTakesTheseRows()" in taken
    assert "EXPECTED_ROWS = List.of" in taken
    refused = done.to_test(tmp_path / "TestRefused.java", expect_error=True).read_text()
    assert "void testStoreMergedRowsRefusesTheseRows()" in refused
    assert "TrinoException error = assertThrows(TrinoException.class, () -> run(" in refused
    assert 'assertEquals("SHELF_FULL", error.getErrorCode().getName());' in refused
    other = replay(MERGE, failing({"message": "no", "code": "", "class": "shop.Shelf$Full"}))
    text = other.to_test(tmp_path / "TestOther.java", expect_error=True).read_text()
    assert "            assertThrows(shop.Shelf.Full.class, () -> run(connector));\n" in text


def test_a_replay_up_to_finish_ends_there(tmp_path):
    text = replay(MERGE, make_shop, writer=1).to_test(tmp_path / "TestOne.java").read_text()
    assert "sink1.finish()" in text
    assert "sink0" not in text
    assert "finishMerge" not in text
    assert "EXPECTED_ROWS" not in text


def test_the_package_is_that_of_the_folder(tmp_path):
    folder = tmp_path / "src/test/java/io/shop"
    done = replay(MERGE, make_shop)
    text = done.to_test(folder / "TestShop.java").read_text()
    assert text.startswith("package io.shop;\n\nimport ")
    assert re.search(r"^final class TestShop$", text, re.MULTILINE)


@pytest.mark.not_quick
def test_unsupported_records_are_refused_and_no_file_remains(tmp_path):
    done, java = replay(MERGE, make_shop), tmp_path / "TestShop.java"
    older = case(
        kind="DELETE",
        flow="updatable",
        columns={"id": "bigint"},
        rows=[(1,)],
        pages=[(0, [("DELETE", 0, ())])],
    )
    rows = [(number, "a") for number in range(MOST_VALUES)]
    many = case(columns={"id": "bigint", "name": "varchar"}, rows=rows, pages=[])
    long = case(columns={"name": "varchar"}, rows=[("é" * 40_000,)], pages=[])
    kept = make_shop(tmp_path)
    try:
        of_connector = replay(MERGE, kept)
    finally:
        kept.close()
    for write, code, message in (
        (lambda: done.to_test(tmp_path / "test-shop.java"), "INVALID", "cannot be named"),
        (lambda: done.to_test(java, expect_error=True), "INVALID", "No call failed"),
        (lambda: done.to_test(java, expect_error=1), "INVALID", "expect_error = 1"),
        (lambda: done.to_test(java, "shop:make"), "INVALID", "connector = 'shop:make' names"),
        (lambda: done.to_test(java, make_table="a:b"), "INVALID", "make_table = 'a:b' names"),
        (lambda: replay(MERGE, MemoryConnector).to_test(java), "NOT_", "no Trino plugin"),
        (lambda: replay(older, MemoryConnector).to_test(java), "NOT_", "the older flow"),
        (lambda: replay(many, make_shop).to_test(java), "INVALID", r"12,000 values"),
        (lambda: replay(long, make_shop).to_test(java), "INVALID", r"at most 65,535 bytes"),
        (lambda: of_connector.to_test(java), "INVALID", "is a connector, whose tables"),
    ):
        with pytest.raises(RowMergeError, match=message) as caught:
            write()
        assert caught.value.code.startswith(code)
    assert not list(tmp_path.glob("*.java"))


def test_a_pytest_file_expects_an_error_too(tmp_path):
    record = case(columns={"id": "bigint"}, rows=[], pages=[(0, [("INSERT", None, (7,))])])
    from tests.replays import shop

    shop.BUG = "typo in store_merged_rows"
    try:
        done = replay(record, shop.broken)
        file = done.to_test(tmp_path / "test_refused.py", expect_error=True)
        text = file.read_text()
        scope = {}
        exec(text, scope)
        scope["test_store_merged_rows_refuses_these_rows"]()
        shop.BUG = ""
        with pytest.raises(AssertionError):
            scope["test_store_merged_rows_refuses_these_rows"]()
    finally:
        shop.BUG = ""
