"""Words: how numbers, counts with their nouns, and lists are written, wherever they are told."""

from __future__ import annotations

from typing import Final

__all__ = ["MINUS", "join", "number", "plural"]

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
