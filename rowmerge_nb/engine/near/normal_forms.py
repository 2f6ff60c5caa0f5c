"""Texts in the forms in which keys are compared once more: without blanks, in lower case, composed, as numbers; and what separates two of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.trace.near import Difference

if TYPE_CHECKING:
    import numpy.typing as npt

BLANKS: Final = "".join(
    map(
        chr,
        (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C), 0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF),
    )
)
"""What Unicode calls white space, and the blanks without a width."""
BITS: Final = {kind: 1 << place for place, kind in enumerate(Difference)}
"""What separates two values, as a set in one number."""
LETTERS: Final = (4, 64)
"""The lengths of texts of which one letter may differ: of shorter ones it says nothing, longer ones are no keys."""
_NUMBER: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$"
_MARK: Final = "\x01"
"""Before the form of a number, so that no text is taken for one; a text that begins with it has it twice."""


def kinds_of(bits: int) -> tuple[Difference, ...]:
    """Return the set that a number stands for.

    >>> [str(kind) for kind in kinds_of(BITS[Difference.CASE] | BITS[Difference.LEADING_BLANKS])]
    ['leading blanks', 'case']
    """
    return tuple(kind for kind, bit in BITS.items() if bits & bit)


def normal_form(texts: pa.Array) -> pa.Array:
    """Return the form that texts have in common if nothing but blanks, case, Unicode form or the writing of a number separates them.

    >>> forms = normal_form(pa.array([" Ann", "ANN ", "007", "7.0", "-0", "+.0", None])).to_pylist()
    >>> forms[0] == forms[1], forms[2] == forms[3], forms[4] == forms[5], forms[6]
    (True, True, True, None)
    """
    return _numbers(_plain(pc.utf8_trim(texts, characters=BLANKS)))


def _plain(bare: pa.Array) -> pa.Array:
    """Compose texts, and give them in lower case."""
    return pc.utf8_lower(_composed(bare))


def _composed(texts: pa.Array) -> pa.Array:
    return pc.utf8_normalize(texts, form="NFC")


def _numbers(plain: pa.Array) -> pa.Array:
    """Return texts that are numbers in one form each: no plus, no zeros that say nothing; minus zero is zero."""
    is_number = pc.match_substring_regex(plain, pattern=_NUMBER)
    marked = pc.if_else(pc.starts_with(plain, pattern=_MARK), pc.binary_join_element_wise(_MARK, plain, ""), plain)
    if not pc.any(is_number).as_py():
        return marked
    numbers = plain.filter(is_number)
    digits = pc.ascii_ltrim(pc.ascii_ltrim(numbers, characters="+-"), characters="0")
    whole = pc.ascii_rtrim(pc.ascii_rtrim(digits, characters="0"), characters=".")
    digits = pc.if_else(pc.match_substring(numbers, pattern="."), whole, digits)
    negative = pc.and_(pc.starts_with(numbers, pattern="-"), pc.not_equal(digits, ""))
    forms = pc.binary_join_element_wise(_MARK, pc.if_else(negative, "-", ""), digits, "")
    return pc.replace_with_mask(marked, is_number, forms)


def differences(one: pa.Array, other: pa.Array) -> npt.NDArray[np.int64]:
    """Return what separates texts from others of the same normal forms, as sets in numbers; no smaller set would make them equal.

    Args:
        one: the texts.
        other: as many, each of the same normal form as the one at its place.

    >>> [kinds_of(bits) for bits in differences(pa.array(["Ed ", "07"]), pa.array(["ED", "7"])).tolist()]
    [(<Difference.TRAILING_BLANKS: 'trailing blanks'>, <Difference.CASE: 'case'>), (<Difference.NUMBER: 'number'>,)]
    """
    bits = np.where(_true(one.is_null()), BITS[Difference.NULL], 0).astype(np.int64)
    ends = [pc.utf8_rtrim(texts, characters=BLANKS) for texts in (one, other)]
    bare = [pc.utf8_ltrim(texts, characters=BLANKS) for texts in ends]
    around = np.zeros(len(one), np.int64)
    # Of nothing but blanks all are at the end.
    for kind, whole, rest, all_but_blanks in (
        (Difference.TRAILING_BLANKS, (one, other), ends, f"(?s)^.*[^{re.escape(BLANKS)}]"),
        (Difference.LEADING_BLANKS, ends, bare, f"(?s)[^{re.escape(BLANKS)}].*$"),
    ):
        lengths = [_lengths(texts) - _lengths(without) for texts, without in zip(whole, rest, strict=True)]
        separated = lengths[0] != lengths[1]
        same = np.flatnonzero((lengths[0] == lengths[1]) & (lengths[0] > 0))
        if len(same):
            blanks = [pc.replace_substring_regex(t.take(pa.array(same)), pattern=all_but_blanks, replacement="") for t in whole]
            separated[same] = _true(pc.not_equal(*blanks))
        bits += np.where(separated, BITS[kind], 0)
        around += np.where(lengths[0] + lengths[1] > 0, BITS[kind], 0)
    undecided = np.flatnonzero(_true(pc.not_equal(*bare)))
    for kinds, form in (
        ((Difference.UNICODE_FORM,), _composed),
        ((Difference.CASE,), pc.utf8_lower),
        ((Difference.UNICODE_FORM, Difference.CASE), _plain),
        ((Difference.NUMBER,), lambda texts: _numbers(_plain(texts))),
    ):
        if not len(undecided):
            break
        equal = _true(pc.equal(*(form(texts.take(pa.array(undecided))) for texts in bare)))
        bits[undecided[equal]] += sum(BITS[kind] for kind in kinds)
        if Difference.NUMBER in kinds:
            # With blanks around it a text is no number.
            bits[undecided[equal]] |= around[undecided[equal]]
        undecided = undecided[~equal]
    return bits


def _lengths(texts: pa.Array) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int64] = pc.fill_null(pc.binary_length(texts), 0).to_numpy().astype(np.int64)
    return lengths


def _true(answers: pa.Array) -> npt.NDArray[np.bool_]:
    true: npt.NDArray[np.bool_] = pc.fill_null(answers, fill_value=False).to_numpy(zero_copy_only=False)
    return true


def without_one_letter(texts: pa.Array, lengths: tuple[int, int]) -> pa.Table:
    """Return texts, and each of them without one of its letters.

    Args:
        texts: the texts.
        lengths: how many characters those have at least and at most that are given.

    Returns:
        The place of the text ``at``, the place of the letter ``i``, from 1, and the rest ``w``; 0 and all of it for the whole text.

    >>> without_one_letter(pa.array(["a1b"]), (1, 9)).to_pylist()
    [{'at': 0, 'i': 0, 'w': 'a1b'}, {'at': 0, 'i': 1, 'w': '1b'}, {'at': 0, 'i': 3, 'w': 'a1'}]
    """
    counted = pc.fill_null(pc.utf8_length(texts), 0).to_numpy()
    at = np.flatnonzero((counted >= lengths[0]) & (counted <= lengths[1]))
    found = [(at, np.zeros(len(at), np.int64), texts.take(pa.array(at)))]
    for i in range(int(counted[at].max(initial=0))):
        kept = at[counted[at] > i]
        here = texts.take(pa.array(kept))
        letters = pc.match_substring_regex(pc.utf8_slice_codeunits(here, i, i + 1), pattern=r"^\p{L}$")
        here, kept = here.filter(letters), kept[_true(letters)]
        rest = pc.binary_join_element_wise(pc.utf8_slice_codeunits(here, 0, i), pc.utf8_slice_codeunits(here, i + 1), "")
        found.append((kept, np.full(len(kept), i + 1), rest))
    ats, places, rests = zip(*found, strict=True)
    return pa.table({"at": np.concatenate(ats), "i": np.concatenate(places), "w": pa.concat_arrays(rests)})
