"""Conversion of a PostgreSQL server's errors by SQLSTATE."""

from __future__ import annotations

import re
from typing import Any, Final

from rowmerge_nb.base.errors import ConnectorError, ExecutionError, RowMergeError
from rowmerge_nb.connectors.jdbc.database import USUAL_STEP
from rowmerge_nb.connectors.jdbc.dsn import redacted
from rowmerge_nb.connectors.jdbc.postgresql.postgres_session import LOCK_SECONDS

_RETRY: Final = "Run the statement again."
_GRANT: Final = "GRANT the right to the connection's user."
_ROOM: Final = "Free space on the server's disk. The table is unchanged."
_CORRECT: Final = "Give a value that the column can hold. The table is unchanged."
_CAST: Final = "INVALID_CAST_ARGUMENT"
_CLOSED: Final = (
    "server closed the connection|connection to server|no connection to the server|terminating"
    " connection|SSL SYSCALL"
)

_EXACT: Final = {
    "21000": (
        "INVALID_ARGUMENTS",
        "Change what returns several rows, such as a rule or a trigger. The table is unchanged.",
    ),
    "22003": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "Give a number that the column's type has room for. The table is unchanged.",
    ),
    "22012": (
        "DIVISION_BY_ZERO",
        (
            "Correct the expression of the database that divides, such as a default, a trigger or a"
            " constraint."
        ),
    ),
    "22021": (
        _CAST,
        (
            r"Remove the zero bytes from the text, for example with replace(text, chr(0), '')."
            r" The table is unchanged."
        ),
    ),
    "22P05": (
        _CAST,
        (
            "Remove the characters that the database's encoding does not support, or"
            " use a database in UTF-8."
        ),
    ),
    "22P02": (
        _CAST,
        (
            "Use a text that the column's type allows; for an enumeration, one of its"
            " labels. The table is unchanged."
        ),
    ),
    "22001": (
        _CAST,
        "Use a shorter text, or first run ALTER TABLE ... ALTER COLUMN ... SET DATA TYPE varchar.",
    ),
    "22023": ("INVALID_ARGUMENTS", USUAL_STEP),
    "25006": (
        "PERMISSION_DENIED",
        (
            "Connect to a server that accepts changes: not a standby, and without"
            " default_transaction_read_only for the role or database."
        ),
    ),
    "28000": ("PERMISSION_DENIED", "Correct user and password in the connection string."),
    "28P01": ("PERMISSION_DENIED", "Correct user and password in the connection string."),
    "42501": ("PERMISSION_DENIED", _GRANT),
    "42P01": ("TABLE_NOT_FOUND", _RETRY),
    "42703": ("COLUMN_NOT_FOUND", _RETRY),
    "3F000": ("SCHEMA_NOT_FOUND", _RETRY),
    "42P06": ("SCHEMA_ALREADY_EXISTS", "Choose another name, or DROP SCHEMA first."),
    "42P07": ("TABLE_ALREADY_EXISTS", "Choose another name, or DROP TABLE first."),
    "42701": ("COLUMN_ALREADY_EXISTS", "Choose another name."),
    "2BP01": ("NOT_SUPPORTED", "First drop what depends on it, in the database itself."),
    "42809": ("NOT_SUPPORTED", "Name a table of the database's own."),
    "55000": ("NOT_SUPPORTED", USUAL_STEP),
    "57014": (
        "JDBC_ERROR",
        (
            "If statement_timeout ended it, raise it: ALTER ROLE ... SET"
            " statement_timeout = '10min'. The table is unchanged."
        ),
    ),
}
"""Error code and hint by SQLSTATE."""

_CLASSES: Final = {
    "0A": ("NOT_SUPPORTED", USUAL_STEP),
    "22": (_CAST, _CORRECT),
    "42": ("JDBC_ERROR", USUAL_STEP),
    "44": ("CONSTRAINT_VIOLATION", "Use rows that the view's WITH CHECK OPTION allows."),
    "53": ("GENERIC_INSUFFICIENT_RESOURCES", _ROOM),
    "54": (
        "GENERIC_INSUFFICIENT_RESOURCES",
        "Store less in one row, or request less at a time: a limit of the server was exceeded.",
    ),
    "58": ("JDBC_ERROR", "Check the server's log and its disk. The table is unchanged."),
    "XX": (
        "JDBC_ERROR",
        (
            "Check the server's log: the server reports damage or an error of its"
            " own. The table is unchanged."
        ),
    ),
}
"""Error code and hint by class of SQLSTATE."""

_CONNECTIONS: Final = "53300"
_CONFLICTS: Final = frozenset({"40001", "40P01"})


def translated(error: Exception, doing: str, where: str, dsn: str) -> RowMergeError:
    state = getattr(error, "sqlstate", None) or ""
    words = redacted(_words_of(error), dsn).rstrip(".")
    message = f"{doing} in {where} failed: {words}"
    if state.startswith("23"):
        violated = ExecutionError(message, code="CONSTRAINT_VIOLATION", step="finish_merge")
        violated.sqlstate = state  # type: ignore[attr-defined]
        return violated
    if state in _CONFLICTS:
        return ExecutionError(
            message, code="TRANSACTION_CONFLICT", step="finish_merge", hint=_RETRY
        )
    if state == "55P03":
        return ExecutionError(
            f"{doing} in {where} failed: another session has held a lock for more than"
            f" {LOCK_SECONDS} seconds",
            code="TRANSACTION_CONFLICT",
            step="finish_merge",
            hint=f"End that transaction. {_RETRY}",
        )
    if state == _CONNECTIONS:
        return ConnectorError(
            message,
            code="GENERIC_INSUFFICIENT_RESOURCES",
            hint=(
                "Each task of a statement has its own connection: raise"
                " max_connections, or run fewer tasks at a time."
            ),
        )
    if state.startswith(("08", "57P", "25P")) or (
        state not in _EXACT and re.search(_CLOSED, words)
    ):
        return ConnectorError(
            f"{doing} in {where} failed, the connection was lost: {words}",
            code="JDBC_ERROR",
            hint=f"Check that the server runs. {_RETRY}",
        )
    code, hint = _EXACT.get(state) or _CLASSES.get(state[:2]) or ("JDBC_ERROR", USUAL_STEP)
    return ConnectorError(message, code=code, hint=hint)


def _words_of(error: Exception) -> str:
    details: dict[Any, bytes] = {
        k: v for k, v in getattr(error, "details", None) or [] if isinstance(v, bytes)
    }
    names = ("PG_DIAG_MESSAGE_PRIMARY", "PG_DIAG_MESSAGE_DETAIL")
    parts = [details.get(name) or details.get(name.encode()) for name in names]
    words = [part.decode("utf-8", "replace") for part in parts if part]
    return ": ".join(words) if words else " ".join(str(error).split())
