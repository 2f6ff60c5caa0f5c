"""Statements with many constants, on Spark: rows of VALUES and lists of IN are data, for any number."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.sql.analyzer.expressions import in_lists
from tests.sql.literals import at_once, token_by_token

pytestmark = pytest.mark.spark

MANY = 3000


@pytest.fixture
def engine(spark: Any) -> Iterator[Engine]:
    with Engine(spark=spark) as made:
        yield made


def values(count: int, row: str = "({0}, 'text {0}', {0}.25, DATE '2024-02-{1:02}')") -> str:
    return ", ".join(row.format(number, number % 28 + 1) for number in range(count))


def listed(engine: Engine, query: str) -> list[list[Any]]:
    found = engine.run(query).table
    assert found is not None
    return [list(row.values()) for row in found.to_pylist()]


def test_many_rows_are_inserted_as_written(engine: Engine) -> None:
    engine.run("CREATE TABLE t (a bigint, b varchar, c decimal(12,3), d timestamp(6), e varchar)")
    result = engine.run(f"INSERT INTO t (a, b, c, d) VALUES {values(MANY)}")
    assert result.count == MANY
    table = engine.table("t")
    assert table.column("a").to_pylist() == list(range(MANY))
    last = {
        "a": 2999,
        "b": "text 2999",
        "c": Decimal("2999.250"),
        "d": dt.datetime(2024, 2, 4),  # noqa: DTZ001
        "e": None,
    }
    assert table.slice(MANY - 1).to_pylist() == [last]


def test_values_of_every_kind_reach_the_table(engine: Engine) -> None:
    engine.run(
        "CREATE TABLE t (a integer, b double, c boolean, d varchar, e timestamp(6), f varbinary, g uuid, h varchar)"
    )
    row = "(-1, 1.5e3, TRUE, 'it''s ${x} \\ \"', TIMESTAMP '2024-02-29 10:11:12.125', X'00FF', "
    row += "UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59', NULL)"
    engine.run(f"INSERT INTO t VALUES {', '.join([row] * 10)}")
    found = list(engine.table("t").slice(9).to_pylist()[0].values())
    moment = dt.datetime(2024, 2, 29, 10, 11, 12, 125_000)  # noqa: DTZ001
    assert found[:6] == [-1, 1500.0, True, "it's ${x} \\ \"", moment, b"\x00\xff"]
    assert found[6:] == ["12151fd2-7586-11e9-8f9e-2a86e4085a59", None]


@pytest.mark.parametrize(
    ("row", "column", "code", "message"),
    [
        ("(300, 'a', 1, 1)", 1, "NUMERIC_VALUE_OUT_OF_RANGE", "Out of range for tinyint: 300"),
        (
            "(1, 'abcd', 1, 1)",
            4,
            "INVALID_CAST_ARGUMENT",
            "Cannot truncate non-space characters when casting from varchar(4)",
        ),
        ("(1, 'a', 1234.5, 1)", 9, "NUMERIC_VALUE_OUT_OF_RANGE", "Cannot cast DECIMAL"),
        (
            "(1, 'a', 1, NULL)",
            12,
            "CONSTRAINT_VIOLATION",
            "NULL value not allowed for NOT NULL column: d",
        ),
        (
            "(1, 'a', 1, 2147483647.5)",
            12,
            "NUMERIC_VALUE_OUT_OF_RANGE",
            "Cannot cast '2147483648' to INTEGER",
        ),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_found_among_many(
    engine: Engine, row: str, column: int, code: str, message: str
) -> None:
    engine.run("CREATE TABLE t (a tinyint, b varchar(3), c decimal(5,2), d integer NOT NULL)")
    with pytest.raises(RowMergeError) as raised:
        engine.run(f"INSERT INTO t VALUES {values(MANY, '(1, NULL, 0.5, {0})')},\n {row}, {row}")
    assert raised.value.code == code
    assert raised.value.message.startswith(message)
    assert (raised.value.line, raised.value.column) == (2, 2 + column)
    assert engine.table("t").num_rows == 0


def test_many_computed_rows_are_inserted_in_their_order(engine: Engine) -> None:
    engine.run("CREATE TABLE t (a integer, b date, c integer)")
    computed = values(MANY, "({0}, CAST('2024-02-{1:02}' AS date), {0} + 1)")
    engine.run(
        f"INSERT INTO t VALUES {values(100, '(-{0}, NULL, {0})')}, {computed}, (7, DATE '2024-02-29', abs(-3))"
    )
    table = engine.table("t")
    assert table.column("a").to_pylist() == [*(-number for number in range(100)), *range(MANY), 7]
    assert table.column("c").to_pylist()[100:] == [*range(1, MANY + 1), 3]
    assert table.column("b").to_pylist()[102] == dt.date(2024, 2, 3)


def test_many_rows_are_the_source_of_a_merge(engine: Engine) -> None:
    engine.run(f"CREATE TABLE t AS SELECT * FROM (VALUES {values(MANY, '({0}, 0)')}) AS s(k, v)")
    source = values(MANY, "({0}, {0}.5)")
    ids = ", ".join(map(str, range(0, MANY, 2)))
    result = engine.run(
        f"MERGE INTO t USING (VALUES {source}, (-1, 7)) AS s(k, v) ON t.k = s.k "
        f"WHEN MATCHED AND s.k IN ({ids}) THEN DELETE WHEN MATCHED THEN UPDATE SET v = CAST(s.v AS integer) "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.k, CAST(s.v AS integer))"
    )
    assert result.count == MANY + 1
    assert listed(engine, "SELECT count(*), min(k), sum(v - k) FROM t WHERE k >= 0") == [
        [MANY // 2, 1, MANY // 2]
    ]


LOOKED_UP = [
    ("integer", ["1", "-5", "NULL", "2147483647"], ["1", "7", "-5", "2147483648"]),
    (
        "bigint",
        ["9223372036854775807", "-9223372036854775808", "0"],
        ["-9223372036854775808", "+3", "0"],
    ),
    ("decimal(10,2)", ["1.50", "-0.05", "12.34", "NULL"], ["1.5", "-.05", "12.345"]),
    (
        "decimal(38,10)",
        ["1.5", "0.0000000001", "9999999999999999999999999999.0"],
        ["0.0000000001", "9999999999999999999999999999.0", "1"],
    ),
    (
        "varchar",
        ["'it''s'", "'${x}'", "'ü\U0001f600\\'", "''", "'\"]],[['"],
        ["'${x}'", "'ü\U0001f600\\'", "'\"]],[['", "''", "'x'"],
    ),
    ("varchar(3)", ["'abc'", "'a'"], ["'abcd'", "'a'"]),
    (
        "double",
        ["DOUBLE '-0.0'", "DOUBLE 'NaN'", "1.5e0", "DOUBLE 'Infinity'", "1e300"],
        ["0", "1.5", "1e300", "2e0"],
    ),
    ("real", ["REAL '0.1'", "REAL '3'"], ["0.1", "3"]),
    (
        "date",
        ["DATE '2024-02-29'", "DATE '1582-10-10'", "DATE '0001-01-01'"],
        ["DATE '2024-02-29'", "DATE '0001-01-01'"],
    ),
    (
        "timestamp(6)",
        ["TIMESTAMP '2024-02-29 10:11:12.125'", "TIMESTAMP '1900-01-01 00:00:00'"],
        ["TIMESTAMP '2024-02-29 10:11:12.125'", "DATE '1900-01-01'"],
    ),
    ("varbinary", ["X'00FF'", "X''"], ["x'00ff'", "X'01'"]),
    (
        "uuid",
        ["UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'"],
        ["UUID '12151FD2-7586-11E9-8F9E-2A86E4085A59'"],
    ),
]


@pytest.mark.parametrize(
    ("kind", "held", "items"), LOOKED_UP, ids=[kind for kind, _, _ in LOOKED_UP]
)
@pytest.mark.parametrize("null", ["", ", NULL"])
def test_a_value_is_found_in_a_long_list_as_by_comparing(
    engine: Engine, kind: str, held: list[str], items: list[str], null: str
) -> None:
    rows = ", ".join(
        f"({number}, CAST({value} AS {kind}))" for number, value in enumerate([*held, "NULL"])
    )
    found = f"IN ({', '.join(items)}{null})"
    query = f"SELECT n, x {found}, x NOT {found}, CASE WHEN x {found} THEN 1 WHEN NOT x {found} THEN 2 END "
    query += f"FROM (VALUES {rows}) AS s(n, x) ORDER BY n"
    with token_by_token(), patch.object(in_lists, "_SHORT", 10**9):
        expected = listed(engine, query)
    with at_once(), patch.object(in_lists, "_SHORT", 0):
        assert listed(engine, query) == expected


@pytest.mark.parametrize("flow", ["merge", "updatable"])
def test_long_lists_choose_the_rows_that_are_deleted(engine: Engine, flow: str) -> None:
    engine.run(
        f"CREATE TABLE t AS SELECT * FROM (VALUES {values(MANY, '({0}, {0}.25)')}) AS s(a, b)"
    )
    even = ", ".join(str(number) for number in range(0, MANY, 2))
    assert engine.run(f"DELETE FROM t WHERE a IN ({even}, NULL)", flow=flow).count == MANY // 2
    assert engine.run(f"DELETE FROM t WHERE a NOT IN ({even}, 1, NULL)", flow=flow).count == 0
    assert engine.run(f"DELETE FROM t WHERE a NOT IN ({even}, 1)", flow=flow).count == MANY // 2 - 1
    assert listed(engine, "SELECT a FROM t") == [[1]]


def test_a_report_shows_the_ends_of_a_very_long_statement(engine: Engine) -> None:
    engine.run("CREATE TABLE t (a bigint, b varchar, c decimal(12,3), d date)")
    statement = f"INSERT INTO t VALUES {values(20_000)}"
    result = engine.run(statement, dry_run=True)
    shown = result._repr_mimebundle_()
    assert len(shown["text/plain"]) < 20_000
    assert len(shown["text/html"]) < 60_000
    assert result.trace.statement == statement
    assert len(engine.run(f"EXPLAIN {statement}").explained or "") < 20_000


def test_an_error_shows_the_text_around_it_in_a_very_long_line(engine: Engine) -> None:
    engine.run("CREATE TABLE t (a bigint, b varchar, c decimal(12,3), d date)")
    with pytest.raises(RowMergeError) as raised:
        engine.run(f"INSERT INTO t VALUES {values(20_000)} foo bar")
    assert raised.value.result is not None
    shown = str(raised.value.result)
    assert len(shown) < 5_000
    assert "foo bar" in shown
