"""Calls of a driver that an interrupt of the keyboard can reach.

In the main thread ADBC takes SIGINT away while a call lasts, and makes of it that the call is cancelled. SQLite's driver cannot do that: the
interrupt was told as an error of the database, of a call that had worked, or was lost. So calls are made in a thread of their own, and the
main thread waits for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def interruptible(call: Callable[[], T], cancel: Callable[[], object]) -> T:
    """Make a call and give what it gives.

    Args:
        call: makes it.
        cancel: asks the driver to end it, from another thread; it may refuse.

    Raises:
        KeyboardInterrupt: an interrupt came; the call has ended by then, whatever came of it. A further interrupt does not wait for that.

    >>> interruptible(lambda: 7, lambda: None)
    7
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    answer: Future[T] = Future()
    begin = threading.Event()
    given_up: list[bool] = []

    def run() -> None:
        begin.wait()
        if given_up:
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
        # Not by joining: a thread whose join() was interrupted counts as ended, before Python 3.13.
        answer.exception()
    except KeyboardInterrupt:
        if not started:
            given_up.append(True)
            begin.set()
            raise
        begin.set()
        with suppress(Exception):
            cancel()
        answer.exception()
        raise
    return answer.result()
