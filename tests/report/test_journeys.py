"""Every joined row's way can be followed, through the clauses that did not fire to the one that did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowmerge_nb.engine.result import Result
from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.report.html import render_html
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.text import render_text
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.trace.journeys import journeys_of
from tests.report.building import Setup, merge_trace
from tests.report.traces import updatable_trace


def test_every_joined_row_has_a_journey_in_the_order_of_the_source() -> None:
    trace = merge_trace(Setup())
    journeys = journeys_of(trace)
    assert journeys is not None
    assert len(journeys) == trace.joined
    assert [journey.source_row for journey in journeys] == sorted(journey.source_row or 0 for journey in journeys)


def test_clauses_before_the_one_that_fired_and_about_such_rows_were_not_true() -> None:
    trace = merge_trace(Setup())
    kinds = {clause.number: clause.matched for clause in trace.clauses}
    for journey in journeys_of(trace) or ():
        same = [n for n, matched in kinds.items() if n >= 0 and matched == (journey.join == "matched")]
        fired = [n for n in same if journey.case_number < 0 or n < journey.case_number]
        assert list(journey.passed) == fired
        assert (journey.target is None) == (journey.join == "not matched")


def test_a_row_becomes_what_the_processor_makes_of_its_operation() -> None:
    expected = {Operation.UPDATE: "DI", Operation.INSERT: "I", Operation.DELETE: "D", Operation.NONE: ""}
    for journey in journeys_of(merge_trace(Setup())) or ():
        assert journey.becomes == expected[journey.operation]
        assert len(journey.writers) == len(journey.becomes)


def test_the_report_shows_the_journeys_of_all_rows_and_those_of_some_to_those_who_ask() -> None:
    report = build_report(merge_trace(Setup()))
    assert "Row journeys" in render_text(report)
    some = replace(merge_trace(Setup()), joined=1000)
    assert "Row journeys" not in render_text(build_report(some))
    assert "of 1,000 joined rows" in render_text(build_report(some), show="journeys")
    text = render_text(report, show="journeys")
    assert "Row journeys: " in text
    assert any("matched" in line and "D + I" in line for line in text.splitlines())
    assert any("no clause fired" in line and "dropped" in line for line in text.splitlines()) or report.clauses is not None
    html = render_html(report, show="journeys")
    assert html.count('aria-label="Row journeys"') == 1


def test_the_frame_has_the_columns_in_the_order_of_the_way() -> None:
    frame = Result(merge_trace(Setup())).journeys()
    names = list(frame.columns)
    assert names[0] == "source_row"
    assert names.index("join") < names.index("case_number") < names.index("becomes") < names.index("writers")
    assert any(name.startswith("target.") for name in names)


def test_a_trace_without_rows_of_both_sides_says_what_to_do() -> None:
    trace = merge_trace(Setup())
    with pytest.raises(RowMergeError, match="trace='full'"):
        Result(replace(trace, pages=None)).journeys()


def test_rows_that_come_from_no_join_have_shorter_journeys() -> None:
    report = build_report(updatable_trace())
    lines = render_text(report, show="journeys").splitlines()
    at = lines.index("Row journeys: 2 rows")
    assert [line.split() for line in lines[at + 1 :]] == [
        ["row", "operation", "becomes", "split"],
        ["(Aaron,", "5,", "Antioch)", "UPDATE", "U", "0"],
        ["(Bill,", "7,", "Buena)", "UPDATE", "U", "0"],
    ]
    html = render_html(report, show="journeys")
    assert "that the WHERE condition chose" in html
    assert ">clause 0" not in html
