"""Matches the fields of rows by name for ``UPDATE SET *`` and ``INSERT *``.

Casts match by position and would silently exchange fields, so a star reorders them first, at any
depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.base.names import quoted_where_needed
from rowmerge_nb.spi.types import BOOLEAN, Type
from rowmerge_nb.sql.functions.signatures import resolve
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class FieldMismatchError(Exception):
    """A source's row has other fields than the target's."""


@dataclass(frozen=True)
class MissingFields:
    """The values of fields that the source lacks: those of the old row, or NULL."""

    old_row: e.Typed | None = None

    def field(self, sql_type: Type, index: int) -> e.Typed:
        if self.old_row is None:
            return e.Constant(sql_type, None)
        return e.Apply(sql_type, "field", (self.old_row,), index)

    def within(self, sql_type: Type, index: int) -> MissingFields:
        return self if self.old_row is None else MissingFields(self.field(sql_type, index))


def with_fields_of(
    value: e.Typed,
    sql_type: Type,
    name: str,
    new_symbol: Callable[[str], str],
    missing: MissingFields | None = None,
) -> e.Typed:
    """Return a value with the fields of its rows in the order of a type, matched by name, ignoring
    case.

    Rows without field names keep their order.

    Raises:
        FieldMismatchError: the source has other fields; it may lack some if `missing` has values.
    """
    source = value.type
    if source.base != sql_type.base or source == sql_type or not _is_moved(source, sql_type):
        return value
    if source.base == "row":
        return _row(value, sql_type, name, new_symbol, missing)
    within = missing and MissingFields()

    def mapped(function: str, items: e.Typed, index: int, part: str) -> e.Typed:
        return _mapped(
            function, items, sql_type.parameters, (index,), f"{name}.{part}", new_symbol, within
        )

    if source.base == "array":
        return mapped("transform", value, 0, "element")
    return mapped("transform_values", mapped("transform_keys", value, 0, "key"), 1, "value")


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


def _row(
    value: e.Typed,
    sql_type: Type,
    name: str,
    new_symbol: Callable[[str], str],
    missing: MissingFields | None,
) -> e.Typed:
    parts: list[e.Typed] = []
    for position, index in enumerate(_indexes(value.type, sql_type, name, missing)):
        field_type = sql_type.parameters[position]
        if index is None:
            assert missing is not None
            parts.append(missing.field(field_type, position))
            continue
        label = quoted_where_needed(sql_type.fields[position] or f"{position + 1}")
        field = e.Apply(value.type.parameters[index], "field", (value,), index)
        within = missing and missing.within(field_type, position)
        parts.append(with_fields_of(field, field_type, f"{name}.{label}", new_symbol, within))
    whole = Type("row", tuple(part.type for part in parts), sql_type.fields)
    is_null = e.Apply(BOOLEAN, "is null", (value,), False)
    return e.Apply(
        whole, "case", (is_null, e.Constant(whole, None), e.Apply(whole, "row", tuple(parts)))
    )


def _indexes(
    source: Type, sql_type: Type, name: str, missing_fields: MissingFields | None
) -> Sequence[int | None]:
    """Return the index in the source of each field of a type; None for one that it lacks."""
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
    missing = None if missing_fields is not None else missing
    further = next((field for field in source_names if field not in target_names), None)
    if missing is not None or further is not None:
        side = "target" if missing is None else "source"
        raise FieldMismatchError(
            f"Column {name} is {sql_type} in the target and {source} in the source: the {side} has"
            f" no field '{missing or further}'"
        )
    return [source_names.index(field) if field in source_names else None for field in target_names]


def _mapped(
    function: str,
    value: e.Typed,
    part_types: Sequence[Type],
    index: tuple[int],
    name: str,
    new_symbol: Callable[[str], str],
    missing: MissingFields | None,
) -> e.Typed:
    (at,) = index
    parts = [e.Variable(part, new_symbol("part")) for part in value.type.parameters]
    body = with_fields_of(parts[at], part_types[at], name, new_symbol, missing)
    if body is parts[at]:
        return value
    function_call = resolve(function, [value.type, Type("function", (body.type,))])
    assert function_call is not None
    lambda_ = e.Function(function_call.arguments[1], tuple(part.name for part in parts), body)
    return e.Apply(function_call.result, "function", (value, lambda_), function_call.overload)
