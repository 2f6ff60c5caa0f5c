"""Interrupting calls of Java whose caller has gone, such as those of a task that was cancelled."""

from __future__ import annotations

import select
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rowmerge_nb.connectors.trino.host.jvm import java_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject

_UNINTERRUPTED: Final = frozenset(
    {"finish_insert", "finish_merge", "finish_create_table", "commit", "rollback"}
)
"""Calls that may have changed the table: they go on to their end."""
_SECONDS: Final = 0.2


class AbandonedCalls:
    """Watches the connections of calls under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[int, JavaObject] = {}
        threading.Thread(target=self._watch, name="rowmerge_nb-watch", daemon=True).start()

    @contextmanager
    def watching(self, descriptor: int, call: object) -> Iterator[None]:
        """Interrupt the current thread in Java once the other side closes the connection."""
        if call in _UNINTERRUPTED:
            yield
            return
        thread = java_class("java.lang.Thread")
        with self._lock:
            self._threads[descriptor] = thread.currentThread()
        try:
            yield
        finally:
            with self._lock:
                self._threads.pop(descriptor, None)
            # The interrupt may have come too late for this call, and is not for the next one.
            thread.interrupted()

    def _watch(self) -> None:
        while True:
            threading.Event().wait(_SECONDS)
            with self._lock:
                for descriptor in _closed(list(self._threads)):
                    self._threads.pop(descriptor).interrupt()


def _closed(descriptors: list[int]) -> list[int]:
    """Return the connections that the other side has closed."""
    if not descriptors:
        return []
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLHUP)
    return [descriptor for descriptor, event in poll.poll(0) if event & select.POLLHUP]
