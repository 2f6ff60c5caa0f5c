"""Missing rows are paired with the unexpected rows that probably correspond."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rowmerge_nb.trace.row_pairs import MOST_COMPARED, pair_rows


def pairs(missing: dict[str, Any], unexpected: dict[str, Any], *keys: int) -> list[tuple[int, int]]:
    result = pair_rows(pa.table(missing), pa.table(unexpected), keys)
    return sorted(zip(result.missing.tolist(), result.unexpected.tolist(), strict=True))


def test_rows_with_equal_keys_are_a_pair() -> None:
    assert pairs(
        {"id": [1, 2, None], "v": ["a", "b", "c"]}, {"id": [None, 2, 9], "v": ["x", "y", "z"]}, 0
    ) == [(1, 1), (2, 0)]


def test_repeated_keys_are_paired_in_order() -> None:
    assert pairs({"id": [7, 7], "v": [1, 2]}, {"id": [7, 7, 7], "v": [3, 4, 5]}, 0) == [
        (0, 0),
        (1, 1),
    ]


def test_a_key_may_differ_in_case() -> None:
    assert pairs({"id": ["ann", "bo"], "v": [1, 2]}, {"id": ["BO ", "ANN"], "v": [5, 6]}, 0) == [
        (0, 1),
        (1, 0),
    ]


def test_other_rows_are_paired_by_most_equal_cells() -> None:
    assert pairs(
        {"id": [1, 2], "v": ["a", "b"], "w": ["x", "y"]},
        {"id": [70, 80], "v": ["b", "a"], "w": ["y", "x"]},
    ) == [(0, 1), (1, 0)]


def test_rows_with_little_in_common_are_not_a_pair() -> None:
    assert pairs({"id": [1], "v": ["a"], "w": [None]}, {"id": [70], "v": ["b"], "w": [None]}) == []


def test_an_exchange_of_columns_has_precedence() -> None:
    # By the key 2, the rows (2, 3) and (2, 1) would be a pair.
    result = pair_rows(
        pa.table({"a": [1, 2], "b": [2, 3]}), pa.table({"a": [2, 3], "b": [1, 2]}), [0]
    )
    assert result.exchanged == (0, 1)
    assert [result.missing.tolist(), result.unexpected.tolist()] == [[0, 1], [0, 1]]


def test_only_strange_rows_are_paired_without_a_key() -> None:
    rows = pa.table({"id": [1], "v": ["a"]})
    others = pa.table({"id": [2, 3], "v": ["a", "a"]})
    paired = pair_rows(rows, others, (), np.array([False, True]))
    assert paired.unexpected.tolist() == [1]


def test_many_rows_are_paired_by_key_and_compared_in_part() -> None:
    size = 50_000
    rows = pa.table({"id": np.arange(size), "v": np.arange(size)})
    others = pa.table({"id": np.arange(size)[::-1], "v": np.full(size, -1)})
    paired = pair_rows(rows, others, [0])
    assert np.array_equal(paired.missing + paired.unexpected, np.full(size, size - 1))
    # Without a key, only the first rows are compared.
    assert (
        len(
            pair_rows(
                rows, rows.take(np.arange(size)[::-1]).set_column(1, "v", [rows.column("v")]), ()
            ).missing
        )
        <= MOST_COMPARED
    )


def test_an_empty_side_has_no_pairs() -> None:
    assert pairs({"id": []}, {"id": []}, 0) == pairs({"id": [1]}, {"id": []}, 0) == []
