"""A cell of nothing but its line of ``%%merge``: IPython takes such a cell for a mistake, so it is read as ``%merge``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_FIRST: Final = re.compile(r"%%merge(?=\s|$)")


def line_for_empty_cell(lines: list[str]) -> list[str]:
    r"""Turn a ``%%merge`` with no text below into the line magic; leave every other cell alone.

    >>> line_for_empty_cell(["%%merge --help\n", "\n"]), line_for_empty_cell(["%%merge\n", "DROP TABLE t\n"])
    (['%merge --help\n'], ['%%merge\n', 'DROP TABLE t\n'])
    """
    written = [line for line in lines if line.strip()]
    if len(written) == 1 and _FIRST.match(written[0]):
        return [written[0].rstrip("\n").removeprefix("%") + "\n"]
    return lines


def register(shell: InteractiveShell) -> None:
    """Add it to a shell; a second registration changes nothing."""
    unregister(shell)
    shell.input_transformers_cleanup.append(line_for_empty_cell)


def unregister(shell: InteractiveShell) -> None:
    """Take it out of a shell."""
    kept = [known for known in shell.input_transformers_cleanup if getattr(known, "__name__", "") != "line_for_empty_cell"]
    shell.input_transformers_cleanup[:] = kept
