"""``FOR VERSION AS OF`` and ``FOR TIMESTAMP AS OF`` are read in Trino's positions, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.tree import syntax as s


def relation(sql: str) -> Any:
    tree: Any = parse(sql)
    return tree.tree.body.relation


def test_a_period_follows_the_name_and_precedes_the_alias() -> None:
    sql = "SELECT * FROM lake.s.t FOR VERSION AS OF 8 + 1 AS x (a, b)"
    aliased = relation(sql)
    assert (aliased.alias.value, [column.value for column in aliased.columns]) == ("x", ["a", "b"])
    period = aliased.relation.period
    assert (period.kind, period.words, period.end.span.of(sql)) == (
        "VERSION",
        "FOR VERSION AS OF",
        "8 + 1",
    )
    assert (period.span.of(sql), period.span.column) == ("FOR VERSION AS OF 8 + 1", 24)
    assert aliased.relation.span.of(sql) == "lake.s.t FOR VERSION AS OF 8 + 1"


def test_an_alias_needs_no_as() -> None:
    assert relation("SELECT * FROM t FOR TIMESTAMP AS OF DATE '2026-01-01' x").alias.value == "x"


def test_a_table_without_a_period_has_none() -> None:
    assert relation("SELECT * FROM t").period is None


@pytest.mark.parametrize(
    "sql",
    [
        "MERGE INTO t USING s FOR VERSION AS OF 3 AS u ON t.id = u.id WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING (SELECT * FROM s FOR VERSION AS OF 3) u ON t.id = u.id WHEN MATCHED THEN DELETE",
        "UPDATE t SET v = (SELECT max(v) FROM t FOR VERSION AS OF 3) WHERE id IN (SELECT id FROM t FOR VERSION AS OF 3)",
        "DELETE FROM t WHERE EXISTS (SELECT 1 FROM s FOR VERSION AS OF 3 WHERE s.id = t.id)",
        "INSERT INTO t SELECT * FROM t FOR VERSION AS OF 3",
        "CREATE TABLE u AS SELECT * FROM t FOR VERSION AS OF 3",
        "CREATE VIEW u AS SELECT * FROM t FOR VERSION AS OF 3",
        "SELECT * FROM t FOR VERSION AS OF 1 a JOIN t FOR VERSION AS OF 2 b ON a.id = b.id, t FOR VERSION AS OF 3",
    ],
)
def test_a_period_is_read_after_every_table(sql: str) -> None:
    assert "QueryPeriod" in repr(parse(sql))


@pytest.mark.parametrize(
    ("sql", "column", "message"),
    [
        ("SELECT * FROM t FOR", 20, "mismatched input '<EOF>'. Expecting: 'TIMESTAMP', 'VERSION'"),
        (
            "SELECT * FROM t FOR SYSTEM_TIME AS OF 1",
            21,
            "mismatched input 'SYSTEM_TIME'. Expecting: 'TIMESTAMP', 'VERSION'",
        ),
        ("SELECT * FROM t FOR VERSION 1", 29, "mismatched input '1'. Expecting: 'AS'"),
        ("SELECT * FROM t FOR VERSION AS 1", 32, "mismatched input '1'. Expecting: 'OF'"),
        (
            "SELECT * FROM t FOR VERSION AS OF",
            34,
            "mismatched input '<EOF>'. Expecting: <expression>",
        ),
        (
            "DELETE FROM t FOR VERSION AS OF 1",
            15,
            "mismatched input 'FOR'. Expecting: '.', '@', 'WHERE', <EOF>",
        ),
        (
            "UPDATE t FOR VERSION AS OF 1 SET v = 1",
            10,
            "mismatched input 'FOR'. Expecting: '@', 'SET'",
        ),
        (
            "MERGE INTO t FOR VERSION AS OF 1 USING s ON true WHEN MATCHED THEN DELETE",
            14,
            "mismatched input 'FOR'. Expecting: '@', 'AS', 'USING', <identifier>",
        ),
    ],
)
def test_an_invalid_period_is_reported_at_its_position(sql: str, column: int, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(sql)
    assert (caught.value.code, caught.value.line, caught.value.column) == (
        "SYNTAX_ERROR",
        1,
        column,
    )
    assert caught.value.message == message


def test_the_value_ends_before_a_comparison() -> None:
    with pytest.raises(ParseError, match="mismatched input '='") as caught:
        parse("SELECT * FROM t FOR VERSION AS OF 1 = 2")
    assert caught.value.column == 37


def test_an_alias_before_the_period_ends_the_table() -> None:
    with pytest.raises(ParseError, match="mismatched input 'FOR'"):
        parse("SELECT * FROM t x FOR VERSION AS OF 1")


def test_version_is_still_a_name() -> None:
    assert isinstance(relation("SELECT version FROM version").name.parts[0].value, str)
    assert isinstance(relation("SELECT * FROM version FOR VERSION AS OF 1").period, s.QueryPeriod)
