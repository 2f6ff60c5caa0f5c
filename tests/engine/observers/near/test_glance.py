"""A glance at keys finds everything that a report would name, and most keys that it skips are near to nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowmerge_nb.engine.observers.near import glance
from rowmerge_nb.engine.observers.near.glance import may_be_near
from rowmerge_nb.engine.observers.near.search import near_keys
from rowmerge_nb.report.words.near_sentences import is_likely_mistake
from rowmerge_nb.spi.types import BIGINT, VARCHAR, Type
from tests.engine.observers.near.test_search import sides

KEYS = st.one_of(
    st.none(),
    st.text(alphabet="aAbé\u0301 71.", max_size=6),
    st.sampled_from(["Dave", "Davé", "007", "7", " 7"]),
)
ROWS = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers(0, 2))), max_size=8)


def seen(source: list[Any], target: list[Any], *types: Type) -> bool:
    on, one, other = sides(source, target, *types)
    keys = set(target)
    matched = [
        row in keys and None not in (row if isinstance(row, tuple) else (row,)) for row in source
    ]
    return may_be_near(on, replace(one, matched=np.array(matched, np.bool_)), other)


@pytest.mark.parametrize(
    ("source", "target", "near"),
    [
        ("Dave ", "Dave", True),
        ("dave", "Dave", True),
        ("007", "7.0", True),
        ("Karol", "Carol", True),
        ("Carl", "Carol", True),
        (None, None, True),
        (None, "a", False),
        ("Dave", "Carol", False),
        ("Ted", "Ed", False),
        ("item-1001", "item-1002", False),
    ],
)
def test_differently_written_keys_are_seen(
    source: str | None, target: str | None, near: bool
) -> None:
    assert seen([source], [target]) is near


def test_nothing_is_near_if_both_sides_are_empty() -> None:
    assert not seen([], [])
    assert not seen(["Dave"], [])
    assert not seen([("Dave", 1)], [], VARCHAR, BIGINT)


def test_more_letters_than_a_glance_is_worth_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glance, "MOST_LETTERS", 7)
    assert seen(["Dave"], ["Carol"])


@pytest.mark.trial
@given(ROWS, ROWS)
def test_no_likely_mistake_is_overlooked(source: list[Any], target: list[Any]) -> None:
    on, one, other = sides(source, target, VARCHAR, BIGINT)
    found = near_keys(on, one, other).source
    assert found is not None
    if any(is_likely_mistake(row) for row in found.told):
        assert seen(source, target, VARCHAR, BIGINT)
