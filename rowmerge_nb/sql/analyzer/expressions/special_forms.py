"""Analyzes calls with rules of their own."""

# Context.error never returns.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.analyzer.expressions.concatenation import concat
from rowmerge_nb.sql.analyzer.expressions.typed_literals import moment_constant
from rowmerge_nb.sql.parser.json_paths import JsonPathError, is_supported, path_tokens
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import can_coerce, common_type, is_orderable, is_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
    from rowmerge_nb.sql.tree import syntax as s

_NOW: Final = Type("timestamp with time zone", (3,))
_SAFE: Final = frozenset(
    {
        "is null",
        "and",
        "or",
        "not",
        "distinct",
        "coalesce",
        "case",
        "in",
        "nullif",
        "row",
        "array",
        "greatest",
        "least",
    }
)


def _coalesce(analyzer: CallAnalyzer, node: s.FunctionCall) -> e.Typed:
    parts = analyzer.alike(
        [analyzer.analyze(a) for a in node.arguments], node.arguments, "All COALESCE operands"
    )
    return e.Apply(parts[0].type, "coalesce", tuple(parts))


def _nullif(analyzer: CallAnalyzer, node: s.FunctionCall) -> e.Typed:
    first, second = (analyzer.analyze(argument) for argument in node.arguments)
    common = common_type(first.type, second.type)
    if common is None:
        analyzer.context.error(
            "TYPE_MISMATCH",
            f"Types are not comparable with NULLIF: {first.type} vs {second.type}",
            node.error_span,
        )
    same = e.Apply(BOOLEAN, "=", analyzer.comparable((first, second), common))
    return e.Apply(first.type, "nullif", (first, same))


def _if(analyzer: CallAnalyzer, node: s.FunctionCall) -> e.Typed:
    condition = analyzer.boolean(
        node.arguments[0], "IF condition must evaluate to a boolean (actual: {})"
    )
    values = [analyzer.analyze(argument) for argument in node.arguments[1:]]
    if len(values) == 2 and common_type(values[0].type, values[1].type) is None:
        analyzer.context.error(
            "TYPE_MISMATCH",
            f"Result types for IF must be the same: {values[0].type} vs {values[1].type}",
            node.error_span,
        )
    values = analyzer.alike(values, node.arguments[1:], "IF results")
    return e.Apply(values[0].type, "case", (condition, *values))


def _try(analyzer: CallAnalyzer, node: s.FunctionCall) -> e.Typed:
    value = analyzer.analyze(node.arguments[0])
    if isinstance(value, e.Apply) and value.name in {"array", "row"}:
        parts = [_failure_of(part) for part in value.arguments if _can_fail(part)]
        fails = tuple(filter(None, parts))
        if fails and len(fails) == len(parts):
            failing = fails[0] if len(fails) == 1 else e.Apply(BOOLEAN, "or", fails)
            whole = e.Apply(value.type, "case", (failing, e.Constant(value.type, None), value))
            return e.Apply(value.type, "try", (whole,))
    risky = _hidden_failure(value)
    if risky is not None:
        analyzer.refuse(
            f"TRY around {risky.upper()} whose parts can fail is not supported by this engine", node
        )
    return e.Apply(value.type, "try", (value,))


def _failure_of(node: e.Typed) -> e.Typed | None:
    """Return whether a part is NULL although nothing in it is; None for other operations than
    arithmetic and casts of plain values.
    """
    operands = _operands(node)
    if operands is None:
        return None
    present = (
        e.Apply(BOOLEAN, "is null", (operand,), True)
        for operand in dict.fromkeys(operands)
        if e.is_null(operand) or not isinstance(operand, e.Constant)
    )
    is_null = e.Apply(BOOLEAN, "is null", (node,), False)
    conditions = (is_null, *present)
    return is_null if len(conditions) == 1 else e.Apply(BOOLEAN, "and", conditions)


def _operands(node: e.Typed) -> list[e.Typed] | None:
    if not _can_fail(node):
        return None if e.is_null(node) else [node]
    is_plain = isinstance(node, e.Apply) and (
        node.name in {"arithmetic", "negate"}
        or (
            node.name == "cast"
            and node.detail != "try"
            and not {node.type.base, node.arguments[0].type.base} & _NOT_PLAIN
        )
    )
    if not is_plain:
        return None
    assert isinstance(node, e.Apply)
    if any(map(e.is_null, node.arguments)) and not any(map(_can_fail, node.arguments)):
        return [argument for argument in node.arguments if e.is_null(argument)]
    operands: list[e.Typed] = []
    for argument in node.arguments:
        inner = _operands(argument)
        if inner is None:
            return None
        operands += inner
    return operands


_NOT_PLAIN: Final = frozenset({"array", "map", "row", "json"})
"""The types whose casts may return NULL for a value."""


def _typeof(analyzer: CallAnalyzer, node: s.FunctionCall) -> e.Typed:
    values = [analyzer.analyze(argument) for argument in node.arguments]
    if len(values) != 1:
        analyzer.unexpected(node, [value.type for value in values], "typeof(T) T")
    name = e.Constant(VARCHAR, str(values[0].type))
    if not any(isinstance(part, (e.Aggregate, e.Column)) for part in e.walk(values[0])):
        return name
    # The operand is still read: an aggregate reduces rows, and columns must be grouped.
    return e.Apply(VARCHAR, "case", (e.Apply(BOOLEAN, "is null", (values[0],), False), name, name))


def _extreme(analyzer: CallAnalyzer, node: s.FunctionCall) -> e.Typed:
    values = [analyzer.analyze(argument) for argument in node.arguments]
    argument_types = [value.type for value in values]
    common: Type | None = UNKNOWN
    for argument_type in argument_types:
        common = common_type(common, argument_type) if common is not None else None
    if common is not None:
        analyzer.context.refuse_number((common,), node.error_span)
    if common is None or not values or not is_orderable(common):
        analyzer.unexpected(node, argument_types, f"{node.name}(E) E:orderable")
    return e.Apply(common, node.name, tuple(analyzer.coerce(value, common) for value in values))


def _json_path(analyzer: CallAnalyzer, node: s.FunctionCall) -> e.Typed:
    values = [analyzer.analyze(argument) for argument in node.arguments]
    argument_types = [value.type for value in values]
    fits = (
        len(argument_types) == 2
        and argument_types[0].base in {"varchar", "json", "unknown"}
        and (is_text(argument_types[1]) or argument_types[1] == UNKNOWN)
    )
    if not fits:
        analyzer.unexpected(
            node, argument_types, f"{node.name}(json, jsonpath), {node.name}(varchar(x), jsonpath)"
        )
    value, path = values
    if node.name == "json_extract_scalar" and value.type == UNKNOWN:
        analyzer.ambiguous(node)
    scalar = value.type if value.type.base == "varchar" else VARCHAR
    result = {"json_extract": Type("json"), "json_size": Type("bigint")}.get(node.name, scalar)
    if not isinstance(path, e.Constant):
        analyzer.refuse(
            f"{node.name} with a path that is not a literal is not supported by this engine",
            node.arguments[1],
        )
    if UNKNOWN in {value.type, path.type} or path.value is None or e.is_null(value):
        return e.Constant(result, None)
    try:
        tokens = path_tokens(path.value)
    except JsonPathError:
        analyzer.context.error(
            "INVALID_FUNCTION_ARGUMENT", f"Invalid JSON path: '{path.value}'", node.error_span
        )
    if not is_supported(tokens):
        analyzer.refuse(
            f"The JSON path '{path.value}' is not supported by this engine", node.arguments[1]
        )
    return e.Apply(result, "json path", (value,), (node.name, tuple(tokens)))


def _now(analyzer: CallAnalyzer, node: s.FunctionCall) -> e.Typed:
    if node.arguments:
        analyzer.unexpected(
            node, [analyzer.analyze(argument).type for argument in node.arguments], "now()"
        )
    return moment_constant(_NOW, analyzer.context.now)


def _can_fail(node: e.Typed) -> bool:
    for part in e.walk(node):
        if isinstance(part, e.Apply) and part.name in {
            "arithmetic",
            "negate",
            "subscript",
            "function",
            "written",
        }:
            return True
        if (
            isinstance(part, e.Apply)
            and part.name == "cast"
            and not can_coerce(part.arguments[0].type, part.type)
        ):
            return True
        if isinstance(part, e.Subquery):
            return True
    return False


def _hidden_failure(node: e.Typed) -> str | None:
    for part in e.walk(node):
        if isinstance(part, e.Apply) and part.name == "function":
            lambdas = [
                argument.body for argument in part.arguments if isinstance(argument, e.Function)
            ]
            if any(_can_fail(body) for body in lambdas):
                return str(part.detail.name)
        if isinstance(part, e.Apply) and part.name in _SAFE:
            risky = (
                part.arguments[::2]
                if part.name == "case" and len(part.arguments) % 2 == 0
                else part.arguments
            )
            if part.name == "case" and len(part.arguments) % 2:
                risky = part.arguments[:-1:2]
            if any(_can_fail(argument) for argument in risky):
                return part.name
    return None


SPECIAL_FORMS: Final[dict[str, Callable[[CallAnalyzer, s.FunctionCall], e.Typed]]] = {
    "coalesce": _coalesce,
    "nullif": _nullif,
    "if": _if,
    "try": _try,
    "typeof": _typeof,
    "greatest": _extreme,
    "least": _extreme,
    "concat": concat,
    "now": _now,
    "json_extract": _json_path,
    "json_extract_scalar": _json_path,
    "json_size": _json_path,
}
"""The analyzers of special calls by name."""
