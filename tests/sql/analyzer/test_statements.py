from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.sql.analyzer.analysis import (
    CreateTableAnalysis,
    DropTableAnalysis,
    ExplainAnalysis,
    InsertAnalysis,
    MergeAnalysis,
)
from tests.sql.support import meaning, place, refusal, spark_text


def test_a_created_table_keeps_names_and_properties_as_written():
    create = meaning(
        "CREATE TABLE Shop (Id BIGINT NOT NULL, price DECIMAL(8, 2)) WITH (partitioned_by = ARRAY['Id'])"
    )
    assert isinstance(create, CreateTableAnalysis)
    assert create.name == ("memory", "default", "shop")
    assert [(c.name, str(c.type), c.nullable) for c in create.metadata.columns] == [
        ("Id", "bigint", False),
        ("price", "decimal(8,2)", True),
    ]
    assert create.metadata.properties == {"partitioned_by": ("Id",)}


def test_a_table_created_from_a_query_has_its_types():
    create = meaning(
        "CREATE TABLE x AS SELECT customer AS who, 'ab' AS t, 1.5 AS p FROM accounts WITH NO DATA"
    )
    assert isinstance(create, CreateTableAnalysis)
    assert [(c.name, str(c.type)) for c in create.metadata.columns] == [
        ("who", "varchar"),
        ("t", "varchar(2)"),
        ("p", "decimal(2,1)"),
    ]
    assert spark_text(create).endswith("LIMIT 0")


def test_an_existing_table_is_an_error_by_default():
    assert refusal("CREATE TABLE accounts (a INTEGER)").code == "TABLE_ALREADY_EXISTS"
    create = meaning("CREATE TABLE IF NOT EXISTS accounts (a INTEGER)")
    assert isinstance(create, CreateTableAnalysis)
    assert create.exists


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE TABLE x (a INTEGER, A VARCHAR)", "DUPLICATE_COLUMN_NAME"),
        ("CREATE TABLE x (a DIGITS)", "TYPE_NOT_FOUND"),
        ("CREATE TABLE x AS SELECT 1", "MISSING_COLUMN_NAME"),
        ("CREATE TABLE x AS SELECT NULL AS a", "COLUMN_TYPE_UNKNOWN"),
        ("CREATE TABLE other.default.x (a INTEGER)", "CATALOG_NOT_FOUND"),
        ("CREATE TABLE x (a INTEGER) WITH (p = 1 + 1)", "INVALID_TABLE_PROPERTY"),
        ("DROP TABLE nowhere", "TABLE_NOT_FOUND"),
        ("INSERT INTO accounts (customer) VALUES (1)", "TYPE_MISMATCH"),
        ("INSERT INTO accounts (nope) VALUES (1)", "COLUMN_NOT_FOUND"),
        ("INSERT INTO accounts VALUES ('a')", "TYPE_MISMATCH"),
    ],
)
def test_wrong_statements_are_refused(sql, code):
    assert refusal(sql).code == code


def test_an_insert_has_the_tables_columns_in_table_order():
    insert = meaning("INSERT INTO parts (code, id) SELECT s, l FROM numbers")
    assert isinstance(insert, InsertAnalysis)
    names = ["id", "code", "tags", "made"]
    text = spark_text(insert)
    places = [text.index(f" AS `{name}`") for name in names]
    assert places == sorted(places)
    assert "CAST(NULL AS ARRAY<STRING>) AS `tags`" in text
    assert "NULL value not allowed for NOT NULL column: id" in text


def test_dropping_what_is_not_there_can_be_allowed():
    drop = meaning("DROP TABLE IF EXISTS nowhere")
    assert isinstance(drop, DropTableAnalysis)
    assert drop.target is None


def test_explain_analyzes_its_statement_and_counts_positions_in_the_whole_text():
    sql = "EXPLAIN (TYPE LOGICAL) MERGE INTO accounts t USING accounts s ON t.customer = s.{} WHEN MATCHED THEN DELETE"
    explain = meaning(sql.format("customer"))
    assert isinstance(explain, ExplainAnalysis)
    assert isinstance(explain.inner, MergeAnalysis)
    error = refusal(sql.format("nope"))
    assert isinstance(error, RowMergeError)
    assert place(error) == ("COLUMN_NOT_FOUND", 1, sql.index("s.{}") + 1)
