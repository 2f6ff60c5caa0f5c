"""Reads a cell that is only a line of ``%%merge``, which IPython rejects, as ``%merge``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_FIRST: Final = re.compile(r"%%merge(?=\s|$)")


def line_for_empty_cell(lines: list[str]) -> list[str]:
    r"""Convert a ``%%merge`` without text below to the line magic; return other cells unchanged.

    >>> line_for_empty_cell(["%%merge --help\n", "\n"]), line_for_empty_cell(["%%merge\n", "DROP TABLE t\n"])
    (['%merge --help\n'], ['%%merge\n', 'DROP TABLE t\n'])
    """
    nonblank = [line for line in lines if line.strip()]
    if len(nonblank) == 1 and _FIRST.match(nonblank[0]):
        return [nonblank[0].rstrip("\n").removeprefix("%") + "\n"]
    return lines


def register(shell: InteractiveShell) -> None:
    """Add the transformer to a shell, once."""
    unregister(shell)
    shell.input_transformers_cleanup.append(line_for_empty_cell)


def unregister(shell: InteractiveShell) -> None:
    """Remove the transformer from a shell."""
    others = [
        transform
        for transform in shell.input_transformers_cleanup
        if getattr(transform, "__name__", "") != "line_for_empty_cell"
    ]
    shell.input_transformers_cleanup[:] = others
