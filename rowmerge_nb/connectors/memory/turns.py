"""Turns: statements that change rows of one table wait for each other in order of arrival.

A change fails if the table changes between its read and its commit, so a slow statement would never
commit next to a fast one that is repeated. Appends do not conflict with each other, but wait for
earlier changes, which may not have read their rows yet.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from rowmerge_nb.spi import SchemaTableName

_LOOK_SECONDS: Final = 0.5
"""The interval at which a waiting statement checks whether the thread before it has died."""


@dataclass(frozen=True)
class _Ticket:
    """A transaction in a table's queue; ``exclusive`` if it is not an append."""

    transaction: int
    exclusive: bool
    thread: threading.Thread = field(default_factory=threading.current_thread)


class Turns:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queues: dict[SchemaTableName, list[_Ticket]] = {}

    def wait(
        self, name: SchemaTableName, transaction: int, seconds: float, *, exclusive: bool
    ) -> bool:
        """Return whether a transaction's turn has come in time.

        It stays in the queue in either case.

        ``exclusive``: it is not an append.
        """
        end = time.monotonic() + seconds
        with self._changed:
            queue = self._queues.setdefault(name, [])
            if all(ticket.transaction != transaction for ticket in queue):
                queue.append(_Ticket(transaction, exclusive))
            while _is_blocked(queue, transaction):
                rest = end - time.monotonic()
                if rest <= 0:
                    return False
                self._changed.wait(min(rest, _LOOK_SECONDS))
            return True

    def leave(self, transaction: int) -> None:
        with self._changed:
            for name, queue in list(self._queues.items()):
                rest = [ticket for ticket in queue if ticket.transaction != transaction]
                if rest:
                    # In place, because a waiting statement holds this list.
                    queue[:] = rest
                else:
                    queue.clear()
                    del self._queues[name]
            self._changed.notify_all()


def _is_blocked(queue: list[_Ticket], transaction: int) -> bool:
    own = next(ticket for ticket in queue if ticket.transaction == transaction)
    ahead = [
        ticket
        for ticket in takewhile(lambda ticket: ticket is not own, queue)
        if ticket.thread.is_alive()
    ]
    if any(ticket.thread is own.thread for ticket in ahead):
        return False
    return any(own.exclusive or ticket.exclusive for ticket in ahead)
