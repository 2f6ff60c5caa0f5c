"""A replay as text and HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import error_text
from rowmerge_nb.base.words import plural
from rowmerge_nb.report.words.columns import columns_of, preformatted
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.replays.run import Replay
    from rowmerge_nb.spi.page import Page

MOST_ROWS: Final = 10
"""So many rows are shown of each kind of difference."""
MOST_CALLS: Final = 60


def headline(done: Replay) -> str:
    """Describe in a sentence what came of a replay."""
    record = done.record
    what = f"Replay of {record.kind} {'.'.join(record.name[1:])} on {done.origin.name}"
    if done.error is not None:
        where = "" if done.number is None else f" of {record.worker} {done.number}"
        return f"{what}: {done.step}{where} failed: {error_text(done.error)}"
    if not done.compared:
        last = next((call.method for call in reversed(done.calls) if call.method not in {"commit", "rollback"}), done.call)
        return f"{what}: no call failed up to {last}; the rows that are left were not compared"
    if done.agrees:
        return f"{what}: no call failed, and the rows that are left are those that must be"
    parts = []
    for rows, word in ((done.missing, "missing"), (done.extra, "there that must not be")):
        if rows is not None and rows.num_rows:
            parts.append(f"{plural(rows.num_rows, 'row')} {'is' if rows.num_rows == 1 else 'are'} {word}")
    return f"{what}: {' and '.join(parts)}"


def text_of(done: Replay) -> str:
    """Write a replay."""
    return "\n".join(_lines(done))


def html_of(done: Replay) -> str:
    """Write a replay as HTML."""
    return preformatted(text_of(done))


def _lines(done: Replay) -> Iterator[str]:
    yield headline(done)
    for notice in done.notices:
        yield f"Note: {notice}"
    if done.error is not None:
        yield ""
        yield done.traceback.rstrip()
    for title, rows in (("Missing:", done.missing), ("There, and must not be:", done.extra)):
        if rows is not None and rows.num_rows:
            yield ""
            yield title
            yield from _rows(rows)
    yield ""
    shown = done.calls[:MOST_CALLS]
    cells = [[str(c.order), c.where, c.method, c.given, c.gave, c.error or ""] for c in shown]
    yield from (line.rstrip() for line in columns_of([["call", "where", "method", "given", "gave", "error"], *cells], right={0}))
    if len(done.calls) > len(shown):
        yield f"and {plural(len(done.calls) - len(shown), 'call')} more"


def _rows(rows: Page) -> Iterator[str]:
    head = rows.slice(0, MOST_ROWS)
    values = zip(*map(python_values, head.columns), strict=True)
    cells = [["NULL" if value is None else repr(value) for value in row] for row in values]
    yield from (f"  {line.rstrip()}" for line in columns_of([rows.schema.names, *cells]))
    if rows.num_rows > MOST_ROWS:
        yield f"  and {plural(rows.num_rows - MOST_ROWS, 'row')} more"
