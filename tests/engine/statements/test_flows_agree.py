"""UPDATE and DELETE with odd values, in both flows alike."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError

pytestmark = pytest.mark.spark

FLOWS = ("merge", "updatable")
LONG = "12345678901234567890123456789012345678"


@pytest.fixture(params=FLOWS)
def engine(request: pytest.FixtureRequest, spark: Any) -> Engine:
    return Engine(spark=spark, flow=request.param)


def test_moments_of_years_that_python_does_not_know_are_stored_shown_and_compared(
    engine: Engine,
) -> None:
    last = dt.datetime.fromisoformat("9999-12-31 23:59:59.500000")
    engine.register(
        "t", pa.table({"id": [1, 2], "ts": [last, None], "r": [{"d": dt.date(9999, 12, 31)}, None]})
    )
    result = engine.run("UPDATE t SET ts = ts + INTERVAL '1' DAY")
    assert result.count == 2
    assert engine.table("t").column("ts").cast(pa.string()).to_pylist() == [
        "10000-01-01 23:59:59.500000",
        None,
    ]
    assert "10000-01-01 23:59:59.500000" in str(result)
    assert "10000-01-01" in result._repr_mimebundle_()["text/html"]
    assert str(result.diff()["new.ts"][0]) == "10000-01-01 23:59:59.500000"
    assert "10000-01-01 23:59:59.5" in str(engine.run("SELECT * FROM t"))
    assert engine.compare(
        "UPDATE t SET id = id + 1, ts = ts + INTERVAL '1' YEAR", by="flows", flow=None
    ).same
    assert engine.run("DELETE FROM t WHERE year(ts) = 10000").count == 1


def test_a_merge_may_join_by_days_that_python_does_not_know(spark: Any) -> None:
    engine = Engine(spark=spark)
    far = pa.array([2932897, 0], pa.int32()).cast(pa.date32())
    engine.register("t", pa.table({"d": far, "v": [1, 2]}))
    engine.register("s", pa.table({"d": far[:1], "v": [5]}))
    result = engine.run("MERGE INTO t USING s ON t.d = s.d WHEN MATCHED THEN UPDATE SET v = s.v")
    assert (result.count, sorted(engine.table("t").column("v").to_pylist())) == (1, [2, 5])
    assert "10000-01-01" in str(result)


@pytest.mark.parametrize("digits", [LONG, "9" * 38, "0" * 38])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_decimal_of_38_digits_keeps_them_all_after_a_change_of_sign(
    engine: Engine, digits: str, sign: str
) -> None:
    # No arithmetic on this side: Python's decimals are rounded too.
    whole, scaled = Decimal(sign + digits), Decimal(f"{sign}{digits[:-3]}.{digits[-3:]}")
    numbers = pa.array([whole, None], pa.decimal128(38, 0))
    engine.register(
        "t",
        pa.table({"n": numbers, "s": pa.array([scaled, None], pa.decimal128(38, 3)), "a": numbers}),
    )
    engine.run("UPDATE t SET n = -n, s = -s, a = abs(a)")
    turned = {"n": whole.copy_negate(), "s": scaled.copy_negate(), "a": whole.copy_abs()}
    assert engine.table("t").to_pylist() == [turned, dict.fromkeys("nsa")]


def test_a_number_with_too_many_digits_for_a_column_is_named(engine: Engine) -> None:
    engine.register(
        "t",
        pa.table(
            {
                "n": pa.array([Decimal(LONG)], pa.decimal128(38, 0)),
                "s": pa.array([None], pa.decimal128(38, 3)),
            }
        ),
    )
    with pytest.raises(
        RowMergeError, match=rf"Cannot cast DECIMAL\(38, 0\) '{LONG}' to DECIMAL\(38, 3\)"
    ) as caught:
        engine.run("UPDATE t SET s = n")
    assert (caught.value.code, caught.value.line, caught.value.column) == (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        1,
        18,
    )


@pytest.mark.parametrize(
    ("assignment", "column", "where"),
    [
        ("b = b, a = a + 2147483647", 25, "in the value for column 'a'"),
        ("a = a + 2147483647, b = b + 2147483647", 18, "in the value for column 'a'"),
        ("b = b + 2147483647, a = a", 18, "in the value for column 'b'"),
        (
            "b = 1, a = CAST('x' || CAST(a AS varchar) AS integer)",
            25,
            "in the value for column 'a'",
        ),
        ("a = 1 WHERE CAST(2147483648 AS integer) = b", 26, "in the WHERE condition"),
    ],
)
def test_a_failure_of_a_row_is_shown_at_the_written_value(
    engine: Engine, assignment: str, column: int, where: str
) -> None:
    engine.register("t", pa.table({"a": pa.array([5], pa.int32()), "b": pa.array([6], pa.int32())}))
    with pytest.raises(RowMergeError) as caught:
        engine.run(f"UPDATE t SET {assignment}")
    assert (caught.value.line, caught.value.column) == (1, column)
    assert (caught.value.hint or "").startswith(f"It happened {where}. ")


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("DELETE FROM t WHERE a IN (SELECT 1 / (a - 5) FROM t)", 21),
        ("UPDATE t SET b = 1, a = (SELECT max(1 / (a - 5)) FROM t)", 25),
        ("DELETE FROM t WHERE a > 0 AND EXISTS (SELECT 1 FROM t WHERE 1 / (a - 5) = 0)", 21),
    ],
)
def test_a_failure_in_a_subquery_has_a_position(
    engine: Engine, statement: str, column: int
) -> None:
    engine.register("t", pa.table({"a": pa.array([5], pa.int32()), "b": pa.array([6], pa.int32())}))
    with pytest.raises(RowMergeError, match="Division by zero") as caught:
        engine.run(statement)
    assert caught.value.line == 1
    assert column <= (caught.value.column or 0) <= statement.index("/")


def test_the_failed_value_of_a_merge_is_shown_at_its_position(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.register("t", pa.table({"a": pa.array([5], pa.int32()), "b": pa.array([6], pa.int32())}))
    with pytest.raises(RowMergeError, match="integer addition overflow: 6") as caught:
        engine.run(
            "MERGE INTO t USING (VALUES 5) s(k) ON a = k WHEN MATCHED THEN\n UPDATE SET a = 1, b = b + 2147483647"
        )
    assert (caught.value.line, caught.value.column) == (2, 24)
    wider = "Use a wider type, or TRY(...), which returns NULL for such values."
    assert (
        caught.value.hint
        == f"It happened in the value for column 'b' of clause 0. The first such row has s.k = 5, t.b = 6. {wider}"
    )


@pytest.mark.parametrize(
    ("value", "instead", "becomes"),
    [
        ("1 / (a - 5)", "1 / NULLIF(a - 5, 0)", None),
        ("CAST(name AS integer)", "TRY_CAST(name AS integer)", None),
        ("a + 2147483647", "TRY(a + 2147483647)", None),
        ("(SELECT x FROM (VALUES 1, 2) s(x))", "(SELECT max(x) FROM (VALUES 1, 2) s(x))", 2),
    ],
)
def test_the_proposal_in_the_hint_of_an_error_works(
    engine: Engine, value: str, instead: str, becomes: int | None
) -> None:
    engine.register("t", pa.table({"a": pa.array([5], pa.int32()), "name": ["x"]}))
    with pytest.raises(RowMergeError) as caught:
        engine.run(f"UPDATE t SET a = {value}")
    proposed = {"1": "NULLIF", "C": "TRY_CAST", "a": "TRY(", "(": "aggregate"}[value[0]]
    assert proposed in (caught.value.hint or "")
    engine.run(f"UPDATE t SET a = {instead}")
    assert engine.table("t").column("a").to_pylist() == [becomes]
