"""Every joined row's path can be followed, through the clauses that did not fire to the one that did."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.report.html import render_html
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.plain_text import render_text
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.trace.clause_record import Term
from rowmerge_nb.trace.journeys import journeys_of
from rowmerge_nb.trace.near import KeyDifference, NearKeys, NearRow, NearSide, NearTerm, Separation
from rowmerge_nb.trace.page_samples import AskedRows
from tests.report.building import ROWS, Joined, Setup, merge_trace
from tests.report.traces import updatable_trace
from tests.trace.parts import with_parts


def test_every_joined_row_has_a_journey_in_the_order_of_the_source() -> None:
    trace = merge_trace(Setup())
    journeys = journeys_of(trace)
    assert journeys is not None
    assert len(journeys) == trace.join.rows
    assert [journey.source_row for journey in journeys] == sorted(
        journey.source_row or 0 for journey in journeys
    )


def test_clauses_before_the_one_that_fired_and_about_such_rows_were_not_true() -> None:
    trace = merge_trace(Setup())
    kinds = {clause.number: clause.matched for clause in trace.clauses}
    for journey in journeys_of(trace) or ():
        same = [
            n for n, matched in kinds.items() if n >= 0 and matched == (journey.join == "matched")
        ]
        fired = [n for n in same if journey.case_number < 0 or n < journey.case_number]
        assert list(journey.passed) == fired
        assert (journey.target is None) == (journey.join == "not matched")


def test_the_outcome_of_a_row_follows_the_processor() -> None:
    expected = {
        Operation.UPDATE: "DI",
        Operation.INSERT: "I",
        Operation.DELETE: "D",
        Operation.NONE: "",
    }
    for journey in journeys_of(merge_trace(Setup())) or ():
        assert journey.becomes == expected[journey.operation]
        assert len(journey.writers) == len(journey.becomes)


def test_the_report_shows_the_journeys_of_all_rows_and_those_of_some_to_those_who_ask() -> None:
    report = build_report(merge_trace(Setup()))
    assert "Row journeys" in render_text(report)
    some = with_parts(merge_trace(Setup()), join={"rows": 1000})
    assert (
        "Row journeys are not shown for this many rows; `--show journeys` shows the first ones."
        in render_text(build_report(some))
    )
    assert "Row journeys: " not in render_text(build_report(some))
    assert "of 1,000 joined rows" in render_text(build_report(some), show="journeys")
    text = render_text(report, show="journeys")
    assert "Row journeys: " in text
    assert any("matched" in line and "D + I" in line for line in text.splitlines())
    assert (
        any("no clause fired" in line and "no change" in line for line in text.splitlines())
        or report.clauses is not None
    )
    html = render_html(report, show="journeys")
    assert html.count('aria-label="Row journeys"') == 1


def test_the_frame_has_the_columns_in_the_order_of_the_way() -> None:
    frame = Result(merge_trace(Setup())).journeys()
    names = list(frame.columns)
    assert names[0] == "source_row"
    assert (
        names.index("join")
        < names.index("case_number")
        < names.index("becomes")
        < names.index("writers")
    )
    assert any(name.startswith("target.") for name in names)


def test_a_trace_without_rows_of_both_sides_names_the_remedy() -> None:
    trace = merge_trace(Setup())
    with pytest.raises(RowMergeError, match="trace='full'"):
        Result(with_parts(trace, samples={"pages": None})).journeys()


def test_rows_without_a_join_have_shorter_journeys() -> None:
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


def test_untouched_target_rows_are_under_the_journeys_with_their_values() -> None:
    rows = pa.RecordBatch.from_pydict(
        {"customer": ["Zoe ", None], "purchases": [1, 2], "address": ["<b>", None]}
    )
    trace = with_parts(
        merge_trace(Setup()), samples={"untouched_rows": rows}, target={"rows_before": 5 + 40}
    )
    text = render_text(build_report(trace), show="journeys")
    assert "target rows untouched, since no source row matches them, the first 2:" in text
    assert "  (Zoe\N{OPEN BOX}, 1, <b>)" in text
    assert "  (NULL, 2, NULL)" in text
    html = render_html(build_report(trace), show="journeys")
    assert "<li>(Zoe\N{OPEN BOX}, 1, &lt;b&gt;)</li><li>(NULL, 2, NULL)</li>" in html


def test_existing_marks_are_explained() -> None:
    marks = build_report(merge_trace()).journeys
    assert marks is not None
    assert marks.marks == (
        "D = a DELETE fires, U = an UPDATE fires, I = an INSERT fires, x = not true, – = is about other rows, blank = not reached"
    )


EQUAL = Term(
    "t.customer = s.customer", reads=(("source", "customer"), ("target", "customer")), strict=True
)
NAMELESS = Joined((None, 2, "Nowhere"), 3, (None, 2, "Nowhere"), writers=(0,))
BARRED = "t.customer = s.customer is unknown for every row of the target, since s.customer is NULL"


@pytest.mark.parametrize(
    ("on", "said"),
    [
        (EQUAL, BARRED),
        (
            Term(
                "ON",
                "AND",
                (Term("t.purchases > 1", reads=(("target", "purchases"),), strict=True), EQUAL),
            ),
            BARRED,
        ),
        (Term("ON", "OR", (EQUAL, Term("t.purchases > 1"))), "ON is true for no row of the target"),
        (replace(EQUAL, strict=False), "ON is true for no row of the target"),
        (None, "ON is true for no row of the target"),
    ],
)
def test_a_null_that_prevents_a_match_of_a_source_row_is_named(on: Term | None, said: str) -> None:
    journeys = build_report(merge_trace(Setup(rows=(*ROWS, NAMELESS)), join={"on": on})).journeys
    assert journeys is not None
    row = journeys.rows[-1]
    assert row.reasons[0] == f"It has no partner: {said}."
    assert row.gist.startswith("It has no partner: ") == (said == BARRED)
    assert row.by_null == (said == BARRED)
    assert "Source row 3 (Ed" not in "".join(one.which for one in journeys.rows if one.by_null)


def test_near_keys_of_an_unmatched_row_are_among_its_reasons() -> None:
    found = NearRow(3, {}, ("Ed",), ("ed",), (Separation(0, (KeyDifference.CASE,)),), alike=1)
    near = NearKeys((NearTerm("t.customer = s.customer"),), NearSide(7, 3, (found,)))
    report = build_report(with_parts(merge_trace(), samples={"near_misses": near}))
    assert report.journeys is not None
    assert (
        report.journeys.rows[3].sentences[1]
        == "Source row 3 ('Ed') would match target row 'ed' in the same case."
    )
    html = unescape(render_html(report, show="journeys"))
    assert html.count("<div>Source row 3 ('Ed') would match target row") == 1
    assert html.count("<b>Near miss.</b>") == 1, "a choice of parts does not hide it"


def test_reasons_follow_the_order_of_the_clauses_including_those_about_other_rows() -> None:
    report = build_report(merge_trace())
    assert report.journeys is not None
    for row in report.journeys.rows:
        numbers = [
            int(found) for said in row.sentences for found in re.findall(r"^Clauses? (\d+)", said)
        ]
        assert numbers == sorted(numbers)
        assert len(numbers) > 1


def test_the_summary_of_a_row_is_not_repeated_in_its_details() -> None:
    html = render_html(build_report(merge_trace()), show="journeys").split("rm-rich")[-1]
    assert html.count(">Clause 0 fires: ") == 1


@pytest.mark.parametrize(
    ("change", "parts", "said"),
    [
        (
            {"samples": {"pages": None}},
            None,
            "Row journeys are not shown: the trace of a large statement lacks the values of both",
        ),
        (
            {"samples": {"pages": None}, "settings": {"trace_level": "off"}},
            None,
            "Row journeys are not shown: the trace has counts only;",
        ),
        (
            {"samples": {"pages": None}, "join": {"rows": 0}},
            "journeys",
            "Row journeys are not shown: there were no rows to process.",
        ),
        (
            {"samples": {"near_misses": None}, "join": {"unmatched_rows": 0}},
            "near",
            "The nearest keys are not shown: every source row has a partner.",
        ),
        (
            {"samples": {"near_misses": None}, "join": {"unmatched_rows": 2}},
            "near",
            "The nearest keys are not shown: they were not searched; `--near` does.",
        ),
        (
            {"samples": {"near_misses": NearKeys(problem="ON has a subquery.")}},
            "near",
            "The nearest keys are not shown: ON has a subquery.",
        ),
        (
            {"kind": "SELECT"},
            "near,near,diff",
            "The nearest keys are not shown: they are about MERGE, UPDATE and DELETE.",
        ),
        (
            {"kind": "UPDATE", "join": {"multiple_matches": None}},
            "verdicts",
            "The verdicts of other engines are not shown: a UPDATE has",
        ),
        (
            {"samples": {"pages": None}, "state": "planned"},
            "diff",
            "Changed rows are not shown: nothing was run.",
        ),
        (
            {"samples": {"pages": None}, "state": "failed"},
            "diff",
            "Changed rows are not shown: the statement failed.",
        ),
    ],
)
def test_a_missing_part_names_the_reason_and_the_remedy(
    change: dict[str, Any], parts: str | None, said: str
) -> None:
    report = build_report(with_parts(merge_trace(Setup()), **change))
    assert " ".join(render_text(report, show=parts).split()).count(said) == 1
    assert said.partition("`")[0] in unescape(
        render_html(report, show=parts).partition("rm-rich")[2]
    )


def test_presets_do_not_mention_missing_parts() -> None:
    report = build_report(with_parts(merge_trace(Setup()), samples={"pages": None}))
    assert "not shown" not in render_text(report, show="learn")


def test_requested_rows_are_shown_with_all_their_reasons() -> None:
    whole = merge_trace(Setup())
    asked = AskedRows("t.id = 3", replace(whole.samples.pages, complete=False), more=True)
    trace = with_parts(whole, samples={"pages": None, "requested_rows": asked}, join={"rows": 1000})
    text = render_text(build_report(trace))
    assert "of 1,000 joined rows, asked for by t.id = 3" in text
    assert "There are more such rows than are shown." in text
    assert "\nSource row 0 " in text
    save = Result(trace).why(0)
    assert save[0].source_row == 0
    nothing = render_text(
        build_report(with_parts(trace, samples={"requested_rows": AskedRows("t.id = 9")}))
    )
    assert "No row is like this." in nothing
    assert "It broke." in render_text(
        build_report(
            with_parts(
                trace, samples={"requested_rows": AskedRows("t.id = 9", problem="It broke.")}
            )
        )
    )


def test_a_row_without_a_partner_because_of_a_null_opens_to_its_condition() -> None:
    report = build_report(merge_trace())
    assert report.journeys is not None
    assert all(row.opened for row in report.journeys.rows)
    assert any(
        "are about other rows, not about those that are not matched." in said
        for row in report.journeys.rows
        for said in row.opened
    )
    assert report.journeys.clauses == (0, 1, 2, 3)
    assert report.journeys.source_columns == "(customer, purchases, address)"
