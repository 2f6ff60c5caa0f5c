"""A browser for the tests of the explorer: a page is opened, a script of the test clicks and types in it, and what it has seen is read."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

DRIVER = """<script type="module">
const wait = () => new Promise((done) => setTimeout(done, 20));
const all = (selector) => [...document.querySelectorAll(selector)];
const one = (selector) => document.querySelector(selector);
const text = (selector) => one(selector)?.textContent ?? null;
const click = async (selector) => { one(selector).dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })); await wait(); };
const press = async (key, selector) => {
  if (selector) one(selector).focus();
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  await wait();
};
const told = {};
const errors = [];
window.addEventListener("error", (event) => errors.push(String(event.message)));
try { await wait(); %s } catch (error) { errors.push(String(error.stack)); }
const seen = document.createElement("pre");
seen.id = "seen";
seen.textContent = JSON.stringify({ told, errors });
document.body.append(seen);
</script></body>"""


def seen(page: str, script: str, folder: Path, *, width: int = 1100) -> Any:
    """Open a page, run a script in it, and give what the script has put into ``told``.

    Args:
        page: the HTML document.
        script: JavaScript with `one`, `all`, `text`, `click`, `press` and `told` at hand.
        folder: where the page and the browser's profile are put.
        width: the window's width in pixels.
    """
    assert BROWSER is not None
    file = folder / "page.html"
    file.write_text(page.replace("</body>", DRIVER % script), encoding="utf-8")
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},1200",
    ]
    command += ["--virtual-time-budget=20000", "--dump-dom", file.as_uri()]
    document = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    ).stdout
    _, found, rest = document.partition('<pre id="seen">')
    assert found, document[-2000:]
    content = json.loads(
        rest.partition("</pre>")[0].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    )
    assert content["errors"] == []
    return content["told"]
