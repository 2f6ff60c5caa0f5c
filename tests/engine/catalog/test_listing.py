"""The list of all tables."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, SqliteConnector
from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.spi import Connector, ConnectorMetadata, SchemaTableName


class Foreign(Connector, ConnectorMetadata):
    """A store with an unreadable table."""

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
        assert [tuple(info) for info in engine.tables()] == [
            ("other.default.parquet", "foreign", (), None, "")
        ]


def test_names_and_columns_are_listed_without_opening_other_tables_or_spark(
    tmp_path: Any,
) -> None:
    with Engine() as engine:
        engine.add_catalog("other", Foreign())
        engine.add_catalog("lite", SqliteConnector(tmp_path / "shop.db", create=True))
        engine.register("accounts", pa.table({"id": [1], "Odd name": ["x"]}))
        assert engine.names() == [
            ("accounts", "table"), ("default", "schema"), ("information_schema", "schema"),
            ("lite", "catalog"), ("memory", "catalog"), ("other", "catalog"),
        ]  # fmt: skip
        assert engine.names("other") == [("default", "schema"), ("information_schema", "schema")]
        assert ("tables", "table") in engine.names("information_schema")
        assert engine.names("OTHER", "default") == [("parquet", "table")]
        assert engine.names("default") == [("accounts", "table")]
        assert (
            engine.names("nowhere", "default") == engine.names("other", "default", "parquet") == []
        )
        assert engine.columns("Accounts") == [("id", "bigint"), ("Odd name", "varchar")]
        assert engine.columns("memory", "default", "nothing") is None
        with pytest.raises(
            AnalysisError,
            match=r"CATALOG_NOT_FOUND: Catalog 'memry' not found. Did you mean 'memory'\?",
        ):
            engine.columns("memry", "default", "accounts")
        assert engine._session._future is None, "Spark was not started"


def test_names_can_be_requested_in_a_separate_thread(tmp_path: Any) -> None:
    found: list[Any] = []
    with Engine() as engine:
        engine.add_catalog("lite", SqliteConnector(tmp_path / "shop.db", create=True))
        thread = threading.Thread(target=lambda: found.append(engine.names("lite", "main")))
        thread.start()
        thread.join()
    assert found == [[]]
