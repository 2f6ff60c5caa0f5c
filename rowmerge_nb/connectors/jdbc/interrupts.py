"""Driver calls that a keyboard interrupt can stop.

In the main thread, ADBC turns SIGINT into a cancellation, which SQLite's driver does not support.
So calls run in a thread, and the main thread waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, TypeVar

T = TypeVar("T")

_WAIT_SECONDS: Final = 0.1
"""How long an interrupt may go unseen that arrives as the main thread begins to wait."""


def interruptible(call: Callable[[], T], cancel: Callable[[], object]) -> T:
    """Run a call and return its result; ``cancel`` asks the driver to end it, from another
    thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    answer: Future[T] = Future()
    begin = threading.Event()
    is_abandoned: list[bool] = []

    def run() -> None:
        begin.wait()
        if is_abandoned:
            return
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
            answer.set_exception(error)

    thread = threading.Thread(target=run, name="rowmerge_nb-database", daemon=True)
    started = False
    try:
        thread.start()
        started = True
        begin.set()
        # Not join(): before Python 3.13, a thread counts as ended if join() was interrupted.
        while not answer.done():
            with suppress(TimeoutError):
                answer.exception(_WAIT_SECONDS)
    except KeyboardInterrupt:
        if not started:
            is_abandoned.append(True)
            begin.set()
            raise
        begin.set()
        with suppress(Exception):
            cancel()
        answer.exception()
        raise
    return answer.result()
