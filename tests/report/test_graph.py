from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from rowmerge_nb.report.drawing.dot import COLORS
from rowmerge_nb.report.drawing.graph import pages_dot, plan_dot
from rowmerge_nb.report.drawing.metrics import text_width
from rowmerge_nb.report.drawing.svg import dot_to_svg
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.plain_text import render_text
from rowmerge_nb.trace.node_records import NodeRecord, QueryFacts, ScanFacts
from rowmerge_nb.trace.trace import Trace
from tests.report import building, snapshot, traces
from tests.report.building import Setup
from tests.report.cases import CASES

SVG = "{http://www.w3.org/2000/svg}"
WITH_PLAN = [name for name, make in CASES.items() if make().plan]
DRAWN = [
    "merge",
    "merge_only_changed",
    "merge_mark_exchange",
    "explain",
    "dry_run",
    "merge_not_partitioned",
    "insert",
    "update_updatable",
]


@pytest.mark.parametrize("name", DRAWN)
def test_the_drawing_of_a_plan_is_its_snapshot(name):
    snapshot.check(f"{name}.plan.dot", plan_dot(build_report(CASES[name]())).strip())


@pytest.mark.parametrize("name", ["merge", "merge_only_changed", "merge_current", "wide"])
def test_the_drawing_of_channels_is_its_snapshot(name):
    snapshot.check(f"{name}.pages.dot", pages_dot(build_report(CASES[name]())).strip())


@pytest.mark.parametrize("name", WITH_PLAN)
def test_every_plan_can_be_drawn(name):
    report = build_report(CASES[name]())
    drawings = [plan_dot(report), *([pages_dot(report)] if report.pages else [])]
    for dot in drawings:
        root = ET.fromstring(dot_to_svg(dot, prefix="p", title="<t>", description="&"))
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            "svg",
            "title",
            "desc",
            "path",
            "polygon",
            "text",
            "tspan",
        }
        assert root.find(f"{SVG}title").text == "<t>"
        for element in root.iter():
            assert all(
                re.fullmatch(r"[fsa]-\w+|[mbscr]", name)
                for name in element.get("class", "").split()
                if name != "rm-svg"
            )


@pytest.mark.parametrize("name", ["merge", "wide", "many_clauses", "hostile"])
def test_text_fits_into_the_drawing(name):
    root = ET.fromstring(dot_to_svg(plan_dot(build_report(CASES[name]()))))
    width = float(root.get("width"))
    for element in root.iter(f"{SVG}text"):
        if "r" in element.get("class", "").split() or "c" in element.get("class", "").split():
            continue
        runs = [(element.text or "", element), *((span.text or "", span) for span in element)]
        length = sum(
            text_width(
                text,
                12,
                mono="m" in (e.get("class") or "").split(),
                bold="b" in (e.get("class") or "").split(),
            )
            for text, e in runs
        )
        assert float(element.get("x")) + length <= width


@pytest.mark.not_quick
def test_bytes_do_not_depend_on_fonts(tmp_path):
    """Another font configuration, another process, another hash seed: the same bytes."""
    (tmp_path / "fonts.conf").write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig></fontconfig>'
    )
    code = (
        "from tests.report.building import merge_trace; from rowmerge_nb.report import mime_bundle; import hashlib;"
        "print(hashlib.sha256(mime_bundle(merge_trace())['text/html'].encode()).hexdigest())"
    )
    hashes = set()
    for seed, fonts in (("1", str(tmp_path / "fonts.conf")), ("2", None)):
        environment = {"PYTHONHASHSEED": seed, "PATH": ""} | (
            {"FONTCONFIG_FILE": fonts} if fonts else {}
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=building.ROOT,
            env=environment,
        )
        hashes.add(done.stdout)
    assert len(hashes) == 1


def test_the_duplicate_check_is_between_mark_distinct_and_transform_page():
    dot = plan_dot(build_report(building.merge_trace()))
    assert dot.index("MarkDistinct") < dot.index("DuplicateCheck") < dot.index("transform_page")


def test_the_exchange_of_mark_distinct_is_drawn_if_it_exists():
    assert "hash(unique_id)" in plan_dot(
        build_report(building.merge_trace(Setup(mark_exchange=True)))
    )
    assert "hash(unique_id)" not in plan_dot(build_report(building.merge_trace()))


def test_explain_has_no_numbers_of_rows_and_a_dry_run_has_dashes():
    explain, dry = (
        plan_dot(build_report(traces.explain_trace(state=state)))
        for state in ("explained", "planned")
    )
    assert not re.search(r"\d\u00a0rows?<", explain)
    assert not re.search(r">[DUI·]\u00a0\d", explain)
    assert "dashed" not in explain
    assert dry.count("style=dashed") == 3
    assert "not\u00a0called" in dry


def test_edges_are_as_thick_as_their_rows_up_to_a_limit():
    widths = [
        float(width)
        for width in re.findall(
            r"penwidth=([\d.]+)", plan_dot(build_report(traces.many_clauses_trace()))
        )
    ]
    assert max(widths) <= 6.5
    assert min(widths) >= 1


def test_many_clauses_and_writers_stay_narrow():
    svg = dot_to_svg(plan_dot(build_report(traces.many_clauses_trace())))
    assert float(ET.fromstring(svg).get("width")) <= 800
    assert "4\u00a0more\u00a0writers" in svg
    assert "more\u00a0clauses" in svg


def test_a_wide_table_is_drawn_with_its_first_columns_and_its_partition_columns():
    dot = pages_dot(build_report(traces.wide_trace()))
    assert "20\u00a0more\u00a0columns" in dot
    assert "region" in dot
    assert float(ET.fromstring(dot_to_svg(dot)).get("width")) <= 1080


def test_a_drawing_of_its_own_carries_its_style():
    dot = plan_dot(build_report(building.merge_trace()))
    assert "prefers-color-scheme:dark" in dot_to_svg(dot, standalone=True)
    assert "<style>" not in dot_to_svg(dot)


def test_undrawable_plans_are_refused():
    report = build_report(traces.simple_trace("DROP TABLE"))
    with pytest.raises(ValueError, match="DROP TABLE has no plan"):
        plan_dot(report)
    with pytest.raises(ValueError, match="DROP TABLE has no pages"):
        pages_dot(report)


def test_colours_of_the_drawing_are_those_of_the_style_sheet():
    from rowmerge_nb.report.html import style_sheet

    for name, value in COLORS.items():
        assert f"--rm-{name}:{value}" in style_sheet()


def test_the_redistribution_columns_end_at_transform_page_under_change_only_updated_columns():
    dots = {
        paradigm: pages_dot(build_report(building.merge_trace(Setup(paradigm=paradigm))))
        for paradigm in (building.DELETE_AND_INSERT, building.ONLY_CHANGED)
    }
    assert (
        dots[building.DELETE_AND_INSERT].count("ends here")
        == dots[building.ONLY_CHANGED].count("ends here") - 1
    )
    assert "before:p0:s -> after:s2:n" in dots[building.DELETE_AND_INSERT]
    assert "before:p0:s" not in dots[building.ONLY_CHANGED]


def test_the_edge_to_a_missing_sink_is_dashed():
    dot = plan_dot(build_report(building.merge_trace(Setup(rows=()))))
    assert "no\u00a0sink\u00a0was\u00a0created" in dot
    assert dot.count("style=dashed") == 2


def test_an_exchange_is_drawn_for_any_preceding_node_of_a_saved_trace():
    trace = building.merge_trace()
    plan = tuple(
        replace(record, kind="Filter") if record.kind == "MergeProcessor" else record
        for record in trace.plan
    )
    assert "Exchange" in plan_dot(build_report(replace(trace, plan=plan)))


def node(
    name: str, arguments: str = "", *sources: tuple[NodeRecord, ...]
) -> tuple[NodeRecord, ...]:
    """Return the records of a node and of its descendants."""
    below = [record for records in sources for record in records]
    identity = f"{name} {arguments}"
    root = NodeRecord(
        identity, name, name, arguments, (), (), tuple(records[0].id for records in sources), ""
    )
    return (root, *below)


def with_query(nodes: tuple[NodeRecord, ...]) -> Trace:
    """Return the documents' MERGE with a query as its source."""
    trace = CASES["merge"]()
    source = next(
        record
        for record in trace.plan
        if isinstance(record.facts, ScanFacts) and not record.facts.target
    )
    query = replace(
        source, kind="Source", name="Source", arguments="SELECT ...", facts=QueryFacts(nodes)
    )
    return replace(
        trace, plan=tuple(query if record is source else record for record in trace.plan)
    )


SCAN = node("TableScan", "orders")
FILTERED = node("Filter", "(amount > 3)", SCAN)
JOINED = node("InnerJoin", "(customer = id)", FILTERED, node("TableScan", "customers"))
QUERY = node("Aggregate", "[customer], sum := sum(amount)", JOINED)


def test_a_source_query_is_drawn_by_its_nodes_those_that_are_joined_further_to_the_right():
    dot = plan_dot(build_report(with_query(QUERY)))
    drawn = [
        (len(re.match("\u00a0*", text)[0]), text.strip("\u00a0"))
        for text in re.findall(r">([^<>]+)</", dot)
    ]
    depths = {text: depth for depth, text in drawn}
    order = [text for _, text in drawn]
    names = ["TableScan", "Filter", "TableScan", "InnerJoin", "Aggregate", "Source"]
    at = order.index("InnerJoin")
    assert [text for text in order[at - 6 : at + 8] if text in names][: len(names)] == names
    assert [depths[name] for name in names] == [4, 4, 4, 0, 0, 0]


def test_the_last_nodes_of_a_source_query_with_very_many_are_drawn():
    scans = [node("TableScan", f"t{number}") for number in range(30)]
    dot = plan_dot(build_report(with_query(node("Union", "ALL", *scans)))).replace("\u00a0", " ")
    assert "… 21 more nodes, which EXPLAIN shows" in dot
    assert ("t20" in dot, "t21" in dot, "t29" in dot) == (False, True, True)


def test_the_text_shows_a_source_query_as_a_tree():
    lines = render_text(build_report(with_query(QUERY)), show="plan").split("\n")
    at = next(index for index, line in enumerate(lines) if "Source" in line)
    assert [line.strip() for line in lines[at + 1 : at + 6]] == [
        "Aggregate [customer], sum := sum(amount)",
        "└─ InnerJoin (customer = id)",
        "├─ Filter (amount > 3)",
        "│  └─ TableScan orders",
        "└─ TableScan customers",
    ]
