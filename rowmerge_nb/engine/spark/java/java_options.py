"""What Spark's Java is started with: its memory, its options, and where it logs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE_ROOT: Final = Path(__file__).resolve().parents[4]

LAUNCHER_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""Those of the small Java that only writes down how the other one is to be started."""

# The parallel collector has the best throughput; deeply nested expressions need a deep stack where Spark reads them.
_JAVA_OPTIONS: Final = "-XX:+UseParallelGC -XX:-UsePerfData -Xss8m"
# Measured on two cores: Java's slow compiler takes 10 of the 25 seconds of processor time that a process needs until its first MERGE is
# done, time that the statement itself then lacks; without it 10 M rows take a third longer. With more cores it works beside the statement.
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


def told_cores() -> int | None:
    """Return what the variable ROWMERGE_CORES says; None where it is not set.

    Raises:
        SetupError: INVALID_ARGUMENTS, it is no whole number from 1 on.
    """
    told = os.environ.get("ROWMERGE_CORES", "")
    if not told:
        return None
    if not (told.isascii() and told.isdecimal() and int(told)):
        raise SetupError(
            f"The variable ROWMERGE_CORES is '{told}'",
            code="INVALID_ARGUMENTS",
            hint="It is a whole number from 1 on; without it the machine's cores are used.",
        )
    return int(told)


def available_cores() -> int:
    """Return the number of cores that this process may use: as it was told, or as the system says, which in a container may be all of the machine.

    Raises:
        SetupError: as `told_cores`.
    """
    if told := told_cores():
        return told
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usual_cores() -> int:
    """Return how many tasks a session of our own runs at the same time where nothing else is asked for.

    Raises:
        SetupError: as `told_cores`.
    """
    return told_cores() or min(available_cores(), _MOST_CORES)


def python_path() -> str:
    """Return the PYTHONPATH of processes that are started here: they find this package also where it is not installed, as in a checkout."""
    return os.pathsep.join(filter(None, [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))


def driver_memory(conf: Mapping[str, str] | None = None) -> str:
    """Return the memory of a Spark of our own, as Spark writes it: a user's setting, the variable ROWMERGE_DRIVER_MEMORY, or 2g.

    >>> driver_memory({"spark.driver.memory": "6g"})
    '6g'
    """
    return (conf or {}).get("spark.driver.memory") or os.environ.get("ROWMERGE_DRIVER_MEMORY", "2g")


def java_options(cores: int, conf: Mapping[str, str] | None = None) -> str:
    """Return the options of Spark's Java on a machine with so many cores.

    A user's own come last, so that they have the last word: those of the variable ROWMERGE_JAVA_OPTIONS, and of Spark's setting.

    >>> java_options(16, {"spark.driver.extraJavaOptions": "-Xss16m"})
    '-XX:+UseParallelGC -XX:-UsePerfData -Xss8m -Xss16m'
    """
    quick = _QUICK_COMPILER if cores <= _FEW_CORES else ""
    users = (os.environ.get("ROWMERGE_JAVA_OPTIONS", ""), (conf or {}).get("spark.driver.extraJavaOptions", ""))
    return " ".join(filter(None, [_JAVA_OPTIONS, quick, *users]))


def write_log_settings(directory: Path) -> Path:
    """Write the settings of Java's log, which lies beside them; nothing of it is printed."""
    settings = directory / "log4j2.properties"
    settings.write_text(_LOG_SETTINGS.format(log=directory / "spark.log"))
    return settings
