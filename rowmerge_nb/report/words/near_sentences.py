"""Sentences about unmatched rows and their nearest keys."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import join, number, plural
from rowmerge_nb.report.words.display_values import cell, visible
from rowmerge_nb.trace.near import KeyDifference
from rowmerge_nb.trace.page_samples import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.trace.near import NearKeys, NearRow, NearSide, NearTerm, Separation

_VALUES: Final = 32
_WITHOUT: Final = {
    KeyDifference.LEADING_BLANKS: "without leading blanks",
    KeyDifference.TRAILING_BLANKS: "without trailing blanks",
    KeyDifference.CASE: "in the same case",
    KeyDifference.UNICODE_FORM: "in the same Unicode form",
    KeyDifference.NUMBER: "as a number",
    KeyDifference.TIME_ZONE: "in the same time zone",
    KeyDifference.NULL: "if NULL were equal to NULL",
}
_BLANKS: Final = {KeyDifference.LEADING_BLANKS, KeyDifference.TRAILING_BLANKS}
_SHORT: Final = {
    KeyDifference.LETTER: "one letter",
    KeyDifference.VALUE: "another value",
    KeyDifference.NULL: "NULL, which equals nothing",
    KeyDifference.NUMBER: "the notation of a number",
    KeyDifference.TIME_ZONE: "the time zone of the same clock",
}


def is_likely_mistake(row: NearRow) -> bool:
    """Return whether a row was probably meant to match the nearest key: both are the same apart
    from notation.

    A difference of one letter counts if the nearest key has no partner of its own.
    """
    if (
        row.nearest is None
        or not row.kinds
        or any(answer is not Answer.TRUE for answer in row.answers)
    ):
        return False
    if row.kinds == (KeyDifference.LETTER,):
        return not row.taken
    return _would_match(row.kinds) and (KeyDifference.NULL not in row.kinds or _both_null(row))


def _would_match(kinds: tuple[KeyDifference, ...]) -> bool:
    return all(difference in _WITHOUT for difference in kinds)


def _both_null(row: NearRow) -> bool:
    return row.nearest is not None and all(
        (one is None) == (other is None) for one, other in zip(row.key, row.nearest, strict=True)
    )


_FUNCTIONS: Final = {
    KeyDifference.UNICODE_FORM: "normalize",
    KeyDifference.LEADING_BLANKS: "trim",
    KeyDifference.TRAILING_BLANKS: "trim",
    KeyDifference.CASE: "lower",
}
"""What removes a difference in SQL."""


def near_sentence(row: NearRow, terms: tuple[NearTerm, ...], side: str) -> str:
    """Describe the key nearest to a row without a partner; ``side`` is ``source`` or ``target``."""
    other = "target" if side == "source" else "source"
    which = f"row {number(row.row)}" if row.row is not None else "row"
    head = f"{side.capitalize()} {which} ({_listed(row.key)})"
    if row.nearest is None:
        nulls = [_text(terms[one.term]) for one in row.separations]
        if nulls:
            return f"{head} has NULL in {join(nulls)}, which equals nothing."
        return (
            f"{head}: no key of the {other} is near, that is, the same except for"
            " blanks, case, notation or one letter."
        )
    more = f", one of {number(row.alike)}," if row.alike > 1 else ""
    partner = f"{other} row {_values(row.nearest)}{more}"
    unmet_terms = [f"{_text(term)} is {_answer(answer)}" for term, answer in _unmet(row, terms)]
    if not row.separations:
        return (
            f"{head}: the key exists, in {partner.removesuffix(',')}, but"
            f" {join(unmet_terms)} for it."
        )
    but = f", but {join(unmet_terms)} for it" if unmet_terms else ""
    where = _where(row, terms)
    if _would_match(row.kinds) and (KeyDifference.NULL not in row.kinds or _both_null(row)):
        sentence = (
            f"{head} would match {partner} {_without(row.kinds, _strange_blanks(row))}{where}{but}."
        )
    elif row.kinds == (KeyDifference.NULL,):
        sentence = (
            f"{head} has the other keys of {partner.removesuffix(',')}, and NULL equals"
            f" nothing{where}{but}."
        )
    else:
        sentence = f"{head} differs from {partner} by {_short(row.kinds)}{where}{but}."
    return sentence


def _text(term: NearTerm) -> str:
    return visible(" ".join(term.text.split()))


def _unmet(row: NearRow, terms: tuple[NearTerm, ...]) -> Iterator[tuple[NearTerm, Answer]]:
    conditions = [term for term in terms if not term.key]
    yield from (
        (term, answer)
        for term, answer in zip(conditions, row.answers, strict=False)
        if answer is not Answer.TRUE
    )


def _answer(answer: Answer) -> str:
    return "unknown" if answer is Answer.UNKNOWN else "false"


def _values(key: tuple[Any, ...]) -> str:
    return _listed(key) if len(key) == 1 else f"({_listed(key)})"


def _listed(key: tuple[Any, ...]) -> str:
    return ", ".join(_shown(value) for value in key)


def _shown(value: Any) -> str:
    text = cell(value, _VALUES).text
    return f"'{text}'" if isinstance(value, str) else text


def key_text(key: tuple[Any, ...] | None) -> str:
    """Return the values of a key.

    >>> key_text(("Dave ", None, 7)), key_text(None)
    ("('Dave ', NULL, 7)", '')
    """
    return "" if key is None else _values(key)


def _where(row: NearRow, terms: tuple[NearTerm, ...]) -> str:
    if len(row.key) == 1:
        return ""
    return f", in {join([_text(terms[one.term]) for one in row.separations])}"


def _without(kinds: tuple[KeyDifference, ...], strange: str = "") -> str:
    """Return what makes values equal: ``without leading and trailing blanks and in the same case``."""
    blanks = [
        difference.value.removesuffix(" blanks") for difference in kinds if difference in _BLANKS
    ]
    first = [f"without {join(blanks)} blanks{strange}"] if blanks else []
    return join(
        [
            *first,
            *(
                phrase
                for difference, phrase in _WITHOUT.items()
                if difference in kinds and difference not in _BLANKS
            ),
        ]
    )


def _strange_blanks(row: NearRow) -> str:
    """Return the code points of invisible blanks other than spaces, which trim may keep."""
    if not _BLANKS & set(row.kinds):
        return ""
    blanks: dict[str, None] = {}
    for text in (*row.key, *(row.nearest or ())):
        for end in (text, text[::-1]) if isinstance(text, str) else ():
            for char in end:
                if not (char.isspace() or char in "\u200b\u2060\ufeff"):
                    break
                blanks[char] = None
    labels = [
        f"U+{ord(char):04X} {unicodedata.name(char, '')}".rstrip() for char in blanks if char != " "
    ]
    return f" ({', '.join(labels)})" if labels else ""


def _short(kinds: tuple[KeyDifference, ...]) -> str:
    return join([_SHORT.get(difference, difference.value) for difference in kinds])


def separation_text(row: NearRow, terms: tuple[NearTerm, ...]) -> str:
    """Describe briefly the difference between a row and the nearest key."""
    parts = [_separated(one, row, terms) for one in row.separations]
    parts += [f"{_text(term)} is {_answer(answer)}" for term, answer in _unmet(row, terms)]
    return "; ".join(parts) or "nothing is near"


def _separated(one: Separation, row: NearRow, terms: tuple[NearTerm, ...]) -> str:
    return (
        _short(one.kinds) if len(row.key) == 1 else f"{_text(terms[one.term])}: {_short(one.kinds)}"
    )


def counts_of(side: NearSide, name: str) -> Iterator[str]:
    """Yield how many rows of a side would match without each difference.

    ``name`` is the side: ``source`` or ``target``.

    >>> from rowmerge_nb.trace.near import NearCount, NearSide
    >>> count = NearCount((KeyDifference.TRAILING_BLANKS,), 312)
    >>> list(counts_of(NearSide(9_000, 4_100, counts=(count,)), "source"))
    ['312 of 4,100 unmatched source rows would match without trailing blanks.']
    """
    for count in side.counts:
        rows = f"{number(count.rows)} of {plural(side.unmatched, f'unmatched {name} row')}"
        if _would_match(count.kinds):
            yield f"{rows} would match {_without(count.kinds)}."
        else:
            yield (
                f"{rows} {'differs' if count.rows == 1 else 'differ'} from a near key by"
                f" {_short(count.kinds)}."
            )


def remedy_of(near: NearKeys) -> Iterator[str]:
    """Yield the ON that matches the near rows of the source, if each has a partner of its own."""
    source, target = near.source, near.target
    if source is None or target is None or len(source.told) < source.unmatched:
        return
    rows, targets = (
        [
            row
            for row in side.told
            if row.kinds
            and _FUNCTIONS.keys() >= set(row.kinds)
            and not any(_unmet(row, near.terms))
        ]
        for side in (source, target)
    )
    partners = {
        tuple(
            unicodedata.normalize("NFC", str(value)).strip().lower() for value in row.nearest or ()
        )
        for row in rows
    }
    if len(partners) < len(rows) or any(
        row.taken or row.alike > 1 or _strange_blanks(row) for row in (*rows, *targets)
    ):
        return
    terms = []
    for index, term in enumerate(near.terms):
        separations = [one for row in rows for one in row.separations if one.term == index]
        terms.append(
            _remedied(term, {difference for one in separations for difference in one.kinds})
        )
    if rows and all(terms):
        yield f"Write ON {' AND '.join(terms)} to match {number(len(rows))} of them."


def _remedied(term: NearTerm, kinds: set[KeyDifference]) -> str:
    """Return a term whose sides are without these differences; empty if they are no columns."""
    text = " ".join(term.text.split())
    if not kinds:
        return text if term.key else f"({text})"
    if not re.fullmatch(r"[\w.]+ = [\w.]+", text):
        return ""
    for function in dict.fromkeys(
        name for difference, name in _FUNCTIONS.items() if difference in kinds
    ):
        text = " = ".join(f"{function}({side})" for side in text.split(" = "))
    return text


def summary_of(near: NearKeys) -> str:
    if near.source is None:
        return near.problem
    if not near.source.unmatched:
        return "Every row of the source has a partner."
    have = "has" if near.source.unmatched == 1 else "have"
    return (
        f"{number(near.source.unmatched)} of {plural(near.source.rows, 'source row')} {have} no"
        " partner."
    )
