"""Columns of text in a fixed-width font."""

from __future__ import annotations

import unicodedata
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

_FONT = "font-family:Menlo,Consolas,'Liberation Mono',monospace;white-space:pre;overflow-x:auto"


def preformatted(text: str) -> str:
    """Return text as HTML that keeps its columns, whatever style the page has for `<pre>`.

    >>> preformatted("a < b").endswith('">a &lt; b</pre>')
    True
    """
    return f'<pre style="{_FONT}">{escape(text)}</pre>'


def width_of(text: str) -> int:
    r"""Return the width of a text in a terminal: two cells per wide character, none per combining
    mark.

    >>> width_of("abc"), width_of("日本"), width_of("\N{LATIN SMALL LETTER E}\N{COMBINING ACUTE ACCENT}")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Pad a text with spaces.

    >>> pad("ab", 4), pad("ab", 4, right=True)
    ('ab  ', '  ab')
    """
    space = " " * max(width - width_of(text), 0)
    return space + text if right else text + space


def columns_of(rows: Sequence[Sequence[str]], *, right: Container[int] = ()) -> list[str]:
    """Return rows of cells as aligned lines; the last cell of a shorter row may run over the
    following columns.

    >>> columns_of([["n", "name"], ["12", "b"]], right={0})
    [' n  name', '12  b']
    """
    count = max(len(row) for row in rows)
    widths = [0] * count
    for row in rows:
        whole = len(row) == count
        for index, text in enumerate(row if whole else row[:-1]):
            widths[index] = max(widths[index], width_of(text))
    return [
        "  ".join(pad(text, widths[i], right=i in right) for i, text in enumerate(row)).rstrip()
        for row in rows
    ]
