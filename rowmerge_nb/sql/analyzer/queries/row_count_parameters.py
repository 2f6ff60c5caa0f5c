"""The values of parameters that are numbers of rows, behind LIMIT, OFFSET and FETCH: they are computed before they stand in the statement."""

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
from rowmerge_nb.sql.parser.parameters import Place, parameter_places
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
    from rowmerge_nb.sql.analyzer.analysis import Tables
    from rowmerge_nb.sql.tree.statements import Execute


def check_row_counts(text: str, values: Sequence[str]) -> None:
    """Check the literals that are numbers of rows in a statement.

    Args:
        text: the statement.
        values: the values of its parameters, as SQL.

    Raises:
        AnalysisError: with Trino's code and message, at the place of the parameter.

    >>> check_row_counts("SELECT ? LIMIT ?", ["'a'", "5"])
    >>> check_row_counts("SELECT ? LIMIT ?", ["'a'", "'b'"])
    Traceback (most recent call last):
    rowmerge_nb.base.errors.AnalysisError: TYPE_MISMATCH: line 1:16: Cannot cast type varchar(1) to bigint. Give a number.
    """
    for place, value in zip(parameter_places(text), values, strict=False):
        found = _objection(parse_expression(value), place.row_count) if place.row_count else None
        if found is not None:
            code, said = found
            raise AnalysisError(said, code=code, hint=_HINT).at(place.span)


def computed_row_counts(
    text: str, statement: Execute, tables: Callable[[], AbstractContextManager[Tables]], era: Era
) -> list[str]:
    """Return the values of EXECUTE as they stand in what it executes: numbers of rows computed, the others as they are written.

    Args:
        text: what is executed.
        statement: the EXECUTE.
        tables: where names are looked up; it is asked where there is something to compute.
        era: see `rowmerge_nb.sql.analyzer.statements.statement.analyze`.

    Raises:
        AnalysisError: with Trino's code and message.
    """
    values = [value.text for value in statement.values]
    for number, (place, value) in enumerate(zip(parameter_places(text), statement.values, strict=False)):
        if not place.row_count:
            continue
        written = value.tree
        if isinstance(written, s.Literal):
            found = _objection(written, place.row_count)
            # In parentheses it would be none in their places.
            values[number] = written.value
        else:
            with tables() as known:
                context = Context(statement.text, known, era)
                count = _computed(context, written)
            found = (
                _null(place.row_count, formatted(written, statement.text)) if count is None else _beyond(place.row_count, count)
            )
            values[number] = str(count)
        if found is not None:
            code, said = found
            raise AnalysisError(said, code=code, hint=_HINT).at(_shown(code, place, value.span, statement))
    return values


def _shown(code: str, place: Place, written: Span, statement: Execute) -> Span:
    """Return where an error about a number of rows is told: Trino names places in what is executed, but for types.

    Of what was prepared, which Trino writes anew, and the user does not see, it is the value's place.
    """
    if statement.inner is None or code == "TYPE_MISMATCH":
        return written
    span, inner = place.clause if code == "NUMERIC_VALUE_OUT_OF_RANGE" else place.span, statement.inner.span
    # The literal is read as a text of its own, which begins behind its quote.
    column = span.column + (inner.column if span.line == 1 else 0)
    return Span(0, span.end - span.start, inner.line + span.line - 1, column, written)


def _computed(context: Context, written: s.Expression) -> int | None:
    refuse_subqueries(context, written)
    value = ExpressionAnalyzer(context, Scope(()), ExpressionSite("EXECUTE")).analyze(written)
    if value.type != UNKNOWN and not can_coerce(value.type, BIGINT):
        context.error("TYPE_MISMATCH", f"Cannot cast type {value.type} to bigint", written.error_span, _HINT)
    [found] = context.evaluate([e.Apply(BIGINT, "cast", (value,))], written.span)
    return None if found is None else int(found)


_HINT: Final = "Give a number."


def _beyond(clause: str, count: int) -> tuple[str, str] | None:
    """Return what is wrong with a number of rows that is too small."""
    fetch = clause == "FETCH FIRST"
    if count >= fetch:
        return None
    least = "positive" if fetch else "greater or equal to 0"
    return "NUMERIC_VALUE_OUT_OF_RANGE", f"{clause} row count must be {least} (actual value: {count})"


def _null(clause: str, shown: str) -> tuple[str, str]:
    return "INVALID_ARGUMENTS", f"Parameter value provided for {clause} is NULL: {shown}"


def _objection(value: s.Expression, clause: str) -> tuple[str, str] | None:
    """Return what is wrong with a number of rows: a code, and a message."""
    if isinstance(value, s.Unary) and isinstance(value.operand, s.Literal) and value.operand.kind == "integer":
        return _beyond(clause, -int(value.operand.value))
    if not isinstance(value, s.Literal):
        return "NOT_SUPPORTED", f"A parameter of {clause} that is not a number is not supported by this engine"
    if value.kind == "null":
        return _null(clause, "null")
    return None if value.kind == "integer" else ("TYPE_MISMATCH", f"Cannot cast type {_type_name(value)} to bigint")


def _type_name(value: s.Literal) -> str:
    if value.kind == "string":
        return f"varchar({len(value.value)})"
    decimal = decimal_literal(value.value) if value.kind == "decimal" else None
    return str(decimal.type) if decimal is not None else "varbinary" if value.kind == "binary" else value.kind
