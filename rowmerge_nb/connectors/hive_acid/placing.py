"""Moving finished directories to where readers look for them, and removing them if the statement is rolled back.

A directory is recorded before it is moved, with what identifies it on its disk. So a rollback finds it, whatever ended the statement and
whenever, and never takes a directory of the same name for it.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True)
class PlacedFolder:
    """A directory that was moved, or was about to be.

    Args:
        source: where it was made.
        path: where it goes.
        device: the number of the disk that it is on.
        inode: its number on that disk.
    """

    source: Path
    path: Path
    device: int
    inode: int

    @property
    def is_placed(self) -> bool:
        """Whether the directory at the path is this one."""
        with suppress(OSError):
            state = self.path.lstat()
            return (state.st_dev, state.st_ino) == (self.device, self.inode)
        return False


def place(source: Path, path: Path, record: list[PlacedFolder]) -> None:
    """Move a directory to a path that is free.

    Args:
        source: the directory, which has at least one file.
        path: where it goes, on the same disk; the folder above it exists.
        record: takes what identifies the directory, before it is moved.

    Raises:
        FileExistsError: something is there already.
        OSError: the disk refuses.
    """
    state = source.lstat()
    record.append(PlacedFolder(source, path, state.st_dev, state.st_ino))
    # An empty directory would be replaced.
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    try:
        source.rename(path)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.ENOTDIR}:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        raise


def remove_placed(folders: Iterable[PlacedFolder]) -> None:
    """Remove directories that were moved, and those that were about to be; nothing else that has their names."""
    for folder in folders:
        if folder.is_placed:
            shutil.rmtree(folder.path, ignore_errors=True)
        shutil.rmtree(folder.source, ignore_errors=True)


def remove_aside(folder: Path, prefix: str) -> None:
    """Remove a directory that tasks may still be writing into: moved away first, so that they make nothing new in it.

    Args:
        folder: the directory; nothing happens if it is gone.
        prefix: begins its name meanwhile, which ends with twelve hexadecimal digits.
    """
    aside = folder.with_name(f"{prefix}{uuid.uuid4().hex[:12]}")
    with suppress(OSError):
        folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def is_within(path: Path, root: Path) -> bool:
    """Return whether a path lies within a folder when all links are followed.

    >>> import pathlib, tempfile
    >>> table = pathlib.Path(tempfile.mkdtemp())
    >>> (table / "p=1").symlink_to("/tmp")
    >>> is_within(table / "p=2", table), is_within(table / "p=1", table)
    (True, False)
    """
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        # Links that lead to themselves.
        return False


def make_folder(folder: Path, root: Path | None) -> None:
    """Make a directory, and those above it up to a root.

    Args:
        folder: the directory.
        root: must exist, since a task that outlives its statement must not make it again; None makes all directories above.

    Raises:
        FileNotFoundError: the root is gone.
    """
    if root is None:
        folder.mkdir(parents=True, exist_ok=True)
        return
    steps = folder.relative_to(root).parts
    for count in range(1, len(steps) + 1):
        root.joinpath(*steps[:count]).mkdir(exist_ok=True)
