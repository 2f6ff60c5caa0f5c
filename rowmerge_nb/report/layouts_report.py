"""Layouts of a table beside each other, as text and HTML."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import number, number_or_blank, plural
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.plain_text import WIDTH
from rowmerge_nb.report.words.columns import columns_of

if TYPE_CHECKING:
    from rowmerge_nb.trace.file_costs import FileCount
    from rowmerge_nb.trace.layouts import LayoutCost, Layouts

SHOWN: Final = 30
"""The maximum number of layouts, and of statements, in a report."""
_LAYOUT_HEADS: Final = (
    *("layout", "files", "files touched", "bytes touched"),
    *("files read", "bytes read"),
)
_STATEMENT_HEADS: Final = (
    *("statement", "rows changed", "shared", "inserted"),
    *("files touched now", "files read now"),
)
_TEXT: Final = 60
"""The maximum length of a statement's text in a table."""
MEANINGS: Final = {
    "files touched": (
        "files with rows that a statement updates or deletes, once for each statement. A store that"
        " rewrites files writes them again"
    ),
    "files read": "files that the conditions of a scan do not exclude",
    "shared": "changed rows that another of the statements changes too",
}


def layouts_text(layouts: Layouts) -> str:
    lines = [
        line
        for sentence in (layouts.sentence, *layouts.notices)
        for line in textwrap.wrap(sentence, WIDTH)
    ]
    lines += [
        "",
        *columns_of([list(_LAYOUT_HEADS), *_layout_rows(layouts)], right=set(range(1, 6))),
    ]
    lines += [
        "",
        *columns_of([list(_STATEMENT_HEADS), *_statement_rows(layouts)], right=set(range(1, 6))),
    ]
    return "\n".join([*lines, *filter(None, [_more(layouts)])])


def layouts_bundle(layouts: Layouts) -> dict[str, str]:
    text = layouts_text(layouts)
    names = {
        "layouts": layouts,
        "tables": [
            ("Layouts", _LAYOUT_HEADS, _layout_rows(layouts)),
            ("Statements", _STATEMENT_HEADS, _statement_rows(layouts)),
        ],
        "more": _more(layouts),
        "meanings": MEANINGS,
    }
    statements = ";\n".join(statement.text for statement in layouts.statements)
    return {
        "text/plain": text,
        "text/html": render_parts("layouts.html.j2", names, text, statements),
    }


def _more(layouts: Layouts) -> str:
    counts = [
        plural(count - SHOWN, word)
        for count, word in (
            (len(layouts.layouts) + 1, "more layout"),
            (len(layouts.statements), "more statement"),
        )
        if count > SHOWN
    ]
    return f"and {' and '.join(counts)}; statements_to_pandas() has all" if counts else ""


def _layout_rows(layouts: Layouts) -> list[list[str]]:
    costs = (layouts.current, *layouts.layouts)[:SHOWN]
    return [[cost.layout, number(cost.files), *_totals(cost)] for cost in costs]


def _totals(cost: LayoutCost) -> list[str]:
    return [text for count in (cost.touched_total, cost.read_total) for text in _cells(count)]


def _cells(count: FileCount | None) -> list[str]:
    if count is None:
        return ["", ""]
    return [number(count.files), number_or_blank(count.bytes)]


def _statement_rows(layouts: Layouts) -> list[list[str]]:
    current = layouts.current
    return [
        [
            textwrap.shorten(statement.text, _TEXT, placeholder=" ..."),
            number(statement.rows_changed),
            number_or_blank(statement.rows_shared),
            number_or_blank(statement.rows_inserted),
            number(touched.files),
            number_or_blank(None if read is None else read.files),
        ]
        for statement, touched, read in zip(
            layouts.statements, current.touched, current.read, strict=True
        )
    ][:SHOWN]
