"""The content of the site, without building it: `scripts/site` does that."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

import rowmerge_nb
from rowmerge_nb import spi

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = runpy.run_path(str(ROOT / "site" / "conf.py"))
NAMED = [page for group in SETTINGS["NAVIGATION"].values() for page in group]


def test_the_navigation_names_every_page_and_every_notebook_once():
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("site/*.rst")]
    pages += [page for page in ROOT.glob("*.md") if page.stem != SETTINGS["root_doc"]]
    assert sorted(NAMED) == sorted(str(page.relative_to(ROOT).with_suffix("")) for page in pages)


def test_only_the_front_page_carries_the_navigation():
    front, other = ["# rowmerge_nb"], ["# Stores"]
    SETTINGS["_add_navigation"](None, SETTINGS["root_doc"], front)
    SETTINGS["_add_navigation"](None, "docs/stores", other)
    assert [page for page in NAMED if f"\n{page}\n" not in front[0]] == []
    assert other == ["# Stores"]


@pytest.mark.parametrize(
    "page",
    [page for page in sorted([*NAMED, SETTINGS["root_doc"]]) if (ROOT / f"{page}.md").exists()],
)
def test_a_page_is_markdown_as_it_is_read_without_the_site(page):
    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    assert re.findall(r"^ *(?:```+\{|:::|\([^)]*\)=$).*", text, re.MULTILINE) == []


def test_every_public_name_is_in_the_reference():
    package, contract = (
        (ROOT / "site" / f"{page}.rst").read_text(encoding="utf-8") for page in ("api", "spi")
    )
    left_out = re.search(r":exclude-members: (.*)", package)[1].split(", ")
    assert set(left_out) <= {*rowmerge_nb.__all__}
    magics = {"load_ipython_extension", "unload_ipython_extension"}
    assert [name for name in left_out if name not in magics and name not in spi.__all__] == []
    assert ":exclude-members:" not in contract


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/x.js"></script>',
        "<img alt='' src=//cdn.example/x.png>",
        '<link rel="stylesheet" href="http://fonts.example/css">',
        "p{background:url(https://cdn.example/x.png)}",
        '@import "other.css";',
    ],
)
def test_requests_to_other_servers_are_found(text):
    assert SETTINGS["_ELSEWHERE"].search(f"before {text} after")


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://trino.io">',
        '<script src="_static/x.js"></script>',
        "p{background:url(data:image/png;base64,AA//)}",
        "a url (https)",
    ],
)
def test_links_and_assets_of_the_site_are_not_such_requests(text):
    assert not SETTINGS["_ELSEWHERE"].search(text)


# Lookup tables. Pages for reading have a limit.
REFERENCE = {
    f"docs/{page}"
    for page in ("functions", "options", "types", "errors", "trino-differences", "speed")
}


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in NAMED
        if page.startswith("docs/") and "decisions" not in page and page not in REFERENCE
    ],
)
def test_a_page_that_people_read_is_short(page):
    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert len(prose.split()) <= 1500


def test_the_index_has_the_groups_of_the_navigation_in_their_order():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    groups = re.split(r"^\*\*(.+)\*\*$", index, flags=re.MULTILINE)[1:]
    assert groups[::2] == [group for group in SETTINGS["NAVIGATION"] if group != "Project"]
    for caption, body in zip(groups[::2], groups[1::2], strict=True):
        pages = [
            f"docs/{page}"
            for page in re.findall(r"^\| \[[^]]+\]\(([\w-]+)\.md\)", body, re.MULTILINE)
        ]
        assert pages == [
            page
            for page in SETTINGS["NAVIGATION"][caption]
            if page.startswith("docs/") and page != "docs/README"
        ]


def test_the_search_ranks_reference_pages_below_guides():
    scorer = (ROOT / "site" / "scorer.js").read_text(encoding="utf-8")
    pattern = re.compile(re.search(r"var REFERENCE = /(.+)/;", scorer)[1].replace("\\/", "/"))
    assert {page for page in REFERENCE if not pattern.search(page)} == set()
    assert [page for page in NAMED if pattern.search(page) and page.startswith("notebooks")] == []
    assert not pattern.search("docs/why")
    assert pattern.search("docs/decisions/joins")


@pytest.mark.not_quick
def test_the_page_of_errors_has_exactly_the_raised_codes():
    raised, texts = set(), set()
    for path in (ROOT / "rowmerge_nb").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "code":
                raised |= {part.value for part in ast.walk(node.value) if _is_code(part)}
            elif _is_code(node):
                texts.add(node.value)
    page = re.sub(r"`[^`]*`", "", (ROOT / "docs" / "errors.md").read_text(encoding="utf-8"))
    codes = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", page))
    assert raised - codes == set()
    assert codes - texts == set()


def _is_code(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[A-Z]+(?:_[A-Z]+)+", node.value) is not None
    )
