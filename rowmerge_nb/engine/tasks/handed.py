"""The pages that a task retains to replay a connector's calls."""

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
    """The pages to retain: the first ones up to `most_bytes`, and the last one; of their rows one
    in `every`.

    If not `always`, they are dropped unless a call fails.
    """

    most_bytes: int = 1 << 20
    always: bool = False
    every: int = 1


IN_CASE: Final = Keeping()
"""Retain a megabyte in case a call fails."""


class HandedPages:
    """The retained pages of one sink or page source.

    >>> pages = HandedPages(Keeping(most_bytes=24))
    >>> for ids in ([1, 2], [3], [4], [5]):
    ...     pages.note(pa.RecordBatch.from_pydict({"id": ids}))
    >>> stream, left_out = pages.retained()
    >>> [page.column(0).to_pylist() for page in pages_of(stream)], left_out
    ([[1, 2], [3], [5]], 1)
    """

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping
        self._first: list[Page] = []
        self._last: Page | None = None
        self._bytes = 0
        self._rows = 0
        self._dropped = 0

    def note(self, page: Page) -> None:
        every, start = self._keeping.every, -self._rows % self._keeping.every
        self._rows += page.num_rows
        if every > 1:
            page = page.take(pa.array(np.arange(start, page.num_rows, every)))
            if not page.num_rows:
                return
        if self._last is not None:
            self._dropped += 1
        self._last = page
        if not self._dropped and self._bytes + page.nbytes <= self._keeping.most_bytes:
            self._first.append(page)
            self._bytes += page.nbytes
            self._last = None

    def retained(self) -> tuple[bytes, int]:
        """Return the retained pages as an Arrow stream (empty without pages), and the number of
        dropped pages.
        """
        return (
            _stream([*self._first, *([self._last] if self._last is not None else [])]),
            self._dropped,
        )


def pages_of(stream: bytes) -> list[Page]:
    """Parse a stream of `HandedPages.retained`."""
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
