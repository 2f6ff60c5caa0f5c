"""Repositories on the network: a server of this machine."""

from __future__ import annotations

import http.server
import threading
from functools import partial

import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.connectors.trino.maven import repository as repositories
from rowmerge_nb.connectors.trino.maven.repository import (
    HttpRepository,
    MissingFileError,
    default_repository,
)

pytest.importorskip("requests")


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/broken":
            self.send_error(503)
        elif self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")
        else:
            super().do_GET()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "a.jar").write_bytes(b"content")
    handler = partial(Handler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield HttpRepository(f"http://127.0.0.1:{server.server_address[1]}/")
    server.shutdown()
    thread.join()
    server.server_close()


def test_files_are_read_measured_and_downloaded(repository, tmp_path):
    parts = []
    assert repository.read("a.jar") == b"content"
    assert repository.size("a.jar") == 7
    repository.download("a.jar", tmp_path / "copy", parts.append)
    assert (tmp_path / "copy").read_bytes() == b"content"
    assert sum(parts) == 7


def test_a_missing_file_is_an_error_of_its_own(repository):
    with pytest.raises(MissingFileError):
        repository.read("b.jar")
    with pytest.raises(MissingFileError):
        repository.size("b.jar")


@pytest.mark.parametrize(("path", "reason"), [("broken", "status 503"), ("cut", "did not send")])
def test_a_failed_answer_is_an_error_with_the_next_step(repository, tmp_path, path, reason):
    with pytest.raises(SetupError, match=reason) as caught:
        repository.download(path, tmp_path / "copy", lambda count: None)
    assert "ROWMERGE_MAVEN_REPOSITORY" in caught.value.hint


def test_the_error_without_a_network_has_the_next_step(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(SetupError, match="refused") as caught:
        HttpRepository("http://127.0.0.1:9").read("a.pom")
    assert "HTTPS_PROXY" in caught.value.hint


def test_the_variable_names_a_mirror_or_a_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(repositories, "check_jgo", lambda: None)
    monkeypatch.setenv("ROWMERGE_MAVEN_REPOSITORY", "https://mirror.example/maven/")
    assert default_repository().url == "https://mirror.example/maven"
    (tmp_path / "my folder").mkdir()
    (tmp_path / "my folder" / "a.pom").write_text("<project/>")
    monkeypatch.setenv("ROWMERGE_MAVEN_REPOSITORY", (tmp_path / "my folder").as_uri())
    assert default_repository().read("a.pom") == b"<project/>"
    monkeypatch.setenv("ROWMERGE_MAVEN_REPOSITORY", "mirror.example")
    with pytest.raises(SetupError, match="Write it as https://host/path or file:///folder"):
        default_repository()
