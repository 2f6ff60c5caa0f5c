"""A page sink that writes each partition's rows to files of their own."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi import ConnectorPageSink, Page

if TYPE_CHECKING:
    from collections.abc import Iterator

OPEN_FILES: Final = 100
SLICE_ROWS: Final = 262_144
GATHERED_BYTES: Final = 128 * 1024 * 1024
"""The size of the buffer for rows of a partitioned table, since a page may have rows of many
partitions.
"""


class OpenFile(Protocol):
    @property
    def size(self) -> int: ...

    def flush(self) -> None: ...

    def close(self) -> dict[str, Any]:
        """Finish the file and return its description; remove it on failure."""

    def abort(self) -> None: ...


File = TypeVar("File", bound=OpenFile)


class PartitionedSink(ConnectorPageSink, Generic[File]):
    """Keeps one open file per partition.

    Args:
        partitioned: whether the table has partitions; otherwise pages are not gathered.
    """

    def __init__(self, target_bytes: int, *, partitioned: bool) -> None:
        self._target, self._partitioned = target_bytes, partitioned
        self._writers: dict[tuple[Any, ...], File] = {}
        self._entries: list[dict[str, Any]] = []
        self._gathered: list[Page] = []
        self._gathered_bytes = 0

    @abstractmethod
    def _groups(self, page: Page) -> Iterator[tuple[tuple[Any, ...], Page]]: ...

    @abstractmethod
    def _open(self, values: tuple[Any, ...]) -> File: ...

    @abstractmethod
    def _write(self, file: File, rows: Page) -> None: ...

    @abstractmethod
    def _entry(self, values: tuple[Any, ...], file: File) -> dict[str, Any]: ...

    @abstractmethod
    def _remove(self, path: str) -> None: ...

    @abstractmethod
    def _require_running(self, *, now: bool = False) -> None:
        """Raise TRANSACTION_CONFLICT if the statement has ended: nothing would remove its files.

        Unless `now`, a recent answer will do.
        """

    def append_page(self, page: Page) -> None:
        """Write the rows of a page, or gather them, since a page may have rows of many partitions."""
        if not self._partitioned:
            self._append((), page)
            return
        self._gathered.append(page)
        self._gathered_bytes += page.nbytes
        if self._gathered_bytes >= GATHERED_BYTES:
            self._write_gathered()

    def _write_gathered(self) -> None:
        if not self._gathered:
            return
        page = pa.concat_batches(self._gathered)
        self._gathered.clear()
        self._gathered_bytes = 0
        for values, rows in self._groups(page):
            for start in range(0, rows.num_rows, SLICE_ROWS):
                self._append(values, rows.slice(start, SLICE_ROWS))
            if values in self._writers:
                # Gathered slices would keep the whole page in memory.
                self._writers[values].flush()

    def _append(self, values: tuple[Any, ...], rows: Page) -> None:
        # Removed and added again, so that the first one is the least recently used.
        file = self._writers.pop(values, None)
        if file is None:
            if len(self._writers) >= OPEN_FILES:
                self._close(next(iter(self._writers)))
            self._require_running()
            file = self._open(values)
        self._writers[values] = file
        self._write(file, rows)
        if file.size >= self._target:
            self._close(values)

    def _close(self, values: tuple[Any, ...]) -> None:
        self._entries.append(self._entry(values, self._writers.pop(values)))

    def finish(self) -> list[bytes]:
        self._write_gathered()
        for values in list(self._writers):
            self._close(values)
        if self._entries:
            try:
                self._require_running(now=True)
            except ConnectorError:
                self.abort()
                raise
        return [json.dumps(entry).encode() for entry in self._entries]

    def abort(self) -> None:
        for file in self._writers.values():
            file.abort()
        for entry in self._entries:
            self._remove(entry["path"])
        self._writers.clear()
        self._entries.clear()
        self._gathered.clear()
