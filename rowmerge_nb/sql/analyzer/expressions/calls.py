"""Analyzes calls: scalar functions, aggregates, window functions, lambdas."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.spi.types import INTEGER, UNKNOWN, Type
from rowmerge_nb.sql.analyzer.expressions.argument_hints import conversion_hint
from rowmerge_nb.sql.analyzer.expressions.call_checks import checked
from rowmerge_nb.sql.analyzer.expressions.inline_functions import call_inline
from rowmerge_nb.sql.analyzer.expressions.moment_calls import moment_function
from rowmerge_nb.sql.analyzer.expressions.special_forms import SPECIAL_FORMS
from rowmerge_nb.sql.analyzer.queries.named_queries import NamedQueries
from rowmerge_nb.sql.analyzer.queries.windows import (
    DISTINCT_OVER_WINDOWS,
    analyzed_window,
    check_only_aggregates,
    check_window,
    resolved_window,
)
from rowmerge_nb.sql.functions import overloads as f
from rowmerge_nb.sql.functions.foreign_names import arguments_hint, function_hint
from rowmerge_nb.sql.functions.refused import REFUSED
from rowmerge_nb.sql.functions.signatures import candidates, is_absent, lambda_parameters, resolve
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    can_coerce,
    common_type,
    has_map,
    instant,
    is_orderable,
    is_text,
    listed_types,
    without_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.queries.relation import QueryResult
    from rowmerge_nb.sql.analyzer.scope import Scope
    from rowmerge_nb.sql.functions.signatures import Resolved
    from rowmerge_nb.sql.tree.statements import Span

T = TypeVar("T")

_BUILTIN: Final = ("system", "builtin")
_AGGREGATION: Final = "aggregation"
_ARGUMENTS: Final = "window function arguments"
_FILTER: Final = "Filter expression must evaluate to a boolean (actual: {})"
_ORDERED: Final = frozenset({"array_agg", "listagg", "map_agg", "multimap_agg"})
"""Aggregates that depend on the order of their rows."""
_STATES: Final = frozenset(
    [
        *(
            "boolean",
            "tinyint",
            "smallint",
            "integer",
            "bigint",
            "real",
            "double",
            "decimal",
            "varchar",
            "char",
            "varbinary",
        ),
        *("date", "time", "timestamp", "interval day to second", "interval year to month"),
    ]
)
"""The possible state types of reduce_agg."""
_LAMBDA: Final = Type("function")
_WITHOUT_SCHEMA: Final = frozenset({*SPECIAL_FORMS, "grouping"})
"""Calls that are not functions."""
_UNCHECKED_SITES: Final = frozenset(
    {
        *("UPDATE SET", "MERGE ON clause", "WHEN condition of MERGE", "MERGE SET"),
        *("MERGE INSERT VALUES", "VALUES"),
    }
)
"""Where Trino's analyzer accepts aggregates, so that other errors come first; its planner fails."""


@dataclass(frozen=True)
class ExpressionSite:
    """The place of an expression, and what is allowed there.

    Args:
        name: the clause's name for errors, for instance ``"WHERE clause"``.
        judged_whole: forbidden calls are reported after the whole expression, at its place.
    """

    name: str
    aggregates: bool = False
    windows: bool = False
    judged_whole: bool = False
    functions: Mapping[str, e.Typed] = field(default_factory=dict)


class CallAnalyzer:
    """The part of the expression analyzer for calls.

    ``prefers_target`` returns whether an ambiguous bare name is the target's column;
    ``named_queries`` are the visible queries of WITH.
    """

    def __init__(
        self,
        context: Context,
        scope: Scope,
        site: ExpressionSite,
        *,
        prefers_target: Callable[[str], bool] | None = None,
        named_queries: NamedQueries | None = None,
    ) -> None:
        self.context = context
        self.scope = scope
        self.site = site
        self.prefers_target = prefers_target
        self.named_queries = NamedQueries() if named_queries is None else named_queries
        self.variables: dict[str, e.Typed] = {}
        self.windows: dict[str, s.Window] = {}
        self.outputs: dict[str, e.Typed | None] = {}
        self.select: Span | None = None
        self._around: tuple[str, s.FunctionCall] | None = None
        self._not_scalars: list[s.FunctionCall | s.Measure] = []
        self.row_filters: tuple[s.Expression, ...] = ()

    def analyze(self, node: s.Expression) -> e.Typed:
        raise NotImplementedError

    def alike(
        self, parts: Sequence[e.Typed], nodes: Sequence[s.Expression], what: str
    ) -> list[e.Typed]:
        """Coerce expressions to their common type; see `ExpressionAnalyzer`."""
        raise NotImplementedError

    def boolean(self, node: s.Expression, message: str) -> e.Typed:
        raise NotImplementedError

    def refuse(self, message: str, node: s.Expression) -> NoReturn:
        self.context.refuse(message, node.error_span)

    def check_reflected(self, value: e.Typed, node: s.Expression, where: str) -> None:
        """Refuse Java functions where Spark allows only deterministic ones."""
        name = e.reflected_function(value)
        if name is not None:
            self.context.refuse(
                f"{name} within {where} is not supported by this engine: Spark does"
                " not know that it is deterministic",
                node.error_span,
                "Compute it in a subquery in FROM, and use its column.",
            )

    def coerce(self, value: e.Typed, target: Type) -> e.Typed:
        if value.type == target:
            return value
        self.context.note_parameter(value, target)
        if isinstance(value, e.Constant) and value.value is None:
            return e.Constant(target, None)
        return e.Apply(target, "cast", (value,))

    def comparable(self, values: Iterable[e.Typed], common: Type) -> tuple[e.Typed, ...]:
        """Coerce values for comparison; zones do not matter."""
        return tuple(self.coerce(value, instant(common)) for value in values)

    def subquery(self, query: s.QueryNode) -> QueryResult:
        """Analyze a subquery, whose names may refer to this scope."""
        from rowmerge_nb.sql.analyzer.queries.query import QueryAnalyzer

        first = len(self.context.origins)
        result = QueryAnalyzer(self.context, self.scope, self.named_queries).query(query)
        return replace(result, origins=range(first, len(self.context.origins)))

    # -- calls

    def _call(self, node: s.FunctionCall) -> e.Typed:
        if node.qualifier and (node.qualifier != _BUILTIN or node.name in _WITHOUT_SCHEMA):
            self._refuse_method(node)
            self._check_arguments(node.arguments)
            self._no_distinct(node)
            self.context.error(
                "FUNCTION_NOT_FOUND",
                f"Function '{'.'.join((*node.qualifier, node.name))}' not registered",
                node.error_span,
                "Functions have no catalog or schema here: write only the name, or"
                " system.builtin before it.",
            )
        if node.name == "grouping":
            return self._grouping(node)
        special = SPECIAL_FORMS.get(node.name)
        if special is not None:
            return self._special_form(node, special)
        inline = call_inline(self, node)
        if inline is not None:
            return inline
        if node.name in self.site.functions and not node.arguments and node.window is None:
            return self.site.functions[node.name]
        if node.window is not None:
            return self._windowed(node)
        if f.is_aggregate(node.name):
            return self._aggregate(node)
        self._no_distinct(node)
        if node.filter is not None or node.order_by:
            return self._not_aggregate(node)
        if f.is_window(node.name):
            if self.site.judged_whole:
                self._not_scalars.append(node)
                self._arguments(node)
                return e.Constant(UNKNOWN, None)
            self._no_window(node)
            # Errors of the call itself come first.
            self.function(node.name, self._arguments(node), node)
            self.context.error(
                "MISSING_OVER",
                f"Window function system.builtin.{node.name} requires an OVER clause",
                node.error_span,
            )
        return self.function(node.name, self._arguments(node), node)

    def _special_form(
        self, node: s.FunctionCall, analyze: Callable[[CallAnalyzer, s.FunctionCall], e.Typed]
    ) -> e.Typed:
        self._no_distinct(node)
        value = analyze(self, node)
        if node.filter is not None or node.order_by:
            self._only_of_aggregates(node)
        if node.window is not None:
            self._not_window(node)
        return value

    def _no_distinct(self, node: s.FunctionCall) -> None:
        if node.distinct:
            self.context.error(
                "FUNCTION_NOT_AGGREGATE",
                "DISTINCT is not supported for non-aggregation functions",
                node.error_span,
            )

    @property
    def inside_aggregate(self) -> bool:
        return self._around is not None and self._around[0] == _AGGREGATION

    def _no_window(self, node: s.FunctionCall) -> None:
        if self.site.name == "HAVING clause":
            self.context.error(
                "NESTED_WINDOW",
                "HAVING clause cannot contain window functions or row pattern measures",
                node.error_span,
            )

    def _not_aggregate(self, node: s.FunctionCall) -> NoReturn:
        if not self.site.aggregates:
            self._not_scalar(node)
        if node.filter is not None:
            self.boolean(node.filter, _FILTER)
        self.function(node.name, self._arguments(node), node)
        self._only_of_aggregates(node)

    def _only_of_aggregates(self, node: s.FunctionCall) -> NoReturn:
        clause = "Filter" if node.filter is not None else "ORDER BY"
        self.context.error(
            "FUNCTION_NOT_AGGREGATE",
            f"{clause} is only valid for aggregation functions",
            node.error_span,
        )

    def _arguments(self, node: s.FunctionCall) -> list[e.Typed]:
        """Analyze the arguments; lambdas last, since others determine their parameter types."""
        try:
            values = [
                e.Constant(_LAMBDA, None) if isinstance(a, s.Lambda) else self.analyze(a)
                for a in node.arguments
            ]
        except AnalysisError as error:
            # Trino reports the arguments first: `day` of dateadd(day, 1, x) is a column for it.
            if error.code in {"COLUMN_NOT_FOUND", "FUNCTION_NOT_FOUND"} and not f.signatures(
                node.name
            ):
                error.hint = function_hint(node.name) or error.hint
            raise
        for index, argument in enumerate(node.arguments):
            if isinstance(argument, s.Lambda):
                parameter_types = lambda_parameters(node.name, [v.type for v in values], index)
                if parameter_types is None:
                    self.not_found(node.name, values, node)
                values[index] = self._lambda(argument, parameter_types)
                if node.name in {"reduce", "reduce_agg"} and index == 2:
                    self._widen(values, argument, parameter_types)
        return checked(self, node, values)

    def _widen(
        self, values: list[e.Typed], node: s.Lambda, parameter_types: Sequence[Type]
    ) -> None:
        state, result_type = values[1].type, values[2].type.parameters[-1]
        common = common_type(state, result_type)
        if common is not None and not can_coerce(result_type, state):
            values[1] = self.coerce(values[1], common)
            values[2] = self._lambda(node, [common, *parameter_types[1:]])

    def _lambda(self, node: s.Lambda, parameter_types: Sequence[Type]) -> e.Typed:
        if len(parameter_types) != len(node.parameters):
            self.context.error(
                "INVALID_PARAMETER_USAGE",
                f"Expected a lambda that takes {len(parameter_types)} argument(s) but got"
                f" {len(node.parameters)}",
                node.error_span,
            )
        before = self.variables
        names = [self.context.symbols.new(parameter.value) for parameter in node.parameters]
        variables = {
            p.value: e.Variable(k, n)
            for p, k, n in zip(node.parameters, parameter_types, names, strict=True)
        }
        site, pending = self.site, self._not_scalars
        self.variables = {**before, **variables}
        self.site = replace(site, name="Lambda expression", judged_whole=True)
        self._not_scalars = []
        body = self.analyze(node.body)
        self.judge(node.body)
        self.variables, self.site, self._not_scalars = before, site, pending
        return e.Function(Type("function", (body.type,)), tuple(names), body)

    def function(self, name: str, values: Sequence[e.Typed], node: s.Expression) -> e.Typed:
        special = moment_function(self, name, values, node)
        if special is not None:
            return special
        resolved = resolve(name, [value.type for value in values])
        if resolved is None:
            self.not_found(name, values, node)
        if several := candidates(name, [value.type for value in values]):
            self.ambiguous(node, several)
        if resolved.overload.refusal:
            self._refuse_signature(resolved, node)
            return e.Apply(resolved.result, "function", tuple(values), resolved.overload)
        arguments = tuple(
            self._argument(value, sql_type)
            for value, sql_type in zip(values, resolved.arguments, strict=True)
        )
        return e.Apply(resolved.result, "function", arguments, resolved.overload)

    def _refuse_method(self, node: s.FunctionCall) -> None:
        """Refuse a function as the method of a column of text: ``name.length()``."""
        match = self.scope.find(node.qualifier) if len(node.qualifier) == 1 else None
        if (
            match is not None
            and match.used == 1
            and len(match.fields) == 1
            and is_text(match.fields[0].type)
            and f.overloads(node.name)
        ):
            self.context.refuse(
                f"Methods such as {node.name} are not supported by this engine",
                node.error_span,
                f"Call a function: {node.name}({node.qualifier[0]}).",
            )

    def method_call(self, node: s.MethodCall) -> NoReturn:
        self.analyze(node.receiver)
        self._check_arguments(node.arguments)
        receiver = ".".join(part.value for part in node.receiver.parts)
        self.context.refuse(
            f"Methods such as {node.name} are not supported by this engine",
            node.span,
            f"Call a function: {node.name}({receiver}).",
        )

    def _check_arguments(self, arguments: Sequence[s.Expression]) -> None:
        """Analyze arguments of no function: lambdas have no types there."""
        for argument in arguments:
            if not isinstance(argument, s.Lambda):
                self.analyze(argument)

    def _refuse_signature(self, resolved: Resolved, node: s.Expression) -> None:
        overload = resolved.overload
        subject = f"The function {overload.name}" if overload.name in REFUSED else overload.shown
        error = AnalysisError.unsupported(
            f"{subject} is not supported by this engine: {overload.refusal}"
        ).at(node.error_span)
        # The result's type is unknown to the rest of the analysis.
        if not self.context.refuse_later(error) or is_absent(resolved.result):
            raise error

    def _argument(self, value: e.Typed, parameter_type: Type) -> e.Typed:
        if isinstance(value, e.Function):
            return self._lambda_result(value, parameter_type)
        # Spark's functions of arrays and maps take no untyped NULL.
        return self.coerce(
            value, without_unknown(parameter_type) if parameter_type != UNKNOWN else parameter_type
        )

    def _lambda_result(self, value: e.Function, parameter_type: Type) -> e.Typed:
        return e.Function(
            parameter_type, value.parameters, self.coerce(value.body, parameter_type.parameters[-1])
        )

    def not_found(self, name: str, values: Sequence[e.Typed], node: s.Expression) -> NoReturn:
        if any("orderable" in overload.constraints for overload in f.overloads(name)):
            self.context.refuse_number((value.type for value in values), node.error_span)
        expected = f.signatures(name)
        if not expected:
            calls = dict.fromkeys(re.findall(r"\b(\w+) *\(", self.context.text))
            hint = function_hint(
                name,
                [call for call in calls if call.lower() != name and not f.signatures(call.lower())],
            ) or did_you_mean(name, (*f.known(), *_WITHOUT_SCHEMA))
            span = node.error_span
            about = (
                replace(span, end=span.start + len(name))
                if span.of(self.context.text).lower().startswith(name)
                else None
            )
            self.context.error(
                "FUNCTION_NOT_FOUND",
                f"Function '{name}' not registered",
                replace(span, about=about),
                hint,
            )
        self.context.error(
            "FUNCTION_NOT_FOUND",
            f"Unexpected parameters ({listed_types(value.type for value in values)}) for function"
            f" {name}. Expected: {expected}",
            node.error_span,
            conversion_hint(self.context, node, values, self.scope.fields) or arguments_hint(name),
        )

    # -- aggregates and windows

    def _aggregate(self, node: s.FunctionCall) -> e.Typed:
        if self.site.judged_whole:
            self._not_scalars.append(node)
        elif not self.site.aggregates:
            # Errors of the call itself come first.
            return self._unplanned(node, self._aggregated(node).type)
        elif self._around is not None and self.inside_aggregate:
            outer, aggregate_text = self._around[1], formatted(node, self.context.text)
            error = AnalysisError(
                f"Cannot nest aggregations inside aggregation '{outer.name}': [{aggregate_text}]",
                code="NESTED_AGGREGATION",
            ).at(replace(outer.error_span, about=node.error_span))
            # Type errors of both come first.
            value = self._aggregated(node)
            if self.context.refuse_later(error):
                return e.Constant(value.type, None)
            raise error
        return self._aggregated(node)

    def within(self, construct: str, node: s.FunctionCall, analyze: Callable[[], T]) -> T:
        """Analyze a part that may contain no window function and, within an aggregate, no
        aggregate.
        """
        before, self._around = self._around, (construct, node)
        try:
            return analyze()
        finally:
            self._around = before

    def _check_nesting(self, node: s.FunctionCall) -> None:
        if self._around is None:
            return
        construct, outer = self._around
        message = f"Cannot nest window functions or row pattern measures inside {construct}"
        span = node.error_span
        if construct == _AGGREGATION:
            message += f" '{outer.name}': [{formatted(node, self.context.text)}]"
            span = replace(outer.error_span, about=span)
        self.context.error("NESTED_WINDOW", message, span)

    def judge(self, node: s.Expression) -> None:
        """Refuse the aggregates and window functions found in an expression."""
        if self._not_scalars:
            self._not_scalar(*self._not_scalars, whole=node)

    def _unplanned(self, node: s.FunctionCall, sql_type: Type) -> e.Typed:
        """Refuse an aggregate, after other errors of the statement if Trino's analyzer accepts it."""
        error = self._scalar_error(node)
        if self.site.name in _UNCHECKED_SITES and self.context.refuse_later(error):
            return e.Constant(sql_type, None)
        raise error

    def _not_scalar(
        self, *nodes: s.FunctionCall | s.Measure, whole: s.Expression | None = None
    ) -> NoReturn:
        raise self._scalar_error(*nodes, whole=whole)

    def _scalar_error(
        self, *nodes: s.FunctionCall | s.Measure, whole: s.Expression | None = None
    ) -> AnalysisError:
        # Trino lists aggregates, then windows, then GROUPING, inner ones first.
        ordered = sorted(nodes, key=lambda node: (_rank(node), node.span.end))
        listed_calls = ", ".join(formatted(node, self.context.text) for node in ordered)
        return AnalysisError(
            f"{self.site.name} cannot contain aggregations, window functions or grouping"
            f" operations: [{listed_calls}]",
            code="EXPRESSION_NOT_SCALAR",
            hint="Write the condition in HAVING, or the query in a subquery."
            if self.site.name == "WHERE clause"
            else None,
        ).at((whole or nodes[0]).error_span)

    def _aggregated(self, node: s.FunctionCall, *, over_groups: bool = False) -> e.Aggregate:
        construct = _ARGUMENTS if over_groups else _AGGREGATION
        values, condition, order_by = self.within(construct, node, lambda: self._parts(node))
        self._check_aggregate_order(node, values, order_by)
        if node.name not in _ORDERED:
            order_by = ()
        if node.name == "listagg":
            self._check_listagg(node, values[0])
        if node.distinct:
            # Instants are equal whatever their zones.
            values = [self.coerce(value, instant(value.type)) for value in values]
            order_by = tuple(
                replace(key, value=self.coerce(key.value, instant(key.value.type)))
                for key in order_by
            )
        resolved = resolve(node.name, [value.type for value in values])
        if resolved is None:
            self.not_found(node.name, values, node)
        if several := candidates(node.name, [value.type for value in values]):
            self.ambiguous(node, several)
        if resolved.overload.refusal:
            self._refuse_signature(resolved, node)
            return e.Aggregate(
                resolved.result, node.name, tuple(values), node.distinct, condition, order_by
            )
        if (
            node.distinct
            and node.name in {"multimap_agg", "reduce_agg"}
            and any(has_map(value.type) for value in values)
        ):
            self.refuse(
                f"DISTINCT in {node.name} of values with maps is not supported by this engine", node
            )
        if node.name == "reduce_agg" and resolved.result.base not in _STATES:
            self.context.refuse(
                f"State type not supported for reduce_agg: {resolved.result}", node.error_span
            )
        arguments = tuple(
            (
                self._lambda_result(value, construct)
                if isinstance(value, e.Function)
                else self.coerce(value, construct)
            )
            for value, construct in zip(values, resolved.arguments, strict=True)
        )
        return e.Aggregate(
            resolved.result, node.name, arguments, node.distinct, condition, order_by
        )

    def _check_aggregate_order(
        self, node: s.FunctionCall, values: Sequence[e.Typed], order_by: Sequence[e.Sort]
    ) -> None:
        for key, item in zip(order_by, node.order_by, strict=True):
            if not is_orderable(key.value.type):
                self.context.error(
                    "TYPE_MISMATCH",
                    f"ORDER BY can only be applied to orderable types (actual: {key.value.type})",
                    node.error_span,
                )
            if node.distinct and key.value not in values:
                self.context.error(
                    "EXPRESSION_NOT_IN_DISTINCT",
                    "For aggregate function with DISTINCT, ORDER BY expressions must appear in"
                    " arguments",
                    item.value.error_span,
                )

    def _check_listagg(self, node: s.FunctionCall, value: e.Typed) -> None:
        if value.type.base != "varchar":
            argument = node.arguments[0]
            text = "null" if e.is_null(value) else argument.span.of(self.context.text)
            self.context.error(
                "TYPE_MISMATCH",
                f"Expected expression of varchar, but '{text}' has {value.type} type",
                replace(node.error_span, about=argument.error_span),
            )

    def _parts(
        self, node: s.FunctionCall
    ) -> tuple[list[e.Typed], e.Typed | None, tuple[e.Sort, ...]]:
        values = [] if node.star else self._arguments(node)
        condition = self.boolean(node.filter, _FILTER) if node.filter else None
        return values, condition, tuple(self.sort(item) for item in node.order_by)

    def sort(self, item: s.SortItem) -> e.Sort:
        return e.Sort(self.analyze(item.value), item.descending, item.nulls_first)

    def _windowed(self, node: s.FunctionCall) -> e.Typed:
        if self.site.judged_whole:
            self._not_scalars.append(node)
        elif not self.site.windows:
            self._no_window(node)
            self._not_scalar(node)
        assert node.window is not None
        self._check_nesting(node)
        if node.filter is not None:
            self.context.refuse(
                "FILTER is not yet supported for window functions", self.select or node.error_span
            )
        if node.distinct and f.is_aggregate(node.name) and node.name not in DISTINCT_OVER_WINDOWS:
            self.refuse(
                f"DISTINCT in {node.name} over a window is not supported by this engine", node
            )
        window = resolved_window(self, node.window, self.windows)
        partition_by, frame, order_by = analyzed_window(self, window, node)
        check_window(self, node, window)
        if f.is_aggregate(node.name):
            function: e.Typed = self._aggregated(node, over_groups=True)
        else:
            function = self.within(
                _ARGUMENTS, node, lambda: self.function(node.name, self._arguments(node), node)
            )
            if not f.is_window(node.name):
                self._not_window(node)
        check_only_aggregates(self, node)
        return e.Windowed(
            function.type, function, partition_by, order_by, frame, node.nulls == "IGNORE"
        )

    def _not_window(self, node: s.FunctionCall) -> NoReturn:
        self.context.error(
            "FUNCTION_NOT_WINDOW",
            f"Not a window function: {node.name}",
            replace(self.select or node.error_span, about=node.error_span),
        )

    def measure(self, node: s.Measure) -> e.Typed:
        """Refuse a measure, which needs a pattern in its window."""
        if self.site.judged_whole:
            self._not_scalar(node)
        if not self.site.windows:
            self._not_scalar(node)
        resolved_window(self, node.window, self.windows)
        self.context.error(
            "INVALID_WINDOW_MEASURE",
            f"Measure {node.name.text} is not defined in the corresponding window",
            node.error_span,
        )

    # -- special forms

    def ambiguous(
        self, node: s.Expression | s.ChainStep, matches: Sequence[Resolved] = ()
    ) -> NoReturn:
        """Refuse operands that several functions or operators match equally."""
        message = "Could not choose a best candidate operator. Explicit type casts must be added."
        if matches:
            lines = [
                f"\t * ({','.join(map(str, match.arguments))}):{match.result}\n"
                for match in matches
            ]
            message += f"\nCandidates are:\n{''.join(lines)}"
        self.context.error(
            "AMBIGUOUS_FUNCTION_CALL",
            message,
            node.error_span,
            "NULL alone has no type: write CAST(NULL AS ...).",
        )

    def _grouping(self, node: s.FunctionCall) -> e.Typed:
        if self.site.judged_whole:
            self._not_scalars.append(node)
        elif not self.site.aggregates and self.site.name not in _UNCHECKED_SITES:
            self._not_scalar(node)
        values = tuple(self.analyze(argument) for argument in node.arguments)
        if not (self.site.judged_whole or self.site.aggregates):
            return self._unplanned(node, INTEGER)
        return e.Apply(INTEGER, "grouping", values, node)

    def unexpected(
        self, node: s.FunctionCall, argument_types: Sequence[Type], expected: str
    ) -> NoReturn:
        self.context.error(
            "FUNCTION_NOT_FOUND",
            f"Unexpected parameters ({listed_types(argument_types)}) for function {node.name}."
            f" Expected: {expected}",
            node.error_span,
        )


def _rank(node: s.FunctionCall | s.Measure) -> int:
    if isinstance(node, s.Measure) or node.window is not None:
        return 1
    return 2 if node.name == "grouping" else 0
