"""A thread that reads a table's pages ahead of their consumer."""

from __future__ import annotations

import queue
import threading
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from rowmerge_nb.engine.tasks.arrow import gathered
from rowmerge_nb.engine.tasks.scan import POSITION

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from rowmerge_nb.engine.tasks.scan import ScanPass

_PATIENCE: Final = 0.05
"""Seconds between checks of a waiting thread whether it must stop."""


class PageStream:
    """The pages of a table, from a reading thread to a consuming one.

    One thread opens, reads and closes all page sources sequentially, as connectors require.

    Args:
        ahead: the maximum number of pages to read ahead.
        stopped: ends the reading of all streams of a query; a failure sets it.
        gathers: concatenate small pages; otherwise the first page is available as soon as it is
            read.
    """

    def __init__(
        self, scan: ScanPass, ahead: int, stopped: threading.Event, *, gathers: bool
    ) -> None:
        self.failure: BaseException | None = None
        self.stopped = stopped
        self.schema = pa.schema([field for field in scan.schema if field.name != POSITION])
        self._scan = scan
        self._gathers = gathers
        self._pages: queue.Queue[pa.RecordBatch | None] = queue.Queue(ahead)
        self._thread = threading.Thread(target=self._fill, name="rowmerge_nb-pages", daemon=True)
        self._read = iter(self._next, None)
        self._first: list[pa.RecordBatch] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop reading, and wait until the page source is closed."""
        self.stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def start(self) -> None:
        """Start reading. Call once.

        Call it from a thread other than the main thread, so that an interrupt cannot come between
        start and return.
        """
        self._thread.start()

    def has_several(self) -> bool:
        """Wait for two pages, and return whether there are two. Call before `reader`."""
        self._first = list(islice(self._read, 2))
        return len(self._first) > 1

    def reader(self) -> pa.RecordBatchReader:
        """Return the pages without positions as an Arrow stream, after `start`. Call once."""
        return pa.RecordBatchReader.from_batches(self.schema, self._taken())

    def _taken(self) -> Iterator[pa.RecordBatch]:
        yield from self._first
        yield from self._read
        if self.failure is not None:
            # The caller raises the connector's error; this one ends the computation.
            raise pa.ArrowInvalid("the table cannot be read")

    def _next(self) -> pa.RecordBatch | None:
        while not self.stopped.is_set():
            try:
                return self._pages.get(timeout=_PATIENCE)
            except queue.Empty:
                continue
        return None

    def _fill(self) -> None:
        try:
            read = cast(
                "Generator[pa.RecordBatch, None, None]",
                self._scan.read(range(len(self._scan.splits))),
            )
            with closing(read) as pages:
                rows = self._rows(pages)
                for page in gathered(rows) if self._gathers else rows:
                    if not self._put(page):
                        return
        except BaseException as failure:  # noqa: BLE001 - raised by the caller
            self.failure = failure
            # DuckDB may be waiting for another table.
            self.stopped.set()
        self._put(None)

    def _rows(self, pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for page in pages:
            if self.stopped.is_set():
                return
            yield page.drop_columns([POSITION])

    def _put(self, page: pa.RecordBatch | None) -> bool:
        while not self.stopped.is_set():
            try:
                self._pages.put(page, timeout=_PATIENCE)
            except queue.Full:
                continue
            return True
        return False
