from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.report.html import PageEntry, render_html, render_page, style_for, style_sheet
from rowmerge_nb.report.model.report import PARTS, build_report
from tests.report import building, traces
from tests.report.cases import CASES
from tests.report.explorer_browser import needs_browser, seen

VOID = {"meta", "br", "wbr"}
ALLOWED = {
    "div", "style", "pre", "p", "b", "span", "code", "table", "thead", "tbody", "tfoot", "tr", "th", "td", "i", "small", "details",
    "summary", "dl", "dt", "dd", "del", "ins", "br", "svg", "title", "desc", "path", "polygon", "text", "tspan",
}  # fmt: skip


class Reader(HTMLParser):
    """Records tags, attributes and text, and that every tag is closed at its position."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.ids, self.attributes, self.text = [], [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def html(trace, **options):
    return render_html(build_report(trace), **options)


@pytest.mark.parametrize("name", CASES)
def test_a_bundle_has_always_the_same_keys(name):
    bundle = mime_bundle(CASES[name]())
    assert list(bundle) == ["text/plain", "text/html"]


@pytest.mark.parametrize("name", CASES)
def test_a_fragment_is_well_formed_and_has_no_script(name):
    shown = html(CASES[name]())
    reader = Reader(shown)
    assert set(reader.tags) <= ALLOWED
    assert len(reader.ids) == len(set(reader.ids))
    assert not any(
        attribute.startswith("on") or attribute in {"href", "src", "xlink:href"}
        for _, attribute, _ in reader.attributes
    )
    assert "url(" not in shown
    assert "@import" not in shown


@pytest.mark.parametrize("name", CASES)
def test_a_fragment_is_readable_as_text_without_styles(name):
    trace = CASES[name]()
    stripped = re.sub(r"<style>.*?</style>", "", html(trace), flags=re.DOTALL)
    assert re.match(
        r'<div class="rm rm-[0-9a-f]{6}" id="rm-[0-9a-f]{8}-0">\s*<pre class="rm-text" style="[^"]+">',
        stripped,
    )
    assert '<div class="rm-rich" hidden="hidden">' in stripped, (
        "without a value the attribute is dropped by notebooks' sanitizers"
    )
    first = mime_bundle(trace)["text/plain"].split("\n")[0]
    assert first in "".join(Reader(stripped).text)


def test_the_text_of_an_untrusted_notebook_is_short_and_names_how_to_see_more():
    def text(shown: str) -> str:
        return re.search(r"<pre[^>]*>(.*?)</pre>", shown, re.DOTALL)[1]

    trace = building.merge_trace()
    short = text(html(trace))
    assert short.count("\n") < 45
    assert unescape(short).startswith(mime_bundle(trace)["text/plain"])
    assert "Trust Notebook" in short
    assert "Trust Notebook" not in text(html(CASES["insert"]())), "its short text is all there is"
    assert text(html(trace, show="all")).count("\n") > 100


@pytest.mark.parametrize("name", CASES)
def test_references_refer_to_existing_ids(name):
    reader = Reader(html(CASES[name]()))
    for _, attribute, value in reader.attributes:
        if attribute == "aria-labelledby":
            assert set(value.split()) <= set(reader.ids)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", CASES)
def test_every_part_can_be_requested_for_every_statement(name, part):
    bundle = mime_bundle(CASES[name](), show=part, timings=True, number=3, first_line=5)
    Reader(bundle["text/html"])


def test_a_very_wide_table_shows_fewer_rows():
    rows = [replace(building.ROWS[3], source=("x",) * 200, new=("x",) * 200) for _ in range(40)]
    columns = [building.pa.field(f"c{n}", building.pa.string()) for n in range(200)]
    trace = building.merge_trace(building.Setup(rows=rows, columns=columns, redistribution=("c3",)))
    shown = html(trace)
    assert "5 of 40 rows" in shown
    assert "first 5 of 40 rows changed" in shown
    assert len(shown) < 250_000


def test_hostile_text_stays_text():
    shown = html(traces.hostile_trace())
    assert "<script" not in shown
    assert "<img" not in shown
    assert "\u202e" not in shown
    assert "\u200f" not in shown
    assert "\x07" not in shown
    assert "x" * 1000 not in shown
    assert "(100,000 characters)" in shown
    assert "日本語" in shown


def test_number_distinguishes_outputs_of_one_statement():
    one, two = (Reader(html(building.merge_trace(), number=number)).ids for number in (1, 2))
    assert not set(one) & set(two)
    assert html(building.merge_trace(), number=1) == html(building.merge_trace(), number=1)


def test_a_small_statement_stays_small():
    assert len(html(building.merge_trace()).encode()) < 76_000


def test_folds_are_closed_until_requested_except_the_changed_rows_and_a_few_journeys():
    page = html(building.merge_trace())
    assert page.count("<details open>") == 2
    assert "<details open><summary>Row journeys" in page
    rows = building.ROWS * 2
    assert html(building.merge_trace(building.Setup(rows=rows))).count("<details open>") == 1
    assert page.index("<details open><summary>Changed rows") < page.index("in the order tried")
    assert html(building.merge_trace(), show="calls,diff,stored").count("<details open>") == 3


@needs_browser
def test_a_default_report_is_short(tmp_path: Path) -> None:
    """A MERGE of seven rows: the words and the height that a reader sees before the first click."""
    script = """
    const page = one(".rm-rich");
    told.words = page.innerText.match(/\\S*[A-Za-z]\\S*/g).length;
    told.height = page.offsetHeight;"""
    for width, most in ((1100, 1400), (918, 1650)):
        told = seen(
            "<!doctype html><html><head><meta charset='utf-8'></head><body>"
            f"{html(building.merge_trace())}</body></html>",
            script,
            tmp_path,
            width=width,
        )
        assert told["words"] <= 600
        assert told["height"] <= most


@needs_browser
@pytest.mark.parametrize("trace", [building.merge_trace, traces.wide_trace])
def test_a_narrow_page_scrolls_only_within_its_panels(tmp_path: Path, trace: Any) -> None:
    script = """
    const page = document.documentElement;
    told.scrolls = page.scrollWidth > page.clientWidth;"""
    for show in (None, "all"):
        page = (
            "<!doctype html><html><head><meta charset='utf-8'></head><body>"
            f"{html(trace(), show=show)}</body></html>"
        )
        assert seen(page, script, tmp_path, width=620)["scrolls"] is False


def test_show_omits_the_other_parts():
    shown = html(building.merge_trace(), show="clauses")
    assert "<svg" not in shown
    assert "rm-clauses" in shown
    assert '<p class="rm-out"' in shown, "the outcome is always shown"


def test_times_are_shown_only_on_request():
    without, with_times = (
        html(building.merge_trace(), timings=timings) for timings in (False, True)
    )
    assert "0.31" not in without
    assert "rm-wf" not in without
    assert "0.31 s" in with_times
    assert "rm-wf" in with_times


def test_a_failed_statement_shows_rows_carets_and_a_remedy():
    shown = html(traces.duplicate_trace(), first_line=2)
    assert '<span class="rm-err">MERGE_TARGET_ROW_MULTIPLE_MATCHES</span>' in shown
    assert "Line 3:6 of the cell. accounts is unchanged (5 rows)." in shown
    assert '<span class="rm-err">^^^^^^^^^^^^^^^^^^^^^^^</span>' in shown
    assert "clause 2, WHEN MATCHED THEN UPDATE" in shown
    assert "aggregating the source." in shown


def test_a_balance_that_does_not_hold_is_an_alert():
    assert 'role="alert">THE BALANCE DOES NOT HOLD' in html(traces.warning_trace())
    assert "THE BALANCE" not in html(building.merge_trace())


def test_wide_tables_scroll_in_a_labelled_region():
    reader = Reader(html(traces.wide_trace()))
    regions = [value for _, attribute, value in reader.attributes if attribute == "aria-label"]
    assert {
        "Plan graph",
        "Rows before transform_page",
        "Rows after transform_page",
        "Clauses",
    } <= set(regions)
    assert sum(
        value == "rm-scroll" for _, attribute, value in reader.attributes if attribute == "class"
    ) == len(regions)


def test_full_types_are_below_a_drawing_without_room_for_them():
    assert (
        "row(&#34;original_transaction&#34; bigint, &#34;bucket&#34; integer, &#34;row&#34; bigint)</code>"
        in html(traces.wide_trace())
    )


def test_every_rule_of_the_style_sheet_is_ours():
    rules = re.sub(
        r"@media print\{|@container \([^)]*\)\{|@supports \(color:light-dark\(#000,#fff\)\)\{",
        "",
        style_sheet(),
    )
    for selectors in re.findall(r"(?:^|\})\s*([^{}]+)\{", rules):
        for selector in selectors.split(","):
            assert ".rm" in selector


def test_a_page_holds_several_statements_with_one_style_sheet():
    entries = [
        PageEntry(build_report(building.merge_trace()), "One <merge>", "Look here."),
        traces.insert_trace(),
    ]
    page = render_page([*entries, build_report(building.merge_trace())], "Demo & more")
    assert page.startswith("<!doctype html>")
    reader = Reader(page.removeprefix("<!doctype html>"))
    assert len(reader.ids) == len(set(reader.ids))
    assert reader.tags.count("style") == 2
    assert "<title>Demo &amp; more</title>" in page
    assert "<h2>One &lt;merge&gt;</h2><p>Look here.</p>" in page
    assert page.count('<pre class="statement">') == 3


def test_an_output_has_only_the_rules_that_it_needs():
    scope, kept = style_for(
        '<p class="rm-meta">1 row</p><svg class="rm-svg"><text class="f-D">a</text></svg>'
    )
    assert f".rm.rm.rm.{scope} .rm-meta{{" in kept
    assert f".rm.rm.rm.{scope} .rm-svg .f-D,.rm.rm.rm.{scope} .rm-svg .a-D{{" in kept, (
        "one of the selectors is enough"
    )
    assert f".rm.rm.rm.{scope} .rm-text{{display:none}}" in kept
    for absent in (".f-U", "rm-ledger", "summary{", ".rm.rm.rm.rm "):
        assert absent not in kept
    for shared in ("--rm-bg:#fff", "@supports (color:light-dark(#000,#fff)){", "@media print{"):
        assert shared in kept
    assert kept.count("{") == kept.count("}")
    assert len(kept) < 0.4 * len(style_sheet())


def test_a_fragment_with_everything_in_it_has_every_rule():
    names = re.findall(r"\.([\w-]+)", style_sheet())
    tags = "".join(f"<{tag}>" for tag in ("code", "del", "details", "dl", "ins", "pre", "summary", "svg", "table", "tbody", "td", "text", "tfoot", "th", "thead", "tr", "dt", "dd", "i", "b", "small", "span"))  # fmt: skip
    scope, kept = style_for(f'<p class="{" ".join(names)}">{tags}')
    assert kept.replace(f".rm.rm.rm.{scope}", ".rm.rm.rm.rm") == style_sheet()


def test_the_rules_of_one_output_apply_to_no_other_unless_they_are_the_same():
    one, other = style_for('<p class="rm-meta">'), style_for('<p class="rm-out">')
    assert one[0] != other[0]
    assert one == style_for('<p class="rm-meta">x')


@pytest.mark.slow
@needs_browser
def test_a_browser_draws_an_output_as_with_the_whole_style_sheet_regardless_of_later_content(
    tmp_path,
):
    fragment = html(building.merge_trace(), show=PARTS)
    scope = re.search(r'class="rm (rm-[0-9a-f]{6})"', fragment)[1]
    whole = re.sub(
        r"<style>.*?</style>",
        lambda _: f"<style>{style_sheet()}</style>",
        fragment,
        count=1,
        flags=re.DOTALL,
    )
    others = "".join(
        html(trace()).replace('id="rm-', 'id="other-')
        for trace in (traces.insert_trace, traces.duplicate_trace)
    )
    script = """
    told.names = Array.from(getComputedStyle(one("#first *")));
    told.styles = all(`#first *`).map((element) => { const found = getComputedStyle(element);
        return [element.tagName, ...told.names.map((name) => found.getPropertyValue(name))]; });"""
    drawn = [
        seen(
            f'<!doctype html><html><head><meta charset="utf-8"></head><body><div id="first">{first}</div>{rest}</body></html>',
            script,
            tmp_path,
        )
        for first, rest in ((fragment, others), (whole.replace(f"rm {scope}", "rm"), ""))
    ]
    styles = [
        [dict(zip(["tag", *page["names"]], values, strict=True)) for values in page["styles"]]
        for page in drawn
    ]
    assert len(styles[0]) > 300
    differ = {
        (a["tag"], name, a[name], b[name])
        for a, b in zip(*styles, strict=True)
        for name in a
        if a[name] != b[name]
    }
    assert differ == set()


def test_the_statement_surrounds_its_clauses_and_stays_bounded() -> None:
    shown = html(building.merge_trace(), show="clauses")
    assert "MERGE INTO accounts t USING monthly_accounts_update s" in shown
    assert shown.rindex("ON (t.customer = s.customer)") < shown.rindex("WHEN MATCHED AND s.address")
    values = ",\n".join(f"({number}, 'x')" for number in range(1000))
    statement = building.STATEMENT.replace(
        "monthly_accounts_update s", f"(VALUES {values}) s (customer, address)"
    )
    clauses = tuple(replace(one, line=one.line + 999) for one in building.merge_trace().clauses)
    long = html(building.merge_trace(statement=statement, clauses=clauses), show="clauses")
    assert "more lines …" in long
    assert "ON (t.customer = s.customer)" in long
    assert len(long) < len(shown) + 2_000
    one = html(
        building.merge_trace(
            statement=statement.replace(",\n(", ", ("), clauses=building.merge_trace().clauses
        ),
        show="clauses",
    )
    assert "more letters …" in one
    assert len(one) < len(shown) + 2_000


def test_the_pages_are_side_by_side_and_name_the_writer_of_a_row_with_the_reason() -> None:
    shown = html(building.merge_trace(), show="pages")
    assert shown.index("Rows before transform_page") < shown.index("Rows after transform_page")
    assert shown.count('class="rm-tall"') == 3, "as high as both rows of an UPDATE"
    assert re.search(
        r"<td>address = &#39;Arches&#39;</td><td class=\"rm-r\">.?\d+</td><td class=\"rm-r\">1</td><td class=\"rm-w\">0 I",
        shown,
    )


@needs_browser
def test_a_page_with_only_a_report_has_its_background_and_other_pages_keep_theirs(
    tmp_path,
):
    script = """
    told.page = [document.documentElement, one(".rm")].map((element) => getComputedStyle(element).backgroundColor);
    told.scheme = getComputedStyle(document.documentElement).colorScheme;"""
    fragment = html(building.merge_trace(), show="diff")
    page = "<!doctype html><html><head><meta charset='utf-8'></head><body>{}</body></html>"
    bare, held = (
        seen(page.format(body), script, tmp_path) for body in (fragment, f"<div>{fragment}</div>")
    )
    assert bare["page"][0] == bare["page"][1]
    assert bare["scheme"] == "light dark"
    assert (held["page"][0], held["scheme"]) == ("rgba(0, 0, 0, 0)", "normal")


@needs_browser
def test_journeys_and_the_case_fit_into_a_narrow_page(tmp_path):
    script = """
    for (const details of all("details")) details.open = true;
    told.wide = all("[aria-label='Row journeys'],pre.rm-code").filter((element) => element.scrollWidth > element.clientWidth).length;
    told.all = all("[aria-label='Row journeys'],pre.rm-code").length;"""
    told = seen(
        f"<!doctype html><html><head><meta charset='utf-8'></head><body>{html(building.merge_trace(), show='journeys,plan')}</body></html>",
        script,
        tmp_path,
        width=620,
    )
    assert (told["wide"], told["all"]) == (0, 2)
