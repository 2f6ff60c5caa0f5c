"""The engine that the magics and `run` share where none is named."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import datetime as dt

    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.engine.result import Result
    from rowmerge_nb.engine.spark.lazy_session import LazySession
    from rowmerge_nb.trace.audit import Audit

_lock = threading.Lock()
_engines: list[Engine] = []
_sessions: list[LazySession] = []
"""That of an engine which is being made."""


def default_engine(*, start: bool = False) -> Engine:
    """Return the process's default engine, on a local Spark session that starts when it is needed.

    It is made at the first call, and anew where it has been closed: a notebook has no other way to get one that works.

    Args:
        start: it is needed now, so that an engine that is made here may start it.
    """
    from rowmerge_nb.engine.spark.lazy_session import LazySession

    with _lock:
        if not _engines or _engines[0].closed:
            # Kept where an interrupt ends what follows: the next call goes on with it.
            if not _sessions:
                _sessions.append(LazySession())
            if start:
                # Before all that makes an engine is loaded: Java comes up meanwhile.
                _sessions[0].start()
            from rowmerge_nb.engine.engine import Engine

            _engines[:] = [Engine(spark=_sessions[0])]
            _sessions.clear()
        return _engines[0]


def made_engine() -> Engine | None:
    """Return the default engine if it has been made; None where no statement has asked for it yet."""
    return _engines[0] if _engines else None


def run(sql: str, **options: Any) -> Result:
    """Run one statement on the default engine.

    Args:
        sql: the statement.
        options: those of `Engine.run`.

    Raises:
        RowMergeError: the statement is wrong or failed; the tables are as they were.
    """
    return default_engine().run(sql, **options)


def audit(table: str | None = None, *, before: Any, after: Any = None, statement: str, **arguments: Any) -> Audit:
    """Audit with the default engine what another engine has committed; see `Engine.audit`.

    Args:
        table: the table; None for the statement's target.
        before: the table before the statement: what names a state of it, or its rows.
        after: the table afterwards; None for the table as it is now.
        statement: the statement that the other engine has run.
        arguments: those of `Engine.audit` that are left.

    Raises:
        RowMergeError: the statement is wrong, a state is not there, or the two do not go together.
    """
    return default_engine().audit(table, before=before, after=after, statement=statement, **arguments)


def undo(table: str | None = None) -> Result:
    """Take back the default engine's last change of a table; see `Engine.undo`.

    Args:
        table: the table; None for the one that was changed last.

    Raises:
        RowMergeError: nothing was taken back.
    """
    return default_engine().undo(table)


def restore(table: str, version: int | str | dt.date) -> Result:
    """Put back the rows that a table of the default engine had in a former version; see `Engine.restore`.

    Args:
        table: the table.
        version: the version.

    Raises:
        RowMergeError: the table is as it was.
    """
    return default_engine().restore(table, version)
