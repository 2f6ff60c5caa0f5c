"""Writing: the sinks that take pages in tasks, and the fragments that they hand to the driver."""

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
    """Takes rows to insert."""

    @abstractmethod
    def append_page(self, page: Page) -> None:
        """Take a page: all table columns in table order, never empty. The sink may keep it, and does not write into it."""

    @abstractmethod
    def finish(self) -> Fragments:
        """Return what was written. May be called on a truncated stream, and for several attempts of one task.

        Nothing that was written may be visible before the driver's ``finish_insert`` or ``finish_merge`` names it.
        """

    def abort(self) -> None:
        """Drop what was written; called instead of, or after a failed, ``finish``."""


class ConnectorPageSinkProvider:
    """Makes sinks. Instances travel to tasks by pickle."""

    def create_page_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
    ) -> ConnectorPageSink:
        """Make a sink for an INSERT.

        Raises:
            ConnectorError: NOT_SUPPORTED unless the connector overrides this method.
        """
        raise ConnectorError(f"This connector does not support inserts ({type(self).__name__} has no create_page_sink)")

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> ConnectorMergeSink:
        """Make a sink for a MERGE (design documents, "ConnectorPageSinkProvider API").

        Raises:
            ConnectorError: NOT_SUPPORTED unless the connector overrides this method.
        """
        raise ConnectorError(
            f"This connector does not support modifying table rows ({type(self).__name__} has no create_merge_sink)"
        )
