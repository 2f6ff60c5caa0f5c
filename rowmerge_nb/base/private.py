"""Private directories in the shared temporary directory, locked while their process lives, and
swept afterwards.

Other users may create links, pipes and directories with our prefix there. A directory is used only
if it is no link, owned by this user, inaccessible to others, and has a lock file with our mark.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.temporary_space import needs_temporary_space

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX: Final = "rowmerge_nb-"
_LOCK: Final = "lock"
_MARK: Final = b"A private directory of rowmerge_nb\n"
_OTHERS: Final = 0o077

_USED: Final[set[str]] = set()
"""The temporary folders in which this process has created private directories."""


class PrivateDirectory:
    """A directory that only this user can access, removed by the process or else by `sweep`.

    Raises:
        SetupError: GENERIC_INSUFFICIENT_RESOURCES if the disk is full, PERMISSION_DENIED if it
            cannot be written.

    >>> private = PrivateDirectory()
    >>> oct(private.path.stat().st_mode & 0o777)
    '0o700'
    >>> private.remove()
    >>> private.path.exists()
    False
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        with needs_temporary_space():
            folder = tempfile.gettempdir()
            if folder in _USED:
                # A cleaner may have removed the folder that the variable TMPDIR names.
                Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
            _USED.add(folder)
            try:
                self._lock = _create_lock(self.path / _LOCK)
            except BaseException:
                shutil.rmtree(self.path, ignore_errors=True)
                raise

    def remove(self) -> None:
        """Remove the directory; a forked process does nothing."""
        if self._lock >= 0 and os.getpid() == self._process:
            # By its handle, since a cleaner may have freed the name for others. The lock goes last,
            # so that `sweep` finds leftovers.
            with suppress(OSError), opened_own_directory(self.path) as directory:
                for entry in _names(directory):
                    if entry != _LOCK:
                        _remove(entry, directory)
                with suppress(FileNotFoundError):
                    os.unlink(_LOCK, dir_fd=directory)
                self.path.rmdir()
            os.close(self._lock)
            self._lock = -1

    @property
    def is_intact(self) -> bool:
        """Whether the original lock file still exists."""
        try:
            there, ours = (self.path / _LOCK).lstat(), os.fstat(self._lock)
        except OSError:
            return False
        return os.path.samestat(there, ours)


def sweep() -> None:
    """Remove private directories of this user's dead processes."""
    # The temporary directory itself may be a link.
    with (
        suppress(OSError),
        _opened(Path(tempfile.gettempdir()).resolve(), os.O_DIRECTORY) as parent,
    ):
        for name in _names(parent):
            if name.startswith(PREFIX):
                with suppress(OSError):
                    _sweep(name, parent)


def _sweep(name: str, parent: int) -> None:
    with opened_own_directory(name, parent) as directory, opened_own_file(_LOCK, directory) as lock:
        # Without the mark, the directory is being created, or is not ours.
        if os.read(lock, len(_MARK) + 1) != _MARK:
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Remove by handle, since the name may now be another's; the lock goes last, so that a later
        # sweep finds the rest.
        for entry in _names(directory):
            if entry != _LOCK:
                _remove(entry, directory)
        os.unlink(_LOCK, dir_fd=directory)
        os.rmdir(name, dir_fd=parent)


def _names(directory: int) -> list[str]:
    with os.scandir(directory) as entries:
        return [entry.name for entry in entries]


def _remove(entry: str, directory: int) -> None:
    if stat.S_ISDIR(os.stat(entry, dir_fd=directory, follow_symlinks=False).st_mode):
        shutil.rmtree(entry, dir_fd=directory)
    else:
        os.unlink(entry, dir_fd=directory)


@contextmanager
def opened_own_directory(name: str | Path, parent: int | None = None) -> Iterator[int]:
    """Open a directory that is private to this user, by its path or by its name in an open
    ``parent``.

    Raises:
        OSError: it does not exist, is a link or no directory, or is not private.
    """
    with _opened(name, os.O_DIRECTORY, parent) as directory:
        state = os.fstat(directory)
        if state.st_uid != os.geteuid() or state.st_mode & _OTHERS:
            raise PermissionError(f"'{name}' is not private to this user")
        yield directory


@contextmanager
def opened_own_file(name: str, directory: int) -> Iterator[int]:
    """Open a file of a private directory for reading and writing.

    Raises:
        OSError: it does not exist, or is not a regular file of this user with one link.
    """
    with _opened(name, os.O_RDWR, directory) as file:
        state = os.fstat(file)
        if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid() or state.st_nlink != 1:
            raise PermissionError(f"'{name}' is not a regular file of this user")
        yield file


@contextmanager
def _opened(name: str | Path, flags: int, parent: int | None = None) -> Iterator[int]:
    # Do not block on a pipe, and do not acquire a terminal.
    number = os.open(
        name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=parent
    )
    try:
        yield number
    finally:
        os.close(number)


def _create_lock(path: Path) -> int:
    """Create a new directory's lock; the mark is written under the lock, so that no sweep removes
    it before.
    """
    lock = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, _MARK)
    except BaseException:
        os.close(lock)
        raise
    return lock
