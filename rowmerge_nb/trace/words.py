"""Formats of row counts by operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.words import number
from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping


def letters(rows: Mapping[str, int | None]) -> str:
    """Return counts per operation letter, without zeros.

    >>> letters({"D": 3, "I": 2, "U": 0})
    'D 3, I 2'
    """
    return ", ".join(f"{letter} {number(count)}" for letter, count in rows.items() if count)


def operation_letters(rows: Mapping[int, int]) -> str:
    """Return rows per operation number as letters, deletes first.

    >>> operation_letters({1: 3, 4: 1, 5: 1})
    'D 1, I 4'
    """
    counts: dict[str, int] = {}
    for operation, count in rows.items():
        letter = Operation(operation).letter
        counts[letter] = counts.get(letter, 0) + count
    return letters({letter: counts[letter] for letter in ("D", "U", "I") if letter in counts})
