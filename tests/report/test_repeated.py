"""A report shows how Trino's rule about repeated matches and that of the SQL standard differ, and the answers of both."""

from __future__ import annotations

import pytest

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.report.html import render_html
from rowmerge_nb.report.model.repeated import EQUALITY, build_repeated, repeated_matches
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.trace.join_record import MatchPattern
from tests.report.building import ONLY_CHANGED, Setup, merge_trace
from tests.report.traces import update_trace

TWO_CLAUSES = MatchPattern(matches=2, acting=2, updates=2, deletes=0, repeated=False, rows=1)
NO_CLAUSE = MatchPattern(matches=2, acting=0, updates=0, deletes=0, repeated=True, rows=1)
ONE_CLAUSE = MatchPattern(matches=2, acting=2, updates=2, deletes=0, repeated=True, rows=1)
ONE_ACTS = MatchPattern(matches=2, acting=1, updates=1, deletes=0, repeated=False, rows=1)


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        (None, "In all other questions about rows and clauses, the two agree."),
        ((), "Here no target row is matched twice, so both allow it."),
        ((ONE_ACTS,), "Here both allow it."),
        ((ONE_CLAUSE,), "Here both fail."),
        ((TWO_CLAUSES,), "Here Trino's rule allows it, and the standard fails."),
        ((NO_CLAUSE, ONE_ACTS), "Here the standard allows it, and Trino's rule fails."),
    ],
)
def test_the_answers_of_both_rules_are_shown_if_known(
    patterns: tuple[MatchPattern, ...] | None, said: str
) -> None:
    assert repeated_matches(merge_trace(join={"multiple_matches": patterns})).endswith(said)


def test_the_deciding_rule_is_named_if_it_is_not_trinos() -> None:
    said = repeated_matches(merge_trace(settings={"duplicates": RepeatedMatches.STANDARD}))
    assert (
        'The standard\'s rule decides here, since the option `duplicates="standard"` asks for it.'
        in said
    )
    # The effect of other options on a run is described in the same words.
    assert "this run" not in said
    assert "decide" not in repeated_matches(merge_trace())


def test_two_clauses_fail_too_under_in_place_changes() -> None:
    assert "the pair (unique_id, NULL) twice" in repeated_matches(merge_trace(Setup(era="current")))
    in_place = merge_trace(Setup(paradigm=ONLY_CHANGED), join={"multiple_matches": (TWO_CLAUSES,)})
    said, told = repeated_matches(in_place), build_repeated(in_place)
    assert (
        "two clauses that each change the row pass Trino's check and fail in the standard" in said
    )
    assert "two clauses that each change the row fail as well" in said
    assert "pass in Trino and" not in said
    assert said.endswith("Here both fail.")
    assert told is not None
    assert [one.trino.split(":")[0] for one in told.examples] == ["fails", "fails", "runs", "fails"]
    assert told.examples[1].trino.endswith("are two pairs, but rows are changed in place")


def test_a_statement_without_such_a_check_does_not_mention_it() -> None:
    assert repeated_matches(update_trace()) == ""
    assert repeated_matches(merge_trace(settings={"duplicates": RepeatedMatches.NONE})) == ""


def test_it_is_beside_the_plan() -> None:
    assert "<summary>Trino and the SQL standard" in render_html(
        build_report(merge_trace()), show="plan"
    )


def test_rows_of_the_statement_are_examples_of_what_either_rule_answers() -> None:
    told = build_repeated(merge_trace())
    assert told is not None
    answers = [(one.trino.split(":")[0], one.standard.split(":")[0]) for one in told.examples]
    assert answers == [("fails", "fails"), ("runs", "fails"), ("runs", "runs"), ("fails", "runs")]
    assert told.examples[0].rows.endswith("which takes clause 2, twice")
    assert "Aaron" in told.examples[0].rows
    assert EQUALITY in render_html(build_report(merge_trace()), show="plan").replace("&#39;", "'")
