"""Every type passes unchanged through scans, the merge row, both processors, the exchange and the sink."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.engine.spark.spark_types import from_spark_type

pytestmark = pytest.mark.spark

INNER = pa.struct([("a", pa.int32()), ("b", pa.string())])
UTC = dt.UTC
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "tinyint": (pa.int8(), [-128, 127]),
    "smallint": (pa.int16(), [-32768, 1]),
    "integer": (pa.int32(), [-(2**31), 1]),
    "bigint": (pa.int64(), [-(2**63), 2**53 + 1]),
    "real": (pa.float32(), [0.5, float("inf")]),
    "double": (pa.float64(), [-0.0, 1e300]),
    "decimal": (
        pa.decimal128(38, 4),
        [Decimal("99999999999999999999999999999999.9999"), Decimal("-0.0001")],
    ),
    "varchar": (pa.string(), ["", "žluťoučký 🐴 'q' \\ \n"]),
    "varbinary": (pa.binary(), [b"\x00\xff", b""]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "time": (pa.time64("us"), [dt.time(23, 59, 59, 999999), dt.time(0)]),
    "timestamp": (
        pa.timestamp("us"),
        [dt.datetime(1905, 6, 7, 8, 9, 10, 123456), dt.datetime(1970, 1, 1)],  # noqa: DTZ001
    ),
    "timestamp_tz": (
        pa.timestamp("us", tz="UTC"),
        [dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC), dt.datetime(1969, 12, 31, tzinfo=UTC)],
    ),
    "array": (pa.list_(pa.int32()), [[1, None, 3], []]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("k", 5), ("n", None)], []]),
    "row": (INNER, [{"a": 4, "b": None}, {"a": None, "b": "x"}]),
    "array_of_rows": (pa.list_(INNER), [[{"a": 9, "b": "q"}, None], []]),
    "map_of_rows": (pa.map_(pa.string(), pa.list_(INNER)), [[("k", [{"a": 1, "b": "z"}])], []]),
}


def table(first: int) -> pa.Table:
    columns = {"id": pa.array([first, first + 1, first + 2], pa.int64())}
    return pa.table(
        {
            **columns,
            **{name: pa.array([*values, None], kind) for name, (kind, values) in COLUMNS.items()},
        }
    )


@pytest.mark.parametrize("paradigm", ["DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS"])
@pytest.mark.parametrize("partitioned", [True, False])
def test_all_types_pass_through_unchanged(spark: Any, paradigm: str, partitioned: bool) -> None:
    engine = Engine(spark=spark)
    engine.register(
        "t", table(0), paradigm=paradigm, partitioned_by=["bigint", "date"] if partitioned else []
    )
    names = ", ".join(f's."{name}"' for name in ["id", *COLUMNS])
    merge = f"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.id + 100 WHEN NOT MATCHED THEN INSERT VALUES ({names})"
    result = engine.run(merge, namespace={"s": table(1)})
    assert result.counts == {"INSERT": 1, "UPDATE": 2, "DELETE": 0, "none": 0}
    rows = {row.pop("id"): row for row in engine.table("t").to_pylist()}
    before = [{k: v for k, v in row.items() if k != "id"} for row in table(0).to_pylist()]
    assert rows == {0: before[0], 101: before[1], 102: before[2], 3: before[2]}
    assert (
        engine.run("SELECT * FROM t").table.sort_by("id").schema.types
        == engine.table("t").schema.types
    )


def test_integers_stay_exact_in_pandas_with_nulls(spark: Any) -> None:
    engine = Engine(spark=spark)
    frame = engine.run("SELECT * FROM (VALUES BIGINT '9007199254740993', NULL) t(a)").to_pandas()
    assert frame["a"].tolist()[0] == 9007199254740993
    assert "NULL" in str(engine.run("SELECT NULL AS nothing"))


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({}),
        pa.table({"a": pa.array([2**62], pa.timestamp("s"))}),
        pa.table({"a": pa.array([[None]], pa.list_(pa.null()))}),
        pa.table(
            {"a": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "X"])}
        ),
        pa.table({"a": pa.array([1]), "A": pa.array([2])}),
        pa.table({"a": pa.array([Decimal(1)], pa.decimal256(50, 2))}),
        5,
        None,
    ],
    ids=str,
)
def test_frames_without_a_table_form_are_refused(frame: Any) -> None:
    with pytest.raises(RowMergeError):
        Engine().register("t", frame)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.b.c.d", {}),
        ("", {}),
        ("t", {"not_null": ["v"]}),
        ("t", {"not_null": ["nope"]}),
        ("t", {"primary_key": "nope"}),
        ("t", {"partitioned_by": ["nope"]}),
        ("t", {"bucketed_by": ["l"], "bucket_count": 2}),
    ],
)
def test_wrong_arguments_of_register_are_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(RowMergeError):
        Engine().register(
            name, pa.table({"id": [1], "v": pa.array([None], pa.int64()), "l": [[1]]}), **options
        )


def test_one_name_may_replace_a_list_of_names() -> None:
    engine = Engine()
    engine.register("t", pa.table({"id": [1]}), primary_key="id", partitioned_by=None)
    assert engine.tables()[0][2] == ("id bigint not null",)


def test_types_of_spark_have_the_types_of_sql() -> None:
    from pyspark.sql import types as t

    found = {
        t.TimestampType(): "timestamp(6) with time zone",
        t.TimestampNTZType(): "timestamp(6)",
        t.CharType(3): "varchar",
        t.VarcharType(3): "varchar",
        t.NullType(): "unknown",
        t.ArrayType(t.NullType(), containsNull=False): "array(unknown)",
        t.StructType(
            [t.StructField("a", t.TimestampType(), nullable=False)]
        ): 'row("a" timestamp(6) with time zone)',
    }
    assert {str(kind): str(from_spark_type(kind)) for kind in found} == {
        str(kind): name for kind, name in found.items()
    }
    for kind in (
        t.VariantType(),
        t.DayTimeIntervalType(),
        t.YearMonthIntervalType(),
        t.ArrayType(t.VariantType()),
    ):
        with pytest.raises(TypeError):
            from_spark_type(kind)
