"""Parser of the SQL/JSON paths of JSON_EXISTS, JSON_VALUE and JSON_QUERY."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.sql.tree import json_paths as t
from rowmerge_nb.sql.tree.json_paths import JsonPath, Member, Range, Subscripts

if TYPE_CHECKING:
    from collections.abc import Callable

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
_HALF: Final = Decimal("0.5")
_METHODS: Final = frozenset({"abs", "ceiling", "double", "floor", "keyvalue", "size", "type"})
_OPERATORS: Final = frozenset({"==", "<>", "!=", "<", ">", "<=", ">="})
_DECIMAL: Final = re.compile(r"[0-9]+\.[0-9]+")
_AFTER_STEP: Final = "{<EOF>, '+', '*', '/', '%', '.', '..', '[', '?', '-'}"
_VALUES: Final = (
    "{'+', '(', '$', '@', 'false', 'last', '-', 'null', 'true', DECIMAL_VALUE, DOUBLE_VALUE,"
    " INTEGER_VALUE, STRING, NAMED_VARIABLE}"
)


class PathSyntaxError(ValueError):
    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class PathRefusedError(ValueError):
    """An unsupported part of a path; with ``by_trino``, Trino refuses it too."""

    def __init__(self, part: str, *, by_trino: bool = False) -> None:
        super().__init__(part)
        self.by_trino = by_trino


def parse_path(text: str) -> JsonPath:
    """Parse a path.

    >>> parse_path('lax $.a[last]').root
    Walk(begin=Document(), steps=(Member(key='a'), Subscripts(ranges=(Range(first=(0, True), last=(0, True)),))))
    """
    return _PathReader(text).path()


class _PathReader:
    def __init__(self, text: str) -> None:
        self.source = text
        self.tokens = [
            (str(match.lastgroup), match.group(), match.start())
            for match in _TOKENS.finditer(text)
            if match.lastgroup != "space"
        ]
        self.tokens.append(("end", "<EOF>", len(text)))
        self.index = 0
        self.filters = 0

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
        self.syntax_error(f"mismatched input '{self.word}' expecting {expected}")

    def syntax_error(self, message: str) -> NoReturn:
        raise PathSyntaxError(message, self.tokens[self.index][2])

    def expect(self, word: str) -> None:
        if not self.accept(word):
            if self.kind == "end" or word in {"with", "unknown"}:
                self.syntax_error(f"missing '{word}' at '{self.word}'")
            self.fail(f"'{word}'")

    def path(self) -> JsonPath:
        if self.kind != "word" or self.word not in {"lax", "strict"}:
            modes = "{'lax', 'strict'}"
            if self.word == "$":
                self.syntax_error(f"missing {modes} at '$'")
            self.fail(modes)
        strict = self.take() == "strict"
        root = self._plain(self._sum())
        if self.kind != "end":
            self.fail(_AFTER_STEP)
        methods = [part.name for part in t.parts_of_path(root) if isinstance(part, t.Method)]
        if methods.count("keyvalue") > 1:
            raise PathRefusedError("keyvalue() twice")
        return JsonPath(strict, root)

    def _sum(self) -> t.Part:
        result = self._product()
        while self.kind == "symbol" and self.word in {"+", "-"}:
            result = self._arithmetic(result, self._product)
        return result

    def _product(self) -> t.Part:
        result = self._signed()
        while self.kind == "symbol" and self.word in {"*", "/", "%"}:
            result = self._arithmetic(result, self._signed)
        return result

    def _arithmetic(self, first: t.Part, operand: Callable[[], t.Part]) -> t.Part:
        operator = self.take()
        return t.Arithmetic(operator, self._plain(first), self._plain(operand()))

    def _signed(self) -> t.Part:
        if self.kind == "symbol" and self.word in {"+", "-"}:
            return t.Sign(self.take() == "-", self._plain(self._signed()))
        begin, steps = self._begin(), []
        while self.kind == "symbol" and self.word in {".", "[", "?"}:
            steps.append(self._step())
        return t.Walk(self._plain(begin), tuple(steps)) if steps else begin

    def _plain(self, part: t.Part) -> t.Part:
        """Refuse a decimal outside of a comparison: Trino's is exact, and a double is not."""
        if isinstance(part, t.PathLiteral) and _DECIMAL.fullmatch(part.item):
            raise PathRefusedError(f"the decimal {part.item}, which is no side of a comparison")
        return part

    def _begin(self) -> t.Part:
        if self.kind == "variable":
            return t.PathVariable(self.take()[1:])
        if self.kind == "string":
            return t.PathLiteral(f'"{self._string()}')
        if self.kind == "integer":
            if len(self.word) > 18:
                raise PathRefusedError(f"the number {self.word}")
            return t.PathLiteral(str(int(self.take())))
        if self.kind == "fraction":
            word = self.take()
            return t.PathLiteral(f"0{word}" if word.startswith(".") else word.removesuffix("."))
        if self.kind == "word" and self.word in {"true", "false", "null"}:
            return t.PathLiteral(self.take())
        if self.accept("("):
            inner = self._sum()
            self.expect(")")
            return inner
        if self.accept("@"):
            if not self.filters:
                raise PathRefusedError("@ outside of a filter")
            return t.Current()
        if self.word == "last":
            raise PathRefusedError("last outside of a subscript")
        if not self.accept("$"):
            self.fail(_VALUES)
        return t.Document()

    def _string(self) -> str:
        return self.take()[1:-1].replace('""', '"')

    def _step(self) -> t.Part:
        if self.accept("["):
            return self._subscripts()
        if self.accept("?"):
            return self._filter()
        self.expect(".")
        if self.accept("."):
            if self.kind not in {"string", "word"}:
                self.syntax_error(f"no viable alternative at input '..{self.word}'")
            return t.Descendants(self._string() if self.kind == "string" else self.take())
        if self.accept("*"):
            return Member(None)
        if self.kind == "string":
            return Member(self._string())
        if self.kind != "word":
            self.fail("{'*', STRING, IDENTIFIER}")
        name = self.take()
        if self.kind != "symbol" or self.word != "(":
            return Member(name)
        if name == "datetime":
            raise PathRefusedError("the method datetime()")
        if name not in _METHODS:
            self.fail(_AFTER_STEP)
        self.take()
        self.expect(")")
        if name == "keyvalue" and self.filters:
            raise PathRefusedError("keyvalue() within a filter")
        return t.Method(name)

    # -- predicates

    def _filter(self) -> t.PathFilter:
        self._expect_open()
        self.filters += 1
        predicate = self._or()
        self.filters -= 1
        self.expect(")")
        return t.PathFilter(predicate)

    def _expect_open(self) -> None:
        if not self.accept("("):
            self.syntax_error(f"missing '(' at '{self.word}'")

    def _or(self) -> t.Part:
        predicate = self._and()
        while self.accept("||"):
            predicate = t.PathLogical("OR", predicate, self._and())
        return predicate

    def _and(self) -> t.Part:
        predicate = self._predicate()
        while self.accept("&&"):
            predicate = t.PathLogical("AND", predicate, self._predicate())
        return predicate

    def _predicate(self) -> t.Part:
        if self.accept("!"):
            if self.word not in {"(", "exists"}:
                self.fail("{'(', 'exists'}")
            return t.PathNot(self._delimited())
        if self.word == "exists":
            return self._delimited()
        if self.word == "(" and (enclosed := self._enclosed()):
            return enclosed
        start = self.tokens[self.index][2]
        first = self._sum()
        if self.kind == "symbol" and self.word in _OPERATORS:
            operator = self.take()
            return t.PathComparison("<>" if operator == "!=" else operator, first, self._sum())
        if self.accept("starts"):
            self.expect("with")
            if self.kind not in {"string", "variable"}:
                self.fail("{STRING, NAMED_VARIABLE}")
            return t.StartsWith(first, self._begin())
        if self.word == "like_regex":
            raise PathRefusedError(
                "like_regex predicate in JSON path is not yet supported", by_trino=True
            )
        read = self.source[start : self.tokens[self.index][2] + len(self.word)]
        return self.syntax_error(f"no viable alternative at input '{read}'")

    def _delimited(self) -> t.Part:
        if self.accept("exists"):
            self._expect_open()
            predicate: t.Part = t.PathExists(self._sum())
            self.expect(")")
            return predicate
        self.expect("(")
        predicate = self._or()
        self.expect(")")
        if self.accept("is"):
            self.expect("unknown")
            return t.IsUnknown(predicate)
        return predicate

    def _enclosed(self) -> t.Part | None:
        """Parse a predicate in parentheses, or return None if a value is in them."""
        begin = self.index
        try:
            predicate = self._delimited()
        except PathSyntaxError:
            predicate = None
        if predicate is None or self.word not in {")", "&&", "||"}:
            self.index = begin
            return None
        return predicate

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
            if self.kind in {"variable", "string"} or self.word in {*"$@(+-", "last"}:
                raise PathRefusedError(f"a subscript with {self.word}")
            if self.kind not in {"integer", "fraction"}:
                self.fail("a number or 'last'")
            number = self._whole(negative=negative, from_last=from_last)
        if self.kind == "symbol" and self.word in {*"+-*/%.[?"}:
            raise PathRefusedError(f"a subscript with {self.word}")
        return number, from_last

    def _whole(self, *, negative: bool, from_last: bool) -> int:
        """Parse a number; a fraction is rounded after it is added to ``last``."""
        number = Decimal(self.word)
        # Trino rounds negative halves by the sign of the whole index, and by its type.
        if number > _LARGEST or (negative and number % 1 == _HALF):
            raise PathRefusedError(f"the subscript {self.word}")
        self.take()
        number = -number if negative else number
        return (
            math.floor(number + _HALF)
            if from_last
            else int(number.quantize(Decimal(1), ROUND_HALF_UP))
        )
