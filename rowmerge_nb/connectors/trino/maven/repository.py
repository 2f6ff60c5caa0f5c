"""Files of a Maven repository: Maven Central, a mirror of it, or a folder."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLE: Final = "ROWMERGE_MAVEN_REPOSITORY"
"""The environment variable that names a mirror."""

_TIMEOUT_SECONDS: Final = 20
_CHUNK_BYTES: Final = 1 << 17
_FOLDERS_INSTEAD: Final = "name folders of jars with plugin and trino"


class MissingFileError(Exception):
    """The repository does not have the file."""


class Repository(Protocol):
    """Where jars and POM files come from; paths are relative."""

    @property
    def url(self) -> str:
        """The address, for messages and for jgo."""

    def read(self, path: str) -> bytes: ...

    def size(self, path: str) -> int:
        """Return the size of a file, or 0 if unknown."""

    def download(self, path: str, target: Path, advance: Callable[[int], None]) -> None:
        """Write a file, and report the number of bytes of each part.

        ``advance`` may raise an exception, which ends the download.
        """


class FolderRepository:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = folder.absolute().as_uri()

    def read(self, path: str) -> bytes:
        return self._file(path).read_bytes()

    def size(self, path: str) -> int:
        return self._file(path).stat().st_size

    def download(self, path: str, target: Path, advance: Callable[[int], None]) -> None:
        shutil.copyfile(self._file(path), target)
        advance(target.stat().st_size)

    def _file(self, path: str) -> Path:
        file = self._folder / path
        if not file.is_file():
            raise MissingFileError(path)
        return file


class HttpRepository:
    """A repository on the network. Threads have a connection each."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._requests: Any = importlib.import_module("requests")
        self._sessions = threading.local()

    def read(self, path: str) -> bytes:
        return bytes(self._ask("get", path, lambda response: response.content))

    def size(self, path: str) -> int:
        """Return the size of a file, or 0 if the server does not report it."""
        return int(self._ask("head", path, lambda r: r.headers.get("content-length", 0)))

    def download(self, path: str, target: Path, advance: Callable[[int], None]) -> None:
        def write(response: Any) -> None:
            with target.open("wb") as file:
                for chunk in response.iter_content(_CHUNK_BYTES):
                    file.write(chunk)
                    advance(len(chunk))

        self._ask("get", path, write, stream=True)

    def _ask(
        self, method: str, path: str, use: Callable[[Any], Any], *, stream: bool = False
    ) -> Any:
        session = getattr(self._sessions, "session", None)
        if session is None:
            session = self._sessions.session = self._requests.Session()
        try:
            with session.request(
                method,
                f"{self.url}/{path}",
                timeout=_TIMEOUT_SECONDS,
                stream=stream,
                allow_redirects=True,
            ) as response:
                if response.status_code in {404, 410}:
                    raise MissingFileError(path)
                response.raise_for_status()
                return use(response)
        except self._requests.RequestException as error:
            raise SetupError(
                f"The Maven repository {self.url} did not send {path}: {_reason(error)}",
                hint=f"Check the connection and the variable HTTPS_PROXY, set {VARIABLE} to a"
                f" mirror, or {_FOLDERS_INSTEAD}.",
            ) from error


def default_repository() -> Repository:
    """Return the repository that ROWMERGE_MAVEN_REPOSITORY names, or Maven Central."""
    check_jgo()
    url = os.environ.get(VARIABLE)
    if not url:
        central = importlib.import_module("jgo.maven").MavenContext().remote_repos["central"]
        return HttpRepository(central)
    parts = urlsplit(url)
    if parts.scheme == "file":
        return FolderRepository(Path(unquote(parts.path)))
    if parts.scheme not in {"http", "https"}:
        raise SetupError(
            f"{VARIABLE} = {url!r} is not an address of a Maven repository",
            hint="Write it as https://host/path or file:///folder.",
        )
    return HttpRepository(url)


def check_jgo() -> None:
    """Raise a SetupError if jgo, which reads POM files, is not installed."""
    if importlib.util.find_spec("jgo") is None:
        raise SetupError(
            "Maven coordinates need jgo, which is not installed",
            hint=f"Run: {install_command('trino')}, or {_FOLDERS_INSTEAD}.",
        )


def _reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"status {response.status_code}"
    inner: BaseException = error
    while inner.__cause__ or inner.__context__:
        inner = inner.__cause__ or inner.__context__ or inner
    return (str(inner).splitlines() or [""])[0] or type(inner).__name__
