"""Interrupts of the keyboard while something is made that must not be left half done: they are put off until it is done.

A commit cannot be taken back. An interrupt in the middle of it would be told as a failure although the change may be there, and what was
told as failed is run again.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

__all__ = ["PATIENCE_SECONDS", "Interrupts", "WaitEndedError", "in_thread", "interrupts_put_off"]

T = TypeVar("T")

PATIENCE_SECONDS: Final = 10.0
"""After so long from the first interrupt a further one ends the wait."""


class WaitEndedError(KeyboardInterrupt):
    """The user does not want to wait for the end any longer; what is waited for goes on."""


class Interrupts:
    """The interrupts that were put off.

    Attributes:
        came: there was one.

    >>> interrupts = Interrupts()
    >>> interrupts.note()
    >>> interrupts.came
    True
    """

    def __init__(self) -> None:
        self.came = False
        self._first = 0.0

    def note(self, *_: Any) -> None:
        """Keep an interrupt in mind; also the handler of the signal.

        Raises:
            WaitEndedError: the first one came long ago.
        """
        now = time.monotonic()
        if self.came and now - self._first >= PATIENCE_SECONDS:
            raise WaitEndedError
        if not self.came:
            self.came, self._first = True, now


@contextmanager
def interrupts_put_off() -> Iterator[Interrupts]:
    """Keep SIGINT from raising; it tells afterwards whether one came.

    Signals reach the main thread alone, so that there is nothing to do in others. A handler that somebody else has installed gets the
    interrupt at the end; if it does not raise, the interrupt is its business and not ours.

    >>> with interrupts_put_off() as interrupts:
    ...     signal.raise_signal(signal.SIGINT)
    >>> interrupts.came
    True
    """
    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupts.note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts.came:
        try:
            before(signal.SIGINT, None)
        except KeyboardInterrupt:
            return
        interrupts.came = False


def in_thread(call: Callable[[], T]) -> T:
    """Make a call in a thread of its own and wait for it: a wait can be given up, a call that hangs cannot.

    Raises:
        WaitEndedError: the wait was given up; the call goes on.

    >>> in_thread(lambda: 7)
    7
    """
    answer: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(call())
        except BaseException as failure:  # noqa: BLE001 - it is raised in the caller's thread
            failures.append(failure)

    thread = threading.Thread(target=run, name="rowmerge_nb-commit", daemon=True)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return answer[0]
