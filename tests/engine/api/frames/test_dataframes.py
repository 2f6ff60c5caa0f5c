"""Values of pandas, Polars, Arrow and Python are read and returned exactly, or refused by column, row and value."""

from __future__ import annotations

import datetime as dt
import re
import sys
import uuid
from decimal import Decimal
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.engine.api.frames.dataframes import read_frame, whole_frame
from rowmerge_nb.engine.spark.frames import frame_name

UTC, EAST = dt.UTC, dt.timezone(dt.timedelta(hours=2))
DAY, NOON = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 12, 30)  # noqa: DTZ001 - a timestamp without a zone
NANOS = "2024-01-01 00:00:00.123456789"
ID = uuid.UUID(int=5)
WIDE = 10**37


def id_of(value: object) -> str:
    """Return a name for a value that is the same in every process, without addresses in memory."""
    return re.sub(r"0x[0-9a-f]+", "0x", ascii(value))[:40]


OBJECTS: list[tuple[list[Any], str, list[Any]]] = [
    ([None, float("nan"), pd.NA, pd.NaT], "unknown", [None] * 4),
    ([], "unknown", []),
    ([[], None, []], "array(unknown)", [[], None, []]),
    ([[None], [[]]], "array(array(unknown))", [[None], [[]]]),
    ([{"a": None, "b": 1}], 'row("a" unknown, "b" bigint)', [{"a": None, "b": 1}]),
    (
        [{"a": 1}, {"b": "x"}, None],
        'row("a" bigint, "b" varchar)',
        [{"a": 1, "b": None}, {"a": None, "b": "x"}, None],
    ),
    ([{"": 1}, {"": 2}], "row(bigint)", [{"field0": 1}, {"field0": 2}]),
    ([DAY, NOON], "timestamp(6)", [dt.datetime.combine(DAY, dt.time()), NOON]),
    ([NOON, DAY, None], "timestamp(6)", [NOON, dt.datetime.combine(DAY, dt.time()), None]),
    ([DAY, None, pd.NaT], "date", [DAY, None, None]),
    (
        [NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=EAST)],
        "timestamp(6) with time zone",
        [NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC, hour=10)],
    ),
    ([pd.Timestamp(NOON), NOON], "timestamp(6)", [NOON, NOON]),
    ([dt.time(1, 2, 3, 4)], "time(6)", [dt.time(1, 2, 3, 4)]),
    ([1, 2.5], "double", [1.0, 2.5]),
    ([2**53 + 1, float("nan")], "bigint", [2**53 + 1, None]),
    ([-(2**63), 2**63 - 1], "bigint", [-(2**63), 2**63 - 1]),
    ([np.int8(1), np.int64(2)], "bigint", [1, 2]),
    ([np.uint64(2**64 - 1)], "decimal(20,0)", [Decimal(2**64 - 1)]),
    ([np.float32(0.5), 0.1], "double", [0.5, 0.1]),
    ([True, np.bool_(False), None], "boolean", [True, False, None]),
    (
        [Decimal("1.5"), Decimal("2.25"), 3],
        "decimal(3,2)",
        [Decimal("1.50"), Decimal("2.25"), Decimal("3.00")],
    ),
    ([Decimal("1E+5"), Decimal("NaN")], "decimal(6,0)", [Decimal(100000), None]),
    ([Decimal(WIDE)], "decimal(38,0)", [Decimal(WIDE)]),
    (["a", np.str_("b"), float("nan")], "varchar", ["a", "b", None]),
    ([b"a", bytearray(b"b"), memoryview(b"c")], "varbinary", [b"a", b"b", b"c"]),
    ([ID, None], "uuid", [str(ID), None]),
    ([[1], [2.5], (3,)], "array(double)", [[1.0], [2.5], [3.0]]),
    ([np.array([1, 2]), None], "array(bigint)", [[1, 2], None]),
]


@pytest.mark.parametrize(("given", "sql_type", "expected"), OBJECTS, ids=id_of)
def test_python_objects_are_returned_unchanged(
    given: list[Any], sql_type: str, expected: list[Any]
) -> None:
    frame = pd.DataFrame({"v": pd.Series(given, dtype=object)})
    read = whole_frame("f", frame)
    assert read.table is not None
    assert (str(read.columns[0].type), read.table["v"].to_pylist()) == (sql_type, expected)
    assert read.table.schema.field("v").type == read.columns[0].type.arrow


REFUSED_OBJECTS: list[tuple[list[Any], int, str, str]] = [
    ([NOON, NOON.replace(tzinfo=UTC)], 1, "datetime.datetime(2024", "some do not"),
    ([NOON.replace(tzinfo=UTC), NOON], 1, "datetime.datetime(2024", "some do not"),
    ([[NOON, NOON.replace(tzinfo=UTC)]], 0, "datetime.datetime(2024", "some do not"),
    ([NOON, pd.Timestamp(NANOS)], 1, f"Timestamp('{NANOS}')", "nanoseconds"),
    ([{"a": NOON}, {"a": pd.Timestamp(NANOS)}], 1, NANOS, "nanoseconds"),
    ([np.datetime64("2024-01-01T00:00:00.123456789")], 0, NANOS, "would lose data"),
    ([[DAY], [DAY, NOON]], 1, "datetime.datetime(2024", "date, timestamp"),
    ([{"a": DAY}, {"a": NOON}], 1, "datetime.datetime(2024", "date, timestamp"),
    ([dt.time(1, tzinfo=UTC)], 0, "datetime.time(1", "time zone"),
    ([DAY, 5], 1, "5", "date, number"),
    ([NOON, 1.5], 1, "1.5", "number, timestamp"),
    ([dt.time(1), 5], 1, "5", "number, time"),
    ([True, 1], 1, "1", "boolean, number"),
    ([1, True], 1, "True", "boolean, number"),
    ([1.5, True], 1, "True", "boolean, number"),
    (["a", "b", 1], 2, "1", "number, text"),
    (["a", b"b"], 1, "b'b'", "bytes, text"),
    ([ID, "a"], 1, "'a'", "text, uuid"),
    ([ID, b"x" * 16], 1, "b'xxxx", "bytes, uuid"),
    ([1, None, 2**63], 2, "9223372036854775808", "beyond the 64 bits of bigint"),
    ([-1, -(2**70)], 1, "-1180591620717411303424", "beyond the 64 bits of bigint"),
    ([[1], [2**64]], 1, "[18446744073709551616]", "beyond the 64 bits of bigint"),
    ([0.5, 2**53 + 1], 1, "9007199254740993", "outside of the range"),
    ([Decimal(1), Decimal(10) ** 45], 1, "Decimal('1.0", "at most 38 digits"),
    ([Decimal("1e30"), Decimal("1e-30")], 1, "Decimal('1E-30')", "at most 38 digits"),
    ([Decimal(1), 0.5], 1, "0.5", "got float"),
    ([Decimal(1), Decimal("Infinity")], 1, "Infinity", "integer"),
    (["a", "\ud800"], 1, r"'\ud800'", "surrogate"),
    (["a", None, "x" * 100 + "\udfff"], 2, "'xxx", "surrogate"),
    ([1j], 0, "1j", "Python value type"),
    ([object], 0, "<class 'object'>", "Python value type"),
    ([pd.Period("2024-01")], 0, "Period('2024-01', 'M')", "Python value type"),
    ([pd.Interval(0, 1)], 0, "Interval(0, 1", "Python value type"),
    ([{"a": 1}, {"a": "x"}], 1, "{'a': 'x'}", "convert to int64"),
    ([None, [ID]], 1, "[UUID(", "UUIDs within arrays"),
    ([{1: 2}], 0, "{1: 2}", "dict key"),
    ([[1], {"a": 1}], 1, "{'a': 1}", "array, row"),
    ([dt.timedelta(1)], 0, "datetime.timedelta(days=1)", "duration[us]"),
]


@pytest.mark.parametrize(("given", "row", "value", "reason"), REFUSED_OBJECTS, ids=id_of)
def test_python_objects_that_would_change_are_refused_by_row_and_value(
    given: list[Any], row: int, value: str, reason: str
) -> None:
    read = read_frame(
        "f", pd.DataFrame({"id": range(len(given)), "v": pd.Series(given, dtype=object)})
    )
    error = read.refused_columns["v"]
    assert error.code == "NOT_SUPPORTED"
    assert error.message.startswith(f"Row {row} of column 'v' of DataFrame 'f' has ")
    assert value in error.message
    assert reason in error.message


def storage(kind: pa.DataType, values: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, values)


NESTED_STRUCT = pa.array(
    [{"x": {"y": 1}}, None], pa.struct([("x", pa.struct([("y", pa.uint8())]))])
)
ARROW: list[tuple[Any, str, list[Any]]] = [
    (pa.nulls(2), "unknown", [None, None]),
    (pa.array([[None], []], pa.large_list(pa.null())), "array(unknown)", [[None], []]),
    (
        pa.array([[("k", None)], None], pa.map_(pa.string(), pa.null())),
        "map(varchar, unknown)",
        [[("k", None)], None],
    ),
    (pa.array([1, 255], pa.uint8()), "smallint", [1, 255]),
    (pa.array([2**32 - 1], pa.uint32()), "bigint", [2**32 - 1]),
    (pa.array([2**64 - 1, None], pa.uint64()), "decimal(20,0)", [Decimal(2**64 - 1), None]),
    (pa.array(np.array([1.5], np.float16)), "real", [1.5]),
    (pa.array([Decimal("1.5")], pa.decimal32(5, 2)), "decimal(5,2)", [Decimal("1.50")]),
    (pa.array([Decimal("1.5")], pa.decimal64(5, 2)), "decimal(5,2)", [Decimal("1.50")]),
    (pa.array([Decimal("1.5")], pa.decimal256(38, 2)), "decimal(38,2)", [Decimal("1.50")]),
    (pa.array([Decimal(500)], pa.decimal128(5, -2)), "decimal(7,0)", [Decimal(500)]),
    (pa.array(["a", None], pa.string_view()), "varchar", ["a", None]),
    (pa.array(["a", None], pa.large_string()), "varchar", ["a", None]),
    (pa.array([b"a", None], pa.binary_view()), "varbinary", [b"a", None]),
    (pa.array([b"ab"], pa.binary(2)), "varbinary", [b"ab"]),
    (pa.array(["a", "b", "a"]).dictionary_encode(), "varchar", ["a", "b", "a"]),
    (
        pa.DictionaryArray.from_arrays(
            pa.array([1, None], pa.uint8()), pa.array(["a", "b"], pa.string_view())
        ),
        "varchar",
        ["b", None],
    ),
    (pa.array([["a"], None], pa.list_(pa.string_view(), 1)), "array(varchar)", [["a"], None]),
    (
        pa.array([{"a": "x"}, None], pa.struct([("a", pa.string_view())])),
        'row("a" varchar)',
        [{"a": "x"}, None],
    ),
    (
        pa.array([[1, 2], None, [], [3]], pa.list_view(pa.int64())),
        "array(bigint)",
        [[1, 2], None, [], [3]],
    ),
    (
        pa.array([[1, 2], None, [], [3]], pa.large_list_view(pa.int64()))[1:],
        "array(bigint)",
        [None, [], [3]],
    ),
    (
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2))[1:],
        "array(tinyint)",
        [None, [3, 4]],
    ),
    (
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([7, None]))[1:],
        "bigint",
        [7, None],
    ),
    (
        pa.RunEndEncodedArray.from_arrays(
            pa.array([2, 3], pa.int32()), pa.array(["a", None], pa.string_view())
        ),
        "varchar",
        ["a", "a", None],
    ),
    (storage(pa.uuid(), pa.array([ID.bytes, None], pa.binary(16))), "uuid", [str(ID), None]),
    (storage(pa.json_(), pa.array(['{"a": 1}', None])), "json", ['{"a": 1}', None]),
    (storage(pa.bool8(), pa.array([5, 0, None], pa.int8())), "boolean", [True, False, None]),
    (pa.array([86_400_000], pa.date64()), "date", [dt.date(1970, 1, 2)]),
    (pa.array([3_000], pa.timestamp("ns")), "timestamp(6)", [dt.datetime(1970, 1, 1, 0, 0, 0, 3)]),  # noqa: DTZ001
    (
        pa.array([3], pa.timestamp("s", "+05:30")),
        "timestamp(6) with time zone",
        [dt.datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)],
    ),
    (pa.array([3_000], pa.time64("ns")), "time(6)", [dt.time(0, 0, 0, 3)]),
    (pa.array([3], pa.time32("s")), "time(6)", [dt.time(0, 0, 3)]),
    (NESTED_STRUCT[0:], 'row("x" row("y" smallint))', [{"x": {"y": 1}}, None]),
    (NESTED_STRUCT[1:], 'row("x" row("y" smallint))', [None]),
    (
        pa.StructArray.from_arrays(
            [pa.array([1, 2]), pa.array(["a", "b"])], names=["", ""], mask=pa.array([False, True])
        ),
        "row(bigint, varchar)",
        [{"field0": 1, "field1": "a"}, None],
    ),
    (
        pa.array(
            [[("a", [1])], None, [("b", None)]], pa.map_(pa.string(), pa.large_list(pa.uint16()))
        )[1:],
        "map(varchar, array(integer))",
        [None, [("b", None)]],
    ),
    (pa.chunked_array([pa.array([1], pa.uint8()), pa.array([], pa.uint8())]), "smallint", [1]),
    (pa.array([float("nan"), None]), "double", [float("nan"), None]),
]


@pytest.mark.parametrize(
    ("given", "sql_type", "expected"),
    ARROW,
    ids=lambda value: str(getattr(value, "type", value))[:40],
)
def test_arrow_arrays_are_returned_unchanged(
    given: Any, sql_type: str, expected: list[Any]
) -> None:
    read = whole_frame("f", pa.table({"v": given}))
    assert read.table is not None
    assert str(read.columns[0].type) == sql_type
    # NaN equals nothing, not even itself.
    assert [str(value) for value in read.table["v"].to_pylist()] == [
        str(value) for value in expected
    ]
    assert read.table.schema.field("v").type == read.columns[0].type.arrow


REFUSED_ARROW: list[tuple[Any, str]] = [
    (
        pa.array([1_000, 1_001], pa.timestamp("ns")),
        "Row 1 of column 'v' of DataFrame 'f' has Timestamp('1970-01-01 00:00:00.000001001')",
    ),
    (pa.array([[1_000], [1_001]], pa.list_(pa.timestamp("ns"))), "Row 1 of column 'v'"),
    (pa.array([{"a": 1_001}], pa.struct([("a", pa.time64("ns"))])), "Row 0 of column 'v'"),
    (
        pa.array([[("k", 1_001)]], pa.map_(pa.string(), pa.timestamp("ns", "UTC"))),
        "Row 0 of column 'v'",
    ),
    (
        pa.chunked_array([pa.array([0], pa.timestamp("ns")), pa.array([0, 5], pa.timestamp("ns"))]),
        "Row 2 of column 'v'",
    ),
    (
        pa.RunEndEncodedArray.from_arrays(
            pa.array([2, 4, 5], pa.int32()), pa.array([0, 5, 0], pa.timestamp("ns"))
        )[1:],
        "Row 1 of column 'v'",
    ),
    (pa.array([2**62], pa.timestamp("s")), "Row 0 of column 'v'"),
    (pa.array([86_400_000, 5], pa.date64()), "Row 1 of column 'v'"),
    (pa.array([0, 86_400_000_000], pa.time64("us")), "that time of day does not exist"),
    (pa.array([1], pa.duration("us")), "duration[us]"),
    (pa.array([pa.MonthDayNano([1, 2, 3])]), "month_day_nano_interval"),
    (pa.array([Decimal(1)], pa.decimal256(50, 2)), "at most 38 digits"),
    (pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]), "sparse_union"),
    (
        pa.UnionArray.from_dense(
            pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]
        ),
        "dense_union",
    ),
    (storage(pa.opaque(pa.int32(), "point", "db"), pa.array([1], pa.int32())), "opaque"),
    (pa.array([{}], pa.struct([])), "struct<>"),
    (
        pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "X"]),
        "two fields named 'x'",
    ),
    (pa.array([[{"x": 1, "X": 2}]]), "two fields named 'x'"),
]


@pytest.mark.parametrize(
    ("given", "message"), REFUSED_ARROW, ids=lambda value: str(getattr(value, "type", value))[:40]
)
def test_arrow_values_that_sql_does_not_hold_are_refused_with_their_column(
    given: Any, message: str
) -> None:
    error = read_frame("f", pa.table({"id": pa.nulls(len(given)), "v": given})).refused_columns["v"]
    assert error.code == "NOT_SUPPORTED"
    assert "column 'v' of DataFrame 'f'" in error.message[:1].lower() + error.message[1:]
    assert message in error.message


def test_values_hidden_under_a_null_are_not_read() -> None:
    hidden = pa.StructArray.from_arrays(
        [pa.array([1_001], pa.timestamp("ns"))], names=["a"], mask=pa.array([True])
    )
    read = whole_frame("f", pa.table({"v": hidden}))
    assert read.table is not None
    assert read.table["v"].to_pylist() == [None]


PANDAS: list[tuple[Any, str, list[Any]]] = [
    (pd.Categorical(["a", None, "a"]), "varchar", ["a", None, "a"]),
    (pd.Categorical([2, 1]), "bigint", [2, 1]),
    (
        pd.Categorical([NOON, None], categories=pd.Index([NOON, DAY], dtype=object)),
        "timestamp(6)",
        [NOON, None],
    ),
    (pd.array([1, None], "Int64"), "bigint", [1, None]),
    (pd.array([True, None], "boolean"), "boolean", [True, None]),
    (pd.array([1.5, None], "Float32"), "real", [1.5, None]),
    (pd.array(["a", None], "string"), "varchar", ["a", None]),
    (pd.array([[1], None], pd.ArrowDtype(pa.list_(pa.int32()))), "array(integer)", [[1], None]),
    (pd.arrays.SparseArray([0, 1]), "bigint", [0, 1]),
    (np.array([1, 2], ">i4"), "integer", [1, 2]),
    (np.array([1.5, float("nan")]), "double", [1.5, None]),
    (pd.DatetimeIndex([NOON, pd.NaT]), "timestamp(6)", [NOON, None]),
    (
        pd.DatetimeIndex([NOON], tz="Europe/Berlin"),
        "timestamp(6) with time zone",
        [NOON.replace(hour=11, tzinfo=UTC)],
    ),
    (
        np.array(["2024-01-01"], "datetime64[s]"),
        "timestamp(6)",
        [dt.datetime.combine(DAY, dt.time())],
    ),
]


@pytest.mark.parametrize(
    ("given", "sql_type", "expected"),
    PANDAS,
    ids=lambda value: str(getattr(value, "dtype", value))[:40],
)
def test_dtypes_of_pandas_are_returned_unchanged(
    given: Any, sql_type: str, expected: list[Any]
) -> None:
    read = whole_frame("f", pd.DataFrame({"v": given}))
    assert read.table is not None
    assert (str(read.columns[0].type), read.table["v"].to_pylist()) == (sql_type, expected)


@pytest.mark.parametrize(
    "given",
    [
        pd.period_range("2024-01", periods=2, freq="M"),
        pd.interval_range(0, 2),
        pd.to_timedelta([1, 2], "s"),
        np.array([1j, 2j]),
        np.array([1, 2], np.longdouble),
        pd.DatetimeIndex(["2024-01-01", NANOS]),
        pd.Categorical([1, "a"], categories=[1, "a"]),
    ],
    ids=lambda value: str(value.dtype),
)
def test_dtypes_of_pandas_that_sql_does_not_have_are_refused_with_their_column(given: Any) -> None:
    read = read_frame("f", pd.DataFrame({"v": given, "w": [1, 2]}))
    assert [*read.refused_columns] == ["v"]
    assert [str(column.type) for column in read.columns] == ["unknown", "bigint"]


def test_nanoseconds_that_are_two_keys_never_become_one() -> None:
    frame = pd.DataFrame(
        {"k": pd.to_datetime(["2024-01-01 00:00:00.000000001", "2024-01-01 00:00:00.000000002"])}
    )
    with pytest.raises(RowMergeError, match="Row 0 of column 'k'"):
        Engine().register("t", frame)


def test_column_names_are_text_and_the_index_is_not_a_column() -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=[0, ("a", "b"), ""], index=pd.Index([7], name="i"))
    assert [column.name for column in whole_frame("f", frame).columns] == ["0", "('a', 'b')", ""]


def test_names_and_texts_that_cannot_be_written_are_escaped_or_refused() -> None:
    frame = pd.DataFrame({"\ud800": [1, 2], "v": pd.array(["a", "\ud800"], "string[python]")})
    read = read_frame("f", frame)
    assert [column.name for column in read.columns] == [r"\ud800", "v"]
    assert read.refused_columns["v"].message.startswith(
        r"Row 1 of column 'v' of DataFrame 'f' has '\ud800'"
    )
    read.refused_columns["v"].message.encode()


@pytest.mark.parametrize("names", [["a", "A"], ["a", "a"], [1, "1"]])
def test_only_a_name_shared_by_several_columns_is_refused(names: list[Any]) -> None:
    read = read_frame("f", pd.DataFrame([[1, 2, 3]], columns=[*names, "b"]))
    (error,) = read.refused_columns.values()
    assert (error.code, [column.name for column in read.columns]) == (
        "DUPLICATE_COLUMN_NAME",
        [str(names[0]), "b"],
    )


def test_a_text_too_long_for_one_chunk_becomes_several(monkeypatch: pytest.MonkeyPatch) -> None:
    import rowmerge_nb.engine.api.frames.frame_values as module

    def small(array: pa.Array, wanted: pa.DataType) -> pa.Array:
        if len(array) > 1:
            msg = "array too large"
            raise pa.ArrowCapacityError(msg)
        return array.cast(wanted)

    monkeypatch.setattr(module, "_exact", small)
    _, values = module.exact_values(
        pa.chunked_array([pa.array(["a", "b", "c"], pa.large_string())])
    )
    assert ([len(chunk) for chunk in values.chunks], values.to_pylist()) == (
        [1, 1, 1],
        ["a", "b", "c"],
    )


def test_columns_of_a_dictionary_are_read_as_objects() -> None:
    read = whole_frame("f", {"d": [DAY, NOON], "u": [ID, None], "n": [float("nan"), 1.0]})
    assert [str(column.type) for column in read.columns] == ["timestamp(6)", "uuid", "double"]
    with pytest.raises(RowMergeError, match="1 and 2 values"):
        read_frame("f", {"a": [1], "b": [1, 2]})


def test_addresses_of_polars_objects_are_not_taken_for_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Series:
        def __init__(self, name: str, dtype: str, values: pa.Array) -> None:
            self.name, self.dtype, self._values = name, dtype, values

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.chunked_array([self._values]).__arrow_c_stream__(requested_schema)

    class DataFrame:
        columns = ("o", "s")

        def get_columns(self) -> list[Series]:
            return [
                Series("o", "Object", pa.array([b"12345678"], pa.binary(8))),
                Series("s", "String", pa.array(["x"])),
            ]

        def __len__(self) -> int:
            return 1

    polars = ModuleType("polars")
    polars.DataFrame = DataFrame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", polars)
    read = read_frame("f", DataFrame())
    assert ([*read.refused_columns], str(read.columns[1].type)) == (["o"], "varchar")


@pytest.mark.parametrize(
    "empty", [[None, None], [[], []], [{"a": None}] * 2, [[None], None]], ids=str
)
def test_no_table_is_created_from_a_column_without_a_value(empty: list[Any]) -> None:
    with pytest.raises(RowMergeError, match="Column type is unknown: note") as caught:
        Engine().register("t", pd.DataFrame({"id": [1, 2], "note": pd.Series(empty, dtype=object)}))
    assert caught.value.code == "COLUMN_TYPE_UNKNOWN"


def test_a_name_means_the_frame_of_that_spelling_and_is_refused_if_ambiguous() -> None:
    assert frame_name("my_DF", ["My_DF", "my_DF"]) == "my_DF"
    assert frame_name("MY_DF", ["my_DF"]) == "my_DF"
    assert frame_name("other", ["my_DF"]) is None
    with pytest.raises(RowMergeError, match="'My_DF' and 'my_DF'") as caught:
        frame_name("MY_DF", ["My_DF", "my_DF"])
    assert caught.value.code == "AMBIGUOUS_NAME"
