"""Faults on purpose, as they strike in tasks: what a connector gives is wrapped, and travels so; each call is noted in a diary.

The diary is a file that driver and workers share, so that calls are counted over all processes.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class InjectedFault(Exception):
    """What a fault raises that a statement was given: no error of the connector's."""


class _Unset(Enum):
    """Stands for "nothing"; an enumeration, because its member is itself again in another process."""

    UNSET = 0


UNSET: Final = _Unset.UNSET


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and when.

    Args:
        step: the contract's method that goes wrong: ``begin_merge``, ``store_merged_rows``, ``get_next_page``, ``commit``, ...
        call: which of its calls, counted from 1 over all processes; None for each of them.
        after: the connector does its work before it goes wrong.
        error: makes what is raised out of the message.
        message: the message.
        gives: what the step gives instead of raising.
        exits: the process dies, as a worker does that runs out of memory; a call on the driver is refused instead.
        seconds: the call takes so much longer, and nothing else goes wrong.
        twice: the call is made twice, and the second answer counts; a page that is read has its rows twice.
        text: how it was written, where it was; for messages.

    >>> Fault("finish", call=2).strikes("finish", 2), Fault("finish", call=2).strikes("finish", 3)
    (True, False)
    >>> Fault("commit", twice=True).around(lambda: print("committed"), lambda: None)
    committed
    committed
    """

    step: str
    call: int | None = None
    after: bool = False
    error: Callable[[str], BaseException] = OSError
    message: str = "the disk is full"
    gives: Any = UNSET
    exits: bool = False
    seconds: float = 0.0
    twice: bool = False
    text: str = ""

    def strikes(self, step: str, number: int) -> bool:
        """Return whether this call is the one that goes wrong."""
        return step == self.step and self.call in {None, number}

    @property
    def what(self) -> str:
        """What goes wrong, as a sentence without its full stop.

        >>> Fault("finish", call=2, after=True).what, Fault("commit", twice=True).what
        ('call 2 of finish raised an error after its work', 'every call of commit was made twice')
        """
        call = f"call {self.call} of {self.step}" if self.call else f"every call of {self.step}"
        if self.twice:
            return f"{call} was made twice" if self.step != READING else f"{call} gave its rows twice"
        does = "raised an error"
        if self.exits:
            does = "killed its worker"
        elif self.seconds:
            does = f"waited {self.seconds:g} s"
        elif self.gives is not UNSET:
            does = "gave something else"
        again = "; Spark runs such a task again" if self.exits else ""
        return f"{call} {does} {'after' if self.after else 'before'} its work{again}"

    def around(self, make: Callable[[], Any], tell: Callable[[], object]) -> Any:
        """Make the call that goes wrong.

        Args:
            make: makes it.
            tell: is called when it goes wrong.
        """
        if self.twice:
            given = make()
            tell()
            if self.step != READING:
                return make()
            return given if given is None else pa.concat_batches([given, given])
        given = make() if self.after else UNSET
        tell()
        if self.exits:
            _die()
        if self.seconds:
            time.sleep(self.seconds)
            return given if self.after else make()
        if self.gives is UNSET:
            raise self.error(self.message)
        return self.gives


READING: Final = "get_next_page"
"""The step that gives rows: made twice it would lose a page, so that the same rows are given twice instead."""


def _die() -> None:
    """End this process, which is a worker."""
    # Who runs no Spark at all has made the process to be killed, as tests of locks do.
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and pyspark.TaskContext.get() is None:
        raise ConnectorError(
            "The call that was to kill its worker was made on the driver, which is not killed",
            hint="Small tables are read on the driver. Take a call of a sink, or a larger table.",
        )
    os._exit(1)


_noted: Final[list[str]] = []
_unwatched: Final = ContextVar("unwatched", default=False)


def noted() -> str:
    """Return what of faults has struck in this process since this was asked last and raised nothing; ``""`` for nothing.

    >>> noted()
    ''
    """
    told = ", ".join(_noted)
    _noted.clear()
    return told


@contextmanager
def unwatched() -> Iterator[None]:
    """Let calls pass that are none of the statement's: they are not counted, and no fault strikes them."""
    token = _unwatched.set(True)
    try:
        yield
    finally:
        _unwatched.reset(token)


@dataclass(frozen=True)
class Watch:
    """What all wrapped objects share; travels to tasks.

    Args:
        diary: the path of the file in which calls are noted.
        fault: what goes wrong, if anything does.
    """

    diary: str
    fault: Fault | None

    def call(self, step: str, function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """Note a call, make it, or go wrong."""
        make = partial(function, *arguments, **more)
        if _unwatched.get():
            return make()
        number = self._note(step)
        if self.fault is None or not self.fault.strikes(step, number):
            given = make()
        else:
            given = self.fault.around(make, self._strike)
            if given is self.fault.gives:
                return given
        return _Watched(given, self) if step in _MAKERS and given is not None else given

    @property
    def strikes(self) -> Path:
        """The file that has a line for each time the fault has struck."""
        return Path(f"{self.diary}-strikes")

    def _strike(self) -> None:
        """Note that the fault strikes, before anything comes of it: the process may be about to die."""
        with self.strikes.open("ab", buffering=0) as file:
            file.write(b"struck\n")
        if self.fault is not None and (self.fault.twice or self.fault.seconds):
            _noted.append(self.fault.text or self.fault.what)

    def _note(self, step: str) -> int:
        """Write a line into the diary; give the number of this call among those of the same step."""
        # One short write to a file opened for appending stays in one piece, whoever else writes.
        with Path(self.diary).open("ab", buffering=0) as file:
            file.write(f"{step}\n".encode())
            end = file.tell()
        with Path(self.diary).open("rb") as file:
            return file.read(end).split(b"\n").count(step.encode())


class _Watched:
    """Passes every call on, by way of the watch; for ``isinstance`` it is what it is wrapped around."""

    def __init__(self, inner: Any, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        if name in {"_inner", "_watch"}:
            raise AttributeError(name)
        value = getattr(self._inner, name)
        if not callable(value) or name.startswith("_"):
            return value
        return lambda *arguments, **more: self._watch.call(name, value, *arguments, **more)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._inner)

    def __reduce__(self) -> tuple[Any, ...]:
        return _watched, (self._inner, self._watch)


def _watched(inner: Any, watch: Watch) -> _Watched:
    return _Watched(inner, watch)


_MAKERS: Final = frozenset(
    {
        "get_metadata",
        "get_split_manager",
        "get_page_source_provider",
        "get_page_sink_provider",
        "get_node_partitioning_provider",
        "get_bucket_function",
        "create_page_source",
        "create_page_sink",
        "create_merge_sink",
    }
)
"""Steps whose result is wrapped in its turn."""
