"""Rows that no source key matches are omitted while a table is read: without Spark, on pages."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.engine.tasks.dynamic_filter import KeyFilter, SourceKeys
from rowmerge_nb.spi.page_source import ColumnDomain


def page(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=[f"c{i}" for i in range(len(columns))])


@pytest.mark.parametrize(
    ("keys", "values", "found"),
    [
        (
            pa.array([3, 1], pa.int16()),
            pa.array([1, 2, None, 3], pa.int64()),
            [True, False, False, True],
        ),
        (pa.array([-(2**62), 2**62]), pa.array([2**62, 0, -(2**62)]), [True, False, True]),
        (pa.array([-5, 0]), pa.array([None, 0, -5, 5]), [False, True, True, False]),
        (
            pa.array(["b", None, "a"]),
            pa.array(["a", "c", None], pa.large_string()),
            [True, False, False],
        ),
        (
            pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
            pa.array([Decimal("1.50"), Decimal("15.00")], pa.decimal128(30, 2)),
            [True, False],
        ),
        (pa.array([dt.date(2026, 1, 1)]), pa.array([dt.date(2026, 1, 1), None]), [True, False]),
        (pa.array([True]), pa.array([True, False, None]), [True, False, False]),
        (pa.array([], pa.int64()), pa.array([1, None]), [False, False]),
        (pa.array(["x"]), pa.array(["x", "y"]).dictionary_encode(), [True, False]),
    ],
)
def test_a_value_is_found_if_it_is_a_key_and_null_never_is(
    keys: pa.Array, values: pa.Array, found: list[bool]
) -> None:
    assert SourceKeys.of(keys).contains(pa.chunked_array([values])).tolist() == found
    halves = pa.chunked_array([values.slice(0, 1), values.slice(1, 0), values.slice(1)])
    assert SourceKeys.of(keys).contains(halves).tolist() == found


@pytest.mark.parametrize(
    "spread", [1, 1 << 25], ids=["numbers close together", "numbers far apart"]
)
def test_pages_keep_the_positions_of_their_rows_in_the_split(spread: int) -> None:
    random = np.random.default_rng(1)
    numbers = random.integers(0, 1000, 5000) * spread
    keys = SourceKeys.of(pa.array(random.choice(1000, 60, replace=False) * spread))
    pages = [page(pa.array(part), pa.array(part)) for part in np.array_split(numbers, 40)]
    kept = list(KeyFilter((0,), (keys,)).pages(pages))
    places = np.concatenate([where for _, where in kept])
    assert numbers[places].tolist() == [
        value for rows, _ in kept for value in rows.column(1).to_pylist()
    ]
    assert places.tolist() == np.flatnonzero(np.isin(numbers, keys.values.to_numpy())).tolist()


def test_a_row_stays_if_each_of_its_keys_occurs() -> None:
    keys = (SourceKeys.of(pa.array([1, 2])), SourceKeys.of(pa.array(["a"])))
    rows = page(pa.array([1, 2, 3, 1]), pa.array(["a", "b", "a", None]))
    ((kept, places),) = KeyFilter((0, 1), keys).pages([rows])
    assert kept.to_pylist() == [{"c0": 1, "c1": "a"}]
    assert places.tolist() == [0]


def test_pages_without_a_relevant_row_are_not_returned() -> None:
    assert (
        list(
            KeyFilter((0,), (SourceKeys.of(pa.array([7])),)).pages(
                [page(pa.array([1, 2])), page(pa.array([], pa.int64()))]
            )
        )
        == []
    )


@pytest.mark.parametrize(
    ("keys", "domain"),
    [
        (pa.array([5, 1, 5]), ColumnDomain((1, 5), 1, 5)),
        (pa.array(range(2000)), ColumnDomain(None, 0, 1999)),
        (pa.array([None], pa.int32()), ColumnDomain(())),
        (pa.array(["b", "a"]), ColumnDomain(("a", "b"), "a", "b")),
        (pa.array([True]), ColumnDomain((True,), low=True, high=True)),
    ],
)
def test_a_connector_gets_few_keys_one_by_one_and_many_as_bounds(
    keys: pa.Array, domain: Any
) -> None:
    assert SourceKeys.of(keys).domain == domain


def test_a_key_that_occurs_very_often_on_both_sides_costs_no_pairs() -> None:
    keys = SourceKeys.of(pa.array(["often"] * 100_000 + ["seldom"]))
    assert (
        keys.contains(pa.chunked_array([pa.array(["often"] * 100_000 + ["never"])])).sum()
        == 100_000
    )
