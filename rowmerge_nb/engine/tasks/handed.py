"""Which pages a task keeps of those that it hands to the connector, so that the calls can be made again elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.page import Page


@dataclass(frozen=True)
class Keeping:
    """How many of the pages that it hands on a task keeps.

    Args:
        most_bytes: the first pages are kept that have no more bytes than that together, and the last one as well.
        always: also where nothing fails; else they are kept in case a call fails, and dropped if none does.
        every: of so many rows one is kept.
    """

    most_bytes: int = 1 << 20
    always: bool = False
    every: int = 1


IN_CASE: Final = Keeping()
"""Keep a megabyte in case a call fails."""


class HandedPages:
    """The pages of one sink, or of one page source, as far as they are kept.

    >>> handed = HandedPages(Keeping(most_bytes=24))
    >>> for ids in ([1, 2], [3], [4], [5]):
    ...     handed.note(pa.RecordBatch.from_pydict({"id": ids}))
    >>> kept, left_out = handed.kept()
    >>> [page.column(0).to_pylist() for page in pages_of(kept)], left_out
    ([[1, 2], [3], [5]], 1)
    """

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping
        self._first: list[Page] = []
        self._last: Page | None = None
        self._bytes = 0
        self._rows = 0
        self._left_out = 0

    def note(self, page: Page) -> None:
        """Keep a page, or note that it is not kept."""
        every, start = self._keeping.every, -self._rows % self._keeping.every
        self._rows += page.num_rows
        if every > 1:
            page = page.take(pa.array(np.arange(start, page.num_rows, every)))
            if not page.num_rows:
                return
        if self._last is not None:
            self._left_out += 1
        self._last = page
        if not self._left_out and self._bytes + page.nbytes <= self._keeping.most_bytes:
            self._first.append(page)
            self._bytes += page.nbytes
            self._last = None

    def kept(self) -> tuple[bytes, int]:
        """Return the pages that were kept as an Arrow stream, and how many before the last one were not; no bytes without any."""
        return _stream([*self._first, *([self._last] if self._last is not None else [])]), self._left_out


def pages_of(stream: bytes) -> list[Page]:
    """Return the pages of a stream that `HandedPages.kept` has given."""
    if not stream:
        return []
    with pa.ipc.open_stream(stream) as reader:
        return list(reader)


def _stream(pages: Sequence[Page]) -> bytes:
    if not pages:
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pages[0].schema) as writer:
        for page in pages:
            writer.write_batch(page)
    return bytes(sink.getvalue())
