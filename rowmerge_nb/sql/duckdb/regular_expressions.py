r"""Regular expressions in DuckDB SQL: those that its engine, RE2, and Trino's read alike.

A pattern is a constant, which is read here and written anew: ``\d``, ``\w`` and ``\s`` as the ASCII that they mean for Trino. What RE2 lacks,
or reads in a way of its own, is not printed: ``$`` and ``\Z`` but at the end of a condition, word boundaries, references to groups, repetitions
of what may be empty, classes within classes, flags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, text_literal
from rowmerge_nb.sql.functions.regexp_groups import structure
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SETS: Final = {
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": r"\x{9}-\x{d} ",
}
_CONTROLS: Final = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_COUNTED: Final = re.compile(r"\{(\d{1,3})(?:(,)(\d{0,3}))?\}")
_END: Final = r"\n?\z"
"""What ``$`` and ``\\Z`` are at the end of a pattern: they stand before a last end of a line too."""
_MOST_GROUP: Final = 9


@dataclass
class _Pattern:
    """A pattern that is being read.

    Args:
        text: the pattern.
        is_condition: it is asked for yes or no alone.
    """

    text: str
    is_condition: bool
    place: int = 0
    groups: int = 0

    def refuse(self) -> UnprintableError:
        return UnprintableError(f"the regular expression '{self.text}', which is read otherwise there")

    @property
    def next(self) -> str:
        return self.text[self.place : self.place + 1]

    def take(self) -> str:
        found = self.next
        if not found:
            raise self.refuse()
        self.place += 1
        return found

    def alternatives(self, *, outermost: bool) -> tuple[str, bool]:
        """Read up to the end of a group: give what it is in RE2, and whether it may match an empty text."""
        parts, may_be_empty = [], False
        while True:
            part, empty = self.sequence(outermost=outermost)
            parts.append(part)
            may_be_empty = may_be_empty or empty
            if self.next != "|":
                return "|".join(parts), may_be_empty
            self.place += 1

    def sequence(self, *, outermost: bool) -> tuple[str, bool]:
        written, may_be_empty = "", True
        while self.next and self.next not in "|)":
            atom, empty = self.atom(outermost=outermost)
            repeated, optional = self.repetition(empty)
            written += atom + repeated
            may_be_empty = may_be_empty and (empty or optional)
        return written, may_be_empty

    def repetition(self, empty: bool) -> tuple[str, bool]:
        """Read how often an atom is repeated: give that, and whether it may be not at all."""
        counted = _COUNTED.match(self.text, self.place)
        if counted:
            self.place = counted.end()
            found, least = counted[0], int(counted[1])
            if counted[3] and int(counted[3]) < least:
                raise self.refuse()
        elif self.next in {"*", "+", "?"}:
            found = self.take()
            least = 1 if found == "+" else 0
        else:
            return "", False
        if empty:
            raise self.refuse()
        if self.next == "?":
            found += self.take()
        if self.next in {"*", "+", "?"} or _COUNTED.match(self.text, self.place):
            raise self.refuse()
        return found, least == 0

    def atom(self, *, outermost: bool) -> tuple[str, bool]:
        found = self.take()
        if found == "(":
            return self.group()
        if found == "[":
            return self.character_class(), False
        if found == ".":
            return r"[^\n]", False
        if found == "^":
            return r"\A", True
        if found == "$":
            return self.end(outermost=outermost), True
        if found == "\\":
            letter = self.take()
            if letter == "Z":
                return self.end(outermost=outermost), True
            if letter in "Az":
                return f"\\{letter}", True
            if letter.lower() in _SETS:
                return f"[{'^' if letter.isupper() else ''}{_SETS[letter.lower()]}]", False
            return self.escaped(letter), False
        if found in "*+?{}]":
            raise self.refuse()
        return _plain(found), False

    def end(self, *, outermost: bool) -> str:
        if not self.is_condition or not outermost or self.next not in {"", "|"}:
            raise self.refuse()
        return _END

    def escaped(self, letter: str) -> str:
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isalnum() or not letter.isascii():
            raise self.refuse()
        return _plain(letter)

    def group(self) -> tuple[str, bool]:
        opening = "("
        if self.text.startswith("?:", self.place):
            self.place += 2
            opening = "(?:"
        elif self.next == "?":
            raise self.refuse()
        else:
            self.groups += 1
        inner, empty = self.alternatives(outermost=False)
        if self.take() != ")":
            raise self.refuse()
        return f"{opening}{inner})", empty

    def character_class(self) -> str:
        written = "["
        if self.next == "^":
            written += self.take()
        if self.next == "]":
            raise self.refuse()
        while self.next != "]":
            first = self.member()
            if self.next == "-" and self.text[self.place + 1 : self.place + 2] not in {"]", ""}:
                self.place += 1
                last = self.member()
                if len(first) > 1 or len(last) > 1 or last < first:
                    raise self.refuse()
                written += f"{_plain(first)}-{_plain(last)}"
            else:
                written += _plain(first) if len(first) == 1 else first
        self.place += 1
        return f"{written}]"

    def member(self) -> str:
        """Read one character of a class, or a set of them, which is longer."""
        found = self.take()
        if found == "[" or (found == "&" and self.next == "&"):
            raise self.refuse()
        if found != "\\":
            return found
        letter = self.take()
        if letter in _SETS:
            return _SETS[letter]
        if letter in _CONTROLS:
            return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}[letter]
        if letter.isalnum() or not letter.isascii():
            raise self.refuse()
        return letter


def _plain(character: str) -> str:
    """Write a character that means itself."""
    return character if character.isascii() and character.isalnum() else f"\\x{{{ord(character):x}}}"


def _translated(pattern: str, *, is_condition: bool) -> tuple[str, bool, int]:
    r"""Return a pattern for RE2, whether it may match an empty text, and how many groups it has.

    Raises:
        UnprintableError: RE2 has none that is known to mean the same.

    >>> _translated(r"^a\d+(b|c)?", is_condition=True)
    ('\\Aa[0-9]+(b|c)?', False, 1)
    """
    reading = _Pattern(pattern, is_condition)
    written, may_be_empty = reading.alternatives(outermost=True)
    if reading.next:
        raise reading.refuse()
    return written, may_be_empty, reading.groups


# -- functions --------------------------------------------------------------------------------------------------------


def pattern_text(node: e.Apply, text: str) -> str:
    """Write the call of a function of regular expressions.

    Args:
        node: the call.
        text: its first argument in DuckDB SQL.

    Raises:
        UnprintableError: DuckDB has no form of it that is known to mean the same.
    """
    constants = [_constant(part) for part in node.arguments[1:]]
    if any(constant is None for constant in constants):
        raise UnprintableError(f"{node.detail.name} with a pattern, a group or a replacement that is no constant")
    pattern, *others = (str(constant) for constant in constants)
    name = node.detail.name
    written, may_be_empty, groups = _translated(pattern, is_condition=name == "regexp_like")
    if name not in {"regexp_like", "regexp_extract"} and may_be_empty:
        raise UnprintableError(f"{name} with a pattern that matches an empty text")
    found = _FUNCTIONS[name](text, text_literal(written), others, groups)
    # A group that takes no part in a match is NULL, and empty there; it was made sure of that such a group is never empty where it does.
    is_optional = (
        name == "regexp_extract" and others and others[0] != "0" and not structure(pattern).groups[int(others[0]) - 1].certain
    )
    return f"nullif({found}, '')" if is_optional else found


def _constant(node: e.Typed) -> str | None:
    """Return the text of a constant, be it one that was coerced; None of all else."""
    while isinstance(node, e.Apply) and node.name == "cast":
        (node,) = node.arguments
    return node.value if isinstance(node, e.Constant) else None


def _like(text: str, pattern: str, _others: Sequence[str], _groups: int) -> str:
    return f"regexp_matches({text}, {pattern})"


def _extract(text: str, pattern: str, others: Sequence[str], groups: int) -> str:
    group = int(others[0]) if others else 0
    if not 0 <= group <= min(groups, _MOST_GROUP):
        raise UnprintableError(f"regexp_extract with group {group}")
    return f"CASE WHEN regexp_matches({text}, {pattern}) THEN regexp_extract({text}, {pattern}, {group}) END"


def _replace(text: str, pattern: str, others: Sequence[str], _groups: int) -> str:
    replacement = others[0] if others else ""
    if "$" in replacement or "\\" in replacement:
        raise UnprintableError("regexp_replace with groups in its replacement")
    return f"regexp_replace({text}, {pattern}, {text_literal(replacement)}, 'g')"


def _extract_all(text: str, pattern: str, _others: Sequence[str], _groups: int) -> str:
    return f"regexp_extract_all({text}, {pattern}, 0)"


_FUNCTIONS: Final[dict[str, Callable[[str, str, Sequence[str], int], str]]] = {
    "regexp_like": _like,
    "regexp_extract": _extract,
    "regexp_extract_all": _extract_all,
    "regexp_replace": _replace,
}
