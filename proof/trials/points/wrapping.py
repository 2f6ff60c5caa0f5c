"""The watched operations: those of Python's ``os`` and ``open``, of files of Arrow and pyiceberg,
of sqlite3 and of ADBC.

Operations count on paths below the watched directories, and on all databases. SQLAlchemy is
    observed at its border to sqlite3: every
``execute`` and every ``commit``.

Operations without a Python call are invisible: writes of SQLite and the PostgreSQL server within
one statement or COMMIT; single writes of Arrow's ORC writer, whose ``write`` and ``close`` are
points; reads of an open file, whose opening is a point; reads through a memory map; and the steps
of ``os.scandir`` after the first.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import sqlite3
import sqlite3.dbapi2
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from proof.trials.points.watch import Operation, Watch

__all__ = ["NO_ROOM", "watch_process"]

NO_ROOM: Final = "No space left on device"
_WRITING: Final = (
    "open",
    "rename",
    "replace",
    "mkdir",
    "link",
    "symlink",
    "write",
    "fsync",
    "truncate",
    "ftruncate",
)
_TAKING: Final = ("unlink", "remove", "rmdir", "utime", "chmod")
_READING: Final = ("listdir", "scandir", "stat", "lstat")
_TWO_PATHS: Final = ("rename", "replace", "link", "symlink")


def watch_process(watch: Watch, directories: Sequence[str]) -> None:
    """Watch the operations of this process until it ends.

    Args:
        watch: receives every operation.
        directories: the watched directories.
    """
    scope = _Scope(tuple(os.path.realpath(directory) for directory in directories))
    _wrap_os(watch, scope)
    _wrap_files(watch, scope)
    _wrap_arrow(watch, scope)
    _wrap_sqlite(watch)
    with suppress(ImportError):
        _wrap_adbc(watch)
    with suppress(ImportError):
        _wrap_iceberg(watch, scope)


class _Scope:
    """Selects the files that count."""

    def __init__(self, directories: tuple[str, ...]) -> None:
        self._directories = directories

    def path(self, place: Any, folder: int | None = None) -> str | None:
        """Return the path of an operation's object; None if it does not count."""
        if isinstance(place, int):
            with suppress(OSError):
                return self._counted(_readlink(f"/proc/self/fd/{place}"))
            return None
        try:
            text = os.fsdecode(place)
        except TypeError:
            return None
        if folder is not None and not text.startswith("/"):
            with suppress(OSError):
                text = f"{_readlink(f'/proc/self/fd/{folder}')}/{text}"
        return self._counted(text.removeprefix("file://"))

    def _counted(self, path: str) -> str | None:
        return path if path.startswith(self._directories) else None


_readlink = os.readlink


def _disk(name: str, path: str, *, writes: bool) -> Operation:
    """Return an operation of the disk: writes fail with a full disk, reads with a read error."""
    code = errno.ENOSPC if writes else errno.EIO
    return Operation(name, path, lambda: OSError(code, os.strerror(code), path), lasts=writes)


# -- Python's own


def _wrap_os(watch: Watch, scope: _Scope) -> None:
    for name in (*_WRITING, *_TAKING, *_READING):
        setattr(
            os,
            name,
            _wrapped(watch, scope, f"os.{name}", getattr(os, name), writes=name in _WRITING),
        )
    fcntl.flock = _wrapped(watch, scope, "fcntl.flock", fcntl.flock, writes=False)


def _wrapped(
    watch: Watch, scope: _Scope, name: str, function: Callable[..., Any], *, writes: bool
) -> Callable[..., Any]:
    two = name.partition(".")[2] in _TWO_PATHS

    def call(place: Any = ".", *arguments: Any, **more: Any) -> Any:
        folder = more.get("dir_fd", more.get("src_dir_fd"))
        path = scope.path(place, folder) or (
            scope.path(arguments[0]) if two and arguments else None
        )
        if path is None:
            return function(place, *arguments, **more)
        only_reads = name == "os.open" and not (
            arguments and arguments[0] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        operation = _disk(name, path, writes=writes and not only_reads)
        return watch.call(operation, function, place, *arguments, **more)

    return call


class _File:
    """A file open for writing, whose writes are reported."""

    _TOLD: Final = frozenset({"write", "writelines", "flush", "truncate", "close"})

    def __init__(self, file: Any, watch: Watch, path: str, kind: str) -> None:
        self._file = file
        self._watch = watch
        self._path = path
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._file, name)
        if name not in self._TOLD or (name == "close" and self._file.closed):
            return value
        operation = _disk(f"{self._kind}.{name}", self._path, writes=True)
        return lambda *arguments: self._watch.call(operation, value, *arguments)

    def __enter__(self) -> _File:
        self._file.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._file.closed:
            self.close()

    def __iter__(self) -> Any:
        return iter(self._file)


def _wrap_files(watch: Watch, scope: _Scope) -> None:
    real = io.open

    def opened(file: Any, mode: str = "r", *arguments: Any, **more: Any) -> Any:
        path = scope.path(file)
        if path is None:
            return real(file, mode, *arguments, **more)
        writes = bool(set(mode) & set("wxa+"))
        file_object = watch.call(
            _disk("open", path, writes=writes), real, file, mode, *arguments, **more
        )
        return _File(file_object, watch, path, "file") if writes else file_object

    io.open = opened
    builtins.open = opened


# -- Arrow's


def _wrap_arrow(watch: Watch, scope: _Scope) -> None:
    from pyarrow import orc

    real_file, real_map = pa.OSFile, pa.memory_map

    def os_file(path: Any, mode: str = "r", *arguments: Any, **more: Any) -> Any:
        writes = "w" in mode or "a" in mode
        return _opened(
            watch, scope, "arrow.OSFile", path, writes, real_file, path, mode, *arguments, **more
        )

    def memory_map(path: Any, *arguments: Any, **more: Any) -> Any:
        return _opened(
            watch, scope, "arrow.memory_map", path, False, real_map, path, *arguments, **more
        )

    pa.OSFile, pa.memory_map = os_file, memory_map

    class Disk(fs.LocalFileSystem):  # type: ignore[misc]
        """The local file system, watched."""

        def open_output_stream(self, path: str, *arguments: Any, **more: Any) -> Any:
            given = super().open_output_stream
            return _opened(
                watch,
                scope,
                "arrow.open_output_stream",
                path,
                True,
                given,
                path,
                *arguments,
                **more,
            )

        def open_input_file(self, path: str) -> Any:
            return _opened(
                watch, scope, "arrow.open_input_file", path, False, super().open_input_file, path
            )

        def create_dir(self, path: str, *, recursive: bool = True) -> None:
            self._told("create_dir", path, super().create_dir, path, recursive=recursive)

        def delete_file(self, path: str) -> None:
            self._told("delete_file", path, super().delete_file, path)

        def get_file_info(self, wanted: Any) -> Any:
            path = wanted.base_dir if isinstance(wanted, fs.FileSelector) else wanted
            return self._told("get_file_info", path, super().get_file_info, wanted)

        def _told(
            self, name: str, about: Any, function: Callable[..., Any], *arguments: Any, **more: Any
        ) -> Any:
            path = scope.path(about) if isinstance(about, str) else None
            if path is None:
                return function(*arguments, **more)
            return watch.call(
                _disk(f"arrow.{name}", path, writes=name == "create_dir"),
                function,
                *arguments,
                **more,
            )

    fs.LocalFileSystem = Disk
    for method, writes in (("__init__", True), ("write", True), ("close", True)):
        _wrap_method(watch, orc.ORCWriter, method, f"orc.ORCWriter.{method}", writes=writes)
    _wrap_method(watch, orc.ORCFile, "__init__", "orc.ORCFile", writes=False)


def _opened(
    watch: Watch,
    scope: _Scope,
    name: str,
    place: Any,
    writes: bool,
    function: Callable[..., Any],
    *arguments: Any,
    **more: Any,
) -> Any:
    path = scope.path(place)
    if path is None:
        return function(*arguments, **more)
    file_object = watch.call(_disk(name, path, writes=writes), function, *arguments, **more)
    return _File(file_object, watch, path, name) if writes else file_object


def _wrap_method(watch: Watch, kind: type, method: str, name: str, *, writes: bool) -> None:
    """Watch a method for any file; it is only used for tables."""
    real = getattr(kind, method)

    def call(self: Any, *arguments: Any, **more: Any) -> Any:
        if method == "close" and not getattr(self, "is_open", True):
            # Nothing is done.
            return real(self)
        about = (
            str(arguments[0])
            if arguments and method in {"__init__", "delete"}
            else getattr(self, "_location", "")
        )
        return watch.call(_disk(name, str(about), writes=writes), real, self, *arguments, **more)

    setattr(kind, method, call)


# -- pyiceberg's


def _wrap_iceberg(watch: Watch, scope: _Scope) -> None:
    from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

    create, opened = PyArrowFile.create, PyArrowFile.open

    def created(self: Any, overwrite: bool = False) -> Any:
        return _opened(
            watch, scope, "pyiceberg.create", self.location, True, create, self, overwrite
        )

    def read(self: Any, seekable: bool = True) -> Any:
        return _opened(watch, scope, "pyiceberg.open", self.location, False, opened, self, seekable)

    PyArrowFile.create, PyArrowFile.open = created, read  # type: ignore[method-assign]
    _wrap_method(watch, PyArrowFile, "exists", "pyiceberg.exists", writes=False)
    _wrap_method(watch, PyArrowFileIO, "delete", "pyiceberg.delete", writes=False)


# -- sqlite3's


def _wrap_sqlite(watch: Watch) -> None:
    def operation(connection: sqlite3.Connection, name: str, sql: str = "") -> Operation:
        # Reads need no disk space.
        lasts = (
            not sql.lstrip().upper().startswith(("SELECT", "PRAGMA", "ROLLBACK"))
            and name != "rollback"
        )
        words = watch.database_words
        return Operation(
            f"sqlite3 {name}",
            " ".join(sql.split()),
            lambda: sqlite3.OperationalError(words),
            lasts,
            lambda: _undone(connection),
        )

    class Cursor(sqlite3.Cursor):
        """A cursor, watched."""

        def execute(self, sql: str, *arguments: Any) -> Any:
            return watch.call(
                operation(self.connection, "execute", sql), super().execute, sql, *arguments
            )

        def executemany(self, sql: str, *arguments: Any) -> Any:
            return watch.call(
                operation(self.connection, "executemany", sql), super().executemany, sql, *arguments
            )

    class Connection(sqlite3.Connection):
        """A connection, watched."""

        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, *arguments: Any) -> Any:
            return watch.call(operation(self, "execute", sql), super().execute, sql, *arguments)

        def executemany(self, sql: str, *arguments: Any) -> Any:
            return watch.call(
                operation(self, "executemany", sql), super().executemany, sql, *arguments
            )

        def commit(self) -> None:
            if self.in_transaction:
                watch.call(operation(self, "commit"), super().commit)

        def rollback(self) -> None:
            if self.in_transaction:
                watch.call(operation(self, "rollback"), super().rollback)

    real = sqlite3.connect

    def connect(*arguments: Any, **more: Any) -> sqlite3.Connection:
        operation_of_connect = Operation(
            "sqlite3.connect",
            str(arguments[:1]),
            lambda: sqlite3.OperationalError(watch.database_words),
            lasts=False,
        )
        return watch.call(operation_of_connect, real, *arguments, **{"factory": Connection, **more})

    sqlite3.connect = connect  # type: ignore[assignment]
    sqlite3.dbapi2.connect = connect  # type: ignore[assignment]


def _undone(connection: sqlite3.Connection) -> None:
    """Roll the transaction back, as SQLite does when the disk is full."""
    with suppress(sqlite3.Error):
        connection.execute("ROLLBACK")


# -- ADBC's


def _wrap_adbc(watch: Watch) -> None:
    import adbc_driver_sqlite.dbapi as sqlite
    from adbc_driver_manager import AdbcStatusCode, OperationalError
    from adbc_driver_manager.dbapi import Connection, Cursor

    from rowmerge_nb.connectors.jdbc.postgresql.postgres_store import PostgresStore

    def operation(cursor: Any, name: str, sql: str = "") -> Operation:
        connection = getattr(cursor, "connection", None)
        is_file = getattr(connection, "watched", "") == "sqlite"
        words = "server closed the connection unexpectedly"
        if is_file:
            words = watch.database_words
        # With a full disk, SQLite can still read and roll back; a lost server can do nothing.
        reads = sql.lstrip().upper().startswith(
            ("SELECT", "PRAGMA", "ROLLBACK")
        ) or name.startswith("fetch")
        return Operation(
            f"adbc {name}",
            " ".join(sql.split()),
            lambda: OperationalError(f"IO: {words}", status_code=AdbcStatusCode.IO),
            lasts=not (is_file and reads) and name != "close",
            on_failure=lambda: _gone(connection, is_file=is_file),
        )

    for method in (
        "execute",
        "executemany",
        "adbc_ingest",
        "fetch_arrow_table",
        "fetch_record_batch",
    ):
        _wrap_cursor(watch, Cursor, method, operation)
    close = Connection.close

    def closed(self: Any) -> None:
        watch.call(operation(None, "close"), close, self)

    Connection.close = closed  # type: ignore[method-assign]
    _wrap_connect(watch, sqlite, "connect", "sqlite", operation)
    _wrap_connect(watch, PostgresStore, "_connected", "postgresql", operation)


def _wrap_cursor(
    watch: Watch, kind: type, method: str, operation: Callable[..., Operation]
) -> None:
    real = getattr(kind, method)

    def call(self: Any, *arguments: Any, **more: Any) -> Any:
        watched = operation(self, method, str(arguments[0]) if arguments else "")
        return watch.call(watched, real, self, *arguments, **more)

    setattr(kind, method, call)


def _wrap_connect(
    watch: Watch, owner: Any, name: str, kind: str, operation: Callable[..., Operation]
) -> None:
    real = getattr(owner, name)

    def connect(*arguments: Any, **more: Any) -> Any:
        connection = watch.call(operation(None, f"connect to {kind}"), real, *arguments, **more)
        connection.watched = kind
        return connection

    setattr(owner, name, connect)


def _gone(connection: Any, *, is_file: bool) -> None:
    """React like the database: SQLite rolls back when the disk is full; the connection of a lost
    server is lost.
    """
    with suppress(Exception):
        if is_file:
            with connection.cursor() as cursor:
                cursor.execute("ROLLBACK")
        else:
            connection.close()
