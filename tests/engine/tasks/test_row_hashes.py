"""Rows as hashes, bags of hashes, and their use by an audit in tasks: all without Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.engine.tasks.audit_passes import NET, NetPass
from rowmerge_nb.engine.tasks.bags import Bag
from rowmerge_nb.engine.tasks.row_hashes import row_hashes

MOMENT = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
COLUMNS = [
    (pa.int32(), [1, -1, 0]),
    (pa.float64(), [1.5, float("nan"), -2.0]),
    (pa.decimal128(30, 2), [Decimal("1.10"), Decimal("-99999999999999999999.01"), Decimal(0)]),
    (pa.string(), ["", "a", "ä" * 40]),
    (pa.binary(), [b"", b"a", b"\0"]),
    (pa.bool_(), [True, False, None]),
    (pa.date32(), [dt.date(2026, 5, 1), dt.date(1, 1, 1), None]),
    (pa.timestamp("us"), [MOMENT.replace(tzinfo=None), dt.datetime.min, None]),  # noqa: DTZ901 - without a zone
    (pa.timestamp("us", "UTC"), [MOMENT, MOMENT + dt.timedelta(microseconds=1), None]),
    (pa.timestamp("ns"), [MOMENT.replace(tzinfo=None), None, None]),
    (pa.time64("us"), [dt.time(1), dt.time(1, 0, 0, 1), None]),
    (pa.list_(pa.int64()), [[1, 2], [2, 1], []]),
    (pa.list_(pa.list_(pa.int64())), [[[1], [2]], [[1, 2]], [[], [1, 2]]]),
    (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [("a", 2)], []]),
    (
        pa.struct([("x", pa.int64()), ("y", pa.string())]),
        [{"x": 1, "y": None}, {"x": None, "y": "1"}, None],
    ),
    (pa.null(), [None]),
]


@pytest.mark.parametrize(("kind", "values"), COLUMNS, ids=lambda value: str(value)[:30])
def test_equal_values_have_one_hash_and_different_values_another(
    kind: pa.DataType, values: list[Any]
) -> None:
    column = pa.array([*values, *values], kind)
    hashes = row_hashes([column], len(column)).tolist()
    assert hashes[: len(values)] == hashes[len(values) :]
    assert len(set(hashes)) == len({repr(value) for value in values})


@pytest.mark.parametrize(("kind", "values"), COLUMNS, ids=lambda value: str(value)[:30])
def test_a_slice_has_the_hashes_of_its_rows(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array([*values, *values, *values], kind)
    hashes = row_hashes([column], len(column)).tolist()
    assert row_hashes([column.slice(2, 2)], len(column.slice(2, 2))).tolist() == hashes[2:4]


def test_zero_and_nan_are_unique() -> None:
    column = pa.array([0.0, -0.0, float("nan"), -float("nan")])
    assert len(set(row_hashes([column], 4).tolist())) == 2


def test_the_order_of_a_maps_entries_does_not_matter() -> None:
    column = pa.array(
        [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)]], pa.map_(pa.string(), pa.int64())
    )
    assert len(set(row_hashes([column], 2).tolist())) == 1


def test_which_column_a_value_is_in_matters() -> None:
    one, other = pa.array([1, None]), pa.array([None, 1])
    assert len(set(row_hashes([one, other], 2).tolist())) == 2


def test_a_million_rows_have_a_million_hashes() -> None:
    numbers = np.arange(1_000_000)
    assert (
        len(
            np.unique(
                row_hashes([pa.array(numbers % 1000), pa.array(numbers // 1000)], len(numbers))
            )
        )
        == 1_000_000
    )


def test_bags_count_rows_and_take_them_away() -> None:
    one = Bag.of(np.array([9, 4, 9, 4, 4], np.uint64))
    assert (one.hashes.tolist(), one.counts.tolist(), one.total) == ([4, 9], [3, 2], 5)
    left = one - Bag.of(np.array([4, 4, 4, 9, 11], np.uint64))
    assert (left.hashes.tolist(), left.counts.tolist(), left.size) == ([9, 11], [1, -1], 2)
    assert (left.more.hashes.tolist(), left.less.hashes.tolist()) == ([9], [11])
    assert (left.count_of(9), left.count_of(4), left.count_of(100)) == (1, 0, 0)
    assert (Bag.none() + left).counts.tolist() == [1, -1]
    assert (one - one).size == 0


def test_the_tasks_return_only_the_surplus_of_one_side() -> None:
    def blob(side: int, hashes: list[int]) -> dict[str, Any]:
        return {"part": 0, "side": side, "hashes": np.array(hashes, np.uint64).tobytes()}

    pages = [
        pa.RecordBatch.from_pylist([blob(1, [5, 6]), blob(-1, [6])]),
        pa.RecordBatch.from_pylist([blob(-1, [7, 7])]),
    ]
    [found] = NetPass()(pages)
    assert found.schema == NET
    assert (found.column("plus")[0].as_py(), found.column("minus")[0].as_py()) == (2, 3)
    bag = Bag.from_bytes(found.column("bag")[0].as_py())
    assert (bag.hashes.tolist(), bag.counts.tolist()) == ([5, 7], [1, -2])
    assert list(NetPass()([])) == []
