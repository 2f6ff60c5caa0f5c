"""EXPLAIN of the current era shows the nodes of Trino 483 in their order, with their output columns."""

from __future__ import annotations

import pytest

from tests.plan.recorded import (
    DIFFERENCES,
    STATEMENTS,
    comparable,
    our_plan,
    recorded_engine,
    recorded_plan,
)


@pytest.fixture(scope="module")
def engine():
    with recorded_engine() as engine:
        yield engine


@pytest.mark.parametrize("statement", [name for name in STATEMENTS if name not in DIFFERENCES])
def test_the_plan_is_trinos(engine, statement):
    assert comparable(our_plan(engine, statement)) == comparable(recorded_plan(statement))


@pytest.mark.parametrize("statement", DIFFERENCES)
def test_a_documented_difference_exists(engine, statement):
    assert comparable(our_plan(engine, statement)) != comparable(recorded_plan(statement))


def test_the_merge_row_of_a_not_null_column_shows_its_check(engine):
    text = str(engine.explain(STATEMENTS["merge-not-null-column"]["sql"], kind="LOGICAL"))
    assert "COALESCE(s.nm, fail('NULL value not allowed for NOT NULL column: name'))" in text
    assert "ELSE NULL END" in text
    assert "target: target_strict" in text
