"""Positions of Spark's errors and of ours, in statements of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowmerge_nb import Engine
from rowmerge_nb.base.errors import RowMergeError

pytestmark = pytest.mark.spark

MERGE = "MERGE INTO t USING {} ON {} WHEN MATCHED AND {} THEN UPDATE SET v = {}"


@pytest.fixture(scope="module")
def engine(spark: Any) -> Iterator[Engine]:
    with Engine(spark=spark) as made:
        made.run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 0, 'x'), (2, 0, 'y')) r(id, v, s)")
        made.run("CREATE VIEW w AS SELECT id, 1 / v AS q, CAST(s AS integer) AS n FROM t")
        yield made


@pytest.mark.parametrize(
    ("sql", "part", "words"),
    [
        ("SELECT id, 1 / v FROM t", "1 / v", ""),
        ("SELECT id, CAST(s AS integer) FROM t", "CAST(s AS integer)", ""),
        (
            "SELECT id FROM t WHERE id > 0 AND CAST(s AS integer) = 1",
            "id > 0 AND CAST(s AS integer) = 1",
            "",
        ),
        (
            "SELECT CAST(s AS integer) + 1, count(*) FROM t GROUP BY CAST(s AS integer)",
            "CAST(s AS integer) + 1",
            "",
        ),
        ("SELECT (SELECT max(CAST(s AS integer)) FROM t)", "max(CAST(s AS integer))", ""),
        ("SELECT (SELECT max(1 / v) FROM t)", "max(1 / v)", ""),
        ("SELECT a.id FROM t a JOIN t b ON 1 / a.v = b.id", "1 / a.v = b.id", ""),
        ("SELECT q FROM w", "w", ""),
        ("SELECT n FROM w", "w", ""),
        (
            MERGE.format("(SELECT id, 1 / v AS v FROM t) s", "t.id = s.id", "true", "s.v"),
            "1 / v",
            "",
        ),
        (MERGE.format("w", "t.id = w.id", "true", "w.n"), "w", ""),
        (
            MERGE.format("t s", "t.id = CAST(s.s AS integer)", "true", "1"),
            "t.id = CAST(s.s AS integer)",
            "in the ON condition",
        ),
        (
            MERGE.format("t s", "t.id = s.id", "1 / s.v = 1", "1"),
            "1 / s.v = 1",
            "in the condition of clause 0",
        ),
        (
            MERGE.format("t s", "t.id = s.id", "true", "1 / s.v"),
            "1 / s.v",
            "in the value for column 'v' of clause 0",
        ),
        (
            "UPDATE t SET v = (SELECT max(1 / v) FROM t)",
            "(SELECT max(1 / v) FROM t)",
            "in the value for column 'v'",
        ),
        (
            "UPDATE t SET v = (SELECT max(CAST(s AS integer)) FROM t)",
            "(SELECT max(CAST(s AS integer)) FROM t)",
            "in the value for column 'v'",
        ),
        (
            "DELETE FROM t WHERE CAST(s AS integer) = 1",
            "CAST(s AS integer) = 1",
            "in the WHERE condition",
        ),
        ("INSERT INTO t SELECT id, 1 / v, s FROM t", "1 / v", ""),
    ],
)
def test_an_error_points_at_the_expression_that_failed(
    engine: Engine, sql: str, part: str, words: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql)
    error = caught.value
    assert error.code in {"DIVISION_BY_ZERO", "INVALID_CAST_ARGUMENT"}
    place = sql.index(f" {part}") + 1
    assert (error.line, error.column, error.length) == (1, place + 1, len(part))
    assert (error.hint or "").startswith(f"It happened {words}. ") == bool(words)
