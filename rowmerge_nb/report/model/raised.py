"""What a connector's code has raised, as it is shown: the line with its neighbours, the page that the call was given, the handle."""

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
"""So much of a handle is shown."""


@dataclass(frozen=True)
class GivenPage:
    """The first rows of a page that a call was given; ``right`` are the columns of numbers."""

    title: str
    columns: tuple[str, ...]
    right: frozenset[int]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class ShownRaised:
    """One error of a connector's code.

    Args:
        method: the call that raised it, and ``where`` which of them: ``call 2 of writer 0, and 3 other calls``.
        what: the error in one line.
        ways: the places of the lines that led to the one that raised it, the outermost first.
        place: where that is; ``""`` where it is not known.
        code: it and its neighbours: the number, the text, and whether it is the one.
        causes: the errors that it was raised from, each with the places that it went through, the innermost last.
        page: the page that the call was given; None without one.
        handle: the handle.
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


def all_raised(raised: Iterable[Raised]) -> tuple[ShownRaised, ...]:
    """Make what is shown of all errors of a connector's code, in order; what several writers raised in one line is shown once."""
    same: dict[Any, list[Raised]] = {}
    for one in raised:
        same.setdefault((one.method, one.caller, one.what, one.frames), []).append(one)
    found: list[ShownRaised] = []
    handles: set[str] = set()
    for first, *others in same.values():
        found.append(_shown(first, len(others), handle="" if first.handle in handles else first.handle))
        handles.add(first.handle)
    return tuple(found)


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
    )


def _cause(cause: RaisedFrom) -> str:
    return visible(f"Raised from {cause.what}" if cause.direct else f"Raised while this was handled: {cause.what}")


def _way(frame: CodeFrame) -> str:
    return visible(f"{frame.place}: {frame.text}" if frame.text else frame.place)


def _lines(frame: CodeFrame) -> tuple[tuple[str, str, bool], ...]:
    width = len(str(frame.code[-1][0])) if frame.code else 0
    return tuple((f"{at:>{width}}", visible(text), at == frame.line) for at, text in frame.code)


def _page(page: pa.RecordBatch | None, rows: int | None) -> GivenPage | None:
    # It loads Arrow, and this module is loaded with the magics.
    from rowmerge_nb.spi.values import python_values

    if rows is None:
        return None
    if page is None:
        kept = "no row" if not rows else f"{plural(rows, 'row')}, too large to be kept"
        return GivenPage(f"The page that it was given: {kept}", (), frozenset(), ())
    first = f"first {number(page.num_rows)} of " if page.num_rows < rows else ""
    columns = [[cell(value) for value in python_values(column)] for column in page.columns]
    right = frozenset(index for index, column in enumerate(page.columns) if _is_number(column.type))
    names = tuple(map(visible, page.schema.names))
    return GivenPage(f"The page that it was given: {first}{plural(rows, 'row')}", names, right, tuple(zip(*columns, strict=True)))


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def raised_text(raised: ShownRaised, width: int) -> list[str]:
    """Write it as lines of text."""
    lines = textwrap.wrap(f"{raised.method}, {raised.where}, raised {raised.what}", width)
    lines += [f"  {way}" for way in raised.ways]
    if raised.place:
        lines.append(f"  {raised.place}")
    lines += [f"  {'>' if marked else ' '} {at}  {text}".rstrip() for at, text, marked in raised.code]
    for words, places in raised.causes:
        lines += [*textwrap.wrap(words, width), *(f"  {place}" for place in places)]
    if raised.page is not None:
        lines += ["", raised.page.title]
        if raised.page.columns:
            grid = [[*raised.page.columns], *([value.text for value in row] for row in raised.page.rows)]
            lines += columns_of(grid, right=set(raised.page.right))
    if raised.handle:
        lines += ["", *textwrap.wrap(f"Its handle: {raised.handle}", width)]
    return lines
