"""Texts in the forms in which keys are compared once more, as DuckDB SQL: without blanks, in lower case, composed, as numbers."""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.duckdb.text import text_literal
from rowmerge_nb.trace.near import Difference

__all__ = ["BITS", "BLANKS", "core", "difference_of_texts", "kinds_of", "normal_form", "plain_form"]

BLANKS: Final = "".join(
    map(
        chr,
        (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C), 0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF),
    )
)
"""What Unicode calls white space, and the blanks without a width."""
BITS: Final = {kind: 1 << place for place, kind in enumerate(Difference)}
"""What separates two values, as a set in one number."""
_NUMBER: Final = r"'[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)'"
_MARK: Final = "chr(1)"
"""Before the form of a number, so that no text is taken for one; a text that begins with it has it twice."""


def kinds_of(bits: int) -> tuple[Difference, ...]:
    """Give the set that a number stands for.

    >>> [str(kind) for kind in kinds_of(BITS[Difference.CASE] | BITS[Difference.LEADING_BLANKS])]
    ['leading blanks', 'case']
    """
    return tuple(kind for kind, bit in BITS.items() if bits & bit)


def core(text: str) -> str:
    """Write a text without the blanks around it.

    To look for all kinds of blanks takes ten times as long as for spaces, and few texts have others at their ends.

    Args:
        text: the text, a column.
    """
    blanks = text_literal(BLANKS)
    trimmed = f"trim({text})"
    bare = " AND ".join(f"NOT contains({blanks}, {end}({trimmed}, 1))" for end in ("left", "right"))
    return f"CASE WHEN {bare} THEN {trimmed} ELSE ltrim(rtrim({text}, {blanks}), {blanks}) END"


def plain_form(bare: str) -> str:
    """Write a text composed and in lower case.

    Args:
        bare: what `core` gave, a column.
    """
    return f"lower(nfc_normalize({bare}))"


def normal_form(plain: str) -> str:
    """Write the form that texts have in common if nothing but blanks, case, Unicode form or the writing of a number separates them.

    Args:
        plain: what `plain_form` gave, a column.
    """
    digits = f"ltrim(ltrim({plain}, '+-'), '0')"
    digits = f"CASE WHEN contains({plain}, '.') THEN rtrim(rtrim({digits}, '0'), '.') ELSE {digits} END"
    # There is no minus zero, nor a plus, nor zeros that say nothing.
    sign = f"CASE WHEN left({plain}, 1) = '-' AND ({digits}) <> '' THEN '-' ELSE '' END"
    number = f"{_MARK} || {sign} || {digits}"
    text = f"CASE WHEN left({plain}, 1) = {_MARK} THEN {_MARK} || {plain} ELSE {plain} END"
    return f"CASE WHEN regexp_full_match({plain}, {_NUMBER}) THEN {number} ELSE {text} END"


def difference_of_texts(place: int) -> str:
    """Write what separates two texts of the same normal form, as a number: no smaller set of differences does.

    Args:
        place: the texts are ``a.k0`` and ``b.k0``, their cores ``a.c0`` and ``b.c0``, their normal forms ``a.n0`` and ``b.n0``.
    """
    k, c = [f"{side}.k{place}" for side in "ab"], [f"{side}.c{place}" for side in "ab"]
    starts = [f"strpos({text}, {bare})" for text, bare in zip(k, c, strict=True)]
    leading = " <> ".join(f"left({text}, {start} - 1)" for text, start in zip(k, starts, strict=True))
    trailing = " <> ".join(f"substr({k[i]}, {starts[i]} + length({c[i]}))" for i in (0, 1))
    without_blanks = " AND ".join(f"strlen({text}) = strlen({bare})" for text, bare in zip(k, c, strict=True))
    bits = {kind.name: bit for kind, bit in BITS.items()}
    blanks = (
        f"CASE WHEN {without_blanks} THEN 0 ELSE CASE WHEN {leading} THEN {bits['LEADING_BLANKS']} ELSE 0 END"
        f" + CASE WHEN {trailing} THEN {bits['TRAILING_BLANKS']} ELSE 0 END END"
    )
    letters = (
        f"CASE WHEN {c[0]} = {c[1]} THEN 0"
        f" WHEN nfc_normalize({c[0]}) = nfc_normalize({c[1]}) THEN {bits['UNICODE_FORM']}"
        f" WHEN lower({c[0]}) = lower({c[1]}) THEN {bits['CASE']}"
        f" WHEN {plain_form(c[0])} = {plain_form(c[1])} THEN {bits['UNICODE_FORM'] + bits['CASE']}"
        f" ELSE {bits['NUMBER']} END"
    )
    return f"CASE WHEN {k[0]} IS NULL THEN {bits['NULL']} ELSE {blanks} + {letters} END"
