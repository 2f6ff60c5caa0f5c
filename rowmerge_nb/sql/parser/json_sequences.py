"""Reads the paths of SQL/JSON: JSON_EXISTS, JSON_VALUE and JSON_QUERY."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from rowmerge_nb.sql.tree.json_paths import JsonPath, Member, Range, Subscripts

__all__ = ["PathRefusedError", "PathSyntaxError", "parse_path"]

_TOKENS: Final = re.compile(
    r"""(?P<space>[ \r\n\t]+)
    |(?P<string>"(?:[^"]|"")*")
    |(?P<variable>\$[A-Za-z_][A-Za-z0-9_]*)
    |(?P<fraction>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<integer>[0-9]+)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<symbol>==|<>|!=|<=|>=|&&|\|\||.)""",
    re.VERBOSE | re.DOTALL,
)
_LARGEST: Final = 10**9


class PathSyntaxError(ValueError):
    """The text is no path for Trino; ``offset`` counts the characters before the fault."""

    def __init__(self, message: str, offset: int) -> None:
        """Say what is wrong, and where."""
        super().__init__(message)
        self.message = message
        self.offset = offset


class PathRefusedError(ValueError):
    """A part of the language of paths that this engine does not have; ``part`` names it."""

    def __init__(self, part: str) -> None:
        """Name the part."""
        super().__init__(part)
        self.part = part


def parse_path(text: str) -> JsonPath:
    """Read a path.

    Raises:
        PathSyntaxError: Trino refuses it.
        PathRefusedError: only this engine does.

    >>> parse_path('lax $.a[last]').steps
    (Member(key='a'), Subscripts(ranges=(Range(first=(0, True), last=(0, True)),)))
    """
    return _PathReader(text).path()


class _PathReader:
    def __init__(self, text: str) -> None:
        self.tokens = [
            (str(found.lastgroup), found.group(), found.start()) for found in _TOKENS.finditer(text) if found.lastgroup != "space"
        ]
        self.tokens.append(("end", "<EOF>", len(text)))
        self.index = 0

    @property
    def word(self) -> str:
        return self.tokens[self.index][1]

    @property
    def kind(self) -> str:
        return self.tokens[self.index][0]

    def take(self) -> str:
        word = self.word
        self.index = min(self.index + 1, len(self.tokens) - 1)
        return word

    def accept(self, word: str) -> bool:
        if self.kind not in {"symbol", "word"} or self.word != word:
            return False
        self.take()
        return True

    def fail(self, expected: str) -> NoReturn:
        self.wrong(f"mismatched input '{self.word}' expecting {expected}")

    def wrong(self, message: str) -> NoReturn:
        raise PathSyntaxError(message, self.tokens[self.index][2])

    def refuse(self, part: str) -> NoReturn:
        raise PathRefusedError(part)

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(f"'{word}'")

    def path(self) -> JsonPath:
        if self.kind != "word" or self.word not in {"lax", "strict"}:
            modes = "{'lax', 'strict'}"
            if self.word == "$":
                self.wrong(f"missing {modes} at '$'")
            self.fail(modes)
        strict = self.take() == "strict"
        self._begin()
        steps = []
        while self.kind != "end":
            steps.append(self._step())
        return JsonPath(strict, tuple(steps))

    def _begin(self) -> None:
        if self.kind == "variable":
            self.refuse(f"the variable {self.word}")
        if self.kind in {"string", "integer", "fraction"} or self.word in {"true", "false", "null"}:
            self.refuse(f"the literal {self.word}")
        if self.kind == "symbol" and self.word in {"+", "-"}:
            self.refuse("arithmetic")
        if self.accept("("):
            self.refuse("parentheses")
        if self.word in {"@", "last"}:
            self.wrong(f"{self.word} is not allowed here")
        self.expect("$")

    def _step(self) -> Member | Subscripts:
        if self.accept("["):
            return self._subscripts()
        if self.accept("?"):
            self.refuse("a filter")
        if self.kind == "symbol" and self.word in {"+", "-", "*", "/", "%"}:
            self.refuse("arithmetic")
        if self.kind == "fraction" or not self.accept("."):
            self.fail("<EOF>")
        if self.accept("."):
            self.refuse("the descendant member accessor")
        if self.accept("*"):
            return Member(None)
        if self.kind == "string":
            return Member(self.take()[1:-1].replace('""', '"'))
        if self.kind != "word":
            self.fail("{'*', STRING, IDENTIFIER}")
        name = self.take()
        if self.kind == "symbol" and self.word == "(":
            self.refuse(f"the method {name}()")
        return Member(name)

    def _subscripts(self) -> Subscripts:
        if self.accept("*"):
            self.expect("]")
            return Subscripts(())
        ranges = [self._range()]
        while self.accept(","):
            ranges.append(self._range())
        self.expect("]")
        return Subscripts(tuple(ranges))

    def _range(self) -> Range:
        first = self._index()
        return Range(first, self._index() if self.accept("to") else first)

    def _index(self) -> tuple[int, bool]:
        from_last = self.accept("last")
        negative = self.accept("-")
        number = 0
        if negative or not from_last or (self.kind == "symbol" and self.word == "+"):
            if not negative:
                self.accept("+")
            if self.kind in {"variable", "fraction", "string"} or self.word in {"$", "@", "(", "last", "+", "-"}:
                self.refuse(f"a subscript with {self.word}")
            if self.kind != "integer":
                self.fail("a number or 'last'")
            if len(self.word) > 10 or int(self.word) > _LARGEST:
                self.refuse(f"the subscript {self.word}")
            number = -int(self.take()) if negative else int(self.take())
        if self.kind == "symbol" and self.word in {"+", "-", "*", "/", "%", ".", "[", "?"}:
            self.refuse(f"a subscript with {self.word}")
        return number, from_last
