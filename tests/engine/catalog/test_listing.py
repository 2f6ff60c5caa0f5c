"""The list of all tables."""

from __future__ import annotations

from typing import Any

from rowmerge_nb import Engine
from rowmerge_nb.errors import ConnectorError
from rowmerge_nb.spi import Connector, ConnectorMetadata, SchemaTableName


class Foreign(Connector, ConnectorMetadata):
    """A store with a table that cannot be read."""

    name = "foreign"
    get_metadata = lambda self, transaction: self
    get_split_manager = get_page_source_provider = lambda self: None
    list_tables = lambda self, session: [SchemaTableName("default", "parquet")]
    get_table_metadata = lambda self, session, table: None

    def get_table_handle(self, session: Any, name: Any) -> Any:
        raise ConnectorError("it is stored as Parquet")


def test_a_table_that_cannot_be_read_is_listed_without_its_columns() -> None:
    with Engine() as engine:
        engine.add_catalog("other", Foreign())
        assert [tuple(info) for info in engine.tables()] == [("other.default.parquet", "foreign", (), None, "")]
