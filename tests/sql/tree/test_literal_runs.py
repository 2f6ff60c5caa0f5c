"""Runs of literals: their ends, and the positions of their literals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.parser.tokens import Runs, TokenKind, tokenize
from rowmerge_nb.sql.tree.literal_runs import LiteralRun
from tests.sql.literals import at_once, rows


@pytest.mark.not_quick
@settings(max_examples=300, deadline=None)
@given(rows())
def test_every_literal_has_the_position_of_its_tokens(written: str) -> None:
    text = f"VALUES {written}"
    with at_once():
        runs = [token for token in tokenize(text, Runs.WHOLE) if token.kind is TokenKind.LITERALS]
    for token in runs:
        run = LiteralRun(text, token.span)
        assert len(run.texts) % run.width == 0
        for place, literal in enumerate(run.texts):
            span = run.span_of(place)
            assert span.of(text) == literal
            within = [t for t in tokenize(text) if span.start <= t.span.start < span.end]
            assert (within[0].span.line, within[0].span.column) == (span.line, span.column)
            assert len(within) == 1 + literal.startswith(("+", "-")) + (
                literal[0].isalpha() and literal.endswith("'") and literal[0] not in "xX"
            )


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("VALUES (1, 2), (3, 4)", ["(1, 2), (3, 4)"]),
        ("VALUES (1, 2), (3, 4) ORDER BY 1", ["(1, 2)"]),
        ("VALUES (1, 2), (3, 4) = (3, 4)", ["(1, 2)"]),
        ("VALUES (1, 2), (3)", ["(1, 2)", "(3)"]),
        ("VALUES 1, 2, x, 3, 4", ["1, 2", "3, 4"]),
        ("VALUES (1, f(2)), (3, 4)", ["(3, 4)"]),
        ("SELECT a IN (1, 2, 3) FROM t", ["1, 2, 3"]),
        ("SELECT a IN (1, 2, 3 + 4) FROM t", ["1, 2"]),
        ("SELECT a IN ((1, 2), (3, 4)) FROM t", []),
        ("SELECT f(1, 2, 3), 'VALUES (1), (2)' FROM t", []),
        ("VALUES (1s, 2), (0x1F, 2), (1, U&'a')", []),
    ],
)
def test_runs_follow_values_and_in(text: str, taken: list[str]) -> None:
    with at_once():
        assert [
            token.text for token in tokenize(text, Runs.WHOLE) if token.kind is TokenKind.LITERALS
        ] == taken


def test_the_ends_of_a_run_keep_their_positions() -> None:
    text = "VALUES (1, 2),\n (3, 4),\n (5, 6)"
    with at_once():
        ends = tokenize(text, Runs.ENDS)
    every = tokenize(text)
    assert [token for token in every if token.span.line != 2 or token.text == ","][:7] == list(
        ends[:7]
    )
    assert ends[-6:] == every[-6:]


def test_a_list_where_a_run_is_not_a_list_is_read_token_by_token() -> None:
    with at_once():
        at_a_time = parse("SELECT position(x IN (1, 2)) FROM t")
    assert at_a_time == parse("SELECT position(x IN (1, 2)) FROM t")


def test_runs_that_are_never_long_enough_cost_no_more_than_tokens() -> None:
    # Each part would begin a run; none of them is scanned repeatedly.
    text = "VALUES " + ", ".join("(1, 2), (3, x)" for _ in range(5000))
    assert sum(token.kind is TokenKind.LITERALS for token in tokenize(text, Runs.WHOLE)) == 0
