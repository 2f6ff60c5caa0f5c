"""Finding a JDK that runs Trino."""

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
_HINT: Final = (
    f"Install a full JDK {OLDEST_JAVA}, such as Temurin, and give its folder: java='/path/to/jdk',"
    " or set TRINO_JAVA_HOME."
)


@dataclass(frozen=True)
class JavaHome:
    """A Java.

    Args:
        version: the first number of its version.
        has_vectors: whether it has the module jdk.incubator.vector, without which Trino's Parquet
            reader fails.
    """

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


def find_java_home(argument: str | os.PathLike[str] | None = None) -> JavaHome:
    """Return the named Java, or the first suitable one that the environment names or that is
    installed.

    Raises:
        SetupError: there is none, or the named one is unsuitable.
    """
    if argument is not None:
        java = read_java_home(Path(argument))
        if java is None:
            raise SetupError(f"There is no JDK in '{os.fspath(argument)}'", hint=_HINT)
        return _suitable(java)
    homes = [java for folder in _candidates() if (java := read_java_home(folder))]
    for java in homes:
        if java.version >= OLDEST_JAVA and java.has_vectors:
            return java
    if homes:
        return _suitable(max(homes, key=lambda java: java.version))
    raise SetupError(f"No JDK {OLDEST_JAVA} was found, which Trino needs", hint=_HINT)


def _suitable(java: JavaHome) -> JavaHome:
    if java.version < OLDEST_JAVA:
        raise SetupError(
            f"Java {java.version} in '{java.folder}' is too old: Trino needs {OLDEST_JAVA}",
            hint=_HINT,
        )
    if not java.has_vectors:
        raise SetupError(
            f"Java in '{java.folder}' lacks the module {_VECTORS}, without which Trino's Parquet"
            " reader fails",
            hint=_HINT,
        )
    return java


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
