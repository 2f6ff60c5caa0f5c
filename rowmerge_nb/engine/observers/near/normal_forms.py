"""Normal forms of texts, without blanks, in lower case, composed, as numbers; and the differences
between texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.trace.near import KeyDifference

if TYPE_CHECKING:
    import numpy.typing as npt

BLANKS: Final = "".join(
    map(
        chr,
        (
            *range(9, 14),
            0x20,
            0x85,
            0xA0,
            0x1680,
            *range(0x2000, 0x200C),
            0x2028,
            0x2029,
            0x202F,
            0x205F,
            0x2060,
            0x3000,
            0xFEFF,
        ),
    )
)
"""Unicode white space, and zero-width blanks."""
BITS: Final = {difference: 1 << bit for bit, difference in enumerate(KeyDifference)}
"""Bit flags of differences."""
LETTERS: Final = (4, 64)
"""Lengths of texts for one-letter differences: shorter texts are too ambiguous, longer ones are not
keys.
"""
_NUMBER: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$"
_MARK: Final = "\x01"
"""The prefix of number forms; doubled in texts that begin with it."""


def kinds_of(bits: int) -> tuple[KeyDifference, ...]:
    return tuple(difference for difference, bit in BITS.items() if bits & bit)


def normal_form(texts: pa.Array) -> pa.Array:
    """Return the normal form: equal for texts that differ only in blanks, case, Unicode form or
    number format.
    """
    return _numbers(_plain(pc.utf8_trim(texts, characters=BLANKS)))


def _plain(bare: pa.Array) -> pa.Array:
    return pc.utf8_lower(_composed(bare))


def _composed(texts: pa.Array) -> pa.Array:
    return pc.utf8_normalize(texts, form="NFC")


def _numbers(plain: pa.Array) -> pa.Array:
    """Return numeric texts without plus and redundant zeros; minus zero is zero."""
    is_number = pc.match_substring_regex(plain, pattern=_NUMBER)
    marked = pc.if_else(
        pc.starts_with(plain, pattern=_MARK), pc.binary_join_element_wise(_MARK, plain, ""), plain
    )
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
    """Return the minimal sets of differences between texts of equal normal form, as bit flags."""
    bits = np.where(_true(one.is_null()), BITS[KeyDifference.NULL], 0).astype(np.int64)
    ends = [pc.utf8_rtrim(texts, characters=BLANKS) for texts in (one, other)]
    bare = [pc.utf8_ltrim(texts, characters=BLANKS) for texts in ends]
    around = np.zeros(len(one), np.int64)
    # In a blank text, all blanks are trailing.
    for difference, whole, rest, all_but_blanks in (
        (KeyDifference.TRAILING_BLANKS, (one, other), ends, f"(?s)^.*[^{re.escape(BLANKS)}]"),
        (KeyDifference.LEADING_BLANKS, ends, bare, f"(?s)[^{re.escape(BLANKS)}].*$"),
    ):
        lengths = [
            _lengths(texts) - _lengths(without) for texts, without in zip(whole, rest, strict=True)
        ]
        separated = lengths[0] != lengths[1]
        same = np.flatnonzero((lengths[0] == lengths[1]) & (lengths[0] > 0))
        if len(same):
            blanks = [
                pc.replace_substring_regex(
                    t.take(pa.array(same)), pattern=all_but_blanks, replacement=""
                )
                for t in whole
            ]
            separated[same] = _true(pc.not_equal(*blanks))
        bits += np.where(separated, BITS[difference], 0)
        around += np.where(lengths[0] + lengths[1] > 0, BITS[difference], 0)
    undecided = np.flatnonzero(_true(pc.not_equal(*bare)))
    for kinds, form in (
        ((KeyDifference.UNICODE_FORM,), _composed),
        ((KeyDifference.CASE,), pc.utf8_lower),
        ((KeyDifference.UNICODE_FORM, KeyDifference.CASE), _plain),
        ((KeyDifference.NUMBER,), lambda texts: _numbers(_plain(texts))),
    ):
        if not len(undecided):
            break
        equal = _true(pc.equal(*(form(texts.take(pa.array(undecided))) for texts in bare)))
        bits[undecided[equal]] += sum(BITS[difference] for difference in kinds)
        if KeyDifference.NUMBER in kinds:
            # A text with blanks around it is not a number.
            bits[undecided[equal]] |= around[undecided[equal]]
        undecided = undecided[~equal]
    return bits


def _lengths(texts: pa.Array) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int64] = (
        pc.fill_null(pc.binary_length(texts), 0).to_numpy().astype(np.int64)
    )
    return lengths


def _true(answers: pa.Array) -> npt.NDArray[np.bool_]:
    true: npt.NDArray[np.bool_] = pc.fill_null(answers, fill_value=False).to_numpy(
        zero_copy_only=False
    )
    return true


def without_one_letter(texts: pa.Array, lengths: tuple[int, int]) -> pa.Table:
    """Return texts of `lengths` (minimum, maximum), and each of them without one of its letters."""
    sizes = pc.fill_null(pc.utf8_length(texts), 0).to_numpy()
    at = np.flatnonzero((sizes >= lengths[0]) & (sizes <= lengths[1]))
    parts = [(at, np.zeros(len(at), np.int64), texts.take(pa.array(at)))]
    for i in range(int(sizes[at].max(initial=0))):
        indexes = at[sizes[at] > i]
        here = texts.take(pa.array(indexes))
        letters = pc.match_substring_regex(
            pc.utf8_slice_codeunits(here, i, i + 1), pattern=r"^\p{L}$"
        )
        here, indexes = here.filter(letters), indexes[_true(letters)]
        rest = pc.binary_join_element_wise(
            pc.utf8_slice_codeunits(here, 0, i), pc.utf8_slice_codeunits(here, i + 1), ""
        )
        parts.append((indexes, np.full(len(indexes), i + 1), rest))
    ats, letter_indexes, rests = zip(*parts, strict=True)
    return pa.table(
        {
            "at": np.concatenate(ats),
            "i": np.concatenate(letter_indexes),
            "w": pa.concat_arrays(rests),
        }
    )
