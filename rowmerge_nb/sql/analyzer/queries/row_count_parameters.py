"""Parameters of LIMIT, OFFSET and FETCH, which are computed before the analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.spi.types import BIGINT, UNKNOWN
from rowmerge_nb.sql.analyzer.context import Context
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.constancy import refuse_subqueries
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.expressions.typed_literals import decimal_literal
from rowmerge_nb.sql.analyzer.scope import Scope
from rowmerge_nb.sql.parser.parameters import ParameterPlace, parameter_places
from rowmerge_nb.sql.parser.statement_reader import parse_expression
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.tree.statements import Span
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import can_coerce

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from rowmerge_nb.spi.operations import Era
    from rowmerge_nb.sql.analyzer.analysis import AnalyzerCatalogs
    from rowmerge_nb.sql.tree.statements import Execute


def check_row_counts(text: str, values: Sequence[str]) -> None:
    """Check the literals (SQL texts) that are row counts."""
    for parameter, value in zip(parameter_places(text), values, strict=False):
        objection = (
            _objection(parse_expression(value), parameter.row_count)
            if parameter.row_count
            else None
        )
        if objection is not None:
            code, message = objection
            raise AnalysisError(message, code=code, hint=_HINT).at(parameter.span)


def computed_row_counts(
    text: str,
    statement: Execute,
    tables: Callable[[], AbstractContextManager[AnalyzerCatalogs]],
    era: Era,
) -> list[str]:
    values = [value.text for value in statement.values]
    for number, (parameter, value) in enumerate(
        zip(parameter_places(text), statement.values, strict=False)
    ):
        if not parameter.row_count:
            continue
        node = value.tree
        if isinstance(node, s.Literal):
            objection = _objection(node, parameter.row_count)
            # A row count must not be in parentheses.
            values[number] = node.value
        else:
            with tables() as open_tables:
                context = Context(statement.text, open_tables, era)
                count = _computed(context, node)
            objection = (
                _null(parameter.row_count, formatted(node, statement.text))
                if count is None
                else _beyond(parameter.row_count, count)
            )
            values[number] = str(count)
        if objection is not None:
            code, message = objection
            raise AnalysisError(message, code=code, hint=_HINT).at(
                _error_span(code, parameter, value.span, statement)
            )
    return values


def _error_span(code: str, parameter: ParameterPlace, value_span: Span, statement: Execute) -> Span:
    """Return the place of an error about a row count.

    Trino locates it in the executed text, except for types; for a prepared text, it is the value's
    place.
    """
    if statement.inner is None or code == "TYPE_MISMATCH":
        return value_span
    span, inner = (
        (parameter.clause if code == "NUMERIC_VALUE_OUT_OF_RANGE" else parameter.span),
        statement.inner.span,
    )
    # The literal is parsed separately, and its text begins after the quote.
    column = span.column + (inner.column if span.line == 1 else 0)
    return Span(0, span.end - span.start, inner.line + span.line - 1, column, value_span)


def _computed(context: Context, node: s.Expression) -> int | None:
    refuse_subqueries(context, node)
    value = ExpressionAnalyzer(context, Scope(()), ExpressionSite("EXECUTE")).analyze(node)
    if value.type != UNKNOWN and not can_coerce(value.type, BIGINT):
        context.error(
            "TYPE_MISMATCH", f"Cannot cast type {value.type} to bigint", node.error_span, _HINT
        )
    [result] = context.evaluate([e.Apply(BIGINT, "cast", (value,))], node.span)
    return None if result is None else int(result)


_HINT: Final = "Give a number."


def _beyond(clause: str, count: int) -> tuple[str, str] | None:
    fetch = clause == "FETCH FIRST"
    if count >= fetch:
        return None
    least = "positive" if fetch else "greater or equal to 0"
    return (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        f"{clause} row count must be {least} (actual value: {count})",
    )


def _null(clause: str, text: str) -> tuple[str, str]:
    return "INVALID_ARGUMENTS", f"Parameter value provided for {clause} is NULL: {text}"


def _objection(value: s.Expression, clause: str) -> tuple[str, str] | None:
    if (
        isinstance(value, s.Unary)
        and isinstance(value.operand, s.Literal)
        and value.operand.kind == "integer"
    ):
        return _beyond(clause, -int(value.operand.value))
    if not isinstance(value, s.Literal):
        return (
            "NOT_SUPPORTED",
            f"A parameter of {clause} that is not a number is not supported by this engine",
        )
    if value.kind == "null":
        return _null(clause, "null")
    return (
        None
        if value.kind == "integer"
        else ("TYPE_MISMATCH", f"Cannot cast type {_type_name(value)} to bigint")
    )


def _type_name(value: s.Literal) -> str:
    if value.kind == "string":
        return f"varchar({len(value.value)})"
    decimal = decimal_literal(value.value) if value.kind == "decimal" else None
    return (
        str(decimal.type)
        if decimal is not None
        else "varbinary"
        if value.kind == "binary"
        else value.kind
    )
