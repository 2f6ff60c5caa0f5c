"""Each pattern of differing cells has its sentence, and other differences have none."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb.trace.cell_patterns import cell_patterns, differing_cells

NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 500)  # noqa: DTZ001 - a timestamp without a zone
MONEY = pa.decimal128(10, 2)


def patterns(expected: list[Any], stored: list[Any], arrow_type: Any = None) -> tuple[str, ...]:
    """Compare a column, beside a column whose values are equal."""
    rows = range(len(expected))
    sides = (pa.table({"id": rows, "v": pa.array(one, arrow_type)}) for one in (expected, stored))
    return cell_patterns(*sides)


@pytest.mark.parametrize(
    ("expected", "stored", "arrow_type", "words"),
    [
        (["a", "B"], ["A", "b"], None, "differs in case only"),
        (["a", "b"], ["a  ", "b "], None, "is padded with blanks"),
        (["a ", "b  "], ["a", "b"], None, "has lost its trailing blanks"),
        (["a ", "b"], ["a", "b "], None, "differs in trailing blanks only"),
        ([" a", "b"], ["a", " b"], None, "differs in blanks at its ends only"),
        (["abcd", "abxyz"], ["abc", "abx"], None, "is cut after 3 characters"),
        (["\u00e9", "\u00e8"], ["e\u0301", "e\u0300"], None, "differs in its Unicode normal form only"),
        (["", ""], [None, None], None, "is NULL in place of an empty text"),
        (["a", "b"], [None, None], None, "is NULL in place of a value"),
        ([None, None], [0, 0], pa.int64(), "is 0 in place of NULL"),
        ([None, None], ["x", "y"], pa.string(), "has a value in place of NULL"),
        ([Decimal("1.25"), Decimal("2.35")], [Decimal("1.3"), Decimal("2.4")], MONEY, "is rounded to 1 decimal place"),
        ([Decimal("1.25"), Decimal("2.39")], [Decimal("1.2"), Decimal("2.3")], MONEY, "is cut after 1 decimal place"),
        ([1.4, 2.6], [1.0, 3.0], None, "is rounded to 0 decimal places"),
        ([0.1, 0.2], [float(pa.scalar(x, pa.float32()).as_py()) for x in (0.1, 0.2)], None, "is rounded to the digits of a real"),
        ([Decimal("1.25"), Decimal(2)], [Decimal(125), Decimal(200)], MONEY, "is 100 times as large (its decimal point is moved)"),
        ([100, 7000], [1, 70], None, "is 100 times too small (its decimal point is moved)"),
        ([5, 6], [-5, -6], None, "has the other sign"),
        ([5, 9], [6, 10], None, "is larger by 1"),
        ([2**40 + 5, 2**33 + 7], [5, 7], None, "is cut to 32 bits"),
        ([0.1 + 0.2, 0.7], [0.3, 0.7000000000000001], None, "differs in its last digits only"),
        ([NOON, NOON], [NOON + dt.timedelta(hours=1)] * 2, None, "is 1:00:00 too late, which is the difference of two time zones"),
        ([NOON, NOON], [NOON - dt.timedelta(seconds=7)] * 2, pa.timestamp("us", "UTC"), "is 0:00:07 too early"),
        ([NOON, NOON], [NOON.replace(microsecond=0)] * 2, None, "is cut to a second"),
        ([dt.date(2024, 3, 1)] * 2, [dt.date(2024, 2, 29)] * 2, None, "is 1 day too early"),
        (["a", "b"], ["b", "a"], None, "has the values of other rows"),
        ([3, 1, 2], [2, 3, 1], None, "has the value of the row before it in the sinks' pages"),
        ([3, 1, 2], [1, 2, 9], None, "has the value of the row after it in the sinks' pages"),
    ],
)  # fmt: skip
def test_a_pattern_has_a_sentence(
    expected: list[Any], stored: list[Any], arrow_type: Any, words: str
) -> None:
    rows = "both" if len(expected) == 2 else "all 3"
    assert patterns(expected, stored, arrow_type) == (
        f"Column 'v' {words}, in {rows} paired rows.",
    )


@pytest.mark.parametrize(
    ("expected", "stored", "arrow_type"),
    [
        (["a", "b"], ["A", "x"], None),
        ([1, 2], [5, 9], None),
        ([1e300, float("inf")], [float("nan"), 3.0], None),
        ([-(2**63), 7], [5, 9], None),
        ([Decimal("9" * 38), Decimal(1)], [Decimal(1), Decimal(5)], pa.decimal128(38, 0)),
        ([[1], [2]], [[3], [4]], None),
        ([{"a": 1}, None], [None, {"a": 2}], None),
        ([True, True], [False, False], None),
        ([b"a", b"b"], [b"c", b"d"], None),
        ([dt.time(1), dt.time(2)], [dt.time(3), dt.time(5)], None),
        ([NOON, NOON], [NOON + dt.timedelta(days=400), NOON + dt.timedelta(days=3)], None),
    ],
)
def test_other_differences_have_no_pattern(
    expected: list[Any], stored: list[Any], arrow_type: Any
) -> None:
    assert patterns(expected, stored, arrow_type) == ()


def test_a_pattern_of_some_rows_has_their_number() -> None:
    assert patterns(["a", "B", "c"], ["A", "B", "C"]) == (
        "Column 'v' differs in case only, in 2 of 3 paired rows.",
    )
    assert patterns(["a"], ["A"]) == ("Column 'v' differs in case only.",)


def test_exchanged_columns_are_one_pattern() -> None:
    expected = pa.table({"a": [1, 2, 3], "b": [4, 5, 3], "c": ["x", "y", "z"]})
    stored = pa.table({"a": [4, 5, 3], "b": [1, 2, 3], "c": ["X", "Y", "Z"]})
    assert cell_patterns(expected, stored) == (
        "Columns 'a' and 'b' are exchanged, in 2 of 3 paired rows.",
        "Column 'c' differs in case only, in all 3 paired rows.",
    )


def test_cells_differ_as_sql_compares_them() -> None:
    expected = pa.table({"a": [0.0, float("nan"), None], "b": [[1], [2], None]})
    stored = pa.table({"a": [-0.0, float("nan"), 0.0], "b": [[1], [3], None]})
    assert differing_cells(expected, stored).tolist() == [
        [False, False],
        [False, True],
        [True, False],
    ]
