"""Errors of SQLite, also within errors of SQLAlchemy."""

from __future__ import annotations

import sqlite3

_CODE = 0xFF
"""The mask of the primary error code within an extended one."""


def is_full(error: BaseException) -> bool:
    inner = _innermost(error)
    return _code(inner) == sqlite3.SQLITE_FULL or (
        inner is not None and "disk is full" in str(inner)
    )


def is_read_only(error: BaseException) -> bool:
    inner = _innermost(error)
    return _code(inner) in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM} or (
        inner is not None and "readonly" in str(inner)
    )


def sqlite_message(error: BaseException) -> str:
    """Return SQLite's own message, without SQLAlchemy's statement, parameters and URL, or the
    error's.

    >>> sqlite_message(sqlite3.OperationalError("database is locked")), sqlite_message(ValueError("no answer"))
    ('database is locked', 'no answer')
    """
    return str(_innermost(error) or error)


def _innermost(error: BaseException | None) -> sqlite3.Error | None:
    depth = 0
    while error is not None and depth < 20:
        if isinstance(error, sqlite3.Error):
            return error
        inner = getattr(error, "orig", None)
        error = inner if isinstance(inner, BaseException) else error.__cause__
        depth += 1
    return None


def _code(error: sqlite3.Error | None) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _CODE
