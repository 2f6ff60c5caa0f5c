"""The width of text in a browser: drawings are laid out without fonts, so that they are
byte-identical on every machine.

The widths are those of Helvetica, in thousandths of the font size, from space to tilde; mono fonts
are at most 0.6 wide.
"""

from __future__ import annotations

import unicodedata
from typing import Final

# fmt: off
_REGULAR: Final = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
)
_BOLD: Final = (
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611,
    556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389,
    280, 389, 584,
)
# fmt: on
_OTHER: Final = {
    "\N{NO-BREAK SPACE}": 278,
    "→": 1000,
    "\N{MINUS SIGN}": 584,
    "·": 278,
    "…": 1000,
    "\N{EN DASH}": 556,
}
_UNKNOWN: Final = 667
_MONO: Final = 602
_WIDE: Final = 1000


def text_width(text: str, size: float, *, bold: bool = False, mono: bool = False) -> float:
    table = _BOLD if bold else _REGULAR
    return sum(_char(char, table, mono) for char in text) * size / 1000


def _char(char: str, table: tuple[int, ...], mono: bool) -> int:
    if unicodedata.east_asian_width(char) in {"W", "F"}:
        return _WIDE
    if unicodedata.combining(char):
        return 0
    if mono:
        return _MONO
    return table[ord(char) - 32] if " " <= char <= "~" else _OTHER.get(char, _UNKNOWN)
