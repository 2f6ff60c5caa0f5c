"""Paths of SQL/JSON: how they are written, and the sequence of items at the end of one, in Spark SQL.

An item is a text: of a string the string itself behind a quotation mark (``"abc``), of everything else the JSON text, in which
every string, keys too, has such a mark. So the first character tells what an item is. Spark's functions that take JSON apart
would otherwise give the string "1" and the number 1 alike. A failure is an item as well: its words behind an exclamation mark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NoReturn

from rowmerge_nb.sql.typed.expressions import text_literal

__all__ = [
    "JsonPath",
    "Member",
    "PathRefusedError",
    "PathSyntaxError",
    "Range",
    "Subscripts",
    "json_text",
    "parse_path",
    "sequence",
]

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
_STRING: Final = r'"((?:[^"\\\\]++|\\\\.)*+)"'


class PathSyntaxError(ValueError):
    """The text is no path for Trino; ``place`` counts the characters before the fault."""

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


@dataclass(frozen=True)
class Member:
    """The values of a key; of all keys if it is None."""

    key: str | None


@dataclass(frozen=True)
class Range:
    """Elements of an array, both ends included; an end is a number and whether it is added to the last index."""

    first: tuple[int, bool]
    last: tuple[int, bool]


@dataclass(frozen=True)
class Subscripts:
    """Elements of an array; all of them if there are no ranges."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class JsonPath:
    """A path: its mode, and its steps from the document inwards."""

    strict: bool
    steps: tuple[Member | Subscripts, ...]


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


# -- Spark SQL --------------------------------------------------------------------------------------------------------

# Names of columns never begin with $, so the parameters of these lambdas hide none.
_KIND: Final = (
    "CASE substring(`$x`, 1, 1) WHEN '[' THEN 'ARRAY' WHEN '{' THEN 'OBJECT' WHEN '\"' THEN 'STRING' WHEN 'n' THEN 'NULL' "
    "WHEN 't' THEN 'BOOLEAN' WHEN 'f' THEN 'BOOLEAN' ELSE 'NUMBER' END"
)
_ELEMENTS: Final = "transform(from_json(`$x`, 'ARRAY<STRING>'), `$v` -> coalesce(`$v`, 'null'))"
_ENTRIES: Final = "map_entries(from_json(`$x`, 'MAP<STRING, STRING>'))"
_EACH_LAST: Final = (
    f"transform(array({_ENTRIES}), `$m` -> transform(array_distinct(transform(`$m`, `$e` -> `$e`.key)), "
    "`$k` -> coalesce(element_at(filter(`$m`, `$e` -> `$e`.key = `$k`), -1).value, 'null')))[0]"
)


def sequence(text: str, path: JsonPath) -> str:
    """Write the items at the end of a path: an array, with a failure as its only item; NULL where the text is no JSON.

    Args:
        text: the document as Spark SQL, used twice.
        path: the path.
    """
    marked = f"regexp_replace({text}, '{_STRING}', '\"\\\\\\\\\"$1\"')"
    # What follows the first value of a text is not looked at: neither here nor in Trino.
    items = f"IF(try_parse_json({text}) IS NULL, NULL, array(get_json_object({marked}, '$')))"
    for step in path.steps:
        items = _strict(items, step) if path.strict else _lax(items, step)
    return items


def _lax(items: str, step: Member | Subscripts) -> str:
    elements = f"IF(startswith(`$x`, '['), {_ELEMENTS}, array(`$x`))"
    if isinstance(step, Subscripts):
        return f"flatten(transform({items}, `$x` -> {_chosen(elements, step, strict=False)}))"
    unnested = f"flatten(transform({items}, `$x` -> {elements}))"
    return f"flatten(transform({unnested}, `$x` -> IF(startswith(`$x`, '{{'), {_values(step)}, array())))"


def _strict(items: str, step: Member | Subscripts) -> str:
    wanted, begins = ("ARRAY", "[") if isinstance(step, Subscripts) else ("OBJECT", "{")
    found = _chosen(_ELEMENTS, step, strict=True) if isinstance(step, Subscripts) else _values(step)
    if isinstance(step, Member) and step.key is not None:
        missing = text_literal(f"!structural error: missing member '{step.key}' in JSON object")
        found = f"transform(array({found}), `$f` -> IF(size(`$f`) = 0, array({missing}), `$f`))[0]"
    unfit = f"array(concat('!invalid item type. Expected: {wanted}, actual: ', {_KIND}))"
    each = f"CASE WHEN startswith(`$x`, '!') THEN array(`$x`) WHEN startswith(`$x`, '{begins}') THEN {found} ELSE {unfit} END"
    failures = "filter(`$s`, `$x` -> startswith(`$x`, '!'))"
    # The first failure of a step ends everything: no later step of an earlier item comes before it.
    whole = f"IF(exists(`$s`, `$x` -> startswith(`$x`, '!')), slice({failures}, 1, 1), `$s`)"
    return f"transform(array(flatten(transform({items}, `$x` -> {each}))), `$s` -> {whole})[0]"


def _values(step: Member) -> str:
    if step.key is None:
        return _EACH_LAST
    same = f"filter({_ENTRIES}, `$e` -> `$e`.key = {text_literal(chr(34) + step.key)})"
    return f"transform(slice({same}, -1, 1), `$e` -> coalesce(`$e`.value, 'null'))"


def _chosen(elements: str, step: Subscripts, *, strict: bool) -> str:
    if not step.ranges:
        return elements
    parts = [_slice(part, strict=strict) for part in step.ranges]
    body = parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"
    empty = "array('!structural error: invalid array subscript for empty array')" if strict else "array()"
    return f"transform(array({elements}), `$a` -> IF(size(`$a`) = 0, {empty}, {body}))[0]"


def _slice(part: Range, *, strict: bool) -> str:
    first, last = _place(part.first), _place(part.last)
    low, high = f"greatest({first}, 0)", f"least({last}, size(`$a`) - 1)"
    inside = f"{first} <= {last} AND {low} <= {high}"
    found = f"slice(`$a`, {low} + 1, {high} - {low} + 1)"
    if not strict:
        return f"IF({inside}, {found}, array())"
    shown = (
        f"concat('!structural error: invalid array subscript: [', CAST({first} AS STRING), ', ', CAST({last} AS STRING), "
        "'] for array of size ', CAST(size(`$a`) AS STRING))"
    )
    return f"IF({first} BETWEEN 0 AND {last} AND {last} < size(`$a`), {found}, array({shown}))"


def _place(offset: tuple[int, bool]) -> str:
    number, from_last = offset
    return f"(size(`$a`) - 1 + ({number}))" if from_last else f"({number})"


def json_text(item: str) -> str:
    """Write the JSON text of an item."""
    string = f"regexp_replace(to_json(array(substring({item}, 2))), '^.|.$', '')"
    unmarked = f"regexp_replace({item}, '\"\\\\\\\\{_STRING}', '\"$1\"')"
    # A number that no double can hold is infinite, and JSON has only text for that.
    return (
        f"CASE WHEN startswith({item}, '\"') THEN {string} "
        f"WHEN endswith({item}, 'Infinity') THEN concat('\"', {item}, '\"') ELSE {unmarked} END"
    )
