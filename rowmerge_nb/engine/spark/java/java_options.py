"""Memory, options and logs of Spark's Java."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE_ROOT: Final = Path(__file__).resolve().parents[4]

LAUNCHER_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""Options of the launcher's short-lived Java."""

# The parallel collector has the best throughput; Spark's parser needs a deep stack for nested
# expressions.
_JAVA_OPTIONS: Final = "-XX:+UseParallelGC -XX:-UsePerfData -Xss8m"
# Measured on two cores: the C2 compiler takes 10 of the 25 seconds of processor time up to the end
# of the first MERGE; without it, 10 M rows take a third longer. With more cores it runs in parallel
# to the statement.
_FEW_CORES, _QUICK_COMPILER = 2, "-XX:TieredStopAtLevel=1"

_MOST_CORES: Final = 8

_LOG_SETTINGS: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


def configured_cores() -> int | None:
    """Return ROWMERGE_CORES, if set; INVALID_ARGUMENTS if it is not a positive integer."""
    text = os.environ.get("ROWMERGE_CORES", "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise SetupError.invalid(
            f"The variable ROWMERGE_CORES is '{text}'",
            hint="It is a whole number from 1. If it is not set, all cores of the machine"
            " are used.",
        )
    return int(text)


def available_cores() -> int:
    """Return ROWMERGE_CORES, or this process's cores; in a container these may be all of the
    machine.
    """
    if cores := configured_cores():
        return cores
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usual_cores() -> int:
    return configured_cores() or min(available_cores(), _MOST_CORES)


def python_path() -> str:
    """Return the PYTHONPATH for child processes, including this package's checkout."""
    return os.pathsep.join(filter(None, [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))


def driver_memory(conf: Mapping[str, str] | None = None) -> str:
    """Return the driver memory: the user's setting, ROWMERGE_DRIVER_MEMORY, or 2g.

    >>> driver_memory({"spark.driver.memory": "6g"})
    '6g'
    """
    return (conf or {}).get("spark.driver.memory") or os.environ.get("ROWMERGE_DRIVER_MEMORY", "2g")


def java_options(cores: int, conf: Mapping[str, str] | None = None) -> str:
    """Return the options of Spark's Java; the user's own (ROWMERGE_JAVA_OPTIONS, Spark's setting)
    come last and win.
    """
    quick = _QUICK_COMPILER if cores <= _FEW_CORES else ""
    users = (
        os.environ.get("ROWMERGE_JAVA_OPTIONS", ""),
        (conf or {}).get("spark.driver.extraJavaOptions", ""),
    )
    return " ".join(filter(None, [_JAVA_OPTIONS, quick, *users]))


def write_log_settings(directory: Path) -> Path:
    settings = directory / "log4j2.properties"
    settings.write_text(_LOG_SETTINGS.format(log=directory / "spark.log"))
    return settings
