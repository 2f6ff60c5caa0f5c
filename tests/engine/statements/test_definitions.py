"""Views, schemas, SHOW and TRUNCATE, as used in a notebook."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata

pytestmark = pytest.mark.stand_in


@pytest.fixture
def engine(spark):
    with Engine(spark=spark, trace="off") as engine:
        engine.register("stock", pa.table({"sku": ["nut", "bolt"], "qty": [3, 7]}))
        yield engine


def error_of(engine, sql, **options):
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql, **options)
    return caught.value.code, caught.value.message, caught.value.line, caught.value.column


def listed(engine, sql):
    return [tuple(row.values()) for row in engine.run(sql).table.to_pylist()]


def test_a_view_is_read_like_a_table_also_through_another_view_and_as_a_merge_source(engine):
    engine.run("CREATE VIEW few AS SELECT sku, qty FROM stock WHERE qty < 5")
    engine.run("CREATE VIEW fewer AS SELECT f.sku AS name, f.qty - 1 AS qty FROM few f")
    assert engine.table("fewer").to_pydict() == {"name": ["nut"], "qty": [2]}
    engine.run(
        "MERGE INTO stock t USING fewer s ON t.sku = s.name WHEN MATCHED THEN UPDATE SET qty = s.qty"
    )
    assert sorted(engine.table("stock").to_pydict()["qty"]) == [2, 7]
    assert engine.table("few").to_pydict() == {"sku": ["nut"], "qty": [2]}


def test_names_in_a_view_keep_the_meaning_of_its_creation(engine):
    engine.run("CREATE SCHEMA other")
    engine.run("CREATE TABLE other.stock (sku varchar)")
    engine.run("CREATE VIEW other.v AS SELECT count(*) AS n FROM stock")
    assert engine.table("other.v").to_pydict() == {"n": [2]}


def test_a_view_may_read_a_dataframe_of_the_notebook(engine):
    frame = pa.table({"sku": ["nut"]})
    engine.run("CREATE VIEW v AS SELECT sku FROM deliveries", namespace={"deliveries": frame})
    assert engine.run("SELECT * FROM v", namespace={"deliveries": frame}).table.num_rows == 1
    code, message, *_ = error_of(engine, "SELECT * FROM v")
    assert code == "INVALID_VIEW"
    assert message.endswith("line 1:17: Table 'memory.default.deliveries' does not exist")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "MERGE INTO v USING stock s ON true WHEN MATCHED THEN DELETE",
            "Merging into views is not supported",
        ),
        ("UPDATE v SET qty = 1", "Updating views is not supported"),
        ("DELETE FROM v", "Deleting from views is not supported"),
        ("INSERT INTO v VALUES ('a', 1)", "Inserting into views is not supported"),
    ],
)
def test_a_view_is_not_a_target(engine, sql, message):
    engine.run("CREATE VIEW v AS SELECT * FROM stock")
    assert error_of(engine, sql) == ("NOT_SUPPORTED", message, 1, 1)


def test_a_view_is_analyzed_again_by_every_statement(engine):
    engine.run("CREATE VIEW v AS SELECT * FROM stock")
    engine.register("stock", pa.table({"sku": ["nut"], "qty": [1], "bin": ["A"]}))
    stale = "stored view column count (2) does not match column count derived from the view query analysis (3)"
    expected = (
        "VIEW_IS_STALE",
        f"View 'memory.default.v' is stale or in invalid state: {stale}",
        1,
        15,
    )
    assert error_of(engine, "SELECT * FROM v") == expected
    engine.register("stock", pa.table({"sku": ["nut"], "qty": ["many"]}))
    assert (
        "of type varchar projected from query view at position 1 cannot be"
        in error_of(engine, "SELECT * FROM v")[1]
    )
    engine.run("DROP TABLE stock")
    said = "Failed analyzing stored view 'memory.default.v': line 1:15: Table 'memory.default.stock' does not exist"
    assert error_of(engine, "SELECT * FROM v") == ("INVALID_VIEW", said, 1, 15)


def test_views_are_replaced_only_on_request_and_never_circular(engine):
    engine.run("CREATE VIEW v AS SELECT * FROM stock")
    engine.run("CREATE VIEW w AS SELECT * FROM v")
    assert error_of(engine, "CREATE VIEW v AS SELECT 1 AS x")[:2] == (
        "TABLE_ALREADY_EXISTS",
        "View already exists: 'memory.default.v'",
    )
    circle = error_of(engine, "CREATE OR REPLACE VIEW v AS SELECT * FROM v")
    assert circle == ("VIEW_IS_RECURSIVE", "Statement would create a recursive view", 1, 43)
    assert (
        "Statement would create a recursive view"
        in error_of(engine, "CREATE OR REPLACE VIEW v AS SELECT * FROM w")[1]
    )
    engine.run("CREATE OR REPLACE VIEW v AS SELECT sku, qty FROM stock")
    assert str(engine.run("SHOW CREATE VIEW v")) == (
        "CREATE VIEW memory.default.v SECURITY DEFINER AS\nSELECT\n  sku\n, qty\nFROM\n  stock"
    )


def test_a_name_is_a_table_or_a_view(engine):
    engine.run("CREATE VIEW v AS SELECT * FROM stock")
    assert (
        error_of(engine, "CREATE VIEW stock AS SELECT 1 AS x")[1]
        == "Table already exists: 'memory.default.stock'"
    )
    assert (
        error_of(engine, "CREATE VIEW v AS SELECT 1 AS x")[1]
        == "View already exists: 'memory.default.v'"
    )
    said = ("TABLE_ALREADY_EXISTS", "Table 'memory.default.v' already exists", 1, 1)
    assert error_of(engine, "CREATE TABLE v (a integer)") == said
    said = ("TABLE_ALREADY_EXISTS", "Destination table 'memory.default.v' already exists", 1, 1)
    assert error_of(engine, "CREATE TABLE v AS SELECT 1 AS a") == said
    engine.run("CREATE TABLE IF NOT EXISTS v (a integer)")
    assert engine.run("CREATE TABLE IF NOT EXISTS v AS SELECT 1 AS a").count == 0
    assert engine.run("SELECT * FROM v").table.num_rows == 2
    said = "Table 'memory.default.v' does not exist, but a view with that name exists. Did you mean DROP VIEW memory.default.v?"
    assert error_of(engine, "DROP TABLE v")[:2] == ("GENERIC_USER_ERROR", said)
    assert "Did you mean DROP TABLE memory.default.stock?" in error_of(engine, "DROP VIEW stock")[1]
    with pytest.raises(RowMergeError, match="View already exists"):
        engine.register("v", pa.table({"a": [1]}))
    engine.run("DROP VIEW v")
    assert error_of(engine, "DROP VIEW v") == (
        "GENERIC_USER_ERROR",
        "View 'memory.default.v' does not exist",
        1,
        1,
    )
    assert str(engine.run("DROP VIEW IF EXISTS v")).startswith("The view does not exist")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT 1", "MISSING_COLUMN_NAME"),
        ("SELECT 1 AS a, 2 AS A", "DUPLICATE_COLUMN_NAME"),
        ("SELECT NULL AS a", "COLUMN_TYPE_UNKNOWN"),
        ("SELECT nope FROM stock", "COLUMN_NOT_FOUND"),
    ],
)
def test_a_views_query_must_be_valid_at_its_creation(engine, query, code):
    assert error_of(engine, f"CREATE VIEW v AS {query}")[0] == code
    assert listed(engine, "SHOW TABLES") == [("stock",)]


@pytest.mark.parametrize("security", ["DEFINER", "INVOKER"])
def test_a_view_may_name_its_security_mode(engine, security):
    engine.run(f"CREATE VIEW v COMMENT 'all' SECURITY {security} AS SELECT * FROM stock")
    assert engine.table("v").num_rows == 2


@pytest.mark.on_spark
def test_columns_of_table_functions_and_of_rows_are_called_as_trino_calls_them(engine):
    found = engine.run(
        'SELECT * FROM TABLE(sequence(1, 2)) s (n) CROSS JOIN TABLE(sequence(1, 1)) t ("m")'
    ).table
    assert found.column_names == ["N", "m"]
    assert engine.run("SELECT n FROM TABLE(sequence(1, 2)) s (n)").table.column_names == ["n"]
    assert engine.run('SELECT ROW(1, 2).* AS (a, "b")').table.column_names == ["A", "b"]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE IF EXISTS nocatalog.s.t",
        "DROP VIEW IF EXISTS nocatalog.s.t",
        "ALTER TABLE IF EXISTS nocatalog.s.t ADD COLUMN a integer",
        "ALTER TABLE IF EXISTS memory.noschema.t RENAME TO u",
    ],
)
def test_optional_objects_need_no_catalog_and_no_schema_either(engine, sql):
    text = str(engine.run(sql))
    assert text.endswith("nothing was dropped.") or text == "There is nothing to alter."
    engine.run_script(f"START TRANSACTION; {sql.replace('memory.noschema', 'nocatalog.s')}; COMMIT")


def test_a_renamed_view_keeps_its_definition(engine):
    engine.run("CREATE VIEW v COMMENT 'what there is' AS SELECT sku, qty FROM stock")
    engine.run_script(
        "CREATE SCHEMA other; ALTER VIEW v RENAME TO W; ALTER VIEW w RENAME TO other.w"
    )
    assert engine.table("other.w").num_rows == 2
    assert "COMMENT 'what there is'" in engine.run("SHOW CREATE VIEW other.w").explained
    assert listed(engine, "SHOW TABLES") == [("stock",)]


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("nope RENAME TO x", "TABLE_NOT_FOUND", "View 'memory.default.nope' does not exist"),
        ("nope.b.c RENAME TO x", "TABLE_NOT_FOUND", "View 'nope.b.c' does not exist"),
        (
            "stock RENAME TO x",
            "TABLE_NOT_FOUND",
            (
                "View 'memory.default.stock' does not exist, but a table with that name exists. "
                "Did you mean ALTER TABLE memory.default.stock RENAME TO ...?"
            ),
        ),
        ("v RENAME TO v", "GENERIC_USER_ERROR", "Target view 'memory.default.v' already exists"),
        (
            "v RENAME TO stock",
            "TABLE_ALREADY_EXISTS",
            "Target view 'memory.default.stock' does not exist, but a table with that name exists.",
        ),
        ("v RENAME TO nope.default.x", "CATALOG_NOT_FOUND", "Target catalog 'nope' not found"),
        ("v RENAME TO nope.x", "NOT_FOUND", "Schema nope not found"),
        ("v RENAME TO a.b.c.d", "SYNTAX_ERROR", "Too many dots in table name: a.b.c.d"),
    ],
)
def test_a_view_is_not_renamed_to_what_it_cannot_be(engine, sql, code, message):
    engine.run("CREATE VIEW v AS SELECT 1 AS a")
    assert error_of(engine, f"ALTER VIEW {sql}")[:2] == (code, message)
    assert engine.table("v").num_rows == 1


def test_a_view_of_another_catalog_stays_there(engine):
    engine.add_catalog("other", MemoryConnector())
    engine.run("CREATE VIEW v AS SELECT 1 AS a")
    said = ("NOT_SUPPORTED", "View rename across catalogs is not supported", 1, 1)
    assert error_of(engine, "ALTER VIEW v RENAME TO other.default.v") == said


def test_a_schema_is_dropped_with_its_content_or_stays_whole(engine):
    engine.run_script(
        "CREATE SCHEMA s; CREATE TABLE s.t (a integer); CREATE VIEW s.v AS SELECT a FROM s.t"
    )
    assert error_of(engine, "DROP SCHEMA s RESTRICT")[0] == "SCHEMA_NOT_EMPTY"
    engine.run("DROP SCHEMA s CASCADE", dry_run=True)
    assert listed(engine, "SHOW TABLES FROM s") == [("t",), ("v",)]
    engine.run("DROP SCHEMA s CASCADE")
    assert error_of(engine, "DROP SCHEMA s CASCADE") == (
        "SCHEMA_NOT_FOUND",
        "Schema 'memory.s' does not exist",
        1,
        1,
    )
    engine.run_script("DROP SCHEMA IF EXISTS s CASCADE; CREATE SCHEMA s")
    assert listed(engine, "SHOW TABLES FROM s") == []
    assert listed(engine, "SHOW TABLES") == [("stock",)]


def test_a_store_that_drops_one_thing_at_a_time_drops_no_schema_with_what_it_holds(
    engine, monkeypatch
):
    monkeypatch.setattr(MemoryMetadata, "cascades_schemas", False)
    engine.run_script("CREATE SCHEMA s; CREATE TABLE s.t (a integer)")
    said = "This connector does not support dropping schemas with CASCADE option"
    assert error_of(engine, "DROP SCHEMA s CASCADE") == ("NOT_SUPPORTED", said, 1, 1)


def test_schemas_are_created_filled_and_dropped(engine):
    for made in (
        "TABLE s.t (a integer)",
        "TABLE s.t AS SELECT 1 AS a",
        "VIEW s.t AS SELECT 1 AS a",
    ):
        assert error_of(engine, f"CREATE {made}")[:2] == ("NOT_FOUND", "Schema s not found")
    assert error_of(engine, "CREATE TABLE s.t AS SELECT nope")[0] == "COLUMN_NOT_FOUND"
    assert error_of(engine, "CREATE TABLE s.t (a nope)")[0] == "TYPE_NOT_FOUND"
    assert error_of(engine, "DROP TABLE s.t") == (
        "TABLE_NOT_FOUND",
        "Table 'memory.s.t' does not exist",
        1,
        1,
    )
    assert error_of(engine, "DROP VIEW s.t") == (
        "GENERIC_USER_ERROR",
        "View 'memory.s.t' does not exist",
        1,
        1,
    )
    assert error_of(engine, "SHOW CREATE VIEW s.t") == (
        "TABLE_NOT_FOUND",
        "View 'memory.s.t' does not exist",
        1,
        1,
    )
    engine.run("CREATE SCHEMA s")
    assert error_of(engine, "CREATE SCHEMA s") == (
        "SCHEMA_ALREADY_EXISTS",
        "Schema 'memory.s' already exists",
        1,
        1,
    )
    assert "already exists" in str(engine.run("CREATE SCHEMA IF NOT EXISTS memory.S"))
    engine.run("CREATE TABLE s.t (a integer)")
    assert error_of(engine, "DROP SCHEMA s")[:2] == (
        "SCHEMA_NOT_EMPTY",
        "Cannot drop non-empty schema 's'",
    )
    engine.run_script("DROP TABLE s.t; DROP SCHEMA s")
    assert error_of(engine, "DROP SCHEMA s") == (
        "SCHEMA_NOT_FOUND",
        "Schema 'memory.s' does not exist",
        1,
        1,
    )
    assert error_of(engine, "DROP SCHEMA nocatalog.s") == (
        "SCHEMA_NOT_FOUND",
        "Schema 'nocatalog.s' does not exist",
        1,
        1,
    )
    assert error_of(engine, "SHOW CREATE SCHEMA s") == (
        "SCHEMA_NOT_FOUND",
        "Schema 'memory.s' does not exist",
        1,
        1,
    )
    assert error_of(engine, "SHOW CREATE TABLE s.t") == (
        "TABLE_NOT_FOUND",
        "Table 'memory.s.t' does not exist",
        1,
        1,
    )
    assert error_of(engine, 'DELETE FROM "no s".t') == (
        "TABLE_NOT_FOUND",
        "Table 'memory.\"no s\".t' does not exist",
        1,
        1,
    )
    engine.run("DROP SCHEMA IF EXISTS nocatalog.s")
    assert error_of(engine, "SELECT * FROM s.t") == (
        "SCHEMA_NOT_FOUND",
        "Schema 's' does not exist",
        1,
        15,
    )
    assert error_of(engine, "SELECT * FROM nocatalog.s.t") == (
        "CATALOG_NOT_FOUND",
        "Catalog 'nocatalog' not found",
        1,
        15,
    )


def test_show_lists_what_there_is(engine):
    engine.run("CREATE SCHEMA my_schema")
    engine.run("CREATE VIEW few AS SELECT * FROM stock WHERE qty < 5")
    assert listed(engine, "SHOW CATALOGS") == [("memory",)]
    assert listed(engine, "SHOW SCHEMAS") == [("default",), ("information_schema",), ("my_schema",)]
    assert listed(engine, r"SHOW SCHEMAS FROM memory LIKE 'my\_%' ESCAPE '\'") == [("my_schema",)]
    assert listed(engine, "SHOW TABLES") == [("few",), ("stock",)]
    assert listed(engine, "SHOW TABLES FROM my_schema") == []
    assert listed(engine, "DESCRIBE stock") == [
        ("sku", "varchar", "", ""),
        ("qty", "bigint", "", ""),
    ]
    assert listed(engine, "SHOW COLUMNS FROM few LIKE 'q%'") == [("qty", "bigint", "", "")]
    assert [(name, kind) for name, kind, *_ in engine.tables()] == [
        ("memory.default.stock", "memory"),
        ("memory.default.few", "view"),
    ]


def test_show_create_table_writes_a_statement_that_creates_the_table_again(engine):
    engine.run(
        'CREATE TABLE "select" (id integer NOT NULL, "a b" date) WITH (partitioned_by = ARRAY[\'bucket(id, 4)\', \'month("a b")\'])'
    )
    text = str(engine.run('SHOW CREATE TABLE "select"'))
    engine.run('DROP TABLE "select"')
    engine.run(text)
    assert str(engine.run('SHOW CREATE TABLE "select"')) == text
    assert "partitioned_by = ARRAY['bucket(id, 4)', 'month(\"a b\")']" in text


def test_truncate_empties_a_table_and_keeps_its_former_version(engine):
    assert str(engine.run("TRUNCATE TABLE stock")).startswith("Table stock emptied.")
    assert engine.table("stock").num_rows == 0
    assert error_of(engine, "TRUNCATE TABLE nope")[0] == "TABLE_NOT_FOUND"


def test_a_property_that_cannot_be_is_pointed_at(engine):
    sql = "CREATE TABLE t (a integer)\nWITH (paradigm = 'DELETE_ROW_AND_INSERT_ROW', partitioned_by = ARRAY['week(a)'])"
    assert error_of(engine, sql)[0::2] == ("INVALID_TABLE_PROPERTY", 2)


def test_a_property_is_pointed_at_that_has_the_name_of_another_in_its_own():
    sql = (
        "CREATE TABLE t (a integer) WITH (paradigm = 'DELETE_ROW_AND_INSERT_ROW',\n paradigms = 1)"
    )
    assert error_of(Engine(), sql)[0::2] == ("INVALID_TABLE_PROPERTY", 2)


def test_the_engine_keeps_the_views_of_a_connector_that_stores_none(engine):
    class Plain(MemoryConnector):
        def get_metadata(self, transaction_handle):
            metadata = super().get_metadata(transaction_handle)
            metadata.stores_views = False
            return metadata

    engine.add_catalog("plain", Plain())
    engine.run("CREATE VIEW plain.default.v AS SELECT sku FROM stock")
    assert listed(engine, "SHOW TABLES FROM plain.default") == [("v",)]
    assert listed(engine, "DESCRIBE plain.default.v") == [("sku", "varchar", "", "")]
    engine.run("DROP VIEW plain.default.v")
    assert listed(engine, "SHOW TABLES FROM plain.default") == []
    assert MemoryMetadata.stores_views


@pytest.mark.on_spark
def test_rows_move_between_partitions_made_by_transforms_in_both_eras(engine):
    for era in ("documents", "current"):
        engine.run_script(
            """CREATE TABLE p (id integer, day date) WITH (partitioned_by = ARRAY['bucket(id, 4)', 'month(day)']);
            INSERT INTO p VALUES (1, DATE '2024-01-05'), (2, DATE '2024-01-06'), (3, NULL)"""
        )
        count = engine.run(
            """MERGE INTO p t USING (VALUES (1, DATE '2024-03-01'), (3, DATE '2024-03-02'), (9, NULL)) s(id, day) ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET day = s.day WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.day)""",
            era=era,
        ).count
        assert count == 3
        assert sorted(map(str, engine.table("p").to_pydict()["day"])) == [
            "2024-01-06",
            "2024-03-01",
            "2024-03-02",
            "None",
        ]
        engine.run("DROP TABLE p")


def test_places_of_errors_count_in_the_whole_text_that_was_run(engine):
    comment = "-- what stood before\n/* and\n more */  "
    merge = "MERGE INTO nowhere t USING stock s ON true WHEN MATCHED THEN DELETE"
    assert error_of(engine, comment + merge + " ; -- the end")[2:] == (3, 11)
    assert error_of(
        engine, "MERGE INTO stock t USING stock s ON true WHEN MATCHED THEN UPDATE SET \n "
    )[2:] == (2, 2)
    with pytest.raises(RowMergeError) as caught:
        engine.run_script("SHOW TABLES;\nDROP TABLE nowhere")
    assert (caught.value.line, caught.value.column) == (2, 1)
    assert "DROP TABLE nowhere" in str(caught.value.statement)


@pytest.mark.on_spark
def test_a_closing_semicolon_and_comments_change_nothing(engine):
    engine.run(
        "/* a */ MERGE INTO stock t -- b\n USING (VALUES 'nut') s(sku) ON t.sku = s.sku /* c ; */ WHEN MATCHED THEN DELETE; -- d"
    )
    assert engine.table("stock").to_pydict()["sku"] == ["bolt"]


@pytest.mark.on_spark
def test_a_schema_may_have_a_dot_in_its_name(engine):
    engine.run('CREATE SCHEMA "a.b"')
    engine.run('CREATE TABLE "a.b".t (id bigint)')
    assert str(engine.run('SHOW CREATE TABLE "a.b".t')).startswith('CREATE TABLE memory."a.b".t (')
    engine.run('INSERT INTO "a.b".t VALUES 1, 2')
    merge = 'MERGE INTO "a.b".t t USING (VALUES 1, 3) s(id) ON t.id = s.id '
    result = engine.run(
        f"{merge} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id)",
        verify="duckdb",
    )
    assert (
        result.trace.target.rows_after,
        result.trace.target.unread_reason,
        result.balance.holds,
    ) == (2, "", True)
    assert result.verification.state == "agrees"
    engine.run('CREATE VIEW "a.b".v AS SELECT id FROM "a.b".t')
    assert str(engine.run('SHOW CREATE VIEW "a.b".v')).startswith(
        'CREATE VIEW memory."a.b".v SECURITY DEFINER AS'
    )
    engine.run('TRUNCATE TABLE "a.b".t')
    engine.run('DROP VIEW "a.b".v')
    assert listed(engine, 'SHOW TABLES FROM "a.b"') == [("t",)]


def test_the_statement_of_show_create_table_creates_the_table_again(engine: Engine) -> None:
    columns = 'a decimal(12, 2), b array(ROW("order" integer, "y z" decimal(3, 1))), c map(varchar, ROW(bigint, "select" date)), d char(3)'
    engine.run(f"CREATE TABLE t ({columns})")
    text = engine.run("SHOW CREATE TABLE t").explained or ""
    assert f"({columns})" in text.replace("(\n   ", "(", 1).replace(",\n   ", ", ").replace(
        "\n)", ")", 1
    )
    engine.run("DROP TABLE t")
    engine.run(text)
    assert engine.run("SHOW CREATE TABLE t").explained == text
