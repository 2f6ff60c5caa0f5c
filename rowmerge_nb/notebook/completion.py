"""Completion of option names, option values and table names in cells that begin with ``%%merge``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.notebook.options import COMMANDS, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["candidates", "register", "unregister"]

_TABLE_FOLLOWS: Final = re.compile(r"(?i)\b(?:into|using|from|join|table|undo|update)\s+(?:if\s+(?:not\s+)?exists\s+)?[\w.\"]*$")


def candidates(before: str, tables: Callable[[], Iterable[str]]) -> list[str]:
    r"""Give what may stand at the cursor.

    Args:
        before: the cell's text before the cursor.
        tables: gives the names of the tables there are.

    >>> candidates("%%merge --du", list)
    ['--duplicates']
    >>> candidates("%%merge --era ", list)
    ['documents', 'current']
    >>> candidates("%%merge --show plan,di", list)
    ['plan,diff']
    >>> candidates("%%merge\nMERGE INTO ac", lambda: ["accounts", "t"])
    ['accounts']
    >>> candidates("%merge undo ac", lambda: ["accounts", "t"])
    ['accounts']
    """
    first, newline, _ = before.partition("\n")
    if not re.match(r"\s*%%?merge\b", first):
        return []
    if not newline:
        found = _option_candidates(first)
        if found or first.lstrip().startswith("%%"):
            return found
    if _TABLE_FOLLOWS.search(before):
        word = re.split(r"[^\w.]", before)[-1]
        return sorted(name for name in set(tables()) if name.lower().startswith(word.lower()))
    return []


def _option_candidates(line: str) -> list[str]:
    *earlier, word = line.split(" ")
    previous = earlier[-1] if earlier else ""
    for option in OPTIONS:
        if previous == f"--{option.name}" and option.choices:
            return [choice for choice in option.choices if choice.lower().startswith(word.lower())]
    if previous == "--show":
        return _part_candidates(word)
    if word.startswith("-"):
        return [f"--{option.name}" for option in OPTIONS if f"--{option.name}".startswith(word)]
    if line.lstrip().startswith("%merge") and len(earlier) == 1:
        return [command for command in COMMANDS if command.startswith(word)]
    return []


def _part_candidates(word: str) -> list[str]:
    """Complete the last one of several parts of a report."""
    from rowmerge_nb.report.model.report import PARTS, PRESETS

    earlier, comma, last = word.rpartition(",")
    return [
        f"{earlier}{comma}{part}"
        for part in (*PARTS, *PRESETS)
        if part.startswith(last.lower()) and part not in earlier.split(",")
    ]


def register(shell: InteractiveShell, tables: Callable[[], Iterable[str]]) -> None:
    """Add the completion to a shell; a second registration replaces the first."""
    completer = getattr(shell, "Completer", None)
    if completer is None or not hasattr(completer, "custom_matchers"):
        return
    from IPython.core.completer import SimpleCompletion, context_matcher

    @context_matcher()  # type: ignore[untyped-decorator]
    def rowmerge_matcher(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.split("\n")
        before = "\n".join([*lines[: context.cursor_line], lines[context.cursor_line][: context.cursor_position]])
        found = candidates(before, tables)
        return {"completions": [SimpleCompletion(text=text, type="merge") for text in found], "suppress": bool(found)}

    unregister(shell)
    completer.custom_matchers = [*completer.custom_matchers, rowmerge_matcher]


def unregister(shell: InteractiveShell) -> None:
    """Take the completion out of a shell."""
    completer = getattr(shell, "Completer", None)
    known = getattr(completer, "custom_matchers", [])
    if completer is not None and known:
        completer.custom_matchers = [m for m in known if getattr(m, "__name__", "") != "rowmerge_matcher"]
