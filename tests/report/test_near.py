"""Near keys of rows without a partner, as sentences, tables and HTML."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import RowMergeError
from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.report.near_answer import Near
from rowmerge_nb.report.words.near_sentences import is_likely_mistake, near_sentence
from rowmerge_nb.trace.error_record import ErrorRecord
from rowmerge_nb.trace.join_record import JoinRecord
from rowmerge_nb.trace.near import (
    KeyDifference,
    NearCount,
    NearKeys,
    NearRow,
    NearSide,
    NearTerm,
    Separation,
)
from rowmerge_nb.trace.page_samples import Answer
from rowmerge_nb.trace.row_samples import RowSamples
from rowmerge_nb.trace.trace import Trace

ONE = (NearTerm("t.k = s.k"),)
TWO = (NearTerm("t.k = s.k"), NearTerm("t.n\n = s.n"), NearTerm("t.r = 'EU'", key=False))


def row(key: Any, nearest: Any, *kinds: KeyDifference, **more: Any) -> NearRow:
    separations = (Separation(0, kinds),) if kinds else ()
    return NearRow(3, {"k": key}, (key,), (nearest,), separations, **{"alike": 1, **more})


def test_a_statement_that_failed_first_has_no_near_keys() -> None:
    trace = Trace(
        statement="MERGE ...",
        kind="MERGE",
        state=StatementState.FAILED,
        error=ErrorRecord("DIVISION_BY_ZERO", "Division by zero", None, None, 1, None, "run"),
    )
    with pytest.raises(RowMergeError) as caught:
        Near.of(trace, None, None, {})
    assert "failed (DIVISION_BY_ZERO) before its keys were compared" in caught.value.message
    assert "near=True" not in str(caught.value.hint)


BLANK = row("Dave ", "Dave", KeyDifference.TRAILING_BLANKS)
CASE = row("ed", "Ed", KeyDifference.CASE)
LETTER = row("Karol", "Carol", KeyDifference.LETTER)
OTHER = row("ED", "eD", KeyDifference.CASE)
TAKEN = row("Zoe", "zoe", KeyDifference.CASE, taken=True)
STRANGE = row("Dave\u00a0", "Dave", KeyDifference.TRAILING_BLANKS)


@pytest.mark.parametrize(
    ("terms", "rows", "targets", "remedy"),
    [
        (ONE, [BLANK, CASE, LETTER], [], "lower(trim(t.k)) = lower(trim(s.k)) to match 2 of them."),
        (ONE, [BLANK], [CASE], "trim(t.k) = trim(s.k) to match 1 of them."),
        (TWO[:2], [CASE], [], "lower(t.k) = lower(s.k) AND t.n = s.n to match 1 of them."),
        (ONE, [LETTER], [], None),
        (ONE, [CASE, OTHER], [], None),
        (ONE, [TAKEN], [], None),
        (ONE, [BLANK], [TAKEN], None),
        (ONE, [STRANGE], [], None),
        ((NearTerm("upper(t.k) = s.k"),), [BLANK], [], None),
    ],
)
def test_an_on_without_the_differences_is_written_if_it_joins_pairs(
    terms: tuple[NearTerm, ...], rows: list[NearRow], targets: list[NearRow], remedy: str | None
) -> None:
    sides = (NearSide(9, len(side), tuple(side)) for side in (rows, targets))
    lines = str(Near(NearKeys(terms, *sides, letters=True), rows, targets)).splitlines()
    assert [line for line in lines if "Write ON" in line] == ([f"Write ON {remedy}"] * bool(remedy))


def traced(*rows: NearRow, **more: Any) -> Trace:
    near = NearKeys(ONE, NearSide(9, len(rows), rows), NearSide(9, 0), letters=True)
    return Trace(
        statement="MERGE ...",
        kind="MERGE",
        state=StatementState("finished"),
        samples=RowSamples(near_misses=near),
        **more,
    )


@pytest.mark.parametrize(
    ("found", "likely"),
    [
        (row("a ", "a", KeyDifference.TRAILING_BLANKS), True),
        (row("a ", "A", KeyDifference.TRAILING_BLANKS, KeyDifference.CASE), True),
        (row("é", "e\u0301", KeyDifference.UNICODE_FORM), True),
        (row("07", "7", KeyDifference.NUMBER, taken=True), True),
        (row(None, None, KeyDifference.NULL), True),
        (row("Karol", "Carol", KeyDifference.LETTER), True),
        (row("Karol", "Carol", KeyDifference.LETTER, taken=True), False),
        (row("a", "b", KeyDifference.VALUE), False),
        (row(None, "b", KeyDifference.NULL), False),
        (row("a ", "a", KeyDifference.TRAILING_BLANKS, answers=(Answer.FALSE,)), False),
        (row("a", "a", answers=(Answer.UNKNOWN,)), False),
        (NearRow(1, {}, ("x",)), False),
    ],
)
def test_a_report_names_a_likely_mistake(found: NearRow, likely: bool) -> None:
    assert is_likely_mistake(found) is likely
    text = mime_bundle(traced(found))["text/plain"]
    assert ("Near miss: " in text) is likely


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            row(
                " a\ufeff",
                "A",
                KeyDifference.LEADING_BLANKS,
                KeyDifference.TRAILING_BLANKS,
                KeyDifference.CASE,
            ),
            (
                "Source row 3 (' a\\ufeff') would match target row 'A' without leading and trailing blanks (U+FEFF ZERO WIDTH NO-BREAK SPACE)"
                " and in the same case."
            ),
        ),
        (
            row("a ", "a", KeyDifference.TRAILING_BLANKS, alike=12),
            "Source row 3 ('a ') would match target row 'a', one of 12, without trailing blanks.",
        ),
        (
            row("Karol", "Carol", KeyDifference.LETTER),
            "Source row 3 ('Karol') differs from target row 'Carol' by one letter.",
        ),
        (
            NearRow(None, {}, ("x",)),
            (
                "Source row ('x'): no key of the target is near, that is, the same except"
                " for blanks, case, notation or one letter."
            ),
        ),
        (
            NearRow(1, {}, (None,), None, (Separation(0, (KeyDifference.NULL,)),)),
            "Source row 1 (NULL) has NULL in t.k = s.k, which equals nothing.",
        ),
    ],
)
def test_a_row_is_described_in_a_sentence(found: NearRow, said: str) -> None:
    assert near_sentence(found, ONE, "source") == said


@pytest.mark.parametrize(
    ("separations", "answers", "said"),
    [
        (
            (Separation(1, (KeyDifference.VALUE,)),),
            (Answer.TRUE,),
            "differs from target row ('a', 2) by another value, in t.n = s.n.",
        ),
        (
            (Separation(1, (KeyDifference.NULL,)),),
            (Answer.TRUE,),
            "has the other keys of target row ('a', 2), and NULL equals nothing, in t.n = s.n.",
        ),
        (
            (Separation(0, (KeyDifference.CASE,)),),
            (Answer.UNKNOWN,),
            "would match target row ('a', 2) in the same case, in t.k = s.k, but t.r = 'EU' is unknown for it.",
        ),
        (
            (),
            (Answer.FALSE,),
            ": the key exists, in target row ('a', 2), but t.r = 'EU' is false for it.",
        ),
    ],
)
def test_a_sentence_names_the_separated_key_of_several(
    separations: Any, answers: Any, said: str
) -> None:
    found = NearRow(0, {}, ("A", None), ("a", 2), separations, answers, 1)
    assert (
        near_sentence(found, TWO, "source")
        == f"Source row 0 ('A', NULL){'' if said[0] == ':' else ' '}{said}"
    )


def test_a_table_shows_the_first_rows_and_the_limit() -> None:
    trace = traced(
        *(
            NearRow(
                i,
                {"k": f"a{i} "},
                (f"a{i} ",),
                (f"a{i}",),
                (Separation(0, (KeyDifference.TRAILING_BLANKS,)),),
            )
            for i in range(70)
        )
    )
    text = str(Near.of(trace, None, None, {}))
    assert "Rows of the source without a partner: 60 of 70" in text
    assert "a59 " in text
    assert "a60 " not in text
    assert len(Near.of(trace, None, None, {})) == 70
    assert Near.of(trace, 69, None, {})[0].key == ("a69 ",)


def test_markup_in_keys_and_conditions_is_text() -> None:
    terms = (NearTerm('t."<i>" = s.k'), NearTerm("t.x = '<script>'", key=False))
    found = NearRow(
        0,
        {"<i>": "<b> "},
        ("<b> ",),
        ("<b>",),
        (Separation(0, (KeyDifference.TRAILING_BLANKS,)),),
        (Answer.FALSE,),
        1,
    )
    near = NearKeys(terms, NearSide(1, 1, (found,)), NearSide(1, 1))
    view = Near.of(
        Trace(
            statement="MERGE ...",
            kind="MERGE",
            state=StatementState("finished"),
            samples=RowSamples(near_misses=near),
        ),
        None,
        None,
        {},
    )
    html = view._repr_mimebundle_()["text/html"]
    assert "<script>" not in html
    assert "<b> " not in html
    assert "&lt;script&gt;" in html


def test_counts_have_grouped_digits_and_unsearched_differences_are_named() -> None:
    side = NearSide(
        9_000,
        4_100,
        (),
        (
            NearCount(
                (KeyDifference.LEADING_BLANKS, KeyDifference.TRAILING_BLANKS, KeyDifference.CASE),
                312,
            ),
            NearCount((KeyDifference.LETTER,), 1),
        ),
    )
    near = NearKeys(ONE, side, NearSide(5, 0))
    assert str(Near(near, (), ())).splitlines() == [
        "4,100 of 9,000 source rows have no partner.",
        "312 of 4,100 unmatched source rows would match without leading and trailing blanks and in the same case.",
        "1 of 4,100 unmatched source rows differs from a near key by one letter.",
        "Keys that differ by one letter were not searched.",
    ]


def test_a_very_long_key_is_cut() -> None:
    found = row("x" * 1_000_000 + " ", "x" * 1_000_000, KeyDifference.TRAILING_BLANKS)
    assert len(near_sentence(found, ONE, "source")) < 200


def test_a_trace_without_near_keys_names_the_remedy() -> None:
    for trace, hint in (
        (
            Trace(statement="DELETE", kind="DELETE", state=StatementState("finished")),
            "Ask it of a MERGE.",
        ),
        (
            Trace(
                statement="MERGE",
                kind="MERGE",
                state=StatementState("finished"),
                join=JoinRecord(unmatched_rows=4, rows=9),
            ),
            "near=True",
        ),
        (Trace(statement="MERGE", kind="MERGE", state=StatementState("failed")), "near=True"),
    ):
        with pytest.raises(RowMergeError, match="NOT_SUPPORTED") as raised:
            Near.of(trace, None, None, {})
        assert hint in (raised.value.hint or "")
