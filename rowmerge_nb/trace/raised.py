"""Errors of a connector's own code as plain data: the traceback, and the call's arguments."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence


CodeLines = tuple[tuple[int, str], ...]
"""Numbers and texts of lines."""
MOST_TEXT: Final = 1_000
_AROUND: Final = 2
"""Lines of context on each side of the line that raised the error."""


def lines_around(lines: Sequence[str], line: int) -> CodeLines:
    """Return a line and its neighbors by number, without common indentation."""
    if not 1 <= line <= len(lines):
        return ()
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    texts = [text.rstrip().expandtabs()[:MOST_TEXT] for text in lines[first - 1 : last]]
    shift = min((len(text) - len(text.lstrip()) for text in texts if text), default=0)
    return tuple((number, text[shift:]) for number, text in enumerate(texts, first))


@dataclass(frozen=True)
class CodeFrame:
    """A line of the connector's code in a traceback."""

    file: str
    line: int
    function: str
    code: tuple[tuple[int, str], ...] = ()

    @property
    def text(self) -> str:
        return next((text.strip() for number, text in self.code if number == self.line), "")

    @property
    def place(self) -> str:
        line = f", line {self.line}" if self.line else ""
        return f"{self.file}{line}, in {self.function}"


@dataclass(frozen=True)
class RaisedFrom:
    """The cause or context of an error; ``direct`` for ``raise ... from error``.

    >>> RaisedFrom("KeyError", "'nmae'").what
    "KeyError: 'nmae'"
    """

    error: str
    text: str
    frames: tuple[CodeFrame, ...] = ()
    direct: bool = True

    @property
    def what(self) -> str:
        """The error in one line, as Python prints it."""
        return _what(self.error, self.text)


@dataclass(frozen=True)
class Raised:
    """An error that a contract call raised.

    Args:
        call: the number of the caller's call of this method, from 1.
        page: the first rows of the page argument; None without one, or if too large.
        causes: the chain of causes, the nearest first.
        stack: all lines of the stack, as the connector's language prints them; empty for Python.
    """

    method: str
    caller: str
    number: int | None
    call: int
    error: str
    text: str
    frames: tuple[CodeFrame, ...] = ()
    page: pa.RecordBatch | None = None
    rows: int | None = None
    handle: str = ""
    causes: tuple[RaisedFrom, ...] = ()
    stack: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        who = f"the {self.caller}" if self.number is None else f"{self.caller} {self.number}"
        return f"call {self.call} of {who}"

    @property
    def what(self) -> str:
        """The error in one line, as Python prints it."""
        return _what(self.error, self.text)


def _what(error: str, text: str) -> str:
    return f"{error}: {text}" if text else error


def remote_traceback(raised: Raised) -> str:
    """Format an error of a task like Python's traceback, or as its own language prints it."""
    lines = [f"{raised.method}, {raised.where}"]
    if raised.stack:
        return "\n".join([*lines, *raised.stack])
    for cause in reversed(raised.causes):
        how = (
            "The above exception was the direct cause of the following exception:"
            if cause.direct
            else "During handling of the above exception, another exception occurred:"
        )
        lines += [*_traceback(cause), "", how, ""]
    return "\n".join([*lines, *_traceback(raised)])


def _traceback(raised: Raised | RaisedFrom) -> list[str]:
    lines = ["Traceback (most recent call last):"]
    for frame in raised.frames:
        lines.append(f'  File "{frame.file}", line {frame.line}, in {frame.function}')
        if frame.text:
            lines.append(f"    {frame.text}")
    return [*lines, raised.what]


_TEXT: Final = re.compile(r"\[\[raised ([A-Za-z0-9+/=]+)\]\]")


def as_text(raised: Raised) -> str:
    """Encode an error as one word within an error's text; the page is dropped."""
    causes = [{**vars(cause), "frames": _plain(cause.frames)} for cause in raised.causes]
    content = {**vars(raised), "page": None, "frames": _plain(raised.frames), "causes": causes}
    return f"[[raised {b64encode(json.dumps(content).encode()).decode()}]]"


def of_text(text: str) -> tuple[Raised, ...]:
    """Decode the errors of `as_text` in a text, without duplicates."""
    errors = []
    for word in dict.fromkeys(_TEXT.findall(text)):
        content = json.loads(b64decode(word))
        causes = tuple(
            RaisedFrom(**{**cause, "frames": _frames(cause["frames"])})
            for cause in content["causes"]
        )
        frames, stack = _frames(content["frames"]), tuple(content["stack"])
        errors.append(Raised(**{**content, "frames": frames, "causes": causes, "stack": stack}))
    return tuple(errors)


def _plain(frames: tuple[CodeFrame, ...]) -> list[list[Any]]:
    return [[*vars(frame).values()] for frame in frames]


def _frames(plain: list[list[Any]]) -> tuple[CodeFrame, ...]:
    return tuple(
        CodeFrame(file, line, function, tuple((number, text) for number, text in code))
        for file, line, function, code in plain
    )
