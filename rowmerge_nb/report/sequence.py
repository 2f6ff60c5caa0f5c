"""The base class of results that are sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class ShownSequence(Sequence[T_co], Generic[T_co]):
    """An immutable sequence; subclasses define its display.

    >>> words = ShownSequence(["page", "sink"])
    >>> len(words), words[0], words[1:]
    (2, 'page', ('sink',))
    """

    def __init__(self, items: Sequence[T_co]) -> None:
        self._items = tuple(items)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)
