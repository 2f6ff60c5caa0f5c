"""What a connector's code has raised, as it is told: cells by their names, the error's cause with the lines of the task that raised it."""

from __future__ import annotations

import linecache
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import code
from rowmerge_nb.engine.tasks.call_frames import code_around
from rowmerge_nb.trace.raised import CodeFrame, Raised, remote_traceback

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowmerge_nb.base.errors import RowMergeError

_CELL: Final = "Cell"


class RemoteTraceback(Exception):
    """The traceback of an error that was raised in a task, as the cause of the error that is raised here, as `concurrent.futures` has it.

    >>> print(RemoteTraceback((Raised("finish", "writer", 0, 1, "KeyError", "'a'"),)))
    <BLANKLINE>
    finish, call 1 of writer 0
    Traceback (most recent call last):
    KeyError: 'a'
    """

    def __init__(self, raised: tuple[Raised, ...]) -> None:
        super().__init__(raised)
        self.raised = raised

    def __str__(self) -> str:
        return "\n" + "\n\n".join(map(remote_traceback, self.raised))


def told(raised: Iterable[Raised]) -> tuple[Raised, ...]:
    """Name the cells that the lines are in, and add lines that a task could not read: those of cells are known here alone."""
    return tuple(
        replace(
            one,
            frames=tuple(map(_told_frame, one.frames)),
            causes=tuple(replace(cause, frames=tuple(map(_told_frame, cause.frames))) for cause in one.causes),
        )
        for one in raised
    )


def with_raised(error: RowMergeError, raised: tuple[Raised, ...]) -> RowMergeError:
    """Add to an error what the connector's code has raised: the line to its hint, and the lines of tasks as its cause.

    Args:
        error: the error that is raised here; of what was raised in this process it has the cause already.
        raised: what was raised, as `told` gives it.
    """
    error.raised = raised
    if raised and error.hint is None and (place := place_of(raised[0])):
        error.hint = f"It was raised in {place}"
    remote = tuple(one for one in raised if one.number is not None)
    if remote:
        error.__cause__ = RemoteTraceback(remote)
    return error


def place_of(raised: Raised) -> str:
    """Describe in which line an error was raised; ``""`` where that is not known.

    >>> frame = CodeFrame("shop.py", 34, "finish", ((34, "    return self.fragmnts"),))
    >>> place_of(Raised("finish", "writer", 0, 1, "AttributeError", "no fragmnts", (frame,)))
    'shop.py, line 34, in finish: `return self.fragmnts`'
    """
    if not raised.frames:
        return ""
    frame = raised.frames[-1]
    return f"{frame.place}: {code(frame.text)}" if frame.text else frame.place


def _told_frame(frame: CodeFrame) -> CodeFrame:
    lines = frame.code or code_around(frame.file, frame.line)
    return replace(frame, file=_cell_name(frame.file) or frame.file, code=lines)


def _cell_name(file: str) -> str:
    """Return the name of the notebook's cell that Python knows as a file; ``""`` of what is none."""
    if file not in linecache.cache or "IPython" not in sys.modules:
        return ""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    if shell is None:
        return ""
    found = shell.compile.format_code_name(file)
    return f"cell {found[1]}" if found is not None and found[0] == _CELL else ""
