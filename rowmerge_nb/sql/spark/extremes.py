"""MAX, MAX_BY, ARRAY_SORT, ARRAY_MAX, GREATEST and their like, and ORDER BY in aggregates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.sql.typed.type_rules import is_float

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.spi.types import Type

EXTREMES: Final = frozenset({"max", "min", "max_by", "min_by"})


def extreme(
    name: str, texts: Sequence[str], key: Type, call_text: str, rows: str, fail: Callable[..., str]
) -> str:
    """Write MAX, MIN, MAX_BY or MIN_BY."""
    if len(texts) > (2 if name.endswith("_by") else 1):
        return _several(name, texts, key, rows, fail)
    key_text = sort_key(texts[-1], key, smallest=name.startswith("max"))
    return call_text if key_text == texts[-1] else f"{name[:3]}_by({texts[0]}, {key_text}){rows}"


def _several(
    name: str, texts: Sequence[str], key: Type, rows: str, fail: Callable[..., str]
) -> str:
    """Write the N greatest or least values in order, or NULL."""
    *_, compares, count = texts
    ascending = name.startswith("min")
    key_text = sort_key(compares, key, smallest=not ascending)
    key_and_value = f"named_struct('k', {key_text}, 'v', {texts[0]})"
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


def sort_key(text: str, sql_type: Type, *, smallest: bool) -> str:
    """Write a value that Spark orders as Trino orders the value.

    Trino takes NaN, and NULL within a row or an array, for the smallest value with NULLS FIRST, MAX
    and GREATEST, and for the largest elsewhere. For Spark NaN is always the largest, and NULL
    within a value the smallest.
    """
    if is_float(sql_type) and smallest:
        return (
            f"IF({text} IS NULL, NULL, named_struct('number', NOT isnan({text}), 'value', {text}))"
        )
    if sql_type.base == "array":
        inner = _part_key("x", sql_type.parameters[0], smallest=smallest)
        return text if inner == "x" else f"transform({text}, x -> {inner})"
    if sql_type.base == "row":
        fields = [
            f"{text}.{backquoted(name or f'field{i}')}" for i, name in enumerate(sql_type.fields)
        ]
        parts = [
            _part_key(field, part, smallest=smallest)
            for field, part in zip(fields, sql_type.parameters, strict=True)
        ]
        return text if parts == fields else f"IF({text} IS NULL, NULL, struct({', '.join(parts)}))"
    return text


def _part_key(text: str, sql_type: Type, *, smallest: bool) -> str:
    key = sort_key(text, sql_type, smallest=smallest)
    return key if smallest else f"named_struct('null', {text} IS NULL, 'value', {key})"


def sorted_array(text: str, element: Type) -> str:
    """Write ARRAY_SORT of nested values: NULL is last, and within a value it is the largest."""
    key = sort_key("x", element, smallest=False)
    pairs = f"transform({text}, x -> IF(x IS NULL, NULL, named_struct('k', {key}, 'v', x)))"
    return f"transform(array_sort({pairs}), p -> p.v)"


def greater(name: str, left: str, right: str, sql_type: Type) -> str:
    """Write GREATEST or LEAST (``name``) of two nested values that are not NULL."""
    most = name == "greatest"
    keys = [sort_key(text, sql_type, smallest=most) for text in (left, right)]
    return f"IF({keys[1]} {'>' if most else '<'} {keys[0]}, {right}, {left})"


_LIST = backquoted("$list")
_BEST, _NEXT = backquoted("$found"), backquoted("$next")


def extreme_element(name: str, text: str, element: Type) -> str:
    """Write ARRAY_MAX or ARRAY_MIN of nested values, NULL if an element is NULL."""
    better = greater("greatest" if name == "array_max" else "least", _BEST, _NEXT, element)
    return (
        f"IF(exists({text}, x -> x IS NULL), NULL, aggregate({text}, get({text}, 0), ({_BEST},"
        f" {_NEXT}) -> {better}))"
    )


def ordered_list(template: str, keys: Sequence[tuple[str, bool, bool]]) -> str:
    """Add ORDER BY to the template of a listing aggregate, a ``collect_list`` of structs with the
    value as ``v``.
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
