"""An error names the row that Spark failed on, and is otherwise the same error."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.engine.observers import failing_row
from rowmerge_nb.plan.rules import RuleSettings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

USING = "MERGE INTO t USING (VALUES (1, 2, '5'), (2, 0, 'x'), (4, 200, NULL)) AS q (id, m, x) ON "
BY_SPARK = {"change_in_task"}


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(
        spark=spark, rule_settings=RuleSettings(small_rows=0, key_rows=0), dialect="extended"
    )
    rows = pd.DataFrame(
        {"id": [1, 2, 3, 7, 8], "n": [1, 5, 7, 7, 8], "s": ["a", "b", "c", "z", None]}
    )
    engine.register("t", rows, not_null=["id"])
    return engine


def failed(engine: Engine, statement: str, **options: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        engine.run(statement, **options)
    return caught.value


@pytest.mark.parametrize(
    ("rest", "code", "row"),
    [
        (
            "t.id = q.id WHEN MATCHED THEN UPDATE SET n = 10 / m",
            "DIVISION_BY_ZERO",
            "q.id = 2, q.m = 0",
        ),
        (
            "t.id = q.id WHEN MATCHED AND t.n = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET n = 10 / (m * (m - 2))",
            "DIVISION_BY_ZERO",
            "q.id = 2, q.m = 0",
        ),
        (
            "t.id = q.id WHEN MATCHED AND 10 / m > 3 THEN UPDATE SET n = 1",
            "DIVISION_BY_ZERO",
            "q.id = 2, q.m = 0",
        ),
        (
            "t.id = q.id WHEN MATCHED THEN UPDATE SET n = CAST(x AS integer)",
            "INVALID_CAST_ARGUMENT",
            "q.id = 2, q.x = 'x'",
        ),
        (
            "t.id = q.id WHEN NOT MATCHED THEN INSERT (id) VALUES (9223372036854775807 - 100 + m)",
            "NUMERIC_VALUE_OUT_OF_RANGE",
            "q.id = 4, q.m = 200",
        ),
        (
            "t.id = q.id WHEN NOT MATCHED THEN INSERT (id) VALUES (nullif(q.m, 200))",
            "CONSTRAINT_VIOLATION",
            "q.id = 4, q.m = 200",
        ),
        (
            "t.id = q.id WHEN MATCHED AND m = 0 THEN UPDATE SET id = NULL",
            "CONSTRAINT_VIOLATION",
            "q.id = 2",
        ),
        (
            "t.id = q.id WHEN NOT MATCHED THEN INSERT (s) VALUES (q.x)",
            "CONSTRAINT_VIOLATION",
            "q.id = 4",
        ),
        (
            "t.id = CAST(q.x AS integer) WHEN NOT MATCHED THEN INSERT (id) VALUES (q.m)",
            "INVALID_CAST_ARGUMENT",
            "q.x = 'x'",
        ),
        (
            "t.id = q.id WHEN NOT MATCHED BY SOURCE AND 10 / (n - 8) < 0 THEN DELETE",
            "DIVISION_BY_ZERO",
            "t.id = 8, t.n = 8",
        ),
    ],
)
def test_spark_names_the_row_that_tasks_name(
    engine: Engine, rest: str, code: str, row: str
) -> None:
    error = failed(engine, USING + rest, rules_off=BY_SPARK)
    assert error.code == code
    assert f"The first such row has {row}." in (error.hint or "")
    in_tasks = failed(engine, USING + rest)
    assert (in_tasks.code, in_tasks.message, in_tasks.line, in_tasks.column) == (
        error.code,
        error.message,
        error.line,
        error.column,
    )
    assert in_tasks.hint == error.hint


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        (
            "UPDATE t SET n = 10 / (n - 5) WHERE id > 1 AND s NOT IN (SELECT s FROM t WHERE id = 1)",
            "t.id = 2, t.n = 5, t.s = 'b'",
        ),
        ("DELETE FROM t WHERE 10 / (n - 7) > 1", "t.n = 7"),
    ],
)
def test_update_and_delete_name_it_too(engine: Engine, statement: str, row: str) -> None:
    assert f"The first such row has {row}." in (
        failed(engine, statement, rules_off=BY_SPARK).hint or ""
    )


def test_a_condition_of_on_over_both_sides_names_no_row(engine: Engine) -> None:
    """The pairs of rows are unknown: a gap named by docs/why.md."""
    error = failed(
        engine, f"{USING}t.id = q.id AND 10 / q.m > 1 WHEN MATCHED THEN DELETE", rules_off=BY_SPARK
    )
    assert error.code == "DIVISION_BY_ZERO"
    assert (
        error.hint
        == "It happened in the ON condition. With NULLIF(divisor, 0), the quotient is NULL."
    )


@pytest.mark.parametrize(
    "broken", ["it raises", "another error", "it takes too long", "it finds nothing"]
)
def test_the_plain_error_stays_if_the_row_is_not_found(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    statement = f"{USING}t.id = q.id WHEN MATCHED THEN UPDATE SET n = 10 / m"
    named = failed(engine, statement, rules_off=BY_SPARK)
    if broken == "it takes too long":
        monkeypatch.setattr(failing_row, "PATIENCE_SECONDS", 0.0)
    elif broken == "it raises":
        monkeypatch.setattr(failing_row, "lower", None)
    else:
        other = RowMergeError("other", code="NOT_FOUND")
        other.__dict__["row"] = "The first such row has nothing."
        monkeypatch.setattr(
            failing_row, "_failure", lambda *_: other if broken == "another error" else None
        )
    plain = failed(engine, statement, rules_off=BY_SPARK)
    assert plain.hint == re.sub(r" The first such row has .*?\.(?= )", "", named.hint or "")
    assert (plain.code, plain.message, plain.line, plain.column) == (
        named.code,
        named.message,
        named.line,
        named.column,
    )
    assert engine.table("t").num_rows == 5
