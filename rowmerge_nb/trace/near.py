"""Unmatched rows as plain data: the nearest keys of the other side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rowmerge_nb.trace.page_samples import Answer


class KeyDifference(StrEnum):
    """A difference between two key values; removing one of the first six makes them equal."""

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
    """A part of ON that must be true for a match.

    Args:
        key: it equates one value of each side.
    """

    text: str
    key: bool = True


@dataclass(frozen=True)
class Separation:
    """The differences in one key."""

    term: int
    kinds: tuple[KeyDifference, ...]


@dataclass(frozen=True)
class NearRow:
    """An unmatched row, and the nearest key of the other side.

    Args:
        row: the source row's number, from 0; None if unnumbered, and for a target row.
        nearest: None if nothing is near.
        separations: for keys that differ.
        answers: the pair's results of the other ON conditions, in the order of the terms.
        taken: a row of the other side with this key has a match of its own.
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
    def kinds(self) -> tuple[KeyDifference, ...]:
        """The distinct differences."""
        differences = {
            difference for separation in self.separations for difference in separation.kinds
        }
        return tuple(difference for difference in KeyDifference if difference in differences)


@dataclass(frozen=True)
class NearCount:
    """The number of rows that would match but for these differences."""

    kinds: tuple[KeyDifference, ...]
    rows: int


@dataclass(frozen=True)
class NearSide:
    """The unmatched rows of one side.

    Args:
        counts: rows by their differences, the most frequent first.
    """

    rows: int
    unmatched: int
    told: tuple[NearRow, ...] = ()
    """The first rows, those with a near key first; for the target, only such rows."""
    counts: tuple[NearCount, ...] = ()


@dataclass(frozen=True)
class NearKeys:
    """The unmatched rows of a MERGE and their nearest keys.

    Args:
        letters: one-letter differences were searched for, or no key is a text.
    """

    terms: tuple[NearTerm, ...] = ()
    source: NearSide | None = None
    target: NearSide | None = None
    problem: str = ""
    letters: bool = False
