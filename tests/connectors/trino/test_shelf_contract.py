"""The contract kit on a Java plugin of our own, written for it."""

from __future__ import annotations

import pytest

import rowmerge_nb as rm
from rowmerge_nb.spi import ConnectorSession
from rowmerge_nb.testing.contract import ConnectorContract
from tests.connectors.trino.shelf_plugin import ShelfBuild

SESSION = ConnectorSession("contract")


class KeptConnector(rm.TrinoConnector):
    """A connector whose processes serve all checks."""

    def close(self):
        pass


@pytest.fixture(scope="module")
def shelf_connector(trino_home, java_home, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    build = ShelfBuild(trino_home / "lib", java_home, folder / "build")
    build.jar(folder / "plugin")
    connector = KeptConnector(
        "shelf",
        plugin=[folder / "plugin", *build.needed_jars],
        trino=trino_home / "lib",
        java=java_home,
        properties={"shelf.folder": folder / "data"},
        java_options=["-Xmx64m"],
    )
    yield connector
    connector.hosts.close()


class TestShelf(ConnectorContract):
    """Both paradigms, with and without buckets, and all types that the plugin stores."""

    layouts = {
        "plain": {},
        "buckets": {"buckets": 3, "paradigm": "CHANGE_ONLY_UPDATED_COLUMNS"},
    }
    types = (
        "boolean",
        "integer",
        "real",
        "double",
        "decimal(12,2)",
        "decimal(38,10)",
        "varchar",
        "char(4)",
        "varbinary",
        "date",
        "time(6)",
        "timestamp(6)",
        "timestamp(3) with time zone",
        "uuid",
    )

    @pytest.fixture(autouse=True)
    def _connector(self, shelf_connector):
        self.connector = shelf_connector

    def make_connector(self, folder):
        transaction = self.connector.begin_transaction()
        metadata = self.connector.get_metadata(transaction)
        if not metadata.schema_exists(SESSION, "default"):
            metadata.create_schema(SESSION, "default")
        for name in metadata.list_tables(SESSION):
            if name.schema == "default":
                metadata.drop_table(SESSION, metadata.get_table_handle(SESSION, name))
        self.connector.commit(transaction)
        return self.connector
