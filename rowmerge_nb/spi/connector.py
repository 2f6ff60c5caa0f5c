"""The connector: where the engine gets everything else from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from rowmerge_nb.errors import ConnectorError
from rowmerge_nb.spi.handles import ConnectorTransactionHandle
from rowmerge_nb.spi.layout import ConnectorNodePartitioningProvider

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.spi.page_sink import ConnectorPageSinkProvider
    from rowmerge_nb.spi.page_source import ConnectorPageSourceProvider, ConnectorSplitManager
    from rowmerge_nb.spi.procedures import Procedure

__all__ = ["Connector"]


class Connector(ABC):
    """A store that the engine can read and change. Lives on the driver; its providers travel to tasks.

    A connector that commits inside its finish calls leaves ``commit`` as it is.
    """

    name: str = "connector"
    """The kind of store, shown in reports: ``"memory"``, ``"hive"``, ..."""

    @abstractmethod
    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> ConnectorMetadata:
        """Give the metadata of one transaction."""

    @abstractmethod
    def get_split_manager(self) -> ConnectorSplitManager:
        """Give the split manager."""

    @abstractmethod
    def get_page_source_provider(self) -> ConnectorPageSourceProvider:
        """Give the provider that opens page sources in tasks."""

    def get_page_sink_provider(self) -> ConnectorPageSinkProvider:
        """Give the provider that makes sinks in tasks. Raises ConnectorError NOT_SUPPORTED by default."""
        msg = f"This connector does not support modifying table rows ({type(self).__name__} has no get_page_sink_provider)"
        raise ConnectorError(msg)

    def get_node_partitioning_provider(self) -> ConnectorNodePartitioningProvider:
        """Give the provider of bucket functions; by default one that has none."""
        return ConnectorNodePartitioningProvider()

    def get_table_properties(self) -> Mapping[str, Any]:
        """Give the properties that ``CREATE TABLE ... WITH`` accepts: name to one-line description."""
        return {}

    def get_procedures(self) -> Sequence[Procedure]:
        """Give the procedures that ``CALL`` runs; by default there are none."""
        return ()

    def begin_transaction(self) -> ConnectorTransactionHandle:
        """Begin a transaction; each statement has its own."""
        return ConnectorTransactionHandle()

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Make everything done in the transaction last."""

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Undo everything done in the transaction, and remove what tasks have left behind."""

    def close(self) -> None:
        """Free what the connector holds; called when its engine is closed."""
