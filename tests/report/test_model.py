from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from rowmerge_nb.report.model.clauses import build_lanes
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.words.display_values import cell, row_text, visible
from rowmerge_nb.report.words.phrases import phrase_text
from tests.report import building, traces
from tests.report.building import ONLY_CHANGED, Setup
from tests.report.cases import CASES
from tests.trace.parts import with_parts


@pytest.mark.parametrize("name", CASES)
def test_a_report_is_the_same_every_time(name):
    assert build_report(CASES[name]()) == build_report(CASES[name]())


def test_the_outcome_counts_what_clauses_did():
    sentence = phrase_text(build_report(building.merge_trace()).outcome.sentence)
    assert (
        sentence
        == "2 rows inserted, 3 updated, 1 deleted; no clause fired for 1 source row. accounts 5 → 6 rows."
    )


def test_an_empty_source_changes_nothing():
    report = build_report(building.merge_trace(Setup(rows=())))
    assert phrase_text(report.outcome.sentence) == "No row changed. accounts 5 → 5 rows."
    assert "no writer: no row reached a sink" in phrase_text(report.outcome.meta)
    assert report.pages.rows == ()


@pytest.mark.parametrize(
    ("kind", "facts", "sentence"),
    [
        ("INSERT", {"count": 5}, "5 rows inserted into accounts."),
        (
            "INSERT",
            {"count": 1, "target": {"rows_before": 0, "rows_after": 1}},
            "1 row inserted into accounts. accounts 0 → 1 row.",
        ),
        ("DELETE", {"count": 2}, "2 rows deleted from accounts."),
        ("UPDATE", {"count": 2}, "2 rows updated in accounts."),
        ("CREATE TABLE", {}, "Table accounts created."),
        ("CREATE TABLE AS", {"count": 5}, "Table accounts created with 5 rows."),
        ("DROP TABLE", {}, "Table accounts dropped."),
        ("MERGE", {"count": 3}, "3 rows changed."),
    ],
)
def test_every_kind_of_statement_has_its_sentence(kind, facts, sentence):
    assert (
        phrase_text(build_report(traces.simple_trace(kind, **facts)).outcome.sentence) == sentence
    )


def test_updates_end_as_two_rows_or_as_one():
    assert build_report(building.merge_trace()).plan.outputs == {"D": 4, "I": 5}
    assert build_report(building.merge_trace(Setup(paradigm=ONLY_CHANGED))).plan.outputs == {
        "D": 1,
        "U": 3,
        "I": 2,
    }
    assert build_report(traces.explain_trace()).plan.outputs == {"D": None, "I": None}


def test_many_clauses_share_a_lane_per_operation():
    lanes = build_lanes(traces.many_clauses_trace())
    assert [(lane.label, lane.style, lane.rows) for lane in lanes] == [
        ("6 clauses", "D", 24),
        ("7 clauses", "U", 28),
        ("clause 13", "I", 4),
        ("none −1", "N", 4),
    ]


def test_channels_are_numbered_as_the_document_has_them():
    channels = build_report(building.merge_trace()).pages.channels
    assert [f"{channel.number} {channel.name}" for channel in channels.before] == [
        "0 address", "1 hash", "2 row_id", "3.0 customer", "3.1 purchases", "3.2 address", "3.3 present", "3.4 operation",
        "3.5 case_number", "4 case_number", "5 is_distinct",
    ]  # fmt: skip
    assert [f"{channel.number} {channel.name} {channel.type}" for channel in channels.after] == [
        "0 customer varchar", "1 purchases decimal(38,0)", "2 address varchar", "3 operation tinyint", "4 row_id bigint",
        "5 insert_from_update tinyint",
    ]  # fmt: skip


@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize("places", [(), ("address",), ("customer", "address")])
def test_a_plan_has_the_channels_of_its_pages(era, places):
    setup = Setup(era=era, redistribution=places)
    assert (
        build_report(traces.explain_trace(setup)).pages.channels
        == build_report(building.merge_trace(setup)).pages.channels
    )


def test_a_table_may_have_columns_called_like_channels():
    columns = [
        building.pa.field(name, building.pa.string()) for name in ("hash", "row_id", "operation")
    ]
    rows = [replace(building.ROWS[3], source=("a", "b", "c"), new=("a", "b", "c"))]
    report = build_report(
        building.merge_trace(Setup(columns=columns, redistribution=("row_id",), rows=rows))
    )
    assert [channel.name for channel in report.pages.channels.columns] == [
        "hash",
        "row_id",
        "operation",
    ]
    assert [cell.text for cell in report.pages.rows[0].after[0].columns] == ["a", "b", "c"]


def test_a_row_without_a_clause_has_no_merge_row_in_the_current_era():
    report = build_report(building.merge_trace(Setup(era="current")))
    fay = report.pages.rows[4]
    assert (fay.name.text, fay.merge_null, fay.style, fay.after) == ("Fay", True, "N", ())
    assert [half.word for half in report.pages.rows[0].after] == ["UPDATE_DELETE", "UPDATE_INSERT"]
    assert [half.case.text for half in report.pages.rows[0].after] == ["0", "0"]


def test_the_ledger_keeps_the_order_of_the_source():
    rows = build_report(building.merge_trace()).pages.rows
    assert [row.source for row in rows] == ["0", "1", "2", "3", "4", "5", "6"]
    assert [len(row.after) for row in rows] == [2, 1, 2, 1, 0, 1, 2]


def test_changed_rows_have_old_and_new_values():
    diff = build_report(building.merge_trace()).diff
    aaron, bill = diff.rows[:2]
    assert [(c.old.text, c.new.text, c.changed) for c in aaron.cells] == [
        ("Aaron", "Aaron", False),
        ("5", "11", True),
        ("Antioch", "Arches", True),
    ]
    assert (bill.sign, bill.cells[2].old.text) == ("−", "Buena")
    assert (diff.total, diff.untouched, diff.summary) == (
        6,
        1,
        "6 rows changed; 1 target row unchanged",
    )


def test_only_new_values_are_known_without_a_witness():
    diff = build_report(building.merge_trace(Setup(witness=False))).diff
    assert diff.remark == "Old values were not recorded: new values only. --trace full keeps both."
    assert all(cell.old is None for row in diff.rows for cell in row.cells)


def test_long_values_that_differ_at_their_end_count_as_changed():
    long = "y" * 60
    row = building.Joined(
        (long + "a", 1, "x"), 2, (long + "a", 1, "x"), (long + "b", 1, "x"), 0, (0, 0)
    )
    change = build_report(building.merge_trace(Setup(rows=[row]))).diff.rows[0]
    assert [cell.changed for cell in change.cells] == [True, False, False]


def test_the_row_count_is_that_of_table_finish():
    finish = build_report(building.merge_trace()).plan.of_kind("TableFinish")
    assert finish.notes == ("2 fragments, row count 9 stored − 3 insert halves of updates = 6",)
    assert (finish.in_text, finish.out_text) == ("2 fragments", "row count 6")


def test_a_failed_statement_describes_the_events():
    failure = build_report(traces.duplicate_trace()).failure
    assert failure.consequences == (
        "accounts is unchanged (5 rows).",
        "begin_merge was called; No sink was created; finish_merge was not called; the transaction was rolled back.",
        "8 joined rows checked, 1 target row matched more than once.",
    )


def test_events_are_derived_from_the_calls_if_the_engine_does_not_report_them():
    trace = traces.duplicate_trace()
    failure = build_report(replace(trace, error=replace(trace.error, consequences=()))).failure
    assert failure.consequences[1] == (
        "begin_merge was called; no sink was created; finish_merge was not called; the transaction was rolled back."
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"\x00\xff", "X'00FF'"),
        ([1, None, "a"], "[1, NULL, a]"),
        ({"a": {"b": 1}, "c": None}, "((1), NULL)"),
        ([("k", 1)], "[(k, 1)]"),
        (False, "false"),
        ("", ""),
    ],
)
def test_values_of_every_type_are_compact(value, shown):
    assert cell(value).text == shown


def test_an_empty_string_is_not_null():
    assert not cell("").null
    assert cell(None).null
    assert not cell("NULL").null


def test_very_long_values_are_cut_with_their_length():
    shown = cell("z" * 100_000)
    assert len(shown.text) == 40
    assert shown.text.endswith("…")
    assert shown.title.endswith("… (100,000 characters)")
    assert len(shown.title) < 450


def test_marks_that_turn_the_reading_direction_are_shown_as_escapes():
    assert visible("a\u202eb\u2066c\u200f\x00") == "a\\u202eb\\u2066c\\u200f\\u0000"


def test_importing_the_package_is_light():
    heavy = ["pyarrow", "pyspark", "jinja2", "graphviz", "pygraphviz", "pandas"]
    code = f"import sys, rowmerge_nb.report; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_report_needs_no_spark():
    code = (
        "import sys; from tests.report.building import merge_trace; from rowmerge_nb.report import mime_bundle;"
        "mime_bundle(merge_trace()); print('pyspark' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=building.ROOT
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("CREATE TABLE", "Table accounts already exists and is unchanged."),
        ("CREATE TABLE AS", "Table accounts already exists and is unchanged."),
        ("DROP TABLE", "The table does not exist; nothing was dropped."),
    ],
)
def test_a_statement_without_work_is_reported_as_such(kind, sentence):
    trace = traces.simple_trace(kind, skipped=True)
    assert phrase_text(build_report(trace).outcome.sentence) == sentence


def test_a_dropped_table_without_a_name_did_not_exist():
    trace = traces.simple_trace("DROP TABLE", target={"name": ""})
    assert (
        phrase_text(build_report(trace).outcome.sentence)
        == "The table does not exist; nothing was dropped."
    )


def test_source_rows_that_are_not_recorded_are_counted():
    trace = traces.duplicate_trace()
    group = replace(trace.join.duplicate_groups[0], total=30_000)
    last = build_report(
        with_parts(trace, join={"duplicate_groups": (group,)})
    ).failure.duplicates.groups[0][-1]
    assert last.row.text == "and 29,998 more source rows"


def test_presets_expand_to_parts():
    from rowmerge_nb.report.model.report import PARTS, PRESETS, build_report, parts_to_show

    report = build_report(building.merge_trace())
    assert parts_to_show(report, "short") == ("outcome", "diff")
    assert parts_to_show(report, "rows") == ("outcome", "diff", "clauses", "journeys")
    assert parts_to_show(report, "learn,calls") == (
        "outcome",
        "diff",
        "clauses",
        "journeys",
        "plan",
        "pages",
        "calls",
        "words",
    )
    assert all(set(parts) <= set(PARTS) for parts in PRESETS.values())
    with pytest.raises(
        ValueError, match="short, rows, learn, connector, all are some of them together"
    ):
        parts_to_show(report, "learm")


def test_texts_with_commas_are_quoted_in_rows() -> None:
    assert (
        cell(("a, b", "c", "", "NULL", None, ["x,y"])).text
        == "('a, b', c, '', 'NULL', NULL, ['x,y'])"
    )
    assert row_text(["it's, too", " x"]) == "('it''s, too', \N{OPEN BOX}x)"
