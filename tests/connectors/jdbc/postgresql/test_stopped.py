"""A server stopped during a statement: nothing changes before the commit; during the commit, the server is asked for the outcome."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proof.engines import postgresql as servers
from rowmerge_nb import PostgresConnector, RowMergeError
from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.connectors.jdbc.database import DatabaseSession
from rowmerge_nb.connectors.jdbc.postgresql import postgres_transaction as module
from tests.connectors.jdbc.support import Database, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Server:
    """A private server that can be stopped like by a power cut and restarted."""

    def __init__(self, uri: str) -> None:
        self.directory = Path(uri.split("host=")[1].split(maxsplit=1)[0])
        self.database = Database("postgresql", PostgresConnector(uri), "public")
        self.switches = f"-c listen_addresses='' -c fsync=off -k {self.directory}"

    def _control(self, *words: str) -> None:
        command: list[str | Path] = [
            servers.find_server() / "pg_ctl",
            "-D",
            self.directory / "data",
            "-s",
            "-w",
            *words,
        ]
        servers._run(command, self.directory, servers._unprivileged())

    def stop(self) -> None:
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        self._control("-o", self.switches, "-l", str(self.directory / "log"), "start")


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    try:
        servers.find_server()
    except SetupError as error:
        pytest.skip(str(error))
    with servers.private_server() as uri:
        yield Server(uri)


@pytest.fixture
def server(running: Server) -> Server:
    """The server with one table of one row, running."""
    running.database.sql(
        "DROP TABLE IF EXISTS shelf",
        "CREATE TABLE shelf (sku int PRIMARY KEY)",
        "INSERT INTO shelf VALUES (1)",
    )
    return running


def refused(action: Callable[[], Any]) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        action()
    assert caught.value.code == "JDBC_ERROR"
    assert caught.value.hint
    return caught.value


def rows(server: Server) -> list[int]:
    return sorted(row[0] for row in server.database.rows("SELECT sku FROM shelf"))


def merged(server: Server) -> Statement:
    """Run a statement that inserts a row up to its commit."""
    statement = Statement(server.database, "shelf")
    statement.begin()
    sink = statement.sink()
    sink.store_merged_rows(statement.page([(2, 1, None)]))
    statement.finish(sink.finish())
    return statement


def undone(statement: Statement) -> None:
    """Roll back; if the server is down, at most one of our errors is raised."""
    with suppress(RowMergeError):
        statement.rollback()


@pytest.mark.not_quick
def test_a_server_stopped_while_rows_are_read_is_reported(server: Server) -> None:
    statement = Statement(server.database, "shelf")
    splits = statement.splits()
    server.stop()
    try:
        provider = server.database.connector.get_page_source_provider()

        def read() -> None:
            source = provider.create_page_source(
                statement.transaction,
                None,
                splits[0],
                statement.handle,
                [_column(statement.handle)],
            )
            source.get_next_page()

        error = refused(read)
        assert "PostgreSQL at host=" in error.message
        refused(server.database.connector.store.connect)
        undone(statement)
    finally:
        server.start()
    assert rows(server) == [1]


def _column(handle: Any) -> Any:
    from rowmerge_nb.spi import ColumnHandle

    return ColumnHandle(handle.columns[0].name, handle.columns[0].type)


@pytest.mark.trial
@pytest.mark.parametrize("moment", ["begin", "stage", "finish"])
def test_a_server_that_is_stopped_in_the_middle_changes_nothing(
    server: Server, moment: str
) -> None:
    statement = Statement(server.database, "shelf")
    page = statement.page([(2, 1, None)])
    steps: dict[str, Callable[[], Any]] = {}
    made: dict[str, Any] = {}

    def stage() -> None:
        made["sink"] = statement.sink()
        made["sink"].store_merged_rows(page)
        made["fragments"] = made["sink"].finish()

    steps = {
        "begin": statement.begin,
        "stage": stage,
        "finish": lambda: statement.finish(made["fragments"]),
    }
    for name, step in steps.items():
        if name == moment:
            server.stop()
            try:
                error = refused(step)
                assert "PostgreSQL at host=" in error.message
                undone(statement)
            finally:
                server.start()
            break
        step()
    assert rows(server) == [1]
    again = merged(server)
    again.commit()
    assert rows(server) == [1, 2]
    assert server.database.connector.orphans() == server.database.connector.remove_orphans()
    assert server.database.leftovers() == []


@pytest.mark.trial
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("returns", [True, False])
def test_a_server_stopped_during_the_commit_is_asked_for_the_outcome(
    server: Server, monkeypatch: pytest.MonkeyPatch, moment: str, returns: bool
) -> None:
    statement = merged(server)
    true = DatabaseSession.execute

    def execute(session: DatabaseSession, sql: str, *words: Any) -> int:
        if sql != "COMMIT":
            return true(session, sql, *words)
        if moment == "after":
            true(session, sql, *words)
        server.stop()
        if returns:
            threading.Timer(0.2, server.start).start()
        return true(session, "COMMIT" if moment == "before" else "SELECT 1", *words)

    monkeypatch.setattr(DatabaseSession, "execute", execute)
    if not returns:
        monkeypatch.setattr(module, "ASKING_SECONDS", 0.5)
    try:
        if returns and moment == "after":
            statement.commit()
        else:
            error = refused(statement.commit)
            if returns:
                assert error.changed is False
                assert "the connection was lost" in error.message
            else:
                assert error.changed is None
                assert "The outcome is unknown" in error.message
                assert "pg_xact_status" in str(error.hint)
            undone(statement)
    finally:
        monkeypatch.undo()
        if not returns:
            server.start()
    assert rows(server) == ([1, 2] if moment == "after" else [1])
    server.database.connector.remove_orphans()
    assert server.database.leftovers() == []
