"""Detection of a lost Spark, and cleanup of PySpark's state so that another one can start in this
process.

Java may be killed or run out of memory, and a cleaner may empty Spark's temporary folder.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import error_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.base.private import PrivateDirectory

AFTERWARDS: Final = (
    "Tables in memory, views, session settings and prepared statements are unchanged;"
    " temporary views and DataFrames of engine.spark are lost."
)
_WAIT_SECONDS: Final = 2.0
"""How long a process may outlive its connections."""
_STOP_SECONDS: Final = 10.0
_MEMORY_EVENTS: Final = (
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
)
_OUT_OF_MEMORY: Final = 3
"""The exit code of Java without memory, with the option ExitOnOutOfMemoryError."""
_NO_FILE: Final = re.compile(
    r"(?:NoSuchFile|FileNotFound|FileSystem)Exception: [^\n]*rowmerge_nb-\w+/spark/"
)


@dataclass
class Home:
    """The environment of our own Spark.

    Args:
        kills: the machine's count of out-of-memory kills at the start.
    """

    directory: PrivateDirectory
    process: subprocess.Popen[bytes] | None
    kills: int
    folders: set[str] = field(default_factory=set)
    condemned: bool = False

    def loss(self) -> str:
        """Return the reason for a loss as the end of a sentence, or ``""``."""
        if self.process is not None and self.process.poll() is not None:
            return f"its Java process {_end_of(self.process, self.kills)}"
        now = set(_folders(self.directory.path / "spark"))
        missing = self.folders - now
        self.folders |= now
        if self.condemned or missing or not self.directory.is_intact:
            return f"its temporary folder '{self.directory.path}' was emptied"
        return ""


_homes: weakref.WeakKeyDictionary[Any, Home] = weakref.WeakKeyDictionary()


def keep_home(context: Any, directory: PrivateDirectory) -> None:
    """Record the environment of a Spark context of our own."""
    _homes[context] = Home(directory, _process_of(context), _kills())
    # The accumulator server prints a traceback when Java is gone.
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def home_of(session: Any) -> Home | None:
    context = getattr(session, "sparkContext", None)
    return None if context is None else _homes.get(context)


def loss_of(session: Any) -> str:
    """Return why a session is lost; ``""`` if it is not, or unknown."""
    home = home_of(session)
    if home is not None:
        return home.loss()
    try:
        process = _process_of(session.sparkContext)
    except Exception:  # noqa: BLE001 - Spark Connect has no context, and raises one of several errors
        return ""
    if process is None or process.poll() is None:
        return ""
    return f"its Java process {_end_of(process, _kills())}"


def note_failure(session: Any, failure: BaseException) -> str:
    """Return why the session is lost after a failure, or ``""``."""
    home = home_of(session)
    if home is not None and _NO_FILE.search(error_text(failure)):
        home.condemned = True
    process = (
        _process_of(getattr(session, "sparkContext", None)) if _is_of_connection(failure) else None
    )
    if process is not None:
        # A process ends shortly after its connections.
        with suppress(subprocess.TimeoutExpired):
            process.wait(_WAIT_SECONDS)
    return loss_of(session)


def _is_of_connection(failure: BaseException) -> bool:
    return isinstance(failure, ConnectionError) or type(failure).__name__ in {
        "Py4JError",
        "Py4JNetworkError",
    }


def forget(session: Any) -> None:
    """Stop the rest of a lost Spark, and reset PySpark's state."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.context import SQLContext

    context: Any = session.sparkContext
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark has no other way
    process, home = _process_of(context), home_of(session)
    if process is not None and process.poll() is None:
        with suppress(Exception):
            session.stop()
        with suppress(Exception):
            gateway.shutdown()
        # Spark's Java ends when its standard input closes.
        _end(process)
    with suppress(Exception):
        gateway.close()
    context._jsc = None  # noqa: SLF001 - it leads to a process that is gone
    with suppress(Exception):
        context.stop()
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    SQLContext._instantiatedContext = None  # noqa: SLF001
    if home is not None:
        home.directory.remove()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _process_of(context: Any) -> subprocess.Popen[bytes] | None:
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    return process if isinstance(process, subprocess.Popen) else None


def _end_of(process: subprocess.Popen[bytes], kills: int) -> str:
    code = process.returncode
    if code == _OUT_OF_MEMORY:
        return "ran out of its own memory"
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    if -code != signal.SIGKILL:
        return f"was ended by signal {-code} ({name})"
    by = (
        "the system's out-of-memory killer"
        if _kills() > kills
        else "a user or a program, or by the system for lack of memory"
    )
    return f"was killed by signal {-code} ({name}): by {by}"


def _kills() -> int:
    for file in _MEMORY_EVENTS:
        with suppress(OSError, ValueError):
            counts = dict(line.split() for line in file.read_text().splitlines())
            return int(counts.get("oom_kill", "0"))
    return 0


def _folders(top: Path) -> Iterator[str]:
    """Yield the block folders, which Spark creates once and needs until its end."""
    with suppress(OSError), os.scandir(top) as entries:
        for entry in entries:
            if entry.name.startswith(("spark-", "blockmgr-")) or top.name.startswith("blockmgr-"):
                yield entry.path
                if not top.name.startswith("blockmgr-"):
                    yield from _folders(Path(entry.path))
