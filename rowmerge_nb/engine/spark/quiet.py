"""Suppression of PySpark's error logs during statements, which raise errors in Trino's words
instead.
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
_has_own_java = threading.Event()
"""Py4J's connections lead to a Java process that this package has started."""


@contextmanager
def quietly() -> Iterator[None]:
    """Mark the work of this thread as part of a statement."""
    before = getattr(_here, "quiet", False)
    _here.quiet = True
    try:
        yield
    finally:
        _here.quiet = before


def keep_quiet(*, is_own: bool = False) -> None:
    """Filter PySpark's exception loggers; call after PySpark is imported."""
    from pyspark.logger import PySparkLogger

    if is_own:
        _has_own_java.set()

    for name in _LOGGERS:
        # PySpark would reuse a plain logger of this name, and call methods that it lacks.
        PySparkLogger.getLogger(name).addFilter(_is_foreign)
    # Py4J logs a lost connection here.
    logging.getLogger().addFilter(_is_not_lost_connection)


def _is_not_lost_connection(record: logging.LogRecord) -> bool:
    return record.module not in _CONNECTIONS or (not _has_own_java.is_set() and _is_foreign(record))


def _is_foreign(_: logging.LogRecord) -> bool:
    return not getattr(_here, "quiet", False)
