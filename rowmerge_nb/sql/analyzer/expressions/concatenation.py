"""Analyzes concatenation: of text, bytes and arrays, by ``||`` and by concat."""

# Context.error never returns.
# ruff: noqa: RET503

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import LONGEST_CHAR, common_type, is_text, listed_types

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
    from rowmerge_nb.sql.tree import syntax as s


def concat(analyzer: CallAnalyzer, node: s.Call) -> e.Typed:
    """Analyze a call of concat."""
    values = [analyzer.analyze(argument) for argument in node.arguments]
    kinds = [value.type for value in values]
    if len(values) == 1 and kinds[0].base in {"varchar", "varbinary", "array", "unknown"}:
        what = "arguments to concat" if kinds[0].base == "array" else "concatenation arguments"
        analyzer.context.error("INVALID_FUNCTION_ARGUMENT", f"There must be two or more {what}", node.error_span)
    bases = {kind.base for kind in kinds if kind != UNKNOWN}
    if len(values) != 2 and ("char" in bases or ("array" in bases and len(bases) > 1)):
        _refused(analyzer, node, kinds)
    return concatenated(analyzer, node, values)


def concatenated(analyzer: CallAnalyzer, node: s.Call | s.Step, values: list[e.Typed]) -> e.Typed:
    """Return the concatenation of analyzed values."""
    kinds = [value.type for value in values]
    arrays = [kind for kind in kinds if kind.base == "array"]
    if set(kinds) <= {UNKNOWN}:
        analyzer.ambiguous(node)
    if len(kinds) == 2 and UNKNOWN in kinds:
        (kind,) = (kind for kind in kinds if kind != UNKNOWN)
        if kind.base in {"array", "varbinary", "char"} or kind == VARCHAR:
            analyzer.ambiguous(node)
        # NULL beside an element is an array.
        return e.Constant(Type("array", (kind,)), None)
    if arrays:
        # An array of NULLs may be one of such elements, or one such element.
        if len(values) == len(arrays) == 2 and sum(kind.parameters == (UNKNOWN,) for kind in arrays) == 1:
            analyzer.ambiguous(node)
        return _of_arrays(analyzer, node, values)
    if all(is_text(kind) or kind == UNKNOWN for kind in kinds) and values:
        result = _joined(kinds)
        if result.base == "char" and result.parameters[0] > LONGEST_CHAR:
            analyzer.context.error("TYPE_NOT_FOUND", f"Unknown type: {result}", node.error_span)
        parts = [analyzer.coerce(v, VARCHAR if v.type == UNKNOWN else _part_of(result, v.type)) for v in values]
        return e.Apply(result, "concat", tuple(parts))
    if all(kind.base == "varbinary" or kind == UNKNOWN for kind in kinds) and values:
        return e.Apply(Type("varbinary"), "concat", tuple(analyzer.coerce(v, Type("varbinary")) for v in values))
    _refused(analyzer, node, kinds)


def _of_arrays(analyzer: CallAnalyzer, node: s.Call | s.Step, values: list[e.Typed]) -> e.Typed:
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
    """An array before or behind an array of such arrays is one more element of it; None where there is no such pair."""
    if len(values) != 2:
        return None
    for place, value in enumerate(values):
        many = values[1 - place].type
        element = common_type(value.type, many.parameters[0]) if many.base == "array" else None
        if element is not None:
            target = Type("array", (element,))
            alone = e.Apply(target, "array", (analyzer.coerce(value, element),))
            one = e.Apply(target, "case", (e.Apply(BOOLEAN, "is null", (value,), True), alone))
            whole = analyzer.coerce(values[1 - place], target)
            return (one, whole) if place == 0 else (whole, one)
    return None


def _joined_part(analyzer: CallAnalyzer, value: e.Typed, target: Type) -> e.Typed:
    """An array, or an element as an array of it alone; NULL for an element makes NULL of the whole."""
    if value.type.base == "array" or value.type == UNKNOWN:
        return analyzer.coerce(value, target)
    element = analyzer.coerce(value, target.parameters[0])
    alone = e.Apply(target, "array", (element,))
    if isinstance(element, e.Constant) and element.value is not None:
        return alone
    return e.Apply(target, "case", (e.Apply(BOOLEAN, "is null", (element,), True), alone))


def _refused(analyzer: CallAnalyzer, node: s.Call | s.Step, kinds: Sequence[Type]) -> NoReturn:
    analyzer.context.error(
        "FUNCTION_NOT_FOUND",
        f"Unexpected parameters ({listed_types(kinds)}) for function concat. Expected: concat(E, array(E)) E, "
        "concat(array(E)) E, concat(array(E), E) E, concat(char(x), char(y)), concat(varbinary), concat(varchar)",
        node.error_span,
        ("|| joins text with text; write CAST(... AS varchar) around the other operand.") if any(map(is_text, kinds)) else None,
    )


def _joined(kinds: Sequence[Type]) -> Type:
    """Text joined with text is varchar; char joined with text is char of both lengths, of which that of unbounded text is the longest."""
    if any(kind.base == "char" for kind in kinds):
        return Type("char", (sum(kind.parameters[0] if kind.parameters else LONGEST_CHAR for kind in kinds),))
    return VARCHAR


def _part_of(joined: Type, kind: Type) -> Type:
    """Return the type in which text becomes a part of joined text: of char all parts are char."""
    return Type("char", kind.parameters) if joined.base == "char" else kind
