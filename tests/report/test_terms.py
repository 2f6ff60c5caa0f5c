"""A report explains the terms that it uses."""

from __future__ import annotations

import pytest

from rowmerge_nb.report.html import render_html
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.model.terms import build_terms
from rowmerge_nb.report.plain_text import render_text
from rowmerge_nb.trace.trace import Trace
from tests.report.building import Setup, merge_trace
from tests.report.traces import duplicate_trace, explain_trace, simple_trace, updatable_trace


def test_the_terms_are_in_a_closed_fold_at_the_end_and_in_text_on_request() -> None:
    report = build_report(merge_trace())
    html = render_html(report)
    assert (
        "<details><summary>Words<small>engine, connector, store, coordinator, task, page, channel, row_id, "
        in html
    )
    assert html.index("<summary>Words") > html.index("<summary>Connector calls")
    assert "Words" not in render_text(report)
    assert "  unique_id: The engine's own number" in render_text(report, show="words")
    assert "<details open><summary>Words" in render_html(report, show="words")


@pytest.mark.parametrize("era", ["documents", "current"])
def test_the_era_of_the_run_is_named(era: str) -> None:
    terms = build_terms(merge_trace(Setup(era=era)))
    assert terms is not None
    assert dict(terms.rows)["era"].endswith(f"Here: {era}.")


def test_terms_are_those_that_the_statement_uses() -> None:
    versions = [build_terms(merge_trace(target={"version_after": after})) for after in (None, 5)]
    assert [terms is not None and "version" in dict(terms.rows) for terms in versions] == [
        False,
        True,
    ]
    older = build_terms(updatable_trace())
    assert older is not None
    assert "split, page source" in dict(older.rows)
    assert not {"writer, sink", "era", "unique_id"} & dict(older.rows).keys()


@pytest.mark.parametrize(
    "trace", [explain_trace(), duplicate_trace(), simple_trace("CREATE TABLE")]
)
def test_an_unfinished_statement_has_no_terms(trace: Trace) -> None:
    assert build_terms(trace) is None
