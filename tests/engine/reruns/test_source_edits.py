"""Values of edited cells: any Python value that a column holds exactly, and an example for others."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb import RowMergeError
from rowmerge_nb.engine.reruns.source_edits import EditableSource

POINTS = pa.decimal128(4, 1)
MIDNIGHT = dt.datetime.fromisoformat("2026-01-31")
TEN = MIDNIGHT.replace(hour=10)


def cell(value: Any, arrow_type: pa.DataType) -> Any:
    source = EditableSource("", ("c",), pa.table({"c": pa.array([None], arrow_type)}))
    [(_, typed)] = source._cells_of_row(0, {"c": value})
    return typed


@pytest.mark.parametrize(
    ("value", "arrow_type", "expected"),
    [
        (99, POINTS, Decimal("99.0")),
        (99.5, POINTS, Decimal("99.5")),
        (np.int64(99), POINTS, Decimal("99.0")),
        (Decimal("99.50"), POINTS, Decimal("99.5")),
        ("99.5", POINTS, Decimal("99.5")),
        (10**30, pa.decimal128(38, 2), Decimal(10**30)),
        (99, pa.float64(), 99.0),
        (99, pa.float32(), 99.0),
        (Decimal("99.5"), pa.float64(), 99.5),
        (99.0, pa.int32(), 99),
        ("2026-01-31", pa.date32(), dt.date(2026, 1, 31)),
        (MIDNIGHT, pa.date32(), dt.date(2026, 1, 31)),
        ("2026-01-31 10:00:00", pa.timestamp("us"), TEN),
        (dt.date(2026, 1, 31), pa.timestamp("us"), MIDNIGHT),
        ("10:00:00", pa.time64("us"), dt.time(10)),
        ("true", pa.bool_(), True),
        (None, POINTS, None),
    ],
)
def test_a_value_that_the_column_holds_exactly_is_accepted(
    value: Any, arrow_type: pa.DataType, expected: Any
) -> None:
    typed = cell(value, arrow_type)
    assert (typed, type(typed)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "arrow_type", "example"),
    [
        (99.55, POINTS, "Write '99.6', or None"),
        ("99.55", POINTS, "Write '999.9', or None"),
        (1000, POINTS, "Write '999.9', or None"),
        (999.96, POINTS, "Write '999.9', or None"),
        (float("nan"), POINTS, "Write '999.9', or None"),
        (True, POINTS, "Write '999.9', or None"),
        ("many", POINTS, "Write '999.9', or None"),
        (5, pa.string(), "Write '5', or None"),
        (5, pa.date32(), "Write '2026-01-31', or None"),
        (TEN, pa.date32(), "Write '2026-01-31', or None"),
        (5, pa.timestamp("us"), "Write '2026-01-31 10:00:00', or None"),
        ("noon", pa.time64("us"), "Write '10:00:00', or None"),
        (dt.date(2026, 1, 31), pa.int32(), "Write a value of that type, or None"),
        (2**60, pa.float32(), "Write a value of that type, or None"),
    ],
)
def test_another_value_is_refused_with_a_valid_example(
    value: Any, arrow_type: pa.DataType, example: str
) -> None:
    with pytest.raises(RowMergeError, match="the type of column 'c'") as raised:
        cell(value, arrow_type)
    assert example in str(raised.value.hint)
