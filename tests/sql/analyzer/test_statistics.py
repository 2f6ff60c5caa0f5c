"""SHOW STATS of tables and queries: what Trino's rules make of what a store keeps."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from rowmerge_nb.spi.metadata import ColumnStatistics
from rowmerge_nb.sql.analyzer.analysis import ListingAnalysis, TableBinding
from tests.sql.support import FakeTables, meaning, refusal

KNOWN = {
    "id": ColumnStatistics(0.0, 100.0, None, 0, 99),
    "v": ColumnStatistics(0.25, 10.0, None, 1.5, 11.5),
    "n": ColumnStatistics(0.5, 4.0, 1200.0, None, None),
    "d": ColumnStatistics(0.0, None, None, Decimal("1.50"), Decimal("9.50")),
    "day": ColumnStatistics(0.0, None, None, dt.date(2024, 1, 1), dt.date(2024, 1, 31)),
    "ts": ColumnStatistics(0.0, None, None, *map(dt.datetime.fromisoformat, ("2024-01-01 00:00:01.5", "2024-01-02"))),
    "b": ColumnStatistics(0.0, None, None, None, None),
}
COLUMNS = ("id bigint", "v double", "n varchar", "d decimal(10,2)", "day date", "ts timestamp(3)", "b boolean")
ROWS = 200


class Counted(FakeTables):
    """A table of which much is known, and one of which only its rows are."""

    def __init__(self, rows: int | None = ROWS, known: Mapping[str, ColumnStatistics] | None = None) -> None:
        super().__init__({"t": [c.split(" ") for c in COLUMNS], "other": [("id", "bigint")]})
        self.rows, self.known = rows, KNOWN if known is None else known

    def statistics(self, table: TableBinding) -> tuple[int | None, Mapping[str, ColumnStatistics]]:
        return self.rows, self.known if table.name[2] == "t" else {}


def shown(sql: str, tables: FakeTables | None = None) -> dict[str | None, tuple[Any, ...]]:
    """Give of every column (data_size, distinct_values_count, nulls_fraction, low_value, high_value), and the row count of None."""
    found = meaning(f"SHOW STATS FOR {sql}", tables=tables or Counted())
    assert isinstance(found, ListingAnalysis)
    *columns, (name, *nothing, rows, low, high) = found.rows
    assert (name, nothing, low, high) == (None, [None] * 3, None, None)
    assert all(row[4] is None for row in columns)
    return {**{row[0]: (*row[1:4], *row[5:]) for row in columns}, None: (rows,)}


def test_a_table_has_a_line_for_every_column_and_one_for_its_rows() -> None:
    assert shown("t") == {
        "id": (None, 100.0, 0.0, "0", "99"),
        "v": (None, 10.0, 0.25, "1.5", "11.5"),
        "n": (1200.0, 4.0, 0.5, None, None),
        "d": (None, None, 0.0, "1.5", "9.5"),
        "day": (None, None, 0.0, "2024-01-01", "2024-01-31"),
        "ts": (None, None, 0.0, "2024-01-01 00:00:01.500", "2024-01-02 00:00:00.000"),
        "b": (None, None, 0.0, None, None),
        None: (200.0,),
    }


def test_of_no_rows_all_is_known() -> None:
    found = shown("t", Counted(0, {}))
    assert found.pop(None) == (0.0,)
    assert set(found.values()) == {(0.0, 0.0, 1.0, None, None)}


def test_of_a_table_that_nobody_knows_all_is_null() -> None:
    found = shown("t", Counted(None, {}))
    assert found.pop(None) == (None,)
    assert set(found.values()) == {(None,) * 5}


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("true", 200),
        ("id < 50", 200 * 50 / 99),
        ("50 > id", 200 * 50 / 99),
        ("id >= 99", 2),
        ("id > 200", 0),
        ("id = 7", 2),
        ("id = 700", 0),
        ("id <> 7", 198),
        ("NOT (id = 7)", 198),
        ("NOT id < 50", 200 * 49 / 99),
        ("id IN (1, 2, 3)", 6),
        ("id IN (1, NULL)", 2),
        ("id NOT IN (1, 2)", 196),
        ("id BETWEEN 10 AND 19", 200 * 9 / 99),
        ("v IS NULL", 50),
        ("v IS NOT NULL", 150),
        ("v > 6.5", 75),
        ("v = v", 150),
        ("n = 'a'", 25),
        ("id = 1 OR id = 2", 4),
        # Conditions on different columns count as independent by three quarters.
        ("v IS NULL AND n IS NULL", 200 * 0.25 * 0.5**0.75),
        ("v IS NULL AND length(n) = 1", 50 * 0.9),
        ("length(n) = 1", None),
        ("n LIKE 'a%'", None),
        ("day < DATE '2024-01-16'", 100),
        ("id = v", 200 * 0.75 / 100),
        ("id < v", None),
        ("NULL", 0),
        ("id = NULL", 0),
        ("d = 2", None),
    ],
)
def test_a_condition_narrows_the_number_of_rows_by_trinos_rules(condition: str, rows: float | None) -> None:
    (found,) = shown(f"(SELECT * FROM t WHERE {condition})")[None]
    assert found == (None if rows is None else pytest.approx(rows))


def test_a_condition_narrows_the_bounds_of_its_column() -> None:
    found = shown("(SELECT id, v, n FROM t WHERE id BETWEEN 10 AND 19 AND v > 6.5)")
    assert found["id"] == (None, pytest.approx(200 * 9 / 99 * 0.375**0.75), 0.0, "10", "19")
    assert found["v"][2:] == (0.0, "6.5", "11.5")
    assert shown("(SELECT ts FROM t WHERE ts > TIMESTAMP '2024-01-01 12:00:00')")["ts"][3] == "2024-01-01 12:00:00.000"


def test_a_long_list_counts_value_by_value() -> None:
    assert shown(f"(SELECT id FROM t WHERE id IN ({', '.join(map(str, range(10, 90)))}))")[None] == (pytest.approx(160),)


def test_computed_columns_limits_and_names_are_told() -> None:
    assert shown("(SELECT id AS a, CAST(v AS bigint) AS w, 7, CAST(NULL AS date) AS gone, upper(n) AS u FROM t LIMIT 10)") == {
        "a": (None, 10.0, 0.0, "0", "99"),
        "w": (None, pytest.approx(8.75), pytest.approx(0.125), "2", "12"),
        "_col2": (None, 1.0, 0.0, "7", "7"),
        "gone": (0.0, 0.0, 1.0, None, None),
        "u": (None,) * 5,
        None: (10.0,),
    }
    assert shown("(SELECT count(*) AS n FROM t WHERE id = 7)") == {"n": (None,) * 5, None: (1.0,)}
    assert shown("(VALUES 1, 2, 3)")[None] == (3.0,)
    assert shown("(WITH w AS (SELECT id FROM t) SELECT * FROM (SELECT id FROM w WHERE id = 1) ORDER BY id LIMIT 5)")[None] == (
        2.0,
    )
    assert shown("(SELECT 1e10 AS big, REAL '0.1' AS r, true AS yes)") == {
        "big": (None, 1.0, 0.0, "1.0E10", "1.0E10"),
        "r": (None, 1.0, 0.0, "0.1", "0.1"),
        "yes": (None, 1.0, 0.0, "true", "true"),
        None: (1.0,),
    }


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT t.id FROM t, other", "a join"),
        ("SELECT id FROM t UNION ALL SELECT id FROM t", "UNION, INTERSECT or EXCEPT"),
        ("SELECT DISTINCT id FROM t", "DISTINCT"),
        ("SELECT n FROM t GROUP BY n", "GROUP BY"),
        ("SELECT count(*) FROM t HAVING count(*) > 1", "HAVING"),
        ("SELECT rank() OVER (ORDER BY id) FROM t", "a window function"),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM other)", "a subquery"),
        ("SELECT id FROM t OFFSET 2", "OFFSET"),
        ("SELECT * FROM UNNEST(ARRAY[1])", "UNNEST"),
        ("SELECT * FROM TABLE(sequence(1, 3))", "a table function"),
        ("WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r", "WITH RECURSIVE"),
    ],
)
def test_what_is_not_estimated_is_refused_with_its_name(query: str, what: str) -> None:
    error = refusal(f"SHOW STATS FOR ({query})", tables=Counted())
    said = f"SHOW STATS of a query with {what} is not supported by this engine"
    assert (error.code, error.message, error.line, error.column) == ("NOT_SUPPORTED", said, 1, 1)
    assert error.hint == "What is estimated are the rows of one table: SELECT ... FROM a table, WHERE and LIMIT."


@pytest.mark.parametrize(
    ("sql", "code", "column"),
    [
        ("SHOW STATS FOR (SELECT nope FROM t)", "COLUMN_NOT_FOUND", 24),
        ("SHOW STATS FOR (SELECT id FROM nope)", "TABLE_NOT_FOUND", 32),
        ("SHOW STATS FOR nope", "TABLE_NOT_FOUND", 1),
        ("SHOW STATS FOR (SELECT id FROM t WHERE id)", "TYPE_MISMATCH", 40),
        ("SHOW STATS FOR (t", "SYNTAX_ERROR", 17),
        ("SHOW STATS FOR (SELECT 1", "SYNTAX_ERROR", 25),
        ("SHOW STATS FOR ()", "SYNTAX_ERROR", 17),
    ],
)
def test_what_is_wrong_in_a_query_is_told_at_its_place(sql: str, code: str, column: int) -> None:
    error = refusal(sql, tables=Counted())
    assert (error.code, error.line, error.column) == (code, 1, column)
