"""Parses literals and types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.parser.token_reader import TokenReader
from rowmerge_nb.sql.parser.tokens import TokenKind
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.literal_runs import LiteralRun
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from rowmerge_nb.sql.parser.tokens import Token

LITERALS: Final = {
    TokenKind.STRING: "string",
    TokenKind.INTEGER: "integer",
    TokenKind.DECIMAL: "decimal",
    TokenKind.DOUBLE: "double",
}
STRINGS: Final = frozenset({TokenKind.STRING, TokenKind.UNICODE_STRING})
_LARGEST_BIGINT: Final = 2**63 - 1
_LOWEST: Final = frozenset({2**31, 2**63})
"""The minimum of each type, whose sign belongs to the literal."""
_LAST_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


class SimpleReader(TokenReader):
    # -- literals

    def _literal(self, token: Token) -> s.Expression:
        literal_kind = LITERALS[token.kind]
        if literal_kind == "string":
            return s.Literal(token.span, literal_kind, token.string)
        digits = token.text.replace("_", "")
        if literal_kind == "integer":
            # Longer numbers exceed bigint anyway.
            number = _LARGEST_BIGINT + 1
            if len(digits) <= 70:
                number = int(digits, 0) if re.match(r"0[xXoObB]", digits) else int(digits)
            signed = self.index - 1 == self.signed_number
            if number > _LARGEST_BIGINT + signed:
                self._refuse_number(token.text, token.span)
                number = 0
            if signed and number in _LOWEST:
                return s.Literal(token.span, literal_kind, str(-number))
            return s.Literal(token.span, literal_kind, str(number))
        return s.Literal(token.span, literal_kind, digits)

    def string(self) -> str:
        if self.token.kind is TokenKind.STRING:
            return self.take().string
        literal = self._coded_literal()
        assert isinstance(literal, s.Literal)
        return literal.value

    def literals(self) -> s.Literals:
        token = self.take()
        run = LiteralRun(self.text, token.span)
        for index in run.long_integers():
            text, span = run.texts[index], run.span_of(index)
            digits = text.lstrip("+-")
            if int(digits.replace("_", "")) > _LARGEST_BIGINT + text.startswith("-"):
                start = span.end - len(digits)
                self._refuse_number(digits, Span.within(self.text, start, span.end))
        return s.Literals(token.span, run)

    def _refuse_number(self, text: str, span: Span) -> None:
        self.wrong(
            f"Invalid numeric literal: {text}", span, "Write DECIMAL '...' for a number this large."
        )

    def _coded_literal(self) -> s.Expression:
        token = self.take()
        if token.kind is TokenKind.BINARY:
            digits = re.sub(r"\s", "", token.string).upper()
            if not re.fullmatch(r"[0-9A-F]*", digits):
                self.wrong("Binary literal can only contain hexadecimal digits", token.span)
                digits = ""
            if len(digits) % 2:
                self.wrong("Binary literal must contain an even number of digits", token.span)
            return s.Literal(token.span, "binary", digits)
        escape = "\\"
        if self.accept("UESCAPE"):
            mark_token = self.take()
            if mark_token.kind is not TokenKind.STRING or len(mark_token.string) != 1:
                self.error("Invalid Unicode escape character", mark_token.span)
            escape = mark_token.string
        return s.Literal(token.span, "string", self._decode(token, escape))

    def _decode(self, token: Token, escape: str) -> str:
        mark = re.escape(escape)

        def decoded(match: re.Match[str]) -> str:
            if match.group(1):
                return escape
            long, short, other = match.group(2, 3, 4)
            digits = long or short or ""
            number = int(digits or "0", 16)
            message = None
            if other:
                message = f"Invalid hexadecimal digit: {other}"
            elif len(digits) < (4 if long is None else 6):
                message = f"Incomplete escape sequence: {digits}"
            elif number > _LAST_CODE_POINT:
                message = f"Invalid escaped character: {digits}"
            elif number in _SURROGATES:
                message = (
                    f"Invalid escaped character: {digits}. Escaped character is a surrogate. Use"
                    " '\\+123456' instead."
                )
            if message is not None:
                self.wrong(message, token.span)
                return ""
            return chr(number)

        # Errors include incomplete or invalid digits.
        pattern = f"{mark}(?:({mark})|\\+([0-9A-Fa-f]{{0,6}})|([0-9A-Fa-f]{{1,4}})|(.?))"
        return re.sub(pattern, decoded, token.string, flags=re.DOTALL)

    # -- types

    def type_name(self) -> s.TypeName:
        """Parse a type; ``array<t>``, ``map<k, v>`` and ``t array`` are old spellings."""
        start = self.index
        if not self.at_identifier():
            self.note("<type>")
            self.fail()
        word = self.identifier().value
        self.deeper()
        modern = ""
        if word == "double" and self.token.word == "PRECISION":
            self.take()
        elif word == "interval" and self.token.word in {"YEAR", "DAY"}:
            self.take()
            self.expect("TO")
            self.expect("MONTH", "SECOND")
        elif word in {"array", "map"} and self.token.word == "<":
            modern = self._between_angles(2 if word == "map" else 1, word)
        elif self.accept("("):
            self._type_arguments(is_row=word == "row")
        if word in {"time", "timestamp"} and self.accept("WITH", "WITHOUT"):
            self.expect("TIME")
            self.expect("ZONE")
        self.depth -= 1
        span = self.span_from(start)
        modern = modern or span.of(self.text)
        while self.accept("ARRAY"):
            modern, span = f"array({modern})", self.span_from(start)
        return s.TypeName(span, modern)

    def _between_angles(self, count: int, word: str) -> str:
        self.expect("<")
        arguments = [self.type_name().text]
        while len(arguments) < count:
            self.expect(",")
            arguments.append(self.type_name().text)
        self.expect(">")
        return f"{word}({', '.join(arguments)})"

    def _type_arguments(self, *, is_row: bool) -> None:
        first = True
        while True:
            if self.token.kind is TokenKind.INTEGER:
                self.take()
            else:
                self.note("<integer>" if first or not is_row else "<identifier>")
                interval = self.token.word == "INTERVAL" and self.ahead(2).word == "TO"
                has_name = (
                    is_row
                    and not interval
                    and self.at_identifier()
                    and self.at_identifier(self.ahead())
                )
                # "x array" is the old spelling of array(x), "x array(...)" a field.
                suffix = self.ahead().word == "ARRAY" and self.ahead(2).word not in {"(", "<"}
                if has_name and not suffix and self.ahead().word not in {"PRECISION", "WITH"}:
                    self.take()
                start = self.index
                self.type_name()
                if is_row and not has_name and self.index == start + 1:
                    self.note("<type>")  # what was read may have been the field's name
                elif not self.undecided:
                    self.restart()
            if not self.accept(","):
                break
            first = False
        self.expect(")")
