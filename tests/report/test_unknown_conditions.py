"""A NULL that keeps a clause from firing is a notice of the report."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.report.model.report import notices_of
from rowmerge_nb.trace.clause_record import Term
from rowmerge_nb.trace.trace import Trace
from tests.report.building import Joined, Setup, merge_trace
from tests.trace.parts import with_parts


def _trace(condition: Term, unknown: int, *, complete: bool = True) -> Trace:
    """Build a trace of rows without a clause; the condition of clause 0 is unknown for the first ones."""
    names = ("Aaron", "Bill", "Carol")
    rows = [Joined((n, 6, "A"), -1, None, (n, 5, "B"), at) for at, n in enumerate(names)]
    trace = merge_trace(Setup(rows=tuple(rows)))
    pages = trace.samples.pages
    assert pages is not None
    count = pages.before.num_rows
    letters = ["u" if row < unknown else None if row == unknown else "f" for row in range(count)]
    truths = pa.RecordBatch.from_pydict({"0": pa.array(letters, pa.string())})
    clauses = tuple(
        replace(clause, condition=condition) if clause.number == 0 else clause
        for clause in trace.clauses
    )
    sample = replace(pages, truths=truths, complete=complete)
    return with_parts(trace, samples={"pages": sample}, clauses=clauses)


DIFFERS = Term("t.email <> s.email", strict=True, has_difference=True)


def test_the_notice_counts_rows_and_offers_a_comparison_that_null_does_not_spoil():
    (notice,) = notices_of(_trace(DIFFERS, 2))
    assert notice.message == (
        "For 2 of the rows without a clause, the condition of clause 0 was unknown, not false,"
        " because of NULL. `IS DISTINCT FROM` compares NULL too."
    )


def test_text_and_html_have_the_notice_once():
    bundle = mime_bundle(_trace(DIFFERS, 1))
    words = "the condition of clause 0 was unknown"
    assert " ".join(bundle["text/plain"].split()).count(words) == 1
    assert bundle["text/html"].count("<b>Notice.</b>") == 1


def test_a_sample_is_labeled_as_such():
    (notice,) = notices_of(_trace(DIFFERS, 1, complete=False))
    assert notice.message.startswith("For 1 of the shown rows without a clause,")


def test_a_condition_without_a_difference_has_no_advice_about_it():
    (notice,) = notices_of(_trace(Term("s.n > 0 AND s.text = '<>'", strict=True), 1))
    assert "IS DISTINCT FROM" not in notice.message


@pytest.mark.parametrize("state", [StatementState.FAILED, StatementState.FINISHED])
def test_there_is_no_notice_without_an_unknown_condition_or_a_result(state):
    rows = 0 if state is StatementState.FINISHED else 2
    assert notices_of(replace(_trace(DIFFERS, rows), state=state)) == ()
