"""How counts are written, wherever they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MINUS", "join", "letters", "number", "operation_letters", "plural"]

MINUS: Final = "\N{MINUS SIGN}"


def number(value: int) -> str:
    """Write a number for readers: grouped, with a real minus sign.

    >>> number(1234567), number(-1)
    ('1,234,567', '−1')
    """
    return f"{value:,}".replace("-", MINUS)


def plural(count: int, word: str, words: str | None = None) -> str:
    """Write a count with its noun.

    >>> plural(1, "row"), plural(0, "row"), plural(2, "branch", "branches")
    ('1 row', '0 rows', '2 branches')
    """
    return f"{number(count)} {word if count == 1 else words or word + 's'}"


def join(parts: list[str]) -> str:
    """Join words as a sentence does.

    >>> join(["a", "b", "c"]), join(["a"])
    ('a, b and c', 'a')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def letters(rows: Mapping[str, int | None]) -> str:
    """Write counts per operation letter, those that are zero left out.

    >>> letters({"D": 3, "I": 2, "U": 0})
    'D 3, I 2'
    """
    return ", ".join(f"{letter} {number(count)}" for letter, count in rows.items() if count)


def operation_letters(rows: Mapping[int, int]) -> str:
    """Write rows per operation number as letters: deletes first, as they are in pages.

    >>> operation_letters({1: 3, 4: 1, 5: 1})
    'D 1, I 4'
    """
    counts: dict[str, int] = {}
    for operation, count in rows.items():
        letter = Operation(operation).letter
        counts[letter] = counts.get(letter, 0) + count
    return letters({letter: counts[letter] for letter in ("D", "U", "I") if letter in counts})
