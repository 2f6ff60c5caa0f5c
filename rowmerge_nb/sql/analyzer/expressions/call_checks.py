"""Checks of a call's arguments beyond their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import DATE, TIMESTAMP, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.functions.date_patterns import CLOCK_CONVERSIONS, DATE_CONVERSIONS
from rowmerge_nb.sql.functions.formats import (
    ISO_DATE,
    FormatError,
    Moment,
    argument_types,
    with_moments,
)
from rowmerge_nb.sql.functions.regexp_groups import structure
from rowmerge_nb.sql.functions.signatures import resolve
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.cast_rules import can_cast
from rowmerge_nb.sql.typed.type_rules import is_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
    from rowmerge_nb.sql.functions.regexp_groups import Group
    from rowmerge_nb.sql.tree import syntax as s


def checked(analyzer: CallAnalyzer, node: s.FunctionCall, values: list[e.Typed]) -> list[e.Typed]:
    check = _CHECKS.get(node.name)
    return values if check is None else check(analyzer, node, values)


def _is_literal(value: e.Typed) -> bool:
    while isinstance(value, e.Apply) and value.name in {"cast", "negate"}:
        (value,) = value.arguments
    return isinstance(value, e.Constant)


def _second_literal(
    name_of_argument: str,
) -> Callable[[CallAnalyzer, s.FunctionCall, list[e.Typed]], list[e.Typed]]:
    def check(analyzer: CallAnalyzer, node: s.FunctionCall, values: list[e.Typed]) -> list[e.Typed]:
        if len(values) > 1 and not _is_literal(values[1]):
            analyzer.refuse(
                f"{node.name} with {name_of_argument} that is not a literal is not supported by"
                " this engine",
                node.arguments[1],
            )
        return values

    return check


def _rounded(analyzer: CallAnalyzer, node: s.FunctionCall, values: list[e.Typed]) -> list[e.Typed]:
    if values and values[0].type.base != "decimal":
        return values
    return _second_literal("a number of digits")(analyzer, node, values)


def _several_maps(
    analyzer: CallAnalyzer, node: s.FunctionCall, values: list[e.Typed]
) -> list[e.Typed]:
    if len(values) == 1 and values[0].type.base == "map":
        analyzer.context.error(
            "INVALID_FUNCTION_ARGUMENT",
            "There must be two or more concatenation arguments to map_concat",
            node.error_span,
        )
    return values


def _separated(
    analyzer: CallAnalyzer, node: s.FunctionCall, values: list[e.Typed]
) -> list[e.Typed]:
    if len(values) == 2 and values[1].type == UNKNOWN != values[0].type:
        analyzer.ambiguous(node)
    return values


def _joined(analyzer: CallAnalyzer, node: s.FunctionCall, values: list[e.Typed]) -> list[e.Typed]:
    if not values or values[0].type.base != "array":
        return values
    element = values[0].type.parameters[0]
    if not can_cast(element, VARCHAR):
        analyzer.context.error(
            "OPERATOR_NOT_FOUND", f"Cannot cast {element} to varchar", node.error_span
        )
    if is_text(element):
        return values
    return [e.Apply(Type("array", (VARCHAR,)), "cast", (values[0],)), *values[1:]]


def _extracted(
    analyzer: CallAnalyzer, node: s.FunctionCall, values: list[e.Typed]
) -> list[e.Typed]:
    """Check the group: if it takes no part in a match, Trino returns NULL, Spark an empty text."""
    if len(values) != 3 or (isinstance(values[2], e.Constant) and values[2].value == "0"):
        return values
    if any(map(e.is_null, values)):
        # Trino returns NULL before it checks the group.
        return [values[0], e.Constant(VARCHAR, None), values[2]]
    pattern, group = values[1], values[2]
    if not (isinstance(pattern, e.Constant) and pattern.value is not None and _is_literal(group)):
        analyzer.refuse(
            f"{node.name} of a group needs the pattern and the group as literals in this engine",
            node,
        )
    number = _number(group)
    groups = structure(pattern.value).groups
    if number is None:
        return values
    if number < 0:
        analyzer.context.error(
            "INVALID_FUNCTION_ARGUMENT", "Group cannot be negative", node.error_span
        )
    if number > len(groups):
        analyzer.context.error(
            "INVALID_FUNCTION_ARGUMENT",
            f"Pattern has {len(groups)} groups. Cannot access group {number}",
            node.error_span,
        )
    if number and not _is_participation_known(groups[number - 1]):
        analyzer.refuse(
            f"{node.name} of an optional group that may match nothing is not supported"
            " by this engine",
            node.arguments[2],
        )
    return values


def _is_participation_known(group: Group) -> bool:
    return group.certain or not group.may_be_empty


def _number(value: e.Typed) -> int | None:
    if isinstance(value, e.Apply):
        inner = _number(value.arguments[0])
        return -inner if inner is not None and value.name == "negate" else inner
    return int(value.value) if isinstance(value, e.Constant) and value.value is not None else None


def _replaced(analyzer: CallAnalyzer, node: s.FunctionCall, values: list[e.Typed]) -> list[e.Typed]:
    """Check regexp_replace with a lambda: matches are derived from the pieces of the text."""
    if len(values) == 3 and isinstance(values[2], e.Function):
        if values[2].body.type == UNKNOWN:
            analyzer.not_found(node.name, values, node)
        pattern = values[1]
        if e.is_null(pattern):
            return [values[0], e.Constant(VARCHAR, None), values[2]]
        if not (isinstance(pattern, e.Constant) and pattern.value is not None):
            analyzer.refuse(
                "regexp_replace by a lambda needs the pattern as a literal in this engine", node
            )
        pattern_structure = structure(pattern.value)
        if pattern_structure.may_be_empty or not all(
            map(_is_participation_known, pattern_structure.groups)
        ):
            analyzer.refuse(
                "regexp_replace by a lambda of a pattern, or an optional group, that may match"
                " nothing is not supported by this engine",
                node,
            )
    return values


def _formatted(
    analyzer: CallAnalyzer, node: s.FunctionCall, values: list[e.Typed]
) -> list[e.Typed]:
    literal = values[0]
    if literal.type.base != "varchar":
        analyzer.context.error(
            "TYPE_MISMATCH",
            f"Type of first argument to format() must be VARCHAR (actual: {literal.type})",
            node.arguments[0].error_span,
        )
    if not isinstance(literal, e.Constant) or literal.value is None:
        analyzer.refuse(
            "format with a format that is not a literal is not supported by this engine", node
        )
    for value, argument in zip(values[1:], node.arguments[1:], strict=True):
        if value.type.base in {"array", "map", "row", "varbinary"}:
            analyzer.refuse(f"Type not supported for formatting: {value.type}", argument)
    try:
        expected_types = argument_types(literal.value, [value.type for value in values[1:]])
    except FormatError as error:
        analyzer.context.error(
            "INVALID_FUNCTION_ARGUMENT",
            f"Invalid format string: {literal.value} ({error})",
            node.error_span,
        )
    java_format, moments = with_moments(literal.value, [value.type for value in values[1:]])
    format_arguments: list[e.Typed] = [e.Constant(literal.type, java_format)]
    for value, sql_type, argument in zip(
        values[1:], expected_types, node.arguments[1:], strict=True
    ):
        if sql_type is None or not can_cast(value.type, sql_type):
            analyzer.refuse(
                f"format of a value of type {value.type} in this form is not supported by this"
                " engine",
                argument,
            )
        typed = value if value.type == sql_type else e.Apply(sql_type, "cast", (value,))
        format_arguments.append(
            _as_java(typed) if sql_type.base in {"time", "timestamp"} else typed
        )
    return [*format_arguments, *(_part(values[1 + moment.argument], moment) for moment in moments)]


def _part(value: e.Typed, moment: Moment) -> e.Typed:
    if moment.conversion == ISO_DATE:
        text = e.Apply(
            VARCHAR, "cast", (e.Apply(DATE, "cast", (value,)) if value.type != DATE else value,)
        )
        return _call(
            "regexp_replace", text, e.Constant(VARCHAR, _FIVE_DIGITS), e.Constant(VARCHAR, "+")
        )
    clock = e.Apply(TIMESTAMP, "cast", (value,)) if value.type != TIMESTAMP else value
    tokens = {**DATE_CONVERSIONS, **CLOCK_CONVERSIONS}[moment.conversion]
    text = e.Apply(VARCHAR, "written", (clock,), e.NamedOperation("format moment", tokens))
    return _call("lower", text) if moment.conversion == "p" else text


def _call(name: str, *arguments: e.Typed) -> e.Typed:
    call = resolve(name, [VARCHAR] * len(arguments))
    assert call is not None
    return e.Apply(VARCHAR, "function", arguments, call.overload)


def _as_java(moment: e.Typed) -> e.Typed:
    """Format a moment as Java does: T before the time, three or six fractional digits, and no zero
    seconds.
    """
    text: e.Typed = e.Apply(VARCHAR, "cast", (moment,))
    for pattern, replacement in ((" ", "T"), (_ZEROS, "")):
        text = _call(
            "regexp_replace", text, e.Constant(VARCHAR, pattern), e.Constant(VARCHAR, replacement)
        )
    return text


_FIVE_DIGITS: Final = r"^(?=\d{5})"
_ZEROS: Final = r"(:00)?\.000000$|(?<=\.\d{3})000$"


_CHECKS: Final[
    dict[str, Callable[[CallAnalyzer, s.FunctionCall, list[e.Typed]], list[e.Typed]]]
] = {
    "array_join": _joined,
    "concat_ws": _separated,
    "map_concat": _several_maps,
    "format": _formatted,
    "regexp_extract": _extracted,
    "regexp_extract_all": _extracted,
    "regexp_replace": _replaced,
    "round": _rounded,
    "truncate": _rounded,
    "lag": _second_literal("an offset"),
    "lead": _second_literal("an offset"),
    "nth_value": _second_literal("an offset"),
}
