"""Any text is understood, or refused soon by one of our errors with a code, a sentence and a position."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.sql.parser.statement_reader import parse, split_statements
from rowmerge_nb.sql.parser.tokens import tokenize
from rowmerge_nb.sql.tree.depth import DEEPEST, DEEPEST_TREE
from tests.sql.support import ACCOUNTS, FakeTables, meaning

GOLDENS = Path(__file__).parents[2] / "goldens"
TABLES = FakeTables(
    {"target": [("id", "integer"), ("name", "varchar"), ("val", "integer")]}
    | {"source": [("id", "integer"), ("nm", "varchar"), ("v", "integer")]}
    | dict(ACCOUNTS.tables)
)
STATEMENTS = sorted(
    {
        case["sql"]
        for path in GOLDENS.glob("*.json")
        for case in json.loads(path.read_text(encoding="utf-8"))
        if isinstance(case, dict) and "expect" in case
    }
)
WORDS = sorted({token.text for sql in STATEMENTS for token in tokenize(sql) if token.text})
ODDITIES = [
    "\0",
    "\ud800",
    "\ufeff",
    "\u202e",
    "\u2028",
    "é",
    "👩‍👧",
    "'",
    '"',
    "`",
    "/*",
    "*/",
    "--",
    ";",
    "\\",
    "9" * 50,
    "1e999",
    "U&'\\+",
]
SECONDS = 2.0


def looked_at(sql: str) -> RowMergeError | None:
    """Parse and analyze; return the error, which must be one of ours and complete."""
    began = time.thread_time()
    error = None
    try:
        split_statements(sql)
        meaning(sql, tables=TABLES)
    except RowMergeError as refused:
        error = refused
        assert error.code
        assert error.message
        assert (error.line is None) == (error.column is None)
        if error.line is not None and error.column is not None:
            lines = sql.split("\n")
            assert 1 <= error.line <= len(lines)
            assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        error.statement = sql
        error.excerpt()
    assert time.thread_time() - began < SECONDS
    return error


@some.composite
def mutated(draw) -> str:
    """A recorded statement with some tokens removed, doubled, exchanged or replaced."""
    tokens = [token.text for token in tokenize(draw(some.sampled_from(STATEMENTS)))][:-1]
    for _ in range(draw(some.integers(1, 3))):
        place = draw(some.integers(0, len(tokens)))
        change = draw(some.sampled_from(["delete", "insert", "replace", "cut", "repeat"]))
        if change in {"delete", "replace"}:
            del tokens[place : place + 1]
        if change in {"insert", "replace"}:
            tokens.insert(place, draw(some.sampled_from(WORDS + ODDITIES)))
        if change == "cut":
            del tokens[place:]
        if change == "repeat":
            tokens[place:place] = tokens[place : place + 4]
    return draw(some.sampled_from([" ", "\n", "  "])).join(tokens)


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(mutated())
def test_a_statement_with_broken_tokens_is_understood_or_refused(sql: str) -> None:
    looked_at(sql)


@pytest.mark.not_quick
@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(
    some.lists(
        some.sampled_from(WORDS) | some.sampled_from(ODDITIES) | some.text(max_size=5), max_size=25
    ).map(" ".join)
)
def test_a_heap_of_words_is_understood_or_refused(sql: str) -> None:
    looked_at(sql)


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(
    some.text(some.characters(), max_size=80)
    | some.binary(max_size=80).map(lambda data: data.decode("latin-1"))
)
def test_any_characters_are_refused(text: str) -> None:
    assert looked_at(text) is not None


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(some.sampled_from(STATEMENTS), some.data())
def test_a_statement_with_odd_characters_inside_is_understood_or_refused(
    sql: str, data: some.DataObject
) -> None:
    place = data.draw(some.integers(0, len(sql)))
    looked_at(sql[:place] + data.draw(some.sampled_from(ODDITIES)) + sql[place:])


NESTED = {
    "parentheses": ("SELECT ", "(", "i", ")", " FROM numbers"),
    "parentheses that are never closed": ("SELECT ", "(", "", "", ""),
    "brackets": ("SELECT ", "ARRAY[", "1", "]", ""),
    "CASE": ("SELECT ", "CASE WHEN b THEN ", "1", " END", " FROM numbers"),
    "calls": ("SELECT ", "abs(", "i", ")", " FROM numbers"),
    "CAST": ("SELECT ", "CAST(", "i", " AS bigint)", " FROM numbers"),
    "NOT": ("SELECT ", "NOT ", "b", "", " FROM numbers"),
    "signs": ("SELECT ", "- ", "i", "", " FROM numbers"),
    "scalar subqueries": ("SELECT ", "(SELECT ", "1", ")", ""),
    "subqueries in FROM": ("", "SELECT * FROM (", "TABLE numbers", ")", ""),
    "queries with something behind": ("SELECT ", "((SELECT ", "1", ") + 1)", ""),
    "lambdas": ("SELECT ", "transform(ARRAY[1], x -> ", "1", ")", ""),
    "IN": ("SELECT ", "true IN (", "true", ")", ""),
    "WITH": ("", "WITH a AS (", "SELECT 1", ") SELECT 1", ""),
    "types": ("CREATE TABLE t (a ", "array(", "int", ")", ")"),
    "EXPLAIN": ("", "EXPLAIN ", "SELECT 1", "", ""),
    "joins": ("SELECT 1 FROM numbers", " JOIN numbers", "", " ON true", ""),
    "sums": ("SELECT 1", "+ 1", "", "", ""),
    "concatenations": ("SELECT 'x'", "|| 'x'", "", "", ""),
    "dereferences": ("SELECT i", ".i", "", "", " FROM numbers"),
    "subscripts": ("SELECT ARRAY[1]", "[1]", "", "", ""),
    "unions": ("SELECT 1", " UNION SELECT 1", "", "", ""),
    "comments": ("SELECT ", "/* ", "", "", ""),
}


@pytest.mark.parametrize("count", [DEEPEST // 4, DEEPEST + 1, 3_000])
@pytest.mark.parametrize("form", NESTED)
def test_deep_nesting_is_read_or_refused_and_never_exhausts_the_stack(
    form: str, count: int
) -> None:
    begin, opening, middle, closing, end = NESTED[form]
    error = looked_at(begin + opening * count + middle + closing * count + end)
    if count > DEEPEST_TREE:
        assert (error is None) == (form in {"sums", "concatenations"}), error


MANY = 2_000
WIDE = {
    "INSERT list": f"INSERT INTO numbers ({', '.join(['i'] * MANY)}) VALUES (1)",
    "INSERT values": f"INSERT INTO numbers VALUES ({', '.join(['1'] * MANY)})",
    "rows of VALUES": f"SELECT * FROM (VALUES {', '.join(['(1)'] * MANY)}) t (a)",
    "MERGE values": "MERGE INTO numbers t USING numbers s ON t.i = s.i WHEN NOT MATCHED THEN "
    f"INSERT VALUES ({', '.join(['1'] * MANY)})",
    "SET list": "MERGE INTO numbers t USING numbers s ON t.i = s.i WHEN MATCHED THEN "
    f"UPDATE SET {', '.join(f'c{i} = 1' for i in range(MANY))}",
    "columns of CREATE TABLE": f"CREATE TABLE t ({', '.join(f'c{i} int' for i in range(MANY))})",
    "select list": f"SELECT {', '.join(['i + 1'] * MANY)} FROM numbers",
    "OR": f"SELECT {' OR '.join(['b'] * MANY)} FROM numbers",
    "AND": f"SELECT {' AND '.join(['b'] * MANY)} FROM numbers",
    "IN list": f"SELECT i IN ({', '.join(['1'] * MANY)}) FROM numbers",
    "arguments": f"SELECT concat({', '.join(['s'] * MANY)}) FROM numbers",
    "clauses": f"MERGE INTO numbers t USING numbers s ON t.i = s.i {'WHEN MATCHED AND t.b THEN DELETE ' * 1_000}",
    "WITH that doubles": f"WITH a0 AS (SELECT 1 x), {', '.join(f'a{i} AS (TABLE a{i - 1} UNION TABLE a{i - 1})' for i in range(1, 40))} TABLE a39",
    "digits": "SELECT " + "9" * 95_000,
    "digits of a fraction": "SELECT 1." + "9" * 95_000,
    "digits of an exponent": "SELECT 1e" + "9" * 95_000,
    "digits of a typed literal": f"SELECT BIGINT '{'9' * 95_000}'",
    "digits of an interval": f"SELECT INTERVAL '{'9' * 95_000}' DAY",
    "digits of a precision": f"CREATE TABLE t (a decimal({'9' * 95_000}))",
    "digits of a limit": f"SELECT 1 LIMIT {'9' * 95_000}",
    "string": f"SELECT '{'x' * 95_000}'",
    "string that is never closed": "SELECT '" + "x" * 95_000,
    "quoted name that is never closed": 'SELECT "' + "x" * 95_000,
    "comment that is never closed": "SELECT /* " + "x" * 95_000,
    "quotes": "'" * 20_001,
    "escapes": f"SELECT U&'{chr(92)}0041{chr(92)}'",
    "half a pair": f"SELECT U&'{chr(92)}D800'",
}


@pytest.mark.parametrize("form", WIDE)
def test_long_lists_and_literals_are_read_or_refused_soon(form: str) -> None:
    looked_at(WIDE[form])


SYNTAX = json.loads((Path(__file__).parent / "syntax_errors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", SYNTAX, ids=lambda case: case["sql"])
def test_a_syntax_error_is_at_the_position_of_trinos_grammar(case: dict[str, str | int]) -> None:
    with pytest.raises(RowMergeError) as caught:
        parse(str(case["sql"]))
    assert caught.value.code == "SYNTAX_ERROR"
    place = (caught.value.line, caught.value.column, caught.value.message)
    recorded = (case["line"], case["column"], case.get("message", caught.value.message))
    assert place == recorded


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("MERGE INTO accounts t USING accounts s ON true WHEN MACHED THEN DELETE", "MATCHED"),
        ("MERGE INTO accounts t USING accounts s ON true WHEN MATCHED THEN DELTE", "DELETE"),
        ("MERGE INTO acounts t USING accounts s ON true WHEN MATCHED THEN DELETE", "accounts"),
        ("SELECT custmer FROM accounts", "customer"),
        ("SELECT uper(customer) FROM accounts", "upper"),
    ],
)
def test_a_slip_of_the_pen_is_recognised(sql: str, hint: str) -> None:
    error = looked_at(sql)
    assert error is not None
    assert hint in str(error.hint)


def test_positions_count_code_points() -> None:
    error = looked_at("SELECT '👩‍👧é', nope FROM accounts")
    assert error is not None
    assert (error.line, error.column) == (1, 16)
