"""Parses expressions, by Trino's precedences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import AnalysisError, ParseError
from rowmerge_nb.sql.parser.literals import STRINGS
from rowmerge_nb.sql.parser.primaries import PrimaryReader
from rowmerge_nb.sql.parser.tokens import TokenKind
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.depth import DEEPEST_TREE, LONGEST_CHAIN, NESTED_CHAIN, too_deep
from rowmerge_nb.sql.tree.statements import Identifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.parser.tokens import Token
    from rowmerge_nb.sql.tree.statements import Span

_COMPARISONS: Final = ("=", "<>", "!=", "<", "<=", ">", ">=")
_ADDITION: Final = ("+", "-")
_MULTIPLICATION: Final = ("*", "/", "%")
_NUMBERS: Final = frozenset({TokenKind.INTEGER, TokenKind.DECIMAL, TokenKind.DOUBLE})


class ExpressionReader(PrimaryReader):
    """Parses operators; `PrimaryReader` parses their operands."""

    # -- boolean expressions

    def expression(self) -> s.Expression:
        expression = self._logical("OR", lambda: self._logical("AND", self._negation))
        self.check_names()
        return expression

    def _logical(self, word: str, term: Callable[[], s.Expression]) -> s.Expression:
        start = self.index
        terms = [term()]
        while self.accept(word):
            terms.append(term())
            _check_length(len(terms))
        return terms[0] if len(terms) == 1 else s.Logical(self.span_from(start), word, tuple(terms))

    def _negation(self) -> s.Expression:
        start = self.index
        if self.token.word == "NOT":
            self.take()
            self.deeper()
            operand = self._negation()
            self.depth -= 1
            return s.Not(self.span_from(start), operand)
        return self._predicate()

    def _predicate(self) -> s.Expression:
        start = self.index
        return self._predicate_of(start, self.value())

    def when_predicate(self, operand: s.Expression) -> s.Expression | None:
        word, following = self.token, self.ahead().word
        is_predicate = (
            (word.word in _COMPARISONS and word.kind is TokenKind.SYMBOL)
            or word.word in {"IS", "IN", "BETWEEN", "LIKE"}
            or (word.word == "NOT" and following in {"BETWEEN", "IN", "LIKE"})
        )
        if not is_predicate:
            return None
        start = self.index
        predicate = self._predicate_of(start, operand)
        return s.WhenPredicate(self.span_from(start), predicate)

    def _predicate_of(self, start: int, value: s.Expression) -> s.Expression:
        word = self.token
        if word.word in _COMPARISONS and word.kind is TokenKind.SYMBOL:
            self.take()
            return self._comparison(start, value, word)
        if word.word == "IS":
            self.take()
            return self._is(start, value, word.span)
        if word.word == "IN":
            return self._in(start, value, word.span)
        if word.word in {"BETWEEN", "LIKE"}:
            return self._ranged(start, value, word.span, negated=False)
        if word.word == "NOT":
            self.take()
            if not self.at("BETWEEN", "IN", "LIKE"):
                self.fail()
            return self._ranged(start, value, word.span, negated=True)
        self.note("<predicate>")
        return value

    def _comparison(self, start: int, left: s.Expression, operator: Token) -> s.Expression:
        sign = "<>" if operator.word == "!=" else operator.word
        reached, depth = self.index, self.depth
        quantifier = (
            self.accept("ALL", "ANY", "SOME")
            if self.ahead().word == "(" and self.query_follows(behind=1)
            else None
        )
        if quantifier is None:
            self.note("'ALL'", "'ANY'", "'SOME'")
            right = self.value()
            return s.Binary(self.span_from(start), sign, left, right, operator.span)
        undecided = self.undecided
        try:
            self.undecided += 1
            self.expect("(")
            query = self.query()
            self.close(")")
        except ParseError as error:
            if undecided or not error.is_mismatch:
                raise
            # ALL, ANY and SOME are not reserved: this is a name.
            self.give_up(reached)
            self.undecided, self.depth = undecided, depth
            return s.Binary(self.span_from(start), sign, left, self.value(), operator.span)
        finally:
            self.undecided = undecided
        return s.Quantified(
            self.span_from(start), left, operator.span, sign, quantifier.word, query
        )

    def _is(self, start: int, value: s.Expression, word: Span) -> s.Expression:
        negated = self.accept("NOT") is not None
        if self.accept("NULL"):
            return s.IsNull(self.span_from(start), value, word, negated)
        truth = self.accept("TRUE", "FALSE", "UNKNOWN")
        if truth is not None:
            return s.IsTruth(self.span_from(start), value, word, truth.word, negated)
        self.expect("DISTINCT")
        self.expect("FROM")
        right = self.value()
        return s.IsDistinct(self.span_from(start), value, word, right, negated)

    def _ranged(
        self, start: int, value: s.Expression, word: Span, *, negated: bool
    ) -> s.Expression:
        word_text = self.take().word
        if word_text == "BETWEEN":
            symmetric = self._accept_symmetry()
            low = self.value()
            self.expect("AND")
            high = self.value()
            return s.Between(
                self.span_from(start), value, word, low, high, negated, symmetric=symmetric
            )
        if word_text == "LIKE":
            pattern = self.value()
            escape = self.value() if self.accept("ESCAPE") else None
            return s.Like(self.span_from(start), value, word, pattern, escape, negated)
        self.expect("(")
        if self.query_follows(in_parenthesis=True):
            query = self.query()
            self.close(")")
            return s.InQuery(self.span_from(start), value, word, query, negated)
        self.note("<query>")
        items = self.listed(runs=True)
        self.expect(")")
        return s.InList(self.span_from(start), value, word, items, negated)

    def _accept_symmetry(self) -> bool:
        """Accept SYMMETRIC or ASYMMETRIC, unless it is a name: neither is reserved."""
        following = self.ahead()
        self.note("'ASYMMETRIC'", "'SYMMETRIC'")
        if self.token.word not in {"SYMMETRIC", "ASYMMETRIC"} or (
            following.kind is TokenKind.SYMBOL and following.text not in "([+-?"
        ):
            return False
        return following.word != "AND" and self.take().word == "SYMMETRIC"

    def _in(self, start: int, value: s.Expression, word: Span) -> s.Expression:
        reached, undecided, depth = self.index, self.undecided, self.depth
        try:
            self.undecided += 1
            return self._ranged(start, value, word, negated=False)
        except ParseError as error:
            if undecided or not error.is_mismatch:
                raise
            self.give_up(reached)
            return value
        finally:
            self.undecided, self.depth = undecided, depth

    # -- values

    def value(self) -> s.Expression:
        """Parse a value: || binds loosest, then + -, then * / %, then signs, then AT TIME ZONE."""
        return self._chained(self._sum, "||")

    def _sum(self) -> s.Expression:
        return self._chained(self._product, *_ADDITION)

    def _product(self) -> s.Expression:
        return self._chained(self._signed, *_MULTIPLICATION)

    def _chained(self, term: Callable[[], s.Expression], *operators: str) -> s.Expression:
        start = self.index
        first = term()
        steps: list[s.ChainStep] = []
        while operator := self.accept(*operators):
            operand = term()
            steps.append(s.ChainStep(self.span_from(start), operator.word, operand, operator.span))
            _check_length(len(steps) + 1)
        if len(steps) > NESTED_CHAIN:
            return s.Chain(self.span_from(start), first, tuple(steps))
        for step in steps:
            first = _nested(first, step)
        return first

    def _signed(self) -> s.Expression:
        start = self.index
        if self.token.word in _ADDITION:
            operator = self.take()
            if operator.word == "-":
                self.note("<integer>", "DECIMAL_VALUE", "DOUBLE_VALUE")
                self.signed_number = self.index
            self.deeper()
            operand = self._signed()
            self.depth -= 1
            if (
                isinstance(operand, s.Literal)
                and operand.kind == "integer"
                and operand.value.startswith("-")
                and self.signed_number == start + 1
            ):
                return s.Literal(self.span_from(start), operand.kind, operand.value)
            return s.Unary(self.span_from(start), operator.word, operand)
        return self._zoned()

    def literal(self) -> s.Expression:
        token = self.token
        if token.word == "-":
            if self.ahead().kind not in _NUMBERS:
                self.take()
                self.note("<integer>", "DECIMAL_VALUE", "DOUBLE_VALUE")
                self.fail()
            return self._signed()
        is_typed = self.at_identifier() and self.ahead().kind in STRINGS
        is_word = (
            token.word in {"TRUE", "FALSE", "NULL", "INTERVAL"} and token.kind is TokenKind.WORD
        )
        is_double = token.word == "DOUBLE" and self.ahead().word == "PRECISION"
        if not (
            token.kind in _NUMBERS
            or is_typed
            or is_word
            or is_double
            or token.kind in {*STRINGS, TokenKind.BINARY, TokenKind.UNICODE_STRING}
        ):
            self.note("'-'", "'DOUBLE'", "'FALSE'", "'INTERVAL'", "'NULL'", "'TRUE'")
            self.note("<identifier>", "<integer>", "<string>")
            self.note("BINARY_LITERAL", "DECIMAL_VALUE", "DOUBLE_VALUE")
            self.fail()
        return self.primary()

    def _zoned(self) -> s.Expression:
        start = self.index
        value = self._postfixed()
        while self.accept("AT"):
            if self.accept("LOCAL"):
                span = self.span_from(start)
                zone: s.Expression = s.FunctionCall(span, "current_timezone", ())
                value = s.AtTimeZone(span, value, zone)
                continue
            if self.token.word != "TIME":
                self.give_up(self.index - 1)
                break
            self.expect("TIME")
            self.expect("ZONE")
            zone = self._zone()
            value = s.AtTimeZone(self.span_from(start), value, zone)
        return value

    def _zone(self) -> s.Expression:
        if self.token.kind not in STRINGS and self.token.word != "INTERVAL":
            self.note("'INTERVAL'", "<string>")
            self.fail()
        return self.primary()

    def _postfixed(self) -> s.Expression:
        start = self.index
        undecided = self.undecided
        if start == self.undecided_primary:
            self.undecided += 1
        self.deeper()
        value = self.primary()
        self.depth -= 1
        value = self._dereferences(start, value)
        self.undecided = undecided
        return value

    def _dereferences(self, start: int, value: s.Expression) -> s.Expression:
        for _ in range(DEEPEST_TREE):
            if self.token.word == ".":
                dereferenced = self._behind_dot(start, value)
                if dereferenced is None:
                    return value
                value = dereferenced
            elif (
                self.token.word == "::"
                and isinstance(value, s.Name)
                and self.tokens[start].word != "("
            ):
                self.take()
                self.identifier()
                self.skip_method(start, static=True)
            elif self.accept("["):
                self.note("'*'")
                if self.token.word == "*" and self.ahead().word == "]":
                    self._refuse_accessor("[*]", self.token.span)
                    self.take()
                    self.take()
                    continue
                index = self.value()
                self.close("]")
                value = s.Subscript(self.span_from(start), value, index)
            else:
                self.note("'.'")
                return value
        raise too_deep()

    def _behind_dot(self, start: int, value: s.Expression) -> s.Expression | None:
        """Parse a field or a method; None if the dot is not part of the value, as in ``t.*``."""
        following = self.ahead()
        if following.word == "*" and start == self.undecided_primary:
            self.starred = self.index
            return None
        if self.at_identifier(following):
            self.take()
            return self._behind_field(start, value, self.identifier())
        if following.kind is TokenKind.WORD:
            # Only the name of a method may be a reserved word.
            self.take()
            method = self.take()
            self.restart()
            if isinstance(value, s.Name):
                arguments = self.method_arguments()
                return s.MethodCall(self.span_from(start), value, method.text, arguments)
            self.skip_method(start)
            return value
        if following.kind in STRINGS:
            self.take()
            span = self.token.span
            return self._dereferenced(start, value, Identifier(self.string(), span))
        if not self._gives_up_name():
            self.take()
            self.note("<identifier>", *(("<string>",) if self.undecided else ()))
            self.fail()
        self.restart()
        return None

    def _behind_field(self, start: int, value: s.Expression, field: Identifier) -> s.Expression:
        if self.token.word == "(":
            if isinstance(value, s.Name):
                return self.call_behind(start, value.parts, field)
            self.skip_method(start)
            return value
        value = self._dereferenced(start, value, field)
        if self.undecided and isinstance(value, s.Name) and start != self.undecided_primary:
            self.note_looked("'('", "'::'")
        return value

    def _gives_up_name(self) -> bool:
        following = self.ahead()
        return not self.undecided and (following.kind is TokenKind.END or following.word == "*")

    def _refuse_accessor(self, accessor: str, span: Span) -> None:
        self.refused(
            AnalysisError.unsupported(
                f"JSON accessors such as {accessor} are not supported by this engine",
                hint="Write json_query(x, 'lax $.name[*]' WITH ARRAY WRAPPER).",
            ).at(span)
        )

    def _dereferenced(self, start: int, value: s.Expression, field: Identifier) -> s.Expression:
        span = self.span_from(start)
        if isinstance(value, s.Name):
            return s.Name(span, (*value.parts, field))
        return s.Dereference(span, value, field)


def _nested(value: s.Expression, step: s.ChainStep) -> s.Expression:
    if step.operator == "||":
        return s.FunctionCall(
            step.span, "concat", (value, step.operand), operator_span=step.operator_span
        )
    return s.Binary(step.span, step.operator, value, step.operand, step.operator_span)


def _check_length(terms: int) -> None:
    if terms > LONGEST_CHAIN:
        raise too_deep()
