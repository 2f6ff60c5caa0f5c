"""Statements of Trino that this engine lacks: each error names the replacement."""

from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.sql.parser import definition_reader as definitions
from rowmerge_nb.sql.parser.statement_reader import parse

REFUSED = {
    "SET PATH a": "leave it out",
    "SET PATH a, b.c": "leave it out",
    "SET SESSION AUTHORIZATION a": "leave it out",
    "RESET SESSION AUTHORIZATION": "leave it out",
    "GRANT r, q TO USER a, ROLE b WITH ADMIN OPTION GRANTED BY a": "leave it out",
    "GRANT SELECT, INSERT ON TABLE t TO ROLE a WITH GRANT OPTION": "leave it out",
    "GRANT ALL PRIVILEGES ON t TO a": "leave it out",
    "REVOKE ADMIN OPTION FOR r FROM a IN c": "leave it out",
    "REVOKE GRANT OPTION FOR SELECT ON SCHEMA s FROM a": "leave it out",
    "DENY SELECT ON SCHEMA s TO a": "leave it out",
    "CREATE ROLE r WITH ADMIN CURRENT_USER": "leave it out",
    "DROP ROLE IF EXISTS r": "leave it out",
    "SET ROLE NONE": "leave it out",
    "SHOW ROLES FROM c": "leave it out",
    "SHOW CURRENT ROLES": "leave it out",
    "SHOW ROLE GRANTS": "leave it out",
    "SHOW GRANTS ON TABLE t": "leave it out",
    "ALTER TABLE t SET AUTHORIZATION ROLE r": "leave it out",
    "ALTER VIEW v SET AUTHORIZATION USER a": "leave it out",
    "ALTER SCHEMA s SET AUTHORIZATION a": "leave it out",
    "ALTER FUNCTION f SET AUTHORIZATION a": "leave it out",
    "CREATE MATERIALIZED VIEW v GRACE PERIOD INTERVAL '1' DAY COMMENT 'c' WITH (a = 1) AS SELECT 1": "CREATE VIEW",
    "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT nosuch FROM nosuch": "CREATE VIEW",
    "DROP MATERIALIZED VIEW IF EXISTS v": "CREATE VIEW",
    "ALTER MATERIALIZED VIEW IF EXISTS v RENAME TO w": "CREATE VIEW",
    "ALTER MATERIALIZED VIEW v SET PROPERTIES a = 1": "CREATE VIEW",
    "REFRESH MATERIALIZED VIEW v": "CREATE VIEW",
    "SHOW CREATE MATERIALIZED VIEW v": "CREATE VIEW",
    "SHOW SESSION LIKE 'a%' ESCAPE 'b'": "SET TIME ZONE",
    "SHOW STATS FOR t": "SELECT count(*)",
    "SHOW STATS FOR (SELECT id FROM t)": "SELECT count(*)",
    "EXPLAIN SHOW STATS FOR t": "SELECT count(*)",
    "PREPARE p FROM SHOW STATS FOR t": "SELECT count(*)",
    "SHOW CREATE FUNCTION f": "docs/functions.md",
    "CREATE CATALOG a USING b": "add_catalog",
    "DROP CATALOG a": "another Engine",
    "CREATE FUNCTION f() RETURNS bigint RETURN 1": "WITH FUNCTION",
    "DROP FUNCTION f()": "docs/functions.md",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_an_unsupported_statement_names_its_replacement(statement: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(statement)
    assert caught.value.code == "NOT_SUPPORTED"
    assert REFUSED[statement] in str(caught.value.hint)


@pytest.mark.parametrize(
    ("statement", "message", "column", "length"),
    [
        (
            "SELECT * FROM t AS a TABLESAMPLE BERNOULLI (10)",
            "TABLESAMPLE is not supported by this engine",
            22,
            11,
        ),
        (
            "SELECT 1 FROM (t TABLESAMPLE SYSTEM (1 + 1)) JOIN s ON true",
            "TABLESAMPLE is not supported by this engine",
            18,
            11,
        ),
        (
            "WITH SESSION a.b = 1, c = 2 SELECT 1",
            "WITH SESSION is not supported by this engine",
            1,
            4,
        ),
        (
            "CREATE SCHEMA s AUTHORIZATION a WITH (b = 1)",
            "AUTHORIZATION of CREATE SCHEMA is not supported by this engine",
            17,
            13,
        ),
        ("SHOW ROLES", "The statement SHOW ROLES is not supported by this engine", 1, 4),
        ("  REVOKE r FROM a", "The statement REVOKE is not supported by this engine", 3, 6),
        (
            "REFRESH MATERIALIZED VIEW v",
            "Materialized views are not supported by this engine",
            1,
            7,
        ),
        ("EXPLAIN GRANT r TO a", "The statement GRANT is not supported by this engine", 9, 5),
        (
            "EXPLAIN SELECT * FROM t TABLESAMPLE SYSTEM (1)",
            "TABLESAMPLE is not supported by this engine",
            25,
            11,
        ),
        (
            "PREPARE p FROM SHOW SESSION",
            "The statement SHOW SESSION is not supported by this engine",
            16,
            4,
        ),
    ],
)
def test_the_error_is_at_the_statement_or_the_clause(
    statement: str, message: str, column: int, length: int
) -> None:
    with pytest.raises(ParseError) as caught:
        parse(statement)
    error = caught.value
    assert (error.code, error.message, error.line, error.column, error.length) == (
        "NOT_SUPPORTED",
        message,
        1,
        column,
        length,
    )


@pytest.mark.parametrize(
    ("statement", "message", "column"),
    [
        (
            "SELECT * FROM t TABLESAMPLE BERNOULLI ()",
            "mismatched input ')'. Expecting: <expression>",
            40,
        ),
        ("GRANT CREATE TO a", "May not use a privilege name as a role name", 7),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT 1 FROM",
            "mismatched input '<EOF>'. Expecting: ",
            44,
        ),
        ("SHOW SESSION LIKE x", "mismatched input 'x'. Expecting: <string>", 19),
        ("EXPLAIN GRANT r TO a x", "mismatched input 'x'. Expecting: ", 22),
    ],
)
def test_a_syntax_error_precedes_the_refusal(statement: str, message: str, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse(statement)
    assert (caught.value.code, caught.value.line, caught.value.column) == (
        "SYNTAX_ERROR",
        1,
        column,
    )
    assert caught.value.message.startswith(message)


def test_every_replacement_belongs_to_a_statement() -> None:
    given = [
        words
        for words in definitions._INSTEAD
        if not any(f"{statement} ".startswith(f"{words} ") for statement in REFUSED)
    ]
    assert given == []
