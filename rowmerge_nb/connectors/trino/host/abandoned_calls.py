"""Interrupting calls of a plugin whose caller has gone, such as after Ctrl-C in a notebook."""

from __future__ import annotations

import select
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

LOOK_SECONDS: Final = 0.2
"""The time between two looks at the connections."""
_CLOSED: Final[int] = getattr(select, "POLLRDHUP", select.POLLHUP)
"""The event of a connection that the other side has closed; only Linux has POLLRDHUP."""


class AbandonedCalls:
    """Interrupts a call once the other side has closed its connection.

    A caller waits for the answer of its call, and a connection has one call at a time. So a closed
    connection during a call means that the answer is not needed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[int, Callable[[], object]] = {}
        self._poll = select.poll()
        self._has_calls = threading.Event()
        threading.Thread(target=self._look, daemon=True, name="abandoned-calls").start()

    @contextmanager
    def watched(self, connection: socket.socket, interrupt: Callable[[], object]) -> Iterator[None]:
        number = connection.fileno()
        with self._lock:
            self._calls[number] = interrupt
            self._poll.register(number, _CLOSED)
            self._has_calls.set()
        try:
            yield
        finally:
            with self._lock:
                self._forget(number)

    def _forget(self, number: int) -> None:
        if self._calls.pop(number, None) is not None:
            self._poll.unregister(number)
        if not self._calls:
            self._has_calls.clear()

    def _look(self) -> None:
        pause = threading.Event()
        while True:
            self._has_calls.wait()
            with self._lock:
                for number, _ in self._poll.poll(0):
                    interrupt = self._calls.get(number)
                    self._forget(number)
                    if interrupt is not None:
                        interrupt()
            pause.wait(LOOK_SECONDS)
