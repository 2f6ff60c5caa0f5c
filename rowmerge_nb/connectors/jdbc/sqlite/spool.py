"""Directories next to an SQLite file, in which attempts stage their rows."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from rowmerge_nb.base.private import opened_own_directory, opened_own_file
from rowmerge_nb.connectors.shared.disk import refused
from rowmerge_nb.connectors.shared.orphans import orphaned_path, this_process
from rowmerge_nb.spi import Orphan

MAKING_SECONDS: Final = 60
"""The age after which an unlocked directory counts as abandoned by its creator."""


class Spool:
    """A staging directory, locked while its driver lives."""

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
            # Renamed once it is locked, so that no search for orphans takes it.
            self.directory = making.rename(path.parent / f".{path.name}-rowmerge_nb-{unique}")
        except BaseException as error:
            if self._lock >= 0:
                os.close(self._lock)
            # The rename may have happened already.
            for folder in (making, path.parent / f".{path.name}-rowmerge_nb-{unique}"):
                shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            subject = (
                f"The directory of SQLite database {database!r}, in which its rows are staged,"
            )
            raise refused(error, subject, "JDBC_ERROR") from error

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        os.close(self._lock)


def orphans(database: str) -> list[Orphan]:
    return [
        orphaned_path(directory, *_owner(directory))
        for directory in _directories(database)
        if _is_free(directory)
    ]


def remove_orphans(database: str) -> list[Orphan]:
    removed = []
    for directory in _directories(database):
        with _locked(directory) as free:
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
    with _locked(directory) as free:
        return free


@contextmanager
def _locked(directory: Path) -> Iterator[bool]:
    with ExitStack() as stack:
        yield _try_lock(directory, stack)


def _try_lock(directory: Path, stack: ExitStack) -> bool:
    try:
        number = stack.enter_context(opened_own_directory(directory))
        # A new directory may be between two steps of its creator.
        if (
            "-making-" in directory.name
            and time.time() - os.fstat(number).st_mtime < MAKING_SECONDS
        ):
            return False
        try:
            fcntl.flock(
                stack.enter_context(opened_own_file("owner", number)), fcntl.LOCK_EX | fcntl.LOCK_NB
            )
        except FileNotFoundError:
            # Its creator died before locking it.
            return True
    except OSError:
        return False
    return True


def _owner(directory: Path) -> tuple[str, str]:
    with suppress(OSError, ValueError):
        statement, process = (directory / "owner").read_text("utf-8").split("\n")
        return statement, process
    return "", ""
