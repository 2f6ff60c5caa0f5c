"""The contract kit on the keyed connector of sixty lines, as in a notebook cell."""

from __future__ import annotations

from rowmerge_nb.testing.contract import ConnectorContract
from rowmerge_nb.testing.examples import price_store


class TestKeyedCell(ConnectorContract):
    table = "default.prices"
    columns = {"id": "bigint", "price": "double"}
    keyed = True
    creates_tables = False
    inserts = False

    def make_connector(self, folder):
        return price_store.STORE

    def make_table(self, connector, metadata, rows):
        connector.rows = dict(rows)
