"""A comparison is text and HTML without a script, with escaped content."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.trace.comparison import Comparison, Side
from rowmerge_nb.trace.contract_calls import Call, WriterRecord
from rowmerge_nb.trace.error_record import ErrorRecord
from rowmerge_nb.trace.notice_record import NoticeRecord
from rowmerge_nb.trace.page_samples import StoredSample
from rowmerge_nb.trace.target_record import TargetRecord
from rowmerge_nb.trace.trace import Trace
from tests.report import building, traces
from tests.trace.parts import with_parts


def side(name: str, ids: list[int], **more: object) -> Side:
    calls = (
        Call(1, "coordinator", "begin_merge"),
        Call(2, "writer", "store_merged_rows", bytes=64, number=0),
    )
    writers = (WriterRecord(0, {2: 1, 1: 2}, 1, 1, 300, 2),)
    known = {
        "statement": "MERGE x",
        "kind": "MERGE",
        "state": "finished",
        "target": TargetRecord(name="<t>"),
        "count": 2,
        "calls": calls,
        "writers": writers,
    }
    return Side(
        name, Result(Trace(**{**known, **more})), pa.table({"id": ids, "<b>": ["&" for _ in ids]})
    )


def test_rows_of_only_one_side_are_listed_with_their_side() -> None:
    compared = Comparison(
        "paradigms", "MERGE x", ["id", "<b>"], side("one", [1, 2, 2]), side("other", [1, 3])
    )
    text = str(compared)
    assert text.splitlines()[0] == "THE RESULTS DIFFER in 3 rows of <t>."
    assert [line.split() for line in text.splitlines() if line.startswith(("one ", "other "))] == [
        ["one", "has", "2", "2", "&"],
        ["other", "has", "1", "3", "&"],
    ]


def test_equal_rows_in_another_order_are_the_same() -> None:
    compared = Comparison(
        "paradigms", "MERGE x", ["id", "<b>"], side("one", [1, 2]), side("other", [2, 1])
    )
    assert compared.same is True
    assert "≠" not in str(compared)


def test_html_has_no_script_and_every_value_is_escaped() -> None:
    error = ErrorRecord(
        "MERGE_TARGET_ROW_MULTIPLE_MATCHES", "<script>alert(1)</script>", None, None, 1, None, "run"
    )
    failed = side("<other>", [], state="failed", error=error, count=None)
    for right in (side("<other>", [3]), failed):
        bundle = Comparison(
            "paradigms", "MERGE x", ["id", "<b>"], side("one", [1]), right
        )._repr_mimebundle_()
        assert sorted(bundle) == ["text/html", "text/plain"]
        html = bundle["text/html"]
        assert html.count("<script") == 0
        assert "<other>" not in html
        assert "&lt;other&gt;" in html
        assert 'hidden="hidden"' in html, "the text is what shows where style sheets are stripped"


def test_differing_numbers_are_marked_by_a_sign_and_not_only_by_color() -> None:
    writers = (WriterRecord(0, {3: 1}, 1, 1, 300, 1),)
    compared = Comparison(
        "paradigms", "MERGE x", ["id", "<b>"], side("one", [1]), side("other", [1], writers=writers)
    )
    lines = [line.split() for line in str(compared).splitlines()]
    assert ["rows", "stored", "≠", "D", "1,", "I", "2", "U", "1"] in lines
    assert ["fragments", "1", "1"] in lines
    assert 'aria-label="differs">≠' in compared._repr_mimebundle_()["text/html"]


def test_unreported_results_are_shown_as_unknown() -> None:
    left, right = side("one", [1]), side("other", [1])
    compared = Comparison(
        "flows", "UPDATE x", ["id"], Side("one", left.result), Side("other", right.result)
    )
    assert compared.same is None
    assert (
        compared.sentence
        == "Both ways run; whether they would leave the same rows in <t> is unknown."
    )


def test_the_pages_of_both_flows_are_shown_side_by_side_with_the_changed_rows() -> None:
    left, right = (
        Side(t.settings.flow, Result(t), pa.table({"id": [1]}))
        for t in (building.merge_trace(), traces.updatable_trace())
    )
    text = str(Comparison("flows", "UPDATE x", ["id"], left, right))
    for title in (
        "Changed rows: ",
        "Pages the sinks got, merge: ",
        "Pages returned to the page sources, updatable: ",
    ):
        assert [line.startswith(title) for line in text.splitlines()].count(True) == 1
    assert (
        text.index("Changed rows")
        < text.index("Pages the sinks")
        < text.index("Pages returned to the page sources")
        < text.index("Plan; ")
    )
    assert "split  row_id  address  purchases" in text
    html = Comparison("flows", "UPDATE x", ["id"], left, right)._repr_mimebundle_()["text/html"]
    assert "What the connector gets" in html
    assert "ANTIOCH" in html


def test_pages_that_are_the_same_on_both_sides_are_not_shown_twice() -> None:
    left, right = (
        Side(name, Result(building.merge_trace()), pa.table({"id": [1]}))
        for name in ("trino", "standard")
    )
    assert "Pages the sinks got" not in str(
        Comparison("duplicates", "MERGE x", ["id"], left, right)
    )


def test_rows_in_the_errors_of_both_sides_are_shown_once() -> None:
    hint = "Target row (id = 1) is matched by source rows 2 and 5 by clause 0."
    error = ErrorRecord("MERGE_TARGET_ROW_MULTIPLE_MATCHES", "Two rows", None, None, 1, hint, "run")
    left, right = (
        side(name, [], state="failed", error=error, count=None) for name in ("trino", "standard")
    )
    bundle = Comparison("duplicates", "MERGE x", ["id"], left, right)._repr_mimebundle_()
    assert bundle["text/plain"].count(hint) == 1
    assert f'<p class="rm-meta">{hint}</p>' in bundle["text/html"]


def test_a_notice_has_the_name_of_its_side_unless_both_have_it() -> None:
    both, alone = NoticeRecord("Of both.", 2), NoticeRecord("A row has <two> versions now.")
    left, right = side("trino", [1], notices=(both, alone)), side("standard", [1], notices=(both,))
    bundle = Comparison("duplicates", "MERGE x", ["id"], left, right)._repr_mimebundle_()
    lines = bundle["text/plain"].splitlines()
    assert lines.count("Notice: line 2: Of both.") == 1
    assert lines.count("Notice, trino: A row has <two> versions now.") == 1
    assert "Notice, trino: A row has &lt;two&gt; versions now." in bundle["text/html"]


def test_long_pages_are_cut_with_a_notice() -> None:
    trace = traces.updatable_trace()
    rows = pa.RecordBatch.from_arrays([pa.array(range(25))], names=["row_id"])
    many = with_parts(
        trace, samples={"stored_pages": tuple(StoredSample(split, rows, 25) for split in range(5))}
    )
    text = str(
        Comparison(
            "flows", "UPDATE x", ["id"], Side("one", Result(trace)), Side("other", Result(many))
        )
    )
    assert "other: 125 rows, 5 splits; by update_rows; the first 3 are shown" in text
    assert text.count("first 10 of 25 rows") == 3


def test_an_unreported_number_is_shown_as_unknown_and_that_of_a_failed_side_is_empty() -> None:
    known, unknown = side("one", [1]), Side("other", side("other", [1]).result)
    failed = Side("third", side("third", [], state="failed", count=None).result)
    for right, rows_after in (
        (unknown, ["rows", "after", "1", "not", "known"]),
        (failed, ["rows", "after", "1"]),
    ):
        compared = Comparison("flows", "UPDATE x", ["id"], known, right)
        assert rows_after in [line.split() for line in str(compared).splitlines()]
        assert ("not known" in compared._repr_mimebundle_()["text/html"]) == (right is unknown)


def test_rows_are_aligned_by_their_numbers_and_values_and_markup_in_them_is_text() -> None:
    trace = building.merge_trace()
    left, right = (
        Side(name, Result(one), pa.table({"id": [1]}))
        for name, one in (("one", trace), ("other", otherwise(trace)))
    )
    bundle = Comparison("paradigms", "MERGE x", ["id"], left, right)._repr_mimebundle_()
    lines = bundle["text/plain"].splitlines()
    start = lines.index("What transform_page does with each row")
    marked = [line for line in lines[start + 2 :] if "≠" in line]
    assert len(marked) == 1
    assert "<b>other</b>" in marked[0]
    assert "&lt;b&gt;other&lt;/b&gt;" in bundle["text/html"]
    assert "What transform_page does" not in str(
        Comparison("paradigms", "MERGE x", ["id"], left, left)
    )


def otherwise(trace: Trace) -> Trace:
    """Return a trace in which the first row that leaves `transform_page` has another value."""
    assert trace.samples.pages is not None
    after = trace.samples.pages.after
    texts = next(
        index for index, field in enumerate(after.schema) if pa.types.is_string(field.type)
    )
    changed = pa.array(["<b>other</b>", *after.column(texts).to_pylist()[1:]], pa.string())
    columns = [changed if index == texts else column for index, column in enumerate(after.columns)]
    return with_parts(
        trace,
        samples={
            "pages": dataclasses.replace(
                trace.samples.pages, after=pa.RecordBatch.from_arrays(columns, schema=after.schema)
            )
        },
    )


def test_rows_of_a_sample_or_of_a_large_statement_are_not_aligned_and_the_report_names_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = building.merge_trace()
    other = otherwise(trace)
    assert trace.samples.pages is not None
    assert other.samples.pages is not None
    sampled = with_parts(
        other,
        samples={
            "pages": dataclasses.replace(other.samples.pages, complete=False),
            "stored_pages": (),
        },
    )
    compared = Comparison(
        "paradigms", "MERGE x", ["id"], side_of("one", trace), side_of("other", sampled)
    )
    bundle = compared._repr_mimebundle_()
    for text in bundle.values():
        assert "What transform_page does with each row" not in text
        assert "would look unchanged" in " ".join(text.split())
    monkeypatch.setattr(
        "rowmerge_nb.report.model.alignment.MOST_JOINED", trace.samples.pages.before.num_rows - 1
    )
    large = str(
        Comparison(
            "paradigms",
            "MERGE x",
            ["id"],
            side_of("one", trace),
            side_of("other", with_parts(other, samples={"stored_pages": ()})),
        )
    )
    assert "Rows are compared side by side for statements with at most" in large


def test_rows_are_aligned_once_per_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = building.merge_trace()
    asked = []
    monkeypatch.setattr(
        "rowmerge_nb.report.comparison_report.aligned_rows",
        lambda *traces: asked.append(traces) or (),
    )
    compared = Comparison(
        "paradigms", "MERGE x", ["id"], side_of("one", trace), side_of("other", otherwise(trace))
    )
    compared._repr_mimebundle_()
    assert len(asked) == 1


def side_of(name: str, trace: Trace) -> Side:
    return Side(name, Result(trace), pa.table({"id": [1]}))
