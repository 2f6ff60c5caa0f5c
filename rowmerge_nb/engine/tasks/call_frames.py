"""Where a connector's call raised an error, and with which arguments; breakpoints in tasks."""

from __future__ import annotations

import linecache
import re
import sys
import sysconfig
from dataclasses import replace
from functools import cache
from pathlib import Path
from traceback import FrameSummary, extract_tb
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, error_text
from rowmerge_nb.trace.raised import MOST_TEXT, CodeFrame, Raised, RaisedFrom, lines_around

if TYPE_CHECKING:
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.trace.raised import CodeLines

_MOST_FRAMES: Final = 10
_MOST_CAUSES: Final = 5
_SHOWN_ROWS: Final = 5
_SHOWN_BYTES: Final = 1 << 16
_CLEANING: Final = frozenset({"abort", "rollback"})
"""Calls that follow a failure: their errors are always recorded, in addition to that failure."""


def raised_by(
    error: BaseException,
    method: str,
    *,
    caller: str,
    number: int | None = None,
    call: int = 1,
    page: Page | None = None,
    handle: object = None,
) -> Raised | None:
    """Record an error of a connector's own code; None for a `RowMergeError`, which has its own
    message.

    >>> raised_by(ValueError("never raised"), "finish", caller="writer") is None
    True
    """
    if isinstance(error, ConnectorError) and isinstance(error.code_error, Raised):
        return replace(
            error.code_error,
            method=method,
            caller=caller,
            number=number,
            call=call,
            page=_first_rows(page),
            rows=None if page is None else page.num_rows,
            handle=_handle_text(handle),
        )
    if isinstance(error, RowMergeError) or not isinstance(error, Exception | SystemExit):
        return None
    frames = _frames(error)
    if not frames and method not in _CLEANING:
        return None
    rows = None if page is None else page.num_rows
    context = (
        _first_rows(page),
        rows,
        _handle_text(handle),
        _causes(error, explicit=method in _CLEANING),
    )
    return Raised(
        method, caller, number, call, type(error).__name__, _text(error), frames, *context
    )


def _text(error: BaseException) -> str:
    return error_text(error).removeprefix(f"{type(error).__name__}: ")[:MOST_TEXT]


def _causes(error: BaseException, *, explicit: bool) -> tuple[RaisedFrom, ...]:
    """Return the causes of an error; with `explicit`, without implicit context.

    Errors of a cleanup call have the original failure as implicit context.
    """
    causes: list[RaisedFrom] = []
    visited = {id(error)}
    while len(causes) < _MOST_CAUSES:
        cause, direct = error.__cause__, True
        if cause is None and not error.__suppress_context__ and not explicit:
            cause, direct = error.__context__, False
        if cause is None or id(cause) in visited:
            break
        visited.add(id(cause))
        causes.append(RaisedFrom(type(cause).__name__, _text(cause), _frames(cause), direct))
        error = cause
    return tuple(causes)


def _frames(error: BaseException) -> tuple[CodeFrame, ...]:
    own = [frame for frame in extract_tb(error.__traceback__) if _is_own(frame.filename)]
    return tuple(
        CodeFrame(
            frame.filename,
            frame.lineno or 0,
            frame.name,
            code_around(frame.filename, frame.lineno or 0),
        )
        for frame in own[-_MOST_FRAMES:]
    )


def code_around(file: str, line: int) -> CodeLines:
    """Return a line of a file with its neighbors."""
    linecache.checkcache(file)
    return lines_around(linecache.getlines(file), line)


def _first_rows(page: Page | None) -> Page | None:
    if page is None:
        return None
    for rows in range(min(_SHOWN_ROWS, page.num_rows), 0, -1):
        # A slice would pickle the whole page.
        first = page.take(pa.array(range(rows), pa.int64()))
        if first.nbytes <= _SHOWN_BYTES:
            return first
    return None


def _handle_text(handle: object) -> str:
    """Return the repr of a handle, or its attributes if its class has no repr, without addresses.

    >>> class Handle:
    ...     def __init__(self): self.table = "t"
    >>> _handle_text(Handle())
    "Handle(table='t')"
    """
    if handle is None:
        return ""
    try:
        if type(handle).__repr__ is object.__repr__ and hasattr(handle, "__dict__"):
            text = f"{type(handle).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(handle).items())})"
        else:
            text = repr(handle)
    except Exception as error:  # noqa: BLE001 - a failing repr must not hide the error
        return f"{type(handle).__name__}, whose repr raises {type(error).__name__}"
    text = re.sub(r" at 0x[0-9a-f]+", "", text[: 2 * MOST_TEXT])
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def own_frame(error: BaseException) -> FrameSummary | None:
    return next(
        (frame for frame in reversed(extract_tb(error.__traceback__)) if _is_own(frame.filename)),
        None,
    )


@cache
def _is_own(file: str) -> bool:
    if file.startswith("<frozen"):
        return False
    paths = sysconfig.get_paths()
    others = [
        Path(__file__).parents[2],
        *(Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    ]
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and pyspark.__file__:
        others.append(Path(pyspark.__file__).parent)
    return not any(Path(file).is_relative_to(other) for other in others)
