"""What a regular expression's text tells about its groups, before it is run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

__all__ = ["diagnosis", "groups", "in_trinos_words"]

_TOKEN: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?|\]|\(\?<[A-Za-z]\w*>|\(\?|\(|\)|\||[*?]|\{0|.", re.DOTALL)


@dataclass
class _Group:
    """A parenthesis that is open: its own number if it captures, the numbers inside, and whether it has alternatives."""

    number: int | None = None
    inside: list[int] = field(default_factory=list)
    alternatives: bool = False

    def uncertain(self) -> list[int]:
        return self.inside if self.alternatives else []


def groups(pattern: str) -> list[bool]:
    r"""Tell of each capturing group whether it takes part in every match.

    A group inside of an alternation, or of something that may occur zero times, need not.

    >>> groups(r"(\d+)-(x)?"), groups("(a)|(b)"), groups(r"[(]\((?:a(b))")
    ([True, False], [False, False], [True])
    """
    certain: list[bool] = []
    opened = [_Group()]
    closed: list[int] = []
    classes = 0
    for match in _TOKEN.finditer(pattern):
        part = match[0]
        before, closed = closed, []
        if part[0] == "[" or (part == "]" and classes):
            classes += 1 if part[0] == "[" else -1
        elif classes:
            continue
        elif part[0] == "(":
            captures = part == "(" or part.endswith(">")
            opened.append(_Group(len(certain) if captures else None))
            certain += [True] * captures
        elif part == ")" and len(opened) > 1:
            group = opened.pop()
            for number in group.uncertain():
                certain[number] = False
            closed = [*([group.number] if group.number is not None else []), *group.inside]
            opened[-1].inside += closed
        elif part == "|":
            opened[-1].alternatives = True
        elif part in {"*", "?", "{0"}:
            for number in before:
                certain[number] = False
    for number in opened[0].uncertain():
        certain[number] = False
    return certain


_SAID: Final = {
    "missing ), unterminated subpattern": "end pattern with unmatched parenthesis",
    "unbalanced parenthesis": "unmatched close parenthesis",
    "unterminated character set": "premature end of char-class",
    "nothing to repeat": "target of repeat operator is not specified",
    "Unclosed group": "end pattern with unmatched parenthesis",
    "Unmatched closing ')'": "unmatched close parenthesis",
    "Unclosed character class": "premature end of char-class",
    "unknown extension": "undefined group option",
    "unknown flag": "undefined group option",
    "Unknown inline modifier": "undefined group option",
    "Dangling meta character '*'": "target of repeat operator is not specified",
    "Dangling meta character '?'": "target of repeat operator is not specified",
    "Dangling meta character '+'": "target of repeat operator is not specified",
}
"""What Python and Java say of a pattern, and what Trino's engine says of it."""


def in_trinos_words(java: str) -> str:
    """Give Trino's words for what Java says of a pattern, or Java's own where Trino's are not known.

    >>> in_trinos_words("Unclosed group")
    'end pattern with unmatched parenthesis'
    """
    return _SAID.get(java, java)


def diagnosis(pattern: str) -> str:
    """Say what is wrong with a pattern that no engine takes, as Trino says it.

    >>> diagnosis("(a"), diagnosis("[a")
    ('end pattern with unmatched parenthesis', 'premature end of char-class')
    """
    try:
        re.compile(pattern)
    except re.error as error:
        # What Python does not know stands behind its words.
        return _SAID.get(error.msg.partition(" ?")[0], error.msg)
    return f"invalid pattern: {pattern}"
