from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import AnalysisError, ParseError
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.parser.statement_reader import parse, split_statements
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s

MERGE = "MERGE INTO t USING s ON t.id = s.id "


def _refused(sql: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(sql)
    return caught.value


def test_semicolons_in_strings_names_and_comments_do_not_split():
    text = """SELECT ';' AS "a;b" -- one; two\n/* ; */ FROM t;\n\nDROP TABLE t;"""
    statements = split_statements(text)
    assert [statement for statement, _ in statements] == [
        """SELECT ';' AS "a;b" -- one; two\n/* ; */ FROM t""",
        "DROP TABLE t",
    ]
    assert all(text[start:].startswith(statement) for statement, start in statements)


@pytest.mark.parametrize("text", ["", "  \n", ";", ";;", "-- nothing\n", "/* nothing */;"])
def test_an_empty_text_is_not_a_statement(text):
    assert split_statements(text) == ()


def test_clauses_keep_their_order_number_and_text():
    merge = parse(
        MERGE + "WHEN NOT MATCHED AND s.x > 1 THEN INSERT (id, x) VALUES (s.id, 1)\n"
        "WHEN MATCHED THEN DELETE WHEN MATCHED AND true THEN UPDATE SET x = 1, y = s.y"
    )
    assert isinstance(merge, st.Merge)
    assert [(c.number, c.matched, c.operation) for c in merge.clauses] == [
        (0, False, Operation.INSERT),
        (1, True, Operation.DELETE),
        (2, True, Operation.UPDATE),
    ]
    assert [column.text for column in merge.clauses[2].columns] == ["x", "y"]
    assert merge.clauses[1].span.of(merge.text) == "WHEN MATCHED THEN DELETE"
    assert merge.clauses[1].span.line == 2


def test_the_last_on_after_a_bare_join_is_that_of_merge():
    merge = parse(
        "MERGE INTO t USING a JOIN b ON a.x = b.x ON t.id = a.id WHEN MATCHED THEN DELETE"
    )
    assert isinstance(merge, st.Merge)
    assert isinstance(merge.source, s.JoinRelation)
    assert merge.on.span.of(merge.text) == "t.id = a.id"


def test_words_that_are_not_reserved_can_be_aliases():
    merge = parse(
        "MERGE INTO t AS merge USING s update ON merge.id = update.id WHEN MATCHED THEN DELETE"
    )
    assert isinstance(merge, st.Merge)
    assert merge.target_alias is not None
    assert merge.target_alias.text == "merge"


def test_and_binds_tighter_than_or_and_not_looser_than_comparison():
    query = parse("SELECT NOT a = 1 AND b OR c")
    assert isinstance(query, st.Query)
    value = query.tree.body.items[0].value
    assert (value.operator, value.terms[0].operator) == ("OR", "AND")
    assert isinstance(value.terms[0].terms[0], s.Not)


@pytest.mark.parametrize(
    "value",
    [
        "((SELECT 1) + 1)",
        "((SELECT 1))",
        "(1, 2) = (3, 4)",
        "f(x -> x + 1)",
        "reduce(a, 0, (p, q) -> p + q, p -> p)",
        "a[1].b",
        "-(-x)",
    ],
)
def test_parentheses_may_hold_queries_rows_lambdas_and_expressions(value):
    assert isinstance(parse(f"SELECT {value}"), st.Query)


def test_arguments_of_a_table_function_may_omit_names():
    assert isinstance(parse("SELECT * FROM TABLE(sequence(1, 5)) s (n)"), st.Query)
    assert isinstance(parse("SELECT * FROM TABLE(sequence(start => 1, stop => 5)) s (n)"), st.Query)


def test_properties_become_plain_values():
    create = parse(
        "CREATE TABLE t (a INTEGER NOT NULL, b row(x integer, y varchar)) "
        "WITH (paradigm = DELETE_ROW_AND_INSERT_ROW, partitioned_by = ARRAY['a'], bucket_count = 4, name = 'x', fast = true)"
    )
    assert isinstance(create, st.CreateTable)
    assert create.properties == {
        "paradigm": "DELETE_ROW_AND_INSERT_ROW",
        "partitioned_by": ("a",),
        "bucket_count": 4,
        "name": "x",
        "fast": True,
    }
    assert [(c.name.text, str(c.type), c.nullable) for c in create.columns] == [
        ("a", "integer", False),
        ("b", 'row("x" integer, "y" varchar)', True),
    ]


def test_create_table_as_may_name_columns_and_omit_the_data():
    create = parse("CREATE TABLE IF NOT EXISTS t (a, b) AS SELECT 1, 2 WITH NO DATA")
    assert isinstance(create, st.CreateTable)
    assert create.if_not_exists
    assert not create.with_data
    assert [alias.text for alias in create.column_aliases] == ["a", "b"]


def test_explain_has_a_statement_with_a_text_of_its_own():
    explain = parse("EXPLAIN (TYPE LOGICAL, FORMAT JSON)\nDROP TABLE t")
    assert isinstance(explain, st.Explain)
    assert (explain.kind, explain.format, explain.statement.text) == (
        "LOGICAL",
        "JSON",
        "DROP TABLE t",
    )


def test_update_and_delete_are_read():
    update, delete = parse("UPDATE t SET a = 1, b = 2 WHERE c"), parse("DELETE FROM t")
    assert isinstance(update, st.Update)
    assert isinstance(delete, st.Delete)
    assert [column.text for column in update.columns] == ["a", "b"]
    assert delete.where is None


@pytest.mark.parametrize(
    ("clause", "word"),
    [
        ("WHEN NOT MATCHED BY SOURCE THEN DELETE", "BY SOURCE"),
        ("WHEN MATCHED THEN DO NOTHING", "DO NOTHING"),
        ("WHEN MATCHED THEN UPDATE SET *", "UPDATE SET *"),
        ("WHEN NOT MATCHED THEN INSERT *", "INSERT *"),
        ("WHEN MATCHED THEN DELETE RETURNING id", "RETURNING"),
    ],
)
def test_forms_of_other_engines_are_refused_with_a_sentence(clause, word):
    error = _refused(MERGE + clause)
    assert error.code == "SYNTAX_ERROR"
    assert error.hint is not None
    assert word in error.hint


def test_with_before_merge_is_refused_with_a_way_out():
    error = _refused(
        "WITH s AS (SELECT 1 id) MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE"
    )
    assert "USING (...)" in str(error.hint)


def test_a_misspelt_keyword_is_recognised():
    assert _refused(MERGE + "WEHN MATCHED THEN DELETE").hint == "Did you mean WHEN?"
    assert _refused("SELEC 1").hint == "Did you mean SELECT?"


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("DROP TABLE a\nDROP TABLE b", "Is a semicolon missing before it?"),
        ("SELECT 1\nSELECT 2", "Is a semicolon missing before it?"),
        (
            MERGE + "WHEN MATCHED THEN DELETE\nINSERT INTO t VALUES 1",
            "Is a semicolon missing before it?",
        ),
        ("SELECT a FROM t\nMERGE INTO t", "Is a semicolon missing before MERGE?"),
        ("SELECT 1 FROM t WHERE a == 1", "Use = for equality."),
        (
            MERGE + "WHEN MATCHED THEN UPDATE SET t.a = 1",
            "Write the column without the table's name.",
        ),
        (
            MERGE + "WHEN NOT MATCHED THEN INSERT (t.a) VALUES (1)",
            "Write the column without the table's name.",
        ),
        (
            MERGE + "WHEN MATCHED THEN INSERT VALUES (1)",
            "Only a WHEN NOT MATCHED clause can INSERT; one about rows of the target takes UPDATE or DELETE.",
        ),
        (
            MERGE + "WHEN NOT MATCHED THEN UPDATE SET a = 1",
            "WHEN NOT MATCHED has no row of the target to change; UPDATE belongs under WHEN MATCHED.",
        ),
    ],
)
def test_common_slips_have_a_hint(sql, hint):
    assert (_refused(sql).hint or "").startswith(hint)


@pytest.mark.parametrize(
    "columns",
    ["id int PRIMARY KEY", "id int NOT NULL PRIMARY KEY, a int", "id int, PRIMARY KEY (id)"],
)
def test_a_primary_key_has_a_hint(columns):
    with pytest.raises((ParseError, AnalysisError)) as caught:
        statement = parse(f"CREATE TABLE t ({columns})")
        # `KEY` is an unknown type, for a column `PRIMARY`; that is reported when the table has been looked up.
        raise next(
            column.type for column in statement.columns if isinstance(column.type, AnalysisError)
        )
    assert "WITH (primary_key = ARRAY['...'])" in str(caught.value.hint)


@pytest.mark.parametrize(
    "kind",
    [
        'row("d" array(bigint))',
        'row("a" integer, "b" row("c" varchar, "d" array(row("x" date))))',
        "row(array(bigint))",
    ],
)
def test_a_field_of_a_row_may_be_an_array(kind: str) -> None:
    statement = parse(f"CREATE TABLE t (r {kind}, v varchar)")
    assert isinstance(statement, st.CreateTable)
    assert [str(column.type) for column in statement.columns] == [kind, "varchar"]


@pytest.mark.parametrize(
    ("sql", "column", "token", "expected"),
    [
        (
            "SHOW x",
            6,
            "x",
            "BRANCHES CATALOGS COLUMNS CREATE CURRENT FUNCTIONS GRANTS ROLE ROLES SCHEMAS SESSION STATS TABLES",
        ),
        ("SHOW BRANCHES", 14, "<EOF>", "FROM IN"),
        ("SHOW BRANCHES FROM t", 20, "t", "TABLE"),
        ("SHOW BRANCHES IN TABLE t LIKE 'a'", 26, "LIKE", ". <EOF>"),
        ("ALTER BRANCH a", 15, "<EOF>", ". IN SET"),
        ("ALTER BRANCH IN TABLE t", 14, "IN", "<identifier>"),
        ("SHOW CREATE x", 13, "x", "FUNCTION MATERIALIZED SCHEMA TABLE VIEW"),
        ("SHOW TABLES LIKE 5", 18, "5", "<string>"),
        ("SHOW TABLES LIKE 'a' || 'b'", 22, "||", "ESCAPE <EOF>"),
        ("CREATE OR REPLACE x", 19, "x", "BRANCH FUNCTION MATERIALIZED TABLE VIEW"),
        ("ALTER 1", 7, "1", "MATERIALIZED SCHEMA TABLE VIEW <identifier>"),
        ("ALTER x y", 10, "<EOF>", ". SET"),
        ("ALTER x y SET AUTHORIZATION", 28, "<EOF>", "ROLE USER <identifier>"),
        ("DESCRIBE 1", 10, "1", "INPUT OUTPUT <identifier>"),
        ("DESC 1", 6, "1", "<identifier>"),
        ("DESC INPUT p", 12, "p", ". <EOF>"),
        ("EXECUTE 1", 9, "1", "IMMEDIATE <identifier>"),
        ("EXPLAIN (x", 10, "x", "( FORMAT SELECT TABLE TYPE VALUES"),
        ("CREATE VIEW v x", 15, "x", "AS COMMENT SECURITY WITH"),
        ("SHOW STATS FOR 1", 16, "1", "( <identifier>"),
        ("SHOW SCHEMAS FROM a.b", 20, ".", "LIKE <EOF>"),
        ("CREATE SCHEMA IF x", 18, "x", ". AUTHORIZATION WITH <EOF>"),
        ("ALTER TABLE t ADD x", 19, "x", ". ADD"),
        ("ALTER TABLE t DROP x", 20, "x", ". DROP"),
        ("ALTER TABLE IF x", 16, "x", ". ADD ALTER DROP EXECUTE EXISTS RENAME SET"),
        (
            "ALTER TABLE t ADD COLUMN z varchar x",
            36,
            "x",
            "( AFTER ARRAY COMMENT DEFAULT FIRST LAST NOT WITH <EOF>",
        ),
        ("ALTER TABLE t ADD COLUMN r.z 1", 30, "1", "<type>"),
        ("EXECUTE EXECUTE x", 17, "x", "USING <EOF>"),
        ("SELECT TRY_CAST(AS)", 17, "AS", ") * ALL DISTINCT ORDER <expression>"),
        ("SELECT ROW(, 1)", 12, ",", ") * ALL DISTINCT ORDER <expression>"),
        ("SELECT 1 FROM t OFFSET 1 x", 26, "x", "FETCH LIMIT ROW ROWS <EOF>"),
        ("SELECT 1 FROM t GROUP BY GROUPING x", 35, "x", "( SETS"),
    ],
)
def test_the_expected_tokens_are_all_that_the_grammar_allows(
    sql: str, column: int, token: str, expected: str
) -> None:
    error = _refused(sql)
    labels = ", ".join(
        label if label.startswith("<") else f"'{label}'" for label in expected.split()
    )
    assert (error.code, error.line, error.column) == ("SYNTAX_ERROR", 1, column)
    assert error.message == f"mismatched input '{token}'. Expecting: {labels}"


@pytest.mark.parametrize(
    ("sql", "column", "token", "expected"),
    [
        ("ANALYZE t x", 11, "x", ". WITH <EOF>"),
        ("REFRESH x", 9, "x", "MATERIALIZED"),
        ("REFRESH MATERIALIZED VIEW w x", 29, "x", ". <EOF>"),
        ("RESET SESSION", 14, "<EOF>", "AUTHORIZATION <identifier>"),
        ("SHOW FUNCTIONS x", 16, "x", "FROM IN LIKE <EOF>"),
        ("SHOW SESSION LIKE x", 19, "x", "<string>"),
        ("DESCRIBE INPUT q x", 18, "x", "<EOF>"),
        ("ALTER VIEW w", 13, "<EOF>", ". RENAME SET"),
        ("ALTER VIEW w RENAME x", 21, "x", ". RENAME"),
        ("ALTER TABLE t EXECUTE 1", 23, "1", "<identifier>"),
        ("ALTER TABLE t EXECUTE a b", 25, "b", "( WHERE <EOF>"),
        ("CREATE VIEW w SECURITY x AS SELECT 1 a", 24, "x", "DEFINER INVOKER"),
        ("CREATE VIEW w SECURITY INVOKER x", 32, "x", "AS WITH"),
        ("EXPLAIN ANALYZE SELECT count(* FROM t", 32, "FROM", ")"),
        ("GRANT SELECT OR t TO joe", 14, "OR", ", ON TO"),
        ("GRANT SELECT ON t TyO joe", 23, "joe", ". TO"),
        ("GRANT SELECT ON t TO", 21, "<EOF>", ". TO"),
        ("GRANT SELECT ON t TO joe x", 26, "x", "WITH <EOF>"),
        ("GRANT r TO joe x", 16, "x", ", GRANTED IN WITH <EOF>"),
        ("REVOKE GRANT", 13, "<EOF>", ", FROM ON OPTION"),
        ("REVOKE ADMIN OPTION FOR r ON", 27, "ON", ", FROM"),
        ("DENY ALL x", 10, "x", ", ON PRIVILEGES"),
        (
            "CREATE ROLE r WITH ADMIN",
            25,
            "<EOF>",
            "CURRENT_ROLE CURRENT_USER ROLE USER <identifier>",
        ),
        ("DROP ROLE", 10, "<EOF>", "IF <identifier>"),
        ("SET ROLE ALL x", 14, "x", "IN <EOF>"),
        ("SHOW ROLES x", 12, "x", "FROM IN <EOF>"),
        ("SHOW GRANTS ON", 15, "<EOF>", "SCHEMA TABLE <identifier>"),
        ("ALTER SCHEMA s SET x", 20, "x", ". SET"),
        ("ALTER TABLE IF EXISTS t SET", 25, "SET", ". ADD ALTER DROP RENAME"),
        ("ALTER TABLE t ALTER COLUMN r.x DROP", 32, "DROP", ". SET"),
        ("ALTER MATERIALIZED VIEW", 24, "<EOF>", ". IF SET <identifier>"),
        ("CREATE MATERIALIZED VIEW v x", 28, "x", "AS COMMENT GRACE WITH"),
        ("CREATE CATALOG c USING m x", 26, "x", "AUTHORIZATION COMMENT WITH <EOF>"),
        ("DROP FUNCTION f", 16, "<EOF>", "( ."),
        ("WITH SESSION a SELECT 1", 16, "SELECT", ". ="),
        (
            "SELECT sum(x) OVER (PARTITION x BY y) FROM t",
            31,
            "x",
            ") BY GROUPS MEASURES ORDER PARTITION RANGE ROWS",
        ),
        ("USE a b", 7, "b", "<EOF>"),
        ("CREATE TABLE n (LIKE t, z)", 26, ")", "<type>"),
    ],
)
def test_syntax_errors_precede_refused_statements(
    sql: str, column: int, token: str, expected: str
) -> None:
    error = _refused(sql)
    labels = ", ".join(
        label if label.startswith("<") else f"'{label}'" for label in expected.split()
    )
    assert (error.code, error.column) == ("SYNTAX_ERROR", column)
    assert error.message == f"mismatched input '{token}'. Expecting: {labels}"
