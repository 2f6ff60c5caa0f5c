from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.sql.parser.tokens import TokenKind, tokenize
from rowmerge_nb.sql.tree.depth import DEEPEST


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("abc_1", TokenKind.WORD),
        ('"A ""b"""', TokenKind.QUOTED),
        ("`a`", TokenKind.BACKQUOTED),
        ("1s", TokenKind.DIGITS_FIRST),
        ("'it''s'", TokenKind.STRING),
        ("U&'\\00e9'", TokenKind.UNICODE_STRING),
        ("X'CA FE'", TokenKind.BINARY),
        ("1_000", TokenKind.INTEGER),
        ("0xFF", TokenKind.INTEGER),
        ("1.", TokenKind.DECIMAL),
        (".5", TokenKind.DECIMAL),
        ("1E5", TokenKind.DOUBLE),
        (".5e-3", TokenKind.DOUBLE),
        ("->", TokenKind.SYMBOL),
        ("š", TokenKind.UNKNOWN),
        ("'", TokenKind.UNKNOWN),
    ],
)
def test_one_token_of_each_kind(text, kind):
    token, end = tokenize(text)
    assert (token.kind, token.text, end.kind) == (kind, text, TokenKind.END)


def test_columns_count_code_points_and_lines_begin_at_one():
    tokens = tokenize("'🐴' x\n\ty")
    assert [(t.span.line, t.span.column) for t in tokens] == [(1, 1), (1, 5), (2, 2), (2, 3)]


def test_comments_and_spaces_leave_no_tokens():
    assert [t.text for t in tokenize("a /* b\nc */ -- d\n e")] == ["a", "e", ""]


def test_characters_that_begin_no_token_are_one_token_shown_by_the_first():
    first, second, _ = tokenize("é\0\0☃ b")
    assert (first.kind, first.text, first.span.start, first.span.end) == (
        TokenKind.UNKNOWN,
        "é",
        0,
        4,
    )
    assert second.text == "b"
    assert [token.text for token in tokenize("#;#\n'")] == ["#", ";", "#", "'", ""]


@pytest.mark.parametrize("bracket", ["(", "[", "(["])
def test_brackets_beyond_what_can_be_read_are_refused_before_the_rest_is_cut(bracket):
    assert len(tokenize("(" * DEEPEST)) == DEEPEST + 1
    with pytest.raises(ParseError, match="nested too deeply"):
        tokenize(bracket * (DEEPEST + 1))
    assert len(tokenize("()" * 1_000)) == 2_001
