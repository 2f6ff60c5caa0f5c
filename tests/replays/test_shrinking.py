"""A failing replay is shrunk to the fewest rows, pages and columns that still fail in the same way."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowmerge_nb import MemoryConnector, RowMergeError, replay
from rowmerge_nb.replays import case, shrink
from rowmerge_nb.replays.shrinking import fewest
from tests.replays.shop import FixedShop, Shop

MANY = 10_000


def many(seven: int = 7_777) -> Any:
    """Return a record of 10,000 updates in five pages; one of them makes a price 7."""
    changes = [("UPDATE", i, (i, f"name {i}", 7.0 if i == seven else i + 0.5)) for i in range(MANY)]
    pages = [(0, changes[at : at + 2_000]) for at in range(0, MANY, 2_000)]
    rows = [(i, "old", 1.5) for i in range(MANY)]
    return case(
        columns={"id": "bigint", "name": "varchar", "price": "double"}, rows=rows, pages=pages
    )


def sizes(record: Any) -> tuple[int, int, int, int]:
    return len(record.pages), record.page_rows, record.rows.num_rows, len(record.columns)


@given(wanted=st.sets(st.integers(0, 199), max_size=4), count=st.integers(200, 300))
def test_the_wanted_items_remain_for_any_choice(wanted: set[int], count: int) -> None:
    assert (
        set(fewest(np.arange(count), lambda some: wanted <= set(some.tolist())).tolist()) == wanted
    )


def test_ten_thousand_rows_of_which_one_raises_become_one_in_seconds() -> None:
    done = replay(many(), partial(Shop, "price 7 is refused"))
    started = time.monotonic()
    small = done.shrink()
    assert time.monotonic() - started < 30
    assert sizes(small.record) == (1, 1, 1, 1)
    assert (small.step, str(small.error)) == ("store_merged_rows", "no price is 7")
    assert small.notices[-1].startswith(
        "Shrunk from 10,000 rows in 5 pages, 10,000 rows of the target and 3 columns to 1 row in 1 page, 1 row of the target and 1 column"
    )


def test_a_minimal_replay_is_reported_as_such() -> None:
    small = replay(many(), partial(Shop, "price 7 is refused")).shrink()
    assert (
        small.shrink()
        .notices[-1]
        .startswith(
            "Nothing smaller fails in the same way: 1 row in 1 page, 1 row of the target and 1 column, in"
        )
    )


def test_ten_thousand_rows_of_which_one_is_stored_wrongly_become_one() -> None:
    small = shrink(many(), partial(Shop, "new rows of updates twice"))
    assert sizes(small.record) == (1, 1, 1, 1)
    assert small.extra is not None
    assert small.extra.num_rows == 1


def test_pages_stay_if_two_of_them_are_necessary() -> None:
    small = shrink(many(), partial(Shop, "last page lost"))
    assert (len(small.record.pages), small.record.page_rows) == (1, 1)
    assert small.missing is not None


def test_relevant_values_stay_and_others_are_simplified() -> None:
    record = case(
        columns={"id": "bigint", "name": "varchar", "day": "date", "price": "double"},
        rows=[(812, "Müller", None, 1.0)],
        pages=[
            (
                3,
                [
                    ("UPDATE", 0, (812, "Meyer", None, 2.0)),
                    ("INSERT", None, (44_101, "Schmidt", None, 7.25)),
                ],
            )
        ],
    )
    small = shrink(record, partial(Shop, "prices are cut"))
    assert sizes(small.record) == (1, 1, 0, 1)
    assert small.record.pages[0].page.column(0).to_pylist() == [7.25]


def test_a_connector_that_creates_no_tables_keeps_its_columns() -> None:
    record = case(
        table="default.prices",
        columns={"id": "bigint", "price": "double"},
        rows=[(i, 1.0) for i in range(50)],
        pages=[(0, [("UPDATE", i, (i, 7.0 if i == 33 else 2.0)) for i in range(50)])],
    )
    small = shrink(record, partial(FixedShop, "price 7 is refused"))
    assert (small.record.page_rows, len(small.record.columns)) == (1, 2)


def test_a_replay_that_does_not_fail_is_not_shrunk() -> None:
    with pytest.raises(
        RowMergeError, match="does not fail, so there is nothing to shrink"
    ) as caught:
        shrink(many(), MemoryConnector)
    assert caught.value.code == "NOT_SUPPORTED"


def test_the_best_result_so_far_is_returned_with_a_notice_when_time_is_up() -> None:
    small = shrink(many(), partial(Shop, "price 7 is refused"), seconds=1e-9)
    assert small.failed
    assert small.notices[-1].endswith("in 0 replays; it was not finished after 1e-09 seconds")


def test_seconds_must_be_a_number() -> None:
    done = replay(many(), partial(Shop, "price 7 is refused"))
    with pytest.raises(RowMergeError, match="seconds = 0 is not possible"):
        done.shrink(0)


def test_another_error_in_another_line_is_not_the_same_failure() -> None:
    # The first row alone raises an error in another line: shrinking must not end there.
    record = case(
        columns={"id": "bigint", "price": "double"},
        rows=[],
        pages=[(0, [("INSERT", None, (i, 7.0 if i == 5 else 1.0)) for i in range(9)])],
    )
    small = shrink(record, partial(Shop, "price 7 is refused, and so are pages of one row"))
    assert small.record.page_rows == 2
    assert str(small.error) == "no price is 7"
