"""A report names the number that chose a row's writer, and the effect of the other paradigm on the statement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.report.model.placing import exchange_sentence, other_paradigm, passage
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.plain_text import render_text
from rowmerge_nb.trace.join_record import MatchPattern
from rowmerge_nb.trace.node_records import ExchangeFacts
from rowmerge_nb.trace.trace import Trace
from tests.report.building import ONLY_CHANGED, Setup, merge_trace
from tests.report.traces import explain_trace

BOTH = (
    "`--compare paradigms` runs both; if a store supports only one, on a copy of the"
    " target in memory."
)
ALL = (
    "operation 3, the row id and all columns, since all rows of a page have the same"
    " columns, regardless of what a clause sets."
)


def with_exchange(trace: Trace, facts: ExchangeFacts | None) -> Trace:
    plan = tuple(
        replace(node, facts=facts) if node.kind == "Exchange" else node for node in trace.plan
    )
    return replace(trace, plan=plan)


def test_the_ledger_shows_the_number_that_chose_the_writer_of_every_row() -> None:
    pages = build_report(merge_trace()).pages
    assert pages is not None
    assert (pages.number_head, pages.writer_head) == ("hash(address)", "writer = mod 2")
    halves = [half for row in pages.rows for half in row.after]
    assert halves
    assert all(int(half.number) % 2 == half.writer for half in halves)
    line = next(
        line
        for line in render_text(build_report(merge_trace()), show="pages").splitlines()
        if "Arches" in line
    )
    assert line.split()[-2:] == [halves[1].number, "1"]


def test_a_plan_without_an_exchange_has_no_such_numbers() -> None:
    trace = merge_trace(Setup(redistribution=()))
    pages = build_report(trace).pages
    assert pages is not None
    assert (pages.number_head, pages.writer_head) == ("", "writer")
    assert exchange_sentence(trace) == ""


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            ExchangeFacts("hash(address)", "", "hash", ""),
            (
                "A row goes to writer hash(address) mod 2: an INSERT by the new values, a DELETE by the old values, which its row keeps for that "
                "(there is no update layout)."
            ),
        ),
        (
            ExchangeFacts("bucket(customer)", "bucket(row_id)", "function", "function"),
            "An INSERT goes to writer bucket(customer) mod 2, a DELETE or UPDATE to writer bucket(row_id) mod 2.",
        ),
        (
            ExchangeFacts("hash(address)", "ROUND_ROBIN", "hash", ""),
            "An INSERT goes to writer hash(address) mod 2, a DELETE or UPDATE to the writers in turn, some thousand rows at a time.",
        ),
        (
            ExchangeFacts("mine:Function[" + "x" * 40, "bucket(row_id)", "function", "function"),
            "An INSERT goes to writer (connector's bucket) mod 2, a DELETE or UPDATE to writer bucket(row_id) mod 2.",
        ),
        (None, ""),
    ],
)
def test_a_sentence_names_the_writer_of_a_row(facts: ExchangeFacts | None, said: str) -> None:
    era = "current" if facts is not None and facts.others == "ROUND_ROBIN" else "documents"
    assert exchange_sentence(with_exchange(merge_trace(Setup(era=era)), facts)) == said


def test_halves_that_went_to_two_writers_are_counted() -> None:
    assert "Here 3 of 3 UPDATEs sent their DELETE and their INSERT to two writers." in " ".join(
        render_text(build_report(merge_trace())).split()
    )


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (
            merge_trace(),
            (
                f"By CHANGE_ONLY_UPDATED_COLUMNS an UPDATE would stay one row: {ALL} It would go by hash(address) of its new values. "
                f"6 rows (D 1, U 3, I 2) would leave and reach the writers, not 9. {BOTH}"
            ),
        ),
        (
            merge_trace(Setup(paradigm=ONLY_CHANGED), target={"connector": "sqlite"}),
            (
                "By DELETE_ROW_AND_INSERT_ROW an UPDATE would be two rows, a DELETE with the row id and an INSERT. 9 rows "
                f"(D 4, I 5) would leave and reach the writers, not 6. {BOTH}"
            ),
        ),
        (
            merge_trace(Setup(era="current"), target={"connector": ""}),
            (
                f"By CHANGE_ONLY_UPDATED_COLUMNS an UPDATE would stay one row: {ALL} It might go to any writer. 6 rows "
                f"(D 1, U 3, I 2) would leave and reach the writers, not 9. {BOTH}"
            ),
        ),
        (
            explain_trace(Setup(redistribution=())),
            (f"By CHANGE_ONLY_UPDATED_COLUMNS an UPDATE would stay one row: {ALL} {BOTH}"),
        ),
        (
            merge_trace(Setup(rows=()), target={"connector": ""}),
            (
                "With CHANGE_ONLY_UPDATED_COLUMNS, the same number of rows would leave,"
                f" since none is updated. {BOTH}"
            ),
        ),
        (merge_trace(settings={"paradigm": ""}), ""),
    ],
)
def test_the_other_paradigm_is_described_with_the_numbers_of_the_statement(
    trace: Trace, said: str
) -> None:
    assert other_paradigm(trace) == said


def test_rows_changed_by_two_clauses_would_fail_under_in_place_changes() -> None:
    twice = (MatchPattern(matches=2, acting=2, updates=2, deletes=0, repeated=False, rows=1),)
    assert (
        "But the statement would fail, since two clauses change one row in place"
        in other_paradigm(merge_trace(join={"multiple_matches": twice}))
    )
    assert "would fail" not in other_paradigm(merge_trace(join={"multiple_matches": ()}))
    assert "would fail" not in other_paradigm(
        merge_trace(join={"multiple_matches": twice}, settings={"duplicates": RepeatedMatches.NONE})
    )


@pytest.mark.parametrize(
    ("facts", "rows", "said"),
    [
        ({}, (7, 9), "7 rows \N{MINUS SIGN} 1 unchanged + 3 split = 9"),
        ({"clauses": ()}, (7, 9), "7 rows in, 9 out"),
    ],
)
def test_rows_out_of_the_processor_match_its_input(
    facts: Any, rows: tuple[int, int], said: str
) -> None:
    assert passage(merge_trace(**facts), *rows) == said
