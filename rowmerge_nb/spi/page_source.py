"""Reading: splits, and the page sources that read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rowmerge_nb.spi.handles import (
        ColumnHandle,
        ConnectorSession,
        ConnectorSplit,
        ConnectorTableHandle,
        ConnectorTransactionHandle,
    )
    from rowmerge_nb.spi.page import Page


@dataclass(frozen=True)
class ColumnDomain:
    """The relevant values of a column: a set, or a range. NULL is never relevant.

    >>> ColumnDomain(low=4).overlaps(1, 3), ColumnDomain(values=(2, 9)).overlaps(1, 3)
    (False, True)
    """

    values: tuple[Any, ...] | None = None
    low: Any = None
    high: Any = None

    def overlaps(self, low: Any, high: Any) -> bool:
        """Return whether a value from ``low`` to ``high`` may be relevant; True if it cannot be
        compared.
        """
        with suppress(TypeError):
            if self.low is not None and high < self.low:
                return False
            if self.high is not None and low > self.high:
                return False
            if self.values is not None:
                return any(low <= value <= high for value in self.values)
        return True


@dataclass(frozen=True)
class Constraint:
    """An advisory predicate: the engine applies it again to the rows.

    >>> Constraint().domains
    {}
    """

    domains: Mapping[str, ColumnDomain] = field(default_factory=dict)


class ConnectorSplitManager(ABC):
    """Divides a table into splits for tasks. It stays on the driver."""

    @abstractmethod
    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[ConnectorSplit]:
        """Return the splits of a table; their order must be the same in every call with one handle."""


class ConnectorPageSource(ABC):
    """Reads one split: the same rows in the same order each time, for any columns."""

    @abstractmethod
    def get_next_page(self) -> Page | None:
        """Return the next page, with the requested columns in their order; None at the end.

        The source must not modify the page or its buffers afterwards.
        """

    def close(self) -> None:
        """Free resources, once, after the last page or a failure."""


class PagesSource(ConnectorPageSource):
    """A page source over an iterable of pages.

    >>> source = PagesSource([])
    >>> source.get_next_page() is None
    True
    """

    def __init__(self, pages: Iterable[Page]) -> None:
        self._pages: Iterator[Page] = iter(pages)

    def get_next_page(self) -> Page | None:
        """Return the next page of the iterable."""
        return next(self._pages, None)


class ConnectorPageSourceProvider(ABC):
    """Opens page sources. Instances are pickled to tasks."""

    @abstractmethod
    def create_page_source(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorPageSource:
        """Open a source of these columns, including the row id for the target of a MERGE."""
