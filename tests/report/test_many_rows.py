"""Drawing a trace with many rows costs as much as one with few, and counts are exact."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.report.explorer.explorer_state import MOST_ROWS, explorer_state
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.trace.journeys import journeys_of
from rowmerge_nb.trace.samples import (
    count_row_ids,
    first_of_each,
    row_id_codes,
    rows_of,
    source_order,
)
from tests.report.building import ROWS, Setup, merge_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rowmerge_nb.trace.trace import Trace

FEW, MANY = 300, 3_000


@cache
def full_trace(copies: int) -> Trace:
    """Return the trace of a MERGE with the usual joined rows repeated, each time with other target rows."""
    rows = [
        replace(row, row_id=None if row.row_id is None else row.row_id + 10 * copy)
        for copy in range(copies)
        for row in ROWS
    ]
    return merge_trace(Setup(rows=rows, rows_before=copies * 5))


def calls_of(action: Callable[[], object]) -> int:
    """Return the number of calls of Python functions and of C functions in an action."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.not_quick
@pytest.mark.parametrize("form", ["report", "explorer", "file", "why"])
def test_ten_times_as_many_rows_are_drawn_by_as_many_calls(form: str, tmp_path: Path) -> None:
    forms: dict[str, Callable[[Trace], object]] = {
        "report": lambda trace: Result(trace)._repr_mimebundle_(),
        "explorer": explorer_state,
        "file": lambda trace: Result(trace).save_html(tmp_path / "explorer.html"),
        "why": lambda trace: Result(trace).why(5)._repr_mimebundle_(),
    }
    draw = forms[form]
    few, many = full_trace(FEW), full_trace(MANY)
    draw(few)
    # Wider numbers take some more letters, and so some more calls.
    assert calls_of(lambda: draw(many)) < 1.1 * calls_of(lambda: draw(few)) + 200


def test_a_row_of_many_is_looked_up_by_a_value_of_one_column_without_other_journeys() -> None:
    trace = full_trace(FEW)

    def look_up() -> None:
        with pytest.raises(RowMergeError, match="customer = 'Zoe'"):
            Result(trace).why(customer="Zoe")

    unlike = calls_of(look_up)
    # Two values a row, one of either side, are compared twice: unchanged, and without trailing blanks.
    assert unlike < 6 * 2 * 2 * len(ROWS) * FEW
    assert len(Result(trace).why(customer="Gus")) == FEW


def test_every_row_of_many_is_found_by_its_number() -> None:
    trace = full_trace(FEW)
    last = len(ROWS) * FEW - 1
    (journey,) = Result(trace).why(last)
    assert (journey.source_row, journey.page_row) == (last, last)
    assert [journey] == [one for one in journeys_of(trace) or () if one.source_row == last]


def test_a_report_of_many_rows_shows_the_total_and_the_number_shown() -> None:
    trace = full_trace(MANY)
    report = build_report(trace)
    assert report.diff is not None
    assert report.pages is not None
    assert report.journeys is not None
    assert report.diff.summary.startswith("first 30 of 18,000 rows changed")
    assert report.pages.sample.startswith("30 of 21,000 rows")
    assert report.journeys.summary == "30 of 21,000 joined rows"
    assert [len(report.diff.rows), len(report.pages.rows), len(report.journeys.rows)] == [
        30,
        30,
        30,
    ]
    state = explorer_state(trace)
    assert len(state["rows"]) == len(state["before"]["rows"]) == MOST_ROWS
    assert state["sample"].startswith("30 of 21,000 rows")


def test_counts_of_many_rows_are_those_of_all_of_them() -> None:
    trace = full_trace(MANY)
    pages = trace.samples.pages
    assert pages is not None
    apart = sum(
        len(set(journey.writers)) == 2
        for journey in journeys_of(trace) or ()
        if len(journey.writers) == 2
    )
    report = build_report(trace)
    assert report.pages is not None
    assert f"Here {apart:,} of 9,000 UPDATEs sent" in " ".join(report.pages.remarks)
    assert count_row_ids(pages) == 4 * MANY
    assert explorer_state(trace)["untouched"] == MANY
    assert report.diff is not None
    # Three of the five rows of each copy are updated and one is deleted.
    assert report.diff.untouched == MANY


def test_rows_of_a_sample_keep_their_outcome_and_their_writers() -> None:
    pages = full_trace(2).samples.pages
    assert pages is not None
    assert pages.placement is not None
    order = np.array([9, 1, 7])
    taken = rows_of(pages, order)
    starts = np.cumsum(pages.produced) - pages.produced
    after = [at for row in order for at in range(starts[row], starts[row] + pages.produced[row])]
    assert taken.before.equals(pages.before.take(pa.array(order)))
    assert taken.after.equals(pages.after.take(pa.array(after)))
    assert taken.writers == tuple(pages.writers[at] for at in after)
    assert taken.placement is not None
    assert taken.placement.chosen == tuple(pages.placement.chosen[at] for at in after)


def test_rows_without_a_source_row_are_last() -> None:
    pages = full_trace(1).samples.pages
    assert pages is not None
    assert pages.witness is not None
    numbers = pa.array([3, None, 0, 3, None, 1, 2], pa.int64())
    at = pages.witness.schema.get_field_index("source_row")
    witness = pages.witness.set_column(at, "source_row", numbers)
    assert source_order(replace(pages, witness=witness)).tolist() == [2, 5, 6, 0, 3, 1, 4]


def test_every_clause_is_among_the_rows_that_are_drawn() -> None:
    assert first_of_each(np.array([4] * 90 + [-1, 0, 4]), 5).tolist() == [0, 1, 2, 90, 91]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([5, 7, None, 5]),
        pa.array(["a", "", None, "a"]),
        pa.array([{"file": 1, "at": None}, {"file": 1, "at": 0}, None, {"file": 1, "at": None}]),
        pa.array(
            [{"a": {"b": "x"}, "c": 1}, {"a": {"b": "y"}, "c": 1}, None, {"a": {"b": "x"}, "c": 1}]
        ),
        pa.array([[1, 2], [1], None, [1, 2]]),
        pa.array([b"\x00", b"", None, b"\x00"], pa.binary()),
    ],
    ids=["numbers", "texts", "rows", "rows in rows", "arrays", "bytes"],
)
def test_equal_row_ids_have_one_code_for_any_type(ids: pa.Array) -> None:
    codes = row_id_codes(ids).tolist()
    assert codes[0] == codes[3]
    assert codes[2] == -1
    assert len({codes[0], codes[1], codes[2]}) == 3
