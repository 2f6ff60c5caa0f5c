"""Completion in the line of options."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rowmerge_nb.notebook.cell_options import COMMANDS, OPTIONS

if TYPE_CHECKING:
    from rowmerge_nb.notebook.completion.cells import OptionLine


def in_options(
    at: OptionLine, *, variables: tuple[str, ...] = ()
) -> tuple[str, list[tuple[str, str]]]:
    """Return the incomplete word and its completions, each with a label; ``variables`` are names of
    engines.
    """
    *earlier, word = at.line.split(" ")
    if earlier and earlier[0].lower() == "connect" and not at.is_cell:
        return _connect(earlier[1:], word)
    name, equals, value = word.partition("=")
    if equals and name.startswith("--"):
        return _value(name[2:], value, variables) or (value, [])
    behind = earlier[-1] if earlier else ""
    if (
        behind.startswith("--")
        and not word.startswith("-")
        and (completed := _value(behind[2:], word, variables)) is not None
    ):
        return completed
    candidates = [
        (f"--{option.name}", "option") for option in OPTIONS if f"--{option.name}".startswith(word)
    ]
    if not word.startswith("-") and not at.is_cell and not earlier:
        candidates = [
            (command, "command") for command in COMMANDS if command.startswith(word)
        ] + candidates
    return word, candidates


def _value(
    name: str, word: str, variables: tuple[str, ...]
) -> tuple[str, list[tuple[str, str]]] | None:
    option = next((option for option in OPTIONS if option.name == name), None)
    if option is None or not option.values:
        return None
    if name == "show":
        return _part(word)
    if name == "engine":
        return word, [(variable, "Engine") for variable in variables if variable.startswith(word)]
    # What follows "=" in a choice is a placeholder.
    words = [re.sub("(?<==).*", "", str(choice)) for choice in option.choices]
    return word, [(choice, "value") for choice in words if choice.lower().startswith(word.lower())]


def _connect(earlier: list[str], word: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the completions behind ``connect``: stores, then properties of the store.

    >>> _connect([], "ice"), _connect(["sqlite", "shop.db"], "cr")
    (('ice', [('iceberg', 'store')]), ('cr', [('create=', 'property')]))
    """
    from rowmerge_nb.base.errors import RowMergeError
    from rowmerge_nb.engine.catalog.store_registry import store_factory, store_names

    words = [part for part in earlier if part]
    if word.startswith("-"):
        options = ("--engine", "--password")
        return word, [(option, "option") for option in options if option.startswith(word)]
    if not words:
        return word, [(store, "store") for store in store_names() if store.startswith(word)]
    try:
        properties = store_factory(words[0]).properties
    except RowMergeError:
        return word, []
    names = [name for name in properties if f"{name}=" not in " ".join(words)]
    return word, [(f"{name}=", "property") for name in names if name.startswith(word)]


def _part(word: str) -> tuple[str, list[tuple[str, str]]]:
    from rowmerge_nb.report.model.report import PARTS, PRESETS

    *earlier, last = word.split(",")
    labeled = [(part, "part of the report") for part in PARTS] + [
        (preset, "parts of the report") for preset in PRESETS
    ]
    return last, [
        (name, label)
        for name, label in labeled
        if name.startswith(last.lower()) and name not in earlier
    ]
