"""After the call that makes a change durable, nothing is undone, and no report contradicts the store."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import (
    ConnectorError,
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    PostgresConnector,
    RowMergeError,
    SqliteConnector,
    StatementInterrupted,
)
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.engine.spark import interrupts
from rowmerge_nb.engine.statements.account import Account, check_fragments, sum_up
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.report.error import render_error_text
from rowmerge_nb.spi import (
    ColumnMetadata,
    Connector,
    ConnectorTableMetadata,
    SchemaTableName,
    parse_type,
)
from rowmerge_nb.testing.examples import price_store
from rowmerge_nb.testing.faults import Fault, FaultyConnector

pytestmark = pytest.mark.stand_in

MERGE = (
    "MERGE INTO store.{schema}.t t USING s ON t.id = s.id WHEN MATCHED AND s.v = 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
)
OLD = [(1, 10), (2, 20), (3, 30)]
NEW = [(1, 10), (2, 200), (4, 400)]
SOURCE = {
    "s": pa.table({"id": pa.array([2, 3, 4], pa.int64()), "v": pa.array([200, 0, 400], pa.int64())})
}
STORES = ("memory", "hive", "sqlite", "postgresql", "iceberg")


class Shop:
    """A store with a table, and an engine connected to it."""

    def __init__(self, spark: Any, connector: Connector, schema: str, properties: str = "") -> None:
        self.connector, self.schema = connector, schema
        self.engine = Engine(spark=spark)
        self.engine.add_catalog("store", connector)
        self.engine.run(f"DROP TABLE IF EXISTS store.{schema}.t")
        self.engine.run(f"CREATE TABLE store.{schema}.t (id bigint, v bigint){properties}")
        self.engine.run(f"INSERT INTO store.{schema}.t VALUES (1, 10), (2, 20), (3, 30)")

    def merge(self, **options: Any) -> Any:
        return self.engine.run(MERGE.format(schema=self.schema), namespace=SOURCE, **options)

    def rows(self) -> list[tuple[int, int]]:
        found = self.engine.run(f"SELECT id, v FROM store.{self.schema}.t ORDER BY id").table
        return [tuple(row.values()) for row in found.to_pylist()]


def connector_of(
    name: str, folder: Path, request: pytest.FixtureRequest
) -> tuple[Connector, str, str]:
    key = " WITH (primary_key = ARRAY['id'])"
    if name == "memory":
        return MemoryConnector(), "default", ""
    if name == "hive":
        return HiveAcidConnector(folder / "lake"), "default", ""
    if name == "iceberg":
        return IcebergConnector(folder / "ice"), "default", ""
    if name == "sqlite":
        return SqliteConnector(folder / "shop.db", create=True), "main", key
    return PostgresConnector(request.getfixturevalue("postgresql")), "public", key


@pytest.fixture(params=STORES)
def shop(request: pytest.FixtureRequest, tmp_path: Path, spark: Any) -> Iterator[Shop]:
    connector, schema, properties = connector_of(request.param, tmp_path, request)
    made = Shop(spark, connector, schema, properties)
    yield made
    made.engine.run(f"DROP TABLE IF EXISTS store.{schema}.t")
    made.engine.close()


def interrupt_after(connector: Any, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an interrupt follow a call of a connector."""
    call = getattr(connector, method)

    def interrupted(*arguments: Any) -> Any:
        given = call(*arguments)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        return given

    monkeypatch.setattr(connector, method, interrupted)


def test_an_interrupt_just_after_the_commit_is_reported_with_the_committed_change(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_after(shop.connector, "commit", monkeypatch)
    with pytest.raises(StatementInterrupted) as caught:
        shop.merge()
    monkeypatch.undo()
    assert shop.rows() == NEW
    error = caught.value
    assert (error.code, error.changed, error.message) == (
        "USER_CANCELED",
        True,
        "The interrupt came while the change was being committed; the change was committed",
    )
    assert error.result.trace.state == "finished"
    assert error.result.trace.committed
    assert error.result.count == 3
    told = render_error_text(error, error.result.trace)
    assert f"store.{shop.schema}.t is changed." in told
    assert "is unchanged" not in told
    assert "rolled back" not in told
    # Nothing stays open: a further statement succeeds, and there is nothing to clean up.
    assert shop.merge().count == 3
    assert not shop.connector.orphans()


def test_an_error_after_the_commit_is_not_reported_as_a_rollback(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our connectors raise nothing there; this one breaks the rule."""
    commit = shop.connector.commit

    def late(handle: Any) -> Any:
        commit(handle)
        raise ConnectorError("The answer was lost", changed=None)

    monkeypatch.setattr(shop.connector, "commit", late)
    rolled_back: list[Any] = []
    monkeypatch.setattr(shop.connector, "rollback", rolled_back.append)
    with pytest.raises(ConnectorError) as caught:
        shop.merge()
    assert not rolled_back
    monkeypatch.undo()
    assert shop.rows() == NEW
    assert caught.value.changed is None
    trace = caught.value.result.trace
    assert (trace.state, trace.error.changed) == ("failed", None)
    assert f"Whether store.{shop.schema}.t is changed is not known." in render_error_text(
        caught.value, trace
    )


@pytest.mark.parametrize("threaded", [True, False])
def test_a_second_interrupt_ends_the_wait_for_a_commit_that_hangs(
    spark: Any, monkeypatch: pytest.MonkeyPatch, threaded: bool
) -> None:
    monkeypatch.setattr(interrupts, "PATIENCE_SECONDS", 0.5)
    connector = MemoryConnector()
    shop = Shop(spark, connector, "default")
    connector.commits_in_thread = threaded
    commit, go_on, ended = connector.commit, threading.Event(), threading.Event()
    handler = signal.getsignal(signal.SIGINT)

    def slow(handle: Any) -> Any:
        def impatient() -> None:
            for pause in (0.1, 0.1, 0.6):
                time.sleep(pause)
                os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=impatient).start()
        go_on.wait(20)
        version = commit(handle)
        ended.set()
        return version

    monkeypatch.setattr(connector, "commit", slow)
    rolled_back: list[Any] = []
    monkeypatch.setattr(connector, "rollback", rolled_back.append)
    with pytest.raises(
        StatementInterrupted,
        match="The outcome is unknown: the wait for the commit was ended by a further",
    ) as caught:
        shop.merge()
    assert caught.value.changed is None
    assert "Check 'store.default.t' before you run the statement again" in (caught.value.hint or "")
    assert not rolled_back, "what it has written stays"
    assert signal.getsignal(signal.SIGINT) is handler, "it is given back"
    if threaded:
        go_on.set()
        assert ended.wait(20)
        monkeypatch.undo()
        assert shop.rows() == NEW


def test_statements_after_one_with_a_late_interrupt_are_not_run(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(spark, MemoryConnector(), "default")
    insert = "INSERT INTO store.default.t VALUES ({0}, {0})"
    interrupt_after(shop.connector, "commit", monkeypatch)
    with pytest.raises(StatementInterrupted) as caught:
        shop.engine.run_script("; ".join(insert.format(number) for number in (7, 8, 9)))
    monkeypatch.undo()
    assert shop.rows() == [*OLD, (7, 7)]
    assert (caught.value.hint or "").endswith("Statement 1 stays done; the others were not run.")


def test_a_second_interrupt_does_not_end_the_rollback(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(spark, MemoryConnector(), "default")
    connector: Any = shop.connector

    def interrupted(step: str) -> None:
        if step == "finish_merge":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    rollback = connector.rollback

    def rolling_back(handle: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        rollback(handle)

    monkeypatch.setattr(connector, "rollback", rolling_back)
    with pytest.raises(StatementInterrupted) as caught:
        shop.merge(progress=interrupted)
    assert caught.value.changed is False
    assert (
        str(caught.value.result.trace.error.consequences[-1]) == "the transaction was rolled back"
    )
    assert not connector._transactions
    assert shop.rows() == OLD


def test_a_second_interrupt_while_the_first_is_reported_does_not_keep_the_transaction_open(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory: Any = MemoryConnector()
    shop = Shop(spark, FaultyConnector(memory), "default")
    shop.connector.fault = Fault("finish_merge", error=lambda _: KeyboardInterrupt())  # type: ignore[attr-defined]

    def interrupted(*_: Any) -> RowMergeError:
        raise KeyboardInterrupt

    monkeypatch.setattr(StatementRun, "_error", interrupted)
    with pytest.raises(StatementInterrupted) as caught:
        shop.merge()
    assert caught.value.changed is False
    assert not memory._transactions
    shop.connector.fault = None  # type: ignore[attr-defined]
    assert shop.rows() == OLD


def test_finish_merge_of_a_connector_that_commits_later_can_be_interrupted(spark: Any) -> None:
    def stop(_: str) -> BaseException:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        return OSError("the interrupt should have come before this")

    shop = Shop(spark, FaultyConnector(MemoryConnector()), "default")
    shop.connector.fault = Fault("finish_merge", error=stop)  # type: ignore[attr-defined]
    with pytest.raises(StatementInterrupted) as caught:
        shop.merge()
    assert caught.value.changed is False
    shop.connector.fault = None  # type: ignore[attr-defined]
    assert shop.rows() == OLD


# -- connectors that commit in their finish call


@pytest.fixture
def prices(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Engine, Any]]:
    store = price_store.STORE
    monkeypatch.setattr(store, "rows", {1: 9.5, 2: 3.0}, raising=False)
    engine = Engine(spark=spark)
    engine.add_catalog("shop", store)
    yield engine, store
    engine.close()


RAISE = "UPDATE shop.default.prices SET price = price + 1 WHERE id = 2"


def test_an_interrupt_in_a_committing_finish_call_is_too_late(
    prices: tuple[Engine, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, store = prices
    finish: Callable[..., Any] = price_store.Metadata.finish_merge
    threads = []

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        threads.append(threading.current_thread().name)
        return finish(*arguments)

    monkeypatch.setattr(price_store.Metadata, "finish_merge", interrupted)
    with pytest.raises(StatementInterrupted) as caught:
        engine.run(RAISE)
    assert caught.value.changed is True
    assert store.rows == {1: 9.5, 2: 4.0}
    assert threads == ["rowmerge_nb-commit"]
    assert [call.method for call in caught.value.result.trace.calls][-2:] == [
        "finish_merge",
        "commit",
    ]


def test_a_failed_commit_after_such_a_finish_call_reports_the_change(
    prices: tuple[Engine, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, store = prices

    def fails(_: Any) -> None:
        raise OSError("no route")

    monkeypatch.setattr(store, "commit", fails, raising=False)
    with pytest.raises(RowMergeError) as caught:
        engine.run(RAISE)
    assert caught.value.changed is True
    assert store.rows == {1: 9.5, 2: 4.0}
    assert "prices is changed." in render_error_text(caught.value, caught.value.result.trace)


def test_a_statement_is_not_rehearsed_if_its_finish_call_commits(
    prices: tuple[Engine, Any],
) -> None:
    engine, store = prices
    with pytest.raises(
        ConnectorError, match="commits in its finish calls, so statements cannot be rehearsed"
    ) as caught:
        engine.run(RAISE, rehearse=True)
    assert caught.value.code == "NOT_SUPPORTED"
    assert store.rows == {1: 9.5, 2: 3.0}
    engine.run("DELETE FROM shop.default.prices WHERE id = 1", dry_run=True)
    assert store.rows == {1: 9.5, 2: 3.0}


# -- rehearsals


def test_a_rehearsed_insert_leaves_nothing(spark: Any) -> None:
    shop = Shop(spark, MemoryConnector(), "default")
    result = shop.engine.run("INSERT INTO store.default.t VALUES (9, 9)", rehearse=True)
    assert (result.count, result.trace.committed, result.rehearsed.num_rows) == (1, False, 4)
    assert shop.rows() == OLD
    shop.engine.run(
        "CREATE TABLE store.default.copy AS SELECT * FROM store.default.t", rehearse=True
    )
    assert [table[0] for table in shop.engine.tables() if table[0].startswith("store.")] == [
        "store.default.t"
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE t",
        "CREATE TABLE u (x bigint)",
        "CREATE VIEW w AS SELECT 1 AS x",
        "TRUNCATE TABLE t",
    ],
)
def test_statements_that_take_effect_at_once_are_not_rehearsed(spark: Any, sql: str) -> None:
    engine = Engine(spark=spark)
    engine.register("t", pa.table({"id": [1]}))
    with pytest.raises(ConnectorError, match="This statement cannot be rehearsed"):
        engine.run(sql, rehearse=True)
    assert engine.table("t").num_rows == 1


# -- content of the store


class Forgetful(MemoryConnector):
    """Commits a version without its last row, silently."""

    forgets = False

    def commit(self, transaction_handle: Any) -> Any:
        version = super().commit(transaction_handle)
        table = self._tables.get(SchemaTableName("default", "t"))
        if self.forgets and version is not None and table is not None:
            table.versions[version.version] = table.versions[version.version].slice(1)
        return version


def test_other_content_of_the_store_is_reported_in_the_headline(spark: Any) -> None:
    connector = Forgetful()
    shop = Shop(spark, connector, "default")
    connector.forgets = True
    result = shop.merge()
    assert (result.balance.holds, result.balance.expected, result.trace.target.rows_after) == (
        False,
        3,
        2,
    )
    assert "store.default.t 3 → 2 rows. 3 rows were expected." in str(result).replace("\n", " ")


def test_an_unreadable_version_is_reported_in_the_headline_and_is_not_an_error(spark: Any) -> None:
    shop = Shop(spark, FaultyConnector(MemoryConnector()), "default")
    shop.connector.fault = Fault("get_versioned_table_handle", message="the index is torn")  # type: ignore[attr-defined]
    result = shop.merge()
    assert result.trace.state == "finished"
    assert result.trace.target.unread_reason == "OSError: the index is torn"
    assert result.balance.holds is None
    assert "What was committed could not be inspected: OSError: the index is torn." in " ".join(
        str(result).split()
    )


def test_the_balance_is_that_of_the_committed_version_despite_later_changes(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = MemoryConnector()
    shop = Shop(spark, connector, "default")
    commit = connector.commit

    def followed(handle: Any) -> Any:
        version = commit(handle)
        monkeypatch.undo()
        columns = tuple(ColumnMetadata(name, parse_type("bigint")) for name in ("id", "v"))
        Engine(spark=spark)
        other = connector.begin_transaction()
        metadata = connector.get_metadata(other)
        table: Any = metadata.get_table_handle(None, SchemaTableName("default", "t"))  # type: ignore[arg-type]
        metadata.truncate_table(None, table)  # type: ignore[arg-type]
        commit(other)
        assert ConnectorTableMetadata(SchemaTableName("default", "t"), columns)
        return version

    monkeypatch.setattr(connector, "commit", followed)
    result = shop.merge()
    assert (result.trace.target.rows_after, result.balance.holds) == (3, True)
    assert shop.rows() == []


def test_a_commit_that_returns_no_version_is_reported_in_a_notice(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(spark, MemoryConnector(), "default")
    commit = shop.connector.commit
    monkeypatch.setattr(shop.connector, "commit", lambda handle: str(commit(handle)))
    result = shop.merge()
    assert (result.trace.state, result.trace.target.rows_after) == ("finished", 3)
    assert (
        "MemoryConnector.commit returned str; it must return a ConnectorTableVersion or None"
    ) in [n.message for n in result.trace.notices]


def test_fragments_that_are_missing_are_noticed_before_the_commit() -> None:
    account: Account = sum_up([])
    check_fragments(account, [])
    with pytest.raises(
        RowMergeError,
        match="The tasks sent 0 fragments of 0 bytes, and 1 fragment of 3 bytes arrived;"
        " nothing was",
    ):
        check_fragments(account, [b"abc"])


def test_a_connection_bound_to_one_thread_can_be_committed(spark: Any) -> None:
    """A connector that declares nothing is called in the caller's thread: connections of SQLite, for one, work in no other."""

    class Journal(MemoryConnector):
        commits_in_thread = False

        def __init__(self) -> None:
            super().__init__()
            self.journal = sqlite3.connect(":memory:")
            self.journal.execute("CREATE TABLE commits (n integer)")

        def commit(self, transaction_handle: Any) -> Any:
            self.journal.execute("INSERT INTO commits VALUES (1)")
            return super().commit(transaction_handle)

    connector = Journal()
    shop = Shop(spark, connector, "default")
    assert shop.merge().count == 3
    connector.journal.close()


@pytest.mark.parametrize("failure", [OSError("the disk is gone"), SystemExit(3)])
@pytest.mark.parametrize("rehearse", [False, True])
def test_a_finish_call_that_cannot_be_rolled_back_is_not_reported_as_unchanged(
    spark: Any, monkeypatch: pytest.MonkeyPatch, failure: BaseException, *, rehearse: bool
) -> None:
    connector = MemoryConnector()
    shop = Shop(spark, connector, "default")

    def fail(_: Any) -> None:
        raise failure

    monkeypatch.setattr(connector, "rollback", fail)
    monkeypatch.setattr(connector, "commit", refused)
    with pytest.raises(RowMergeError) as caught:
        shop.merge(rehearse=rehearse)
    error = caught.value
    assert error.changed is None
    assert "Check 'store.default.t'" in str(error.hint)
    text = str(error.result)
    assert "is unchanged" not in text
    assert "the transaction was rolled back" not in text


def refused(_: Any) -> None:
    msg = "the commit was refused"
    raise ConnectorError(msg, code="TRANSACTION_CONFLICT")


def test_an_interrupt_before_a_statement_has_a_transaction_is_an_error_of_ours(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(spark, MemoryConnector(), "default")

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "rowmerge_nb.engine.catalog.engine_catalogs.Catalogs.transaction", interrupted
    )
    script = f"TRUNCATE TABLE store.default.t; {MERGE.format(schema='default')}"
    with pytest.raises(StatementInterrupted) as caught:
        shop.engine.run_script(script, namespace=SOURCE)
    assert caught.value.changed is False
    assert caught.value.result is not None
    assert caught.value.statement is not None
