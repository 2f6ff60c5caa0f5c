"""Types that columns get by WITH SCHEMA EVOLUTION: fields that the source has too, and wider numbers.

Only changes that Iceberg allows: wider integers, real to double, and more digits of a decimal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import quoted_where_needed
from rowmerge_nb.spi.types import UNKNOWN, VARCHAR, Type, is_wider
from rowmerge_nb.sql.typed.type_rules import (
    as_decimal,
    instant,
    is_exact,
    is_float,
    is_numeric,
    parts_of,
    precision_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def new_type(sql_type: Type) -> Type:
    """Return the type of a new column, without lengths of text: later values may be longer."""
    return _without_length(instant(sql_type))


def _without_length(sql_type: Type) -> Type:
    if sql_type.base == "varchar":
        return VARCHAR
    return replace(
        sql_type,
        parameters=tuple(
            _without_length(p) if isinstance(p, Type) else p for p in sql_type.parameters
        ),
    )


def evolved_type(target: Type, source: Type) -> Type:
    """Return the target's type with further fields of the source's rows, which come last, and with
    wider numbers. Keys of maps stay as they are.

    >>> from rowmerge_nb.spi.types import parse_type
    >>> str(evolved_type(parse_type("row(a integer)"), parse_type("row(b varchar(3), a bigint)")))
    'row("a" bigint, "b" varchar)'
    """
    if is_wider(target, source):
        return source
    if target.base != source.base:
        return target
    if target.base == "array":
        return replace(target, parameters=(evolved_type(*_parts(target, source, 0)),))
    if target.base == "map":
        value = evolved_type(*_parts(target, source, 1))
        return replace(target, parameters=(target.parameters[0], value))
    return _evolved_row(target, source) if target.base == "row" else target


def type_at(path: Sequence[str], sql_type: Type) -> Type | None:
    """Return a row with the field at a path alone, as an assignment to it needs; None without it.

    >>> from rowmerge_nb.spi.types import parse_type
    >>> str(type_at(["b", "c"], parse_type("row(a integer, B row(c bigint, d date))")))
    'row("B" row("c" bigint))'
    """
    if not path:
        return sql_type
    names = [str(name).lower() for name in sql_type.fields]
    if sql_type.base != "row" or names.count(path[0]) != 1:
        return None
    index = names.index(path[0])
    part = type_at(path[1:], sql_type.parameters[index])
    return None if part is None else Type("row", (part,), (sql_type.fields[index],))


def _parts(target: Type, source: Type, index: int) -> tuple[Type, Type]:
    return target.parameters[index], source.parameters[index]


def _evolved_row(target: Type, source: Type) -> Type:
    source_parts = {
        str(name).lower(): part
        for name, part in zip(source.fields, source.parameters, strict=True)
        if name
    }
    names = [str(name).lower() for name in target.fields]
    if len(source_parts) != len(source.fields) or len(set(names)) != len(names) or not all(names):
        # Rows without names, or with a name twice: fields cannot be matched by name.
        return target
    parts = [
        evolved_type(part, source_parts.get(name, part))
        for name, part in zip(names, target.parameters, strict=True)
    ]
    fields = [*target.fields]
    for name, part in zip(source.fields, source.parameters, strict=True):
        if str(name).lower() not in names and UNKNOWN not in parts_of(part):
            fields.append(name)
            parts.append(new_type(part))
    return Type("row", tuple(parts), tuple(fields))


def type_changes(path: str, before: Type, after: Type) -> Iterator[tuple[str, str, str]]:
    """Yield the path, the former type and the new type of each change; ``""`` for a new field."""
    if before == after:
        return
    if before.base != after.base or before.base not in {"row", "array", "map"}:
        yield path, str(before), str(after)
        return
    labels: list[str] = {"array": ["element"], "map": ["key", "value"]}.get(
        before.base, [quoted_where_needed(str(name)) for name in after.fields]
    )
    for index, label in enumerate(labels):
        if index < len(before.parameters):
            yield from type_changes(
                f"{path}.{label}", before.parameters[index], after.parameters[index]
            )
        else:
            yield f"{path}.{label}", "", str(after.parameters[index])


_DIGITS: Final = {"double": 15, "real": 6}
"""The decimal digits that each value of a type has."""


def type_losses(path: str, column: Type, value: Type) -> Iterator[tuple[str, str, str, str]]:
    """Yield the path, the type of a column's part, the type of its value, and how the column changes
    such values without an error.

    >>> from rowmerge_nb.spi.types import parse_type
    >>> column, value = parse_type("row(a integer, b date)"), parse_type("row(a real, b date)")
    >>> list(type_losses("v", column, value))
    [('v.a', 'integer', 'real', 'rounded')]
    """
    if column.base == value.base and column.base in {"row", "array", "map"}:
        labels: list[str] = {"array": ["element"], "map": ["key", "value"]}.get(
            column.base, [quoted_where_needed(str(name)) for name in column.fields]
        )
        for label, *parts in zip(labels, column.parameters, value.parameters, strict=False):
            yield from type_losses(f"{path}.{label}", *parts)
    elif verb := _loss(column, value):
        yield path, str(column), str(value), verb


def _loss(column: Type, value: Type) -> str:
    if is_numeric(column) and is_numeric(value):
        return "rounded" if _is_rounded(column, value) else ""
    (base, _, zone), (value_base, _, value_zone) = (
        part.base.partition(" with ") for part in (column, value)
    )
    if value_base not in {"time", "timestamp"}:
        return ""
    if base == "date":
        return "cut to their day"
    if value_zone and not zone:
        return "stored without their zone"
    return "rounded" if precision_of(column) < precision_of(value) else ""


def _is_rounded(column: Type, value: Type) -> bool:
    if is_float(value):
        return column.base not in {"double", value.base}
    if is_float(column):
        digits: int = as_decimal(value).parameters[0]
        return digits > _DIGITS[column.base]
    scale: int = as_decimal(value).parameters[1]
    return is_exact(column) and as_decimal(column).parameters[1] < scale
