"""Arrow arrays are converted to Trino blocks with the same values and back."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowmerge_nb.spi.types import parse_type

if TYPE_CHECKING:
    from tests.connectors.trino.conftest import BlockProgram

naive = dt.datetime

UUIDS = [str(uuid.UUID(int=i * 0x0123456789ABCDEF0123456789)) for i in (1, 7, 2**22)]
EARLY = naive(1, 1, 1, 2, 3, 4, 5)
LATE = naive(9999, 12, 31, 23, 59, 59, 999999)
UTC = dt.UTC
MIDNIGHT = dt.datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)

VALUES: dict[str, tuple[list[Any], list[str] | None]] = {
    "boolean": ([True, False, True], ["true", "false", "true"]),
    "tinyint": ([-128, 0, 127], ["-128", "0", "127"]),
    "smallint": ([-32768, 0, 32767], ["-32768", "0", "32767"]),
    "integer": ([-(2**31), 0, 2**31 - 1], ["-2147483648", "0", "2147483647"]),
    "bigint": ([-(2**63), 0, 2**63 - 1], ["-9223372036854775808", "0", "9223372036854775807"]),
    "real": ([1.5, -0.0, 3e38], ["1.5", "-0.0", "3.0E38"]),
    "double": ([1.5, -0.0, 1e300], ["1.5", "-0.0", "1.0E300"]),
    "decimal(5,2)": ([Decimal("-999.99"), Decimal("0.00"), Decimal("12.30")], None),
    "decimal(18,0)": ([Decimal(-(10**18) + 1), Decimal(0), Decimal(10**18 - 1)], None),
    "decimal(19,4)": (
        [Decimal("-99999999999999.0001"), Decimal("0.0000"), Decimal("1.5000")],
        None,
    ),
    "decimal(38,10)": (
        [Decimal("-9999999999999999999999999999.9999999999"), Decimal("0E-10"), Decimal("1E-10")],
        ["-9999999999999999999999999999.9999999999", "0.0000000000", "0.0000000001"],
    ),
    "varchar": (["", "ärger 🙂", "x" * 5000], ["", "ärger 🙂", "x" * 5000]),
    "varchar(10)": (["a", "", "tenletters"], ["a", "", "tenletters"]),
    "char(4)": (["a   ", "    ", "four"], ["a   ", "    ", "four"]),
    "varbinary": ([b"", b"\x00\xff", b"abc"], None),
    "date": (
        [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
        ["0001-01-01", "1969-12-31", "9999-12-31"],
    ),
    "time(3)": (
        [dt.time(0), dt.time(12, 30, 1, 500000), dt.time(23, 59, 59, 999000)],
        ["00:00:00.000", "12:30:01.500", "23:59:59.999"],
    ),
    "time(6)": ([dt.time(0, 0, 0, 1), dt.time(1), dt.time(23, 59, 59, 999999)], None),
    "time(12)": ([dt.time(0, 0, 0, 1), dt.time(1), dt.time(23, 59, 59, 999999)], None),
    "timestamp(0)": (
        [naive(1969, 12, 31), naive(2020, 1, 1), naive(1, 1, 1)],
        None,
    ),
    "timestamp(6)": (
        [EARLY, naive(1969, 12, 31, 23, 59, 59, 999999), LATE],
        ["0001-01-01 02:03:04.000005", "1969-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"],
    ),
    "timestamp(9)": (
        [EARLY, naive(1969, 12, 31, 23, 59, 59, 999999), LATE],
        [
            "0001-01-01 02:03:04.000005000",
            "1969-12-31 23:59:59.999999000",
            "9999-12-31 23:59:59.999999000",
        ],
    ),
    "timestamp(12)": ([EARLY, naive(1970, 1, 1), LATE], None),
    "timestamp(3) with time zone": (
        [MIDNIGHT, dt.datetime(2020, 2, 29, tzinfo=UTC), dt.datetime(1, 1, 1, tzinfo=UTC)],
        [
            "1969-12-31 23:59:59.999 UTC",
            "2020-02-29 00:00:00.000 UTC",
            "0001-01-01 00:00:00.000 UTC",
        ],
    ),
    "timestamp(6) with time zone": (
        [EARLY.replace(tzinfo=UTC), MIDNIGHT, LATE.replace(tzinfo=UTC)],
        [
            "0001-01-01 02:03:04.000005 UTC",
            "1969-12-31 23:59:59.999000 UTC",
            "9999-12-31 23:59:59.999999 UTC",
        ],
    ),
    "timestamp(9) with time zone": (
        [EARLY.replace(tzinfo=UTC), MIDNIGHT, LATE.replace(tzinfo=UTC)],
        None,
    ),
    "uuid": (UUIDS, UUIDS),
    "array(integer)": ([[1, None, 3], [], [4]], ["[1, null, 3]", "[]", "[4]"]),
    "array(array(varchar))": ([[["a"], None], [[]], [["b", None, "c"], ["d"]]], None),
    "map(varchar, bigint)": (
        [[("a", 1), ("b", None)], [], [("c", 3)]],
        ["{a=1, b=null}", "{}", "{c=3}"],
    ),
    "map(integer, array(varchar))": ([[(1, ["x", None])], [(2, None), (3, [])], []], None),
    "row(a bigint, b varchar)": (
        [{"a": 1, "b": "x"}, {"a": None, "b": None}, {"a": 3, "b": ""}],
        ["[1, x]", "[null, null]", "[3, ]"],
    ),
    "row(a row(b uuid, c decimal(20,2)), d array(timestamp(3) with time zone), e boolean)": (
        [
            {"a": {"b": UUIDS[0], "c": Decimal("1.50")}, "d": [MIDNIGHT, None], "e": True},
            {"a": None, "d": None, "e": None},
            {"a": {"b": None, "c": None}, "d": [], "e": False},
        ],
        None,
    ),
    "array(row(a varchar, b map(bigint, double)))": (
        [[{"a": "x", "b": [(1, 1.5)]}, None], [], [{"a": None, "b": None}]],
        None,
    ),
}


def batch(sql_type: str, values: list[Any]) -> pa.RecordBatch:
    return pa.record_batch({"c0": pa.array(values, parse_type(sql_type).arrow)})


@pytest.mark.parametrize("sql_type", VALUES)
def test_values_of_a_type_arrive_in_java_and_return(sql_type: str, blocks: BlockProgram) -> None:
    values, texts = VALUES[sql_type]
    header, back = blocks.round_trip(batch(sql_type, values), [sql_type])
    assert back.column(0).to_pylist() == batch(sql_type, values).column(0).to_pylist()
    assert back.schema.field(0).type == parse_type(sql_type).arrow
    back.validate(full=True)
    if texts is not None:
        assert header["values"][0] == texts


@pytest.mark.parametrize("sql_type", VALUES)
def test_nulls_slices_and_empty_pages_return(sql_type: str, blocks: BlockProgram) -> None:
    values, _ = VALUES[sql_type]
    long = ([*values, None] * 25)[:95]
    for start, length in ((0, 95), (3, 70), (8, 64), (1, 1), (4, 0), (0, 0)):
        part = batch(sql_type, long).slice(start, length)
        header, back = blocks.round_trip(part, [sql_type])
        assert back.column(0).to_pylist() == part.column(0).to_pylist()
        assert [value is None for value in header["values"][0]] == [
            value is None for value in part.column(0).to_pylist()
        ]
        back.validate(full=True)


@pytest.mark.parametrize("sql_type", VALUES)
def test_regions_dictionaries_and_run_lengths_return(sql_type: str, blocks: BlockProgram) -> None:
    values, _ = VALUES[sql_type]
    long = [values[0], None, *values, None, values[1]]
    expected = batch(sql_type, long).column(0).to_pylist()
    for form, result in {
        "region": expected[1:-1],
        "dictionary": [value for value in expected[::-1] for _ in range(3)],
        "sparse": [expected[-1], expected[0]],
        "run length": [None] * 4,
    }.items():
        header, back = blocks.round_trip(batch(sql_type, long), [sql_type], form)
        assert back.column(0).to_pylist() == result, (form, header["classes"])
        back.validate(full=True)
    header, back = blocks.round_trip(batch(sql_type, values), [sql_type], "run length")
    assert header["classes"] == ["RunLengthEncodedBlock"]
    assert back.column(0).to_pylist() == [batch(sql_type, values).column(0).to_pylist()[1]] * 4


@pytest.mark.parametrize("sql_type", VALUES)
def test_pages_of_only_nulls_return(sql_type: str, blocks: BlockProgram) -> None:
    part = batch(sql_type, [None, None])
    header, back = blocks.round_trip(part, [sql_type])
    assert header["values"] == [[None, None]]
    assert back.column(0).to_pylist() == [None, None]


def test_entries_below_a_null_are_not_passed_on(blocks: BlockProgram) -> None:
    """Arrow may keep bytes and entries under a NULL; Trino's blocks must not."""
    mask = pa.array([False, True, False])
    texts = pa.array(["one", "two", "three"])
    hidden = pa.StringArray.from_buffers(3, *texts.buffers()[1:], pa.py_buffer(bytes([0b101])))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), texts, mask=mask)
    maps = pa.Array.from_buffers(
        pa.map_(pa.string(), pa.int64()),
        3,
        [
            pa.py_buffer(bytes([0b101])),
            pa.py_buffer(pa.array([0, 1, 2, 3], pa.int32()).buffers()[1]),
        ],
        children=[
            pa.StructArray.from_arrays(
                [texts, pa.array([1, 2, 3])],
                fields=list(pa.map_(pa.string(), pa.int64()).field(0).type),
            )
        ],
    )
    rows = pa.StructArray.from_arrays([texts], names=["a"], mask=mask)
    part = pa.record_batch([hidden, lists, maps, rows], names=["c0", "c1", "c2", "c3"])
    types = ["varchar", "array(varchar)", "map(varchar, bigint)", "row(a varchar)"]
    header, back = blocks.round_trip(part, types)
    assert header["values"] == [
        ["one", None, "three"],
        ["[one]", None, "[three]"],
        ["{one=1}", None, "{three=3}"],
        ["[one]", None, "[three]"],
    ]
    assert back.to_pylist() == part.to_pylist()


def test_a_column_of_the_unknown_type_is_null(blocks: BlockProgram) -> None:
    _, back = blocks.round_trip(pa.record_batch({"c0": pa.nulls(3)}), ["unknown"])
    assert back.column(0).to_pylist() == [None] * 3


def test_picoseconds_are_refused_and_not_lost(blocks: BlockProgram) -> None:
    exact = pa.record_batch({"c0": pa.array([0, -1, 0], pa.int32())})
    _, back = blocks.round_trip(exact, [], "picoseconds")
    assert back.column(0).to_pylist() == [naive(1970, 1, 1), None, naive(1970, 1, 1)]
    with pytest.raises(AssertionError, match="more than six digits of fractional seconds"):
        blocks.round_trip(pa.record_batch({"c0": pa.array([7], pa.int32())}), [], "picoseconds")


def test_a_type_that_trino_pages_lack_is_named(blocks: BlockProgram) -> None:
    part = pa.record_batch({"c0": pa.array([1], pa.duration("us"))})
    with pytest.raises(AssertionError, match="interval day to second cannot be passed"):
        blocks.round_trip(part, ["interval day to second"])


def test_a_page_of_ten_thousand_rows_takes_three_milliseconds_at_most(
    blocks: BlockProgram,
) -> None:
    count = 10_000
    part = pa.record_batch(
        {
            "id": pa.array(range(count), pa.int64()),
            "name": pa.array([None if i % 7 == 0 else f"name {i}" for i in range(count)]),
            "price": pa.array([i / 3 for i in range(count)]),
        }
    )
    header, _ = blocks.round_trip(part, ["bigint", "varchar", "double"], "time")
    assert header["build"] < 3
    assert header["read"] < 3
