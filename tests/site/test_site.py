"""What the site is made of, without making it: `scripts/site` does that."""

from __future__ import annotations

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


def test_the_front_page_carries_the_navigation_and_no_other_page_does():
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
def test_what_would_be_asked_of_others_is_found(text):
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
def test_links_and_what_the_site_brings_along_are_no_such_thing(text):
    assert not SETTINGS["_ELSEWHERE"].search(text)
