"""Traces that earlier versions have saved open, and give the report that they gave then."""

from __future__ import annotations

import copy
import datetime as dt
import json
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import RowMergeError, load_trace, save_trace
from rowmerge_nb.choices import StatementState
from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.spi import PageLayout
from rowmerge_nb.trace.journeys import Answer
from rowmerge_nb.trace.near import Difference, NearCount, NearKeys, NearRow, NearSide, NearTerm, Separation
from rowmerge_nb.trace.raised import Raised
from rowmerge_nb.trace.saved.earlier import FORMAT, of_present_format
from rowmerge_nb.trace.trace import CHANGED_TWICE, AskedRows, Call, Trace
from tests.report.building import merge_trace
from tests.report.cases import CASES
from tests.trace.saved.test_traces import mutated

HERE = Path(__file__).parent


def test_a_trace_in_the_first_format_gives_the_report_that_it_gave_then(tmp_path: Path) -> None:
    trace = load_trace(HERE / "saved_in_format_1.json")
    assert mime_bundle(trace)["text/plain"] == (HERE / "saved_in_format_1.txt").read_text(encoding="utf-8").rstrip("\n")
    save_trace(trace, tmp_path / "again.json")
    assert load_trace(tmp_path / "again.json") == trace


def test_a_trace_in_the_third_format_opens_and_knows_no_versions(tmp_path: Path) -> None:
    trace = load_trace(HERE / "saved_in_format_1.json")
    save_trace(replace(trace, version_before=3, version_after=4), tmp_path / "now.json")
    (content,) = json.loads((tmp_path / "now.json").read_text()).values()
    assert (content["fields"].pop("version_before"), content["fields"].pop("version_after")) == (3, 4)
    (tmp_path / "then.json").write_text(json.dumps({"rowmerge_nb trace 3": content}))
    assert load_trace(tmp_path / "then.json") == trace
    (tmp_path / "strange.json").write_text(json.dumps({FORMAT: content}))
    with pytest.raises(RowMergeError, match="version_before: it is missing"):
        load_trace(tmp_path / "strange.json")


def test_a_trace_in_the_fifth_format_opens_and_knows_no_error_of_connector_code(tmp_path: Path) -> None:
    trace = load_trace(HERE / "saved_in_format_1.json")
    save_trace(replace(trace, raised=(Raised("finish", "writer", 0, 1, "KeyError", "'a'"),)), tmp_path / "now.json")
    assert load_trace(tmp_path / "now.json").raised[0].what == "KeyError: 'a'"
    (content,) = json.loads((tmp_path / "now.json").read_text()).values()
    assert content["fields"].pop("raised")["items"]
    (tmp_path / "then.json").write_text(json.dumps({"rowmerge_nb trace 5": content}))
    assert load_trace(tmp_path / "then.json") == trace


@pytest.mark.parametrize(
    ("method", "told", "parted"),
    [
        ("get_update_layout", "none", ("", "none", "")),
        ("get_splits", "3 splits", ("", "3 splits", "")),
        ("begin_merge", "table a.b.c; gives Mine", ("table a.b.c", "Mine", "")),
        ("begin_merge", "injected: begin_merge:1:slow", ("", "", "begin_merge:1:slow")),
        ("begin_update", "a, b", ("a, b", "", "")),
        ("create_merge_sink", "Mine", ("Mine", "", "")),
        ("store_merged_rows", "D 2, I 4, injected: store_merged_rows:1:twice", ("D 2, I 4", "", "store_merged_rows:1:twice")),
        ("finish", "2 fragments", ("", "2 fragments", "")),
        ("finish_merge", "2 fragments, 1 delta file, 4 rows", ("2 fragments", "1 delta file, 4 rows", "")),
        ("commit", "the transaction of catalog c, gives version 5", ("the transaction of catalog c", "version 5", "")),
        ("rollback", "the transaction of catalog c", ("the transaction of catalog c", "", "")),
        ("restore_table", "version 3", ("version 3", "", "")),
    ],
)
def test_a_call_in_the_eighth_format_told_in_one_text_what_it_was_given_and_what_it_gave(
    tmp_path: Path, method: str, told: str, parted: tuple[str, str, str]
) -> None:
    save_trace(replace(merge_trace(), calls=(Call(1, "coordinator", method),)), tmp_path / "now.json")
    (content,) = json.loads((tmp_path / "now.json").read_text()).values()
    (call,) = content["fields"]["calls"]["items"]
    for name in ("given", "gave", "injected"):
        del call["fields"][name]
    call["fields"]["carries"] = told
    (tmp_path / "then.json").write_text(json.dumps({"rowmerge_nb trace 8": content}))
    (opened,) = load_trace(tmp_path / "then.json").calls
    assert (opened.given, opened.gave, opened.injected) == parted


def test_a_trace_in_the_sixth_format_opens_and_has_added_no_columns(tmp_path: Path) -> None:
    trace = load_trace(HERE / "saved_in_format_1.json")
    save_trace(replace(trace, added=(("city", "varchar"),)), tmp_path / "now.json")
    assert load_trace(tmp_path / "now.json").added == (("city", "varchar"),)
    (content,) = json.loads((tmp_path / "now.json").read_text()).values()
    assert content["fields"].pop("added")["items"]
    (tmp_path / "then.json").write_text(json.dumps({"rowmerge_nb trace 6": content}))
    assert load_trace(tmp_path / "then.json") == trace


def test_a_trace_in_the_sixth_format_opens_and_knows_nothing_of_the_tasks_that_made_its_rows(tmp_path: Path) -> None:
    trace = load_trace(HERE / "saved_in_format_1.json")
    assert trace.pages is not None
    rows = trace.pages.before.num_rows
    save_trace(replace(trace, pages=replace(trace.pages, tasks=(1, rows - 1))), tmp_path / "now.json")
    now = load_trace(tmp_path / "now.json")
    assert now.pages is not None
    assert now.pages.tasks == (1, rows - 1)
    (content,) = json.loads((tmp_path / "now.json").read_text()).values()
    tasks = content["fields"]["pages"]["fields"].pop("tasks")
    (tmp_path / "then.json").write_text(json.dumps({"rowmerge_nb trace 6": content}))
    assert load_trace(tmp_path / "then.json") == trace
    content["fields"]["pages"]["fields"]["tasks"] = {**tasks, "items": [1, 1]}
    (tmp_path / "strange.json").write_text(json.dumps({FORMAT: content}))
    with pytest.raises(RowMergeError, match=r"pages.tasks: it does not add up to"):
        load_trace(tmp_path / "strange.json")


def test_a_trace_in_the_sixth_format_opens_and_does_not_know_how_rows_were_placed(tmp_path: Path) -> None:
    trace = merge_trace()
    assert trace.pages is not None
    assert trace.pages.placement is not None
    trace = replace(trace, asked=AskedRows("id = 1", trace.pages))
    save_trace(trace, tmp_path / "now.json")
    assert load_trace(tmp_path / "now.json") == trace
    content = json.loads((tmp_path / "now.json").read_text())[FORMAT]
    for pages in (content["fields"]["pages"], content["fields"]["asked"]["fields"]["pages"]):
        del pages["fields"]["placement"]
    (tmp_path / "then.json").write_text(json.dumps({"rowmerge_nb trace 6": content}))
    unplaced = replace(trace.pages, placement=None)
    assert load_trace(tmp_path / "then.json") == replace(trace, pages=unplaced, asked=AskedRows("id = 1", unplaced))


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        ("writers", 0, "placement.writers: 0 is not a number of writers"),
        ("numbers", {"is": "tuple", "items": [1]}, "placement: it tells of 1 rows, and there are 9"),
    ],
)
def test_numbers_that_place_rows_are_as_many_as_these_and_chose_among_writers(
    tmp_path: Path, field: str, value: Any, wrong: str
) -> None:
    save_trace(merge_trace(), tmp_path / "trace.json")
    content = json.loads((tmp_path / "trace.json").read_text())
    content[FORMAT]["fields"]["pages"]["fields"]["placement"]["fields"][field] = value
    (tmp_path / "trace.json").write_text(json.dumps(content))
    with pytest.raises(RowMergeError, match=wrong):
        load_trace(tmp_path / "trace.json")


@pytest.mark.parametrize(
    ("version", "wrong"),
    [(1.5, "1.5 is none of int, str"), (True, "True is none of int, str"), ([], "a list is none of int, str")],
)
def test_a_version_is_a_number_or_a_name(tmp_path: Path, version: Any, wrong: str) -> None:
    save_trace(replace(load_trace(HERE / "saved_in_format_1.json"), version_after="main"), tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json").version_after == "main"
    content = json.loads((tmp_path / "trace.json").read_text())
    content[FORMAT]["fields"]["version_after"] = version
    (tmp_path / "trace.json").write_text(json.dumps(content))
    with pytest.raises(RowMergeError, match=wrong):
        load_trace(tmp_path / "trace.json")


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


def without_layouts(value: Any) -> Any:
    """Write a saved trace as the first format did, whose samples did not say where their channels lie."""
    if isinstance(value, list):
        return [without_layouts(item) for item in value]
    if not isinstance(value, dict):
        return value
    left_out = {"layout", "transformed"} if value.get("is") in {"PageSample", "StoredSample"} else set()
    fields = (
        {name: without_layouts(item) for name, item in value["fields"].items() if name not in left_out}
        if "fields" in value
        else {}
    )
    if value.get("is") == "BranchRecord":
        return {"is": "CaseBranch", "fields": {name: item for name, item in fields.items() if name != "present"}}
    return {**{name: without_layouts(item) for name, item in value.items()}, **({"fields": fields} if fields else {})}


@pytest.mark.parametrize("name", CASES)
def test_where_channels_lie_is_found_out_of_pages_that_did_not_say_it(name: str, tmp_path: Path) -> None:
    path, trace = tmp_path / "trace.json", CASES[name]()
    save_trace(trace, path)
    content = json.loads(path.read_text())[FORMAT]
    path.write_text(json.dumps({"rowmerge_nb trace 1": without_layouts(content)}))
    opened = load_trace(path)
    assert opened.pages == (trace.pages and replace(trace.pages, placement=None))
    assert [sample.page for sample in opened.stored] == [sample.page for sample in trace.stored]


def test_the_layouts_of_a_trace_in_the_first_format_are_those_of_its_statement() -> None:
    trace = load_trace(HERE / "saved_in_format_1.json")
    assert trace.pages is not None
    assert (trace.pages.layout, trace.pages.transformed) == (PageLayout(3, (2,)), True)
    assert [sample.layout for sample in trace.stored] == [PageLayout(3)] * len(trace.stored)


def test_a_page_of_the_first_format_that_is_none_is_refused_at_its_place(tmp_path: Path) -> None:
    content = json.loads((HERE / "saved_in_format_1.json").read_text())
    content["rowmerge_nb trace 1"]["fields"]["pages"]["fields"]["after"]["arrow"] = "AAAA"
    (tmp_path / "x.json").write_text(json.dumps(content))
    with pytest.raises(RowMergeError, match=r"\$\.pages\.after: it holds no page of Arrow data"):
        load_trace(tmp_path / "x.json")


def test_whatever_is_changed_in_a_file_of_the_first_format_it_is_refused_by_our_error_or_can_be_drawn(tmp_path: Path) -> None:
    path, draw = tmp_path / "x.json", random.Random(5)
    content = json.loads((HERE / "saved_in_format_1.json").read_text())
    for round_ in range(200):
        damaged = copy.deepcopy(content)
        part = damaged["rowmerge_nb trace 1"]["fields"]
        within = part if round_ % 2 else {name: part[name] for name in ("pages", "stored")}
        with suppress(KeyError, IndexError, TypeError):
            mutated(within, draw)
        part |= within
        path.write_text(json.dumps(damaged))
        with suppress(RowMergeError):
            mime_bundle(load_trace(path))


def test_a_trace_in_the_third_format_has_nothing_about_near_keys() -> None:
    fields = {name: value for name, value in record("Trace", kind="MERGE")["fields"].items() if name != "near"}
    assert of_present_format({"rowmerge_nb trace 3": record("Trace", **fields)})["fields"]["near"] is None


def test_near_keys_are_saved_and_opened(tmp_path: Path) -> None:
    row = NearRow(
        0,
        {"at": dt.date(2024, 1, 1), "x": None},
        (b"a",),
        (None,),
        (Separation(0, (Difference.NULL,)),),
        (Answer.UNKNOWN,),
        2,
    )
    side = NearSide(3, 1, (row,), (NearCount((Difference.NULL,), 1),))
    trace = Trace(
        statement="MERGE",
        kind="MERGE",
        state=StatementState.FINISHED,
        near=NearKeys((NearTerm("t.k = s.k"),), side, None, "", letters=True),
    )
    save_trace(trace, tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json").near == trace.near
    content = json.loads((tmp_path / "trace.json").read_text())
    content[FORMAT]["fields"]["near"]["fields"]["source"]["fields"]["told"]["items"][0]["fields"]["answers"]["items"] = ["x"]
    (tmp_path / "trace.json").write_text(json.dumps(content))
    with pytest.raises(RowMergeError, match="answers"):
        load_trace(tmp_path / "trace.json")


def test_a_trace_in_the_fourth_format_opens_and_knows_of_no_rows_that_were_asked_for(tmp_path: Path) -> None:
    trace = load_trace(HERE / "saved_in_format_1.json")
    save_trace(replace(trace, asked=AskedRows("id = 1", trace.pages, more=True)), tmp_path / "now.json")
    (content,) = json.loads((tmp_path / "now.json").read_text()).values()
    del content["fields"]["asked"], content["fields"]["untouched"]
    (tmp_path / "then.json").write_text(json.dumps({"rowmerge_nb trace 4": content}))
    assert load_trace(tmp_path / "then.json") == trace
    (tmp_path / "strange.json").write_text(json.dumps({FORMAT: content}))
    with pytest.raises(RowMergeError, match=r"\$\.asked: it is missing"):
        load_trace(tmp_path / "strange.json")


def test_a_trace_in_the_fifth_format_opens_and_knows_of_no_rows_that_there_would_be(tmp_path: Path) -> None:
    trace = load_trace(HERE / "saved_in_format_1.json")
    assert trace.plan
    save_trace(trace, tmp_path / "now.json")
    (content,) = json.loads((tmp_path / "now.json").read_text()).values()
    for node in content["fields"]["plan"]["items"]:
        del node["fields"]["would"]
    (tmp_path / "then.json").write_text(json.dumps({"rowmerge_nb trace 5": content}))
    assert load_trace(tmp_path / "then.json") == trace
    for strange in ({"items": [3]}, {"items": 3}, 3):
        content["fields"]["plan"] = strange
        (tmp_path / "strange.json").write_text(json.dumps({"rowmerge_nb trace 5": content}))
        with pytest.raises(RowMergeError, match="INVALID_ARGUMENTS"):
            load_trace(tmp_path / "strange.json")
