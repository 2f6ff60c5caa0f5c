"""Source rows are found by their keys, whatever the keys are like."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowmerge_nb.engine.tasks.key_index import KeyIndex

LOWEST, HIGHEST = -(2**63), 2**63 - 1
KINDS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [LOWEST, -1, 0, 1, HIGHEST, None]),
    (pa.int8(), [-128, 0, 127, None]),
    (pa.string(), ["", "a", "A", "a ", None]),
    (pa.bool_(), [True, False, None]),
    (pa.decimal128(10, 2), [Decimal("1.10"), Decimal("-1.10"), None]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    (pa.timestamp("us"), [dt.datetime(1969, 12, 31), dt.datetime(2000, 1, 1), None]),  # noqa: DTZ001
    (pa.binary(), [b"", b"\0", None]),
]


def pairs(target: list[list[Any]], source: list[list[Any]]) -> list[tuple[int, int]]:
    """Compare every row with every row."""
    rows = [list(zip(*columns, strict=True)) for columns in (target, source)]
    return [(i, j) for i, left in enumerate(rows[0]) for j, right in enumerate(rows[1]) if None not in left and left == right]


def found(target: list[pa.Array], source: list[pa.Array]) -> list[tuple[int, int]]:
    pieces = list(KeyIndex(source).matches(target, 3))
    assert sum(len(set(rows.tolist())) for rows, _ in pieces) == len({row for rows, _ in pieces for row in rows.tolist()})
    return [pair for rows, partners in pieces for pair in zip(rows.tolist(), partners.tolist(), strict=True)]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[str(kind) for kind, _ in KINDS])
def test_rows_with_equal_keys_meet_and_null_meets_nothing(kind: pa.DataType, values: list[Any]) -> None:
    target, source = [*values, *values], [*reversed(values), values[0]]
    assert found([pa.array(target, kind)], [pa.array(source, kind)]) == pairs([target], [source])


@given(st.data())
def test_keys_of_several_columns_meet_as_they_do_row_by_row(data: st.DataObject) -> None:
    columns = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    sides = []
    for _ in range(2):
        count = data.draw(st.integers(0, 12))
        sides.append([data.draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)) for _, values in columns])
    kinds = [kind for kind, _ in columns]
    arrays = [[pa.array(values, kind) for values, kind in zip(side, kinds, strict=True)] for side in sides]
    assert found(*arrays) == pairs(*sides)


def test_the_width_of_whole_numbers_does_not_matter() -> None:
    assert found([pa.array([3, 300], pa.int64())], [pa.array([3, None], pa.int8())]) == [(0, 0)]


def test_numbers_far_below_the_smallest_key_do_not_turn_into_keys() -> None:
    # HIGHEST + 1 above the lowest number there is what it was counted from.
    assert found([pa.array([LOWEST, LOWEST + 5])], [pa.array([HIGHEST - 5, HIGHEST])]) == []


def test_a_key_of_many_rows_gives_them_all_in_their_order() -> None:
    assert found([pa.array([9, 7, 9])], [pa.array([9, 9, 8, 9])]) == [(0, 0), (0, 1), (0, 3), (2, 0), (2, 1), (2, 3)]
