"""Reading a table's pages in a thread of its own, a few pages ahead of what computes with them."""

from __future__ import annotations

import queue
import threading
from contextlib import closing
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
"""Seconds after which a thread that waits for the other one looks whether it is to stop."""


class PageStream:
    """The pages of a table, as a stream that one thread fills and another one empties.

    All page sources are made, read and closed by one thread, one after the other: connectors are not asked for more.

    Args:
        scan: reads the table.
        ahead: this many pages are read before they are asked for.
        gathers: small pages are put together, which costs less in all; else the first page is there as soon as it is read.

    Attributes:
        failure: what the connector raised; None if nothing was raised.
        stopped: is set to end the reading.
    """

    def __init__(self, scan: ScanPass, ahead: int, *, gathers: bool) -> None:
        self.failure: BaseException | None = None
        self.stopped = threading.Event()
        self.schema = pa.schema([field for field in scan.schema if field.name != POSITION])
        self._scan = scan
        self._gathers = gathers
        self._pages: queue.Queue[pa.RecordBatch | None] = queue.Queue(ahead)
        self._thread = threading.Thread(target=self._fill, name="rowmerge_nb-pages", daemon=True)

    def __enter__(self) -> Self:
        """Return the stream itself; nothing is read yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """End the reading, and wait until the page source is closed."""
        self.stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def reader(self) -> pa.RecordBatchReader:
        """Begin to read, and return the pages as a stream of Arrow's, without the rows' positions; once.

        An interrupt of the caller's thread cannot come between the start and its end if another thread calls this.
        """
        self._thread.start()
        return pa.RecordBatchReader.from_batches(self.schema, self._taken())

    def _taken(self) -> Iterator[pa.RecordBatch]:
        while (page := self._next()) is not None:
            yield page
        if self.failure is not None:
            # The reader's own error is raised by who has asked for the answer; this one ends the computation.
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
            read = cast("Generator[pa.RecordBatch, None, None]", self._scan.read(range(len(self._scan.splits))))
            with closing(read) as pages:
                rows = self._rows(pages)
                for page in gathered(rows) if self._gathers else rows:
                    if not self._put(page):
                        return
        except BaseException as failure:  # noqa: BLE001 - it is raised by who has asked for the answer
            self.failure = failure
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
