"""Finding a JDK that runs a version of Trino."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST_JAVA: Final = 25
_VECTORS: Final = "jdk.incubator.vector"
_FOLDERS: Final = ("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines", "/opt/java", "/opt")
_SINCE_JAVA_21: Final = 436
"""The first version of Trino that does not run on Java 17."""
_JAVA_OF_OLDER: Final = (17, 22)
"""The Java of versions before: the security manager, which their Hadoop uses, is gone from 23 on."""


@dataclass(frozen=True)
class JavaNeed:
    trino: str
    oldest: int
    newest: int | None
    vectors: bool

    def runs_on(self, java: JavaHome) -> bool:
        return (
            self.oldest <= java.version <= (self.newest or java.version)
            and java.has_vectors >= self.vectors
        )

    @property
    def range(self) -> str:
        return f"{self.oldest}" if self.newest is None else f"{self.oldest} to {self.newest}"

    @property
    def hint(self) -> str:
        return (
            f"Install a full JDK {self.oldest}, such as Temurin, and pass its folder:"
            " java='/path/to/jdk', or set TRINO_JAVA_HOME."
        )


def java_need(trino: str = "") -> JavaNeed:
    """Return the Java that a version of Trino needs.

    >>> java_need("483").range, java_need("380").range, java_need("").oldest
    ('25', '17 to 22', 25)
    """
    number = re.match(r"\d+", trino)
    if number is None or int(number[0]) >= _SINCE_JAVA_21:
        return JavaNeed("Trino", OLDEST_JAVA, None, vectors=True)
    return JavaNeed(f"Trino {trino}", *_JAVA_OF_OLDER, vectors=False)


@dataclass(frozen=True)
class JavaHome:
    folder: Path
    version: int
    has_vectors: bool


def read_java_home(folder: Path) -> JavaHome | None:
    """Return the Java in a folder, by its file ``release``; None if there is none.

    >>> read_java_home(Path("/no/such/folder")) is None
    True
    """
    try:
        release = (folder / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    version = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release)
    if version is None:
        return None
    has_vectors = _VECTORS in release or (folder / "jmods" / f"{_VECTORS}.jmod").exists()
    return JavaHome(folder, int(version[1]), has_vectors)


def find_java_home(argument: str | os.PathLike[str] | None = None, trino: str = "") -> JavaHome:
    """Return the named Java, or the first suitable one that the environment names or that is
    installed.
    """
    need = java_need(trino)
    if argument is not None:
        java = read_java_home(Path(argument))
        if java is None:
            raise SetupError(f"There is no JDK in '{os.fspath(argument)}'", hint=need.hint)
        return _suitable(java, need)
    homes = [java for folder in _candidates() if (java := read_java_home(folder))]
    for java in homes:
        if need.runs_on(java):
            return java
    if homes:
        return _suitable(max(homes, key=lambda java: java.version), need)
    raise SetupError(f"No JDK {need.range} was found, which {need.trino} needs", hint=need.hint)


def _suitable(java: JavaHome, need: JavaNeed) -> JavaHome:
    if need.runs_on(java):
        return java
    if java.version < need.oldest or need.newest is not None:
        age = "old" if java.version < need.oldest else "new"
        raise SetupError(
            f"Java {java.version} in '{java.folder}' is too {age}: {need.trino} needs {need.range}",
            hint=need.hint,
        )
    raise SetupError(
        f"Java in '{java.folder}' lacks the module {_VECTORS}, without which Trino's Parquet"
        " reader fails",
        hint=need.hint,
    )


def _candidates() -> Iterator[Path]:
    for variable in ("TRINO_JAVA_HOME", "JAVA_HOME"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    program = shutil.which("java")
    if program:
        yield Path(program).resolve().parent.parent
    for folder in _FOLDERS:
        for path in sorted(Path(folder).glob("*"), reverse=True):
            yield path
            yield path / "Contents" / "Home"
