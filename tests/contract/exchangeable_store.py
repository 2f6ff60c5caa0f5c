"""A connector with exchangeable parts, which can be broken, and the contract kit on it."""

from __future__ import annotations

from typing import Any, ClassVar

from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector, MemorySplitManager
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.connectors.memory.partitioning import MemoryPartitioningProvider
from rowmerge_nb.connectors.memory.reading import MemoryPageSourceProvider
from rowmerge_nb.connectors.memory.writing import MemoryMergeSink, MemoryPageSinkProvider
from rowmerge_nb.spi import SchemaTableName
from rowmerge_nb.testing.contract import ConnectorContract

TABLE = SchemaTableName("default", "contract")
STORES: list[MemoryConnector] = []
"""The one connector of the current check: some bugs need to reach it from the code of a task."""


class Store(MemoryConnector):
    """A memory connector with exchangeable parts."""

    def __init__(self, parts: dict[str, Any]) -> None:
        super().__init__()
        self.parts = parts
        STORES[:] = [self]

    def get_metadata(self, transaction_handle):
        kind = self.parts.get("metadata", MemoryMetadata)
        return kind(self, self._transactions[transaction_handle.number])

    def get_split_manager(self):
        return self.parts.get("splits", MemorySplitManager)(self)

    def get_page_source_provider(self):
        return self.parts.get("sources", MemoryPageSourceProvider)()

    def get_page_sink_provider(self):
        return self.parts.get("sinks", MemoryPageSinkProvider)()

    def get_node_partitioning_provider(self):
        return self.parts.get("partitioning", MemoryPartitioningProvider)()

    def commit(self, transaction_handle):
        self.parts.get("commit", MemoryConnector.commit)(self, transaction_handle)

    def rollback(self, transaction_handle):
        self.parts.get("rollback", MemoryConnector.rollback)(self, transaction_handle)


class Kit(ConnectorContract):
    layouts = {"bucketed": {"bucketed_by": ("id",), "bucket_count": 4}}
    types = ("bigint", "timestamp(6)")
    parts: ClassVar[dict[str, Any]] = {}
    caught_by: ClassVar[set[str]] = set()

    def make_connector(self, folder):
        return Store(self.parts)

    def leftovers(self, connector):
        return connector._transactions


class Sinks(MemoryPageSinkProvider):
    """Creates another merge sink."""

    sink: Any = MemoryMergeSink

    def create_merge_sink(self, transaction_handle, session, merge_handle):
        return self.sink(len(merge_handle.get_table_handle().metadata.columns))
