"""Presentation of errors that a connector's code raised, with names of notebook cells and remote
tracebacks.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import code
from rowmerge_nb.engine.tasks.call_frames import code_around
from rowmerge_nb.trace.raised import CodeFrame, Raised, RaisedFrom, remote_traceback

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowmerge_nb.base.errors import RowMergeError

SourceLines = Callable[[str, str, int], tuple[tuple[int, str], ...]]
"""Returns a line and its neighbors by file, function and number."""

_CELL: Final = "Cell"


class RemoteTraceback(Exception):
    """The traceback of an error in a task, as the cause of the local error, like that of
    `concurrent.futures`.

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


def with_code(raised: Iterable[Raised], source_lines: SourceLines) -> tuple[Raised, ...]:
    """Add what only this process knows: names and lines of cells, and lines of other languages."""

    def frames(one: Raised | RaisedFrom, *, is_python: bool) -> tuple[CodeFrame, ...]:
        if is_python:
            return tuple(map(_with_cell, one.frames))
        return tuple(_with_source(frame, source_lines) for frame in one.frames)

    return tuple(
        replace(
            one,
            frames=frames(one, is_python=not one.stack),
            causes=tuple(
                replace(cause, frames=frames(cause, is_python=not one.stack))
                for cause in one.causes
            ),
        )
        for one in raised
    )


def with_raised(error: RowMergeError, raised: tuple[Raised, ...]) -> RowMergeError:
    error.raised = raised
    if raised and error.hint is None and (source_line := place_of(raised[0])):
        error.hint = f"It was raised in {source_line}"
    remote = tuple(one for one in raised if one.number is not None)
    if remote:
        error.__cause__ = RemoteTraceback(remote)
    return error


def place_of(raised: Raised) -> str:
    if not raised.frames:
        return ""
    frame = raised.frames[-1]
    return f"{frame.place}: {code(frame.text)}" if frame.text else frame.place


def _with_cell(frame: CodeFrame) -> CodeFrame:
    lines = frame.code or code_around(frame.file, frame.line)
    return replace(frame, file=_cell_name(frame.file) or frame.file, code=lines)


def _with_source(frame: CodeFrame, source_lines: SourceLines) -> CodeFrame:
    try:
        lines = frame.code or source_lines(frame.file, frame.function, frame.line)
    except Exception:  # noqa: BLE001 - the error that is reported matters more
        lines = ()
    return replace(frame, code=lines)


def _cell_name(file: str) -> str:
    if file not in linecache.cache or "IPython" not in sys.modules:
        return ""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    if shell is None:
        return ""
    description = shell.compile.format_code_name(file)
    return f"cell {description[1]}" if description is not None and description[0] == _CELL else ""
