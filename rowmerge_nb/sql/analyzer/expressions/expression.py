"""Analyzes expressions: names, types and coercions, with Trino's errors."""

# The table of methods at the end belongs to the class.
# ruff: noqa: SLF001

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.spi.types import (
    BOOLEAN,
    UNKNOWN,
    Type,
    array_of,
    row_of,
)
from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
from rowmerge_nb.sql.analyzer.expressions.column_references import column_reference, dereference
from rowmerge_nb.sql.analyzer.expressions.conversion_notices import (
    note_double_text,
)
from rowmerge_nb.sql.analyzer.expressions.json_calls import json_lookup
from rowmerge_nb.sql.analyzer.expressions.json_constructors import json_constructor
from rowmerge_nb.sql.analyzer.expressions.literal_values import (
    interval_value,
    literal_of_type,
    literal_value,
    parameter_value,
    special_value,
)
from rowmerge_nb.sql.analyzer.expressions.moment_zones import at_time_zone
from rowmerge_nb.sql.analyzer.expressions.null_literals import (
    note_null_comparison,
)
from rowmerge_nb.sql.analyzer.expressions.operators import (
    between_limits,
    binary,
    in_list,
    is_distinct,
    is_null,
    is_truth,
    like,
    logical,
    negation,
    operator_chain,
    unary,
)
from rowmerge_nb.sql.analyzer.expressions.query_values import (
    exists,
    in_query,
    quantified_query,
    scalar_query,
)
from rowmerge_nb.sql.analyzer.expressions.subscripts import subscript
from rowmerge_nb.sql.functions.overloads import is_aggregate, is_window
from rowmerge_nb.sql.parser.type_names import read_type
from rowmerge_nb.sql.tree import json_expressions as j
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.cast_rules import can_cast, is_cast_supported, json_refusal
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    MOMENTS,
    cast_type,
    common_type,
    too_precise,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.sql.tree.statements import Span

_ASSIGNED: Final = re.compile(r"""(?i)(?:\bset|,)\s+[\w."]+\s*=\s*\Z""")
_BUILT_IN: Final = ((), ("system", "builtin"))
_TIMED: Final = frozenset({"timestamp", "timestamp with time zone", "time", INTERVAL_DAY.base})
_EXTRACTED_FROM: Final = {
    **dict.fromkeys(("year", "month"), MOMENTS | {INTERVAL_YEAR.base}),
    "day": MOMENTS | {INTERVAL_DAY.base},
    **dict.fromkeys(("hour", "minute", "second"), _TIMED),
    **dict.fromkeys(("timezone_hour", "timezone_minute"), frozenset({"timestamp with time zone"})),
}
"""The types of EXTRACT by field; other fields need a date or timestamp."""


class ExpressionAnalyzer(CallAnalyzer):
    """Converts expressions into typed ones, in one scope."""

    def analyze(self, node: s.Expression) -> e.Typed:
        if isinstance(node, s.Lambda):
            self.context.error(
                "TYPE_MISMATCH",
                "Lambda expression should always be used inside a function",
                node.span,
                "For a part of JSON, write json_extract(x, '$.name') instead of x -> 'name'.",
            )
        method = _METHODS.get(type(node))
        if method is None:
            self.refuse(f"{type(node).__name__} is not supported here", node)
        return method(self, node)

    def condition(self, node: s.Expression, message: str) -> e.Typed:
        """Analyze a clause's condition; ``message`` is formatted with a wrong type."""
        if self.site.judged_whole:
            self.row_filters = _terms(node)
        return self._truth(self.whole(node), node, message)

    def whole(self, node: s.Expression) -> e.Typed:
        """Analyze a clause's scalar expression; aggregates in it are reported before wrong names
        and types.
        """
        try:
            value = self.analyze(node)
        except AnalysisError:
            if self.site.judged_whole:
                self.judge_written(node)
            raise
        self.judge(node)
        return value

    def judge_written(self, node: s.Expression) -> None:
        self._not_scalars = [
            part
            for part in s.walk(node)
            if isinstance(part, s.Measure)
            or (
                isinstance(part, s.FunctionCall)
                and (
                    part.window
                    or (
                        part.qualifier in _BUILT_IN
                        and (
                            part.name == "grouping"
                            or is_aggregate(part.name)
                            or is_window(part.name)
                        )
                    )
                )
            )
        ]
        self.judge(node)

    def boolean(self, node: s.Expression, message: str) -> e.Typed:
        """Analyze a boolean; ``message`` is formatted with a wrong type."""
        return self._truth(self.analyze(node), node, message)

    def _truth(self, value: e.Typed, node: s.Expression, message: str) -> e.Typed:
        if value.type not in {BOOLEAN, UNKNOWN}:
            hint = (
                "Separate assignments by commas, not by AND."
                if _ASSIGNED.search(self.context.text[: node.span.start])
                else "Write a comparison, as a = 1."
            )
            self.context.error("TYPE_MISMATCH", message.format(value.type), node.error_span, hint)
        return self.coerce(value, BOOLEAN)

    def _unsupported(self, node: s.Unsupported) -> e.Typed:
        self.refuse(f"{node.what} is not supported by this engine", node)

    # -- conditional and constructed values

    def _case(self, node: s.Case) -> e.Typed:
        operand = self.analyze(node.operand) if node.operand else None
        if (
            operand is not None
            and not e.is_deterministic(operand)
            and any(isinstance(condition, s.WhenPredicate) for condition, _ in node.whens)
        ):
            self.context.refuse(
                "A CASE whose operand is not deterministic, with a comparison after"
                " WHEN, is not supported by this engine",
                node.error_span,
                "Compute the operand in a subquery first.",
            )
        conditions = [self._when(node, operand, condition) for condition, _ in node.whens]
        value_nodes = [value for _, value in node.whens] + ([node.default] if node.default else [])
        values = self.alike(
            [self.analyze(value) for value in value_nodes], value_nodes, "All CASE results"
        )
        arguments = [part for pair in zip(conditions, values, strict=False) for part in pair]
        return e.Apply(values[0].type, "case", (*arguments, *values[len(conditions) :]))

    def _when(self, node: s.Case, operand: e.Typed | None, condition: s.Expression) -> e.Typed:
        if operand is None or node.operand is None:
            return self.boolean(
                condition, "CASE WHEN clause must evaluate to a boolean (actual: {})"
            )
        if isinstance(condition, s.WhenPredicate):
            return self.analyze(condition.predicate)
        right = self.analyze(condition)
        note_null_comparison(self.context, "=", node.operand, condition, node.span)
        common = common_type(operand.type, right.type)
        if common is None:
            self.context.error(
                "TYPE_MISMATCH",
                f"CASE operand type does not match WHEN clause operand type: {operand.type} vs"
                f" {right.type}",
                condition.error_span,
            )
        return e.Apply(BOOLEAN, "=", self.comparable((operand, right), common))

    def _cast(self, node: s.Cast) -> e.Typed:
        try:
            target = read_type(node.type)
        except AnalysisError as error:
            span = replace(node.span, about=node.type.span)
            self.context.error(error.code, error.message, span, error.hint)
        if target == UNKNOWN:
            self.context.error("TYPE_MISMATCH", "UNKNOWN is not a valid type", node.span)
        value = self.analyze(node.value)
        if not can_cast(value.type, target):
            code, message = json_refusal(value.type, target) or ("TYPE_MISMATCH", "")
            if message:
                self.context.error(code, message, node.span)
            self.context.error("TYPE_MISMATCH", f"Cannot cast {value.type} to {target}", node.span)
        self.check_precision(value.type, target, node)
        target = cast_type(value.type, target)
        if value.type == target:
            return value
        if not is_cast_supported(value.type, target):
            self.refuse(
                f"The cast of {value.type} to {target} is not supported by this engine", node
            )
        note_double_text(self.context, node, value, target, self.scope.fields)
        return e.Apply(target, "cast", (value,), "try" if node.safe else None)

    def check_precision(self, source: Type, target: Type, node: s.Expression) -> None:
        """Refuse precisions above microseconds, since values are rounded."""
        fine = too_precise(target) or (
            too_precise(source) if target.base in {"varchar", "char", "json"} else None
        )
        if fine is not None:
            self.context.refuse(
                f"The type {fine} is not supported by this engine: its values have microseconds",
                node.span,
            )

    def _row(self, node: s.RowConstructor) -> e.Typed:
        items = tuple(self.analyze(item) for item in node.items)
        names = node.names or (None,) * len(items)
        fields = ((name, item.type) for name, item in zip(names, items, strict=True))
        return e.Apply(row_of(fields), "row", items)

    def _array(self, node: s.ArrayConstructor) -> e.Typed:
        items = self.alike(
            [self.analyze(item) for item in node.items], node.items, "All ARRAY elements"
        )
        return e.Apply(array_of(items[0].type if items else UNKNOWN), "array", tuple(items))

    def _extract(self, node: s.Extract) -> e.Typed:
        name = node.field.value
        value = self.analyze(node.value)
        if value.type.base not in _EXTRACTED_FROM.get(name, MOMENTS):
            self.context.error(
                "TYPE_MISMATCH",
                f"Cannot extract {node.field.text.upper()} from {value.type}",
                node.value.error_span,
            )
        return self.function(name, [value], node)

    def _at_time_zone(self, node: s.AtTimeZone) -> e.Typed:
        return at_time_zone(self, self.analyze(node.value), self.analyze(node.zone), node)

    # -- helpers

    def alike(
        self,
        parts: Sequence[e.Typed],
        nodes: Sequence[s.Expression],
        what: str,
        hint: str | None = None,
    ) -> list[e.Typed]:
        common = UNKNOWN
        for part, node in zip(parts, nodes, strict=True):
            wider = common_type(common, part.type)
            if wider is None:
                self.no_common_type(
                    what,
                    common,
                    part.type,
                    ", ".join(dict.fromkeys(str(p.type) for p in parts)),
                    node.error_span,
                    hint,
                )
            common = wider
        return [self.coerce(part, common) for part in parts]

    def no_common_type(
        self,
        what: str,
        common: Type,
        sql_type: Type,
        kinds: str,
        span: Span,
        hint: str | None = None,
    ) -> NoReturn:
        self.context.error(
            "TYPE_MISMATCH",
            f"{what} must be the same type or coercible to a common type. Cannot find common type"
            f" between {common} and {sql_type}, all types (without duplicates): [{kinds}]",
            span,
            hint,
        )


def _terms(node: s.Expression) -> tuple[s.Expression, ...]:
    if isinstance(node, s.Logical) and node.operator == "AND":
        return tuple(term for part in node.terms for term in _terms(part))
    return (node,)


_METHODS: Final[dict[type[s.Expression], Callable[[ExpressionAnalyzer, Any], e.Typed]]] = {
    s.Name: column_reference,
    s.Dereference: dereference,
    s.MethodCall: ExpressionAnalyzer.method_call,
    s.Literal: literal_value,
    s.TypedLiteral: literal_of_type,
    s.Interval: interval_value,
    s.Special: special_value,
    s.ParameterMarker: parameter_value,
    s.Unsupported: ExpressionAnalyzer._unsupported,
    s.Unary: unary,
    s.Binary: binary,
    s.Chain: operator_chain,
    s.Logical: logical,
    s.Not: negation,
    s.Between: between_limits,
    s.InList: in_list,
    s.InQuery: in_query,
    s.Like: like,
    s.IsNull: is_null,
    s.IsTruth: is_truth,
    s.IsDistinct: is_distinct,
    s.Quantified: quantified_query,
    s.Exists: exists,
    s.ScalarQuery: scalar_query,
    s.FunctionCall: ExpressionAnalyzer._call,
    s.Measure: ExpressionAnalyzer.measure,
    s.Cast: ExpressionAnalyzer._cast,
    s.Case: ExpressionAnalyzer._case,
    s.RowConstructor: ExpressionAnalyzer._row,
    s.ArrayConstructor: ExpressionAnalyzer._array,
    s.Subscript: subscript,
    s.AtTimeZone: ExpressionAnalyzer._at_time_zone,
    s.Extract: ExpressionAnalyzer._extract,
    j.JsonLookup: json_lookup,
    j.JsonConstructor: json_constructor,
}
