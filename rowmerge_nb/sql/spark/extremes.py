"""MAX, MAX_BY, ARRAY_SORT, ARRAY_MAX, GREATEST and their like, and ORDER BY in aggregates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.sql.spark.comparisons import ordered
from rowmerge_nb.sql.typed.type_rules import is_float

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.spi.types import Type

EXTREMES: Final = frozenset({"max", "min", "max_by", "min_by"})


def extreme(
    name: str, texts: Sequence[str], key: Type, call_text: str, rows: str, fail: Callable[..., str]
) -> str:
    """Write MAX, MIN, MAX_BY or MIN_BY.

    Args:
        name: the function.
        texts: values, the compared value, and optionally the number of results.
        key: the type of the compared value.
        call_text: the call from the table of functions.
        rows: FILTER and OVER.
        fail: writes a failure.
    """
    if len(texts) > (2 if name.endswith("_by") else 1):
        return _several(name, texts, key, rows, fail)
    compares = texts[-1]
    if name.startswith("max"):
        # NaN is the least value for Trino's max, and the greatest for Spark.
        lowest = _nan_lowest(compares, key)
        call_text = call_text if lowest == compares else f"max_by({texts[0]}, {lowest}){rows}"
    if key.base not in {"array", "row"}:
        return call_text
    type_word = key.base.upper()
    elements = "arrays" if key.base == "array" else "fields"
    message = fail(
        "NOT_SUPPORTED", f"'{type_word} comparison not supported for {elements} with null elements'"
    )
    first = f"size({compares}) > 0 AND get({compares}, 0) IS NULL"
    if key.base == "row":
        first = (
            f"{compares} IS NOT NULL AND {compares}.{backquoted(key.fields[0] or 'field0')} IS NULL"
        )
    return (
        f"IF(count({compares}){rows} > 1 AND bool_or(coalesce({first}, false)){rows}, {message},"
        f" {call_text})"
    )


def _several(
    name: str, texts: Sequence[str], key: Type, rows: str, fail: Callable[..., str]
) -> str:
    """Write the N greatest or least values in order, or NULL."""
    *_, compares, count = texts
    ascending = name.startswith("min")
    key_and_value = (
        f"named_struct('k', {compares if ascending else _nan_lowest(compares, key)}, 'v',"
        f" {texts[0]})"
    )
    listed = f"collect_list(IF({compares} IS NULL, NULL, {key_and_value})){rows}"
    places = (
        f"transform({_LIST}, (e, i) -> named_struct('k', e.k, 'i', {'' if ascending else '-'}i))"
    )
    values = (
        f"transform(sort_array({places}, {str(ascending).lower()}), p -> get({_LIST}, abs(p.i)).v)"
    )
    count_text = f"any_value({count}){rows}"
    argument_name = (
        f"third argument of {name}" if name.endswith("_by") else f"second argument of {name}_n"
    )
    few = "must be a positive integer" if name.endswith("_by") else "must be positive"
    code = "INVALID_FUNCTION_ARGUMENT"
    low = fail(code, f"'{argument_name} {few}'")
    far = fail(
        code,
        f"'{argument_name} must be less than or equal to 10000; found '",
        f"CAST({count_text} AS STRING)",
    )
    return (
        f"CASE WHEN {count_text} <= 0 THEN {low} WHEN {count_text} > 10000 THEN {far} WHEN"
        f" count({compares}){rows} > 0 THEN slice(transform(array({listed}), {_LIST} ->"
        f" {values})[0], 1, CAST({count_text} AS INT)) END"
    )


def _nan_lowest(text: str, sql_type: Type) -> str:
    if is_float(sql_type):
        return (
            f"IF({text} IS NULL, NULL, named_struct('number', NOT isnan({text}), 'value', {text}))"
        )
    if sql_type.base == "array":
        inner = _nan_lowest("x", sql_type.parameters[0])
        return text if inner == "x" else f"transform({text}, x -> {inner})"
    if sql_type.base == "row":
        names = [
            f"{text}.{backquoted(name or f'field{i}')}" for i, name in enumerate(sql_type.fields)
        ]
        parts = [
            _nan_lowest(name, part) for name, part in zip(names, sql_type.parameters, strict=True)
        ]
        return text if parts == names else f"IF({text} IS NULL, NULL, struct({', '.join(parts)}))"
    return text


def sorted_array(text: str, element: Type, fail: Callable[..., str]) -> str:
    """Write ARRAY_SORT of nested values: NULL is last, and within a value it is an error."""
    order = ordered("a", "b", element, fail)
    return (
        f"array_sort({text}, (a, b) -> CASE WHEN a IS NULL THEN IF(b IS NULL, 0, 1) WHEN b IS NULL"
        f" THEN -1 ELSE {order} END)"
    )


def greater(name: str, left: str, right: str, sql_type: Type, fail: Callable[..., str]) -> str:
    """Write GREATEST or LEAST (``name``) of two nested values that are not NULL; NaN loses against
    a number.
    """
    most = name == "greatest"
    order = ordered(right, left, sql_type, fail, nan_first=most)
    return f"IF({order} {'>' if most else '<'} 0, {right}, {left})"


_LIST = backquoted("$list")
_BEST, _NEXT = backquoted("$found"), backquoted("$next")


def extreme_element(name: str, text: str, element: Type, fail: Callable[..., str]) -> str:
    """Write ARRAY_MAX or ARRAY_MIN of nested values, NULL if an element is NULL."""
    better = greater("greatest" if name == "array_max" else "least", _BEST, _NEXT, element, fail)
    return (
        f"IF(exists({text}, x -> x IS NULL), NULL, aggregate({text}, get({text}, 0), ({_BEST},"
        f" {_NEXT}) -> {better}))"
    )


def ordered_list(template: str, keys: Sequence[tuple[str, bool, bool]]) -> str:
    """Add ORDER BY to the template of a listing aggregate, a ``collect_list`` of structs with the
    value as ``v``.

    Keys are a text, whether it descends, and whether NULL is first.
    """
    order = "0"
    for index, (_, descending, nulls_first) in reversed(list(enumerate(keys))):
        a, b = f"a.k{index}", f"b.k{index}"
        less, null = (1 if descending else -1), (-1 if nulls_first else 1)
        order = (
            f"CASE WHEN {a} IS NULL AND {b} IS NULL THEN {order} WHEN {a} IS NULL THEN {null} WHEN"
            f" {b} IS NULL THEN {-null} WHEN {a} < {b} THEN {less} WHEN {a} > {b} THEN {-less} ELSE"
            f" {order} END"
        )
    sorted_by = "".join(f", 'k{index}', {text}" for index, (text, _, _) in enumerate(keys))
    begin = template.index("collect_list(")
    end = template.index("{rows}", begin) + len("{rows}")
    listed = re.sub(
        r"(named_struct\([^()]*)\)",
        lambda struct: f"{struct[1]}{sorted_by})",
        template[begin:end],
        count=1,
    )
    return f"{template[:begin]}array_sort({listed}, (a, b) -> {order}){template[end:]}"
