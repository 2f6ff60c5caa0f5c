"""A real JupyterLab and a browser: the behavior of the front end with our outputs is observed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from tests.report.explorer_browser import BROWSER, PATIENCE, Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Lab", "Page", "jupyterlab", "opened"]


class Lab:
    """A server of notebooks.

    Args:
        folder: the folder of the notebooks.
        address: the URL of the server.
    """

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.address = address

    def write(self, name: str, cells: Sequence[str]) -> str:
        """Write a notebook with these cells; return its address."""
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells]
        )
        notebook.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        nbformat.write(notebook, self.folder / name)
        return f"{self.address}/lab/tree/{name}"

    def wait_for_kernel(self) -> None:
        """Wait until a page is connected to an idle kernel."""
        end = time.monotonic() + PATIENCE
        while not any(
            kernel["connections"] and kernel["execution_state"] == "idle"
            for kernel in self._kernels()
        ):
            assert time.monotonic() < end, "no kernel has started"
            time.sleep(0.2)

    def _kernels(self) -> Any:
        """Return the server's list of its kernels; for a kernel that is starting, the request fails."""
        try:
            return self.ask("api/kernels")
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            return ()

    def stop_kernels(self) -> None:
        """End all kernels, as after a restart of the server."""
        for kernel in self.ask("api/kernels"):
            self.ask(f"api/kernels/{kernel['id']}", method="DELETE")

    def ask(self, path: str, method: str = "GET") -> Any:
        """Send a request to the server's API."""
        request = urllib.request.Request(f"{self.address}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = answer.read()
        return json.loads(content) if content else None


@contextmanager
def jupyterlab(folder: Path, theme: str = "JupyterLab Light") -> Iterator[Lab]:
    """Start JupyterLab with its default settings and a private home."""
    port = _free_port()
    home = folder / "home"
    (folder / "notebooks").mkdir(parents=True)
    home.mkdir()
    settings = {
        "@jupyterlab/apputils-extension/notification": {
            "fetchNews": "false",
            "checkForUpdates": False,
        },
        **(
            {}
            if theme == "JupyterLab Light"
            else {"@jupyterlab/apputils-extension/themes": {"theme": theme}}
        ),
    }
    for name, values in settings.items():
        file = home / "settings" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(home),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--allow-root",
        "--no-browser",
        f"--port={port}",
        "--ServerApp.port_retries=0",
    ]
    command += [
        "--ServerApp.token=",
        "--ServerApp.disable_check_xsrf=True",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]
    with (folder / "lab.log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=folder / "notebooks", env=environment, stdout=log, stderr=log
        )
        try:
            lab = Lab(folder / "notebooks", f"http://127.0.0.1:{port}")
            _until(lambda: lab.ask("api/status"), server)
            yield lab
            lab.stop_kernels()
        finally:
            server.terminate()
            server.wait(30)


@contextmanager
def opened(address: str, folder: Path) -> Iterator[Page]:
    """Open an address in a separate browser."""
    import websocket

    assert BROWSER is not None
    port = _free_port()
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--remote-debugging-port={port}",
        "--window-size=1300,1500",
    ]
    command += ["--remote-allow-origins=*", f"--user-data-dir={folder}", "about:blank"]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        pages = _until(lambda: [page for page in _pages(port) if page["type"] == "page"], browser)
        with closing(
            websocket.create_connection(pages[0]["webSocketDebuggerUrl"], timeout=PATIENCE)
        ) as connection:
            page = Page(connection)
            page.call("Page.enable")
            # Lab asks which part of it has the focus, which an invisible window lacks.
            page.call("Emulation.setFocusEmulationEnabled", enabled=True)
            page.open(address)
            yield page
    finally:
        browser.terminate()
        browser.wait(30)


def _pages(port: int) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=30) as answer:
        found: list[dict[str, Any]] = json.loads(answer.read())
    return found


def _until(ask: Any, process: subprocess.Popen[bytes]) -> Any:
    """Repeat a request until there is an answer."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, f"it ended with {process.returncode}"
        try:
            if answer := ask():
                return answer
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError("it did not start")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
