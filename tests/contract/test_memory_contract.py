"""The contract kit on tables in memory, whose statements may ask for either paradigm."""

from __future__ import annotations

from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.testing.contract import ConnectorContract


class TestMemory(ConnectorContract):
    layouts = {
        "plain": {},
        "partitioned": {"partitioned_by": ("name",)},
        "transformed": {"partitioned_by": ("bucket(id, 3)", "truncate(name, 1)")},
        "bucketed": {"bucketed_by": ("id", "name"), "bucket_count": 4},
    }
    paradigms = ("DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS")

    def make_connector(self, folder):
        return MemoryConnector()

    def leftovers(self, connector):
        return connector._transactions
