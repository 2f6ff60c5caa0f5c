"""A fault at some operations of a MERGE on every store, always the same ones; ``--long`` and `scripts/kill-trials --every-point`: at all of them."""

from __future__ import annotations

import pytest

from proof.trials.points.stores import STORES
from tests.proof.points_support import points, skip_without_server

pytestmark = pytest.mark.slow

SAMPLES = {"memory": 15, "hive": 30, "iceberg": 25, "sqlite": 30, "postgresql": 6}
"""How many faults are tried by default; those of PostgreSQL take seconds, since its driver connects slowly."""


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    skip_without_server(request.param)
    return request.param


def test_the_samples_cover_every_store() -> None:
    assert list(SAMPLES) == list(STORES)


def test_after_a_fault_at_some_points_the_rows_are_those_of_before_or_after_and_what_is_said_is_true(store: str) -> None:
    told = points("--stores", store, "--sample", str(SAMPLES[store]))
    assert f"| {SAMPLES[store]} |" in told


def test_an_interrupt_at_some_lines_from_the_finish_call_on_is_told_as_what_it_was() -> None:
    points("--stores", "hive", "--lines", "--sample", "12")


@pytest.mark.long
def test_an_interrupt_at_any_line_from_the_finish_call_on_is_told_as_what_it_was(store: str) -> None:
    points("--stores", store, "--lines", "--sample", "700")


@pytest.mark.long
def test_after_a_fault_at_any_point_the_rows_are_those_of_before_or_after_and_what_is_said_is_true(store: str) -> None:
    points("--stores", store)
