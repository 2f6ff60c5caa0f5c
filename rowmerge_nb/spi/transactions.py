"""The open transactions of a connector, by number."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rowmerge_nb.spi.handles import ConnectorTransactionHandle, own

T = TypeVar("T")


@dataclass(frozen=True)
class NumberedTransactionHandle(ConnectorTransactionHandle):
    """A numbered transaction; handles of other types of connector (``store``) are rejected."""

    store: str
    number: int


class Transactions(dict[int, T]):
    """The open transactions of a connector, by number; thread-safe.

    >>> transactions = Transactions[str]("shop")
    >>> handle = transactions.begin(lambda number: f"transaction {number}")
    >>> handle.number, transactions.of(handle)
    (1, 'transaction 1')
    >>> transactions.of(Transactions[str]("lake").begin(str))
    Traceback (most recent call last):
    TypeError: NumberedTransactionHandle(store='lake', number=1) is not a transaction of this connector
    """

    def __init__(self, store: str) -> None:
        super().__init__()
        self._store = store
        self._numbers = itertools.count(1)

    def begin(self, new_transaction: Callable[[int], T]) -> NumberedTransactionHandle:
        """Build a transaction from its number, and return its handle."""
        handle = NumberedTransactionHandle(self._store, next(self._numbers))
        self[handle.number] = new_transaction(handle.number)
        return handle

    def number(self, handle: ConnectorTransactionHandle) -> int:
        """Return the number of a transaction, open or ended; raise TypeError for other connectors."""
        numbered = own(handle, NumberedTransactionHandle)
        if numbered.store != self._store:
            raise TypeError(f"{handle!r} is not a transaction of this connector")
        return numbered.number

    def of(self, handle: ConnectorTransactionHandle) -> T:
        """Return an open transaction; raise KeyError if it has ended, TypeError for other
        connectors.
        """
        return self[self.number(handle)]
