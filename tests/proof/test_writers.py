"""Processes that write side by side to one table of every store that processes share; threads: `tests/engine/statements/test_side_by_side.py`."""

from __future__ import annotations

import pytest

from proof.trials.points.stores import STORES
from tests.proof.points_support import points, skip_without_server

pytestmark = pytest.mark.slow


@pytest.fixture(params=[name for name, kind in STORES.items() if kind.survives])
def store(request: pytest.FixtureRequest) -> str:
    skip_without_server(request.param)
    return request.param


def test_processes_that_write_side_by_side_come_one_after_the_other(store: str) -> None:
    points("--stores", store, "--writers", "2", "--statements", "2")


@pytest.mark.long
def test_many_processes_that_write_side_by_side_come_one_after_the_other(store: str) -> None:
    points("--stores", store, "--writers", "4", "--statements", "10")
