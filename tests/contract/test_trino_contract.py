"""The contract kit on the adapter of Trino's plugins, with a host without Java."""

from __future__ import annotations

import pytest

from rowmerge_nb.spi import ConnectorSession
from rowmerge_nb.testing.contract import ConnectorContract
from tests.connectors.trino.fake_connector import FakeTrinoConnector

SESSION = ConnectorSession("contract")


class SharedConnector(FakeTrinoConnector):
    """One process serves all checks, since each start takes half a second."""

    def close(self):
        """Keep the process for the next check."""


@pytest.fixture(scope="module", autouse=True)
def shared(tmp_path_factory):
    connector = SharedConnector(tmp_path_factory.mktemp("plugin"))
    TestFakePlugin.shared = connector
    yield
    FakeTrinoConnector.close(connector)


class TestFakePlugin(ConnectorContract):
    shared: FakeTrinoConnector | None = None

    def make_connector(self, folder):
        connector = self.shared
        transaction = connector.begin_transaction()
        metadata = connector.get_metadata(transaction)
        for name in metadata.list_tables(SESSION):
            metadata.drop_table(SESSION, metadata.get_table_handle(SESSION, name))
        connector.commit(transaction)
        return connector

    def leftovers(self, connector):
        return connector._transactions
