"""Where a connector's code was when it raised an error; and why it cannot stop in a debugger there."""

from __future__ import annotations

import sys
import sysconfig
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from traceback import FrameSummary, extract_tb
from typing import TYPE_CHECKING, Any, NoReturn

from rowmerge_nb.errors import ExecutionError
from rowmerge_nb.words import code

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["code_place", "no_breakpoints", "own_frame"]


def code_place(error: BaseException) -> str:
    """Say in which line of a connector's own code an error was raised; ``""`` where it was none of it.

    >>> code_place(ValueError("never raised"))
    ''
    """
    frame = own_frame(error)
    if frame is None:
        return ""
    text = f": {code(frame.line)}" if frame.line else ""
    return f"{frame.filename}, line {frame.lineno}, in {frame.name}{text}"


def own_frame(error: BaseException) -> FrameSummary | None:
    """Give the innermost frame of an error that is neither of this package nor of a library; None where there is none."""
    return next((frame for frame in reversed(extract_tb(error.__traceback__)) if _is_own(frame.filename)), None)


@cache
def _is_own(file: str) -> bool:
    """Tell whether a file is neither of this package nor of a library."""
    if file.startswith("<frozen"):
        return False
    paths = sysconfig.get_paths()
    others = [Path(__file__).parents[2], *(Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib"))]
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and pyspark.__file__:
        others.append(Path(pyspark.__file__).parent)
    return not any(Path(file).is_relative_to(other) for other in others)


@contextmanager
def no_breakpoints() -> Iterator[None]:
    """Make an error of a ``breakpoint()`` in a Spark task: nobody sits in front of a task."""
    pyspark = sys.modules.get("pyspark")
    if pyspark is None or pyspark.TaskContext.get() is None:
        yield
        return
    before, sys.breakpointhook = sys.breakpointhook, _refuse
    try:
        yield
    finally:
        sys.breakpointhook = before


def _refuse(*_: Any, **__: Any) -> NoReturn:
    msg = "breakpoint() cannot stop in a task: that runs in a process of Spark's, which no keyboard reaches"
    hint = (
        "%debug stops there, in this process; so does breakpoint() in a replay of the statement's record: "
        "rowmerge_nb.replay(error.result, connector)."
    )
    raise ExecutionError(msg, code="NOT_SUPPORTED", hint=hint)
