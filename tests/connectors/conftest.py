"""Databases for tests: a new SQLite file, and an emptied schema of a private PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowmerge_nb import PostgresConnector, SqliteConnector
from rowmerge_nb.connectors.jdbc.database import DatabaseSession
from tests.connectors.jdbc.support import Database


@pytest.fixture
def lite(tmp_path: Any) -> Iterator[Database]:
    path = tmp_path / "shop's.db"
    path.touch()
    made = Database("sqlite", SqliteConnector(path), "main")
    yield made
    made.connector.close()


@pytest.fixture
def pg(postgresql: str, postgresql_session: DatabaseSession) -> Iterator[Database]:
    made = Database("postgresql", PostgresConnector(postgresql), "public", postgresql_session)
    made.sql("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    yield made
    made.connector.close()


@pytest.fixture(params=["lite", "pg"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(request.param)
    return made
