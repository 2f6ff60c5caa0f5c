"""Matches the fields of rows by name, where columns are matched by name: ``UPDATE SET *`` and ``INSERT *``.

A cast between rows matches fields by position, in Trino as here. A source whose row has the same fields in another order would exchange them
silently. So a star puts the fields into the order of the target first, at any depth of rows, arrays and maps.
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
    """A row of the source has not the fields of the target's row; the text says which one, and where."""


def with_fields_of(value: e.Typed, kind: Type, name: str, new_symbol: Callable[[str], str]) -> e.Typed:
    """Return a value whose rows have their fields in the order of a type, matched by name without regard to case.

    Rows whose fields have no names keep their order. What is in its place already is returned as it is.

    Args:
        value: the value.
        kind: the type of the column that it is for.
        name: the name of that column.
        new_symbol: returns a new name for the parameter of a lambda.

    Raises:
        FieldMismatchError: a row lacks a field of the target, has a further one, or has a name twice.
    """
    source = value.type
    if source.base != kind.base or source == kind or not _is_moved(source, kind):
        return value
    if source.base == "row":
        return _row(value, kind, name, new_symbol)
    if source.base == "array":
        return _mapped("transform", value, kind.parameters, (0,), f"{name}.element", new_symbol)
    keyed = _mapped("transform_keys", value, kind.parameters, (0,), f"{name}.key", new_symbol)
    return _mapped("transform_values", keyed, kind.parameters, (1,), f"{name}.value", new_symbol)


def _is_moved(source: Type, kind: Type) -> bool:
    """Return whether matching by name differs from matching by position somewhere within two types."""
    if source.base != kind.base or len(source.parameters) != len(kind.parameters) or source.base not in {"row", "array", "map"}:
        return source.base == kind.base == "row" and any(source.fields) and any(kind.fields)
    if source.base == "row" and any(source.fields) and any(kind.fields) and _names(source) != _names(kind):
        return True
    return any(map(_is_moved, source.parameters, kind.parameters))


def _names(kind: Type) -> list[str | None]:
    return [field and field.lower() for field in kind.fields]


def _row(value: e.Typed, kind: Type, name: str, new_symbol: Callable[[str], str]) -> e.Typed:
    indexes = _indexes(value.type, kind, name)
    fields = [e.Apply(value.type.parameters[index], "field", (value,), index) for index in indexes]
    labels = [field or f"{position}" for position, field in enumerate(kind.fields, start=1)]
    parts = [
        with_fields_of(field, wanted, f"{name}.{quoted_where_needed(label)}", new_symbol)
        for field, wanted, label in zip(fields, kind.parameters, labels, strict=True)
    ]
    whole = Type("row", tuple(part.type for part in parts), kind.fields)
    is_null = e.Apply(BOOLEAN, "is null", (value,), False)
    return e.Apply(whole, "case", (is_null, e.Constant(whole, None), e.Apply(whole, "row", tuple(parts))))


def _indexes(source: Type, kind: Type, name: str) -> Sequence[int]:
    """Return the index of each of the target's fields among those of the source."""
    given, wanted = _names(source), _names(kind)
    if not any(given) or not any(wanted):
        return range(len(given))
    for names, side in ((given, "source"), (wanted, "target")):
        twice = next((field for index, field in enumerate(names) if field in names[:index]), None)
        if twice is not None:
            raise FieldMismatchError(f"Column {name} of the {side} has field '{twice}' more than once")
    missing = next((field for field in wanted if field not in given), None)
    further = next((field for field in given if field not in wanted), None)
    if missing is not None or further is not None:
        side = "target" if missing is None else "source"
        raise FieldMismatchError(
            f"Column {name} is {kind} in the target and {source} in the source: the {side} has no field '{missing or further}'"
        )
    return [given.index(field) for field in wanted]


def _mapped(
    function: str, value: e.Typed, kinds: Sequence[Type], index: tuple[int], name: str, new_symbol: Callable[[str], str]
) -> e.Typed:
    """Return an array or map with one of its parts matched by name."""
    (at,) = index
    parts = [e.Variable(part, new_symbol("part")) for part in value.type.parameters]
    body = with_fields_of(parts[at], kinds[at], name, new_symbol)
    if body is parts[at]:
        return value
    found = resolve(function, [value.type, Type("function", (body.type,))])
    assert found is not None
    lambda_ = e.Function(found.arguments[1], tuple(part.name for part in parts), body)
    return e.Apply(found.result, "function", (value, lambda_), found.overload)
