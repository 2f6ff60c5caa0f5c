"""SQLite and PostgreSQL through the contract, without Spark: their common behavior."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn
from rowmerge_nb.connectors.shared.orphans import this_process
from rowmerge_nb.spi import ColumnMetadata, ConnectorTableMetadata, parse_type
from tests.connectors.jdbc.support import SESSION, Database, Statement, merge

SHELF = 'CREATE TABLE shelf (sku int PRIMARY KEY, qty int CHECK (qty >= 0), "Bin No" varchar(10))'
ROWS = "INSERT INTO shelf VALUES (1, 10, 'A1'), (2, 20, 'A2'), (3, NULL, NULL), (4, 40, 'B1')"


@pytest.fixture
def shelf(database: Database) -> Database:
    database.sql(SHELF, ROWS)
    return database


def content(database: Database, table: str = "shelf") -> list[tuple[Any, ...]]:
    return database.rows(f"SELECT * FROM {table} ORDER BY 1")


def failed(database: Database, *arguments: Any, **more: Any) -> RowMergeError:
    before = content(database)
    with pytest.raises(RowMergeError) as caught:
        merge(database, "shelf", *arguments, **more)
    if "meanwhile" not in more:
        assert content(database) == before
    assert database.leftovers() == []
    return caught.value


def test_deletes_updates_and_inserts_are_applied_together(shelf: Database) -> None:
    merge(
        shelf,
        "shelf",
        [
            (None, None, None, 2, 1),
            (2, 21, "Z", 3, 2),
            (9, None, None, 1, None),
            (3, 5, None, 3, 3),
        ],
    )
    assert content(shelf) == [(2, 21, "Z"), (3, 5, None), (4, 40, "B1"), (9, None, None)]
    assert shelf.leftovers() == []


def test_a_clause_of_the_current_era_writes_only_its_own_columns(shelf: Database) -> None:
    rows = [
        (1, 99, "wrong", 3, 0, 1),
        (2, 99, "right", 3, 1, 2),
        (None, None, None, 2, 2, 3),
        (7, 7, "new", 1, 3, None),
    ]
    merge(shelf, "shelf", rows, {0: ["qty"], 1: ["Bin No"]})
    assert content(shelf) == [(1, 99, "A1"), (2, 20, "right"), (4, 40, "B1"), (7, 7, "new")]


@pytest.mark.parametrize("updated", [None, {0: ["sku"]}])
def test_keys_can_be_exchanged_and_passed_on(shelf: Database, updated: Any) -> None:
    case = () if updated is None else (0,)
    rows = [
        (2, 10, "A1", 3, *case, 1),
        (1, 20, "A2", 3, *case, 2),
        (4, None, None, 3, *case, 3),
        (5, 40, "B1", 3, *case, 4),
    ]
    merge(shelf, "shelf", rows, updated)
    assert content(shelf) == [(1, 20, "A2"), (2, 10, "A1"), (4, None, None), (5, 40, "B1")]


def test_a_key_that_is_deleted_is_free_for_an_update_and_one_that_is_updated_for_an_insert(
    shelf: Database,
) -> None:
    merge(shelf, "shelf", [(None, None, None, 2, 1), (1, 2, "moved", 3, 2), (2, 0, "new", 1, None)])
    assert content(shelf) == [(1, 2, "moved"), (2, 0, "new"), (3, None, None), (4, 40, "B1")]


def test_unique_values_can_be_exchanged_even_if_other_rows_reference_the_row(
    database: Database,
) -> None:
    database.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, code varchar(5) UNIQUE)",
        "CREATE TABLE item (sku int REFERENCES shelf (sku))",
        "INSERT INTO shelf VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO item VALUES (1), (2)",
    )
    merge(database, "shelf", [(1, "b", 3, 1), (2, "a", 3, 2)])
    assert content(database) == [(1, "b"), (2, "a")]
    assert content(database, "item") == [(1,), (2,)]


def test_an_exchange_that_would_take_other_tables_rows_along_is_refused(database: Database) -> None:
    database.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, code varchar(5) UNIQUE)",
        "CREATE TABLE item (sku int REFERENCES shelf (sku) ON DELETE CASCADE)",
        "INSERT INTO shelf VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO item VALUES (1), (2)",
    )
    error = failed(database, [(1, "b", 3, 1), (2, "a", 3, 2)])
    assert error.code == "NOT_SUPPORTED"
    assert "item" in error.message
    assert content(database, "item") == [(1,), (2,)]


def test_an_exchange_of_values_that_other_rows_follow_is_refused(database: Database) -> None:
    database.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, code varchar(5) UNIQUE)",
        "CREATE TABLE item (sku int REFERENCES shelf (sku) ON UPDATE CASCADE)",
        "INSERT INTO shelf VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO item VALUES (1), (2)",
    )
    error = failed(database, [(2, "a", 3, 1), (1, "b", 3, 2)])
    assert error.code == "NOT_SUPPORTED"
    assert "item" in error.message
    # Unreferenced values may be exchanged anyway.
    merge(database, "shelf", [(1, "b", 3, 1), (2, "a", 3, 2)])
    assert content(database) == [(1, "b"), (2, "a")]
    assert content(database, "item") == [(1,), (2,)]


TRIGGERS = {
    "sqlite": [
        "CREATE TRIGGER cleaning AFTER DELETE ON shelf BEGIN DELETE FROM item WHERE sku = old.sku; END"
    ],
    "postgresql": [
        "CREATE FUNCTION clean() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM item WHERE sku = old.sku; RETURN old; END $$",
        "CREATE TRIGGER cleaning AFTER DELETE ON shelf FOR EACH ROW EXECUTE FUNCTION clean()",
    ],
}


def test_an_exchange_that_a_trigger_would_see_as_deletes_is_refused(
    database: Database,
) -> None:
    database.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, code varchar(5) UNIQUE)",
        "CREATE TABLE item (sku int)",
        "INSERT INTO shelf VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO item VALUES (1), (2)",
        *TRIGGERS[database.kind],
    )
    error = failed(database, [(1, "b", 3, 1), (2, "a", 3, 2)])
    assert error.code == "NOT_SUPPORTED"
    assert "cleaning" in error.message
    assert content(database, "item") == [(1,), (2,)]


STAMPING = {
    "sqlite": [
        "CREATE TRIGGER stamp AFTER UPDATE ON shelf BEGIN UPDATE shelf SET code = 'stamped' WHERE sku = new.sku; END"
    ],
    "postgresql": [
        "CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.code = 'stamped'; RETURN new; END $$",
        "CREATE TRIGGER stamp BEFORE UPDATE ON shelf FOR EACH ROW EXECUTE FUNCTION stamp()",
    ],
}


@pytest.mark.parametrize("stamped", [True, False])
def test_the_report_notes_that_it_lacks_the_effects_of_triggers(
    database: Database, stamped: bool
) -> None:
    database.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, code varchar(9))",
        "INSERT INTO shelf VALUES (1, 'a'), (2, 'b')",
        *(STAMPING[database.kind] if stamped else []),
    )
    statement = Statement(database, "shelf")
    statement.begin()
    sink = statement.sink()
    sink.store_merged_rows(statement.page([(1, "new", 3, 1)]))
    output = statement.metadata.finish_merge(SESSION, statement.merge, sink.finish())
    statement.commit()
    assert content(database) == [(1, "stamped" if stamped else "new"), (2, "b")]
    assert output is not None
    assert [notice.split(". ", maxsplit=1)[0] for notice in output.notices] == (
        [
            f"{database.connector.store.name} table '{'main' if database.kind == 'sqlite' else 'public'}.shelf' has 1 trigger or rule: 'stamp'"
        ]
        if stamped
        else []
    )


SKIPPING = {
    "sqlite": "CREATE TRIGGER skip_{0} BEFORE {0} ON shelf WHEN {1}.sku > 8 BEGIN SELECT RAISE(IGNORE); END",
    "postgresql": "CREATE TRIGGER skip_{0} BEFORE {0} ON shelf FOR EACH ROW WHEN ({1}.sku > 8) EXECUTE FUNCTION skip()",
}


@pytest.mark.parametrize("row", [(10, "b", 1, None), (9, "c", 3, 9), (None, None, 2, 9)])
def test_rows_skipped_by_a_trigger_are_reported_as_such(
    database: Database, row: tuple[Any, ...]
) -> None:
    events = {"INSERT": "new", "UPDATE": "new", "DELETE": "old"}
    database.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, code varchar(5))",
        "INSERT INTO shelf VALUES (9, 'i')",
        *["CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"]
        * (database.kind != "sqlite"),
        *(SKIPPING[database.kind].format(event, row_of) for event, row_of in events.items()),
    )
    error = failed(database, [(1, "a", 1, None), row])
    assert error.code == "JDBC_ERROR"
    assert "trigger" in error.message
    assert "another session" not in error.message


def test_keys_of_several_columns_whose_names_need_quoting(database: Database) -> None:
    database.sql(
        'CREATE TABLE "My ""Table""" ("a b" varchar(5), "Select" date, "v.""w" varchar(9), PRIMARY KEY ("Select", "a b"))',
        "INSERT INTO \"My \"\"Table\"\"\" VALUES ('x', '2024-02-29', 'o''k'), ('y', '2024-02-29', NULL), ('x', '1969-12-31', 'z')",
    )
    first, second = dt.date(2024, 2, 29), dt.date(1969, 12, 31)
    stored = (lambda day: day.isoformat()) if database.kind == "sqlite" else (lambda day: day)
    merge(
        database,
        'my "table"',
        [
            ("y", first, "x", 3, (stored(first), "x")),
            ("x", first, "y", 3, (stored(first), "y")),
            (*[None] * 3, 2, (stored(second), "x")),
        ],
    )
    statement = Statement(database, 'my "table"')
    assert statement.read().sort_by("a b").to_pylist() == [
        {"a b": "x", "Select": first, 'v."w': "y"},
        {"a b": "y", "Select": first, 'v."w': "x"},
    ]
    statement.commit()


def test_rows_of_attempts_that_no_fragment_names_do_not_count(shelf: Database) -> None:
    statement = Statement(shelf, "shelf")
    statement.begin()
    page = statement.page([(1, 11, "A1", 3, 1), (8, 8, None, 1, None)])
    lost, won, aborted = statement.sink(), statement.sink(), statement.sink()
    for sink in (lost, won, aborted):
        sink.store_merged_rows(page)
    lost.finish()
    fragments = won.finish()
    aborted.abort()
    statement.finish(fragments)
    assert content(shelf)[0] == (1, 10, "A1"), "nothing is visible before the commit"
    statement.commit()
    assert content(shelf) == [
        (1, 11, "A1"),
        (2, 20, "A2"),
        (3, None, None),
        (4, 40, "B1"),
        (8, 8, None),
    ]
    assert shelf.leftovers() == []


@pytest.mark.parametrize("step", ["begin", "store", "finish sink", "finish"])
def test_a_rollback_after_any_step_leaves_the_table_unchanged(shelf: Database, step: str) -> None:
    before = content(shelf)
    statement = Statement(shelf, "shelf")
    statement.begin()
    assert len(shelf.leftovers()) == 1
    page, sink = (
        statement.page([(1, 11, None, 3, 1), (None, None, None, 2, 2), (6, 6, None, 1, None)]),
        statement.sink(),
    )
    if step != "begin":
        sink.store_merged_rows(page)
    if step in {"finish sink", "finish"}:
        fragments = sink.finish()
        if step == "finish":
            statement.finish(fragments)
    else:
        sink.abort()
    statement.rollback()
    statement.rollback()
    assert content(shelf) == before
    assert shelf.leftovers() == []


def test_a_finish_without_fragments_changes_nothing(shelf: Database) -> None:
    before = content(shelf)
    statement = Statement(shelf, "shelf")
    statement.begin()
    assert statement.sink().finish() == []
    statement.finish([])
    statement.commit()
    assert content(shelf) == before
    assert shelf.leftovers() == []


def test_a_stage_of_which_a_part_is_missing_is_not_applied(shelf: Database) -> None:
    statement = Statement(shelf, "shelf")
    statement.begin()
    sink = statement.sink()
    sink.store_merged_rows(statement.page([(6, 6, None, 1, None)]))
    fragments = [fragment.replace(b'"rows": 1', b'"rows": 2') for fragment in sink.finish()]
    with pytest.raises(RowMergeError, match="2 rows were staged, but 1 of them exist"):
        statement.finish(fragments)
    statement.rollback()
    assert len(content(shelf)) == 4


@pytest.mark.each_value
@pytest.mark.parametrize(
    "change", ["UPDATE shelf SET qty = 5 WHERE sku = 2", "DELETE FROM shelf WHERE sku = 2"]
)
@pytest.mark.parametrize("row", [(2, 21, "A2", 3, 2), (None, None, None, 2, 2)])
def test_a_row_changed_by_another_session_meanwhile_is_a_conflict(
    shelf: Database, change: str, row: Any
) -> None:
    error = failed(shelf, [row, (1, 11, "A1", 3, 1)], meanwhile=lambda: shelf.sql(change))
    assert error.code == "TRANSACTION_CONFLICT"
    assert error.hint == "Run the statement again."
    assert ("qty = 5" in change) == ((2, 5, "A2") in content(shelf)), (
        "the other session's work is kept"
    )
    assert (1, 10, "A1") in content(shelf)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((1, 1, None, 1, None), r"UNIQUE constraint failed|duplicate key value"),
        ((7, -7, None, 1, None), r"CHECK constraint failed|violates check constraint"),
        ((1, -1, None, 3, 1), r"CHECK constraint failed|violates check constraint"),
        ((2, 1, None, 3, 1), r"UNIQUE constraint failed|duplicate key value"),
    ],
)
def test_a_violated_constraint_is_reported_in_the_databases_words(
    shelf: Database, row: Any, words: str
) -> None:
    error = failed(shelf, [row])
    assert error.code == "CONSTRAINT_VIOLATION"
    import re

    assert re.search(words, error.message)


def test_a_violated_foreign_key_is_reported(database: Database) -> None:
    database.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY)",
        "CREATE TABLE item (sku int REFERENCES shelf (sku))",
        "INSERT INTO shelf VALUES (1)",
        "INSERT INTO item VALUES (1)",
    )
    error = failed(database, [(None, 2, 1)])
    assert error.code == "CONSTRAINT_VIOLATION"
    assert "foreign key" in error.message.lower()


def test_a_table_without_a_primary_key_is_read_and_inserted_into_but_not_changed(
    database: Database,
) -> None:
    database.sql("CREATE TABLE log (line varchar(9))", "INSERT INTO log VALUES ('a')")
    insert(database, "log", pa.table({"line": ["b", None]}))
    statement = Statement(database, "log")
    assert sorted(statement.read().column(0).to_pylist(), key=str) == [None, "a", "b"]
    with pytest.raises(RowMergeError, match="has no primary key") as caught:
        statement.metadata.get_merge_row_id_column_handle(SESSION, statement.handle)
    assert caught.value.code == "NOT_SUPPORTED"
    assert "primary_key = ARRAY" in str(caught.value.hint)
    statement.rollback()


def insert(database: Database, table: str, data: pa.Table) -> None:
    statement = Statement(database, table)
    try:
        handle = statement.metadata.begin_insert(SESSION, statement.handle, statement.columns())
        sink = database.connector.get_page_sink_provider().create_page_sink(
            statement.transaction, SESSION, handle
        )
        for page in data.to_batches():
            sink.append_page(page)
        statement.metadata.finish_insert(SESSION, handle, sink.finish())
        statement.commit()
    except BaseException:
        statement.rollback()
        raise


def create(database: Database, table: str, columns: dict[str, str], **properties: Any) -> None:
    transaction = database.connector.begin_transaction()
    metadata = database.connector.get_metadata(transaction)
    made = tuple(ColumnMetadata(name, parse_type(kind)) for name, kind in columns.items())
    try:
        metadata.create_table(
            SESSION, ConnectorTableMetadata(database.name(table), made, properties)
        )
        database.connector.commit(transaction)
    except BaseException:
        database.connector.rollback(transaction)
        raise


ZONE = dt.UTC
moment = dt.datetime.fromisoformat
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "tinyint": [-128, 127],
    "smallint": [-32768, 32767],
    "integer": [-(2**31), 2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1],
    "real": [1.5, -0.0, float("inf")],
    "double": [0.1, 1e300, -0.0, float("-inf")],
    "decimal(5,2)": [Decimal("-999.99"), Decimal("0.10")],
    "decimal(15,0)": [Decimal(999999999999999)],
    "decimal(38,10)": [Decimal("-1234567890123456789012345678.0123456789")],
    "decimal(38,0)": [Decimal(10**38 - 1)],
    "varchar": ["", "007", "1e3", "naïve ☃", "a'b\"c", "\n"],
    "varchar(20)": ["12", "x "],
    "char(4)": ["ab  ", "    ", "1   "],
    "varbinary": [b"", b"\x00\xff"],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)],
    "time(6)": [dt.time(23, 59, 59, 999999), dt.time(0)],
    "timestamp(3)": [moment("2024-02-29 12:30:00.123")],
    "timestamp(6)": [moment("1900-01-01 00:00:00.000001"), moment("2024-01-01")],
    "timestamp(6) with time zone": [dt.datetime(2024, 1, 1, 5, 6, 7, 8, tzinfo=ZONE)],
    "uuid": ["12345678-1234-5678-9abc-def012345678"],
    "json": ['{"a": [1, null]}', "12", '"12"'],
}


@pytest.mark.each_pair
@pytest.mark.parametrize("kind", VALUES)
def test_values_of_every_type_are_read_back_as_written(database: Database, kind: str) -> None:
    create(database, "all_types", {"id": "bigint", "Value": kind}, primary_key=("ID",))
    values = [*VALUES[kind], None]
    column = pa.array(values, parse_type(kind).arrow)
    insert(database, "all_types", pa.table({"id": range(len(values)), "value": column}))
    statement = Statement(database, "all_types")
    assert [c.type for c in statement.columns()][1] == parse_type(
        {"tinyint": "smallint"}.get(kind, kind) if database.kind == "postgresql" else kind
    )
    assert [c.name for c in statement.columns()][1] == (
        "value" if database.kind == "postgresql" else "Value"
    )
    assert statement.handle.key == ("id",)
    read = statement.read().sort_by("id").column(1)
    assert read.to_pylist() == values
    if database.kind == "postgresql" and kind in {"real", "double"}:
        # SQLite writes minus zero as the integer 0.
        assert str(read.to_pylist()) == str(values)
    statement.commit()
    merge(database, "all_types", [(number, values[0], 3, number) for number in range(len(values))])
    statement = Statement(database, "all_types")
    assert statement.read().column(1).to_pylist() == [values[0]] * len(values)
    statement.commit()


@pytest.mark.each_value
@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind != "json"])
def test_values_of_every_type_can_be_keys(database: Database, kind: str) -> None:
    create(database, "keyed", {"k": kind, "v": "integer"}, primary_key="k")
    values = [value for value in VALUES[kind] if value != float("inf")]
    insert(
        database,
        "keyed",
        pa.table(
            {
                "k": pa.array(values, parse_type(kind).arrow),
                "v": pa.array([0] * len(values), pa.int32()),
            }
        ),
    )
    statement = Statement(database, "keyed")
    statement.begin()
    rows = statement.read(row_id=True)
    arrays = [
        rows.column(0),
        pa.array([5] * len(values), pa.int32()),
        pa.array([3] * len(values), pa.int8()),
        rows.column(2),
    ]
    table = pa.table(arrays, names=["k", "v", "operation", "row_id"])
    sink = statement.sink()
    for page in table.to_batches():
        sink.store_merged_rows(page)
    statement.finish(sink.finish())
    statement.commit()
    statement = Statement(database, "keyed")
    assert sorted(statement.read().to_pydict()["k"]) == sorted(values)
    assert set(statement.read().to_pydict()["v"]) == {5}
    statement.commit()


@pytest.mark.parametrize(
    "kind", ["array(integer)", "map(varchar, bigint)", "row(a integer)", "timestamp(9)"]
)
def test_types_without_a_counterpart_are_refused_by_name(database: Database, kind: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        create(database, "odd", {"id": "bigint", "bag": kind})
    assert caught.value.code == "NOT_SUPPORTED"
    assert "'bag'" in caught.value.message
    assert str(parse_type(kind)) in caught.value.message


@pytest.mark.parametrize(
    ("properties", "part"),
    [
        ({"sorted_by": ("id",)}, "'sorted_by' does not exist"),
        ({"primary_key": ("no",)}, "'no'"),
        ({"primary_key": ("id", "ID")}, "twice"),
    ],
)
def test_wrong_table_properties_are_refused(database: Database, properties: Any, part: str) -> None:
    with pytest.raises(RowMergeError, match=part) as caught:
        create(database, "t", {"id": "bigint"}, **properties)
    assert caught.value.code == "INVALID_TABLE_PROPERTY"


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL", "SET DEFAULT", "NO ACTION"])
def test_a_table_referenced_by_other_rows_is_neither_dropped_nor_truncated(
    database: Database, action: str
) -> None:
    database.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, above int REFERENCES shelf (sku) ON DELETE CASCADE)",
        f"CREATE TABLE item (id int PRIMARY KEY, sku int DEFAULT 2 REFERENCES shelf (sku) ON DELETE {action})",
        "INSERT INTO shelf VALUES (1, NULL), (2, 1)",
        "INSERT INTO item VALUES (1, 1), (2, 2)",
    )
    for change in ("drop_table", "truncate_table"):
        statement = Statement(database, "shelf")
        with pytest.raises(RowMergeError) as caught:
            getattr(statement.metadata, change)(SESSION, statement.handle)
        if database.kind == "sqlite" and action != "NO ACTION":
            assert caught.value.code == "NOT_SUPPORTED"
            assert "'item'" in caught.value.message
            assert "DELETE" in str(caught.value.hint)
        statement.rollback()
    assert content(database) == [(1, None), (2, 1)]
    assert content(database, "item") == [(1, 1), (2, 2)]


def test_tables_are_listed_dropped_and_truncated(shelf: Database) -> None:
    statement = Statement(shelf, "shelf")
    assert statement.metadata.row_count(SESSION, statement.handle) == 4
    assert shelf.name("shelf") in statement.metadata.list_tables(SESSION)
    assert statement.metadata.schema_exists(SESSION, shelf.schema)
    assert statement.metadata.get_table_handle(SESSION, shelf.name("no")) is None
    statement.metadata.truncate_table(SESSION, statement.handle)
    statement.rollback()
    assert len(content(shelf)) == 4
    statement = Statement(shelf, "shelf")
    statement.metadata.truncate_table(SESSION, statement.handle)
    statement.commit()
    assert content(shelf) == []
    statement = Statement(shelf, "shelf")
    statement.metadata.drop_table(SESSION, statement.handle)
    statement.commit()
    assert (
        shelf.connector.get_metadata(shelf.connector.begin_transaction()).get_table_handle(
            SESSION, shelf.name("shelf")
        )
        is None
    )
    shelf.connector.close()


def test_only_requested_columns_are_read_in_their_order(shelf: Database) -> None:
    statement = Statement(shelf, "SHELF".lower())
    assert statement.read("Bin No").to_pydict() == {"Bin No": ["A1", "A2", None, "B1"]}
    statement.commit()


def test_views_are_read_and_not_changed(shelf: Database) -> None:
    shelf.sql("CREATE VIEW full_shelf AS SELECT sku, qty FROM shelf WHERE qty > 15")
    statement = Statement(shelf, "full_shelf")
    assert statement.read().to_pydict() == {"sku": [2, 4], "qty": [20, 40]}
    with pytest.raises(RowMergeError, match=r"is a .* view; it can be read but not inserted into"):
        statement.metadata.begin_insert(SESSION, statement.handle, statement.columns())
    statement.rollback()


def test_a_column_that_the_database_computes_is_read_and_not_assigned(database: Database) -> None:
    database.sql(
        "CREATE TABLE shelf (sku int PRIMARY KEY, qty int, twice int GENERATED ALWAYS AS (qty * 2) STORED)"
    )
    database.sql("INSERT INTO shelf (sku, qty) VALUES (1, 5)")
    merge(database, "shelf", [(1, 6, 10, 3, 1), (2, 1, None, 1, None)])
    assert content(database) == [(1, 6, 12), (2, 1, 2)]
    assert "computed" in failed(database, [(1, 6, 77, 3, 1)]).message
    assert "computed" in failed(database, [(3, 6, 77, 1, None)]).message
    assert "computed" in failed(database, [(1, 6, 12, 3, 0, 1)], {0: ["twice"]}).message


def test_a_default_replaces_null_in_columns_that_refuse_null(database: Database) -> None:
    database.sql("CREATE TABLE shelf (sku int PRIMARY KEY, qty int NOT NULL DEFAULT 7)")
    merge(database, "shelf", [(1, None, 1, None), (2, 3, 1, None)])
    assert content(database) == [(1, 7), (2, 3)]


def test_leftovers_of_a_driver_that_died_are_listed_and_removed(shelf: Database) -> None:
    living = Statement(shelf, "shelf")
    living.begin()
    kept = shelf.leftovers()
    died = Statement(shelf, "shelf")
    died.begin()
    transaction = shelf.connector._transactions.pop(died.transaction.number)
    if shelf.kind == "sqlite":
        import os

        os.close(transaction._spool._lock)  # type: ignore[attr-defined]
    transaction.end() if shelf.kind == "postgresql" else transaction._session.close()  # type: ignore[attr-defined]
    assert len(shelf.leftovers()) == 2
    (orphan,) = shelf.connector.orphans()
    assert (orphan.statement, orphan.process) == (SESSION.query_id, this_process())
    assert orphan.bytes is not None
    assert orphan.modified is not None
    assert shelf.connector.remove_orphans() == [orphan]
    assert shelf.leftovers() == kept
    living.rollback()
    assert shelf.leftovers() == []


@pytest.mark.trial
@given(data=st.data())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_changes_have_the_same_result_as_on_a_dictionary(
    database: Database, data: st.DataObject
) -> None:
    database.sql("DROP TABLE IF EXISTS shelf", "CREATE TABLE shelf (sku int PRIMARY KEY, qty int)")
    keys = range(8)
    before = {key: key * 10 for key in keys}
    database.sql(
        "INSERT INTO shelf VALUES "
        + ", ".join(f"({key}, {value})" for key, value in before.items())
    )
    deleted = data.draw(st.sets(st.sampled_from(keys)))
    updated = (
        data.draw(st.sets(st.sampled_from([k for k in keys if k not in deleted])))
        if len(deleted) < 8
        else set()
    )
    free = [k for k in range(12) if k not in before or k in deleted or k in updated]
    targets = data.draw(st.permutations(free))
    moved = dict(zip(sorted(updated), targets, strict=False))
    added = (
        data.draw(st.sets(st.sampled_from(targets[len(moved) :])))
        if len(free) > len(moved)
        else set()
    )
    rows = [
        *((None, None, 2, key) for key in deleted),
        *((new, new + 100, 3, old) for old, new in moved.items()),
        *((key, None, 1, None) for key in added),
    ]
    expected = {
        key: value for key, value in before.items() if key not in deleted and key not in updated
    }
    expected |= {new: new + 100 for new in moved.values()} | dict.fromkeys(added)
    if rows:
        merge(database, "shelf", data.draw(st.permutations(rows)))
    assert dict(content(database)) == expected


def test_handles_and_providers_show_no_column_but_travel_whole(shelf: Database) -> None:
    statement = Statement(shelf, "shelf")
    assert statement.handle.column("Bin No") == JdbcColumn(
        "Bin No", parse_type("varchar(10)"), statement.handle.columns[2].declared
    )
    assert statement.handle.metadata.properties == {"primary_key": ("sku",)}
    statement.commit()
