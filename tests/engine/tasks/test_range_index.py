"""The index of intervals: the pairs that a comparison of all rows finds."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.engine.tasks.range_index import Intervals, RangeIndex

KINDS = {
    "whole numbers": pa.int32(),
    "the ends of bigint": pa.int64(),
    "doubles": pa.float64(),
    "short decimals": pa.decimal128(9, 2),
    "long decimals": pa.decimal128(38, 2),
    "days": pa.date32(),
    "moments": pa.timestamp("us"),
}


def column(kind: str, rows: int, random: np.random.Generator) -> pa.Array:
    numbers = random.integers(-50, 50, rows).tolist()
    if kind == "doubles":
        numbers = [
            float("nan") if number == 7 else number * 0.0 or number / 4 for number in numbers
        ]
    elif kind == "the ends of bigint":
        numbers = [
            (2**63 - 1 if number > 40 else -(2**63)) if abs(number) > 40 else number
            for number in numbers
        ]
    elif "decimals" in kind:
        most = 6 if kind == "short decimals" else 33
        numbers = [
            Decimal(number) * 10 ** int(random.integers(0, most)) / 100 for number in numbers
        ]
    nulls = random.random(rows) < 0.1
    values = [None if null else number for number, null in zip(numbers, nulls, strict=True)]
    if kind in {"days", "moments"}:
        return pa.array(values, pa.int32() if kind == "days" else pa.int64()).view(KINDS[kind])
    return pa.array(values, KINDS[kind])


def at_most(low: object, high: object) -> bool:
    return low is not None and high is not None and low <= high  # type: ignore[operator]


@pytest.mark.each_value
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ends", ["both", "low", "high", "one value"])
def test_the_index_finds_the_pairs_of_all_comparisons(kind: str, ends: str) -> None:
    random = np.random.default_rng(37)
    for rows, others in ((0, 5), (5, 0), (40, 60), (70, 30)):
        low, high = column(kind, rows, random), column(kind, rows, random)
        if ends == "one value":
            high = low
        own_low, own_high = column(kind, others, random), column(kind, others, random)
        index = RangeIndex(
            Intervals.of(None if ends == "high" else own_low, None if ends == "low" else own_high)
        )
        probes = Intervals.of(None if ends == "low" else low, None if ends == "high" else high)
        pieces = list(index.matches(probes, most=25))
        pairs = [
            (int(r), int(p)) for at, partners in pieces for r, p in zip(at, partners, strict=True)
        ]
        expected = {
            (row, other)
            for row in range(rows)
            for other in range(others)
            if (ends == "high" or at_most(own_low[other].as_py(), high[row].as_py()))
            and (ends == "low" or at_most(low[row].as_py(), own_high[other].as_py()))
        }
        # Long decimals are compared by their first 64 bits.
        assert expected <= set(pairs) if kind == "long decimals" else expected == set(pairs)
        assert len(pairs) == len(set(pairs))
        assert [row for row, _ in pairs] == sorted(row for row, _ in pairs)
        assert pieces
        sets = [set(at.tolist()) for at, _ in pieces]
        assert sum(map(len, sets)) == len(set().union(*sets))


def test_a_long_interval_does_not_add_candidates_to_short_ones() -> None:
    lows = np.arange(0, 1_000_000, 10)
    highs = lows + 5
    highs[0] = 2_000_000
    index = RangeIndex(Intervals.of(pa.array(lows), pa.array(highs)))
    days = pa.array(np.arange(3, 1_000_000, 1_000))
    rows, _, counts = index._runs(Intervals.of(days, days))
    assert counts.sum() == len(rows) == 2 * len(days) - 1


@pytest.mark.parametrize("is_open", [False, True])
def test_an_end_that_could_not_be_computed_is_open(is_open: bool) -> None:
    low, high = pa.array([1, 5, None]), pa.array([2, None, None])
    intervals = Intervals.of(low, high, open_nulls=(False, is_open))
    day = pa.array([7])
    (pair,) = RangeIndex(intervals).matches(Intervals.of(day, day))
    assert pair[1].tolist() == ([1] if is_open else [])
