"""Statements of other engines in Trino's words, and forms without a translation."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.engine.sessions.foreign_translation import DIALECTS, translate_statement
from rowmerge_nb.sql.parser.statement_reader import parse

ON = "MERGE INTO t USING s ON t.id = s.id "
INSERTS = "WHEN NOT MATCHED THEN INSERT (id) VALUES ({})"
IN_TRINO = [
    (
        "delta",
        "MERGE INTO t USING s ON t.id <=> s.id WHEN MATCHED THEN UPDATE SET t.`a b` = int(s.x)",
        (
            'MERGE INTO t USING s ON t.id IS NOT DISTINCT FROM s.id WHEN MATCHED THEN UPDATE SET "a b" ='
            " CAST(s.x AS INTEGER)"
        ),
    ),
    ("delta", "UPDATE t AS x SET x.v = 1 WHERE x.a = 2", "UPDATE t SET v = 1 WHERE t.a = 2"),
    (
        "postgresql",
        "UPDATE t SET v = s.v FROM s WHERE t.id = s.id",
        ON + "WHEN MATCHED THEN UPDATE SET v = s.v",
    ),
    ("snowflake", "DELETE FROM t USING s WHERE t.id = s.id", ON + "WHEN MATCHED THEN DELETE"),
    ("duckdb", "UPDATE t SET (a, b) = (1, 2)", "UPDATE t SET a = 1, b = 2"),
    (
        "sqlserver",
        "MERGE t USING [s] ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.v = ISNULL(s.v, 0);",
        'MERGE INTO t USING "s" ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = COALESCE(s.v, 0)',
    ),
    (
        "sqlserver",
        "UPDATE x SET x.v = s.v FROM [t] AS x INNER JOIN s ON x.id = s.id WHERE s.v > 1;",
        'MERGE INTO "t" x USING s ON x.id = s.id AND s.v > 1 WHEN MATCHED THEN UPDATE SET v = s.v',
    ),
    (
        "sqlserver",
        "DELETE FROM x FROM t AS x JOIN s ON x.id = s.id",
        "MERGE INTO t x USING s ON x.id = s.id WHEN MATCHED THEN DELETE",
    ),
    (
        "sqlserver",
        "DELETE x FROM t AS x JOIN s ON x.id = s.id WHERE s.v > 1",
        "MERGE INTO t x USING s ON x.id = s.id AND s.v > 1 WHEN MATCHED THEN DELETE",
    ),
    (
        "bigquery",
        "MERGE `p.d.t` T USING s S ON T.`Order No` = S.`Order No` WHEN NOT MATCHED THEN INSERT (`Order No`) VALUES (`Order No`)",
        (
            'MERGE INTO "p"."d"."t" AS t USING s AS S ON T."Order No" = S."Order No" WHEN NOT MATCHED'
            ' THEN INSERT ("Order No") VALUES (S."Order No")'
        ),
    ),
    (
        "oracle",
        "MERGE INTO t USING s ON (t.id = s.id) WHEN MATCHED THEN UPDATE SET t.v = s.v WHERE s.v > 1",
        "MERGE INTO t USING s ON (t.id = s.id) WHEN MATCHED AND s.v > 1 THEN UPDATE SET v = s.v",
    ),
]
EXTENDED = [
    (
        "bigquery",
        "MERGE `t` USING s ON FALSE WHEN NOT MATCHED BY SOURCE AND v > 1 THEN DELETE WHEN NOT MATCHED THEN INSERT ROW",
        (
            'MERGE INTO "t" USING s ON FALSE WHEN NOT MATCHED BY SOURCE AND v > 1 THEN DELETE WHEN NOT'
            " MATCHED THEN INSERT ROW"
        ),
    ),
    ("delta", ON + "WHEN MATCHED THEN UPDATE SET *", ON + "WHEN MATCHED THEN UPDATE SET *"),
    (
        "delta",
        "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    ),
    # DuckDB's star takes columns in their order.
    ("duckdb", ON + "WHEN MATCHED THEN UPDATE SET *", ON + "WHEN MATCHED THEN UPDATE"),
    (
        "postgresql",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING",
    ),
    ("duckdb", "INSERT OR REPLACE INTO t VALUES (1, 2)", "INSERT OR REPLACE INTO t VALUES (1, 2)"),
    ("sqlite", "REPLACE INTO t VALUES (1, 2)", "INSERT OR REPLACE INTO t VALUES (1, 2)"),
]
REFUSED = [
    ("sqlserver", ON + INSERTS.format("NEXT VALUE FOR dbo.q")),
    ("sqlserver", "DELETE x FROM t AS x LEFT JOIN s ON x.id = s.id WHERE s.id IS NULL"),
    ("sqlserver", "UPDATE x SET v = s.v FROM t AS x LEFT JOIN s ON x.id = s.id"),
]


def _in_a_line(sql: str) -> str:
    return sql.replace("\nWHEN", " WHEN")


@pytest.mark.parametrize(
    "dialect", ["snowflake", "bigquery", "postgresql", "duckdb", "delta", "sqlserver"]
)
def test_bare_names_of_new_rows_are_the_sources_and_each_clause_begins_a_line(dialect: str) -> None:
    translation = translate_statement(
        "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
        " WHEN NOT MATCHED AND id > 1 THEN INSERT (id, v) VALUES (id, coalesce(v, (SELECT max(w) FROM u)))",
        dialect,
    )
    assert translation.sql.split("\n")[1:] == [
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        "WHEN NOT MATCHED AND s.id > 1 THEN INSERT (id, v) VALUES (s.id, COALESCE(s.v, (SELECT MAX(w) FROM u)))",
    ]
    assert any(text.endswith(": s.id, s.v.") for text in translation.differences)


@pytest.mark.parametrize(("dialect", "sql", "words"), IN_TRINO)
def test_a_statement_is_translated_into_trinos_words(dialect: str, sql: str, words: str) -> None:
    translation = translate_statement(sql, dialect)
    assert (_in_a_line(translation.sql), translation.dialect) == (words, "trino")
    assert str(translation) == translation.sql
    parse(words)


@pytest.mark.parametrize(("dialect", "sql", "words"), EXTENDED)
def test_forms_without_words_in_trino_need_the_extended_dialect(
    dialect: str, sql: str, words: str
) -> None:
    translation = translate_statement(sql, dialect)
    assert (_in_a_line(translation.sql), translation.dialect) == (words, "extended")
    assert 'dialect="extended"' in translation.differences[-1]
    parse(words, dialect="extended")


@pytest.mark.parametrize(
    ("dialect", "sql", "merge"),
    [
        ("sqlite", "REPLACE INTO t (id) VALUES (1)", "THEN UPDATE SET v = DEFAULT"),
        ("duckdb", "INSERT OR REPLACE INTO t (id) VALUES (1)", "WHEN MATCHED THEN DO NOTHING"),
        ("duckdb", "INSERT INTO t VALUES (1, 2) ON CONFLICT DO NOTHING", "PARTITION BY id"),
        (
            "postgresql",
            "INSERT INTO u (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2",
            "THEN UPDATE SET a = 2",
        ),
    ],
)
def test_an_insert_by_the_key_is_translated_to_its_merge(
    dialect: str, sql: str, merge: str
) -> None:
    with Engine() as engine:
        engine.run("CREATE TABLE t (id bigint, v bigint) WITH (primary_key = ARRAY['id'])")
        translation = engine.translate(sql, dialect=dialect)
    assert translation.sql.startswith("MERGE INTO ")
    assert merge in translation.sql
    assert translation.dialect == ("trino" if "CONFLICT DO NOTHING" in sql else "extended")
    parse(translation.sql, dialect=translation.dialect)


def test_differences_are_named() -> None:
    def differences(sql: str, dialect: str) -> str:
        return " ".join(translate_statement(sql, dialect).differences)

    assert "several rows of the source" in differences("UPDATE t SET v = s.v FROM s", "postgresql")
    assert "division" in differences("UPDATE t SET v = v / 2", "snowflake")
    assert "case" in differences("DELETE FROM t WHERE a = 'x'", "sqlserver")
    assert "NULL" in differences("DELETE FROM t WHERE a = ''", "oracle")
    assert "WHERE of a clause" in differences(IN_TRINO[-1][1], "oracle")
    assert differences("DELETE FROM t WHERE a = 1", "postgresql") == ""


@pytest.mark.parametrize(
    ("dialect", "sql", "difference"),
    [
        ("sqlserver", "DELETE FROM t WHERE a LIKE 'Ac[mn]e%'", "character class"),
        ("sqlserver", ON + INSERTS.format("s.a + ' x'"), "|| in Trino"),
        ("sqlserver", ON + INSERTS.format("s.a"), "MERGE_TARGET_ROW_MULTIPLE_MATCHES"),
        ("oracle", ON + INSERTS.format("q.NEXTVAL"), "no sequences"),
        ("oracle", ON + INSERTS.format("s.a"), "docs/duplicates.md"),
        ("oracle", "DELETE FROM t WHERE ROWNUM <= 3", "ROWNUM is unknown"),
        (
            "sqlserver",
            "MERGE INTO t WITH (HOLDLOCK) x USING s ON x.id = s.id WHEN MATCHED THEN DELETE;",
            "WITH (HOLDLOCK) is omitted",
        ),
    ],
)
def test_features_that_trino_lacks_are_a_difference(
    dialect: str, sql: str, difference: str
) -> None:
    assert difference in " ".join(translate_statement(sql, dialect).differences)


def test_every_matched_row_of_a_chosen_source_is_the_same_in_other_engines() -> None:
    sql = f"{ON}WHEN MATCHED THEN DELETE"
    assert translate_statement(sql, "sqlserver").differences == ()


def test_forms_that_do_not_fit_known_tables_are_a_difference() -> None:
    with Engine() as engine:
        engine.run("CREATE TABLE t (id bigint, a varchar)")
        translation = engine.translate("DELETE FROM t WHERE id = a + a", dialect="sqlserver")
        assert translation.differences[-1].startswith("It fails here: TYPE_MISMATCH: ")
        translation = engine.translate("DELETE FROM t WHERE id = 1", dialect="sqlserver")
        assert translation.differences == ()


def test_the_page_for_sql_server_and_oracle_has_translations() -> None:
    page = (Path(__file__).parents[3] / "docs" / "from-sqlserver-oracle.md").read_text("utf-8")
    sqlserver, oracle = page.split("| in Oracle |")
    for dialect, text in (("sqlserver", sqlserver), ("oracle", oracle)):
        rows = re.findall(r"^\| `(.*)` \| `(.*)` \|$", text, re.MULTILINE)
        assert rows
        for sql, words in rows:
            assert _in_a_line(translate_statement(sql, dialect).sql) == words.replace("\\|", "|")


def test_texts_are_joined_and_output_is_returned_in_other_words() -> None:
    joined = translate_statement("DELETE FROM t WHERE a = b + '-' + c", "sqlserver")
    assert joined.sql == "DELETE FROM t WHERE a = b || '-' || c"
    output = translate_statement(
        "MERGE t USING s ON t.id = s.id WHEN MATCHED THEN DELETE OUTPUT $action, deleted.id, inserted.v;",
        "sqlserver",
    )
    assert output.dialect == "extended"
    assert output.sql.lower().endswith("returning merge_action(), old.id, new.v")


def test_messages_have_words_of_their_own() -> None:
    sql = "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET v = 1 DELETE WHERE v > 1"
    with pytest.raises(
        RowMergeError, match="DELETE WHERE of an UPDATE has no translation"
    ) as caught:
        translate_statement(sql, "oracle")
    assert "updated values" in (caught.value.hint or "")
    with pytest.raises(RowMergeError) as caught:
        translate_statement("MERGE INTO t FOO BAR x USING s ON x.id = s.id", "sqlserver")
    assert "class '" not in caught.value.message


@pytest.mark.parametrize(("dialect", "sql"), REFUSED)
def test_untranslatable_forms_are_refused(dialect: str, sql: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        translate_statement(sql, dialect)
    assert caught.value.code == "NOT_SUPPORTED"
    assert caught.value.hint


def test_an_unreadable_text_has_a_position() -> None:
    sql = "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET v = 1 DELETE WHERE v > 1"
    with pytest.raises(RowMergeError) as caught:
        translate_statement(sql, "oracle")
    error = caught.value
    assert (error.code, error.line) == ("SYNTAX_ERROR", 1)
    assert error.column is not None
    assert 1 < error.column <= len(sql)


@pytest.mark.parametrize("sql", ["", "DELETE FROM t; DELETE FROM s"])
def test_exactly_one_statement_is_translated(sql: str) -> None:
    with pytest.raises(RowMergeError, match="takes one statement"):
        translate_statement(sql, "delta")


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(RowMergeError, match="no dialect 'mysql'") as caught:
        translate_statement("DELETE FROM t", "mysql")
    assert caught.value.code == "INVALID_ARGUMENTS"
    with pytest.raises(RowMergeError, match="postgresql"):
        translate_statement("DELETE FROM t", "postgresq")
    with pytest.raises(RowMergeError, match="of type int"):
        translate_statement(5, "delta")  # type: ignore[arg-type]


def test_a_missing_sqlglot_is_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(SetupError, match=re.escape(install_command("verify"))):
        translate_statement("DELETE FROM t", "delta")


def test_an_engine_translates_without_starting_spark_also_when_it_is_closed() -> None:
    engine = Engine()
    engine.close()
    for dialect in DIALECTS:
        assert engine.translate("DELETE FROM t WHERE a = 1", dialect=dialect).sql == (
            "DELETE FROM t WHERE a = 1"
        )
