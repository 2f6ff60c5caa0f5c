"""The values of parameters that are numbers of rows, behind LIMIT, OFFSET and FETCH: they are looked at before they stand in the statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.errors import AnalysisError
from rowmerge_nb.sql.analyzer.literals import decimal_literal
from rowmerge_nb.sql.parser.parameters import parameter_places
from rowmerge_nb.sql.parser.statements import parse_expression
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.tree.statements import Span

__all__ = ["check_row_counts"]


def check_row_counts(text: str, values: Sequence[str], spans: Sequence[Span] | None = None) -> None:
    """Check the values of parameters that are numbers of rows.

    Args:
        text: the statement.
        values: the values of its parameters, as SQL.
        spans: where the values are written; None for the places of their parameters.

    Raises:
        AnalysisError: with Trino's code and message; NOT_SUPPORTED for what is no literal.

    >>> check_row_counts("SELECT ? LIMIT ?", ["'a'", "5"])
    >>> check_row_counts("SELECT ? LIMIT ?", ["'a'", "'b'"])
    Traceback (most recent call last):
    rowmerge_nb.errors.AnalysisError: TYPE_MISMATCH: line 1:16: Cannot cast type varchar(1) to bigint. Give a number.
    """
    for number, (place, value) in enumerate(zip(parameter_places(text), values, strict=False)):
        found = _objection(parse_expression(value), place.row_count) if place.row_count else None
        if found is not None:
            code, said = found
            raise AnalysisError(said, code=code, hint="Give a number.").at(spans[number] if spans is not None else place.span)


def _objection(value: s.Expression, clause: str) -> tuple[str, str] | None:
    """Give what is wrong with a number of rows: a code, and a message."""
    if isinstance(value, s.Unary) and isinstance(value.operand, s.Literal) and value.operand.kind == "integer":
        least = "positive" if clause == "FETCH FIRST" else "greater or equal to 0"
        said = f"{clause} row count must be {least} (actual value: {value.operator}{value.operand.value})"
        return "NUMERIC_VALUE_OUT_OF_RANGE", said
    if not isinstance(value, s.Literal):
        return "NOT_SUPPORTED", f"A parameter of {clause} that is not a literal is not supported by this engine"
    if value.kind == "null":
        return "INVALID_ARGUMENTS", f"Parameter value provided for {clause} is NULL: null"
    return None if value.kind == "integer" else ("TYPE_MISMATCH", f"Cannot cast type {_type_name(value)} to bigint")


def _type_name(value: s.Literal) -> str:
    if value.kind == "string":
        return f"varchar({len(value.value)})"
    decimal = decimal_literal(value.value) if value.kind == "decimal" else None
    return str(decimal.type) if decimal is not None else "varbinary" if value.kind == "binary" else value.kind
