"""What errors of Python's SQLite mean, wherever they lie within those of a library around it."""

from __future__ import annotations

import sqlite3

_CODE = 0xFF
"""Extended codes say more in their upper bits."""


def is_full(error: BaseException) -> bool:
    """Return whether an error says that the disk is full.

    >>> is_full(sqlite3.OperationalError("database or disk is full")), is_full(ValueError("full"))
    (True, False)
    """
    found = _innermost(error)
    return _code(found) == sqlite3.SQLITE_FULL or (found is not None and "disk is full" in str(found))


def is_read_only(error: BaseException) -> bool:
    """Return whether an error says that the file or its folder may not be written.

    >>> is_read_only(sqlite3.OperationalError("attempt to write a readonly database"))
    True
    """
    found = _innermost(error)
    return _code(found) in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM} or (found is not None and "readonly" in str(found))


def said(error: BaseException) -> str:
    """Return the words of SQLite, where a library around it adds its own: a statement, its parameters and an address; else the error's.

    >>> said(sqlite3.OperationalError("database is locked")), said(ValueError("no answer"))
    ('database is locked', 'no answer')
    """
    return str(_innermost(error) or error)


def _innermost(error: BaseException | None) -> sqlite3.Error | None:
    """Find the error of SQLite in one of SQLAlchemy, or in what was raised from it."""
    seen = 0
    while error is not None and seen < 20:
        if isinstance(error, sqlite3.Error):
            return error
        inner = getattr(error, "orig", None)
        error = inner if isinstance(inner, BaseException) else error.__cause__
        seen += 1
    return None


def _code(error: sqlite3.Error | None) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _CODE
