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
"""The maximum number of rows per kind of difference."""
MOST_CALLS: Final = 60


def headline(result: Replay) -> str:
    record = result.record
    what = f"Replay of {record.kind} {'.'.join(record.name[1:])} on {result.origin.name}"
    if result.error is not None:
        where = "" if result.number is None else f" of {record.worker} {result.number}"
        return f"{what}: {result.step}{where} failed: {error_text(result.error)}"
    if not result.compared:
        last = next(
            (
                call.method
                for call in reversed(result.calls)
                if call.method not in {"commit", "rollback"}
            ),
            result.call,
        )
        return f"{what}: no call failed up to {last}; the resulting rows were not compared"
    if result.agrees:
        return f"{what}: no call failed, and the resulting rows are correct"
    parts = []
    for rows, word in ((result.missing, "missing"), (result.extra, "unexpected")):
        if rows is not None and rows.num_rows:
            parts.append(
                f"{plural(rows.num_rows, 'row')} {'is' if rows.num_rows == 1 else 'are'} {word}"
            )
    return f"{what}: {' and '.join(parts)}"


def text_of(result: Replay) -> str:
    return "\n".join(_lines(result))


def html_of(result: Replay) -> str:
    return preformatted(text_of(result))


def _lines(result: Replay) -> Iterator[str]:
    yield headline(result)
    for notice in result.notices:
        yield f"Note: {notice}"
    if result.error is not None:
        yield ""
        yield result.traceback.rstrip()
    for title, rows in (("Missing:", result.missing), ("Unexpected:", result.extra)):
        if rows is not None and rows.num_rows:
            yield ""
            yield title
            yield from _rows(rows)
    yield ""
    calls = result.calls[:MOST_CALLS]
    cells = [[str(c.order), c.where, c.method, c.given, c.gave, c.error or ""] for c in calls]
    yield from (
        line.rstrip()
        for line in columns_of(
            [["call", "where", "method", "given", "gave", "error"], *cells], right={0}
        )
    )
    if len(result.calls) > len(calls):
        yield f"and {plural(len(result.calls) - len(calls), 'call')} more"


def _rows(rows: Page) -> Iterator[str]:
    head = rows.slice(0, MOST_ROWS)
    values = zip(*map(python_values, head.columns), strict=True)
    cells = [["NULL" if value is None else repr(value) for value in row] for row in values]
    yield from (f"  {line.rstrip()}" for line in columns_of([rows.schema.names, *cells]))
    if rows.num_rows > MOST_ROWS:
        yield f"  and {plural(rows.num_rows - MOST_ROWS, 'row')} more"
