"""Normal forms of texts: the named difference separates two of them, no smaller one does, and without it they are equal."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowmerge_nb.engine.observers.near.normal_forms import (
    BLANKS,
    differences,
    kinds_of,
    normal_form,
    without_one_letter,
)
from rowmerge_nb.trace.near import KeyDifference

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)", re.ASCII)
TEXT_KINDS = tuple(KeyDifference)[:5]


def lowered(text: str) -> str:
    """Lower case like the SQL function, character by character: Python looks at neighboring characters."""
    return str(pc.utf8_lower(pa.scalar(text)).as_py())


def applied(kinds: tuple[KeyDifference, ...], text: str) -> object:
    """Remove differences of these kinds by other means than the code under test."""
    if KeyDifference.TRAILING_BLANKS in kinds:
        text = text.rstrip(BLANKS)
    if KeyDifference.LEADING_BLANKS in kinds:
        text = text.lstrip(BLANKS)
    if KeyDifference.UNICODE_FORM in kinds:
        text = unicodedata.normalize("NFC", text)
    if KeyDifference.CASE in kinds:
        text = lowered(text)
    return Decimal(text) if KeyDifference.NUMBER in kinds and NUMBER.fullmatch(text) else text


def separated(one: str, other: str) -> tuple[KeyDifference, ...]:
    [bits] = differences(pa.array([one]), pa.array([other])).tolist()
    return kinds_of(bits)


def form(text: str) -> str:
    return str(normal_form(pa.array([text]))[0])


# Without a capital I with a dot: its lower case depends on whether it is composed, so it has no single form.
BASES = st.one_of(
    st.text("aAbÄäéÅßıΣσς日", min_size=1, max_size=5),
    st.decimals(
        allow_nan=False, allow_infinity=False, places=2, min_value=-1000, max_value=1000
    ).map(str),
    st.sampled_from(["0", "-0", "7", "+.5", "007", "\x017", "-", ".", "1.", "Ann\n2"]),
)


@st.composite
def variants(draw: st.DrawFn) -> tuple[str, str]:
    """Return two spellings of one text."""
    base = draw(BASES)

    def variant() -> str:
        text = draw(
            st.sampled_from([base, base.upper(), base.lower(), unicodedata.normalize("NFD", base)])
        )
        if NUMBER.fullmatch(text) and draw(st.booleans()):
            sign = text[0] if text[0] in "+-" else ""
            text = sign + "00" + text.removeprefix(sign)
        blanks = st.text(st.sampled_from(BLANKS), max_size=2)
        return draw(blanks) + text + draw(blanks)

    return variant(), variant()


@given(variants())
@example((" 07", "7.0"))
@example(("", "  "))
@example((" ", "\t"))
@example(("\u2000a", "\u2002a"))
@example(("\u212b", "\u00c5"))
@example(("\x017", "7"))
def test_texts_of_one_normal_form_are_equal_without_what_separates_them_and_without_nothing_less(
    pair: tuple[str, str],
) -> None:
    one, other = pair
    if form(one) != form(other):
        return
    kinds = separated(one, other)
    assert applied(kinds, one) == applied(kinds, other)
    for fewer in (subset for size in range(len(kinds)) for subset in combinations(kinds, size)):
        assert applied(fewer, one) != applied(fewer, other)


@given(variants())
def test_texts_that_some_kinds_of_difference_make_equal_have_one_normal_form(
    pair: tuple[str, str],
) -> None:
    one, other = pair
    if any(
        applied(kinds, one) == applied(kinds, other)
        for size in range(6)
        for kinds in combinations(TEXT_KINDS, size)
    ):
        assert form(one) == form(other)


@pytest.mark.parametrize(
    ("one", "other", "kinds"),
    [
        ("Dave ", "Dave", "trailing blanks"),
        ("\u00a0Dave", "Dave", "leading blanks"),
        (" Dave ", "dave", "leading blanks, trailing blanks, case"),
        ("Zoe\u0301", "Zo\u00e9", "Unicode form"),
        ("ZOE\u0301", "zo\u00e9", "case, Unicode form"),
        ("007", "7", "number"),
        ("7", "7.0", "number"),
        ("-0.50", "-.5", "number"),
        (" +7", "07", "leading blanks, number"),
        ("same", "same", ""),
    ],
)
def test_differences_that_separate_two_texts_are_named(one: str, other: str, kinds: str) -> None:
    assert form(one) == form(other)
    assert ", ".join(separated(one, other)) == kinds


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7", "-7"),
        ("0.5", "5"),
        ("10", "1"),
        ("7a", "07a"),
        ("", "0"),
        ("a b", "ab"),
        ("\x017", "7"),
    ],
)
def test_texts_that_are_not_the_same_have_other_normal_forms(one: str, other: str) -> None:
    assert form(one) != form(other)


def test_null_has_no_normal_form_and_null_beside_null_is_a_difference() -> None:
    assert normal_form(pa.array([None], pa.string())).to_pylist() == [None]
    [bits] = differences(pa.array([None], pa.string()), pa.array([None], pa.string())).tolist()
    assert kinds_of(bits) == (KeyDifference.NULL,)


@given(st.lists(st.text("aé1 日", max_size=6), max_size=5))
def test_each_text_is_yielded_whole_and_without_each_of_its_letters(texts: list[str]) -> None:
    expected = {
        (at, i, text if not i else text[: i - 1] + text[i:])
        for at, text in enumerate(texts)
        if 2 <= len(text) <= 5
        for i in range(len(text) + 1)
        if not i or text[i - 1].isalpha()
    }
    found = without_one_letter(pa.array(texts, pa.string()), (2, 5))
    assert {tuple(row.values()) for row in found.to_pylist()} == expected
