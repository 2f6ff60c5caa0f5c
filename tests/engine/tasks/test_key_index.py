"""Source rows are found by their keys, for keys of any form."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowmerge_nb.engine.tasks import key_index
from rowmerge_nb.engine.tasks.key_hashes import equal_texts, equally_long_texts
from rowmerge_nb.engine.tasks.key_index import KeyIndex, SetsIndex

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
    (pa.large_binary(), [b"", b"\0", b"\0\0", None]),
    (pa.binary(3), [b"\0\0\0", b"abc", None]),
    (pa.string(), ["customer-1", "customer-10", "customer-1\0", "customer-" * 5, "Ö" * 9, None]),
    (pa.string(), ["6ba7b810", "6ba7b811", "7ba7b810"]),
    (pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999999), None]),
    (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1969, 12, 31, tzinfo=dt.UTC), dt.datetime(2000, 1, 1, tzinfo=dt.UTC), None],
    ),
    (pa.float64(), [0.0, -0.0, 1.5, float("nan"), float("inf"), None]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
]
"""Zeros of both signs are equal, and NaN equals nothing, in Python as in SQL."""


def pairs(target: list[list[Any]], source: list[list[Any]]) -> list[tuple[int, int]]:
    """Compare every row with every row."""
    rows = [list(zip(*columns, strict=True)) for columns in (target, source)]
    return [
        (i, j)
        for i, left in enumerate(rows[0])
        for j, right in enumerate(rows[1])
        if None not in left and all(a == b for a, b in zip(left, right, strict=True))
    ]


def found(target: list[pa.Array], source: list[pa.Array]) -> list[tuple[int, int]]:
    pieces = list(KeyIndex(source).matches(target, 3))
    assert sum(len(set(rows.tolist())) for rows, _ in pieces) == len(
        {row for rows, _ in pieces for row in rows.tolist()}
    )
    return [
        pair
        for rows, partners in pieces
        for pair in zip(rows.tolist(), partners.tolist(), strict=True)
    ]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[str(kind) for kind, _ in KINDS])
def test_rows_with_equal_keys_match_and_null_matches_nothing(
    kind: pa.DataType, values: list[Any]
) -> None:
    target, source = [*values, *values], [*reversed(values), values[0]]
    assert found([pa.array(target, kind)], [pa.array(source, kind)]) == pairs([target], [source])


@given(st.data())
def test_keys_of_several_columns_match_like_row_by_row(data: st.DataObject) -> None:
    columns = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    sides = []
    for _ in range(2):
        count = data.draw(st.integers(0, 12))
        sides.append(
            [
                data.draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))
                for _, values in columns
            ]
        )
    kinds = [kind for kind, _ in columns]
    arrays = [
        [pa.array(values, kind) for values, kind in zip(side, kinds, strict=True)] for side in sides
    ]
    assert found(*arrays) == pairs(*sides)


def test_the_width_of_whole_numbers_does_not_matter() -> None:
    assert found([pa.array([3, 300], pa.int64())], [pa.array([3, None], pa.int8())]) == [(0, 0)]


def test_numbers_far_below_the_smallest_key_do_not_turn_into_keys() -> None:
    # HIGHEST + 1 above the lowest number is the start of the count.
    assert found([pa.array([LOWEST, LOWEST + 5])], [pa.array([HIGHEST - 5, HIGHEST])]) == []


def test_a_key_of_many_rows_returns_all_in_their_order() -> None:
    assert found([pa.array([9, 7, 9])], [pa.array([9, 9, 8, 9])]) == [
        (0, 0),
        (0, 1),
        (0, 3),
        (2, 0),
        (2, 1),
        (2, 3),
    ]


@pytest.fixture(params=["one hash for all", "two hashes"])
def bad_hash(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all hashes collide, or those of every other row."""
    count = 1 if request.param == "one hash for all" else 2

    def hashes(columns: list[pa.Array], rows: int) -> np.ndarray:
        return key_index_hashes(columns, rows) % np.uint64(count) << np.uint64(63)

    key_index_hashes = key_index.key_hashes
    monkeypatch.setattr(key_index, "key_hashes", hashes)


@pytest.mark.usefixtures("bad_hash")
@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[str(kind) for kind, _ in KINDS])
def test_rows_with_colliding_hashes_match_only_if_their_keys_are_equal(
    kind: pa.DataType, values: list[Any]
) -> None:
    target, source = [*values, *values], [*reversed(values), values[0]]
    ones = [1] * len(target), [1] * len(source)
    expected = pairs([target], [source])
    assert (
        found(
            [pa.array(target, kind), pa.array(ones[0])], [pa.array(source, kind), pa.array(ones[1])]
        )
        == expected
    )


@pytest.mark.parametrize("step", [1, 7, 1 << 40], ids=["close together", "apart", "far apart"])
@pytest.mark.parametrize(
    "outlier", [None, LOWEST, HIGHEST], ids=["even", "one far below", "one far above"]
)
def test_numbers_match_for_any_distribution(step: int, outlier: int | None) -> None:
    random = np.random.default_rng(5)
    numbers = random.permutation(4000)[:1000] * step
    source = np.append(numbers, [] if outlier is None else [outlier]).astype(np.int64)
    target = np.arange(-10, 4010) * step
    rows, partners = map(
        np.concatenate, zip(*KeyIndex([pa.array(source)]).matches([pa.array(target)]), strict=True)
    )
    assert (target[rows] == source[partners]).all()
    assert rows.tolist() == np.flatnonzero(np.isin(target, source)).tolist()


def test_many_texts_of_many_lengths_match_like_numbers() -> None:
    random = np.random.default_rng(6)
    source, target = random.integers(0, 1 << 20, 3000), random.integers(0, 1 << 20, 30000)
    texts = [
        pa.array([f"{number:x}" * (1 + number % 5) for number in side.tolist()])
        for side in (source, target)
    ]
    by_text, by_number = (
        [piece for index, page in ((KeyIndex([own]), asked),) for piece in index.matches([page])]
        for own, asked in ((texts[0], texts[1]), (pa.array(source), pa.array(target)))
    )
    assert [part.tolist() for part in by_text[0]] == [part.tolist() for part in by_number[0]]


def test_a_slice_of_a_column_is_read_from_its_own_beginning() -> None:
    numbers, texts = (
        pa.array([9, 9, 1, None, 2]),
        pa.array(["zz", "y", "customer-1", "x", "customer-2"]),
    )
    own = [numbers.slice(2), texts.slice(2)]
    assert found(own, own) == [(0, 0), (2, 2)]
    assert found([texts.slice(3)], [texts.slice(2)]) == [(0, 1), (1, 2)]


def test_an_index_without_rows_returns_no_pairs() -> None:
    for kind in (pa.int64(), pa.string(), pa.decimal128(10, 2)):
        empty, nulls = pa.array([], kind), pa.nulls(3, kind)
        for source in (empty, nulls):
            assert found([nulls], [source]) == found([empty], [source]) == []


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("count", [1 << 14, (1 << 14) + 1])
def test_the_index_needs_at_most_24_bytes_a_row_in_addition_to_the_keys(
    count: int, copies: int
) -> None:
    keys = pa.array([f"customer-{number // copies}" for number in range(count)])
    for column in (keys, pa.array(np.arange(count) // copies)):
        assert KeyIndex([column]).nbytes <= 24 * count + 64


@pytest.mark.parametrize("length", range(6, 26))
def test_texts_of_one_length_match_those_among_texts_of_many_lengths(length: int) -> None:
    alike = [f"{number:0{length}d}" for number in range(50)]
    for other in (None, "", "x", alike[0][:-1], alike[0] + "0"):
        target, source = [*alike, other], list(reversed(alike))
        assert found([pa.array(target)], [pa.array(source)]) == pairs([target], [source])
        assert found([pa.array(source)], [pa.array(target)]) == pairs([source], [target])


def test_all_pairs_of_a_row_by_several_key_sets_are_in_one_piece_and_unique() -> None:
    source = [pa.array(np.arange(40) % 4), pa.array(np.arange(40) % 5)]
    page = [pa.array(np.arange(200) % 8), pa.array(np.arange(200) % 7)]
    pieces = list(
        SetsIndex([[column] for column in source]).matches([[column] for column in page], most=50)
    )
    pairs = [
        (row, partner)
        for rows, partners in pieces
        for row, partner in zip(rows.tolist(), partners.tolist(), strict=True)
    ]
    numbers = [row for rows, _ in pieces for row in set(rows.tolist())]
    assert len(pieces) > 1
    assert len(numbers) == len(set(numbers))
    assert pairs == [
        (r, s) for r in range(200) for s in range(40) if r % 8 == s % 4 or r % 7 == s % 5
    ]


@pytest.mark.parametrize("length", [8, 9, 12, 16, 17, 36])
def test_texts_of_one_length_differ_by_any_byte(length: int) -> None:
    text = "a" * length
    others = [f"{text[:at]}b{text[at + 1 :]}" for at in range(length)]
    one, other = (equally_long_texts(pa.array(texts)) for texts in ([text] * length, others))
    assert one is not None
    assert other is not None
    assert not equal_texts(one, other).any()
    assert equal_texts(one, one).all()
    assert equal_texts(one[:0], other[:0]).tolist() == []


@pytest.mark.parametrize(
    "texts", [[], ["short", "texts"], ["12345678", None], ["12345678", "123456789"]]
)
def test_other_texts_are_compared_by_arrow(texts: list[str | None]) -> None:
    assert equally_long_texts(pa.array(texts, pa.string())) is None
