"""A debugger of Java at a replayed call of a connector that runs in Java."""

from __future__ import annotations

import socket
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from rowmerge_nb.base.errors import RowMergeError

if TYPE_CHECKING:
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.trace.record import Record

_COORDINATOR: Final = ("begin_", "finish_", "get_", "commit", "rollback")
_LAST_PORT: Final = 65_535


@runtime_checkable
class JavaDebugging(Protocol):
    """A connector whose processes of Java can wait for a debugger.

    Attributes:
        keeps_rows_in_process: a table is gone if its process is replaced, so the process waits
            before the table is created.
    """

    keeps_rows_in_process: bool

    def debugging(self, port: int, *, coordinator: bool) -> AbstractContextManager[object]:
        """Wait for a debugger in the process of the coordinator, or of the tasks."""


def checked_port(port: int | None) -> int | None:
    """Return a port on which nothing listens, or None.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if it is no port, or is in use.

    >>> checked_port(0)
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: debug = 0 is not possible. Pass a port between 1 and 65535, such as debug=5005.
    """
    if port is None:
        return None
    hint = "Pass a port between 1 and 65535, such as debug=5005."
    if type(port) is not int or not 1 <= port <= _LAST_PORT:
        raise RowMergeError.invalid(f"debug = {port!r} is not possible", hint=hint)
    with socket.socket() as attempt:
        # A port of a debugger that has just ended can be used again.
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("127.0.0.1", port))
        except OSError as error:
            raise RowMergeError.invalid(
                f"Port {port} of this machine cannot be used: {error.strerror or error}",
                hint="Stop the program that listens there, or pass another port:"
                f" debug={port % _LAST_PORT + 1}.",
            ) from error
    return port


def checked_connector(connector: Connector) -> JavaDebugging:
    if isinstance(connector, JavaDebugging):
        return connector
    raise RowMergeError.unsupported(
        f"debug is for connectors in Java, but {type(connector).__name__} is in Python",
        hint="Omit debug, and put breakpoint() into the connector: a replay runs in this process.",
    )


def is_of_coordinator(record: Record, call: str | None) -> bool:
    """Return whether the call to look at runs in the coordinator: the last one of the replay, or
    the one that failed.

    >>> from rowmerge_nb.replays import case
    >>> record = case(columns={"id": "bigint"}, rows=[], pages=[])
    >>> is_of_coordinator(record, None), is_of_coordinator(record, "finish_merge")
    (False, True)
    """
    failed_call = "" if record.failure is None else record.failure.method
    step = call or failed_call
    return step.startswith(_COORDINATOR) and step != "get_next_page"


def debugged(
    connector: Connector, port: int | None, *, coordinator: bool, before_tables: bool
) -> AbstractContextManager[object]:
    """Wait for a debugger at one of two moments: before the table is prepared, or after it."""
    if port is None:
        return nullcontext()
    java = checked_connector(connector)
    if java.keeps_rows_in_process is not before_tables:
        return nullcontext()
    return java.debugging(port, coordinator=coordinator)
