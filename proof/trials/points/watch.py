"""Points: the counted operations of a statement, and a fault at one of them."""

from __future__ import annotations

import errno
import linecache
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, TypeVar

__all__ = ["BESIDE", "ENDING", "FAULTS", "LASTING", "LINE", "Fault", "Operation", "Point", "Watch"]

T = TypeVar("T")
_SECONDS: Final = 0.1
"""The maximum seconds that an operation of another thread waits for the main thread's interrupt."""

LINE: Final = "line"
"""SIGINT at a line of the package that the main thread runs from ``finish_merge`` on."""
ENDING: Final = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM}
"""The faults that end the process, and their signals."""
LASTING: Final = {"lasting": errno.ENOSPC, "read-only": errno.EROFS, "descriptors": errno.EMFILE}
"""Faults that also affect later operations of their kind, with their errors: no space, a read-only
disk, no descriptors.
"""
BESIDE: Final = ("reader", "remover")
"""Actions of another process at the point: it reads, or removes leftovers."""
FAULTS: Final = (*ENDING, "interrupt", "error", *LASTING, *BESIDE)
"""Faults at a point.

``error`` is an error that the operation itself may raise; after the point, it is a lost answer.
"""
_OPENING: Final = (
    "open",
    "connect",
    "OSFile",
    "memory_map",
    "listdir",
    "scandir",
    "create_dir",
    "ORCFile",
    "__init__",
)
_NOT_OPENING: Final = (".write", ".close", ".flush")
_DATABASE_WORDS: Final = {
    "lasting": "database or disk is full",
    "read-only": "attempt to write a readonly database",
    "descriptors": "unable to open database file",
}


@dataclass(frozen=True)
class Operation:
    """One operation of a disk or database.

    Args:
        name: its name, as ``os.rename`` or ``sqlite3 COMMIT``.
        about: its object: a path, a statement.
        error: returns the error of a failure.
        lasts: it also fails after an earlier permanent failure: a full disk, a lost database.
        on_failure: the store's own reaction to a permanent failure, called before the error is
            raised.
    """

    name: str
    about: str
    error: Callable[[], Exception]
    lasts: bool = True
    on_failure: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Point:
    """A counted operation.

    Args:
        number: its number within the statement, from 1.
        name: as of the operation.
        about: as of the operation.
        lasts: as of the operation.
    """

    number: int
    name: str
    about: str
    lasts: bool

    @property
    def opens(self) -> bool:
        """Whether the operation needs a descriptor."""
        return _opens(self.name)


def _opens(name: str) -> bool:
    return any(part in name for part in _OPENING) and not name.endswith(_NOT_OPENING)


@dataclass(frozen=True)
class Fault:
    """A fault and its position.

    Args:
        kind: one of `FAULTS`, or `LINE`.
        number: the point, or the executed line.
        after: it strikes after the operation.
    """

    kind: str
    number: int
    after: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {'after' if self.after else 'before'} point {self.number}"


class Watch:
    """Counts the operations of a statement, and strikes.

    Args:
        fault: what goes wrong; None for nothing.
        meet: is called at the point of a fault that is something another process does.

    Attributes:
        points: the operations so far, in their order.
        lines: how many lines the main thread has run since `trace_lines`.
        place: the line at which an interrupt came, if it came at one.

    >>> watch = Watch(Fault("error", 2))
    >>> operation = Operation("os.unlink", "/t/x", lambda: OSError(28, "No space left on device"))
    >>> with watch.watching():
    ...     watch.call(operation, str.upper, "done")
    ...     watch.call(operation, str.upper, "never done")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device
    >>> len(watch.points)
    2
    """

    def __init__(
        self, fault: Fault | None = None, meet: Callable[[], object] = lambda: None
    ) -> None:
        self.fault = fault
        self._meet = meet
        self.points: list[Point] = []
        self.lines = 0
        self.place = ""
        self.struck = False
        self._active = False
        self._lock = threading.Lock()
        self._within = threading.local()
        self._taken = threading.Event()

    @property
    def database_words(self) -> str:
        """SQLite's message for a fault."""
        return _DATABASE_WORDS.get("" if self.fault is None else self.fault.kind, "disk I/O error")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count while the context lasts; an interrupt raises KeyboardInterrupt in the main thread,
        as in a notebook.
        """

        def interrupted(*_: object) -> None:
            self._taken.set()
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, interrupted)
        self._active = True
        try:
            yield
        finally:
            self.end()
            signal.signal(signal.SIGINT, before)

    def end(self) -> None:
        """Stop counting and striking."""
        sys.settrace(None)
        self._active = False

    def trace_lines(self) -> None:
        """Count the package's lines in this thread from here on; an interrupt may come at one of
        them.
        """
        entered: set[tuple[int, int]] = set()

        def line(frame: FrameType, event: str, _: object) -> Any:
            if event == "line" and self._active and not _is_between(frame, entered):
                self.lines += 1
                if (
                    self.fault is not None
                    and self.fault.kind == LINE
                    and self.lines == self.fault.number
                ):
                    self.struck = True
                    self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                    signal.raise_signal(signal.SIGINT)
            return line

        def called(frame: FrameType, *_: object) -> Any:
            return line if _is_ours(frame) else None

        running: FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no other way to the frames that run already
        while running is not None:
            if _is_ours(running):
                running.f_trace = line
            running = running.f_back
        sys.settrace(called)

    def call(
        self, operation: Operation, function: Callable[..., T], *arguments: Any, **more: Any
    ) -> T:
        """Run an operation, or fail; nested operations are not counted."""
        if not self._active or getattr(self._within, "inside", False):
            return function(*arguments, **more)
        with self._lock:
            number = len(self.points) + 1
            self.points.append(Point(number, operation.name, operation.about, operation.lasts))
        fault = self.fault
        if fault is None or fault.kind == LINE:
            return self._done(function, *arguments, **more)
        if (fault.number == number and not fault.after) or (
            self.struck and self._lasts(fault, operation)
        ):
            self._strike(fault, operation)
        try:
            result = self._done(function, *arguments, **more)
        except Exception:
            # An operation that fails by itself keeps its error.
            if fault.number == number and fault.after:
                self.struck = True
                if fault.kind in {*ENDING, *BESIDE, "interrupt"}:
                    self._strike(fault, operation)
            raise
        if fault.number == number and fault.after:
            goes_on = fault.kind in BESIDE or (
                fault.kind == "interrupt"
                and threading.current_thread() is not threading.main_thread()
            )
            if not goes_on and all(result is not argument for argument in arguments):
                _lost(result)
            self._strike(fault, operation)
        return result

    def _done(self, function: Callable[..., T], *arguments: Any, **more: Any) -> T:
        self._within.inside = True
        try:
            return function(*arguments, **more)
        finally:
            self._within.inside = False

    def _strike(self, fault: Fault, operation: Operation) -> None:
        self.struck = True
        if fault.kind in ENDING:
            os.kill(os.getpid(), ENDING[fault.kind])
        elif fault.kind == "interrupt":
            self._interrupt()
        elif fault.kind in BESIDE:
            self._done(self._meet)
        else:
            if fault.kind == "lasting":
                self._done(operation.on_failure)
            error = operation.error()
            code = LASTING.get(fault.kind)
            raise (
                OSError(code, os.strerror(code), error.filename)
                if code and isinstance(error, OSError)
                else error
            )

    @staticmethod
    def _lasts(fault: Fault, operation: Operation) -> bool:
        """Return whether a permanent fault affects an operation."""
        if fault.kind == "descriptors":
            return _opens(operation.name)
        return fault.kind in LASTING and operation.lasts

    def _interrupt(self) -> None:
        """Send SIGINT to this process.

        The main thread receives it; operations of other threads wait for it.
        """
        if threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGINT)
        else:
            os.kill(os.getpid(), signal.SIGINT)
            self._taken.wait(_SECONDS)


def _is_between(frame: FrameType, entered: set[tuple[int, int]]) -> bool:
    """Return whether Python takes no signal at a line: at the exit of a ``with``, and in calls of
    the garbage collector.

    A trace function can raise there nevertheless; the context would never be left, or the interrupt
    would be lost.
    """
    if frame.f_back is not None and frame.f_back.f_code.co_filename.endswith(f"{os.sep}weakref.py"):
        return True
    at = id(frame), frame.f_lineno
    if not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
        return False
    is_entered = at in entered
    entered.add(at)
    return is_entered


def _is_ours(frame: FrameType) -> bool:
    return (
        f"{os.sep}rowmerge_nb{os.sep}" in frame.f_code.co_filename
        and f"{os.sep}testing{os.sep}" not in frame.f_code.co_filename
    )


def _lost(given: Any) -> None:
    """Close a lost result, which the error's traceback would keep open."""
    with suppress(Exception):
        given.close()
