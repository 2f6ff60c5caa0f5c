"""Formats of numbers, counts and lists in texts for readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TRINO_VERSION: Final = "Trino 483"
"""The version whose answers, plans and pages the current era has."""
MINUS: Final = "\N{MINUS SIGN}"


def number(value: int) -> str:
    """Return a number with thousands separators and a real minus sign.

    >>> number(1234567), number(-1)
    ('1,234,567', '−1')
    """
    return f"{value:,}".replace("-", MINUS)


def number_or_blank(value: int | None) -> str:
    """Return a number as `number` does, or an empty text for None."""
    return "" if value is None else number(value)


def plural(count: int, word: str, words: str | None = None) -> str:
    """Return a count with its noun.

    >>> plural(1, "row"), plural(0, "row"), plural(2, "branch", "branches")
    ('1 row', '0 rows', '2 branches')
    """
    return f"{number(count)} {word if count == 1 else words or word + 's'}"


@dataclass(frozen=True)
class KnownRows:
    """A row count known before a statement runs; an upper bound unless ``exact``.

    >>> str(KnownRows(1)), str(KnownRows(4100, exact=False))
    ('1 row', 'at most 4,100 rows')
    """

    rows: int
    exact: bool = True

    def __str__(self) -> str:
        return f"{'' if self.exact else 'at most '}{plural(self.rows, 'row')}"

    @property
    def bound(self) -> KnownRows:
        """The count after a filter.

        >>> KnownRows(3).bound, KnownRows(0).bound
        (KnownRows(rows=3, exact=False), KnownRows(rows=0, exact=True))
        """
        return KnownRows(self.rows, exact=self.rows == 0)


def join(parts: list[str]) -> str:
    """Join words as in a sentence.

    >>> join(["a", "b", "c"]), join(["a"])
    ('a, b and c', 'a')
    """
    return (
        parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""
    )


def code(text: str) -> str:
    """Mark text as code, as Markdown does.

    >>> code("USING t"), code("a`b")
    ('`USING t`', 'a`b')
    """
    return text if "`" in text else f"`{text}`"


def code_parts(sentence: str) -> tuple[tuple[str, bool], ...]:
    """Return the parts of a sentence, with whether `code` marked each.

    >>> code_parts("Write `USING t`.")
    (('Write ', False), ('USING t', True), ('.', False))
    >>> code_parts("a ` alone")
    (('a ` alone', False),)
    """
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return ((sentence, False),)
    return tuple((part, index % 2 == 1) for index, part in enumerate(parts) if part)
