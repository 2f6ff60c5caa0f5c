"""Hints as a cell needs them: programs call an engine and a result, cells have commands."""

from __future__ import annotations

import re
from typing import Final

import rowmerge_nb

_COMMANDS: Final = (
    (re.compile(r"\bengine\.undo\('([^']*)'\)"), r"%merge undo \1"),
    (re.compile(r"\bengine\.orphans\(\)"), "%merge doctor --orphans"),
    (re.compile(r"\bresult\.(?=[a-z_]+\()"), "_merge."),
)
_CALL: Final = re.compile(r"\bengine\.(?=([a-z_]+)\()")


def in_cell(hint: str | None, engine: str) -> str | None:
    """Return a hint in the words of a cell; ``engine`` is the variable of its engine, if it names one.

    >>> in_cell("engine.undo('t') takes it back, engine.restore('t', 3) too.", "")
    "%merge undo t takes it back, rowmerge_nb.restore('t', 3) too."
    >>> in_cell("result.why() explains it; see engine.table('t').", "mine")
    "_merge.why() explains it; see mine.table('t')."
    """
    if hint is None:
        return None
    for pattern, command in _COMMANDS:
        hint = pattern.sub(command, hint)

    def owner(call: re.Match[str]) -> str:
        if engine:
            return f"{engine}."
        is_public = call[1] in rowmerge_nb.__all__
        return "rowmerge_nb." if is_public else "rowmerge_nb.default_engine()."

    return _CALL.sub(owner, hint)
