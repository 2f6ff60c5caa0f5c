"""Values of a key that are equal in SQL have equal parts, and no others have."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb.engine.tasks.comparable import key_parts
from rowmerge_nb.engine.tasks.key_index import KeyIndex

NAN = float("nan")
PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.float32(), [0.0, -0.0, 1.5, NAN, None]),
    (pa.float64(), [0.0, -0.0, 1.5, NAN, -NAN, float("inf"), None]),
    (pa.bool_(), [True, False, None]),
    (pa.string(), ["", "a", None]),
    (pa.binary(), [b"", b"\0", None]),
    (pa.decimal128(38, 38), [Decimal(0), Decimal("0.1"), None]),
    (pa.date32(), [0, 1, None]),
    (pa.time64("us"), [0, 1, None]),
    (pa.timestamp("us", "UTC"), [0, 1, None]),
    (
        PAIR,
        [
            {"a": 1, "b": "x"},
            {"a": 1, "b": None},
            {"a": None, "b": None},
            {"a": None, "b": "x"},
            None,
        ],
    ),
    (pa.list_(pa.int64()), [[], [0], [0, 0], [1, 2], [2, 1], [None], [0, None], None]),
    (pa.list_(pa.string()), [[], [""], ["", ""], ["ab", "c"], ["a", "bc"], ["abc"], [None], None]),
    (pa.list_(pa.decimal128(9, 2)), [[], [Decimal(1)], [Decimal(1), Decimal(2)], [None], None]),
    (pa.list_(pa.float64()), [[0.0], [-0.0], [NAN], [None], None]),
    (
        pa.list_(pa.list_(pa.bool_())),
        [[], [[]], [[], []], [[True]], [[True], []], [[], [True]], [[None]], [None], None],
    ),
    (pa.list_(PAIR), [[{"a": 1, "b": "x"}], [{"a": 1, "b": None}], [None], [], None]),
    (
        pa.struct([("l", pa.list_(pa.date32()))]),
        [{"l": [1]}, {"l": [1, 2]}, {"l": None}, {"l": []}, None],
    ),
]


def equal(one: Any, other: Any, *, nulls_meet: bool) -> bool:
    """Compare two values like SQL: NULL and NaN are equal to nothing, or to themselves."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(equal(one[name], other[name], nulls_meet=nulls_meet) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(equal(a, b, nulls_meet=nulls_meet) for a, b in pairs)
    if one is None or other is None:
        return nulls_meet and one is other
    both_are_nan = one != one and other != other  # noqa: PLR0124
    return bool(one == other) or (nulls_meet and both_are_nan)


@pytest.mark.parametrize("nulls_meet", [False, True])
@pytest.mark.parametrize(
    ("arrow_type", "values"), VALUES, ids=[str(arrow_type) for arrow_type, _ in VALUES]
)
def test_values_match_exactly_if_they_are_equal(
    arrow_type: pa.DataType, values: list[Any], nulls_meet: bool
) -> None:
    # Slices begin within their buffers.
    column, source = (
        pa.array([*values[:2], *values], arrow_type).slice(2),
        pa.array([None, *reversed(values)], arrow_type).slice(1),
    )
    texts = column.to_pylist(), source.to_pylist()
    index = KeyIndex(key_parts(source, nulls_meet=nulls_meet))
    parts = key_parts(column, nulls_meet=nulls_meet)
    met = {
        pair
        for rows, partners in index.matches(parts)
        for pair in zip(rows.tolist(), partners.tolist(), strict=True)
    }
    assert met == {
        (i, j)
        for i, a in enumerate(texts[0])
        for j, b in enumerate(texts[1])
        if equal(a, b, nulls_meet=nulls_meet)
    }


@pytest.mark.parametrize(
    "arrow_type",
    [arrow_type for arrow_type, _ in VALUES],
    ids=[str(arrow_type) for arrow_type, _ in VALUES],
)
@pytest.mark.parametrize("nulls_meet", [False, True])
def test_a_page_without_rows_has_parts_without_rows(
    arrow_type: pa.DataType, nulls_meet: bool
) -> None:
    assert {len(part) for part in key_parts(pa.array([], arrow_type), nulls_meet=nulls_meet)} == {0}
