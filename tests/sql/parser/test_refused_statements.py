"""Statements of Trino's that this engine has not: each says what to write instead."""

from __future__ import annotations

import pytest

from rowmerge_nb.errors import ParseError
from rowmerge_nb.sql.parser import definitions
from rowmerge_nb.sql.parser.statements import parse

REFUSED = {
    "SET PATH a": "leave it out",
    "SET PATH a, b.c": "leave it out",
    "SET SESSION AUTHORIZATION a": "leave it out",
    "RESET SESSION AUTHORIZATION": "leave it out",
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
def test_a_statement_that_is_not_there_says_what_to_write_instead(statement: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(statement)
    assert caught.value.code == "NOT_SUPPORTED"
    assert REFUSED[statement] in str(caught.value.hint)


def test_each_of_these_answers_is_given_to_a_statement() -> None:
    given = [words for words in definitions._INSTEAD if not any(f"{statement} ".startswith(f"{words} ") for statement in REFUSED)]
    assert given == []
