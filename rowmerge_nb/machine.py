"""Checks of the machine: packages, Java, Spark, and advice for what is missing."""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import RowMergeError, SetupError, StatementInterrupted, error_text
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.base.front_end import either

if TYPE_CHECKING:
    from collections.abc import Callable

_NEEDED: Final = ("pyspark", "pyarrow", "pandas", "ipython", "jinja2", "graphviz", "pygraphviz")
_OPTIONAL: Final = (
    ("deltalake", "delta", "Delta Lake tables"),
    ("pyiceberg", "iceberg", "Iceberg tables"),
    ("sqlalchemy", "iceberg", "the catalog of an Iceberg warehouse"),
    ("matplotlib", "lab", "the pictures of the lab"),
    ("pymetastore", "hive", "a Hive Metastore"),
    ("pyorc", "hive", "values of Hive's tables that Arrow does not write"),
    ("adbc-driver-manager", "jdbc", "SQLite and PostgreSQL"),
    ("adbc-driver-sqlite", "sqlite", "tables of SQLite"),
    ("adbc-driver-postgresql", "postgresql", "tables of PostgreSQL"),
    ("jpype1", "trino", "plugins of Trino"),
    ("jgo", "trino", "plugins of Trino by Maven coordinates"),
    ("requests", "trino", "the download of a plugin's jars"),
    ("sqlglot", "verify", "verify: the statement for DuckDB and PostgreSQL"),
    ("grpcio", "connect", "sessions of Spark Connect"),
    ("grpcio-status", "connect", "sessions of Spark Connect"),
    ("googleapis-common-protos", "connect", "sessions of Spark Connect"),
    ("zstandard", "connect", "sessions of Spark Connect"),
    ("pytest", "testing", "the contract kit for connectors"),
    ("polars", "", "DataFrames of polars as sources"),
    ("jupyterlab", "", "notebooks in a browser"),
)
"""Distribution, the extra that brings it (``""`` for none), and what it is for."""


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Args:
        name: the subject.
        state: ``ok``, ``missing`` (for optional parts) or ``failed``.
        detail: the finding.
        advice: the next step, or ``""``.
    """

    name: str
    state: str
    detail: str
    advice: str = ""


def doctor(*, start_spark: bool = True, prepare: bool = False) -> list[Check]:
    """Check everything that statements need.

    Args:
        start_spark: start a session and run a small job; takes some seconds the first time.
        prepare: create the class cache with which Java starts in half the time, if missing; takes
            one or two minutes. Otherwise a process that has run a statement creates it when it is
            idle for a minute.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for an argument other than True or False; USER_CANCELED if
            the creation of the cache was interrupted, which leaves nothing behind. Other problems
            are failed checks.

    >>> [check.name for check in doctor(start_spark=False)][:2]
    ['rowmerge-nb', 'Python']
    """
    checked(start_spark, "start_spark", bool, "True or False")
    checked(prepare, "prepare", bool, "True or False")
    checks = [
        _package("rowmerge-nb"),
        _python(),
        *(_package(name) for name in _NEEDED),
        _pandas_fits(),
    ]
    checks += [_optional(*each) for each in _OPTIONAL]
    checks += [
        _guarded("Java", _java),
        _guarded("JDK for Trino", _trino_java),
        _guarded("class cache", partial(_class_cache, prepare=prepare)),
        _guarded("Graphviz", _graphviz),
        _guarded("memory", _memory),
    ]
    checks.append(_guarded("Spark", _spark if start_spark else _spark_state))
    return [check for check in checks if check is not None]


def _guarded(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except StatementInterrupted:
        raise
    except RowMergeError as error:
        return Check(name, "failed", error.message, error.hint or "")
    except Exception as error:  # noqa: BLE001 - as the docstring says
        return Check(name, "failed", error_text(error))


def _python() -> Check:
    return Check("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def _package(name: str) -> Check:
    try:
        return Check(name, "ok", version(name))
    except PackageNotFoundError:
        if name == "rowmerge-nb":
            return Check(name, "ok", "used from a directory, not installed")
        return Check(name, "failed", "not installed", f"pip install {name}")


def _optional(name: str, extra: str, use: str) -> Check:
    """Check an optional package.

    >>> _optional("no-such-package", "", "a test")
    Check(name='no-such-package', state='missing', detail='not installed; optional, for a test', advice='pip install no-such-package')
    """
    try:
        return Check(name, "ok", f"{version(name)}, for {use}")
    except PackageNotFoundError:
        advice = install_command(extra) if extra else f"pip install {name}"
        return Check(name, "missing", f"not installed; optional, for {use}", advice)


def _pandas_fits() -> Check | None:
    try:
        major = int(version("pandas").partition(".")[0])
    except (PackageNotFoundError, ValueError):
        return None
    if major < 3:
        return None
    return Check(
        "pandas",
        "failed",
        f"PySpark 4.3 does not work with pandas {version('pandas')}",
        'pip install "pandas<3"',
    )


def _java() -> Check:
    from rowmerge_nb.engine.spark.java.runtime import find_java, rejections

    java = find_java()
    passed_over = "".join(f"; {rejection}" for rejection in rejections())
    return Check(
        "Java", "ok", f"version {java.version} at {java.home}, found by {java.origin}{passed_over}"
    )


def _trino_java() -> Check:
    from rowmerge_nb.connectors.trino.java_homes import find_java_home

    name = "JDK for Trino"
    try:
        java = find_java_home()
    except SetupError as error:
        detail = f"{error.message}; optional, for plugins of Trino"
        return Check(name, "missing", detail, error.hint or "")
    return Check(name, "ok", f"version {java.version} at {java.folder}, for plugins of Trino")


def _class_cache(*, prepare: bool) -> Check:
    from rowmerge_nb.engine.spark.interrupts import run_without_leftovers
    from rowmerge_nb.engine.spark.java.class_cache import NoClassCache, class_cache_of
    from rowmerge_nb.engine.spark.java.making import make_class_cache, why_not_in_background
    from rowmerge_nb.engine.spark.java.runtime import find_java

    cache = class_cache_of(find_java())
    if isinstance(cache, NoClassCache):
        return Check(
            "class cache", "failed" if prepare else "missing", f"none: {cache.reason}", cache.advice
        )
    if prepare:
        making = partial(make_class_cache, cache, {})
        run_without_leftovers(
            making,
            "Creating the class cache",
            f"{_prepare_command()} tries again.",
        )
    if trouble := cache.trouble():
        why_not = why_not_in_background(cache)
        detail = "; ".join(
            filter(
                None, [trouble.reason, why_not, "without a cache, Java starts with twice the work"]
            )
        )
        by_itself = (
            "" if why_not else "; otherwise it is created when a notebook is idle for a minute"
        )
        advice = f"{_prepare_command()} makes it now{by_itself}"
        return Check("class cache", "missing", detail, trouble.advice or advice)
    detail = (
        f"{cache.size / 1e6:.0f} MB in {cache.directory}, made {cache.created_at()}; Java starts"
        " with it with half the work"
    )
    return Check("class cache", "ok", detail)


def _prepare_command() -> str:
    return either("rowmerge_nb.doctor(prepare=True)", "%merge doctor --prepare")


def _graphviz() -> Check:
    import pygraphviz

    # Reports draw their own text, so Graphviz needs no fonts.
    pygraphviz.AGraph('digraph { node [label=""]; a -> b }').draw(prog="dot", format="svg")
    return Check("Graphviz", "ok", "draws, with the library inside pygraphviz")


def _memory() -> Check:
    import os

    from rowmerge_nb.engine.spark.java.java_options import available_cores, driver_memory

    machine = "unknown"
    if hasattr(os, "sysconf"):
        machine = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    advice = (
        "For tables with many million rows, set the variable ROWMERGE_DRIVER_MEMORY,"
        " for example to 8g"
    )
    return Check(
        "memory",
        "ok",
        f"{machine}, {available_cores()} cores; Spark may use {driver_memory()}",
        advice,
    )


def _spark() -> Check:
    from rowmerge_nb.default import default_engine

    began = time.monotonic()
    session = default_engine().spark
    rows = session.range(3).mapInArrow(_same, "id long").toArrow().num_rows
    if rows != 3:
        raise SetupError(f"Spark returned {rows} rows, but 3 were requested")
    return Check(
        "Spark",
        "ok",
        f"{session.version}, a job with a Python worker ran; {time.monotonic() - began:.1f} s",
    )


def _spark_state() -> Check:
    module = sys.modules.get("pyspark.sql")
    is_running = module is not None and module.SparkSession.getActiveSession() is not None
    state = "a session runs" if is_running else "no session runs yet"
    return Check("Spark", "ok", f"{version('pyspark')}, {state}")


def _same(pages: object) -> object:
    return pages
