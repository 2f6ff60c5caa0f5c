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

SHARED = (
    "a_delete_removes_the_named_rows_and_no_other",
    "a_fault_at_any_step_leaves_the_table_as_it_was",
    "a_fault_at_any_step_of_the_older_flow_leaves_the_table_as_it_was",
    "a_fault_leaves_columns_and_rows_as_they_were",
    "a_row_is_replaced_by_another_one_of_the_same_key",
    "all_rows_are_deleted_and_new_ones_inserted",
    "an_insert_by_merge_adds_rows_and_keeps_all_others",
    "an_update_changes_the_assigned_columns_and_no_other",
    "an_update_may_set_the_key",
    "of_several_attempts_at_a_split_the_one_whose_fragments_arrive_counts",
    "page_sources_delete_the_named_rows_and_no_other",
    "page_sources_that_change_nothing_leave_the_table_as_it_was",
    "statements_follow_one_another",
    "what_page_sources_change_is_not_visible_before_the_commit",
)
"""Checks of code shared by both databases: those with a server, which take longer, run with the trials."""


def with_trials(contract: type[ConnectorContract]) -> type[ConnectorContract]:
    """Mark the shared checks of a contract, in separate copies."""
    for name in SHARED:
        check: FunctionType = getattr(contract, f"test_{name}")
        copy = FunctionType(
            check.__code__, check.__globals__, check.__name__, check.__defaults__, check.__closure__
        )
        copy.__kwdefaults__ = check.__kwdefaults__
        copy.__dict__.update(check.__dict__)
        copy.pytestmark = list(getattr(check, "pytestmark", []))
        setattr(contract, f"test_{name}", pytest.mark.trial(copy))
    return contract


class Keyed(ConnectorContract):
    """A database: a primary key distinguishes its rows."""

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


@with_trials
@pytest.mark.each_value
@pytest.mark.era_in_turn
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

    @pytest.fixture
    def connector(self, postgresql: str, postgresql_session: DatabaseSession) -> Any:
        connector, self.kept = PostgresConnector(postgresql), postgresql_session
        Database("postgresql", connector, "public", self.kept).sql(
            "DROP SCHEMA public CASCADE", "CREATE SCHEMA public"
        )
        yield connector
        connector.close()
