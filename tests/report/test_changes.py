"""The changed rows and the unchanged ones: together, the table as committed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb.report.html import render_html
from rowmerge_nb.report.model.changed_rows import Diff
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.plain_text import render_text
from rowmerge_nb.trace.clause_record import Term
from rowmerge_nb.trace.trace import Trace
from tests.report.building import ROWS, Joined, Setup, merge_trace
from tests.trace.parts import with_parts

DAVE = Joined(("Dave", 1, "Devon"), -1, None, ("Dave", 11, "Devon"), 3)
IDLE = Setup(rows=(*ROWS, DAVE), rows_before=7)


def untouched(*rows: tuple[Any, ...]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        dict(
            zip(
                ["customer", "purchases", "address"],
                map(list, zip(*rows, strict=True)),
                strict=True,
            )
        )
    )


def diff_of(trace: Trace) -> Diff:
    diff = build_report(trace).diff
    assert diff is not None
    return diff


def test_unchanged_rows_follow_the_changed_ones_with_matched_rows_first() -> None:
    trace = with_parts(
        merge_trace(IDLE),
        samples={"untouched_rows": untouched(("Hal ", 3, "Hull"), ("Ida", None, "Hull"))},
    )
    diff = diff_of(trace)
    assert [([cell.text for cell in row.cells], row.source) for row in diff.same] == [
        (["Dave", "11", "Devon"], "7"),
        (["Hal\N{OPEN BOX}", "3", "Hull"], ""),
        (["Ida", "NULL", "Hull"], ""),
    ]
    assert (
        diff.summary
        == "6 rows changed; 3 target rows unchanged: 2 without a partner, 1 for which no clause fired"
    )
    assert (
        diff.sizes
        == "7 rows before: 3 unchanged + 3 updated + 1 deleted. 8 rows after: 3 unchanged + 3 updated + 2 inserted."
    )
    text = render_text(build_report(trace), show="diff,journeys")
    assert "=  Hal\N{OPEN BOX}" in text
    assert text.endswith("2 target rows untouched, since no source row matches them.")
    fewer = with_parts(
        trace, samples={"untouched_rows": untouched(("Hal ", 3, "Hull"))}, target={"rows_before": 6}
    )
    one = render_text(build_report(fewer), show="journeys")
    assert "1 target row untouched, since no source row matches it:" in one
    html = render_html(build_report(trace))
    changed, after = html.split('aria-label="The table after"')
    assert changed.count('<tr class="rm-mut"><td class="rm-m">=</td>') == 3
    assert after.count('<tr class="rm-mut"><td class="rm-m">=</td>') == 3
    assert "<li>" not in html


def test_all_rows_left_by_the_statement_are_shown_for_a_small_table() -> None:
    trace = with_parts(
        merge_trace(IDLE),
        samples={"untouched_rows": untouched(("Hal", 3, "Hull"), ("Ida", None, "Hull"))},
        target={"version_before": 4, "version_after": 5},
    )
    left = diff_of(trace).result_rows
    assert [(row.sign, row.cells[0][0].text) for row in left] == [
        *zip("~~++~", ("Aaron", "Carol", "Ed", "Gus", "Joe Shmoe"), strict=True),
        *(("=", name) for name in ("Dave", "Hal", "Ida")),
    ]
    assert [(value.text, new) for value, new in left[0].cells] == [
        ("Aaron", False),
        ("11", True),
        ("Arches", True),
    ]
    said = "accounts after the commit: 8 rows, version 5; before it was version 4."
    assert diff_of(trace).result_note == said
    assert said in render_html(build_report(trace))
    rehearsed = with_parts(trace, committed=False, target={"version_after": None})
    assert diff_of(rehearsed).result_note == "accounts as it would be: 8 rows."


@pytest.mark.parametrize(
    ("reads", "name", "said"),
    [
        (
            (("source", "customer"), ("target", "customer")),
            "Ed",
            " 2 rows have customer Ed now, 1 of them inserted.",
        ),
        ((("source", "customer"), ("target", "customer")), "Hal", ""),
        ((("target", "customer"), ("target", "address")), "Ed", ""),
        ((("source", "customer"),), "Ed", ""),
    ],
)
def test_an_inserted_row_whose_key_already_existed_is_named(
    reads: tuple[tuple[str, str], ...], name: str, said: str
) -> None:
    on = Term("ON", "AND", (Term("t.customer = s.customer", reads=reads),))
    trace = with_parts(
        merge_trace(IDLE),
        samples={"untouched_rows": untouched((name, 3, "Hull"), ("Hal", None, "Hull"))},
        join={"on": on},
    )
    assert diff_of(trace).result_note == f"accounts after the commit: 8 rows.{said}"


def test_the_table_is_not_shown_if_some_rows_are_unknown() -> None:
    trace = with_parts(
        merge_trace(IDLE),
        samples={"untouched_rows": untouched(("Hal", 3, "Hull"), ("Ida", None, "Hull"))},
    )
    assert diff_of(trace).result_rows
    assert not diff_of(with_parts(trace, samples={"untouched_rows": None})).result_rows
    assert not diff_of(with_parts(trace, target={"rows_after": 9})).result_rows
    assert not diff_of(with_parts(trace, target={"rows_before": 6})).result_rows
    many = with_parts(
        merge_trace(Setup(rows_before=21)),
        samples={"untouched_rows": untouched(*((f"row {n}", n, "x") for n in range(17)))},
    )
    assert not diff_of(many).result_rows
    nothing = with_parts(
        merge_trace(Setup(rows=(DAVE,), rows_before=2)),
        samples={"untouched_rows": untouched(("Hal", 3, "Hull"))},
        target={"rows_after": 2},
    )
    assert [row.cells[0].text for row in diff_of(nothing).same] == ["Dave", "Hal"]
    assert not diff_of(nothing).result_rows


def test_a_target_row_that_another_source_row_changes_is_not_among_them() -> None:
    second = Joined(("Aaron", 0, "Arches"), -1, None, ("Aaron", 5, "Antioch"), 0)
    trace = with_parts(
        merge_trace(Setup(rows=(*ROWS, second))),
        samples={"untouched_rows": untouched(("Dave", 11, "Devon"))},
    )
    assert [row.cells[0].text for row in diff_of(trace).same] == ["Dave"]
    assert diff_of(trace).summary == "6 rows changed; 1 target row unchanged"


def test_a_target_row_that_two_clauses_change_is_one_row() -> None:
    aaron = next(row for row in ROWS if row.source is not None and row.source[0] == "Aaron")
    trace = with_parts(
        merge_trace(Setup(rows=(*ROWS, aaron))),
        samples={"untouched_rows": untouched(("Dave", 11, "Devon"))},
        target={"rows_after": 7},
    )
    assert diff_of(trace).summary == "7 rows changed; 1 target row unchanged"
    assert [row.sign for row in diff_of(trace).result_rows] == ["~", "~", "+", "+", "~", "~", "="]
    assert diff_of(trace).sizes == ""


def test_the_first_of_many_unchanged_rows_are_shown() -> None:
    trace = with_parts(
        merge_trace(Setup(rows_before=54)),
        samples={"untouched_rows": untouched(*((f"row {n}", n, "x") for n in range(30)))},
    )
    assert len(diff_of(trace).same) == 30
    assert diff_of(trace).sizes.endswith("Of the unchanged rows, the first 30 are shown.")


@pytest.mark.parametrize("rows", [None, untouched(("Dave", 11, "Devon"))])
def test_no_unchanged_rows_are_shown_if_some_are_unknown(rows: Any) -> None:
    trace = merge_trace(Setup(rows_before=9))
    diff = diff_of(with_parts(trace, samples={"untouched_rows": rows}))
    assert (diff.same, diff.untouched) == ((), 5)


def test_sizes_that_do_not_add_up_are_not_shown() -> None:
    assert diff_of(with_parts(merge_trace(), target={"rows_after": 7})).sizes == ""
    assert diff_of(merge_trace(Setup(rows=()))).sizes == ""


def test_a_null_that_the_store_replaces_is_shown_as_the_stores_value() -> None:
    setup = Setup(
        rows=(Joined(("Eve", 2, None), 3, ("Eve", 2, None), writers=(0,)),), rows_before=0
    )
    trace = merge_trace(setup)
    assert "(store)" not in render_text(build_report(trace))
    trace = with_parts(trace, target={"filled_columns": ("address",)})
    cells = diff_of(trace).rows[0].cells
    assert cells[2].new is not None
    assert [cell.new.text for cell in cells if cell.new is not None][2] == "(store)"
    assert "(store)" in render_html(build_report(trace))
