"""The engine that the magics and `run` share where none is named."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.engine.result import Result

__all__ = ["default_engine", "run"]

_lock = threading.Lock()
_engines: list[Engine] = []


def default_engine(*, start: bool = False) -> Engine:
    """Give the process's default engine, on a local Spark session that starts when it is needed.

    It is made at the first call, and anew where it has been closed: a notebook has no other way to get one that works.

    Args:
        start: it is needed now.
    """
    from rowmerge_nb.engine.spark.lazy_session import LazySession

    with _lock:
        if not _engines or _engines[0].closed:
            session = LazySession()
            if start:
                # Before all that makes an engine is loaded: Java comes up meanwhile.
                session.start()
            from rowmerge_nb.engine.engine import Engine

            _engines[:] = [Engine(spark=session)]
        elif start:
            _engines[0].start()
        return _engines[0]


def run(sql: str, **options: Any) -> Result:
    """Run one statement on the default engine.

    Args:
        sql: the statement.
        options: those of `Engine.run`.

    Raises:
        RowMergeError: the statement is wrong or failed; the tables are as they were.
    """
    return default_engine().run(sql, **options)
