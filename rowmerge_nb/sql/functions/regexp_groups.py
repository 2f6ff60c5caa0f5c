"""Static analysis of regular expressions."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import Final

OUTSIDE: Final = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|\Z)
    | \\(?P<property>[pP]\{\^?[^}]*\})
    | \\(?P<escaped>.)
    | (?P<comment>\(\?\#(?:\\.|[^)])*\)?)
    | (?P<flags>\(\?[a-zA-Z-]*\))
    | (?P<opening>\((?:\?(?:<?[=!]|<\w+>|>|[a-zA-Z-]*:))?)
    | (?P<repeated>\{(?P<least>\d+)(?:,\d*)?\}|[*+?])
    | (?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
"""The parts of a pattern outside of character classes."""
EXTENDED: Final = re.compile(r"\(\?[a-zA-Z]*x")
_PLACES: Final = frozenset("bBAZzGkK123456789")
"""Escaped letters that match a position or possibly nothing."""


@dataclass
class Group:
    """A capturing group: whether every match has it, and whether it may be empty."""

    certain: bool = True
    may_be_empty: bool = False


@dataclass
class _Open:
    """An open parenthesis.

    Args:
        takes: its match consumes characters.
        inside: the groups in it.
        alternatives: it has several.
        all_need: all previous alternatives need a character.
    """

    group: Group | None = None
    takes: bool = True
    inside: list[Group] = field(default_factory=list)
    alternatives: bool = False
    all_need: bool = True
    needs: bool = False


class Structure:
    """The groups of a pattern, built part by part."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self._opened = [_Open()]
        self._last = self._repeated = False
        self._closed: list[Group] = []

    @property
    def may_be_empty(self) -> bool:
        return not self._needed(self._opened[0])

    @property
    def inside(self) -> bool:
        return len(self._opened) > 1

    def _needed(self, part: _Open) -> bool:
        return part.all_need and (part.needs or self._last)

    def atom(self, *, takes: bool = True) -> None:
        self._opened[-1].needs = self._opened[-1].needs or self._last
        self._last, self._repeated, self._closed = takes, False, []

    def opening(self, text: str) -> None:
        self.atom(takes=False)
        captures = Group() if text == "(" or re.fullmatch(r"\(\?<\w+>", text) else None
        self.groups += [captures] if captures else []
        self._opened.append(_Open(captures, takes=not re.fullmatch(r"\(\?<?[=!]", text)))

    def closing(self) -> None:
        part = self._opened.pop()
        self._last, self._repeated = self._needed(part) and part.takes, False
        if part.group is not None:
            part.group.may_be_empty = not self._last
        self._closed = [*([part.group] if part.group is not None else []), *part.inside]
        self._opened[-1].inside += self._closed
        if part.alternatives:
            self._uncertain(part.inside)

    def alternative(self) -> None:
        part = self._opened[-1]
        part.all_need, part.needs, part.alternatives = self._needed(part), False, True
        self._last, self._closed = False, []

    def repeated(self, *, optional: bool) -> None:
        if not self._repeated and optional:
            self._last = False
            self._uncertain(self._closed)
        self._repeated = True

    def part(self, match: re.Match[str]) -> None:
        text = match[0]
        if match["opening"] is not None:
            self.opening(text)
        elif match["repeated"] is not None:
            self.repeated(optional=text in {"*", "?"} or match["least"] == "0")
        elif text == ")" and self.inside:
            self.closing()
        elif text == "|":
            self.alternative()
        elif match["quoted"] is not None:
            for _ in match["quoted"]:
                self.atom()
        elif match["comment"] is None and match["flags"] is None:
            self.atom(takes=text not in {"^", "$"} and match["escaped"] not in _PLACES)

    def end(self, *, extended: bool) -> None:
        """End the pattern; in an extended one nothing is certain."""
        if self._opened[0].alternatives:
            self._uncertain(self._opened[0].inside)
        if extended:
            self._opened[0].all_need = False
            for group in self.groups:
                group.may_be_empty = True

    @staticmethod
    def _uncertain(groups: list[Group]) -> None:
        for group in groups:
            group.certain = False


def structure(pattern: str) -> Structure:
    r"""Analyze the groups of a pattern.

    >>> [group.certain for group in structure(r"(\d+)-(x)?").groups], [group.certain for group in structure("(a)|(b)").groups]
    ([True, False], [False, False])
    >>> structure(r"[(]\((?:a(b*))").groups
    [Group(certain=True, may_be_empty=True)]
    """
    result = Structure()
    position = 0
    while position < len(pattern):
        match = OUTSIDE.match(pattern, position)
        assert match is not None
        position = match.end()
        if match[0] == "[":
            result.atom()
            position = _behind_class(pattern, position)
        else:
            result.part(match)
    result.end(extended=EXTENDED.search(pattern) is not None)
    return result


def _behind_class(pattern: str, position: int) -> int:
    depth = 1
    for match in re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?|\]|.", re.DOTALL).finditer(
        pattern, position
    ):
        first = match.start() == position or (
            match.start() == position + 1 and pattern[position] == "^"
        )
        depth += match[0].startswith("[") - (match[0] == "]" and not first)
        if depth == 0:
            return match.end()
    return len(pattern)


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
    "unexpected end of pattern": "end pattern in group",
    "bad escape (end of pattern)": "end pattern at escape",
    "bad character range": "empty range in char class",
    "Dangling meta character '*'": "target of repeat operator is not specified",
    "Dangling meta character '?'": "target of repeat operator is not specified",
    "Dangling meta character '+'": "target of repeat operator is not specified",
}
"""Errors of Python and Java, and those of Trino's engine."""


def in_trinos_words(java: str) -> str:
    """Translate Java's message into Trino's, if known.

    >>> in_trinos_words("Unclosed group")
    'end pattern with unmatched parenthesis'
    """
    return _SAID.get(java, java)


def diagnosis(pattern: str) -> str:
    """Return Trino's message about an invalid pattern.

    >>> diagnosis("(a"), diagnosis("[a")
    ('end pattern with unmatched parenthesis', 'premature end of char-class')
    """
    if r"\k<missing>" in pattern:
        return "invalid backref number/name"
    if _EMPTY_CLASS.search(pattern):
        return "empty char-class"
    error = _pythons_error(pattern)
    if error is not None:
        # Details follow Python's message.
        python_message = re.match(r"bad character range|.*?(?= \?|$)", error.msg)
        assert python_message is not None
        unknown = _PROPERTY.search(pattern)
        if error.msg.startswith(r"bad escape \p") and unknown:
            return f"invalid character property name <{unknown[1]}>"
        return _SAID.get(python_message[0], error.msg)
    return "undefined group option" if _OPTION.search(pattern) else f"invalid pattern: {pattern}"


def is_wrong(pattern: str) -> bool:
    r"""Return whether every engine certainly refuses a pattern.

    >>> is_wrong("(a"), is_wrong(r"\p{Greek}(a)")
    (True, False)
    """
    error = _pythons_error(pattern)
    return error is not None and error.msg in _WRONG_EVERYWHERE


def _pythons_error(pattern: str) -> re.error | None:
    with warnings.catch_warnings():
        # Python has neither POSIX classes nor nested ones.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            re.compile(pattern)
        except re.error as error:
            return error
    return None


_WRONG_EVERYWHERE: Final = frozenset(
    {
        "missing ), unterminated subpattern",
        "unbalanced parenthesis",
        "unterminated character set",
        "nothing to repeat",
        "bad escape (end of pattern)",
        "unexpected end of pattern",
    }
)
_EMPTY_CLASS: Final = re.compile(r"(?<!\\)\[\^?\][^\]]*\Z")
_PROPERTY: Final = re.compile(r"\\[pP]\{(?:Is)?(.*?)\}")
_OPTION: Final = re.compile(r"\(\?[a-zA-Z-]*[^imsx:<=!>)-]")
