"""Errors of a connector's code for display."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.words.columns import columns_of
from rowmerge_nb.report.words.display_values import Cell, cell, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from rowmerge_nb.trace.raised import CodeFrame, Raised, RaisedFrom

_HANDLE: Final = 240
"""The maximum number of characters of a handle."""


@dataclass(frozen=True)
class GivenPage:
    """The first rows of the page that a call received; ``right`` has the numeric columns."""

    title: str
    columns: tuple[str, ...]
    right: frozenset[int]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class ShownRaised:
    """An error of a connector's code.

    Args:
        where: the call: ``call 2 of writer 0, and 3 other calls``.
        code: the raising line and its neighbors: number, text, and whether it is the raising one.
    """

    method: str
    where: str
    what: str
    ways: tuple[str, ...]
    place: str
    code: tuple[tuple[str, str, bool], ...]
    causes: tuple[tuple[str, tuple[str, ...]], ...]
    page: GivenPage | None
    handle: str
    stack: tuple[str, ...] = ()

    @property
    def stack_title(self) -> str:
        return f"The whole stack: {plural(len(self.stack), 'line')}"


def all_raised(raised: Iterable[Raised]) -> tuple[ShownRaised, ...]:
    """Return all errors of a connector's code; equal errors of several writers are merged."""
    same: dict[Any, list[Raised]] = {}
    for one in raised:
        same.setdefault((one.method, one.caller, one.what, one.frames), []).append(one)
    errors: list[ShownRaised] = []
    handles: set[str] = set()
    for first, *others in same.values():
        errors.append(
            _shown(first, len(others), handle="" if first.handle in handles else first.handle)
        )
        handles.add(first.handle)
    return tuple(errors)


def _shown(raised: Raised, others: int, handle: str) -> ShownRaised:
    last = raised.frames[-1] if raised.frames else None
    more = f", and {plural(others, 'other call')}" if others else ""
    return ShownRaised(
        method=visible(raised.method),
        where=visible(raised.where) + more,
        what=visible(raised.what),
        ways=tuple(_way(frame) for frame in raised.frames[:-1]),
        place=visible(last.place) if last is not None else "",
        code=_lines(last) if last is not None else (),
        causes=tuple((_cause(cause), tuple(map(_way, cause.frames))) for cause in raised.causes),
        page=_page(raised.page, raised.rows),
        handle=cell(handle, _HANDLE).text if handle else "",
        stack=tuple(map(visible, raised.stack)),
    )


def _cause(cause: RaisedFrom) -> str:
    return visible(
        f"Raised from {cause.what}"
        if cause.direct
        else f"Raised while handling this error: {cause.what}"
    )


def _way(frame: CodeFrame) -> str:
    return visible(f"{frame.place}: {frame.text}" if frame.text else frame.place)


def _lines(frame: CodeFrame) -> tuple[tuple[str, str, bool], ...]:
    width = len(str(frame.code[-1][0])) if frame.code else 0
    return tuple((f"{at:>{width}}", visible(text), at == frame.line) for at, text in frame.code)


def _page(page: pa.RecordBatch | None, rows: int | None) -> GivenPage | None:
    # Imported late: the magics import this module, and should not load Arrow.
    from rowmerge_nb.spi.types import is_number
    from rowmerge_nb.spi.values import python_values

    if rows is None:
        return None
    if page is None:
        amount = "no row" if not rows else f"{plural(rows, 'row')}, too large to be kept"
        return GivenPage(f"The page that it received: {amount}", (), frozenset(), ())
    first = f"first {number(page.num_rows)} of " if page.num_rows < rows else ""
    columns = [[cell(value) for value in python_values(column)] for column in page.columns]
    right = frozenset(index for index, column in enumerate(page.columns) if is_number(column.type))
    names = tuple(map(visible, page.schema.names))
    return GivenPage(
        f"The page that it received: {first}{plural(rows, 'row')}",
        names,
        right,
        tuple(zip(*columns, strict=True)),
    )


def raised_text(raised: ShownRaised, width: int) -> list[str]:
    lines = textwrap.wrap(f"{raised.method}, {raised.where}, raised {raised.what}", width)
    lines += [f"  {way}" for way in raised.ways]
    if raised.place:
        lines.append(f"  {raised.place}")
    lines += [
        f"  {'>' if marked else ' '} {at}  {text}".rstrip() for at, text, marked in raised.code
    ]
    for words, places in raised.causes:
        lines += [*textwrap.wrap(words, width), *(f"  {frame_text}" for frame_text in places)]
    if raised.stack:
        lines.append(f"{raised.stack_title}, in the error's traceback.")
    if raised.page is not None:
        lines += ["", raised.page.title]
        if raised.page.columns:
            grid = [
                [*raised.page.columns],
                *([value.text for value in row] for row in raised.page.rows),
            ]
            lines += columns_of(grid, right=set(raised.page.right))
    if raised.handle:
        lines += ["", *textwrap.wrap(f"Its handle: {raised.handle}", width)]
    return lines
