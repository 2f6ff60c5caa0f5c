"""The Spark SQL of queries: generated names that no column has, and forms that Spark lacks."""

from __future__ import annotations

import re

import pytest

from tests.sql.support import FakeTables, meaning, spark_text, unmarked

CLASHING = FakeTables(
    {"t": [(name, "integer") for name in ("r", "rank", "number", "key", "value", "count", "group")]}
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT rank, number FROM t ORDER BY r FETCH FIRST 2 ROWS WITH TIES",
        "SELECT value, sum(key) FROM t GROUP BY ROLLUP (value) HAVING count(*) > 1",
        'SELECT sum(r) OVER (ORDER BY "group" GROUPS 1 PRECEDING) FROM t',
        "SELECT a.r FROM t a JOIN t b ON a.key = b.key",
    ],
)
def test_a_generated_name_belongs_to_no_column(sql: str) -> None:
    text = spark_text(meaning(sql, tables=CLASHING))
    made_up = re.findall(r" AS `(\$[^`]*)`", text)
    assert made_up
    assert len(set(made_up)) == len(made_up)


def test_a_column_keeps_its_name_as_its_symbol_despite_invented_ones() -> None:
    assert unmarked(spark_text(meaning("SELECT r FROM t", tables=CLASHING))).startswith(
        "SELECT `r` FROM (SELECT c0 AS `r`, "
    )


def test_a_query_is_printed_alike_each_time() -> None:
    analysis = meaning(
        "SELECT i FROM numbers WHERE l > ALL (SELECT l FROM numbers) ORDER BY i FETCH FIRST ROW WITH TIES"
    )
    assert spark_text(analysis) == spark_text(analysis)


def test_a_join_on_the_right_of_a_join_has_parentheses() -> None:
    sql = "SELECT 1 FROM parts a LEFT JOIN (parts b JOIN parts c ON b.id = c.id) ON a.id = b.id"
    assert re.search(
        r"LEFT JOIN \(\(SELECT .* JOIN .* ON .*\) ON ", unmarked(spark_text(meaning(sql)))
    )
