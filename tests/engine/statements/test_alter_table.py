"""ALTER TABLE on every store: its effect on a table, and refusals."""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
from contextlib import closing
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

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

STORES = ["memory", "lake", "lite", "pg"]
SCHEMAS = {
    "memory": "memory.default",
    "lake": "lake.default",
    "lite": "lite.main",
    "pg": "pg.public",
}


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Engine:
    made = Engine(spark=spark)
    made.add_catalog("lake", IcebergConnector(warehouse=tmp_path / "lake"))
    made.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
    made.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    return made


@pytest.fixture
def table(engine: Engine, store: str, request: pytest.FixtureRequest) -> str:
    if store == "pg":
        engine.add_catalog("pg", PostgresConnector(request.getfixturevalue("postgresql")))
        engine.run("DROP TABLE IF EXISTS pg.public.altered")
        engine.run("DROP TABLE IF EXISTS pg.public.renamed")
    name = f"{SCHEMAS[store]}.altered"
    with_key = " WITH (primary_key = ARRAY['id'])" if store in {"memory", "lite", "pg"} else ""
    engine.run(
        f"CREATE TABLE {name}{with_key} AS SELECT * FROM (VALUES (1, VARCHAR 'a', REAL '1.5'), (2, 'b', REAL '2')) AS v (id, n, r)"
    )
    return name


def rows(engine: Engine, name: str) -> list[dict[str, Any]]:
    found = engine.run(f"SELECT * FROM {name} ORDER BY id").table
    assert found is not None
    return found.to_pylist()


def refused(engine: Engine, sql: str) -> RowMergeError:
    with pytest.raises(RowMergeError) as error:
        engine.run(sql)
    return error.value


@pytest.mark.parametrize("store", STORES)
@pytest.mark.on_spark
def test_columns_are_added_dropped_and_renamed_and_statements_continue(
    engine: Engine, table: str, store: str
) -> None:
    assert "Table altered altered." in str(engine.run(f"ALTER TABLE {table} ADD COLUMN x bigint"))
    assert rows(engine, table) == [
        {"id": 1, "n": "a", "r": 1.5, "x": None},
        {"id": 2, "n": "b", "r": 2.0, "x": None},
    ]
    engine.run(f"UPDATE {table} SET x = id * 10")
    engine.run(f"ALTER TABLE {table} DROP COLUMN n")
    engine.run(f'ALTER TABLE {table} RENAME COLUMN x TO "odd name"')
    engine.run(
        f"""MERGE INTO {table} t USING (VALUES (2, 7), (3, 8)) AS s (id, x) ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET "odd name" = s.x WHEN NOT MATCHED THEN INSERT (id, "odd name") VALUES (s.id, s.x)"""
    )
    kept = [
        {"id": 1, "r": 1.5, "odd name": 10},
        {"id": 2, "r": 2.0, "odd name": 7},
        {"id": 3, "r": None, "odd name": 8},
    ]
    assert rows(engine, table) == kept
    renamed = f"{SCHEMAS[store]}.renamed"
    engine.run(f"ALTER TABLE {table} RENAME TO {renamed}")
    assert rows(engine, renamed) == kept
    assert refused(engine, f"SELECT * FROM {table}").code == "TABLE_NOT_FOUND"
    # A column that is added again has none of its former values.
    engine.run(f"ALTER TABLE {renamed} ADD COLUMN n varchar")
    assert {row["n"] for row in rows(engine, renamed)} == {None}


@pytest.mark.parametrize("store", STORES)
def test_existing_and_missing_objects_are_reported_or_skipped(
    engine: Engine, table: str, store: str
) -> None:
    before = rows(engine, table)
    for action, code, message in (
        ("ADD COLUMN N bigint", "COLUMN_ALREADY_EXISTS", "Column 'n' already exists"),
        ("DROP COLUMN nn", "COLUMN_NOT_FOUND", "Column 'nn' does not exist"),
        ("RENAME COLUMN x TO y", "COLUMN_NOT_FOUND", "Column 'x' does not exist"),
        ("RENAME COLUMN n TO r", "COLUMN_ALREADY_EXISTS", "Column 'r' already exists"),
        ("ALTER COLUMN x SET DATA TYPE bigint", "COLUMN_NOT_FOUND", "Column 'x' does not exist"),
        (f"RENAME TO {table}", "TABLE_ALREADY_EXISTS", f"Target table '{table}' already exists"),
        ("RENAME TO elsewhere.a.b", "CATALOG_NOT_FOUND", "Target catalog 'elsewhere' not found"),
    ):
        error = refused(engine, f"ALTER TABLE {table} {action}")
        assert (error.code, error.message, error.line, error.column) == (code, message, 1, 1)
    assert "Did you mean 'n'?" in str(refused(engine, f"ALTER TABLE {table} DROP COLUMN nn").hint)
    for nothing in (
        f"ALTER TABLE IF EXISTS {SCHEMAS[store]}.nothing DROP COLUMN x",
        f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS n bigint",
        f"ALTER TABLE {table} DROP COLUMN IF EXISTS x",
        f"ALTER TABLE {table} RENAME COLUMN IF EXISTS x TO y",
    ):
        assert "There is nothing to alter." in str(engine.run(nothing))
    assert rows(engine, table) == before
    engine.run(f"ALTER TABLE {table} ADD COLUMN y date", dry_run=True)
    assert rows(engine, table) == before


@pytest.mark.parametrize("store", ["memory", "lake", "pg"])
def test_a_type_can_only_become_wider(engine: Engine, table: str, store: str) -> None:
    engine.run(f"ALTER TABLE {table} ALTER COLUMN r SET DATA TYPE double")
    engine.run(f"UPDATE {table} SET r = 1e300 WHERE id = 1")
    assert [row["r"] for row in rows(engine, table)] == [1e300, 2.0]
    before = rows(engine, table)
    error = refused(engine, f"ALTER TABLE {table} ALTER COLUMN n SET DATA TYPE bigint")
    assert error.code in {"NOT_SUPPORTED", "ICEBERG_COMMIT_ERROR", "JDBC_ERROR"}
    assert rows(engine, table) == before


@pytest.mark.parametrize("store", ["memory", "lake"])
def test_a_column_is_added_at_the_requested_position(
    engine: Engine, table: str, store: str
) -> None:
    engine.run(f"ALTER TABLE {table} ADD COLUMN a date FIRST")
    engine.run(f"ALTER TABLE {table} ADD COLUMN b date AFTER id")
    engine.run(f"UPDATE {table} SET b = DATE '2024-02-29' WHERE id = 2")
    assert list(rows(engine, table)[0]) == ["a", "id", "b", "n", "r"]
    assert [row["b"] for row in rows(engine, table)] == [None, dt.date(2024, 2, 29)]


@pytest.mark.parametrize("store", ["memory", "lake"])
@pytest.mark.on_spark
def test_a_column_that_may_be_null_no_longer_refuses_it(engine: Engine, store: str) -> None:
    name = f"{SCHEMAS[store]}.strict"
    engine.run(f"CREATE TABLE {name} (id bigint, v bigint NOT NULL)")
    assert refused(engine, f"INSERT INTO {name} VALUES (1, NULL)").code == "CONSTRAINT_VIOLATION"
    engine.run(f"ALTER TABLE {name} ALTER COLUMN v DROP NOT NULL")
    engine.run(f"INSERT INTO {name} VALUES (1, NULL)")
    error = refused(engine, f"ALTER TABLE {name} ALTER COLUMN v DROP NOT NULL")
    assert (error.code, error.message) == ("NOT_SUPPORTED", "Column is already nullable")


@pytest.mark.parametrize(
    ("store", "action", "message"),
    [
        ("memory", "DROP COLUMN id", "the table property 'primary_key' names it"),
        ("memory", "ADD COLUMN x bigint NOT NULL", "NULL value not allowed for NOT NULL column: x"),
        ("lake", "ADD COLUMN x bigint NOT NULL", "does not support adding not null columns"),
        ("lite", "ADD COLUMN x bigint FIRST", "SQLite does not have a column FIRST in ALTER TABLE"),
        (
            "lite",
            "ALTER COLUMN r SET DATA TYPE double",
            "SQLite does not have another type of a column in ALTER TABLE",
        ),
        ("lite", "DROP COLUMN id", "PRIMARY KEY"),
        ("lite", "ADD COLUMN x bigint NOT NULL", "Cannot add a NOT NULL column"),
    ],
)
def test_alterations_that_a_store_lacks_are_refused_and_the_table_stays(
    engine: Engine, table: str, store: str, action: str, message: str
) -> None:
    before = rows(engine, table)
    error = refused(engine, f"ALTER TABLE {table} {action}")
    assert message in error.message
    assert rows(engine, table) == before


def test_a_partition_column_of_an_iceberg_table_is_not_dropped(engine: Engine) -> None:
    engine.run(
        "CREATE TABLE lake.default.p (id bigint, day date) WITH (partitioning = ARRAY['day'])"
    )
    assert (
        "it defines partitions"
        in refused(engine, "ALTER TABLE lake.default.p DROP COLUMN day").message
    )
    engine.run("ALTER TABLE lake.default.p RENAME COLUMN day TO d")
    engine.run("INSERT INTO lake.default.p VALUES (1, DATE '2024-02-29')")
    assert rows(engine, "lake.default.p") == [{"id": 1, "d": dt.date(2024, 2, 29)}]


def test_a_renamed_column_of_a_memory_table_is_renamed_in_its_properties(engine: Engine) -> None:
    engine.run(
        """CREATE TABLE t (id bigint, region varchar, v bigint)
        WITH (primary_key = ARRAY['id'], partitioned_by = ARRAY['bucket(region, 4)'])"""
    )
    engine.run("ALTER TABLE t RENAME COLUMN id TO key")
    engine.run("ALTER TABLE t RENAME COLUMN region TO area")
    engine.run("INSERT INTO t VALUES (1, 'a', 1)")
    shown = engine.run("SHOW CREATE TABLE t").explained
    assert shown is not None
    assert "primary_key = ARRAY['key']" in shown
    assert "partitioned_by = ARRAY['bucket(area, 4)']" in shown
    assert refused(engine, "INSERT INTO t VALUES (1, 'b', 1)").code == "CONSTRAINT_VIOLATION"


def test_other_tables_are_refused_by_name(engine: Engine) -> None:
    engine.run_script(
        "CREATE TABLE hive.default.t (id bigint); CREATE VIEW v AS SELECT 1 AS a; CREATE TABLE one (id bigint)"
    )
    hive = refused(engine, "ALTER TABLE hive.default.t ADD COLUMN x bigint")
    assert (hive.code, hive.message) == (
        "NOT_SUPPORTED",
        "This connector does not support altering tables, except for their comments",
    )
    assert "views" in refused(engine, "ALTER TABLE v ADD COLUMN x bigint").message
    assert "only column" in refused(engine, "ALTER TABLE one DROP COLUMN id").message
    assert (
        "across catalogs" in refused(engine, "ALTER TABLE one RENAME TO lake.default.one").message
    )
    assert (
        refused(engine, "ALTER TABLE one RENAME TO memory.nowhere.one").message
        == "Schema nowhere not found"
    )
    assert (
        "SET AUTHORIZATION is not supported"
        in refused(engine, "ALTER TABLE one SET AUTHORIZATION you").message
    )
    assert (
        refused(engine, "ALTER TABLE one EXECUTE optimize").message
        == "Table procedure not registered: OPTIMIZE"
    )
    error = refused(engine, "ALTER TABLE one SET")
    assert error.message == "mismatched input '<EOF>'. Expecting: 'AUTHORIZATION', 'PROPERTIES'"
    error = refused(engine, "ALTER TABLE v SET PROPERTIES paradigm = DEFAULT")
    assert (error.code, error.message) == (
        "NOT_SUPPORTED",
        "Cannot set properties to a view in ALTER TABLE",
    )
    error = refused(engine, "ALTER TABLE v RENAME TO w")
    said = "Table 'memory.default.v' does not exist, but a view with that name exists. Did you mean ALTER VIEW memory.default.v RENAME TO ...?"
    assert (error.code, error.message) == ("GENERIC_USER_ERROR", said)
    error = refused(engine, "ALTER TABLE one RENAME TO v")
    said = "Target table 'memory.default.v' does not exist, but a view with that name exists."
    assert (error.code, error.message) == ("GENERIC_USER_ERROR", said)
    error = refused(engine, "ALTER TABLE one")
    assert (
        error.message
        == "mismatched input '<EOF>'. Expecting: '.', 'ADD', 'ALTER', 'DROP', 'EXECUTE', 'RENAME', 'SET'"
    )


def test_a_statement_that_read_the_table_before_its_alteration_fails(engine: Engine) -> None:
    engine.run("CREATE TABLE t AS SELECT 1 AS id")
    changed = engine.run("UPDATE t SET id = 2")
    engine.run("ALTER TABLE t ADD COLUMN x bigint")
    assert refused_undo(engine).code == "TRANSACTION_CONFLICT"
    assert changed.version_before is not None
    with pytest.raises(RowMergeError, match="is not retained"):
        engine.restore("t", changed.version_before)
    assert rows(engine, "t") == [{"id": 2, "x": None}]


def refused_undo(engine: Engine) -> RowMergeError:
    with pytest.raises(RowMergeError) as error:
        engine.undo("t")
    return error.value


# -- properties


def made(engine: Engine, name: str) -> str:
    shown = engine.run(f"SHOW CREATE TABLE {name}").explained
    assert shown is not None
    return shown


def test_properties_of_a_table_in_memory_change_and_rows_and_versions_stay(engine: Engine) -> None:
    engine.run(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, VARCHAR 'a'), (2, 'b'), (3, 'a')) AS v (id, region)"
    )
    version = engine.run("UPDATE t SET region = 'c' WHERE id = 3").version_after
    assert version is not None
    engine.run(
        "ALTER TABLE t SET PROPERTIES paradigm = CHANGE_ONLY_UPDATED_COLUMNS, bucketed_by = ARRAY['id'], bucket_count = 2"
    )
    assert "paradigm = 'CHANGE_ONLY_UPDATED_COLUMNS'" in made(engine, "t")
    assert "bucket_count = 2" in made(engine, "t")
    result = engine.run("UPDATE t SET region = 'd' WHERE id = 2")
    assert result.trace.settings.paradigm == "CHANGE_ONLY_UPDATED_COLUMNS"
    kept = [{"id": 1, "region": "a"}, {"id": 2, "region": "d"}, {"id": 3, "region": "c"}]
    assert rows(engine, "t") == kept
    engine.run(
        "ALTER TABLE t SET PROPERTIES paradigm = DEFAULT, bucketed_by = DEFAULT, bucket_count = DEFAULT, primary_key = 'id'"
    )
    assert "bucket" not in made(engine, "t")
    assert "primary_key = ARRAY['id']" in made(engine, "t")
    assert refused(engine, "INSERT INTO t VALUES (1, 'e')").code == "CONSTRAINT_VIOLATION"
    assert rows(engine, "t") == kept
    # The statement that has changed rows is undone, and the properties stay.
    assert "Undone: UPDATE of 1 row" in str(engine.undo("t"))
    assert "primary_key = ARRAY['id']" in made(engine, "t")
    assert [row["region"] for row in rows(engine, "t")] == ["a", "b", "c"]
    engine.run("COMMENT ON COLUMN t.id IS 'the key'")
    engine.undo("t")
    assert [row["region"] for row in rows(engine, "t")] == ["a", "b", "a"]
    engine.restore("t", version)
    assert [row["region"] for row in rows(engine, "t")] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("store", "properties", "code", "message", "at"),
    [
        (
            "memory",
            "paradigm = DEFAULT, colour = 'red'",
            "INVALID_TABLE_PROPERTY",
            "property 'colour' does not exist",
            "colour",
        ),
        (
            "memory",
            "paradigm = 'NONE'",
            "INVALID_TABLE_PROPERTY",
            "'NONE' is not a row change paradigm",
            "paradigm",
        ),
        (
            "memory",
            "bucket_count = 4",
            "INVALID_TABLE_PROPERTY",
            "cannot be combined",
            "bucket_count",
        ),
        (
            "memory",
            "partitioned_by = 7",
            "INVALID_TABLE_PROPERTY",
            "Cannot convert [7] to array(varchar)",
            "partitioned_by",
        ),
        (
            "lake",
            "partitioning = ARRAY[1]",
            "INVALID_TABLE_PROPERTY",
            "to array(varchar)",
            "partitioning",
        ),
        ("lake", "format_version = '1'", "INVALID_TABLE_PROPERTY", "not '1'", "format_version"),
        (
            "memory",
            "partitioned_by = ARRAY['x']",
            "INVALID_TABLE_PROPERTY",
            "'x'",
            "partitioned_by",
        ),
        (
            "memory",
            "primary_key = ARRAY['n']",
            "CONSTRAINT_VIOLATION",
            "Primary key of 'default.altered' would be repeated",
            None,
        ),
        (
            "memory",
            "paradigm = DEFAULT, paradigm = DEFAULT",
            "SYNTAX_ERROR",
            "Duplicate property: paradigm",
            None,
        ),
        (
            "memory",
            "primary_key = id + 1",
            "INVALID_TABLE_PROPERTY",
            "id + 1 is neither a constant",
            "primary_key",
        ),
        (
            "lake",
            "colour = 'red'",
            "INVALID_TABLE_PROPERTY",
            "property 'colour' does not exist",
            "colour",
        ),
        ("lake", "format = 'ORC'", "INVALID_TABLE_PROPERTY", "format can be 'PARQUET'", "format"),
        (
            "lake",
            "format_version = 4",
            "INVALID_TABLE_PROPERTY",
            "format_version must be between 1 and 3",
            "format_version",
        ),
        (
            "lake",
            "format_version = 1",
            "NOT_SUPPORTED",
            "Cannot downgrade v2 table to v1",
            "format_version",
        ),
        (
            "lake",
            "location = 's3://bucket/x'",
            "NOT_SUPPORTED",
            "cannot be updated: location",
            "location",
        ),
        ("lake", "location = DEFAULT", "NOT_SUPPORTED", "cannot be updated: location", "location"),
        ("lake", "partitioning = ARRAY['x']", "INVALID_TABLE_PROPERTY", "'x'", "partitioning"),
        (
            "lake",
            "partitioning = ARRAY['month(n)']",
            "INVALID_TABLE_PROPERTY",
            "month",
            "partitioning",
        ),
        (
            "lake",
            "isolation_level = 'none'",
            "INVALID_TABLE_PROPERTY",
            "isolation_level can be",
            "isolation_level",
        ),
        (
            "lite",
            "primary_key = ARRAY['n']",
            "NOT_SUPPORTED",
            "does not support setting table properties",
            None,
        ),
        (
            "pg",
            "primary_key = ARRAY['n']",
            "NOT_SUPPORTED",
            "does not support setting table properties",
            None,
        ),
    ],
)
def test_impossible_properties_are_refused_at_their_position_and_the_table_stays(
    engine: Engine, table: str, store: str, properties: str, code: str, message: str, at: str | None
) -> None:
    if properties == "primary_key = ARRAY['n']" and store == "memory":
        engine.run(f"INSERT INTO {table} VALUES (3, 'a', REAL '1')")
    before, definition = rows(engine, table), made(engine, table)
    sql = f"ALTER TABLE {table} SET PROPERTIES {properties}"
    error = refused(engine, sql)
    assert error.code == code
    assert message in error.message
    if at is not None:
        assert (error.line, error.column) == (1, sql.index(at, len(f"ALTER TABLE {table} SET")) + 1)
    assert (rows(engine, table), made(engine, table)) == (before, definition)


@pytest.mark.on_spark
def test_an_iceberg_table_is_repartitioned_and_files_of_both_layouts_are_read_and_changed(
    engine: Engine,
) -> None:
    name = "lake.default.p"
    engine.run(
        f"CREATE TABLE {name} (id bigint, region varchar, day date) WITH (partitioning = ARRAY['region', 'bucket(id, 4)'])"
    )
    values = ", ".join(f"({i}, '{'ab'[i % 2]}', DATE '2024-02-0{i}')" for i in range(1, 7))
    engine.run(f"INSERT INTO {name} VALUES {values}")
    wanted = (
        "ARRAY['region','bucket(id, 2)','month(day)']",
        "ARRAY['day']",
        "DEFAULT",
        "ARRAY['region','bucket(id, 4)']",
    )
    for number, partitioning in enumerate(wanted, 10):
        # Repeating it is not an error, and changes nothing.
        for _ in range(2):
            engine.run(f"ALTER TABLE {name} SET PROPERTIES partitioning = {partitioning}")
        shown = re.search("partitioning = (.*)", made(engine, name))
        assert set(re.findall("'([^']*)'", shown[1] if shown else "")) == set(
            re.findall("'([^']*)'", partitioning)
        )
        engine.run(
            f"""MERGE INTO {name} t USING (VALUES (1, 'x'), (4, 'y'), ({number}, 'z')) AS s (id, region) ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET region = t.region || s.region
            WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.region, DATE '2024-03-01')"""
        )
        engine.run(f"DELETE FROM {name} WHERE id = {number - 1}")
    found = [(row["id"], row["region"]) for row in rows(engine, name)]
    assert found == [(1, "bxxxx"), (2, "a"), (3, "b"), (4, "ayyyy"), (5, "b"), (6, "a"), (13, "z")]


@pytest.mark.parametrize(
    ("name", "key"), [("lake.default.odd", "partitioning"), ("odd", "partitioned_by")]
)
@pytest.mark.on_spark
def test_partitions_by_columns_with_odd_names_are_shown_as_they_are_written(
    engine: Engine, name: str, key: str
) -> None:
    engine.run(f'CREATE TABLE {name} ("odd name" bigint, "Gr""öße" varchar)')
    engine.run(f"INSERT INTO {name} VALUES (1, 'x'), (2, 'y')")
    written = f"""{key} = ARRAY['"odd name"', 'truncate("Gr""öße", 1)']"""
    engine.run(f"ALTER TABLE {name} SET PROPERTIES {written}")
    assert written in made(engine, name)
    engine.run(f"""UPDATE {name} SET "Gr""öße" = 'z' WHERE "odd name" = 1""")
    found = engine.run(f'SELECT * FROM {name} ORDER BY "odd name"').table
    assert found is not None
    assert found.to_pylist() == [{"odd name": 1, 'Gr"öße': "z"}, {"odd name": 2, 'Gr"öße': "y"}]
    error = refused(engine, f"""ALTER TABLE {name} SET PROPERTIES {key} = ARRAY['"no such"']""")
    assert "names column 'no such', which the table does not have" in error.message


def test_an_iceberg_table_of_format_one_becomes_one_whose_rows_can_be_changed(
    engine: Engine,
) -> None:
    name = "lake.default.old"
    engine.run(
        f"CREATE TABLE {name} (id bigint, v bigint) WITH (format_version = 1, partitioning = ARRAY['id'])"
    )
    engine.run(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    assert refused(engine, f"UPDATE {name} SET v = 3").code == "NOT_SUPPORTED"
    engine.run(f"ALTER TABLE {name} SET PROPERTIES partitioning = ARRAY['bucket(id, 2)']")
    engine.run(f"INSERT INTO {name} VALUES (3, 3)")
    engine.run(
        f"ALTER TABLE {name} SET PROPERTIES format_version = DEFAULT, isolation_level = 'snapshot'"
    )
    engine.run(f"UPDATE {name} SET v = v * 10 WHERE id > 1")
    assert rows(engine, name) == [{"id": 1, "v": 1}, {"id": 2, "v": 20}, {"id": 3, "v": 30}]
    assert "format_version = 2" in made(engine, name)
    assert "isolation_level = 'snapshot'" in made(engine, name)
    engine.run(f"ALTER TABLE {name} SET PROPERTIES isolation_level = DEFAULT")
    assert "isolation_level" not in made(engine, name)


# -- comments

COMMENTS = """CREATE TABLE {0} (
   id bigint NOT NULL,
   n varchar COMMENT 'it''s the name',
   more varchar COMMENT 'more'
)
COMMENT 'two'"""


@pytest.mark.parametrize("store", ["memory", "lake", "pg"])
def test_comments_are_kept_shown_and_changed_and_rows_stay(
    engine: Engine, store: str, request: pytest.FixtureRequest
) -> None:
    if store == "pg":
        engine.add_catalog("pg", PostgresConnector(request.getfixturevalue("postgresql")))
        engine.run("DROP TABLE IF EXISTS pg.public.commented")
    name = f"{SCHEMAS[store]}.commented"
    engine.run(
        f"CREATE TABLE {name} (id bigint NOT NULL COMMENT 'the \\key', n varchar COMMENT 'n') COMMENT 'one'"
    )
    engine.run(f"INSERT INTO {name} VALUES (1, 'a')")
    assert "Comment on " in str(engine.run(f"COMMENT ON TABLE {name} IS 'two'"))
    assert described(engine, name) == [("id", "the \\key"), ("n", "n")]
    # Repeating it is not an error.
    for _ in range(2):
        engine.run(f"COMMENT ON COLUMN {name}.N IS 'it''s the name'")
        engine.run(f"COMMENT ON COLUMN {name}.id IS NULL")
    engine.run(f"ALTER TABLE {name} ADD COLUMN new varchar COMMENT 'more'")
    engine.run(f"ALTER TABLE {name} RENAME COLUMN new TO more")
    engine.run(f"INSERT INTO {name} VALUES (2, 'b', 'x')")
    made = engine.run(f"SHOW CREATE TABLE {name}").explained
    assert made is not None
    assert made.partition("\nWITH")[0] == COMMENTS.format(name)
    assert rows(engine, name) == [
        {"id": 1, "n": "a", "more": None},
        {"id": 2, "n": "b", "more": "x"},
    ]
    # The shown statement creates the same table.
    engine.run(f"DROP TABLE {name}")
    engine.run(made if store != "lake" else made.partition("\nWITH")[0])
    assert described(engine, name) == [("id", ""), ("n", "it's the name"), ("more", "more")]
    engine.run(f"COMMENT ON TABLE {name} IS NULL")
    assert "\nCOMMENT" not in str(engine.run(f"SHOW CREATE TABLE {name}").explained)


def described(engine: Engine, name: str) -> list[tuple[str, str]]:
    found = engine.run(f"DESCRIBE {name}").table
    assert found is not None
    return [(row["Column"], row["Comment"]) for row in found.to_pylist()]


def test_a_comment_keeps_the_versions_of_a_table_in_memory(engine: Engine) -> None:
    engine.run("CREATE TABLE commented AS SELECT 1 AS id")
    engine.run("COMMENT ON TABLE commented IS 'one'")
    engine.run("UPDATE commented SET id = 2")
    found = engine.run("SELECT id FROM commented FOR VERSION AS OF 2").table
    assert found is not None
    assert found.to_pylist() == [{"id": 1}]
    assert "COMMENT 'one'" in str(engine.run("SHOW CREATE TABLE commented").explained)


COMMENTED_VIEW = """CREATE VIEW {0} COMMENT 'it''s all' SECURITY DEFINER AS
SELECT
  id
, n name
FROM
  told"""


@pytest.mark.parametrize("name", ["memory.default.seen", "lite.main.seen"])
def test_comments_on_a_view_and_its_columns_are_kept_and_shown(engine: Engine, name: str) -> None:
    engine.run("CREATE TABLE told (id bigint, n varchar)")
    engine.run(COMMENTED_VIEW.format(name))
    assert engine.run(f"SHOW CREATE VIEW {name}").explained == COMMENTED_VIEW.format(name)
    assert described(engine, name) == [("id", ""), ("name", "")]
    engine.run(f"COMMENT ON VIEW {name} IS 'other'")
    engine.run(f"COMMENT ON COLUMN {name}.NAME IS 'what it is called'")
    assert described(engine, name) == [("id", ""), ("name", "what it is called")]
    assert "COMMENT 'other'" in str(engine.run(f"SHOW CREATE VIEW {name}").explained)
    engine.run(f"COMMENT ON VIEW {name} IS NULL")
    engine.run(f"COMMENT ON COLUMN {name}.name IS NULL")
    assert engine.run(f"SHOW CREATE VIEW {name}").explained == COMMENTED_VIEW.format(name).replace(
        " COMMENT 'it''s all'", ""
    )
    assert described(engine, name) == [("id", ""), ("name", "")]
    assert rows(engine, name) == []


def test_comments_on_a_hive_table_stay_with_the_table(engine: Engine) -> None:
    name = "hive.default.commented"
    engine.run(
        f"CREATE TABLE {name} (id bigint COMMENT 'the key', n varchar, p varchar COMMENT 'a folder')"
        " COMMENT 'one' WITH (partitioned_by = ARRAY['p'])"
    )
    engine.run(f"INSERT INTO {name} VALUES (1, 'a', 'x')")
    engine.run(f"COMMENT ON TABLE {name} IS 'it''s two'")
    engine.run(f"COMMENT ON COLUMN {name}.N IS 'name'")
    engine.run(f"COMMENT ON COLUMN {name}.id IS NULL")
    engine.run(f"UPDATE {name} SET n = 'b'")
    assert described(engine, name) == [("id", ""), ("n", "name"), ("p", "a folder")]
    assert "\nCOMMENT 'it''s two'\nWITH" in str(engine.run(f"SHOW CREATE TABLE {name}").explained)
    assert rows(engine, name) == [{"id": 1, "n": "b", "p": "x"}]
    engine.run(f"CREATE TABLE {name}2 COMMENT 'copied' AS SELECT * FROM {name}")
    engine.run(f"COMMENT ON TABLE {name} IS NULL")
    assert "COMMENT ON" not in str(engine.run(f"SHOW CREATE TABLE {name}").explained)
    assert "\nCOMMENT 'copied'\n" in str(engine.run(f"SHOW CREATE TABLE {name}2").explained)


@pytest.mark.parametrize("store", ["lite"])
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE TABLE {0}2 (id bigint COMMENT 'x')", "creating tables with column comment"),
        ("CREATE TABLE {0}2 (id bigint) COMMENT 'x'", "creating tables with table comment"),
        ("CREATE TABLE {0}2 COMMENT 'x' AS SELECT 1 AS id", "creating tables with table comment"),
        ("COMMENT ON TABLE {0} IS 'x'", "setting table comments"),
        ("COMMENT ON COLUMN {0}.id IS NULL", "setting column comments"),
    ],
)
def test_a_store_that_would_lose_a_comment_refuses_it(
    engine: Engine, store: str, sql: str, message: str
) -> None:
    name = f"{SCHEMAS[store]}.plain"
    engine.run(f"CREATE TABLE {name} (id bigint)")
    error = refused(engine, sql.format(name))
    assert (error.code, error.message) == (
        "NOT_SUPPORTED",
        f"This connector does not support {message}",
    )
    assert error.line == 1
    assert refused(engine, f"SELECT * FROM {name}2").code == "TABLE_NOT_FOUND"


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("COMMENT ON TABLE nope IS 'x'", "TABLE_NOT_FOUND", "Table does not exist: memory.default.nope"),
        ("COMMENT ON COLUMN told.nope IS 'x'", "COLUMN_NOT_FOUND", "Column does not exist: nope"),
        ("COMMENT ON COLUMN id IS 'x'", "MISSING_TABLE", "Table must be specified"),
        ("COMMENT ON VIEW nope IS 'x'", "TABLE_NOT_FOUND", "View 'memory.default.nope' does not exist"),
        ("COMMENT ON VIEW told IS 'x'", "TABLE_NOT_FOUND", "but a table with that name exists. Did you mean COMMENT ON TABLE memory.default.told IS ...?"),
        ("COMMENT ON TABLE seen IS 'x'", "TABLE_NOT_FOUND", "but a view with that name exists. Did you mean COMMENT ON VIEW memory.default.seen IS ...?"),
        ("COMMENT ON COLUMN seen.nope IS 'x'", "COLUMN_NOT_FOUND", "Column does not exist: nope"),
        ("COMMENT ON VIEW seen IS 5", "SYNTAX_ERROR", "mismatched input '5'. Expecting: 'NULL', <string>"),
        ("COMMENT ON TABLE information_schema.tables IS 'x'", "NOT_SUPPORTED", "it has no comments"),
        ("COMMENT ON TABLE told IS 5", "SYNTAX_ERROR", "mismatched input '5'. Expecting: 'NULL', <string>"),
        ("COMMENT ON TABLE told", "SYNTAX_ERROR", "mismatched input '<EOF>'. Expecting: '.', 'IS'"),
        ("COMMENT ON SCHEMA s IS 'x'", "SYNTAX_ERROR", "mismatched input 'SCHEMA'. Expecting: 'COLUMN', 'TABLE', 'VIEW'"),
        ("CREATE VIEW w COMMENT 5 AS SELECT 1 a", "SYNTAX_ERROR", "mismatched input '5'. Expecting: <string>"),
        ("CREATE VIEW w x", "SYNTAX_ERROR", "mismatched input 'x'. Expecting: 'AS', 'COMMENT', 'SECURITY', 'WITH'"),
        ("CREATE TABLE u (a bigint COMMENT 5)", "SYNTAX_ERROR", "mismatched input '5'"),
    ],
)  # fmt: skip
def test_comments_that_cannot_be_are_refused(
    engine: Engine, sql: str, code: str, message: str
) -> None:
    engine.run("CREATE TABLE told (id bigint)")
    engine.run("CREATE VIEW seen AS SELECT * FROM told")
    error = refused(engine, sql)
    assert error.code == code
    assert message in error.message
    assert error.line == 1


def test_a_dry_run_and_explain_leave_comments_as_they_are(engine: Engine) -> None:
    engine.run("CREATE TABLE told (id bigint) COMMENT 'one'")
    engine.run("COMMENT ON TABLE told IS 'two'", dry_run=True)
    engine.run("EXPLAIN COMMENT ON TABLE told IS 'two'")
    assert "COMMENT 'one'" in str(engine.run("SHOW CREATE TABLE told").explained)


@pytest.mark.parametrize(
    "statement",
    [
        'CREATE TABLE lake.default.other ("a.b" bigint, a row(b bigint))',
        "ALTER TABLE lake.default.dotted ADD COLUMN a row(b bigint)",
        'ALTER TABLE lake.default.dotted RENAME COLUMN "a.b" TO "c.d"',
        """MERGE WITH SCHEMA EVOLUTION INTO lake.default.dotted t USING (SELECT 1 AS "a.b", CAST(row(1) AS row(b bigint)) AS a) s
        ON t."a.b" = s."a.b" WHEN MATCHED THEN UPDATE *""",
    ],
)
@pytest.mark.on_spark
def test_a_column_that_is_called_like_a_field_of_a_row_is_refused_in_iceberg(
    engine: Engine, statement: str
) -> None:
    engine.run('CREATE TABLE lake.default.dotted ("a.b" bigint, c row(d bigint))')
    with pytest.raises(
        RowMergeError, match="Iceberg cannot distinguish columns from fields of rows"
    ) as caught:
        engine.run(statement, dialect="extended")
    assert caught.value.code == "NOT_SUPPORTED"
    assert "Rename the column that has a dot in its name." in str(caught.value.hint)
    engine.run("INSERT INTO lake.default.dotted VALUES (1, row(2))")


def test_a_column_needed_by_an_index_is_reported_with_the_next_step(
    engine: Engine, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "lite.db")) as connection:
        connection.executescript(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); CREATE INDEX i ON t (v)"
        )
    error = refused(engine, "ALTER TABLE lite.main.t DROP COLUMN v")
    assert (error.code, "error in index i" in error.message) == ("JDBC_ERROR", True)
    assert "in the database" in str(error.hint)


def test_a_class_is_not_a_connector(engine: Engine) -> None:
    with pytest.raises(RowMergeError, match="INVALID_ARGUMENTS: connector is of type") as caught:
        engine.add_catalog("made", SqliteConnector)  # type: ignore[arg-type]
    assert "Give a connector" in str(caught.value.hint)
