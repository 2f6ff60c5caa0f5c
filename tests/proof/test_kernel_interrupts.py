"""Interrupted cells of a real kernel report the content of the store."""

from __future__ import annotations

import sys

import pytest

from proof.trials.driver import StoreLocation
from proof.trials.kernel_interrupts import STORES, Reply, Tally, interrupt_cells, named_statements
from proof.trials.kills import places
from rowmerge_nb.base.errors import SetupError

THERE = (
    "USER_CANCELED: The interrupt came while the change was being committed; the change"
    " was committed"
)


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        (Reply("ok"), sys.maxsize),
        (Reply("error", "StatementInterrupted", THERE), 1),
        (
            Reply(
                "error",
                "StatementInterrupted",
                f"{THERE}. Statements 1 to 2 of this cell ran and stay.",
            ),
            2,
        ),
        (Reply("error", "StatementInterrupted", "USER_CANCELED: The statement was interrupted"), 0),
        (
            Reply(
                "error",
                "StatementInterrupted",
                "USER_CANCELED: The outcome is unknown: the wait was ended",
            ),
            None,
        ),
        (Reply("error", "KeyboardInterrupt"), 0),
    ],
)
def test_the_outcome_of_a_cell_is_read_from_its_error(reply: Reply, named: int | None) -> None:
    assert named_statements(reply) == named


@pytest.mark.parametrize(
    ("reply", "there", "is_true"),
    [
        (Reply("ok"), 1, True),
        (Reply("ok"), 0, False),
        (Reply("error", "StatementInterrupted", THERE), 1, True),
        (Reply("error", "StatementInterrupted", THERE), 0, False),
        (Reply("error", "KeyboardInterrupt"), 0, True),
        (Reply("error", "KeyboardInterrupt"), 1, False),
        (Reply("none"), 0, False),
    ],
)
def test_a_cell_that_contradicts_the_store_is_a_problem(
    reply: Reply, there: int, is_true: bool
) -> None:
    tally = Tally("memory")
    tally.note("a trial", reply, 1, there)
    assert (tally.problems == []) is is_true


@pytest.mark.trial
@pytest.mark.spark
def test_interrupted_cells_report_what_is_in_memory() -> None:
    tally = interrupt_cells(StoreLocation("memory", ""), 6, seed=1)
    assert (tally.problems, tally.trials) == ([], 6)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("store", [store for store in STORES if store != "memory"])
def test_interrupted_cells_report_what_is_in_a_store(store: str) -> None:
    try:
        with places(store) as place:
            tally = interrupt_cells(place, 25, seed=2)
    except SetupError as error:
        pytest.skip(str(error))
    assert (tally.problems, tally.trials) == ([], 25)
