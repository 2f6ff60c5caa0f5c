r"""Regular expressions in DuckDB SQL, if RE2 and Trino's engine agree.

A constant pattern is rewritten, with ``\d``, ``\w`` and ``\s`` as ASCII. Unsupported are ``$`` and
``\Z`` except at the end of a condition, word boundaries, backreferences, repetitions of possibly
empty parts, nested classes, and flags.
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
"""``$`` and ``\\Z`` at the end of a pattern, which also match before a final line end."""
_MOST_GROUP: Final = 9


@dataclass
class _Pattern:
    """A pattern and the position of its reader; for a condition, only whether it matches counts."""

    text: str
    is_condition: bool
    position: int = 0
    groups: int = 0

    def refusal(self) -> UnprintableError:
        return UnprintableError(
            f"the regular expression '{self.text}', which DuckDB reads differently"
        )

    @property
    def next(self) -> str:
        return self.text[self.position : self.position + 1]

    def take(self) -> str:
        character = self.next
        if not character:
            raise self.refusal()
        self.position += 1
        return character

    def alternatives(self, *, outermost: bool) -> tuple[str, bool]:
        """Parse a group; return its RE2 pattern, and whether it may be empty."""
        parts, may_be_empty = [], False
        while True:
            part, empty = self.sequence(outermost=outermost)
            parts.append(part)
            may_be_empty = may_be_empty or empty
            if self.next != "|":
                return "|".join(parts), may_be_empty
            self.position += 1

    def sequence(self, *, outermost: bool) -> tuple[str, bool]:
        pattern, may_be_empty = "", True
        while self.next and self.next not in "|)":
            atom, empty = self.atom(outermost=outermost)
            repeated, optional = self.repetition(empty)
            pattern += atom + repeated
            may_be_empty = may_be_empty and (empty or optional)
        return pattern, may_be_empty

    def repetition(self, empty: bool) -> tuple[str, bool]:
        count_match = _COUNTED.match(self.text, self.position)
        if count_match:
            self.position = count_match.end()
            quantifier, least = count_match[0], int(count_match[1])
            if count_match[3] and int(count_match[3]) < least:
                raise self.refusal()
        elif self.next in {"*", "+", "?"}:
            quantifier = self.take()
            least = 1 if quantifier == "+" else 0
        else:
            return "", False
        if empty:
            raise self.refusal()
        if self.next == "?":
            quantifier += self.take()
        if self.next in {"*", "+", "?"} or _COUNTED.match(self.text, self.position):
            raise self.refusal()
        return quantifier, least == 0

    def atom(self, *, outermost: bool) -> tuple[str, bool]:
        character = self.take()
        if character == "(":
            return self.group()
        if character == "[":
            return self.character_class(), False
        if character == ".":
            return r"[^\n]", False
        if character == "^":
            return r"\A", True
        if character == "$":
            return self.end(outermost=outermost), True
        if character == "\\":
            letter = self.take()
            if letter == "Z":
                return self.end(outermost=outermost), True
            if letter in "Az":
                return f"\\{letter}", True
            if letter.lower() in _SETS:
                return f"[{'^' if letter.isupper() else ''}{_SETS[letter.lower()]}]", False
            return self.escaped(letter), False
        if character in "*+?{}]":
            raise self.refusal()
        return _plain(character), False

    def end(self, *, outermost: bool) -> str:
        if not self.is_condition or not outermost or self.next not in {"", "|"}:
            raise self.refusal()
        return _END

    def escaped(self, letter: str) -> str:
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isalnum() or not letter.isascii():
            raise self.refusal()
        return _plain(letter)

    def group(self) -> tuple[str, bool]:
        opening = "("
        if self.text.startswith("?:", self.position):
            self.position += 2
            opening = "(?:"
        elif self.next == "?":
            raise self.refusal()
        else:
            self.groups += 1
        inner, empty = self.alternatives(outermost=False)
        if self.take() != ")":
            raise self.refusal()
        return f"{opening}{inner})", empty

    def character_class(self) -> str:
        class_text = "["
        if self.next == "^":
            class_text += self.take()
        if self.next == "]":
            raise self.refusal()
        while self.next != "]":
            first = self.member()
            after = self.text[self.position + 1 : self.position + 2]
            if self.next == "-" and after not in {"]", ""}:
                self.position += 1
                last = self.member()
                if len(first) > 1 or len(last) > 1 or last < first:
                    raise self.refusal()
                class_text += f"{_plain(first)}-{_plain(last)}"
            else:
                class_text += _plain(first) if len(first) == 1 else first
        self.position += 1
        return f"{class_text}]"

    def member(self) -> str:
        character = self.take()
        if character == "[" or (character == "&" and self.next == "&"):
            raise self.refusal()
        if character != "\\":
            return character
        letter = self.take()
        if letter in _SETS:
            return _SETS[letter]
        if letter in _CONTROLS:
            return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}[letter]
        if letter.isalnum() or not letter.isascii():
            raise self.refusal()
        return letter


def _plain(character: str) -> str:
    return (
        character if character.isascii() and character.isalnum() else f"\\x{{{ord(character):x}}}"
    )


def _translated(pattern: str, *, is_condition: bool) -> tuple[str, bool, int]:
    r"""Return an RE2 pattern, whether it may be empty, and the number of groups; or raise
    UnprintableError.

    >>> _translated(r"^a\d+(b|c)?", is_condition=True)
    ('\\Aa[0-9]+(b|c)?', False, 1)
    """
    reading = _Pattern(pattern, is_condition)
    re2_pattern, may_be_empty = reading.alternatives(outermost=True)
    if reading.next:
        raise reading.refusal()
    return re2_pattern, may_be_empty, reading.groups


# -- functions


def pattern_text(node: e.Apply, text: str) -> str:
    """Write the call of a function on ``text``, or raise UnprintableError."""
    constants = [_constant(part) for part in node.arguments[1:]]
    name = node.detail.name
    if None in constants:
        raise UnprintableError(
            f"{name} with a pattern, a group or a replacement that is no constant"
        )
    pattern, *others = map(str, constants)
    re2_pattern, may_be_empty, groups = _translated(pattern, is_condition=name == "regexp_like")
    if name not in {"regexp_like", "regexp_extract"} and may_be_empty:
        raise UnprintableError(f"{name} with a pattern that matches an empty text")
    call_text = _FUNCTIONS[name](text, text_literal(re2_pattern), others, groups)
    # An unmatched group is NULL in Trino and empty here; groups with empty matches were excluded.
    is_optional = (
        name == "regexp_extract"
        and others
        and others[0] != "0"
        and not structure(pattern).groups[int(others[0]) - 1].certain
    )
    return f"nullif({call_text}, '')" if is_optional else call_text


def _constant(node: e.Typed) -> str | None:
    while isinstance(node, e.Apply) and node.name == "cast":
        (node,) = node.arguments
    return node.value if isinstance(node, e.Constant) else None


def _like(text: str, pattern: str, _others: Sequence[str], _groups: int) -> str:
    return f"regexp_matches({text}, {pattern})"


def _extract(text: str, pattern: str, others: Sequence[str], groups: int) -> str:
    group = int(others[0]) if others else 0
    if not 0 <= group <= min(groups, _MOST_GROUP):
        raise UnprintableError(f"regexp_extract with group {group}")
    return (
        f"CASE WHEN regexp_matches({text}, {pattern}) THEN regexp_extract({text}, {pattern},"
        f" {group}) END"
    )


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
