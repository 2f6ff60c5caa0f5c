"""Analyzes ``||`` and concat."""

# Context.error never returns.
# ruff: noqa: RET503

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    LONGEST_CHAR,
    common_type,
    is_text,
    listed_types,
    varchar_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
    from rowmerge_nb.sql.tree import syntax as s


def concat(analyzer: CallAnalyzer, node: s.FunctionCall) -> e.Typed:
    values = [analyzer.analyze(argument) for argument in node.arguments]
    types = [value.type for value in values]
    if len(values) == 1 and types[0].base in {"varchar", "varbinary", "array", "unknown"}:
        noun = "arguments to concat" if types[0].base == "array" else "concatenation arguments"
        analyzer.context.error(
            "INVALID_FUNCTION_ARGUMENT", f"There must be two or more {noun}", node.error_span
        )
    bases = {sql_type.base for sql_type in types if sql_type != UNKNOWN}
    if len(values) != 2 and "array" in bases and len(bases) > 1:
        _refused(analyzer, node, types)
    return concatenated(analyzer, node, values)


def concatenated(
    analyzer: CallAnalyzer, node: s.FunctionCall | s.ChainStep, values: list[e.Typed]
) -> e.Typed:
    types = [value.type for value in values]
    arrays = [sql_type for sql_type in types if sql_type.base == "array"]
    if set(types) <= {UNKNOWN}:
        analyzer.ambiguous(node)
    if len(types) == 2 and UNKNOWN in types:
        (sql_type,) = (sql_type for sql_type in types if sql_type != UNKNOWN)
        if sql_type.base in {"array", "varbinary", "char"} or sql_type == VARCHAR:
            analyzer.ambiguous(node)
        # NULL beside an element is an array.
        return e.Constant(Type("array", (sql_type,)), None)
    if arrays:
        # An array of NULLs may be one element or an array of elements.
        if (
            len(values) == len(arrays) == 2
            and sum(sql_type.parameters == (UNKNOWN,) for sql_type in arrays) == 1
        ):
            analyzer.ambiguous(node)
        return _of_arrays(analyzer, node, values)
    if all(is_text(sql_type) or sql_type == UNKNOWN for sql_type in types) and values:
        result = _joined(types)
        if result.base == "char" and result.parameters[0] > LONGEST_CHAR:
            analyzer.context.error("TYPE_NOT_FOUND", f"Unknown type: {result}", node.error_span)
        parts = [
            analyzer.coerce(v, VARCHAR if v.type == UNKNOWN else _part_of(result, v.type))
            for v in values
        ]
        return e.Apply(result, "concat", tuple(parts))
    if all(sql_type.base == "varbinary" or sql_type == UNKNOWN for sql_type in types) and values:
        return e.Apply(
            Type("varbinary"),
            "concat",
            tuple(analyzer.coerce(v, Type("varbinary")) for v in values),
        )
    _refused(analyzer, node, types)


def _of_arrays(
    analyzer: CallAnalyzer, node: s.FunctionCall | s.ChainStep, values: list[e.Typed]
) -> e.Typed:
    element: Type | None = UNKNOWN
    for value in values:
        inner = value.type.parameters[0] if value.type.base == "array" else value.type
        element = common_type(element, inner) if element is not None else None
    if element is None:
        appended = _appended(analyzer, values)
        if appended is None:
            _refused(analyzer, node, [value.type for value in values])
        return e.Apply(appended[0].type, "concat", appended)
    target = Type("array", (element,))
    parts = tuple(_joined_part(analyzer, value, target) for value in values)
    return e.Apply(target, "concat", parts)


def _appended(analyzer: CallAnalyzer, values: list[e.Typed]) -> tuple[e.Typed, ...] | None:
    if len(values) != 2:
        return None
    for index, value in enumerate(values):
        many = values[1 - index].type
        element = common_type(value.type, many.parameters[0]) if many.base == "array" else None
        if element is not None:
            target = Type("array", (element,))
            singleton = e.Apply(target, "array", (analyzer.coerce(value, element),))
            one = e.Apply(target, "case", (e.Apply(BOOLEAN, "is null", (value,), True), singleton))
            whole = analyzer.coerce(values[1 - index], target)
            return (one, whole) if index == 0 else (whole, one)
    return None


def _joined_part(analyzer: CallAnalyzer, value: e.Typed, target: Type) -> e.Typed:
    if value.type.base == "array" or value.type == UNKNOWN:
        return analyzer.coerce(value, target)
    element = analyzer.coerce(value, target.parameters[0])
    singleton = e.Apply(target, "array", (element,))
    if isinstance(element, e.Constant) and element.value is not None:
        return singleton
    return e.Apply(target, "case", (e.Apply(BOOLEAN, "is null", (element,), True), singleton))


def _refused(
    analyzer: CallAnalyzer, node: s.FunctionCall | s.ChainStep, types: Sequence[Type]
) -> NoReturn:
    analyzer.context.error(
        "FUNCTION_NOT_FOUND",
        f"Unexpected parameters ({listed_types(types)}) for function concat. Expected: concat(E,"
        " array(E)) E, concat(array(E)) E, concat(array(E), E) E, concat(char(x), char(y)),"
        " concat(varbinary), concat(varchar)",
        node.error_span,
        (
            "|| joins text with text; write CAST(... AS varchar) around the other operand."
            if any(map(is_text, types))
            else None
        ),
    )


def _joined(types: Sequence[Type]) -> Type:
    if len(types) == 2 and all(sql_type.base == "char" for sql_type in types):
        return Type("char", (sum(sql_type.parameters[0] for sql_type in types),))
    return VARCHAR


def _part_of(joined: Type, sql_type: Type) -> Type:
    is_cut = sql_type.base == "char" != joined.base
    return varchar_of(sql_type.parameters[0]) if is_cut else sql_type
