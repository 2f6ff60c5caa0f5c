"""The edits that hints ask for, by which a statement with several mistakes is offered whole.

A wrong edit costs an offer and nothing else: what is offered has been parsed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rowmerge_nb.base.errors import RowMergeError

_OPERATORS: Final = tuple("|+-*/%")


def follow_hint(text: str, error: RowMergeError) -> str | None:
    """Return the text after the edit that an error's hint asks for, or None."""
    edit = error.edit
    if edit is None or edit.old is None:
        return None
    if not edit.old:
        return edit.new
    words = r"\s*".join(re.escape(word) for word in re.findall(r"\w+|[^\w\s]", edit.old))
    pattern = rf"\b{words}" if edit.old[0].isalnum() else words
    matches = list(re.finditer(pattern, text, re.IGNORECASE))
    if not matches:
        return None
    lines = text.split("\n")[: (error.line or 1) - 1]
    at = sum(len(line) + 1 for line in lines) + (error.column or 1) - 1
    match = [match for match in matches if match.start() <= at or match is matches[0]][-1]
    before, behind = text[: match.start()], text[match.end() :]
    if (
        re.search(r"\w\(", edit.new)
        and "::" not in edit.old
        and (before.rstrip()[-1:] in _OPERATORS or behind.lstrip()[:1] in _OPERATORS)
    ):
        # The operators around a comparison may belong to its first or last value.
        return None
    if edit.end:
        if before.count("(") > before.count(")") or re.search(
            r"(?i)\b(UNION|EXCEPT|INTERSECT)\b", text
        ):
            # The end of the query is not that of the statement.
            return None
        behind = f"{behind.rstrip(' ;')} {edit.end}"
    if not edit.new:
        before = before.rstrip(" ")
    gap = " " if f"{before}{edit.new}"[-1:].isalnum() and behind[:1].isalnum() else ""
    return f"{before}{edit.new}{gap}{behind}"
