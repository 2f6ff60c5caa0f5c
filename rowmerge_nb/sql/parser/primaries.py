"""Parses operands."""

# The table of methods belongs to the class.
# ruff: noqa: SLF001

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import AnalysisError, Hint, ParseError
from rowmerge_nb.sql.parser.foreign_forms import cast_hint
from rowmerge_nb.sql.parser.json_calls import json_constructor, json_lookup
from rowmerge_nb.sql.parser.literals import LITERALS, STRINGS
from rowmerge_nb.sql.parser.tokens import TokenKind
from rowmerge_nb.sql.parser.window_reader import WindowReader
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.depth import DEEPEST, too_deep
from rowmerge_nb.sql.tree.statements import Identifier

if TYPE_CHECKING:
    from rowmerge_nb.sql.parser.tokens import Token

_ADDITION: Final = ("+", "-")
_WORDS: Final = frozenset(
    "CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP CURRENT_USER"  # noqa: SIM905
    " CURRENT_CATALOG CURRENT_SCHEMA CURRENT_PATH".split()
)
_CLOCKS: Final = frozenset({"CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
"""Functions with a precision."""
_NULLS: Final = ("'IGNORE'", "'RESPECT'")
_TYPES_OF_METHODS: Final = frozenset(["bigint", "char", "integer", "row", "varbinary", "varchar"])
"""Types of static methods; other names before two colons are columns to cast."""
_BEHIND_NAME: Final = ("'('", "'->'", "'::'", "'OVER'", "<string>")
"""Tokens after which a word is not a name."""
_UNITS: Final = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_QUERY_WORDS: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
_AFTER_QUERY: Final = frozenset(
    {")", "UNION", "EXCEPT", "INTERSECT", "ORDER", "OFFSET", "LIMIT", "FETCH"}
)


class PrimaryReader(WindowReader):
    def query(self) -> s.QueryNode:
        raise NotImplementedError

    def value(self) -> s.Expression:
        raise NotImplementedError

    def when_predicate(self, operand: s.Expression) -> s.Expression | None:
        raise NotImplementedError

    def values_rows(self) -> tuple[s.Expression, ...]:
        rows = [self._expression_or_run()]
        while self.accept(","):
            rows.append(self._expression_or_run())
        return tuple(rows)

    def listed(
        self, *, runs: bool = False, only_name: bool = False, subscript: bool = False
    ) -> tuple[s.Expression, ...]:
        read = self._expression_or_run if runs else self.expression
        first = self.index
        items = [read()]
        if only_name and isinstance(items[0], s.Name) and self.index == first + 1:
            self.note_looked(*_BEHIND_NAME, "'=>'")
        else:
            if subscript and not self.undecided and self.token.word not in {",", "]"}:
                self._subscripted()
            self._listed(items[0])
        while self.accept(","):
            if only_name:
                self.note("<identifier>")
            first = self.index
            items.append(read())
            if only_name and isinstance(items[-1], s.Name) and self.index == first + 1:
                self.note_looked("'=>'")
            self._listed(items[-1])
        return tuple(items)

    def _expression_or_run(self) -> s.Expression:
        return self.literals() if self.token.kind is TokenKind.LITERALS else self.expression()

    def _subscripted(self) -> None:
        """Refuse what follows a possible subscript, as ARRAY is not reserved."""
        if self.noted("<predicate>"):
            self.unnote("'AND'", "'OR'", "<predicate>")
            self.note("']'")
            self.fail()

    def _listed(self, item: s.Expression | None = None) -> None:
        # A signed number and ROW(...) are ambiguous, so Trino looks behind them.
        is_row = isinstance(item, s.RowConstructor) and item.span.of(self.text)[:3].upper() == "ROW"
        if not self.undecided and not is_row and self.signed_number != self.index - 1:
            self.restart()

    def query_follows(self, *, in_parenthesis: bool = False, behind: int = 0) -> bool:
        """Return whether a query begins here, behind any parentheses.

        Args:
            in_parenthesis: a parenthesis has been taken; ``((SELECT 1), 2)`` is a list then.
        """
        count = behind
        while self.ahead(count).word == "(":
            count += 1
            if count > DEEPEST:
                raise too_deep()
        token = self.ahead(count)
        if token.kind is not TokenKind.WORD or token.word not in _QUERY_WORDS:
            return False
        # ((SELECT 1) + 1) is an expression, ((SELECT 1) s JOIN t ...) a relation: the token behind
        # the inner query decides.
        inner = range(self.index + behind + (not in_parenthesis), self.index + count)
        behind_inner = (
            self.tokens[min(self.closing(index) + 1, len(self.tokens) - 1)] for index in inner
        )
        return all(
            following.kind is TokenKind.END or following.word in _AFTER_QUERY
            for following in behind_inner
        )

    # -- primaries

    def primary(self) -> s.Expression:
        start, token = self.index, self.token
        if token.kind in LITERALS:
            self.take()
            return self._literal(token)
        if token.kind in {TokenKind.BINARY, TokenKind.UNICODE_STRING}:
            return self._coded_literal()
        special = (
            SPECIAL.get(token.word) if token.kind in {TokenKind.WORD, TokenKind.SYMBOL} else None
        )
        if special is not None:
            expression = special(self, start)
            if expression is not None:
                return expression
        if not self.at_identifier():
            self.note("<expression>")
            self.fail()
        return self._named(start)

    def _parenthesised(self, start: int) -> s.Expression | None:
        if self._lambda_follows():
            return self._lambda(start)
        if self.query_follows():
            self.take()
            query = self.query()
            self.close(")")
            return s.ScalarQuery(self.span_from(start), query)
        self.take()
        if self.accept(")"):
            self.expect("->")
        self.note("<query>")
        self.undecided += 1
        items = [self.expression()]
        self.undecided -= 1
        names = isinstance(items[0], s.Name)
        while self.token.word == ",":
            self.take()
            if names:
                self.note("<identifier>")
            items.append(self.expression())
            names = names and isinstance(items[-1], s.Name)
            if names:
                self.note_looked(*_BEHIND_NAME)
            else:
                self._listed()
        self.note_looked("','")
        if len(items) == 1:
            self.close(")", is_decided=False)
        else:
            self.expect(")")
        if names and self.undecided and start != self.undecided_primary:
            self.note_looked("'->'")
        if len(items) == 1:
            return items[0]
        return s.RowConstructor(self.span_from(start), tuple(items))

    def _lambda_follows(self) -> bool:
        count = 1
        while self.at_identifier(self.ahead(count)) and self.ahead(count + 1).word == ",":
            count += 2
        if self.at_identifier(self.ahead(count)):
            count += 1
        return self.ahead(count).word == ")" and self.ahead(count + 1).word == "->"

    def _lambda(self, start: int) -> s.Expression:
        self.expect("(")
        parameters = () if self.token.word == ")" else self.identifiers()
        self.expect(")")
        self.expect("->")
        body = self.expression()
        return s.Lambda(self.span_from(start), parameters, body)

    def _null(self, start: int) -> s.Expression:
        self.take()
        return s.Literal(self.span_from(start), "null", "NULL")

    def _boolean(self, start: int) -> s.Expression:
        word = self.take().word
        return s.Literal(self.span_from(start), "boolean", word.lower())

    def _parameter(self, start: int) -> s.Expression:
        self.take()
        return s.ParameterMarker(self.span_from(start))

    def _special_word(self, start: int) -> s.Expression:
        word = self.take().word
        precision = None
        if word in _CLOCKS and self.accept("("):
            if self.token.kind is not TokenKind.INTEGER:
                self.note("<number>")
                self.fail()
            precision = int(self.take().text)
            self.expect(")")
        return s.Special(self.span_from(start), word, precision)

    def _case(self, start: int) -> s.Expression:
        self.take()
        operand = None
        if not self.at("WHEN"):
            operand = self.expression()
            if not isinstance(operand, s.Name):
                self._listed()
        if operand is not None and not self.undecided and self.token.word != "WHEN":
            self.restart()
        whens = []
        while self.accept("WHEN"):
            predicate = None if operand is None else self.when_predicate(operand)
            if predicate is None:
                if operand is not None:
                    self.note("<predicate>")
                condition = self.expression()
            else:
                condition = predicate
            self.close("THEN")
            whens.append((condition, self.expression()))
            self._listed()
        if not whens:
            self.fail()
        default = None
        if self.accept("ELSE"):
            default = self.expression()
            self.close("END")
        else:
            self.expect("END")
        return s.Case(self.span_from(start), operand, tuple(whens), default)

    def _cast(self, start: int) -> s.Expression | None:
        if self.ahead().word != "(" and self.token.word != "CAST":
            return None
        safe = self.take().word == "TRY_CAST"
        self.expect("(")
        if safe:
            # This may be a function named CAST.
            self.note("')'", "'*'", "'ALL'", "'DISTINCT'", "'ORDER'")
        value = self.expression()
        self.close("AS")
        target = self.type_name()
        self.close(")")
        return s.Cast(self.span_from(start), value, target, safe)

    def _exists(self, start: int) -> s.Expression:
        self.take()
        self.expect("(")
        query = self.query()
        self.close(")")
        return s.Exists(self.span_from(start), query)

    def _extract(self, start: int) -> s.Expression:
        self.take()
        self.expect("(")
        field = self.identifier()
        self.expect("FROM")
        value = self.value()
        self.close(")")
        if field.value.upper() not in s.EXTRACT_FIELDS:
            self.wrong(
                f"Invalid EXTRACT field {field.text}, valid fields are:"
                f" {', '.join(s.EXTRACT_FIELDS)}",
                self.span_from(start),
                f"Write to_unixtime({value.span.of(self.text)})."
                if field.value.upper() == "EPOCH"
                else None,
            )
        return s.Extract(self.span_from(start), field, value)

    def _array(self, start: int) -> s.Expression | None:
        if self.token.word != "[":
            if self.ahead().word != "[":
                return None
            self.take()
        bracket = self.index
        self.take()
        self.note("']'", *(("'*'",) if bracket > start else ()))
        items = () if self.token.word == "]" else self.listed(subscript=bracket > start)
        self.expect("]")
        return s.ArrayConstructor(self.span_from(start), items)

    def _row(self, start: int) -> s.Expression | None:
        if self.ahead().word != "(" or self.ahead(2).word == ")":
            return None
        self.take()
        self.take()
        undecided, depth = self.undecided, self.depth
        self.note("')'", "'*'", "'ALL'", "'DISTINCT'", "'ORDER'")
        names: list[str | None] = []
        try:
            self.undecided += 1  # it may be a call of a function of that name
            items = self._fields(names)
        except ParseError as error:
            if undecided or not error.is_mismatch or not self.failed_at(start + 2):
                self.note("')'", "'*'", "'ALL'", "'DISTINCT'", "'ORDER'")
                raise
            self.give_up(start)
            self.depth = depth
            self.undecided = undecided
            name = self.identifier()
            return s.Name(name.span, (name,))
        finally:
            self.undecided = undecided
        self.note("'ORDER'")
        self.expect(")")
        self.note("'FILTER'", "'OVER'", *_NULLS)
        return s.RowConstructor(self.span_from(start), items, tuple(names) if any(names) else ())

    def _fields(self, names: list[str | None]) -> tuple[s.Expression, ...]:
        items: list[s.Expression] = []
        while not items or self.accept(","):
            items.append(self.expression())
            self._listed(items[-1])
            self.note("<identifier>")
            is_named = self.accept("AS") is not None or self.at_identifier()
            is_quoted = self.token.kind is TokenKind.QUOTED
            name = self.identifier().text if is_named else None
            names.append(name if name is None or is_quoted else name.upper())
        return tuple(items)

    def _interval(self, start: int) -> s.Expression | None:
        following = self.ahead()
        if following.kind in STRINGS:
            # INTERVAL is not reserved: without a unit it is the name of a type.
            if self.ahead(4 if self.ahead(2).word == "UESCAPE" else 2).word not in _UNITS:
                return None
        elif following.word not in _ADDITION:
            return None
        elif self.ahead(2).kind not in STRINGS:
            # A following + or - shows that it is a name.
            self.index += 2
            self.note("<string>")
            self.index -= 2
            return None
        self.take()
        sign = self.accept(*_ADDITION)
        value = self.string()
        unit = self.expect(*_UNITS)
        first, last = unit.word, None
        self._skip_precision(unit, parts=2 if first == "SECOND" else 1)
        if self.token.word == "TO" and self.ahead().word in _UNITS:
            self.take()
            last = self.take().word
            self._skip_precision(unit, parts=1)
        return s.Interval(
            self.span_from(start), sign is not None and sign.word == "-", value, first, last
        )

    def _skip_precision(self, unit: Token, *, parts: int) -> None:
        """Parse the precision behind a unit of an interval, which Trino refuses."""
        if not self.accept("("):
            return
        for part in range(parts):
            if part and not self.accept(","):
                break
            if self.token.kind is not TokenKind.INTEGER:
                self.note("<integer>")
                self.fail()
            self.take()
        self.expect(")")
        self.refused(
            AnalysisError.unsupported(
                "Only INTERVAL literals with default precision are supported",
                hint=f"Write {unit.text} without a precision.",
            ).at(unit.span)
        )

    def _position(self, start: int) -> s.Expression | None:
        if self.ahead().word != "(":
            return None
        self.take()
        self.take()
        needle = self.value()
        if self.token.word == ",":
            self.index = start
            return self._call(start)
        self.note("')'", "','", "'AND'", "'OR'", "'ORDER'", "<predicate>")
        self.expect("IN")
        haystack = self.value()
        self.close(")")
        return s.FunctionCall(self.span_from(start), "strpos", (haystack, needle))

    def _overlay(self, start: int) -> s.Expression | None:
        if self.ahead().word != "(" or not self._has_word("PLACING", start + 2):
            return None
        self.take()
        self.take()
        arguments = [self.value()]
        self.expect("PLACING")
        arguments.append(self.value())
        self.expect("FROM")
        arguments.append(self.value())
        if self.accept("FOR"):
            arguments.append(self.value())
        self.close(")")
        return s.FunctionCall(self.span_from(start), "$overlay", tuple(arguments))

    def _substring(self, start: int) -> s.Expression | None:
        if self.ahead().word != "(" or not self._has_word("FROM", start + 2):
            return None
        self.take()
        self.take()
        arguments = [self.value()]
        self.note("')'", "','", "'AND'", "'OR'", "'ORDER'", "<predicate>")
        self.expect("FROM")
        arguments.append(self.value())
        if self.accept("FOR"):
            arguments.append(self.value())
        self.expect(")")
        return s.FunctionCall(self.span_from(start), "substr", tuple(arguments))

    def _has_word(self, searched_word: str, index: int, *, whole: bool = False) -> bool:
        """Return whether a word such as FROM precedes the end of an expression, or of the whole
        list.
        """
        depth = 0
        for position in range(index, len(self.tokens)):
            word = self.tokens[position].word
            if depth == 0 and (word == ")" or (word == "," and not whole)):
                return False
            if depth == 0 and word == searched_word:
                return self.tokens[position - 1].word != "DISTINCT"
            depth += (word in {"(", "["}) - (word in {")", "]"})
        return False

    def _trim(self, start: int) -> s.Expression:
        self.take()
        self.expect("(")
        side = self.accept("BOTH", "LEADING", "TRAILING")
        if side is None and self.token.word == "FROM":
            self.wrong(
                "The 'trim' function must have specification, char or both arguments when it takes"
                " FROM",
                self.span_from(start),
            )
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side.word if side else "", "trim")
        first = None if self.token.word == "FROM" else self.value()
        if self.accept("FROM"):
            value = self.value()
            arguments = (value,) if first is None else (value, first)
        else:
            arguments = (
                (first, self.value()) if first and not side and self.accept(",") else (first,)  # type: ignore[assignment]
            )
        self.expect(")")
        return s.FunctionCall(self.span_from(start), name, arguments)

    def _normalize(self, start: int) -> s.Expression:
        self.take()
        self.expect("(")
        value = self.value()
        form = self.expect("NFD", "NFC", "NFKD", "NFKC").word if self.accept(",") else "NFC"
        self.expect(")")
        span = self.span_from(start)
        return s.FunctionCall(span, "normalize", (value, s.Literal(span, "string", form)))

    def _listagg(self, start: int) -> s.Expression:
        self.take()
        self.expect("(")
        quantifier = self.accept("ALL", "DISTINCT")
        value = self.expression()
        separator: s.Expression = s.Literal(value.span, "string", "")
        if self.accept(","):
            if self.token.kind not in STRINGS:
                self.note("<string>")
                self.fail()
            separator = self.primary()
        truncated = self._truncated() if self.accept("ON") else ()
        self.expect(")")
        for word in ("WITHIN", "GROUP", "("):
            self.expect(word)
        if not self.at("ORDER"):
            self.fail()
        order_by = self.accept_order_by()
        self.close(")")
        condition, window = self._filter(), self.over()
        distinct = quantifier is not None and quantifier.word == "DISTINCT"
        arguments = (value, separator, *truncated)
        return s.FunctionCall(
            self.span_from(start),
            "listagg",
            arguments,
            distinct,
            order_by=order_by,
            filter=condition,
            window=window,
        )

    def _truncated(self) -> tuple[s.Expression, ...]:
        self.expect("OVERFLOW")
        if self.expect("ERROR", "TRUNCATE").word == "ERROR":
            return ()
        span = self.token.span
        if self.token.kind in STRINGS:
            end = self.primary()
        else:
            self.note("<string>")
            end = s.Literal(span, "string", "...")
        is_counted = self.expect("WITH", "WITHOUT").word == "WITH"
        self.expect("COUNT")
        return end, s.Literal(span, "boolean", str(is_counted).lower())

    def _grouping(self, start: int) -> s.Expression:
        self.take()
        self.expect("(")
        arguments: list[s.Expression] = []
        if self.token.word != ")":
            self.note("')'")
            arguments.append(self._plain_name())
            while self.accept(","):
                arguments.append(self._plain_name())
        self.expect(")")
        return s.FunctionCall(self.span_from(start), "grouping", tuple(arguments))

    def _plain_name(self) -> s.Name:
        start = self.index
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        return s.Name(self.span_from(start), tuple(parts))

    # -- names and calls

    def _named(self, start: int) -> s.Expression:
        following = self.ahead()
        if following.word == "->":
            parameter = self.identifier()
            self.take()
            body = self.expression()
            return s.Lambda(self.span_from(start), (parameter,), body)
        if following.kind in STRINGS and self.token.kind in {TokenKind.WORD, TokenKind.QUOTED}:
            type_name, text = self.identifier().value, self.string()
            return s.TypedLiteral(self.span_from(start), type_name, text)
        if (
            self.token.word == "DOUBLE"
            and following.word == "PRECISION"
            and self.ahead(2).kind in STRINGS
        ):
            self.take()
            self.take()
            text = self.string()
            return s.TypedLiteral(self.span_from(start), "double", text)
        if following.word == "(":
            return self._call(start)
        name = self.identifier()
        window = self.over()
        if window is not None:
            return s.Measure(self.span_from(start), name, window)
        if self.undecided and start != self.undecided_primary:
            self.note_looked(*_BEHIND_NAME)
        return s.Name(name.span, (name,))

    def _call(self, start: int) -> s.Expression:
        return self.call_behind(start, (), self.identifier())

    def call_behind(
        self, start: int, qualifier: tuple[Identifier, ...], function: Identifier
    ) -> s.Expression:
        name = function.value
        opening = self.index
        self.expect("(")
        star, distinct = False, False
        undecided, depth = self.undecided, self.depth
        arguments: tuple[s.Expression, ...] = ()
        if self.token.word == "*":
            self.take()
            star = True
        elif not self.at(")", "ORDER"):
            try:
                if self.at("DISTINCT", "ALL"):
                    distinct = self.take().word == "DISTINCT"
                    self.note("<identifier>")
                    arguments = self.listed()
                else:
                    arguments = self._arguments(function)
            except ParseError as error:
                if undecided or not error.is_mismatch or not self.failed_at(opening + 1):
                    raise
                self.give_up(opening)
                self.depth = depth
                return s.Name(self.span_from(start), (*qualifier, function))
        order_by = () if star else self.accept_order_by()
        self.expect(")")
        self.note("'FILTER'", "'OVER'", *(() if star else _NULLS))
        condition = self._filter()
        self.note("'OVER'", *(() if star else _NULLS))
        nulls = self._null_treatment()
        self.note("'OVER'")
        window = self.over()
        parts = tuple(part.value for part in qualifier)
        span = self.span_from(start)
        call = s.FunctionCall(
            span,
            name,
            arguments,
            distinct,
            star,
            order_by,
            condition,
            nulls,
            window,
            qualifier=parts,
        )
        if name in _FORMS and not qualifier and (wrong := _wrong_form(call)) is not None:
            self.wrong(wrong, span)
        return call

    def skip_method(self, start: int, *, static: bool = False) -> None:
        """Parse the arguments of ``value.method(...)`` or ``type::method(...)``, and refuse it."""
        method_index = self.index - 1
        method = self.tokens[method_index]
        self.method_arguments()
        hint: Hint
        if static and self.tokens[start].text.lower() in _TYPES_OF_METHODS:
            hint = f"Call a function: {self.text[method.span.start : self.span_from(start).end]}."
        elif static:
            hint = cast_hint(self.text, self.tokens, method_index - 1)
        else:
            operand = self.text[
                self.tokens[start].span.start : self.tokens[method_index - 2].span.end
            ]
            hint = f"Call a function: {method.text}({operand})."
        self.refused(
            AnalysisError.unsupported(
                f"Methods such as {method.text} are not supported by this engine",
                hint=hint,
            ).at(replace(self.span_from(start), about=method.span))
        )

    def method_arguments(self) -> tuple[s.Expression, ...]:
        self.expect("(")
        arguments: tuple[s.Expression, ...] = ()
        if self.token.word != ")":
            self.note("')'", "<identifier>")
            arguments = self.listed(only_name=True)
        self.expect(")")
        return arguments

    def _arguments(self, function: Identifier) -> tuple[s.Expression, ...]:
        self.note("'*'", "<identifier>")
        if self._has_word("=>", self.index, whole=True):
            return self._named_arguments(function)
        if (
            self.at_identifier()
            and self.ahead().word == "."
            and self.ahead(2).kind not in {*STRINGS, TokenKind.WORD}
            and not self.at_identifier(self.ahead(2))
        ):
            start = self.index
            self.take()
            self.take()
            if not self.accept("*"):
                self.note("<identifier>", "<string>")
                self.fail()
            self.refused(
                AnalysisError(
                    "label.* syntax is only supported as the only argument of row pattern count"
                    " function",
                    code="INVALID_FUNCTION_ARGUMENT",
                ).at(self.span_from(start))
            )
            self.restart()
            return ()
        return self.listed(only_name=True)

    def _named_arguments(self, function: Identifier) -> tuple[s.Expression, ...]:
        """Parse ``a, name => b``, and refuse it: no function here has names for its arguments."""
        error: AnalysisError | None = None
        arguments: list[s.Expression] = []
        while not arguments or self.accept(","):
            if self.at_identifier() and self.ahead().word == "=>":
                name = self.identifier()
                self.take()
                message = f"No argument named {name.value} for function {function.value}"
                span = name.span
                arguments.append(self.expression())
                error = error or AnalysisError(message, code="INVALID_FUNCTION_ARGUMENT").at(span)
                continue
            arguments.append(self.expression())
            if error is not None:
                error = AnalysisError(
                    "Positional arguments cannot follow named arguments",
                    code="INVALID_FUNCTION_ARGUMENT",
                ).at(arguments[-1].span)
        if error is not None:
            self.refused(error)
        return tuple(arguments)

    def _filter(self) -> s.Expression | None:
        if self.token.word != "FILTER" or self.ahead().word != "(":
            return None
        self.take()
        self.take()
        self.expect("WHERE")
        condition = self.expression()
        self.close(")")
        return condition

    def _null_treatment(self) -> str | None:
        if self.token.word in {"IGNORE", "RESPECT"} and self.ahead().word == "NULLS":
            word = self.take().word
            self.take()
            self.restart()
            if not self.at("OVER"):
                self.fail()
            return word
        return None


_FORMS: Final = {
    "if": (2, 3, "Invalid number of arguments for 'if' function"),
    "nullif": (2, 2, "Invalid number of arguments for 'nullif' function"),
    "coalesce": (2, None, "The 'coalesce' function must have at least two arguments"),
    "try": (1, 1, "The 'try' function must have exactly one argument"),
    "format": (2, None, "The 'format' function must have at least two arguments"),
}
"""Functions that are part of the grammar: the minimum and maximum number of arguments, and the
error of another number.
"""


def _wrong_form(call: s.FunctionCall) -> str | None:
    least, most, message = _FORMS[call.name]
    if len(call.arguments) < least or (most is not None and len(call.arguments) > most):
        return message
    parts = {
        "OVER clause": call.window is not None,
        "DISTINCT": call.distinct,
        "Null treatment clause": call.nulls is not None,
        "FILTER": call.filter is not None,
    }
    return next(
        (
            f"{part} not valid for '{call.name}' function"
            for part, is_there in parts.items()
            if is_there
        ),
        None,
    )


SPECIAL: Final = {
    "(": PrimaryReader._parenthesised,
    "?": PrimaryReader._parameter,
    "NULL": PrimaryReader._null,
    "TRUE": PrimaryReader._boolean,
    "FALSE": PrimaryReader._boolean,
    "CASE": PrimaryReader._case,
    "CAST": PrimaryReader._cast,
    "TRY_CAST": PrimaryReader._cast,
    "EXISTS": PrimaryReader._exists,
    "EXTRACT": PrimaryReader._extract,
    "ARRAY": PrimaryReader._array,
    "[": PrimaryReader._array,
    "ROW": PrimaryReader._row,
    "INTERVAL": PrimaryReader._interval,
    "POSITION": PrimaryReader._position,
    "OVERLAY": PrimaryReader._overlay,
    "SUBSTRING": PrimaryReader._substring,
    "TRIM": PrimaryReader._trim,
    "NORMALIZE": PrimaryReader._normalize,
    "GROUPING": PrimaryReader._grouping,
    "LISTAGG": PrimaryReader._listagg,
    **dict.fromkeys(("JSON_EXISTS", "JSON_VALUE", "JSON_QUERY"), json_lookup),
    **dict.fromkeys(("JSON_OBJECT", "JSON_ARRAY"), json_constructor),
    **dict.fromkeys(_WORDS, PrimaryReader._special_word),
}
"""Words with a special form, and its method; None means that the word is a name."""
