"""Marks that relate run-time errors to expressions.

Our errors carry the number of their expression. Spark's errors have a position in the SQL, where
comments mark expressions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rowmerge_nb.sql.typed.expressions import Origin

_FAILURE: Final = re.compile(r"raise_error\((concat\()?'\[\[([A-Z_]+)\]\] ")
_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`|/\*(?P<number>\d*)\*/", re.DOTALL)


def marked(text: str, origin: Origin) -> str:
    """Mark an expression's text, and its unnumbered errors."""
    numbered = _FAILURE.sub(rf"raise_error(\g<1>'[[\g<2>@{origin.number}]] ", text)
    return f"/*{origin.number}*/{numbered}/**/"


def origin_at(text: str, offset: int) -> int | None:
    """Return the number of the innermost expression at an offset, or None."""
    around: list[int] = []
    for token in _TOKEN.finditer(text, 0, offset):
        number = token["number"]
        if number:
            around.append(int(number))
        elif number is not None:
            around.pop()
    return around[-1] if around else None
