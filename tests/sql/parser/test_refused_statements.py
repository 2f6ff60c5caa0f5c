"""Statements of Trino's that this engine has not: each says what to write instead."""

from __future__ import annotations

import pytest

from rowmerge_nb.errors import ParseError
from rowmerge_nb.sql.parser import definitions
from rowmerge_nb.sql.parser.statements import parse

REFUSED = {
    "SET ROLE a": "leave it out",
    "SET PATH a": "leave it out",
    "SET PATH a, b.c": "leave it out",
    "SET SESSION AUTHORIZATION a": "leave it out",
    "RESET SESSION AUTHORIZATION": "leave it out",
    "SHOW GRANTS ON TABLE t": "all tables can be read",
    "SHOW ROLES": "there are no roles",
    "SHOW ROLE GRANTS": "there are no roles",
    "SHOW CURRENT ROLES": "there are no roles",
    "SHOW CREATE FUNCTION f": "docs/functions.md",
    "SHOW CREATE MATERIALIZED VIEW v": "SHOW CREATE VIEW",
    "ANALYZE t": "SHOW STATS FOR",
    "GRANT SELECT ON t TO a": "leave it out",
    "REVOKE SELECT ON t FROM a": "leave it out",
    "DENY SELECT ON t TO a": "leave it out",
    "CREATE ROLE a": "leave it out",
    "DROP ROLE a": "leave it out",
    "CREATE CATALOG a USING b": "add_catalog",
    "DROP CATALOG a": "another Engine",
    "CREATE MATERIALIZED VIEW v AS SELECT 1": "CREATE VIEW",
    "DROP MATERIALIZED VIEW v": "DROP VIEW",
    "ALTER MATERIALIZED VIEW v RENAME TO w": "ALTER TABLE",
    "REFRESH MATERIALIZED VIEW v": "CREATE TABLE AS",
    "CREATE FUNCTION f() RETURNS bigint RETURN 1": "WITH FUNCTION",
    "DROP FUNCTION f()": "docs/functions.md",
    "ALTER SCHEMA s RENAME TO w": "CREATE SCHEMA with the new name",
    "ALTER TABLE t SET AUTHORIZATION a": "leave it out",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_a_statement_that_is_not_there_says_what_to_write_instead(statement: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(statement)
    assert caught.value.code == "NOT_SUPPORTED"
    assert REFUSED[statement] in str(caught.value.hint)


def test_each_of_these_answers_is_given_to_a_statement() -> None:
    given = [words for words in definitions._INSTEAD if not any(f"{statement} ".startswith(f"{words} ") for statement in REFUSED)]
    assert given == []
