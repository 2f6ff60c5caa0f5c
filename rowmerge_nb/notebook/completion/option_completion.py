"""What Tab offers in the line of options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.notebook.cell_options import COMMANDS, OPTIONS

if TYPE_CHECKING:
    from rowmerge_nb.notebook.completion.cells import Options


def in_options(at: Options, *, variables: tuple[str, ...] = ()) -> tuple[str, list[tuple[str, str]]]:
    """Return what is being written, and what can stand in its place, each with what it is.

    Args:
        at: where the cursor stands.
        variables: names of variables that hold an engine.

    >>> from rowmerge_nb.notebook.completion.cells import Options
    >>> in_options(Options("--du", True))
    ('--du', [('--duplicates', 'option')])
    >>> in_options(Options("--show plan,di", True))
    ('di', [('diff', 'part of the report')])
    """
    *earlier, word = at.line.split(" ")
    name, equals, value = word.partition("=")
    if equals and name.startswith("--"):
        return _value(name[2:], value, variables) or (value, [])
    behind = earlier[-1] if earlier else ""
    if behind.startswith("--") and not word.startswith("-") and (found := _value(behind[2:], word, variables)) is not None:
        return found
    candidates = [(f"--{option.name}", "option") for option in OPTIONS if f"--{option.name}".startswith(word)]
    if not word.startswith("-") and not at.is_cell and not earlier:
        candidates = [(command, "command") for command in COMMANDS if command.startswith(word)] + candidates
    return word, candidates


def _value(name: str, word: str, variables: tuple[str, ...]) -> tuple[str, list[tuple[str, str]]] | None:
    """Complete the value of an option; None if it takes none."""
    option = next((option for option in OPTIONS if option.name == name), None)
    if option is None or not option.values:
        return None
    if name == "show":
        return _part(word)
    if name == "engine":
        return word, [(variable, "Engine") for variable in variables if variable.startswith(word)]
    return word, [(str(choice), "value") for choice in option.choices if choice.lower().startswith(word.lower())]


def _part(word: str) -> tuple[str, list[tuple[str, str]]]:
    """Complete the last one of several parts of a report."""
    from rowmerge_nb.report.model.report import PARTS, PRESETS

    *earlier, last = word.split(",")
    known = [(part, "part of the report") for part in PARTS] + [(preset, "parts of the report") for preset in PRESETS]
    return last, [(name, kind) for name, kind in known if name.startswith(last.lower()) and name not in earlier]
