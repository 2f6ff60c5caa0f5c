"""START TRANSACTION, COMMIT and ROLLBACK: reads see one version, and writes are refused like in the connector's Trino."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import (
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    PostgresConnector,
    RowMergeError,
    SqliteConnector,
)
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.engine.catalog.explicit import ExplicitTransaction

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

STORES = ["memory", "lake", "hive", "pg"]
SCHEMAS = {
    "memory": "memory.default",
    "lake": "lake.default",
    "hive": "hive.default",
    "lite": "lite.main",
    "pg": "pg.public",
}


@pytest.fixture
def connectors(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The store's connector, for two engines."""
    makers = {
        "lake": lambda: IcebergConnector(warehouse=tmp_path / "lake"),
        "hive": lambda: HiveAcidConnector(tmp_path / "hive"),
        "lite": lambda: SqliteConnector(tmp_path / "lite.db", create=True),
        "pg": lambda: PostgresConnector(request.getfixturevalue("postgresql")),
    }
    return {store: makers[store]()} if store in makers else {}


@pytest.fixture
def engine(spark: Any, connectors: dict[str, Any]) -> Engine:
    return engine_of(spark, connectors)


def engine_of(spark: Any, connectors: dict[str, Any]) -> Engine:
    made = Engine(spark=spark)
    for name, connector in connectors.items():
        made.add_catalog(name, connector)
    return made


@pytest.fixture
def table(engine: Engine, store: str) -> str:
    name = f"{SCHEMAS[store]}.watched"
    with_key = " WITH (primary_key = ARRAY['id'])" if store in {"lite", "pg"} else ""
    engine.run(f"DROP TABLE IF EXISTS {name}")
    engine.run(
        f"CREATE TABLE {name}{with_key} AS SELECT * FROM (VALUES (1, VARCHAR 'a'), (2, 'b')) AS v (id, n)"
    )
    return name


def rows(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
    found = engine.run(sql).table
    assert found is not None
    return [tuple(row.values()) for row in found.to_pylist()]


def refused(engine: Engine, sql: str, **options: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as error:
        engine.run(sql, **options)
    return error.value


@pytest.mark.parametrize("store", STORES)
def test_reads_see_one_version_until_the_transaction_ends(
    spark: Any, engine: Engine, connectors: dict[str, Any], table: str, store: str
) -> None:
    # Memory belongs to its engine: there, the other one is a statement of the connector's own, run below the engine's transaction.
    other = engine_of(spark, connectors) if connectors else None

    def change() -> None:
        if other is not None:
            other.run(f"UPDATE {table} SET n = n || '!' WHERE id = 1")
            other.run(f"INSERT INTO {table} VALUES (3, 'c')")
            return
        begun, engine._runner.session.transactions.current = (
            engine._runner.session.transactions.current,
            None,
        )
        engine.run(f"UPDATE {table} SET n = n || '!' WHERE id = 1")
        engine.run(f"INSERT INTO {table} VALUES (3, 'c')")
        engine._runner.session.transactions.current = begun

    before, after = [(1, "a"), (2, "b")], [(1, "a!"), (2, "b"), (3, "c")]
    assert "The transaction has begun" in str(engine.run("START TRANSACTION"))
    assert rows(engine, f"SELECT * FROM {table} ORDER BY id") == before
    change()
    assert rows(engine, f"SELECT * FROM {table} ORDER BY id") == before
    assert rows(engine, f"SELECT count(*) FROM {table}") == [(2,)]
    assert rows(engine, f"SELECT t.n FROM {table} t JOIN (VALUES 1) AS v (id) ON t.id = v.id") == [
        ("a",)
    ]
    assert "The transaction is ended" in str(engine.run("COMMIT"))
    assert rows(engine, f"SELECT * FROM {table} ORDER BY id") == after


@pytest.mark.parametrize("store", ["lite"])
def test_sqlite_keeps_no_version_and_reports_it(
    spark: Any, engine: Engine, connectors: dict[str, Any], table: str, store: str
) -> None:
    other = engine_of(spark, connectors)
    engine.run("START TRANSACTION READ ONLY")
    assert rows(engine, f"SELECT count(*) FROM {table}") == [(2,)]
    assert rows(engine, f"SELECT count(*) FROM {table}") == [(2,)]
    other.run(f"DELETE FROM {table} WHERE id = 1")
    error = refused(engine, f"SELECT count(*) FROM {table}")
    assert error.code == "TRANSACTION_CONFLICT"
    assert "changed by another connection since START TRANSACTION" in error.message
    engine.run("ROLLBACK")
    engine.run("START TRANSACTION")
    assert rows(engine, f"SELECT count(*) FROM {table}") == [(1,)]
    other.run(f"DELETE FROM {table}")
    # The read rows are no longer true: COMMIT reports it, and the transaction ends.
    assert refused(engine, "COMMIT").code == "TRANSACTION_CONFLICT"
    assert rows(engine, f"SELECT count(*) FROM {table}") == [(0,)]


@pytest.mark.parametrize("store", [*STORES, "lite"])
def test_a_write_gets_the_error_of_its_connector_and_ends_the_transaction(
    engine: Engine, table: str, store: str
) -> None:
    before = rows(engine, f"SELECT * FROM {table} ORDER BY id")
    autocommit = (
        "AUTOCOMMIT_WRITE_CONFLICT",
        f"Catalog only supports writes using autocommit: {store}",
    )
    hive = "{} into Hive transactional tables is not supported in explicit transactions (use autocommit mode)"
    merging = ("NOT_SUPPORTED", hive.format("Merging")) if store == "hive" else autocommit
    inserting = ("NOT_SUPPORTED", hive.format("Inserting")) if store == "hive" else autocommit
    for sql, told in (
        (
            f"MERGE INTO {table} t USING (VALUES 1) AS s (id) ON t.id = s.id WHEN MATCHED THEN DELETE",
            merging,
        ),
        (f"UPDATE {table} SET n = 'x'", merging),
        (f"DELETE FROM {table}", merging),
        (f"INSERT INTO {table} VALUES (3, 'c')", inserting),
        (f"CREATE TABLE {table}_more AS SELECT 1 AS a", autocommit),
        (f"CREATE TABLE {table}_more (a bigint)", autocommit),
        (f"TRUNCATE TABLE {table}", autocommit),
        (f"DROP TABLE {table}", autocommit),
        (f"ALTER TABLE {table} ADD COLUMN x bigint", autocommit),
        (f"CREATE SCHEMA {store}.more", autocommit),
    ):
        engine.run("START TRANSACTION")
        error = refused(engine, sql)
        assert (error.code, error.message) == told, sql
        assert "ROLLBACK ends a transaction" in str(error.hint)
        aborted = refused(engine, f"SELECT * FROM {table}")
        assert (aborted.code, aborted.message) == (
            "TRANSACTION_ALREADY_ABORTED",
            "Current transaction is aborted, commands ignored until end of transaction block",
        )
        engine.run("ROLLBACK WORK")
    assert rows(engine, f"SELECT * FROM {table} ORDER BY id") == before


@pytest.mark.parametrize("store", ["memory"])
def test_operations_that_a_transaction_lacks_are_refused_by_name(
    engine: Engine, table: str, store: str
) -> None:
    for sql in ("COMMIT", "ROLLBACK"):
        error = refused(engine, sql)
        assert (error.code, error.message) == ("NOT_IN_TRANSACTION", "No transaction in progress")
    engine.run("START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY")
    error = refused(engine, "START TRANSACTION")
    assert (error.code, error.message) == ("NOT_SUPPORTED", "Nested transactions not supported")
    assert rows(engine, f"SELECT count(*) FROM {table}") == [(2,)]
    error = refused(engine, f"DELETE FROM {table}")
    assert (error.code, error.message) == (
        "READ_ONLY_VIOLATION",
        "Cannot execute write in a read-only transaction",
    )
    error = refused(engine, "COMMIT")
    assert (error.code, error.message) == (
        "TRANSACTION_ALREADY_ABORTED",
        "Current transaction has already been aborted",
    )
    assert refused(engine, "ROLLBACK").code == "NOT_IN_TRANSACTION"
    engine.run(f"DELETE FROM {table} WHERE id = 1")
    assert "not run" in str(engine.run("START TRANSACTION", dry_run=True))
    engine.run("START TRANSACTION")
    error = refused(engine, "CALL memory.system.nothing()")
    assert (error.code, error.message) == (
        "NOT_SUPPORTED",
        "Procedures cannot be called within a transaction (use autocommit mode)",
    )
    engine.run("ROLLBACK")
    engine.run("START TRANSACTION")
    assert (
        "A fault needs"
        in refused(engine, f"SELECT * FROM {table}", fault="begin_transaction").message
    )
    engine.run("ROLLBACK")
    engine.run("START TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    error = refused(engine, f"SELECT * FROM {table}")
    assert error.code == "UNSUPPORTED_ISOLATION_LEVEL"
    engine.run("ROLLBACK")
    engine.run("START TRANSACTION")
    with pytest.raises(RowMergeError) as wrong:
        engine.undo(table)
    assert wrong.value.code == "AUTOCOMMIT_WRITE_CONFLICT"
    assert refused(engine, "SELECT 1").code == "TRANSACTION_ALREADY_ABORTED"
    # An invalid statement changes nothing.
    engine.run("ROLLBACK")
    engine.run("START TRANSACTION")
    assert refused(engine, "SELEC 1").code == "SYNTAX_ERROR"
    assert rows(engine, "SELECT 1") == [(1,)]
    assert "TableScan" in str(engine.run(f"EXPLAIN SELECT count(*) FROM {table}").explained)
    assert engine.run(f"DESCRIBE {table}").table is not None
    engine.run("COMMIT")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("START", "mismatched input '<EOF>'. Expecting: 'TRANSACTION'"),
        ("START TRANSACTION READ", "mismatched input '<EOF>'. Expecting: 'ONLY', 'WRITE'"),
        (
            "START TRANSACTION READ ONLY,",
            "mismatched input '<EOF>'. Expecting: 'ISOLATION', 'READ'",
        ),
        ("START TRANSACTION ISOLATION", "mismatched input '<EOF>'. Expecting: 'LEVEL'"),
        (
            "START TRANSACTION ISOLATION LEVEL",
            "mismatched input '<EOF>'. Expecting: 'READ', 'REPEATABLE', 'SERIALIZABLE'",
        ),
        (
            "START TRANSACTION ISOLATION LEVEL REPEATABLE",
            "mismatched input '<EOF>'. Expecting: 'READ'",
        ),
        ("START TRANSACTION READ ONLY, READ WRITE", "Multiple transaction read modes specified"),
        (
            "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, ISOLATION LEVEL READ COMMITTED",
            "Multiple transaction isolation levels specified",
        ),
        ("COMMIT IT", "mismatched input 'IT'. Expecting: 'WORK', <EOF>"),
        ("EXPLAIN START TRANSACTION", "EXPLAIN of START is not supported by this engine"),
    ],
)
def test_wrong_words_are_reported_at_their_position(spark: Any, sql: str, message: str) -> None:
    error = refused(Engine(spark=spark), sql)
    assert error.message == message
    assert error.line == 1


def test_a_script_reads_in_one_transaction_and_a_closed_engine_ends_it(
    spark: Any, tmp_path: Path
) -> None:
    engine = Engine(spark=spark)
    lake = IcebergConnector(warehouse=tmp_path)
    engine.add_catalog("lake", lake)
    results = engine.run_script(
        "CREATE TABLE lake.default.t AS SELECT 1 AS a; START TRANSACTION; SELECT * FROM lake.default.t; COMMIT; DROP TABLE lake.default.t"
    )
    assert [result.trace.kind for result in results] == [
        "CREATE TABLE AS",
        "START TRANSACTION",
        "SELECT",
        "COMMIT",
        "DROP TABLE",
    ]
    engine.run("START TRANSACTION")
    engine.run("SELECT 1")
    engine.close()
    assert refused(engine, "COMMIT").code != "NOT_IN_TRANSACTION"
    assert refused(engine, "START TRANSACTION").message


class Noting(MemoryConnector):
    """Records how its transactions end, and fails in the commit on request."""

    def __init__(self, failure: BaseException | None = None) -> None:
        super().__init__()
        self.failure, self.ends = failure, list[str]()

    def commit(self, transaction_handle: Any) -> Any:
        self.ends.append("commit")
        if self.failure is not None:
            raise self.failure
        return super().commit(transaction_handle)

    def rollback(self, transaction_handle: Any) -> None:
        self.ends.append("rollback")
        super().rollback(transaction_handle)


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError("gone")])
def test_nothing_stays_open_after_any_end_of_the_commit(failure: BaseException) -> None:
    transaction = ExplicitTransaction()
    first, second = Noting(failure), Noting()
    transaction.opened("first", first)
    transaction.opened("second", second)
    with pytest.raises((KeyboardInterrupt, RowMergeError)):
        transaction.commit()
    assert first.ends == ["commit", "rollback"]
    # An interrupt ends all commits, an error of one catalog only its own.
    assert second.ends == (["rollback"] if isinstance(failure, KeyboardInterrupt) else ["commit"])
