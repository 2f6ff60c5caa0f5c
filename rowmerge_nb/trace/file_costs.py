"""What a statement costs in files, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.base.words import number, plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowmerge_nb.spi.handles import ReadFile


@dataclass(frozen=True)
class FileCount:
    """A number of files, and their size.

    Args:
        bytes: the size of all of them; None if one is unknown.

    >>> str(FileCount(2, 4096)), str(FileCount(0, 0)), str(FileCount(1, None))
    ('2 files, 4,096 bytes', 'none', '1 file')
    """

    files: int
    bytes: int | None

    def __str__(self) -> str:
        if not self.files:
            return "none"
        size = "" if self.bytes is None else f", {number(self.bytes)} bytes"
        return f"{plural(self.files, 'file')}{size}"


@dataclass(frozen=True, kw_only=True)
class FileCosts:
    """The files of one statement. A part is None if the store does not report it.

    Args:
        loaded: the files of a full read before the statement.
        to_merge: files of deleted rows that a reader merges afterwards.
        full_read: the files of a full read afterwards, with those to merge.
    """

    loaded: FileCount | None = None
    read: FileCount | None = None
    written: FileCount | None = None
    to_merge: FileCount | None = None
    full_read: FileCount | None = None


def count_of(files: Iterable[ReadFile]) -> FileCount:
    """Return the number and size of files.

    >>> from rowmerge_nb.spi.handles import ReadFile
    >>> count_of([ReadFile("a", 3), ReadFile("b", 4)]), count_of([ReadFile("a")])
    (FileCount(files=2, bytes=7), FileCount(files=1, bytes=None))
    """
    sizes = [file.bytes for file in files]
    known_sizes = [size for size in sizes if size is not None]
    return FileCount(len(sizes), sum(known_sizes) if len(known_sizes) == len(sizes) else None)
