"""Why rows were not matched, as plain data: the nearest keys of the other side, and what separates them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rowmerge_nb.trace.journeys import Answer


class Difference(StrEnum):
    """What separates two values of a key. Of the first six together both values become equal by what is named."""

    LEADING_BLANKS = "leading blanks"
    TRAILING_BLANKS = "trailing blanks"
    CASE = "case"
    UNICODE_FORM = "Unicode form"
    """One is composed of other code points than the other (NFC, NFD)."""
    NUMBER = "number"
    """Both are the same number, written in another way: ``007`` and ``7``."""
    TIME_ZONE = "time zone"
    """Clocks show the same in both, in other time zones: they are other instants."""
    NULL = "null"
    """One of both is NULL, or both are."""
    LETTER = "letter"
    """One letter is another, or one is missing."""
    VALUE = "value"
    """They are different, and no more is known."""


@dataclass(frozen=True)
class NearTerm:
    """A part of ON that must be true for two rows to match.

    Args:
        text: the part as written.
        key: it demands that two values are equal, one of each side, and these are compared; False of other conditions.
        padded: the side whose column is of type char, which pads with blanks what the other side may not have: ``source``, ``target`` or ``""``.
    """

    text: str
    key: bool = True
    padded: str = ""


@dataclass(frozen=True)
class Separation:
    """What separates the values of one key.

    Args:
        term: which key, by its place among the terms.
        kinds: what separates them; no smaller set of these would make the values equal.
    """

    term: int
    kinds: tuple[Difference, ...]


@dataclass(frozen=True)
class NearRow:
    """A row without a partner, and the nearest key of the other side.

    Args:
        row: the number of a source row, from 0; None of a target row, and where source rows have no numbers.
        columns: the values of its columns that ON reads.
        key: the values of its keys, in the order of the terms.
        nearest: those of the nearest key; None where nothing is near.
        separations: what separates the two, key by key; keys that are equal have none.
        answers: what the other conditions of ON come to for the two, in the order of the terms; none where nothing is near.
        alike: how many rows of the other side have this key.
        taken: a row of the other side that has this key has a partner of its own.
    """

    row: int | None
    # Values of rows and lists have no hash.
    columns: Mapping[str, Any] = field(hash=False)
    key: tuple[Any, ...] = field(hash=False)
    nearest: tuple[Any, ...] | None = field(default=None, hash=False)
    separations: tuple[Separation, ...] = ()
    answers: tuple[Answer, ...] = ()
    alike: int = 0
    taken: bool = False

    @property
    def kinds(self) -> tuple[Difference, ...]:
        """All that separates the two, each once.

        >>> row = NearRow(0, {}, ("a ",), ("A",), (Separation(0, (Difference.TRAILING_BLANKS, Difference.CASE)),))
        >>> [str(kind) for kind in row.kinds]
        ['trailing blanks', 'case']
        """
        found = {kind for separation in self.separations for kind in separation.kinds}
        return tuple(kind for kind in Difference if kind in found)


@dataclass(frozen=True)
class NearCount:
    """So many rows would match but for this; the other conditions of ON are true for them and their nearest keys."""

    kinds: tuple[Difference, ...]
    rows: int


@dataclass(frozen=True)
class NearSide:
    """The rows of one side that have no partner.

    Args:
        rows: how many rows there are on this side.
        unmatched: how many of them have no partner.
        told: the first of those, such with a near key before those without; of the target those with one alone.
        counts: by what separates them from the nearest key, the most frequent first, how many there are.
    """

    rows: int
    unmatched: int
    told: tuple[NearRow, ...] = ()
    counts: tuple[NearCount, ...] = ()


@dataclass(frozen=True)
class NearKeys:
    """The rows of a MERGE that have no partner, and what their keys are near to.

    Args:
        terms: the parts of ON.
        source: the source's rows, and ``target`` the target's; None where they were not looked at.
        problem: a sentence why they were not; ``""`` if they were.
        letters: keys that differ by one letter were looked for, or there can be none, since no key is a text.
    """

    terms: tuple[NearTerm, ...] = ()
    source: NearSide | None = None
    target: NearSide | None = None
    problem: str = ""
    letters: bool = False
