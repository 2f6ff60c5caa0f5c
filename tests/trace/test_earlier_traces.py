"""Traces that earlier versions have saved open, and give the report that they gave then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import load_trace, save_trace
from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.trace.earlier import of_present_format
from rowmerge_nb.trace.trace import CHANGED_TWICE

HERE = Path(__file__).parent


def test_a_trace_in_the_first_format_gives_the_report_that_it_gave_then(tmp_path: Path) -> None:
    trace = load_trace(HERE / "saved_in_format_1.json")
    assert mime_bundle(trace)["text/plain"] == (HERE / "saved_in_format_1.txt").read_text(encoding="utf-8").rstrip("\n")
    save_trace(trace, tmp_path / "again.json")
    assert load_trace(tmp_path / "again.json") == trace


def record(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"is": kind, "fields": fields}


def brought(kind: str, /, **fields: Any) -> Any:
    return of_present_format({"rowmerge_nb trace 1": record(kind, **fields)})["fields"]


def test_what_the_first_format_kept_as_text_becomes_fields() -> None:
    call = brought("Call", order=1, where="split 3")
    assert (call["caller"], call["number"], call.get("where")) == ("split", 3, None)
    assert brought("Call", order=1, where="coordinator")["number"] is None
    assert brought("NoticeRecord", message="1 target row was changed by more than one clause.")["kind"] == CHANGED_TWICE
    assert brought("NoticeRecord", message="Another.")["kind"] == ""
    clause = brought("ClauseRecord", text="WHEN NOT MATCHED BY SOURCE\nTHEN DELETE")
    assert (clause["by_source"], clause["head"]) == (True, "WHEN NOT MATCHED BY SOURCE THEN DELETE")
    told = brought("ErrorRecord", consequences={"is": "tuple", "items": ["begin_merge was called", "no sink was created"]})
    assert [item["fields"] for item in told["consequences"]["items"]] == [
        {"text": "was called", "method": "begin_merge"},
        {"text": "no sink was created", "method": ""},
    ]


@pytest.mark.parametrize(
    ("kind", "attributes", "facts"),
    [
        ("TableScan", {"role": "target"}, record("ScanFacts", target=True, name="a")),
        (
            "Join",
            {"distribution": "SINGLE", "full": "yes"},
            record("JoinFacts", distribution="SINGLE", replicate_target=False, type="FullJoin"),
        ),
        ("MarkDistinct", {"exchange": "yes"}, record("MarkDistinctFacts", exchange=True)),
        (
            "MergeProcessor",
            {"paradigm": "P", "redistribution": "x,y"},
            record("ProcessorFacts", paradigm="P", redistribution_columns={"is": "tuple", "items": ["x", "y"]}),
        ),
        ("MergeWriter", {"fused": "no"}, record("WriterFacts", fused=False)),
        ("Output", {}, None),
    ],
)
def test_attributes_of_the_first_format_become_facts(kind: str, attributes: dict[str, str], facts: Any) -> None:
    items = [["trino", "t"], *(list(pair) for pair in attributes.items())]
    node = brought("NodeRecord", kind=kind, arguments="t a", attributes={"is": "mapping", "items": items})
    assert (node["facts"], node["trino"]) == (facts, "t")


@pytest.mark.parametrize(
    "odd", [None, 3, [], {}, {"is": 3}, {"is": "tuple", "items": 3}, {"is": "tuple", "items": [None, [], {"is": "NodeRecord"}]}]
)
def test_nothing_odd_in_the_first_format_ends_its_reading(odd: Any) -> None:
    names = (
        "plan",
        "branches",
        "layout",
        "attributes",
        "values",
        "operation",
        "clause",
        "text",
        "where",
        "consequences",
        "clauses",
    )
    fields = dict.fromkeys((*names, "message", "kind", "arguments", "qualified", "matched", "is"), odd)
    node = record("NodeRecord", **{**fields, "branches": {"is": "tuple", "items": [record("CaseBranch", **fields)]}})
    for name in ("NodeRecord", "CaseBranch", "ClauseRecord", "Call", "NoticeRecord", "ErrorRecord"):
        assert brought(name, **fields)
    assert brought("Trace", **{**fields, "plan": {"is": "tuple", "items": [node, odd]}})
