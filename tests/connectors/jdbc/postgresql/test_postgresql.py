"""Features specific to PostgreSQL: connection strings, snapshots, versions of rows, its types and names."""

from __future__ import annotations

import datetime as dt
import pickle
import threading
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import PostgresConnector, RowMergeError, SetupError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.jdbc.postgresql import postgres_errors as postgresql_errors
from rowmerge_nb.connectors.jdbc.postgresql import postgres_session as postgresql_session
from rowmerge_nb.connectors.jdbc.postgresql import postgres_transaction as postgresql
from rowmerge_nb.spi import Constraint
from tests.connectors.jdbc.support import SESSION, Database, Statement, merge
from tests.connectors.jdbc.test_calls import content, insert

SECRET = "s3same öpen"


def refused(call: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        call()
    return caught.value


def connected(dsn: str) -> None:
    PostgresConnector(dsn).store.connect().close()


@pytest.mark.parametrize(
    ("dsn", "part"),
    [
        (
            "postgresql://ann:s3same%20%C3%B6pen@localhost:1/shop",
            "PostgreSQL at host=localhost port=1 dbname=shop cannot be reached",
        ),
        (
            "host=/nowhere user=ann password='s3same öpen'",
            "PostgreSQL at host=/nowhere cannot be reached",
        ),
        ("s3same öpen", "The connection string for PostgreSQL cannot be read"),
        ("host=db s3same=öpen", "The connection string for PostgreSQL cannot be read"),
        (
            "postgresql://ann:s3same öpen@[::1/shop",
            "The connection string for PostgreSQL cannot be read",
        ),
        (
            "postgresql://ann:x@localhost:s3same/öpen",
            "The connection string for PostgreSQL cannot be read",
        ),
    ],
)
def test_a_server_that_cannot_be_reached_is_named_without_secrets(dsn: str, part: str) -> None:
    error = refused(lambda: connected(dsn))
    assert part in error.message
    assert error.hint
    assert error.__cause__ is None
    for told in (
        error.message,
        str(error),
        repr(error),
        repr(PostgresConnector(dsn).store),
        repr(PostgresConnector(dsn)),
    ):
        assert "s3same" not in told.replace("dbname=öpen", "")


def test_a_wrong_password_is_reported_but_not_shown(
    pg: Database, tmp_path: Any, postgresql: str
) -> None:
    pg.sql("DROP ROLE IF EXISTS ann", "CREATE ROLE ann LOGIN PASSWORD 'right'")
    error = refused(
        lambda: connected(
            f"{postgresql.replace('user=postgres', 'user=nobody_here')} password='{SECRET}'"
        )
    )
    assert error.code == "PERMISSION_DENIED"
    assert "nobody_here" in error.message
    assert SECRET not in str(error)


def test_secrets_are_in_no_repr_of_what_travels(pg: Database, postgresql: str) -> None:
    dsn = f"{postgresql} password='{SECRET}'"
    made = PostgresConnector(dsn)
    database = Database("postgresql", made, "public")
    database.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    statement = Statement(database, "t")
    statement.begin()
    splits = made.get_split_manager().get_splits(
        statement.transaction, SESSION, statement.handle, Constraint()
    )
    things = [
        statement.transaction,
        statement.handle,
        statement.merge,
        splits,
        made,
        made.store,
        statement.sink(),
    ]
    things += [
        made.get_page_sink_provider(),
        made.get_page_source_provider(),
        vars(statement.merge),
    ]
    assert SECRET not in repr(things)
    assert pickle.loads(pickle.dumps(made.get_page_source_provider())).store.dsn == dsn
    statement.rollback()


def test_all_splits_see_one_state(pg: Database, monkeypatch: Any) -> None:
    monkeypatch.setattr(postgresql, "SPLIT_BLOCKS", 8)
    monkeypatch.setattr(postgresql, "SMALL_ROWS", 10)
    pg.sql(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i",
    )
    statement = Statement(pg, "t")
    splits = pg.connector.get_split_manager().get_splits(
        statement.transaction, SESSION, statement.handle, Constraint()
    )
    assert len(splits) > 5
    assert splits[-1].high is None
    pg.sql(
        "DELETE FROM t WHERE id % 2 = 0",
        "INSERT INTO t SELECT i, 'new' FROM generate_series(5001, 6000) i",
    )
    keys = statement.read("id").column(0).to_pylist()
    assert sorted(keys) == list(range(1, 5001))
    assert statement.metadata.row_count(SESSION, statement.handle) == 5000
    statement.commit()


def test_a_statement_that_waits_and_then_finds_the_row_changed_is_a_conflict(
    pg: Database,
) -> None:
    pg.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, qty int)",
        "INSERT INTO shelf VALUES (1, 1), (2, 2)",
    )
    other = pg.session()
    other.execute("BEGIN")
    other.execute("UPDATE shelf SET qty = qty + 10 WHERE sku = 1")
    timer = threading.Timer(1, lambda: other.execute("COMMIT"))
    timer.start()
    error = refused(lambda: merge(pg, "shelf", [(1, 100, 3, 1), (2, 200, 3, 2)]))
    timer.join()
    other.close()
    assert error.code == "TRANSACTION_CONFLICT"
    assert content(pg) == [(1, 11), (2, 2)]


def test_a_lock_that_is_never_released_is_reported(pg: Database, monkeypatch: Any) -> None:
    for module in (postgresql_session, postgresql_errors):
        monkeypatch.setattr(module, "LOCK_SECONDS", 1)
    pg.sql("CREATE TABLE shelf (sku int PRIMARY KEY)", "INSERT INTO shelf VALUES (1)")
    other = pg.session()
    other.execute("BEGIN")
    other.execute("UPDATE shelf SET sku = 1")
    error = refused(lambda: merge(pg, "shelf", [(None, 2, 1)]))
    other.execute("ROLLBACK")
    other.close()
    assert error.code == "TRANSACTION_CONFLICT"
    assert "has held a lock for more than 1 seconds" in error.message
    assert pg.leftovers() == []


def test_a_constraint_that_is_checked_at_the_commit_fails_it_and_leaves_nothing(
    pg: Database,
) -> None:
    pg.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY)",
        "CREATE TABLE item (id int PRIMARY KEY, sku int REFERENCES shelf DEFERRABLE INITIALLY DEFERRED)",
        "INSERT INTO shelf VALUES (1)",
    )
    error = refused(lambda: merge(pg, "item", [(1, 77, 1, None)]))
    assert error.code == "CONSTRAINT_VIOLATION"
    assert 'is not present in table "shelf"' in error.message
    assert content(pg, "item") == []
    assert pg.leftovers() == []


def test_enumerations_and_jsonb_are_read_and_written_as_text(pg: Database) -> None:
    pg.sql(
        "CREATE TYPE \"Mood\" AS ENUM ('low', 'high')",
        'CREATE TABLE t ("Id" "Mood" PRIMARY KEY, j jsonb, u uuid)',
    )
    pg.sql("""INSERT INTO t VALUES ('low', '{"a":1}', '12345678-1234-5678-9abc-def012345678')""")
    merge(pg, "t", [("high", "[2]", None, 3, "low"), ("low", None, None, 1, None)])
    statement = Statement(pg, "t")
    assert statement.read().sort_by("Id").to_pylist() == [
        {"Id": "high", "j": "[2]", "u": None},
        {"Id": "low", "j": None, "u": None},
    ]
    statement.commit()
    assert (
        refused(lambda: merge(pg, "t", [("middling", None, None, 1, None)])).code
        == "INVALID_CAST_ARGUMENT"
    )


@pytest.mark.parametrize(
    "declared",
    ["numeric", "numeric(40,2)", "numeric(3,-2)", "point", "int[]", "inet", "interval", "timetz"],
)
def test_a_type_without_a_counterpart_is_named(pg: Database, declared: str) -> None:
    pg.sql(f"CREATE TABLE t (id int PRIMARY KEY, odd {declared})")
    error = refused(lambda: Statement(pg, "t"))
    assert error.code == "NOT_SUPPORTED"
    assert "Column 'odd' of PostgreSQL table 'public.t' is of type" in error.message


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("date", "infinity"),
        ("timestamp", "-infinity"),
        ("timestamptz", "infinity"),
        ("numeric(5,2)", "NaN"),
    ],
)
def test_a_value_without_a_counterpart_is_named(pg: Database, declared: str, value: str) -> None:
    pg.sql(
        f"CREATE TABLE t (id int PRIMARY KEY, odd {declared})",
        f"INSERT INTO t VALUES (1, NULL), (2, '{value}')",
    )
    error = refused(Statement(pg, "t").read)
    assert "Column 'odd' of PostgreSQL table 'public.t'" in error.message
    assert f"holds {value}" in error.message


def test_names_that_differ_in_case_only_are_refused(pg: Database) -> None:
    pg.sql(
        'CREATE TABLE "T" (id int)',
        "CREATE TABLE t (id int)",
        'CREATE TABLE c (a int, "A" int)',
        'CREATE SCHEMA "Odd"',
    )
    assert refused(lambda: Statement(pg, "t")).code == "AMBIGUOUS_NAME"
    assert "'a'" in refused(lambda: Statement(pg, "c")).message
    pg.sql('CREATE TABLE "Odd"."Tab" ("Id" int PRIMARY KEY)', 'INSERT INTO "Odd"."Tab" VALUES (1)')
    odd = Database("postgresql", pg.connector, "odd")
    merge(odd, "tab", [(2, 3, 1)])
    assert content(pg, '"Odd"."Tab"') == [(2,)]
    pg.sql('DROP SCHEMA "Odd" CASCADE')


def test_columns_that_the_server_numbers(pg: Database) -> None:
    pg.sql("CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, s serial, v int)")
    insert(
        pg,
        "t",
        pa.table(
            {
                "id": pa.nulls(2, pa.int32()),
                "s": pa.array([None, 50], pa.int32()),
                "v": pa.array([1, 2], pa.int32()),
            }
        ),
    )
    assert content(pg, "t") == [(1, 1, 1), (2, 50, 2)]
    merge(pg, "t", [(1, 1, 9, 3, 1)])
    assert content(pg, "t") == [(1, 1, 9), (2, 50, 2)]
    assert "computed" in refused(lambda: merge(pg, "t", [(7, 1, 9, 3, 1)])).message


def test_partitioned_tables_are_merged_into(pg: Database) -> None:
    pg.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, qty int) PARTITION BY RANGE (sku)",
        "CREATE TABLE shelf_a PARTITION OF shelf FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE shelf_b PARTITION OF shelf FOR VALUES FROM (10) TO (20)",
        "INSERT INTO shelf VALUES (1, 1), (11, 11)",
    )
    merge(pg, "shelf", [(12, 5, 3, 1), (2, 6, 3, 11), (3, 7, 1, None)])
    assert content(pg) == [(2, 6), (3, 7), (12, 5)]


def test_a_table_with_children_is_not_changed_since_keys_may_exist_twice(
    pg: Database,
) -> None:
    pg.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, note text)",
        "CREATE TABLE attic () INHERITS (shelf)",
        "WITH below AS (INSERT INTO attic VALUES (1, 'b')) INSERT INTO shelf VALUES (1, 'a')",
    )
    error = refused(lambda: merge(pg, "shelf", [(1, "a!", 3, 1), (1, "b!", 3, 1)]))
    assert error.code == "NOT_SUPPORTED"
    assert sorted(content(pg)) == [(1, "a"), (1, "b")]
    insert(pg, "shelf", pa.table({"sku": pa.array([2], pa.int32()), "note": ["c"]}))
    assert pg.rows("SELECT * FROM ONLY shelf ORDER BY 1") == [(1, "a"), (2, "c")]


def test_the_error_of_a_user_without_privileges_names_the_missing_one(
    pg: Database, postgresql: str
) -> None:
    pg.sql(
        "DROP ROLE IF EXISTS guest",
        "CREATE ROLE guest LOGIN",
        "CREATE TABLE t (id int PRIMARY KEY)",
        "GRANT USAGE ON SCHEMA public TO guest",
        "GRANT SELECT ON t TO guest",
    )
    guest = Database(
        "postgresql", PostgresConnector(postgresql.replace("user=postgres", "user=guest")), "public"
    )
    assert Statement(guest, "t").read().num_rows == 0
    error = refused(lambda: merge(guest, "t", [(1, 1, None)]))
    assert error.code == "PERMISSION_DENIED"
    guest.connector.close()
    pg.sql("DROP OWNED BY guest", "DROP ROLE guest")


def test_moments_are_in_utc_regardless_of_the_servers_zone(pg: Database) -> None:
    pg.sql(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz)",
        "INSERT INTO t VALUES (1, '2024-06-01 12:00:00+05:30')",
    )
    (value,) = Statement(pg, "t").read("at").column(0).to_pylist()
    assert value == dt.datetime(2024, 6, 1, 6, 30, tzinfo=dt.UTC)


def test_a_missing_driver_is_reported_with_the_command(pg: Database, monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql", None)
    with pytest.raises(SetupError) as caught:
        pg.connector.store.connect()
    assert caught.value.hint == f"Run: {install_command('postgresql')}"


def test_the_server_checks_its_client_while_a_statement_writes(postgresql):
    transaction = PostgresConnector(postgresql).new_transaction()
    try:
        assert (
            transaction.writer().value(
                "SELECT current_setting('client_connection_check_interval') AS v"
            )
            == "2s"
        )
    finally:
        transaction.rollback()


def test_connections_of_a_thread_share_the_types_that_were_read_for_the_first(
    postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import adbc_driver_postgresql

    opened: list[str] = []
    connect = adbc_driver_postgresql.connect
    monkeypatch.setattr(
        adbc_driver_postgresql, "connect", lambda dsn: (opened.append(dsn), connect(dsn))[1]
    )
    store = PostgresConnector(f"{postgresql} application_name=shared").store
    for _ in range(3):
        with closing(store.connect()) as session:
            assert session.value("SELECT 1 AS one") == 1
    assert len(opened) == 1
