"""The hash of rows within a task is that of Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowmerge_nb.engine.spark.spark_types import spark_schema
from rowmerge_nb.engine.tasks.xxhash import xxhash64

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = [
    "",
    "a",
    "abc",
    "abcd",
    "abcdefg",
    "abcdefgh",
    "é" * 5,
    "x" * 31,
    "y" * 32,
    "z" * 33,
    "w" * 71,
    "v" * 100,
    None,
]
DECIMALS = [
    "0",
    "1",
    "-1",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "32768",
    "99999999999999999999",
    "-99999999999999999999",
    None,
]
MOMENT = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001
COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False, None]),
    (pa.int8(), [0, -128, 127, None]),
    (pa.int16(), [0, -32768, 5]),
    (pa.int32(), [0, -1, 2**31 - 1, -(2**31), None]),
    (pa.int64(), [0, -1, 2**63 - 1, -(2**63), None]),
    (pa.float32(), [0.0, -0.0, 1.5, float("nan"), float("-inf"), None]),
    (pa.float64(), [0.0, -0.0, 1.5, float("nan"), 1e300, None]),
    (pa.decimal128(10, 2), [Decimal("1.25"), Decimal("-99999999.99"), None]),
    (pa.decimal128(38, 3), [None if text is None else Decimal(text) for text in DECIMALS]),
    (pa.date32(), [dt.date(1970, 1, 1), dt.date(1582, 1, 1), None]),
    (pa.timestamp("us"), [MOMENT, None]),
    (pa.time64("ns"), [dt.time(0), dt.time(23, 59, 59, 999_999), None]),
    (pa.string(), TEXTS),
    (pa.binary(), [None if text is None else text.encode() for text in TEXTS]),
    (
        pa.struct([("f0", pa.int64()), ("f1", pa.string())]),
        [{"f0": 1, "f1": "x"}, {"f0": None, "f1": "x"}, None],
    ),
]


@pytest.mark.parametrize(("kind", "values"), COLUMNS, ids=[str(kind) for kind, _ in COLUMNS])
def test_a_value_of_any_type_has_sparks_hash(
    spark: SparkSession, kind: pa.DataType, values: list[Any]
) -> None:
    # Beside another column, since the hash of one is the seed of the next, and as a slice, whose buffers begin elsewhere.
    column, number = (
        pa.array([values[0], *values], kind).slice(1),
        pa.array(range(len(values)), pa.int32()),
    )
    table = pa.table({"a": column, "n": number})
    rows = spark.createDataFrame(
        table, spark_schema([(field.name, field.type) for field in table.schema])
    )
    expected = (
        rows.selectExpr("n", "xxhash64(a) AS alone", "xxhash64(n, a, n) AS among")
        .orderBy("n")
        .toArrow()
    )
    assert xxhash64([column], len(values)).tolist() == expected["alone"].to_pylist()
    assert xxhash64([number, column, number], len(values)).tolist() == expected["among"].to_pylist()


def test_no_rows_and_no_columns_have_no_hash_of_their_own() -> None:
    assert xxhash64([pa.array([], pa.string())], 0).tolist() == []
    assert xxhash64([], 2).tolist() == [42, 42]


def test_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match=r"There is no hash of list<item: int64>"):
        xxhash64([pa.array([[1]])], 1)
