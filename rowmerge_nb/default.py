"""The default engine of the magics and `run`."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.engine.spark.lazy_session import LazySession
    from rowmerge_nb.trace.audit import Audit
    from rowmerge_nb.trace.lab import Lab
    from rowmerge_nb.trace.layouts import Layouts

_lock = threading.Lock()
_engines: list[Engine] = []
_sessions: list[LazySession] = []
"""The session of the next engine: one that is started early, or one under construction."""
_preparations: list[Callable[[Engine], None]] = []
"""Functions that get every new default engine before it is used."""


def default_engine(*, start: bool = False) -> Engine:
    """Return the process's default engine, whose local Spark session starts when needed.

    It is created at the first call, and again after it was closed.
    """
    from rowmerge_nb.engine.spark.lazy_session import LazySession

    with _lock:
        if not _engines or _engines[0].closed:
            # After an interrupt, the next call continues with this session.
            if not _sessions:
                _sessions.append(LazySession())
            if start:
                # Java starts while the engine's modules are loaded.
                _sessions[0].start()
            from rowmerge_nb.engine.engine import Engine

            engine = Engine(spark=_sessions[0])
            for prepare in _preparations:
                prepare(engine)
            _engines[:] = [engine]
            _sessions.clear()
        return _engines[0]


def prepare_default_engine(prepare: Callable[[Engine], None] | None) -> None:
    """Pass every new default engine to a function before it is used, and the current one now."""
    with _lock:
        _preparations[:] = [] if prepare is None else [prepare]
        if prepare is not None and _engines and not _engines[0].closed:
            prepare(_engines[0])


def prestart() -> LazySession | None:
    """Start Spark in the background for the default engine, which the first statement creates.

    Returns:
        The session; None if it was started before, or if there is an engine.
    """
    from rowmerge_nb.engine.spark.lazy_session import LazySession

    with _lock:
        if _sessions or (_engines and not _engines[0].closed):
            return None
        session = LazySession()
        session.start()
        _sessions.append(session)
        return session


def end_prestart() -> None:
    """End the session of `prestart`, with its Java, unless an engine has it."""
    with _lock:
        session = _sessions.pop() if _sessions else None
    if session is not None:
        session.end()


def existing_engine() -> Engine | None:
    """Return the default engine, or None if it was not created yet."""
    return _engines[0] if _engines else None


def run(sql: str, **options: Any) -> Result:
    """Run one statement on the default engine, with the options of `Engine.run`.

    The caller's DataFrames are sources by their names, as in cells of ``%%merge``;
    ``namespace={}`` hides them.

    Raises:
        RowMergeError: the statement is invalid or failed; the tables are unchanged.
    """
    from rowmerge_nb.engine.spark.frames import is_frame

    caller = sys._getframe(1)  # noqa: SLF001 - the only way to the variables of a caller
    frames = {
        name: value
        for name, value in {**caller.f_globals, **caller.f_locals}.items()
        if not name.startswith("_") and is_frame(value)
    }
    return default_engine().run(sql, **{"namespace": frames, **options})


def lab(sql: str | None = None, **arguments: Any) -> Lab:
    """Run a statement over a grid of stores, layouts and changes on the default engine; see
    `Engine.lab`.
    """
    return default_engine().lab(sql, **arguments)


def layouts(table: str | None, statements: Any, **arguments: Any) -> Layouts:
    """Compare layouts of a table by what statements touch and read, on the default engine; see
    `Engine.layouts`.

    Raises:
        RowMergeError: an argument or a statement is invalid.
    """
    return default_engine().layouts(table, statements, **arguments)


def audit(
    table: str | None = None, *, before: Any, after: Any = None, statement: str, **arguments: Any
) -> Audit:
    """Audit another engine's committed statement with the default engine; see `Engine.audit`."""
    return default_engine().audit(
        table, before=before, after=after, statement=statement, **arguments
    )


def undo(table: str | None = None) -> Result:
    """Undo the default engine's last change of a table; see `Engine.undo`.

    Args:
        table: the table; None for the one changed last.
    """
    return default_engine().undo(table)


def restore(table: str, version: int | str | dt.date) -> Result:
    """Restore the rows of a former version of a table; see `Engine.restore`."""
    return default_engine().restore(table, version)
