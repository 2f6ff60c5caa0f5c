from __future__ import annotations

import pytest

from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis, QueryAnalysis
from rowmerge_nb.sql.typed.readings import is_deterministic, known_rows
from tests.sql.support import meaning, place, refusal, spark_text, unmarked


def _query(sql: str) -> QueryAnalysis:
    found = meaning(sql)
    assert isinstance(found, QueryAnalysis)
    return found


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM parts", ["id", "code", "tags", "made"]),
        ("SELECT p.*, 1 AS one FROM parts p", ["id", "code", "tags", "made", "one"]),
        ("SELECT i, i FROM numbers", ["i", "i"]),
        ("SELECT 1, count(*) FROM numbers", ["_col0", "_col1"]),
        ("SELECT I, N.S FROM numbers n", ["I", "S"]),
        ("SELECT CAST(ROW(1) AS row(a integer)).a", ["_col0"]),
        ("TABLE parts", ["id", "code", "tags", "made"]),
        ("VALUES (1, 'a'), (2, NULL)", ["_col0", "_col1"]),
        ("SELECT a.i, b.s FROM numbers a JOIN numbers b ON a.i = b.i", ["i", "s"]),
        (
            "SELECT * FROM numbers a JOIN (SELECT i, 1 x FROM numbers) q USING (i)",
            ["i", "l", "n", "d", "s", "b", "x"],
        ),
        ("WITH w(k) AS (SELECT i FROM numbers) SELECT k FROM w UNION SELECT 1.5", ["k"]),
        ("SELECT t, o FROM parts CROSS JOIN UNNEST(tags) WITH ORDINALITY AS u(t, o)", ["t", "o"]),
        ("SELECT s, row_number() OVER (PARTITION BY s ORDER BY i) n FROM numbers", ["s", "n"]),
    ],
)
def test_the_columns_of_a_query_have_their_names_and_unique_symbols(sql, names):
    query = _query(sql)
    assert [field.name for field in query.fields] == names
    symbols = [field.symbol for field in query.fields]
    assert len(set(symbols)) == len(symbols)


def test_null_sorts_last_by_default():
    assert spark_text(_query("SELECT i FROM numbers ORDER BY i DESC")).endswith(
        "ORDER BY `i` DESC NULLS LAST"
    )
    assert spark_text(_query("SELECT i FROM numbers ORDER BY 1 NULLS FIRST")).endswith(
        "ORDER BY `i` ASC NULLS FIRST"
    )


def test_an_inner_column_cannot_catch_an_outer_one_of_the_same_name():
    spark = spark_text(
        _query("SELECT i FROM numbers a WHERE EXISTS (SELECT 1 FROM numbers b WHERE b.i = a.i)")
    )
    assert "WHERE (`i_0` = `i`)" in unmarked(spark)


@pytest.mark.parametrize(
    ("select", "rows"),
    [
        ("count(*)", "1 row"),
        ("count(*) OVER ()", "3 rows"),
        ("i, row_number() OVER (ORDER BY i)", "3 rows"),
        ("sum(sum(i)) OVER ()", "1 row"),
        ("abs(max(i)) + 1", "1 row"),
    ],
)
def test_an_aggregate_reduces_many_rows_to_one_but_not_over_a_window(select, rows):
    assert str(known_rows(_query(f"SELECT {select} FROM (VALUES 1, 2, 3) AS t(i)").tree)) == rows


def test_a_query_cut_off_by_a_limit_is_not_deterministic():
    merge = meaning(
        "MERGE INTO parts t USING (SELECT i FROM numbers LIMIT 2) s ON t.id = s.i WHEN MATCHED THEN DELETE"
    )
    assert isinstance(merge, MergeAnalysis)
    assert not is_deterministic(merge.source.tree)


@pytest.mark.parametrize(
    ("sql", "code", "column"),
    [
        ("SELECT s, count(*) FROM numbers", "EXPRESSION_NOT_AGGREGATE", 8),
        ("SELECT i + 1 FROM numbers GROUP BY l", "EXPRESSION_NOT_AGGREGATE", 10),
        ("SELECT i FROM numbers WHERE sum(i) > 1", "EXPRESSION_NOT_SCALAR", 36),
        ("SELECT i FROM numbers WHERE i", "TYPE_MISMATCH", 29),
        ("SELECT i FROM numbers GROUP BY 2", "INVALID_COLUMN_REFERENCE", 32),
        ("SELECT i FROM numbers UNION SELECT s FROM numbers", "TYPE_MISMATCH", 23),
        ("SELECT DISTINCT i FROM numbers ORDER BY s", "EXPRESSION_NOT_IN_DISTINCT", 1),
        ("SELECT x.* FROM numbers", "TABLE_NOT_FOUND", 8),
        ("SELECT *", "COLUMN_NOT_FOUND", 8),
        ("SELECT 1 FROM nowhere", "TABLE_NOT_FOUND", 15),
        ("WITH RECURSIVE r AS (SELECT 1 n) SELECT n FROM r", "MISSING_COLUMN_ALIASES", 16),
    ],
)
def test_wrong_queries_are_refused_at_their_position(sql, code, column):
    assert place(refusal(sql)) == (code, 1, column)


@pytest.mark.parametrize(
    ("sql", "code", "column"),
    [
        (
            "MERGE INTO parts t USING numbers s ON count(*).x = 1 WHEN MATCHED THEN DELETE",
            "TYPE_MISMATCH",
            39,
        ),
        (
            "MERGE INTO parts t USING numbers s ON max(s.i) WHEN MATCHED THEN DELETE",
            "TYPE_MISMATCH",
            39,
        ),
        (
            "MERGE INTO parts t USING numbers s ON max(s.i) = 1 WHEN MATCHED THEN DELETE",
            "EXPRESSION_NOT_SCALAR",
            39,
        ),
        (
            "MERGE INTO parts t USING numbers s ON max(s.i) = 1 WHEN MATCHED AND nosuch THEN DELETE",
            "COLUMN_NOT_FOUND",
            69,
        ),
        ("UPDATE parts SET id = 'a' + max(id)", "TYPE_MISMATCH", 27),
        ("UPDATE parts SET id = grouping(id) || 'a'", "FUNCTION_NOT_FOUND", 36),
        ("UPDATE parts SET id = 1 + grouping(id)", "EXPRESSION_NOT_SCALAR", 27),
        ("VALUES (max(1)), ('a' + 1)", "TYPE_MISMATCH", 23),
        ("VALUES (1 + max(1))", "EXPRESSION_NOT_SCALAR", 13),
    ],
)
def test_an_aggregate_that_trinos_analyzer_accepts_is_refused_after_other_errors(sql, code, column):
    assert place(refusal(sql)) == (code, 1, column)
