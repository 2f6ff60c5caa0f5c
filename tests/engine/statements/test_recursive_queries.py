"""WITH RECURSIVE: ten steps like on Trino, in queries and as the source of a MERGE; refused shapes and their positions."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import Engine, RowMergeError

pytestmark = pytest.mark.spark

STAFF = "(VALUES (1, NULL, VARCHAR 'a'), (2, 1, 'b'), (3, 1, 'c'), (4, 2, 'd'), (5, 4, 'e')) AS v (id, boss, name)"
CHAIN = """WITH RECURSIVE chain (id, depth, path) AS (
    SELECT id, 0, CAST(name AS varchar) FROM staff WHERE boss IS NULL
    UNION ALL SELECT s.id, c.depth + 1, c.path || s.name FROM staff s JOIN chain c ON s.boss = c.id)"""
COUNTED = (
    "WITH RECURSIVE t (n) AS (VALUES 1 UNION ALL SELECT n + 1 FROM t WHERE n < {}) SELECT {} FROM t"
)


@pytest.fixture
def engine(spark: Any) -> Engine:
    made = Engine(spark=spark)
    made.run(f"CREATE TABLE staff AS SELECT * FROM {STAFF}")
    return made


def rows(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
    found = engine.run(sql).table
    assert found is not None
    return [tuple(row.values()) for row in found.to_pylist()]


def test_steps_run_until_no_row_is_left(engine: Engine) -> None:
    assert rows(engine, COUNTED.format(4, "sum(n)")) == [(10,)]
    assert rows(engine, COUNTED.format(0, "n")) == [(1,)]
    # Ten steps after the first row: the deepest recursion within Trino's default limit.
    assert rows(engine, COUNTED.format(11, "count(*), max(n)")) == [(11, 11)]
    with pytest.raises(RowMergeError) as error:
        engine.run(COUNTED.format(12, "n"))
    assert (error.value.code, error.value.message) == (
        "NOT_SUPPORTED",
        "Recursion depth limit exceeded (10). Use 'max_recursion_depth' session property to modify the limit.",
    )
    # A step whose values name the former ones several times.
    doubled = "WITH RECURSIVE t (s) AS (SELECT CAST('a' AS varchar) UNION ALL SELECT s || s FROM t WHERE length(s) < 200) SELECT max(length(s)) FROM t"
    assert rows(engine, doubled) == [(256,)]


def test_a_hierarchy_is_followed_named_twice_and_merged(engine: Engine) -> None:
    assert rows(engine, f"{CHAIN} SELECT * FROM chain ORDER BY id") == [
        (1, 0, "a"),
        (2, 1, "ab"),
        (3, 1, "ac"),
        (4, 2, "abd"),
        (5, 3, "abde"),
    ]
    engine.run("SET SESSION max_recursion_depth = 5")
    twice = f"{CHAIN} SELECT a.id AS a, b.id AS b FROM chain a JOIN chain b ON a.depth = b.depth AND a.id < b.id"
    assert rows(engine, twice) == [(2, 3)]
    result = engine.run(
        f"""MERGE INTO staff USING ({CHAIN} SELECT id, depth FROM chain) AS s ON staff.id = s.id
        WHEN MATCHED AND s.depth > 2 THEN DELETE WHEN MATCHED THEN UPDATE SET name = name || CAST(s.depth AS varchar)"""
    )
    assert result.trace.count == 5
    assert rows(engine, "SELECT id, name FROM staff ORDER BY id") == [
        (1, "a0"),
        (2, "b1"),
        (3, "c1"),
        (4, "d2"),
    ]


def test_union_without_all_removes_duplicates_at_the_end(engine: Engine) -> None:
    sql = "WITH RECURSIVE t (n, d) AS (VALUES (1, 0), (1, 0) UNION SELECT n, d + 1 FROM t WHERE d < 2) SELECT * FROM t ORDER BY d"
    assert rows(engine, sql) == [(1, 0), (1, 1), (1, 2)]


def test_a_query_that_does_not_name_itself_is_not_recursive(engine: Engine) -> None:
    sql = "WITH RECURSIVE a (n) AS (VALUES 1, 2), b (m) AS (SELECT n FROM a UNION ALL SELECT n + 1 FROM a) SELECT count(*) FROM b"
    assert rows(engine, sql) == [(4,)]
    # The inner one of two queries with one name is meant.
    assert rows(
        engine, "WITH RECURSIVE t (n) AS (WITH t AS (SELECT 7 x) SELECT x FROM t) SELECT * FROM t"
    ) == [(7,)]


@pytest.mark.parametrize(
    ("query", "code", "message", "at"),
    [
        (
            "t AS (SELECT 1)",
            "MISSING_COLUMN_ALIASES",
            "missing column aliases in recursive WITH query",
            "t AS",
        ),
        (
            "t (n) AS (SELECT n FROM t)",
            "INVALID_RECURSIVE_REFERENCE",
            "recursive reference not allowed in this context",
            "t)",
        ),
        (
            "t (n) AS (SELECT n FROM t UNION ALL SELECT 1)",
            "INVALID_RECURSIVE_REFERENCE",
            "WITH table name is referenced in the base relation of recursion",
            "t UNION",
        ),
        (
            "t (n) AS (SELECT 1 UNION ALL SELECT a.n FROM t a, t b)",
            "INVALID_RECURSIVE_REFERENCE",
            "multiple recursive references in the step relation of recursion",
            "t b",
        ),
        (
            "t (n) AS (SELECT 1 UNION ALL SELECT 2 WHERE EXISTS (SELECT 1 FROM t))",
            "INVALID_RECURSIVE_REFERENCE",
            "recursive reference outside of FROM clause of the step relation of recursion",
            "t))",
        ),
        (
            "t (n) AS (SELECT 1 UNION ALL SELECT t.n FROM staff LEFT JOIN t ON true)",
            "INVALID_RECURSIVE_REFERENCE",
            "recursive reference in right source of LEFT join",
            "t ON",
        ),
        (
            "t (n) AS (SELECT 1 UNION ALL SELECT n FROM (SELECT 5 n EXCEPT SELECT n FROM t))",
            "INVALID_RECURSIVE_REFERENCE",
            "recursive reference in right relation of EXCEPT DISTINCT",
            "t))",
        ),
        (
            "t (n) AS (SELECT 1 UNION ALL SELECT n FROM t ORDER BY 1)",
            "NOT_SUPPORTED",
            "immediate ORDER BY clause in recursive query",
            "1)",
        ),
        (
            "t (n) AS (SELECT 1 UNION ALL SELECT n FROM t LIMIT 1)",
            "INVALID_LIMIT_CLAUSE",
            "immediate FETCH FIRST / LIMIT clause in recursive query",
            None,
        ),
        (
            "t (n) AS (SELECT 1 UNION ALL (SELECT n FROM t LIMIT 1))",
            "INVALID_LIMIT_CLAUSE",
            "FETCH FIRST / LIMIT clause in the step relation of recursion",
            None,
        ),
        (
            "t (n) AS (SELECT * FROM (WITH RECURSIVE u (m) AS (SELECT 1) SELECT * FROM u))",
            "NESTED_RECURSIVE",
            "nested recursive WITH query",
            None,
        ),
        (
            "t (n) AS (SELECT 1 UNION ALL SELECT 'a' FROM t)",
            "TYPE_MISMATCH",
            "recursion step relation output type (varchar(1)) is not coercible to recursion base relation output type (integer) at column 1",
            "SELECT 'a'",
        ),
        (
            "t (n) AS (SELECT 1 UNION ALL SELECT n, n FROM t)",
            "TYPE_MISMATCH",
            "base and step relations of recursion have different number of fields: 1, 2",
            "SELECT n, n",
        ),
        (
            "t (n, m) AS (SELECT 1 UNION ALL SELECT n FROM t)",
            "MISMATCHED_COLUMN_ALIASES",
            "Column alias list has 2 entries but relation has 1 columns",
            "n, m",
        ),
    ],
)
def test_shapes_that_are_not_recursions_are_refused_at_their_position(
    engine: Engine, query: str, code: str, message: str, at: str | None
) -> None:
    sql = f"WITH RECURSIVE {query} SELECT * FROM t"
    with pytest.raises(RowMergeError) as error:
        engine.run(sql)
    assert (error.value.code, error.value.message) == (code, message)
    if at is not None:
        assert (error.value.line, error.value.column) == (1, sql.index(at) + 1)


def test_a_recursion_is_self_contained(engine: Engine) -> None:
    within = "SELECT (WITH RECURSIVE t (n) AS (SELECT s.id UNION ALL SELECT n + 1 FROM t WHERE n < 4) SELECT max(n) FROM t) FROM staff s"
    with pytest.raises(RowMergeError) as error:
        engine.run(within)
    assert (error.value.code, error.value.message) == (
        "NOT_SUPPORTED",
        "A recursive query cannot read columns of a query around it in this engine",
    )
