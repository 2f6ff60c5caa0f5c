"""Detects pages that change after they were passed on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.spi.merge_sink import ConnectorMergeSink

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import Fragments
    from rowmerge_nb.spi.page import Page


class WatchedPages:
    """Passed pages with copies; ``culprit`` is the suspected code with its article:
    ``a page source``.
    """

    def __init__(self, culprit: str) -> None:
        self.culprit = culprit
        self._pages: list[tuple[Page, Page, bytes]] = []

    def add(self, page: Page) -> None:
        content = page.serialize().to_pybytes()
        self._pages.append((page, _copy(page, content), content))

    def check_last(self) -> None:
        __tracebackhide__ = True
        if self._pages:
            self._check(len(self._pages) - 1)

    def check(self) -> None:
        __tracebackhide__ = True
        for number in range(len(self._pages)):
            self._check(number)

    def _check(self, number: int) -> None:
        __tracebackhide__ = True
        page, before, content = self._pages[number]
        if page.serialize().to_pybytes() == content:
            return
        changed = (
            name
            for name, old, new in zip(page.schema.names, before, page, strict=True)
            if _texts(old) != _texts(new)
        )
        name = next(changed, page.schema.names[0])
        old, new = (_texts(of.column(page.schema.names.index(name))) for of in (before, page))
        row = next(
            (row for row, (one, other) in enumerate(zip(old, new, strict=True)) if one != other), 0
        )
        raise AssertionError(
            f"{self.culprit} changed page {number + 1} after it was passed on: row"
            f" {row + 1} of '{name}' was {old[row]} and is {new[row]}; copy a page before"
            " changing it, and do not reuse buffers"
        )


class WatchedSink(ConnectorMergeSink):
    """A merge sink that must not change its pages."""

    def __init__(self, sink: Any) -> None:
        self.sink, self._handed = sink, WatchedPages("a merge sink")

    def store_merged_rows(self, page: Page) -> None:
        self._handed.add(page)
        self.sink.store_merged_rows(page)
        self._handed.check_last()

    def finish(self) -> Fragments:
        fragments: Fragments = self.sink.finish()
        self._handed.check()
        return fragments

    def abort(self) -> None:
        self.sink.abort()


def _copy(page: Page, content: bytes) -> Page:
    return pa.ipc.read_record_batch(pa.py_buffer(content), page.schema)


def _texts(channel: Any) -> list[str]:
    return [repr(value) for value in channel.to_pylist()]
