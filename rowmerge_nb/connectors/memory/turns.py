"""Turns: statements that change the rows of one table wait for each other in the order in which they came.

A statement that changes rows fails if the table changes between its read and its commit. So a slow statement would never get to its commit
beside a fast one that is run again and again. In a queue each of them has the table to itself for as long as it needs.

An append conflicts with nothing, so appends do not wait for each other. They wait for changes that came before them: a reader may see an
append that has not waited, and the change, which has not read its rows, would then have to fail.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import SchemaTableName

_LOOK_SECONDS: Final = 0.5
"""How often a waiting statement checks whether the thread before it has died."""


@dataclass(frozen=True)
class _Place:
    """A place in the queue of a table.

    Args:
        transaction: the number of the transaction.
        alone: it changes rows, and is not an append.
        thread: the thread that waits in it, or runs in it.
    """

    transaction: int
    alone: bool
    thread: threading.Thread = field(default_factory=threading.current_thread)


class Turns:
    """The queues of all tables of a connector."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queues: dict[SchemaTableName, list[_Place]] = {}

    def wait(self, name: SchemaTableName, transaction: int, seconds: float, *, alone: bool) -> bool:
        """Return whether the turn of a transaction has come within some seconds.

        The transaction keeps its place until it leaves, also where its turn has not come yet.

        Args:
            name: the table.
            transaction: the number of the transaction.
            seconds: how long to wait; 0 only to look.
            alone: the transaction changes rows; False for an append.

        >>> turns = Turns()
        >>> turns.wait("t", 1, 0, alone=True)
        True
        """
        end = time.monotonic() + seconds
        with self._changed:
            queue = self._queues.setdefault(name, [])
            if all(place.transaction != transaction for place in queue):
                queue.append(_Place(transaction, alone))
            while _is_blocked(queue, transaction):
                rest = end - time.monotonic()
                if rest <= 0:
                    return False
                self._changed.wait(min(rest, _LOOK_SECONDS))
            return True

    def leave(self, transaction: int) -> None:
        """Release all places of a transaction."""
        with self._changed:
            for name, queue in list(self._queues.items()):
                rest = [place for place in queue if place.transaction != transaction]
                if rest:
                    # In place: a waiting statement holds this very list.
                    queue[:] = rest
                else:
                    queue.clear()
                    del self._queues[name]
            self._changed.notify_all()


def _is_blocked(queue: list[_Place], transaction: int) -> bool:
    """Return whether a transaction has to wait for one before it.

    A place of this very thread is not waited for, since nothing but this thread could end it; one of a dead thread will never end.
    """
    own = next(place for place in queue if place.transaction == transaction)
    ahead = [place for place in takewhile(lambda place: place is not own, queue) if place.thread.is_alive()]
    if any(place.thread is own.thread for place in ahead):
        return False
    return any(own.alone or place.alone for place in ahead)
