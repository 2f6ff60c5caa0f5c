"""First statements of users of eight other engines: each error names the replacement."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowmerge_nb.base.errors import ParseError, RowMergeError
from rowmerge_nb.sql.functions.foreign_names import (
    FUNCTIONS,
    function_hint,
    literal_hint,
    type_hint,
)
from rowmerge_nb.sql.parser.statement_reader import parse
from tests.sql.support import FakeTables, meaning, refusal

COLUMNS = [
    ("id", "bigint"),
    ("customer", "varchar"),
    ("purchases", "bigint"),
    ("address", "varchar"),
]
TABLES = FakeTables(
    {
        "accounts": [
            *COLUMNS,
            ("opened", "date"),
            ("seen", "timestamp(6)"),
            ("tags", "array(varchar)"),
            ("doc", "json"),
        ],
        "news": COLUMNS,
    }
)


def _cases() -> list[tuple[str, str]]:
    text = Path(__file__).with_name("first_statements.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("# ")]
    return [(sql, hint.strip()) for sql, hint in zip(lines[::2], lines[1::2], strict=True)]


@pytest.mark.parametrize(("sql", "hint"), _cases())
def test_a_first_statement_is_answered_with_the_next_step(sql: str, hint: str) -> None:
    assert refusal(sql, tables=TABLES).hint == hint


def _error(sql: str, tables: FakeTables) -> RowMergeError | None:
    try:
        meaning(sql, tables=tables)
    except RowMergeError as error:
        return error
    return None


@pytest.mark.parametrize("hint", [hint for _, hint in _cases() if ": `" in hint])
def test_a_statement_that_is_offered_whole_parses(hint: str) -> None:
    offer = hint[hint.index(": `") + 3 : -1]
    parse(offer, dialect="extended" if "With the option" in hint else "trino")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_replacement_of_a_function_uses_existing_functions(name: str) -> None:
    text = FUNCTIONS[name]
    if text.startswith(("CROSS JOIN", "the columns", "LIMIT")):
        return
    names = ("a", "array", "b", "c", "n", "x", "condition", "part", "pattern", "text")
    tables = FakeTables({"t": [(column, "double") for column in names]})
    for alternative in text.split(", or "):
        expression = alternative.replace("AS type)", "AS bigint)")
        error = _error(f"SELECT {expression} FROM t", tables)
        # The columns may have another type than the function takes.
        assert error is None or "not registered" not in error.message, expression
        assert error is None or error.code in {"TYPE_MISMATCH", "FUNCTION_NOT_FOUND"}, expression
    assert function_hint(name.upper()) == f"Write {text}."


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("MAP<STRING, INT64>", "Write varchar instead of string."),
        ("array(nvarchar(20))", "Write varchar instead of nvarchar."),
        ("uniqueidentifier", "Write uuid."),
        ("bigint", None),
    ],
)
def test_a_foreign_type_is_noticed_within_another(written: str, hint: str | None) -> None:
    assert str(type_hint(written)) == str(hint)


def test_a_word_before_a_text_is_answered_by_its_meaning() -> None:
    assert literal_hint("R") == "Write the text without r: a backslash is a plain character."
    assert str(literal_hint("datetime")) == "Write timestamp."


@pytest.mark.parametrize("length", [1, 200])
def test_a_pattern_is_noticed_far_from_the_beginning(length: int) -> None:
    conditions = " AND ".join(["purchases > 1"] * length)
    error = refusal(f"SELECT id FROM accounts WHERE {conditions} AND customer ~ 'x'", tables=TABLES)
    assert isinstance(error, ParseError)
    assert error.hint == "Write regexp_like(customer, 'x') instead of customer ~ 'x'."
