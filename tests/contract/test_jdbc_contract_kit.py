"""The contract kit on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import PostgresConnector, SqliteConnector
from rowmerge_nb.connectors.jdbc.database import Session
from rowmerge_nb.testing.contract import ConnectorContract
from rowmerge_nb.testing.contract.sample_values import TYPES
from tests.connectors.jdbc.support import Database


class Keyed(ConnectorContract):
    """A database: its rows are told apart by a primary key."""

    kind = ""
    kept: Session | None = None
    layouts = {"keyed": {"primary_key": ("id",)}}
    types = tuple(name for name in TYPES if not name.startswith(("array", "map", "row")))
    keyed = True

    def leftovers(self, connector):
        return [*Database(self.kind, connector, self.name().schema, self.kept).leftovers(), *connector._transactions]


class TestSqlite(Keyed):
    kind = "sqlite"
    table = "main.contract"

    def make_connector(self, folder):
        return SqliteConnector(folder / "shop.db", create=True)


class TestPostgresql(Keyed):
    kind = "postgresql"
    table = "public.contract"
    types = ("decimal(38,10)", "varbinary", "timestamp(6) with time zone", "json")  # all of them: test_jdbc_contract.py

    @pytest.fixture
    def connector(self, postgresql: str, postgresql_session: Session) -> Any:
        connector, self.kept = PostgresConnector(postgresql), postgresql_session
        Database("postgresql", connector, "public", self.kept).sql("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
        yield connector
        connector.close()
