"""Starting Java in the host process."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.jpype_library import jpype

if TYPE_CHECKING:
    from collections.abc import Sequence

JavaObject = Any
"""An object, class or array of Java; JPype has no types."""

_OPTIONS: Final = (
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xshare:auto",
    "--enable-native-access=ALL-UNNAMED",
    "-Duser.timezone=UTC",
    "-Dfile.encoding=UTF-8",
    # Older versions measure objects with a library that otherwise attaches agents for 15 seconds.
    "-Djol.skipHotspotSAAttach=true",
    "-Djol.skipDynamicAttach=true",
)
_UNSAFE_OPTION: Final = "--sun-misc-unsafe-memory-access=allow"
_UNSAFE_OPTION_SINCE: Final = 23
# Measured with Iceberg on two cores: the C2 compiler takes half of the processor time of a start
# and of a small MERGE, and a third of that of a MERGE of 1 M rows.
_FEW_CORES: Final = 2
_QUICK_COMPILER: Final = "-XX:TieredStopAtLevel=1"
_VECTORS: Final = "jdk.incubator.vector"


def start_java(java_home: str, engine_folder: str, options: Sequence[str] = ()) -> None:
    """Start Java with Trino's engine on the class path."""
    jars = sorted(str(jar) for jar in Path(engine_folder).glob("*.jar"))
    modules = [f"--add-modules={_VECTORS}"] if has_vectors(java_home) else []
    try:
        jpype.startJVM(
            str(_library(java_home)),
            *own_options(java_version(java_home), available_cores()),
            *modules,
            *options,
            classpath=jars,
            convertStrings=False,
            interrupt=False,
        )
        _log_exits()
    except Exception as error:
        raise ConnectorError(
            f"Java in {java_home} did not start: {error}",
            code="HOST_TERMINATED",
            hint="Check that the folder is a JDK for this Trino and that its options are valid.",
        ) from error


def _log_exits() -> None:
    """Make Java log the stack of System.exit, which ends the process without an exception."""
    level = java_class("java.util.logging.Level").FINE
    handler = java_class("java.util.logging.ConsoleHandler")()
    handler.setLevel(level)
    logger = _exit_logger()
    logger.setLevel(level)
    logger.setUseParentHandlers(False)
    logger.addHandler(handler)


@cache
def _exit_logger() -> JavaObject:
    """Return the logger of exits; Java forgets the settings of loggers that are not referenced."""
    return java_class("java.util.logging.Logger").getLogger("java.lang.Runtime")


def own_options(version: int, cores: int) -> list[str]:
    """Return the host's own options for a version of Java.

    >>> own_options(17, 8)[-1], own_options(25, 2)[-2:]
    ('-Djol.skipDynamicAttach=true', ['--sun-misc-unsafe-memory-access=allow', '-XX:TieredStopAtLevel=1'])
    """
    return [
        *_OPTIONS,
        *([_UNSAFE_OPTION] if version >= _UNSAFE_OPTION_SINCE else []),
        *([_QUICK_COMPILER] if cores <= _FEW_CORES else []),
    ]


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def java_version(java_home: str) -> int:
    """Return the first number of a Java's version; 0 if it has no file ``release``."""
    match = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', _release(java_home))
    return int(match[1]) if match else 0


def has_vectors(java_home: str) -> bool:
    return (Path(java_home) / "jmods" / f"{_VECTORS}.jmod").exists() or _VECTORS in _release(
        java_home
    )


def _release(java_home: str) -> str:
    release = Path(java_home) / "release"
    return release.read_text(encoding="utf-8", errors="replace") if release.exists() else ""


def _library(java_home: str) -> Path:
    name = {"darwin": "lib/server/libjvm.dylib", "win32": "bin/server/jvm.dll"}.get(
        sys.platform, "lib/server/libjvm.so"
    )
    return Path(java_home) / name


@cache
def java_class(name: str) -> JavaObject:
    return jpype.JClass(name)


def call_plugin(target: JavaObject, method: str, *arguments: JavaObject) -> JavaObject:
    result = getattr(target, method)(*arguments)
    if result is None:
        raise ConnectorError(
            f"{target.getClass().getName()}.{method} returned null",
            code="GENERIC_INTERNAL_ERROR",
            hint=f"Return a value from {method}: the SPI of Trino has no null here.",
        )
    return result


def java_list(items: Sequence[JavaObject]) -> JavaObject:
    result = java_class("java.util.ArrayList")()
    for item in items:
        result.add(item)
    return result


def java_text(text: str) -> JavaObject:
    return java_class("java.lang.String")(text)


def optional(value: JavaObject | None) -> JavaObject:
    return java_class("java.util.Optional").ofNullable(value)


def from_optional(value: JavaObject) -> JavaObject | None:
    return value.get() if value.isPresent() else None
