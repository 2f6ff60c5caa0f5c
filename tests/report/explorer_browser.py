"""A browser for the tests of the explorer: a page is opened, a script of the test clicks and types in it, and its findings are read."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 120.0
"""The maximum wait in seconds for content of a page."""
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

AFTERWARDS = """new Promise((done) => {
  const look = () => { const seen = document.getElementById("seen"); if (seen) done(seen.textContent); return seen; };
  if (!look()) new MutationObserver((_, observer) => { if (look()) observer.disconnect(); }).observe(document, { childList: true, subtree: true });
})"""
"""The result of the driver, once it exists."""


class Page:
    """A page in a browser, controlled and queried in JavaScript."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._number = 0

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the browser's protocol."""
        self._number += 1
        self._connection.send(
            json.dumps({"id": self._number, "method": method, "params": parameters})
        )
        while True:
            answer = json.loads(self._connection.recv())
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(answer["error"])
                return answer["result"]

    def run(self, script: str) -> Any:
        """Run the body of an asynchronous function, and return its result."""
        expression = f"(async () => {{ {script} }})()"
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true. An error counts as false.

        Raises:
            AssertionError: it stayed false.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.run(f"try {{ return Boolean({condition}); }} catch {{ return false; }}"):
                return
            time.sleep(0.05)
        raise AssertionError(
            f"{condition}: never; the page says {self.run('return document.body.innerText.slice(-3000)')}"
        )

    def open(self, address: str) -> None:
        """Go to an address."""
        self.call("Page.navigate", url=address)


class Browser:
    """One browser for all pages of this process, which share nothing else."""

    def __init__(self) -> None:
        assert BROWSER is not None
        self._profile = Path(tempfile.mkdtemp(prefix="rowmerge_nb-browser"))
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--remote-debugging-port=0", "--remote-allow-origins=*"]
        command += [f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        port, path = self._address()
        self._host = f"ws://127.0.0.1:{port}"
        self._all = Page(_connection(self._host + path))

    def _address(self) -> list[str]:
        file, end = self._profile / "DevToolsActivePort", time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert self._process.poll() is None, "the browser has ended"
            if file.exists() and len(lines := file.read_text().split()) > 1:
                return lines
            time.sleep(0.05)
        raise AssertionError("the browser did not start")

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self._profile, ignore_errors=True)

    def result_of(self, address: str, width: int) -> str:
        """Open an address in a separate window, and return the output of its driver."""
        context = self._all.call("Target.createBrowserContext")["browserContextId"]
        target = self._all.call("Target.createTarget", url="about:blank", browserContextId=context)[
            "targetId"
        ]
        try:
            with closing(_connection(f"{self._host}/devtools/page/{target}")) as connection:
                page = Page(connection)
                size = {"width": width, "height": 1061, "deviceScaleFactor": 1, "mobile": False}
                page.call("Emulation.setDeviceMetricsOverride", **size)
                page.call("Emulation.setFocusEmulationEnabled", enabled=True)
                page.open(address)
                return str(page.run(f"return await {AFTERWARDS};"))
        finally:
            self._all.call("Target.disposeBrowserContext", browserContextId=context)


def _connection(address: str) -> Any:
    import websocket

    return websocket.create_connection(address, timeout=PATIENCE)


@cache
def _browser() -> Browser:
    return Browser()


def end_browser() -> None:
    """End the browser of this process, if it exists."""
    if _browser.cache_info().currsize:
        _browser().end()
        _browser.cache_clear()


def seen(page: str, script: str, folder: Path, *, width: int = 1100) -> Any:
    """Open a page, run a script in it, and return the value of ``told``.

    Args:
        page: the HTML document.
        script: JavaScript with `one`, `all`, `text`, `click`, `press` and `told` at hand.
        folder: the folder of the page.
        width: the window's width in pixels.
    """
    file = folder / "page.html"
    file.write_text(page.replace("</body>", DRIVER % script), encoding="utf-8")
    content = json.loads(_browser().result_of(file.as_uri(), width))
    assert content["errors"] == []
    return content["told"]
