"""Forms of other engines' SQL: each error names the replacement, which is valid."""

from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.sql.parser.statement_reader import parse


def hint_of(sql: str) -> str:
    with pytest.raises(ParseError) as caught:
        parse(sql)
    return caught.value.hint or ""


@pytest.mark.parametrize(
    ("sql", "merge"),
    [
        (
            "UPDATE accounts SET name = n.v FROM news n WHERE accounts.id = n.id",
            "MERGE INTO accounts USING news n ON accounts.id = n.id WHEN MATCHED THEN UPDATE SET name = n.v",
        ),
        (
            "UPDATE accounts JOIN news ON accounts.id = news.id SET name = news.v",
            "MERGE INTO accounts USING news ON accounts.id = news.id WHEN MATCHED THEN UPDATE SET name = news.v",
        ),
        (
            "UPDATE a SET b = (SELECT max(c) FROM d WHERE d.x = 1) FROM e WHERE a.k = e.k",
            "MERGE INTO a USING e ON a.k = e.k WHEN MATCHED THEN UPDATE SET b = (SELECT max(c) FROM d WHERE d.x = 1)",
        ),
        (
            "DELETE FROM accounts USING news n\n WHERE accounts.id = n.id",
            "MERGE INTO accounts USING news n ON accounts.id = n.id WHEN MATCHED THEN DELETE",
        ),
        (
            "INSERT INTO accounts (id, name) VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET name = 'x'",
            (
                "MERGE INTO accounts t USING (VALUES (1, 'a')) s (id, name) ON t.id = s.id WHEN MATCHED THEN UPDATE"
                " SET name = 'x' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
            ),
        ),
        (
            "INSERT INTO accounts (id, name) SELECT * FROM news ON CONFLICT (id, name) DO NOTHING",
            (
                "MERGE INTO accounts t USING (SELECT * FROM news) s (id, name) ON t.id = s.id AND t.name = s.name"
                " WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
            ),
        ),
    ],
)
def test_the_merge_of_a_statement_is_written_with_its_own_names(sql: str, merge: str) -> None:
    hint = hint_of(sql)
    assert hint.endswith(f": {merge}")
    parse(merge)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT id\u00a0FROM t", "U+00A0 (NO-BREAK SPACE)"),
        ("SELECT \u2018a\u2019", "write ' instead"),
        ("SELECT \u20ac", "U+20AC (EURO SIGN)"),
        ("SELECT order FROM t", '"order"'),
        ('OPTIMIZE lake2."rd-work".t', 'ALTER TABLE lake2."rd-work".t EXECUTE optimize,'),
        ('VACUUM lake2."rd-work".t', 'ALTER TABLE lake2."rd-work".t EXECUTE'),
        ("DESCRIBE HISTORY t", 'FROM "t$history" for a table of Iceberg; for one of Delta Lake,'),
        ('DESCRIBE HISTORY lake2."rd-work"."my t"', 'FROM lake2."rd-work"."my t$history" for'),
        ("DESC HISTORY lake.default.t;", "SELECT * FROM lake.default.t FOR VERSION AS OF 0."),
        ("SELECT * FROM t VERSION AS OF 0", "Write t FOR VERSION AS OF 0."),
        (
            "SELECT * FROM a.\"b c\".t TIMESTAMP AS OF '2024-01-01'",
            "Write a.\"b c\".t FOR TIMESTAMP AS OF TIMESTAMP '2024-01-01'.",
        ),
        ("CREATE TABLE t (group bigint)", '"group"'),
        ("SELECT id FROM t LIMIT 1 OFFSET 2", "OFFSET 2 LIMIT 1"),
        ("SELECT id FROM t LIMIT 3, 5", "OFFSET 3 LIMIT 5"),
        ("SELECT id::integer FROM t", "CAST(id AS integer)"),
        ("SELECT TOP 5 * FROM t", "LIMIT 5"),
        ("REPLACE INTO t VALUES (1)", "MERGE INTO t"),
        ("INSERT OR IGNORE INTO t VALUES (1)", "MERGE INTO t"),
        ("INSERT OVERWRITE t SELECT 1", "TRUNCATE TABLE"),
        ("INSERT INTO t DEFAULT VALUES", "a value for each column"),
        ("MERGE t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", "MERGE INTO t"),
        ("INSERT t VALUES (1)", "INSERT INTO t"),
        ("INSERT IGNORE INTO `t` VALUES (1)", "MERGE INTO `t`"),
        ("INSERT IGNORE t VALUES (1)", "MERGE INTO t"),
        ("DELETE t WHERE a = 1", "DELETE FROM t"),
        ("UPDATE t x SET a = 1", "no alias"),
        ("DELETE FROM t x WHERE a = 1", "no alias"),
        ("SELECT a FROM t WHERE a ILIKE 'b'", "lower(a) LIKE lower('b')"),
        ("SELECT INTERVAL 1 DAY", "INTERVAL '1' DAY"),
    ],
)
def test_forms_of_other_engines_have_a_hint(sql: str, words: str) -> None:
    assert words in hint_of(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT FROM t",
        "SELECT a FROM",
        "UPDATE t SET",
        "DELETE FROM t WHERE",
        "INSERT INTO t",
        "SELECT (",
        "UPDATE",
        "INSERT ON",
        "DELETE FROM t USING",
        "UPDATE t FROM",
        "INSERT INTO t ON CONFLICT",
    ],
)
def test_a_statement_that_ends_early_is_a_single_error(sql: str) -> None:
    hint_of(sql)


def test_an_offer_keeps_texts_comments_and_lines() -> None:
    sql = (
        "UPDATE [dbo].[accounts] -- [all] of them\n"
        "SET [name] = '[dbo].[x]'\nFROM [dbo].[my news] n\nWHERE [accounts].[id] == n.[id]"
    )
    hint = hint_of(sql)
    assert hint.startswith("Leave [dbo]. out. In Trino's words: `MERGE INTO ")
    offer = hint.partition("`")[2].removesuffix("`")
    assert 'USING "my news" n ON' in offer
    assert "'[dbo].[x]'" in offer
    parse(offer)


@pytest.mark.parametrize(
    ("sql", "offer"),
    [
        ("SELECT a FROM [t] WHERE b BETWEEN 1, 2", 'SELECT a FROM "t" WHERE b BETWEEN 1 AND 2'),
        ("SELECT a FROM [t] WHERE !b", 'SELECT a FROM "t" WHERE NOT b'),
        ("SELECT a FROM [t] WHERE b IS NaN", 'SELECT a FROM "t" WHERE b IS NULL'),
        (
            "DELETE [t] OUTPUT DELETED.*, 'deleted' WHERE b = 2;",
            """DELETE "t" WHERE b = 2 RETURNING old.*, 'deleted'""",
        ),
        ("CREATE TABLE [t] (text text, b int4)", 'CREATE TABLE "t" (text varchar, b integer)'),
    ],
)
def test_an_offer_replaces_the_words_that_are_wrong(sql: str, offer: str) -> None:
    assert hint_of(sql).endswith(f"`{offer}`")


def test_words_are_not_joined_after_a_removal_between_them() -> None:
    sql = "MERGE INTO t USING s USING(id)WHEN MATCHED THEN DELETE"
    assert hint_of(sql).endswith("`MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE`")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM [t] WHERE a IN (SELECT TOP 1 a FROM [s])",
        "SELECT TOP 1 a FROM [t] UNION ALL SELECT a FROM [s]",
        "SELECT [a] FROM [t] WHERE a == " + "1 + " * 2000 + "1",
        "SELECT * FROM [t] WHERE a == 1 OUTPUT x y z",
        "ALTER TABLE [t] SET TBLPROPERTIES ('a' = 'b')",
        "UPSERT INTO `t` VALUES (1)",
        "INSERT INTO `t` (`a`) VALUES (1) ON DUPLICATE KEY UPDATE a = 1",
        "SELECT * FROM t WHERE a == 1 AND b || c ILIKE 'd'",
    ],
)
def test_long_and_unconvertible_statements_have_no_offer(sql: str) -> None:
    assert "In Trino's words" not in hint_of(sql)
