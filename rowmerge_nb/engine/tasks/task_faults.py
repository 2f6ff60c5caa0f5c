"""Injected faults: wrappers around a connector's objects that log each call.

Driver and workers share the log file, so calls are counted over all processes.
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
from rowmerge_nb.engine.tasks.strikes import STRIKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class InjectedFault(Exception):
    """The error of an injected fault."""


class _Unset(Enum):
    """A sentinel for "nothing"; an enumeration keeps its identity when pickled."""

    UNSET = 0


UNSET: Final = _Unset.UNSET


@dataclass(frozen=True)
class Fault:
    """A fault, and the call that it affects.

    Args:
        call: the number of the call over all processes, from 1; None for each call.
        gives: a return value to use instead of raising.
        exits: kill the process; refused on the driver.
        seconds: delay the call instead of raising.
        twice: make the call twice and return the second result; a page that is read has its rows
            twice.
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
        return step == self.step and self.call in {None, number}

    @property
    def what(self) -> str:
        call = f"call {self.call} of {self.step}" if self.call else f"every call of {self.step}"
        if self.twice:
            return (
                f"{call} was made twice"
                if self.step != READING
                else f"{call} returned its rows twice"
            )
        effect = "raised an error"
        if self.exits:
            effect = "killed its worker"
        elif self.seconds:
            effect = f"waited {self.seconds:g} s"
        elif self.gives is not UNSET:
            effect = "gave something else"
        note = "; Spark runs such a task again" if self.exits else ""
        return f"{call} {effect} {'after' if self.after else 'before'} its work{note}"

    def around(self, make: Callable[[], Any], on_strike: Callable[[], object]) -> Any:
        if self.twice:
            result = make()
            on_strike()
            if self.step != READING:
                return make()
            return result if result is None else pa.concat_batches([result, result])
        result = make() if self.after else UNSET
        on_strike()
        if self.exits:
            _die()
        if self.seconds:
            time.sleep(self.seconds)
            return result if self.after else make()
        if self.gives is UNSET:
            raise self.error(self.message)
        return self.gives


READING: Final = "get_next_page"
"""The step that reads rows: calling it twice would lose a page, so its rows are repeated instead.
"""


def _die() -> None:
    # Without Spark, the process was created to be killed, for example by tests of locks.
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and pyspark.TaskContext.get() is None:
        raise ConnectorError(
            "The call that should kill its worker was made on the driver, which is not killed",
            hint="Small tables are read on the driver. Use a call of a sink, or a larger table.",
        )
    os._exit(1)


_unwatched: Final = ContextVar("unwatched", default=False)


@contextmanager
def unwatched() -> Iterator[None]:
    """Exempt internal calls: they are neither counted nor affected."""
    token = _unwatched.set(True)
    try:
        yield
    finally:
        _unwatched.reset(token)


@dataclass(frozen=True)
class Watch:
    """The shared state of all wrapped objects; picklable. `diary` is the path of the call log."""

    diary: str
    fault: Fault | None

    def call(self, step: str, function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """Log a call and make it, with the fault if it applies."""
        make = partial(function, *arguments, **more)
        if _unwatched.get():
            return make()
        number = self._note(step)
        if self.fault is None or not self.fault.strikes(step, number):
            result = make()
        else:
            result = self.fault.around(make, self._strike)
            if result is self.fault.gives:
                return result
        return _Watched(result, self) if step in _MAKERS and result is not None else result

    @property
    def strikes(self) -> Path:
        return Path(f"{self.diary}-strikes")

    def _strike(self) -> None:
        """Log the strike first: the process may be about to die."""
        with self.strikes.open("ab", buffering=0) as file:
            file.write(b"struck\n")
        if self.fault is not None and (self.fault.twice or self.fault.seconds):
            STRIKES.append(self.fault.text or self.fault.what)

    def _note(self, step: str) -> int:
        # A short append is atomic, even with concurrent writers.
        with Path(self.diary).open("ab", buffering=0) as file:
            file.write(f"{step}\n".encode())
            end = file.tell()
        with Path(self.diary).open("rb") as file:
            return file.read(end).split(b"\n").count(step.encode())


class _Watched:
    """Forwards calls through the watch; `isinstance` sees the wrapped object."""

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
"""Steps whose results are wrapped as well."""
