"""Analyzes literals, and words that have a value."""

# Context.error and refuse never return.
# ruff: noqa: RET503

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BIGINT, DATE, INTEGER, NUMBER, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.analyzer.expressions.comparison_hints import date_hint
from rowmerge_nb.sql.analyzer.expressions.typed_literals import (
    decimal_literal,
    far_moment,
    interval_literal,
    interval_refusal,
    is_long_interval,
    is_number,
    moment_constant,
    typed_literal,
)
from rowmerge_nb.sql.functions.foreign_names import literal_hint
from rowmerge_nb.sql.parser.type_names import ABSENT_TYPES
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import cast_type, varchar_of

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer

_LARGEST_INTEGER: Final = 2**31 - 1
_CLOCKS: Final = {
    "CURRENT_TIMESTAMP": "timestamp with time zone",
    "LOCALTIMESTAMP": "timestamp",
    "LOCALTIME": "time",
}
_DEFAULTS: Final = ("CURRENT_CATALOG", "CURRENT_SCHEMA")


def literal_value(analyzer: ExpressionAnalyzer, node: s.Literal) -> e.Typed:
    if node.kind == "null":
        return e.Constant(UNKNOWN, None)
    if node.kind == "string":
        return e.Constant(varchar_of(len(node.value)), node.value)
    if node.kind == "integer":
        return e.Constant(
            INTEGER if ~_LARGEST_INTEGER <= int(node.value) <= _LARGEST_INTEGER else BIGINT,
            node.value,
        )
    if node.kind == "decimal":
        literal = decimal_literal(node.value)
        if literal is None:
            analyzer.context.error(
                "INVALID_LITERAL", f"Invalid decimal literal: {node.value}", node.span
            )
        return literal
    return e.Constant(Type(node.kind if node.kind != "binary" else "varbinary"), node.value)


def literal_of_type(analyzer: ExpressionAnalyzer, node: s.TypedLiteral) -> e.Typed:
    if node.type == "number" and is_number(node.value):
        return e.Apply(NUMBER, "cast", (e.Constant(VARCHAR, node.value),))
    try:
        literal = None if node.type == "number" else typed_literal(node.type, node.value)
    except KeyError:
        if node.type in ABSENT_TYPES:
            analyzer.refuse(f"The type {node.type} is not supported by this engine", node)
        analyzer.context.error(
            "TYPE_NOT_FOUND",
            f"Unknown type: {node.type}",
            node.span,
            literal_hint(str(node.type)),
        )
    if literal is None:
        far = far_moment(node.type, node.value)
        if far is not None:
            # Python has no such value, but the cast of its text has.
            return e.Apply(cast_type(VARCHAR, far), "cast", (e.Constant(VARCHAR, node.value),))
        if (
            node.type == "time"
            and typed_literal("timestamp", f"2001-01-01 {node.value}") is not None
        ):
            analyzer.refuse("The type time with time zone is not supported by this engine", node)
        analyzer.context.error(
            "INVALID_LITERAL",
            f"'{node.value}' is not a valid {node.type.upper()} literal",
            node.span,
            date_hint(node.value) if node.type == "date" else None,
        )
    return literal


def interval_value(analyzer: ExpressionAnalyzer, node: s.Interval) -> e.Typed:
    literal = interval_literal(node)
    if literal is None:
        analyzer.context.error("INVALID_LITERAL", interval_refusal(node), node.span)
    if is_long_interval(literal):
        analyzer.refuse(
            "An interval of more than 106751991 days is not supported by this engine: it counts"
            " microseconds",
            node,
        )
    return literal


def special_value(analyzer: ExpressionAnalyzer, node: s.Special) -> e.Typed:
    if node.word == "CURRENT_DATE":
        return moment_constant(DATE, analyzer.context.now)
    if node.word in _CLOCKS:
        clock_type = Type(_CLOCKS[node.word], (3 if node.precision is None else node.precision,))
        analyzer.check_precision(clock_type, clock_type, node)
        return moment_constant(clock_type, analyzer.context.now)
    if node.word in _DEFAULTS:
        name = analyzer.context.tables.default()[_DEFAULTS.index(node.word)]
        return e.Constant(VARCHAR, name)
    if node.word == "CURRENT_USER":
        return e.Constant(VARCHAR, analyzer.context.tables.user())
    if node.word == "CURRENT_PATH":
        # Functions have no schema.
        return e.Constant(VARCHAR, "")
    analyzer.refuse(f"{node.word} is not supported by this engine", node)


def parameter_value(analyzer: ExpressionAnalyzer, node: s.ParameterMarker) -> e.Typed:
    if analyzer.context.parameters is not None:
        return e.Parameter(UNKNOWN, None, node.span.start)
    analyzer.context.error(
        "INVALID_PARAMETER_USAGE",
        "Incorrect number of parameters: expected 1 but found 0",
        analyzer.context.statement_span(),
    )
