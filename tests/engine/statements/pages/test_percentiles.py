"""``approx_percentile`` of many values: DuckDB, Spark and a sorted list agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError

pytestmark = pytest.mark.spark

BY_SPARK = frozenset({"query_on_pages"})
ROWS = 6000
SHARES = [0.0, 0.0001, 0.25, 0.5, 0.9, 0.9999, 1.0]


@pytest.fixture(scope="module")
def engine(spark: Any) -> Engine:
    random = np.random.default_rng(11)
    gaps = random.random(ROWS) < 0.1
    engine = Engine(spark=spark)
    engine.register(
        "t",
        pa.table(
            {
                "g": pa.array(random.integers(0, 3, ROWS), pa.int32()),
                "k": pa.array(random.integers(-(2**40), 2**40, ROWS), pa.int64(), mask=gaps),
                "i": pa.array(random.integers(0, 20, ROWS), pa.int32()),
                "x": pa.array(random.normal(0, 100, ROWS), pa.float64(), mask=gaps),
                "r": pa.array(random.normal(0, 100, ROWS), pa.float32()),
                "odd": pa.array(np.where(np.arange(ROWS) < 3, [-0.0], [1.0]), pa.float64()),
                "far": pa.array(np.where(np.arange(ROWS) < 1, [np.inf], [1.0]), pa.float64()),
            }
        ),
    )
    return engine


def both_ways(engine: Engine, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = engine.run(sql).table.to_pylist()
    assert repr(engine.run(sql, rules_off=BY_SPARK).table.to_pylist()) == repr(rows)
    return rows


@pytest.mark.parametrize("column", ["k", "i", "x", "r"])
def test_the_percentile_of_many_values_is_exact(engine: Engine, column: str) -> None:
    calls = ", ".join(
        f"approx_percentile({column}, {share:f}) AS p{index}" for index, share in enumerate(SHARES)
    )
    sql = f"SELECT {calls} FROM t"
    assert "Here DuckDB executes the query" in str(engine.run(f"EXPLAIN {sql}"))
    [row] = both_ways(engine, sql)
    table = engine.run(f"SELECT {column} AS v FROM t").table
    values = sorted(value for value in table.column("v").to_pylist() if value is not None)
    last = len(values) - 1
    assert list(row.values()) == [values[min(int(share * len(values)), last)] for share in SHARES]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, approx_percentile(x, 0.3), approx_percentile(k, 0.3) FROM t GROUP BY g ORDER BY g",
        "SELECT approx_percentile(x, 0.3) FILTER (WHERE i < 15) FROM t",
        "SELECT approx_percentile(x, 0.3) FROM t WHERE i > 99",
        "SELECT approx_percentile(x, CAST(NULL AS double)) FROM t",
        "SELECT approx_percentile(odd, 0) FROM t",
        "SELECT i, approx_percentile(x, 0.3) FROM t GROUP BY i ORDER BY i",
        "SELECT approx_percentile(x, ARRAY[0.2, 0.8, 1]), approx_percentile(k, 2e0, 0.4) FROM t",
        "SELECT approx_percentile(x, ARRAY[0.2, 0.8]) FROM t WHERE i < 2",
        "SELECT approx_percentile(x, 1, 0.2, 0.01) FROM t",
    ],
)
def test_groups_filters_and_few_values_are_the_same_on_spark(engine: Engine, sql: str) -> None:
    assert both_ways(engine, sql)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("approx_percentile(x, 1.5)", "Percentile must be between 0 and 1"),
        ("approx_percentile(far, 0.5)", "value must be finite"),
    ],
)
def test_an_error_is_that_of_spark(engine: Engine, call: str, words: str) -> None:
    for off in (frozenset(), BY_SPARK):
        with pytest.raises(RowMergeError, match=words) as caught:
            engine.run(f"SELECT {call} FROM t", rules_off=off)
        assert caught.value.code == "INVALID_FUNCTION_ARGUMENT"
