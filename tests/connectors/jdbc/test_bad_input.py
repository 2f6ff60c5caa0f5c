"""Full disks, vanished servers and wrong passwords: every error names the store, the object and the next step."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import ConnectorError, PostgresConnector, RowMergeError
from rowmerge_nb.connectors.jdbc import staging
from rowmerge_nb.connectors.jdbc.database import DatabaseSession
from tests.connectors.jdbc.support import Database, Statement, merge
from tests.connectors.jdbc.test_calls import content, insert

SECRET = "s3same-oeffne-dich"


def refused(call: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        call()
    return caught.value


def test_a_database_file_that_cannot_grow_is_reported_and_stays_unchanged(
    lite: Database, monkeypatch: Any
) -> None:
    lite.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, note varchar)",
        "INSERT INTO shelf VALUES (1, 'a')",
    )
    store, connect = type(lite.connector.store), type(lite.connector.store).connect

    def narrow(self: Any, **more: Any) -> DatabaseSession:
        session: DatabaseSession = connect(self, **more)
        session.execute("PRAGMA max_page_count = 10")
        return session

    monkeypatch.setattr(store, "connect", narrow)
    error = refused(
        lambda: merge(lite, "shelf", [(number, "x" * 500, 1, None) for number in range(2, 400)])
    )
    monkeypatch.undo()
    assert error.code == "GENERIC_INSUFFICIENT_RESOURCES"
    assert "database or disk is full" in error.message
    assert "main.shelf" in error.message
    assert "shop's.db" in error.message
    assert "Free space" in str(error.hint)
    assert content(lite) == [(1, "a")]
    assert lite.leftovers() == []
    merge(lite, "shelf", [(1, "later", 3, 1)])
    assert content(lite) == [(1, "later")]


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="there is no /dev/full, a file that is always full"
)
def test_a_full_disk_under_the_staged_rows_is_reported(lite: Database, monkeypatch: Any) -> None:
    lite.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, note varchar)",
        "INSERT INTO shelf VALUES (1, 'a')",
    )
    statement = Statement(lite, "shelf")
    statement.begin()
    page = statement.page([(2, "x" * 100_000, 1, None)])
    monkeypatch.setattr(staging, "file_of", lambda directory, attempt: Full(directory))
    sink = statement.sink()
    with pytest.raises(ConnectorError) as caught:
        sink.store_merged_rows(page)
        sink.finish()
    monkeypatch.undo()
    sink.abort()
    assert "No space left on device" in caught.value.message
    assert caught.value.code == "GENERIC_INSUFFICIENT_RESOURCES"
    assert "Free space on the disk" in str(caught.value.hint)
    statement.rollback()
    assert lite.leftovers() == []
    assert content(lite) == [(1, "a")]


class Full(type(Path())):  # type: ignore[misc]
    """The path of a file that is always full and never removed."""

    def __str__(self) -> str:
        return "/dev/full"

    def unlink(self, missing_ok: bool = False) -> None:
        assert missing_ok


def test_staged_rows_invisible_to_the_driver_are_reported(lite: Database) -> None:
    lite.sql("CREATE TABLE shelf (sku int PRIMARY KEY)")
    statement = Statement(lite, "shelf")
    statement.begin()
    sink = statement.sink()
    sink.store_merged_rows(statement.page([(2, 1, None)]))
    fragments = sink.finish()
    (file,) = Path(statement.merge.stage.area).glob("*.arrow")
    file.unlink()
    error = refused(lambda: statement.finish(fragments))
    statement.rollback()
    assert "main.shelf" in error.message
    assert str(file) in error.message
    assert "the same directory" in str(error.hint)
    assert content(lite) == []


@pytest.fixture
def tiny(pg: Database, postgresql: str, tmp_path_factory: Any) -> Iterator[Database]:
    """A database whose tables are on a disk of four megabytes."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root may make a small disk")
    socket = Path(postgresql.split("host=")[1].split(maxsplit=1)[0])
    disk = socket / "tiny"
    disk.mkdir(exist_ok=True)
    if (
        shutil.which("mount") is None
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)],
            capture_output=True,
            check=False,
        ).returncode
    ):
        pytest.skip("no disk can be mounted here")
    try:
        place = disk / "place"
        place.mkdir()
        shutil.chown(place, socket.owner())
        session = pg.session()
        session.execute(f"CREATE TABLESPACE tiny LOCATION '{place}'")
        session.close()
        pg.sql("ALTER DATABASE postgres SET default_tablespace = tiny")
        yield pg
        pg.sql(
            "ALTER DATABASE postgres RESET default_tablespace",
            "DROP SCHEMA public CASCADE",
            "CREATE SCHEMA public",
        )
        pg.sql("DROP TABLESPACE tiny")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_of_the_server_is_reported_and_the_table_stays_unchanged(
    tiny: Database,
) -> None:
    tiny.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, note text)", "INSERT INTO shelf VALUES (1, 'a')"
    )
    rows = pa.table({"sku": pa.array(range(2, 40_000), pa.int32()), "note": ["x" * 200] * 39_998})
    error = refused(lambda: insert(tiny, "shelf", rows))
    assert error.code == "GENERIC_INSUFFICIENT_RESOURCES"
    assert "No space left on device" in error.message
    assert "PostgreSQL at host=" in error.message
    assert "Free space on the server's disk" in str(error.hint)
    assert tiny.leftovers() == []
    assert content(tiny) == [(1, "a")]
    merge(tiny, "shelf", [(1, "later", 3, 1)])
    assert content(tiny) == [(1, "later")]


def test_a_connection_ended_by_the_server_is_reported_and_nothing_changes(pg: Database) -> None:
    pg.sql("CREATE TABLE shelf (sku int PRIMARY KEY)", "INSERT INTO shelf VALUES (1)")
    statement = Statement(pg, "shelf")
    statement.begin()
    sink = statement.sink()
    sink.store_merged_rows(statement.page([(2, 1, None)]))
    fragments = sink.finish()
    pg.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    error = refused(lambda: statement.finish(fragments))
    statement.rollback()
    assert error.code == "JDBC_ERROR"
    assert "the connection was lost" in error.message
    assert "Run the statement again." in str(error.hint)
    assert content(pg) == [(1,)]
    assert pg.leftovers() == []


def test_a_wrong_password_is_reported_but_not_shown(pg: Database, postgresql: str) -> None:
    rules = Path(pg.rows("SELECT current_setting('hba_file') AS f")[0][0])
    before = rules.read_text("utf-8")
    pg.sql("DROP ROLE IF EXISTS ann", "CREATE ROLE ann LOGIN PASSWORD 'right'")
    rules.write_text(f"local all ann scram-sha-256\n{before}", "utf-8")
    try:
        pg.sql("SELECT pg_reload_conf()")
        dsn = postgresql.replace("user=postgres", "user=ann")
        PostgresConnector(f"{dsn} password=right").store.connect().close()
        error = refused(PostgresConnector(f"{dsn} password={SECRET}").store.connect)
        missing = refused(PostgresConnector(dsn).store.connect)
    finally:
        rules.write_text(before, "utf-8")
        pg.sql("SELECT pg_reload_conf()", "DROP ROLE ann")
    assert error.code == missing.code == "PERMISSION_DENIED"
    assert 'password authentication failed for user "ann"' in error.message
    assert "no password supplied" in missing.message
    assert "Correct user and password" in str(error.hint)
    assert SECRET not in str(error) + repr(error) + repr(error.__context__)


def test_a_server_without_free_connections_is_reported(pg: Database, postgresql: str) -> None:
    pg.sql("DROP ROLE IF EXISTS lone", "CREATE ROLE lone LOGIN CONNECTION LIMIT 0")
    error = refused(
        PostgresConnector(postgresql.replace("user=postgres", "user=lone")).store.connect
    )
    pg.sql("DROP ROLE lone")
    assert "accepts no more connections" in error.message
    assert "max_connections" in str(error.hint)


def test_a_table_dropped_meanwhile_is_reported(lite: Database) -> None:
    lite.sql("CREATE TABLE shelf (sku int PRIMARY KEY)", "INSERT INTO shelf VALUES (1)")
    error = refused(
        lambda: merge(lite, "shelf", [(3, 3, 1)], meanwhile=lambda: lite.sql("DROP TABLE shelf"))
    )
    assert error.code == "TRANSACTION_CONFLICT"
    assert error.hint == "Run the statement again."
    assert lite.leftovers() == []
