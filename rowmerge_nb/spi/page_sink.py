"""Sinks, which store pages in tasks and return fragments to the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import ConnectorError

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import (
        ConnectorInsertTableHandle,
        ConnectorMergeTableHandle,
        ConnectorSession,
        ConnectorTransactionHandle,
        Fragments,
    )
    from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
    from rowmerge_nb.spi.page import Page


class ConnectorPageSink(ABC):
    """Stores rows to insert."""

    @abstractmethod
    def append_page(self, page: Page) -> None:
        """Store a page of all table columns in table order; see
        `ConnectorMergeSink.store_merged_rows`.
        """

    @abstractmethod
    def finish(self) -> Fragments:
        """Return the fragments; see `ConnectorMergeSink.finish`."""

    def abort(self) -> None:
        """Discard the rows; called instead of ``finish``, or after it failed."""


class ConnectorPageSinkProvider:
    """Creates sinks. Instances are pickled to tasks."""

    def create_page_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
    ) -> ConnectorPageSink:
        """Create a sink for an INSERT.

        Raises:
            ConnectorError: NOT_SUPPORTED by default.
        """
        raise ConnectorError(
            f"This connector does not support inserts ({type(self).__name__} has no"
            " create_page_sink)"
        )

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> ConnectorMergeSink:
        """Create a sink for a MERGE (design documents, "ConnectorPageSinkProvider API").

        Raises:
            ConnectorError: NOT_SUPPORTED by default.
        """
        raise ConnectorError(
            f"This connector does not support modifying table rows ({type(self).__name__} has no"
            " create_merge_sink)"
        )
