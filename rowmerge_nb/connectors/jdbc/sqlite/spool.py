"""Directories beside an SQLite file, in which the attempts of a statement stage their rows."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from rowmerge_nb.base.private import opened_own_directory, opened_own_file
from rowmerge_nb.connectors.shared.disk import refused
from rowmerge_nb.connectors.shared.orphans import orphaned_path, this_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.spi.connector import Orphan

MAKING_SECONDS: Final = 60
"""A directory that is made and not yet locked after so long has lost its maker."""


class Spool:
    """A directory, held by a lock as long as its driver lives.

    Args:
        database: the database's path.
        query_id: the statement.

    Raises:
        ConnectorError: PERMISSION_DENIED, or GENERIC_INSUFFICIENT_RESOURCES if the disk is full.
    """

    def __init__(self, database: str, query_id: str) -> None:
        path = Path(database).resolve()
        unique = f"{''.join(c for c in query_id if c.isalnum() or c in '-_')}-{uuid4().hex}"
        making = path.parent / f".{path.name}-making-{unique}"
        self._lock = -1
        try:
            making.mkdir(mode=0o700)
            self._lock = os.open(making / "owner", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            os.write(self._lock, f"{query_id}\n{this_process()}".encode())
            # Whoever looks for leftovers sees it only once it is locked.
            self.directory = making.rename(path.parent / f".{path.name}-rowmerge_nb-{unique}")
        except BaseException as error:
            if self._lock >= 0:
                os.close(self._lock)
            # It may have its name already.
            for folder in (making, path.parent / f".{path.name}-rowmerge_nb-{unique}"):
                shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            what = f"The directory of SQLite database {database!r}, in which its rows are staged,"
            raise refused(error, what, "JDBC_ERROR") from error

    def remove(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self.directory, ignore_errors=True)
        os.close(self._lock)


def orphans(database: str) -> list[Orphan]:
    """List the directories that nobody holds any more."""
    return [orphaned_path(directory, *_owner(directory)) for directory in _directories(database) if _is_free(directory)]


def remove_orphans(database: str) -> list[Orphan]:
    """Remove the directories that nobody holds any more; gives what was removed."""
    removed = []
    for directory in _directories(database):
        with _held(directory) as free:
            if free:
                removed.append(orphaned_path(directory, *_owner(directory)))
                shutil.rmtree(directory, ignore_errors=True)
    return removed


def _directories(database: str) -> list[Path]:
    path = Path(database).resolve()
    with suppress(OSError):
        names = (f".{path.name}-rowmerge_nb-", f".{path.name}-making-")
        return sorted(entry for entry in path.parent.iterdir() if entry.name.startswith(names))
    return []


def _is_free(directory: Path) -> bool:
    with _held(directory) as free:
        return free


@contextmanager
def _held(directory: Path) -> Iterator[bool]:
    """Take the lock of a directory, if it is this user's own and free."""
    with ExitStack() as opened:
        yield _is_taken(directory, opened)


def _is_taken(directory: Path, opened: ExitStack) -> bool:
    try:
        number = opened.enter_context(opened_own_directory(directory))
        # One in the making may be between two steps of its maker.
        if "-making-" in directory.name and time.time() - os.fstat(number).st_mtime < MAKING_SECONDS:
            return False
        try:
            fcntl.flock(opened.enter_context(opened_own_file("owner", number)), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            # Its maker died before it had locked it.
            return True
    except OSError:
        return False
    return True


def _owner(directory: Path) -> tuple[str, str]:
    with suppress(OSError, ValueError):
        statement, process = (directory / "owner").read_text("utf-8").split("\n")
        return statement, process
    return "", ""
