"""What a connector's own code has raised, as plain data: the error, the lines that it went through, and what the call was given."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa


@dataclass(frozen=True)
class CodeFrame:
    """A line of the connector's code that an error went through.

    Args:
        file: the file's path; of a notebook's cell its name, ``cell In[3]``.
        line: the line's number in it.
        function: the function that it is in.
        code: the line and its neighbours, each with its number; empty where the file cannot be read.

    >>> frame = CodeFrame("shop.py", 34, "finish", ((33, "def finish(self):"), (34, "    return self.fragmnts")))
    >>> frame.text, frame.place
    ('return self.fragmnts', 'shop.py, line 34, in finish')
    """

    file: str
    line: int
    function: str
    code: tuple[tuple[int, str], ...] = ()

    @property
    def text(self) -> str:
        """The line itself, without the blanks around it; ``""`` where it is not known."""
        return next((text.strip() for number, text in self.code if number == self.line), "")

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"{self.file}, line {self.line}, in {self.function}"


@dataclass(frozen=True)
class RaisedFrom:
    """An error that another one was raised from, or that was being handled when the other one was raised.

    Args:
        error: the name of the error's class.
        text: what the error says.
        frames: as those of `Raised`.
        direct: whether the code says so, by ``raise ... from error``.

    >>> RaisedFrom("KeyError", "'nmae'").what
    "KeyError: 'nmae'"
    """

    error: str
    text: str
    frames: tuple[CodeFrame, ...] = ()
    direct: bool = True

    @property
    def what(self) -> str:
        """The error in one line, as Python tells it."""
        return _what(self.error, self.text)


@dataclass(frozen=True)
class Raised:
    """What one call of the contract has raised.

    Args:
        method: the call, by its name in the contract.
        caller: who made it: ``coordinator``, ``writer``, or of a call that reads ``split``.
        number: which writer or split it was; None for the coordinator.
        call: which of its calls of this name it was, counted from 1.
        error: the name of the error's class.
        text: what the error says.
        frames: the lines of the connector's code that it went through, the innermost last; none of this package's, none of a library's.
        page: the first rows of the page that the call was given; None where it was given none, and where they are too large to be kept.
        rows: how many rows that page has; None without a page.
        handle: the handle as its ``repr`` shows it, cut where it is long; ``""`` where the call has none.
        causes: the errors that it was raised from, each from the one after it.

    >>> raised = Raised("store_merged_rows", "writer", 0, 2, "KeyError", "'nmae'")
    >>> raised.where, raised.what
    ('call 2 of writer 0', "KeyError: 'nmae'")
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

    @property
    def where(self) -> str:
        """Which call it was, in words."""
        who = f"the {self.caller}" if self.number is None else f"{self.caller} {self.number}"
        return f"call {self.call} of {who}"

    @property
    def what(self) -> str:
        """The error in one line, as Python tells it."""
        return _what(self.error, self.text)


def _what(error: str, text: str) -> str:
    return f"{error}: {text}" if text else error


def remote_traceback(raised: Raised) -> str:
    r"""Write what was raised in a task as Python writes a traceback.

    >>> frame = CodeFrame("shop.py", 34, "finish", ((34, "    return self.fragmnts"),))
    >>> print(remote_traceback(Raised("finish", "writer", 0, 1, "AttributeError", "no fragmnts", (frame,))))
    finish, call 1 of writer 0
    Traceback (most recent call last):
      File "shop.py", line 34, in finish
        return self.fragmnts
    AttributeError: no fragmnts
    """
    lines = [f"{raised.method}, {raised.where}"]
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
    """Write what was raised as one word, for where nothing but the text of an error travels; without the page.

    >>> raised = Raised("finish", "writer", 0, 1, "KeyError", "'a'", causes=(RaisedFrom("OSError", "the disk is full"),))
    >>> of_text("An error of Spark's " + as_text(raised)) == (raised,)
    True
    """
    causes = [{**vars(cause), "frames": _plain(cause.frames)} for cause in raised.causes]
    content = {**vars(raised), "page": None, "frames": _plain(raised.frames), "causes": causes}
    return f"[[raised {b64encode(json.dumps(content).encode()).decode()}]]"


def of_text(text: str) -> tuple[Raised, ...]:
    """Find in the text of an error what `as_text` has written; what stands there twice is given once."""
    found = []
    for word in dict.fromkeys(_TEXT.findall(text)):
        content = json.loads(b64decode(word))
        causes = tuple(RaisedFrom(**{**cause, "frames": _frames(cause["frames"])}) for cause in content["causes"])
        found.append(Raised(**{**content, "frames": _frames(content["frames"]), "causes": causes}))
    return tuple(found)


def _plain(frames: tuple[CodeFrame, ...]) -> list[list[Any]]:
    return [[*vars(frame).values()] for frame in frames]


def _frames(plain: list[list[Any]]) -> tuple[CodeFrame, ...]:
    return tuple(
        CodeFrame(file, line, function, tuple((number, text) for number, text in code)) for file, line, function, code in plain
    )
