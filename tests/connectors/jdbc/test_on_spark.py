"""Both databases as catalogs of an engine: whole statements on Spark."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from rowmerge_nb import Engine, PostgresConnector, RowMergeError
from rowmerge_nb.connectors.jdbc.postgresql import postgres_transaction as postgresql
from rowmerge_nb.connectors.jdbc.sqlite import sqlite_transaction as sqlite
from rowmerge_nb.connectors.jdbc.staging import JdbcPageSinkProvider
from rowmerge_nb.demo import SETUP, STATEMENT
from rowmerge_nb.notebook.display import error_bundle, plan_bundle, result_bundle
from rowmerge_nb.notebook.orphan_report import orphans_bundle
from rowmerge_nb.report.model.report import PARTS
from rowmerge_nb.trace.saved.traces import save_trace
from tests.connectors.jdbc.support import Database

pytestmark = pytest.mark.spark
cloudpickle.register_pickle_by_value(sys.modules[__name__])

AFTER = [
    ("Aaron", 11, "Arches"),
    ("Carol", 12, "Centreville"),
    ("Dave", 11, "Devon"),
    ("Ed", 7, "Etherville"),
    ("Gus", 2, "Gilroy"),
    ("Joe Shmoe", 112, "Jamestown"),
]
SECRET = "s3same-oeffne-dich"


@pytest.fixture
def engine(spark: Any, database: Database) -> Iterator[Engine]:
    made = Engine(spark=spark, catalog="db", schema=database.schema, trace="auto")
    made.add_catalog("db", database.connector)
    yield made
    made.close()


def keyed(script: str) -> str:
    """Add a primary key to the documents' tables, which a database needs to change rows."""
    return script.replace("partitioned_by = ARRAY['address']", "primary_key = ARRAY['customer']")


@pytest.mark.parametrize("era", ["documents", "current"])
def test_the_documents_example(engine: Engine, database: Database, era: str) -> None:
    engine.run_script(keyed(SETUP))
    result = engine.run(STATEMENT.replace("= purchases +", "= t.purchases +"), era=era)
    assert result.count == 6
    assert result.counts == {"INSERT": 2, "UPDATE": 3, "DELETE": 1, "none": 0}
    assert (result.trace.target.rows_before, result.trace.target.rows_after) == (5, 6)
    found = engine.run(
        "SELECT customer, CAST(purchases AS integer) AS p, address FROM accounts ORDER BY customer"
    ).table.to_pylist()
    assert [tuple(row.values()) for row in found] == AFTER
    assert result.trace.target.connector == database.connector.name
    assert result.trace.settings.paradigm == "CHANGE_ONLY_UPDATED_COLUMNS"
    assert "CHANGE_ONLY_UPDATED_COLUMNS" in str(result)
    assert database.leftovers() == []


def test_statements_of_all_kinds(engine: Engine, database: Database) -> None:
    run = engine.run
    assert (
        run(
            "CREATE TABLE shelf WITH (primary_key = ARRAY['sku']) AS SELECT * FROM (VALUES (1, 'a', DATE '2024-01-01'), (2, 'b', NULL)) AS v (sku, name, day)"
        ).count
        == 2
    )
    copied = run("CREATE TABLE copy AS SELECT sku + 10 AS sku, name, day FROM shelf")
    assert copied.count == 2
    assert any("primary_key = ARRAY['sku']" in notice.message for notice in copied.trace.notices)
    assert run("INSERT INTO shelf SELECT * FROM copy").count == 2
    assert (
        run("UPDATE shelf SET name = upper(name), day = DATE '2025-05-05' WHERE sku > 10").count
        == 2
    )
    assert run("UPDATE shelf SET sku = 3 - sku WHERE sku < 3").count == 2
    assert run("DELETE FROM shelf WHERE sku = 12").count == 1
    assert database.rows("SELECT sku, name FROM shelf ORDER BY sku") == [
        (1, "b"),
        (2, "a"),
        (11, "A"),
    ]
    assert run("SHOW TABLES").table.column(0).to_pylist() == ["copy", "shelf"]
    assert "primary_key = ARRAY['sku']" in str(run("SHOW CREATE TABLE shelf").table.column(0)[0])
    with pytest.raises(RowMergeError, match="has no primary key"):
        run("DELETE FROM copy WHERE sku = 1")
    run("TRUNCATE TABLE copy")
    assert run("SELECT count(*) AS n FROM copy").table.to_pydict() == {"n": [0]}
    run("DROP TABLE copy")
    with pytest.raises(RowMergeError) as caught:
        run("SELECT * FROM copy")
    assert caught.value.code == "TABLE_NOT_FOUND"
    with pytest.raises(RowMergeError) as caught:
        run("INSERT INTO shelf VALUES (1, 'again', NULL)")
    assert caught.value.code == "CONSTRAINT_VIOLATION"
    assert database.rows("SELECT count(*) FROM shelf") == [(3,)]
    assert database.leftovers() == []


def test_schemas_are_created_and_removed_in_databases_with_several(
    engine: Engine, database: Database
) -> None:
    if database.kind == "sqlite":
        with pytest.raises(RowMergeError, match="does not support creating schemas"):
            engine.run("CREATE SCHEMA attic")
        return
    engine.run("CREATE SCHEMA attic")
    engine.run("CREATE TABLE attic.t (id bigint)")
    assert engine.run("SHOW TABLES FROM attic").table.column(0).to_pylist() == ["t"]
    with pytest.raises(RowMergeError):
        engine.run("DROP SCHEMA attic")
    engine.run("DROP TABLE attic.t")
    engine.run("DROP SCHEMA attic")
    assert engine.run("SHOW SCHEMAS").table.column(0).to_pylist() == [
        "information_schema",
        "public",
    ]


@dataclass(frozen=True)
class DyingSinks(JdbcPageSinkProvider):
    """Creates sinks, one of which kills its task after its rows were staged."""

    died: str

    def create_merge_sink(self, *arguments: Any) -> Any:
        sink = super().create_merge_sink(*arguments)
        finish = sink.finish

        def dying() -> Any:
            fragments = finish()
            try:
                Path(self.died).touch(exist_ok=False)
            except FileExistsError:
                return fragments
            os._exit(1)

        sink.finish = dying
        return sink


def test_a_task_that_dies_after_staging_is_run_again_and_its_rows_count_once(
    engine: Engine, database: Database, monkeypatch: Any, tmp_path: Path
) -> None:
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1), (2, 2)"
    )
    died = tmp_path / "died"
    monkeypatch.setattr(
        database.connector,
        "get_page_sink_provider",
        lambda: DyingSinks(database.connector.store, str(died)),
    )
    result = engine.run(
        "MERGE INTO t USING (VALUES (1, 5), (9, 9)) s (id, v) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
    )
    assert died.exists()
    assert result.count == 2
    assert database.rows("SELECT * FROM t ORDER BY 1") == [(1, 5), (2, 2), (9, 9)]
    assert database.leftovers() == []


def test_large_tables_are_read_and_merged_by_several_tasks(
    engine: Engine, database: Database, monkeypatch: Any
) -> None:
    monkeypatch.setattr(sqlite, "SPLIT_ROWS", 20_000)
    monkeypatch.setattr(postgresql, "SPLIT_BLOCKS", 100)
    engine.run(
        "CREATE TABLE big (id bigint, v bigint, name varchar) WITH (primary_key = ARRAY['id'])"
    )
    ids = list(range(60_000))
    rows = pa.table({"id": ids, "v": [0] * len(ids), "name": [f"n{i}" for i in ids]})
    assert engine.run("INSERT INTO big SELECT * FROM rows", namespace={"rows": rows}).count == len(
        ids
    )
    news = pa.table({"id": range(30_000, 90_000), "v": range(60_000)})
    result = engine.run(
        "MERGE INTO big t USING news s ON t.id = s.id WHEN MATCHED AND s.v < 1000 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
        namespace={"news": news},
    )
    assert result.counts == {"DELETE": 1000, "UPDATE": 29_000, "INSERT": 30_000, "none": 0}
    assert (result.trace.target.rows_before, result.trace.target.rows_after) == (60_000, 89_000)
    ((count, total, named),) = database.rows(
        "SELECT count(*) AS n, CAST(sum(v) AS bigint) AS total, count(name) AS named FROM big"
    )
    assert (count, total, named) == (89_000, sum(range(1000, 60_000)), 59_000)


def test_a_statement_asks_the_database_for_the_rows_that_matter(
    engine: Engine, database: Database, monkeypatch: Any
) -> None:
    engine.run(
        "CREATE TABLE big (id bigint, v bigint, name varchar) WITH (primary_key = ARRAY['id'])"
    )
    rows = pa.table(
        {"id": range(20_000), "v": [0] * 20_000, "name": [f"n{i}" for i in range(20_000)]}
    )
    engine.run("INSERT INTO big SELECT * FROM rows", namespace={"rows": rows})
    asked: list[Any] = []
    manager = type(database.connector.get_split_manager())
    real = manager.get_splits

    def get_splits(self: Any, *arguments: Any) -> Any:
        found = real(self, *arguments)
        asked.extend(found)
        return found

    monkeypatch.setattr(manager, "get_splits", get_splits)
    news = pa.table({"id": [7, 19_000, 30_000], "v": [1, 2, 3]})
    merge = "MERGE INTO big t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
    assert engine.run(merge, namespace={"news": news}).count == 3
    assert any("IN (19000, 30000, 7)" in split.predicate and split.carries_rows for split in asked)
    asked.clear()
    assert (
        engine.run("UPDATE big SET v = 9 WHERE id BETWEEN 100 AND 199 AND name >= 'n1'").count
        == 100
    )
    asked_for = [split.predicate.replace("`", '"') for split in asked]
    assert any(
        '"id" >= 100 AND "id" <= 199' in predicate and "'n1'" in predicate
        for predicate in asked_for
    )
    asked.clear()
    assert engine.run("DELETE FROM big WHERE name = 'n150' OR id = 5").count == 2
    assert not any(split.predicate for split in asked)
    assert database.rows("SELECT v, count(*) AS n FROM big GROUP BY v ORDER BY v") == [
        (0, 19_897),
        (1, 1),
        (2, 1),
        (3, 1),
        (9, 99),
    ]


def test_a_change_of_another_session_while_the_statement_runs_is_a_conflict(
    engine: Engine, database: Database
) -> None:
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1), (2, 2)"
    )

    def meanwhile(step: str) -> None:
        if step == "finish_merge":
            database.sql("UPDATE t SET v = 77 WHERE id = 1")

    with pytest.raises(RowMergeError) as caught:
        engine.run("UPDATE t SET v = v + 1", progress=meanwhile)
    assert caught.value.code == "TRANSACTION_CONFLICT"
    assert database.rows("SELECT * FROM t ORDER BY 1") == [(1, 77), (2, 2)]
    assert (
        str(caught.value.result.trace.error.consequences[-1]) == "the transaction was rolled back"
    )
    assert database.leftovers() == []


def test_statements_of_two_threads_lose_no_change(engine: Engine, database: Database) -> None:
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 0), (2, 0)"
    )

    def add(_: int) -> str:
        try:
            engine.run(
                "MERGE INTO t USING (VALUES 1, 2) s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 1",
                trace="off",
            )
        except RowMergeError as error:
            return error.code
        return "ok"

    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(add, range(6)))
    assert set(told) <= {"ok", "TRANSACTION_CONFLICT"}
    assert told.count("ok") > 0
    assert database.rows("SELECT v FROM t ORDER BY id") == [(told.count("ok"),)] * 2
    assert database.leftovers() == []


@pytest.mark.parametrize("step", ["begin_merge", "run", "finish_merge", "commit"])
def test_a_statement_that_is_cancelled_leaves_nothing(
    engine: Engine, database: Database, step: str
) -> None:
    database.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    with pytest.raises(RowMergeError) as caught:
        engine.run("DELETE FROM t", progress=lambda name: engine.cancel() if name == step else None)
    assert caught.value.code == "USER_CANCELED"
    assert database.rows("SELECT count(*) FROM t") == [(2,)]
    assert database.leftovers() == []


def test_an_error_in_the_middle_of_the_rows_leaves_nothing(
    engine: Engine, database: Database
) -> None:
    database.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    many = pa.table({"id": range(10, 50_010), "v": [1] * 49_999 + [0]})
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            "MERGE INTO t USING many s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id / s.v)",
            namespace={"many": many},
        )
    assert caught.value.code in {"DIVISION_BY_ZERO", "TYPE_MISMATCH"}
    assert database.rows("SELECT * FROM t") == [(1,)]
    assert database.leftovers() == []


def test_a_password_is_in_no_report_trace_plan_error_page_or_log(
    spark: Any, pg: Database, postgresql: str, tmp_path: Path, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    pg.sql(
        "CREATE TABLE t (id int PRIMARY KEY, v int CHECK (v < 100))",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
    )
    engine = Engine(spark=spark, catalog="db", schema="public", trace="full")
    engine.add_catalog("db", PostgresConnector(f"{postgresql} password={SECRET}"))
    engine.add_catalog("gone", PostgresConnector(f"postgresql://ann:{SECRET}@localhost:1/shop"))
    sql = "MERGE INTO t USING (VALUES (1, 5), (9, 9)) s (id, v) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
    results = [
        engine.run(sql),
        engine.run("SELECT * FROM t"),
        *(engine.explain(sql, kind=kind) for kind in ("LOGICAL", "DISTRIBUTED")),
    ]
    told = []
    for result in results:
        told += [
            str(result),
            repr(result),
            json.dumps(getattr(result, "_repr_mimebundle_", dict)(), default=str),
        ]
        told.append(
            json.dumps(
                result_bundle(
                    result, parts=",".join(PARTS), timings=True, max_rows=60, first_line=1
                )
            )
        )
    for form in ("text", "dot", "json", "svg"):
        told.append(json.dumps(plan_bundle(engine.explain(sql), form)))
    assert "text/html" in told[3]
    assert "<svg" in "".join(told)
    saved = tmp_path / "trace"
    save_trace(engine.run(sql).trace, saved)
    for statement in (
        "UPDATE t SET v = 1000",
        "SELECT * FROM nowhere",
        "DROP TABLE t2",
        "SELECT * FROM gone.public.t",
    ):
        with pytest.raises(RowMergeError) as caught:
            engine.run(statement)
        error = caught.value
        told += [
            str(error),
            repr(error),
            str(error.result),
            repr(vars(error)),
            str(caught.getrepr(chain=True, showlocals=False)),
        ]
        told.append(json.dumps(error_bundle(error, 1, parts=None, timings=True)))
        told.append("".join(traceback.format_exception(error)))
    told.append(json.dumps(orphans_bundle(engine.orphans(), removed=False)))
    told += [
        path.read_bytes().decode("latin-1") for path in [saved, *saved.rglob("*")] if path.is_file()
    ]
    told += [caplog.text, repr(engine), repr(vars(engine))]
    assert "localhost port=1" in "".join(told)
    assert len(told) > 40
    assert not [text for text in told if SECRET in text]
    engine.close()


def failing(engine: Engine, statement: str, **options: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        engine.run(statement, **options)
    return caught.value


@pytest.fixture
def stock(engine: Engine, database: Database) -> Engine:
    database.sql(
        "CREATE TABLE stock (id int PRIMARY KEY, qty int DEFAULT 7 CHECK (qty > 0), name varchar(9) DEFAULT 'new', "
        "code varchar(9) NOT NULL DEFAULT 'x')",
        "INSERT INTO stock VALUES (1, 5, 'a', 'b')",
    )
    return engine


STOCK = "SELECT id, qty, name, code FROM stock ORDER BY id"


def test_the_database_fills_columns_omitted_by_an_insert_and_null_stays_null(
    stock: Engine, database: Database
) -> None:
    assert stock.run("INSERT INTO stock (id) VALUES 2, 3").count == 2
    assert (
        stock.run("INSERT INTO stock (name, id) SELECT NULL, id + 3 FROM stock WHERE id = 1").count
        == 1
    )
    assert stock.run("INSERT INTO stock VALUES (5, NULL, NULL, 'c')").count == 1
    assert database.rows(STOCK) == [
        (1, 5, "a", "b"),
        (2, 7, "new", "x"),
        (3, 7, "new", "x"),
        (4, 7, None, "x"),
        (5, None, None, "c"),
    ]
    assert database.leftovers() == []


def test_an_insert_of_a_merge_puts_null_where_it_names_no_column(
    stock: Engine, database: Database
) -> None:
    """As in Trino, whose MERGE writes all columns; the database's default replaces NULL in columns that refuse it."""
    merge = "MERGE INTO stock t USING (VALUES 1, 2) AS s (id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    result = stock.run(merge)
    assert result.count == 1
    assert database.rows(STOCK) == [(1, 5, "a", "b"), (2, None, None, "x")]
    notice = result.trace.notices[0].message
    assert notice.startswith("qty and name of a new row will be NULL: a MERGE does not use")
    assert "(qty 7 and name 'new'" in notice
    # The database stores 'x' if NULL is not allowed.
    row = next(line for line in result.text("rows").splitlines() if line.startswith("+"))
    assert row.split()[1:5] == ["2", "NULL", "NULL", "(store)"]
    named = stock.run(merge.replace("(id) VALUES (s.id)", "VALUES (s.id + 1, 1, 'b', 'c')"))
    assert not named.trace.notices


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO stock (id, qty) VALUES (2, 1), (3, -1)",
        "UPDATE stock SET qty = -qty",
        "MERGE INTO stock t USING (VALUES (1, 1), (2, -1)) AS s (id, qty) ON t.id = s.id WHEN MATCHED THEN UPDATE SET qty = s.qty WHEN NOT MATCHED THEN INSERT (id, qty, code) VALUES (s.id, s.qty, 'n')",
    ],
)
def test_a_check_of_the_database_ends_a_statement_and_leaves_the_table(
    stock: Engine, database: Database, statement: str
) -> None:
    for options in ({}, {"flow": "updatable"})[: 2 if statement.startswith("UPDATE") else 1]:
        error = failing(stock, statement, **options)
        assert (error.code, error.changed) == ("CONSTRAINT_VIOLATION", False)
        assert "check constraint" in error.message.lower()
        assert error.hint
        assert database.rows(STOCK) == [(1, 5, "a", "b")]
        assert database.leftovers() == []


def test_defaults_filled_by_the_database_are_not_reported(stock: Engine) -> None:
    insert = "INSERT INTO stock (id) VALUES (2)"
    error = failing(stock, f"{insert} RETURNING id, qty", dialect="extended")
    assert error.code == "NOT_SUPPORTED"
    assert (
        error.message == "RETURNING cannot return column 'qty': the store itself fills the columns"
        " that the INSERT omits"
    )
    result = stock.run(f"{insert} RETURNING id", dialect="extended", verify="duckdb", check=True)
    assert result.table.to_pydict() == {"id": [2]}
    assert "the store itself fills column 'qty', which the INSERT omits" in str(result.verification)
    assert "the store itself fills column 'qty', which the INSERT omits" in " ".join(
        str(result).split()
    )
    assert (
        stock.run("INSERT INTO stock VALUES (3, 1, 'a', 'b')", verify="duckdb").verification.state
        == "agrees"
    )


def test_defaults_filled_by_the_database_for_the_insert_of_a_merge_are_not_reported(
    stock: Engine, database: Database
) -> None:
    merge = "MERGE INTO stock t USING (VALUES 1, 2) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET qty = 6 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    for returned in ("t.*", "new.code"):
        error = failing(stock, f"{merge} RETURNING {returned}", dialect="extended")
        assert (error.code, error.changed) == ("NOT_SUPPORTED", False)
        assert (
            error.message == "RETURNING cannot return column 'code': the store itself fills the"
            " columns that the INSERT omits"
        )
    assert database.rows(STOCK) == [(1, 5, "a", "b")]
    result = stock.run(
        f"{merge} RETURNING t.id, t.qty, old.code", dialect="extended", verify="duckdb", check=True
    )
    assert sorted(map(repr, result.table.to_pylist())) == [
        "{'id': 1, 'qty': 6, 'code': 'b'}",
        "{'id': 2, 'qty': None, 'code': None}",
    ]
    assert "the store itself fills column 'code', which the INSERT omits" in str(
        result.verification
    )
    assert "the store itself fills column 'code', which the INSERT omits" in " ".join(
        str(result).split()
    )
    named = "MERGE INTO stock t USING (VALUES 1, 3) AS s (id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, code) VALUES (s.id, 'n') RETURNING t.*"
    assert stock.run(named, dialect="extended", check=True).table.to_pylist() == [
        {"id": 3, "qty": None, "name": None, "code": "n"}
    ]
    assert database.leftovers() == []


def test_columns_have_no_defaults_visible_to_trino_and_get_none(stock: Engine) -> None:
    error = failing(stock, "ALTER TABLE stock ADD COLUMN more int DEFAULT 1", dialect="extended")
    assert error.message == "Catalog 'db' does not support default value for column name 'more'"
    assert "DEFAULT" not in str(stock.run("SHOW CREATE TABLE stock").explained)


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM shelf", "DELETE FROM shelf WHERE place + 0 < 10"]
)
def test_an_invalid_value_of_a_column_is_reported_with_the_next_step(
    engine: Engine, database: Database, statement: str
) -> None:
    if database.kind == "postgresql":
        pytest.skip("PostgreSQL keeps what a column is declared to be")
    database.sql(
        "CREATE TABLE shelf (sku INTEGER PRIMARY KEY, place INTEGER)",
        "INSERT INTO shelf VALUES (1, 2), (2, 'attic')",
    )
    with pytest.raises(RowMergeError, match=r"'attic' \(text\), which is no bigint") as caught:
        engine.run(statement)
    assert caught.value.hint == "Correct the value, or declare the column differently."
