"""The contract kit on SQLite and PostgreSQL."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import pytest

from rowmerge_nb import PostgresConnector, SqliteConnector
from rowmerge_nb.connectors.jdbc.database import DatabaseSession
from rowmerge_nb.testing.contract import ConnectorContract
from rowmerge_nb.testing.contract.sample_values import TYPES
from tests.connectors.jdbc.support import Database


def as_trial(check: FunctionType) -> FunctionType:
    """Return a check of the kit that runs with the trials: its code is that of the other database, on a server that takes longer."""
    copy = FunctionType(
        check.__code__, check.__globals__, check.__name__, check.__defaults__, check.__closure__
    )
    copy.__kwdefaults__ = check.__kwdefaults__
    copy.__dict__.update(check.__dict__)
    return pytest.mark.trial(copy)


class Keyed(ConnectorContract):
    """A database: its rows are told apart by a primary key."""

    kind = ""
    kept: DatabaseSession | None = None
    layouts = {"keyed": {"primary_key": ("id",)}}
    types = tuple(name for name in TYPES if not name.startswith(("array", "map", "row")))
    keyed = True

    def leftovers(self, connector):
        return [
            *Database(self.kind, connector, self.name().schema, self.kept).leftovers(),
            *connector._transactions,
        ]


class TestSqlite(Keyed):
    kind = "sqlite"
    table = "main.contract"

    def make_connector(self, folder):
        return SqliteConnector(folder / "shop.db", create=True)


@pytest.mark.each_value
@pytest.mark.slow
class TestPostgresql(Keyed):
    kind = "postgresql"
    table = "public.contract"
    types = (
        "decimal(38,10)",
        "varbinary",
        "timestamp(6) with time zone",
        "json",
    )  # all of them: test_jdbc_contract.py

    test_a_fault_at_any_step_leaves_the_table_as_it_was = as_trial(
        ConnectorContract.test_a_fault_at_any_step_leaves_the_table_as_it_was
    )
    test_a_fault_at_any_step_of_the_older_flow_leaves_the_table_as_it_was = as_trial(
        ConnectorContract.test_a_fault_at_any_step_of_the_older_flow_leaves_the_table_as_it_was
    )

    @pytest.fixture
    def connector(self, postgresql: str, postgresql_session: DatabaseSession) -> Any:
        connector, self.kept = PostgresConnector(postgresql), postgresql_session
        Database("postgresql", connector, "public", self.kept).sql(
            "DROP SCHEMA public CASCADE", "CREATE SCHEMA public"
        )
        yield connector
        connector.close()
