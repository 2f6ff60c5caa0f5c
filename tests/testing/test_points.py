"""A fault at some operations of a MERGE on every store, always the same ones; ``--long`` and `scripts/kill-trials --every-point`: at all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rowmerge_nb.testing.points.stores import STORES
from rowmerge_nb.testing.postgresql import find_server

SAMPLES = {"memory": 20, "hive": 45, "iceberg": 35, "sqlite": 45, "postgresql": 8}
"""How many faults are tried by default; those of PostgreSQL take seconds, since its driver connects slowly."""


def points(*arguments: str) -> str:
    """Run trials in a process without threads, from which others can be forked."""
    command = [sys.executable, "-m", "rowmerge_nb.testing.points", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    if request.param == "postgresql":
        find_server()
    return request.param


def test_the_samples_cover_every_store() -> None:
    assert list(SAMPLES) == list(STORES)


def test_after_a_fault_at_some_points_the_rows_are_those_of_before_or_after_and_what_is_said_is_true(store: str) -> None:
    told = points("--stores", store, "--sample", str(SAMPLES[store]))
    assert f"| {SAMPLES[store]} |" in told


@pytest.mark.long
def test_after_a_fault_at_any_point_the_rows_are_those_of_before_or_after_and_what_is_said_is_true(store: str) -> None:
    points("--stores", store)


def test_processes_that_write_side_by_side_come_one_after_the_other(store: str) -> None:
    points("--stores", store, "--writers", "2", "--statements", "2")


@pytest.mark.long
def test_many_processes_that_write_side_by_side_come_one_after_the_other(store: str) -> None:
    points("--stores", store, "--writers", "4", "--statements", "10")
