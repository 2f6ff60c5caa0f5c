"""TABLESAMPLE: none, some or all rows of what stands before it, in queries and as the source of a MERGE."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError

pytestmark = pytest.mark.spark

ROWS = 20_000


@pytest.fixture
def engine(spark: Any) -> Engine:
    made = Engine(spark=spark)
    made.register("t", pa.table({"id": list(range(ROWS)), "v": [0] * ROWS}))
    return made


def count(engine: Engine, sql: str) -> int:
    found = engine.run(sql).table
    assert found is not None
    return int(found.column(0)[0].as_py())


@pytest.mark.parametrize("kind", ["BERNOULLI", "system"])
@pytest.mark.parametrize(
    ("source", "all_rows"),
    [
        ("t", ROWS),
        ("t AS x (a, b)", ROWS),
        ("(SELECT id FROM t WHERE id < 10000)", 10_000),
        ("(t JOIN (VALUES (0, 1), (0, 2)) AS w (v, n) USING (v))", 2 * ROWS),
        ("UNNEST(sequence(1, 5000))", 5_000),
    ],
)
def test_none_some_or_all_rows_are_in_a_sample(engine: Engine, kind: str, source: str, all_rows: int) -> None:
    assert count(engine, f"SELECT count(*) FROM {source} TABLESAMPLE {kind} (0)") == 0
    assert count(engine, f"SELECT count(*) FROM {source} TABLESAMPLE {kind} (99 + 1)") == all_rows
    # So far from the half a fair coin is not in a hundred thousand years of CI.
    assert all_rows * 0.4 < count(engine, f"SELECT count(*) FROM {source} TABLESAMPLE {kind} (DECIMAL '50.0')") < all_rows * 0.6


def test_a_sample_stands_on_either_side_of_a_join_and_in_subqueries(engine: Engine) -> None:
    both = "SELECT count(*) FROM t a TABLESAMPLE BERNOULLI (100) JOIN t b TABLESAMPLE BERNOULLI (50) ON a.id = b.id"
    assert ROWS * 0.4 < count(engine, both) < ROWS * 0.6
    unnested = "SELECT count(*) FROM t CROSS JOIN UNNEST(ARRAY[id, id]) TABLESAMPLE BERNOULLI (50) AS u (i)"
    with pytest.raises(RowMergeError, match="mismatched input 'AS'"):
        engine.run(unnested)
    joined = "SELECT u.i FROM t CROSS JOIN UNNEST(ARRAY[id, id]) AS u (i)"
    assert ROWS * 0.9 < count(engine, f"SELECT count(*) FROM ({joined}) TABLESAMPLE BERNOULLI (50)") < ROWS * 1.1
    for right in (
        "UNNEST(ARRAY[id]) TABLESAMPLE BERNOULLI (50)",
        "LATERAL (SELECT id + random())",
        "UNNEST(ARRAY[id + random()])",
    ):
        with pytest.raises(RowMergeError, match="cannot depend on chance") as error:
            engine.run(f"SELECT * FROM t CROSS JOIN {right}")
        assert (error.value.code, error.value.line, error.value.column) == ("NOT_SUPPORTED", 1, 28)
    within = "SELECT count(*) FROM t WHERE id IN (SELECT id FROM t TABLESAMPLE BERNOULLI (10))"
    assert ROWS * 0.05 < count(engine, within) < ROWS * 0.15
    # A word that is no sample is a name.
    assert count(engine, "SELECT count(tablesample.id) FROM t tablesample") == ROWS


def test_a_sample_is_the_source_of_a_merge_and_each_row_is_in_it_or_not(engine: Engine) -> None:
    result = engine.run(
        """MERGE INTO t USING t AS s TABLESAMPLE BERNOULLI (30) ON t.id = s.id
        WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 1"""
    )
    left, changed = count(engine, "SELECT count(*) FROM t"), count(engine, "SELECT count(*) FROM t WHERE v = 1")
    assert ROWS * 0.1 < ROWS - left < ROWS * 0.2
    assert ROWS * 0.1 < changed < ROWS * 0.2
    assert count(engine, "SELECT count(*) FROM t WHERE v = 1 AND id % 2 = 0") == 0
    assert result.trace.count == ROWS - left + changed


@pytest.mark.parametrize(
    ("percentage", "code", "message", "column"),
    [
        ("-1", "NUMERIC_VALUE_OUT_OF_RANGE", "Sample percentage must be greater than or equal to 0", 40),
        ("100.1", "NUMERIC_VALUE_OUT_OF_RANGE", "Sample percentage must be less than or equal to 100", 40),
        ("nan()", "NUMERIC_VALUE_OUT_OF_RANGE", "Sample percentage must be greater than or equal to 0", 40),
        ("NULL", "INVALID_ARGUMENTS", "Sample percentage cannot be NULL", 40),
        ("CAST(NULL AS integer)", "INVALID_ARGUMENTS", "Sample percentage cannot be NULL", 40),
        ("CAST(NULL AS varchar)", "TYPE_MISMATCH", "Sample percentage should be a numeric expression", 40),
        ("DATE '1970-01-02'", "TYPE_MISMATCH", "Sample percentage should be a numeric expression", 40),
        ("id", "EXPRESSION_NOT_CONSTANT", "Sample percentage cannot contain column references", 40),
        ("(SELECT 1)", "EXPRESSION_NOT_CONSTANT", "Constant expression cannot contain a subquery", 40),
        ("1 / 0", "DIVISION_BY_ZERO", "Division by zero", 40),
        ("", "SYNTAX_ERROR", None, 40),
    ],
)
def test_a_percentage_that_is_none_is_refused_at_its_place(
    engine: Engine, percentage: str, code: str, message: str | None, column: int
) -> None:
    with pytest.raises(RowMergeError) as error:
        engine.run(f"SELECT * FROM t TABLESAMPLE BERNOULLI ({percentage})")
    assert error.value.code == code
    assert message in {None, error.value.message}
    assert (error.value.line, error.value.column) == (1, column)


def test_the_plan_has_the_chance_as_a_filter(engine: Engine) -> None:
    explained = str(engine.run("EXPLAIN SELECT id FROM t TABLESAMPLE BERNOULLI (25)").explained)
    assert "random() < " in explained
