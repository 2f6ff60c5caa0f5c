"""Matches the fields of rows by name for ``UPDATE SET *`` and ``INSERT *``.

Casts match by position and would silently exchange fields, so a star reorders them first, at any
depth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.names import quoted_where_needed
from rowmerge_nb.spi.types import BOOLEAN, Type
from rowmerge_nb.sql.functions.signatures import resolve
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class FieldMismatchError(Exception):
    """A source's row has other fields than the target's."""


def with_fields_of(
    value: e.Typed, sql_type: Type, name: str, new_symbol: Callable[[str], str]
) -> e.Typed:
    """Return a value with the fields of its rows in the order of a type, matched by name, ignoring
    case.

    Rows without field names keep their order.
    """
    source = value.type
    if source.base != sql_type.base or source == sql_type or not _is_moved(source, sql_type):
        return value
    if source.base == "row":
        return _row(value, sql_type, name, new_symbol)
    if source.base == "array":
        return _mapped("transform", value, sql_type.parameters, (0,), f"{name}.element", new_symbol)
    keyed = _mapped("transform_keys", value, sql_type.parameters, (0,), f"{name}.key", new_symbol)
    return _mapped(
        "transform_values", keyed, sql_type.parameters, (1,), f"{name}.value", new_symbol
    )


def _is_moved(source: Type, sql_type: Type) -> bool:
    if (
        source.base != sql_type.base
        or len(source.parameters) != len(sql_type.parameters)
        or source.base not in {"row", "array", "map"}
    ):
        return source.base == sql_type.base == "row" and any(source.fields) and any(sql_type.fields)
    if (
        source.base == "row"
        and any(source.fields)
        and any(sql_type.fields)
        and _names(source) != _names(sql_type)
    ):
        return True
    return any(map(_is_moved, source.parameters, sql_type.parameters))


def _names(sql_type: Type) -> list[str | None]:
    return [field and field.lower() for field in sql_type.fields]


def _row(value: e.Typed, sql_type: Type, name: str, new_symbol: Callable[[str], str]) -> e.Typed:
    indexes = _indexes(value.type, sql_type, name)
    fields = [e.Apply(value.type.parameters[index], "field", (value,), index) for index in indexes]
    labels = [field or f"{position}" for position, field in enumerate(sql_type.fields, start=1)]
    parts = [
        with_fields_of(field, field_type, f"{name}.{quoted_where_needed(label)}", new_symbol)
        for field, field_type, label in zip(fields, sql_type.parameters, labels, strict=True)
    ]
    whole = Type("row", tuple(part.type for part in parts), sql_type.fields)
    is_null = e.Apply(BOOLEAN, "is null", (value,), False)
    return e.Apply(
        whole, "case", (is_null, e.Constant(whole, None), e.Apply(whole, "row", tuple(parts)))
    )


def _indexes(source: Type, sql_type: Type, name: str) -> Sequence[int]:
    source_names, target_names = _names(source), _names(sql_type)
    if not any(source_names) or not any(target_names):
        return range(len(source_names))
    for names, side in ((source_names, "source"), (target_names, "target")):
        twice = next((field for index, field in enumerate(names) if field in names[:index]), None)
        if twice is not None:
            raise FieldMismatchError(
                f"Column {name} of the {side} has field '{twice}' more than once"
            )
    missing = next((field for field in target_names if field not in source_names), None)
    further = next((field for field in source_names if field not in target_names), None)
    if missing is not None or further is not None:
        side = "target" if missing is None else "source"
        raise FieldMismatchError(
            f"Column {name} is {sql_type} in the target and {source} in the source: the {side} has"
            f" no field '{missing or further}'"
        )
    return [source_names.index(field) for field in target_names]


def _mapped(
    function: str,
    value: e.Typed,
    part_types: Sequence[Type],
    index: tuple[int],
    name: str,
    new_symbol: Callable[[str], str],
) -> e.Typed:
    (at,) = index
    parts = [e.Variable(part, new_symbol("part")) for part in value.type.parameters]
    body = with_fields_of(parts[at], part_types[at], name, new_symbol)
    if body is parts[at]:
        return value
    function_call = resolve(function, [value.type, Type("function", (body.type,))])
    assert function_call is not None
    lambda_ = e.Function(function_call.arguments[1], tuple(part.name for part in parts), body)
    return e.Apply(function_call.result, "function", (value, lambda_), function_call.overload)
