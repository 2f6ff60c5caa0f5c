"""Downloads of jars: several at a time, checked, and each complete or absent."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.words import plural
from rowmerge_nb.connectors.trino.maven.repository import MissingFileError, Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rowmerge_nb.connectors.trino.maven.progress_line import ProgressLine

T = TypeVar("T")
S = TypeVar("S")

_AT_ONCE: Final = 8
_WAIT_SECONDS: Final = 0.1
_SPARE_BYTES: Final = 50_000_000
"""What a disk must have beyond the jars."""


@dataclass(frozen=True)
class Jar:
    path: str
    size: int
    sha256: str


class StoppedError(Exception):
    """Another download failed, or the user interrupted."""


class JarStore:
    """Jars that several plugins share, each under its path in a repository.

    Args:
        others: further folders with the same paths, such as Maven's own cache.
    """

    def __init__(self, folder: Path, others: Sequence[Path] = ()) -> None:
        self.folder = folder
        self._others = others
        self._parts = folder / ".parts"

    def fetch(
        self,
        paths: Sequence[str],
        repository: Repository,
        line: ProgressLine,
        pinned: Sequence[Jar] = (),
    ) -> tuple[list[Jar], int]:
        """Download the jars that are missing, and return all jars and the number of bytes that were
        downloaded.
        """
        with disk_errors(self.folder):
            # A killed process may have left unfinished files.
            shutil.rmtree(self._parts, ignore_errors=True)
            self._parts.mkdir(parents=True)
        checksums = {jar.path: ("sha256", jar.sha256) for jar in pinned}
        unknown = [path for path in paths if path not in checksums]
        stop = threading.Event()
        line.show(f"checking {plural(len(paths), 'jar')}")
        for path, sha1 in zip(
            unknown, _each(lambda path: _published(repository, path), unknown, stop), strict=True
        ):
            checksums[path] = ("sha1", sha1)
        missing = [path for path in paths if not self._is_stored(path, *checksums[path])]
        sizes = list(_each(lambda path: _size(repository, path), missing, stop))
        total = sum(sizes)
        self._check_space(total)
        fetched_bytes = 0
        lock = threading.Lock()

        def advance(count: int) -> None:
            nonlocal fetched_bytes
            if stop.is_set():
                raise StoppedError
            with lock:
                fetched_bytes += count

        def show() -> None:
            text = (
                f"{plural(len(missing), 'jar')}, {megabytes(fetched_bytes)} of"
                f" {megabytes(total)} MB"
            )
            line.show(f"downloading {text}")

        if missing:
            line.announce(f"downloading {plural(len(missing), 'jar')}, {megabytes(total)} MB")
        for _ in _each(
            lambda path: self._download(repository, path, checksums[path], advance),
            missing,
            stop,
            show,
        ):
            pass
        jars = [self._jar(path) for path in paths]
        return jars, fetched_bytes

    def _is_stored(self, path: str, algorithm: str, checksum: str) -> bool:
        target = self.folder / path
        if target.is_file():
            if not checksum or _digest(target, algorithm) == checksum:
                return True
            target.unlink()
        for folder in self._others if checksum else ():
            file = folder / path
            if file.is_file() and _digest(file, algorithm) == checksum:
                part = self._part()
                with disk_errors(self.folder):
                    shutil.copyfile(file, part)
                    self._keep(part, path)
                return True
        return False

    def _download(
        self,
        repository: Repository,
        path: str,
        expected: tuple[str, str],
        advance: Callable[[int], None],
    ) -> None:
        part = self._part()
        try:
            with disk_errors(self.folder):
                repository.download(path, part, advance)
                algorithm, checksum = expected
                actual = _digest(part, algorithm)
                if checksum and actual != checksum:
                    raise SetupError(
                        f"The {algorithm} checksum of {repository.url}/{path} is {actual}, not"
                        f" {checksum}",
                        code="CHECKSUM_MISMATCH",
                        hint="Try again. If it differs again, do not use this repository: the jar"
                        " was changed after it was published, or on its way.",
                    )
                self._keep(part, path)
        except MissingFileError as error:
            raise _missing(repository, path) from error
        finally:
            part.unlink(missing_ok=True)

    def _jar(self, path: str) -> Jar:
        file = self.folder / path
        return Jar(path, file.stat().st_size, _digest(file, "sha256"))

    def _part(self) -> Path:
        return self._parts / uuid.uuid4().hex

    def _keep(self, part: Path, path: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        part.replace(target)

    def _check_space(self, needed_bytes: int) -> None:
        with disk_errors(self.folder):
            free = shutil.disk_usage(self.folder).free
        if needed_bytes and free < needed_bytes + _SPARE_BYTES:
            raise _no_space(
                f"The jars need {megabytes(needed_bytes)} MB, but the disk of {self.folder}"
                f" has {megabytes(free)} MB"
            )


def megabytes(size: int) -> str:
    """Return a number of bytes in MB, for readers.

    >>> megabytes(97_400_000), megabytes(1_250_000)
    ('97', '1.2')
    """
    value = size / 1e6
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise _no_space(f"The disk of {folder} is full") from error
        if error.errno in {errno.EACCES, errno.EEXIST, errno.ENOTDIR, errno.EPERM, errno.EROFS}:
            raise SetupError(
                f"The folder {folder} cannot be written: {error.strerror}",
                code="PERMISSION_DENIED",
                hint="Set XDG_CACHE_HOME to a folder that you may write to.",
            ) from error
        raise


def _no_space(message: str) -> SetupError:
    return SetupError(
        message,
        code="GENERIC_INSUFFICIENT_RESOURCES",
        hint="Make room there, or set XDG_CACHE_HOME to a folder on another disk.",
    )


def _missing(repository: Repository, path: str) -> SetupError:
    return SetupError(
        f"{repository.url} has no {path}, which the plugin needs",
        code="NOT_FOUND",
        hint="Check the plugin's version, or name folders of jars with plugin and trino.",
    )


def _published(repository: Repository, path: str) -> str:
    try:
        words = repository.read(f"{path}.sha1").decode("ascii", "replace").split()
    except MissingFileError:
        return ""
    return words[0].lower() if words else ""


def _size(repository: Repository, path: str) -> int:
    try:
        return repository.size(path)
    except MissingFileError as error:
        raise _missing(repository, path) from error


def _digest(file: Path, algorithm: str) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, algorithm).hexdigest()


def _each(
    function: Callable[[S], T],
    items: Iterable[S],
    stop: threading.Event,
    show: Callable[[], None] = lambda: None,
) -> Iterator[T]:
    """Yield the results of calls in threads, in the order of the items.

    The first error, or an interrupt, ends the others.
    """
    executor = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="rowmerge_nb-download")
    try:
        futures = [executor.submit(function, item) for item in items]
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, _WAIT_SECONDS)
            show()
            for future in finished:
                future.result()
        yield from (future.result() for future in futures)
    except BaseException:
        # Also of an interrupt that comes while the calls are submitted.
        stop.set()
        raise
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def link(source: Path, target: Path) -> None:
    """Make a jar appear in another folder, without a copy if the disk allows."""
    try:
        os.link(source, target)
    except OSError:
        target.symlink_to(source)
