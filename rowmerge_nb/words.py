"""Words: how numbers, counts with their nouns, and lists are written, wherever they are told."""

from __future__ import annotations

from typing import Final

__all__ = ["MINUS", "code", "code_parts", "join", "number", "plural"]

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


def code(text: str) -> str:
    """Mark a part of a sentence as code, as sentences of Markdown do.

    >>> code("USING t"), code("a`b")
    ('`USING t`', 'a`b')
    """
    return text if "`" in text else f"`{text}`"


def code_parts(sentence: str) -> tuple[tuple[str, bool], ...]:
    """Give the parts of a sentence, and which of them `code` has marked.

    >>> code_parts("Write `USING t`.")
    (('Write ', False), ('USING t', True), ('.', False))
    >>> code_parts("a ` alone")
    (('a ` alone', False),)
    """
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return ((sentence, False),)
    return tuple((part, index % 2 == 1) for index, part in enumerate(parts) if part)
