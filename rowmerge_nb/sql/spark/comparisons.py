"""Comparison in Spark SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.spi.types import UNKNOWN
from rowmerge_nb.sql.spark.maps import as_entries
from rowmerge_nb.sql.typed.type_rules import NESTED, is_float, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.spi.types import Type


def compared(operator: str, left: str, right: str, sql_type: Type) -> str:
    value = f"({left} {operator} {right})"
    if is_float(sql_type):
        return _nan_aware(operator, left, right, value)
    if sql_type.base not in NESTED:
        return value
    if operator == "<>":
        return f"(NOT {compared('=', left, right, sql_type)})"
    if sql_type.base == "row":
        return _rows(operator, left, right, sql_type)
    return (
        _maps(left, right, sql_type)
        if sql_type.base == "map"
        else _arrays(operator, left, right, sql_type)
    )


def _nan_aware(operator: str, left: str, right: str, value: str) -> str:
    """Write a comparison where NaN equals nothing, unlike in Spark."""
    if operator in {"<", "<="}:
        return f"IF(isnan({right}) AND {left} IS NOT NULL, false, {value})"
    if operator in {">", ">="}:
        return f"IF(isnan({left}) AND {right} IS NOT NULL, false, {value})"
    return (
        f"IF(isnan({left}) AND {right} IS NOT NULL, {'true' if operator == '<>' else 'false'},"
        f" {value})"
    )


def _rows(operator: str, left: str, right: str, sql_type: Type) -> str:
    if operator != "=":
        return _in_order(operator, left, right, sql_type)
    return f"({' AND '.join(compared('=', a, b, part) for a, b, part in _fields(left, right, sql_type))})"


def _arrays(operator: str, left: str, right: str, sql_type: Type) -> str:
    if operator != "=":
        return _in_order(operator, left, right, sql_type)
    same = compared("=", "x", "y", sql_type.parameters[0])
    return (
        f"IF(size({left}) <> size({right}), false, forall(zip_with({left}, {right}, (x, y) ->"
        f" {same}), z -> z))"
    )


def _fields(left: str, right: str, sql_type: Type) -> list[tuple[str, str, Type]]:
    names = [backquoted(name or f"field{i}") for i, name in enumerate(sql_type.fields)]
    return [
        (f"{left}.{name}", f"{right}.{name}", part)
        for name, part in zip(names, sql_type.parameters, strict=True)
    ]


def _in_order(operator: str, left: str, right: str, sql_type: Type) -> str:
    return (
        f"CASE WHEN {left} IS NOT NULL AND {right} IS NOT NULL THEN"
        f" {_ordered(left, right, sql_type)} {operator} 0 END"
    )


_ORDER, _PAIR = backquoted("$order"), backquoted("$pair")


def _ordered(left: str, right: str, sql_type: Type) -> str:
    """Write the order of two values that are not NULL: -1, 0, 1, or NULL."""
    if sql_type.base == "row":
        order = "0"
        for a, b, part in reversed(_fields(left, right, sql_type)):
            order = _then(_parts_ordered(a, b, part), order)
        return order
    if sql_type.base == "array":
        both = ", ".join(
            f"slice({side}, 1, least(size({left}), size({right})))" for side in (left, right)
        )
        pair = _parts_ordered(f"{_PAIR}.x", f"{_PAIR}.y", sql_type.parameters[0])
        return (
            f"aggregate(zip_with({both}, (x, y) -> struct(x, y)), 0, ({_ORDER}, {_PAIR}) ->"
            f" IF({_ORDER} = 0, {pair}, {_ORDER}), {_ORDER} -> IF({_ORDER} = 0,"
            f" CAST(sign(size({left}) - size({right})) AS INT), {_ORDER}))"
        )
    return f"CASE WHEN {left} < {right} THEN -1 WHEN {left} > {right} THEN 1 ELSE 0 END"


def _parts_ordered(left: str, right: str, sql_type: Type) -> str:
    return f"IF({left} IS NULL OR {right} IS NULL, NULL, {_ordered(left, right, sql_type)})"


def _then(order: str, rest: str) -> str:
    return (
        order
        if rest == "0"
        else f"transform(array({order}), {_ORDER} -> IF({_ORDER} = 0, {rest}, {_ORDER}))[0]"
    )


def _maps(left: str, right: str, sql_type: Type) -> str:
    key, value = sql_type.parameters
    if key == UNKNOWN:
        # Both are empty.
        return f"IF({left} IS NULL OR {right} IS NULL, NULL, true)"
    # Values may be NULL, so they are wrapped in structs; NULL means a missing key.
    others = (
        f"transform(map_keys({left}), k -> IF({has_key(right, 'k', key)}, named_struct('v',"
        f" try_element_at({right}, k)), NULL))"
    )
    same = compared("=", "x", "y.v", value)
    same_keys = (
        f"forall(zip_with(map_values({left}), {others}, (x, y) -> IF(y IS NULL, false, {same})), z"
        " -> z)"
    )
    return (
        f"CASE WHEN {left} IS NULL OR {right} IS NULL THEN NULL WHEN size({left}) <> size({right})"
        f" THEN false ELSE {same_keys} END"
    )


def has_key(text: str, key: str, sql_type: Type) -> str:
    """Write whether a map has a key; NaN never matches."""
    contains = f"map_contains_key({text}, {key})"
    return (
        f"({contains} AND {compared('=', key, key, sql_type)})"
        if any(map(is_float, parts_of(sql_type)))
        else contains
    )


def certain_keys(
    keys: str, sql_type: Type, fail: Callable[..., str], format_key: Callable[[str, Type], str]
) -> str:
    """Write the keys of MAP; one that contains a NULL is an error.

    ``format_key`` writes a key for the message.
    """
    unknown = _with_null("k", sql_type)
    if unknown is None:
        return keys
    message = fail(
        "INVALID_FUNCTION_ARGUMENT",
        "'map key cannot be indeterminate: '",
        format_key("k", sql_type),
    )
    return f"transform({keys}, k -> IF(k IS NOT NULL AND ({unknown}), {message}, k))"


def _with_null(text: str, sql_type: Type) -> str | None:
    """Write whether a value contains a NULL; None if it cannot."""

    def holes(part: str, sql_type: Type) -> str:
        inner = _with_null(part, sql_type)
        return f"{part} IS NULL" if inner is None else f"{part} IS NULL OR {inner}"

    if sql_type.base == "row":
        return " OR ".join(holes(field, part) for field, _, part in _fields(text, text, sql_type))
    if sql_type.base in {"array", "map"}:
        elements = text if sql_type.base == "array" else f"map_values({text})"
        return f"exists({elements}, x -> {holes('x', sql_type.parameters[-1])})"
    return None


ELEMENT_SEARCHES: Final = frozenset({"contains", "array_position", "array_remove"})


def element_search(
    name: str, array: str, element: str, sql_type: Type, fail: Callable[..., str]
) -> str:
    """Write one of `ELEMENT_SEARCHES` for a nested element; an element whose equality is unknown is
    an error.
    """
    unknown = fail(
        "NOT_SUPPORTED",
        f"'{name} does not support arrays with elements that are null or contain null'",
    )
    same = compared("=", "`$element`", element, sql_type)
    places = (
        f"transform({array}, `$element` -> CASE WHEN `$element` IS NULL THEN 'null' WHEN {same}"
        f" THEN 'same' WHEN NOT {same} THEN 'other' ELSE 'unknown' END)"
    )
    first, doubtful = "array_position(`$places`, 'same')", "array_position(`$places`, 'unknown')"
    value, fails = {
        "contains": (
            (
                f"CASE WHEN {first} > 0 THEN true WHEN NOT array_contains(`$places`, 'null') THEN"
                " false END"
            ),
            f"{doubtful} > 0 AND ({first} = 0 OR {doubtful} < {first})",
        ),
        "array_position": (first, f"{doubtful} > 0 AND ({first} = 0 OR {doubtful} < {first})"),
        "array_remove": (
            f"filter({array}, (x, i) -> get(`$places`, i) <> 'same')",
            f"{doubtful} > 0",
        ),
    }[name]
    checked = f"transform(array({places}), `$places` -> IF({fails}, {unknown}, {value}))[0]"
    return f"IF({array} IS NULL OR {element} IS NULL, NULL, {checked})"


def distinct(left: str, right: str, sql_type: Type, *, negated: bool) -> str:
    left, right = (as_entries(side, sql_type) for side in (left, right))
    return f"({left} <=> {right})" if negated else f"(NOT ({left} <=> {right}))"
