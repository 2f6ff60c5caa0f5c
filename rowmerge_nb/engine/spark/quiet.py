"""Nothing of PySpark's is printed while a statement runs: what it has to say is raised, with Trino's code and a sentence.

PySpark logs an exception with the SQL that it is about as soon as it has caught it: kilobytes of JSON with Java's stack on the standard
error stream. What a program logs of Spark outside of our statements stays as it is.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_CONNECTIONS: Final = ("java_gateway", "clientserver")
"""Modules of Py4J."""

_here = threading.local()


@contextmanager
def quietly() -> Iterator[None]:
    """Mark what this thread does as a part of a statement of ours.

    >>> with quietly(), quietly():
    ...     pass
    """
    before = getattr(_here, "quiet", False)
    _here.quiet = True
    try:
        yield
    finally:
        _here.quiet = before


def keep_quiet() -> None:
    """Filter what PySpark's loggers of exceptions print; to be called when PySpark is loaded."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        # A plain logger under this name would be found by PySpark, which passes it what only its own class takes.
        PySparkLogger.getLogger(name).addFilter(_is_anothers)
    # Py4J logs a lost connection here.
    logging.getLogger().addFilter(_is_no_lost_connection)


def _is_no_lost_connection(record: logging.LogRecord) -> bool:
    return record.module not in _CONNECTIONS or _is_anothers(record)


def _is_anothers(_: logging.LogRecord) -> bool:
    return not getattr(_here, "quiet", False)
