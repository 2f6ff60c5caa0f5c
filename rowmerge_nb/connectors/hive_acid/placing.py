"""Moves of finished directories to where readers look, and their removal on rollback.

Device and inode are recorded before a move, so that a rollback finds the directory at any time and
removes no other one.
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
    """A directory that was moved or is about to be."""

    source: Path
    path: Path
    device: int
    inode: int

    @property
    def is_placed(self) -> bool:
        with suppress(OSError):
            state = self.path.lstat()
            return (state.st_dev, state.st_ino) == (self.device, self.inode)
        return False


def place(source: Path, path: Path, record: list[PlacedFolder]) -> None:
    """Move a directory, recording its identity before."""
    state = source.lstat()
    record.append(PlacedFolder(source, path, state.st_dev, state.st_ino))
    # A rename would replace an empty directory.
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    try:
        source.rename(path)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.ENOTDIR}:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        raise


def remove_placed(folders: Iterable[PlacedFolder]) -> None:
    for folder in folders:
        if folder.is_placed:
            shutil.rmtree(folder.path, ignore_errors=True)
        shutil.rmtree(folder.source, ignore_errors=True)


def remove_aside(folder: Path, prefix: str) -> None:
    """Remove a directory that tasks may be writing into, renaming it first."""
    aside = folder.with_name(f"{prefix}{uuid.uuid4().hex[:12]}")
    with suppress(OSError):
        folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def is_within(path: Path, root: Path) -> bool:
    """Return whether a path is within a folder after following all links.

    >>> import pathlib, tempfile
    >>> table = pathlib.Path(tempfile.mkdtemp())
    >>> (table / "p=1").symlink_to("/tmp")
    >>> is_within(table / "p=2", table), is_within(table / "p=1", table)
    (True, False)
    """
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        # A link to itself.
        return False


def make_folder(folder: Path, root: Path | None) -> None:
    """Make a directory and its parents below a root; None makes all parents."""
    if root is None:
        folder.mkdir(parents=True, exist_ok=True)
        return
    steps = folder.relative_to(root).parts
    for count in range(1, len(steps) + 1):
        root.joinpath(*steps[:count]).mkdir(exist_ok=True)
