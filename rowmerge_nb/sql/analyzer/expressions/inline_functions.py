"""``WITH FUNCTION``: a call is replaced by the function's expression over its arguments."""

# Context.error never returns.
# ruff: noqa: RET503

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.spi.types import BOOLEAN, Type
from rowmerge_nb.sql.analyzer.expressions.constancy import QUERIES
from rowmerge_nb.sql.analyzer.scope import Scope
from rowmerge_nb.sql.parser.type_names import read_type
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import can_coerce, listed_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
    from rowmerge_nb.sql.tree.statements import Span

_MOST_PARTS: Final = 1_000
"""Expansion is exponential in the depth of calls if each function calls another one twice."""


@dataclass(frozen=True)
class InlineFunction:
    node: s.FunctionDefinition
    parameters: tuple[Type, ...]
    returns: Type
    before: tuple[InlineFunction, ...]
    expansions: dict[tuple[e.Typed, ...], e.Typed] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def shown(self) -> str:
        return f"{self.node.name.value}({', '.join(map(str, self.parameters))})"


def define_functions(context: Context, nodes: Sequence[s.FunctionDefinition]) -> None:
    """Define the functions of a statement; each can call those before it.

    Unused ones are checked too.
    """
    for node in nodes:
        names = [name.value for name, _ in node.parameters]
        for index, (name, _) in enumerate(node.parameters):
            if name.value in names[:index]:
                context.error(
                    "INVALID_ARGUMENTS",
                    f"Duplicate function parameter name: {name.value}",
                    name.span,
                )
        parameter_types = tuple(
            _type(context, sql_type, name.span) for name, sql_type in node.parameters
        )
        function = InlineFunction(
            node,
            parameter_types,
            _type(context, node.returns, node.returns_span),
            context.functions,
        )
        query = next((part for part in s.walk(node.body) if isinstance(part, QUERIES)), None)
        if query is not None:
            context.refuse("Queries are not allowed in functions", query.error_span)
        columns = tuple(
            e.Column(sql_type, context.symbols.new(name))
            for name, sql_type in zip(names, parameter_types, strict=True)
        )
        context.functions = (*context.functions, function)
        body = _expanded(context, function, columns)
        if node.deterministic and not e.is_deterministic(body):
            context.error(
                "INVALID_ARGUMENTS",
                "Non-deterministic function declared DETERMINISTIC",
                node.span,
                "Write NOT DETERMINISTIC behind its type.",
            )
        if not node.deterministic and e.is_deterministic(body):
            context.error(
                "INVALID_ARGUMENTS",
                "Deterministic function declared NOT DETERMINISTIC",
                node.span,
                "Remove NOT DETERMINISTIC.",
            )


def _type(context: Context, name: s.TypeName, span: Span) -> Type:
    try:
        return read_type(name)
    except AnalysisError as error:
        context.error(error.code, error.message, span)


def call_inline(analyzer: CallAnalyzer, node: s.FunctionCall) -> e.Typed | None:
    context = analyzer.context
    functions = [
        function for function in context.functions if function.node.name.value == node.name
    ]
    if not functions or node.qualifier:
        return None
    values = [analyzer.analyze(argument) for argument in node.arguments]
    _check_call(analyzer, node)
    function = _matching_function(analyzer, node, functions, [value.type for value in values])
    if function.node.span.start <= node.span.start < function.node.span.end:
        context.refuse(
            f"Recursive language functions are not supported: {function.shown}:{function.returns}",
            function.node.span,
        )
    context.expand(node.span)
    arguments = tuple(
        analyzer.coerce(value, sql_type)
        for value, sql_type in zip(values, function.parameters, strict=True)
    )
    return _expanded(context, function, arguments)


def _check_call(analyzer: CallAnalyzer, node: s.FunctionCall) -> None:
    error, span = analyzer.context.error, node.error_span
    if node.window is not None:
        error(
            "FUNCTION_NOT_WINDOW",
            f"Not a window function: {node.name}",
            replace(analyzer.select or span, about=span),
        )
    if node.distinct:
        error(
            "FUNCTION_NOT_AGGREGATE",
            "DISTINCT is not supported for non-aggregation functions",
            span,
        )
    if node.filter is not None or node.order_by:
        clause = "Filter" if node.filter is not None else "ORDER BY"
        error("FUNCTION_NOT_AGGREGATE", f"{clause} is only valid for aggregation functions", span)


def _matching_function(
    analyzer: CallAnalyzer,
    node: s.FunctionCall,
    functions: Sequence[InlineFunction],
    argument_types: Sequence[Type],
) -> InlineFunction:
    exact = [
        function for function in functions if list(function.parameters) == list(argument_types)
    ]
    fitting = exact or [
        function for function in functions if _coerces(argument_types, function.parameters)
    ]
    narrowest = [
        one
        for one in fitting
        if all(_coerces(one.parameters, other.parameters) for other in fitting)
    ]
    if len(narrowest) == 1:
        return narrowest[0]
    if fitting:
        analyzer.ambiguous(node)
    _not_found(analyzer, node, functions, argument_types)


def _not_found(
    analyzer: CallAnalyzer,
    node: s.FunctionCall,
    functions: Sequence[InlineFunction],
    argument_types: Sequence[Type],
) -> NoReturn:
    expected = ", ".join(function.shown for function in functions)
    analyzer.context.error(
        "FUNCTION_NOT_FOUND",
        f"Unexpected parameters ({listed_types(argument_types)}) for function {node.name}."
        f" Expected: {expected}",
        node.error_span,
    )


def _coerces(argument_types: Sequence[Type], parameters: Sequence[Type]) -> bool:
    return len(argument_types) == len(parameters) and all(
        map(can_coerce, argument_types, parameters)
    )


def _expanded(
    context: Context, function: InlineFunction, arguments: tuple[e.Typed, ...]
) -> e.Typed:
    from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer

    if arguments in function.expansions:
        return function.expansions[arguments]
    node = function.node
    analyzer = ExpressionAnalyzer(context, Scope(()), ExpressionSite(f"Function {node.name.text}"))
    analyzer.variables = {
        name.value: value for (name, _), value in zip(node.parameters, arguments, strict=True)
    }
    visible_functions = context.functions
    # Its own name is visible, so that recursion is reported.
    context.functions = (*function.before, function)
    body = analyzer.analyze(node.body)
    context.functions = visible_functions
    if not can_coerce(body.type, function.returns):
        context.error(
            "TYPE_MISMATCH",
            f"Value of RETURN must evaluate to {function.returns} (actual: {body.type})",
            node.body.error_span,
        )
    value = analyzer.coerce(body, function.returns)
    if len(list(islice(e.walk(value), _MOST_PARTS + 1))) > _MOST_PARTS:
        context.refuse(
            f"The function {node.name.text} is not supported by this engine: with the functions"
            f" that it calls it has more than {_MOST_PARTS:,} parts",
            node.span,
            "Compute values that are needed more than once in subqueries in FROM.",
        )
    if node.strict and arguments:
        nulls = tuple(e.Apply(BOOLEAN, "is null", (argument,), False) for argument in arguments)
        condition = nulls[0] if len(nulls) == 1 else e.Apply(BOOLEAN, "or", nulls)
        value = e.Apply(
            function.returns, "case", (condition, e.Constant(function.returns, None), value)
        )
    if node.deterministic:
        function.expansions[arguments] = value
    return value
