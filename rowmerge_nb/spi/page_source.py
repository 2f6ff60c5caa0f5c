"""Reading: splits and the page sources that read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
    """What a column's value must satisfy for a row to matter: one of some values, or within a range. NULL never does.

    Args:
        values: the values that matter; None if any value within the range does.
        low: smallest value that matters, None for no bound.
        high: largest value that matters, None for no bound.
    """

    values: tuple[Any, ...] | None = None
    low: Any = None
    high: Any = None


@dataclass(frozen=True)
class Constraint:
    """An advisory predicate: a connector may skip rows outside of it, and the engine applies the predicate again.

    >>> Constraint().domains
    {}
    """

    domains: Mapping[str, ColumnDomain] = field(default_factory=dict)


class ConnectorSplitManager(ABC):
    """Cuts a table into parts that tasks read on their own. Lives on the driver."""

    @abstractmethod
    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[ConnectorSplit]:
        """Return the splits of a table, in an order that does not change between calls for one handle."""


class ConnectorPageSource(ABC):
    """Reads one split, page by page: the same rows in the same order every time it is opened, whatever columns are asked for."""

    @abstractmethod
    def get_next_page(self) -> Page | None:
        """Return the next page, its channels the requested columns in their order; None at the end.

        A page is the engine's from then on: the source does not write into it or its buffers.
        """

    def close(self) -> None:
        """Free what the source holds; called once, after the last page or a failure."""


class PagesSource(ConnectorPageSource):
    """A page source over any iterable of pages; enough for connectors whose reader is a generator.

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
    """Opens page sources. Instances travel to tasks by pickle."""

    @abstractmethod
    def create_page_source(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorPageSource:
        """Open a source that gives these columns, the row id among them when the table is merged into."""
