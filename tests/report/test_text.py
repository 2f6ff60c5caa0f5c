from __future__ import annotations

import re
from pathlib import Path

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.plain_text import render_text
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.trace.clause_record import ClauseRecord
from rowmerge_nb.trace.contract_calls import WriterRecord
from rowmerge_nb.trace.join_record import DuplicateGroup, JoinRecord, MatchedRow
from rowmerge_nb.trace.run_settings import RunSettings
from rowmerge_nb.trace.target_record import TargetRecord
from rowmerge_nb.trace.trace import Trace
from tests.report import building, snapshot, traces
from tests.report.building import Setup
from tests.report.cases import CASES
from tests.trace.parts import with_parts


def text(trace, **options):
    return render_text(build_report(trace), **options)


@pytest.mark.parametrize("name", CASES)
def test_a_text_report_is_its_snapshot(name):
    snapshot.check(f"{name}.txt", text(CASES[name]()))


@pytest.mark.parametrize("name", CASES)
def test_lines_have_no_trailing_space_and_no_control_characters(name):
    for line in text(CASES[name]()).split("\n"):
        assert line == line.rstrip()
        assert not any(ord(char) < 32 or char in "\u202e\u200f" for char in line)


def test_lines_are_those_of_the_cell():
    assert "COLUMN_NOT_FOUND" in text(traces.analysis_trace(), first_line=2)
    assert "Line 9:53 of the cell." in text(traces.analysis_trace(), first_line=2)
    assert "\n9    UPDATE SET" in text(traces.analysis_trace(), first_line=2)
    assert "Line 8:53." in text(traces.analysis_trace())


def test_times_are_shown_only_on_request():
    shown = text(building.merge_trace(), timings=True)
    assert "0.31 s" in shown
    assert "at ms" in shown
    assert " s\n" not in text(building.merge_trace())
    assert "ms" not in text(building.merge_trace()).replace("sums", "").split()


def test_show_accepts_names_as_a_string_or_as_a_list():
    assert text(building.merge_trace(), show="clauses, diff") == text(
        building.merge_trace(), show=["diff", "clauses"]
    )
    assert "transform_page: 7 rows in" not in text(building.merge_trace(), show="clauses")


def test_an_unknown_part_is_named():
    with pytest.raises(
        ValueError,
        match="no part 'diffs'; its parts are outcome, check, diff, clauses, journeys, near, plan, pages",
    ):
        text(building.merge_trace(), show="diffs")


def test_the_balance_adds_up_by_paradigm():
    assert "Balance: 5 rows − 4 deletes + 5 inserts (an update is both)" in text(
        building.merge_trace()
    )
    only_changed = text(building.merge_trace(Setup(paradigm=building.ONLY_CHANGED)))
    assert (
        "Balance: 5 rows + 2 inserted − 1 deleted (updates are in place) = 6 rows" in only_changed
    )


def test_a_balance_that_does_not_hold_shouts():
    shown = " ".join(text(with_parts(building.merge_trace(), target={"rows_after": 7})).split())
    assert (
        "THE BALANCE DOES NOT HOLD: 5 rows − 4 deletes + 5 inserts (an update is both) = 6 rows, but the connector counts 7 rows."
        in shown
    )


def test_rows_that_two_clauses_deleted_do_not_shout():
    sources = (MatchedRow(2, {"customer": "Carol"}, 1), MatchedRow(7, {"customer": "Carol"}, 2))
    group = DuplicateGroup(2, {"customer": "Carol"}, sources, None)
    shown = " ".join(
        text(
            with_parts(
                building.merge_trace(),
                target={"rows_after": 7},
                join={"duplicate_groups": (group,)},
            )
        ).split()
    )
    assert "NOT HOLD" not in shown
    assert (
        "Balance: 5 rows − 4 deletes + 5 inserts (an update is both) = 6 rows, and the connector counts 7 rows: 1 stored delete "
        "removed nothing, because another clause had changed the same target row."
    ) in shown


@pytest.mark.parametrize("rows_after", [5, 8])
def test_a_difference_not_explained_by_duplicates_shouts_anyway(rows_after):
    sources = (MatchedRow(2, {"customer": "Carol"}, 1), MatchedRow(7, {"customer": "Carol"}, 2))
    group = DuplicateGroup(2, {"customer": "Carol"}, sources, None)
    assert "NOT HOLD" in text(
        with_parts(
            building.merge_trace(),
            target={"rows_after": rows_after},
            join={"duplicate_groups": (group,)},
        )
    )


def test_calls_that_failed_stored_nothing():
    calls = (
        building.called(1, 0, "store_merged_rows", rows=3),
        building.called(2, 0, "store_merged_rows", rows=2, error="no"),
    )
    assert "2 calls, 1 writer, 3 rows stored" in text(
        building.merge_trace(calls=calls), show="calls"
    )


def test_the_sample_in_the_readme_is_what_is_printed():
    clauses = (
        ClauseRecord(
            0,
            Operation.DELETE,
            True,
            "WHEN MATCHED AND s.address = 'Berkeley' THEN\n    DELETE",
            3,
            1,
        ),
        ClauseRecord(
            1, Operation.UPDATE, True, "WHEN MATCHED THEN\n    UPDATE SET address = s.address", 5, 1
        ),
        ClauseRecord(
            2, Operation.INSERT, False, "WHEN NOT MATCHED THEN\n    INSERT VALUES (s.address)", 7, 1
        ),
        ClauseRecord(-1, Operation.NONE, None, "", 0, 0),
    )
    trace = Trace(
        statement="",
        kind="MERGE",
        state="finished",
        count=3,
        target=TargetRecord(
            name="accounts", connector="memory", catalog="memory", rows_before=3, rows_after=3
        ),
        settings=RunSettings(paradigm="DELETE_ROW_AND_INSERT_ROW"),
        clauses=clauses,
        join=JoinRecord(rows=3, source_rows=3),
        writers=(WriterRecord(0, {1: 2, 2: 2}, 1, 2, 956, 3),),
    )
    readme = Path(__file__).parents[2].joinpath("README.md").read_text("utf-8")
    assert f"```\n{text(trace, show='clauses', first_line=2)}\n```" in readme


def test_an_unchecked_balance_is_labeled():
    assert "the connector does not count its rows." in " ".join(
        text(with_parts(building.merge_trace(), target={"rows_after": None})).split()
    )


def test_no_balance_is_shown_without_row_counts():
    assert "alance" not in text(building.merge_trace(Setup(rows_before=None)))


def test_explain_shows_no_number_of_rows():
    shown = text(traces.explain_trace(), show="clauses,plan,pages")
    assert not re.search(r"\d rows", shown)
    assert " 0 rows" not in shown


def test_matched_rows_without_a_clause_explain_their_present():
    assert "the join has found a target row, whether a clause fires or not" in " ".join(
        text(traces.nothing_fired_trace()).split()
    )
    assert "whether a clause fires or not" not in " ".join(text(building.merge_trace()).split())


def test_a_large_sample_shows_rows_of_every_clause():
    shown = text(traces.many_clauses_trace(), show="pages")
    assert "30 of 60 rows: the first ones of each clause that were recorded" in shown
    assert "→ no row" in shown


def test_incomplete_changed_rows_are_labeled():
    assert "Changed rows: first 30 of 56 rows changed; 8 target rows unchanged" in text(
        traces.many_clauses_trace()
    )


def test_wide_tables_show_the_columns_that_matter():
    shown = text(traces.wide_trace(), show="diff,pages")
    assert "region" in shown.split("Changed rows")[1]
    assert "more columns not shown here" in shown


def test_composite_row_ids_are_compact():
    assert "(1, 536870912, 0)" in text(traces.wide_trace())


def test_the_brief_text_of_a_merge_has_the_changes_and_names_the_call_of_the_rest():
    brief = mime_bundle(building.merge_trace())["text/plain"]
    assert brief.count("\n") < 40
    assert "~  Carol" in brief
    assert "2  U UPDATE" in brief
    assert "TableScan" not in brief
    assert brief.endswith(
        "print(result.text()) adds journeys, plan, pages, stored and calls; after a cell, the\n"
        "result is _merge."
    )
    result = Result(building.merge_trace())
    assert str(result) == brief
    assert result.text("clauses, diff") == text(building.merge_trace(), show="clauses,diff")
    for part in ("Row journeys", "TableScan", "Pages the sinks got", "Connector calls"):
        assert part in result.text()
    with pytest.raises(RowMergeError, match=r"A report has no part 'plans'\. Did you mean 'plan'"):
        result.text("plans")


def test_a_failed_statement_and_requested_parts_are_not_shortened():
    assert mime_bundle(traces.duplicate_trace())["text/plain"] == text(traces.duplicate_trace())
    assert "TableScan" in mime_bundle(building.merge_trace(), show="plan")["text/plain"]
