"""Parses inline functions: ``WITH FUNCTION f(x integer) RETURNS integer RETURN x + 1``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.sql.parser.query_reader import QueryReader
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.parser.tokens import Token
    from rowmerge_nb.sql.tree.statements import Identifier

_ROUTINES: Final = frozenset(
    {"BEGIN", "CASE", "IF", "ITERATE", "LEAVE", "LOOP", "REPEAT", "SET", "WHILE"}
)
_CHARACTERISTICS: Final = frozenset(
    {"AS", "CALLED", "COMMENT", "DETERMINISTIC", "LANGUAGE", "NOT", "RETURNS", "SECURITY", "WITH"}
)


class FunctionReader(QueryReader):
    """Parses functions that are defined before a query."""

    def query_of_statement(self) -> s.QueryNode:
        if not self.at_functions():
            return self.query()
        self.take()
        functions = [self._function()]
        while self.accept(","):
            functions.append(self._function())
        query = self.query()
        return replace(query, functions=tuple(functions))

    def at_functions(self) -> bool:
        """Return whether WITH FUNCTION begins here, rather than a query of that name."""
        return (
            self.token.word == "WITH"
            and self.ahead().word == "FUNCTION"
            and self.at_identifier(self.ahead(2))
        )

    def _function(self) -> s.FunctionDefinition:
        start = self.index
        first = self.expect("FUNCTION")
        name = self.table_name()
        if len(name.parts) > 1:
            self.error(
                "Inline function names cannot be qualified:"
                f" {'.'.join(part.value for part in name.parts)}",
                first.span,
            )
        self.expect("(")
        parameters: list[tuple[Identifier, s.TypeName]] = []
        if not self.accept(")"):
            parameters.append(self._function_parameter())
            while self.accept(","):
                parameters.append(self._function_parameter())
            self.close(")")
        self.expect("RETURNS")
        returns = self.index
        return_type = self.type_name()
        self.unnote("'('", "'ARRAY'")
        characteristics = self._characteristics()
        if self.token.word in _ROUTINES:
            raise ParseError.unsupported(
                f"A function of statements ({self.token.word}) is not supported by this engine",
                hint="Write what it gives as one expression: RETURN CASE WHEN ... END.",
            ).at(self.token.span)
        self.note(*(f"'{word}'" for word in (*_ROUTINES, *_CHARACTERISTICS)), "<identifier>")
        self.expect("RETURN")
        body = self.value()
        span, returns_span = self.span_from(start), self.tokens[returns - 1].span
        strict, deterministic = "RETURNS" in characteristics, "NOT" not in characteristics
        return s.FunctionDefinition(
            span,
            name.parts[0],
            tuple(parameters),
            return_type,
            returns_span,
            body,
            strict=strict,
            deterministic=deterministic,
        )

    def _function_parameter(self) -> tuple[Identifier, s.TypeName]:
        span = self.token.span
        if self.ahead().word in {",", ")"} or not self.at_identifier(self.ahead()):
            self.type_name()
            raise ParseError.invalid(
                "Function parameters must have a name",
                hint="Write f(x integer).",
            ).at(span)
        return self.identifier(), self.type_name()

    def _characteristics(self) -> set[str]:
        characteristics: set[str] = set()
        while self.token.word in _CHARACTERISTICS:
            start = self.token
            what = _WHAT.get(start.word, start.word.lower())
            if what in {_WHAT.get(word, word.lower()) for word in characteristics}:
                self.error(f"Multiple {what} clauses specified", start.span)
            characteristics.add(start.word)
            self._characteristic(start)
        return characteristics

    def _characteristic(self, start: Token) -> None:
        self.take()
        if start.word == "LANGUAGE":
            language = self.identifier()
            if language.value != "sql":
                self.error(
                    "Only functions using language 'SQL' may be defined using SQL", self.token.span
                )
        elif start.word == "NOT":
            self.expect("DETERMINISTIC")
        elif start.word in {"RETURNS", "CALLED"}:
            for word in ("NULL", "ON", "NULL", "INPUT")[start.word == "CALLED" :]:
                self.expect(word)
        elif start.word == "COMMENT":
            self.string()
        elif start.word == "SECURITY":
            self.expect("DEFINER", "INVOKER")
            raise ParseError.unsupported(
                "Security mode not supported for inline functions",
                hint="Leave it out.",
            ).at(start.span)
        elif start.word != "DETERMINISTIC":
            raise ParseError.unsupported(
                f"{start.word} of a function is not supported by this engine",
                hint="Leave it out.",
            ).at(start.span)


_WHAT: Final = {"NOT": "deterministic", "RETURNS": "null-call", "CALLED": "null-call"}
"""The clause of each word; each clause occurs at most once."""
