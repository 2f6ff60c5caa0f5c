"""The gallery: its page, its runs, and its explorers in a browser without a network."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
from pathlib import Path

import pytest

from rowmerge_nb import Engine
from tests.report.explorer_browser import BROWSER, needs_browser

ROOT = Path(__file__).resolve().parents[2]
GALLERY = runpy.run_path(str(ROOT / "site" / "gallery.py"))
SETTINGS = runpy.run_path(str(ROOT / "site" / "conf.py"))
TEXT = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
EXAMPLES = GALLERY["read_examples"](TEXT)

# Runs in each explorer: clicks every step, and reports the last one to the page around it.
CLICKS = """<script type="module">
const wait = () => new Promise((done) => setTimeout(done, 30));
await wait();
const seen = [];
for (let index = 0; index < document.querySelectorAll(".rx-steps li button").length; index += 1) {
  document.querySelectorAll(".rx-steps li button")[index].click();
  await wait();
  seen.push(document.querySelector(".rx-steps li [aria-current], .rx-steps li [aria-pressed=true]")?.textContent ?? "");
}
let outside = "";
try { await fetch("https://example.com/"); outside = "answered"; } catch { outside = "refused"; }
parent.postMessage([NAME, { seen, outside, text: document.querySelector("#explorer").textContent }], "*");
</script></body>"""
AROUND = """<!doctype html><meta charset="utf-8"><script>
const told = {};
addEventListener("message", (event) => {
  told[event.data[0]] = event.data[1];
  document.querySelector("pre").textContent = JSON.stringify(told);
});
</script><pre id="seen"></pre>"""


@pytest.fixture(scope="module")
def explorers(spark, tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("gallery")
    with Engine(spark=spark) as engine:
        return GALLERY["write_explorers"](folder, engine)


def test_each_of_ten_sections_has_a_question_a_table_and_a_statement_to_explore():
    assert len(EXAMPLES) == len({example.anchor for example in EXAMPLES}) == 10
    assert len(re.findall(r"^\*[A-Z].+?\?\* ", TEXT, re.MULTILINE)) == 10
    assert [e.title for e in EXAMPLES if not e.setup or "--explore" not in e.line] == []


def test_the_site_embeds_an_explorer_in_each_section_but_the_page_itself_has_none():
    source = [TEXT]
    SETTINGS["_add_explorers"](None, "docs/gallery", source)
    assert "<iframe" not in TEXT
    sections = source[0].split("\n## ")[1:]
    frames = [re.findall(r'<iframe src="gallery/([^"]+)\.html"', section) for section in sections]
    assert frames == [[example.anchor] for example in EXAMPLES]
    other = ["# Stores"]
    SETTINGS["_add_explorers"](None, "docs/stores", other)
    assert other == ["# Stores"]


def test_the_explorers_load_nothing_from_other_servers(explorers):
    assert [path.stem for path in explorers] == [example.anchor for example in EXAMPLES]
    pages = [path.read_text(encoding="utf-8") for path in explorers]
    assert [SETTINGS["_ELSEWHERE"].findall(page) for page in pages] == [[]] * 10
    assert [page for page in pages if "default-src 'none'" not in page] == []


@needs_browser
def test_every_step_of_every_explorer_can_be_clicked_without_a_network(explorers, tmp_path):
    frames = []
    for path in explorers:
        page = path.read_text(encoding="utf-8")
        copy = tmp_path / path.name
        clicks = CLICKS.replace("NAME", json.dumps(path.stem))
        copy.write_text(page.replace("</body>", clicks), encoding="utf-8")
        frames.append(f'<iframe src="{copy.name}" width="1000" height="700"></iframe>')
    (tmp_path / "around.html").write_text(AROUND + "".join(frames), encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--virtual-time-budget=60000", "--dump-dom", (tmp_path / "around.html").as_uri()]
    document = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=True
    ).stdout
    _, _, rest = document.partition('<pre id="seen">')
    content = rest.partition("</pre>")[0]
    for entity, character in {"&lt;": "<", "&gt;": ">", "&amp;": "&"}.items():
        content = content.replace(entity, character)
    pages = json.loads(content)
    assert sorted(pages) == sorted(example.anchor for example in EXAMPLES)
    steps = {anchor: len(page["seen"]) for anchor, page in pages.items()}
    assert steps["two-source-rows-for-one-target-row"] == 4
    assert steps["a-failure-and-its-rollback"] == 7
    assert steps["a-row-that-moves-between-partitions"] == 9
    assert {page["outside"] for page in pages.values()} == {"refused"}
    assert [
        anchor for anchor, page in pages.items() if len(set(page["seen"])) < len(page["seen"])
    ] == []
    expected = {
        "two-source-rows-for-one-target-row": "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
        "a-failure-and-its-rollback": "injected by finish_merge",
        "null-keys": "as version",
    }
    for anchor, words in expected.items():
        assert words in pages[anchor]["text"]
