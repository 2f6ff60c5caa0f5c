"""The jars of a plugin or of Trino's engine, by coordinates: a folder of the cache.

The cache is ``~/.cache/rowmerge_nb/maven``, or below ``$XDG_CACHE_HOME``:

- ``poms/`` and ``jars/`` have files in the form of a repository.
- ``sets/io.trino/trino-memory/483/`` has links to the jars of a plugin, and ``jars.json``.

``jars.json`` lists the jars with sizes and checksums. A set with it is complete, and is used without
the network. Every file is written under another name first, so an interrupt leaves no half file.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.words import plural
from rowmerge_nb.connectors.trino.maven.coordinates import Coordinates, parse_coordinates
from rowmerge_nb.connectors.trino.maven.downloads import (
    Jar,
    JarStore,
    disk_errors,
    link,
    megabytes,
)
from rowmerge_nb.connectors.trino.maven.progress_line import ProgressLine
from rowmerge_nb.connectors.trino.maven.repository import default_repository
from rowmerge_nb.connectors.trino.maven.resolution import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rowmerge_nb.connectors.trino.maven.repository import Repository
    from rowmerge_nb.connectors.trino.maven.resolution import Resolution

    Resolve = Callable[[Coordinates, Repository, Path, Callable[[int], None]], Resolution]

_PINS: Final = "jars.json"
_UNFINISHED: Final = ".unfinished-"
_WAIT_SECONDS: Final = 0.2


@dataclass(frozen=True)
class JarSet:
    """A folder with all jars of a plugin or of Trino's engine."""

    folder: Path
    engine: str
    jars: tuple[Jar, ...]

    @property
    def size(self) -> int:
        return sum(jar.size for jar in self.jars)

    def checked_engine(self) -> Coordinates:
        if not self.engine:
            raise SetupError(
                f"The POM file of the plugin in {self.folder} names no version of trino-spi",
                hint="Pass the engine's coordinates: trino='io.trino:trino-main:483'.",
            )
        return parse_coordinates(self.engine, "trino")


class JarSets:
    def __init__(
        self,
        home: Path | None = None,
        repository: Callable[[], Repository] = default_repository,
        resolver: Resolve = resolve,
        others: tuple[Path, ...] | None = None,
    ) -> None:
        self.home = maven_cache() if home is None else home
        self._repository = repository
        self._resolve = resolver
        self._store = JarStore(
            self.home / "jars", (maven_repository(),) if others is None else others
        )

    def find(self, coordinates: Coordinates) -> JarSet | None:
        """Return a complete set, without the network; None if there is none."""
        jar_set = self._read(coordinates)
        if jar_set is None or not _is_complete(jar_set):
            return None
        return jar_set

    def get(self, coordinates: Coordinates) -> JarSet:
        jar_set = self.find(coordinates)
        if jar_set is not None:
            return jar_set
        line = ProgressLine(str(coordinates))
        with contextlib.ExitStack() as stack:
            stack.callback(line.end)
            stack.enter_context(disk_errors(self.home))
            stack.enter_context(self._locked(line))
            # Another process may have downloaded it meanwhile.
            return self.find(coordinates) or self._fetch(coordinates, line)

    def _fetch(self, coordinates: Coordinates, line: ProgressLine) -> JarSet:
        damaged = self._read(coordinates)
        repository = self._repository()
        if damaged is None:
            poms = self.home / "poms"
            poms.mkdir(exist_ok=True)
            resolution = self._resolve(
                coordinates,
                repository,
                poms,
                lambda count: line.show(f"reading POM files, {count} so far"),
            )
            paths, engine = resolution.jars, resolution.engine
            pinned: tuple[Jar, ...] = ()
        else:
            paths = tuple(jar.path for jar in damaged.jars)
            engine, pinned = damaged.engine, damaged.jars
        jars, downloaded = self._store.fetch(paths, repository, line, pinned)
        jar_set = JarSet(self._folder(coordinates), engine, tuple(jars))
        self._write(coordinates, jar_set)
        seconds = time.monotonic() - line.began
        line.end(
            f"{plural(len(jars), 'jar')}, {megabytes(jar_set.size)} MB, of which"
            f" {megabytes(downloaded)} MB were downloaded in {seconds:.0f} s, in {jar_set.folder}"
        )
        return jar_set

    def _write(self, coordinates: Coordinates, jar_set: JarSet) -> None:
        jar_set.folder.parent.mkdir(parents=True, exist_ok=True)
        for leftover in jar_set.folder.parent.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=jar_set.folder.parent))
        try:
            for name, jar in _names(jar_set.jars).items():
                link(self._store.folder / jar.path, folder / name)
            pins = {
                "coordinates": str(coordinates),
                "engine": jar_set.engine,
                "jars": [asdict(jar) for jar in jar_set.jars],
            }
            (folder / _PINS).write_text(json.dumps(pins, indent=1), encoding="utf-8")
            folder.chmod(0o755)
            if jar_set.folder.exists():
                shutil.rmtree(jar_set.folder)
            folder.rename(jar_set.folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _read(self, coordinates: Coordinates) -> JarSet | None:
        folder = self._folder(coordinates)
        try:
            pins = json.loads((folder / _PINS).read_text(encoding="utf-8"))
            jars = tuple(Jar(**jar) for jar in pins["jars"])
            return JarSet(folder, pins["engine"], jars)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _folder(self, coordinates: Coordinates) -> Path:
        return self.home / "sets" / coordinates.group / coordinates.artifact / coordinates.version

    @contextlib.contextmanager
    def _locked(self, line: ProgressLine) -> Iterator[None]:
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    line.show("waiting for another process that downloads")
                    time.sleep(_WAIT_SECONDS)
                else:
                    break
            yield


def maven_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of this cache, which may not exist.

    >>> maven_cache({"XDG_CACHE_HOME": "/var/cache/ann"})
    PosixPath('/var/cache/ann/rowmerge_nb/maven')
    """
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "rowmerge_nb" / "maven"


def maven_repository(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of Maven's own cache, which may not exist.

    >>> maven_repository({"M2_REPO": "/m2"})
    PosixPath('/m2')
    """
    return Path(environ.get("M2_REPO") or Path.home() / ".m2" / "repository")


def _is_complete(jar_set: JarSet) -> bool:
    for name, jar in _names(jar_set.jars).items():
        try:
            if (jar_set.folder / name).stat().st_size != jar.size:
                return False
        except OSError:
            return False
    return True


def _names(jars: tuple[Jar, ...]) -> dict[str, Jar]:
    """Return the jars by their names in a set, which have the group where two would be equal."""
    counts = Counter(jar.path.rsplit("/", 1)[-1] for jar in jars)
    names = {}
    for jar in jars:
        group, _, _, name = jar.path.rsplit("/", 3)
        names[name if counts[name] == 1 else f"{group.replace('/', '.')}-{name}"] = jar
    return names
